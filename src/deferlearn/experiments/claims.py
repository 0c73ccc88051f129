"""What the paper claims in Sections 4 and 5 and its appendix, and whether our tables agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.experiment import Tables
from deferlearn.experiments.fig2 import BUDGETS
from deferlearn.experiments.methods import NEAREST
from deferlearn.experiments.selecting import ALGORITHMS
from deferlearn.experiments.verdicts import Claim, above_zero, below_zero, verdict, with_interval

# "n/|V| >= 0.1": below, so few cases are deferred that no method can differ much from the machine.
SMALLEST_SHARE = 0.1
# Two algorithms are comparable if their errors differ by no more: about three test cases of Messidor's.
COMPARABLE = 0.02
# What the paper says of the share of the smaller class.
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
        What it was run with.

    Returns
    -------
    claims : list of Claim
    """
    judge = JUDGES.get(name)
    return [] if judge is None else judge(tables, config)


def _fig2(tables: Tables, config: Config) -> list[Claim]:
    means, falls = tables[""], tables["differences"]
    wrong = "; ".join(
        f"{line.dataset}, {line.method}, n/|V| = {line.budget:g}: "
        f"{100 * line.deferred_wrong_share:.0f}% of the deferred against "
        f"{100 * line.kept_wrong_share:.0f}% of the kept"
        for line in means.itertuples()
    )
    # Without an interval where there should be one, nothing can be said.
    judged = falls[falls["kept_inside_low"].notna() | (falls["all_runs"] == 1)]
    inside = "; ".join(
        f"{line['dataset']}, {line['method']}: {with_interval(line, 'kept_inside', 1)}, fewer in "
        f"{line['runs_with_fewer']} of {line['runs']} (of {line['all_runs']} draws)"
        for _, line in judged.iterrows()
    )
    without = int((falls["all_runs"] - falls["runs"]).max())
    return [
        Claim(
            "fig2",
            "The samples deferred are those more prone to be misclassified by the machine.",
            verdict(above_zero(means, "wrong_gap"), config),
            f"Samples that the machine gets wrong: {wrong}.",
        ),
        Claim(
            "fig2",
            "The more samples are deferred, the fewer of the kept ones lie inside the margin.",
            verdict(below_zero(judged, "kept_inside"), config),
            f"Kept samples inside the margin, at n/|V| = {BUDGETS[1]:g} minus at {BUDGETS[0]:g}, in draws "
            f"where the machine has a boundary: {inside}."
            + " In the others it answers alike everywhere, and all are on its margin."
            * (without > 0),
        ),
    ]


def _fig3(tables: Tables, config: Config) -> list[Claim]:
    claims = []
    for baseline, words in BASELINE_WORDS.items():
        gaps = tables["differences"]
        gaps = gaps[(gaps["minus"] == baseline) & (gaps["budget"] > 0)]
        lines = gaps[gaps["budget"] >= SMALLEST_SHARE]
        ahead, behind = below_zero(lines, "error"), above_zero(lines, "error")
        ends = lines[lines["budget"].isin([lines["budget"].min(), lines["budget"].max()])]
        said = "; ".join(
            f"{line['method']} at {line['budget']:g}: {with_interval(line, 'error')}"
            for _, line in ends.iterrows()
        )
        claims.append(
            Claim(
                "fig3",
                f"Both algorithms outperform {words} by large margins (n/|V| >= {SMALLEST_SHARE:g}).",
                verdict(ahead, config),
                f"Ahead in {int(ahead.sum())}, behind in {int(behind.sum())} of {len(lines)} cases. "
                f"Error minus that of {words}: {said}."
                + (_passing(gaps) if baseline == "humans" else ""),
            )
        )
    return claims


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


