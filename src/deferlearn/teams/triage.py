"""Triage: a machine on all samples, and a ranking of new cases with the threshold that belongs to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from deferlearn._utils.jobs import call_each
from deferlearn.teams.baseline import Array, Human, MachineBaseline, solve
from deferlearn.teams.crossfit import Samples, fold_rows, rest_of
from deferlearn.teams.machine import Machine
from deferlearn.teams.parameters import check_folds, count_of, share_of
from deferlearn.teams.threshold import ranks_among, threshold_at, threshold_from_folds

Index = NDArray[np.int64]


class Triage(MachineBaseline):
    """A baseline that ranks cases. A class says how by `_fit_ranker` and `_rank_by`."""

    budget: Any  # a float or an int, numpy's among them
    cv: Any
    n_jobs: int | None
    random_state: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_folds(self.cv, self.n_jobs)

    def _fit_team(self, samples: Samples, machine: Machine, human: Human) -> None:
        n = len(samples.y)
        count_of(self.budget, n)
        answers = self._answers_of(samples.y, human)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        margin = machine.decision_function(samples.X)
        ranker = self._fit_ranker(samples, margin, answers, seed)
        scores = self._rank_by(ranker, samples.X, margin)
        self.n_samples_fit_ = n
        self.deferral_rate_ = self._own_budget()
        self._ranker = ranker
        if self.cv is None or self.deferral_rate_ in (0.0, 1.0):
            self._threshold = threshold_at(scores, self.deferral_rate_, seed)
        else:
            folds = fold_rows(self.cv, samples, seed)
            ranks = self._held_out_ranks(samples, answers, folds, seed)
            self._threshold = threshold_from_folds(
                ranks, scores, self.deferral_rate_, len(folds), seed
            )
        self.deferral_threshold_ = self._threshold.value

    def _held_out_ranks(
        self, samples: Samples, answers: Array | None, folds: list[Index], seed: int
    ) -> Array:
        """Ranks of each fold among the other samples, by a machine and a ranker without it."""
        parts = call_each(
            _rank_fold,
            ((self, samples, answers, folds, k, seed) for k in range(len(folds))),
            self.n_jobs,
        )
        ranks = np.empty(len(samples.y))
        for fold, part in zip(folds, parts, strict=True):
            ranks[fold] = part
        return ranks

    def _own_budget(self) -> float:
        return share_of(self.budget, self.n_samples_fit_)

    def _rank(self, X: Any) -> Array:
        return self._rank_by(self._ranker, X, self._machine.decision_function(X))

    def _answers_of(self, signs: Array, human: Human) -> Array | None:
        """What the ranker is told of the human; nothing if it does not ask."""
        return None

    def _fit_ranker(self, samples: Samples, margin: Array, answers: Array | None, seed: int) -> Any:
        """Whatever `_rank_by` needs."""
        return None

    def _rank_by(self, ranker: Any, X: Any, margin: Array) -> Array:
        raise NotImplementedError


def _rank_fold(
    triage: Triage, samples: Samples, answers: Array | None, folds: list[Index], k: int, seed: int
) -> Array:
    fold = folds[k]
    rows = rest_of(fold, len(samples.y))
    part = samples.part(rows)
    machine = solve(part)
    # Features of a precomputed kernel: the machine of a part knows that part, a ranker sees all columns.
    X, X_fold = samples.X[rows], samples.X[fold]
    narrow = X_fold[:, rows] if samples.settings.precomputed else X_fold
    margin = machine.decision_function(part.X)
    wide = Samples(X, part.y, part.weights, part.loss, part.settings)
    ranker = triage._fit_ranker(wide, margin, None if answers is None else answers[rows], seed)
    held_out = triage._rank_by(ranker, X_fold, machine.decision_function(narrow))
    return ranks_among(held_out, triage._rank_by(ranker, X, margin), k, len(folds))
