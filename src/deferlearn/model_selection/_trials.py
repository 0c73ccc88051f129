"""Every candidate on held-out folds. The machines of the folds are fitted once and shared."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from deferlearn._crossfit import Samples, rest_of
from deferlearn._machine import MachineSettings
from deferlearn._parameters import count_of
from deferlearn._threshold import first_of
from deferlearn.advantage import AdvantageTriage, held_out_advantage, held_out_margins, machine_cost
from deferlearn.baselines import FullAutomation, PredictedErrorTriage, UncertaintyTriage
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


@dataclass(frozen=True)
class Trials:
    """The samples in folds, and the machines' held-out margins by their settings.

    Attributes
    ----------
    samples : Samples
        With the human's costs in units of errors.
    human : dict
        The human as `fit` was told of them, for the teams that are fitted on folds.
    labels : ndarray of shape (n_samples,)
        y as it was given.
    groups : ndarray of shape (n_samples,) or None
        Which samples belong together.
    folds : list of ndarray
        Held-out rows.
    seed : int
        Of everything random.
    common : dict
        Parameters that all teams share where they have them.
    n_jobs : int or None
        How many fits at a time.
    """

    samples: Samples
    human: dict[str, Any]
    labels: NDArray[Any]
    groups: NDArray[Any] | None
    folds: list[Index]
    seed: int
    common: dict[str, Any]
    n_jobs: int | None
    _margins: dict[int, tuple[Array, list[Array]]] = field(default_factory=dict)
    _ranked: dict[Any, Any] = field(default_factory=dict)

    def margins(self, settings: MachineSettings) -> tuple[Array, list[Array]]:
        """Decision values of the machines without a fold, see `held_out_margins`."""
        if id(settings) not in self._margins:
            samples = replace(self.samples, settings=settings)
            self._margins[id(settings)] = held_out_margins(samples, self.folds, self.n_jobs)
        return self._margins[id(settings)]

    def run(self, team: Any, settings: MachineSettings, budget: float) -> Trial:
        """Try a team with this machine at this budget."""
        margin, score, rate = self._rank(team, settings, budget)
        trial = Trial(margin > 0, first_of(score, count_of(float(rate), len(margin))))
        if isinstance(team, AdvantageTriage) and not team.whole_budget:
            return Trial(trial.positive, trial.deferred & (score > 0))
        return trial

    def _rank(
        self, team: Any, settings: MachineSettings, budget: float
    ) -> tuple[Array, Array, float]:
        """Held-out margins and deferral scores, and the share to be deferred."""
        if isinstance(team, UncertaintyTriage | FullAutomation):
            margin, _ = self.margins(settings)
            return margin, -np.abs(margin), budget if isinstance(team, UncertaintyTriage) else 0.0
        if isinstance(team, AdvantageTriage):
            margin, own = self.margins(settings)
            key: Any = (id(settings), _name_of(team))
            if key not in self._ranked:
                samples = replace(self.samples, settings=settings)
                self._ranked[key], _ = held_out_advantage(
                    team._model(), samples, margin, own, self.folds, self.seed
                )
            return margin, self._ranked[key], budget
        # A team that is trained for a budget ranks differently for another one.
        fixed = isinstance(team, PredictedErrorTriage)
        key = (id(settings), _name_of(team), None if fixed else budget)
        if key not in self._ranked:
            self._ranked[key] = self._rank_by_fitting(team, settings, budget)
        margin, score, rate = self._ranked[key]
        return margin, score, budget if fixed else rate

    def _rank_by_fitting(
        self, team: Any, settings: MachineSettings, budget: float
    ) -> tuple[Array, Array, float]:
        """Fit the team itself without each fold, and ask it about the fold."""
        ready = equip(team, settings, {**self.common, "budget": budget, "cv": None, "n_jobs": None})
        parts = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_ask)(ready, self.samples.X, self.labels, self.human, fold, settings)
            for fold in self.folds
        )
        n = len(self.labels)
        margin, score, rates = np.empty(n), np.empty(n), np.empty(n)
        for fold, (own_margin, own_score, rate) in zip(self.folds, parts, strict=True):
            # Policies of folds differ in scale: what can be compared is the place in the fold.
            place = rankdata(own_score) / len(fold)
            margin[fold], rates[fold] = own_margin, rate
            score[fold] = np.where(np.isinf(own_score), own_score, place)
        return margin, score, float(rates.mean())

    def costs(self, trial: Trial) -> Array:
        """What the team's answer to each case costs."""
        machine = machine_cost(self.samples, np.where(trial.positive, 1.0, -1.0))
        return np.where(trial.deferred, self.samples.loss, machine)


def _name_of(team: Any) -> tuple[type, str]:
    """The same for teams with the same parameters; a long `repr` leaves some of them out."""
    return type(team), str(team.get_params())


def _fit_and_ask(
    team: Any,
    X: Any,
    labels: NDArray[Any],
    human: dict[str, Any],
    fold: Index,
    settings: MachineSettings,
) -> tuple[Array, Array, float]:
    rows = rest_of(fold, len(labels))
    train, held_out = X[rows], X[fold]
    if settings.precomputed:
        train, held_out = train[:, rows], held_out[:, rows]
    if len(np.unique(labels[rows])) < 2:
        # Where one class alone is left the machine answers with it, and there is nobody to defer.
        answer = 1.0 if labels[rows][0] == np.unique(labels)[-1] else -1.0
        return np.full(len(fold), answer), np.full(len(fold), -np.inf), 0.0
    part = {name: value[rows] for name, value in human.items()}
    with warnings.catch_warnings():
        # What a part of the samples lacks is no news; `fit` on all of them says what is wrong.
        warnings.simplefilter("ignore", UserWarning)
        team = clone(team).fit(train, labels[rows], **part)  # folds may share memory, as threads do
    rate = float(team.deferral_rate_)
    score = team.deferral_score(held_out)
    if rate in (0.0, 1.0):
        # Nobody or everybody: its scores must not compete with those of the other folds.
        score = np.full(len(fold), -np.inf if rate == 0.0 else np.inf)
    return team.decision_function(held_out), score, rate
