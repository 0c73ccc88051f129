"""Several experts: who is good at what, how much of their time is used, and what more of it is worth."""

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Index
from deferlearn.experts import ExpertTeam
from deferlearn.experts.groups import MOST_READINGS
from deferlearn.experts.skills import BETTER, WORSE
from deferlearn.plot.skills import verdict_groups
from deferlearn.report.estimates import Row, share
from deferlearn.tables.cases import Cases
from deferlearn.tables.held_out import first_experts
from deferlearn.tables.routed import EXPERT
from deferlearn.tables.team import TabularTeam

# Readings are compared on so many cases that there are at most so many pairs of a case and a group.
MOST_COLUMNS = 200_000


def asked_experts(
    model: TabularTeam, cases: Cases, routed: Any
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Who takes each case, and to whom it goes or would go first; both None if experts are not told apart.

    Parameters
    ----------
    model : TabularTeam
        The model.
    cases : Cases
        The cases of the report.
    routed : pyarrow.Table
        What was decided about them.

    Returns
    -------
    who, first : ndarray of object of shape (n_cases,) or None
        Names; ``who`` is None for cases of the machine.
    """
    if EXPERT not in routed.column_names:
        return None, None
    who = np.array([name or None for name in routed[EXPERT].to_pylist()], dtype=object)
    return who, first_experts(model, who, model.encoder.transform(cases.features))


def experts_of(
    model: TabularTeam, cases: Cases, who: NDArray[Any] | None, group: Index, seen: bool
) -> Row | None:
    """What the report says about the experts of a model; None if it has not got several of them.

    Cases that were ``seen`` in training say nothing about loads and readings: the machine is surer of them
    than of new ones.
    """
    if who is None or len(model.team.experts_) < 2:
        return None
    readings = [] if seen else _by_readings(model, cases)
    takers = None if seen else who
    return expert_facts(model.team, takers=takers, group=group, readings=readings)


def _by_readings(model: TabularTeam, cases: Cases) -> list[dict[str, float]]:
    """What one, two and three readers per case are expected to reach on cases like these."""
    n_experts = len(model.team.experts_)
    most = max(1, MOST_COLUMNS // comb(n_experts, min(n_experts, MOST_READINGS)))
    rows = np.unique(np.linspace(0, len(cases) - 1, min(most, len(cases))).astype(np.intp))
    found: list[dict[str, float]] = model.team.compare_readings(
        model.encoder.transform(cases.part(rows).features)
    )
    return found


def expert_facts(
    team: ExpertTeam,
    *,
    takers: NDArray[Any] | None = None,
    group: Index | None = None,
    readings: Sequence[Row] = (),
) -> Row:
    """Skills, load, capacity and price of each expert, in types that JSON has.

    Parameters
    ----------
    team : ExpertTeam
        A fitted one.
    takers : ndarray of object of shape (n_cases,) or None, default=None
        Who takes each of some new cases, as `ExpertTeam.assign` says.
    group : ndarray of int of shape (n_cases,) or None, default=None
        Cases with the same number belong together; None: every case is a group of its own.
    readings : sequence of dict, default=()
        Rows of `ExpertTeam.compare_readings`.

    Returns
    -------
    facts : dict
        With the keys classes, better and worse (names of the experts who clearly err less or more often
        than the average of the others), overloaded (those who get clearly more of the new cases than
        they can take), readings, common_budget (whether all experts together have a limit), by_readings
        (the rows of `ExpertTeam.compare_readings`), and rows. These have for each
        expert the keys expert, answers, verdict, error, classes (answers and error on each of them), load
        and capacity (shares of the cases), price (errors avoided by one more case) and assigned (the share
        of the new cases that the expert gets; None without them, and for an arbiter). Experts are in the
        order of `deferlearn.plot.SkillsDisplay`.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn import AdvantageTriage
    >>> from deferlearn.experts import ExpertTeam
    >>> from deferlearn.report.experts import expert_facts
    >>> luck = np.random.default_rng(0)
    >>> X = luck.normal(size=(300, 2))
    >>> y = np.where(X[:, 1] + luck.normal(size=300) > 0, 1, -1)
    >>> answers = {"Ann": np.where(np.arange(300) % 3, y, -y), "Bob": np.where(np.arange(300) % 30, y, -y)}
    >>> team = ExpertTeam(AdvantageTriage(alpha=0.1), {"Ann": 0.1, "Bob": 0.1}, skills="class")
    >>> facts = expert_facts(team.fit(X, y, answers))
    >>> facts["better"], [row["expert"] for row in facts["rows"]]
    (['Bob'], ['Bob', 'Ann'])
    """
    skills = team.skills_
    assigned = {} if takers is None else _assigned(team, takers, group)
    rows: list[Row] = []
    for e in (place for _, places in verdict_groups(skills) for place in places):
        name = skills.experts[e]
        rows.append(
            {
                "expert": name,
                "answers": int(skills.answers[e].sum()),
                "verdict": skills.verdict[e],
                "error": _interval(skills.error[e], skills.low[e], skills.high[e]),
                "classes": [
                    {
                        "class": str(label),
                        "answers": int(skills.answers[e, k]),
                        "error": _interval(
                            skills.error_by_class[e, k],
                            skills.low_by_class[e, k],
                            skills.high_by_class[e, k],
                        ),
                    }
                    for k, label in enumerate(skills.classes)
                ],
                "load": float(team.load_[name]),
                "capacity": team.capacity_[name],
                "price": float(team.prices_[name]),
                "assigned": assigned.get(name),
            }
        )
    return {
        "classes": [str(label) for label in skills.classes],
        "better": [row["expert"] for row in rows if row["verdict"] == BETTER],
        "worse": [row["expert"] for row in rows if row["verdict"] == WORSE],
        "overloaded": [
            row["expert"]
            for row in rows
            if row["assigned"] is not None and row["assigned"]["lower"] > row["capacity"]
        ],
        "readings": int(team.readings),
        "common_budget": team.budget is not None,
        "by_readings": list(readings),
        "rows": rows,
    }


def _interval(error: float, low: float, high: float) -> Row:
    return {"share": float(error), "lower": float(low), "upper": float(high)}


def _assigned(team: ExpertTeam, takers: NDArray[Any], group: Index | None) -> dict[str, Row]:
    """The share of the cases that each expert gets; whether an arbiter is needed is not known yet."""
    group = np.arange(len(takers)) if group is None else group
    readers = [(who,) if isinstance(who, str) else (who or ()) for who in takers]
    return {
        name: share(np.array([name in own for own in readers]), group)
        for name in team.experts_
        if name != team.arbiter
    }
