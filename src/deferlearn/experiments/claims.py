"""What the paper claims in Sections 4 and 5, and whether our tables agree.

A claim *holds* where the 95% intervals say so in every case that it speaks of, *holds in part* where
they do in some, and *does not hold* where they do in none; a claim about most cases holds where they do
in more than half of them. With one split there are no intervals: then
means are compared, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.experiment import Tables
from deferlearn.experiments.methods import ALGORITHMS, NEAREST

# "n/|V| >= 0.1": below, so few cases are deferred that no method can differ much from the machine.
SMALLEST_SHARE = 0.1
TRIAGE = ("uncertainty", "predicted")
BASELINE_WORDS = {
    "full": "full automation",
    "humans": "humans alone",
    "uncertainty": "uncertainty triage",
    "predicted": "predicted error triage",
}


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what our numbers say.

    Attributes
    ----------
    experiment : str
        Whose tables judge it.
    text : str
        The claim.
    verdict : str
        "holds", "holds in part", "does not hold", with "on one split" if there was one only.
    numbers : str
        Why.
    """

    experiment: str
    text: str
    verdict: str
    numbers: str


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


def below_zero(lines: pd.DataFrame, value: str) -> pd.Series:
    """Which lines are certainly negative; with one run, which are negative at all."""
    high = lines[f"{value}_high"]
    return (high < 0) | (high.isna() & (lines[value] < 0))


def above_zero(lines: pd.DataFrame, value: str) -> pd.Series:
    """Which lines are certainly positive; with one run, which are positive at all."""
    low = lines[f"{value}_low"]
    return (low > 0) | (low.isna() & (lines[value] > 0))


def verdict(agreeing: Sequence[bool] | pd.Series, config: Config) -> str:
    """The verdict of a claim about several cases."""
    cases = np.asarray(agreeing, dtype=bool)
    word = "holds" if cases.all() else "holds in part" if cases.any() else "does not hold"
    return f"{word}, on one split" if config.splits == 1 else word


def with_interval(line: pd.Series, value: str, digits: int = 3) -> str:
    """A mean with its interval, as "0.123 [0.1, 0.2]"."""
    mean, low, high = (line[f"{value}{end}"] for end in ("", "_low", "_high"))
    if np.isnan(low):
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _fig2(tables: Tables, config: Config) -> list[Claim]:
    means, falls = tables[""], tables["differences"]
    wrong = "; ".join(
        f"{line.dataset}, {line.method}, n/|V| = {line.budget:g}: "
        f"{100 * line.deferred_wrong_share:.0f}% of the deferred against "
        f"{100 * line.kept_wrong_share:.0f}% of the kept"
        for line in means.itertuples()
    )
    inside = "; ".join(
        f"{line['dataset']}, {line['method']}: {with_interval(line, 'kept_inside', 1)}, fewer in "
        f"{line['runs_with_fewer']} of {line['runs']} draws"
        for _, line in falls.iterrows()
    )
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
            verdict(below_zero(falls, "kept_inside"), config),
            f"Kept samples inside the margin, at n/|V| = 0.3 minus at 0.12: {inside}.",
        ),
    ]


def _fig3(tables: Tables, config: Config) -> list[Claim]:
    gaps = tables["differences"]
    gaps = gaps[(gaps["budget"] >= SMALLEST_SHARE) & (gaps["minus"] != "distorted")]
    claims = []
    for baseline in BASELINE_WORDS:
        lines = gaps[gaps["minus"] == baseline]
        ahead = below_zero(lines, "error")
        ends = lines[lines["budget"].isin([lines["budget"].min(), lines["budget"].max()])]
        said = "; ".join(
            f"{line['method']} at {line['budget']:g}: {with_interval(line, 'error')}"
            for _, line in ends.iterrows()
        )
        extra = _passing(lines) if baseline == "humans" else ""
        claims.append(
            Claim(
                "fig3",
                f"Both algorithms outperform {BASELINE_WORDS[baseline]} by large margins "
                f"(n/|V| >= {SMALLEST_SHARE:g}).",
                verdict(ahead, config),
                f"Ahead in {int(ahead.sum())} of {len(lines)} cases. Error minus that of "
                f"{BASELINE_WORDS[baseline]}: {said}.{extra}",
            )
        )
    return claims


def _passing(lines: pd.DataFrame) -> str:
    """From which budget on each algorithm is ahead."""
    said = []
    for method in ALGORITHMS:
        mine = lines[lines["method"] == method].sort_values("budget")
        in_mean = mine.loc[mine["error"] < 0, "budget"]
        surely = mine.loc[below_zero(mine, "error"), "budget"]
        text = f"{method} algorithm passes the humans in the mean "
        text += f"from n/|V| = {in_mean.min():g}" if len(in_mean) else "at no budget"
        if mine["error_high"].notna().any():
            text += ", by its interval "
            text += f"from {surely.min():g}" if len(surely) else "at none"
        said.append(text)
    return " The " + "; the ".join(said) + "."


def _fig4(tables: Tables, config: Config) -> list[Claim]:
    lines = tables[""]
    lines = lines[lines["n"] > 0]
    low, high = lines["spread"].min(), lines["spread"].max()
    small = lines[lines["spread"] == low]
    large = lines[(lines["spread"] == high) & (lines["n"] == lines["n"].max())]
    full = small["unused"] == 0
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
            + (f"; fewer on average: {some}." if some else "."),
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
        of_policy = gaps[gaps["policy"] == policy]
        name = (
            "ranked by |margin|, smallest first"
            if policy == NEAREST
            else "policy of the text: logistic regression on |margin|"
        )
        claims.append(_against_triage(of_policy, name, config))
        claims += [_against(of_policy, b, name, config) for b in ("full", "humans")]
        claims.append(_alike(of_policy, name, config))
    return claims


