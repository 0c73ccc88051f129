"""One-vs-all logistic losses over the classes, and one for the human."""

from typing import Any

import numpy as np
from scipy.special import expit

from deferlearn._utils.types import Array
from deferlearn.teams.surrogates.linear import Loss
from deferlearn.teams.surrogates.surrogate import SurrogateTeam
from deferlearn.teams.surrogates.targets import Targets, mean_cost


def one_vs_all_loss(targets: Targets) -> Loss:
    """The weighted sum of the logistic losses of all outputs, which is convex; see `OneVsAllSurrogate`."""
    rows = np.arange(len(targets.codes))
    weights = targets.weights[:, None]

    def loss(F: Array) -> tuple[float, Array]:
        said = np.zeros_like(F)  # the probability that each output should give
        said[rows, targets.codes] = 1.0
        said[:, -1] = targets.right
        each = np.logaddexp(0.0, F) - said * F
        slope = expit(F) - said
        each[~targets.read, -1] = 0.0
        slope[~targets.read, -1] = 0.0
        return float(targets.weights @ each.sum(axis=1)), slope * weights

    return loss


class OneVsAllSurrogate(SurrogateTeam):
    r"""One logistic output per class, and one for "the human is right" (Verma and Nalisnick, 2022).

    Linear outputs :math:`f_1 \dots f_K` for the classes and :math:`f_\bot` for deferral minimise the
    weighted mean over the samples of

    .. math:: \phi(f_y) + \sum_{k \ne y} \phi(-f_k) + m \, \phi(f_\bot) + (1 - m) \, \phi(-f_\bot),
        \qquad \phi(t) = \log(1 + e^{-t}),

    plus :math:`\alpha \|W\|_F^2` on standardised features, where m is the share of the readers that are
    right. The loss is convex, and a sum of K + 1 logistic regressions that have no weights in common:
    each is scikit-learn's `LogisticRegression` with ``C = 1 / (2 * alpha * n)``.

    With :math:`\sigma` the logistic function, :math:`\sigma(f_\bot)` is the probability that the human
    is right, and :math:`\max_k \sigma(f_k)` that the machine is. The score is the first minus the
    second, minus `deferral_cost`: it is positive where the paper defers, :math:`f_\bot > \max_k f_k`.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples, which acts on new
        data as the fraction that it was of the training samples. The paper's rule is that of 1.0.
    alpha : float, default=0.01
        Regularisation of the mean loss. Features are standardised internally, so that it means the same
        whatever their units.
    use_full_budget : bool, default=False
        Whether to spend the budget also on cases with a score of 0 or less, which the paper's rule leaves
        to the machine.
    class_weight : dict, "balanced" or None, default=None
        The cost of an error on each class, whoever errs: the weights of the losses. Scores are then
        differences of expected costs.
    classes : {"auto", "grades"} or sequence of labels, default="auto"
        The order of the classes, as in `AssistedSVC`; this method makes no use of it.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        What each answer to a case of each class costs, as in `AssistedSVC`. This method uses one cost per
        class: the mean cost of its errors.
    deferral_cost : float, default=0.0
        Cost of human time per case, in units of one error. It is subtracted from the scores.
    cv : int, splitter or None, default=5
        Folds behind the threshold of `defer`: for each fold, the outputs are fitted on the others. None
        uses the scores of the training samples.
    n_jobs : int or None, default=None
        The number of folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the coin that decides between equal scores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    coef_ : ndarray of shape (n_classes + 1, n_features)
        Weights of the features in their own units: a row per class, and the last for deferral.
    intercept_ : ndarray of shape (n_classes + 1,)
        Offsets of the outputs.
    deferral_threshold_ : float
        `defer` defers above it.
    deferral_rate_ : float
        The expected share of new cases that `defer` defers: the budget, or less where fewer cases have a
        score above 0.
    n_samples_fit_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    Notes
    -----
    A sample without an answer has no part in the loss of the deferral output.

    References
    ----------
    R. Verma, E. Nalisnick: Calibrated Learning to Defer with One-vs-All Classifiers. ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams import OneVsAllSurrogate
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(200, random_state=0)
    >>> expert = np.where(X[:, 0] > 0, y, -y)  # knows one half of the space
    >>> team = OneVsAllSurrogate(budget=0.3, random_state=0).fit(X, y, human_labels=expert)
    >>> bool((X[team.defer_top(X), 0] > 0).mean() > 0.9)
    True
    >>> team.score_assisted(X, y, expert) > team.score(X, y)
    True
    """

    def _loss(self, targets: Targets) -> Loss:
        return one_vs_all_loss(targets)

    def expected_errors(self, X: Any) -> tuple[Array, Array]:
        """How likely the machine and the human are to err on each case.

        `deferral_score` is the first minus the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Cases.

        Returns
        -------
        machine, human : ndarray of shape (n_samples,)
            Expected errors. With ``class_weight`` an error counts the weight of its class;
            ``deferral_cost`` is part of the human's.
        """
        return self._expected_by(self._model, self._check_new(X), self._costs)

    def _expected_by(self, model: Any, X: Any, costs: Array) -> tuple[Array, Array]:
        right = expit(model.outputs(X))
        classes = right[:, :-1]
        size = mean_cost(classes / classes.sum(axis=1, keepdims=True), costs)
        human = size * (1.0 - right[:, -1]) + float(self.deferral_cost)
        return size * (1.0 - classes.max(axis=1)), human

    def _rank_by(self, model: Any, X: Any, costs: Array) -> Array:
        machine, human = self._expected_by(model, X, costs)
        return machine - human
