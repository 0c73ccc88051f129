"""The bounds on the submodularity ratio against the true ratio, by trying every set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from bounds.brute import KINDS, all_values, tiny, true_ratio
from deferlearn.bounds import submodularity_bound
from deferlearn.objective import SVMObjective
from problems import FULL

SEEDS = range(40 if FULL else 6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_g_is_monotone_and_no_bound_exceeds_the_true_ratio(kind: str, weighted: bool) -> None:
    proved = 0
    for seed in SEEDS:
        size = 6 + seed % 3
        objective = tiny(seed, size, kind, weighted)
        values = all_values(objective)
        for k in range(size):
            without = np.arange(2**size) & ~(1 << k)
            assert (values >= values[without] - 1e-9 * max(1.0, values.max())).all()
        for n in (0, 1, 2, size):
            bound = submodularity_bound(objective, n)
            truth = true_ratio(values, size, n) if bound.best > 0 else 0.0
            for one in (bound.paper, *bound.stronger):
                assert one.holds or one.value == 0.0
                assert one.value <= truth + 1e-12, f"{kind} {seed} n={n}: {one} above {truth}"
            proved += bound.best > 0
    assert proved >= len(SEEDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_bound_is_no_worse_than_the_papers(kind: str) -> None:
    for seed in SEEDS:
        objective = tiny(seed, 12, kind)
        for n in range(4):
            bound = submodularity_bound(objective, n)
            assert bound.best >= bound.paper.value
            if bound.paper.value > 0:
                assert max(b.value for b in bound.stronger) > bound.paper.value


def test_over_all_sets_the_ratio_of_an_svm_with_offset_can_be_zero() -> None:
    """x+ = 0, 0, 0, 2 and x- = 0, -2: without the -2 every single positive gains nothing."""
    X = np.array([0.0, 0.0, 0.0, 2.0, 0.0, -2.0])[:, None]
    objective = SVMObjective(X, [1, 1, 1, 1, -1, -1], alpha=1.0)
    without = objective.copy()
    without.remove(5)
    positives = np.arange(4)
    assert np.abs(without.gains(positives)).max() < 1e-12
    assert without.value > 1.0  # ... and all of them together gain everything
    values = all_values(objective)
    assert true_ratio(values, 6, 6) == pytest.approx(0.0, abs=1e-9)
    for n in range(7):
        bound = submodularity_bound(objective, n)
        assert bound.best <= true_ratio(values, 6, n) + 1e-12
    bound = submodularity_bound(objective, 1)
    assert bound.best == 0.0
    # s* = 2 is all of the smaller class, so the theorem ends at n = 0, and it could not end later.
    assert bound.largest_n == 0
    assert true_ratio(values, 6, 0) > 0.03
    assert true_ratio(values, 6, 1) == pytest.approx(0.0, abs=1e-9)


def _hulls_meet(X: np.ndarray, y: np.ndarray, caps: np.ndarray) -> bool:
    """Whether some convex weights within the caps give both classes the same point (a linear programme)."""
    equal = np.vstack([X.T * y, (y > 0).astype(float), (y < 0).astype(float)])
    found = linprog(
        np.zeros(len(y)), A_eq=equal, b_eq=[*np.zeros(X.shape[1]), 1.0, 1.0],
        bounds=np.column_stack([np.zeros(len(y)), caps]),
    )  # fmt: skip
    assert found.status in (0, 2), found.message
    return bool(found.status == 0)


@pytest.mark.parametrize("seed", range(8))
def test_largest_budget_is_that_of_the_definition(seed: int) -> None:
    """V_min - s*, with s* the first s whose reduced hulls do not meet; by weight if weights differ."""
    rng = np.random.default_rng([8, seed])
    y = np.repeat([1.0, -1.0], [9, 13])
    X = rng.normal(size=(22, 2)) + [0.0, 0.15, 0.4, 1.2][seed % 4] * y[:, None]
    if seed % 4 == 0:  # the same mean in both classes: all hulls meet
        X[0] += 9.0 * (X[y < 0].mean(axis=0) - X[y > 0].mean(axis=0))
    weights = rng.uniform(0.5, 2.0, size=22) if seed >= 4 and seed % 4 else np.ones(22)
    largest = None
    for n in range(9):
        least = min(np.sort(weights[y == label])[::-1][n:].sum() for label in (1.0, -1.0))
        if _hulls_meet(X, y, weights / least):
            break
        largest = n
    objective = SVMObjective(X, y, alpha=0.3, weights=weights)
    bounds = [submodularity_bound(objective, n) for n in range(10)]
    assert {bound.largest_n for bound in bounds} == {largest}
    limit = -1 if largest is None else largest
    assert [bound.best > 0 for bound in bounds] == [n <= limit for n in range(10)]
    if (weights == 1.0).all():
        assert [bound.paper.holds for bound in bounds] == [n <= limit for n in range(10)]
    said = f"There is one for budgets of up to {largest}." in bounds[9].words
    assert said == bool(largest)


@pytest.mark.parametrize("kind", ["no offset", "rbf no offset", "hard", "hard no offset"])
def test_bounds_without_a_condition_allow_every_budget(kind: str) -> None:
    assert submodularity_bound(tiny(3, 7, kind), 2).largest_n == 7


def test_with_a_kernel_of_full_rank_a_sample_per_class_is_enough() -> None:
    """Every s has hulls that do not meet: the paper's condition is n < V_min."""
    objective = tiny(3, 9, "rbf")
    smaller = min((objective.labels > 0).sum(), (objective.labels < 0).sum())
    assert submodularity_bound(objective, 0).largest_n == smaller - 1


def test_equal_weights_have_the_bounds_of_unit_weights() -> None:
    rng = np.random.default_rng(4)
    y = np.repeat([1.0, -1.0], 10)
    X = rng.normal(size=(20, 2)) + y[:, None]
    one = submodularity_bound(SVMObjective(X, y, alpha=0.3), 3)
    three = submodularity_bound(SVMObjective(X, y, alpha=0.3, weights=np.full(20, 3.0)), 3)
    assert three.paper.value == pytest.approx(one.paper.value, rel=1e-6)
    assert [b.value for b in three.stronger] == pytest.approx(
        [b.value for b in one.stronger], rel=1e-6
    )
