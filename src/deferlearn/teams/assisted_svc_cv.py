"""`AssistedSVCCV`: the team that does best together on cases not seen."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn._utils.progress import Progress, in_words, sometimes, watched_by
from deferlearn._utils.types import Array, Bools
from deferlearn.humans.answers import as_array
from deferlearn.humans.human import warn_if_reordered
from deferlearn.metrics import find_metric
from deferlearn.teams.candidates import DEFAULT_POLICIES, resolve_team
from deferlearn.teams.context import FoldContext
from deferlearn.teams.decider import Decider
from deferlearn.teams.folds import stratified_folds
from deferlearn.teams.machine import MachineSettings
from deferlearn.teams.machines import check_kernel, kernel_name, machines_of
from deferlearn.teams.parameters import (
    check_cost,
    check_folds,
    check_verbose,
    count_of,
    draw_seed,
    share_of,
)
from deferlearn.teams.search import WINNER, Search
from deferlearn.teams.team import Team


@dataclass(eq=False, repr=False)
class AssistedSVCCV(Team):
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
        Values of alpha to try; a number means that many values from 0.001 to 10, evenly spaced on a
        logarithmic scale.
    policies : sequence, default=DEFAULT_POLICIES
        Ways to choose the deferred cases, from simple to elaborate; of those that nearly tie the first is
        chosen.

        - "uncertainty": `UncertaintyTriage`, the cases of which the machine is least sure;
        - "advantage": `AdvantageTriage`, those where the human is expected to lose less, by the
          machine's answer and how sure it is; "advantage_by_region" with a forest for where the
          human errs, "advantage_forest" with forests for both;
        - "predicted_error": `PredictedErrorTriage`;
        - "automation": `FullAutomation`, no case;
        - "margin", "mlp", "forest" (on x and the margin), any classifier or `DeferralPolicy`: an
          `AssistedSVC` with that policy, whose machine is trained without the deferred samples;
        - any other team, not fitted, with the methods of `AssistedSVC`. Its alpha, kernel, budget,
          costs, folds and random_state are set here, where it has such parameters.

        Human time is not spent on a tie: where nothing does better than "automation", that is chosen. The
        default has it last, so that it is chosen only there, and leaves out "predicted_error" and "mlp",
        which are slow.
    kernels : sequence of str or dict, default=("linear",)
        Kernels to try: a name, or a dict such as ``{"kernel": "rbf", "gamma": 0.1}``.
    scoring : str, callable or None, default=None
        None is the mean cost of the team's answers: the class weight where the answer is wrong, and
        `deferral_cost` for each deferred case; without these two, the error. Otherwise a metric of
        `deferlearn.metrics`, by name or as a function; metrics need `human_labels`, and are computed
        fold by fold.
    cv : int, splitter or iterable of (train, test), default=5
        Folds; a number of them is stratified, and keeps groups whole if `fit` is given groups. Each
        sample is held out once, and judged by teams fitted on all samples outside its fold.
    n_refined : int, default=2
        The slower policies (all but "uncertainty", "advantage" and "automation") are tried with this
        many machines: those that did best with the quick ones.
    n_standard_errors : float, default=1.0
        How many standard errors of the difference from the best are a near-tie.
    fit_intercept : bool, default=True
        Whether machines have an offset b.
    class_weight : dict, "balanced" or None, default=None
        The cost of an error on each class, whoever errs.
    deferral_cost : float, default=0.0
        The cost of human time per deferred case, in units of one error.
    n_jobs : int or None, default=None
        The number of fits to run at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the policies, and of the coin that decides between equal scores.
    verbose : int, default=0
        Whether to print a line per candidate, and from time to time how long the rest may take.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, fitted on all samples: an `AssistedSVC`, a triage, or one of your own.
    best_params_ : dict
        Its "policy", as given, "alpha", and the kernel's parameters.
    best_score_ : float
        Its mean score on held-out cases; larger is better. As the best of many it is a little optimistic:
        `deferlearn.assistance_report` measures the whole procedure.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarray
        As in `sklearn.model_selection.GridSearchCV`, one row per candidate that was tried:
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

    budget: Any = 0.2
    _: KW_ONLY
    alphas: Any = 9
    policies: Sequence[Any] = DEFAULT_POLICIES
    kernels: Sequence[Any] = ("linear",)
    scoring: Any = None
    cv: Any = 5
    n_refined: Any = 2
    n_standard_errors: float = 1.0
    fit_intercept: bool = True
    class_weight: Any = None
    deferral_cost: float = 0.0
    n_jobs: int | None = None
    random_state: Any = None
    verbose: Any = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # `predict` also answers the cases that the machine was never meant to take.
        tags.classifier_tags.poor_score = True
        tags.input_tags.pairwise = self._any_precomputed()
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

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
    ) -> Self:
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
            Samples of one group, such as one patient's, stay in one fold.

        Returns
        -------
        self
            The fitted estimator.
        """
        self.__dict__.pop(
            "best_estimator_", None
        )  # a fit that fails leaves no half of an older one
        search = self.open_search(
            X,
            y,
            human_loss=human_loss,
            human_scores=human_scores,
            human_labels=human_labels,
            groups=groups,
        )
        show = sometimes(lambda *now: self._say(in_words(*now))) if self.verbose else None
        with watched_by(show), Progress(search.units()) as progress:
            outcome = search.run(share_of(self.budget, len(search.context.samples)), progress)
            progress.begin(WINNER)
            winner = search.fit(outcome, self.budget)
            progress.done()
        self.cv_results_ = outcome.cv_results
        self.best_index_ = outcome.place
        self.best_params_ = outcome.params
        self.best_score_ = outcome.score
        self.best_estimator_ = winner
        return self

    def open_search(
        self, X: Any, y: ArrayLike, *, groups: ArrayLike | None = None, **human: Any
    ) -> Search:
        """Everything checked, and the samples in folds: a search that can be run at several budgets.

        Parameters
        ----------
        X, y, groups, **human
            As in `fit`.

        Returns
        -------
        search : deferlearn.teams.search.Search
            Machines and models that do not depend on the budget are fitted once.
        """
        self.check_parameters()
        warn_if_reordered(X, stacklevel=3, **human)
        samples = self._read_samples(X, y, human)
        samples.human.warn(stacklevel=3)
        count_of(self.budget, len(samples))
        self._note(samples)
        seed = draw_seed(self.random_state)
        groups = None if groups is None else as_array(groups)
        folds = stratified_folds(self.cv, samples.X, samples.labels, groups, seed)
        machines = self._machines(samples.X, samples.y)
        return Search(
            # The seed that a team with this random_state draws: then the winner's models are the same.
            context=FoldContext(samples, folds, draw_seed(seed), self.n_jobs, machines=machines),
            machines=machines,
            policies=self.policies,
            common={
                "class_weight": self.class_weight,
                "deferral_cost": self.deferral_cost,
                "random_state": seed,
                "n_jobs": self.n_jobs,
            },
            cv=self.cv,
            groups=groups,
            scoring=self.scoring,
            n_refined=self.n_refined,
            n_standard_errors=self.n_standard_errors,
            report=self._say,
        )

    def _machines(self, X: Any, y: Array) -> list[MachineSettings]:
        return machines_of(self.alphas, self.kernels, self.fit_intercept, X, y)

    def _class_weight(self) -> Any:
        return self.class_weight

    def _machine_settings(self, X: Any, y: Array) -> MachineSettings:
        return self._machines(X, y)[0]

    # -- parameters ---------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        check_folds(self.cv, self.n_jobs)
        if self.cv is None:
            raise ValueError("cv=None: candidates are compared on held-out folds, so give folds.")
        check_cost(self.deferral_cost)
        if self.scoring is not None:
            try:
                find_metric(self.scoring)
            except ValueError as error:
                raise ValueError(f"scoring={self.scoring!r}: {error}; or None.") from None
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
        check_verbose(self.verbose)

    def _all_linear(self) -> bool:
        return all(kernel_name(kernel) == "linear" for kernel in self.kernels)

    def _any_precomputed(self) -> bool:
        return any(kernel_name(kernel) == "precomputed" for kernel in self.kernels)

    def _takes_sparse(self) -> bool:
        return self._all_linear()

    def _say(self, text: str) -> None:
        if self.verbose:
            print(f"[AssistedSVCCV] {text}")

    # -- the winner knows ---------------------------------------------------------------------

    @property
    def deferral_threshold_(self) -> float:
        """`defer` defers above it."""
        check_is_fitted(self)
        return float(self.best_estimator_.deferral_threshold_)

    @property
    def deferral_rate_(self) -> float:
        """The expected share of new cases that `defer` defers."""
        check_is_fitted(self)
        return float(self.best_estimator_.deferral_rate_)

    def decider(self) -> Decider | None:
        """What the winner needs to decide, as arrays; see `Team.decider`."""
        check_is_fitted(self)
        winner = self.best_estimator_
        return winner.decider() if isinstance(winner, Team) else None

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
