"""From a machine's scores to probabilities: curves that were learned already, by numpy alone.

`probabilities` and `calibration` fit them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.teams.calibration import Calibration

# No probability of several classes is smaller: none is certain.
SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class SidedCalibration:
    """A score for two classes: of each answer how likely it is to be right, which is at least 1/2.

    Attributes
    ----------
    negative, positive : pair of float
        Of each answer the offset and the slope of the log-odds that it is right, by how large the score is.
    """

    negative: tuple[float, float]
    positive: tuple[float, float]

    def __call__(self, scores: Array) -> Array:
        """Log-odds of the second class."""
        sure = np.abs(scores)
        no, yes = (offset + slope * sure for offset, slope in (self.negative, self.positive))
        return np.where(scores > 0, yes, -no)


@dataclass(frozen=True, eq=False)
class SoftmaxCalibration:
    """A score per class: probabilities proportional to ``exp(slope * score + offset)``.

    ``bonus`` is added for the class with the largest score.
    """

    slope: float
    offsets: Array
    bonus: float = 0.0

    def __call__(self, scores: Array) -> Array:
        """Logarithms of probabilities: (n_samples, n_classes)."""
        outputs = self.slope * scores + self.offsets
        outputs[np.arange(len(scores)), scores.argmax(axis=1)] += self.bonus
        return floored(log_softmax(outputs))


@dataclass(frozen=True, eq=False)
class StepCalibration:
    """A score per step from one grade to the next: each is a logistic curve, made to fall."""

    slopes: Array
    offsets: Array

    def __call__(self, scores: Array) -> Array:
        """Logarithms of probabilities: (n_samples, n_classes)."""
        reached = logistic(self.slopes * scores + self.offsets)
        # To reach a grade is no more likely than to reach the one below.
        return _by_steps(np.minimum.accumulate(reached, axis=1))


@dataclass(frozen=True, eq=False)
class SidedStepCalibration:
    """A score per step from one grade to the next, for a machine that answers by how many are positive.

    Each step is a `SidedCalibration`, so that the answer is the median grade, which costs least.

    Attributes
    ----------
    negative, positive : ndarray of shape (n_steps, 2)
        Offset and slope of each step, as there.
    """

    negative: Array
    positive: Array

    def __call__(self, scores: Array) -> Array:
        """Logarithms of probabilities: (n_samples, n_classes)."""
        sure = np.abs(scores)
        no, yes = (one[:, 0] + one[:, 1] * sure for one in (self.negative, self.positive))
        reached = logistic(np.where(scores > 0, yes, -no))
        # Sorted, they fall, and as many as before are above 1/2.
        return _by_steps(-np.sort(-reached, axis=1))


def _by_steps(reached: Array) -> Array:
    """Logarithms of the probabilities of grades, from those of reaching each but the lowest."""
    ends = np.ones((len(reached), 1))
    share = -np.diff(np.hstack([ends, reached, 0.0 * ends]), axis=1)
    return floored(np.log(np.maximum(share, SMALLEST)))


AnyCalibration = SoftmaxCalibration | StepCalibration | SidedStepCalibration
KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Calibration,
        SidedCalibration,
        SoftmaxCalibration,
        StepCalibration,
        SidedStepCalibration,
    )
}


def logistic(log_odds: Array) -> Array:
    """Probabilities by their log-odds."""
    # Of numbers beyond, exp overflows, and the probability is 0 or 1 to the last digit.
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -500.0, 500.0))))


def log_softmax(scores: Array) -> Array:
    """Logarithms of probabilities that are proportional to exp(scores), row by row."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def floored(log_probability: Array) -> Array:
    """The same, none smaller than `SMALLEST`, and the sum of the probabilities 1."""
    return log_softmax(np.maximum(log_probability, np.log(SMALLEST)))


def class_probabilities(decision: Array, odds: Any, n_classes: int) -> Array:
    """The probability of each class by decision values.

    Parameters
    ----------
    decision : ndarray of shape (n_samples,) or (n_samples, n_columns)
        Decision values of a machine.
    odds : callable or None
        The curve that the team has learned. None: with several classes the decision values are
        logarithms of probabilities; with two, no probabilities are known.
    n_classes : int
        Number of classes.

    Returns
    -------
    probabilities : ndarray of shape (n_samples, n_classes)
        NaN if they are not known.
    """
    if n_classes > 2:
        found = decision if odds is None else odds(decision)
        known = found.ndim == 2 and found.shape[1] == n_classes
        return np.exp(found) if known else np.full((len(decision), n_classes), np.nan)
    if odds is None:
        return np.full((len(decision), 2), np.nan)
    second = logistic(odds(decision))
    return np.column_stack([1.0 - second, second])


def odds_values(odds: Any) -> dict[str, Any] | None:
    """A curve as plain values and arrays, for `odds_from`."""
    return None if odds is None else {"kind": type(odds).__name__, **vars(odds)}


def odds_from(values: dict[str, Any] | None) -> Any:
    """The curve with these values."""
    if values is None:
        return None
    return KINDS[values["kind"]](**{name: v for name, v in values.items() if name != "kind"})
