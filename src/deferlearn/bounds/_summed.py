r"""A lower bound of ``F_1(V \ S) + ... + F_K(V \ S) + c(S)``, all machines at once.

At a fixed offset, `_restricted` bounds one machine by a number less a sum over S. Such bounds of several
machines add up, and the worst S is found by sorting once for all of them. An offset may lie in many
intervals, each with a bound of its own; one of them is taken as the reference h, and another one, with
hurt h', is at least

.. math::

    v' - \sum_{i \in S} h'_i \ge v' - \max_{|T| = |S|} \sum_{i \in T} (h'_i - h_i)_+ - \sum_{i \in S} h_i ,

so the least of the first two terms over all intervals, with the reference's hurt, holds for every offset.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.bounds._restricted import SHRINKAGES, minorants, most_offset, sum_of_largest
from deferlearn.bounds._view import View
from deferlearn.kernels import LinearGram
from deferlearn.objective import SVMObjective

# Intervals around the machine's own offset end at these distances.
DISTANCES = np.array([0.0, 0.05, 0.15, 0.35, 0.7, 1.2, 2.0, 4.0])
# Entries of the sums of hurt that may exist at once (256 MB); beyond, nothing is claimed.
MOST_ENTRIES = 2**25


def summed_dual_bound(
    parts: Sequence[SVMObjective], views: Sequence[View], loss: Array, n: int
) -> float:
    """Least cost over all offsets of all machines, and all sets of at most n samples."""
    size = views[0].n_samples
    weight = views[0].problem.weight
    entries = len(SHRINKAGES) * size * n
    if float(np.sort(weight)[::-1][n:].sum()) <= 0 or entries > MOST_ENTRIES:
        return 0.0
    value = np.zeros((len(SHRINKAGES), n + 1))
    hurt = np.zeros((len(SHRINKAGES), size, n))
    hurt -= loss[:, None]
    for part, view in zip(parts, views, strict=True):
        if view.value > 0.0:
            _add(value, hurt, part, view, n)
    for row, columns in zip(value, hurt, strict=True):
        row[1:] -= sum_of_largest(columns)
    return max(0.0, float(value.max(axis=0).min()))


def _add(value: Array, hurt: Array, part: SVMObjective, view: View, n: int) -> None:
    """Add the bounds of one machine, one per shrinkage."""
    Q, nothing = view.signed_gram(), np.zeros(view.n_samples)
    own = _own_offset(part) if view.problem.offset else 0.0
    reference = [ends[0] for ends in minorants(view, Q, nothing, n, own, own)]
    least = np.array([one.value for one in reference])
    if view.problem.offset:
        reach = max(most_offset(view), abs(own))
        cuts = np.concatenate([[-reach, reach], own - DISTANCES, own + DISTANCES])
        cuts = np.unique(np.clip(cuts, -reach, reach))
        for low, high in pairwise(cuts):
            for i, ends in enumerate(minorants(view, Q, nothing, n, low, high)):
                for end in ends:
                    end.value[1:] -= sum_of_largest(np.maximum(end.hurt - reference[i].hurt, 0.0))
                    least[i] = np.minimum(least[i], end.value)
    value += least
    for i, one in enumerate(reference):
        hurt[i] += one.hurt


def _own_offset(part: SVMObjective) -> float:
    """The machine's offset where the engine may have moved the origin; any number would be valid."""
    gram = part.problem.gram
    shift = float(part.coef @ gram.centre) if isinstance(gram, LinearGram) else 0.0
    return part.intercept + shift
