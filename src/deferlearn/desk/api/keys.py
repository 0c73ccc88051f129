"""API keys, for administrators."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from deferlearn.desk import keys
from deferlearn.desk.api.problems import described
from deferlearn.desk.permissions import KEYS
from deferlearn.desk.principal import Principal, require

router = APIRouter(prefix="/api/v1/keys", tags=["keys"])
Admin = Annotated[Principal, require(KEYS)]


class NewKey(BaseModel):
    """A key to be made."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=100)]
    scopes: Annotated[list[Annotated[str, Field(max_length=50)]], Field(max_length=20)]


class ShownKey(BaseModel):
    """A key, without its secret."""

    id: int
    name: str
    scopes: list[str]
    created_at: int
    revoked_at: int | None
    last_used_at: int | None


class MadeKey(BaseModel):
    """A key that was just made; its text is never shown again."""

    id: int
    key: str


@router.get("")
def list_keys(request: Request, principal: Admin) -> list[ShownKey]:
    """All keys, also those that were revoked."""
    with request.app.state.database.reading() as connection:
        found = keys.all_of(connection)
    return [ShownKey(**{**vars(key), "scopes": sorted(key.scopes)}) for key in found]


@router.post("", status_code=201, responses=described(409))
def create_key(body: NewKey, request: Request, principal: Admin) -> MadeKey:
    """Make a key. Store its text at once: it is shown only here."""
    number, text = request.app.state.database.write(
        lambda connection: keys.create(
            connection, name=body.name, scopes=body.scopes, actor=principal.actor
        )
    )
    return MadeKey(id=number, key=text)


@router.delete("/{number}", status_code=204, response_model=None, responses=described(404))
def revoke_key(
    number: Annotated[int, Path(ge=1, lt=2**63)], request: Request, principal: Admin
) -> None:
    """Make a key invalid from now on."""
    request.app.state.database.write(
        lambda connection: keys.revoke(connection, number, actor=principal.actor)
    )
