"""Addresses of clients."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_network

# One client of IPv6 gets so many bits of addresses, and may take another one for each request.
_IPV6_BITS = 64


def network_of(address: str) -> str:
    """What tells clients apart: the address, or for IPv6 the network of the client.

    Parameters
    ----------
    address : str
        Of a client; it may be anything.

    Returns
    -------
    network : str

    Examples
    --------
    >>> from deferlearn.desk.addresses import network_of
    >>> network_of("10.0.0.1"), network_of("2001:db8::1:2"), network_of("::ffff:10.0.0.1")
    ('10.0.0.1', '2001:db8::/64', '10.0.0.1')
    """
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((found, _IPV6_BITS), strict=False))
