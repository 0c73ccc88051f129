"""What the paper claims in Sections 4 and 5 and its appendix, and whether our tables agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from deferlearn.experiments.config import Config
from deferlearn.experiments.experiment import Tables
from deferlearn.experiments.fig2 import BUDGETS
from deferlearn.experiments.methods import NEAREST
from deferlearn.experiments.selecting import ALGORITHMS
from deferlearn.experiments.style import DATASETS
from deferlearn.experiments.verdicts import (
    Cases,
    Claim,
    above_zero,
    below_zero,
    verdict,
    with_interval,
)

# The text of a claim, the cases that agree with it or else its verdict, and the numbers.
Judgement = tuple[str, Cases | str, str]

# "n/|V| >= 0.1": below, so few cases are deferred that no method can differ much from the machine.
SMALLEST_SHARE = 0.1
# Two algorithms are comparable if their errors differ by no more: about three test cases of Messidor's.
COMPARABLE = 0.02
# The paper's range for the share of the smaller class.
RHO = (0.33, 0.45)
TRIAGE = ("uncertainty", "predicted")
BASELINE_WORDS = {
    "full": "full automation",
    "humans": "humans alone",
    "uncertainty": "uncertainty triage",
    "predicted": "predicted error triage",
}
POLICY_WORDS = {
    "margin": "policy of the text: logistic regression on |margin|",
    NEAREST: "ranked by |margin|, smallest first",
}


def judge_claims(name: str, tables: Tables, config: Config) -> list[Claim]:
    """All claims that an experiment's tables can judge.

    Parameters
    ----------
    name : str
        The experiment's id.
    tables : dict of str to DataFrame
        Its tables.
    config : Config
        Its settings.

    Returns
    -------
    claims : list of Claim
    """
    if name not in JUDGES:
        return []
    return [
        Claim(name, text, cases if isinstance(cases, str) else verdict(cases, config), numbers)
        for text, cases, numbers in JUDGES[name](tables, config)
    ]


def _each(lines: pd.DataFrame, say: Callable[[pd.Series], str]) -> str:
    """What is to be said about each line, in a row."""
    return "; ".join(say(line) for _, line in lines.iterrows())


def _fig2(tables: Tables, config: Config) -> Iterator[Judgement]:
    means, falls = tables[""], tables["differences"]
    wrong = _each(
        means,
        lambda line: (
            f"{line['dataset']}, {line['method']}, n/|V| = {line['budget']:g}: "
            f"{100 * line['deferred_wrong_share']:.0f}% of the deferred against "
            f"{100 * line['kept_wrong_share']:.0f}% of the kept"
        ),
    )
    yield (
        "The samples deferred are those more prone to be misclassified by the machine.",
        above_zero(means, "wrong_gap"),
        f"Samples that the machine gets wrong: {wrong}.",
    )
    # Without an interval where there should be one, nothing can be said.
    judged = falls[falls["kept_inside_low"].notna() | (falls["all_runs"] == 1)]
    inside = _each(
        judged,
        lambda line: (
            f"{line['dataset']}, {line['method']}: {with_interval(line, 'kept_inside', 1)}, fewer in "
            f"{line['runs_with_fewer']} of {line['runs']} (of {line['all_runs']} draws)"
        ),
    )
    others = " In the others it gives the same answer everywhere, and all are on its margin."
    yield (
        "The more samples are deferred, the fewer of the kept ones lie inside the margin.",
        below_zero(judged, "kept_inside"),
        f"Kept samples inside the margin, at n/|V| = {BUDGETS[1]:g} minus at {BUDGETS[0]:g}, in draws "
        f"where the machine has a boundary: {inside}."
        + others
        * bool((falls["all_runs"] > falls["runs"]).any()),
    )


def _fig3(tables: Tables, config: Config) -> Iterator[Judgement]:
    for baseline, words in BASELINE_WORDS.items():
        gaps = tables["differences"]
        gaps = gaps[(gaps["minus"] == baseline) & (gaps["budget"] > 0)]
        lines = gaps[gaps["budget"] >= SMALLEST_SHARE]
        ahead, behind = below_zero(lines, "error"), above_zero(lines, "error")
        said = _each(
            lines[lines["budget"].isin([lines["budget"].min(), lines["budget"].max()])],
            lambda line: f"{line['method']} at {line['budget']:g}: {with_interval(line, 'error')}",
        )
        yield (
            f"Both algorithms outperform {words} by large margins (n/|V| >= {SMALLEST_SHARE:g}).",
            ahead,
            f"Ahead in {int(ahead.sum())}, behind in {int(behind.sum())} of {len(lines)} cases. "
            f"Error minus that of {words}: {said}."
            + (_passing(gaps) if baseline == "humans" else ""),
        )


def _passing(gaps: pd.DataFrame) -> str:
    """From which budget on each algorithm is ahead."""
    said = []
    for method in ALGORITHMS:
        mine = gaps[gaps["method"] == method].sort_values("budget")
        text = f"{method} algorithm is ahead {_from(mine, mine['error'] < 0)}"
        if mine["error_high"].notna().any():
            text += f" in the mean, {_from(mine, below_zero(mine, 'error'))} by its interval"
        said.append(text)
    return " The " + "; the ".join(said) + "."


def _from(lines: pd.DataFrame, ahead: pd.Series) -> str:
    """The smallest budget at and beyond which it is always ahead."""
    lasting = np.logical_and.accumulate(ahead.to_numpy(dtype=bool)[::-1])[::-1]
    if lasting.any():
        return f"from n/|V| = {lines.loc[lasting, 'budget'].min():g} on"
    return "at no budget" if not ahead.any() else "at some budgets, not at the largest,"


def _fig4(tables: Tables, config: Config) -> Iterator[Judgement]:
    lines = tables[""]
    lines = lines[lines["n"] > 0]
    if lines.empty:
        return
    low, high = lines["spread"].min(), lines["spread"].max()
    small = lines[lines["spread"] == low]
    large = lines[(lines["spread"] == high) & (lines["n"] == lines["n"].max())]
    full = small["unused"] == 0
    average = " on average" if config.splits > 1 else ""
    some = _each(
        small[~full],
        lambda line: f"{line['method']} at n = {line['n']}: {line['n_deferred']:.1f}",
    )
    yield (
        "With a small human error both algorithms defer |S| = n samples.",
        full,
        f"At ΔH = {low:g}, |S| = n in every draw in {int(full.sum())} of {len(full)} cases"
        + (f"; in the others fewer{average}: {some}." if some else "."),
    )
    many = _each(
        large,
        lambda line: f"{line['method']}: {with_interval(line, 'n_deferred', 1)} of {line['n']}",
    )
    yield (
        "With a higher human error they defer fewer, |S| < n.",
        above_zero(large, "unused"),
        f"At ΔH = {high:g} and the largest n: {many}.",
    )


def _fig5(tables: Tables, config: Config) -> Iterator[Judgement]:
    gaps = tables["differences"]
    gaps = gaps[gaps["budget"] > 0]
    for policy, mine in gaps.groupby("policy", sort=False):
        name = POLICY_WORDS[policy]
        yield _against_triage(mine, name, config)
        for baseline in ("full", "humans"):
            yield _against(mine, baseline, name)
        yield _alike(mine, name, config)


def _against_triage(gaps: pd.DataFrame, name: str, config: Config) -> Judgement:
    lines = gaps[gaps["minus"].isin(TRIAGE)]
    most, said = [], []
    for dataset, part in lines.groupby("dataset", sort=False):
        ahead, behind = below_zero(part, "error"), above_zero(part, "error")
        most.append(ahead.mean() > 0.5)
        text = f"{DATASETS[dataset]}: "
        if config.splits > 1:
            text += f"lower mean in {int((part['error'] < 0).sum())}, by the interval "
        said.append(text + f"ahead in {ahead.sum()} and behind in {behind.sum()} of {len(part)}")
    return (
        f"Both algorithms outperform the triage baselines at most automation levels ({name}).",
        most,
        f"Of the comparisons of error by algorithm, budget and triage: {'; '.join(said)}.",
    )


def _against(gaps: pd.DataFrame, baseline: str, name: str) -> Judgement:
    lines = gaps[(gaps["minus"] == baseline) & (gaps["budget"] == gaps["budget"].max())]
    said = _each(
        lines,
        lambda x: f"{DATASETS[x['dataset']]}, {x['method']}: {with_interval(x, 'error')}",
    )
    words = BASELINE_WORDS[baseline]
    return (
        f"With human assistance the machine outperforms {words} ({name}).",
        below_zero(lines, "error"),
        f"Error minus that of {words} at n/|V| = {lines['budget'].max():g}: {said}.",
    )


def _alike(gaps: pd.DataFrame, name: str, config: Config) -> Judgement:
    text = f"The two algorithms perform comparably ({name})."
    lines = gaps[gaps["minus"] == "distorted"]
    largest = f"the largest difference of {'mean ' * (config.splits > 1)}errors is"
    largest += f" {lines['error'].abs().max():.3f}."
    if config.splits == 1:
        return text, "cannot be judged from one split", f"Of {len(lines)} cases {largest}"
    near = (lines["error_low"] > -COMPARABLE) & (lines["error_high"] < COMPARABLE)
    differ = below_zero(lines, "error") | above_zero(lines, "error")
    return (
        text,
        near,
        f"The interval of the difference of errors is within ±{COMPARABLE:g} in {near.sum()} of "
        f"{len(lines)} cases, and excludes zero in {differ.sum()}; {largest}",
    )


def _fig6(tables: Tables, config: Config) -> Iterator[Judgement]:
    changes = tables["differences"]
    start = changes["budget"].min()
    changes = changes[changes["budget"] > start]
    levels = tables[""].groupby("human_weight")["human_error"].mean()
    first = None
    for policy, mine in changes.groupby("policy", sort=False):
        last = mine[mine["budget"] == mine["budget"].max()]
        low, high = mine["human_weight"].min(), mine["human_weight"].max()
        at_high = mine[mine["human_weight"] == high]
        errors, name = mine["error"].tolist(), POLICY_WORDS[policy]
        alike = first is not None and errors == first[1]
        note = f' The same errors as with the policy "{first[0]}".' if first and alike else ""
        first = first or (policy, errors)
        by_level = _each(
            last,
            lambda x: f"humans err {levels[x['human_weight']]:.2f}: {with_interval(x, 'error')}",
        )
        yield (
            f"With a small human error the performance improves with n ({name}).",
            below_zero(last[last["human_weight"] == low], "error"),
            f"Change of the error from n/|V| = {start:g} to {last['budget'].max():g}: "
            f"{by_level}.{note}",
        )
        by_budget = _each(at_high, lambda x: f"{x['budget']:g}: {with_interval(x, 'error')}")
        yield (
            f"With a high human error deferring does not help ({name}).",
            ~below_zero(at_high, "error"),
            f"Change of the error from n/|V| = {start:g} where humans err {levels[high]:.2f}, to "
            f"{by_budget}.{note}",
        )


def _runtime(tables: Tables, config: Config) -> Iterator[Judgement]:
    lines = tables[""].set_index(["dataset", "method"])
    said = []
    for dataset in tables["differences"]["dataset"]:
        slow, fast = (1000 * lines.loc[(dataset, method)] for method in ALGORITHMS)
        said.append(
            f"{DATASETS[dataset]}: {slow['seconds_per_round']:.2f} and "
            f"{fast['seconds_per_round']:.2f} ms (paper: {slow['paper_seconds_per_round']:.0f} and "
            f"{fast['paper_seconds_per_round']:.0f} ms on its machine)"
        )
    yield (
        "A round of the stochastic algorithm takes less time than one of the deterministic.",
        below_zero(tables["differences"], "seconds_per_round"),
        f"Distorted and stochastic: {'; '.join(said)}.",
    )


def _bounds(tables: Tables, config: Config) -> Iterator[Judgement]:
    lines = tables[""]
    offset = lines[lines["fit_intercept"].astype(bool) & lines["dataset"].isin(config.datasets)]
    yield (
        f"The share of the smaller class is in ({RHO[0]:g}, {RHO[1]:g}).",
        (offset["rho"] > RHO[0]) & (offset["rho"] < RHO[1]),
        "Of the training samples: "
        + _each(offset, lambda x: f"{DATASETS[x['dataset']]} {x['rho']:.3f}")
        + ".",
    )
    mean = "mean " if config.splits > 1 else ""
    met = _each(
        offset,
        lambda x: (
            f"{DATASETS[x['dataset']]}: met in {round(x['paper_condition_met'] * x['runs'])} of "
            f"{x['runs']}, {mean}bound {x['paper']:.1e}, by the stronger ones {x['stronger']:.1e}"
        ),
    )
    yield (
        "n/|V| <= 0.2 meets the conditions of the theorem for linear machines with offset.",
        offset["paper_condition_met"] == 1.0,
        "The condition is n <= V_min - s*. Splits in which it is met (in the others the bound is 0): "
        f"{met}.",
    )


JUDGES: dict[str, Callable[[Tables, Config], Iterator[Judgement]]] = {
    "fig2": _fig2,
    "fig3": _fig3,
    "fig4": _fig4,
    "fig5": _fig5,
    "fig6": _fig6,
    "runtime": _runtime,
    "bounds": _bounds,
}
