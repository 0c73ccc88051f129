"""How often the machine, each expert and the team err, as far as it is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.types import Array
from deferlearn.desk.monitoring.figures import Figure, between, cases, percent
from deferlearn.desk.monitoring.shares import layered_share, sampled_share


def wrong(answers: NDArray[Any], truths: NDArray[Any]) -> Array:
    """Which answers are wrong.

    Parameters
    ----------
    answers, truths : ndarray of object of shape (n_cases,)
        None where there is no answer, or the truth is not known.

    Returns
    -------
    wrong : ndarray of shape (n_cases,)
        1 for wrong, 0 for right, NaN where it is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.desk.monitoring.errors import wrong
    >>> wrong(np.array(["a", "b", None], dtype=object), np.array(["a", "a", "b"], dtype=object))
    array([ 0.,  1., nan])
    """
    known = np.array(
        [a is not None and t is not None for a, t in zip(answers, truths, strict=True)]
    )
    found = np.array([a != t for a, t in zip(answers, truths, strict=True)], dtype=np.float64)
    return np.where(known, found, np.nan) if len(found) else np.empty(0)


def machine_error(
    errors: ArrayLike,
    audited: ArrayLike,
    probability: ArrayLike,
    *,
    judge: str = "the truth",
    given_up: int = 0,
) -> Figure:
    """The machine's error on the cases that it answers, from the audited ones.

    Parameters
    ----------
    errors : array-like of shape (n_cases,)
        For each case that the machine answered: 1 wrong, 0 right, NaN not known.
    audited : array-like of bool of shape (n_cases,)
        Whether the case was drawn to be audited. What is known of others does not count: nobody knows why
        it became known.
    probability : array-like of shape (n_cases,)
        The recorded probability of an audit.
    judge : str, default="the truth"
        What answers were compared with. Compared with experts, who err too, the number is how often both
        disagree.
    given_up : int, default=0
        So many audits will never have an outcome, because all experts passed them.

    Returns
    -------
    Figure
    """
    found = np.where(np.asarray(audited, dtype=bool), errors, np.nan)
    chance = np.asarray(probability, dtype=np.float64)
    interval, seen = sampled_share(found, chance)
    name = "machine's error" if judge == "the truth" else f"machine's disagreement with {judge}"
    drawn, possible = int(np.sum(audited)), int((chance > 0).sum())
    if not seen:
        return Figure(
            name,
            interval,
            0,
            f"Nothing is known yet: of {cases(len(found))} that the machine answered, {drawn} are audited, "
            f"and of none of these {judge} is known.",
        )
    verb = "is wrong in" if judge == "the truth" else f"and {judge} disagree in"
    sentence = (
        f"The machine {verb} {percent(interval.mean)} of the cases that it answers "
        f"(95% interval: {between(interval)}), by {cases(seen)} that were audited at random, each weighted "
        "by the inverse of its probability."
    )
    if drawn > seen + given_up:
        rest = drawn - seen - given_up
        verb = "case is" if rest == 1 else "cases are"
        sentence += f" {rest} more {verb} audited, and the outcome is not known yet."
    if given_up:
        sentence += (
            f" {cases(given_up)} could not be audited, because all experts passed: such cases are hard, so "
            "the number is rather too low."
        )
    if possible < len(found):
        sentence += (
            f" Nothing can be said about {cases(len(found) - possible)} that could not be audited, because "
            "no expert had time or the share of audits was 0."
        )
    return Figure(name, interval, seen, sentence)


def expert_error(name: str, errors: ArrayLike, expected: ArrayLike | None = None) -> Figure:
    """How often an expert errs on the cases that she is given.

    Parameters
    ----------
    name : str
        The expert.
    errors : array-like of shape (n_answers,)
        For each of her answers: 1 wrong, 0 right, NaN not known.
    expected : array-like of shape (n_answers,) or None, default=None
        The shares of errors that the model expected; NaN where it expected nothing. None for a model of
        grades, which expects grades off.

    Returns
    -------
    Figure
    """
    found = np.asarray(errors, dtype=np.float64)
    known = ~np.isnan(found)
    n = int(known.sum())
    interval = layered_share([np.nansum(found)], [n], [1])
    foreseen = _mean(expected, known)
    if not n:
        return Figure(
            "expert's error",
            interval,
            0,
            f"The truth is not known of any answer of {name}.",
            name,
        )
    sentence = (
        f"{name} was wrong in {percent(interval.mean)} of {cases(n)} that were given to her or him and of "
        f"which the truth is known (95% interval: {between(interval)})."
    )
    if foreseen is not None:
        sentence += f" The model expected {percent(foreseen)}."
    sentence += " Experts get different cases, so these numbers do not rank them."
    return Figure("expert's error", interval, n, sentence, name, foreseen)


def team_error(errors: ArrayLike, by_expert: ArrayLike) -> Figure:
    """The team's error where the truth is known.

    Truth may be known more often of experts' cases than of the machine's: each kind counts as much as it
    has cases.

    Parameters
    ----------
    errors : array-like of shape (n_cases,)
        For each final answer: 1 wrong, 0 right, NaN not known.
    by_expert : array-like of bool of shape (n_cases,)
        Whether experts gave the answer.

    Returns
    -------
    Figure
    """
    found, human = np.asarray(errors, dtype=np.float64), np.asarray(by_expert, dtype=bool)
    known = ~np.isnan(found)
    kinds = [human, ~human]
    seen = [int((known & kind).sum()) for kind in kinds]
    hits = [float(np.nansum(found[kind])) for kind in kinds]
    sizes = [int(kind.sum()) for kind in kinds]
    interval = layered_share(hits, seen, sizes)
    n = int(known.sum())
    if not n:
        return Figure("team's error", interval, 0, "The truth is not known of any case yet.")
    sentence = (
        f"The team is wrong in {percent(interval.mean)} of the cases (95% interval: {between(interval)}), "
        f"by {n:,} of {cases(len(found))} of which the truth is known ({seen[0]:,} answered by experts, "
        f"{seen[1]:,} by the machine)."
    )
    for size, count, who in zip(sizes, seen, ("experts", "the machine"), strict=True):
        if size and not count:
            sentence += f" Nothing is known of the {cases(size)} that {who} answered."
    if n < len(found):
        sentence += (
            " It holds for all cases only if truth does not become known more often where the answer was "
            "wrong, such as by complaints."
        )
    return Figure("team's error", interval, n, sentence)


def _mean(expected: ArrayLike | None, known: NDArray[np.bool_]) -> float | None:
    if expected is None:
        return None
    values = np.asarray(expected, dtype=np.float64)[known]
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else None
