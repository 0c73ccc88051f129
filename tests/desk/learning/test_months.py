"""Months at a desk that drifts or not, if the truth of cases that experts read is known, in short form."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "desk_learning.py"


@pytest.fixture
def months(monkeypatch):
    """`benchmarks/desk_learning.py`, without the naive ways."""
    spec = importlib.util.spec_from_file_location("months_at_a_desk", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "WAYS", ("frozen", "refit"))
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(10), marks=pytest.mark.slow)])
def test_recommended_refits_follow_a_drift_and_do_no_harm_without_one(months, seeds) -> None:
    gains = {
        drift: np.array(
            [
                np.subtract(*months.run(700 + seed, 6, drift, "read")[0][::-1, 1:].mean(axis=1))
                for seed in seeds
            ]
        )
        for drift in ("cases and experts", "nothing")
    }
    assert gains["cases and experts"].max() < -0.03, "each desk is better off than without refits"
    assert gains["nothing"].mean() < 0.005, "nobody is worse off on average"
