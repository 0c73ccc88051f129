"""Rounds that an objective makes by itself: every pick is the best, by gains that are solved apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from checks import VALUE_TOLERANCE, check_seeds, state_faults
from deferlearn import AssistedSVC
from deferlearn.datasets import load_sleep, make_shifted
from deferlearn.objective import Pick, Rounds, SVMObjective, stage, state, svm
from deferlearn.objective.stage import Stage
from deferlearn.teams.folds import splits_from, stratified_folds
from deferlearn.teams.parameters import draw_seed
from problems import FULL, Problem, chunks

TIE = 1e-9  # scores this close, relative to the score or to `unit`, are equal
MOST_ROUNDS = 8


def a_plan(objective: Any, rng: np.random.Generator, count: int, unit: float) -> Rounds:
    """Costs, candidates and weights of the kinds that selections ask for, ties included."""
    n = len(objective.kept)
    spread = float(objective.copy().gains(np.flatnonzero(objective.kept)).max(initial=0.0))
    kind = rng.integers(4)
    cost = np.zeros(n)
    if kind == 1:
        cost = rng.uniform(0.0, 0.3, n) * spread
    elif kind == 2:
        cost = rng.integers(0, 2, n) * 0.25 * spread
    elif kind == 3:
        cost = rng.choice([0.0, 2.0], n)
    omegas = (1.0 - rng.uniform(0.1, 1.0) / count) ** np.arange(count - 1.0, -1.0, -1.0)
    allowed = objective.kept & (rng.random(n) < rng.choice([0.6, 1.0]))
    drawn = None
    if rng.random() < 0.3:
        size = max(1, n // 2)
        drawn = np.array([np.sort(rng.choice(n, size, replace=False)) for _ in range(count)])
    apart = rng.choice([1.0, 0.9])
    return Rounds(omegas, omegas * apart, omegas / apart, cost, allowed, drawn, TIE, unit)


def replay_faults(
    p: Problem, objective: Any, before: Any, plan: Rounds, picks: list[Pick], rng: Any
) -> list[str]:
    """The picks against the gains of an objective that solves all of them in every round."""
    faults: list[str] = []
    allowed = plan.allowed.copy()
    for number, pick in enumerate(picks):
        name, omega = f"{p.name}, round {number}", plan.omegas[number]
        drawn = np.arange(p.n) if plan.drawn is None else plan.drawn[number]
        ks = drawn[allowed[drawn]]
        if pick.k not in ks:
            return [*faults, f"{name}: {pick.k} is no candidate"]
        if pick.n_candidates != len(ks) or not 1 <= pick.n_exact <= len(ks):
            faults.append(f"{name}: {pick.n_candidates} candidates, {pick.n_exact} solved")
        gains = np.asarray(before.gains(ks))
        slack = VALUE_TOLERANCE * p.size(float(before.value))
        own = float(gains[ks == pick.k][0])
        if not abs(pick.gain - own) <= slack:
            faults.append(f"{name}: gain {pick.gain!r}, solved {own!r}")
        faults += [f"{name}: {fault}" for fault in choice_faults(p, plan, pick, omega, ks, gains)]
        if not pick.low <= omega <= pick.high:
            faults.append(f"{name}: {omega} is not in [{pick.low}, {pick.high}]")
        ends = (max(pick.low, 1e-3 * omega), min(pick.high, 1.0))  # no selection has others
        for other in (*ends, *np.exp(rng.uniform(*np.log(ends), size=3))):
            found = choice_faults(p, plan, pick, other, ks, gains)
            faults += [f"{name}, omega {other!r} in [{pick.low}, {pick.high}]: {f}" for f in found]
        before.remove(pick.k)
        allowed[pick.k] = False
        if not abs(pick.value - before.value) <= slack:
            faults.append(f"{name}: value {pick.value!r}, solved {before.value!r}")
    kept = before.kept
    if (objective.kept != kept).any() or objective.removed.tolist() != before.removed.tolist():
        faults.append(f"{p.name}: other samples are kept")
    if picks:
        fresh = p.restrict(kept).objective().value
        slack = VALUE_TOLERANCE * p.size(fresh)
        if not max(abs(picks[-1].value - fresh), abs(objective.value - fresh)) <= slack:
            faults.append(f"{p.name}: {picks[-1].value!r}, {objective.value!r}, fresh {fresh!r}")
    return faults + state_faults(p, objective)


def choice_faults(
    p: Problem, plan: Rounds, pick: Pick, omega: float, ks: Any, gains: Any
) -> list[str]:
    """The pick must have a positive score that is the best, and the smallest index among ties."""
    scores = omega * gains - plan.cost[ks]
    own, best = float(scores[ks == pick.k][0]), float(scores.max())
    tie = TIE * max(plan.unit, abs(best))
    blur = 1e-11 * p.size(plan.unit) * max(omega, 1.0) + 1e-14 * abs(best)
    faults = []
    if not own > -blur:
        faults.append(f"{pick.k} has the score {own!r}")
    if not own >= best - tie - blur:
        faults.append(f"{pick.k} has {own!r}, {ks[scores.argmax()]} has {best!r}")
    first = int(ks[(scores >= best - tie + blur) & (scores > blur)].min(initial=p.n))
    if blur < tie and first < pick.k:
        faults.append(f"{pick.k} has {own!r}, a tie with {first}")
    return faults


@pytest.mark.parametrize("seeds", chunks(100_000, 2_800 if FULL else 280, 70), ids=str)
def test_picks_are_the_best(seeds: range) -> None:
    """In every variant and shape, from the first state and from others, with shared arenas."""
    made, asked = 0, 0

    def check(p: Problem, rng: np.random.Generator) -> list[str] | None:
        nonlocal made, asked
        objective = p.objective()
        if p.hard or p.n < 4:
            return None
        faults = []
        for _ in range(
            2
        ):  # the second time from a state of another run, with what the first has left
            there = objective.copy()
            for k in rng.permutation(p.n)[: rng.integers(0, p.n // 4 + 1)]:
                there.remove(int(k))
            before = there.copy()
            plan = a_plan(there, rng, min(MOST_ROUNDS, p.n), min(1.0, float(objective.value)))
            picks = there.rounds_ahead(plan)
            made, asked = made + len(picks), asked + len(plan.omegas)
            faults += replay_faults(p, there, before, plan, picks, rng)
        return faults

    check_seeds(seeds, check, checked_share=0.5)
    assert made >= 0.4 * asked, f"only {made} of {asked} rounds were made"


def all_of(objective: Any, omegas: Any, cost: Any, unit: float = 1.0) -> Rounds:
    """Rounds about every sample, for their omegas alone."""
    omegas = np.asarray(omegas)
    return Rounds(omegas, omegas, omegas, np.asarray(cost), objective.kept, None, TIE, unit)


def test_ties_are_relative_to_the_loss_at_the_start() -> None:
    """Two samples whose gains differ by 1.4e-9: at 1 one is better, at 1/2 they tie."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += 0.3 * y
    X[3], X[20], y[3], y[20] = [-1.5, 0.0], [-1.5 - 1e-6, 0.0], 1.0, 1.0
    objective = SVMObjective(X, y, alpha=0.05, weights=np.full(30, 1e-3))
    gains = objective.gains([3, 20])
    assert 1.1e-9 < gains[1] - gains[0] < 1.9e-9
    (pick,) = objective.copy().rounds_ahead(all_of(objective, [1.0], np.zeros(30)))
    assert pick.k == 20
    assert pick.low > 1e-9 / (gains[1] - gains[0])
    (pick,) = objective.copy().rounds_ahead(all_of(objective, [0.5], np.zeros(30)))
    assert pick.k == 3
    assert pick.high < 1.0


