"""Triage: a machine on all samples, and a ranking of new cases with the threshold that belongs to it."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.teams.context import FoldContext, HeldOutScores
from deferlearn.teams.machine_team import MachineTeam
from deferlearn.teams.parameters import count_of, share_of
from deferlearn.teams.samples import Samples
from deferlearn.teams.threshold import Threshold, ranks_among, threshold_at, threshold_from_folds

# Parameters that have no part in how cases are ranked.
NOT_OF_RANKERS = ("budget", "use_full_budget", "cv", "n_jobs", "random_state")


@dataclass(eq=False, repr=False)
class Triage(MachineTeam):
    """A team that ranks cases by what it expects of machine and human.

    A class says by `_rank_by` how a ranker ranks cases, and by `_fit_ranker` and `_rankers` how one is
    learned, from all samples and without each fold.
    """

    budget: float | int = 0.2

    def fit_samples(self, samples: Samples, context: FoldContext | None = None) -> Self:
        """Fit on samples that have been checked already; see `Team.fit_samples`."""
        self._note(samples)
        self.n_samples_fit_ = len(samples)
        count_of(self.budget, len(samples))
        rate = self._own_budget()
        context = self._in_folds(samples, context)
        seed = context.seed
        self._machine, own = context.final()
        self._ranker = self._fit_ranker(samples, own, context, seed)
        scores = self._rank_by(self._ranker, samples.X, own)
        self._note_probabilities(context)
        if not context.folds:
            self._threshold, self._rate = threshold_at(scores, rate, seed), rate
        else:
            held_out, ranks = self._scores_and_ranks(context)
            threshold = threshold_from_folds(ranks, scores, rate, len(context.folds), seed)
            self._threshold, self._rate = self._lower(threshold, rate, held_out)
        return self

    def _scores_and_ranks(self, context: FoldContext) -> tuple[Array, Array]:
        """Scores of held-out samples, and their ranks among the samples that a ranker was learned from."""
        features, (margin, own_margins) = context.samples.seen_by, context.margins()
        scores, ranks = np.empty(len(margin)), np.empty(len(margin))
        parts = zip(context.splits, self._rankers(context), own_margins, strict=True)
        for k, ((rest, fold), ranker, own) in enumerate(parts):
            scores[fold] = self._rank_by(ranker, features(fold, rest), margin[fold])
            seen = self._rank_by(ranker, features(rest, rest), own)
            ranks[fold] = ranks_among(scores[fold], seen, k, len(context.folds))
        return scores, ranks

    def held_out_scores(self, context: FoldContext) -> HeldOutScores:
        """Decision values and deferral scores of held-out samples; see `Team.held_out_scores`."""
        margin, _ = context.margins()
        said = context.samples.answers(margin)
        key = ("scores", context.machine, context.name_of(self, *NOT_OF_RANKERS))
        scores = context.once(key, lambda: self._held_out_scores(context))
        return HeldOutScores(said, scores, share_of(self.budget, len(margin)))

    def _held_out_scores(self, context: FoldContext) -> Array:
        """Scores of held-out samples that can be compared across folds."""
        features, (margin, _) = context.samples.seen_by, context.margins()
        parts = zip(context.splits, self._rankers(context), strict=True)
        return context.join(
            [self._rank_by(r, features(fold, rest), margin[fold]) for (rest, fold), r in parts]
        )

    def _own_budget(self) -> float:
        return share_of(self.budget, self.n_samples_fit_)

    def _rank(self, X: Any) -> Array:
        return self._rank_by(self._ranker, X, self._machine.decision_function(X))

    # -- what a class says --------------------------------------------------------------------

    def _fit_ranker(self, samples: Samples, own: Array, context: FoldContext, seed: int) -> Any:
        """Whatever `_rank_by` needs; ``own`` are the machine's decision values of its own samples."""
        return None

    def _rankers(self, context: FoldContext) -> list[Any]:
        """The same without each fold."""
        return [None] * len(context.folds)

    def _rank_by(self, ranker: Any, X: Any, margin: Array) -> Array:
        raise NotImplementedError

    def _lower(self, threshold: Threshold, rate: float, held_out: Array) -> tuple[Threshold, float]:
        """The threshold and the rate to be kept, where the budget need not be spent."""
        return threshold, rate
