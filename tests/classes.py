"""Problems of several classes: the families of `problems`, with more than two labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from checks import reference_value
from deferlearn.objective import SumObjective, SVMObjective, class_labels, class_objective
from problems import Problem, problem

KINDS = ("classes", "grades")


@dataclass(frozen=True)
class ClassProblem:
    """A problem whose labels are classes 0 to ``n_classes - 1``; some of them may have no sample."""

    base: Problem
    codes: np.ndarray
    n_classes: int
    kind: str

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.n_classes} of them, {self.base.name}"

    @property
    def labels(self) -> np.ndarray:
        return class_labels(self.codes, self.n_classes, self.kind)

    def objective(self, **more: Any) -> SumObjective:
        params = {**self.base.params, **more}
        return class_objective(self.base.X, self.codes, self.n_classes, self.kind, **params)

    def parts(self) -> list[SVMObjective]:
        """Each two-class objective by itself."""
        return [SVMObjective(self.base.X, y, **self.base.params) for y in self.labels]

    def size(self, value: float) -> float:
        """What errors are relative to."""
        return self.base.size(value)

    def reference(self, kept: np.ndarray) -> float:
        """The sum of the values of independent witnesses."""
        return sum(reference_value(replace(self.base, y=y), kept) for y in self.labels)


def class_problem(seed: int, most: int | None = None) -> ClassProblem:
    """The seed-th problem, cut to ``most`` samples: some classes are rare, some are absent."""
    base = problem(seed)
    rng = np.random.default_rng([41, seed])
    if most is not None and base.n > most:
        kept = np.zeros(base.n, dtype=bool)
        kept[rng.choice(base.n, most, replace=False)] = True
        base = base.restrict(kept)
    codes = (base.y > 0).astype(np.int64)
    if base.hard:  # the classes must stay separable
        return ClassProblem(base, codes, 2, KINDS[seed % 3 % 2])
    n_classes = int(rng.integers(2, 5))
    shift = rng.integers(0, n_classes - 1, size=base.n)
    if rng.random() < 0.3:  # one sample has a class of its own
        shift[:] = 0
        shift[int(rng.integers(base.n))] = n_classes - 2
    return ClassProblem(base, codes + shift, n_classes, KINDS[seed % 3 % 2])
