"""What a selection needs from an objective: a set function F with marginal gains and removals."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.types import Array, Bools, Index


class Pick(NamedTuple):
    """A sample that was removed in a round of a greedy selection.

    Attributes
    ----------
    k : the sample
    gain : its exact marginal gain
    low, high : it is the best candidate for every omega in this interval
    n_candidates, n_exact : candidates, and how many of their gains were solved exactly
    value : F after its removal
    """

    k: int
    gain: float
    low: float
    high: float
    n_candidates: int
    n_exact: int
    value: float


class Rounds(NamedTuple):
    """Rounds of a greedy selection that an objective may make by itself.

    Attributes
    ----------
    omegas : the weight of the gain in each round
    lowest, highest : the smallest and largest omega for which the pick of each round may be used
    cost : the cost of each sample, such as the human's loss
    allowed : mask of the samples that may be removed
    drawn : one row of candidates per round; None: all that are allowed
    tie : scores this close, relative to the score or to ``unit``, are equal
    unit : what ties are relative to, where scores are smaller
    """

    omegas: Array
    lowest: Array
    highest: Array
    cost: Array
    allowed: Bools
    drawn: Index | None
    tie: float
    unit: float


class Objective(ABC):
    r"""A set function F over samples 0 to n - 1, in a state: some samples are kept, the others removed.

    F does not grow when a sample is removed. With A the kept samples, the marginal gain of sample k is
    ``F(A) - F(A \ {k})``, which is never negative. Gains are in the units of F, as human losses must be.
    Arrays of gains and bounds have one entry for each of the samples that were asked for; masks and labels
    have one entry per sample, removed samples included.

    A subclass defines ``value``, ``kept``, ``gain``, ``gain_bounds``, ``remove`` and ``copy``. The other
    members have defaults that are correct, if not the fastest. `deferlearn.objective.SVMObjective` is
    the objective of the paper. The documentation has a guide, "Write your own objective", with another one.

    *Exact* means up to rounding. A selection takes scores for equal that differ by less than 1e-9 of F, so
    an iterative method must be accurate to well below that. *Certified* means that a gain is never outside
    its bounds: if it is, the selection may be wrong, without any error. The bounds 0 and `value` always
    hold.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.objective import Objective
    >>> from deferlearn.selection import distorted_greedy
    >>> class Total(Objective):
    ...     "The sum of the kept samples' numbers."
    ...     def __init__(self, numbers, kept):
    ...         self.numbers, self._kept = np.asarray(numbers), np.array(kept)
    ...     value = property(lambda self: float(self.numbers[self._kept].sum()))
    ...     kept = property(lambda self: self._kept)
    ...     def gain(self, k):
    ...         return float(self.numbers[k])
    ...     def gain_bounds(self, ks):
    ...         return self.gains(ks), self.gains(ks)
    ...     def remove(self, k):
    ...         self._kept[k] = False
    ...     def copy(self):
    ...         return Total(self.numbers, self._kept)
    >>> distorted_greedy(Total([1.0, 3.0, 2.0], [True] * 3), [0.5] * 3, n=2).order
    array([1, 2])
    """

    @property
    @abstractmethod
    def value(self) -> float:
        """F of the kept samples."""

    @property
    @abstractmethod
    def kept(self) -> Bools:
        """Mask of the kept samples."""

    @abstractmethod
    def gain(self, k: int) -> float:
        """Exact marginal gain of removing the kept sample k."""

    @abstractmethod
    def gain_bounds(self, ks: Iterable[int]) -> tuple[Array, Array]:
        """Certified lower and upper bounds of gains; where they meet, they are the gain.

        The closer they are, the fewer exact gains are asked for.
        """

    def gain_interval(self, k: int) -> tuple[float, float]:
        """The closest bounds of the gain of the kept sample k: by default its exact gain, twice.

        An objective that knows gains only to within a `gap` says here how well it knows this one.
        """
        gain = self.gain(k)
        return gain, gain

    @abstractmethod
    def remove(self, k: int) -> None:
        """Remove the kept sample k: the state moves on."""

    @abstractmethod
    def copy(self) -> Self:
        """An independent objective in the same state."""

    def gains(self, ks: Iterable[int]) -> Array:
        """Exact marginal gains of several samples, each taken alone."""
        return np.array([self.gain(int(k)) for k in ks], dtype=np.float64)

    @property
    def gains_at_once(self) -> int:
        """How many gains are best asked for in one call of `gains`; 1 if by `gain`, one by one."""
        return 1

    def score_bounds(
        self, ks: Iterable[int], scale: float, cost: ArrayLike, tol: float = 0.0
    ) -> tuple[Array, Array]:
        """Bounds of gains that need to be tight only where it helps to find the best score.

        That is the largest ``scale * gain - cost``, up to the factor ``1 - tol``. By default, the same as
        `gain_bounds`.
        """
        return self.gain_bounds(ks)

    def rounds_ahead(self, rounds: Rounds) -> list[Pick]:
        """Remove the best candidate of each round, for as many rounds as can be made quickly.

        That is the candidate with the largest ``omega * gain - cost``, provably, if that is positive; of
        scores that tie, the one with the smallest index. The state moves on by the picks that are
        returned. By default there are none: the caller then finds the best candidate by bounds.
        """
        return []

    @property
    def gap(self) -> float:
        """F of the kept samples is at most `value`, and at least ``value - gap``; 0 if it is exact."""
        return 0.0

    @property
    def nbytes(self) -> int:
        """Bytes that a copy takes on top of what all copies share; 0 if that is not known."""
        return 0

    @property
    def labels(self) -> NDArray[Any] | None:
        """The class of each sample, or None if there are no classes."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Numbers and words that tell the data from others; empty if nothing does.

        With it, a checkpoint of other data is refused at once; without it, only when a recorded gain
        turns out to be different.
        """
        return {}
