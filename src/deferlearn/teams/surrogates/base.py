"""What the methods share: the threshold behind `defer`, and deferral where a gain is expected."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from deferlearn._utils.checks import check_flag
from deferlearn._utils.types import Array, Index
from deferlearn.humans.coding import Codes
from deferlearn.humans.human import Human
from deferlearn.objective.validation import check_alpha
from deferlearn.teams.context import FoldContext, HeldOutScores, places
from deferlearn.teams.folds import random_folds
from deferlearn.teams.held_out import held_out
from deferlearn.teams.parameters import check_cost, check_folds, count_of, draw_seed, share_of
from deferlearn.teams.samples import Samples
from deferlearn.teams.surrogates.targets import class_costs
from deferlearn.teams.team import Team
from deferlearn.teams.threshold import (
    Threshold,
    only_gains,
    ranks_among,
    threshold_at,
    threshold_from_folds,
)


class Part(NamedTuple):
    """What a model without a fold says.

    Attributes
    ----------
    decision, score : ndarray of shape (n_held_out,)
        Decision values and deferral scores of the fold; of several classes, a column of the former each.
    own : ndarray of shape (n_fitted,)
        Scores of the samples that it was learned from.
    rate : float
        The share of the cases that it defers.
    """

    decision: Array
    score: Array
    own: Array
    rate: float


@dataclass(eq=False, repr=False)
class LearnedTeam(Team):
    """A team that learns machine and policy by one method, which is not an SVM.

    A class says by `_fit_model` how a model is learned from samples, by `_decide_by` and `_rank_by` what
    the model says about cases, and by `_rate_of` which share of the cases is to be deferred.
    """

    budget: float | int = 0.2
    _: KW_ONLY
    alpha: float = 0.01
    class_weight: Any = None
    classes: Any = "auto"
    cost_matrix: Any = None
    deferral_cost: float = 0.0
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = None

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        check_alpha(self.alpha)
        check_cost(self.deferral_cost)
        check_folds(self.cv, self.n_jobs)

    def _takes_sparse(self) -> bool:
        return False

    def _class_weight(self) -> Any:
        return self.class_weight

    def _warn_of(self, human: Human) -> None:
        human.warn(gaps=False, stacklevel=3)
        unread = int(np.isnan(human.scores).all(axis=1).sum())
        if unread:
            warnings.warn(
                f"{unread} of {len(human.scores)} cases have no answer and are left out where the human "
                "is learned.",
                UserWarning,
                stacklevel=3,
            )

    def _check_dense(self, samples: Samples) -> None:
        """Refuse sparse samples of a search, whose other teams may take them."""
        if hasattr(samples.X, "tocsr"):
            raise TypeError(
                f"X is sparse, but {type(self).__name__} standardises features, which leaves no zeros; "
                "give X.toarray()."
            )

    # -- fitting ------------------------------------------------------------------------------

    def fit_samples(self, samples: Samples, context: FoldContext | None = None) -> Self:
        """Fit on samples that have been checked already; see `Team.fit_samples`."""
        self._check_dense(samples)
        self._note(samples)
        self.n_samples_fit_ = len(samples)
        count_of(self.budget, len(samples))
        seed = draw_seed(self.random_state) if context is None else context.seed
        self._costs = class_costs(samples)
        share = self._own_budget()
        model = self._fit_model(samples, share, seed)
        scores = self._rank_by(model, samples.X, self._costs)
        rate = self._rate_of(model, share)
        if context is None and self.cv is not None:
            folds = random_folds(self.cv, samples.X, samples.y, seed)
            context = FoldContext(samples, folds, seed, self.n_jobs)
        self._odds = None
        if context is not None:
            parts, n_folds = self._parts(context), len(context.folds)
            self._learn_probabilities(samples, context.join([part.decision for part in parts]))
        if context is None or not self._needs_threshold(rate):
            threshold, new = threshold_at(scores, rate, seed), scores
        else:
            new = context.join([part.score for part in parts])
            ranks = [ranks_among(part.score, part.own, k, n_folds) for k, part in enumerate(parts)]
            threshold = threshold_from_folds(context.join(ranks), scores, rate, n_folds, seed)
        self._model = model
        self._threshold, self._rate = self._lower(threshold, rate, new)
        return self

    def held_out_scores(self, context: FoldContext) -> HeldOutScores:
        """Decision values and deferral scores of held-out samples; see `Team.held_out_scores`."""
        parts = self._parts(context)
        return HeldOutScores(
            self._said(context, parts),
            # Each fold has a policy of its own, which keeps a rate of its own.
            context.join([places(part.score, part.rate) for part in parts]),
            context.mean_rate([part.rate for part in parts]),
        )

    def _said(self, context: FoldContext, parts: list[Part]) -> Codes:
        """The machine's answers to held-out samples."""
        decision = context.join([part.decision for part in parts])
        return context.samples.coding.by_votes(decision)

    def _parts(self, context: FoldContext) -> list[Part]:
        """What models without each fold say, made once for all budgets where the budget plays no role."""
        samples, seed, jobs = context.samples, context.seed, context.n_jobs
        self._check_dense(samples)
        costs, share = class_costs(samples), share_of(self.budget, len(samples))

        def make() -> list[Part]:
            return held_out(self._without, context.splits, samples, costs, share, seed, n_jobs=jobs)

        return context.once(("learned", context.name_of(self, *self._not_of_model())), make)

    def _without(
        self, train: Index, test: Index, samples: Samples, costs: Array, share: float, seed: int
    ) -> Part:
        part, new = samples.part(train), samples.seen_by(test, train)
        model = self._fit_model(part, share, seed)
        scores = self._rank_by(model, new, costs)
        own = self._rank_by(model, part.X, costs)
        return Part(self._decide_by(model, new), scores, own, self._rate_of(model, share))

    # -- what is asked of the fitted team -----------------------------------------------------

    def _decide(self, X: Any) -> Array:
        return self._decide_by(self._model, X)

    def _rank(self, X: Any) -> Array:
        return self._rank_by(self._model, X, self._costs)

    def _own_budget(self) -> float:
        return share_of(self.budget, self.n_samples_fit_)

    # -- what a class says --------------------------------------------------------------------

    def _fit_model(self, samples: Samples, share: float, seed: int) -> Any:
        """Whatever the next three need, learned from samples; ``share`` is the budget as a fraction."""
        raise NotImplementedError

    def _decide_by(self, model: Any, X: Any) -> Array:
        """The machine's decision values: positive for the second of two classes, or a column each."""
        raise NotImplementedError

    def _rank_by(self, model: Any, X: Any, costs: Array) -> Array:
        """Deferral scores; ``costs`` are those of an error on each class."""
        raise NotImplementedError

    def _rate_of(self, model: Any, share: float) -> float:
        """The share of the cases to defer by a model, at most the budget."""
        return share

    def _needs_threshold(self, rate: float) -> bool:
        """Whether held-out scores have a say in what is deferred at this rate."""
        return 0.0 < rate < 1.0

    def _not_of_model(self) -> tuple[str, ...]:
        """Parameters that have no part in the models."""
        return ("cv", "n_jobs", "random_state")

    def _lower(self, threshold: Threshold, rate: float, held_out: Array) -> tuple[Threshold, float]:
        """The threshold and the rate to be kept, where the budget need not be spent."""
        return threshold, rate


