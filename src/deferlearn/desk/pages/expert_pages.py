"""Experts and their capacities, with the effect of a change before it is stored."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Form, Request, Response
from sqlalchemy import Connection, select

from deferlearn.desk import experts
from deferlearn.desk.api.common import RowId, TheDesk
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Invalid
from deferlearn.desk.forecast import Forecast, forecast, with_expert
from deferlearn.desk.pages.common import Organiser, Ticked, Version, pages
from deferlearn.desk.pages.rendering import go_to, render
from deferlearn.desk.rules import Expert
from deferlearn.desk.schema import ANYONE, expert_day
from deferlearn.experts.stream import FEWEST

router = pages()
Name = Annotated[str, Form(max_length=200)]
Limit = Annotated[str, Form(max_length=20)]
# Without it the cost stays as it is: it is asked for only if the model tells experts apart.
Cost = Annotated[float | None, Form(ge=0, le=experts.LARGEST_COST, allow_inf_nan=False)]


@router.get("/experts")
def list_experts(request: Request, desk: TheDesk, principal: Organiser) -> Response:
    """All experts, with today's load and what a usual day will bring."""
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        rows = experts.list_experts(connection)
        today = forecast(connection, moment.configuration)
        days = select(expert_day).where(expert_day.c.day == moment.day)
        taken = {row.expert_id: row.taken for row in connection.execute(days)}
    return render(
        request,
        "experts.html",
        principal,
        experts=rows,
        taken=taken,
        forecast=today,
        anyone=ANYONE,
        rules=moment.rules,
        prices={one.id: moment.configuration.price(one.id) for one in rows},
        price_of_anyone=moment.configuration.price_of_anyone,
        fewest=FEWEST,
    )


@router.post("/experts")
def add_expert(
    desk: TheDesk,
    principal: Organiser,
    name: Name,
    daily_limit: Limit = "",
    is_arbiter: Ticked = False,
) -> Response:
    """Add an expert."""
    limit = limit_in(daily_limit)
    desk.database.write(
        lambda connection: experts.add_expert(
            connection,
            name.strip(),
            actor=principal.actor,
            daily_limit=limit,
            is_arbiter=is_arbiter,
        )
    )
    return go_to("/experts", "added")


@router.get("/experts/{number}")
def edit_expert(request: Request, number: RowId, desk: TheDesk, principal: Organiser) -> Response:
    """The form to change an expert."""
    with desk.database.reading() as connection:
        found = experts.find_expert(connection, number)
        context = _effect(desk, connection, found)
    return render(request, "expert.html", principal, expert=found, **context)


@router.post("/experts/{number}/effect")
def show_effect(
    request: Request,
    number: RowId,
    desk: TheDesk,
    principal: Organiser,
    name: Name = "",
    daily_limit: Limit = "",
    cost: Cost = None,
    is_arbiter: Ticked = False,
    is_active: Ticked = False,
) -> Response:
    """What a change would do; nothing is stored."""
    limit = limit_in(daily_limit)
    with desk.database.reading() as connection:
        found = experts.find_expert(connection, number)
        changed = found._replace(
            daily_limit=limit,
            cost=found.cost if cost is None else cost,
            is_arbiter=is_arbiter,
            is_active=is_active,
        )
        context = _effect(desk, connection, changed)
    return render(request, "effect.html", principal, expert=found, **context)


@router.post("/experts/{number}")
def change_expert(
    number: RowId,
    desk: TheDesk,
    principal: Organiser,
    version: Version,
    name: Name,
    daily_limit: Limit = "",
    cost: Cost = None,
    is_arbiter: Ticked = False,
    is_active: Ticked = False,
) -> Response:
    """Change an expert."""
    changes = {
        "name": name.strip(),
        "daily_limit": limit_in(daily_limit),
        "is_arbiter": is_arbiter,
        "is_active": is_active,
    } | ({} if cost is None else {"cost": cost})
    desk.database.write(
        lambda connection: experts.change_expert(
            connection, number, changes, actor=principal.actor, version=version
        )
    )
    return go_to("/experts", "changed")


def limit_in(text: str) -> int | None:
    """The limit that a form holds; an empty one is none.

    Parameters
    ----------
    text : str
        What was entered.

    Returns
    -------
    limit : int or None
    """
    if not text.strip():
        return None
    if not text.strip().isascii() or not text.strip().isdecimal():
        raise Invalid(f"The limit is {text!r}; it must be a whole number, or empty for no limit.")
    return int(text)


def _effect(desk: Desk, connection: Connection, changed: Expert) -> dict[str, Any]:
    """Forecasts with the expert as it is and as it would be."""
    moment = desk.look(connection)
    before = forecast(connection, moment.configuration)
    after = forecast(connection, with_expert(moment.configuration, changed))
    names = {one.id: one.name for one in moment.configuration.experts.values()}
    return {
        "before": before,
        "after": after,
        "rows": _compared(before, after, {ANYONE: "all experts together", **names}),
        "changed": changed,
        "apart": before is not None and ANYONE not in before.loads,
        "fewest": FEWEST,
        "rules": moment.rules,
    }


def _compared(
    before: Forecast | None, after: Forecast | None, names: dict[int, str]
) -> list[dict[str, Any]]:
    places = {*(before.loads if before else ()), *(after.loads if after else ())}
    return [
        {
            "name": names.get(place, "?"),
            "load_before": before.loads.get(place, 0.0) if before else None,
            "load_after": after.loads.get(place, 0.0) if after else None,
            "price_before": before.prices.get(place) if before else None,
            "price_after": after.prices.get(place) if after else None,
        }
        for place in sorted(places)
    ]