def test_nothing_is_picked_that_does_not_pay() -> None:
    """Scores that are not positive are left to the caller, and the state stays where it was."""
    X, y = make_shifted(60, 3, random_state=0)
    objective = SVMObjective(X, y, alpha=0.1)
    value, dear = objective.value, np.full(60, 1e3)
    assert objective.rounds_ahead(all_of(objective, np.full(5, 0.9), dear)) == []
    assert objective.value == value
    assert objective.kept.all()
    best = set(np.argsort(-objective.gains(range(60)))[:2].tolist())
    dear[list(best)] = 0.0  # two rounds, and then no more
    picks = objective.rounds_ahead(all_of(objective, np.full(5, 0.9), dear))
    assert {pick.k for pick in picks} == best
    assert set(np.flatnonzero(~objective.kept)) == best


def test_states_for_which_there_is_no_quick_way() -> None:
    """Hard margins, one class and the last of a class are left to the caller."""
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    for objective in (
        SVMObjective(X, y, margin="hard"),
        SVMObjective(X, np.ones(4)),
        SVMObjective(X, np.array([-1.0, 1.0, 1.0, 1.0])),
    ):
        before = objective.value
        assert objective.rounds_ahead(all_of(objective, [1.0], np.zeros(4))) == []
        assert objective.value == before


