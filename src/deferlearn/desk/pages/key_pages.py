"""API keys, for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Request, Response

from deferlearn.desk import keys
from deferlearn.desk.api.common import RowId
from deferlearn.desk.database import now
from deferlearn.desk.pages.common import KeyAdmin, pages
from deferlearn.desk.pages.rendering import go_to, render
from deferlearn.desk.permissions import SCOPES
from deferlearn.desk.principal import Principal

router = pages()
Scopes = Annotated[list[str], Form(max_length=20)]


@router.get("/keys")
def list_keys(request: Request, principal: KeyAdmin) -> Response:
    """All keys, also revoked ones."""
    return _list(request, principal)


@router.post("/keys")
def create_key(
    request: Request,
    principal: KeyAdmin,
    name: Annotated[str, Form(max_length=100)],
    scopes: Scopes = [],  # noqa: B006
) -> Response:
    """Make a key, and show it this once."""
    _, text = request.app.state.database.write(
        lambda connection: keys.create(
            connection, name=name.strip(), scopes=scopes, actor=principal.actor
        )
    )
    return _list(request, principal, made=text)


@router.post("/keys/{number}/revoke")
def revoke_key(request: Request, number: RowId, principal: KeyAdmin) -> Response:
    """Make a key invalid."""
    request.app.state.database.write(
        lambda connection: keys.revoke(connection, number, actor=principal.actor)
    )
    return go_to("/keys", "revoked")


def _list(request: Request, principal: Principal, *, made: str = "") -> Response:
    with request.app.state.database.reading() as connection:
        found, moment = keys.all_of(connection), now(connection)
    return render(request, "keys.html", principal, keys=found, scopes=SCOPES, made=made, now=moment)
