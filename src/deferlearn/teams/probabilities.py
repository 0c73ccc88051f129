"""Probabilities of several classes from a machine's scores, learned from held-out samples.

With more than two classes, the margins of every machine are logarithms of these probabilities: so machines
of different kinds mean the same, and each gives the answer with the smallest expected cost.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from deferlearn._utils.types import Array, Bools
from deferlearn.humans.coding import GRADES, Codes, Coding
from deferlearn.teams.calibration import Calibration, calibrate
from deferlearn.teams.odds import (
    AnyCalibration,
    SidedCalibration,
    SidedStepCalibration,
    SoftmaxCalibration,
    StepCalibration,
    log_softmax,
)

if TYPE_CHECKING:
    from deferlearn.teams.context import FoldContext

# Of the offsets, in the mean loss: as good as none, and they stay finite where a class is missing.
WEAK_PENALTY = 1e-4


def calibrate_sides(scores: Array, second: Bools) -> SidedCalibration:
    """Fit to samples that the machine had not seen how likely each of its two answers is to be right.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        What the machine says: positive for the second class.
    second : ndarray of bool of shape (n_samples,)
        Whether a sample is of the second class.

    Returns
    -------
    calibration : callable
        From scores to log-odds; the answer is never the less likely one.
    """
    sure, said = np.abs(scores), scores > 0
    no, yes = (
        _fit_side(sure[said == side], (said == second)[said == side]) for side in (False, True)
    )
    return SidedCalibration(no, yes)


def calibrate_log_odds(scores: Array, second: Bools) -> SidedCalibration:
    """Fit to samples that the machine had not seen how far its log-odds can be trusted.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Log-odds of the second class, of a machine that has been calibrated or is the mean of several.
    second : ndarray of bool of shape (n_samples,)
        Whether a sample is of the second class.

    Returns
    -------
    calibration : callable
        The log-odds times a number, so that the answer stays the likelier one.
    """
    _, slope = _fit_side(np.abs(scores), (scores > 0) == second, with_offset=False)
    return SidedCalibration((0.0, slope), (0.0, slope))


def _fit_side(sure: Array, right: Bools, with_offset: bool = True) -> tuple[float, float]:
    """Offset and slope, neither negative, of the log-odds of being right."""
    if len(sure) == 0:
        return 0.0, 0.0
    # Platt's targets: even where all are right, none is certain.
    n_right = int(right.sum())
    target = np.where(right, (n_right + 1) / (n_right + 2), 1 / (len(right) - n_right + 2))
    spread = float(sure.max()) or 1.0
    design = np.column_stack([np.ones(len(sure)), sure / spread])

    def loss(beta: Array) -> tuple[float, Array]:
        F = design @ beta
        return float((np.logaddexp(0.0, F) - target * F).mean()), design.T @ (
            expit(F) - target
        ) / len(F)

    ends = [(0.0, None if with_offset else 0.0), (0.0, None)]
    found = minimize(
        loss, np.array([1.0 * with_offset, 1.0]), jac=True, method="L-BFGS-B", bounds=ends
    )
    return float(found.x[0]), float(found.x[1]) / spread


def calibrate_classes(
    scores: Array, codes: Codes, coding: Coding, votes: bool = False
) -> AnyCalibration:
    """Fit probabilities to the classes of samples that the machine had not seen.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes), or (n_samples, n_classes - 1) for steps of grades
        What the machine says.
    codes : ndarray of int of shape (n_samples,)
        The true classes.
    coding : Coding
        The classes.
    votes : bool, default=False
        Whether the machine answers with the class of the largest score, which is then the most probable; or
        with as many steps as have positive scores, which is then the median grade.

    Returns
    -------
    calibration : callable
        From scores to logarithms of probabilities.
    """
    if coding.kind == GRADES and scores.shape[1] == len(coding.classes) - 1:
        if votes:
            sides = [
                calibrate_sides(*step)
                for step in zip(scores.T, coding.signs(codes).T > 0, strict=True)
            ]
            return SidedStepCalibration(
                np.array([side.negative for side in sides]),
                np.array([side.positive for side in sides]),
            )
        ones = np.ones(len(codes))
        curves = [_step(scores[:, k], signs, ones) for k, signs in enumerate(coding.signs(codes).T)]
        return StepCalibration(
            np.array([curve.slope for curve in curves]),
            np.array([curve.offset for curve in curves]),
        )
    return _fit_softmax(scores, codes, votes)


def _step(scores: Array, signs: Array, ones: Array) -> Calibration:
    """The curve of one step; one that was always reached, or never, is nearly certain."""
    if abs(signs.sum()) == len(signs):
        return Calibration(0.0, float(signs[0] * np.log(len(signs) + 1.0)))
    return calibrate(scores, signs, ones)


def _fit_softmax(scores: Array, codes: Codes, votes: bool) -> SoftmaxCalibration:
    """Slope, offsets and bonus that make the classes most probable; the slope is not negative."""
    n, n_classes = scores.shape
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = float(centred.std()) or 1.0
    Z, rows, top = centred / spread, np.arange(n), scores.argmax(axis=1)
    # Even where all are right, none is certain.
    doubt = 1.0 / (n + 2)
    target = np.full(scores.shape, doubt / (n_classes - 1))
    target[rows, codes] = 1.0 - doubt

    def loss(beta: Array) -> tuple[float, Array]:
        outputs = beta[0] * Z + beta[2:]
        outputs[rows, top] += beta[1]
        log_p = log_softmax(outputs)
        slope = np.exp(log_p) - target
        value = -float((target * log_p).sum()) / n + WEAK_PENALTY * float(beta[2:] @ beta[2:])
        first = [float((slope * Z).sum()) / n, float(slope[rows, top].sum()) / n]
        return value, np.concatenate([first, slope.mean(axis=0) + 2.0 * WEAK_PENALTY * beta[2:]])

    start = np.concatenate([[1.0, 0.0], np.zeros(n_classes)])
    free, none = (None, None), (0.0, 0.0)
    ends = [(0.0, None), (0.0, None), *[none] * n_classes] if votes else [(0.0, None), none]
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=ends + [free] * (n_classes + 2 - len(ends))
    )
    return SoftmaxCalibration(float(found.x[0]) / spread, found.x[2:], float(found.x[1]))


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
