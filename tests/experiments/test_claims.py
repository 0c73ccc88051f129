"""Verdicts follow from the intervals, and the page says what the tables say."""

import re

import numpy as np
import pandas as pd
import pytest

from deferlearn.experiments import Config, reproduce, write_page
from deferlearn.experiments.claims import judge_claims, verdict
from deferlearn.experiments.page import compact
from deferlearn.experiments.performance import performance_tables

REPEATED, PUBLISHED = Config.preset(splits=5), Config.preset("published")


def rows_of(error_of, n=5):
    """Rows of all methods at three budgets; `error_of(method, budget)` plus what the split does."""
    noise = np.random.RandomState(0).normal(scale=0.01, size=n)
    own = np.random.RandomState(1).normal(scale=0.001, size=(n, 100))
    return pd.DataFrame(
        [
            {
                "dataset": "linear", "seed": seed, "method": method, "budget": budget,
                "policy": "mlp" if method in ("distorted", "stochastic") else "",
                "error": error_of(method, budget) + noise[seed] + own[seed, 10 * i + j],
                "f1": 0.5, "n_deferred": 0, "n_asked": 0, "alpha": 1.0, "seconds": 0.0,
            }
            for i, method in enumerate(
                ["distorted", "stochastic", "uncertainty", "predicted", "full", "humans"]
            )
            for j, budget in enumerate([0.0, 0.1, 0.3])
            for seed in range(n)
        ]
    )  # fmt: skip


def ours_fall(method, budget):
    if method in ("distorted", "stochastic"):
        return 0.4 - budget
    return {"humans": 0.2, "full": 0.4}.get(method, 0.4 - 0.3 * budget)


def test_fig3():
    claims = judge_claims("fig3", performance_tables(rows_of(ours_fall)), REPEATED)
    verdicts = {re.search("outperform (.*) by", c.text)[1]: c for c in claims}
    assert verdicts["full automation"].verdict == "holds"
    assert verdicts["uncertainty triage"].verdict == "holds"
    assert verdicts["humans alone"].verdict == "holds in part"
    assert "the mean from n/|V| = 0.3, by its interval from 0.3" in verdicts["humans alone"].numbers
    worse = performance_tables(rows_of(lambda m, b: 0.4 + (m == "distorted") + (m == "stochastic")))
    assert {c.verdict for c in judge_claims("fig3", worse, REPEATED)} == {"does not hold"}


def test_one_split_is_said_to_be_one():
    claims = judge_claims("fig3", performance_tables(rows_of(ours_fall, n=1)), PUBLISHED)
    assert all(claim.verdict.endswith("on one split") for claim in claims)
    assert not any("interval" in claim.numbers for claim in claims)


def test_differences_within_noise_are_no_victory():
    tables = performance_tables(rows_of(lambda m, b: 0.3))
    assert all(c.verdict != "holds" for c in judge_claims("fig3", tables, REPEATED))


@pytest.mark.parametrize(
    ("cases", "word"),
    [([True, True], "holds"), ([True, False], "holds in part"), ([False], "does not hold")],
)
def test_verdict(cases, word):
    assert verdict(cases, REPEATED) == word
    assert verdict(cases, PUBLISHED) == f"{word}, on one split"


def test_compact():
    table = pd.DataFrame({"n": [3], "a": [0.12345], "a_low": [0.1], "a_high": [0.2], "b": ["x"]})
    assert compact(table).to_dict("records") == [{"n": "3", "a": "0.123 [0.1, 0.2]", "b": "x"}]


def test_page(tmp_path):
    config = Config.preset("repeated", quick=True, splits=2, n_samples=40, spreads=(0.2,))
    with pytest.raises(FileNotFoundError, match="run `reproduce` first"):
        write_page(tmp_path, config)
    fig4 = reproduce("fig4", config, tmp_path)
    other = Config.preset("repeated", quick=True, splits=1)
    reproduce("fig1", other, tmp_path)
    text = write_page(tmp_path, config).read_text()
    assert "## fig4" in text
    assert "![fig4](fig4.png)" in text
    assert "## fig1" not in text  # was made with other settings
    assert "too few for results" in text
    line = fig4.tables[""].iloc[-1]
    assert f"| {line['method']} | {line['spread']:g} | {line['budget']:g} | {line['n']} |" in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for block in tables:  # every line of a table has as many cells
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in block.strip().split("\n")}) == 1
