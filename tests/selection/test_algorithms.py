"""What each algorithm promises besides its argmax: rounds, samples, seeds, sharing, and bad input."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deferlearn.selection.states as states_module
from deferlearn.datasets import make_linear, make_shifted
from deferlearn.humans import UniformHuman
from deferlearn.objective import Objective, SVMObjective
from deferlearn.selection import (
    Iteration,
    SelectionInterrupted,
    States,
    distorted_greedy,
    stochastic_distorted_greedy,
    submodularity_sweep,
    unconstrained_distorted_greedy,
)
from deferlearn.selection.stochastic import sample_size
from deferlearn.selection.sweep import sweep_ratios


@pytest.fixture(scope="module")
def case() -> tuple[SVMObjective, np.ndarray]:
    X, y = make_linear(60, random_state=1)
    return SVMObjective(X, y, alpha=0.05), UniformHuman(0.2).losses(y, random_state=0)


# ------------------------------------------------------------------------------------ the rounds


def test_goes_on_after_a_round_without_a_positive_score(case: Any) -> None:
    """omega grows: a loss just below the gain is paid only in late rounds."""
    objective, _ = case
    gains = objective.gains(range(60))
    loss = np.full(60, 1e6)
    k = int(gains.argmax())
    n, ratio = 10, 1.0
    loss[k] = gains[k] * (1 - ratio / n) ** 5.5  # positive from the sixth round before the last on
    result = distorted_greedy(objective, loss, n, ratio)
    assert result.order.tolist() == [k]
    assert [i.picked for i in result.iterations].index(k) == n - 1 - 5
    assert len(result.iterations) == n


def test_record_agrees_with_itself(case: Any) -> None:
    objective, loss = case
    result = distorted_greedy(objective, loss, 12, 0.5)
    assert len(set(result.order.tolist())) == len(result.order) <= 12
    np.testing.assert_allclose(
        result.scores, result.omegas * result.gains - loss[result.order], atol=1e-12
    )
    np.testing.assert_allclose(
        result.value, result.gains.sum() - loss[result.order].sum(), atol=1e-9
    )
    assert result.initial_value == objective.value
    assert result.n_exact + result.n_screened == sum(i.n_candidates for i in result.iterations)
    assert result.n_screened > result.n_exact > 0
    assert result.slack == 0.0


def test_ends_of_the_budget(case: Any) -> None:
    objective, loss = case
    nothing = distorted_greedy(objective, loss, 0)
    assert nothing.order.size == 0
    assert nothing.value == 0.0
    free = distorted_greedy(objective, np.zeros(60), 60)
    remaining = objective.copy()
    for k in free.order:
        remaining.remove(k)
    assert remaining.value == pytest.approx(0.0, abs=1e-9)  # zero losses: until n or F = 0
    assert free.value == pytest.approx(objective.value)


@pytest.mark.parametrize(
    "algorithm", [distorted_greedy, stochastic_distorted_greedy, submodularity_sweep]
)
def test_nobody_is_deferred_to_hopeless_humans(case: Any, algorithm: Any) -> None:
    objective, _ = case
    result = algorithm(objective, np.full(60, 1e9), 20)
    assert result.order.size == 0
    assert result.value == 0.0


def test_ties_go_to_the_smallest_index() -> None:
    X = np.array([[0.0], [1.0], [0.0], [1.0], [0.0], [1.0]])
    y = np.array([1, -1, 1, -1, 1, -1])
    result = distorted_greedy(SVMObjective(X, y, alpha=10.0), np.zeros(6), 1)
    assert result.order.tolist() == [0]


def test_floor_keeps_each_class(case: Any) -> None:
    objective, _ = case
    labels = objective.labels
    result = distorted_greedy(objective, np.zeros(60), 60, min_kept_per_class=7)
    kept = np.delete(labels, result.order)
    assert min((kept == 1).sum(), (kept == -1).sum()) >= 7
    assert result.min_kept_per_class == 7
    without = distorted_greedy(objective, np.zeros(60), 60)
    kept = np.delete(labels, without.order)
    assert min((kept == 1).sum(), (kept == -1).sum()) < 7  # so that the floor was what did it


def test_starts_from_what_is_kept(case: Any) -> None:
    """An objective from which somebody is gone already: V is the rest."""
    objective, loss = case
    first = distorted_greedy(objective, loss, 5, 1.0)
    shorter = objective.copy()
    shorter.remove(first.order[0])
    result = distorted_greedy(shorter, loss, 5, 1.0)
    assert first.order[0] not in result.order
    assert result.initial_value == pytest.approx(shorter.value)


# -------------------------------------------------------------------------------------- tolerance


def test_tolerance_is_certified() -> None:
    X, y = make_shifted(300, 20, random_state=0)
    objective = SVMObjective(X, y, alpha=0.005)
    loss = UniformHuman(0.2).losses(y, random_state=0)
    exact = distorted_greedy(objective, loss, 30, 0.5)
    loose = distorted_greedy(objective, loss, 30, 0.5, tol=0.5)
    assert 0.0 < loose.slack <= 0.5
    assert loose.n_exact < exact.n_exact
    state = objective.copy()
    for iteration in loose.iterations:
        candidates = np.flatnonzero(state.kept)
        scores = iteration.omega * state.gains(candidates) - loss[candidates]
        assert iteration.score >= (1 - iteration.slack) * scores.max() - 1e-9
        if iteration.picked >= 0:
            state.remove(iteration.picked)


# ------------------------------------------------------------------------------------- stochastic


def test_stochastic_samples_and_seeds(case: Any) -> None:
    objective, loss = case
    n, epsilon = 15, 0.1
    runs = [
        stochastic_distorted_greedy(objective, loss, n, 0.5, epsilon=epsilon, random_state=s)
        for s in (0, 0, 1)
    ]
    assert runs[0].order.tolist() == runs[1].order.tolist() != runs[2].order.tolist()
    size = min(60, math.ceil(60 / n * math.log(1 / epsilon)))
    assert sample_size(60, n, epsilon) == size == 10
    taken = 0
    for iteration in runs[0].iterations:
        assert size - taken <= iteration.n_candidates <= size
        taken += iteration.picked >= 0
    assert runs[0].epsilon == epsilon


def test_stochastic_with_a_whole_sample_is_deterministic(case: Any) -> None:
    objective, loss = case
    whole = stochastic_distorted_greedy(objective, loss, 3, 0.5, epsilon=1e-9, random_state=0)
    assert whole.order.tolist() == distorted_greedy(objective, loss, 3, 0.5).order.tolist()


def test_unconstrained_asks_one_sample_a_round(case: Any) -> None:
    objective, loss = case
    result = unconstrained_distorted_greedy(objective, loss, 0.5, random_state=0)
    assert len(result.iterations) == result.n == 60
    assert all(i.n_candidates <= 1 for i in result.iterations)
    assert (result.scores > 0).all()
    assert result.value > 0
    again = unconstrained_distorted_greedy(objective, loss, 0.5, random_state=0)
    assert again.order.tolist() == result.order.tolist()


# ------------------------------------------------------------------------------------------ sweep


def test_sweep_ratios() -> None:
    ratios = sweep_ratios(0.1)
    assert len(ratios) == math.ceil(math.log(10) / 0.1) + 1 == 25
    np.testing.assert_allclose(ratios, 0.9 ** np.arange(25))
    assert len(sweep_ratios(0.1, lower_bound=0.5)) == math.ceil(math.log(2) / 0.1) + 1


def test_sweep_is_its_best_member_and_shares_states(case: Any) -> None:
    objective, loss = case
    result = submodularity_sweep(objective, loss, 12, delta=0.1)
    assert result.value == max(m.value for m in result.members) >= 0
    for member in result.members:
        alone = distorted_greedy(objective, loss, 12, member.submodularity_ratio)
        assert alone.order.tolist() == member.order.tolist()
    alone_states = sum(len(m.order) + 1 for m in result.members)
    distinct = {frozenset(m.order[:i].tolist()) for m in result.members for i in range(13)}
    assert result.n_states == len(distinct) < alone_states
    assert result.delta == 0.1
    assert result.algorithm == "sweep"


def test_sweep_falls_back_to_the_empty_set() -> None:
    """A first pick can be worse than none: gains may be smaller later than the losses paid."""
    X, y = make_linear(30, random_state=3)
    objective = SVMObjective(X, y, alpha=0.5)
    members = submodularity_sweep(objective, objective.gains(range(30)) * 0.999, 10)
    assert members.value >= 0.0


def test_runs_for_several_budgets_share_states(case: Any) -> None:
    objective, loss = case
    states = States(objective)
    for n in (4, 8, 12):
        shared = distorted_greedy(objective, loss, n, 0.01, states=states)
        assert shared.order.tolist() == distorted_greedy(objective, loss, n, 0.01).order.tolist()
    assert states.n_states < 4 + 8 + 12


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_sharing_within_a_limit_changes_no_pick(
    case: Any, share: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever finds no room for its states goes on alone; also after an interrupt."""
    objective, loss = case
    expected = submodularity_sweep(objective, loss, 12, delta=0.1)
    room = expected.n_states * states_module.State(objective, 1.0).nbytes
    monkeypatch.setattr(states_module, "KEPT_BYTES", int(share * room))
    shared = States(objective)
    result = submodularity_sweep(objective, loss, 12, delta=0.1, states=shared)
    assert len(shared._states) <= 1 + share * expected.n_states

    def stop(iteration: Iteration, rounds: list[int] = []) -> None:  # noqa: B006
        rounds.append(iteration.index)
        if len(rounds) == 100:  # in the ninth run
            raise KeyboardInterrupt

    file = tmp_path / "run"
    with pytest.raises(SelectionInterrupted):
        submodularity_sweep(objective, loss, 12, delta=0.1, checkpoint=file, callback=stop)
    resumed = submodularity_sweep(objective, loss, 12, delta=0.1, checkpoint=file)
    for other in (result, resumed):
        assert other.n_states == expected.n_states
        for mine, theirs in zip(other.members, expected.members, strict=True):
            assert mine.order.tolist() == theirs.order.tolist()
            np.testing.assert_allclose(mine.gains, theirs.gains, rtol=1e-9, atol=1e-12)


