"""From scores to deferrals, one case at a time, at the right rate: the threshold and its ties."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Scores this close, relative to the threshold or to a usual score, are equal: rounding differs between
# a case alone and the same case in a batch.
TIE = 1e-9
# Multiples of it, less their whole parts, fill [0, 1) evenly from the first few on.
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Threshold:
    """Defer what scores above ``value``, and the share ``share`` of what scores exactly that.

    Attributes
    ----------
    value : float
        The threshold; inf if nobody is ever deferred, -inf if everybody is.
    share : float
        How many of the cases with that very score are deferred, between 0 and 1.
    width : float
        Scores that differ by no more are the same.
    seed : int
        Of the coin that decides between cases of the same score.
    """

    value: float
    share: float
    width: float
    seed: int

    def apply(self, scores: Array, X: Any) -> Bools:
        """Which cases are deferred; ties depend on the content of their rows, not on their place."""
        if np.isinf(self.value):
            return np.full(len(scores), self.value < 0)
        tied = np.abs(scores - self.value) <= self.width
        above = (scores > self.value) & ~tied
        where = np.flatnonzero(tied)
        if len(where) and self.share > 0:
            above[where] = coins(X[where], self.seed) < self.share
        return above


def threshold_at(scores: Array, rate: float, seed: int) -> Threshold:
    """The threshold that a new score exceeds with probability ``rate``.

    The new score is as likely to fall into each of the n + 1 gaps between n scores of its kind, so the
    threshold stands at place ``(1 - rate) (n + 1)`` in their order, between two of them by linear
    interpolation. Where that place is among equal scores, the share of them to be deferred makes up
    for what those above leave open.
    """
    if rate <= 0.0 or rate >= 1.0:
        return Threshold(np.inf if rate <= 0.0 else -np.inf, 0.0, 0.0, seed)
    order = np.sort(scores)
    n = len(order)
    place = float(np.clip((1.0 - rate) * (n + 1), 1.0, n))
    low = int(place) - 1
    high = min(low + 1, n - 1)
    value = float(order[low] + (place - 1 - low) * (order[high] - order[low]))
    width = TIE * max(abs(value), float(np.median(np.abs(order))))
    tied = np.abs(order - value) <= width
    if not tied.any():
        return Threshold(value, 0.0, width, seed)
    above = int((order > value).sum() - (tied & (order > value)).sum())
    share = (rate * (n + 1) - above) / (int(tied.sum()) + 1)
    return Threshold(value, float(np.clip(share, 0.0, 1.0)), width, seed)


def threshold_from_folds(
    held_out: Array, in_sample: Array, rate: float, n_folds: int, seed: int
) -> Threshold:
    """The threshold for the policy fitted on all samples, by scores from fits on all but a fold.

    What sets scores of new cases apart from those of training samples shrinks like one over the number of
    samples. With k folds, those of the folds' fits differ by k / (k - 1) times what the final one's
    do: a k-th of the difference is taken back, as in Burman's (1989) correction of cross-validation.
    """
    first = threshold_at(held_out, rate, seed)
    if np.isinf(first.value):
        return first
    tied = np.abs(in_sample - first.value) <= first.width
    seen = float(np.mean((in_sample > first.value) & ~tied) + first.share * np.mean(tied))
    # The clip matters for a handful of samples only: 0 and 1 would defer nobody and everybody.
    corrected = np.clip(rate + (rate - seen) / n_folds, rate / 2, (1 + rate) / 2)
    return threshold_at(held_out, float(corrected), seed)


def translate(
    scores: Array, reference: Array, target: Array, weights: Array | None = None
) -> Array:
    """Scores of one policy in the units of another, by their ranks on samples that both have scored.

    Policies of folds differ in scale from the final one, and where many cases share a score (few
    distinct rows, a small tree, a constant) in the values of the steps. What the policy of the fold
    gives to ``reference`` and the final one gives to ``target`` are scores of the same samples:
    their quantiles (those of ``target`` by ``weights``) are pairs of a translation, linear in between.
    Samples that share one score of the fold's stand for a range of the final policy's; cases with that
    score are spread over it.
    """
    reference = np.sort(reference)
    order = np.argsort(target, kind="stable")
    target = target[order]
    mass = np.ones(len(target)) if weights is None else weights[order]
    ends = np.cumsum(mass) / mass.sum()
    width = TIE * float(np.median(np.abs(reference)))
    first = np.searchsorted(reference, scores - width, side="left")
    last = np.searchsorted(reference, scores + width, side="right")  # first..last-1 are ties
    out = np.empty(len(scores))
    lone = last - first <= 1
    middles = (np.arange(len(reference)) + 0.5) / len(reference)
    inside = np.interp(scores[lone], reference, middles)
    beyond = np.minimum(scores[lone] - reference[0], 0.0)
    beyond += np.maximum(scores[lone] - reference[-1], 0.0)
    # Beyond the last pair a score keeps its distance from it.
    out[lone] = np.interp(inside, ends - 0.5 * mass / mass.sum(), target) + beyond
    for start in np.unique(first[~lone]):
        same = np.flatnonzero(~lone & (first == start))
        stop = int(last[same].max())
        spread = (start + (np.arange(len(same)) + 0.5) / len(same) * (stop - start)) / len(
            reference
        )
        out[same] = target[np.minimum(np.searchsorted(ends, spread), len(target) - 1)]
    return out


def coins(X: Any, seed: int) -> Array:
    """A number in [0, 1) for each row that depends on its content alone.

    The first copy of a row in a batch always gets the same number. Further copies get numbers that
    fill the interval evenly, so that any share of many equal rows is met, not only on average.
    """
    key = int(seed).to_bytes(8, "little", signed=True)
    seen: dict[bytes, int] = {}
    out = np.empty(X.shape[0])
    for i, content in enumerate(_contents(X)):
        digest = hashlib.blake2b(content, digest_size=8, key=key).digest()
        copy = seen[digest] = seen.get(digest, -1) + 1
        first = (
            int.from_bytes(digest, "little") >> 11
        ) * 2.0**-53  # 53 bits: all that a float holds
        out[i] = (first + copy * GOLDEN) % 1.0
    return out


def _contents(X: Any) -> Any:
    """The bytes of each row's entries other than zero, so that a sparse row equals its dense form."""
    if sp.issparse(X):
        rows = sp.csr_array(X, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        for a, b in pairwise(rows.indptr):
            yield rows.indices[a:b].astype(np.int64).tobytes() + rows.data[a:b].tobytes()
    else:
        for row in np.asarray(X, dtype=np.float64):
            used = np.flatnonzero(row)
            yield used.astype(np.int64).tobytes() + row[used].tobytes()


def first_of(scores: Array, count: int) -> Bools:
    """The rows with the largest scores, exactly so many; of equal scores the first rows."""
    mantissa, exponent = np.frexp(scores)
    # Ten digits: equal rows may get scores that differ in the last bits.
    rounded = np.ldexp(np.round(mantissa * 2.0**33), exponent - 33)
    top = np.zeros(len(scores), dtype=bool)
    top[np.argsort(-rounded, kind="stable")[:count]] = True
    return top