def _against_triage(gaps: pd.DataFrame, name: str, config: Config) -> Claim:
    lines = gaps[gaps["minus"].isin(TRIAGE)]
    ahead, behind = below_zero(lines, "error"), above_zero(lines, "error")
    lower = lines["error"] < 0
    said = "; ".join(
        f"{style.DATASETS[dataset]}: lower mean in {int(lower[part.index].sum())}, ahead by the "
        f"interval in {int(ahead[part.index].sum())}, behind in {int(behind[part.index].sum())} of "
        f"{len(part)}"
        for dataset, part in lines.groupby("dataset", sort=False)
    )
    word = "holds" if ahead.mean() > 0.5 else "does not hold"
    word += ", on one split" if config.splits == 1 else ""
    return Claim(
        "fig5",
        f"Both algorithms outperform the triage baselines at most automation levels ({name}).",
        word,
        f"Of the comparisons of error by algorithm, budget and triage: {said}.",
    )


def _against(gaps: pd.DataFrame, baseline: str, name: str, config: Config) -> Claim:
    lines = gaps[(gaps["minus"] == baseline) & (gaps["budget"] == gaps["budget"].max())]
    said = "; ".join(
        f"{style.DATASETS[line['dataset']]}, {line['method']}: {with_interval(line, 'error')}"
        for _, line in lines.iterrows()
    )
    return Claim(
        "fig5",
        f"With human assistance the machine outperforms {BASELINE_WORDS[baseline]} ({name}).",
        verdict(below_zero(lines, "error"), config),
        f"Error minus that of {BASELINE_WORDS[baseline]} at n/|V| = {lines['budget'].max():g}: {said}.",
    )


def _alike(gaps: pd.DataFrame, name: str, config: Config) -> Claim:
    lines = gaps[gaps["minus"] == "distorted"]
    differ = below_zero(lines, "error") | above_zero(lines, "error")
    if config.splits == 1:
        said = f"They differ in {int(differ.sum())} of {len(lines)} cases"
        word = "cannot be told from one split"
    else:
        said = f"The interval of the difference excludes zero in {int(differ.sum())} of {len(lines)} cases"
        word = "holds" if differ.mean() <= 0.1 else "holds in part"
    largest = lines["error"].abs().max()
    return Claim(
        "fig5",
        f"The two algorithms perform comparably ({name}).",
        word,
        f"{said}; the largest mean difference of errors is {largest:.3f}.",
    )


def _fig6(tables: Tables, config: Config) -> list[Claim]:
    changes = tables["differences"]
    levels = tables[""].groupby("human_weight")["human_error"].mean()
    claims = []
    for policy in changes["policy"].unique():
        mine = changes[
            (changes["policy"] == policy) & (changes["budget"] == changes["budget"].max())
        ]
        said = "; ".join(
            f"humans err {levels[line['human_weight']]:.2f}: {with_interval(line, 'error')}"
            for _, line in mine.iterrows()
        )
        least, most = mine["human_weight"].min(), mine["human_weight"].max()
        improves = below_zero(mine[mine["human_weight"] == least], "error")
        still = below_zero(mine[mine["human_weight"] == most], "error")
        numbers = (
            f"Change of the error from n = 0 to n/|V| = {mine['budget'].max():g} "
            f"(policy {policy}): {said}."
        )
        claims += [
            Claim(
                "fig6",
                f"With a small human error the performance improves with n (policy {policy}).",
                verdict(improves, config),
                numbers,
            ),
            Claim(
                "fig6",
                f"With a high human error deferring does not help (policy {policy}).",
                verdict(~still, config),
                "As above, its last entry.",
            ),
        ]
    return claims


def _runtime(tables: Tables, config: Config) -> list[Claim]:
    lines = tables[""].set_index(["dataset", "method"])
    faster, said = [], []
    for dataset in lines.index.get_level_values(0).unique():
        slow, fast = lines.loc[(dataset, "distorted")], lines.loc[(dataset, "stochastic")]
        faster.append(fast["seconds_per_round"] < slow["seconds_per_round"])
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
            verdict(faster, config),
            "Distorted and stochastic: " + "; ".join(said) + ".",
        )
    ]


def _bounds(tables: Tables, config: Config) -> list[Claim]:
    lines = tables[""]
    offset = lines[lines["fit_intercept"].astype(bool) & lines["dataset"].isin(config.datasets)]
    rho = "; ".join(f"{style.DATASETS[x.dataset]} {x.rho:.2f}" for x in offset.itertuples())
    met = "; ".join(
        f"{style.DATASETS[x.dataset]}: met in {100 * x.paper_condition_met:.0f}% of the splits, "
        f"bound {x.paper:.1e}, stronger ones {x.stronger:.1e}"
        for x in offset.itertuples()
    )
    return [
        Claim(
            "bounds",
            "The share of the smaller class is in (0.33, 0.45), so that n/|V| <= 0.2 meets the conditions "
            "of the theorem for linear machines with offset.",
            verdict(offset["paper_condition_met"] == 1.0, config),
            f"Shares of the smaller class: {rho}. Condition of the theorem, n <= V_min - s*: {met}.",
        )
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
