r"""Sums of two-class objectives on the same samples: the machine of several classes or grades."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.threads import one_blas_thread
from deferlearn._utils.types import Array, Bools, Index
from deferlearn.objective.part_bounds import PartBounds
from deferlearn.objective.protocol import Objective, Pick, Rounds
from deferlearn.objective.screening import check_score
from deferlearn.objective.svm import SVMObjective
from deferlearn.objective.validation import check_indices


class SumObjective(Objective):
    r"""The sum of several SVM objectives on the same samples: :math:`F = F_1 + \dots + F_K`.

    A deferred sample leaves all of them. Values, gains and bounds are the sums of those of the parts, each
    exact or certified. If each :math:`g_k` is weakly submodular with a ratio of at least
    :math:`\gamma_k`, the sum is weakly submodular with :math:`\min_k \gamma_k`, so every guarantee of a
    selection holds for it. Human losses must be on the same scale: the sum of the human's hinge losses
    over the parts.

    `class_objective` builds the parts for classes (each against the rest) and grades.

    Parameters
    ----------
    parts : sequence of SVMObjective
        On the same samples, in the same state; they are copied, and their data are shared.
    labels : array-like of shape (n_samples,), default=None
        The class of each sample, for floors per class. None takes those of the part if there is only one.

    Examples
    --------
    >>> from deferlearn.objective import SumObjective, SVMObjective
    >>> X = [[0.0], [0.1], [1.0], [1.1], [2.0], [2.1], [0.2]]
    >>> above_0, above_1 = [-1, -1, 1, 1, 1, 1, 1], [-1, -1, -1, -1, 1, 1, 1]
    >>> parts = [SVMObjective(X, y, 0.01) for y in (above_0, above_1)]
    >>> objective = SumObjective(parts)
    >>> objective.value == parts[0].value + parts[1].value
    True
    >>> int(objective.gains(range(7)).argmax())  # on the wrong side of both
    6
    """

    def __init__(self, parts: Sequence[SVMObjective], labels: ArrayLike | None = None) -> None:
        self._parts = _check_parts(parts)
        if labels is None and len(self._parts) == 1:
            labels = self._parts[0].labels
        self._labels = None if labels is None else np.array(labels)
        if self._labels is not None and self._labels.shape != (self.n_samples,):
            raise ValueError(
                f"labels must hold the class of each of the {self.n_samples} samples, got shape "
                f"{self._labels.shape}."
            )
        self._bounds = PartBounds(self._parts)

    @property
    def parts(self) -> tuple[SVMObjective, ...]:
        """The objectives that are added; do not change them."""
        return self._parts

    # -- the set function ---------------------------------------------------------------------

    @property
    def value(self) -> float:
        """F of the kept samples."""
        return float(sum(part.value for part in self._parts))

    def gain(self, k: int) -> float:
        """Exact marginal gain of deferring sample k."""
        if len(self._parts) == 1:
            return self._parts[0].gain(k)
        return self._bounds.solve(int(check_indices([k], self._parts[0].kept)[0]))

    def gains(self, ks: Iterable[int]) -> Array:
        """Exact marginal gains of several samples, each taken alone."""
        index = check_indices(ks, self._parts[0].kept)
        return np.sum([part.gains(index) for part in self._parts], axis=0)

    def gain_bounds(self, ks: Iterable[int]) -> tuple[Array, Array]:
        """Certified lower and upper bounds of the gains of several samples, cheaply."""
        index = check_indices(ks, self._parts[0].kept)
        lower, upper = zip(*(part.gain_bounds(index) for part in self._parts), strict=True)
        return np.sum(lower, axis=0), np.sum(upper, axis=0)

    def score_bounds(
        self, ks: Iterable[int], scale: float, cost: ArrayLike, tol: float = 0.0
    ) -> tuple[Array, Array]:
        """Bounds of gains, only as tight as needed to find the largest ``scale * gain - cost``.

        Parameters are those of `SVMObjective.score_bounds`.
        """
        if len(self._parts) == 1:
            return self._parts[0].score_bounds(ks, scale, cost, tol)
        index = check_indices(ks, self._parts[0].kept)
        score = check_score(scale, cost, tol, len(index))
        if len(index) == 0:
            return np.empty(0), np.empty(0)
        lower, _ = self._bounds.sums(index)
        # The best lower bound is nearly always the best candidate, or close to it.
        at = int(np.argmax(score.scale * lower - score.cost))
        gain = self._bounds.solve(int(index[at]))
        best = max(0.0, score.scale * gain - score.cost[at])
        self._bounds.tighten(index, (best / (1.0 - score.tol) + score.cost) / score.scale)
        return self._bounds.sums(index)

    def rounds_ahead(self, rounds: Rounds) -> list[Pick]:
        """Remove the best candidate of each round, for as many rounds as it is certain."""
        # An interrupt or an error in the middle leaves the state as it was.
        moving = self.copy()
        if len(self._parts) == 1:
            picks = moving._parts[0].rounds_ahead(rounds)
        else:
            with one_blas_thread():
                picks = list(moving._picks(rounds))
        if picks:
            self._parts, self._bounds = moving._parts, PartBounds(moving._parts)
        return picks

    def _picks(self, rounds: Rounds) -> Iterable[Pick]:
        allowed = rounds.allowed.copy()
        for i, omega in enumerate(rounds.omegas.tolist()):
            ks = np.flatnonzero(allowed) if rounds.drawn is None else rounds.drawn[i]
            ks = ks[allowed[ks]]
            if len(ks) == 0:
                return
            omegas = (omega, float(rounds.lowest[i]), float(rounds.highest[i]))
            best = self._bounds.best(ks, rounds.cost[ks], omegas, rounds.tie, rounds.unit)
            if best is None:
                return
            self.remove(best.k)
            allowed[best.k] = False
            yield Pick(best.k, best.gain, best.low, best.high, len(ks), best.n_exact, self.value)

    def remove(self, k: int) -> None:
        """Defer sample k: it leaves every part."""
        k = int(check_indices([k], self._parts[0].kept)[0])
        for part in self._parts:  # what can fail comes first: the parts stay in the same state
            part.prepare(k)
        for part in self._parts:
            part.remove(k)
        self._bounds = PartBounds(self._parts)

    def copy(self) -> "SumObjective":
        """An independent objective in the same state; the data are shared."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._parts = tuple(part.copy() for part in self._parts)
        other._bounds = PartBounds(other._parts)
        return other

    # -- what it consists of ------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Number of samples in V."""
        return self._parts[0].n_samples

    @property
    def kept(self) -> Bools:
        """Mask of the samples that the machine keeps."""
        return self._parts[0].kept

    @property
    def removed(self) -> Index:
        """The deferred samples in the order of their removal."""
        return self._parts[0].removed

    @property
    def labels(self) -> NDArray[Any] | None:
        """The class of each sample, or None if it was not given."""
        return None if self._labels is None else self._labels.copy()

    @property
    def gap(self) -> float:
        """How far F may be below `value`: the sum of the parts' gaps."""
        return sum(part.gap for part in self._parts)

    @property
    def nbytes(self) -> int:
        """Bytes that a copy takes on top of what all copies share."""
        return sum(part.nbytes for part in self._parts)

    def fingerprint(self) -> dict[str, Any]:
        """What tells each part from others, under its number."""
        found = [part.fingerprint() for part in self._parts]
        if len(found) == 1:
            return found[0]
        return {f"{name} {i}": value for i, one in enumerate(found) for name, value in one.items()}


def _check_parts(parts: Sequence[SVMObjective]) -> tuple[SVMObjective, ...]:
    parts = tuple(parts)
    if not parts:
        raise ValueError("A sum needs at least one objective.")
    for part in parts:
        if not isinstance(part, SVMObjective):
            raise TypeError(
                "The parts of a sum must be deferlearn.objective.SVMObjective, got "
                f"{type(part).__name__}."
            )
    first = parts[0]
    for i, part in enumerate(parts):
        if part.n_samples != first.n_samples:
            raise ValueError(
                f"The parts of a sum must have the same samples: part 0 has {first.n_samples}, part {i} "
                f"{part.n_samples}."
            )
        if (part.removed.shape != first.removed.shape) or (part.removed != first.removed).any():
            raise ValueError(
                f"The parts of a sum must be in the same state: part {i} and part 0 keep different "
                "samples, or have deferred them in a different order."
            )
    return tuple(part.copy() for part in parts)
