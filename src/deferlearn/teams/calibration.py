"""From the scores of a machine for two classes to log-odds, learned from held-out samples."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deferlearn._utils.types import Array

if TYPE_CHECKING:
    from deferlearn.teams.context import FoldContext

# Of the logistic regression that calibrates: as good as none, and finite where scores separate the classes.
WEAK_PENALTY = 100.0
MOST_NEWTON_STEPS, NEWTON_TOL = 100, 1e-10
# Scores that differ by no more than so much of their size are equal.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Calibration:
    """From the score of a machine to log-odds: ``slope * score + offset``."""

    slope: float
    offset: float

    def __call__(self, scores: Array) -> Array:
        """Log-odds of the second class."""
        return self.slope * scores + self.offset


def calibrate(scores: Array, y: Array, weights: Array, rising: bool = True) -> Calibration:
    """Fit a logistic curve to the classes (-1, +1) of samples that the machine had not seen.

    A machine that knows nothing may seem to be wrong more often than right. With ``rising`` its curve is
    flat then, so that no team answers against its machine.

    It is scikit-learn's `LogisticRegression` with one feature, the standardised score, by Newton's method;
    a search fits a thousand of them, and scikit-learn spends milliseconds around each.
    """
    if len(np.unique(y)) < 2:
        return Calibration(0.0, float(y[0]))
    # In units of the largest, since squares of huge scores are not finite.
    size = float(np.abs(scores).max()) or 1.0
    centre, spread = size * float((scores / size).mean()), size * float((scores / size).std())
    if spread <= ROUNDING * size:  # equal scores: their mean may differ from them in the last digit
        spread = size
    z = (scores - centre) / spread
    weights = weights / weights.mean()  # the unit of costs does not matter
    design = np.column_stack([z, np.ones(len(z))])
    penalty = np.array([1.0 / WEAK_PENALTY, 0.0])

    def loss(beta: Array) -> float:
        return float(weights @ np.logaddexp(0.0, -y * (design @ beta)) + penalty @ beta**2 / 2)

    beta = np.zeros(2)
    value = loss(beta)
    for _ in range(MOST_NEWTON_STEPS):
        wrong = 1.0 / (1.0 + np.exp(np.clip(y * (design @ beta), -500.0, 500.0)))
        gradient = design.T @ (-weights * y * wrong) + penalty * beta
        curvature = (design.T * (weights * wrong * (1.0 - wrong))) @ design + np.diag(penalty)
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        # Halved until the loss falls: far from the minimum, a whole step may pass it.
        while (after := loss(beta - step)) > value and np.abs(step).max() > NEWTON_TOL:
            step = step / 2
        if after > value or np.abs(step).max() <= NEWTON_TOL:
            break
        beta, value = beta - step, after
    if rising and beta[0] < 0.0:
        mean = float(weights @ (y > 0) / weights.sum())
        return Calibration(0.0, float(np.log(mean / (1.0 - mean))))
    slope = float(beta[0]) / spread
    return Calibration(slope, float(beta[1]) - slope * centre)


def calibrated_in(
    context: "FoldContext", raw: Array, rising: bool = True
) -> tuple[Array, list[Array]]:
    """Held-out scores as log-odds, by curves that have not seen the fold; and those of each curve's own."""
    y, weights = context.samples.y, context.samples.weights
    curves = [calibrate(raw[rest], y[rest], weights[rest], rising) for rest, _ in context.splits]
    parts = list(zip(curves, context.splits, strict=True))
    margin = context.join([curve(raw[fold]) for curve, (_, fold) in parts])
    return margin, [curve(raw[rest]) for curve, (rest, _) in parts]
