"""The realizable surrogate: right is who decides, machine or human."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.teams.odds import log_softmax
from deferlearn.teams.samples import Samples
from deferlearn.teams.surrogates.cross_entropy import check_share, cross_entropy_loss
from deferlearn.teams.surrogates.linear import LinearModel, Loss, fit_linear
from deferlearn.teams.surrogates.surrogate import SurrogateTeam
from deferlearn.teams.surrogates.targets import Targets, targets_of

# A minimum that is only started from need not be exact.
START_PRECISION = 1e-3


def realizable_loss(targets: Targets, joint_weight: float = 1.0) -> Loss:
    """The weighted loss over all outputs, which is not convex; see `RealizableSurrogate`."""
    rows, codes = np.arange(len(targets.codes)), targets.codes
    # Of the loss of the team with a human who is right, of one who is wrong, and of the machine alone.
    joint = joint_weight * targets.read
    right = targets.weights * joint * targets.right
    wrong = targets.weights * joint * (1.0 - targets.right)
    alone = targets.weights * (1.0 - joint)
    with_machine = bool(alone.any())

    def loss(F: Array) -> tuple[float, Array]:
        log_p = log_softmax(F)
        own, defer = log_p[rows, codes], log_p[:, -1]
        either = np.logaddexp(own, defer)
        value = -float(right @ either + wrong @ own)
        slope = np.exp(log_p) * (right + wrong)[:, None]
        slope[rows, codes] -= right * np.exp(own - either) + wrong
        slope[:, -1] -= right * np.exp(defer - either)
        if with_machine:
            log_q = log_softmax(F[:, :-1])
            value -= float(alone @ log_q[rows, codes])
            slope[:, :-1] += np.exp(log_q) * alone[:, None]
            slope[rows, codes] -= alone
        return value, slope

    return loss


@dataclass(eq=False, repr=False)
class RealizableSurrogate(SurrogateTeam):
    r"""A surrogate that is consistent where a perfect team exists (Mozannar et al., 2023).

    With p the softmax of linear outputs, :math:`p_1 \dots p_K` for the classes and :math:`p_\bot` for
    deferral, the paper's loss is, up to a constant factor,

    .. math:: \ell = -m \log(p_y + p_\bot) - (1 - m) \log p_y
        = -\log \frac{e^{f_y} + 1[\text{human is right}] \, e^{f_\bot}}{\sum_{k \le K} e^{f_k} + e^{f_\bot}}
        \quad \text{for } m \in \{0, 1\},

    where m is the share of the readers that are right. The weighted mean over the samples of
    :math:`j \, \ell - (1 - j) \log q_y` is minimised, plus :math:`\alpha \|W\|_F^2` on standardised
    features. Here q is the softmax of the classes alone, and j is `joint_weight`. The factor is left out so
    that alpha means the same as for `CrossEntropySurrogate`. At ``joint_weight=1.0``, the paper's loss, a
    sample that the human gets right may be left to the human entirely, and the machine may be useless
    there.

    The loss is not convex. It is minimised twice, starting from zero and from about the minimiser of the
    cross-entropy surrogate, and the lower of the two minima is taken.

    The score is :math:`p_\bot - \max_k p_k - c`, where c is `deferral_cost`; at no cost it is positive
    where the paper defers. These are no estimates of who is right, so there are no expected errors, and
    `deferral_cost` acts on the scale of the softmax.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples, which acts on new
        data as the fraction that it was of the training samples. The paper's rule is that of 1.0.
    alpha : float, default=0.01
        Regularisation of the mean loss. Features are standardised internally, so that it means the same
        whatever their units.
    joint_weight : float, default=1.0
        The weight j of the paper's loss, between 0 and 1, against the machine's own cross-entropy. The
        authors' experiments choose it by validation.
    use_full_budget : bool, default=False
        Whether to spend the budget also on cases with a score of 0 or less, which the paper's rule leaves
        to the machine.
    class_weight : dict, "balanced" or None, default=None
        The cost of an error on each class, whoever errs: the weights of the losses.
    classes : {"auto", "grades"} or sequence of labels, default="auto"
        The order of the classes, as in `AssistedSVC`; this method makes no use of it.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        What each answer to a case of each class costs, as in `AssistedSVC`. This method uses one cost per
        class: the mean cost of its errors.
    deferral_cost : float, default=0.0
        Cost of human time per case. It is subtracted from the scores, which are differences of the softmax.
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
    A sample without an answer has only the second term, with the weight 1: it trains the machine and says
    nothing about deferral.

    References
    ----------
    H. Mozannar, H. Lang, D. Wei, P. Sattigeri, S. Das, D. Sontag: Who Should Predict? Exact Algorithms
    For Learning to Defer to Humans. AISTATS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams import RealizableSurrogate
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(200, random_state=0)
    >>> expert = np.where(X[:, 0] > 0, y, -y)  # knows one half of the space
    >>> team = RealizableSurrogate(budget=0.3, random_state=0).fit(X, y, human_labels=expert)
    >>> bool((X[team.defer_top(X), 0] > 0).mean() > 0.9)
    True
    >>> team.score_assisted(X, y, expert) > team.score(X, y)
    True
    """

    _: KW_ONLY
    joint_weight: float = 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Of its machine, which learns nothing from what the human gets right: without a human, nothing.
        tags.classifier_tags.poor_score = self.joint_weight == 1.0
        return tags

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        super().check_parameters()
        check_share("joint_weight", self.joint_weight)

    def _loss(self, targets: Targets) -> Loss:
        return realizable_loss(targets, float(self.joint_weight))

    def _fit_model(self, samples: Samples, share: float, seed: int) -> LinearModel:
        X, targets, alpha = samples.X, targets_of(samples), float(self.alpha)
        n_outputs, loss = len(samples.classes) + 1, self._loss(targets)
        nearby = cross_entropy_loss(targets, 1.0)
        convex, _ = fit_linear(X, n_outputs, alpha, nearby, precision=START_PRECISION)
        found = [fit_linear(X, n_outputs, alpha, loss, start) for start in (None, convex)]
        return min(found, key=lambda pair: pair[1])[0]

    def _rank_by(self, model: Any, X: Any, costs: Array) -> Array:
        p = np.exp(log_softmax(model.outputs(X)))
        return np.asarray(p[:, -1] - p[:, :-1].max(axis=1) - float(self.deferral_cost))
