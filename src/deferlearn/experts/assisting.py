"""What a team of several experts answers: the machine alone, and together with the experts."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.checks import check_flag
from deferlearn._utils.types import Array, Bools
from deferlearn.experts.answers import case_names
from deferlearn.experts.asking import team_codes
from deferlearn.experts.assigning import Assigning
from deferlearn.experts.transport import MACHINE
from deferlearn.humans.coding import codes_among
from deferlearn.humans.human import warn_if_reordered
from deferlearn.humans.labels import check_truth


class Assisting(Assigning):
    """The part of `ExpertTeam` that has the methods of every team."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The machine's answer for every row, deferred or not."""
        check_is_fitted(self)
        labels: NDArray[Any] = self.team_.predict(X)
        return labels

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class for every row, as the machine sees it."""
        check_is_fitted(self)
        probabilities: Array = self.team_.predict_proba(X)
        return probabilities

    def deferral_score(self, X: Any) -> Array:
        """How much each case belongs with an expert at the present prices: above 0 it is deferred.

        With a single expert it is the score of `team_`, which has a threshold of its own.
        """
        check_is_fitted(self)
        if len(self.experts_) == 1:
            score: Array = self.team_.deferral_score(X)
            return score
        cases, machine = self._new(X)
        net = self._routing.net(self._routing.gains(cases, machine), cases.X)
        return np.asarray(net.max(axis=1))

    def defer(self, X: Any) -> Bools:
        """Whether an expert should take each case, one at a time."""
        return self._assigned(X) != MACHINE

    def defer_top(self, X: Any, budget: float | int | None = None) -> Bools:
        """Whether an expert should take each case of this batch, within the capacities of `fit`."""
        return self._assigned_batch(X, None, budget) != MACHINE

    def predict_assisted(self, X: Any, answers: Any, batch: bool = False) -> NDArray[Any]:
        """The team's answer: that of the expert who takes a case, else the machine's.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            Cases.
        answers : callable, DataFrame, dict of columns or array-like of shape (n_cases, n_experts)
            A function is asked for the rows that an expert takes: it gets their positions in X, an array
            of integers, and the expert's name, and returns an answer for each. Or a table as in `fit`. A
            deferred case without an answer is an error: the machine does not silently stand in.
        batch : bool, default=False
            Whether to assign by `assign_batch` instead of `assign`.

        Returns
        -------
        labels : ndarray of shape (n_cases,)
        """
        check_is_fitted(self)
        warn_if_reordered(X, answers=answers)
        whole = check_flag("batch", batch)
        places = self._assigned_batch(X, None, None) if whole else self._assigned(X)
        machine = codes_among(self.predict(X), self.classes_, "predict(X)")
        groups = self._routing.groups
        codes = team_codes(
            places, machine, answers, groups, self.experts_, self.classes_, case_names(X)
        )
        return self.classes_[codes]

    def score(self, X: Any, y: ArrayLike, sample_weight: Any = None) -> float:
        """Accuracy of the machine alone; that of the team is `score_assisted`."""
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def score_assisted(self, X: Any, y: ArrayLike, answers: Any, batch: bool = False) -> float:
        """Accuracy of the team; ``answers`` and ``batch`` are as in `predict_assisted`."""
        check_is_fitted(self)
        said = self.predict_assisted(X, answers, batch)
        return float(accuracy_score(check_truth(y, self.classes_), said))
