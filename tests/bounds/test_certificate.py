"""What a certificate claims, and what it refuses to claim."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from deferlearn.bounds import certificate, optimum_upper_bound, submodularity_bound
from deferlearn.datasets import make_shifted
from deferlearn.humans import UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.selection import (
    SelectionInterrupted,
    distorted_greedy,
    stochastic_distorted_greedy,
    submodularity_sweep,
    unconstrained_distorted_greedy,
)


def _objective(offset: bool = False, alpha: float = 1.0) -> SVMObjective:
    rng = np.random.default_rng(8)
    y = np.repeat([1.0, -1.0], 6)
    return SVMObjective(rng.normal(size=(12, 2)) + 0.5 * y[:, None], y, alpha, fit_intercept=offset)


LOSS = np.linspace(0.0, 0.4, 12)


def _unconstrained(objective: Any, loss: Any, n: int, ratio: float, **options: Any) -> Any:
    """With the arguments of the others, as a sweep calls them."""
    return unconstrained_distorted_greedy(objective, loss, ratio, **options)


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
    assert report.share == pytest.approx(
        0.8
    )  # a result that does not know its slack used all of tol
    assert "at least 0.8 times this: 0.00995 times" in report.summary()
    assert "short of the best score by 20%" in report.summary()
    report = certificate(objective, _result(objective, tol=0.2, slack=0.05), LOSS)
    assert report.share == pytest.approx(0.95)
    report = certificate(
        objective,
        _result(objective, tol=0.2, slack=0.05, algorithm="stochastic", epsilon=0.001),
        LOSS,
    )
    assert report.share == pytest.approx(0.8)  # other random choices may need more slack


def test_a_sweep_uses_its_largest_ratio_within_the_bound() -> None:
    objective = _objective()
    bound = submodularity_bound(objective, 2).best
    result = submodularity_sweep(objective, LOSS, 2, delta=0.01)
    report = certificate(objective, result, LOSS)
    assert report.guaranteed
    assert report.ratio_used is None
    assert not report.in_expectation
    member = -math.log(1 - report.factor)
    assert (1 - 0.01) * bound <= member <= bound
    assert report.factor >= 1 - math.exp(-bound) - 0.01
    assert "cost at most delta = 0.01" in report.reason


def test_a_sweep_is_believed_about_its_members() -> None:
    objective = _objective()
    members = [
        _result(objective, submodularity_ratio=ratio, tol=0.5, slack=slack)
        for ratio, slack in ((1.0, 0.4), (0.02, 0.1), (0.01, 0.3))
    ]
    result = _result(objective, algorithm="sweep", delta=0.1, members=members)
    report = certificate(objective, result, LOSS)
    assert report.factor == pytest.approx(1 - math.exp(-0.02))
    assert report.share == pytest.approx(0.9)


def test_a_sweep_that_ends_above_the_bound_claims_nothing() -> None:
    objective = _objective(alpha=1e-3)
    assert 0 < submodularity_bound(objective, 2).best < 0.1
    report = certificate(objective, submodularity_sweep(objective, LOSS, 2, delta=0.1), LOSS)
    assert not report.guaranteed
    assert "no worse than deferring no sample" in report.reason
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
    "algorithm", [stochastic_distorted_greedy, _unconstrained], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("floor", [0, 1])
def test_a_sweep_over_random_runs_holds_in_expectation(algorithm: Any, floor: int) -> None:
    objective = _objective()
    bound = submodularity_bound(objective, 12).best
    result = submodularity_sweep(
        objective,
        LOSS,
        12,
        delta=0.05,
        lower_bound=bound,
        algorithm=algorithm,
        random_state=0,
        min_kept_per_class=floor,
    )
    assert result.algorithm == "sweep"
    assert min(member.submodularity_ratio for member in result.members) <= bound
    report = certificate(objective, result, LOSS)
    assert report.in_expectation
    # Other random choices than those that were made could have met the floor.
    assert report.guaranteed is (floor == 0)
    assert ("Guarantee: on average" in report.summary()) is report.guaranteed


def test_a_sweep_over_an_algorithm_without_a_theorem_claims_nothing() -> None:
    objective = _objective()
    members = [_result(objective, algorithm="magic")]
    result = _result(objective, algorithm="sweep", delta=0.1, members=members)
    report = certificate(objective, result, LOSS)
    assert not report.guaranteed
    assert "No theorem is known for algorithm 'magic'" in report.reason


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"algorithm": "magic"}, "No theorem"),
        ({"interrupted": True}, "interrupted"),
        ({"min_kept_per_class": 5}, "a floor of 5 samples per class may have kept candidates out"),
    ],
)
def test_runs_that_no_theorem_covers(change: dict[str, Any], why: str) -> None:
    objective = _objective()
    report = certificate(objective, _result(objective, **change), LOSS)
    assert not report.guaranteed
    assert why in report.reason


def test_a_floor_out_of_reach_changes_nothing() -> None:
    """Six samples per class and two picks: a floor of four can keep no sample out."""
    objective = _objective()
    report = certificate(objective, _result(objective, min_kept_per_class=4), LOSS)
    assert report.guaranteed
    assert "The floor of 4 samples per class kept no candidate out" in report.reason


def test_floors_of_real_runs() -> None:
    """A floor that is met claims nothing; one that was not met is no matter, unless by chance."""
    objective = _objective()
    ratio = 0.9 * submodularity_bound(objective, 8).best
    problem: Any = (objective, np.full(12, 1e-3), 8, ratio)
    free = distorted_greedy(*problem)
    left = np.delete(objective.labels, free.order)
    least = min(int((left == label).sum()) for label in (-1, 1))
    assert least > 0  # so that there is a floor to try
    for floor, claimed in ((least - 1, True), (least + 1, False)):
        result = distorted_greedy(*problem, min_kept_per_class=floor)
        assert result.min_kept_per_class == floor
        assert certificate(objective, result, problem[1]).guaranteed is claimed
        assert (result.order.tolist() == free.order.tolist()) is claimed
        sweep = submodularity_sweep(
            *problem[:3], delta=0.1, lower_bound=ratio, min_kept_per_class=floor
        )
        assert sweep.min_kept_per_class == floor
        chance = stochastic_distorted_greedy(
            *problem, epsilon=0.01, random_state=0, min_kept_per_class=floor
        )
        report = certificate(objective, chance, problem[1])
        assert report.guaranteed is (floor == 0)


def test_interrupted_runs_claim_nothing_but_their_gap() -> None:
    objective = _objective()

    def stop(iteration: Any) -> None:
        if iteration.index == 1:
            raise KeyboardInterrupt

    for run in (distorted_greedy, submodularity_sweep):
        extra = {} if run is submodularity_sweep else {"submodularity_ratio": 0.01}
        assert not run(objective, LOSS, 3, **extra).interrupted
        with pytest.raises(SelectionInterrupted) as stopped:
            run(objective, LOSS, 3, callback=stop, **extra)
        result = stopped.value.result
        assert result.interrupted
        report = certificate(objective, result, LOSS)
        assert not report.guaranteed
        assert "interrupted" in report.reason
        assert report.gap == pytest.approx(report.optimum.value - result.value)


def test_slack_of_real_runs() -> None:
    """The slack that was used counts, not the tolerance, unless other random choices count too."""
    X, y = make_shifted(150, 20, random_state=0)
    objective = SVMObjective(X, y, alpha=1.0, fit_intercept=False)
    loss = UniformHuman(0.2).losses(y, random_state=0)
    ratio = submodularity_bound(objective, 10).best
    result = distorted_greedy(objective, loss, 10, ratio, tol=0.9)
    assert 0.0 < result.slack < 0.9
    report = certificate(objective, result, loss)
    assert report.guaranteed
    assert report.share == pytest.approx(1 - result.slack)
    chance = stochastic_distorted_greedy(
        objective, loss, 10, ratio, epsilon=0.01, tol=0.9, random_state=0
    )
    assert certificate(objective, chance, loss).share == pytest.approx(0.1)


def test_another_budget_than_the_runs_has_no_guarantee() -> None:
    objective = _objective()
    report = certificate(objective, _result(objective), LOSS, n=3)
    assert not report.guaranteed
    assert "the run had the budget 2" in report.reason


def test_no_sample_worth_deferring_is_optimal() -> None:
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
        (np.where(np.arange(12) == 5, np.nan, 0.0), "got nan at index 5"),
        (-LOSS, "not negative"),
    ):
        with pytest.raises(ValueError, match=words):
            certificate(objective, good, loss)
    with pytest.raises(ValueError, match="more than the budget"):
        certificate(objective, good, LOSS, n=1)
    with pytest.raises(ValueError, match="pass n"):
        certificate(objective, _result(objective, n=None), LOSS)
    with pytest.raises(ValueError, match="its order gives"):
        certificate(objective, _result(objective, value=1e3), LOSS)
    with pytest.raises(ValueError, match="between 0 and the number of samples, 12"):
        submodularity_bound(objective, 13)
    objective.remove(0)
    with pytest.raises(ValueError, match="initial state"):
        certificate(objective, good, LOSS)
