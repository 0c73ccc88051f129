"""What endpoints share: the desk of a request, bodies, pages of results, and numbers of rows."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Forbidden, Invalid
from deferlearn.desk.principal import Principal

T = TypeVar("T")
# Larger numbers are not in any database.
MOST = 2**63 - 1
LARGEST_PAGE = 1000

RowId = Annotated[int, Path(ge=1, le=MOST)]
After = Annotated[int, Query(ge=0, le=MOST, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="The most items of a page.")]


class Body(BaseModel):
    """A body of a request: what it does not know is refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Page(BaseModel, Generic[T]):
    """Some items, and where to go on."""

    items: list[T]
    next: int | None = Field(description="Send it as `after` for the next page; null on the last.")


def page_of(items: list[Any], keys: list[int], limit: int) -> dict[str, Any]:
    """A page of results.

    Parameters
    ----------
    items : list
        One more than the limit, if there are more.
    keys : list of int
        Their numbers.
    limit : int
        The most items of a page.

    Returns
    -------
    page : dict
    """
    more = len(items) > limit
    return {"items": items[:limit], "next": keys[limit - 1] if more else None}


async def desk_of(request: Request) -> Desk:
    """The desk that a request is for."""
    # Not a plain function: those run in a thread of their own, and to change threads takes longer.
    desk: Desk = request.app.state.desk
    return desk


TheDesk = Annotated[Desk, Depends(desk_of)]


def own_expert(principal: Principal) -> int | None:
    """The only expert for whom somebody may act; None for a key, which may act for any.

    Parameters
    ----------
    principal : Principal
        Who asks.

    Returns
    -------
    expert_id : int or None
        0 for a user who is not an expert.
    """
    return None if principal.kind == "key" else principal.expert_id or 0


def expert_of(principal: Principal, named: int | None) -> int:
    """The expert for whom somebody asks.

    Parameters
    ----------
    principal : Principal
        Who asks: a user is one expert, a key may answer for any.
    named : int or None
        The expert whom a key names.

    Returns
    -------
    expert_id : int
    """
    if principal.kind == "key":
        if named is None:
            raise Invalid("Name the expert for whom you ask, as `expert`.")
        return named
    if principal.expert_id is None:
        raise Forbidden(f"{principal.actor} is not an expert, and gets no cases.")
    if named not in (None, principal.expert_id):
        raise Forbidden(f"{principal.actor} cannot ask for another expert.")
    return principal.expert_id


def storable_id(case_id: str) -> str:
    """An id that a database can look up.

    Parameters
    ----------
    case_id : str
        What was sent.

    Returns
    -------
    case_id : str

    Raises
    ------
    Invalid
        If no case can have this id.
    """
    if "\x00" in case_id or any("\ud800" <= one <= "\udfff" for one in case_id):
        raise Invalid("This cannot be the id of a case.")
    return case_id