@dataclass(eq=False, repr=False)
class GainTeam(LearnedTeam):
    """A team whose scores are gains: a score above 0 says that the human should take the case.

    So says the rule of the published methods, which know no budget: it is the rule of ``budget=1.0``.
    """

    _: KW_ONLY
    use_full_budget: bool = False

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        super().check_parameters()
        check_flag("use_full_budget", self.use_full_budget)

    def held_out_scores(self, context: FoldContext) -> HeldOutScores:
        """Decision values and deferral scores of held-out samples; see `Team.held_out_scores`."""
        parts = self._parts(context)
        scores = context.join([part.score for part in parts])
        if not self.use_full_budget:
            scores = np.where(scores > 0, scores, -np.inf)
        said = self._said(context, parts)
        return HeldOutScores(said, scores, share_of(self.budget, len(scores)))

    def _only_gains(self) -> bool:
        return not self.use_full_budget

    def _needs_threshold(self, rate: float) -> bool:
        # Without a limit the share of new cases with a gain is still to be learned.
        return 0.0 < rate < 1.0 or (rate == 1.0 and not self.use_full_budget)

    def _not_of_model(self) -> tuple[str, ...]:
        return ("budget", "use_full_budget", "cv", "n_jobs", "random_state")

    def _lower(self, threshold: Threshold, rate: float, held_out: Array) -> tuple[Threshold, float]:
        return (threshold, rate) if self.use_full_budget else only_gains(threshold, rate, held_out)
