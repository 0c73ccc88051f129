"""Users and their roles, for administrators."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from deferlearn.desk import audit, sessions, users
from deferlearn.desk.api.problems import described
from deferlearn.desk.api.versions import etag, meant
from deferlearn.desk.permissions import USERS, Role
from deferlearn.desk.principal import Principal, require

router = APIRouter(prefix="/api/v1/users", tags=["users"])
Admin = Annotated[Principal, require(USERS)]
# Larger numbers are not in any database.
MOST = 2**63 - 1
UserId = Annotated[int, Path(ge=1, le=MOST)]
ExpertId = Annotated[int, Field(ge=1, le=MOST)]


class NewUser(BaseModel):
    """A user to be made."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=100)]
    role: Role
    expert_id: ExpertId | None = None


class UserChanges(BaseModel):
    """What is to be changed; what is left out stays."""

    model_config = ConfigDict(extra="forbid")
    role: Role | None = None
    expert_id: Annotated[int, Field(ge=0, le=MOST, description="0: no expert.")] | None = None
    is_active: bool | None = None


class ShownUser(BaseModel):
    """A user as it is."""

    id: int
    name: str
    role: Role
    expert_id: int | None
    is_active: bool
    has_password: bool
    version: int


class Invitation(BaseModel):
    """The one-time link with which a user chooses a password."""

    user: ShownUser
    link: str


@router.get("")
def list_users(request: Request, principal: Admin) -> list[ShownUser]:
    """All users."""
    with request.app.state.database.reading() as connection:
        return [ShownUser(**vars(user)) for user in users.all_of(connection)]


@router.post("", status_code=201, responses=described(409))
def create_user(body: NewUser, request: Request, principal: Admin) -> Invitation:
    """Make a user, and a one-time link with which the user chooses a password."""
    secret = request.app.state.settings.secret

    def create(connection: Connection) -> tuple[users.User, str]:
        user = users.create(connection, **body.model_dump(), actor=principal.actor)
        return user, users.invite(connection, user.id, secret=secret, actor=principal.actor)

    return _invitation(request, *request.app.state.database.write(create))


@router.patch("/{number}", responses=described(404, 409, 412, 428))
def change_user(
    number: UserId,
    body: UserChanges,
    request: Request,
    response: Response,
    principal: Admin,
    version: Annotated[int, Depends(meant)],
) -> ShownUser:
    """Change the role of a user, or switch the user off, which ends the user's sessions at once."""

    def change(connection: Connection) -> users.User:
        return users.change(
            connection, number, version=version, **body.model_dump(), actor=principal.actor
        )

    user = request.app.state.database.write(change)
    response.headers["ETag"] = etag(user.version)
    return ShownUser(**vars(user))


@router.post("/{number}/invitation", status_code=201, responses=described(404))
def invite_user(number: UserId, request: Request, principal: Admin) -> Invitation:
    """A new one-time link for a user who forgot the password. The old password works no longer."""
    secret = request.app.state.settings.secret

    def invite(connection: Connection) -> tuple[users.User, str]:
        token = users.invite(connection, number, secret=secret, actor=principal.actor)
        return users.get(connection, number), token

    return _invitation(request, *request.app.state.database.write(invite))


@router.delete("/{number}/sessions", status_code=204, response_model=None, responses=described(404))
def log_out_user(number: UserId, request: Request, principal: Admin) -> None:
    """End all sessions of a user."""

    def revoke(connection: Connection) -> None:
        users.get(connection, number)
        ended = sessions.revoke_all(connection, number)
        audit.append(
            connection,
            actor=principal.actor,
            action="user.logged_out",
            subject=f"user:{number}",
            detail={"sessions": ended},
        )

    request.app.state.database.write(revoke)


def _invitation(request: Request, user: users.User, token: str) -> Invitation:
    link = users.link(request.app.state.settings, token)
    return Invitation(user=ShownUser(**vars(user)), link=link)
