"""Assisted training for any machine: it is refitted without the samples that humans take."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np

from deferlearn._utils.checks import is_whole, plain
from deferlearn._utils.types import Bools
from deferlearn.teams.advantage import AdvantageTriage
from deferlearn.teams.context import FoldContext, HeldOutScores
from deferlearn.teams.parameters import count_of
from deferlearn.teams.samples import Samples
from deferlearn.teams.threshold import first_of


@dataclass(eq=False, repr=False)
class AssistedTriage(AdvantageTriage):
    """Triage by advantage, with a machine that is refitted without the samples that humans take.

    `AssistedSVC` chooses these samples exactly, for an SVM. For any other machine they are chosen in
    rounds: the samples on which the machine, held out, is expected to cost most in excess of the human are
    left to the human, up to the budget, and the machine is refitted on the others. Rounds go on as long as
    the cost of the team's answers to held-out samples falls; the best round counts. If no round is better
    than the machine fitted on all samples, this is an `AdvantageTriage`.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred, in training and later, as in `AdvantageTriage`.
    max_rounds : int, default=3
        The most refits to try.
    machine : classifier or None, default=None
        The machine, as in `AdvantageTriage`.
    machine_error, human_error, use_full_budget, deferral_cost
        As in `AdvantageTriage`.
    alpha, kernel, degree, gamma, coef0, fit_intercept, margin, class_weight, classes, cost_matrix
        As in `AdvantageTriage`: the parameters of the SVM that ``machine=None`` stands for.
    cv, n_jobs, random_state
        As in `AdvantageTriage`.

    Attributes
    ----------
    deferred_ : ndarray of bool of shape (n_samples,)
        The training samples that the machine was fitted without.
    deferral_threshold_, deferral_rate_, classes_, n_features_in_, feature_names_in_
        As in `AdvantageTriage`.

    See Also
    --------
    deferlearn.AssistedSVC : The exact method, for support vector machines.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from deferlearn.teams import AssistedTriage
    >>> rng = np.random.RandomState(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = np.where(X[:, 1] > 1, X[:, 0] < 0, X[:, 0] > 0)  # a part where the rule is another one
    >>> team = AssistedTriage(machine=LogisticRegression(), machine_error="forest", random_state=0)
    >>> team = team.fit(X, y, human_labels=np.where(rng.uniform(size=400) < 0.05, ~y, y))
    >>> bool(team.score(X, y) < 0.9 < team.score_assisted(X, y, y))
    True
    """

    _: KW_ONLY
    max_rounds: int = 3

    # With an SVM, `AssistedSVC` does this exactly.
    for_brought_machines: ClassVar[bool] = True
    is_quick = False
    shares_machines: ClassVar[bool] = False
    takes_scores: ClassVar[bool] = False  # given scores cannot be refitted

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        super().check_parameters()
        if not is_whole(self.max_rounds) or self.max_rounds < 1:
            raise ValueError(
                f"max_rounds={plain(self.max_rounds)!r} must be a whole number, 1 or larger."
            )

    def fit_samples(self, samples: Samples, context: FoldContext | None = None) -> Self:
        """Fit on samples that have been checked already; see `Team.fit_samples`."""
        context = self._assisted(self._in_folds(samples, context))
        kept = context.samples.trained_on
        self.deferred_ = np.zeros(len(samples), dtype=bool) if kept is None else ~kept
        return super().fit_samples(samples, context)

    def held_out_scores(self, context: FoldContext) -> HeldOutScores:
        """Decision values and deferral scores of held-out samples; see `Team.held_out_scores`."""
        return super().held_out_scores(self._assisted(context))

    def _assisted(self, context: FoldContext) -> FoldContext:
        """The context with a machine that is fitted on the samples left to it."""
        key = ("assisted", context.machine, context.name_of(self, "cv", "n_jobs", "random_state"))
        kept = context.once(key, lambda: self._rounds(context))
        return context if kept is None else context.trained_on(kept)

    def _rounds(self, context: FoldContext) -> Bools | None:
        """The samples that are left to the machine in the best round; None for all of them."""
        samples = context.samples
        count = count_of(self.budget, len(samples))
        human = samples.human_cost(self.deferral_cost)
        best, best_kept, kept = np.inf, None, None
        for _ in range(self.max_rounds + 1):
            now = context if kept is None else context.trained_on(kept)
            said, score, _rate = super().held_out_scores(now)
            deferred = first_of(score, count) & (score > -np.inf)
            cost = float(np.where(deferred, human, samples.machine_cost(said)).mean())
            if cost >= best:
                break
            best, best_kept, kept = cost, kept, ~deferred
            if not deferred.any() or not _has_all_classes(samples, kept, context):
                break
        return best_kept


def _has_all_classes(samples: Samples, kept: Bools, context: FoldContext) -> bool:
    """Whether enough of every class is left to fit a machine without each fold."""
    left = np.bincount(samples.codes[kept], minlength=len(samples.classes))
    return int(left.min()) > len(context.folds)
