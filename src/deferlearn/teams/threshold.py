"""From scores to deferrals, one case at a time, at the right rate: the threshold and its ties."""

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Bools

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
        The threshold; inf if no case is ever deferred, -inf if every case is.
    share : float
        The share of the cases with exactly that score that is deferred, between 0 and 1.
    width : float
        Scores that differ by no more than this are the same.
    seed : int
        Seed of the coin that decides between cases of the same score.
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
    ranks: Array, in_sample: Array, rate: float, n_folds: int, seed: int
) -> Threshold:
    """The threshold for the policy fitted on all samples, by ranks from fits on all but a fold.

    Policies of folds differ in scale from the final one, so what is learned from them is a rank: the
    one among a policy's own samples that a new case exceeds with probability ``rate``.

    What sets new cases apart from a policy's own samples shrinks like one over the number of samples.
    For the folds' policies it is k / (k - 1) times what it is for the final one: a k-th of the
    difference is taken back, as in Burman's (1989) correction of cross-validation.

    Parameters
    ----------
    ranks : ndarray of shape (n_samples,)
        See `ranks_among`: of each sample among those of a policy that had not seen it.
    in_sample : ndarray of shape (n_samples,)
        Scores that the final policy gives to its own samples.
    rate : float
        The share of new cases to defer.
    n_folds : int
        The number of folds.
    seed : int
        Seed of the coin that decides between equal scores.
    """
    if rate <= 0.0 or rate >= 1.0:
        return threshold_at(in_sample, rate, seed)
    n = len(in_sample)
    rank = float(np.clip(threshold_at(ranks, rate, seed).value, 0.0, 1.0))
    seen = _gaps_above(rank, n) / (n + 1)
    # The clip matters only for a handful of samples: 0 and 1 would defer no case and every case.
    corrected = float(np.clip(rate + (rate - seen) / n_folds, rate / 2, (1 + rate) / 2))
    return _threshold_at_rank(in_sample, threshold_at(ranks, corrected, seed).value, seed)


def only_gains(threshold: Threshold, rate: float, held_out: Array) -> tuple[Threshold, float]:
    """The threshold and the rate where only cases with a score above 0 are deferred.

    Models of folds that differ a lot may together expect more gains (scores ``held_out`` above 0) than the
    final one, so that the rate is not raised.
    """
    if threshold.value >= 0:
        return threshold, rate
    return Threshold(0.0, 0.0, 0.0, threshold.seed), min(float(np.mean(held_out > 0)), rate)


def _threshold_at_rank(scores: Array, rank: float, seed: int) -> Threshold:
    """The threshold at a rank among these scores; of equal ones the share above the rank is deferred."""
    order = np.sort(scores)
    n = len(order)
    # Beyond the ends a rank tells a distance, see `ranks_among`.
    beyond = (min(rank, 0.0) + max(rank - 1.0, 0.0)) * _spread(order)
    value = float(np.interp(rank, _middles(n), order)) + beyond
    width = TIE * max(abs(value), float(np.median(np.abs(order))))
    tied = np.flatnonzero(np.abs(order - value) <= width)
    if len(tied) == 0:
        return Threshold(value, 0.0, width, seed)
    above = n - 1 - int(tied[-1])
    share = (_gaps_above(rank, n) - above) / (len(tied) + 1)
    return Threshold(value, float(np.clip(share, 0.0, 1.0)), width, seed)


def _gaps_above(rank: float, n: int) -> float:
    """How many of the n + 1 gaps between n scores are above a rank among them, see `threshold_at`."""
    return n + 0.5 - rank * n


def ranks_among(scores: Array, reference: Array, fold: int = 0, n_folds: int = 1) -> Array:
    """Where scores stand among others: 0 is the lowest, 1 the highest, linear in between.

    Scores that several of the others share stand for a range of ranks and are spread over it, those of
    one fold between those of the others. Beyond the ends ranks go on with the distance from the
    lowest or highest score, in units of how far these are apart.
    """
    reference = np.sort(reference)
    n = len(reference)
    width = TIE * float(np.median(np.abs(reference)))
    first = np.searchsorted(reference, scores - width, side="left")
    last = np.searchsorted(reference, scores + width, side="right")  # first..last-1 are ties
    ranks = np.interp(scores, reference, _middles(n))
    spread = _spread(reference)
    ranks = np.where(last == 0, (scores - reference[0]) / spread, ranks)
    ranks = np.where(first == n, 1.0 + (scores - reference[-1]) / spread, ranks)
    shared = last - first > 1
    for start in np.unique(first[shared]):
        same = np.flatnonzero(shared & (first == start))
        stop = int(last[same].max())
        places = (np.arange(len(same)) + (fold + 0.5) / n_folds) / len(same)
        ranks[same] = (start + places * (stop - start)) / n
    return ranks


def _spread(order: Array) -> float:
    """From the lowest to the highest of sorted scores; 1 if they are all the same."""
    return float(order[-1] - order[0]) or 1.0


def _middles(n: int) -> Array:
    """The middles of n equal parts of [0, 1]."""
    return (np.arange(n) + 0.5) / n


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
    if hasattr(X, "tocsr"):
        import scipy.sparse as sp  # not needed to decide about rows of a table

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