def test_states_take_the_memory_that_they_say() -> None:
    """A state that a run has left holds no matrices that it was worked on with."""
    X, y = make_shifted(1000, 20, random_state=0)
    objective = SVMObjective(X, y, alpha=0.01)
    loss = UniformHuman(0.2).losses(y, random_state=0)
    distorted_greedy(objective, loss, 2, 0.5)  # compiles
    states = States(objective)
    taken: list[int] = []
    tracemalloc.start()
    try:
        distorted_greedy(
            objective, loss, 40, 0.5, states=states,
            callback=lambda _: taken.append(tracemalloc.get_traced_memory()[0]),
        )  # fmt: skip
    finally:
        tracemalloc.stop()
    assert states.n_states == 41  # each round made one
    said = sum(state.nbytes for state in list(states._states.values())[-20:])
    assert taken[-1] - taken[-21] < 1.5 * said


# ------------------------------------------------------------------------ progress and interrupts


def test_callback_sees_every_round(case: Any) -> None:
    objective, loss = case
    seen: list[int] = []
    result = distorted_greedy(objective, loss, 6, 0.5, callback=lambda i: seen.append(i.picked))
    assert seen == [i.picked for i in result.iterations]


def test_interrupt_leaves_the_picks_so_far(case: Any) -> None:
    objective, loss = case
    before = objective.value

    def stop(iteration: Any) -> None:
        if iteration.index == 3:
            raise KeyboardInterrupt

    with pytest.raises(SelectionInterrupted) as stopped:
        distorted_greedy(objective, loss, 10, 0.5, callback=stop)
    partial = stopped.value.result
    whole = distorted_greedy(objective, loss, 10, 0.5)
    assert partial.order.tolist() == whole.order[:4].tolist()
    assert objective.value == before
    assert objective.kept.all()
    assert isinstance(stopped.value, KeyboardInterrupt)
    assert partial.interrupted
    assert not whole.interrupted


