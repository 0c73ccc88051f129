"""Every candidate on held-out folds. The machines of the folds are fitted once and shared."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone

from deferlearn._utils.jobs import call_each
from deferlearn.teams.advantage import (
    AdvantageModel,
    AdvantageTriage,
    held_out_advantage,
    held_out_margins,
    machine_cost,
    models_of_folds,
)
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.automation import FullAutomation
from deferlearn.teams.candidates import equip
from deferlearn.teams.crossfit import Samples, rest_of
from deferlearn.teams.errors import scores_of
from deferlearn.teams.machine import MachineSettings
from deferlearn.teams.parameters import count_of
from deferlearn.teams.policy import resolve_policy
from deferlearn.teams.predicted_error import PredictedErrorTriage
from deferlearn.teams.threshold import first_of
from deferlearn.teams.uncertainty import UncertaintyTriage

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
    _made: dict[Any, Any] = field(default_factory=dict)

    def margins(self, settings: MachineSettings) -> Array:
        """Decision values of the machines without a sample's fold."""
        return self._machines(settings)[0]

    def _machines(self, settings: MachineSettings) -> tuple[Array, list[Array]]:
        """The same, and each machine's decision values of its own samples."""
        samples = replace(self.samples, settings=settings)
        machines: tuple[Array, list[Array]] = self._once(
            id(settings), lambda: held_out_margins(samples, self.folds, self.n_jobs)
        )
        return machines

    def run(self, team: Any, settings: MachineSettings, budget: float) -> Trial:
        """Try a team with this machine at this budget."""
        margin, score, rate = self._rank(team, settings, budget)
        trial = Trial(margin > 0, first_of(score, count_of(float(rate), len(margin))))
        if isinstance(team, AdvantageTriage) and not team.use_full_budget:
            return Trial(trial.positive, trial.deferred & (score > 0))
        return trial

    def _rank(
        self, team: Any, settings: MachineSettings, budget: float
    ) -> tuple[Array, Array, float]:
        """Held-out margins and deferral scores, and the share to be deferred."""
        if isinstance(team, UncertaintyTriage | FullAutomation):
            margin = self.margins(settings)
            return margin, -np.abs(margin), budget if isinstance(team, UncertaintyTriage) else 0.0
        if isinstance(team, AdvantageTriage):
            key: Any = (id(settings), _name_of(team))
            score = self._once(key, lambda: self._rank_by_advantage(team, settings))
            return self.margins(settings), score, budget
        if isinstance(team, AssistedSVC):
            return self._rank_by_policy(team, settings, budget)
        if isinstance(team, PredictedErrorTriage):
            key = (id(settings), _name_of(team))
            score = self._once(key, lambda: self._rank_by_predicted_errors(team, settings))
            return self.margins(settings), score, budget
        # A team that is trained for a budget ranks differently for another one.
        key = (id(settings), _name_of(team), budget)
        ranked: tuple[Array, Array, float] = self._once(
            key, lambda: self._rank_by_fitting(team, settings, budget)
        )
        return ranked

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made under this key before, or is made now."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _rank_by_advantage(self, team: AdvantageTriage, settings: MachineSettings) -> Array:
        margin, model = self.margins(settings), team._model()
        models = models_of_folds(
            model, self.samples, margin, self.folds, self.seed, self._humans(model)
        )
        return held_out_advantage(models, self.samples.X, margin, self.folds)

    def _humans(self, model: AdvantageModel) -> list[Any] | None:
        """The regressors of the human's cost without each fold: the same beside every machine."""
        if isinstance(model.human_error, str):
            return None
        regressors: list[Any] = self._once(
            ("human", _name_of(model.human_error)),
            lambda: call_each(
                model.fit_human,
                (
                    (self.samples.X[rows], self.samples.loss[rows], self.seed)
                    for rows in (rest_of(fold, len(self.labels)) for fold in self.folds)
                ),
                self.n_jobs,
            ),
        )
        return regressors

    def _rank_by_predicted_errors(
        self, team: PredictedErrorTriage, settings: MachineSettings
    ) -> Array:
        """Models of who errs without each fold; that of the human is the same beside every machine."""
        told = dict.fromkeys(("human_loss", "human_scores", "human_labels")) | self.human
        answers = scores_of(self.samples.y, np.unique(self.labels), **told)
        _, own_margins = self._machines(settings)
        parts = [(fold, rest_of(fold, len(self.labels))) for fold in self.folds]
        features = [self._features(settings, rows, fold) for fold, rows in parts]
        humans = self._once(
            ("human", _name_of(team), settings.precomputed),
            lambda: call_each(
                team._fit_human,
                (
                    (train, self.samples.y[rows], answers[rows], self.seed)
                    for (train, _), (_, rows) in zip(features, parts, strict=True)
                ),
                self.n_jobs,
            ),
        )
        machines = call_each(
            team._fit_machine,
            (
                (features[k][0], own_margins[k], answers[rows], self.seed)
                for k, (_, rows) in enumerate(parts)
            ),
            self.n_jobs,
        )
        rankers = zip(machines, humans, features, strict=True)
        # What it predicts are probabilities, but each fold's own: places are compared.
        return self._join(
            [
                _places(team._rank_by((machine, human), held_out, np.empty(0)), 0.5)
                for machine, human, (_, held_out) in rankers
            ]
        )

    def _rank_by_policy(
        self, team: AssistedSVC, settings: MachineSettings, budget: float
    ) -> tuple[Array, Array, float]:
        """Selections without each fold, which teams that differ in their policy share.

        As in `AssistedSVC.fit`, the sweep is for all samples, parts take the ratio that it finds, and a
        policy that sees more than the margin learns from held-out ones.
        """
        selecting = clone(team).set_params(policy="margin")
        if selecting.submodularity_ratio == "sweep":
            result = self.without_folds(selecting, settings, budget).selection_
            selecting.set_params(submodularity_ratio=result.submodularity_ratio)
        parts: list[_Part] = self._once(
            ("parts", id(settings), _name_of(selecting), budget),
            lambda: self._without_each_fold(selecting, settings, budget),
        )
        margin = self._join([part.margin for part in parts])
        scores = []
        for fold, part in zip(self.folds, parts, strict=True):
            rows = rest_of(fold, len(margin))
            train, held_out = self._features(settings, rows, fold)
            policy = resolve_policy(team.policy, sparse=hasattr(train, "tocsr"))
            seen = part.own_margin if policy.features == "margin" else margin[rows]
            policy.fit(train, seen, part.deferred, self.seed)
            scores.append(_places(policy.deferral_score(held_out, part.margin), part.rate))
        return margin, self._join(scores), self._mean_rate(parts)

    def without_folds(self, team: Any, settings: MachineSettings, budget: float) -> Any:
        """The team fitted on all samples, its threshold on these very samples; fitted once."""

        def fit() -> Any:
            ready = equip(team, settings, {**self.common, "budget": budget, "cv": None})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the winner will say so again
                return ready.fit(self.samples.X, self.labels, **self.human)

        return self._once(("all", id(settings), _name_of(team), budget), fit)

    def _rank_by_fitting(
        self, team: Any, settings: MachineSettings, budget: float
    ) -> tuple[Array, Array, float]:
        """Fit the team itself without each fold, and ask it about the fold."""
        parts = self._without_each_fold(team, settings, budget)
        margin = self._join([part.margin for part in parts])
        score = self._join([_places(part.score, part.rate) for part in parts])
        return margin, score, self._mean_rate(parts)

    def _without_each_fold(
        self, team: Any, settings: MachineSettings, budget: float
    ) -> list[_Part]:
        ready = equip(team, settings, {**self.common, "budget": budget, "cv": None, "n_jobs": None})
        parts = ((rest_of(fold, len(self.labels)), fold) for fold in self.folds)
        return call_each(
            _fit_and_ask,
            (
                (ready, *self._features(settings, rows, fold), self.labels, self.human, rows)
                for rows, fold in parts
            ),
            self.n_jobs,
        )

    def _features(self, settings: MachineSettings, rows: Index, fold: Index) -> tuple[Any, Any]:
        """Features of a part's own samples and of its fold; of a Gram matrix the former's columns."""
        X = self.samples.X
        if settings.precomputed:
            X = X[:, rows]
        return X[rows], X[fold]

    def _mean_rate(self, parts: list[_Part]) -> float:
        return float(
            np.average([part.rate for part in parts], weights=[len(f) for f in self.folds])
        )

    def _join(self, parts: list[Array]) -> Array:
        """What was found fold by fold, in the order of the samples."""
        out = np.empty(len(self.labels))
        for fold, part in zip(self.folds, parts, strict=True):
            out[fold] = part
        return out

    def costs(self, trial: Trial) -> Array:
        """What the team's answer to each case costs."""
        machine = machine_cost(self.samples, np.where(trial.positive, 1.0, -1.0))
        return np.where(trial.deferred, self.samples.loss, machine)


