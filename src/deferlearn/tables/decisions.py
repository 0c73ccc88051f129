"""Who decides each case of a table, and who is wrong: machine, human and team."""

import itertools
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.metrics import confusion_matrix

from deferlearn._utils.types import Bools, Index, Labels
from deferlearn.evaluation.intervals import share_interval
from deferlearn.metrics import team_grade_error, team_macro_f1, team_quadratic_kappa
from deferlearn.tables.cases import Cases
from deferlearn.tables.team import FOLDS, TabularTeam, grouped_folds, set_known
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.held_out import held_out, splits_of
from deferlearn.teams.parameters import share_of

WHO = ("machine", "human", "team")
# With more cases, `cross_validated_errors` takes a random part of them: all would take minutes.
MAX_CASES = 1000


@dataclass(frozen=True)
class Decisions:
    """The answers to every case, and who gives the team's answer.

    Attributes
    ----------
    truth, machine, human : ndarray of str of shape (n_cases,)
        The true label, the machine's answer, and the majority of the human answers.
    deferred, read : ndarray of bool of shape (n_cases,)
        Whether the case is deferred to a human, and whether any human has answered it. Errors are counted
        on the cases that were read.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.decisions import Decisions
    >>> decisions = Decisions(
    ...     truth=np.array(["ill", "well"]),
    ...     machine=np.array(["well", "well"]),
    ...     human=np.array(["ill", "ill"]),
    ...     deferred=np.array([True, False]),
    ...     read=np.array([True, True]),
    ... )
    >>> decisions.team.tolist()
    ['ill', 'well']
    >>> {who: error["count"] for who, error in decisions.errors().items()}
    {'machine': 1, 'human': 1, 'team': 0}
    """

    truth: Labels
    machine: Labels
    human: Labels
    deferred: Bools
    read: Bools

    @classmethod
    def of(cls, cases: Cases, machine: Labels, deferred: Bools) -> Self:
        """The decisions on cases from the machine's answers and the mask of the deferred cases."""
        human, read = cases.human_answers(machine)
        return cls(cases.truth, machine, human, deferred, read)

    @property
    def team(self) -> Labels:
        """The human's answer if a case is deferred, otherwise the machine's."""
        return np.where(self.deferred, self.human, self.machine)

    def wrong(self, who: str) -> Bools:
        """Whether "machine", "human" or "team" is wrong on each case."""
        return np.asarray(getattr(self, who) != self.truth, dtype=bool)

    def errors(self) -> dict[str, dict[str, float]]:
        """The errors of machine, human and team on the cases that were read, as `share_with_interval`."""
        n = int(self.read.sum())
        return {who: share_with_interval(int(self.wrong(who)[self.read].sum()), n) for who in WHO}

    def confusion(self, classes: tuple[str, ...]) -> dict[str, dict[str, dict[str, int]]]:
        """For machine, human and team: how many read cases of each class got which answer."""
        found = {}
        for who in WHO:
            answers = getattr(self, who)[self.read]
            counts = confusion_matrix(self.truth[self.read], answers, labels=classes).tolist()
            found[who] = {
                true: dict(zip(classes, row, strict=True))
                for true, row in zip(classes, counts, strict=True)
            }
        return found

    def measures(
        self, classes: tuple[str, ...], graded: bool
    ) -> dict[str, dict[str, float | None]]:
        """Measures over all classes of machine, human and team, on the cases that were read.

        Macro F1; of grades also the mean number of grades by which answers are off, and the kappa with
        quadratic weights, which is None if it is not defined.
        """
        truth = self.truth[self.read]
        found: dict[str, dict[str, float | None]] = {}
        for who in WHO:
            said = getattr(self, who)[self.read]
            found[who] = {"macro_f1": team_macro_f1(truth, said, classes=classes)}
            if graded:
                kappa = team_quadratic_kappa(
                    truth, said, grades=classes, zero_division=float("nan")
                )
                found[who]["grade_error"] = team_grade_error(truth, said, grades=classes)
                found[who]["quadratic_kappa"] = None if np.isnan(kappa) else kappa
        return found

    def together(self) -> list[dict[str, Any]]:
        """How many read cases machine and human get right or wrong, deferred ones and others."""
        rows = []
        for machine, human in itertools.product((False, True), repeat=2):
            both = self.read & (self.wrong("machine") == machine) & (self.wrong("human") == human)
            rows.append(
                {
                    "machine": "wrong" if machine else "right",
                    "human": "wrong" if human else "right",
                    "deferred": int((both & self.deferred).sum()),
                    "kept": int((both & ~self.deferred).sum()),
                }
            )
        return rows


def share_with_interval(count: int, n: int) -> dict[str, float]:
    """A share with its exact 95% interval (Clopper and Pearson).

    Parameters
    ----------
    count, n : int
        The share is `count` of `n`.

    Returns
    -------
    share : dict
        With the keys share, lower, upper, count and cases.

    Examples
    --------
    >>> from deferlearn.tables.decisions import share_with_interval
    >>> {key: round(value, 3) for key, value in share_with_interval(1, 10).items()}
    {'share': 0.1, 'lower': 0.003, 'upper': 0.445, 'count': 1, 'cases': 10}
    """
    lower, upper = share_interval(count, n)
    return {"share": count / n, "lower": lower, "upper": upper, "count": count, "cases": n}


