"""Several experts: who is good at what, how much of their time is used, and what more of it is worth."""

from typing import Any

import numpy as np

from deferlearn._utils.types import Index
from deferlearn.experts import ExpertTeam
from deferlearn.experts.skills import BETTER, WORSE
from deferlearn.plot.load import capacity_shares
from deferlearn.plot.skills import verdict_groups
from deferlearn.report.estimates import Row, share
from deferlearn.tables.cases import Cases
from deferlearn.tables.team import TabularTeam


def experts_of(model: TabularTeam, cases: Cases, group: Index, seen: bool) -> Row | None:
    """What the report says about the experts of a model; None if it has not got several of them.

    Cases that were ``seen`` in training are not assigned again: the machine is surer of them than of new
    ones.
    """
    team = next((own for own in (model.team, model.chosen) if isinstance(own, ExpertTeam)), None)
    if team is None or len(team.experts_) < 2:
        return None
    X = None if seen else model.encoder.transform(cases.features)
    return expert_facts(team, n_samples=model.card_["rows"], X=X, group=group)


def expert_facts(
    team: ExpertTeam, *, n_samples: int | None = None, X: Any = None, group: Index | None = None
) -> Row:
    """Skills, load, capacity and price of each expert, in types that JSON has.

    Parameters
    ----------
    team : ExpertTeam
        A fitted one.
    n_samples : int or None, default=None
        The number of its training samples; only needed for capacities that are numbers of cases.
    X : array-like of shape (n_cases, n_features) or None, default=None
        Cases to assign, one at a time.
    group : ndarray of int of shape (n_cases,) or None, default=None
        Cases with the same number belong together; None: every case is a group of its own.

    Returns
    -------
    facts : dict
        With the keys classes, better and worse (names of the experts who clearly err less or more often
        than the average of the others), overloaded (those who get clearly more of X than they can take),
        readings, common_budget (whether all experts together have a limit), and rows. These have for each
        expert the keys expert, answers, verdict, error, classes (answers and error on each of them), load
        and capacity (shares of the cases), price (errors avoided by one more case) and assigned (the share
        of X that she gets; None without X, and for an arbiter). Experts are in the order of
        `deferlearn.plot.SkillsDisplay`.

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
    capacity = capacity_shares(team, n_samples)
    assigned = {} if X is None else _assigned(team, X, group)
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
                "capacity": capacity[name],
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
        "rows": rows,
    }


def _interval(error: float, low: float, high: float) -> Row:
    return {"share": float(error), "lower": float(low), "upper": float(high)}


def _assigned(team: ExpertTeam, X: Any, group: Index | None) -> dict[str, Row]:
    """The share of the cases that each expert gets; whether an arbiter is needed is not known yet."""
    takers = team.assign(X)
    group = np.arange(len(takers)) if group is None else group
    readers = [(who,) if isinstance(who, str) else (who or ()) for who in takers]
    return {
        name: share(np.array([name in own for own in readers]), group)
        for name in team.experts_
        if name != team.arbiter
    }
