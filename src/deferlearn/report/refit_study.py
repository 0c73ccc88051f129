"""Teams of the model's kind, refitted on parts of the cases: held-out decisions, verdict and curves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.words import counted
from deferlearn.evaluation import AssistanceReport, assistance_report
from deferlearn.evaluation.assistance.trial import FOLDS, REPEATS
from deferlearn.evaluation.curves import AutomationCurve, automation_curve
from deferlearn.report.cases import ReportCases
from deferlearn.tables.cases import Cases
from deferlearn.tables.columns import CATEGORY, NUMBER
from deferlearn.tables.decisions import Decisions
from deferlearn.tables.held_out import held_out_decisions, unfitted_copy
from deferlearn.tables.team import TabularTeam
from deferlearn.teams import UncertaintyTriage
from deferlearn.teams.held_out import splits_of
from deferlearn.teams.parameters import share_of
from deferlearn.teams.refits import budget_name

BUDGETS, QUICK_BUDGETS = (0.05, 0.1, 0.2, 0.3), (0.1, 0.2)
CURVE_FOLDS, QUICK_CURVE_FOLDS = 5, 3
# The names of the curves.
TEAM, TRIAGE = "team", "uncertainty triage"
# The parameters of a machine, which both curves share.
MACHINE = (
    "machine", "alpha", "kernel", "degree", "gamma", "coef0", "fit_intercept", "classes", "cost_matrix",
)  # fmt: skip
# The stages of the study, by which progress is reported.
HELD_OUT, VERDICT, CURVES = "cases left out", "verdict", "curves"

# Why there is nothing to compare for a model of several experts.
NOT_FOR_EXPERTS = (
    "other budgets are compared only for models that do not tell experts apart; the section on the experts "
    "says what more of each expert's time is worth"
)

# Called with the stage, the number of fits that are done, and the number of all fits.
Progress = Callable[[str, int, int], None]
Done = Callable[[], None]


class Refits(NamedTuple):
    """The results of a `RefitStudy`.

    Attributes
    ----------
    judged : Decisions or None
        The decisions of teams that were fitted without the case, if they were asked for.
    assistance, curves : dict or None
        The verdict and the curves, in types that JSON has; None if they were not measured.
    skipped : str or None
        Why they were not measured.
    """

    judged: Decisions | None
    assistance: dict[str, Any] | None
    curves: dict[str, Any] | None
    skipped: str | None


@dataclass(frozen=True)
class RefitStudy:
    """Which teams are refitted on which cases.

    Attributes
    ----------
    model : TabularTeam
        The stored model; it is not changed.
    chosen : ReportCases
        All cases of the report.
    rows : ndarray of int
        Positions of the cases that verdict and curves use.
    budgets : sequence of float
        Shares above 0 that may be deferred.
    quick : bool
        Whether fewer splits are made.
    seed : int
        Random seed of the splits.
    n_jobs : int or None
        How many fits run at the same time.
    """

    model: TabularTeam
    chosen: ReportCases
    rows: NDArray[np.intp]
    budgets: Sequence[float]
    quick: bool = False
    seed: int = 0
    n_jobs: int | None = None

    @property
    def cases(self) -> Cases:
        """The cases that verdict and curves use."""
        return self.chosen.cases.part(self.rows)

    @property
    def _curve_folds(self) -> int:
        return QUICK_CURVE_FOLDS if self.quick else CURVE_FOLDS

    @property
    def _with_triage(self) -> bool:
        """Whether triage by uncertainty is a team of another kind, to compare with."""
        return not isinstance(self.model.chosen, UncertaintyTriage)

    @property
    def tells_experts_apart(self) -> bool:
        """Whether the model is one of several experts, which other budgets are not compared for."""
        return bool(self.model.card_.get("experts"))

    def obstacle(self) -> str | None:
        """Why no team can be fitted on parts of the cases; None if there is no obstacle."""
        least = 2 * FOLDS  # so that the training parts can be cut into folds as well
        cases = self.cases
        if budget_name(self.model.chosen) is None and not self.tells_experts_apart:
            return "the model leaves every case to the machine, so there are no budgets to compare"
        for label in cases.classes:
            count = int(np.sum(cases.truth == label))
            if count < least:
                return f"class {label!r} has {counted(count, 'case')}; at least {least} are needed"
        if cases.groups is not None and len(set(cases.groups.tolist())) < least:
            n_groups = counted(len(set(cases.groups.tolist())), "group")
            return f"the cases have {n_groups}; at least {least} are needed"
        _, read = cases.human_answers(cases.truth)
        return None if read.any() else "no human has answered any of the cases drawn"

    def run(self, *, hold_out: bool, progress: Progress) -> Refits:
        """Fit all teams; `hold_out` also decides every case by teams that were fitted without it."""
        levels = len(self.budgets) + 1
        n_verdict = FOLDS * (1 if self.quick else REPEATS) * levels
        n_curves = self._curve_folds * (2 if self._with_triage else 1) * levels
        if self.tells_experts_apart:
            n_verdict = n_curves = 0
        count = _FitCount(n_verdict + n_curves + (FOLDS if hold_out else 0), progress)
        done = count.one if self.n_jobs in (None, 1) else None  # other processes cannot report
        judged = None
        try:
            if hold_out:
                count.begin(HELD_OUT)
                judged = held_out_decisions(
                    self.team(batch=False, done=count.one),
                    self.chosen.cases,
                    batch=False,
                    seed=self.seed,
                )
            if self.tells_experts_apart:
                return Refits(judged, None, None, NOT_FOR_EXPERTS)
            count.begin(VERDICT)
            answer = self.verdict(done)
            count.reach(count.total - n_curves)
            count.begin(CURVES)
            curves = self.curves(done)
            count.reach(count.total)
        except ValueError as error:  # nothing can be learned from some part of these cases
            return Refits(judged, None, None, " ".join(str(error).split()).rstrip("."))
        shown = {name: _curve_numbers(curve) for name, curve in curves.items()}
        return Refits(judged, answer.to_dict(), shown, None)

    def verdict(self, done: Done | None = None) -> AssistanceReport:
        """The report of assistance; of two classes, the second counts as positive."""
        cases, name = self.cases, self.chosen.subgroup
        assert cases.answers is not None  # `select_report_cases` refuses cases without answers
        frame = _as_frame(cases)
        team = self.team(batch=True, done=done)
        # A subgroup that is a feature stays as it is: words for gaps would not be numbers.
        if name is not None and self.chosen.subgroup_values is not None and name not in frame:
            frame[name] = [self.chosen.subgroup_values[row] for row in self.rows]
            team.set_params(table__drop=(name,))
        return assistance_report(
            team,
            frame,
            cases.truth,
            cases.answers,
            budgets=self.budgets,
            cv=FOLDS if self.quick else None,
            groups=cases.groups,
            subgroup=name,
            pos_label=cases.classes[1] if len(cases.classes) == 2 else None,
            cost_matrix=self._cost_matrix(),
            n_jobs=self.n_jobs,
            random_state=self.seed,
        )

    def _cost_matrix(self) -> Any:
        """The model's costs, in the order of its classes."""
        return self.model.machine.get_params(deep=False).get("cost_matrix")

    def curves(self, done: Done | None = None) -> dict[str, AutomationCurve]:
        """Error and share deferred at each budget, one case at a time, on folds.

        The test parts hold only cases that a human has read: a deferred case needs an answer.
        """
        cases = self.cases
        assert cases.answers is not None
        teams = {TEAM: self.team(batch=False, done=done)}
        if self._with_triage:
            triage = _same_machine(UncertaintyTriage(random_state=self.seed), self.model.chosen)
            teams[TRIAGE] = self.team(batch=False, done=done, member=triage)
        _, read = cases.human_answers(cases.truth)
        splits = splits_of(self._curve_folds, cases.truth, cases.truth, cases.groups, self.seed)
        tested = [(train, test[read[test]]) for train, test in splits]
        measured: dict[str, AutomationCurve] = automation_curve(
            teams,
            _as_frame(cases),
            cases.truth,
            human_labels=cases.answers,
            budgets=[0.0, *self.budgets],
            cv=[split for split in tested if len(split[1])],
            metrics="error",
            batch=False,
            groups=cases.groups,
            n_jobs=self.n_jobs,
        )
        return measured

    def team(self, *, batch: bool, done: Done | None = None, member: Any = None) -> TabularTeam:
        """A team like the model's that is not fitted; `done` is called after each fit in this process."""
        kinds = self.model.card_["columns"]
        team = unfitted_copy(self.model, batch=batch, team=member)
        # Columns keep the kinds that the model uses: a part of the cases could suggest others.
        team.set_params(
            table__number=tuple(name for name, kind in kinds.items() if kind == NUMBER),
            table__category=tuple(name for name, kind in kinds.items() if kind == CATEGORY),
            table__drop=(),
        )
        return team if done is None else _watched(team, done)


