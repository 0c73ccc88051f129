"""Scores that the final policy would give to cases it has not seen, by leaving folds out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from deferlearn._machine import Machine, MachineSettings, machine_of
from deferlearn._select import Selector
from deferlearn._threshold import translate
from deferlearn.policy import DeferralPolicy

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
    counts = np.bincount(np.concatenate(folds), minlength=n)
    if (counts != 1).any():
        row = int(np.flatnonzero(counts != 1)[0])
        raise ValueError(
            f"cv={cv!r} must hold out every row exactly once, but holds out row {row} "
            f"{int(counts[row])} times."
        )
    return folds


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
    """Fit the policy on margins of held-out samples; return scores of held-out samples, and its own.

    A machine is surer of the samples that it was fitted on than of new ones, and so is a policy; and a
    sample that stands for selection itself takes a place from others, which a new case does not. So all
    three are done again without each fold. The scores of a fold are translated into the final policy's
    units.
    """
    n = len(samples.y)
    rest = [np.setdiff1d(np.arange(n), fold) for fold in folds]
    trained = Parallel(n_jobs=n_jobs)(
        delayed(_train)(samples.part(rows), selector, round(budget * len(rows) / n))
        for rows in rest
    )
    held_out = np.empty(n)
    for (fold_machine, _), fold, rows in zip(trained, folds, rest, strict=True):
        held_out[fold] = fold_machine.decision_function(_against(samples, fold, rows))
    policy.fit(samples.X, held_out, deferred, seed)
    final = policy.deferral_score(samples.X, machine.decision_function(samples.X))
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_score_fold)(
            policy,
            samples,
            held_out,
            fold_machine,
            chosen,
            final[rows],
            deferred[rows],
            fold,
            rows,
            seed,
        )
        for (fold_machine, chosen), fold, rows in zip(trained, folds, rest, strict=True)
    )
    scores = np.empty(n)
    for fold, part in zip(folds, parts, strict=True):
        scores[fold] = part
    return scores, final


def _train(samples: Samples, selector: Selector, budget: int) -> tuple[Machine, Bools]:
    """Selection and machine on the samples outside a fold."""
    objective = samples.settings.objective(samples.X, samples.y, samples.weights)
    chosen = np.zeros(len(samples.y), dtype=bool)
    for k in selector.run(objective, samples.loss, budget).order:
        objective.remove(int(k))
        chosen[k] = True
    machine = machine_of(objective, samples.X, samples.y, samples.weights, samples.settings)
    return machine, chosen


def _score_fold(
    policy: DeferralPolicy,
    samples: Samples,
    margin: Array,
    machine: Machine,
    chosen: Bools,
    final: Array,
    deferred: Bools,
    fold: Index,
    rows: Index,
    seed: int,
) -> Array:
    """Scores of one fold, by a policy that has not seen it, in the final policy's units.

    A policy that ranks by the margin alone has learned no more from the fold than the direction. Folds in
    doubt about that would speak of the wrong end of the margins, so it is taken as it is.

    A policy that knows its samples by heart has a gap between the scores of kept and deferred ones. So that
    the two gaps meet, deferred samples weigh as much in the one comparison as in the other.
    """
    if not policy.ranks_by_margin:
        policy = clone(policy).fit(samples.X[rows], margin[rows], chosen, seed)
    held_out = policy.deferral_score(samples.X[fold], margin[fold])
    own = machine.decision_function(_against(samples, rows, rows))
    reference = policy.deferral_score(samples.X[rows], own)
    share, target_share = chosen.mean(), deferred.mean()
    weights = None
    if 0 < share < 1 and 0 < target_share < 1:
        weights = np.where(deferred, share / target_share, (1 - share) / (1 - target_share))
    return translate(held_out, reference, final, weights)


def _against(samples: Samples, rows: Index, fitted: Index) -> Any:
    """Rows as a machine fitted on some of the samples expects them."""
    X = samples.X[rows]
    return X[:, fitted] if samples.settings.precomputed else X
