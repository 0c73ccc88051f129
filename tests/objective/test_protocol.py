"""What every objective has: six members of its own, and defaults for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deferlearn.bounds import certificate, submodularity_bound
from deferlearn.objective import Objective, SVMObjective
from deferlearn.selection import (
    distorted_greedy,
    stochastic_distorted_greedy,
    submodularity_sweep,
    unconstrained_distorted_greedy,
)

LOSS = np.array([0.5, 0.5, 0.5, 0.5])


class Sum(Objective):
    """F(A) is the sum of the kept numbers: every gain is known."""

    kept: Any = None  # each has its own

    def __init__(self, numbers: list[float]) -> None:
        self.numbers, self.kept = np.array(numbers), np.ones(len(numbers), dtype=bool)

    @property
    def value(self) -> float:
        return float(self.numbers[self.kept].sum())

    def gain(self, k: int) -> float:
        return float(self.numbers[k])

    def gain_bounds(self, ks: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.gains(ks) - 0.01, self.gains(ks) + 0.01

    def remove(self, k: int) -> None:
        self.kept[k] = False

    def copy(self) -> Sum:
        other = type(self)(self.numbers.tolist())
        other.kept = self.kept.copy()
        return other


def test_defaults() -> None:
    objective = Sum([1.0, 3.0, 2.0, 0.1])
    np.testing.assert_array_equal(objective.gains(iter([1, 3])), [3.0, 0.1])
    assert objective.gains([]).shape == (0,)
    np.testing.assert_array_equal(
        objective.score_bounds([0, 2], 0.5, LOSS[:2]), objective.gain_bounds([0, 2])
    )
    assert objective.nbytes == 0
    assert objective.labels is None
    assert objective.fingerprint() == {}


@pytest.mark.parametrize("member", ["value", "kept", "gain", "gain_bounds", "remove", "copy"])
def test_what_must_be_defined(member: str) -> None:
    names = {"value", "kept", "gain", "gain_bounds", "remove", "copy"} - {member}
    partial = type("Partial", (Objective,), {name: vars(Sum)[name] for name in names})
    with pytest.raises(TypeError, match=rf"Partial .*abstract method '?{member}'?"):
        partial()


def test_the_svm_is_one() -> None:
    assert issubclass(SVMObjective, Objective)


@pytest.mark.parametrize(
    "select",
    [
        lambda o: distorted_greedy(o, LOSS, 3),
        lambda o: stochastic_distorted_greedy(o, LOSS, 3, epsilon=1e-9, random_state=0),
        lambda o: unconstrained_distorted_greedy(o, LOSS, random_state=0),
        lambda o: submodularity_sweep(o, LOSS, 3, delta=0.5),
    ],
)
def test_every_algorithm_takes_it(select: Any) -> None:
    objective = Sum([1.0, 3.0, 2.0, 0.1])
    result = select(objective)
    assert set(result.order.tolist()) <= {0, 1, 2}
    assert result.value == pytest.approx((objective.numbers - LOSS)[result.order].sum())
    assert objective.kept.all()


def test_what_algorithms_need() -> None:
    objective = Sum([1.0, 3.0, 2.0, 0.1])
    with pytest.raises(ValueError, match=r"min_kept_per_class=1 needs .* Sum\.labels is None"):
        distorted_greedy(objective, LOSS, 3, min_kept_per_class=1)
    with pytest.raises(TypeError, match=r"derives from deferlearn\.objective\.Objective, got list"):
        distorted_greedy([1.0, 3.0], LOSS, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"SVMObjective and sums of them, got Sum"):
        submodularity_bound(objective, 2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"SVMObjective and sums of them, got Sum"):
        certificate(objective, distorted_greedy(objective, LOSS, 3), LOSS)  # type: ignore[arg-type]
