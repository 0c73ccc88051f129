"""Teams of the model's kind, fitted anew on parts of the cases: the verdict, the curves, the rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from deferlearn.evaluation import AssistanceReport, assistance_report
from deferlearn.evaluation.assistance.trial import FOLDS, REPEATS
from deferlearn.evaluation.curves import AutomationCurve, automation_curve
from deferlearn.report.cases import ReportCases
from deferlearn.report.forests import with_memory
from deferlearn.tables.cases import Cases
from deferlearn.tables.columns import CATEGORY, NUMBER
from deferlearn.tables.team import TabularTeam
from deferlearn.teams import UncertaintyTriage
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.held_out import splitter_of
from deferlearn.teams.parameters import share_of
from deferlearn.teams.refits import budget_name

BUDGETS, QUICK_BUDGETS = (0.05, 0.1, 0.2, 0.3), (0.1, 0.2)
CURVE_FOLDS, QUICK_CURVE_FOLDS = 5, 3
# The names of the curves.
TEAM, TRIAGE = "team", "uncertainty triage"

Done = Callable[[], None]


@dataclass(frozen=True)
class Plan:
    """What will be fitted.

    Attributes
    ----------
    budgets : list of float
        Shares above 0 that humans may take; the model's own is among them.
    quick : bool
        Fewer budgets and splits.
    n_verdict, n_curve : int
        How many fits either takes.
    """

    budgets: list[float]
    quick: bool
    n_verdict: int
    n_curve: int


def own_share(model: TabularTeam) -> float:
    """The model's budget as a share."""
    return share_of(model.card_["budget"], model.card_["rows"])


def make_plan(model: TabularTeam, quick: bool) -> Plan:
    """Budgets to try, and how many fits that takes."""
    own = round(own_share(model), 4)
    budgets = sorted({*(QUICK_BUDGETS if quick else BUDGETS), own} - {0.0})
    levels = len(budgets) + 1
    teams = 1 if isinstance(model.chosen, UncertaintyTriage) else 2
    return Plan(
        budgets,
        quick,
        FOLDS * (1 if quick else REPEATS) * levels,
        teams * (QUICK_CURVE_FOLDS if quick else CURVE_FOLDS) * levels,
    )


def why_not(model: TabularTeam, cases: Cases) -> str | None:
    """Why no team can be fitted on parts of these cases; None if it can."""
    if budget_name(model.chosen) is None:
        return "the model leaves every case to the machine, so there are no budgets to compare"
    for label in cases.classes:
        count = int(np.sum(cases.truth == label))
        if count < 2 * FOLDS:  # so that training parts, too, can be cut into folds
            return f"class {label!r} has {count} cases; at least {2 * FOLDS} are needed"
    if cases.groups is not None and len(set(cases.groups.tolist())) < 2 * FOLDS:
        n_groups = len(set(cases.groups.tolist()))
        return f"there are {n_groups} groups only; at least {2 * FOLDS} are needed"
    _, read = cases.human_answers(cases.truth)
    return None if read.any() else "no human has answered any of the cases drawn"


def drawn(chosen: ReportCases, most: int, seed: int) -> NDArray[np.intp]:
    """Positions of at most so many cases, drawn by lot; of groups, whole ones."""
    n = len(chosen)
    if n <= most:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    if chosen.cases.groups is None:
        return np.sort(rng.permutation(n)[:most])
    names, codes = np.unique(chosen.cases.groups, return_inverse=True)
    order = rng.permutation(len(names))
    sizes = np.bincount(codes)[order].cumsum()
    return np.flatnonzero(np.isin(codes, order[sizes <= most]))


