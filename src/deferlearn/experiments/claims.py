"""What the paper claims in Sections 4 and 5 and its appendix, and whether our tables agree.

The words are in `templates/claims.toml`.
"""

import tomllib
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from deferlearn.experiments.config import Config
from deferlearn.experiments.experiment import Tables
from deferlearn.experiments.fig2 import BUDGETS
from deferlearn.experiments.selecting import ALGORITHMS
from deferlearn.experiments.style import DATASETS
from deferlearn.experiments.verdicts import Cases, Claim, above_zero, below_zero, verdict

# The text of a claim, the cases that agree with it or else its verdict, and the numbers.
Judgement = tuple[str, Cases | str, str]

WORDS = tomllib.loads(
    files("deferlearn.experiments").joinpath("templates/claims.toml").read_text(encoding="utf-8")
)
# "n/|V| >= 0.1": below, so few cases are deferred that no method can differ much from the machine.
SMALLEST_SHARE = 0.1
# Two algorithms are comparable if their errors differ by no more: about three test cases of Messidor's.
COMPARABLE = 0.02
# The paper's range for the share of the smaller class; its ends are the shares of two data sets, rounded.
RHO = (0.33, 0.45)
TRIAGE = ("uncertainty", "predicted")


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


def _words(claim: str, config: Config) -> dict[str, Any]:
    words = WORDS[claim]
    return words | words.get("on_one_split", {}) if config.splits == 1 else words


def _said(
    claim: str, cases: Cases | str, config: Config, lines: pd.DataFrame | None = None, **values: Any
) -> Judgement:
    """A claim in the words of the file, with these values and these lines of a table."""
    words = _words(claim, config)
    each = [
        words["each"].format(**{"title": DATASETS.get(row.get("dataset")), **row})
        for row in ([] if lines is None else lines.to_dict("records"))
    ]
    values["lines"] = "; ".join(each).replace(" [nan, nan]", "")
    return words["text"].format(**values), cases, words["numbers"].format(**values)


def _fig2(tables: Tables, config: Config) -> Iterator[Judgement]:
    means, falls = tables[""], tables["differences"]
    yield _said("deferred_wrong", above_zero(means, "wrong_gap"), config, means)
    # Without an interval where there should be one, nothing can be said.
    judged = falls[falls["kept_inside_low"].notna() | (falls["all_runs"] == 1)]
    some_without = bool((falls["all_runs"] > falls["runs"]).any())
    yield _said(
        "kept_inside",
        below_zero(judged, "kept_inside"),
        config,
        judged,
        budgets=BUDGETS,
        others=WORDS["kept_inside"]["others"] * some_without,
    )


def _fig3(tables: Tables, config: Config) -> Iterator[Judgement]:
    for baseline, name in WORDS["baselines"].items():
        gaps = tables["differences"]
        gaps = gaps[(gaps["minus"] == baseline) & (gaps["budget"] > 0)]
        lines = gaps[gaps["budget"] >= SMALLEST_SHARE]
        ahead = below_zero(lines, "error")
        yield _said(
            "outperform",
            ahead,
            config,
            lines[lines["budget"].isin([lines["budget"].min(), lines["budget"].max()])],
            baseline=name,
            smallest=SMALLEST_SHARE,
            ahead=ahead.sum(),
            behind=above_zero(lines, "error").sum(),
            total=len(lines),
            passing=_passing(gaps) if baseline == "humans" else "",
        )


def _passing(gaps: pd.DataFrame) -> str:
    """From which budget on each algorithm is ahead."""
    said = []
    for method in ALGORITHMS:
        mine = gaps[gaps["method"] == method].sort_values("budget")
        with_interval = mine["error_high"].notna().any()
        template = WORDS["passing"]["each_with_interval" if with_interval else "each"]
        by_mean = _from(mine, mine["error"] < 0)
        by_interval = _from(mine, below_zero(mine, "error"))
        said.append(template.format(method=method, by_mean=by_mean, by_interval=by_interval))
    return " The " + "; the ".join(said) + "."


def _from(lines: pd.DataFrame, ahead: pd.Series) -> str:
    """The smallest budget at and beyond which it is always ahead."""
    words = WORDS["passing"]
    lasting = np.logical_and.accumulate(ahead.to_numpy(dtype=bool)[::-1])[::-1]
    if lasting.any():
        return str(words["from"].format(lines.loc[lasting, "budget"].min()))
    return str(words["not_to_the_end" if ahead.any() else "never"])


