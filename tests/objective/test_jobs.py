"""Threads share the work, and the results are the same bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import deferlearn.objective.evaluation as evaluation
import deferlearn.objective.response as response
from deferlearn.datasets import make_shifted
from deferlearn.humans import UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.objective.validation import count_jobs
from deferlearn.selection import distorted_greedy, stochastic_distorted_greedy

N_SAMPLES = 1_200
X, Y = make_shifted(N_SAMPLES, 20, random_state=0)
LOSS = UniformHuman(0.2).losses(Y, random_state=0)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "CHUNK", 50)
    monkeypatch.setattr(evaluation, "PATHS_AT_ONCE", 7)


def objective(n_jobs: int | None, **params: Any) -> SVMObjective:
    return SVMObjective(X, Y, alpha=0.005, n_jobs=n_jobs, **params)


@pytest.mark.parametrize("params", [{}, {"kernel": "rbf"}, {"fit_intercept": False}], ids=str)
def test_bounds_gains_and_counters(params: dict[str, Any]) -> None:
    one, three = objective(None, **params), objective(3, **params)
    for _ in range(4):
        ks = np.flatnonzero(one.kept)
        for ask in ("gains", "gain_bounds"):
            np.testing.assert_array_equal(getattr(one, ask)(ks), getattr(three, ask)(ks))
        bounds = one.score_bounds(ks, 0.8, LOSS[ks])
        np.testing.assert_array_equal(bounds, three.score_bounds(ks, 0.8, LOSS[ks]))
        assert one.counters == three.counters
        k = int(ks[np.argmax(0.8 * bounds[0] - LOSS[ks])])
        one.remove(k)
        three.remove(k)
        assert one.value == three.value


@pytest.mark.parametrize("algorithm", [distorted_greedy, stochastic_distorted_greedy])
def test_selections(algorithm: Any) -> None:
    options = {} if algorithm is distorted_greedy else {"random_state": 0}
    one, four = (algorithm(objective(jobs), LOSS, 40, **options) for jobs in (1, 4))
    np.testing.assert_array_equal(one.order, four.order)
    np.testing.assert_array_equal(one.gains, four.gains)
    assert [i.n_exact for i in one.iterations] == [i.n_exact for i in four.iterations]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True])
def test_what_is_no_number_of_threads(n_jobs: Any) -> None:
    with pytest.raises(ValueError, match="n_jobs="):
        SVMObjective(X[:5], Y[:5], n_jobs=n_jobs)


def test_threads_are_of_this_machine() -> None:
    """Not those of a backend that has, or says it has, others."""
    from joblib import cpu_count, parallel_config

    with parallel_config(backend="sequential"):
        assert [count_jobs(n) for n in (None, 1, 3)] == [1, 1, 3]
        assert count_jobs(-1) == cpu_count()
        assert count_jobs(-1000) == 1
