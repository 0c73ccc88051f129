"""`AssistedSVCCV`: the team that does best together on cases not seen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn.humans import majority_labels
from deferlearn.humans.answers import as_array, find_missing
from deferlearn.humans.human import binary_labels, warn_if_reordered
from deferlearn.metrics import evaluate_team
from deferlearn.metrics.evaluation import find_metric
from deferlearn.objective import NumericalError
from deferlearn.teams.advantage import answer_losses, costs_of
from deferlearn.teams.automation import FullAutomation
from deferlearn.teams.candidates import DEFAULT_POLICIES, equip, is_quick, resolve_team
from deferlearn.teams.choice import by_group, choose
from deferlearn.teams.crossfit import Samples
from deferlearn.teams.folds import folds_of, splits_of
from deferlearn.teams.machine import MachineSettings
from deferlearn.teams.machines import (
    check_kernel,
    kernel_name,
    machines_of,
    parameters_of,
)
from deferlearn.teams.parameters import (
    check_cost,
    check_folds,
    count_of,
    prices_of,
    share_of,
)
from deferlearn.teams.team import TeamMixin
from deferlearn.teams.trials import Trial, Trials

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Index = NDArray[np.int64]

# In the place of a policy: uncertainty triage, where it only finds the machines for the others.
PILOT = -1


class AssistedSVCCV(TeamMixin, ClassifierMixin, BaseEstimator):
    """The machine and the way to share its work that do best together, by cross-validation.

    The regularisation that suits a machine on its own need not suit one that hands over its hardest
    cases, and whether it pays to train the machine without the cases that humans take depends on the
    data. So all of it is chosen by what the *team* gets wrong on held-out cases: alpha, kernel, the
    policy, and whether anything is deferred in training at all. The winner is fitted on all samples.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred, as in `AssistedSVC`.
    alphas : int or array-like of float, default=9
        Regularisations to try; a number is so many from 0.001 to 10, evenly on a logarithmic scale.
    policies : sequence, default=DEFAULT_POLICIES
        Who is deferred, from simple to elaborate; of those that nearly tie the first is taken.

        - "uncertainty": `UncertaintyTriage`, the cases of which the machine is least sure;
        - "advantage": `AdvantageTriage`, those where the human is expected to lose less, by the
          machine's answer and how sure it is; "advantage_by_region" with a forest for where the
          human errs, "advantage_forest" with forests for both;
        - "predicted_error": `PredictedErrorTriage`;
        - "automation": `FullAutomation`, nobody;
        - "margin", "mlp", "forest" (on x and the margin), any classifier or `DeferralPolicy`: an
          `AssistedSVC` with that policy, whose machine is trained without the deferred samples;
        - any other team, not fitted, with the methods of `AssistedSVC`. Its alpha, kernel, budget,
          prices, folds and random_state are set here, where it has such parameters.

        Human time is not spent on a tie: where nothing does better than "automation", it is taken. The
        default has it last, so that it is taken only there, and leaves out "predicted_error" and "mlp",
        which are slow.
    kernels : sequence of str or dict, default=("linear",)
        Kernels to try: a name, or a dict such as ``{"kernel": "rbf", "gamma": 0.1}``.
    scoring : str, callable or None, default=None
        None is the mean cost of the team's answers: the price of an error (`class_weight`) where the
        answer is wrong, and half of `deferral_cost` for each case deferred; without prices, the
        error. Otherwise a metric of `deferlearn.metrics`, by name or as a function; those need
        `human_labels`, and look at the folds one by one.
    cv : int, splitter or iterable of (train, test), default=5
        Folds; a number of them is stratified, and keeps groups whole if `fit` is given groups. Each
        sample is held out once, by teams fitted on all that are not in its fold.
    n_refined : int, default=2
        The slower policies (all but "uncertainty", "advantage" and "automation") are tried with so
        many machines: those that did best with the quick ones.
    n_standard_errors : float, default=1.0
        How many standard errors of the difference from the best are a near-tie.
    fit_intercept : bool, default=True
        Whether machines have an offset b.
    class_weight : dict, "balanced" or None, default=None
        The price of an error on each class, whoever errs.
    deferral_cost : float, default=0.0
        Added to every human loss, of which a wrong answer is 2: the price of human time.
    n_jobs : int or None, default=None
        How many fits at a time.
    random_state : int, RandomState or None, default=None
        Of folds, policies and coins.
    verbose : int, default=0
        Whether to print a line a candidate.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, fitted on all samples: an `AssistedSVC`, a triage, or one of your own.
    best_params_ : dict
        Its "policy", as given, "alpha", and the kernel's parameters.
    best_score_ : float
        Its mean score on held-out cases; larger is better. It is the best of many and so a little too
        good: `deferlearn.assistance_report` measures the whole procedure.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarray
        As in `sklearn.model_selection.GridSearchCV`, a row for each candidate that was tried:
        "params", "param_policy", "param_alpha", "param_kernel", "split0_test_score" and so on,
        "mean_test_score", "std_test_score", "rank_test_score"; and "deferral_rate".
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    Examples
    --------
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.humans import UniformHuman, labels_from_scores
    >>> from deferlearn.teams import AssistedSVCCV
    >>> X, y = make_linear(120, random_state=0)  # no line separates these
    >>> doctor = labels_from_scores(UniformHuman(0.1).scores(y, random_state=0))
    >>> team = AssistedSVCCV(0.3, alphas=[0.1, 1.0], policies=["uncertainty", "forest"], random_state=0)
    >>> team = team.fit(X, y, human_labels=doctor)
    >>> team.best_params_["policy"]
    'forest'
    >>> team.defer(X[:2]).shape
    (2,)
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "human_loss": True,
        "human_scores": True,
        "human_labels": True,
        "groups": True,
    }

    def __init__(
        self,
        budget: Any = 0.2,
        alphas: Any = 9,
        policies: Sequence[Any] = DEFAULT_POLICIES,
        kernels: Sequence[Any] = ("linear",),
        scoring: Any = None,
        cv: Any = 5,
        n_refined: Any = 2,
        n_standard_errors: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        deferral_cost: float = 0.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.budget = budget
        self.alphas = alphas
        self.policies = policies
        self.kernels = kernels
        self.scoring = scoring
        self.cv = cv
        self.n_refined = n_refined
        self.n_standard_errors = n_standard_errors
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.deferral_cost = deferral_cost
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # `predict` also answers the cases that the machine was never meant to take.
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = self._all_linear()
        tags.input_tags.pairwise = self._any_precomputed()
        return tags

    # -- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        human_loss: ArrayLike | None = None,
        human_scores: ArrayLike | None = None,
        human_labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> AssistedSVCCV:
        """Try every candidate on held-out folds, and fit the winner on all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; the Gram matrix if the kernel is "precomputed".
        y : array-like of shape (n_samples,)
            Two classes, of any type.
        human_loss, human_scores, human_labels : array-like, default=None
            The human, at most one of them, as in `AssistedSVC.fit`.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group, such as a patient's, stay in one fold.

        Returns
        -------
        self
            The fitted estimator.
        """
        warn_if_reordered(
            X, human_loss=human_loss, human_scores=human_scores, human_labels=human_labels
        )
        human = {
            "human_loss": human_loss,
            "human_scores": human_scores,
            "human_labels": human_labels,
        }
        trials, grid = self._prepare(X, y, human, groups)
        return self._choose_and_fit(trials, grid)

    def _prepare(
        self, X: Any, y: Any, human: dict[str, Any], groups: Any
    ) -> tuple[Trials, list[MachineSettings]]:
        """Everything checked: the samples in folds, and the machines to try."""
        self._check_parameters()
        X, labels = validate_data(
            self, X, y, dtype=np.float64, accept_sparse="csr" if self._all_linear() else False
        )
        n = len(labels)
        count_of(self.budget, n)
        self.classes_, signs = binary_labels(labels)
        told = {name: as_array(value) for name, value in human.items() if value is not None}
        loss = answer_losses(signs, self.classes_, **human)
        grid = machines_of(self.alphas, self.kernels, self.fit_intercept, X, signs)
        prices = prices_of(self.class_weight, labels, signs, self.classes_)
        samples = Samples(X, signs, prices, np.zeros(n), grid[0])
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        groups = None if groups is None else as_array(groups)
        trials = Trials(
            samples=costs_of(samples, loss, self.deferral_cost),
            human=told,
            labels=labels,
            groups=groups,
            folds=folds_of(self.cv, X, labels, groups, seed),
            seed=seed,
            common={
                "class_weight": self.class_weight,
                "deferral_cost": self.deferral_cost,
                "random_state": seed,
            },
            n_jobs=self.n_jobs,
        )
        return trials, grid

    def _choose_and_fit(self, trials: Trials, grid: list[MachineSettings]) -> AssistedSVCCV:
        """Try the candidates, and fit the winner on all samples, with the same folds."""
        n = len(trials.labels)
        settings, team = self._search(trials, grid, share_of(self.budget, n))
        ready = equip(
            team,
            settings,
            {
                **trials.common,
                "budget": self.budget,
                "cv": splits_of(trials.folds, n),
                "n_jobs": self.n_jobs,
            },
        )
        with warnings.catch_warnings():
            for said in (".*no answer was given for", ".*equals y everywhere"):  # by `_prepare`
                warnings.filterwarnings("ignore", said, UserWarning)
            winner = ready.fit(trials.samples.X, trials.labels, **trials.human)
        if "cv" in winner.get_params():
            winner.set_params(
                cv=self.cv
            )  # the folds' rows mean nothing to a clone on other samples
        self.best_estimator_ = winner
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def _search(
        self, trials: Trials, grid: list[MachineSettings], budget: float
    ) -> tuple[MachineSettings, Any]:
        """Try the quick teams with every machine, the others with the best of these."""
        teams = [resolve_team(policy) for policy in self.policies]
        quick = [i for i, team in enumerate(teams) if is_quick(team)]
        score = self._scorer(trials)
        tried: dict[tuple[int, int], tuple[Trial, Array, Array]] = {}
        failures: list[NumericalError] = []

        def attempt(team: Any, place: int, machine: int) -> float:
            """The mean score; -inf where the machine cannot be solved, which must not end the search."""
            try:
                trial = trials.run(team, grid[machine], budget)
            except NumericalError as error:
                failures.append(error)
                what = self._what(place, grid[machine])
                warnings.warn(f"Left out: {what}. {error}", FitFailedWarning, stacklevel=5)
                return -np.inf
            by_fold, by_part = score(trial)
            mean = float(by_part.mean())
            if place >= 0:
                tried[place, machine] = (trial, by_fold, by_part)
                self._say(f"{self._what(place, grid[machine])}: {mean:.4f}")
            return mean

        pilots = {place: teams[place] for place in quick} or {PILOT: resolve_team("uncertainty")}
        means = [
            [attempt(team, place, machine) for machine in range(len(grid))]
            for place, team in pilots.items()
        ]
        best = np.max(means, axis=0)
        refined = np.sort(np.argsort(-best, kind="stable")[: self.n_refined])
        refined = refined[np.isfinite(best[refined])]
        for place in range(len(teams)):
            for machine in [] if place in quick else refined.tolist():
                attempt(teams[place], place, machine)
        if not tried:
            raise failures[0]
        unassisted = [isinstance(team, FullAutomation) for team in teams]
        place, machine = self._conclude(tried, grid, unassisted)
        return grid[machine], teams[place]

    def _scorer(self, trials: Trials) -> Any:
        """A trial's score in each fold, and in each independent part of the data.

        The mean over the parts is that of all cases; folds can differ in size.
        """
        if self.scoring is None:

            def by_cost(trial: Trial) -> tuple[Array, Array]:
                gain = -trials.costs(trial)
                folds = np.array([gain[fold].mean() for fold in trials.folds])
                return folds, by_group(gain, trials.groups)

            return by_cost
        function, larger = self._metric()
        answers = _labels_of(trials.human, trials.samples.y, self.classes_)
        sign = 1.0 if larger else -1.0

        def value_in(fold: Index, said: NDArray[Any], deferred: Bools) -> float:
            truth, part = trials.labels[fold], deferred[fold]
            value = evaluate_team(function, truth, said[fold], lambda: part, self.classes_)
            if not np.isfinite(value):
                raise ValueError(
                    f"scoring={self.scoring!r} gives {value} for a fold of {len(fold)} cases: such "
                    "candidates cannot be compared."
                )
            return value

        def by_metric(trial: Trial) -> tuple[Array, Array]:
            said = self.classes_[trial.positive.astype(np.int64)]
            said = np.where(trial.deferred, answers, said)
            folds = np.array([sign * value_in(fold, said, trial.deferred) for fold in trials.folds])
            return folds, folds

        return by_metric

    def _conclude(
        self, tried: dict[Any, Any], grid: list[MachineSettings], unassisted: list[bool]
    ) -> tuple[int, int]:
        """The table of all candidates, and the choice."""
        # Of candidates that tie exactly the larger alpha comes first: the simpler machine.
        keys = sorted(tried, key=lambda key: (key[0], -grid[key[1]].alpha, key[1]))
        scores = np.array([tried[key][1] for key in keys])
        parts = [tried[key][2] for key in keys]
        mean = np.array([part.mean() for part in parts])
        params = [
            {"policy": self.policies[place], **parameters_of(grid[machine])}
            for place, machine in keys
        ]
        self.cv_results_ = {
            "params": params,
            "param_policy": _objects([p["policy"] for p in params]),
            "param_alpha": np.array([p["alpha"] for p in params]),
            "param_kernel": _objects([p["kernel"] for p in params]),
            **{f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": rankdata(-np.round(mean, 12), method="min").astype(np.int32),
            "deferral_rate": np.array([tried[key][0].deferred.mean() for key in keys]),
        }
        self.best_index_ = choose(
            mean,
            np.array([place for place, _ in keys]),
            lambda a, b: parts[a] - parts[b],
            float(self.n_standard_errors),
            np.array([unassisted[place] for place, _ in keys]),
        )
        self.best_params_ = params[self.best_index_]
        self.best_score_ = float(mean[self.best_index_])
        place, machine = keys[self.best_index_]
        return place, machine

    # -- parameters ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_folds(self.cv, self.n_jobs)
        if self.cv is None:
            raise ValueError("cv=None: candidates are compared on held-out folds, so give folds.")
        check_cost(self.deferral_cost)
        if self.scoring is not None:
            self._metric()
        if not is_whole(self.n_refined) or self.n_refined < 1:
            raise ValueError(
                f"n_refined={plain(self.n_refined)!r} must be a whole number, 1 or larger."
            )
        if not is_number(self.n_standard_errors) or self.n_standard_errors < 0:
            raise ValueError(
                f"n_standard_errors={plain(self.n_standard_errors)!r} must be a number, 0 or larger."
            )
        for name in ("policies", "kernels"):
            given = getattr(self, name)
            ordered = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
            if not ordered or not len(given):
                raise ValueError(f"{name}={given!r} must be a list with at least one entry.")
        for policy in self.policies:
            resolve_team(policy)
        if (
            self._any_precomputed()
            and len({str(kernel_name(kernel)) for kernel in self.kernels}) > 1
        ):
            raise ValueError(
                f"kernels={self.kernels!r}: X is a Gram matrix for 'precomputed' and holds features for "
                "all others, so they cannot be mixed."
            )
        for kernel in self.kernels:
            check_kernel(kernel)
        if not isinstance(self.verbose, Integral | np.bool_) or self.verbose < 0:
            raise ValueError(
                f"verbose={plain(self.verbose)!r} must be a whole number, 0 for silence."
            )

    def _metric(self) -> tuple[Any, bool]:
        try:
            return find_metric(self.scoring)
        except ValueError as error:
            raise ValueError(f"scoring={self.scoring!r}: {error}; or None.") from None

    def _all_linear(self) -> bool:
        return all(kernel_name(kernel) == "linear" for kernel in self.kernels)

    def _any_precomputed(self) -> bool:
        return any(kernel_name(kernel) == "precomputed" for kernel in self.kernels)

    def _what(self, place: int, settings: MachineSettings) -> str:
        policy = "every policy" if place == PILOT else self.policies[place]
        return f"{policy}, kernel {settings.kernel}, alpha {settings.alpha:g}"

    def _say(self, text: str) -> None:
        if self.verbose:
            print(f"[AssistedSVCCV] {text}")

    # -- what the mixin asks for: the winner knows --------------------------------------------

    @property
    def deferral_threshold_(self) -> float:
        """`defer` defers above it."""
        check_is_fitted(self)
        return float(self.best_estimator_.deferral_threshold_)

    @property
    def deferral_rate_(self) -> float:
        """The rate that `defer` keeps to."""
        check_is_fitted(self)
        return float(self.best_estimator_.deferral_rate_)

    def _takes_sparse(self) -> bool:
        return self._all_linear()

    def _decide(self, X: Any) -> Array:
        decision: Array = self.best_estimator_.decision_function(X)
        return decision

    def _rank(self, X: Any) -> Array:
        score: Array = self.best_estimator_.deferral_score(X)
        return score

    def defer(self, X: Any) -> Bools:
        """Whether a human should take each case, one at a time.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
            By the rule of the winner; see `AssistedSVC.defer`.
        """
        X = self._check_new(X)
        deferred: Bools = self.best_estimator_.defer(X)
        return deferred

    def defer_top(self, X: Any, budget: float | int | None = None) -> Bools:
        """The cases of this batch that belong most with a human, at most as many as the budget says.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The batch.
        budget : float, int or None, default=None
            A fraction of the batch or a number of cases; None is the estimator's own budget.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
        """
        X = self._check_new(X)
        deferred: Bools = self.best_estimator_.defer_top(X, budget)
        return deferred


def _objects(values: list[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _labels_of(human: dict[str, Any], signs: Array, classes: NDArray[Any]) -> NDArray[Any]:
    """The human's answer to each case, for metrics that need one."""
    if not human:
        return classes[(signs > 0).astype(np.int64)]
    if "human_labels" not in human:
        raise ValueError(
            f"scoring needs the human's answers, but {next(iter(human))} was given: give human_labels, "
            "or leave scoring=None, which looks at losses."
        )
    answers = human["human_labels"]
    missing = find_missing(answers if answers.ndim == 2 else answers[:, None]).all(axis=1)
    if missing.any():
        raise ValueError(
            f"scoring needs an answer to every case, but {int(missing.sum())} have none: leave them "
            "out, or leave scoring=None, which gives them the average loss of their class."
        )
    return majority_labels(answers) if answers.ndim == 2 else answers
