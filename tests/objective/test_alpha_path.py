"""Another alpha from a solution: along the path, it must be what a fresh solution is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from checks import VALUE_TOLERANCE, check_seeds, state_faults
from deferlearn.datasets import make_shifted
from deferlearn.objective import Rounds, SVMObjective, stage, state, svm
from problems import FULL, GRAM_OVER_ALPHA, Problem, chunks, replace


def another(p: Problem, alpha: float) -> Problem:
    """The problem with this alpha."""
    return replace(p, params={**p.params, "alpha": alpha}, name=f"{p.name}, alpha {alpha!r}")


def alphas_around(p: Problem, rng: np.random.Generator) -> np.ndarray:
    """Up and down by up to 1000, and back; not where F depends on the last digit of the kernel."""
    factors = 10.0 ** np.append(rng.uniform(-3.0, 3.0, 2), [rng.choice([-3.0, 3.0]), 0.0])
    gram, linear = p.objective().problem.gram, p.params["kernel"] == "linear"
    least = 0.0 if linear else float(gram.diagonal.max()) * gram.unit / GRAM_OVER_ALPHA
    return np.maximum(p.params["alpha"] * factors, least)


def size_of_decisions(p: Problem, objective: Any) -> float:
    """w.phi_i + b is a sum of terms that may cancel: rounding is relative to these."""
    root = objective.problem.root * np.sqrt(objective.problem.gram.unit)
    total = float(weights_of(p)[objective.kept].sum())
    length = float(objective.dual @ root) / (2.0 * p.params["alpha"] * total)
    return 1.0 + abs(objective.intercept) + length * float(root.max())


def weights_of(p: Problem) -> np.ndarray:
    return np.ones(p.n) if p.params["weights"] is None else p.params["weights"]


def alpha_faults(p: Problem, objective: Any, fresh: Any, name: str) -> list[str]:
    """An objective that came along the path against one that was solved afresh."""
    faults = state_faults(p, objective)
    slack = VALUE_TOLERANCE * p.size(float(fresh.value))
    if not abs(objective.value - fresh.value) <= slack:
        faults.append(f"{name}: F = {objective.value!r}, fresh {fresh.value!r}")
    kept, size = objective.kept, size_of_decisions(p, objective)
    own = objective.own_decisions
    asked = np.asarray(objective.decision_function(p.X))
    if not np.abs(own - asked).max() <= 1e-9 * size:
        faults.append(f"{name}: decisions {np.abs(own - asked).max():.1e} of {size:.1e} off")
    # The machine is as unique as F is curved.
    others = fresh.own_decisions
    apart = np.abs(own[kept] - others).max()
    if not apart <= 1e-9 * size:
        faults.append(f"{name}: decisions {apart:.1e} of {size:.1e} from fresh ones")
    return faults


@pytest.mark.parametrize("seeds", chunks(110_000, 2_800 if FULL else 140, 70), ids=str)
def test_alphas_up_and_down(seeds: range) -> None:
    """From the first state and from states with removed samples; hard margins and one class, too."""

    def check(p: Problem, rng: np.random.Generator) -> list[str]:
        faults = []
        objective = p.objective()
        gone = rng.permutation(p.n)[: rng.integers(0, p.n // 2 + 1) * rng.integers(0, 2)]
        for k in gone:
            objective.remove(int(k))
        value, kept = objective.value, objective.kept
        there = objective
        for alpha in alphas_around(p, rng):
            there, q = there.with_alpha(alpha), another(p, float(alpha))
            name = f"{q.name}, {len(gone)} removed"
            faults += alpha_faults(q, there, q.restrict(kept).objective(), name)
            if (there.kept != kept).any() or there.removed.tolist() != gone.tolist():
                faults.append(f"{name}: other samples are kept")
            if there.fingerprint() != q.objective().fingerprint():
                faults.append(f"{name}: fingerprint {there.fingerprint()}")
        if objective.value != value:
            faults.append(f"{p.name}: the objective itself has changed")
        return faults

    check_seeds(seeds, check)


KINDS: dict[str, dict[str, Any]] = {
    "linear": {},
    "sparse": {},
    "rbf": {"kernel": "rbf", "gamma": 0.2},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
}


def shifted(size: int, kind: str, **options: Any) -> tuple[Any, np.ndarray, dict[str, Any]]:
    X, y = make_shifted(size, 5, random_state=size)
    return sp.csr_array(X) if kind == "sparse" else X, y, {**KINDS[kind], **options}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [True, False])
def test_a_chain_of_alphas(kind: str, offset: bool) -> None:
    """As a search asks for them, after some removals: values, gains, decisions and machines."""
    X, y, options = shifted(120, kind, fit_intercept=offset)
    there = SVMObjective(X, y, alpha=30.0, **options)
    gone = [3, 50, 81, 100]
    for k in gone:
        there.remove(k)
    for alpha in np.geomspace(10.0, 1e-3, 9):
        there = there.with_alpha(alpha)
        fresh = SVMObjective(X, y, alpha=alpha, **options)
        for k in gone:
            fresh.remove(k)
        assert there.value == pytest.approx(fresh.value, rel=1e-10)
        assert there.intercept == pytest.approx(fresh.intercept, abs=1e-9)
        assert_allclose(there.own_decisions, fresh.decision_function(X), rtol=0, atol=1e-9)
        assert_allclose(there.own_decisions, there.decision_function(X), rtol=0, atol=1e-9)
        if kind in ("linear", "sparse"):
            assert_allclose(there.coef, fresh.coef, rtol=0, atol=1e-9)
        ks = np.flatnonzero(there.kept)[::7]
        assert_allclose(there.gains(ks), fresh.gains(ks), rtol=0, atol=1e-9)
        assert there.optimality_residual() <= 1e-10
    assert there.removed.tolist() == gone


@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_selections_go_on_from_another_alpha(kind: str) -> None:
    """Rounds ahead, bounds and removals are about the new alpha; the old objective keeps its own."""
    X, y, options = shifted(100, kind)
    first = SVMObjective(X, y, alpha=1.0, **options)
    omegas = np.full(6, 0.9)
    cost = np.random.default_rng(0).uniform(0.0, 0.2, 100)

    def rounds_of(objective: Any) -> list[Any]:
        plan = Rounds(omegas, omegas, omegas, cost, objective.kept, None, 1e-9, 1.0)
        return [(p.k, p.gain, p.value) for p in objective.copy().rounds_ahead(plan)]

    before = rounds_of(first)
    second = first.with_alpha(0.01)
    fresh = SVMObjective(X, y, alpha=0.01, **options)
    ks = np.arange(100)
    for objective, expected in ((second, rounds_of(fresh)), (first, before)):
        found = rounds_of(objective)
        assert [k for k, _, _ in found] == [k for k, _, _ in expected]
        assert len(found) == 6
        assert_allclose(found, expected, rtol=0, atol=1e-9)
    lower, upper = second.gain_bounds(ks)
    gains = fresh.gains(ks)
    assert (lower <= gains + 1e-9).all()
    assert (gains <= upper + 1e-9).all()
    second.remove(7)
    fresh.remove(7)
    assert second.value == pytest.approx(fresh.value, rel=1e-10)
    assert first.kept.all()


@pytest.mark.parametrize("kind", ["linear", "rbf"])
@pytest.mark.parametrize("whole", [True, False])
def test_more_samples_than_a_working_set(
    monkeypatch: pytest.MonkeyPatch, kind: str, whole: bool
) -> None:
    """Beyond its size every sample is in the set for the path, as long as the arena holds them."""
    monkeypatch.setattr(state, "WHOLE_SET_LIMIT", 40)
    if not whole:
        monkeypatch.setattr(svm, "WHOLE_ARENA", 40)
        monkeypatch.setattr(stage, "WHOLE_ARENA", 40)
    X, y, options = shifted(220, kind)
    there = SVMObjective(X, y, alpha=1.0, **options)
    for alpha in (0.02, 5.0, 0.3):
        there = there.with_alpha(alpha)
        fresh = SVMObjective(X, y, alpha=alpha, **options)
        assert there.value == pytest.approx(fresh.value, rel=1e-10)
        assert_allclose(there.own_decisions, fresh.own_decisions, rtol=0, atol=1e-9)
        assert there.optimality_residual() <= 1e-10


def test_where_two_doubles_are_needed() -> None:
    """From a state that is precise, to one that is, and to one that need not be."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)) * 1e6, rng.choice([-1.0, 1.0], 40)
    precise = SVMObjective(X, y, alpha=1e-6)
    assert precise._state.precise
    easy = SVMObjective(X / 1e6, y, alpha=1e-6)
    for there in (precise.with_alpha(1e-4), easy.with_alpha(1e-4), precise.with_alpha(1e6)):
        alpha = there.fingerprint()["alpha"]
        fresh = SVMObjective(there._X, y, alpha=alpha)
        assert there.value == pytest.approx(fresh.value, rel=1e-10)
        assert there.optimality_residual() <= 1e-10
        assert_allclose(there.own_decisions, there.decision_function(there._X), rtol=0, atol=1e-8)


