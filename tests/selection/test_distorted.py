"""Distorted greedy picks what a plain greedy picks that evaluates every gain, by another solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checks import check_seeds, reference_value
from deferlearn.selection import SelectionResult, distorted_greedy
from problems import FULL, Problem, chunks

CLOSE = 1e-8  # scores closer than this, relative to the size of F, count as equal


def losses(p: Problem, rng: np.random.Generator, value: float) -> np.ndarray:
    """Human losses of the order of the gains, so that some rounds pick and some do not."""
    loss = rng.uniform(0.0, 1.0, p.n) * rng.choice([0.2, 1.0, 3.0]) * value / p.n
    loss[rng.random(p.n) < 0.2] = 0.0
    return loss


def omega(ratio: float, n: int, i: int) -> float:
    return float((1 - ratio / n) ** (n - 1 - i))


def pick_faults(
    p: Problem, result: SelectionResult, loss: np.ndarray, values: Any, rounds: int
) -> list[str]:
    """Follow the result's picks; in each round no candidate may have a clearly better score."""
    kept = np.ones(p.n, dtype=bool)
    faults: list[str] = []
    total = values(kept)
    size = CLOSE * p.size(total)
    for iteration in result.iterations[:rounds]:
        candidates = np.flatnonzero(kept)
        scores = np.full(p.n, -np.inf)
        for k in candidates:
            kept[k] = False
            scores[k] = iteration.omega * (total - values(kept)) - loss[k]
            kept[k] = True
        best = scores.max()
        mine = iteration.picked
        if mine < 0 and best > size:
            faults.append(f"round {iteration.index}: no pick, but {scores.argmax()} has {best:.3e}")
        if mine >= 0 and scores[mine] < best - size:
            faults.append(
                f"round {iteration.index}: {mine} with {scores[mine]!r}, "
                f"but {scores.argmax()} has {best!r}"
            )
        if mine >= 0 and scores[mine] <= -size:
            faults.append(
                f"round {iteration.index}: {mine} has the negative score {scores[mine]:.1e}"
            )
        if mine >= 0 and abs(scores[mine] - iteration.score) > size:
            faults.append(
                f"round {iteration.index}: score {iteration.score!r}, witness {scores[mine]!r}"
            )
        if mine >= 0:
            kept[mine] = False
            total = values(kept)
    return [f"{p.name}: {fault}" for fault in faults]


@pytest.mark.parametrize("seeds", chunks(110_000, 1_120 if FULL else 28, 14), ids=str)
def test_same_picks_as_a_plain_greedy_with_another_solver(seeds: range) -> None:
    def check(p: Problem, rng: np.random.Generator) -> list[str] | None:
        if p.n > 60:
            return None
        known: dict[bytes, float] = {}

        def values(kept: np.ndarray) -> float:
            key = kept.tobytes()
            if key not in known:
                known[key] = reference_value(p, kept) if kept.any() else 0.0
            return known[key]

        objective = p.objective()
        n = int(rng.integers(1, min(p.n, 4) + 1))
        loss = losses(p, rng, objective.value)
        result = distorted_greedy(objective, loss, n, float(rng.choice([0.01, 0.3, 1.0])))
        return pick_faults(p, result, loss, values, n)

    check_seeds(seeds, check, checked_share=0.3)


@pytest.mark.parametrize("seeds", chunks(120_000, 2_800 if FULL else 140, 28), ids=str)
def test_same_picks_as_evaluating_every_gain(seeds: range) -> None:
    """The engine's own gains (tested elsewhere), all of them, up to a large budget."""

    def check(p: Problem, rng: np.random.Generator) -> list[str]:
        objective = p.objective()
        n = int(rng.integers(1, p.n + 1))
        ratio = float(rng.choice([0.01, 0.3, 1.0]))
        loss = losses(p, rng, objective.value)
        result = distorted_greedy(objective, loss, n, ratio)
        plain, total = objective.copy(), float(objective.value)
        faults = []
        for i, iteration in enumerate(result.iterations):
            candidates = np.flatnonzero(plain.kept)
            gains = plain.gains(candidates)
            scores = omega(ratio, n, i) * gains - loss[candidates]
            # The documented rule: ties within 1e-9 go to the smallest index. What rounding of the
            # gains may turn into a tie, or out of one, is left to either side.
            best, blur = scores.max(initial=-np.inf), 1e-10 * p.size(total)
            tie = 1e-9 * max(min(1.0, total), abs(best))
            surely = candidates[(scores >= best - tie + blur) & (scores > blur)]
            perhaps = candidates[(scores >= best - tie - blur) & (scores > -blur)]
            mine = iteration.picked
            if mine < 0 and len(surely):
                faults.append(f"{p.name}, round {i}: no pick, but {surely[0]} has {best!r}")
            if mine >= 0 and (mine not in perhaps or (len(surely) and mine > surely.min())):
                faults.append(f"{p.name}, round {i}: {mine}, not among {perhaps} or above {surely}")
            if mine >= 0:
                plain.remove(mine)
        value = total - plain.value - loss[result.order].sum()
        if abs(value - result.value) > 1e-9 * p.size(total):
            faults.append(f"{p.name}: value {result.value!r}, from the picks {value!r}")
        if objective.value != total or not objective.kept.all():
            faults.append(f"{p.name}: the objective was changed")
        return faults

    check_seeds(seeds, check)
