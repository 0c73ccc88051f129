"""Random tokens, what is stored of them, and their signed form in cookies and links."""

from __future__ import annotations

import base64
import hashlib
import secrets

from deferlearn.desk.signing import same, sign

# So many random bytes that nobody guesses them.
_BYTES = 32


def new_token() -> str:
    """A random text that nobody can guess."""
    return secrets.token_urlsafe(_BYTES)


def stored_form(token: str) -> str:
    """What is stored of a token: who reads the database cannot use it.

    Parameters
    ----------
    token : str
        A token of `new_token`; it needs no salt, because nobody can guess it.

    Returns
    -------
    digest : str of length 64
    """
    return hashlib.sha256(_bytes(token)).hexdigest()


def signed(key: bytes, text: str) -> str:
    """A text with its signature, for a cookie or a link.

    Parameters
    ----------
    key : bytes
        A key of `deferlearn.desk.signing.derive`.
    text : str
        What is signed, without a point in it.

    Returns
    -------
    value : str

    Examples
    --------
    >>> from deferlearn.desk.tokens import signed, unsigned
    >>> value = signed(b"key", "17-abc")
    >>> unsigned(b"key", value), unsigned(b"other key", value)
    ('17-abc', None)
    """
    return f"{text}.{_signature(key, text)}"


def unsigned(key: bytes, value: str) -> str | None:
    """The text in a signed value, if its signature is right.

    Parameters
    ----------
    key : bytes
        The key of `signed`.
    value : str
        What came back.

    Returns
    -------
    text : str or None
        None if the value was not signed with this key.
    """
    text, _, signature = value.rpartition(".")
    return text if same(_bytes(signature), _bytes(_signature(key, text))) else None


def _signature(key: bytes, text: str) -> str:
    return base64.urlsafe_b64encode(sign(key, _bytes(text))).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # what came back may be anything
