"""In which order cases leave the queue: by what an expert is expected to gain, and by waiting time.

A case that waits gains rank as fast as any other, so its place follows from when it arrived and how much it
helps: a number that never changes, which an index keeps in order. It is the time of arrival, earlier by a
head start of some hours per error that an expert is expected to avoid.
"""

from __future__ import annotations

from deferlearn.desk.database import SECOND
from deferlearn.desk.judging import Judgement

# An error that is certainly avoided is worth so much waiting time.
HEAD_START = 8 * 3600 * SECOND


def priority_of(now: int, judged: Judgement) -> int:
    """The rank of a case in the queue; smaller comes first.

    The benefit is between 0 and 1 error. An unusual case has the largest: what the machine says about it
    is worth nothing. An audited case has the rank that it would have otherwise, so that nobody can tell it
    from the others.

    Parameters
    ----------
    now : int
        When it arrived.
    judged : Judgement
        What the model says.

    Returns
    -------
    priority : int
    """
    return now - int(HEAD_START * benefit_of(judged))


def benefit_of(judged: Judgement) -> float:
    """Errors that are avoided if an expert takes the case, from 0 to 1.

    Parameters
    ----------
    judged : Judgement
        What the model says.

    Returns
    -------
    benefit : float
    """
    if judged.unusual:
        return 1.0
    if judged.expected_machine is not None and judged.expected:
        gain = judged.expected_machine - min(judged.expected.values())
    elif judged.probabilities is not None:
        gain = 1.0 - judged.probabilities[judged.answer]
    else:
        gain = 0.5
    return min(max(gain, 0.0), 1.0)
