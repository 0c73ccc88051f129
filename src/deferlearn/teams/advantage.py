"""Triage by advantage: humans take the cases where they are expected to lose less than the machine."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_regressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.utils import check_random_state

from deferlearn._utils.checks import check_flag
from deferlearn._utils.jobs import call_each
from deferlearn.humans.answers import as_array, fill_gaps
from deferlearn.humans.human import losses_of
from deferlearn.teams.baseline import Array, Human, solve
from deferlearn.teams.crossfit import Samples, fold_rows, rest_of
from deferlearn.teams.machine import Machine
from deferlearn.teams.parameters import check_cost, count_of
from deferlearn.teams.policy import seed_all
from deferlearn.teams.team import Bools
from deferlearn.teams.threshold import Threshold, ranks_among, threshold_from_folds
from deferlearn.teams.triage import Index, Triage

# A wrong label costs a human this much (the hinge loss at h = -y); an error counts 1 here.
LOSS_OF_ERROR = 2.0
# Each of the two rates by predicted class starts from so many cases at the rate of all.
PRIOR_CASES = 2.0
# Isotonic fits are flat in places. There the less sure case goes first, by a hair: so much of the
# largest cost, whatever the unit of the prices.
TIE_BREAK = 1e-6

FOREST = RandomForestRegressor(n_estimators=50, min_samples_leaf=5)


class AdvantageModel:
    """Expected cost of the machine's answer minus that of the human's, learned from cases not fitted.

    Parameters
    ----------
    machine_error : "margin" or regressor
        "margin": isotonic in how sure the machine is, for each of its answers. A regressor sees x and
        the margin.
    human_error : "class" or regressor
        "class": the mean over the cases with the same answer of the machine. A regressor sees x.
    """

    def __init__(self, machine_error: Any, human_error: Any) -> None:
        self.machine_error = machine_error
        self.human_error = human_error

    def fit(
        self,
        X: Any,
        margin: Array,
        machine_cost: Array,
        human_cost: Array,
        seed: int,
        human: Any = None,
    ) -> AdvantageModel:
        """Learn from margins of cases that the machine had not seen, and what they cost.

        ``human`` is the human's regressor, if it has been fitted on these cases already.
        """
        self.machine_: Any = None
        self.human_: Any = None
        self.hair_ = TIE_BREAK * (max(machine_cost.max(), human_cost.max()) or 1.0)
        self.steps_ = [_isotonic(margin, machine_cost, side) for side in (False, True)]
        self.rates_ = [_rate(margin, human_cost, side) for side in (False, True)]
        if not isinstance(self.machine_error, str):
            self.machine_ = _seeded(self.machine_error, seed).fit(_join(X, margin), machine_cost)
        if not isinstance(self.human_error, str):
            self.human_ = self.fit_human(X, human_cost, seed) if human is None else human
        return self

    def fit_human(self, X: Any, human_cost: Array, seed: int) -> Any:
        """The regressor of the human's cost, which knows nothing of the machine."""
        return _seeded(self.human_error, seed).fit(X, human_cost)

    def predict(self, X: Any, margin: Array) -> Array:
        """The advantage of asking the human about each case."""
        machine, human = self.expected(X, margin)
        sure = np.abs(margin)
        return np.asarray(machine - human - self.hair_ * sure / (1.0 + sure), dtype=np.float64)

    def expected(self, X: Any, margin: Array) -> tuple[Array, Array]:
        """What the machine's answer and the human's are expected to cost."""
        positive = margin > 0
        if self.machine_ is None:
            machine = np.where(
                positive,
                np.interp(np.abs(margin), *self.steps_[1]),
                np.interp(np.abs(margin), *self.steps_[0]),
            )
        else:
            machine = self.machine_.predict(_join(X, margin))
        if self.human_ is None:
            human = np.where(positive, self.rates_[1], self.rates_[0])
        else:
            human = self.human_.predict(X)
        return np.asarray(machine, dtype=np.float64), np.asarray(human, dtype=np.float64)


def _isotonic(margin: Array, cost: Array, side: bool) -> tuple[Array, Array]:
    """Steps of the machine's expected cost, falling with how sure it is, for one of its answers."""
    rows = (margin > 0) == side
    if not rows.any():
        return np.zeros(1), np.array([cost.mean()])
    model = IsotonicRegression(increasing=False).fit(np.abs(margin[rows]), cost[rows])
    return model.X_thresholds_, model.y_thresholds_


def _rate(margin: Array, cost: Array, side: bool) -> float:
    """The human's mean cost where the machine gives this answer, drawn towards that of all cases."""
    rows = (margin > 0) == side
    return float(
        (cost[rows].sum() + PRIOR_CASES * cost.mean()) / (np.count_nonzero(rows) + PRIOR_CASES)
    )


def _join(X: Any, margin: Array) -> Any:
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([X, sp.csr_array(margin[:, None])]))
    return np.hstack([X, margin[:, None]])


def _seeded(regressor: Any, seed: int) -> Any:
    model = clone(regressor)
    seed_all(model, seed)
    return model