def _name_of(team: Any) -> tuple[type, str]:
    """The same for estimators with the same parameters; a long `repr` leaves some of them out."""
    return type(team), str(team.get_params())


@dataclass(frozen=True)
class _Part:
    """A team without one fold: margins and scores of the fold, and of its own samples who was deferred."""

    margin: Array
    score: Array
    rate: float
    own_margin: Array
    deferred: Bools


def _places(score: Array, rate: float) -> Array:
    """Policies of folds differ in scale: what can be compared is the place in the fold."""
    if rate in (0.0, 1.0):
        # Nobody or everybody: these must not compete with the scores of the other folds.
        return np.full(len(score), -np.inf if rate == 0.0 else np.inf)
    return np.asarray(rankdata(score) / len(score))


def _fit_and_ask(
    team: Any, train: Any, held_out: Any, labels: NDArray[Any], human: dict[str, Any], rows: Index
) -> _Part:
    if len(np.unique(labels[rows])) < 2:
        # Where one class alone is left the machine answers with it, and there is nobody to defer.
        answer = 1.0 if labels[rows][0] == np.unique(labels)[-1] else -1.0
        n, nobody = held_out.shape[0], np.zeros(len(rows), dtype=bool)
        return _Part(np.full(n, answer), np.zeros(n), 0.0, np.full(len(rows), answer), nobody)
    part = {name: value[rows] for name, value in human.items()}
    with warnings.catch_warnings():
        # What a part of the samples lacks is no news; `fit` on all of them says what is wrong.
        warnings.simplefilter("ignore", UserWarning)
        team = clone(team).fit(train, labels[rows], **part)  # folds may share memory, as threads do
    return _Part(
        team.decision_function(held_out),
        team.deferral_score(held_out),
        float(team.deferral_rate_),
        team.decision_function(train),
        getattr(team, "deferred_", np.zeros(len(rows), dtype=bool)),
    )
