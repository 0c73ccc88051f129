"""Users and their roles, for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Request, Response
from sqlalchemy import Connection

from deferlearn.desk import experts, users
from deferlearn.desk.api.common import MOST, RowId
from deferlearn.desk.api.users import log_out_user
from deferlearn.desk.database import Database
from deferlearn.desk.pages.common import Ticked, UserAdmin, Version, pages
from deferlearn.desk.pages.rendering import go_to, render
from deferlearn.desk.permissions import ROLES
from deferlearn.desk.principal import Principal

router = pages()
Name = Annotated[str, Form(max_length=100)]
Role = Annotated[str, Form(max_length=20)]
# 0 stands for nobody.
ExpertChoice = Annotated[int, Form(ge=0, le=MOST)]


@router.get("/users")
def list_users(request: Request, principal: UserAdmin) -> Response:
    """All users."""
    return _list(request, principal)


@router.post("/users")
def create_user(
    request: Request, principal: UserAdmin, name: Name, role: Role, expert_id: ExpertChoice = 0
) -> Response:
    """Make a user, and show the one-time link with which the user chooses a password."""
    app = request.app.state

    def create(connection: Connection) -> str:
        user = users.create(
            connection,
            name=name.strip(),
            role=role,
            expert_id=expert_id or None,
            actor=principal.actor,
        )
        return users.invite(connection, user.id, secret=app.settings.secret, actor=principal.actor)

    token = app.database.write(create)
    return _list(request, principal, invited=name, link=users.link(app.settings, token))


@router.post("/users/{number}")
def change_user(
    request: Request,
    number: RowId,
    principal: UserAdmin,
    version: Version,
    role: Role,
    expert_id: ExpertChoice = 0,
    is_active: Ticked = False,
) -> Response:
    """Change what a user may do; a user who is switched off is logged out at once."""
    request.app.state.database.write(
        lambda connection: users.change(
            connection,
            number,
            version=version,
            role=role,
            expert_id=expert_id,
            is_active=is_active,
            actor=principal.actor,
        )
    )
    return go_to("/users", "changed")


@router.post("/users/{number}/invitation")
def invite_user(request: Request, number: RowId, principal: UserAdmin) -> Response:
    """A new one-time link; the old password works no longer."""
    app = request.app.state

    def invite(connection: Connection) -> tuple[str, str]:
        token = users.invite(connection, number, secret=app.settings.secret, actor=principal.actor)
        return users.get(connection, number).name, token

    name, token = app.database.write(invite)
    return _list(request, principal, invited=name, link=users.link(app.settings, token))


@router.post("/users/{number}/logout")
def log_user_out(request: Request, number: RowId, principal: UserAdmin) -> Response:
    """End all sessions of a user."""
    log_out_user(number, request, principal)
    return go_to("/users", "sessions-ended")


def _list(request: Request, principal: Principal, *, invited: str = "", link: str = "") -> Response:
    database: Database = request.app.state.database
    with database.reading() as connection:
        found = users.all_of(connection)
        known = experts.list_experts(connection)
    response = render(
        request,
        "users.html",
        principal,
        users=found,
        experts=known,
        names={one.id: one.name for one in known},
        roles=ROLES,
        invited=invited,
        link=link,
    )
    response.headers["HX-Push-Url"] = "/users"  # an address that can be opened again
    return response
