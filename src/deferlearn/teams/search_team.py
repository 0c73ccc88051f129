"""What searches have in common: candidates are tried on held-out folds, and the winner is fitted."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn._utils.progress import Progress, in_words, sometimes, watched_by
from deferlearn._utils.types import Array, Bools
from deferlearn.humans.answers import as_array
from deferlearn.humans.coding import Codes
from deferlearn.humans.human import warn_if_reordered
from deferlearn.metrics import find_metric
from deferlearn.teams.candidates import resolve_team
from deferlearn.teams.context import FoldContext
from deferlearn.teams.decider import Decider
from deferlearn.teams.folds import stratified_folds
from deferlearn.teams.parameters import (
    check_cost,
    check_folds,
    check_verbose,
    count_of,
    draw_seed,
    share_of,
)
from deferlearn.teams.samples import Samples
from deferlearn.teams.search import Search
from deferlearn.teams.team import Team
from deferlearn.teams.trials import WINNER

# On more samples than this, counted once per machine with several classes, policies that train machines
# without the deferred samples would take longer than all the others together.
MOST_FOR_OWN_MACHINES = 5000


def _winner_has(name: str) -> Callable[[Any], bool]:
    """Whether the winner has a method."""

    def check(self: Any) -> bool:
        check_is_fitted(self)
        return hasattr(self.best_estimator_, name)

    return check


@dataclass(eq=False, repr=False)
class SearchTeam(Team):
    """A team that is chosen among candidates by what the team gets wrong on held-out samples.

    A class says by `_machines` which machines to try, and by `_policies` with which policies.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "human_loss": True,
        "human_scores": True,
        "human_labels": True,
        "machine_scores": True,
        "groups": True,
    }

    budget: Any = 0.2
    _: KW_ONLY
    policies: Any = "auto"
    scoring: Any = None
    cv: Any = 5
    n_refined: Any = 2
    n_standard_errors: float = 1.0
    class_weight: Any = None
    classes: Any = "auto"
    cost_matrix: Any = None
    deferral_cost: float = 0.0
    n_jobs: int | None = None
    random_state: Any = None
    verbose: Any = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # `predict` also answers the cases that the machine was never meant to take.
        tags.classifier_tags.poor_score = True
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
        machine_scores: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Try every candidate on held-out folds, and fit the winner on all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; the Gram matrix if the kernel is "precomputed".
        y : array-like of shape (n_samples,)
            Labels of two or more classes, of any type.
        human_loss, human_scores, human_labels : array-like, default=None
            The human, at most one of them, as in `AssistedSVC.fit`.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Scores of a machine that cannot be retrained, as in `AdvantageTriage.fit`: then only policies
            are searched. `AssistedSVCCV` takes none.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group, such as one patient's, stay in one fold.
        sample_weight : array-like of shape (n_samples,), default=None
            What an error on each sample costs, whoever errs.

        Returns
        -------
        self
            The fitted estimator.
        """
        # A fit that fails leaves no half of an older one.
        for name in ("best_estimator_", "teams_"):
            self.__dict__.pop(name, None)
        search = self.open_search(
            X,
            y,
            human_loss=human_loss,
            human_scores=human_scores,
            human_labels=human_labels,
            machine_scores=machine_scores,
            groups=groups,
            sample_weight=sample_weight,
        )
        budgets = self._budgets()
        units = {kind: (len(budgets) * n, cost) for kind, (n, cost) in search.units().items()}
        show = sometimes(lambda *now: self._say(in_words(*now))) if self.verbose else None
        outcomes, winners = [], []
        with watched_by(show), Progress(units) as progress:
            for budget in budgets:
                share = share_of(budget, len(search.context.samples))
                outcomes.append(search.run(share, progress))
                progress.begin(WINNER)
                winners.append(search.fit(outcomes[-1], budget))
                progress.done()
        outcome = outcomes[0]
        self.cv_results_ = outcome.cv_results
        self.best_index_ = outcome.place
        self.best_params_ = outcome.params
        self.best_score_ = outcome.score
        self.best_estimator_ = winners[0]
        if self._has_several_budgets():
            self.teams_ = dict(zip(budgets, winners, strict=True))
        return self

    def _has_several_budgets(self) -> bool:
        return isinstance(self.budget, Sequence | np.ndarray) and not isinstance(self.budget, str)

    def _budgets(self) -> list[float | int]:
        return list(self.budget) if self._has_several_budgets() else [self.budget]

    def open_search(
        self,
        X: Any,
        y: ArrayLike,
        *,
        machine_scores: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **human: Any,
    ) -> Search:
        """Everything checked, and the samples in folds: a search that can be run at several budgets.

        Parameters
        ----------
        X, y, machine_scores, groups, sample_weight, **human
            As in `fit`.

        Returns
        -------
        search : deferlearn.teams.search.Search
            Machines and models that do not depend on the budget are fitted once.
        """
        self._note_scores(machine_scores)
        self.check_parameters()
        warn_if_reordered(X, stacklevel=3, **human)
        samples = self.read_samples(X, y, human, machine_scores, sample_weight)
        samples.human.warn(stacklevel=3)
        for budget in self._budgets():
            count_of(budget, len(samples))
        self._note(samples)
        seed = draw_seed(self.random_state)
        groups = None if groups is None else as_array(groups)
        signs = samples.coding.signs(samples.codes)[:, 0]
        machines = self._machines(samples.X, signs, samples.coding.several)
        folds = stratified_folds(self.cv, samples.X, samples.labels, groups, seed)
        return Search(
            # The seed that a team with this random_state draws: then the winner's models are the same.
            context=FoldContext(samples, folds, draw_seed(seed), self.n_jobs, machines=machines),
            machines=machines,
            policies=self._policies_for(samples),
            common={
                "class_weight": self.class_weight,
                "classes": self.classes,
                "cost_matrix": self.cost_matrix,
                "deferral_cost": self.deferral_cost,
                "random_state": seed,
                "n_jobs": self.n_jobs,
            },
            cv=self.cv,
            groups=groups,
            scoring=self.scoring,
            n_refined=self.n_refined,
            n_standard_errors=self.n_standard_errors,
            given_scores=self._given_scores,
            report=self._say,
            **self._more(samples, groups, seed),
        )

    def _machines(self, X: Any, y: Array, several: bool) -> list[Any]:
        """The settings of the machines to try; ``several`` says whether there are more than two classes."""
        raise NotImplementedError

    def _policies(self) -> Sequence[Any]:
        """The policies to try, from simple to elaborate."""
        raise NotImplementedError

    def _policies_for(self, samples: Samples) -> Sequence[Any]:
        """The policies to try: on very many samples, without costly ones that were not asked for."""
        policies = self._policies()
        n = len(samples) * samples.coding.n_machines
        if not isinstance(self.policies, str) or n <= MOST_FOR_OWN_MACHINES:
            return policies
        tried = [policy for policy in policies if resolve_team(policy).shares_machines]
        left_out = ", ".join(policy for policy in policies if policy not in tried)
        self._say(f"{len(samples):,} samples: without {left_out}, which would take long")
        return tried

    def _more(self, samples: Samples, groups: Any, seed: int) -> dict[str, Any]:
        """Further attributes of the search."""
        return {}

    def _class_weight(self) -> Any:
        return self.class_weight

    def _machine_settings(self, X: Any, y: Array) -> Any:
        return self._machines(X, y, False)[0]

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
        if self._has_several_budgets() and len(self.budget) == 0:
            raise ValueError(f"budget={self.budget!r} is empty; give a number, or several of them.")
        budgets = self._budgets()
        if len(set(budgets)) < len(budgets):
            raise ValueError(f"budget={self.budget!r} holds a number twice; give each once.")
        check_verbose(self.verbose)
        for policy in self._policies():
            resolve_team(policy)

    def _say(self, text: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {text}")

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

    def _for_winner(self, X: Any, machine_scores: Any) -> tuple[Any, dict[str, Any]]:
        """Checked cases, and the scores if there are any, as the winner takes them."""
        X = self._check_new(X, machine_scores)
        if machine_scores is None:
            return X, {}
        return X[:, : -self._n_score_columns()], {"machine_scores": machine_scores}

    def decision_function(self, X: Any, *, machine_scores: Any = None) -> Array:
        """The machine's decision value for every row; see `Team.decision_function`."""
        X, scores = self._for_winner(X, machine_scores)
        decision: Array = self.best_estimator_.decision_function(X, **scores)
        return decision

    def predict(self, X: Any, *, machine_scores: Any = None) -> NDArray[Any]:
        """The machine's answer for every row, deferred or not; see `Team.predict`."""
        check_is_fitted(self)
        winner = self.best_estimator_
        if isinstance(winner, Team) or not hasattr(winner, "predict"):
            return super().predict(X, machine_scores=machine_scores)
        X, scores = self._for_winner(X, machine_scores)
        labels: NDArray[Any] = winner.predict(X, **scores)
        return labels

    def _answers(self, decision: Array) -> Codes:
        winner = self.best_estimator_
        return winner._answers(decision) if isinstance(winner, Team) else super()._answers(decision)

    @available_if(_winner_has("predict_proba"))
    def predict_proba(self, X: Any, *, machine_scores: Any = None) -> Array:
        """The probability of each class for every row; see `Team.predict_proba`."""
        X, scores = self._for_winner(X, machine_scores)
        probabilities: Array = self.best_estimator_.predict_proba(X, **scores)
        return probabilities

    def held_out_probabilities(self) -> Array:
        """The same of the winner; see `Team.held_out_probabilities`."""
        check_is_fitted(self)
        probabilities: Array = self.best_estimator_.held_out_probabilities()
        return probabilities

    def deferral_score(self, X: Any, *, machine_scores: Any = None) -> Array:
        """How much each case belongs with a human; see `Team.deferral_score`."""
        X, scores = self._for_winner(X, machine_scores)
        score: Array = self.best_estimator_.deferral_score(X, **scores)
        return score

    def defer(self, X: Any, *, machine_scores: Any = None) -> Bools:
        """Whether a human should take each case, by the rule of the winner; see `Team.defer`."""
        X, scores = self._for_winner(X, machine_scores)
        deferred: Bools = self.best_estimator_.defer(X, **scores)
        return deferred

    def defer_top(
        self, X: Any, budget: float | int | None = None, *, machine_scores: Any = None
    ) -> Bools:
        """The cases of this batch that belong most with a human; see `Team.defer_top`."""
        X, scores = self._for_winner(X, machine_scores)
        deferred: Bools = self.best_estimator_.defer_top(X, budget, **scores)
        return deferred

    @available_if(_winner_has("expected_errors"))
    def expected_errors(self, X: Any, *, machine_scores: Any = None) -> tuple[Array, Array]:
        """How likely machine and human are to err, if the winner has learned it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores, for a team that was fitted with such scores.

        Returns
        -------
        machine, human : ndarray of shape (n_samples,)
            As in `AdvantageTriage.expected_errors`.
        """
        X, scores = self._for_winner(X, machine_scores)
        expected: tuple[Array, Array] = self.best_estimator_.expected_errors(X, **scores)
        return expected