def test_an_interrupted_sweep_leaves_the_best_so_far(case: Any) -> None:
    objective, loss = case
    rounds = 0

    def stop(iteration: Any) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 24:  # in the third run
            raise KeyboardInterrupt

    with pytest.raises(SelectionInterrupted) as stopped:
        submodularity_sweep(objective, loss, 10, delta=0.1, callback=stop)
    result = stopped.value.result
    assert result.interrupted
    assert result.algorithm == "sweep"
    assert [m.interrupted for m in result.members] == [False, False, True]
    assert result.value == max(m.value for m in result.members)


# -------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"human_loss": np.full(60, -1.0)}, r"got -1.0 at index 0"),
        ({"human_loss": np.r_[np.zeros(7), np.nan, np.zeros(52)]}, r"got nan at index 7"),
        ({"human_loss": np.zeros(59)}, r"60 samples, got shape \(59,\)"),
        ({"human_loss": ["a"] * 60}, "must hold real numbers"),
        ({"n": -1}, "n=-1 must be between 0"),
        ({"n": 61}, "n=61 must be between 0 and the number of samples, 60"),
        ({"n": 2.5}, "n=2.5 must be a whole number"),
        ({"submodularity_ratio": 0.0}, r"submodularity_ratio=0.0 must be a number in \(0, 1\]"),
        ({"submodularity_ratio": 1.1}, "submodularity_ratio=1.1"),
        ({"submodularity_ratio": "big"}, "submodularity_ratio='big'"),
        ({"tol": 1.0}, r"tol=1.0 must be a number in \[0, 1\)"),
        ({"min_kept_per_class": -1}, "min_kept_per_class=-1"),
    ],
)
def test_bad_input_is_named(case: Any, change: dict[str, Any], message: str) -> None:
    objective, loss = case
    arguments = {"human_loss": loss, "n": 5, "submodularity_ratio": 0.5} | change
    with pytest.raises(ValueError, match=message):
        distorted_greedy(objective, **arguments)
    assert objective.kept.all()


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.1, 2])
def test_bad_epsilon(case: Any, epsilon: float) -> None:
    objective, loss = case
    with pytest.raises(ValueError, match=r"epsilon=.* must be a number in \(0, 1\)"):
        stochastic_distorted_greedy(objective, loss, 5, 0.5, epsilon=epsilon)


