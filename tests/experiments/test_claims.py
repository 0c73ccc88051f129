"""Verdicts follow from the intervals, and the page says what the tables say."""

import re

import numpy as np
import pandas as pd
import pytest

from deferlearn.experiments import (
    Config,
    bounds,
    fig1,
    fig2,
    fig4,
    fig6,
    reproduce,
    run_jobs,
    runtime,
    write_page,
)
from deferlearn.experiments.claims import judge_claims
from deferlearn.experiments.page import compact, render
from deferlearn.experiments.performance import performance_tables
from deferlearn.experiments.verdicts import verdict

REPEATED, PUBLISHED = Config.preset(splits=5), Config.preset("published")


def rows_of(error_of, n=5, datasets=("linear",), policy="mlp"):
    """Rows of all methods at three budgets; `error_of(method, budget)` plus what the split does."""
    noise = np.random.RandomState(0).normal(scale=0.01, size=n)
    own = np.random.RandomState(1).normal(scale=0.001, size=(n, 100))
    return pd.DataFrame(
        [
            {
                "dataset": dataset, "seed": seed, "method": method, "budget": budget,
                "policy": policy if method in ("distorted", "stochastic") else "",
                "error": error_of(method, budget) + noise[seed] + own[seed, 10 * i + j],
                "f1": 0.5, "n_deferred": 0, "n_asked": 0, "alpha": 1.0, "seconds": 0.0,
            }
            for dataset in datasets
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
    numbers = verdicts["humans alone"].numbers
    assert "Ahead in 2, behind in 2 of 4 cases" in numbers
    assert (
        "distorted algorithm is ahead from n/|V| = 0.3 on in the mean, from n/|V| = 0.3" in numbers
    )
    worse = performance_tables(rows_of(lambda m, b: 0.4 + (m == "distorted") + (m == "stochastic")))
    claims = judge_claims("fig3", worse, REPEATED)
    assert {c.verdict for c in claims} == {"does not hold"}
    assert "distorted algorithm is ahead at no budget in the mean" in claims[1].numbers
    one = judge_claims("fig3", performance_tables(rows_of(ours_fall, n=1)), PUBLISHED)[1].numbers
    assert (
        "ahead from n/|V| = 0.3 on; the stochastic algorithm is ahead from n/|V| = 0.3 on." in one
    )


def test_being_ahead_must_last():
    """Ahead at 0.1 only: no budget from which on it is ahead."""
    tables = performance_tables(
        rows_of(lambda m, b: 0.2 - 0.1 * (b == 0.1) * (m in ("distorted", "stochastic")))
    )
    (claim,) = (c for c in judge_claims("fig3", tables, REPEATED) if "humans" in c.text)
    assert "ahead at some budgets, not at the largest" in claim.numbers


def fig5_of(error_of, config=REPEATED, n=5):
    """Verdict and numbers by the first words of the claim."""
    rows = rows_of(error_of, n=n, datasets=("stare", "aptos"), policy="nearest")
    claims = judge_claims("fig5", performance_tables(rows), config)
    names = ("triage", "full", "humans", "alike")
    return dict(zip(names, claims, strict=True))


def test_fig5():
    claims = fig5_of(ours_fall)
    assert claims["triage"].verdict == "holds"
    assert "Stare: lower mean in 8, by the interval ahead in 8 and behind in 0 of 8" in (
        claims["triage"].numbers
    )
    assert claims["full"].verdict == "holds"
    assert claims["humans"].verdict == "holds"
    assert claims["alike"].verdict == "holds"
    assert "within ±0.02 in 4 of 4 cases" in claims["alike"].numbers


def test_fig5_of_worse_algorithms():
    claims = fig5_of(lambda m, b: {"distorted": 0.5, "stochastic": 0.6}.get(m, 0.4))
    assert {claim.verdict for claim in claims.values()} == {"does not hold"}
    assert "ahead in 0 and behind in 8 of 8" in claims["triage"].numbers


def test_most_is_judged_by_data_set():
    rows = pd.concat(
        [
            rows_of(ours_fall, datasets=("stare",), policy="margin"),
            rows_of(lambda m, b: 0.4, datasets=("aptos",), policy="margin"),
        ]
    )
    claim = judge_claims("fig5", performance_tables(rows), REPEATED)[0]
    assert claim.verdict == "holds in part"


def test_fig5_of_one_split():
    claims = fig5_of(ours_fall, PUBLISHED, n=1)
    assert claims["triage"].verdict == "holds, on one split"
    assert claims["alike"].verdict == "cannot be judged from one split"
    assert not any(word in c.numbers for c in claims.values() for word in ("interval", "mean", "["))


def fig6_rows(change_of, policies=("margin", "nearest")):
    noise = np.random.RandomState(0).normal(scale=0.001, size=(5, 10))
    return pd.DataFrame(
        [
            {
                "human_weight": weight, "policy": policy, "budget": budget, "seed": seed,
                "error": 0.2 + change_of(weight, budget) + (budget > 0) * noise[seed, j],
                "f1": 0.8, "human_error": 0.2 + weight / 4, "n_deferred": 0,
            }
            for policy in policies
            for weight in (0.0, 0.75)
            for j, budget in enumerate((0.0, 0.1, 0.2))
            for seed in range(5)
        ]
    )  # fmt: skip


def test_fig6():
    rows = fig6_rows(lambda weight, budget: (weight - 0.5) * budget)
    claims = judge_claims("fig6", fig6.tables(rows), REPEATED)
    assert [c.verdict for c in claims] == ["holds"] * 4
    assert "humans err 0.20: -0.10" in claims[0].numbers
    assert "where humans err 0.39, to 0.1: 0.02" in claims[1].numbers
    assert "The same errors" not in claims[0].numbers
    assert 'The same errors as with the policy "margin".' in claims[2].numbers


def test_deferring_helps_a_little_where_humans_err_much():
    """At the smaller budget it does: that must not be hidden by the largest."""
    rows = fig6_rows(lambda weight, budget: {0.0: 0.0, 0.1: -0.05, 0.2: 0.05}[budget])
    claims = judge_claims("fig6", fig6.tables(rows), REPEATED)
    assert [c.verdict for c in claims[:2]] == ["does not hold", "holds in part"]


def test_one_budget_tells_nothing():
    rows = fig6_rows(lambda weight, budget: 0.0)
    assert judge_claims("fig6", fig6.tables(rows[rows["budget"] == 0.2]), REPEATED) == []
    tables = performance_tables(rows_of(ours_fall)[lambda r: r["budget"] == 0.0])
    assert {c.verdict for c in judge_claims("fig3", tables, REPEATED)} == {"cannot be judged"}
    assert judge_claims("fig5", tables, REPEATED) == []
    rows = pd.DataFrame([{"method": "distorted", "spread": 0.2, "budget": 0.0, "n": 0}])
    tables = fig4.tables(rows.assign(n_deferred=0, unused=0))
    assert judge_claims("fig4", tables, REPEATED) == []


def test_fig4():
    rows = pd.DataFrame(
        [
            {
                "method": method, "spread": spread, "budget": n / 10, "n": n, "seed": seed,
                "unused": unused, "n_deferred": n - unused,
            }
            for method in ("distorted", "stochastic")
            for spread in (0.2, 0.8)
            for n in (0, 5, 8)
            for seed in range(4)
            for unused in [(spread == 0.8) * (n == 8) * (1 + seed)]
        ]
    )  # fmt: skip
    claims = judge_claims("fig4", fig4.tables(rows), REPEATED)
    assert [c.verdict for c in claims] == ["holds", "holds"]
    assert "in every draw in 4 of 4 cases." in claims[0].numbers
    assert "distorted: 5.5 [3.4, 7.6] of 8" in claims[1].numbers
    rows.loc[(rows["spread"] == 0.2) & (rows["seed"] == 0) & (rows["n"] == 8), "unused"] = 1
    claims = judge_claims("fig4", fig4.tables(rows), REPEATED)
    assert claims[0].verdict == "holds in part"


@pytest.mark.parametrize(
    ("gap", "word"), [(-0.2, "holds"), (0.2, "does not hold"), (0.0, "does not hold")]
)
def test_runtime_is_judged_by_intervals(gap, word):
    noise = np.random.RandomState(0).normal(scale=0.01, size=(2, 6))
    rows = pd.DataFrame(
        [
            {
                "dataset": "stare", "method": method, "seed": seed, "paper_seconds_per_round": 1.0,
                "seconds_per_round": 1.0 + k * gap + noise[k, seed],
            }
            for k, method in enumerate(("distorted", "stochastic"))
            for seed in range(6)
        ]
    )  # fmt: skip
    (claim,) = judge_claims("runtime", runtime.tables(rows), REPEATED)
    assert claim.verdict == word


def test_bounds():
    rows = pd.DataFrame(
        [
            {
                "dataset": dataset, "fit_intercept": offset, "seed": seed, "n_train": 1000,
                "smaller_class": 430, "rho_of_all": share, "paper": 1e-9 * met, "stronger": 1e-5 * met,
                "guarantee": 0.0, "paper_holds": met, "stronger_holds": met,
                "paper_condition": "", "stronger_condition": "",
            }
            for dataset, share in [("messidor", 0.456), ("stare", 0.3324)]
            for offset in (True, False)
            for seed in range(4)
            for met in [seed > 0 or not offset]
        ]
    )  # fmt: skip
    share, condition = judge_claims("bounds", bounds.tables(rows), REPEATED)
    assert share.verdict == "holds in part"  # 0.456 is 0.46, and 0.3324 is 0.33
    assert "Messidor 0.4560 (0.430 of the training samples); Stare 0.3324" in share.numbers
    assert condition.verdict == "does not hold"
    assert "Messidor: met in 3 of 4, mean bound 7.5e-10" in condition.numbers


def fig2_rows(has_boundary):
    return pd.DataFrame(
        [
            {
                "dataset": "linear", "method": "distorted", "budget": budget, "n": 10, "seed": seed,
                "n_deferred": 10, "n_kept": 90, "deferred_wrong": 9, "kept_wrong": 1 + seed,
                "kept_inside": inside + seed, "inside_before": 99,
                "has_boundary": has_boundary(seed),
            }
            for seed in range(4)
            for budget, inside in zip(fig2.BUDGETS, (40, 20 - seed), strict=True)
        ]
    )  # fmt: skip


def test_fig2():
    claims = judge_claims("fig2", fig2.tables(fig2_rows(lambda seed: seed != 2)), REPEATED)
    assert [c.verdict for c in claims] == ["holds", "holds"]
    assert (
        "fewer in 3 of 3 (of 4 draws). In the others it gives the same answer everywhere"
        in claims[1].numbers
    )
    claims = judge_claims("fig2", fig2.tables(fig2_rows(lambda seed: True)), REPEATED)
    assert "fewer in 4 of 4 (of 4 draws)." in claims[1].numbers
    assert "In the others" not in claims[1].numbers


def test_fig2_without_enough_boundaries():
    """One draw with a boundary has no interval, and none has nothing."""
    for count in (0, 1):
        tables = fig2.tables(fig2_rows(lambda seed, count=count: seed < count))
        assert judge_claims("fig2", tables, REPEATED)[1].verdict == "cannot be judged"


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


def test_no_cases_no_verdict():
    assert verdict([], REPEATED) == "cannot be judged"


def test_compact():
    table = pd.DataFrame({"n": [3], "a": [0.12345], "a_low": [0.1], "a_high": [0.2], "b": ["x"]})
    assert compact(table).to_dict("records") == [{"n": "3", "a": "0.123 [0.1, 0.2]", "b": "x"}]


def test_page(tmp_path):
    config = Config.preset("repeated", quick=True, splits=2, n_samples=40, spreads=(0.2,))
    with pytest.raises(FileNotFoundError, match="run `reproduce` first"):
        write_page(tmp_path, config)
    outcome = reproduce("fig4", config, tmp_path)
    other = Config.preset("repeated", quick=True, splits=1)
    reproduce("fig1", other, tmp_path)
    text = write_page(tmp_path, config).read_text()
    assert "## fig4" in text
    assert "![fig4](fig4.png)" in text
    assert "## fig1" not in text  # was made with other settings
    assert "too few for results" in text
    assert "**holds** where the 95% intervals say so" in text
    assert "1.5 times as wide" in text  # sqrt(1 + 2 * 0.4 / 0.6)
    assert "by the sweep with step 0.5" in text
    assert "ΔH is the probability that the human errs. Bands are 95% intervals." in text
    line = outcome.tables[""].iloc[-1]
    assert f"| {line['method']} | {line['spread']:g} | {line['budget']:g} | {line['n']} |" in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for block in tables:  # every line of a table has as many cells
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in block.strip().split("\n")}) == 1


def test_page_says_how_it_was_made(tmp_path):
    def head(**changes):
        config = Config.preset(**{"splits": 2, **changes})
        rows = {"fig1": run_jobs(fig1.jobs(config), fig1.work, tmp_path)}
        return render(rows, config), rows, config

    text, rows, config = head(submodularity_ratio=0.5, alphas=(0.1, 7.0))
    assert "`deferlearn reproduce fig1 --config ...`" in text
    assert "Submodularity ratio: 0.5;" in text
    assert "of 0.1, 7 (in" in text
    other = rows["fig1"].assign(version_numpy="0.0")
    mixed = pd.concat([rows["fig1"].query("seed == 0"), other.query("seed == 1")])
    assert f"numpy {np.__version__} and 0.0" in render({"fig1": mixed}, config)
    assert "reproduce fig1 --quick`" in head(splits=3, **QUICK)[0]
    text = head(protocol="published", splits=1)[0]
    assert "reproduce fig1 --protocol published`" in text
    assert "One split has no intervals" in text
    assert "t-intervals" not in text


QUICK = {name: value for name, value in Config.preset(quick=True) if name != "splits"}