def unfitted(
    model: TabularTeam,
    *,
    threshold: bool,
    done: Done | None = None,
    team: Any = None,
    drop: Sequence[str] = (),
) -> TabularTeam:
    """A team like the model's, with the values that were tuned.

    Parameters
    ----------
    model : TabularTeam
        The stored one; it is not changed.
    threshold : bool
        Whether cases will be decided one at a time. The batch rule needs no threshold, and where folds
        serve no other end, none are made.
    done : callable or None, default=None
        Called after each fit; only for fits in this process.
    team : estimator or None, default=None
        Another team behind the same columns.
    drop : sequence of str, default=()
        Columns that are there for other ends.

    Returns
    -------
    TabularTeam
    """
    member = clone(model.chosen if team is None else team)
    folds = FOLDS if threshold or not isinstance(member, AssistedSVC) else None
    member.set_params(budget=own_share(model), cv=folds)
    kind: type[TabularTeam] = TabularTeam
    if done is not None:
        tell = done

        class Watched(TabularTeam):
            """The same, and it says when it is fitted."""

            def fit(self, X: Any, y: Any = None, **params: Any) -> TabularTeam:
                super().fit(X, y, **params)
                tell()
                return self

        Watched.__name__ = TabularTeam.__name__  # by which it introduces itself in the settings
        kind = Watched
    # Columns keep the kinds that the model knows them by: a part of the cases could suggest others.
    kinds = model.card_["columns"]
    encoder = clone(model.encoder).set_params(
        number=tuple(name for name, own in kinds.items() if own == NUMBER),
        category=tuple(name for name, own in kinds.items() if own == CATEGORY),
        drop=tuple(drop),
    )
    return kind([("table", encoder), ("team", member)])


def as_frame(cases: Cases) -> Any:
    """Features as a DataFrame that scikit-learn can cut, every cell of the type that it had."""
    import pandas as pd

    return cases.features.to_pandas(types_mapper=pd.ArrowDtype)


def _answers(cases: Cases) -> NDArray[Any]:
    assert cases.answers is not None  # `select_report_cases` refuses cases without any
    return cases.answers


def verdict(
    team: TabularTeam,
    cases: Cases,
    plan: Plan,
    *,
    subgroup: tuple[str, Sequence[str]] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> AssistanceReport:
    """The report of assistance; the second class is the positive one, which no sentence speaks of.

    A subgroup is the name of a column and its values; the team must drop a column that is no feature.
    """
    frame = as_frame(cases)
    # A feature stays as it is: words for gaps would be no numbers.
    if subgroup is not None and subgroup[0] not in frame:
        frame[subgroup[0]] = list(subgroup[1])
    found = assistance_report(
        with_memory(team),
        frame,
        cases.truth,
        _answers(cases),
        budgets=plan.budgets,
        cv=FOLDS if plan.quick else None,
        groups=cases.groups,
        subgroup=None if subgroup is None else subgroup[0],
        pos_label=cases.classes[1],
        n_jobs=n_jobs,
        random_state=seed,
    )
    # How its forests are kept in mind is no setting of the team.
    return replace(found, settings=found.settings | {"estimator": repr(team)})


def curves(
    teams: dict[str, TabularTeam],
    cases: Cases,
    plan: Plan,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
) -> dict[str, AutomationCurve]:
    """Error and share deferred at each budget, one case at a time, on folds.

    Only cases that a human has read are tested: a deferred case needs an answer.
    """
    n_folds = QUICK_CURVE_FOLDS if plan.quick else CURVE_FOLDS
    splitter = splitter_of(n_folds, cases.truth, cases.groups, seed)
    _, read = cases.human_answers(cases.truth)
    splits = [
        (train, test[read[test]])
        for train, test in splitter.split(cases.truth, cases.truth, cases.groups)
    ]
    measured: dict[str, AutomationCurve] = automation_curve(
        {name: with_memory(team) for name, team in teams.items()},
        as_frame(cases),
        cases.truth,
        human_labels=_answers(cases),
        budgets=[0.0, *plan.budgets],
        cv=[split for split in splits if len(split[1])],
        metrics="error",
        batch=False,
        groups=cases.groups,
        n_jobs=n_jobs,
    )
    return measured