def _fig4(tables: Tables, config: Config) -> list[Claim]:
    lines = tables[""]
    lines = lines[lines["n"] > 0]
    if lines.empty:
        return []
    low, high = lines["spread"].min(), lines["spread"].max()
    small = lines[lines["spread"] == low]
    large = lines[(lines["spread"] == high) & (lines["n"] == lines["n"].max())]
    full = small["unused"] == 0
    average = " on average" if config.splits > 1 else ""
    some = "; ".join(
        f"{line['method']} at n = {line['n']}: {line['n_deferred']:.1f}"
        for _, line in small[~full].iterrows()
    )
    many = "; ".join(
        f"{line['method']}: {with_interval(line, 'n_deferred', 1)} of {line['n']}"
        for _, line in large.iterrows()
    )
    return [
        Claim(
            "fig4",
            "With a small human error both algorithms defer |S| = n samples.",
            verdict(full, config),
            f"At ΔH = {low:g}, |S| = n in every draw in {int(full.sum())} of {len(full)} cases"
            + (f"; in the others fewer{average}: {some}." if some else "."),
        ),
        Claim(
            "fig4",
            "With a higher human error they defer fewer, |S| < n.",
            verdict(above_zero(large, "unused"), config),
            f"At ΔH = {high:g} and the largest n: {many}.",
        ),
    ]


def _fig5(tables: Tables, config: Config) -> list[Claim]:
    gaps = tables["differences"]
    gaps = gaps[gaps["budget"] > 0]
    claims = []
    for policy in gaps["policy"].unique():
        of_policy, name = gaps[gaps["policy"] == policy], POLICY_WORDS[policy]
        claims.append(_against_triage(of_policy, name, config))
        claims += [_against(of_policy, b, name, config) for b in ("full", "humans")]
        claims.append(_alike(of_policy, name, config))
    return claims


def _against_triage(gaps: pd.DataFrame, name: str, config: Config) -> Claim:
    lines = gaps[gaps["minus"].isin(TRIAGE)]
    most, said = [], []
    for dataset, part in lines.groupby("dataset", sort=False):
        ahead, behind = below_zero(part, "error"), above_zero(part, "error")
        most.append(ahead.mean() > 0.5)
        text = f"{style.DATASETS[dataset]}: "
        if config.splits > 1:
            text += f"lower mean in {int((part['error'] < 0).sum())}, by the interval "
        said.append(text + f"ahead in {ahead.sum()} and behind in {behind.sum()} of {len(part)}")
    return Claim(
        "fig5",
        f"Both algorithms outperform the triage baselines at most automation levels ({name}).",
        verdict(most, config),
        f"Of the comparisons of error by algorithm, budget and triage: {'; '.join(said)}.",
    )


def _against(gaps: pd.DataFrame, baseline: str, name: str, config: Config) -> Claim:
    lines = gaps[(gaps["minus"] == baseline) & (gaps["budget"] == gaps["budget"].max())]
    said = "; ".join(
        f"{style.DATASETS[line['dataset']]}, {line['method']}: {with_interval(line, 'error')}"
        for _, line in lines.iterrows()
    )
    words = BASELINE_WORDS[baseline]
    return Claim(
        "fig5",
        f"With human assistance the machine outperforms {words} ({name}).",
        verdict(below_zero(lines, "error"), config),
        f"Error minus that of {words} at n/|V| = {lines['budget'].max():g}: {said}.",
    )


def _alike(gaps: pd.DataFrame, name: str, config: Config) -> Claim:
    lines = gaps[gaps["minus"] == "distorted"]
    largest = f"the largest difference of {'mean ' * (config.splits > 1)}errors is"
    largest += f" {lines['error'].abs().max():.3f}"
    if config.splits == 1:
        word, said = "cannot be told from one split", f"Of {len(lines)} cases {largest}"
    else:
        near = (lines["error_low"] > -COMPARABLE) & (lines["error_high"] < COMPARABLE)
        word = verdict(near, config)
        differ = below_zero(lines, "error") | above_zero(lines, "error")
        said = (
            f"The interval of the difference of errors is within ±{COMPARABLE:g} in {near.sum()} of "
            f"{len(lines)} cases, and excludes zero in {differ.sum()}; {largest}"
        )
    text = f"The two algorithms perform comparably ({name})."
    return Claim("fig5", text, word, f"{said}.")


