r"""Intervals of shares if cases come in layers of which different parts are seen.

Of the cases that the machine answers, a random part is audited, and the probability may have been 2% last
week and 10% since. Weighted by the inverse of their probabilities, the audited cases stand for all of them.
All cases of one probability are a layer. Its size is known, so its audited cases stand for exactly so many.
Layers with few audits share one, in which cases count by the inverse of their probabilities.

The interval is the stratified one of Wilson (Yan and Su, 2010): Wilson's interval in each layer, with fewer
deviations :math:`\lambda` to either side than the :math:`z` of one layer, because layers err independently.
Here :math:`\lambda` is such that the half lengths :math:`\lambda s_i(\lambda)` add up as those of
independent numbers do,

.. math:: \lambda \sum_i w_i s_i(\lambda) = z \sqrt{\sum_i w_i^2 s_i(\lambda)^2}.

Wilson's deviations :math:`s_i` are above 0 also in layers without any wrong answer. With those of the
textbook, which are 0 there, the interval is too long by a fifth if some layers have few audits. It
holds with few cases and with none that is wrong, where the usual one, two standard errors to either side,
shrinks to a point.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.evaluation.intervals import CONFIDENCE, NOTHING, Interval

# Probabilities of more than so many values are put into so many layers.
MOST_LAYERS = 6
# A layer with fewer known cases joins its neighbour: alone, it would say next to nothing.
LEAST_KNOWN = 5
# Rounds of the fixed point, of which each makes the error of the level several times smaller.
ROUNDS = 50


def layered_share(
    hits: ArrayLike, seen: ArrayLike, sizes: ArrayLike, confidence: float = CONFIDENCE
) -> Interval:
    """The share over all layers, with its interval.

    Parameters
    ----------
    hits : array-like of shape (n_layers,)
        Of the cases seen in each layer, how many count.
    seen : array-like of shape (n_layers,)
        How many were seen: a random part of the layer.
    sizes : array-like of shape (n_layers,)
        How many cases the layer has. Layers of which nothing was seen are left out.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    Interval

    Examples
    --------
    One layer gives Wilson's interval.

    >>> from deferlearn.desk.monitoring.shares import layered_share
    >>> one = layered_share([5], [50], [2000])
    >>> round(one.mean, 3), round(one.low, 3), round(one.high, 3)
    (0.1, 0.043, 0.214)
    >>> two = layered_share([5, 1], [50, 100], [2000, 1000])
    >>> round(two.mean, 3), round(two.low, 3), round(two.high, 3)
    (0.07, 0.033, 0.147)
    """
    hit, n, size = (np.asarray(values, dtype=np.float64) for values in (hits, seen, sizes))
    used = n > 0
    if not used.any():
        return NOTHING
    hit, n, weight = hit[used], n[used], size[used] / size[used].sum()
    share = hit / n
    level = z = NormalDist().inv_cdf((1 + confidence) / 2)
    for _ in range(ROUNDS):
        deviation = np.sqrt(share * (1 - share) * n + level**2 / 4) / (n + level**2)
        part = weight * deviation
        level, before = z * float(np.sqrt((part**2).sum()) / part.sum()), level
        if abs(level - before) < 1e-12:
            break
    centre = (hit + level**2 / 2) / (n + level**2)
    half = level * np.sqrt(share * (1 - share) * n + level**2 / 4) / (n + level**2)
    mean = float(weight @ share)
    low, high = float(weight @ (centre - half)), float(weight @ (centre + half))
    return Interval(mean, max(0.0, min(low, mean)), min(1.0, max(high, mean)))


def sampled_share(
    wrong: ArrayLike, probability: ArrayLike, confidence: float = CONFIDENCE
) -> tuple[Interval, int]:
    """The share of all cases, from those that were drawn with recorded probabilities.

    Parameters
    ----------
    wrong : array-like of shape (n_cases,)
        1 or 0 for each case that was drawn and is known, and NaN for all others.
    probability : array-like of shape (n_cases,)
        The probability with which each case was drawn. Cases that could not be drawn are left out.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    interval : Interval
    seen : int
        How many of the cases are known.
    """
    found, chance = np.asarray(wrong, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    possible = chance > 0
    found, chance = found[possible], chance[possible]
    known = ~np.isnan(found)
    if not known.any():
        return NOTHING, 0
    # In layers of one probability this is the plain share; in others, cases count by its inverse, and the
    # effective number of cases is smaller.
    everywhere, weight = layers(chance, known), 1.0 / chance[known]
    layer = everywhere[known]
    total, squares = np.bincount(layer, weight), np.bincount(layer, weight**2)
    effective = total**2 / squares
    hits = np.bincount(layer, weight * found[known]) / total * effective
    interval = layered_share(hits, effective, np.bincount(everywhere), confidence)
    return interval, int(known.sum())


def layers(chance: Array, known: Bools) -> Index:
    """Number the layers of cases with the same probability; neighbours share one where it must be.

    Of more than `MOST_LAYERS` probabilities, that many layers with equally many known cases are formed.
    Beginning at the lowest probability, a layer takes in the next ones until it has `LEAST_KNOWN` known
    cases.

    Parameters
    ----------
    chance : ndarray of shape (n_cases,)
        The probability with which each case was drawn, above 0.
    known : ndarray of bool of shape (n_cases,)
        Whether the case was drawn and is known; some are.

    Returns
    -------
    layer : ndarray of int of shape (n_cases,)
        Numbers from 0 on.
    """
    values, layer = np.unique(np.round(chance, 9), return_inverse=True)
    if len(values) > MOST_LAYERS:
        ends = np.quantile(chance[known], np.linspace(0, 1, MOST_LAYERS + 1)[1:-1])
        layer = np.searchsorted(np.unique(ends), chance)
    place, number, gathered = [], 0, 0
    for count in np.bincount(layer[known], minlength=int(layer.max()) + 1).tolist():
        if gathered >= LEAST_KNOWN:
            number, gathered = number + 1, 0
        gathered += count
        place.append(number)
    if gathered < LEAST_KNOWN and number:  # too few are left for a last layer
        place = [min(one, number - 1) for one in place]
    return np.array(place)[layer]


def stands_for(chance: Array, known: Bools) -> Array:
    """How many cases of its layer each known case stands for; 0 for the others.

    Parameters
    ----------
    chance : ndarray of shape (n_cases,)
        The probability with which each case was drawn, above 0.
    known : ndarray of bool of shape (n_cases,)
        Whether the case was drawn and is known; some are.

    Returns
    -------
    weights : ndarray of shape (n_cases,)
        Their sum is the number of cases.
    """
    layer = layers(chance, known)
    weight = np.where(known, 1.0 / chance, 0.0)
    return np.asarray(weight * (np.bincount(layer) / np.bincount(layer, weight))[layer])
