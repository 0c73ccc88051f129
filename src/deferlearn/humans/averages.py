"""From the losses of all answers to one loss per case, also where answers are few or missing."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.checks import is_number, plain
from deferlearn._utils.types import Array, Bools

# Strength that "auto" uses for a class whose answers cannot show how much its cases differ.
FALLBACK_STRENGTH = 1.0


def check_shrinkage(shrinkage: Any) -> float | None:
    """The strength as a number, or None for "auto"."""
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return None
    if is_number(shrinkage) and shrinkage >= 0:
        return float(shrinkage)
    raise ValueError(
        f"shrinkage must be a number >= 0 (0: none) or 'auto', got {plain(shrinkage)!r}"
    )


def average_answers(
    losses: Array, given: Bools, codes: NDArray[np.int64], classes: Sequence[Any], shrinkage: Any
) -> Array:
    """One loss per case: the mean loss of its answers, drawn towards the average of its class.

    With m answers, their sum s, the class average a and the strength k it is ``(s + k a) / (m + k)``,
    so a case without an answer gets a, and k = 0 leaves the others as they are. The class average is
    that of the cases' own means: each case with answers counts once, however many it has. ``codes`` are
    the places of the cases' labels among the classes.
    """
    strength = check_shrinkage(shrinkage)
    counts = given.sum(axis=1)
    sums = np.where(given, losses, 0.0).sum(axis=1)
    unread = counts == 0
    if len(counts) and unread.all():
        raise ValueError("no case has an answer: all answers are missing")
    means = sums / np.maximum(counts, 1)
    result = means.copy()
    for code in range(len(classes)):
        members = codes == code
        read = members & ~unread
        if not members.any():
            continue
        # A class without any answer borrows the average of the others.
        average = means[read].mean() if read.any() else means[~unread].mean()
        result[members & unread] = average
        k = _estimate_strength(losses[read], given[read]) if strength is None else strength
        if k == np.inf:
            result[read] = average
        elif k > 0:
            result[read] = (sums[read] + k * average) / (counts[read] + k)
    _warn_of_unread(unread, codes, classes)
    return result


def _estimate_strength(losses: Array, given: Bools) -> float:
    """Empirical Bayes: variance of the answers to one case over the variance between cases.

    Unbiased moments of the one-way random effects model (Buhlmann and Straub's credibility). Where no
    case has two answers, or there is only one case, nothing can be estimated: `FALLBACK_STRENGTH`.
    """
    counts = given.sum(axis=1).astype(np.float64)
    total = counts.sum()
    if len(counts) < 2 or total == len(counts):
        return FALLBACK_STRENGTH
    sums = np.where(given, losses, 0.0).sum(axis=1)
    means = sums / counts
    within = np.where(given, (losses - means[:, None]) ** 2, 0.0).sum() / (total - len(counts))
    spread = (counts * (means - sums.sum() / total) ** 2).sum()
    between = (spread - (len(counts) - 1) * within) / (total - (counts**2).sum() / total)
    if between > 0:
        return float(within / between)
    return np.inf if within > 0 else 0.0


def _warn_of_unread(unread: Bools, codes: NDArray[np.int64], classes: Sequence[Any]) -> None:
    if not unread.any():
        return
    parts = []
    others = "the other class" if len(classes) == 2 else "the other classes"
    for code, label in enumerate(classes):
        members = codes == code
        if (unread & members).any():
            whole = f" (all of it: the average of {others})" if unread[members].all() else ""
            parts.append(f"{(unread & members).sum()} of class {plain(label)!r}{whole}")
    warnings.warn(
        f"no answer was given for {unread.sum()} of {len(unread)} cases, so the average loss of the "
        f"class is used there: {', '.join(parts)}",
        UserWarning,
        stacklevel=4,
    )
