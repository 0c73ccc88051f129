"""Triage by predicted errors of machine and human."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.humans.human import Human
from deferlearn.humans.losses import majority_labels
from deferlearn.teams.context import FoldContext, places
from deferlearn.teams.held_out import held_out
from deferlearn.teams.machines import KERNEL_PARAMETERS
from deferlearn.teams.policy import seed_all
from deferlearn.teams.samples import Samples
from deferlearn.teams.triage import NOT_OF_RANKERS, Triage

# The paper's network; it leaves the strength of the penalty and the steps open. These are
# scikit-learn's, but for the number of epochs: with hundreds of samples an epoch is two or three steps.
HIDDEN_UNITS = 100
EPOCHS = 500


@dataclass(eq=False, repr=False)
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
        Parameters of the kernels "poly" and "rbf", as in `sklearn.svm.SVC`.
    fit_intercept : bool, default=True
        Whether the machine has an offset b.
    margin : {"soft", "hard"}, default="soft"
        "hard" is for the linear kernel and classes that can be separated.
    class_weight : dict, "balanced" or None, default=None
        The cost of the machine's error on each class.
    classes : {"auto", "grades"} or sequence of labels, default="auto"
        "auto": two classes; or more without an order, with a machine for each class against the rest.
        "grades": ordered as numbers are, with a machine for each step from a grade to the next. For words,
        give the grades from the lowest to the highest.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        What each answer (column) to a case of each class (row) costs, in units of one error and in the
        order of `classes_`. None: every error costs 1, or 1 per grade. The human's answers cost exactly
        this; the machine is trained with the mean cost of the errors on a class as its weight, and
        gives the answer with the smallest expected cost.
    error_model : classifier or None, default=None
        The model that predicts errors from x; it needs `predict_proba`, and is cloned for each of the two.
        None is the paper's perceptron (100 hidden ReLU units, an L2 penalty, stochastic gradient
        descent), on standardised features, of which the paper says nothing.
    machine : classifier or None, default=None
        None is the SVM with the parameters above. Any other classifier with `predict_proba` or
        `decision_function` is fitted by itself, and calibrated on held-out samples. For scores of a machine
        that cannot be retrained, see ``machine_scores`` in `fit`.
    cv : int, splitter or None, default=5
        Folds behind the threshold of `defer`: for each fold, the machine and both classifiers are fitted
        on the others. None uses the scores of the training samples.
    n_jobs : int or None, default=None
        The number of folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Seed of the classifiers, of the folds, and of the coin that decides between equal scores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    machine_error_model_, human_error_model_ : classifier
        The fitted models; their class 1 is an error. `sklearn.dummy.DummyClassifier` where all samples
        were alike.
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

    Notes
    -----
    Of `human_loss` only this is used: above 1, the hinge loss of an undecided answer, the human is
    wrong; with more than two classes, from half an error on. Samples without an answer are left out of
    the two models, and a warning says how many.

    The machine's errors are those on its own training samples, as in the paper. A machine that has
    memorised them errs nowhere, and there is nothing to predict.

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

    _: KW_ONLY
    error_model: Any = None

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

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        super().check_parameters()
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

    def _warn_of(self, human: Human) -> None:
        human.warn(gaps=False, stacklevel=3)
        unread = int(np.isnan(human.scores).all(axis=1).sum())
        if unread:
            warnings.warn(
                f"{unread} of {len(human.scores)} cases have no answer and are left out where the errors "
                "of machine and human are learned.",
                UserWarning,
                stacklevel=3,
            )

    def _fit_ranker(self, samples: Samples, own: Array, context: FoldContext, seed: int) -> Any:
        rows = np.arange(len(samples))
        human = self._human_model(rows, rows, samples, seed)
        return self._machine_model(rows, rows, samples, seed, own), human

    def _rankers(self, context: FoldContext) -> list[Any]:
        splits, samples, seed, jobs = context.splits, context.samples, context.seed, context.n_jobs
        # The human is the same beside every machine.
        humans = context.once(
            (
                "human errors",
                context.name_of(self, *NOT_OF_RANKERS, *KERNEL_PARAMETERS, "alpha", "machine"),
            ),
            lambda: held_out(self._human_model, splits, samples, seed, n_jobs=jobs),
        )
        own = context.margins()[1]
        machines = context.once(
            ("machine errors", context.machine, context.name_of(self, *NOT_OF_RANKERS)),
            lambda: held_out(self._machine_model, splits, samples, seed, each=own, n_jobs=jobs),
        )
        return list(zip(machines, humans, strict=True))

    def _held_out_scores(self, context: FoldContext) -> Array:
        # What it predicts are probabilities, but each fold's own: places are compared.
        scores = super()._held_out_scores(context)
        return context.join([places(scores[fold], 0.5) for fold in context.folds])

    def _machine_model(
        self, train: Index, test: Index, samples: Samples, seed: int, own: Array
    ) -> Any:
        """The model of the errors of a machine whose decision values of its samples are ``own``."""
        answers = samples.human.scores[train]
        read = ~np.isnan(answers).all(axis=1)
        # As -1 and +1, or as codes of several classes, like the answers.
        said = samples.answers(own[read])
        said = said if samples.coding.several else 2 * said - 1
        errs = differs_from_human(said, answers[read], several=samples.coding.several)
        return self._model(samples.seen_by(train, train)[read], errs, seed)

    def _human_model(self, train: Index, test: Index, samples: Samples, seed: int) -> Any:
        """The model of the human's errors, which knows nothing of the machine."""
        answers, y = samples.human.scores[train], samples.y[train]
        read = ~np.isnan(answers).all(axis=1)
        errs = disagrees_with_self(answers[read], y[read], several=samples.coding.several)
        return self._model(samples.seen_by(train, train)[read], errs, seed)

    def _model(self, X: Any, errs: Bools, seed: int) -> Any:
        return fit_error_model(X, errs, seed, self.error_model)

    def _rank_by(self, ranker: Any, X: Any, margin: Array) -> Array:
        machine, human = ranker
        return probability_of_error(machine, X) - probability_of_error(human, X)


