"""What compiled functions are given and return: named tuples, which numba understands.

Arrays have one entry per sample, of all samples or of a working set; `doubledouble` explains pairs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools, Index

Statuses = NDArray[np.int8]


class Pair(NamedTuple):
    """An array carried in two doubles: ``hi + lo``."""

    hi: Array
    lo: Array


class Samples(NamedTuple):
    """A problem: what is known of each of its samples, and what they share."""

    y: Array
    weight: Array
    upper: Array  # of the dual variables
    root: Array  # the length of each image: the square root of the diagonal
    diagonal: Array
    alpha: float
    offset: bool
    hard: bool


class Working(NamedTuple):
    """The samples of a working set, with their Gram matrix."""

    Q: Array
    y: Array
    upper: Array
    root: Array
    offset: bool


class Point(NamedTuple):
    """Dual variables (a pair), the gradient G of `path`, and the status of each sample."""

    a: Array
    a_lo: Array
    G: Array
    status: Statuses

    def at(self, index: Index) -> "Point":
        """A copy of some of its samples."""
        return Point(self.a[index], self.a_lo[index], self.G[index], self.status[index])


class FreeSet(NamedTuple):
    """The free samples, and the inverse R of their bordered Gram matrix; both may have room to grow."""

    members: Index
    R: Array


class Start(NamedTuple):
    """Where paths start: a point of a working set, of which the first p members are free."""

    working: Working
    point: Point
    free: FreeSet
    p: int
    beta: float
    mu: float
    quadratic: float  # a'Qa
    blur: float  # how far rounding may have taken G from what a says, on top of its own


class Outsiders(NamedTuple):
    """Candidates outside of the working set: their own numbers, and their columns of the Gram matrix."""

    diagonal: Array
    diagonal_lo: Array
    a: Array
    a_lo: Array
    y: Array
    G: Array
    columns: Array
    columns_lo: Array


class Candidates(NamedTuple):
    """Samples that may be removed, their places in the working set (-1: outside), and mu without each."""

    ks: Index
    local: Index
    mu: Array
    outside: Outsiders


class Ends(NamedTuple):
    """Where the paths of several candidates end: one row per candidate; the free set is the last one's."""

    ks: Index
    mu: Array
    outcome: Index  # how the path ended
    steps: Index
    gain: Array  # the exact change of the dual value: the gain, if the end is optimal
    beta: Array
    gap: Array  # the working set's part of mu times the duality gap
    short: Array  # by how much G falls short of zero where dual variables have no upper bound
    moved: Array  # at most how far mu w has moved, by its length in feature space
    a: Array
    a_lo: Array
    status: Statuses
    free: FreeSet
    p: int


class Numbers(NamedTuple):
    """What a state is summed up by."""

    beta: float
    mu: float
    total: float  # the sum of a
    quadratic: float  # a'Qa
    present: float  # the size of what rounding may have left in the gradient
    value: float  # F
    lowest: float  # the interval of optimal beta
    highest: float
    slack: float  # how far the state may be from the optimum


class Snapshot(NamedTuple):
    """A state: its samples, its point, and the numbers that sum it up."""

    samples: Samples
    point: Point
    kept: Bools
    free: FreeSet
    numbers: Numbers


class Responses(NamedTuple):
    """What is kept per candidate from one state to the next, one row each; all of Q where it is at hand."""

    change: Array  # of the dual variables near the margin
    image: Array  # of the change, under Q
    dual: Array  # of ADMM
    rows: Array  # of Q
    age: Index  # states since the image was computed afresh; -1: unknown
    Q_all: Array
    whole: bool


class Near(NamedTuple):
    """The samples near the margin, and the matrices by which they respond (`tightening`)."""

    ks: Index
    position: Index  # of every sample among them, -1 elsewhere
    Q: Array
    inverse: Array
    inverse_sums: Array
    shift: Array
    penalty: float
    responses: Responses


class Score(NamedTuple):
    """What is of interest: the largest ``scale * gain - cost``, up to the factor ``1 - tol``."""

    scale: float
    cost: Array
    tol: float
