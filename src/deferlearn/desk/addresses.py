"""Addresses of clients."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_network

# A client of the internet gets so many bits of addresses of IPv6, and may take another for each request.
# Other addresses are those of an organization's own network, in which so many bits are many machines.
_IPV6_BITS = 64


def network_of(address: str) -> str:
    """What tells clients apart: the address, or the network of the client if it is a global one of IPv6.

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
    >>> network_of("10.0.0.1"), network_of("2a00::1:2"), network_of("fd00::1:2")
    ('10.0.0.1', '2a00::/64', 'fd00::1:2')
    """
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    if not found.is_global:
        return str(found)
    return str(ip_network((found, _IPV6_BITS), strict=False))