@pytest.mark.parametrize("offset", [True, False])
def test_one_class_and_nothing_left(offset: bool) -> None:
    """There is no path from a state without one; every alpha is as good as solved."""
    X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 1.0, -1.0])
    objective = SVMObjective(X, y, alpha=0.1, fit_intercept=offset)
    for gone in ([2], [2, 0], [2, 0, 1]):
        objective.remove(gone[-1])
        fresh = SVMObjective(X, y, alpha=0.7, fit_intercept=offset)
        for k in gone:
            fresh.remove(k)
        there = objective.with_alpha(0.7)
        assert there.value == pytest.approx(fresh.value, abs=1e-12)
        assert there.removed.tolist() == gone
        assert_allclose(there.own_decisions, fresh.decision_function(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf, "0.1", None, [0.1], 1e-300, 1e300])
def test_what_is_no_alpha(alpha: Any) -> None:
    """The same error as for a new objective, and the objective stays as it was."""
    X, y = [[0.0], [1.0], [3.0]], [-1, 1, 1]
    objective = SVMObjective(X, y)
    value = objective.value
    with pytest.raises((ValueError, TypeError)) as fresh:
        SVMObjective(X, y, alpha=alpha)
    with pytest.raises(fresh.type, match="alpha") as error:
        objective.with_alpha(alpha)
    assert str(error.value) == str(fresh.value)
    assert objective.value == value
    assert objective.with_alpha(2.0).value > 0