def unfitted_copy(model: TabularTeam, *, batch: bool, team: Any = None) -> TabularTeam:
    """A team like the model's that is not fitted, with the parameters that were tuned.

    Parameters
    ----------
    model : TabularTeam
        A fitted one; it is not changed.
    batch : bool
        Whether it will decide by the batch rule, which needs no threshold: `AssistedSVC` then makes no
        folds.
    team : estimator or None, default=None
        Another team to put behind the same columns.

    Returns
    -------
    TabularTeam
        Its budget is the model's as a share, so that it means the same for fewer cases.
    """
    member = clone(model.chosen if team is None else team)
    folds = None if batch and isinstance(member, AssistedSVC) else FOLDS
    set_known(member, budget=share_of(model.card_["budget"], model.card_["rows"]), cv=folds)
    return TabularTeam([("table", clone(model.encoder)), ("team", member)])


def held_out_decisions(team: TabularTeam, cases: Cases, *, batch: bool, seed: int = 0) -> Decisions:
    """The decisions of teams that were fitted without the case, on five folds.

    Columns, machine and policy are all learned without the held-out cases.

    Parameters
    ----------
    team : TabularTeam
        Not fitted; clones of it are.
    cases : Cases
        The cases.
    batch : bool
        Whether each fold is decided by the batch rule (`defer_top`) or one case at a time (`defer`).
    seed : int, default=0
        Random seed of the folds.

    Returns
    -------
    Decisions
    """
    splits = splits_of(FOLDS, cases.truth, cases.truth, cases.groups, seed)
    machine, deferred = cases.truth.copy(), np.zeros(len(cases), dtype=bool)
    parts = held_out(_decide, splits, team, cases, batch, n_jobs=1)
    for (_, test), (answers, mask) in zip(splits, parts, strict=True):
        machine[test], deferred[test] = answers, mask
    return Decisions.of(cases, machine, deferred)


def _decide(
    train: Index, test: Index, team: TabularTeam, cases: Cases, batch: bool
) -> tuple[Labels, Bools]:
    known, new = cases.part(train), cases.part(test).features
    fitted = clone(team)
    if known.groups is not None and not (batch and isinstance(fitted.team, AssistedSVC)):
        set_known(fitted.team, cv=grouped_folds(known, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit on all cases has shown them already
        fitted.fit(known.features, known.truth, team__human_labels=known.answers)
    return fitted.predict(new), fitted.defer_top(new) if batch else fitted.defer(new)


def cross_validated_errors(
    model: TabularTeam, cases: Cases, seed: int = 0
) -> dict[str, dict[str, float]] | None:
    """Errors of machine, human and team on held-out cases, in five folds.

    The team follows the batch rule, so that the share of deferred cases is the budget in each fold. Tuned
    parameters keep the values chosen on all cases, which makes the errors a little too low. Of more than
    1000 cases, a random sample of 1000 is used, or of whole groups with about as many cases.

    Parameters
    ----------
    model : TabularTeam
        A fitted one; it is not changed.
    cases : Cases
        The cases that it was fitted on.
    seed : int, default=0
        Random seed of the folds.

    Returns
    -------
    errors : dict or None
        For machine, human and team a dict with the keys error, lower, upper (the ends of the exact 95%
        interval), wrong and cases, on the cases that a human has read; without any answers, for the
        machine only. None if there are too few cases in a class, or no human has read any.
    """
    if len(cases) > MAX_CASES:
        cases = cases.part(sampled_rows(cases, MAX_CASES, seed))
    counts = np.unique(cases.truth, return_counts=True)[1]
    if counts.min() < FOLDS:
        return None
    decisions = held_out_decisions(unfitted_copy(model, batch=True), cases, batch=True, seed=seed)
    if not decisions.read.any():
        return None
    return {
        who: {
            "error": found["share"],
            "lower": found["lower"],
            "upper": found["upper"],
            "wrong": found["count"],
            "cases": found["cases"],
        }
        for who, found in decisions.errors().items()
        if who == "machine" or cases.answers is not None
    }


def sampled_rows(cases: Cases, most: int, seed: int) -> Index:
    """A random sample of the cases with the same share of each class, or of whole groups.

    Parameters
    ----------
    cases : Cases
        The cases.
    most : int
        How many of them at most.
    seed : int
        Random seed.

    Returns
    -------
    rows : ndarray of int
        In the order of the table.
    """
    rng = np.random.default_rng(seed)
    if cases.groups is not None:
        names, codes = np.unique(cases.groups.astype(str), return_inverse=True)
        order = rng.permutation(len(names))
        sizes = np.bincount(codes)[order]
        return np.flatnonzero(np.isin(codes, order[np.cumsum(sizes) <= most]))
    rows: list[Index] = []
    for label in cases.classes:
        own = rng.permutation(np.flatnonzero(cases.truth == label))
        # Rare classes keep the cases that the folds need.
        rows.append(own[: max(most * len(own) // len(cases), min(FOLDS, len(own)))])
    return np.sort(np.concatenate(rows))
