"""Fitted machines of any kind as arrays: deciding about a case takes numpy, and no scikit-learn.

Each gives the decision values of the machine that it was made from, up to rounding.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.teams.forest_arrays import ForestArrays, boosting_arrays, forest_arrays
from deferlearn.teams.machine import Machine, MachineSettings

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


class Decides(Protocol):
    """A fitted machine."""

    def decision_function(self, X: Any) -> Array:
        """Decision values of checked cases, positive for the second class."""
        ...


@dataclass(frozen=True, eq=False)
class ForestMachine:
    """A forest: the log-odds of the share of its trees, weighted by their leaves."""

    forest: ForestArrays

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class."""
        return log_odds(self.forest.mean(X))


@dataclass(frozen=True, eq=False)
class BoostedMachine:
    """Gradient boosting: the sum of its trees."""

    forest: ForestArrays
    baseline: float

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class."""
        return self.baseline + len(self.forest.roots) * self.forest.mean(X)


@dataclass(frozen=True, eq=False)
class ScoreMachine:
    """A score that is the last feature."""

    probabilities: bool

    def decision_function(self, X: Array) -> Array:
        """The score, as log-odds if it is a probability."""
        return as_score(X[:, -1], self.probabilities)


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
class MeanMachine:
    """The mean of several machines."""

    members: list[Any]

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class."""
        return np.asarray(np.mean([member.decision_function(X) for member in self.members], axis=0))


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (ForestMachine, BoostedMachine, ScoreMachine, CalibratedMachine, MeanMachine)
}


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
    from deferlearn.teams.calibration import Calibration

    if isinstance(machine, Machine):
        if not isinstance(machine.settings.kernel, str) or machine.settings.precomputed:
            return None
        if machine.coef is None:
            return machine
        # Support vectors are not needed, and may be sparse.
        none = np.empty(0, dtype=np.int64)
        return Machine(machine.settings, none, None, np.empty(0), machine.coef, machine.intercept)
    if isinstance(machine, BlendedMachine):
        members = [as_arrays(member) for member in machine.members]
        return None if None in members else MeanMachine(members)
    if isinstance(machine, BroughtMachine):
        inner, curve = as_arrays(machine.estimator), machine.calibration
        if inner is None or not isinstance(curve, Calibration):  # of several classes, it is not
            return None
        return CalibratedMachine(inner, curve.slope, curve.offset)
    if isinstance(machine, ScoreColumn):
        return ScoreMachine(machine.probabilities_)
    forest = forest_arrays(machine)
    if forest is not None:
        return ForestMachine(forest)
    boosted = boosting_arrays(machine)
    return None if boosted is None else BoostedMachine(*boosted)


def machine_values(machine: Any) -> dict[str, Any]:
    """A machine as plain values and arrays, for `machine_from`."""
    if isinstance(machine, Machine):
        return vars(machine) | {"kind": "Machine", "settings": vars(machine.settings)}
    values: dict[str, Any] = {"kind": type(machine).__name__}
    for name, value in vars(machine).items():
        if isinstance(value, ForestArrays):
            values[name] = vars(value)
        elif name == "members":
            values[name] = [machine_values(member) for member in value]
        else:
            values[name] = machine_values(value) if name == "machine" else value
    return values


def machine_from(values: dict[str, Any]) -> Any:
    """The machine with these values."""
    own = {name: value for name, value in values.items() if name != "kind"}
    if values["kind"] == "Machine":
        return Machine(**own | {"settings": MachineSettings(**own["settings"])})
    if "forest" in own:
        own["forest"] = ForestArrays(**own["forest"])
    if "machine" in own:
        own["machine"] = machine_from(own["machine"])
    if "members" in own:
        own["members"] = [machine_from(member) for member in own["members"]]
    return KINDS[values["kind"]](**own)
