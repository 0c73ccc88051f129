"""Probabilities of several classes from a machine's scores, learned from held-out samples.

With more than two classes, the margins of every machine are logarithms of these probabilities: so machines
of different kinds mean the same, and each gives the answer with the smallest expected cost.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from deferlearn._utils.types import Array
from deferlearn.humans.coding import GRADES, Codes, Coding
from deferlearn.teams.calibration import calibrate

if TYPE_CHECKING:
    from deferlearn.teams.context import FoldContext

# No probability is smaller: none is certain.
SMALLEST = 1e-6
# Of the offsets, in the mean loss: as good as none, and they stay finite where a class is missing.
WEAK_PENALTY = 1e-4


@dataclass(frozen=True, eq=False)
class SoftmaxCalibration:
    """A score per class: probabilities proportional to ``exp(slope * score + offset)``."""

    slope: float
    offsets: Array

    def __call__(self, scores: Array) -> Array:
        """Logarithms of probabilities: (n_samples, n_classes)."""
        return floored(log_softmax(self.slope * scores + self.offsets))


@dataclass(frozen=True, eq=False)
class StepCalibration:
    """A score per step from one grade to the next: each is a logistic curve, made to fall."""

    slopes: Array
    offsets: Array

    def __call__(self, scores: Array) -> Array:
        """Logarithms of probabilities: (n_samples, n_classes)."""
        reached = expit(self.slopes * scores + self.offsets)
        # To reach a grade is no more likely than to reach the one below.
        reached = np.minimum.accumulate(reached, axis=1)
        ends = np.ones((len(reached), 1))
        share = -np.diff(np.hstack([ends, reached, 0.0 * ends]), axis=1)
        return floored(np.log(np.maximum(share, SMALLEST)))


AnyCalibration = SoftmaxCalibration | StepCalibration


def calibrate_classes(scores: Array, codes: Codes, coding: Coding) -> AnyCalibration:
    """Fit probabilities to the classes of samples that the machine had not seen.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes), or (n_samples, n_classes - 1) for steps of grades
        What the machine says.
    codes : ndarray of int of shape (n_samples,)
        The true classes.
    coding : Coding
        The classes.

    Returns
    -------
    calibration : callable
        From scores to logarithms of probabilities.
    """
    if coding.kind == GRADES and scores.shape[1] == len(coding.classes) - 1:
        ones = np.ones(len(codes))
        curves = [
            calibrate(scores[:, k], signs, ones)
            for k, signs in enumerate(coding.signs(codes).T)
        ]
        return StepCalibration(
            np.array([curve.slope for curve in curves]),
            np.array([curve.offset for curve in curves]),
        )
    return _fit_softmax(scores, codes)


def _fit_softmax(scores: Array, codes: Codes) -> SoftmaxCalibration:
    """Slope and offsets that make the classes most probable; the slope is not negative."""
    n, n_classes = scores.shape
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = float(centred.std()) or 1.0
    Z, rows = centred / spread, np.arange(n)

    def loss(beta: Array) -> tuple[float, Array]:
        log_p = log_softmax(beta[0] * Z + beta[1:])
        slope = np.exp(log_p)
        slope[rows, codes] -= 1.0
        value = -float(log_p[rows, codes].mean()) + WEAK_PENALTY * float(beta[1:] @ beta[1:])
        rest = slope.sum(axis=0) / n + 2.0 * WEAK_PENALTY * beta[1:]
        return value, np.concatenate([[float((slope * Z).sum()) / n], rest])

    start = np.concatenate([[1.0], np.zeros(n_classes)])
    bounds = [(0.0, None), *[(None, None)] * n_classes]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return SoftmaxCalibration(float(found.x[0]) / spread, found.x[1:])


def log_softmax(scores: Array) -> Array:
    """Logarithms of probabilities that are proportional to exp(scores), row by row."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def floored(log_probability: Array) -> Array:
    """The same, none smaller than `SMALLEST`, and the sum of the probabilities 1."""
    return log_softmax(np.maximum(log_probability, np.log(SMALLEST)))


@dataclass(eq=False)
class ClassMachine:
    """A machine for several classes, with the calibration of its scores."""

    machine: Any
    calibration: AnyCalibration

    def decision_function(self, X: Any) -> Array:
        """Logarithms of the probabilities of the classes."""
        return self.calibration(self.machine.decision_function(X))


def margins_in(context: "FoldContext", raw: Array) -> tuple[Array, list[Array]]:
    """Held-out scores as log-probabilities, by calibrations that have not seen the fold; and their own."""
    codes, coding = context.samples.codes, context.samples.coding
    found = [calibrate_classes(raw[rest], codes[rest], coding) for rest, _ in context.splits]
    parts = list(zip(found, context.splits, strict=True))
    margin = context.join([one(raw[fold]) for one, (_, fold) in parts])
    return margin, [one(raw[rest]) for one, (rest, _) in parts]


def mean_of(log_probabilities: Any) -> Array:
    """The geometric mean of probabilities, as logarithms."""
    return log_softmax(np.asarray(np.mean(log_probabilities, axis=0)))
