"""Fitted machines of any kind as arrays: deciding about a case takes numpy, and no scikit-learn.

Each gives the decision values of the machine that it was made from, up to rounding.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.teams.forest_arrays import (
    ForestArrays,
    boosting_arrays,
    forest_arrays,
    forest_from,
)
from deferlearn.teams.machine import Machine, MachineSettings, SumMachine
from deferlearn.teams.odds import AnyCalibration, log_softmax, odds_from, odds_values

# Probabilities of 0 and 1 (of a forest whose trees agree, say) become finite log-odds.
SURE = 0.005
# The same for scores that are given as probabilities, which may be sure for a reason.
SURE_SCORE = 1e-6


class MachineError(ValueError):
    """A machine that users bring cannot be fitted, or gives no score; a search goes on without it."""


def as_score(scores: Array, probabilities: bool) -> Array:
    """Given scores as they are, or as log-odds if those that were learned from are probabilities."""
    if not probabilities:
        return scores
    bad = np.flatnonzero((scores < 0.0) | (scores > 1.0))
    if len(bad):
        raise MachineError(
            f"The machine's score is {scores[bad[0]]:g} in row {bad[0]}, but all scores in fit were "
            "between 0 and 1, and were taken as probabilities: give probabilities, or fit with scores of "
            "one kind."
        )
    return log_odds(scores, SURE_SCORE)


def as_class_scores(scores: Array, probabilities: bool) -> Array:
    """Given scores of several classes as they are, or logarithms of probabilities."""
    if not probabilities:
        return scores
    bad = np.flatnonzero(((scores < 0.0) | (scores > 1.0)).any(axis=1))
    if len(bad):
        raise MachineError(
            f"Row {bad[0]} of machine_scores is {scores[bad[0]].tolist()}, but all scores in fit were "
            "between 0 and 1, and were taken as probabilities: give probabilities, or fit with scores of "
            "one kind."
        )
    return np.asarray(np.log(np.maximum(scores, SURE_SCORE)))


def log_odds(probability: Array, sure: float = SURE) -> Array:
    """Log-odds of probabilities, none of them infinite."""
    clipped = np.clip(probability, sure, 1.0 - sure)
    return np.log(clipped / (1.0 - clipped))


def log_shares(share: Array) -> Array:
    """Logarithms of the probabilities of several classes, none of them infinite."""
    return np.asarray(np.log(np.maximum(share, SURE / share.shape[1])))


class Decides(Protocol):
    """A fitted machine."""

    def decision_function(self, X: Any) -> Array:
        """Decision values of checked cases, positive for the second of two classes."""
        ...


@dataclass(frozen=True, eq=False)
class ForestMachine:
    """A forest: the log-odds of the share of its trees, weighted by their leaves."""

    forest: ForestArrays

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class; of several, the logarithm of each one's share."""
        share = self.forest.mean(X)
        return log_odds(share) if share.ndim == 1 else log_shares(share)


@dataclass(frozen=True, eq=False)
class BoostedMachine:
    """Gradient boosting: the sum of its trees, of which several classes have some each."""

    forests: list[ForestArrays]
    baselines: Array

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class; of several, a score for each."""
        sums = [
            baseline + len(forest.roots) * forest.mean(X)
            for forest, baseline in zip(self.forests, self.baselines, strict=True)
        ]
        return np.column_stack(sums) if len(sums) > 1 else sums[0]


@dataclass(frozen=True, eq=False)
class ScoreMachine:
    """A score that is the last feature; of several classes, as many features."""

    probabilities: bool
    count: int = 1

    def decision_function(self, X: Array) -> Array:
        """The score, as log-odds if it is a probability; of several classes, a score for each."""
        if self.count == 1:
            return as_score(X[:, -1], self.probabilities)
        return as_class_scores(X[:, -self.count :], self.probabilities)


@dataclass(frozen=True, eq=False)
class CalibratedMachine:
    """The decision values of another machine, calibrated."""

    machine: Any
    slope: float
    offset: float

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class."""
        return np.asarray(self.slope * self.machine.decision_function(X) + self.offset)


@dataclass(frozen=True, eq=False)
class CalibratedClasses:
    """The scores of another machine for several classes, as logarithms of probabilities.

    Attributes
    ----------
    machine : Decides
        It gives a score per class, or per step from a grade to the next.
    curve : SoftmaxCalibration or StepCalibration
        From scores to logarithms of probabilities.
    order : ndarray of int of shape (n_classes,), or empty
        Where the machine has the score of each class, if it has them in another order.
    """

    machine: Any
    curve: AnyCalibration
    order: Index

    def decision_function(self, X: Array) -> Array:
        """Logarithms of the probabilities of the classes."""
        scores = self.machine.decision_function(X)
        return self.curve(scores[:, self.order] if len(self.order) else scores)


