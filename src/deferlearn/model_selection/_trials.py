"""Every candidate on held-out folds. The machines of the folds are fitted once and shared."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from deferlearn._crossfit import Samples
from deferlearn._machine import MachineSettings
from deferlearn._parameters import count_of
from deferlearn._threshold import first_of
from deferlearn.advantage import AdvantageTriage, held_out_advantage, held_out_margins, machine_cost
from deferlearn.baselines import UncertaintyTriage
from deferlearn.model_selection._teams import equip

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Trial:
    """What a candidate did with cases that it had not seen.

    Attributes
    ----------
    positive : ndarray of bool of shape (n_samples,)
        The machine's answers.
    deferred : ndarray of bool of shape (n_samples,)
        Who went to the human.
    """

    positive: Bools
    deferred: Bools


class Trials:
    """The samples in folds, and the machines' held-out margins by their settings.

    Parameters
    ----------
    samples : Samples
        With the human's costs in units of errors.
    human : dict
        The human as `fit` was told of them, for the teams that are fitted on folds.
    labels : ndarray of shape (n_samples,)
        y as it was given.
    folds : list of ndarray
        Held-out rows.
    seed : int
        Of everything random.
    common : dict
        Parameters that all teams share where they have them.
    n_jobs : int or None
        How many fits at a time.
    """

    def __init__(
        self,
        samples: Samples,
        human: dict[str, Any],
        labels: NDArray[Any],
        folds: list[Index],
        seed: int,
        common: dict[str, Any],
        n_jobs: int | None,
    ) -> None:
        self.samples = samples
        self.human = human
        self.labels = labels
        self.folds = folds
        self.seed = seed
        self.common = common
        self.n_jobs = n_jobs
        self._margins: dict[int, Array] = {}
        self._kept: dict[tuple[int, str], tuple[Array, Array]] = {}

    def margins(self, settings: MachineSettings) -> Array:
        """Held-out decision values of the machine on all samples."""
        if id(settings) not in self._margins:
            samples = replace(self.samples, settings=settings)
            self._margins[id(settings)] = held_out_margins(samples, self.folds, self.n_jobs)
        return self._margins[id(settings)]

    def run(self, team: Any, settings: MachineSettings, budget: float) -> Trial:
        """Try a team with this machine at this budget."""
        key = (id(settings), repr(team))
        if isinstance(team, UncertaintyTriage):
            margin = self.margins(settings)
            return self._defer(margin, -np.abs(margin), budget)
        if isinstance(team, AdvantageTriage):
            if key not in self._kept:
                margin = self.margins(settings)
                samples = replace(self.samples, settings=settings)
                score = held_out_advantage(team._model(), samples, margin, self.folds, self.seed)
                self._kept[key] = margin, score
            margin, score = self._kept[key]
            trial = self._defer(margin, score, budget)
            wanted = trial.deferred if team.whole_budget else trial.deferred & (score > 0)
            return Trial(trial.positive, wanted)
        return self._run_by_fitting(team, settings, budget)

    def _run_by_fitting(self, team: Any, settings: MachineSettings, budget: float) -> Trial:
        """Fit the team itself without each fold, and ask it about the fold."""
        ready = equip(team, settings, {**self.common, "budget": budget, "cv": None, "n_jobs": None})
        parts = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_ask)(ready, self.samples.X, self.labels, self.human, fold, settings)
            for fold in self.folds
        )
        n = len(self.labels)
        margin, score, rates = np.empty(n), np.empty(n), np.empty(n)
        for fold, (own_margin, own_score, rate) in zip(self.folds, parts, strict=True):
            margin[fold], score[fold], rates[fold] = own_margin, own_score, rate
        return self._defer(margin, score, float(rates.mean()))

    def _defer(self, margin: Array, score: Array, rate: float) -> Trial:
        return Trial(margin > 0, first_of(score, count_of(float(rate), len(margin))))

    def costs(self, trial: Trial) -> Array:
        """What the team's answer to each case costs."""
        machine = machine_cost(self.samples, np.where(trial.positive, 1.0, -1.0))
        return np.where(trial.deferred, self.samples.loss, machine)


def _fit_and_ask(
    team: Any,
    X: Any,
    labels: NDArray[Any],
    human: dict[str, Any],
    fold: Index,
    settings: MachineSettings,
) -> tuple[Array, Array, float]:
    rows = np.setdiff1d(np.arange(len(labels)), fold)
    train, held_out = X[rows], X[fold]
    if settings.precomputed:
        train, held_out = train[:, rows], held_out[:, rows]
    part = {name: value[rows] for name, value in human.items()}
    with warnings.catch_warnings():
        # What a part of the samples lacks is no news; `fit` on all of them says what is wrong.
        warnings.simplefilter("ignore", UserWarning)
        team.fit(train, labels[rows], **part)
    rate = team.deferral_rate_
    return team.decision_function(held_out), team.deferral_score(held_out), rate
