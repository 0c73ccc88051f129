"""What other capacities would do: load, prices, errors and waiting times, if the last cases came again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from deferlearn._utils.types import Array
from deferlearn.desk.capacity import limit_of
from deferlearn.desk.database import SECOND
from deferlearn.desk.priorities import HEAD_START
from deferlearn.desk.rules import Configuration, Expert
from deferlearn.desk.schema import ANYONE, decision
from deferlearn.desk.waits import Arrival, known_readers, seconds_since, waiting_times
from deferlearn.experts.stream import FEWEST, WINDOW
from deferlearn.experts.transport import MACHINE, transport


@dataclass(frozen=True)
class Forecast:
    """A day with some capacities.

    Attributes
    ----------
    count : int
        How many of the last cases it rests on.
    loads : dict
        Readings per day by expert's id; ANYONE if experts are not told apart.
    prices : dict
        The price of an expert's time: errors that a case must avoid to be worth it.
    deferred : float
        Share of the cases that experts get.
    error : float or None
        Expected share of wrong answers of the team, if one expert answers each case that experts get; None
        if the model tells no expected errors.
    chosen : list of int or None
        Who gets each of these cases, the oldest first: an expert's id, ANYONE, or None for the machine.
    waiting : tuple of float or None
        Seconds within which half, and nine of ten, of the cases that experts get are answered; infinite
        if they are not. None if experts get no case, or have not answered any lately.
    """

    count: int
    loads: dict[int, float]
    prices: dict[int, float]
    deferred: float
    error: float | None
    chosen: list[int | None]
    waiting: tuple[float, float] | None = None


def with_expert(configuration: Configuration, changed: Expert) -> Configuration:
    """What would be configured if an expert were changed or added.

    Parameters
    ----------
    configuration : Configuration
        What is configured.
    changed : Expert
        The expert as it would be.

    Returns
    -------
    Configuration
    """
    return replace(configuration, experts={**configuration.experts, changed.id: changed})


def forecast(connection: Connection, configuration: Configuration) -> Forecast | None:
    """What a day with these capacities would be, if its cases were like the last ones.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    configuration : Configuration
        What is, or would be, configured.

    Returns
    -------
    Forecast or None
        None if too few cases have arrived, or nobody takes cases.
    """
    rows = connection.execute(
        select(
            decision.c.at,
            decision.c.gains,
            decision.c.prices,
            decision.c.deferred,
            decision.c.expected_machine,
            decision.c.expected_expert,
            decision.c.expected,
        )
        .where(decision.c.model_id == configuration.model_id)
        .order_by(decision.c.case_number.desc())
        .limit(WINDOW)
    ).all()[::-1]
    active = {one.id for one in configuration.active_experts}
    if len(rows) < FEWEST or not active:
        return None
    if str(ANYONE) in rows[-1].gains:
        places, gains = [ANYONE], _gains_of_anyone(rows)
    else:
        places = [int(place) for place in rows[-1].gains if int(place) in active]
        rows = [row for row in rows if {str(place) for place in places} <= set(row.gains)]
        if not places or len(rows) < FEWEST:
            return None
        gains = np.array([[row.gains[str(place)] for place in places] for row in rows])
    found = _best(configuration, rows, places, gains)
    return replace(found, waiting=_waiting(connection, configuration, rows, found.chosen))


def _gains_of_anyone(rows: Sequence[Any]) -> Array:
    """Gains if the model does not tell experts apart: its own rule asks, and a price may refuse."""
    gain = np.array([row.gains[str(ANYONE)] for row in rows], dtype=np.float64)
    paid = np.array([row.prices.get(str(ANYONE), 0.0) for row in rows], dtype=np.float64)
    deferred = np.array([row.deferred for row in rows], dtype=bool)
    # A case that was left to the machine although it was worth the price was not wanted by the rule.
    return np.where(~deferred & (gain > paid), np.minimum(gain, 0.0), gain)[:, None]


def _best(
    configuration: Configuration, rows: Sequence[Any], places: list[int], gains: Array
) -> Forecast:
    """The day on which each case goes where it helps most, within the limits."""
    rules, n = configuration.rules, len(gains)
    limits = [limit_of(configuration, place) for place in places]
    free = [rules.cases_per_day if limit is None else limit / rules.readings for limit in limits]
    shares = np.minimum(np.array(free) / rules.cases_per_day, 1.0)
    costs = np.array([configuration.cost(place) for place in places])
    found = transport(gains - costs, shares * n, n)
    taken = np.array([np.mean(found.chosen == place) for place in range(len(places))])
    prices = found.prices + found.common + costs
    chosen = [None if place == MACHINE else places[place] for place in found.chosen.tolist()]
    return Forecast(
        count=n,
        loads=dict(
            zip(places, (taken * rules.cases_per_day * rules.readings).tolist(), strict=True)
        ),
        prices=dict(zip(places, prices.tolist(), strict=True)),
        deferred=float(taken.sum()),
        error=_error(configuration, rows, chosen),
        chosen=chosen,
    )


def _error(
    configuration: Configuration, rows: Sequence[Any], chosen: list[int | None]
) -> float | None:
    """The mean of what each answer is expected to be wrong."""
    total = 0.0
    for row, place in zip(rows, chosen, strict=True):
        error = row.expected_machine
        if place == ANYONE:
            error = row.expected_expert
        elif place is not None:
            error = (row.expected or {}).get(configuration.experts[place].name)
        if error is None:
            return None
        total += error
    return total / len(rows)


def _waiting(
    connection: Connection,
    configuration: Configuration,
    rows: Sequence[Any],
    chosen: list[int | None],
) -> tuple[float, float] | None:
    """How long the cases of experts would wait, if they came as they came."""
    since = rows[0].at
    readers = known_readers(connection, configuration, since)
    if readers is None:
        return None
    readings = min(configuration.rules.readings, len(readers))
    arrivals = []
    for row, place in zip(rows, chosen, strict=True):
        if place is None:
            continue
        at = seconds_since(since, row.at)
        others = [one for one in readers if one != place][: readings - 1]
        seats = (ANYONE,) * readings if place == ANYONE else (place, *others)
        benefit = min(max(row.gains[str(place)], 0.0), 1.0)
        arrivals.append(Arrival(at, at - benefit * HEAD_START / SECOND, seats))
    if not arrivals:
        return None
    seconds = np.sort(waiting_times(arrivals, readers))
    half, most = (float(seconds[math.ceil(share * len(seconds)) - 1]) for share in (0.5, 0.9))
    return half, most
