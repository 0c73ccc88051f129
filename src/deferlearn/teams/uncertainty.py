"""Triage by the machine's uncertainty."""

from typing import Any

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.teams.context import FoldContext
from deferlearn.teams.ranking import ByUncertainty
from deferlearn.teams.samples import Samples
from deferlearn.teams.triage import Triage


class UncertaintyTriage(Triage):
    r"""Humans take the cases of which the machine is least sure, whatever the humans are good at.

    A support vector machine is fitted on all samples. Cases are ranked by the paper's uncertainty
    :math:`1 / |w^T \phi(x) + b|`; the score is :math:`-|w^T \phi(x) + b|`, which has the same order.
    The human given to `fit` is checked, and plays no role.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples, which acts on new
        data as the fraction that it was of the training samples.
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
        None is the SVM with the parameters above. Any other classifier with `predict_proba` or
        `decision_function` is fitted by itself, and calibrated on held-out samples. For scores of a machine
        that cannot be retrained, see ``machine_scores`` in `fit`.
    cv : int, splitter or None, default=5
        Folds behind the threshold of `defer`: a machine is surer of samples that it has seen. None uses
        the margins of the training samples.
    n_jobs : int or None, default=None
        The number of folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the coin that decides between equal scores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    coef_, intercept_, dual_coef_, support_, support_vectors_ : ndarray
        The machine, as in `AssistedSVC`.
    deferral_threshold_ : float
        `defer` defers above it.
    deferral_rate_ : float
        The budget as a fraction: the expected share of new cases that `defer` defers.
    n_samples_fit_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    References
    ----------
    M. Raghu, K. Blumer, G. Corrado, J. Kleinberg, Z. Obermeyer, S. Mullainathan: The Algorithmic
    Automation Problem: Prediction, Triage, and Human Effort. arXiv:1903.12220, 2019.

    Examples
    --------
    >>> from deferlearn.teams import UncertaintyTriage
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(100, random_state=3)
    >>> triage = UncertaintyTriage(budget=0.3, alpha=0.05, random_state=0).fit(X, y)
    >>> asked = triage.defer_top(X)
    >>> margin = abs(triage.decision_function(X))
    >>> int(asked.sum()), bool(margin[asked].max() <= margin[~asked].min())
    (30, True)
    """

    is_quick = True

    def _fit_ranker(
        self, samples: Samples, own: Array, context: FoldContext, seed: int
    ) -> ByUncertainty:
        return ByUncertainty(samples.coding.stakes if samples.coding.several else ())

    def _rankers(self, context: FoldContext) -> list[Any]:
        one = self._fit_ranker(context.samples, np.empty(0), context, context.seed)
        return [one] * len(context.folds)

    def _rank_by(self, ranker: Any, X: Any, margin: Array) -> Array:
        scores: Array = ranker.rank(X, margin).scores
        return scores

    def _ranking(self) -> ByUncertainty:
        found: ByUncertainty = self._ranker
        return found
