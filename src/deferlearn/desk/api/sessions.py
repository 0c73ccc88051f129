"""Log in and out, choose a password, and ask who one is."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from deferlearn.desk import login, sessions, sign_in_links, users
from deferlearn.desk.passwords import MAX_LENGTH
from deferlearn.desk.permissions import Role
from deferlearn.desk.principal import Principal, current

router = APIRouter(prefix="/api/v1", tags=["sessions"])

Password = Annotated[str, Field(max_length=MAX_LENGTH)]


class Login(BaseModel):
    """A name and a password."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=200)]
    password: Password


class NewPassword(BaseModel):
    """The present password and the next one."""

    model_config = ConfigDict(extra="forbid")
    password: Password
    new_password: Password


class Acceptance(BaseModel):
    """An invitation and the password that its user chooses."""

    model_config = ConfigDict(extra="forbid")
    token: Annotated[str, Field(max_length=300)]
    password: Password


class Link(BaseModel):
    """The text of a link that signs a user in."""

    model_config = ConfigDict(extra="forbid")
    token: Annotated[str, Field(max_length=300)]


class Who(BaseModel):
    """The user or the key that asks."""

    kind: str
    name: str
    role: Role | None
    expert_id: int | None
    permissions: list[str]


@router.post("/session", status_code=204, response_model=None)
def log_in(body: Login, request: Request) -> Response:
    """Log in: the answer sets the cookie of the session."""
    app = request.app.state
    try:
        cookie = login.log_in(
            app.database,
            body.name,
            body.password,
            address=address_of(request),
            secret=app.settings.secret,
            passwords=app.passwords,
        )
    except login.TooManyAttempts as error:
        raise HTTPException(429, str(error), {"Retry-After": str(error.seconds)}) from error
    response = Response(status_code=204)
    sessions.give(response, cookie, secure=sessions.is_secure(request))
    return response


@router.post("/session/link", status_code=204, response_model=None)
def enter(body: Link, request: Request) -> Response:
    """Log in with the text of a link of `deferlearn desk user link`, which works once."""
    app = request.app.state
    cookie = sign_in_links.use(app.database, body.token, secret=app.settings.secret)
    response = Response(status_code=204)
    sessions.give(response, cookie, secure=sessions.is_secure(request))
    return response


@router.get("/session")
def who(principal: Annotated[Principal, Depends(current)]) -> Who:
    """Say who asks, and what they may do."""
    return Who(
        kind=principal.kind,
        name=principal.name,
        role=principal.role,
        expert_id=principal.expert_id,
        permissions=sorted(principal.permissions),
    )


@router.delete("/session", status_code=204, response_model=None)
def log_out(request: Request) -> Response:
    """Log out: the session ends, also for copies of its cookie."""
    cookie = sessions.cookie_of(request)
    app = request.app.state
    if cookie is not None:
        app.database.write(lambda c: sessions.revoke(c, app.settings.secret, cookie))
    response = Response(status_code=204)
    sessions.take(response)
    return response


@router.post("/session/password", status_code=204, response_model=None)
def change_password(
    body: NewPassword, request: Request, principal: Annotated[Principal, Depends(current)]
) -> Response:
    """Choose another password. All sessions of the user end."""
    app = request.app.state
    if principal.kind != "user":
        raise HTTPException(403, "A key has no password.")
    try:
        login.check(
            app.database,
            principal.name,
            body.password,
            address=address_of(request),
            passwords=app.passwords,
        )
    except login.TooManyAttempts as error:
        raise HTTPException(429, str(error), {"Retry-After": str(error.seconds)}) from error
    users.change_password(
        app.database,
        principal.name,
        body.new_password,
        passwords=app.passwords,
        actor=principal.actor,
    )
    response = Response(status_code=204)
    sessions.take(response)
    return response


@router.post("/invitations", status_code=204, response_model=None)
def accept(body: Acceptance, request: Request) -> Response:
    """Choose the password of an invited user, with the text of the one-time link."""
    app = request.app.state
    users.accept(
        app.database,
        body.token,
        body.password,
        secret=app.settings.secret,
        passwords=app.passwords,
    )
    return Response(status_code=204)


def address_of(request: Request) -> str:
    """The address of the client; behind a trusted proxy, the one that the proxy names."""
    return request.client.host if request.client else ""
