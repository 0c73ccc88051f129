"""Differentiable triage: in turns, the samples for the human are chosen and the machine is fitted."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.checks import is_whole, plain
from deferlearn._utils.types import Array, Bools
from deferlearn.teams.odds import log_softmax
from deferlearn.teams.parameters import count_of
from deferlearn.teams.samples import Samples
from deferlearn.teams.surrogates.base import LearnedTeam
from deferlearn.teams.surrogates.linear import LinearModel, fit_linear
from deferlearn.teams.surrogates.logistic import softmax_loss
from deferlearn.teams.surrogates.targets import Targets, targets_of
from deferlearn.teams.threshold import first_of

# One error on the scale of natural logarithms: the loss of a machine that cannot tell two classes apart.
ONE_ERROR = float(np.log(2.0))


@dataclass(frozen=True)
class TriageModel:
    """What is learned.

    Attributes
    ----------
    machine : LinearModel
        An output per class.
    policy : LinearModel or None
        Outputs for "kept" and "deferred"; None if all samples were alike.
    deferred : ndarray of bool of shape (n_samples,)
        The samples that were deferred.
    values : ndarray of shape (n_rounds,)
        The objective after each round.
    """

    machine: LinearModel
    policy: LinearModel | None
    deferred: Bools
    values: Array


@dataclass(eq=False, repr=False)
class DifferentiableTriage(LearnedTeam):
    r"""Samples for the human and the machine without them, in turns (Okati, De, Gomez-Rodriguez, 2021).

    The machine is a softmax regression with probabilities p. With S the deferred samples, the team's
    objective is

    .. math:: \frac{1}{\sum_i v_i} \Big( \sum_{i \notin S} v_i \, \ell_i
        + \sum_{i \in S} (v_i \, e_i + c) \log 2 \Big) + \alpha \|W\|_F^2,
        \qquad \ell_i = -\log p_{y_i}(x_i),

    on standardised features. Here :math:`v_i` is the cost of an error (1 without ``class_weight``),
    :math:`e_i` is the share of the readers that err, c is `deferral_cost`, and the factor :math:`\log 2`
    makes an error of the human as costly as the machine's answer when it cannot tell two classes apart.
    Starting with a machine on all samples, two steps alternate until S stays the same:

    - the samples that lose most by having the machine instead of the human are deferred: at most as many
      as the budget says, and only those that do lose;
    - the machine is fitted on the others.

    Neither can raise the objective. New cases are ranked by a policy: logistic regression of "deferred" on
    x, with the same alpha. The score is its log-odds.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples, which acts on new
        data as the fraction that it was of the training samples.
    alpha : float, default=0.01
        Regularisation of the machine and of the policy. Features are standardised internally, so that
        it means the same whatever their units.
    max_iter : int, default=50
        The most rounds after the first, which is the machine on all samples; a few are usually enough.
    class_weight : dict, "balanced" or None, default=None
        The cost of an error on each class, whoever errs.
    classes : {"auto", "grades"} or sequence of labels, default="auto"
        The order of the classes, as in `AssistedSVC`; this method makes no use of it.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        What each answer to a case of each class costs, as in `AssistedSVC`. This method uses one cost per
        class: the mean cost of its errors.
    deferral_cost : float, default=0.0
        Cost of human time per case, in units of one error. Samples are deferred only if they gain more.
    cv : int, splitter or None, default=5
        Folds behind the threshold of `defer`: for each fold, machine and policy are fitted on the
        others. None uses the scores of the training samples.
    n_jobs : int or None, default=None
        The number of folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the coin that decides between equal scores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    deferred_ : ndarray of bool of shape (n_samples_fit_,)
        The samples that were deferred in training.
    n_iter_ : int
        The number of rounds, of which the first is the machine on all samples.
    objective_values_ : ndarray of shape (n_iter_,)
        The team's objective after each round.
    deferral_threshold_ : float
        `defer` defers above it.
    deferral_rate_ : float
        The expected share of new cases that `defer` defers: the budget, or less where fewer
        samples gained by it.
    n_samples_fit_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    References
    ----------
    N. Okati, A. De, M. Gomez-Rodriguez: Differentiable Learning Under Triage. NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams import DifferentiableTriage
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(200, random_state=0)
    >>> expert = np.where(X[:, 0] > 0, y, -y)  # knows one half of the space
    >>> team = DifferentiableTriage(budget=0.3, random_state=0).fit(X, y, human_labels=expert)
    >>> int(team.deferred_.sum()), bool((X[team.deferred_, 0] > 0).mean() > 0.9)
    (60, True)
    >>> team.score_assisted(X, y, expert) > team.score(X, y)
    True
    """

    _: KW_ONLY
    max_iter: int = 50

    @property
    def deferred_(self) -> Bools:
        """The samples that were deferred in training."""
        check_is_fitted(self)
        return self._model.deferred

    @property
    def n_iter_(self) -> int:
        """The number of rounds, of which the first is the machine on all samples."""
        check_is_fitted(self)
        return len(self._model.values)

    @property
    def objective_values_(self) -> Array:
        """The team's objective after each round."""
        check_is_fitted(self)
        return self._model.values

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        super().check_parameters()
        if not is_whole(self.max_iter) or self.max_iter < 1:
            raise ValueError(
                f"max_iter={plain(self.max_iter)!r} must be a whole number, 1 or larger."
            )

    def _fit_model(self, samples: Samples, share: float, seed: int) -> TriageModel:
        X, targets, alpha = samples.X, targets_of(samples), float(self.alpha)
        n_classes, n = len(samples.classes), len(samples)
        human = _human_costs(targets, float(self.deferral_cost) / float(samples.weights.sum()))
        count = count_of(share, n)
        deferred = np.zeros(n, dtype=bool)
        machine, value = _fit_machine(X, targets, deferred, n_classes, alpha)
        values = [value]
        for _ in range(int(self.max_iter)):
            gain = targets.weights * _losses(machine, X, targets.codes) - human
            chosen = first_of(gain, count) & (gain > 0)
            if (chosen == deferred).all():
                break
            if chosen.all():  # the machine has nothing to learn from, and stays as it is
                deferred = chosen
                break
            found, loss = _fit_machine(X, targets, chosen, n_classes, alpha, machine)
            value = loss + float(human[chosen].sum())
            if value >= values[-1]:  # by rounding: what is left to gain is less than that
                break
            deferred, machine = chosen, found
            values.append(value)
        return TriageModel(machine, _fit_policy(X, deferred, alpha), deferred, np.array(values))

    def _decide_by(self, model: Any, X: Any) -> Array:
        F = model.machine.outputs(X)
        return np.asarray(F[:, 1] - F[:, 0] if F.shape[1] == 2 else F)

    def _rank_by(self, model: Any, X: Any, costs: Array) -> Array:
        if model.policy is None:
            return np.zeros(X.shape[0])
        F = model.policy.outputs(X)
        return np.asarray(F[:, 1] - F[:, 0])

    def _rate_of(self, model: Any, share: float) -> float:
        count, n = int(model.deferred.sum()), len(model.deferred)
        # A budget that is spent need not be a whole number of samples.
        return share if 0 < count == count_of(share, n) else count / n


def _human_costs(targets: Targets, deferral_cost: float) -> Array:
    """What the human's answers and time cost in the objective; a sample without an answer is kept."""
    cost = ONE_ERROR * (targets.weights * (1.0 - targets.right) + deferral_cost)
    return np.where(targets.read, cost, np.inf)


def _fit_machine(
    X: Array,
    targets: Targets,
    deferred: Bools,
    n_classes: int,
    alpha: float,
    start: LinearModel | None = None,
) -> tuple[LinearModel, float]:
    """The machine for the samples that are kept, and their part of the objective."""
    weights = np.where(deferred, 0.0, targets.weights)
    return fit_linear(X, n_classes, alpha, softmax_loss(targets.codes, weights), start)


def _fit_policy(X: Array, deferred: Bools, alpha: float) -> LinearModel | None:
    if deferred.all() or not deferred.any():
        return None
    weights = np.full(len(deferred), 1.0 / len(deferred))
    return fit_linear(X, 2, alpha, softmax_loss(deferred.astype(np.int64), weights))[0]


def _losses(machine: LinearModel, X: Array, codes: NDArray[np.int64]) -> Array:
    """The machine's logistic loss of each sample."""
    return -log_softmax(machine.outputs(X))[np.arange(len(codes)), codes]
