"""Scores that the final policy would give to cases it has not seen, by leaving folds out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from deferlearn._utils.jobs import call_each
from deferlearn.teams.machine import Machine, MachineSettings, machine_of
from deferlearn.teams.policy import DeferralPolicy
from deferlearn.teams.selector import Selector
from deferlearn.teams.threshold import ranks_among

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Samples:
    """What machine and human know of the samples: labels as signs, prices, human losses."""

    X: Any
    y: Array
    weights: Array
    loss: Array
    settings: MachineSettings

    def part(self, rows: Index) -> Samples:
        """Some of the samples."""
        X = self.X[rows]
        return Samples(
            X[:, rows] if self.settings.precomputed else X,
            self.y[rows],
            self.weights[rows],
            self.loss[rows],
            self.settings,
        )


def fold_rows(cv: Any, samples: Samples, seed: int) -> list[Index]:
    """Held-out rows of each fold; together every row once.

    A number of folds deals the rows out at random, and not by class or by what was deferred: the held-out
    rows must differ from the others as much as new cases do.
    """
    n = len(samples.y)
    if isinstance(cv, int | np.integer):
        dealt = check_random_state(seed).permutation(n)
        k = min(int(cv), n)
        return [np.sort(dealt[i::k]) for i in range(k)]
    splitter = check_cv(cv, samples.y, classifier=True)
    folds = [np.asarray(test) for _, test in splitter.split(samples.X, samples.y)]
    check_partition(folds, n, cv)
    return folds


def check_partition(folds: list[Index], n: int, cv: Any) -> None:
    """Refuse folds that do not hold out every one of n rows exactly once."""
    counts = np.bincount(np.concatenate(folds), minlength=n)
    if (counts != 1).any():
        row = int(np.flatnonzero(counts != 1)[0])
        raise ValueError(
            f"cv={cv!r} must hold out every row exactly once, but holds out row {row} "
            f"{int(counts[row])} times."
        )


def rest_of(fold: Index, n: int) -> Index:
    """The rows outside a fold, in their order."""
    return np.setdiff1d(np.arange(n), fold)


def fit_in_sample(
    samples: Samples, deferred: Bools, machine: Machine, policy: DeferralPolicy, seed: int
) -> Array:
    """Fit the policy on the machine's own margins; the scores are those of the training samples."""
    margin = machine.decision_function(samples.X)
    policy.fit(samples.X, margin, deferred, seed)
    return policy.deferral_score(samples.X, margin)


def fit_cross(
    samples: Samples,
    deferred: Bools,
    machine: Machine,
    policy: DeferralPolicy,
    folds: list[Index],
    selector: Selector,
    budget: int,
    seed: int,
    n_jobs: int | None,
) -> tuple[Array, Array]:
    """Fit the policy; return the ranks of held-out samples, and the scores of its own.

    A machine is surer of the samples that it was fitted on than of new ones, and so is a policy; and a
    sample that stands for selection itself takes a place from others, which a new case does not. So all
    three are done again without each fold, and the samples of a fold ranked among the others.

    A policy that sees x and the margin learns from margins of held-out samples, since it meets new
    cases. One that sees the margin alone learns which end of it to defer, from the machine's own
    samples as in the paper: the held-out margins that it is judged by must not have had a say.
    """
    n = len(samples.y)
    rest = [rest_of(fold, n) for fold in folds]
    trained = call_each(
        _train,
        ((samples.part(rows), selector, round(budget * len(rows) / n)) for rows in rest),
        n_jobs,
    )
    held_out = np.empty(n)
    for (fold_machine, _), fold, rows in zip(trained, folds, rest, strict=True):
        held_out[fold] = fold_machine.decision_function(_against(samples, fold, rows))
    own = machine.decision_function(samples.X)
    policy.fit(samples.X, own if policy.features == "margin" else held_out, deferred, seed)
    parts = call_each(
        _rank_fold,
        ((policy, samples, held_out, *trained[k], folds, k, seed) for k in range(len(folds))),
        n_jobs,
    )
    ranks = np.empty(n)
    for fold, part in zip(folds, parts, strict=True):
        ranks[fold] = part
    return ranks, policy.deferral_score(samples.X, own)


def _train(samples: Samples, selector: Selector, budget: int) -> tuple[Machine, Bools]:
    """Selection and machine on the samples outside a fold."""
    objective = samples.settings.objective(samples.X, samples.y, samples.weights)
    chosen = np.zeros(len(samples.y), dtype=bool)
    for k in selector.run(objective, samples.loss, budget).order:
        objective.remove(int(k))
        chosen[k] = True
    machine = machine_of(objective, samples.X, samples.y, samples.weights, samples.settings)
    return machine, chosen


def _rank_fold(
    policy: DeferralPolicy,
    samples: Samples,
    margin: Array,
    machine: Machine,
    chosen: Bools,
    folds: list[Index],
    k: int,
    seed: int,
) -> Array:
    """Ranks of one fold among the other samples, by a policy that has not seen it.

    A policy that ranks by the margin alone has learned no more from the fold than the direction. Folds in
    doubt about that would speak of the wrong end of the margins, so it is taken as it is.
    """
    fold = folds[k]
    rows = rest_of(fold, len(samples.y))
    if not policy.ranks_by_margin:
        policy = clone(policy).fit(samples.X[rows], margin[rows], chosen, seed)
    own = machine.decision_function(_against(samples, rows, rows))
    return ranks_among(
        policy.deferral_score(samples.X[fold], margin[fold]),
        policy.deferral_score(samples.X[rows], own),
        k,
        len(folds),
    )


def _against(samples: Samples, rows: Index, fitted: Index) -> Any:
    """Rows as a machine fitted on some of the samples expects them."""
    X = samples.X[rows]
    return X[:, fitted] if samples.settings.precomputed else X
