"""Triage by predicted errors of machine and human."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deferlearn.humans.human import losses_of
from deferlearn.teams.baseline import Array, Human
from deferlearn.teams.crossfit import Samples
from deferlearn.teams.errors import differs_from_human, disagrees_with_self, scores_of
from deferlearn.teams.policy import seed_all
from deferlearn.teams.triage import Triage

# The paper's network; it leaves the strength of the penalty and the steps open. These are
# scikit-learn's, but for the number of epochs: with hundreds of samples an epoch is two or three steps.
HIDDEN_UNITS = 100
EPOCHS = 500


class PredictedErrorTriage(Triage):
    r"""Humans take the cases where the machine is expected to err more than they are.

    A support vector machine is fitted on all samples, and two classifiers on the same samples: one for
    the errors of the machine, one for those of the human. Cases are ranked by the difference of the two
    predicted probabilities. What counts as an error is the paper's:

    - the machine errs where its answer differs from the human's (the majority of several readers);
    - the human errs where two halves of the readers differ, each averaged and thresholded; where a
      case has one reader, the human errs if wrong against y.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples, which acts on new
        data as the fraction that it was of the training samples.
    alpha : float, default=1.0
        Regularisation of the machine, the paper's lambda. With n samples, the C of `sklearn.svm.SVC` is
        ``1 / (2 * alpha * n)``.
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        As in `AssistedSVC`.
    degree, gamma, coef0 : float
        Of the kernels "poly" and "rbf", as in `sklearn.svm.SVC`.
    fit_intercept : bool, default=True
        Whether the machine has an offset b.
    margin : {"soft", "hard"}, default="soft"
        "hard" is for the linear kernel and classes that can be separated.
    class_weight : dict, "balanced" or None, default=None
        The price of the machine's error on each class.
    error_model : classifier or None, default=None
        What predicts errors from x; needs `predict_proba`, and is cloned for each of the two. None is the
        paper's perceptron on standardised features: 100 hidden ReLU units, an L2 penalty, stochastic
        gradient descent.
    cv : int, splitter or None, default=5
        Folds behind the threshold of `defer`: for each, machine and both classifiers are fitted on the
        others. None takes the scores of the training samples.
    n_jobs : int or None, default=None
        How many folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Of the classifiers, the folds and the coin between equal scores.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive class.
    machine_error_model_, human_error_model_ : classifier
        The fitted models; their class 1 is an error. `sklearn.dummy.DummyClassifier` where all samples
        were alike.
    coef_, intercept_, dual_coef_, support_, support_vectors_ : ndarray
        The machine, as in `AssistedSVC`.
    deferral_threshold_ : float
        `defer` defers above it.
    deferral_rate_ : float
        The budget as a fraction, which `defer` keeps to.
    n_samples_fit_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    Notes
    -----
    Of `human_loss` only this is used: above 1, the hinge loss of an undecided answer, the human is
    wrong. Samples that nobody read have no part in the two models, and a warning says how many.

    The machine's errors are those on its own training samples, as in the paper. A machine that has
    learned them by heart errs nowhere, and there is nothing to predict.

    References
    ----------
    M. Raghu, K. Blumer, G. Corrado, J. Kleinberg, Z. Obermeyer, S. Mullainathan: The Algorithmic
    Automation Problem: Prediction, Triage, and Human Effort. arXiv:1903.12220, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams import PredictedErrorTriage
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(200, random_state=0)
    >>> expert = np.where(X[:, 0] > 0, y, -y)  # knows one half of the space
    >>> triage = PredictedErrorTriage(alpha=0.1, cv=None, random_state=0)
    >>> triage = triage.fit(X, y, human_labels=expert)
    >>> bool((X[triage.defer_top(X), 0] > 0).mean() > 0.9)
    True
    """

    def __init__(
        self,
        budget: float | int = 0.2,
        alpha: float = 1.0,
        kernel: Any = "linear",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        margin: str = "soft",
        class_weight: Any = None,
        error_model: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.budget = budget
        self.alpha = alpha
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.margin = margin
        self.class_weight = class_weight
        self.error_model = error_model
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def machine_error_model_(self) -> Any:
        """The model of the machine's errors."""
        return self._fitted_ranker()[0]

    @property
    def human_error_model_(self) -> Any:
        """The model of the human's errors."""
        return self._fitted_ranker()[1]

    def _fitted_ranker(self) -> Any:
        self._fitted_machine()
        return self._ranker

    def _check_parameters(self) -> None:
        super()._check_parameters()
        model = self.error_model
        if model is None:
            return
        if isinstance(model, type):
            raise ValueError(
                f"error_model={model!r} is a class; give an instance, with parentheses."
            )
        if isinstance(model, str) or not is_classifier(model):
            raise ValueError(f"error_model={model!r} must be a scikit-learn classifier or None.")
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"error_model={model!r} has no predict_proba, so predicted errors of machine and human "
                "cannot be compared; set its option for probabilities, or take another classifier."
            )

    def _check_human(self, signs: Array, human: Human) -> None:
        with warnings.catch_warnings():
            # No average is put into gaps here: the samples are left out, see `_answers_of`.
            warnings.filterwarnings(
                "ignore", message=".*no answer was given for", category=UserWarning
            )
            losses_of(signs, self.classes_, **human)

    def _answers_of(self, signs: Array, human: Human) -> Array:
        scores = scores_of(signs, self.classes_, **human)
        unread = int(np.isnan(scores).all(axis=1).sum())
        if unread:
            warnings.warn(
                f"{unread} of {len(scores)} cases were read by nobody and are left out where the errors "
                "of machine and human are learned.",
                UserWarning,
                stacklevel=5,
            )
        return scores

    def _fit_ranker(
        self, samples: Samples, margin: Array, answers: Array | None, seed: int
    ) -> tuple[Any, Any]:
        assert answers is not None
        human = self._fit_human(samples.X, samples.y, answers, seed)
        return self._fit_machine(samples.X, margin, answers, seed), human

    def _fit_machine(self, X: Any, margin: Array, answers: Array, seed: int) -> Any:
        read = ~np.isnan(answers).all(axis=1)
        return self._model(X[read], differs_from_human(margin[read], answers[read]), seed)

    def _fit_human(self, X: Any, y: Array, answers: Array, seed: int) -> Any:
        """The model of the human's errors, which knows nothing of the machine."""
        read = ~np.isnan(answers).all(axis=1)
        return self._model(X[read], disagrees_with_self(answers[read], y[read]), seed)

    def _model(self, X: Any, errs: NDArray[np.bool_], seed: int) -> Any:
        """A classifier fitted on who errs."""
        if len(errs) == 0:  # a fold whose answers were all of the samples': nobody is known to err
            return DummyClassifier().fit(np.zeros((1, X.shape[1])), [0])
        if errs.all() or not errs.any():
            model: Any = DummyClassifier()
        elif self.error_model is None:
            scaler = StandardScaler(with_mean=not hasattr(X, "tocsr"))  # zeros stay zeros
            network = MLPClassifier((HIDDEN_UNITS,), solver="sgd", max_iter=EPOCHS)
            model = make_pipeline(scaler, network)
        else:
            model = clone(self.error_model)
        seed_all(model, seed)
        with warnings.catch_warnings():
            # How good a ranking is shows in its deferrals, not in the last digits of the weights.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X, errs.astype(np.int64))

    def _rank_by(self, ranker: Any, X: Any, margin: Array) -> Array:
        machine, human = ranker
        return _probability_of_error(machine, X) - _probability_of_error(human, X)


def _probability_of_error(model: Any, X: Any) -> Array:
    """Probability of the class 1; a model that has seen one class knows no other."""
    if len(model.classes_) == 1:
        return np.full(X.shape[0], float(model.classes_[0]))
    return np.asarray(model.predict_proba(X)[:, 1], dtype=np.float64)