def budgets_to_try(model: TabularTeam, quick: bool = False) -> list[float]:
    """The budgets of a study, as shares above 0; the model's own is among them."""
    own = round(share_of(model.card_["budget"], model.card_["rows"]), 4)
    return sorted({*(QUICK_BUDGETS if quick else BUDGETS), own} - {0.0})


def draw_cases(chosen: ReportCases, most: int, seed: int) -> NDArray[np.intp]:
    """Positions of at most `most` cases, drawn at random; groups are drawn whole."""
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


class _FitCount:
    """Counts the fits of a study and reports them."""

    def __init__(self, total: int, progress: Progress) -> None:
        self.total, self.progress, self.done, self.stage = total, progress, 0, ""

    def begin(self, stage: str) -> None:
        self.stage = stage
        self.reach(self.done)

    def one(self) -> None:
        self.reach(self.done + 1)

    def reach(self, done: int) -> None:
        self.done = min(done, self.total)
        self.progress(self.stage, self.done, self.total)


def _watched(team: TabularTeam, done: Done) -> TabularTeam:
    """The same team, which calls `done` after each fit of it or of a clone."""

    class Watched(TabularTeam):
        def fit(self, X: Any, y: Any = None, **params: Any) -> TabularTeam:
            super().fit(X, y, **params)
            done()
            return self

    Watched.__name__ = TabularTeam.__name__  # the report of assistance names the estimator
    return Watched(team.steps)


def _same_machine(triage: UncertaintyTriage, team: Any) -> UncertaintyTriage:
    """The triage with the machine of another team."""
    own = team.get_params(deep=False)
    return triage.set_params(**{name: own[name] for name in MACHINE if name in own})


def _as_frame(cases: Cases) -> Any:
    """The features as a DataFrame, which scikit-learn can cut, with the types of the table."""
    import pandas as pd

    return cases.features.to_pandas(types_mapper=pd.ArrowDtype)


def _curve_numbers(curve: AutomationCurve) -> dict[str, Any]:
    both = AutomationCurve(
        curve.budgets, {"error": curve.values["error"], "deferred": curve.deferred}, curve.deferred
    )

    def listed(values: Any) -> list[float | None]:
        return [float(v) if np.isfinite(v) else None for v in values]

    ends = {"mean": both.mean, "lower": both.lower, "upper": both.upper}
    return {
        "budgets": listed(curve.budgets),
        "n_splits": len(curve.deferred),
        **{
            name: {end: listed(numbers[name]) for end, numbers in ends.items()}
            for name in both.values
        },
    }
