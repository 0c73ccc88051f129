"""Rounds ahead in a selection: runs that share picks and states pick what each picks alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from checks import check_seeds
from deferlearn.datasets import make_shifted
from deferlearn.objective import Objective, SVMObjective
from deferlearn.selection import (
    SelectionInterrupted,
    SelectionResult,
    States,
    distorted_greedy,
    states,
    stochastic_distorted_greedy,
    submodularity_sweep,
)
from deferlearn.selection.greedy import Draws
from problems import FULL, Problem, chunks

N = 90
RNG = np.random.default_rng(4)
X, Y = make_shifted(N, 4, random_state=4)
CONTINUOUS = RNG.uniform(0.0, 0.8, N)
LOSSES = {
    "continuous": CONTINUOUS,
    "labels": 2.0 * (RNG.random(N) < 0.4),
    "none": np.zeros(N),
}
MACHINES: dict[str, dict[str, Any]] = {
    "linear": {"alpha": 0.05},
    "without offset": {"alpha": 0.3, "fit_intercept": False},
    "sparse": {"alpha": 0.05},
    "rbf": {"alpha": 0.02, "kernel": "rbf", "gamma": 0.3},
}


def objective_of(machine: str) -> SVMObjective:
    return SVMObjective(sp.csr_array(X) if machine == "sparse" else X, Y, **MACHINES[machine])


class RoundByRound(SVMObjective):
    """Does not look ahead."""

    rounds_ahead = Objective.rounds_ahead


def assert_same(shared: SelectionResult, alone: SelectionResult) -> None:
    """Picks to the index, numbers to rounding; round by round, too."""
    assert shared.order.tolist() == alone.order.tolist()
    assert shared.submodularity_ratio == alone.submodularity_ratio
    for name in ("gains", "scores", "omegas"):
        assert_allclose(getattr(shared, name), getattr(alone, name), rtol=0, atol=1e-9)
    assert shared.value == pytest.approx(alone.value, abs=1e-9)
    assert len(shared.iterations) == len(alone.iterations)
    for mine, other in zip(shared.iterations, alone.iterations, strict=True):
        assert (mine.index, mine.picked) == (other.index, other.picked)
        assert mine.n_candidates == other.n_candidates


def assert_reached(objective: Any, start: SVMObjective, order: np.ndarray) -> None:
    """The objective is what removing the samples one by one gives."""
    there = start.copy()
    for k in order:
        there.remove(int(k))
    assert (objective.kept == there.kept).all()
    assert objective.value == pytest.approx(there.value, rel=1e-9, abs=1e-9)
    assert_allclose(objective.own_decisions, there.own_decisions, rtol=0, atol=1e-9)
    assert objective.optimality_residual() <= 1e-10
    if start._kernel == "linear":
        assert_allclose(objective.coef, there.coef, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seeds", chunks(120_000, 2_800 if FULL else 140, 70), ids=str)
def test_looking_ahead_changes_nothing(seeds: range) -> None:
    """In every variant and shape: the picks of a run that takes one round at a time."""

    def check(p: Problem, rng: np.random.Generator) -> list[str]:
        objective, plain = p.objective(), RoundByRound(p.X, p.y, **p.params)
        kind = rng.integers(3)
        loss = np.zeros(p.n)
        if kind:
            loss = rng.uniform(0.0, 1.0, p.n) * objective.value / p.n
        if kind == 2:
            loss = np.round(4.0 * loss) / 4.0
        options: dict[str, Any] = {"min_kept_per_class": int(rng.integers(0, 3))}
        options["submodularity_ratio"] = float(rng.uniform(0.1, 1.0))
        n, size = int(rng.integers(1, p.n + 1)), p.size(float(objective.value))
        runs = [distorted_greedy(o, loss, n, **options) for o in (objective, plain)]
        options |= {"random_state": 0, "epsilon": 0.2}
        runs += [stochastic_distorted_greedy(o, loss, n, **options) for o in (objective, plain)]
        faults = run_faults(*runs[:2], size) + run_faults(*runs[2:], size)
        return [f"{p.name}: {fault}" for fault in faults]

    check_seeds(seeds, check)


def run_faults(mine: SelectionResult, other: SelectionResult, size: float) -> list[str]:
    """Round by round, up to one in which scores are nothing but rounding."""
    for i, j in zip(mine.iterations, other.iterations, strict=True):
        best = np.nanmax([i.score, j.score, 0.0])
        if i.picked != j.picked:
            return [] if best <= 1e-12 * size else [f"{mine.algorithm}: {i}, not {j}"]
        counts = (i.n_candidates, i.n_exact + i.n_screened)
        if counts != (j.n_candidates, j.n_candidates) or not 0 <= i.n_exact <= i.n_candidates:
            return [f"{mine.algorithm}: counts of {i}, not {j}"]
        if i.picked >= 0 and not abs(i.gain - j.gain) <= 1e-9 * size:
            return [f"{mine.algorithm}: {i}, not {j}"]
    if not abs(mine.value - other.value) <= 1e-9 * size:
        return [f"{mine.algorithm}: value {mine.value!r}, not {other.value!r}"]
    return []


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("machine", MACHINES)
def test_members_of_a_sweep_are_runs(machine: str, loss: str) -> None:
    objective = objective_of(machine)
    shared = States(objective)
    sweep = submodularity_sweep(objective, LOSSES[loss], 25, delta=0.2, states=shared)
    assert len(sweep.members) == 10
    orders = set()
    for member in sweep.members:
        ratio = member.submodularity_ratio
        assert_same(member, distorted_greedy(objective, LOSSES[loss], 25, ratio))
        orders.add(tuple(member.order))
    if loss == "continuous":
        assert len(orders) > 2  # or sharing has nothing to go wrong
    if loss == "none":
        assert len(orders) == 1
    for member in [*sweep.members[::3], sweep]:
        assert_reached(shared.objective_after(member.order), objective, member.order)
    assert objective.kept.all()


@pytest.mark.parametrize("loss", ["continuous", "labels"])
@pytest.mark.parametrize("machine", ["linear", "rbf"])
def test_members_of_a_stochastic_sweep(machine: str, loss: str) -> None:
    """With a seed all runs draw the same; with a stream each goes on where the last has stopped."""
    objective = objective_of(machine)
    options: dict[str, Any] = {"epsilon": 0.3}
    for random_state in (7, np.random.RandomState(7)):
        stream = np.random.RandomState(7) if random_state != 7 else random_state
        shared = States(objective)
        sweep = submodularity_sweep(
            objective, LOSSES[loss], 30, delta=0.2, states=shared,
            algorithm=stochastic_distorted_greedy, random_state=random_state, **options,
        )  # fmt: skip
        for member in sweep.members:
            alone = stochastic_distorted_greedy(
                objective, LOSSES[loss], 30, member.submodularity_ratio, random_state=stream,
                **options,
            )  # fmt: skip
            assert_same(member, alone)
        for member in sweep.members[::4]:
            assert_reached(shared.objective_after(member.order), objective, member.order)
        if random_state != 7:
            assert random_state.rand() == stream.rand()


@pytest.mark.parametrize("kept_bytes", [0, 10_000, 2**30])
@pytest.mark.parametrize("tol", [0.0, 0.05])
def test_states_beyond_the_memory(
    monkeypatch: pytest.MonkeyPatch, kept_bytes: int, tol: float
) -> None:
    """Where a run has ended can be told of every run, whether states were kept or not."""
    monkeypatch.setattr(states, "KEPT_BYTES", kept_bytes)
    objective = objective_of("linear")
    shared = States(objective)
    loss = CONTINUOUS + np.arange(N) % 2  # some rounds have no pick
    sweep = submodularity_sweep(objective, loss, 60, delta=0.25, states=shared, tol=tol)
    for member in sweep.members:
        assert_reached(shared.objective_after(member.order), objective, member.order)


def test_runs_with_another_floor_loss_or_budget() -> None:
    """What one run has found is used by another only where it would find the same."""
    objective = objective_of("linear")
    shared = States(objective)
    runs: list[dict[str, Any]] = [
        {"human_loss": np.zeros(N), "n": 70},
        {"human_loss": np.zeros(N), "n": 70, "min_kept_per_class": 25},
        {"human_loss": np.zeros(N), "n": 70, "min_kept_per_class": 5},
        {"human_loss": CONTINUOUS, "n": 40},
        {"human_loss": CONTINUOUS, "n": 20, "submodularity_ratio": 0.4},
        {"human_loss": CONTINUOUS[::-1].copy(), "n": 40},
        {"human_loss": CONTINUOUS, "n": 40, "tol": 0.0, "min_kept_per_class": 30},
    ]
    for options in runs:
        found = distorted_greedy(objective, **options, states=shared)
        assert_same(found, distorted_greedy(objective, **options))
        least = options.get("min_kept_per_class", 0)
        left = np.delete(Y, found.order)
        assert min((left == 1).sum(), (left == -1).sum()) >= least
        assert_reached(shared.objective_after(found.order), objective, found.order)


@pytest.mark.parametrize("machine", ["linear", "rbf"])
def test_ratios_in_any_order(machine: str) -> None:
    """A pick that is known from a larger omega is not taken for a smaller one without proof."""
    objective = objective_of(machine)
    shared, orders = States(objective, ratios=(0.1, 1.0)), set()
    for ratio in (0.3, 1.0, 0.1, 0.6, 0.95):
        found = distorted_greedy(objective, CONTINUOUS, 25, ratio, states=shared)
        assert_same(found, distorted_greedy(objective, CONTINUOUS, 25, ratio))
        orders.add(tuple(found.order))
    assert len(orders) > 2


@pytest.mark.parametrize("kept_bytes", [0, 2**30])
def test_a_run_that_fails_leaves_the_states_in_order(
    monkeypatch: pytest.MonkeyPatch, kept_bytes: int
) -> None:
    monkeypatch.setattr(states, "KEPT_BYTES", kept_bytes)
    objective, nothing = objective_of("linear"), np.zeros(N)
    shared = States(objective)
    first = distorted_greedy(objective, nothing, 10, states=shared)

    def fail(iteration: Any) -> None:
        if iteration.index == 14:
            raise RuntimeError("of the caller")

    with pytest.raises(RuntimeError, match="of the caller"):
        distorted_greedy(objective, nothing, 40, states=shared, callback=fail)
    assert_reached(shared.objective_after(first.order), objective, first.order)
    again = distorted_greedy(objective, nothing, 40, states=shared)
    assert_same(again, distorted_greedy(objective, nothing, 40))


@pytest.mark.parametrize("kept_bytes", [0, 2**30])
@pytest.mark.parametrize("tol", [0.0, 0.01])
def test_what_was_given_away_stays(
    monkeypatch: pytest.MonkeyPatch, kept_bytes: int, tol: float
) -> None:
    """Neither do later runs move the objective of a caller, nor does a caller move their states."""
    monkeypatch.setattr(states, "KEPT_BYTES", kept_bytes)
    objective, nothing = objective_of("linear"), np.zeros(N)
    shared = States(objective)
    first = distorted_greedy(objective, nothing, 10, states=shared, tol=tol)
    given = shared.objective_after(first.order)
    distorted_greedy(objective, nothing, 30, states=shared, tol=tol)
    assert_reached(given, objective, first.order)
    given.remove(int(np.flatnonzero(given.kept)[0]))
    assert_reached(shared.objective_after(first.order), objective, first.order)


def test_an_interrupt_leaves_what_was_reported() -> None:
    """Rounds that were made ahead and not yet told of do not count."""
    objective = objective_of("linear")

    def stop(iteration: Any) -> None:
        if iteration.index == 6:
            raise KeyboardInterrupt

    shared = States(objective)
    with pytest.raises(SelectionInterrupted) as stopped:
        distorted_greedy(objective, CONTINUOUS, 30, states=shared, callback=stop)
    found, whole = stopped.value.result, distorted_greedy(objective, CONTINUOUS, 30)
    assert len(found.iterations) == 7
    assert found.order.tolist() == whole.order[: len(found.order)].tolist()
    gain = found.gains.sum() - CONTINUOUS[found.order].sum()
    assert found.value == pytest.approx(gain, abs=1e-9)
    assert_reached(shared.objective_after(found.order), objective, found.order)


def test_an_objective_is_asked_for_many_rounds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or nothing of the above is about looking ahead; a sweep asks less than its runs would."""
    asked: list[int] = []
    ahead = SVMObjective.rounds_ahead

    def spy(self: SVMObjective, rounds: Any) -> Any:
        picks = ahead(self, rounds)
        asked.append(len(picks))
        return picks

    monkeypatch.setattr(SVMObjective, "rounds_ahead", spy)
    distorted_greedy(objective_of("linear"), np.zeros(N), 40)
    assert sum(asked) >= 30
    asked.clear()
    submodularity_sweep(objective_of("linear"), np.zeros(N), 40, delta=0.2)
    assert sum(asked) <= 80
    asked.clear()
    submodularity_sweep(objective_of("linear"), CONTINUOUS, 40, delta=0.2)
    assert 40 <= sum(asked) < 10 * 40


def test_candidates_are_drawn_when_they_are_asked_for() -> None:
    drawn: list[int] = []

    def source() -> Iterator[np.ndarray]:
        for i in range(5):
            drawn.append(i)
            yield np.array([i])

    draws = Draws(source())
    assert drawn == []
    assert [row.tolist() for row in draws.ahead(0, 2) if row is not None] == [[0], [1]]
    assert drawn == [0, 1]
    seen = []
    for index in draws.rounds():
        seen.append(index)
        row = draws[index]
        assert row is not None
        assert row.tolist() == [index]
        assert len(drawn) == max(2, index + 1)
    assert seen == [0, 1, 2, 3, 4]
    assert draws.ahead(3, 10) == draws.ahead(3, 2)
    assert draws.ahead(5, 1) == []
