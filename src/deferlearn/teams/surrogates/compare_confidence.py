"""One model of the label, one of whether the human is right, compared on each case."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from deferlearn._utils.types import Array
from deferlearn.teams.policy import seed_all
from deferlearn.teams.samples import Samples
from deferlearn.teams.surrogates.base import GainTeam
from deferlearn.teams.surrogates.logistic import LogisticModel
from deferlearn.teams.surrogates.targets import mean_cost, share_right

# Places of the two answers to "is the human right?".
WRONG, RIGHT = 0, 1


@dataclass(eq=False, repr=False)
class CompareConfidence(GainTeam):
    r"""Humans take the cases where they are more likely to be right than the machine.

    Two classifiers are fitted independently: one of the label on all samples, and one of "the human is
    right" on the samples with an answer. The score is

    .. math:: P(\text{human is right} \mid x) - \max_k P(y = k \mid x) - c,

    where c is `deferral_cost`.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples, which acts on new
        data as the fraction that it was of the training samples.
    alpha : float, default=0.01
        Regularisation of our own logistic regression, where no other classifier is given. It minimises
        the mean loss plus alpha times the squares of the weights of standardised features, so that alpha
        means the same whatever their units. With two classes, the C of scikit-learn's
        `LogisticRegression` on standardised features is ``1 / (alpha * n)``.
    machine : classifier or None, default=None
        The model of the label; any scikit-learn classifier with `predict_proba`. None is regularised
        logistic regression.
    human_model : classifier or None, default=None
        The model of "the human is right"; None is a copy of `machine`.
    use_full_budget : bool, default=False
        Whether to spend the budget also on cases with a score of 0 or less, where the machine is
        expected to be right more often.
    class_weight : dict, "balanced" or None, default=None
        The cost of an error on each class, whoever errs. The classifiers are fitted with these weights,
        and scores are differences of expected costs.
    classes : {"auto", "grades"} or sequence of labels, default="auto"
        The order of the classes, as in `AssistedSVC`; this method makes no use of it.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        What each answer to a case of each class costs, as in `AssistedSVC`. This method uses one cost per
        class: the mean cost of its errors.
    deferral_cost : float, default=0.0
        Cost of human time per case, in units of one error. It is subtracted from the scores.
    cv : int, splitter or None, default=5
        Folds behind the threshold of `defer`: for each fold, both classifiers are fitted on the others.
        None uses the scores of the training samples.
    n_jobs : int or None, default=None
        The number of folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Seed of the classifiers, of the folds and of the coin that decides between equal scores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    machine_, human_model_ : classifier
        The fitted models. Their classes are the places of the labels in `classes_`, and 0 for wrong, 1 for
        right. `sklearn.dummy.DummyClassifier` where all samples were alike.
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
    Where readers of one sample differ, it counts for both answers by their shares; a classifier whose
    `fit` takes no ``sample_weight`` gets the answer of the majority (right where there are equally many).

    Probabilities are compared as the classifiers give them. Those of a classifier that has memorised its
    samples are too sure; `sklearn.calibration.CalibratedClassifierCV` mends them.

    References
    ----------
    M. Raghu, K. Blumer, G. Corrado, J. Kleinberg, Z. Obermeyer, S. Mullainathan: The Algorithmic
    Automation Problem: Prediction, Triage, and Human Effort. arXiv:1903.12220, 2019.

    H. Mozannar, H. Lang, D. Wei, P. Sattigeri, S. Das, D. Sontag: Who Should Predict? Exact Algorithms
    For Learning to Defer to Humans. AISTATS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from deferlearn.teams import CompareConfidence
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(200, random_state=0)
    >>> expert = np.where(X[:, 0] > 0, y, -y)  # knows one half of the space
    >>> forest = RandomForestClassifier(20, min_samples_leaf=5)
    >>> team = CompareConfidence(machine=forest, budget=0.3, cv=None, random_state=0)
    >>> team = team.fit(X, y, human_labels=expert)
    >>> bool((X[team.defer_top(X), 0] > 0).mean() > 0.9)
    True
    """

    _: KW_ONLY
    machine: Any = None
    human_model: Any = None

    @property
    def machine_(self) -> Any:
        """The model of the label."""
        check_is_fitted(self)
        return self._model[0]

    @property
    def human_model_(self) -> Any:
        """The model of "the human is right"."""
        check_is_fitted(self)
        return self._model[1]

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        super().check_parameters()
        for name in ("machine", "human_model"):
            _check_model(name, getattr(self, name), self.class_weight)

    def _fit_model(self, samples: Samples, share: float, seed: int) -> tuple[Any, Any, int]:
        machine = LogisticModel(alpha=float(self.alpha)) if self.machine is None else self.machine
        human = machine if self.human_model is None else self.human_model
        weights = samples.weights if np.ptp(samples.weights) > 0 else None
        right, read = share_right(samples)
        return (
            _fitted(machine, samples.X, samples.codes, weights, seed),
            _fit_shares(
                human,
                samples.X[read],
                right[read],
                None if weights is None else weights[read],
                seed,
            ),
            len(samples.classes),
        )

    def _decide_by(self, model: Any, X: Any) -> Array:
        p = _probabilities(model[0], X, model[2])
        return np.asarray(p[:, 1] - p[:, 0] if model[2] == 2 else p)

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
        X = self._check_new(X)
        return self._expected_by(self._model, X, self._costs)

    def _expected_by(self, model: Any, X: Any, costs: Array) -> tuple[Array, Array]:
        p = _probabilities(model[0], X, len(costs))
        size = mean_cost(p, costs)
        human = size * _probabilities(model[1], X, 2)[:, WRONG] + float(self.deferral_cost)
        return size * (1.0 - p.max(axis=1)), human

    def _rank_by(self, model: Any, X: Any, costs: Array) -> Array:
        machine, human = self._expected_by(model, X, costs)
        return machine - human


def _check_model(name: str, model: Any, class_weight: Any) -> None:
    if model is None:
        return
    if isinstance(model, type):
        raise ValueError(f"{name}={model!r} is a class; give an instance, with parentheses.")
    if isinstance(model, str) or not is_classifier(model):
        raise ValueError(f"{name}={model!r} must be a scikit-learn classifier or None.")
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{name}={model!r} has no predict_proba, so machine and human cannot be compared; set its "
            "option for probabilities, or take another classifier."
        )
    if class_weight is not None and not has_fit_parameter(model, "sample_weight"):
        raise ValueError(
            f"class_weight={class_weight!r}: the fit of {name}={model!r} takes no sample_weight, so errors "
            "cannot be weighted; take another classifier, or None."
        )


def _fit_shares(model: Any, X: Array, right: Array, weights: Array | None, seed: int) -> Any:
    """The model of "the human is right", where readers may differ."""
    if len(right) == 0:  # no answer is known outside of a fold
        return DummyClassifier().fit(np.zeros((2, X.shape[1])), [WRONG, RIGHT])
    differ = bool(((right > 0) & (right < 1)).any())
    if not differ or not has_fit_parameter(model, "sample_weight"):
        return _fitted(model, X, (right >= 0.5).astype(np.int64), weights, seed)
    # A sample counts for both answers, by their shares.
    each = np.ones(len(right)) if weights is None else weights
    both = np.concatenate([right * each, (1.0 - right) * each])
    answers = np.repeat([RIGHT, WRONG], len(right))
    used = both > 0
    return _fitted(model, np.vstack([X, X])[used], answers[used], both[used], seed)


def _fitted(model: Any, X: Array, y: NDArray[np.int64], weights: Array | None, seed: int) -> Any:
    """A fitted copy of the model; a constant where there is nothing to tell apart."""
    if len(np.unique(y)) == 1:
        return DummyClassifier(strategy="prior").fit(X, y)
    model = clone(model)
    seed_all(model, seed)
    with warnings.catch_warnings():
        # How good a ranking is shows in its deferrals, not in the last digits of the weights.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if weights is None:
            return model.fit(X, y)
        if not has_fit_parameter(model, "sample_weight"):
            raise ValueError(
                f"The fit of {model!r} takes no sample_weight, so errors cannot be weighted; use another "
                "classifier, or None."
            )
        return model.fit(X, y, sample_weight=weights)


def _probabilities(model: Any, X: Any, n_classes: int) -> Array:
    """Probabilities of all classes, 0 for one that the model has not seen."""
    given = np.asarray(model.predict_proba(X), dtype=np.float64)
    out = np.zeros((len(given), n_classes))
    out[:, model.classes_] = given
    return out
