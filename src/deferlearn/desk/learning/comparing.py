r"""Two models on the same cases, although experts answered only those that one of them deferred.

The loss of a model on a case is 1 if its machine takes the case and is wrong, and that of the expert if the
model defers it. If no expert read the case, the expert's loss :math:`h` is not known. It was read with a
probability :math:`q` that follows from the recorded one, so with any forecast :math:`m` the number

.. math:: m + \frac{\text{read}}{q} (h - m)

has the right mean, whatever the forecast is; a good one only makes the interval shorter (Cassel, Särndal
and Wretman, 1976). Where both models defer, the difference is 0: which expert takes a case is not compared.

Truth may be known rather of the cases that were read, which are the hard ones. Each case counts by the
inverse of the probability that its truth becomes known, so that the cases of known truth stand for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.desk.learning.population import read_chance, truth_weights
from deferlearn.desk.monitoring.figures import cases, percent
from deferlearn.desk.monitoring.losses import Grades, losses
from deferlearn.desk.monitoring.records import Records
from deferlearn.evaluation.intervals import CONFIDENCE, Interval, t_quantile

# A candidate is recommended if it is better with this confidence (one-sided). Waiting for 97.5%, as the
# interval does, means to use an outdated model for months; following every small sign makes things worse
# if nothing has changed, because the candidate has often learned from fewer cases.
CONFIDENT = 0.8


@dataclass(frozen=True)
class Policy:
    """What a model does with some cases.

    Attributes
    ----------
    wrong : ndarray of shape (n_cases,)
        Whether the machine's answer is wrong: 1 or 0; with grades, how many grades off it is.
    deferred : ndarray of bool of shape (n_cases,)
        Whether an expert takes the case.
    """

    wrong: Array
    deferred: Bools


@dataclass(frozen=True)
class Comparison:
    """A candidate against the active model.

    Attributes
    ----------
    difference : Interval
        The errors of the candidate's team per case, minus those of the active one: negative is better.
    count : int
        Cases compared.
    deferred : tuple of float
        The share that the candidate and the active model defer.
    machine_errors : tuple of float
        How often their machines are wrong, or by how many grades, over all cases.
    largest_weight : float
        By how much the cases that count most count more than those that count least.
    unseen : int
        Cases that one of them defers and that could not have been read: the forecast stands in.
    recommended : bool
        Whether the candidate should be activated: it is better with a confidence of `CONFIDENT`.
    in_grades : bool
        Whether errors are grades off.
    """

    difference: Interval
    count: int
    deferred: tuple[float, float]
    machine_errors: tuple[float, float]
    largest_weight: float
    unseen: int
    recommended: bool = False
    in_grades: bool = False

    @property
    def is_better(self) -> bool:
        """Whether the candidate is better by more than chance."""
        return bool(self.difference.high < 0)

    @property
    def sentence(self) -> str:
        """The comparison in words."""
        change, errors = self.difference, "grades off" if self.in_grades else "errors"
        per = (
            f"{_signed(1000 * change.mean)} {errors} per 1,000 cases (95% interval: "
            f"{_signed(1000 * change.low)} to {_signed(1000 * change.high)})"
        )
        if change.high < 0:
            verdict = "The candidate is better than the active model"
        elif change.low > 0:
            verdict = "The candidate is worse than the active model"
        elif self.recommended:
            verdict = "The candidate is probably better than the active model"
        else:
            verdict = "It is not clear whether the candidate is better than the active model"
        text = (
            f"{verdict}: {per}, by {cases(self.count)} that came after those it was fitted on and that "
            f"neither model has seen. By itself, without regard to anybody's time, it defers "
            f"{percent(self.deferred[0])}, the active model {percent(self.deferred[1])}."
        )
        if self.largest_weight > 1.05:
            text += (
                " The truth is known more often of some cases than of others: each case counts by the "
                f"inverse of that probability, up to {self.largest_weight:.3g} times as much as another."
            )
        if self.unseen:
            text += (
                f" What experts would have answered to {cases(self.unseen)} is not known, and was taken "
                "from the model's expectation."
            )
        return text

    @property
    def advice(self) -> str:
        """What to do, once, in the report of a refit.

        Whoever looks at the same comparison every day, until it is clear, sees chance confirm anything.
        """
        if self.recommended:
            return f"It is better with a confidence of {percent(CONFIDENT)} or more: activate it."
        return "Keep the active model, and refit when the truth of more cases is known."

    def plain(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **self.difference.columns("difference"),
            "count": self.count,
            "deferred": list(self.deferred),
            "machine_errors": list(self.machine_errors),
            "largest_weight": self.largest_weight,
            "unseen": self.unseen,
            "in_grades": self.in_grades,
            "is_better": self.is_better,
            "recommended": self.recommended,
            "sentence": self.sentence,
            "advice": self.advice,
        }


@dataclass(frozen=True)
class KnownCases:
    """What is known about some cases of known truth, whichever model decides.

    Attributes
    ----------
    rows : ndarray of int of shape (n_cases,)
        Positions of the cases.
    weights : ndarray of shape (n_cases,)
        By how many cases each stands for.
    expert_wrong : ndarray of shape (n_cases,)
        Whether the expert who read the case was wrong, or by how many grades; NaN if no expert did.
    read_probability : ndarray of shape (n_cases,)
        The probability that an expert reads the case, given that its truth is known.
    forecast : ndarray of shape (n_cases,)
        The expected error of an expert.
    """

    rows: Index
    weights: Array
    expert_wrong: Array
    read_probability: Array
    forecast: Array
    in_grades: bool = False


def known_cases(records: Records, period: Bools, grades: Grades = ()) -> KnownCases:
    """What is known about the cases of a period.

    Parameters
    ----------
    records : Records
        Cases.
    period : ndarray of bool of shape (n_cases,)
        The cases for which the result has to hold, whether their truth is known or not.
    grades : tuple of str, default=()
        The grades, if the classes of the models have an order.

    Returns
    -------
    KnownCases
    """
    known = np.array([one is not None for one in records.truth], dtype=bool)
    human, forecast = expert_outcomes(records, grades)
    read = np.zeros(len(records), dtype=bool)
    read[records.row] = True
    decided = (records.deferred[period], records.audited[period], records.probability[period])
    weights = truth_weights(known[period], *decided)
    chance = read_chance(known[period], read[period], *decided)
    kept = known[period]
    rows = np.flatnonzero(period & known)
    return KnownCases(rows, weights[kept], human[rows], chance[kept], forecast[rows], bool(grades))


def compare(
    candidate: Policy, active: Policy, at_hand: KnownCases, confidence: float = CONFIDENCE
) -> Comparison:
    """Compare two models on cases of known truth.

    Parameters
    ----------
    candidate, active : Policy
        What they do with these cases.
    at_hand : KnownCases
        What is known about the cases.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    Comparison
    """
    human, chance, forecast = (
        at_hand.expert_wrong,
        at_hand.read_probability,
        at_hand.forecast,
    )
    read = ~np.isnan(human)
    correction = np.where(read, human - forecast, 0.0) / np.where(chance > 0, chance, 1.0)
    corrected = forecast + np.where(chance > 0, correction, 0.0)
    losses = [np.where(one.deferred, corrected, one.wrong) for one in (candidate, active)]
    share = at_hand.weights / at_hand.weights.sum()
    differ = candidate.deferred != active.deferred
    return Comparison(
        _weighted_interval(losses[0] - losses[1], share, confidence),
        len(human),
        (float(share @ candidate.deferred), float(share @ active.deferred)),
        (float(share @ candidate.wrong), float(share @ active.wrong)),
        float(share.max() / share.min()),
        int((differ & ~read & (chance <= 0)).sum()),
        _weighted_interval(losses[0] - losses[1], share, 2 * CONFIDENT - 1).high < 0,
        at_hand.in_grades,
    )


def _weighted_interval(values: Array, share: Array, confidence: float) -> Interval:
    """The weighted mean, with Student's interval by the effective number of cases."""
    n, mean = len(values), float(share @ values)
    effective = float(1.0 / (share**2).sum())
    variance = float(share**2 @ (values - mean) ** 2) * n / max(n - 1, 1)
    half = t_quantile(confidence, max(round(effective) - 1, 1)) * float(np.sqrt(variance))
    return Interval(mean, mean - half, mean + half)


def expert_outcomes(records: Records, grades: Grades = ()) -> tuple[Array, Array]:
    """Whether the first expert who read each case was wrong, and what was expected of her.

    Parameters
    ----------
    records : Records
        Cases.
    grades : tuple of str, default=()
        The grades, if classes have an order: how many grades off the expert was.

    Returns
    -------
    wrong : ndarray of shape (n_cases,)
        NaN if no expert read the case, or its truth is not known.
    forecast : ndarray of shape (n_cases,)
        The expected error; where the model expected nothing, the mean of those found.
    """
    found = losses(records.first_answer, records.truth, grades)
    usual = float(np.nanmean(found)) if not np.isnan(found).all() else 0.5
    expected = records.expected_expert
    return found, np.where(np.isnan(expected), usual, expected)


def _signed(number: float) -> str:
    return f"{number:+.{0 if abs(number) >= 10 else 1}f}".replace("-", "−")
