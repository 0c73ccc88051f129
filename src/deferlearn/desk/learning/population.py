"""Which cases stand for all, although who was asked depended on the model.

Experts read the cases that the model deferred, and a random part of the others: the audits. Truth may be
known of all cases, or rather of those that were read, which are the hard ones. The probability that the
truth of a case becomes known follows from the recorded probability of an audit, and from how often it
became known of deferred, audited and other cases. In a comparison each known case counts by the inverse
of this.
"""

from __future__ import annotations

import numpy as np

from deferlearn._utils.types import Array, Bools


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
    """By how many cases each case of known truth stands for.

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
