"""What every team of machine and human can be asked, and how it is fitted."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from deferlearn._utils.checks import check_flag, check_unmasked, check_unread
from deferlearn._utils.types import Array, Bools
from deferlearn.humans.coding import Codes, Coding, code_classes, grades_in
from deferlearn.humans.human import Human, read_human, warn_if_reordered
from deferlearn.humans.labels import check_truth
from deferlearn.teams.brought import read_scores, score_columns, with_scores
from deferlearn.teams.calibration import calibrate
from deferlearn.teams.context import FoldContext, HeldOutScores, scores_by_fitting
from deferlearn.teams.decider import Decider
from deferlearn.teams.odds import class_probabilities
from deferlearn.teams.parameters import count_of, error_weights, sample_weights
from deferlearn.teams.probabilities import calibrate_classes, calibrate_log_odds, calibrate_sides
from deferlearn.teams.samples import Samples
from deferlearn.teams.team_answers import Answers, team_labels
from deferlearn.teams.threshold import Threshold, first_of


def _calibrates(team: Any) -> bool:
    """Whether samples are held out, from which probabilities can be learned."""
    return getattr(team, "cv", True) is not None


class Team(ClassifierMixin, BaseEstimator):
    """A machine, a human, and a rule that says who takes a case.

    A class says by `fit_samples` how it learns, by `_decide` what the machine makes of checked cases, by
    `_rank` how much these belong with a human, and by `_own_budget` which fraction may be deferred.
    """

    classes_: NDArray[Any]
    _coding: Coding
    # From decision values to probabilities; None if the decision values are their logarithms.
    _odds: Any = None
    _held_out: Array | None = None
    _threshold: Threshold
    _rate: float
    _machine: Any

    # With metadata routing, `fit` asks for the human by itself.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "human_loss": True,
        "human_scores": True,
        "human_labels": True,
        "machine_scores": True,
    }
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"machine_scores": True}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"machine_scores": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"machine_scores": True}
    # Whether it ever asks a human, and whether a search can try it with every machine at little cost.
    is_assisted: ClassVar[bool] = True
    is_quick: bool = False
    # Whether its ranking, and not only its threshold, is learned from held-out samples.
    needs_folds: bool = False
    # Whether its machine may be any classifier, and whether `fit` may be given a machine's scores.
    takes_any_machine: ClassVar[bool] = False
    takes_scores: ClassVar[bool] = False
    _given_scores: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_threshold")

    # -- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        human_loss: ArrayLike | None = None,
        human_scores: ArrayLike | None = None,
        human_labels: ArrayLike | None = None,
        machine_scores: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the machine, and learn which cases to defer.

        At most one of the three describes the human. With none, the human is taken to be always right.
        Missing answers (NaN, None, pandas' NA) are allowed. `AssistedSVC` and `AdvantageTriage` give a
        sample without any answer the average loss of its class, and warn of how many there are;
        `PredictedErrorTriage` and the methods of other authors leave such samples out where the human is
        learned, and other teams do not learn from the human.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; the Gram matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of two or more classes, of any type.
        human_loss : array-like of shape (n_samples,), default=None
            What the human's answer to each sample costs, 0 or more.
        human_scores : array-like of shape (n_samples,) or (n_samples, n_readers), default=None
            Scores h, positive for the second of two classes; the loss is ``[1 - y h]_+``, the mean of it
            over several readers.
        human_labels : array-like of shape (n_samples,) or (n_samples, n_readers), default=None
            Answers in the labels of y. A right answer costs 0. A wrong one costs 2; with more than two
            classes it costs 4, or 2 per grade if the classes are grades: the sum of the hinge losses of
            the machines that tell them apart.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Scores of a machine that cannot be retrained, such as a product's: probabilities of the second
            class, or any numbers (if all are between 0 and 1, they are taken as probabilities); or a
            column for each class, in the order of `classes_`. Nothing is refitted: the scores are
            calibrated, and take the place of the machine. New cases need them too. Only teams with a
            parameter ``machine`` and `TeamCV` take them.
        sample_weight : array-like of shape (n_samples,), default=None
            What an error on each sample costs, whoever errs: positive numbers, which multiply those of
            ``class_weight``.

        Returns
        -------
        self
            The fitted estimator.
        """
        self.__dict__.pop("_threshold", None)  # a fit that fails leaves no half of an older one
        self._note_scores(machine_scores)
        self.check_parameters()
        given: dict[str, Any] = {
            "human_loss": human_loss,
            "human_scores": human_scores,
            "human_labels": human_labels,
        }
        warn_if_reordered(X, **given)
        samples = self.read_samples(X, y, given, machine_scores, sample_weight)
        self._warn_of(samples.human)
        return self.fit_samples(samples)

    def fit_samples(self, samples: Samples, context: FoldContext | None = None) -> Self:
        """Fit on samples that have been checked already, as a search does.

        Parameters
        ----------
        samples : Samples
            The samples, with the machine's settings.
        context : FoldContext or None, default=None
            The same samples in folds, with what a search has made of them already: nothing is fitted
            twice. None makes folds by the parameter ``cv``.

        Returns
        -------
        self
            The fitted estimator.
        """
        raise NotImplementedError

    def held_out_scores(self, context: FoldContext) -> HeldOutScores:
        """Decision values and deferral scores of held-out samples, for a search.

        Parameters
        ----------
        context : FoldContext
            Samples in folds, a machine, and what other teams have made of them.

        Returns
        -------
        HeldOutScores
        """
        return scores_by_fitting(self, context)

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""

    def _warn_of(self, human: Human) -> None:
        """Warn of what is strange about the human, where this team learns from them."""

    def _note_scores(self, machine_scores: Any) -> None:
        """Note whether the machine's scores are given; most teams have a machine of their own."""
        if machine_scores is not None and not self.takes_scores:
            raise ValueError(
                f"{type(self).__name__} trains its own machine, so it takes no machine_scores; "
                "UncertaintyTriage, AdvantageTriage, PredictedErrorTriage and TeamCV do."
            )
        self.takes_given(machine_scores is not None)

    def takes_given(self, scores: bool) -> None:
        """Say whether the last column of the samples holds the machine's scores, as a search knows.

        Parameters
        ----------
        scores : bool
            Whether it does.
        """
        self._given_scores = scores

    def read_samples(
        self,
        X: Any,
        y: Any,
        given: dict[str, Any],
        machine_scores: Any = None,
        sample_weight: Any = None,
    ) -> Samples:
        """Check the samples, and bring them into the form that the engine takes.

        Parameters
        ----------
        X, y, machine_scores, sample_weight
            As in `fit`.
        given : dict
            What is given of the human, by its name in `fit`.

        Returns
        -------
        samples : Samples
        """
        check_unread(X, "X")
        check_unmasked(y, "y")
        classes = grades_in(y, getattr(self, "classes", "auto"))
        X, labels = validate_data(
            self, X, y, dtype=np.float64, accept_sparse="csr" if self._takes_sparse() else False
        )
        coding, codes = code_classes(labels, classes, getattr(self, "cost_matrix", None))
        weights = error_weights(self._class_weight(), codes, coding.classes)
        own = sample_weights(sample_weight, codes)
        weights = weights * coding.weights[codes] * own
        coding = coding.weighted(codes, weights)
        human = read_human(codes, coding, **given)
        if machine_scores is not None:
            X = with_scores(X, read_scores(machine_scores, X.shape[0], coding.classes))
        settings = self._machine_settings(X, coding.signs(codes)[:, 0])
        given_weight = None if sample_weight is None else own
        return Samples(
            X, labels, coding, codes, weights, human, settings, sample_weight=given_weight
        )

    def _note(self, samples: Samples) -> None:
        """Note what is known before anything is learned."""
        self._held_out = None
        self._coding = samples.coding
        self.classes_ = samples.classes
        self.n_features_in_ = samples.X.shape[1] - self._n_score_columns()

    def _n_score_columns(self) -> int:
        """How many columns of X hold the machine's scores."""
        return score_columns(len(self.classes_)) if self._given_scores else 0

    def _learn_probabilities(
        self, samples: Samples, decision: Array, log_odds: bool = False
    ) -> None:
        """Learn the probabilities of the classes from decision values of held-out samples.

        ``log_odds`` says whether those of two classes are log-odds already.
        """
        # Where errors on some samples cost more, the likelier class need not be the better answer.
        votes = bool(np.ptp(samples.weights) == 0.0)
        if samples.coding.several:
            self._odds = calibrate_classes(decision, samples.codes, samples.coding, votes)
        elif votes:
            learn = calibrate_log_odds if log_odds else calibrate_sides
            self._odds = learn(decision, samples.codes == 1)
        else:
            self._odds = calibrate(decision, samples.y, np.ones(len(samples)))
        self._held_out = self._probabilities(decision)

    def held_out_probabilities(self) -> Array:
        """The probabilities of the classes of the training samples, by machines that had not seen them.

        They are known in the process of the fit only, and not to a copy: the state of a model is what
        prediction needs.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        if self._held_out is None:
            raise ValueError(
                "Probabilities of held-out samples are known where the team was fitted, with folds: not "
                "with cv=None, nor after it was copied or stored."
            )
        return self._held_out

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_held_out", None)
        return state

    @property
    def deferral_threshold_(self) -> float:
        """`defer` defers what scores above it."""
        check_is_fitted(self)
        return self._threshold.value

    @property
    def deferral_rate_(self) -> float:
        """The expected share of new cases that `defer` defers."""
        check_is_fitted(self)
        return self._rate

    # -- what a class says --------------------------------------------------------------------

    def _takes_sparse(self) -> bool:
        """Whether cases may be sparse."""
        raise NotImplementedError

    def _class_weight(self) -> Any:
        """What errors on each class cost, as scikit-learn's ``class_weight``."""
        return None

    def _machine_settings(self, X: Any, y: Array) -> Any:
        """The parameters of the machine, checked; None without one."""
        return None

    def _decide(self, X: Any) -> Array:
        """The machine's decision values of checked cases."""
        raise NotImplementedError

    def _rank(self, X: Any) -> Array:
        """Deferral scores of checked cases."""
        raise NotImplementedError

    def _own_budget(self) -> float:
        """The budget as a fraction."""
        raise NotImplementedError

    def _only_gains(self) -> bool:
        """Whether `defer_top` leaves out cases that humans are not expected to decide better."""
        return False

    def decider(self) -> Decider | None:
        """What the fitted team needs to decide, as arrays; None if there is no such form of it.

        Returns
        -------
        decider : Decider or None
            It gives the same answers as the team, without scikit-learn's checks of the input.
        """
        return None

    # -- what users ask -----------------------------------------------------------------------

    def _check_new(self, X: Any, machine_scores: Any = None) -> Any:
        check_is_fitted(self)
        check_unread(X, "X")
        sparse = "csr" if self._takes_sparse() else False
        X = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=sparse)
        if self._given_scores != (machine_scores is not None):
            raise ValueError(
                "This team was fitted with machine_scores: give the scores of these cases, too."
                if self._given_scores
                else "machine_scores were given, but this team was fitted without them."
            )
        if machine_scores is None:
            return X
        return with_scores(X, read_scores(machine_scores, X.shape[0], self.classes_))

    def decision_function(self, X: Any, *, machine_scores: Any = None) -> Array:
        """The machine's decision value for every row, positive for the second of two classes.

        With more classes there are several columns. In triage teams these are the logarithms of the
        probabilities of the classes; elsewhere one score per class, of which the largest is the answer, or
        for the SVM of `AssistedSVC` with grades one per step from a grade to the next.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases; rows of kernel values with the training samples if the kernel is precomputed.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        decision : ndarray of shape (n_samples,), with more than two classes (n_samples, n_columns)
        """
        X = self._check_new(X, machine_scores)
        return self._decide(X)

    @available_if(_calibrates)
    def predict_proba(self, X: Any, *, machine_scores: Any = None) -> Array:
        """The probability of each class for every row, as the machine sees it.

        Probabilities are learned from decision values of samples that the machine had not seen, so there
        are none with ``cv=None``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        X = self._check_new(X, machine_scores)
        return self._probabilities(self._decide(X))

    def _probabilities(self, decision: Array) -> Array:
        return class_probabilities(decision, self._odds, len(self.classes_))

    def predict(self, X: Any, *, machine_scores: Any = None) -> NDArray[Any]:
        """The machine's answer for every row, deferred or not.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        # This says first if nothing has been fitted.
        decision = self.decision_function(X, machine_scores=machine_scores)
        return self.classes_[self._answers(decision)]

    def _answers(self, decision: Array) -> Codes:
        """The places of the answers among the classes, by decision values."""
        return self._coding.by_votes(decision)

    def deferral_score(self, X: Any, *, machine_scores: Any = None) -> Array:
        """How much each case belongs with a human: larger is more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        score : ndarray of shape (n_samples,)
        """
        X = self._check_new(X, machine_scores)
        return self._rank(X)

    def defer(self, X: Any, *, machine_scores: Any = None) -> Bools:
        """Whether a human should take each case, one at a time.

        A case is deferred if its score is above `deferral_threshold_`, which keeps the expected rate on
        data like those of `fit` at `deferral_rate_`. Among cases that score exactly the threshold, a
        coin decides that depends on the case's features alone: the same case always gets the same
        answer. Of several equal rows in one X the right share is deferred.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
        """
        X = self._check_new(X, machine_scores)
        return self._threshold.apply(self._rank(X), X)

    def defer_top(
        self, X: Any, budget: float | int | None = None, *, machine_scores: Any = None
    ) -> Bools:
        """The cases of this batch that belong most with a human, as many as the budget says.

        This is the rule of the paper's triage baselines and, for all methods, of its authors' program. It
        needs all cases at once, and what happens to one depends on the others. Of cases with equal scores
        the first are taken. If no sample was deferred in training, no case is deferred here either.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The batch.
        budget : float, int or None, default=None
            A fraction of the batch or a number of cases. None is the estimator's own budget, as the
            fraction that it was of the training samples.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
        """
        X = self._check_new(X, machine_scores)
        own = self._own_budget() if budget is None else budget
        count = count_of(own, X.shape[0], "cases")
        score = self._rank(X)
        # Where no case is deferred one at a time, scores do not tell which would be first.
        top = first_of(score, 0 if self._threshold.value == np.inf else count)
        return top & (score > 0) if self._only_gains() else top

    def predict_assisted(
        self, X: Any, human_labels: Answers, batch: bool = False, *, machine_scores: Any = None
    ) -> NDArray[Any]:
        """The team's answer: the human's where a case is deferred, else the machine's.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        human_labels : array-like of shape (n_samples,) or (n_samples, n_readers), or callable
            Answers in the labels of y. A function is asked only for the deferred rows: it gets their
            positions in X, an array of integers, and returns an answer for each. With several readers
            the majority counts, and among equally many votes the first reader's side. A deferred case
            without any answer is an error: the machine does not silently stand in.
        batch : bool, default=False
            Whether to defer by `defer_top` instead of `defer`.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        warn_if_reordered(X, human_labels=human_labels)
        defer = self.defer_top if check_flag("batch", batch) else self.defer
        deferred = defer(X, machine_scores=machine_scores)
        said = self.predict(X, machine_scores=machine_scores)
        return team_labels(said, deferred, human_labels, self.classes_)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: Any = None, *, machine_scores: Any = None
    ) -> float:
        """Accuracy of the machine alone, as scikit-learn expects; that of the team is `score_assisted`.

        `cross_val_score` and `GridSearchCV` call it: give them `deferlearn.make_team_scorer` as
        ``scoring`` to judge the team.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the cases.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        accuracy : float
        """
        said = self.predict(X, machine_scores=machine_scores)
        return float(accuracy_score(y, said, sample_weight=sample_weight))

    def score_assisted(
        self,
        X: Any,
        y: ArrayLike,
        human_labels: Answers,
        batch: bool = False,
        *,
        machine_scores: Any = None,
    ) -> float:
        """Accuracy of the team.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        y : array-like of shape (n_samples,)
            True labels.
        human_labels, batch
            As in `predict_assisted`.
        machine_scores : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        accuracy : float
        """
        answers = self.predict_assisted(X, human_labels, batch, machine_scores=machine_scores)
        return float(accuracy_score(check_truth(y, self.classes_), answers))
