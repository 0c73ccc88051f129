"""Which cases stand for all, although who was asked depended on the model.

Experts read the cases that the model deferred, and a random part of the others: the audits. Truth may be
known of all cases, or rather of those that were read. Whoever takes what is known for a random sample
learns from hard cases only, and believes that experts do everywhere as they do there. Two remedies:

- *Truth.* The probability that the truth of a case becomes known follows from the recorded probability of
  an audit, and from how often it became known of deferred, audited and other cases. Each known case counts
  by the inverse of this. Large weights are cut, as far as it takes to keep half of the information.
  Cases are then repeated, so that every step of the fit (classes, thresholds, budgets) sees the
  mixture that arrives at the desk. Copies of a case have one group: they stay in one fold.
- *Answers.* A case of the machine that nobody read gets the answer to an audited one of the same class
  and about the same expected error, drawn by inverse probability (a weighted hot deck). Audited cases are a
  random part of the machine's cases, so this is what experts would have answered, up to chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools, Index

# Weights are cut until so much of the information of the known cases is left, by Kish's effective number.
KEPT = 0.5
# With fewer audited cases of a class, all cases of the class that were read lend their answers.
LEAST_DONORS = 5
# An answer is drawn among so many cases with the most similar expected error.
NEIGHBOURS = 20


def truth_chance(known: Bools, deferred: Bools, audited: Bools, probability: Array) -> Array:
    """The probability that the truth of each case becomes known.

    Parameters
    ----------
    known : ndarray of bool of shape (n_cases,)
        Whether the truth is known.
    deferred, audited : ndarray of bool of shape (n_cases,)
        What was decided.
    probability : ndarray of shape (n_cases,)
        The recorded probability of an audit.

    Returns
    -------
    chance : ndarray of shape (n_cases,)
        Of a deferred case, how often it became known of deferred ones. Of another, how often it became
        known with and without an audit, by the recorded probability of an audit.
    """
    with_audit, without = audited & ~deferred, ~audited & ~deferred
    chance = np.where(
        deferred,
        _rate(known, deferred),
        probability * _rate(known, with_audit) + (1 - probability) * _rate(known, without),
    )
    # A case of known truth could become known, whatever the rates are by chance.
    return np.asarray(np.maximum(chance, np.where(known, 1.0 / max(len(known), 1), 0.0)))


def truth_weights(known: Bools, deferred: Bools, audited: Bools, probability: Array) -> Array:
    """By how many cases each case of known truth stands for, before large weights are cut.

    Parameters
    ----------
    known, deferred, audited, probability : ndarray of shape (n_cases,)
        As in `truth_chance`.

    Returns
    -------
    weights : ndarray of shape (n_cases,)
        0 where the truth is not known.
    """
    chance = truth_chance(known, deferred, audited, probability)
    return np.where(known, 1.0 / np.where(known, chance, 1.0), 0.0)


def read_chance(
    known: Bools, read: Bools, deferred: Bools, audited: Bools, probability: Array
) -> Array:
    """The probability that an expert has read a case, given that its truth is known.

    Parameters
    ----------
    known, deferred, audited, probability : ndarray of shape (n_cases,)
        As in `truth_chance`.
    read : ndarray of bool of shape (n_cases,)
        Whether an expert answered the case.

    Returns
    -------
    chance : ndarray of shape (n_cases,)
        If the truth of all cases is known, this is the recorded probability of an audit, or 1 for deferred
        cases; if it is known only of those that were read, it is 1.
    """
    with_audit = audited & ~deferred
    both = probability * _rate(known & read, with_audit)
    chance = truth_chance(known, deferred, audited, probability)
    audits = np.minimum(both / np.where(chance > 0, chance, 1.0), 1.0)
    return np.where(deferred, _rate(read, deferred & known), audits)


def _rate(happened: Bools, among: Bools) -> float:
    return float(happened[among].mean()) if among.any() else 0.0


def cut_weights(weights: Array) -> Array:
    """Cut the largest weights, until the effective number of cases is half of their number.

    Parameters
    ----------
    weights : ndarray of shape (n_cases,)
        Positive weights.

    Returns
    -------
    weights : ndarray of shape (n_cases,)
        The smallest is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.desk.learning.population import cut_weights
    >>> cut_weights(np.array([2.0, 2.0, 4.0]))
    array([1., 1., 2.])
    >>> cut_weights(np.array([1.0] * 20 + [100.0])).max().round(1)
    np.float64(7.0)
    """
    scaled = weights / weights.min()
    low, high = 1.0, float(scaled.max())
    if _effective(scaled) >= KEPT * len(scaled):
        return np.asarray(scaled)
    for _ in range(60):
        middle = (low + high) / 2
        if _effective(np.minimum(scaled, middle)) >= KEPT * len(scaled):
            low = middle
        else:
            high = middle
    return np.minimum(scaled, low)


def _effective(weights: Array) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def copies(weights: Array, luck: np.random.Generator) -> Index:
    """Positions of cases, each repeated as often as its weight says, by systematic sampling.

    Parameters
    ----------
    weights : ndarray of shape (n_cases,)
        From `cut_weights`.
    luck : Generator
        Random numbers.

    Returns
    -------
    rows : ndarray of int
        A case of weight 2.3 comes two or three times.
    """
    ends = np.floor(np.cumsum(weights) + luck.random()).astype(int)
    return np.repeat(np.arange(len(weights)), np.diff(ends, prepend=0))


def lend_answers(
    answers: NDArray[Any],
    truth: NDArray[Any],
    expected: Array,
    deferred: Bools,
    probability: Array,
    luck: np.random.Generator,
) -> NDArray[Any]:
    """Fill in the answers to the machine's cases that nobody read.

    Parameters
    ----------
    answers : ndarray of object of shape (n_cases,)
        The answer of an expert, None where nobody read the case.
    truth : ndarray of object of shape (n_cases,)
        The truth of each case.
    expected : ndarray of shape (n_cases,)
        The machine's expected error, or another number by which cases are similar; may be NaN.
    deferred : ndarray of bool of shape (n_cases,)
        Whether the case was deferred. Deferred cases without an answer stay without.
    probability : ndarray of shape (n_cases,)
        The recorded probability of an audit.
    luck : Generator
        Random numbers.

    Returns
    -------
    answers : ndarray of object of shape (n_cases,)
        None where there is nobody to lend an answer.
    """
    given = np.array([one is not None for one in answers], dtype=bool)
    filled = answers.copy()
    near = np.nan_to_num(expected, nan=0.0)
    weight = np.where(deferred, 1.0, 1.0 / np.where(probability > 0, probability, 1.0))
    for label in np.unique(truth.astype(str)).tolist():
        own = truth.astype(str) == label
        donors = np.flatnonzero(own & given & ~deferred)
        if len(donors) < LEAST_DONORS:
            donors = np.flatnonzero(own & given)
        takers = np.flatnonzero(own & ~given & ~deferred)
        if not len(donors) or not len(takers):
            continue
        donors = donors[np.argsort(near[donors], kind="stable")]
        size = min(NEIGHBOURS, len(donors))
        middle = np.searchsorted(near[donors], near[takers])
        first = np.clip(middle - size // 2, 0, len(donors) - size)
        window = donors[first[:, None] + np.arange(size)]
        odds = np.cumsum(weight[window], axis=1)
        picked = (luck.random(len(takers))[:, None] * odds[:, -1:] > odds).sum(axis=1)
        filled[takers] = answers[window[np.arange(len(takers)), np.minimum(picked, size - 1)]]
    return filled