def fit_error_model(X: Any, errs: Bools, seed: int, error_model: Any = None) -> Any:
    """A classifier fitted on who errs; None is the paper's perceptron, on standardised features."""
    if len(errs) == 0:  # no answer is known outside of a fold
        return DummyClassifier().fit(np.zeros((1, X.shape[1])), [0])
    if errs.all() or not errs.any():
        model: Any = DummyClassifier()
    elif error_model is None:
        scaler = StandardScaler(with_mean=not hasattr(X, "tocsr"))  # zeros stay zeros
        network = MLPClassifier((HIDDEN_UNITS,), solver="sgd", max_iter=EPOCHS)
        model = make_pipeline(scaler, network)
    else:
        model = clone(error_model)
    seed_all(model, seed)
    with warnings.catch_warnings():
        # How good a ranking is shows in its deferrals, not in the last digits of the weights.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, errs.astype(np.int64))


def probability_of_error(model: Any, X: Any) -> Array:
    """Probability of the class 1; a model that has seen one class knows no other."""
    if len(model.classes_) == 1:
        return np.full(X.shape[0], float(model.classes_[0]))
    return np.asarray(model.predict_proba(X)[:, 1], dtype=np.float64)


def differs_from_human(machine: Any, scores: Array, several: bool = False) -> Bools:
    """Whether the machine's answer is not the one that the team would get from the human.

    That is the majority of those who answered, ties to the first. Every row needs an answer.
    """
    said = scores
    if not several:
        said = np.where(np.isnan(scores), np.nan, np.where(scores >= 0, 1.0, -1.0))
    return np.asarray(machine != majority_labels(said))


def disagrees_with_self(scores: Array, signs: Array, several: bool = False) -> Bools:
    """Whether humans err: whether two halves of them differ.

    Those who answered are split in their order into two halves, the first one larger if need be; each
    half's scores are averaged, and the sign is its answer; of several classes, its majority is. Of a
    single one the truth is the judge.
    """
    given = ~np.isnan(scores)
    count = given.sum(axis=1, keepdims=True)
    place = np.cumsum(given, axis=1) - 1
    in_first = given & (2 * place < count)
    answer = _majority if several else _sign_of_mean
    first, second = answer(scores, in_first), answer(scores, given & ~in_first)
    return np.where(count[:, 0] == 1, first != signs, first != second)


def _majority(codes: Array, members: Bools) -> Array:
    """The majority of the members; NaN where there are none."""
    return np.asarray(
        majority_labels(np.where(members, codes, np.nan), default=np.full(len(codes), np.nan)),
        dtype=np.float64,
    )


def _sign_of_mean(scores: Array, members: Bools) -> Array:
    """The sign of the members' mean; of a mean of zero, the first one's side."""
    total = np.where(members, scores, 0.0).sum(axis=1)
    first = scores[np.arange(len(scores)), members.argmax(axis=1)]
    return np.where(np.where(total == 0, first, total) >= 0, 1.0, -1.0)
