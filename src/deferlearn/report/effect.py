"""What the team does to the machine's errors on these cases, compared case by case."""

from collections.abc import Sequence

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.report.estimates import Family, Row, paired, share
from deferlearn.tables.decisions import WHO, Decisions

# What the intervals say about the team and the machine alone.
FEWER, MORE, UNCLEAR, NOT_ASKED = "fewer", "more", "unclear", "not asked"


def errors(judged: Decisions, group: Index) -> dict[str, Row]:
    """The errors of machine, human and team on the cases that were read."""
    read = judged.read
    return {who: share(judged.wrong(who)[read], group[read]) for who in WHO}


def effect(
    judged: Decisions,
    group: Index,
    grades: Sequence[str] | None = None,
    costs: dict[str, Array] | None = None,
    worst: float = 1.0,
) -> Row:
    """The difference that deferral makes, on the cases that were read.

    Parameters
    ----------
    judged : Decisions
        The answers of machine and human, and who decides.
    group : ndarray of int
        The group of each case.
    grades : sequence of str or None, default=None
        The classes in their order, if they are grades.
    costs : dict of ndarray or None, default=None
        What each answer of machine, human and team costs, on the cases that were read, if there is a cost
        matrix.
    worst : float, default=1.0
        The largest cost of an answer.

    Returns
    -------
    effect : dict
        With the keys answer, cases, deferred (the share that humans read), fixed and spoilt (how many of
        the machine's answers humans put right or wrong), difference (errors of the team minus those of
        the machine), versus_human (minus those of the human), cases_needed (how many cases would show
        the difference, if it is as large as it seems; None if it is shown, or if there is none),
        grades (by how many grades answers of the team are off, minus those of the machine; None for
        classes without order), and cost: None, or with a cost matrix the mean costs of machine, human and
        team, and a difference and versus_human of costs. With it, answer and cases_needed are about costs.
    """
    read, own = judged.read, group[judged.read]
    machine, human, team = (judged.wrong(who)[read] for who in WHO)
    deferred = judged.deferred[read]
    change = paired(team.astype(np.float64) - machine, own)
    cost = None if costs is None else _cost(costs, own, worst)
    judged_by = change if cost is None else cost["difference"]
    if not deferred.any():
        answer = NOT_ASKED
    elif judged_by["supported"]:
        answer = FEWER if judged_by["difference"] < 0 else MORE
    else:
        answer = UNCLEAR
    return {
        "answer": answer,
        "cases": int(read.sum()),
        "deferred": share(deferred, own),
        "fixed": int((machine & ~team).sum()),
        "spoilt": int((~machine & team).sum()),
        "difference": change,
        "versus_human": paired(team.astype(np.float64) - human, own),
        "cases_needed": _cases_needed(judged_by, len(own)),
        "grades": None if grades is None else _grades_off(judged, own, grades),
        "cost": cost,
    }


def _cost(costs: dict[str, Array], group: Index, worst: float) -> Row:
    ends = (-worst, worst)
    return {
        **{who: float(values.mean()) for who, values in costs.items()},
        "difference": paired(costs["team"] - costs["machine"], group, ends),
        "versus_human": paired(costs["team"] - costs["human"], group, ends),
    }


def _grades_off(judged: Decisions, group: Index, grades: Sequence[str]) -> Row:
    places = {grade: place for place, grade in enumerate(grades)}
    machine, team, truth = (
        np.array([places[answer] for answer in getattr(judged, name)[judged.read]])
        for name in ("machine", "team", "truth")
    )
    away = np.abs(team - truth) - np.abs(machine - truth)
    most = float(len(grades) - 1)
    return paired(away.astype(np.float64), group, (-most, most))


def _cases_needed(change: Row, n: int) -> int | None:
    """Half the width of an interval falls with the square root of the number of cases."""
    size = change["difference"]
    if change["supported"] or size == 0.0:
        return None
    half = change["upper"] - size if size < 0 else size - change["lower"]
    needed = n * (half / abs(size)) ** 2
    step = 10 ** max(0, int(np.log10(needed)) - 1)  # two digits say enough
    return int(np.ceil(needed / step) * step)


def by_class(judged: Decisions, group: Index, classes: Sequence[str]) -> list[Row]:
    """The errors on each class, and the team's minus the machine's with intervals that hold together.

    Parameters
    ----------
    judged : Decisions
        The answers of machine and human, and who decides.
    group : ndarray of int
        The group of each case.
    classes : sequence of str
        The classes in their order.

    Returns
    -------
    rows : list of dict
        With the keys class, cases, machine, human and team (the errors, None without a case that was
        read) and change (None likewise, and if no case is deferred).
    """
    read, own = judged.read, group[judged.read]
    truth = judged.truth[read]
    wrong = {who: judged.wrong(who)[read] for who in WHO}
    family, asked = Family(own), judged.deferred[read].any()
    parts = {label: truth == label for label in classes}
    for part in parts.values():
        if part.any() and asked:
            family.within(wrong["team"].astype(np.float64) - wrong["machine"], part)
    changes = iter(family.rows())
    rows = []
    for label, part in parts.items():
        found: Row = {"class": label, "cases": int(part.sum())}
        there = part.any()
        found |= {who: share(wrong[who][part], own[part]) if there else None for who in WHO}
        rows.append(found | {"change": next(changes) if there and asked else None})
    return rows
