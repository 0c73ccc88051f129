"""Means and paired differences, against scipy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from deferlearn.experiments.stats import differences, paired, summary


def test_only_seeds_of_both_are_paired():
    own = pd.DataFrame({"seed": [2, 0, 1], "error": [3.0, 1.0, 2.0]})
    other = pd.DataFrame({"seed": [1, 5, 0], "error": [0.5, 9.0, 0.0]})
    line = paired(own, other, ["error"])
    assert (line["runs"], line["error"]) == (2, 1.25)
    nobody = paired(own, other[other["seed"] == 5], ["error"])
    assert nobody["runs"] == 0
    assert np.isnan(nobody["error"])


@pytest.fixture
def rows():
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        [
            {
                "seed": seed, "method": method, "policy": policy, "budget": budget,
                "error": rng.uniform(), "note": "words",
            }
            for method, policy in [("distorted", "a"), ("stochastic", "a"), ("full", "")]
            for budget in (0.0, 0.5)
            for seed in rng.permutation(8)  # the order of the rows must not matter
        ]
    )  # fmt: skip


def test_paired_differences(rows):
    methods = [("distorted", "a"), ("stochastic", "a")]
    table = differences(rows, ["budget"], methods, ["full", "distorted"], ["error"])
    assert len(table) == 2 * 3
    for _, line in table.iterrows():
        own, other = (
            rows[(rows["method"] == name) & (rows["budget"] == line["budget"])]
            .sort_values("seed")["error"]
            .to_numpy()
            for name in (line["method"], line["minus"])
        )
        expected = stats.ttest_rel(own, other).confidence_interval(0.95)
        assert line["runs"] == 8
        assert line["error"] == pytest.approx((own - other).mean())
        assert line["error_low"] == pytest.approx(expected.low)
        assert line["error_high"] == pytest.approx(expected.high)


def test_summary(rows):
    table = summary(rows, ["method", "budget"], ["error"])
    assert table["runs"].tolist() == [8] * 6
    assert table["method"].unique().tolist() == ["distorted", "stochastic", "full"]
    line = table[(table["method"] == "full") & (table["budget"] == 0.5)].iloc[0]
    values = rows[(rows["method"] == "full") & (rows["budget"] == 0.5)]["error"]
    assert line["error"] == pytest.approx(values.mean())