@pytest.mark.parametrize(
    "change", [{"delta": 0.0}, {"delta": 1.0}, {"delta": 1e-9}, {"lower_bound": -0.1}]
)
def test_bad_sweep(case: Any, change: dict[str, float]) -> None:
    objective, loss = case
    with pytest.raises(ValueError, match=next(iter(change))):
        submodularity_sweep(objective, loss, 5, **change)


class Reticent(SVMObjective):
    """Says of a gain beforehand only that it is one; has nothing but what every objective has."""

    score_bounds = Objective.score_bounds
    rounds_ahead = Objective.rounds_ahead

    def gain_bounds(self, ks: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(ks), -np.inf), np.full(len(ks), np.inf)


def test_bounds_that_say_nothing_change_no_pick() -> None:
    X, y = make_shifted(30, 3, random_state=0)
    loss = UniformHuman(0.5).losses(y, random_state=0)
    said = distorted_greedy(SVMObjective(X, y, alpha=0.1), loss, 12, 0.5)
    silent = distorted_greedy(Reticent(X, y, alpha=0.1), loss, 12, 0.5)
    assert silent.order.tolist() == said.order.tolist()
    assert silent.iterations[0].n_screened == 0
    assert said.n_screened > 0


def test_what_happened_in_a_round_cannot_be_changed() -> None:
    round_ = Iteration(3, 0.5, 7, 1.0, 2.0, 9, 4, 5, 0.0)
    assert round_.index == 3
    assert {round_: "known"}[pickle.loads(pickle.dumps(round_))] == "known"
    with pytest.raises(AttributeError):
        round_.picked = 8  # type: ignore[misc]
