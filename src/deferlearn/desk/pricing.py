"""Prices of experts' time, found again while the day goes on.

A price is what one more case in an expert's time would be worth, on top of what a supervisor says that it
costs. When harder cases arrive than planned,
prices rise, so that the time that is left goes to the cases that need it most; when time would be left
over, they fall. Limits hold whatever the prices are: see `capacity`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select, update

from deferlearn.desk.capacity import time_left
from deferlearn.desk.desk import Desk
from deferlearn.desk.rules import (
    PRICE_OF_ANYONE,
    Moment,
    hold_configuration,
    read_setting,
    store_setting,
    touch,
)
from deferlearn.desk.schema import ANYONE, decision, expert, model
from deferlearn.experts.stream import EVERY, FEWEST, WINDOW, find_prices

# Under this name the settings keep the day, the last case that was seen, and how many there were.
STATE = "prices found"
# Smaller changes are not worth that all servers read everything again.
SMALLEST_CHANGE = 1e-4


def update_prices(desk: Desk, *, every: int = EVERY) -> bool:
    """Find the prices again if so many cases have arrived since, or a day has begun.

    Parameters
    ----------
    desk : Desk
        The desk.
    every : int, default=50
        Number of cases.

    Returns
    -------
    changed : bool
        Whether a price has changed.
    """
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        state = _state(connection, moment)
        if state["came"] < every and not state["new day"]:
            return False
        found = _find(connection, moment, state)
    return desk.database.write(lambda connection: _store(connection, moment, state, found))


def _state(connection: Connection, moment: Moment) -> dict[str, Any]:
    """What is known of the day; the cases since the last time are counted in."""
    kept, _ = read_setting(connection, STATE)
    state = {"day": "", "newest": 0, "seen": 0, **(kept or {})}
    later = select(func.count(), func.max(decision.c.case_number)).where(
        decision.c.case_number > state["newest"]
    )
    count, newest = connection.execute(later).one()
    new_day = state["day"] != moment.day
    return {
        "day": moment.day,
        "newest": int(newest or state["newest"]) if count else state["newest"],
        "seen": int(count) if new_day else state["seen"] + int(count),
        "came": int(count),
        "before": state["newest"],
        "new day": new_day,
    }


def _find(connection: Connection, moment: Moment, state: dict[str, Any]) -> dict[int, float]:
    """Prices at which cases like the last ones would use up what is left of the day."""
    configuration = moment.configuration
    rows = connection.execute(
        select(decision.c.gains)
        .where(decision.c.model_id == configuration.model_id)
        .order_by(decision.c.case_number.desc())
        .limit(WINDOW)
    ).scalars()
    recent = [{int(place): gain for place, gain in gains.items()} for gains in rows]
    if len(recent) < FEWEST:
        return {}
    active = {one.id for one in configuration.active_experts} | {ANYONE}
    places = [place for place in recent[0] if place in active]
    recent = [gains for gains in recent if set(places) <= set(gains)]
    left = configuration.rules.cases_per_day - state["seen"]
    if not places or left <= 0:
        return {}
    times = time_left(connection, moment, places, hold=False)
    # Who has no limit has time for all cases.
    free = [float(left if times[place] is None else times[place] or 0) for place in places]
    readings = configuration.rules.readings
    costs = np.array([configuration.cost(place) for place in places])
    gains = np.array([[one[place] for place in places] for one in recent]) - costs
    prices = find_prices(gains, np.array(free) / readings, left)
    return dict(zip(places, prices.tolist(), strict=True))


def _store(
    connection: Connection, moment: Moment, state: dict[str, Any], found: dict[int, float]
) -> bool:
    hold_configuration(connection)
    kept, _ = read_setting(connection, STATE)
    if (kept or {}).get("newest", 0) != state["before"]:
        return False  # another server was quicker
    store_setting(connection, STATE, {name: state[name] for name in ("day", "newest", "seen")})
    active = connection.execute(select(model.c.id).where(model.c.state == "active")).scalar()
    if active != moment.configuration.model_id:
        return False  # prices of a model that decides no more
    changed = False
    for place, price in found.items():
        known = moment.configuration.price(place) - moment.configuration.cost(place)
        if abs(price - known) < SMALLEST_CHANGE:
            continue
        changed = True
        if place == ANYONE:
            store_setting(connection, PRICE_OF_ANYONE, price)
        else:
            connection.execute(update(expert).where(expert.c.id == place).values(price=price))
    if changed:
        touch(connection)
    return changed
