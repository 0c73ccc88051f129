"""All numbers of a period in one list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.desk.database import SECOND
from deferlearn.desk.desk import Desk
from deferlearn.desk.monitoring.calibration import Group, calibration
from deferlearn.desk.monitoring.case_tables import codes_of
from deferlearn.desk.monitoring.columns import column_shifts
from deferlearn.desk.monitoring.dependence import both_wrong
from deferlearn.desk.monitoring.errors import expert_error, machine_error, team_error, wrong
from deferlearn.desk.monitoring.figures import Figure
from deferlearn.desk.monitoring.losses import Grades, grades_of, losses
from deferlearn.desk.monitoring.records import (
    Records,
    count_given_up,
    days_at_work,
    read_loads,
    read_records,
)
from deferlearn.desk.monitoring.watches import UNUSUAL_LIMIT
from deferlearn.desk.monitoring.workload import load, share_deferred, share_unusual, waiting
from deferlearn.tables.guard import Guard
from deferlearn.teams.parameters import share_of

DAY = 86400 * SECOND
# Only so many of the newest cases are looked at: enough for every interval.
MOST_CASES = 20_000


@dataclass(frozen=True)
class Overview:
    """What a supervisor sees.

    Attributes
    ----------
    cases : int
        Cases that were looked at.
    since : int or None
        If the period has more cases: when the first of these arrived.
    figures : list of Figure
        All numbers.
    calibration : dict
        Groups of cases by expected error, of the machine and of experts.
    in_grades : bool
        Whether these errors are grades off.
    """

    cases: int
    since: int | None
    figures: list[Figure]
    calibration: dict[str, list[Group]]
    in_grades: bool = False


def overview(desk: Desk, days: int = 7) -> Overview:
    """The numbers of the last days.

    Parameters
    ----------
    desk : Desk
        A desk with an active model.
    days : int, default=7
        How many days.

    Returns
    -------
    Overview
    """
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        since = moment.now - days * DAY
        records = read_records(connection, since=since, limit=MOST_CASES, content=True)
        loads = read_loads(connection, moment.rules.day(since + DAY))
        worked = days_at_work(connection, moment, days)
        given_up = count_given_up(connection, records)
    judge = desk.active_judge()
    card = judge.card
    budget = share_of(card["budget"], card["rows"]) if "budget" in card else None
    figures, groups = figures_of(records, budget, moment.now, given_up, grades_of(card))
    for one in moment.configuration.active_experts:
        figures.append(load(one.name, loads.get(one.id, 0), worked, one.daily_limit))
    decider = getattr(judge, "decider", None)
    if decider is not None and len(records):
        codes = codes_of(decider, records.content)
        figures += shifts(decider.guard, codes)
    is_cut = len(records) == MOST_CASES
    first = int(records.received_at[0]) if is_cut else None
    return Overview(len(records), first, figures, groups, bool(grades_of(card)))


def shifts(guard: Guard, codes: Array) -> list[Figure]:
    """Columns by how far they have shifted, those that certainly have first."""
    return sorted(column_shifts(guard, codes), key=lambda one: -one.interval.low)


def figures_of(
    records: Records, budget: float | None, now: int, given_up: int = 0, grades: Grades = ()
) -> tuple[list[Figure], dict[str, list[Group]]]:
    """The numbers that records alone tell.

    Parameters
    ----------
    records : Records
        The cases of a period.
    budget : float or None
        The share that the model was fitted to defer.
    now : int
        The time, for cases that still wait.
    given_up : int, default=0
        Audits that all experts passed.
    grades : tuple of str, default=()
        The grades, if the classes of the model have an order.

    Returns
    -------
    figures : list of Figure
    groups : dict
        For calibration.
    """
    own = ~records.deferred
    errors = wrong(records.machine_answer, records.truth)
    reader = records.first_answer
    differs = wrong(records.machine_answer, reader)
    final = wrong(records.answer, records.truth)
    waits = np.where(records.open, now, records.answered_at) - records.received_at
    deferred = records.deferred
    figures = [
        share_deferred(deferred, budget),
        share_unusual(records.unusual, UNUSUAL_LIMIT),
        waiting(waits[deferred] / SECOND, records.open[deferred]),
        waiting(waits[deferred] / SECOND, records.open[deferred], 0.9),
        machine_error(errors[own], records.audited[own], records.probability[own]),
        machine_error(
            differs[own],
            records.audited[own],
            records.probability[own],
            judge="experts",
            given_up=given_up,
        ),
        team_error(final[~records.open], records.by_expert[~records.open]),
    ]
    said = wrong(records.value, records.truth[records.row])
    for name in sorted(set(records.expert)):
        hers = records.expert == name
        expected = None if grades else records.expected[hers]
        figures.append(expert_error(str(name), said[hers], expected))
    human = wrong(reader, records.truth)
    figures.append(both_wrong(errors, human, records.read_probability)[0])
    groups = {}
    for who, answers, truths, foreseen in (
        ("the machine", records.machine_answer, records.truth, records.expected_machine),
        ("experts", records.value, records.truth[records.row], records.expected),
    ):
        figure, groups[who] = calibration(who, losses(answers, truths, grades), foreseen, grades)
        figures.append(figure)
    return figures, groups