def _fig6(tables: Tables, config: Config) -> list[Claim]:
    changes = tables["differences"]
    start = changes["budget"].min()
    changes = changes[changes["budget"] > start]
    if changes.empty:
        return []
    levels = tables[""].groupby("human_weight")["human_error"].mean()
    first = changes["policy"].iloc[0]
    claims = []
    for policy in changes["policy"].unique():
        mine = changes[changes["policy"] == policy]
        last = mine[mine["budget"] == mine["budget"].max()]
        low, high = mine["human_weight"].min(), mine["human_weight"].max()
        at_high = mine[mine["human_weight"] == high]
        by_level = "; ".join(
            f"humans err {levels[line['human_weight']]:.2f}: {with_interval(line, 'error')}"
            for _, line in last.iterrows()
        )
        by_budget = "; ".join(
            f"{line['budget']:g}: {with_interval(line, 'error')}" for _, line in at_high.iterrows()
        )
        other = changes.loc[changes["policy"] == first, "error"]
        alike = policy != first and (mine["error"].to_numpy() == other.to_numpy()).all()
        note = f' The same errors as with the policy "{first}".' if alike else ""
        name = POLICY_WORDS[policy]
        claims += [
            Claim(
                "fig6",
                f"With a small human error the performance improves with n ({name}).",
                verdict(below_zero(last[last["human_weight"] == low], "error"), config),
                f"Change of the error from n/|V| = {start:g} to {last['budget'].max():g}: "
                f"{by_level}.{note}",
            ),
            Claim(
                "fig6",
                f"With a high human error deferring does not help ({name}).",
                verdict(~below_zero(at_high, "error"), config),
                f"Change of the error from n/|V| = {start:g} where humans err {levels[high]:.2f}, to "
                f"{by_budget}.{note}",
            ),
        ]
    return claims


def _runtime(tables: Tables, config: Config) -> list[Claim]:
    lines = tables[""].set_index(["dataset", "method"])
    said = []
    for dataset in tables["differences"]["dataset"]:
        slow, fast = (lines.loc[(dataset, method)] for method in ALGORITHMS)
        said.append(
            f"{style.DATASETS[dataset]}: {1000 * slow['seconds_per_round']:.2f} and "
            f"{1000 * fast['seconds_per_round']:.2f} ms (paper: "
            f"{1000 * slow['paper_seconds_per_round']:.0f} and "
            f"{1000 * fast['paper_seconds_per_round']:.0f} ms on its machine)"
        )
    return [
        Claim(
            "runtime",
            "A round of the stochastic algorithm takes less time than one of the deterministic.",
            verdict(below_zero(tables["differences"], "seconds_per_round"), config),
            "Distorted and stochastic: " + "; ".join(said) + ".",
        )
    ]


def _bounds(tables: Tables, config: Config) -> list[Claim]:
    lines = tables[""]
    offset = lines[lines["fit_intercept"].astype(bool) & lines["dataset"].isin(config.datasets)]
    rho = "; ".join(f"{style.DATASETS[x.dataset]} {x.rho:.3f}" for x in offset.itertuples())
    mean = "mean " if config.splits > 1 else ""
    met = "; ".join(
        f"{style.DATASETS[x.dataset]}: met in {round(x.paper_condition_met * x.runs)} of {x.runs}, "
        f"{mean}bound {x.paper:.1e}, by the stronger ones {x.stronger:.1e}"
        for x in offset.itertuples()
    )
    return [
        Claim(
            "bounds",
            f"The share of the smaller class is in ({RHO[0]:g}, {RHO[1]:g}).",
            verdict((offset["rho"] > RHO[0]) & (offset["rho"] < RHO[1]), config),
            f"Of the training samples: {rho}.",
        ),
        Claim(
            "bounds",
            "n/|V| <= 0.2 meets the conditions of the theorem for linear machines with offset.",
            verdict(offset["paper_condition_met"] == 1.0, config),
            f"The condition is n <= V_min - s*. Splits in which it is met (in the others the bound "
            f"is 0): {met}.",
        ),
    ]


JUDGES: dict[str, Callable[[Tables, Config], list[Claim]]] = {
    "fig2": _fig2,
    "fig3": _fig3,
    "fig4": _fig4,
    "fig5": _fig5,
    "fig6": _fig6,
    "runtime": _runtime,
    "bounds": _bounds,
}
