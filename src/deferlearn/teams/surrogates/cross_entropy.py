"""The cross-entropy surrogate: a softmax over the classes and deferral."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from deferlearn._utils.checks import is_number, plain
from deferlearn._utils.types import Array
from deferlearn.teams.odds import log_softmax
from deferlearn.teams.surrogates.linear import Loss
from deferlearn.teams.surrogates.surrogate import SurrogateTeam
from deferlearn.teams.surrogates.targets import Targets, mean_cost


def cross_entropy_loss(targets: Targets, machine_weight: float) -> Loss:
    """The weighted cross-entropy over all outputs, which is convex; see `CrossEntropySurrogate`."""
    n, right = len(targets.codes), targets.right
    unread = np.flatnonzero(~targets.read)
    own = machine_weight * right + (1.0 - right)

    def loss(F: Array) -> tuple[float, Array]:
        said = np.zeros_like(F)
        said[np.arange(n), targets.codes] = own
        said[:, -1] = right
        log_p = log_softmax(F)
        slope = np.exp(log_p)
        if len(unread):  # nothing is known of the human, so deferral has no part in the softmax
            log_p[unread, :-1] = log_softmax(F[unread, :-1])
            slope[unread, :-1] = np.exp(log_p[unread, :-1])
            slope[unread, -1] = 0.0
        value = -float(targets.weights @ (said * log_p).sum(axis=1))
        slope = slope * said.sum(axis=1, keepdims=True) - said
        return value, slope * targets.weights[:, None]

    return loss


@dataclass(eq=False, repr=False)
class CrossEntropySurrogate(SurrogateTeam):
    r"""A softmax over the classes and deferral (Mozannar and Sontag, 2020).

    With p the softmax of linear outputs, :math:`p_1 \dots p_K` for the classes and :math:`p_\bot` for
    deferral, it minimises the weighted mean over the samples of

    .. math:: -(a \, m + 1 - m) \log p_y - m \log p_\bot,

    plus :math:`\alpha \|W\|_F^2` on standardised features, where m is the share of the readers that are
    right and a is `machine_weight`. The loss is convex. Where the human is never right it is multinomial
    logistic regression.

    At the minimum over all functions of x the human is right with probability
    :math:`h = p_\bot / (1 - a p_\bot)`, and :math:`p_k / (1 - a p_\bot)` is the probability of the class
    k, where samples that the human gets right count a. The score is :math:`\min(h, 1)` minus the largest
    of these, minus `deferral_cost`: at no cost it is positive where the paper defers,
    :math:`p_\bot > \max_k p_k`. The estimate h has no upper bound, which Verma and Nalisnick (2022)
    criticise, hence the minimum.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples, which acts on new
        data as the fraction that it was of the training samples. The paper's rule is that of 1.0.
    alpha : float, default=0.01
        Regularisation of the mean loss. Features are standardised internally, so that it means the same
        whatever their units.
    machine_weight : float, default=1.0
        The paper's alpha, between 0 and 1: the weight of the machine's loss where the human is right. With
        less than 1 the machine is trained more for the samples that the human gets wrong.
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
    For a sample without an answer the softmax is that of the classes alone, so that it trains the machine
    and says nothing about deferral.

    References
    ----------
    H. Mozannar, D. Sontag: Consistent Estimators for Learning to Defer to an Expert. ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams import CrossEntropySurrogate
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(200, random_state=0)
    >>> expert = np.where(X[:, 0] > 0, y, -y)  # knows one half of the space
    >>> team = CrossEntropySurrogate(budget=0.3, random_state=0).fit(X, y, human_labels=expert)
    >>> bool((X[team.defer_top(X), 0] > 0).mean() > 0.9)
    True
    >>> team.score_assisted(X, y, expert) > team.score(X, y)
    True
    """

    _: KW_ONLY
    machine_weight: float = 1.0

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        super().check_parameters()
        check_share("machine_weight", self.machine_weight)

    def _loss(self, targets: Targets) -> Loss:
        return cross_entropy_loss(targets, float(self.machine_weight))

    def expected_errors(self, X: Any) -> tuple[Array, Array]:
        """How likely the machine and the human are to err on each case.

        With ``machine_weight=1.0``, `deferral_score` is the first minus the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Cases.

        Returns
        -------
        machine, human : ndarray of shape (n_samples,)
            Expected errors. With ``class_weight`` an error counts the weight of its class;
            ``deferral_cost`` is part of the human's. The machine's are those of the softmax over the
            classes alone: with a smaller ``machine_weight`` they are those on the samples that the human
            gets wrong rather than on all.
        """
        F = self._model.outputs(self._check_new(X))
        classes = np.exp(log_softmax(F[:, :-1]))
        size = mean_cost(classes, self._costs)
        human = size * (1.0 - self._human_right(F)) + float(self.deferral_cost)
        return size * (1.0 - classes.max(axis=1)), human

    def _human_right(self, F: Array) -> Array:
        """The probability that the human is right."""
        defer = np.exp(log_softmax(F)[:, -1])
        return np.asarray(np.minimum(defer / self._rest(F), 1.0))

    def _rest(self, F: Array) -> Array:
        """The softmax's ``1 - a p_defer``, without the rounding of a difference."""
        p = np.exp(log_softmax(F))
        return np.asarray(p[:, :-1].sum(axis=1) + (1.0 - float(self.machine_weight)) * p[:, -1])

    def _rank_by(self, model: Any, X: Any, costs: Array) -> Array:
        F = model.outputs(X)
        p = np.exp(log_softmax(F))
        classes = p[:, :-1] / self._rest(F)[:, None]
        size = mean_cost(np.exp(log_softmax(F[:, :-1])), costs)
        return size * (self._human_right(F) - classes.max(axis=1)) - float(self.deferral_cost)


def check_share(name: str, value: Any) -> None:
    """Refuse a parameter that is not a number in [0, 1]."""
    if not is_number(value) or not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"{name}={plain(value)!r} must be a number in [0, 1].")
