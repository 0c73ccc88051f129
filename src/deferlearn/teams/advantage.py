"""Triage by advantage: humans take the cases where they are expected to lose less than the machine."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from deferlearn._utils.checks import check_flag
from deferlearn._utils.types import Array, Index
from deferlearn.humans.human import Human
from deferlearn.teams.advantage_model import (
    HUMAN_ERRORS,
    MACHINE_ERRORS,
    AdvantageModel,
    Truth,
    resolve_error,
)
from deferlearn.teams.context import FoldContext, HeldOutScores
from deferlearn.teams.held_out import held_out
from deferlearn.teams.parameters import check_cost
from deferlearn.teams.ranking import ByAdvantage
from deferlearn.teams.samples import Samples
from deferlearn.teams.threshold import Threshold, only_gains
from deferlearn.teams.triage import NOT_OF_RANKERS, Triage


@dataclass(eq=False, repr=False)
class AdvantageTriage(Triage):
    """Humans take the cases where they are expected to lose less than the machine, up to a budget.

    The machine is fitted on all samples, as for `UncertaintyTriage`. For new cases the probabilities that
    the machine errs and that the human errs are estimated from held-out samples; the cases with the
    largest difference are deferred. This takes into account what uncertainty alone cannot: that a human
    may be no better, or better at one class, or in one region.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples, which acts on
        new data as the fraction that it was of the training samples.
    machine_error : {"margin", "probability", "forest"} or regressor, default="margin"
        "margin": isotonic regression of the machine's errors on how sure it is, for each of its
        answers. "probability": by the probability of each class, which is a logistic curve in the decision
        value. "forest", or another regressor, sees the features and the margin.
    human_error : {"class", "truth", "forest"} or regressor, default="class"
        "class": the human's mean error where the machine gives the same answer. "truth": the human's mean
        error on each true class, weighted by the probability of that class. "forest", or another
        regressor, sees the features: for humans who are better in some regions than in others.
    use_full_budget : bool, default=False
        Whether to spend the budget also on cases where the human is expected to lose more.
    deferral_cost : float, default=0.0
        Cost of human time per case, in units of one error.
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
        The cost of an error on each class, whoever errs.
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
    cv : int or splitter, default=5
        Folds: errors are learned from held-out samples, and the threshold rests on them.
    n_jobs : int or None, default=None
        The number of folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the regressors, and of the coin that decides between equal scores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    coef_, intercept_, dual_coef_, support_, support_vectors_ : ndarray
        The machine, as in `AssistedSVC`.
    deferral_threshold_ : float
        `defer` defers above it.
    deferral_rate_ : float
        The expected share of new cases that `defer` defers: the budget, or less where humans are not
        expected to help.
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

    needs_folds = True

    _: KW_ONLY
    machine_error: Any = "margin"
    human_error: Any = "class"
    use_full_budget: bool = False
    deferral_cost: float = 0.0

    @property
    def is_quick(self) -> bool:  # type: ignore[override]
        """Whether a search can try it with every machine at little cost: no forests are grown."""
        simple = (MACHINE_ERRORS, HUMAN_ERRORS)
        given = (self.machine_error, self.human_error)
        return all(
            isinstance(one, str) and one in names for one, names in zip(given, simple, strict=True)
        )

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        super().check_parameters()
        if self.cv is None:
            raise ValueError("cv=None: errors are learned from held-out samples, so give folds.")
        check_flag("use_full_budget", self.use_full_budget)
        check_cost(self.deferral_cost)
        self._model()

    def _warn_of(self, human: Human) -> None:
        human.warn(stacklevel=3)

    def _model(self) -> AdvantageModel:
        return AdvantageModel(
            resolve_error("machine_error", self.machine_error, MACHINE_ERRORS),
            resolve_error("human_error", self.human_error, HUMAN_ERRORS),
        )

    def _fit_ranker(
        self, samples: Samples, own: Array, context: FoldContext, seed: int
    ) -> AdvantageModel:
        margin, _ = context.margins()
        cost = samples.human_cost(self.deferral_cost)
        wrong = samples.machine_cost(samples.answers(margin))
        return self._model().fit(samples.X, margin, wrong, cost, Truth.of(samples), seed)

    def _rankers(self, context: FoldContext) -> list[AdvantageModel]:
        def make() -> list[AdvantageModel]:
            return held_out(
                _fit_without,
                context.splits,
                self._model(),
                context.samples,
                context.margins()[0],
                context.samples.human_cost(self.deferral_cost),
                context.seed,
                each=self._human_models(context),
                n_jobs=context.n_jobs,
            )

        key = ("advantage", context.machine, context.name_of(self, *NOT_OF_RANKERS))
        return context.once(key, make)

    def _human_models(self, context: FoldContext) -> list[Any]:
        """Regressors of the human's cost without each fold, which are the same beside every machine."""
        model = self._model()
        if isinstance(model.human_error, str):
            return [None] * len(context.folds)
        cost = context.samples.human_cost(self.deferral_cost)
        return context.once(
            ("human cost", self.deferral_cost, context.name_of(model.human_error)),
            lambda: held_out(
                _fit_human,
                context.splits,
                model,
                context.samples,
                cost,
                context.seed,
                n_jobs=context.n_jobs,
            ),
        )

    def _rank_by(self, ranker: Any, X: Any, margin: Array) -> Array:
        scores: Array = ranker.predict(X, margin)
        return scores

    def _ranking(self) -> ByAdvantage | None:
        found: ByAdvantage | None = self._ranker.ranking()
        return found

    def _only_gains(self) -> bool:
        return not self.use_full_budget

    def _lower(self, threshold: Threshold, rate: float, held_out: Array) -> tuple[Threshold, float]:
        return (threshold, rate) if self.use_full_budget else only_gains(threshold, rate, held_out)

    def held_out_scores(self, context: FoldContext) -> HeldOutScores:
        """Decision values and deferral scores of held-out samples; see `Team.held_out_scores`."""
        found = super().held_out_scores(context)
        if self.use_full_budget:
            return found
        return found._replace(score=np.where(found.score > 0, found.score, -np.inf))

    def expected_errors(self, X: Any, *, machine_scores: Any = None) -> tuple[Array, Array]:
        """How likely the machine and the human are to err on each case, learned from held-out samples.

        `deferral_score` is the first minus the second, minus a tiny amount that tells equal scores apart.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores, for a team that was fitted with such scores.

        Returns
        -------
        machine, human : ndarray of shape (n_samples,)
            Expected errors. With ``class_weight`` an error counts the weight of its class;
            ``deferral_cost`` is part of the human's.
        """
        X = self._check_new(X, machine_scores)
        expected: tuple[Array, Array] = self._ranker.expected(X, self._decide(X))
        return expected


def _fit_human(
    train: Index, test: Index, model: AdvantageModel, samples: Samples, cost: Array, seed: int
) -> Any:
    return model.fit_human(samples.seen_by(train, train), cost[train], seed)


def _fit_without(
    train: Index,
    test: Index,
    model: AdvantageModel,
    samples: Samples,
    margin: Array,
    cost: Array,
    seed: int,
    human: Any,
) -> AdvantageModel:
    """The model without a fold, learned from held-out margins."""
    wrong = samples.machine_cost(samples.answers(margin))[train]
    part = AdvantageModel(model.machine_error, model.human_error)
    X = samples.seen_by(train, train)
    return part.fit(X, margin[train], wrong, cost[train], Truth.of(samples, train), seed, human)
