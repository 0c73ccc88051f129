"""Who asks, and what they may do.

A user has a session (a cookie) and a role; a program has an API key and scopes. Endpoints say what they
need, and get the one who asks::

    @router.post("/cases")
    def arrive(..., principal: Annotated[Principal, require("cases:write")]): ...

Without identity the answer is 401, without permission 403.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import Depends, HTTPException, Request

from deferlearn.desk import keys, sessions
from deferlearn.desk.database import Database
from deferlearn.desk.permissions import ALL, PERMISSIONS, Role


@dataclass(frozen=True)
class Principal:
    """The user or the program that asks.

    Attributes
    ----------
    kind : {"user", "key"}
        Whether it is a user or an API key.
    id : int
        Of the user or the key.
    name : str
        Of the user or the key.
    permissions : frozenset of str
        The scopes of the key, or what the user's role allows.
    role : {"expert", "supervisor", "admin"} or None
        Of the user; None for keys.
    expert_id : int or None
        The expert that the user is; None for keys, and for users who answer no cases. An expert sees the
        cases that are leased to this expert, and no others.
    """

    kind: Literal["user", "key"]
    id: int
    name: str
    permissions: frozenset[str]
    role: Role | None = None
    expert_id: int | None = None

    @property
    def actor(self) -> str:
        """The name in the audit log, such as "user:anna"."""
        return f"{self.kind}:{self.name}"

    def may(self, permission: str) -> bool:
        """Whether something is allowed.

        Parameters
        ----------
        permission : str
            Such as "cases:write".

        Returns
        -------
        allowed : bool
        """
        return permission in self.permissions


def current(request: Request) -> Principal:
    """Find out who asks: the API key of the header `Authorization: Bearer`, or the session of the cookie.

    Parameters
    ----------
    request : Request
        Of an app whose `state` has `database` and `settings`.

    Returns
    -------
    principal : Principal
    """
    header = request.headers.get("authorization")
    principal = _of_header(request, header) if header is not None else _of_session(request)
    if principal is None:
        what = "This API key is not valid" if header is not None else "Nobody is logged in"
        detail = f"{what}. Log in, or send a valid key as `Authorization: Bearer KEY`."
        raise HTTPException(401, detail, {"WWW-Authenticate": "Bearer"})
    request.state.actor = principal.actor  # for the log
    return principal


def _of_header(request: Request, header: str) -> Principal | None:
    text = key_in(header)
    return None if text is None else of_key(request.app.state.database, text)


def key_in(header: str) -> str | None:
    """What a client sent as an API key; None if it sent none.

    Parameters
    ----------
    header : str
        The header `Authorization`.

    Returns
    -------
    key : str or None
    """
    scheme, _, text = header.partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None


def of_key(database: Database, key: str) -> Principal | None:
    """The program that an API key belongs to.

    Parameters
    ----------
    database : Database
        Of the desk.
    key : str
        What was sent.

    Returns
    -------
    Principal or None
        None if the key is not valid.
    """
    found = keys.find(database, key)
    return None if found is None else Principal("key", found.id, found.name, found.scopes)


def _of_session(request: Request) -> Principal | None:
    cookie = sessions.cookie_of(request)
    if cookie is None:
        return None
    user = sessions.find(request.app.state.database, request.app.state.settings.secret, cookie)
    if user is None:
        return None
    permissions = PERMISSIONS[user.role]
    return Principal("user", user.id, user.name, permissions, user.role, user.expert_id)


def require(permission: str) -> Any:
    """A dependency of an endpoint that gives the one who asks, if they may do it.

    Parameters
    ----------
    permission : str
        A scope, or another one of `deferlearn.desk.permissions`.

    Returns
    -------
    dependency : Depends
        For `Annotated[Principal, require("cases:write")]`.
    """
    if permission not in ALL:
        raise ValueError(f"{permission} is not a permission; use one of {sorted(ALL)}")
    return Depends(checked(permission))


def checked(permission: str) -> Callable[[Principal], Awaitable[Principal]]:
    """The check behind `require`.

    Parameters
    ----------
    permission : str
        What is needed.

    Returns
    -------
    check : callable
    """

    async def check(principal: Principal = Depends(current)) -> Principal:  # noqa: B008
        if not principal.may(permission):
            raise HTTPException(403, f"{principal.actor} may not do this: it needs {permission}.")
        return principal

    return check
