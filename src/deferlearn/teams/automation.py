"""The two ends: the machine answers everything, or humans do."""

from typing import Any, Self

import numpy as np

from deferlearn._utils.types import Array, Bools
from deferlearn.teams.context import FoldContext, HeldOutScores
from deferlearn.teams.machine_team import MachineTeam
from deferlearn.teams.parameters import count_of
from deferlearn.teams.ranking import Constant
from deferlearn.teams.samples import Samples
from deferlearn.teams.team import Team
from deferlearn.teams.threshold import Threshold

NO_CASE = Threshold(np.inf, 0.0, 0.0, 0)
EVERY_CASE = Threshold(-np.inf, 0.0, 0.0, 0)


class FullAutomation(MachineTeam):
    """The machine answers every case: a plain support vector machine, or any classifier.

    The SVM is what `AssistedSVC` is at a budget of zero.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularisation, the paper's lambda. With n samples, the C of `sklearn.svm.SVC` is
        ``1 / (2 * alpha * n)``.
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        As in `AssistedSVC`.
    degree, gamma, coef0 : float
        Parameters of the kernels "poly" and "rbf", as in `sklearn.svm.SVC`.
    fit_intercept : bool, default=True
        Whether the machine has an offset b.
    margin : {"soft", "hard"}, default="soft"
        "hard" is for the linear kernel and classes that can be separated.
    class_weight : dict, "balanced" or None, default=None
        The cost of an error on each class.
    classes : {"auto", "grades"} or sequence of labels, default="auto"
        "auto": two classes; or more without an order, with a machine for each class against the rest.
        "grades": ordered as numbers are, with a machine for each step from a grade to the next. For words,
        give the grades from the lowest to the highest.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        What each answer (column) to a case of each class (row) costs, in units of one error and in the
        order of `classes_`. None: every error costs 1, or 1 per grade. The human's answers cost exactly
        this; the machine is trained with the mean cost of the errors on a class as its weight, and
        gives the answer with the smallest expected cost.
    machine : classifier or None, default=None
        None is the SVM with the parameters above. Any other classifier is fitted by itself, and calibrated
        on held-out samples.
    cv : int, splitter or None, default=5
        Folds for the calibration and for probabilities. With None there are no probabilities, and the
        machine is an SVM.
    n_jobs : int or None, default=None
        The number of folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of a classifier that has none.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    coef_, intercept_, dual_coef_, support_, support_vectors_ : ndarray
        The machine, as in `AssistedSVC`.
    deferral_threshold_ : float
        inf: no score is above it.
    deferral_rate_ : float
        0.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    Examples
    --------
    >>> from deferlearn.teams import FullAutomation
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(100, random_state=0)
    >>> machine = FullAutomation(alpha=0.1).fit(X, y)
    >>> int(machine.defer(X).sum())
    0
    >>> machine.score(X, y) == machine.score_assisted(X, y, human_labels=y)
    True
    """

    is_assisted = False
    is_quick = True

    def fit_samples(self, samples: Samples, context: FoldContext | None = None) -> Self:
        """Fit on samples that have been checked already; see `Team.fit_samples`."""
        self._note(samples)
        context = self._in_folds(samples, context)
        self._machine, _ = context.final()
        self._note_probabilities(context)
        self._threshold, self._rate = NO_CASE, 0.0
        return self

    def held_out_scores(self, context: FoldContext) -> HeldOutScores:
        """Decision values of held-out samples, of which none is deferred; see `Team.held_out_scores`."""
        margin, _ = context.margins()
        return HeldOutScores(context.samples.answers(margin), np.full(len(margin), -np.inf), 0.0)

    def _rank(self, X: Any) -> Array:
        return np.zeros(X.shape[0])

    def _ranking(self) -> Constant:
        return Constant(0.0)

    def _own_budget(self) -> float:
        return 0.0

    def defer_top(
        self, X: Any, budget: float | int | None = None, *, machine_scores: Any = None
    ) -> Bools:
        """No case, whatever the budget.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The batch.
        budget : float, int or None, default=None
            Checked, and not used.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores, for a team that was fitted with such scores.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
        """
        return _all_alike(self._check_new(X, machine_scores).shape[0], budget, False)


class NoAutomation(Team):
    """Humans answer every case.

    There is no machine to learn. Its methods exist all the same and answer with the majority of y, as
    a machine does to which no sample was left.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    deferral_threshold_ : float
        -inf: every score is above it.
    deferral_rate_ : float
        1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    Examples
    --------
    >>> from deferlearn.teams import NoAutomation
    >>> humans = NoAutomation().fit([[0.0], [1.0], [2.0]], ["well", "sick", "sick"])
    >>> humans.predict_assisted([[0.0], [1.0]], human_labels=["well", "well"])
    array(['well', 'well'], dtype='<U4')
    >>> humans.predict([[0.0]])
    array(['sick'], dtype='<U4')
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # of its machine, which knows nothing
        return tags

    def _takes_sparse(self) -> bool:
        return True

    def fit_samples(self, samples: Samples, context: FoldContext | None = None) -> Self:
        """Fit on samples that have been checked already; see `Team.fit_samples`."""
        self._note(samples)
        counts = np.bincount(samples.codes, minlength=len(samples.classes))
        self._shares = counts / len(samples)
        self._threshold, self._rate = EVERY_CASE, 1.0
        return self

    def _decide(self, X: Any) -> Array:
        # The smaller label where there are equally many: as `AssistedSVC` with every sample deferred.
        signs = self._coding.signs(np.full(X.shape[0], self._shares.argmax()))
        return signs if self._coding.several else signs[:, 0]

    def _probabilities(self, decision: Array) -> Array:
        return np.repeat(self._shares[None, :], len(decision), axis=0)

    def _rank(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def defer_top(
        self, X: Any, budget: float | int | None = None, *, machine_scores: Any = None
    ) -> Bools:
        """Every case, whatever the budget.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The batch.
        budget : float, int or None, default=None
            Checked, and not used.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores, for a team that was fitted with such scores.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
        """
        return _all_alike(self._check_new(X, machine_scores).shape[0], budget, True)


def _all_alike(n: int, budget: float | int | None, deferred: bool) -> Bools:
    if budget is not None:
        count_of(budget, n, "cases")
    return np.full(n, deferred)
