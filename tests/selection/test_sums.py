"""Selections on sums of objectives, against a greedy that solves every gain of every part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checks import fail_with
from classes import ClassProblem, class_problem
from deferlearn.objective import Rounds, SVMObjective, class_labels, class_objective
from deferlearn.selection import (
    distorted_greedy,
    stochastic_distorted_greedy,
    submodularity_sweep,
    unconstrained_distorted_greedy,
)
from deferlearn.selection.states import TIE
from problems import FULL, chunks

RATIO = 0.6


def three_classes(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([3, seed])
    codes = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + rng.normal(size=(3, 4))[codes]
    return X, codes, 4.0 * (rng.random(n) < 0.3)


def scores_of(parts: list[SVMObjective], ks: np.ndarray, omega: float, loss: np.ndarray) -> Any:
    return omega * sum(part.gains(ks) for part in parts) - loss[ks]


def walk_faults(p: ClassProblem, result: Any, loss: np.ndarray) -> list[str]:
    """Each pick of a run must be the best of all candidates; of those that tie, the first."""
    parts, faults = p.parts(), []
    unit = min(1.0, sum(part.value for part in parts))
    blur = 1e-8 * p.size(sum(part.value for part in parts))
    left = np.ones(p.base.n, dtype=bool)
    for step in result.iterations:
        ks = np.flatnonzero(left)
        scores = scores_of(parts, ks, step.omega, loss)
        best = float(scores.max(initial=-np.inf))
        if step.picked < 0:
            if best > blur:
                faults.append(f"{p.name}: no pick where {ks[scores.argmax()]} scores {best!r}")
            continue
        mine = float(scores[ks == step.picked][0])
        if not abs(mine - step.score) <= blur or not mine >= best - blur:
            faults.append(f"{p.name}: {step.picked} scores {mine!r}, best {best!r}")
        # A sample before it that is better by more than rounding, or ties exactly, would have won.
        before = scores[ks < step.picked]
        if blur < TIE * max(unit, abs(best)) / 2 and (before >= best - 1e-12 * unit).any():
            faults.append(f"{p.name}: a sample before {step.picked} has the same score")
        left[step.picked] = False
        for part in parts:
            part.remove(step.picked)
    value = result.initial_value - sum(part.value for part in parts)
    if not abs(value - loss[result.order].sum() - result.value) <= blur:
        faults.append(f"{p.name}: value {result.value!r}")
    return faults


@pytest.mark.parametrize("seeds", chunks(90_000, 840 if FULL else 42, 14), ids=str)
def test_every_pick_is_the_best(seeds: range, tmp_path: Any) -> None:
    """With and without looking ahead: a run with a checkpoint makes one round at a time."""
    faults = []
    for seed in seeds:
        p = class_problem(seed, most=24)
        loss = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], p.base.n)
        n = p.base.n // 2
        if n == 0:
            continue
        result = distorted_greedy(p.objective(), loss, n, RATIO)
        faults += walk_faults(p, result, loss)
        slow = distorted_greedy(
            p.objective(), loss, n, RATIO, checkpoint=tmp_path / f"{seed}.jsonl"
        )
        faults += walk_faults(p, slow, loss)
    fail_with(faults)


@pytest.mark.parametrize("kind", ["classes", "grades"])
@pytest.mark.parametrize("alpha", [0.3, 0.01])
def test_runs_agree_however_they_are_made(kind: str, alpha: float, tmp_path: Any) -> None:
    X, codes, loss = three_classes()
    objective = class_objective(X, codes, 3, kind, alpha=alpha)
    n = 40
    sweep = submodularity_sweep(objective, loss, n)
    for run in sweep.members:
        alone = distorted_greedy(objective, loss, n, run.submodularity_ratio)
        assert alone.order.tolist() == run.order.tolist()
        assert abs(alone.value - run.value) <= 1e-9
    slow = distorted_greedy(objective, loss, n, 0.5, checkpoint=tmp_path / "run.jsonl")
    assert slow.order.tolist() == distorted_greedy(objective, loss, n, 0.5).order.tolist()
    assert sweep.value == max(run.value for run in sweep.members)


def test_the_omegas_of_a_pick_are_right() -> None:
    """The pick is the best for every omega in its interval, by all gains."""
    X, codes, loss = three_classes()
    parts = [SVMObjective(X, y, 0.05) for y in class_labels(codes, 3, "classes")]
    objective = class_objective(X, codes, 3, alpha=0.05)
    count = 30
    omegas = np.full(count, 0.7)
    picks = objective.rounds_ahead(
        Rounds(omegas, omegas - 0.4, omegas + 0.3, loss, np.ones(120, dtype=bool), None, TIE, 1.0)
    )
    assert len(picks) == count
    ks = np.arange(120)
    for pick in picks:
        gains = sum(part.gains(ks) for part in parts)
        assert abs(gains[ks == pick.k][0] - pick.gain) <= 1e-9
        assert pick.low <= 0.7 <= pick.high
        for omega in np.clip([pick.low, 0.7, pick.high], 0.05, 5.0):
            if pick.low <= omega <= pick.high:
                scores = omega * gains - loss[ks]
                assert ks[scores.argmax()] == pick.k
                assert scores.max() > 0.0
        ks = ks[ks != pick.k]
        for part in parts:
            part.remove(pick.k)
        assert abs(sum(part.value for part in parts) - pick.value) <= 1e-9


def test_drawn_candidates() -> None:
    X, codes, loss = three_classes()
    p = class_objective(X, codes, 3, alpha=0.05)
    parts = [SVMObjective(X, y, 0.05) for y in class_labels(codes, 3, "classes")]
    result = stochastic_distorted_greedy(p, loss, 30, RATIO, random_state=0)
    left = np.ones(120, dtype=bool)
    assert len(result.order) > 10
    for step in result.iterations:
        assert 0 < step.n_candidates <= 120
        if step.picked >= 0:
            ks = np.array([step.picked])
            assert abs(scores_of(parts, ks, step.omega, loss)[0] - step.score) <= 1e-9
            left[step.picked] = False
            for part in parts:
                part.remove(step.picked)
    assert left.sum() == 120 - len(result.order)
    again = stochastic_distorted_greedy(p, loss, 30, RATIO, random_state=0)
    assert again.order.tolist() == result.order.tolist()
    assert unconstrained_distorted_greedy(p, loss, RATIO, random_state=0).value > 0.0


def test_a_tolerance_and_a_floor() -> None:
    X, codes, loss = three_classes()
    p = class_objective(X, codes, 3, alpha=0.05)
    exact = distorted_greedy(p, loss, 30, RATIO)
    rough = distorted_greedy(p, loss, 30, RATIO, tol=0.05)
    assert rough.slack <= 0.05
    assert rough.value >= 0.8 * exact.value
    counts = np.bincount(codes)
    least = int(counts.min()) - 2
    floored = distorted_greedy(p, loss, 30, RATIO, min_kept_per_class=least)
    assert (np.bincount(np.delete(codes, floored.order)) >= least).all()


def test_two_classes_are_the_paper_again() -> None:
    X, codes, loss = three_classes()
    codes, alpha = np.minimum(codes, 1), 0.002
    alone = SVMObjective(X, 2 * codes - 1, alpha)
    result = distorted_greedy(alone, loss / 2, 25, RATIO)
    one = distorted_greedy(class_objective(X, codes, 2, "grades", alpha=alpha), loss / 2, 25, RATIO)
    assert one.order.tolist() == result.order.tolist()
    assert one.value == result.value
    np.testing.assert_array_equal(one.gains, result.gains)
    both = distorted_greedy(class_objective(X, codes, 2, alpha=alpha), loss, 25, RATIO)
    assert result.scores.min() > 1e-6  # no pick was one of rounding
    assert both.order.tolist() == result.order.tolist()
    assert abs(both.value - 2 * result.value) <= 1e-9 * max(1.0, result.initial_value)


def test_an_error_while_looking_ahead_leaves_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    X, codes, loss = three_classes(40)
    objective = class_objective(X, codes, 3, alpha=0.05)
    value, calls = objective.value, []
    true_prepare = SVMObjective.prepare

    def prepare(self: SVMObjective, k: int) -> None:
        calls.append(k)
        if len(calls) == 8:
            raise KeyboardInterrupt
        true_prepare(self, k)

    monkeypatch.setattr(SVMObjective, "prepare", prepare)
    omegas = np.full(5, 0.7)
    rounds = Rounds(omegas, omegas, omegas, loss, np.ones(40, dtype=bool), None, TIE, 1.0)
    with pytest.raises(KeyboardInterrupt):
        objective.rounds_ahead(rounds)
    assert objective.value == value
    assert objective.kept.all()
    assert objective.rounds_ahead(rounds._replace(allowed=np.zeros(40, dtype=bool))) == []
