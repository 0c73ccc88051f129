"""The reason of each decision, in words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn._utils.units import ERRORS, Unit
from deferlearn.teams.threshold import TIE


@dataclass(frozen=True)
class OneByOne:
    """The rule of `defer`: a case is deferred if its score is above the threshold.

    Parameters
    ----------
    threshold : float
        Threshold of the model.
    percentiles : ndarray of shape (101,)
        Percentiles of the scores of the training cases, with which new scores are compared.
    """

    threshold: float
    percentiles: Array

    def clauses(self, scores: Array, deferred: Bools) -> Iterable[str]:
        """One clause per case."""
        if np.isinf(self.threshold):
            cases = "every case" if self.threshold < 0 else "no case"
            return (f"the model defers {cases}" for _ in scores)
        below = np.maximum(np.searchsorted(self.percentiles, scores, side="left") - 1, 0)
        where = np.where(deferred, "above", "not above").astype(object)
        where[np.isclose(scores, self.threshold, rtol=TIE, atol=0)] = "at random at"
        return (
            f"deferral score {score:.4g} {place} the threshold {self.threshold:.4g}, higher than "
            f"{percent}% of the training cases"
            for score, place, percent in zip(
                scores.tolist(), where.tolist(), below.tolist(), strict=True
            )
        )


@dataclass(frozen=True)
class Batch:
    """The rule of `defer_top`: the cases of the table with the highest scores, up to the budget.

    Parameters
    ----------
    count : int
        Number of cases that go to humans.
    total : int
        Number of all cases.
    """

    count: int
    total: int

    def clauses(self, scores: Array, ranks: NDArray[np.int64], unwelcome: Bools) -> Iterable[str]:
        """One clause per case; `unwelcome` marks cases at the top that are not deferred."""
        ends = np.where(unwelcome, ", but here a human is not expected to do better", "").tolist()
        first = "the first case goes" if self.count == 1 else f"the first {self.count} cases go"
        return (
            f"rank {rank} of {self.total} by deferral score ({score:.4g}), {first} to humans{end}"
            for score, rank, end in zip(scores.tolist(), ranks.tolist(), ends, strict=True)
        )


def unusual_first(clauses: Iterable[str], why: Iterable[str], taken: Bools) -> Iterable[str]:
    """Clauses with another reason for the cases that humans take because they are unusual."""
    for clause, own, instead in zip(clauses, why, taken.tolist(), strict=True):
        yield f"unusual case, {own}" if instead else clause


def sentences(
    clauses: Iterable[str],
    answers: NDArray[Any],
    decision: Array,
    deferred: Bools,
    audit: Bools,
    expected: tuple[Array, Array] | None = None,
    probability: Array | None = None,
    unusual: Iterable[str] | None = None,
    experts: Sequence[str] | None = None,
    compared: Sequence[str] | None = None,
    unit: Unit = ERRORS,
) -> list[str]:
    """One sentence per case: who takes it, by which rule, and how sure the machine is.

    Parameters
    ----------
    clauses : iterable of str
        The reason by the rule.
    answers : ndarray
        The machine's answers.
    decision : ndarray
        The machine's decision values: of two classes, the boundary is at 0, the margin at -1 and 1.
    deferred, audit : ndarray of bool
        Whether a human takes the case by the rule, or as a random audit.
    expected : pair of ndarray or None, default=None
        Expected losses of the machine and of a human, if the team has learned them.
    probability : ndarray or None, default=None
        How likely the machine's answers are to be right, which is said instead of the decision value if
        there are more than two classes.
    unusual : iterable of str or None, default=None
        What is unusual about each case, empty if it is usual. What the machine expects of an unusual case
        is not said.
    experts : sequence of str or None, default=None
        The expert who takes each case, who is named in the place of "human".
    compared : sequence of str or None, default=None
        Whose expected losses are given in the place of a human's.
    unit : Unit, default=ERRORS
        What these losses count.

    Returns
    -------
    reasons : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.reasons import Batch, sentences
    >>> yes, no = np.array([True, False]), np.array([False, False])
    >>> clauses = Batch(1, 2).clauses(np.array([0.3, -1.0]), np.array([1, 2]), no)
    >>> for text in sentences(clauses, np.array(["ill", "well"]), np.array([0.2, -3.0]), yes, no):
    ...     print(text)
    human: rank 1 of 2 by deferral score (0.3), the first case goes to humans; machine's answer 'ill'
    inside its margin (decision value 0.2)
    machine: rank 2 of 2 by deferral score (-1), the first case goes to humans; machine's answer 'well'
    outside its margin (decision value -3)
    """
    humans = ["human"] * len(answers) if experts is None else experts
    words = [
        human if by_rule else f"{human} (random audit)" if drawn else "machine"
        for human, by_rule, drawn in zip(humans, deferred.tolist(), audit.tolist(), strict=True)
    ]
    sure = _by_margin(decision) if probability is None else _by_probability(probability)
    reasons = [
        f"{who}: {clause}; machine's answer {answer!r}{how}"
        for who, clause, answer, how in zip(words, clauses, answers.tolist(), sure, strict=True)
    ]
    ends = [""] * len(reasons)
    if expected is not None:
        machine, human = (errors.tolist() for errors in expected)
        ends = [
            f"; {unit.expected}: machine {one:.2g}, {who} {other:.2g}"
            for one, other, who in zip(
                machine, human, compared or ["human"] * len(machine), strict=True
            )
        ]
    for row, why in enumerate(unusual or ()):
        if why:
            known = "" if deferred[row] and why in reasons[row] else f"unusual case, {why}; "
            ends[row] = f"; {known}the machine's error is not known here"
    return [f"{reason}{end}" for reason, end in zip(reasons, ends, strict=True)]


def _by_margin(decision: Array) -> list[str]:
    """How sure the machine is of two classes."""
    inside = np.where(np.abs(decision) < 1, "inside", "outside").tolist()
    return [
        f" {where} its margin (decision value {value:.4g})"
        for where, value in zip(inside, decision.tolist(), strict=True)
    ]


def _by_probability(probability: Array) -> list[str]:
    """How sure the machine is of its answer; nothing if that is not known."""
    return [
        "" if np.isnan(value) else f" with probability {value:.2g}"
        for value in probability.tolist()
    ]