@dataclass(frozen=True, eq=False)
class MeanMachine:
    """The mean of several machines."""

    members: list[Any]

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class; of several classes, logarithms of their probabilities."""
        mean = np.asarray(np.mean([member.decision_function(X) for member in self.members], axis=0))
        return mean if mean.ndim == 1 else log_softmax(mean)


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        ForestMachine,
        BoostedMachine,
        ScoreMachine,
        CalibratedMachine,
        CalibratedClasses,
        MeanMachine,
        SumMachine,
    )
}
# Attributes that are a machine, or a list of machines.
MACHINE, LISTS = "machine", ("members", "parts")


def as_arrays(machine: Any) -> Any:
    """The machine as arrays; None if it is not known in this form.

    Parameters
    ----------
    machine : Machine, BroughtMachine, BlendedMachine or classifier
        A fitted one.

    Returns
    -------
    machine : Decides or None
    """
    from deferlearn.teams.blend import BlendedMachine
    from deferlearn.teams.brought import BroughtMachine, ScoreColumn
    from deferlearn.teams.probabilities import ClassMachine

    if isinstance(machine, Machine):
        if not isinstance(machine.settings.kernel, str) or machine.settings.precomputed:
            return None
        if machine.coef is None:
            return machine
        # Support vectors are not needed, and may be sparse.
        none = np.empty(0, dtype=np.int64)
        return Machine(machine.settings, none, None, np.empty(0), machine.coef, machine.intercept)
    if isinstance(machine, SumMachine):
        parts = [as_arrays(part) for part in machine.parts]
        return None if None in parts else SumMachine(parts, machine.lost)
    if isinstance(machine, BlendedMachine):
        members = [as_arrays(member) for member in machine.members]
        return None if None in members else MeanMachine(members)
    if isinstance(machine, ClassMachine):
        inner = as_arrays(machine.machine)
        return None if inner is None else _calibrated_classes(inner, machine.calibration)
    if isinstance(machine, BroughtMachine):
        return _brought_arrays(machine)
    if isinstance(machine, ScoreColumn):
        n_classes = len(machine.classes_)
        return ScoreMachine(machine.probabilities_, n_classes if n_classes > 2 else 1)
    forest = forest_arrays(machine)
    if forest is not None:
        return ForestMachine(forest)
    boosted = boosting_arrays(machine)
    return None if boosted is None else BoostedMachine(*boosted)


def _brought_arrays(machine: Any) -> Any:
    """A machine that users bring, with its calibration, as arrays; None if it is not known so."""
    inner, curve = as_arrays(machine.estimator), machine.calibration
    if inner is None:
        return None
    if machine.classes is None:
        return CalibratedMachine(inner, curve.slope, curve.offset)
    if isinstance(inner, ScoreMachine):  # its columns are in the order of the classes already
        return _calibrated_classes(inner, curve)
    known = machine.estimator.classes_.tolist()
    classes = machine.classes.tolist()
    if sorted(known) != sorted(classes):  # a class that it has not seen has no score
        return None
    return _calibrated_classes(inner, curve, [known.index(label) for label in classes])


def _calibrated_classes(inner: Any, curve: Any, order: Any = ()) -> CalibratedClasses:
    return CalibratedClasses(inner, curve, np.array(order, dtype=np.int64))


def machine_values(machine: Any) -> dict[str, Any]:
    """A machine as plain values and arrays, for `machine_from`."""
    if isinstance(machine, Machine):
        return vars(machine) | {"kind": "Machine", "settings": vars(machine.settings)}
    values: dict[str, Any] = {"kind": type(machine).__name__}
    for name, value in vars(machine).items():
        if name == "forest":
            values[name] = vars(value)
        elif name == "forests":
            values[name] = [vars(forest) for forest in value]
        elif name == "curve":
            values[name] = odds_values(value)
        elif name in LISTS:
            values[name] = [machine_values(member) for member in value]
        else:
            values[name] = machine_values(value) if name == MACHINE else value
    return values


def machine_from(values: dict[str, Any]) -> Any:
    """The machine with these values."""
    own = {name: value for name, value in values.items() if name != "kind"}
    if values["kind"] == "Machine":
        return Machine(**own | {"settings": MachineSettings(**own["settings"])})
    for name, value in own.items():
        if name == "forest":
            own[name] = forest_from(value)
        elif name == "forests":
            own[name] = [forest_from(forest) for forest in value]
        elif name == "curve":
            own[name] = odds_from(value)
        elif name in LISTS:
            own[name] = [machine_from(member) for member in value]
        elif name == MACHINE:
            own[name] = machine_from(value)
    return KINDS[values["kind"]](**own)
