"""What the theorems need to know of an objective: its data in the engine's units."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deferlearn._utils.types import Array
from deferlearn._utils.words import counted
from deferlearn.kernels import WHOLE_GRAM_LIMIT, Gram, LinearGram
from deferlearn.objective import SumObjective, SVMObjective
from deferlearn.objective.state import Problem


def parts_of(objective: SVMObjective | SumObjective) -> tuple[SVMObjective, ...]:
    """The parts of a sum; an objective that is no sum is its only part."""
    return objective.parts if isinstance(objective, SumObjective) else (objective,)


@dataclass(frozen=True)
class View:
    """The problem of an objective that has not deferred any sample yet."""

    problem: Problem
    value: float

    @classmethod
    def of(cls, objective: SVMObjective) -> Self:
        """Refuse an objective that is not an SVM's, or has moved on: the theorems speak of all of V."""
        if not isinstance(objective, SVMObjective):
            raise TypeError(
                "Bounds and certificates are for deferlearn.objective.SVMObjective and sums of them, "
                f"got {type(objective).__name__}."
            )
        if count := len(objective.removed):
            raise ValueError(
                f"The objective has already deferred {counted(count, 'sample')}; bounds and "
                "certificates need it in its initial state, with every sample kept."
            )
        return cls(objective.problem, objective.value)

    @property
    def gram(self) -> Gram:
        return self.problem.gram

    @property
    def y(self) -> Array:
        return self.problem.y

    @property
    def n_samples(self) -> int:
        return len(self.problem.y)

    @property
    def total(self) -> float:
        return float(self.problem.weight.sum())

    @property
    def linear(self) -> bool:
        return isinstance(self.problem.gram, LinearGram)

    @property
    def unit_weights(self) -> bool:
        """Equal weights only rescale F, so the theorems for unit weights hold for them."""
        weight = self.problem.weight
        return bool((weight == weight[0]).all())

    @property
    def class_counts(self) -> tuple[int, int]:
        return int((self.y < 0).sum()), int((self.y > 0).sum())

    @property
    def radius(self) -> float:
        """The paper's kappa, in the engine's units."""
        return float(self.problem.root.max(initial=0.0))

    def image(self, a: Array) -> Array:
        """``(Qa)_i`` for every sample."""
        used = np.flatnonzero(a)
        return self.gram.image(used, a[used])

    def length(self, a: Array) -> float:
        """``|sum_i a_i y_i phi_i|``, without cancellation where the features are known."""
        used = np.flatnonzero(a)
        if isinstance(self.gram, LinearGram):
            return float(np.linalg.norm(self.gram.combine(used, a[used])))
        return float(np.sqrt(max(0.0, float(a @ self.image(a)))))

    def signed_gram(self) -> Array:
        """All of Q."""
        everything = np.arange(self.n_samples)
        return self.gram.block(everything, everything)

    def diameters(self) -> tuple[float, float]:
        """Largest distance between any two samples, and between two of opposite classes."""
        if self.n_samples > WHOLE_GRAM_LIMIT:
            return 2.0 * self.radius, 2.0 * self.radius
        square = self.problem.root**2
        K = self.signed_gram() * np.outer(self.y, self.y)
        # Rounding may hide a distance of sqrt(eps), so it is added: larger is on the safe side.
        distance = np.sqrt(np.maximum(square[:, None] + square - 2.0 * K, 0.0) + 1e-14)
        opposite = self.y[:, None] != self.y
        return float(distance.max()), float(distance[opposite].max(initial=0.0))
