"""Requests that another site makes a browser send are refused.

A browser says where a request comes from: `Sec-Fetch-Site` (all current ones), or `Origin`. A request that
changes something must come from the desk itself. A request with a session cookie and without both headers
is refused too. Programs send no cookie and neither header.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from deferlearn.desk.refusals import refusal

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# "none" is a request by the user, such as a bookmark.
_OWN = frozenset({"same-origin", "none"})


def is_foreign(method: str, headers: Mapping[str, str], *, has_session: bool) -> bool:
    """Whether another site may have made the browser send a request that changes something.

    Parameters
    ----------
    method : str
        Such as "POST".
    headers : mapping
        Of the request, with names in lower case.
    has_session : bool
        Whether a session cookie was sent.

    Returns
    -------
    foreign : bool

    Examples
    --------
    >>> from deferlearn.desk.csrf import is_foreign
    >>> is_foreign("POST", {"sec-fetch-site": "cross-site"}, has_session=True)
    True
    >>> is_foreign("POST", {"origin": "https://desk", "host": "desk"}, has_session=True)
    False
    """
    if method in SAFE:
        return False
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site not in _OWN
    if origin is not None:
        try:
            return urlsplit(origin).netloc != headers.get("host")
        except ValueError:  # it is no address at all
            return True
    return has_session


class RefuseForeign:
    """Middleware that answers 403 to requests of other sites.

    Parameters
    ----------
    app : ASGI application
        What answers the other requests.
    cookies : tuple of str
        Names of the session cookies.
    """

    def __init__(self, app: ASGIApp, cookies: tuple[str, ...]) -> None:
        self.app, self.cookies = app, cookies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            sent = headers.get("cookie", "")
            has_session = any(f"{name}=" in sent for name in self.cookies)
            if is_foreign(scope["method"], headers, has_session=has_session):
                response = refusal(
                    403,
                    "This request came from another site. Open the desk itself and try again.",
                )
                await response(scope, receive, send)
                return
        await self.app(scope, receive, send)