def resolve_error(name: str, value: Any, word: str) -> Any:
    """A model of errors: the word for the simple one, "forest", or a regressor as it is."""
    if isinstance(value, str):
        if value == word:
            return value
        if value == "forest":
            return FOREST
    elif not isinstance(value, type) and hasattr(value, "fit") and is_regressor(value):
        return value
    raise ValueError(
        f"{name}={value!r} must be {word!r}, 'forest', or an instance of a scikit-learn regressor."
    )


def held_out_margins(
    samples: Samples, folds: list[Index], n_jobs: int | None = None
) -> tuple[Array, list[Array]]:
    """Decision values by machines without a fold: each sample's, and each machine's own samples'."""
    parts = call_each(_margins_of, ((samples, fold) for fold in folds), n_jobs)
    margin = np.empty(len(samples.y))
    for fold, (held_out, _) in zip(folds, parts, strict=True):
        margin[fold] = held_out
    return margin, [own for _, own in parts]


def _margins_of(samples: Samples, fold: Index) -> tuple[Array, Array]:
    rows = rest_of(fold, len(samples.y))
    part, X = samples.part(rows), samples.X[fold]
    decide = solve(part).decision_function
    return decide(X[:, rows] if samples.settings.precomputed else X), decide(part.X)


def models_of_folds(
    model: AdvantageModel,
    samples: Samples,
    margin: Array,
    folds: list[Index],
    seed: int,
    humans: list[Any] | None = None,
) -> list[AdvantageModel]:
    """The model fitted without each fold, on held-out margins; ``humans`` as in `AdvantageModel.fit`."""
    wrong = machine_cost(samples, margin)
    models = []
    for k, fold in enumerate(folds):
        rows = rest_of(fold, len(margin))
        part = AdvantageModel(model.machine_error, model.human_error)
        human = None if humans is None else humans[k]
        models.append(
            part.fit(samples.X[rows], margin[rows], wrong[rows], samples.loss[rows], seed, human)
        )
    return models


def held_out_advantage(
    models: list[AdvantageModel], X: Any, margin: Array, folds: list[Index]
) -> Array:
    """The advantage of each sample by the model that has not seen its fold."""
    out = np.empty(len(margin))
    for model, fold in zip(models, folds, strict=True):
        out[fold] = model.predict(X[fold], margin[fold])
    return out


def _ranks_in_folds(
    models: list[AdvantageModel],
    X: Any,
    scores: Array,
    own_margins: list[Array],
    folds: list[Index],
) -> Array:
    """The rank of each sample's score among those that its model gives to its own samples."""
    ranks = np.empty(len(scores))
    for k, (model, fold) in enumerate(zip(models, folds, strict=True)):
        own = model.predict(X[rest_of(fold, len(scores))], own_margins[k])
        ranks[fold] = ranks_among(scores[fold], own, k, len(folds))
    return ranks


def machine_cost(samples: Samples, margin: Array) -> Array:
    """The price of the machine's answer: that of the class where it is wrong, else nothing."""
    return samples.weights * ((margin > 0) != (samples.y > 0))