def arenas_of(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Make arenas small; how many samples stand by, and by how many features they are known."""
    seen: list[tuple[int, int]] = []
    make = Stage._bystanders

    def spy(self: Stage, *arguments: Any) -> Any:
        made = make(self, *arguments)
        seen.append(made.rows.shape)
        return made

    monkeypatch.setattr(Stage, "_bystanders", spy)
    for where, name, value in (
        (stage, "WHOLE_ARENA", 32),
        (svm, "WHOLE_ARENA", 32),
        (state, "WHOLE_SET_LIMIT", 32),
        (stage, "BEST_CANDIDATES", 24),
        (stage, "LEAST_NEAR_MARGIN", 24),
        (stage, "NEAR_MARGIN", 1),
    ):
        monkeypatch.setattr(where, name, value)
    return seen


@pytest.mark.parametrize("kind", ["dense", "sparse", "rbf"])
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize(("size", "alpha"), [(150, 0.5), (260, 0.02), (400, 0.1)])
def test_samples_outside_of_the_arena(
    monkeypatch: pytest.MonkeyPatch, kind: str, offset: bool, size: int, alpha: float
) -> None:
    """The same picks and gains as with every sample in it, whether rows are at hand or not."""
    rng = np.random.default_rng(size)
    X, y = make_shifted(size, 6, random_state=size)
    weights = rng.uniform(0.5, 2.0, size) if size == 260 else None
    options: dict[str, Any] = {"alpha": alpha, "fit_intercept": offset, "weights": weights}
    if kind == "rbf":
        options |= {"kernel": "rbf", "gamma": 0.2}
    if kind == "sparse":
        X = sp.csr_array(X)
    objective = SVMObjective(X, y, **options)
    spread = float(objective.gains(range(size)).max())
    cost = rng.uniform(0.0, 0.5, size) * spread if size != 150 else np.zeros(size)
    omegas = (1.0 - 1.0 / 40) ** np.arange(24.0, 0.0, -1.0)
    rounds = Rounds(omegas, 0.8 * omegas, omegas / 0.8, cost, objective.kept, None, TIE, 1.0)
    whole = SVMObjective(X, y, **options)
    expected = whole.rounds_ahead(rounds)
    assert len(expected) == 24
    seen = arenas_of(monkeypatch)
    small = SVMObjective(X, y, **options)
    picks = small.rounds_ahead(rounds)
    assert len(picks) >= 8
    assert max(seen)[0] >= size // 4
    assert all((columns > 0) == (kind == "dense") for _, columns in seen)
    assert [pick.k for pick in picks] == [pick.k for pick in expected[: len(picks)]]
    for mine, other in zip(picks, expected, strict=False):
        assert mine.gain == pytest.approx(other.gain, rel=0, abs=1e-9 * max(1.0, other.value))
        assert mine.value == pytest.approx(other.value, rel=0, abs=1e-9 * max(1.0, other.value))
    assert small.optimality_residual() <= 1e-10
    # The intervals are about the bystanders, too.
    before = objective.copy()
    for pick, omega in zip(picks, omegas, strict=False):
        ks = np.flatnonzero(before.kept)
        gains = before.gains(ks)
        assert pick.low <= omega <= pick.high
        for other in (max(pick.low, 0.01), min(pick.high, 1.0)):
            scores = other * gains - cost[ks]
            assert scores[ks == pick.k][0] >= scores.max() - 1e-11
        before.remove(pick.k)


def test_an_inner_set_that_cannot_grow_ends_the_rounds():
    """Many equal rows of zeros and ones: rounds that asked for a larger set for ever did not end."""
    data = load_sleep(expert=5)
    known = np.random.RandomState(15).permutation(80)[:27]
    there = np.isin(data.groups, known) & ~np.isnan(data.human_labels)
    rows = np.flatnonzero(there)[::40]
    X, y, night = data.data[rows], data.target[rows], data.groups[rows]
    human = data.human_labels[rows]
    folds = stratified_folds(5, X, y, night, draw_seed(15))
    ends = []
    for train, _ in splits_from(folds, len(rows)):
        clf = AssistedSVC(0.1, alpha=0.001, submodularity_ratio=1.0, cv=None, random_state=0)
        ends.append(clf.fit(X[train], y[train], human_labels=human[train]).selection_.value)
    assert len(ends) == 5
    assert min(ends) > 0.0
