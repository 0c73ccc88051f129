"""Keys that are derived from the desk's secret, one per purpose, and signatures with them."""

import hashlib
import hmac

# A shorter secret could be guessed.
MIN_SECRET = 32


def derive(secret: str, purpose: str) -> bytes:
    """A key for one purpose, from which neither the secret nor the keys of other purposes follow.

    Parameters
    ----------
    secret : str of length >= 32
        The desk's secret.
    purpose : str
        What the key is for, such as "audit".

    Returns
    -------
    key : bytes of length 32

    Examples
    --------
    >>> from deferlearn.desk.signing import derive
    >>> derive("s" * 32, "audit") == derive("s" * 32, "cookie")
    False
    """
    if len(secret) < MIN_SECRET:
        raise ValueError(
            f"the secret has {len(secret)} characters, but needs {MIN_SECRET} or more: make one by "
            "`openssl rand -hex 32`"
        )
    return sign(secret.encode(), f"deferlearn desk {purpose}".encode())


def sign(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256 of a message.

    Parameters
    ----------
    key : bytes
        A key of `derive`.
    message : bytes
        What is signed.

    Returns
    -------
    signature : bytes of length 32
    """
    return hmac.new(key, message, hashlib.sha256).digest()


def same(one: bytes, other: bytes) -> bool:
    """Whether two signatures are equal, in a time that does not tell where they differ.

    Parameters
    ----------
    one, other : bytes
        The signatures.

    Returns
    -------
    equal : bool
    """
    return hmac.compare_digest(one, other)
