"""Sums of two-class objectives: against independent witnesses, and part by part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from checks import VALUE_TOLERANCE, fail_with
from classes import KINDS, ClassProblem, class_problem
from deferlearn.objective import (
    ApproximateSVMObjective,
    SumObjective,
    SVMObjective,
    class_labels,
    class_objective,
)
from problems import FULL, chunks, linear_gram

REFITS = 2


def blobs(n: int, n_classes: int, seed: int = 0, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([77, seed])
    codes = rng.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)[:n]
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(n_classes, d))[codes], codes


@pytest.mark.parametrize("seeds", chunks(80_000, 1_400 if FULL else 70, 14), ids=str)
def test_against_witnesses(seeds: range) -> None:
    """Values and gains are those of refits by another solver, and bounds hold, in any state."""
    fail_with([fault for seed in seeds for fault in witness_faults(class_problem(seed), seed)])


def witness_faults(p: ClassProblem, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    objective, faults = p.objective(), []
    for k in rng.permutation(p.base.n)[: rng.integers(0, p.base.n // 2 + 1)]:
        objective.remove(int(k))
    kept = objective.kept
    rows = np.flatnonzero(kept)
    total = p.reference(kept)
    slack = len(objective.parts) * VALUE_TOLERANCE * p.size(total)
    if not abs(objective.value - total) <= slack:
        faults.append(f"{p.name}: F = {objective.value!r}, witnesses {total!r}")
    for k in rng.choice(rows, size=min(REFITS, len(rows)), replace=False):
        without = kept.copy()
        without[k] = False
        refit, gain = total - p.reference(without), objective.copy().gain(int(k))
        if not abs(gain - refit) <= 2 * slack:
            faults.append(f"{p.name}: gain({k}) = {gain!r}, refits {refit!r}")
    gains = objective.gains(rows)
    cost = rng.uniform(0.0, 2.0, len(rows))
    for lower, upper in (
        objective.gain_bounds(rows),
        objective.copy().score_bounds(rows, 0.7, cost),
        objective.copy().score_bounds(rows, 0.7, cost, tol=0.1),
    ):
        if not ((lower <= gains + slack) & (gains <= upper + slack)).all():
            faults.append(f"{p.name}: bounds miss a gain")
    one_by_one = np.array([objective.gain(int(k)) for k in rows])
    if not (np.abs(one_by_one - gains) <= slack).all():
        faults.append(f"{p.name}: gain and gains differ")
    return faults


@pytest.mark.parametrize("seeds", chunks(81_000, 560 if FULL else 28, 14), ids=str)
def test_until_nothing_is_left(seeds: range) -> None:
    """Classes vanish one after the other; the sum stays the sum of parts that are moved alone."""
    faults = []
    for seed in seeds:
        p = class_problem(seed, most=16)
        objective, parts = p.objective(), p.parts()
        for k in np.random.default_rng(seed).permutation(p.base.n).tolist():
            before, gain = objective.value, objective.gain(k)
            objective.remove(k)
            for part in parts:
                part.remove(k)
            alone, unit = sum(part.value for part in parts), 1e-8 * p.size(before)
            if not abs(objective.value - alone) <= unit:
                faults.append(f"{p.name}: F = {objective.value!r}, parts {alone!r}")
            if not abs(before - objective.value - gain) <= unit or not gain >= 0.0:
                faults.append(f"{p.name}: gain({k}) = {gain!r}")
        assert objective.value == 0.0
    fail_with(faults)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hard_margin_with_several_classes(kind: str) -> None:
    """More features than samples: any labels can be separated, with and without an offset."""
    X, codes = blobs(12, 4, d=20)
    for offset in (True, False):
        objective = class_objective(
            X, codes, 4, kind, alpha=0.5, margin="hard", fit_intercept=offset
        )
        parts = [
            SVMObjective(X, y, 0.5, margin="hard", fit_intercept=offset)
            for y in class_labels(codes, 4, kind)
        ]
        for k in range(12):
            gains = sum(part.gains(range(k, 12)) for part in parts)
            np.testing.assert_allclose(objective.gains(range(k, 12)), gains, atol=1e-10)
            lower, upper = objective.gain_bounds(range(k, 12))
            assert (lower <= gains + 1e-9).all()
            assert (gains <= upper + 1e-9).all()
            objective.remove(k)
            for part in parts:
                part.remove(k)
            assert abs(objective.value - sum(part.value for part in parts)) <= 1e-10


KERNELS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "linear", "fit_intercept": False},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "rbf"},
    {"kernel": linear_gram},
]


@pytest.mark.parametrize("machine", KERNELS, ids=["linear", "no offset", "poly", "rbf", "callable"])
@pytest.mark.parametrize("cache_size", [512, 0.01])
def test_other_labels_on_the_same_data(machine: dict[str, Any], cache_size: float) -> None:
    """Whether kernel values are kept as a whole or by columns: the same as a new objective."""
    X, codes = blobs(60, 3)
    rows = class_labels(codes, 3, "classes")
    first = SVMObjective(X, rows[0], 0.1, cache_size=cache_size, **machine)
    for y in rows[1:]:
        other = first.with_labels(y)
        new = SVMObjective(X, y, 0.1, cache_size=cache_size, **machine)
        assert other.value == new.value
        np.testing.assert_array_equal(other.gains(range(60)), new.gains(range(60)))
        again = other.with_labels(rows[0])
        assert again.value == first.value


def test_sparse_and_precomputed() -> None:
    X, codes = blobs(40, 3)
    dense = class_objective(X, codes, 3, alpha=0.1)
    sparse = class_objective(sp.csr_array(X), codes, 3, alpha=0.1)
    given = class_objective(X @ X.T, codes, 3, alpha=0.1, kernel="precomputed")
    for other in (sparse, given):
        np.testing.assert_allclose(other.gains(range(40)), dense.gains(range(40)), atol=1e-9)


def test_memory_and_threads_change_nothing() -> None:
    X, codes = blobs(90, 4)
    usual = class_objective(X, codes, 4, alpha=0.05, kernel="rbf")
    for options in ({"n_jobs": 2}, {"cache_size": 0.05}):
        other = class_objective(X, codes, 4, alpha=0.05, kernel="rbf", **options)
        np.testing.assert_allclose(other.gains(range(90)), usual.gains(range(90)), atol=1e-10)
        assert abs(other.value - usual.value) <= 1e-10


def test_a_class_without_samples() -> None:
    X, codes = blobs(20, 3)
    for kind in KINDS:
        objective = class_objective(X, codes, 5, kind, alpha=0.1)
        fewer = class_objective(X, codes, 3, kind, alpha=0.1)
        assert objective.value == fewer.value
        assert [part.value for part in objective.parts][-1] == 0.0


def test_two_grades_are_the_two_class_objective() -> None:
    X, codes = blobs(50, 2)
    alone = SVMObjective(X, 2 * codes - 1, 0.1)
    one = class_objective(X, codes, 2, "grades", alpha=0.1)
    both = class_objective(X, codes, 2, "classes", alpha=0.1)
    assert len(one.parts) == 1
    assert len(both.parts) == 2
    assert one.value == alone.value
    assert one.fingerprint() == alone.fingerprint()
    np.testing.assert_array_equal(one.gains(range(50)), alone.gains(range(50)))
    assert one.gain(3) == alone.gain(3)
    cost = np.linspace(0.0, 1.0, 50)
    for mine, theirs in zip(
        one.score_bounds(range(50), 0.5, cost),
        alone.score_bounds(range(50), 0.5, cost),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)
    assert abs(both.value - 2 * alone.value) <= 1e-9
    np.testing.assert_allclose(both.gains(range(50)), 2 * alone.gains(range(50)), atol=1e-9)


def test_copies_are_independent() -> None:
    X, codes = blobs(30, 3)
    objective = class_objective(X, codes, 3, alpha=0.1)
    gain, value = objective.gain(4), objective.value
    other = objective.copy()
    other.remove(4)
    assert objective.value == value
    assert objective.kept.all()
    assert len(objective.removed) == 0
    assert abs(value - other.value - gain) <= 1e-10
    assert other.removed.tolist() == [4]
    assert not other.kept[4]
    assert other.nbytes == sum(part.nbytes for part in other.parts) > 0
    assert other.gap == 0.0


def test_a_removal_that_fails_moves_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    X, codes = blobs(30, 3)
    objective = class_objective(X, codes, 3, alpha=0.1)
    value, last = objective.value, objective.parts[-1]

    def fail(k: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(last, "prepare", fail)
    with pytest.raises(KeyboardInterrupt):
        objective.remove(3)
    assert objective.value == value
    assert all(part.kept.all() for part in objective.parts)


def test_the_parts_are_copied() -> None:
    X, codes = blobs(20, 3)
    parts = [SVMObjective(X, y, 0.1) for y in class_labels(codes, 3, "classes")]
    objective = SumObjective(parts, codes)
    objective.remove(0)
    assert parts[0].kept.all()
    assert objective.labels is not None
    assert objective.labels.tolist() == codes.tolist()
    assert SumObjective(parts).labels is None
    assert SumObjective(parts[:1]).labels.tolist() == parts[0].labels.tolist()


def test_fingerprints_tell_parts_apart() -> None:
    X, codes = blobs(20, 3)
    one = class_objective(X, codes, 3, alpha=0.1).fingerprint()
    other = class_objective(X, codes, 3, "grades", alpha=0.1).fingerprint()
    assert one["labels 0"] != one["labels 1"]
    assert one != other


def test_parts_that_do_not_fit() -> None:
    X, codes = blobs(20, 3)
    one = SVMObjective(X, class_labels(codes, 3, "classes")[0], 0.1)
    moved = one.copy()
    moved.remove(3)
    with pytest.raises(ValueError, match="at least one"):
        SumObjective([])
    with pytest.raises(ValueError, match="same samples"):
        SumObjective([one, SVMObjective(X[:5], [1, -1, 1, -1, 1], 0.1)])
    with pytest.raises(ValueError, match="same state"):
        SumObjective([one, moved])
    with pytest.raises(TypeError, match="SVMObjective"):
        SumObjective([ApproximateSVMObjective(X, one.labels, 0.1)])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="labels"):
        SumObjective([one], labels=[1, 2])


@pytest.mark.parametrize(
    ("codes", "n_classes", "kind", "words"),
    [
        ([0, 1, 3], 3, "classes", "between 0 and 2, got 3 at index 2"),
        ([0, -1, 1], 3, "classes", "got -1"),
        ([0.0, 1.0], 2, "classes", "whole number per sample"),
        ([[0, 1]], 2, "classes", "shape"),
        ([0, 1], 1, "classes", "n_classes=1"),
        ([0, 1], 2, "ranks", "kind='ranks'"),
    ],
)
def test_codes_that_are_none(codes: Any, n_classes: int, kind: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        class_labels(codes, n_classes, kind)
