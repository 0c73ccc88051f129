"""A machine that is the mean of others: where several are about as good, their mean is seldom worse."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from deferlearn._utils.checks import check_unread
from deferlearn._utils.types import Array
from deferlearn.teams.brought import (
    BroughtMachine,
    BroughtSettings,
    check_machine,
    takes_sparse,
)
from deferlearn.teams.calibration import calibrate, calibrated_in
from deferlearn.teams.odds import log_softmax

if TYPE_CHECKING:
    from deferlearn.teams.context import FoldContext


@dataclass(eq=False, repr=False)
class Blend(ClassifierMixin, BaseEstimator):
    """A classifier whose log-odds are the mean of those of its members.

    Members are fitted on all samples, and each is calibrated on held-out ones, so that all their
    values mean the same: the log-odds of the second class, or with more classes the logarithm of the
    probability of each.

    Parameters
    ----------
    machines : sequence of classifiers
        The members, not fitted. An SVM of ours is a `FullAutomation`, which the exact engine solves.
    cv : int or splitter, default=5
        Folds for the calibration.
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of members that have none.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; if there are two, the second is the positive class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from deferlearn.teams.blend import Blend
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> blend = Blend([GaussianNB(), RandomForestClassifier(20)], random_state=0).fit(X[::2], y[::2])
    >>> bool(blend.score(X[1::2], y[1::2]) > 0.93)
    True
    """

    machines: Sequence[Any]
    _: KW_ONLY
    cv: Any = 5
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = all(takes_sparse(machine) for machine in self.machines)
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit every member, and calibrate it on held-out samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Labels of any type.
        """
        from deferlearn.teams.automation import FullAutomation  # which can have this as its machine

        alone = FullAutomation(machine=self, cv=self.cv, random_state=self.random_state).fit(X, y)
        self.classes_, self.n_features_in_ = alone.classes_, alone.n_features_in_
        self.blended_ = alone._machine
        if hasattr(alone, "feature_names_in_"):
            self.feature_names_in_ = alone.feature_names_in_
        else:  # of an older fit
            self.__dict__.pop("feature_names_in_", None)
        return self

    def decision_function(self, X: Any) -> Array:
        """The mean of the members' log-odds; with more than two classes, a column for each.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New cases.
        """
        check_is_fitted(self)
        check_unread(X, "X")
        sparse = "csr" if self.__sklearn_tags__().input_tags.sparse else False
        X = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=sparse)
        return self.blended_.decision_function(X)

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New cases.
        """
        decision = self.decision_function(X)
        if decision.ndim == 2:
            return np.exp(decision)
        second = expit(decision)
        return np.column_stack([1.0 - second, second])

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New cases.
        """
        decision = self.decision_function(X)  # which says first if nothing has been fitted
        second = decision > 0 if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[second.astype(np.int64)])


@dataclass(eq=False)
class BlendedMachine:
    """Fitted members of a blend."""

    members: list[BroughtMachine]

    def decision_function(self, X: Any) -> Array:
        """The mean of the members' calibrated log-odds."""
        return _mean([member.decision_function(X) for member in self.members])


@dataclass(frozen=True)
class BlendSettings:
    """The members of a blend, as settings: machines that a search has tried are not fitted again."""

    members: tuple[Any, ...]
    family: str = "blend"

    linear = precomputed = False
    needs_folds = True
    # In rounds, every member would be: assisted training is for the members alone.
    can_be_refitted = False

    def team_parameters(self) -> dict[str, Any]:
        """The parameters of a team with this machine."""
        return {"machine": Blend([estimator_of(member) for member in self.members])}

    def parameters(self) -> dict[str, Any]:
        """What sets it apart from other blends."""
        return {"members": tuple(in_words(member) for member in self.members)}

    def margins_in(self, context: "FoldContext") -> tuple[Array, list[Array]]:
        """The mean of the members' calibrated decision values; see `BroughtSettings.margins_in`."""
        parts = [_calibrated_margins(context.with_machine(member)) for member in self.members]
        own = zip(*(part for _, part in parts), strict=True)
        return _mean([margin for margin, _ in parts]), [_mean(values) for values in own]

    def final_in(self, context: "FoldContext") -> tuple[BlendedMachine, Array]:
        """The members fitted on all samples, and held-out decision values."""
        members = [_calibrated_machine(context.with_machine(member)) for member in self.members]
        return BlendedMachine([machine for machine, _ in members]), _mean(
            [own for _, own in members]
        )


def in_words(settings: Any) -> str:
    """A machine in words: its family, and its parameters that are numbers."""
    numbers = {k: v for k, v in settings.parameters().items() if isinstance(v, float)}
    own = ", ".join(f"{name} {value:.3g}" for name, value in numbers.items())
    return f"{settings.family} ({own})" if own else str(settings.family)


def estimator_of(settings: Any) -> Any:
    """The classifier with these settings, not fitted."""
    from deferlearn.teams.automation import FullAutomation

    if isinstance(settings, BroughtSettings):
        return settings.estimator
    own = FullAutomation().get_params(deep=False)
    wanted = settings.team_parameters()
    return FullAutomation(**{name: wanted[name] for name in own.keys() & wanted.keys()})


def settings_from(machine: Any, X: Any, y: Array, family: str = "") -> Any:
    """The settings of a classifier: our SVM is solved by the exact engine, a blend by its members."""
    if isinstance(machine, Blend):
        for place, member in enumerate(machine.machines):
            check_machine(member, f"machines[{place}] of Blend", optional=False)
        return BlendSettings(tuple(settings_from(member, X, y) for member in machine.machines))
    if getattr(machine, "machine", machine) is None and hasattr(machine, "_machine_settings"):
        return machine._machine_settings(X, y)
    return BroughtSettings(machine, family or type(machine).__name__)


def _mean(values: Sequence[Array]) -> Array:
    """The mean of log-odds; of logarithms of probabilities one whose probabilities sum to 1."""
    mean = np.asarray(np.mean(values, axis=0))
    return mean if mean.ndim == 1 else log_softmax(mean)


def _calibrated_margins(context: "FoldContext") -> tuple[Array, list[Array]]:
    """Held-out decision values as log-odds; those of an SVM are margins, and calibrated here."""
    found = context.margins()
    if context.samples.settings.needs_folds or context.samples.coding.several:
        return found
    key = ("calibrated", context.machine)
    return context.once(key, lambda: calibrated_in(context, found[0]))


def _calibrated_machine(context: "FoldContext") -> tuple[Any, Array]:
    """The machine fitted on all samples, with its calibration; and what it makes of held-out scores."""
    machine, own = context.final()
    if context.samples.settings.needs_folds or context.samples.coding.several:
        return machine, own
    samples, (margin, _) = context.samples, context.margins()
    calibration = calibrate(margin, samples.y, samples.weights)
    return BroughtMachine(machine, calibration), calibration(margin)