class AdvantageTriage(Triage):
    """Humans take the cases where they are expected to lose less than the machine, up to a budget.

    The machine is fitted on all samples, as for `UncertaintyTriage`. Of new cases it is estimated how
    likely the machine errs, by cases that it had not seen, and how likely the human does; the cases
    where the difference is largest are deferred. It knows what uncertainty alone does not: that a
    human may be no better, or better at one class, or in one region.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples, which acts on
        new data as the fraction that it was of the training samples.
    machine_error : {"margin", "forest"} or regressor, default="margin"
        "margin": isotonic regression of the machine's errors on how sure it is, for each of its
        answers. "forest", or another regressor, sees the features and the margin.
    human_error : {"class", "forest"} or regressor, default="class"
        "class": the human's mean error where the machine gives the same answer. "forest", or another
        regressor, sees the features: for humans who are better in some regions than in others.
    use_full_budget : bool, default=False
        Whether to spend the budget also on cases where the human is expected to lose more.
    deferral_cost : float, default=0.0
        Added to every human loss, of which a wrong answer is 2: the price of human time.
    alpha : float, default=1.0
        Regularisation, the paper's lambda. With n samples, the C of `sklearn.svm.SVC` is
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
        The price of an error on each class, whoever errs.
    cv : int or splitter, default=5
        Folds: errors are learned from, and the threshold rests on, cases not fitted.
    n_jobs : int or None, default=None
        How many folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Of the folds, the regressors, and the coin between equal scores.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive class.
    coef_, intercept_, dual_coef_, support_, support_vectors_ : ndarray
        The machine, as in `AssistedSVC`.
    deferral_threshold_ : float
        `defer` defers above it.
    deferral_rate_ : float
        The rate that `defer` keeps to: the budget, or less where humans are not expected to help.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    See Also
    --------
    deferlearn.teams.AssistedSVCCV : Chooses between this and other teams.

    Examples
    --------
    >>> from deferlearn.teams.advantage import AdvantageTriage
    >>> from deferlearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y, doctor = load_breast_cancer(return_X_y_human=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> team = AdvantageTriage(budget=0.3, alpha=0.1, human_error="forest", random_state=0)
    >>> team = team.fit(X[::2], y[::2], human_labels=doctor[::2])
    >>> bool(team.defer(X[1::2]).mean() < 0.3)  # this machine rarely needs help
    True
    >>> team.score_assisted(X[1::2], y[1::2], doctor[1::2]) >= team.score(X[1::2], y[1::2])
    True
    >>> machine, human = team.expected_errors(X[1::2])
    >>> bool(machine[team.defer(X[1::2])].mean() > human[team.defer(X[1::2])].mean())
    True
    """

    def __init__(
        self,
        budget: float | int = 0.2,
        machine_error: Any = "margin",
        human_error: Any = "class",
        use_full_budget: bool = False,
        deferral_cost: float = 0.0,
        alpha: float = 1.0,
        kernel: Any = "linear",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        margin: str = "soft",
        class_weight: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.budget = budget
        self.machine_error = machine_error
        self.human_error = human_error
        self.use_full_budget = use_full_budget
        self.deferral_cost = deferral_cost
        self.alpha = alpha
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.margin = margin
        self.class_weight = class_weight
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.cv is None:
            raise ValueError("cv=None: errors are learned from cases not fitted, so give folds.")
        check_flag("use_full_budget", self.use_full_budget)
        check_cost(self.deferral_cost)
        self._model()

    def _model(self) -> AdvantageModel:
        return AdvantageModel(
            resolve_error("machine_error", self.machine_error, "margin"),
            resolve_error("human_error", self.human_error, "class"),
        )

    def _check_human(self, signs: Array, human: Human) -> None:
        """Nothing: `_fit_team` looks at the losses, and says what is wrong with them."""

    def _fit_team(self, samples: Samples, machine: Machine, human: Human) -> None:
        loss = answer_losses(samples.y, self.classes_, **human)
        samples = costs_of(samples, loss, self.deferral_cost)
        self.n_samples_fit_ = len(samples.y)
        count_of(self.budget, self.n_samples_fit_)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        folds = fold_rows(self.cv, samples, seed)
        margin, own_margins = held_out_margins(samples, folds, self.n_jobs)
        model = self._model()
        models = models_of_folds(model, samples, margin, folds, seed)
        scores = held_out_advantage(models, samples.X, margin, folds)
        ranks = _ranks_in_folds(models, samples.X, scores, own_margins, folds)
        wrong = machine_cost(samples, margin)
        self._ranker = model.fit(samples.X, margin, wrong, samples.loss, seed)
        self.deferral_rate_ = self._own_budget()
        own = model.predict(samples.X, machine.decision_function(samples.X))
        threshold = threshold_from_folds(ranks, own, self.deferral_rate_, len(folds), seed)
        if threshold.value < 0 and not self.use_full_budget:
            # Models of folds that differ a lot may together expect more gains than the final one.
            self.deferral_rate_ = min(float(np.mean(scores > 0)), self.deferral_rate_)
            threshold = Threshold(0.0, 0.0, 0.0, seed)
        self._threshold = threshold
        self.deferral_threshold_ = self._threshold.value

    def _rank_by(self, ranker: Any, X: Any, margin: Array) -> Array:
        scores: Array = ranker.predict(X, margin)
        return scores

    def expected_errors(self, X: Any) -> tuple[Array, Array]:
        """How likely the machine and the human err on each case, as learned from cases not fitted.

        `deferral_score` is the first minus the second, less a hair by which equal scores are told apart.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.

        Returns
        -------
        machine, human : ndarray of shape (n_samples,)
            Expected errors. With ``class_weight`` an error counts the price of its class; with
            ``deferral_cost`` half of that is part of the human's, since a wrong answer loses 2.
        """
        X = self._check_new(X)
        return self._ranker.expected(X, self._machine.decision_function(X))

    def defer_top(self, X: Any, budget: float | int | None = None) -> Bools:
        """The cases of this batch that gain most from a human, at most as many as the budget says.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The batch.
        budget : float, int or None, default=None
            A fraction of the batch or a number of cases; None is the estimator's own budget.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
            Cases that are expected to lose by it are not among them, unless ``use_full_budget``.
        """
        top = super().defer_top(X, budget)
        return top if self.use_full_budget else top & (self.deferral_score(X) > 0)


def answer_losses(signs: Array, classes: Any, **human: Any) -> Array:
    """The loss of the human's answer: of scores only the side counts, as it does for a team."""
    loss = losses_of(signs, classes, **human)
    if human.get("human_scores") is None:
        return loss
    scores = fill_gaps(as_array(human["human_scores"]))
    sides = np.where(np.isnan(scores), np.nan, np.where(scores >= 0, 1.0, -1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said already
        return losses_of(signs, classes, human_scores=sides)


def costs_of(samples: Samples, loss: Array, deferral_cost: float) -> Samples:
    """The samples with what a human's answer costs, in units of errors."""
    cost = (samples.weights * loss + float(deferral_cost)) / LOSS_OF_ERROR
    return Samples(samples.X, samples.y, samples.weights, cost, samples.settings)
