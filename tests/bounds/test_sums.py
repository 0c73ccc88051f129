"""What is claimed of sums of objectives, by trying every set of tiny problems."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bounds.brute import Sets, all_values, best_value, true_ratio
from deferlearn.bounds import certificate, optimum_upper_bound, submodularity_bound
from deferlearn.objective import SumObjective, SVMObjective, class_objective
from deferlearn.selection import distorted_greedy, submodularity_sweep
from problems import FULL

SEEDS = range(60 if FULL else 5)
VARIANTS = ("linear", "rbf", "no offset", "rbf no offset", "hard")


def tiny_classes(seed: int, variant: str, size: int = 7, apart: float = 0.0) -> SumObjective:
    rng = np.random.default_rng([53, seed, VARIANTS.index(variant)])
    n_classes = int(rng.integers(3, 5))
    codes = rng.integers(0, n_classes, size)
    codes[:3] = [0, 1, 2]
    X = rng.normal(size=(size, 10 if variant == "hard" else 2))
    X[:, 0] += (apart + 1.0) * codes
    return class_objective(
        X, codes, n_classes, ("classes", "grades")[seed % 2],
        alpha=float(10.0 ** rng.uniform(-2.0, 1.0)),
        fit_intercept="no offset" not in variant,
        margin="hard" if variant == "hard" else "soft",
        kernel="rbf" if variant.startswith("rbf") else "linear",
        weights=rng.uniform(0.3, 3.0, size=size) if seed % 3 == 0 else None,
    )  # fmt: skip


@cache
def values_of(seed: int, variant: str) -> np.ndarray:
    return all_values(tiny_classes(seed, variant))  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", VARIANTS)
def test_sums_are_monotone_and_their_ratio_is_what_is_claimed(variant: str) -> None:
    positive = 0
    for seed in SEEDS:
        objective, values = tiny_classes(seed, variant), values_of(seed, variant)
        size, unit = objective.n_samples, max(1.0, objective.value)
        masks = np.arange(2**size)
        for k in range(size):
            with_k = masks[(masks >> k & 1) == 1]
            assert (values[with_k] - values[with_k & ~(1 << k)] >= -1e-9 * unit).all()
        for n in (1, 2, 4):
            bound = submodularity_bound(objective, n)
            parts = [submodularity_bound(p, n) for p in objective.parts]
            assert bound.best == min(part.best for part in parts)
            limits = [-1 if part.largest_n is None else part.largest_n for part in parts]
            assert bound.largest_n == (None if min(limits) < 0 else min(limits))
            assert bound.paper.value <= bound.best
            assert "sum of" in bound.words
            assert true_ratio(values, size, n) >= bound.best
            positive += bound.best > 0.0
    assert positive > 0 or variant in ("linear", "rbf")  # a lone class leaves no bound


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_selection_is_better_than_the_upper_bound(variant: str) -> None:
    shares = []
    for seed in SEEDS:
        objective = tiny_classes(seed, variant)
        loss = np.random.default_rng(seed).uniform(0.0, 1.5, objective.n_samples)
        for n in (1, 3, 7):
            best = best_value(objective, loss, n)  # type: ignore[arg-type]
            bound = optimum_upper_bound(objective, loss, n)
            assert bound.value == min(bound.bounds.values())
            for name, value in bound.bounds.items():
                assert value >= best - 1e-9 * max(1.0, objective.value), name
            if bound.value > 0:
                shares.append(best / bound.value)
    assert np.median(shares) > 0.5


@pytest.mark.parametrize("variant", ["linear", "no offset", "rbf no offset"])
def test_the_restricted_dual_of_all_parts_is_informative(variant: str) -> None:
    """On its own, too, it says more than F(V) for most problems."""
    sharper = []
    for seed in SEEDS:
        objective = tiny_classes(seed, variant, size=8)
        loss = np.full(8, 0.3)
        bounds = optimum_upper_bound(objective, loss, 2).bounds
        sharper.append(bounds["restricted dual"] < 0.98 * bounds["everything"])
    assert np.mean(sharper) > 0.5


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_guarantee_of_a_run_holds(variant: str) -> None:
    guaranteed = 0
    for seed in SEEDS:
        objective, values = tiny_classes(seed, variant), values_of(seed, variant)
        loss = np.random.default_rng(seed).uniform(0.0, 1.0, objective.n_samples)
        sets = Sets(values, loss)
        for n in (2, 4):
            ratio = max(submodularity_bound(objective, n).best, 1e-6)
            run = distorted_greedy(objective, loss, n, ratio)
            report = certificate(objective, run, loss)
            assert run.value >= sets.most(report.factor, n) * report.share - 1e-8
            assert report.value <= sets.most(1.0, n) + 1e-8 <= report.optimum.value + 1e-7
            assert "machine" in report.summary()
            guaranteed += report.guaranteed
    assert guaranteed > 0 or variant in ("linear", "rbf")


def test_separable_classes_with_an_offset_have_a_ratio() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 5)
    X = rng.normal(scale=0.1, size=(15, 2)) + 3.0 * np.array([[0, 0], [1, 0], [0, 1]])[codes]
    objective = class_objective(X, codes, 3, alpha=0.1)
    bound = submodularity_bound(objective, 2)
    assert 0.0 < bound.best <= 1.0


def test_floors_of_several_classes() -> None:
    rng = np.random.default_rng(1)
    codes = np.r_[np.zeros(8, dtype=int), np.ones(8, dtype=int), [2, 2]]
    X = rng.normal(size=(18, 2)) + codes[:, None]
    objective = class_objective(X, codes, 3, alpha=1.0, fit_intercept=False)
    loss, n = np.full(18, 0.2), 3
    ratio = submodularity_bound(objective, n).best / 2
    reached = distorted_greedy(objective, loss, n, ratio, min_kept_per_class=2)
    assert not certificate(objective, reached, loss).guaranteed  # two of class 2 have to stay
    free = distorted_greedy(objective, loss, n, ratio)
    assert certificate(objective, free, loss).guaranteed
    idle = distorted_greedy(objective, loss, 1, ratio, min_kept_per_class=1)
    assert certificate(objective, idle, loss).guaranteed
    unlabelled = SumObjective(objective.parts)
    claim: Any = SimpleNamespace(**{**vars(reached), "min_kept_per_class": 1})
    assert not certificate(unlabelled, claim, loss).guaranteed


def test_a_single_part_and_a_sweep() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2, 20)
    X = rng.normal(size=(20, 2)) + codes[:, None]
    alone = SVMObjective(X, 2 * codes - 1, 0.5)
    one = class_objective(X, codes, 2, "grades", alpha=0.5)
    loss = np.full(20, 0.3)
    assert submodularity_bound(one, 3) == submodularity_bound(alone, 3)
    assert optimum_upper_bound(one, loss, 3) == optimum_upper_bound(alone, loss, 3)
    result = submodularity_sweep(one, loss, 3)
    assert certificate(one, result, loss) == certificate(alone, result, loss)


def test_what_has_been_deferred_or_is_no_machine() -> None:
    objective = tiny_classes(0, "linear")
    objective.remove(0)
    with pytest.raises(ValueError, match="already deferred 1 sample"):
        submodularity_bound(objective, 1)
    with pytest.raises(ValueError, match="already deferred 1 sample"):
        optimum_upper_bound(objective, np.zeros(7), 1)


def test_a_budget_of_nothing_and_of_everything() -> None:
    objective = tiny_classes(1, "linear")
    assert optimum_upper_bound(objective, np.zeros(7), 0).value == 0.0
    bound = optimum_upper_bound(objective, np.zeros(7), 7)
    assert abs(bound.value - objective.value) <= 1e-7 * max(1.0, objective.value)
