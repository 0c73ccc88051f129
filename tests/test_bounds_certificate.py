"""What a certificate claims, and what it refuses to claim."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from deferlearn.bounds import certificate, optimum_upper_bound, submodularity_bound
from deferlearn.objective import SVMObjective


def _objective(offset: bool = False, alpha: float = 1.0) -> SVMObjective:
    rng = np.random.default_rng(8)
    y = np.repeat([1.0, -1.0], 6)
    return SVMObjective(rng.normal(size=(12, 2)) + 0.5 * y[:, None], y, alpha, fit_intercept=offset)


LOSS = np.linspace(0.0, 0.4, 12)


def _result(objective: SVMObjective, **changes: Any) -> SimpleNamespace:
    """Two samples, chosen greedily."""
    state, order = objective.copy(), []
    for _ in range(2):
        kept = np.flatnonzero(state.kept)
        order.append(int(kept[np.argmax(state.gains(kept) - LOSS[kept])]))
        state.remove(order[-1])
    fields: dict[str, Any] = {
        "order": np.array(order),
        "value": objective.value - state.value - LOSS[order].sum(),
        "n": 2,
        "algorithm": "distorted",
        "submodularity_ratio": 0.01,
        "epsilon": None,
        "delta": None,
        "tol": 0.0,
        "initial_value": objective.value,
    }
    return SimpleNamespace(**{**fields, **changes})


def test_distorted_greedy_within_the_bound() -> None:
    objective = _objective()
    result = _result(objective)
    report = certificate(objective, result, LOSS)
    assert report.guaranteed
    assert not report.in_expectation
    assert report.factor == pytest.approx(1 - math.exp(-0.01))
    assert (report.ratio_used, report.share) == (0.01, 1.0)
    assert report.value == result.value
    assert report.gap == pytest.approx(report.optimum.value - report.value)
    assert report.relative_gap == pytest.approx(report.gap / report.optimum.value)
    assert report.ratio_bound == submodularity_bound(objective, 2)
    assert report.optimum == optimum_upper_bound(objective, LOSS, 2)
    text = report.summary()
    assert f"{report.value:.4g}" in text
    assert "Guarantee: the value is at least 0.00995 times" in text
    assert "vacuous" in text  # a factor of 0.01


def test_the_objective_is_left_as_it_was() -> None:
    objective = _objective()
    before = objective.value
    certificate(objective, _result(objective), LOSS)
    assert objective.value == before
    assert objective.kept.all()


def test_a_ratio_beyond_the_bound_gives_no_guarantee() -> None:
    objective = _objective()
    report = certificate(objective, _result(objective, submodularity_ratio=1.0), LOSS)
    assert not report.guaranteed
    assert report.factor == 0.0
    assert "No guarantee is claimed: the ratio used, 1" in report.summary()
    assert "Guarantee:" not in report.summary()


def test_stochastic_holds_in_expectation_and_loses_epsilon() -> None:
    objective = _objective()
    ratio = submodularity_bound(objective, 2).best
    result = _result(objective, algorithm="stochastic", epsilon=0.01, submodularity_ratio=ratio)
    report = certificate(objective, result, LOSS)
    assert report.guaranteed
    assert report.in_expectation
    assert report.factor == pytest.approx(1 - math.exp(-ratio) - 0.01)
    assert "on average" in report.summary()
    result.epsilon = 0.9
    assert certificate(objective, result, LOSS).factor == 0.0


def test_tol_keeps_its_share_of_the_guarantee() -> None:
    objective = _objective()
    report = certificate(objective, _result(objective, tol=0.2), LOSS)
    assert report.guaranteed
    assert report.share == pytest.approx(0.8)
    assert "at least 0.8 of 0.00995 times" in report.summary()


def test_a_sweep_uses_its_largest_ratio_within_the_bound() -> None:
    objective = _objective()
    bound = submodularity_bound(objective, 2).best
    result = _result(objective, algorithm="sweep", submodularity_ratio=1.0, delta=0.01)
    report = certificate(objective, result, LOSS)
    assert report.guaranteed
    assert report.ratio_used is None
    member = -math.log(1 - report.factor)
    assert (1 - 0.01) * bound <= member <= bound
    assert math.log(member) / math.log(0.99) == pytest.approx(
        round(math.log(member) / math.log(0.99))
    )


def test_a_sweep_is_believed_about_its_members() -> None:
    objective = _objective()
    members = [_result(objective, submodularity_ratio=ratio) for ratio in (1.0, 0.02, 0.01)]
    result = _result(objective, algorithm="sweep", delta=0.1, members=members)
    report = certificate(objective, result, LOSS)
    assert report.factor == pytest.approx(1 - math.exp(-0.02))


def test_a_sweep_that_ends_above_the_bound_claims_nothing() -> None:
    objective = _objective(alpha=1e-3)
    assert 0 < submodularity_bound(objective, 2).best < 0.1
    result = _result(objective, algorithm="sweep", delta=0.1)
    report = certificate(objective, result, LOSS)
    assert not report.guaranteed
    assert "no worse than deferring nobody" in report.reason
    assert not certificate(objective, _result(objective, algorithm="sweep"), LOSS).guaranteed


def test_unconstrained_needs_an_svm_without_offset() -> None:
    for offset in (False, True):
        objective = _objective(offset)
        result = _result(objective, algorithm="unconstrained", n=12)
        report = certificate(objective, result, LOSS)
        assert report.guaranteed is not offset
        assert report.in_expectation
    assert "No positive bound" in report.summary()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"algorithm": "magic"}, "No theorem"),
        ({"interrupted": True}, "interrupted"),
        ({"min_kept_per_class": 3}, "floor"),
    ],
)
def test_runs_that_no_theorem_covers(change: dict[str, Any], why: str) -> None:
    objective = _objective()
    report = certificate(objective, _result(objective, **change), LOSS)
    assert not report.guaranteed
    assert why in report.reason


def test_nobody_worth_deferring_is_optimal() -> None:
    objective = _objective()
    result = _result(objective, order=[], value=0.0)
    report = certificate(objective, result, np.full(12, 50.0))
    assert report.optimum.value >= 0.0
    result = _result(objective, order=[], value=0.0, n=0)
    report = certificate(objective, result, LOSS)
    assert (report.optimum.value, report.gap, report.relative_gap) == (0.0, 0.0, 0.0)
    assert "best possible" in report.summary()


def test_bad_input() -> None:
    objective = _objective()
    good = _result(objective)
    for loss, words in (
        (LOSS[:3], "shape"),
        (np.where(np.arange(12) == 5, np.nan, 0.0), r"human_loss\[5\] is nan"),
        (-LOSS, "non-negative"),
    ):
        with pytest.raises(ValueError, match=words):
            certificate(objective, good, loss)
    with pytest.raises(ValueError, match="more than the budget"):
        certificate(objective, good, LOSS, n=1)
    with pytest.raises(ValueError, match="pass n"):
        certificate(objective, _result(objective, n=None), LOSS)
    with pytest.raises(ValueError, match="no selection can reach"):
        certificate(objective, _result(objective, value=1e3), LOSS)
    with pytest.raises(ValueError, match="between 0 and 12"):
        submodularity_bound(objective, 13)
    objective.remove(0)
    with pytest.raises(ValueError, match="initial state"):
        certificate(objective, good, LOSS)