def _fig4(tables: Tables, config: Config) -> Iterator[Judgement]:
    lines = tables[""]
    lines = lines[lines["n"] > 0]
    if lines.empty:
        return
    low, high = lines["spread"].min(), lines["spread"].max()
    small = lines[lines["spread"] == low]
    large = lines[(lines["spread"] == high) & (lines["n"] == lines["n"].max())]
    full = small["unused"] == 0
    others = _words("small_human_error", config)["others"]
    yield _said(
        "small_human_error",
        full,
        config,
        small[~full],
        spread=low,
        full=full.sum(),
        total=len(full),
        others="" if full.all() else others,
    )
    yield _said("high_human_error", above_zero(large, "unused"), config, large, spread=high)


def _fig5(tables: Tables, config: Config) -> Iterator[Judgement]:
    gaps = tables["differences"]
    gaps = gaps[gaps["budget"] > 0]
    for policy, mine in gaps.groupby("policy", sort=False):
        name = WORDS["policies"][policy]
        yield _against_triage(mine, name, config)
        for baseline in ("full", "humans"):
            lines = mine[(mine["minus"] == baseline) & (mine["budget"] == mine["budget"].max())]
            yield _said(
                "against_one",
                below_zero(lines, "error"),
                config,
                lines,
                policy=name,
                baseline=WORDS["baselines"][baseline],
                budget=lines["budget"].max(),
            )
        yield _alike(mine[mine["minus"] == "distorted"], name, config)


def _against_triage(gaps: pd.DataFrame, name: str, config: Config) -> Judgement:
    gaps = gaps[gaps["minus"].isin(TRIAGE)]
    counts = pd.DataFrame(
        {
            "dataset": gaps["dataset"],
            "lower": gaps["error"] < 0,
            "ahead": below_zero(gaps, "error"),
            "behind": above_zero(gaps, "error"),
            "cases": True,
        }
    )
    counts = counts.groupby("dataset", sort=False).sum().reset_index()
    most = counts["ahead"] > counts["cases"] / 2
    return _said("against_triage", most, config, counts, policy=name)


def _alike(lines: pd.DataFrame, name: str, config: Config) -> Judgement:
    near = (lines["error_low"] > -COMPARABLE) & (lines["error_high"] < COMPARABLE)
    differ = below_zero(lines, "error") | above_zero(lines, "error")
    return _said(
        "alike",
        near if config.splits > 1 else "cannot be judged from one split",
        config,
        policy=name,
        comparable=COMPARABLE,
        near=near.sum(),
        differ=differ.sum(),
        total=len(lines),
        largest=lines["error"].abs().max(),
    )


def _fig6(tables: Tables, config: Config) -> Iterator[Judgement]:
    changes = tables["differences"]
    start = changes["budget"].min()
    levels = tables[""].groupby("human_weight")["human_error"].mean()
    changes = changes[changes["budget"] > start].assign(
        human_error=changes["human_weight"].map(levels)
    )
    first = None
    for policy, mine in changes.groupby("policy", sort=False):
        last = mine[mine["budget"] == mine["budget"].max()]
        low, high = mine["human_weight"].min(), mine["human_weight"].max()
        at_high = mine[mine["human_weight"] == high]
        errors = mine["error"].tolist()
        alike = first is not None and errors == first[1]
        values = {
            "policy": WORDS["policies"][policy],
            "start": start,
            "note": WORDS["improves"]["note"].format(first[0]) if first and alike else "",
        }
        first = first or (policy, errors)
        yield _said(
            "improves",
            below_zero(last[last["human_weight"] == low], "error"),
            config,
            last,
            end=last["budget"].max(),
            **values,
        )
        yield _said(
            "does_not_help",
            ~below_zero(at_high, "error"),
            config,
            at_high,
            human_error=levels[high],
            **values,
        )


def _runtime(tables: Tables, config: Config) -> Iterator[Judgement]:
    lines, changes = tables[""], tables["differences"]
    wanted = ["seconds_per_round", "paper_seconds_per_round"]
    times = 1000 * lines.pivot(index="dataset", columns="method", values=wanted)
    times.columns = times.columns.map("_".join)
    less = below_zero(changes, "seconds_per_round")
    yield _said("seconds_per_round", less, config, times.loc[changes["dataset"]].reset_index())


def _bounds(tables: Tables, config: Config) -> Iterator[Judgement]:
    lines = tables[""]
    offset = lines[lines["fit_intercept"].astype(bool) & lines["dataset"].isin(config.datasets)]
    inside = offset["rho_of_all"].round(2).between(*RHO)
    yield _said("smaller_class", inside, config, offset, rho=RHO)
    met = (offset["paper_condition_met"] * offset["runs"]).round().astype(int)
    yield _said("conditions", met == offset["runs"], config, offset.assign(met=met))


JUDGES: dict[str, Callable[[Tables, Config], Iterator[Judgement]]] = {
    "fig2": _fig2,
    "fig3": _fig3,
    "fig4": _fig4,
    "fig5": _fig5,
    "fig6": _fig6,
    "runtime": _runtime,
    "bounds": _bounds,
}
