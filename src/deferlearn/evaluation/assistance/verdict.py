"""The numbers in words, no stronger than the intervals allow. The sentences are in `verdict.toml`."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from deferlearn._utils.words import counted
from deferlearn.evaluation.assistance.factors import Row

Say = Callable[..., str]

WORDS: dict[str, str] = tomllib.loads(
    files("deferlearn.evaluation.assistance").joinpath("verdict.toml").read_text(encoding="utf-8")
)
# With fewer independent cases or groups, the intervals are rough whatever is added to them.
FEW = 30


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the verdict rests on; the attributes are those of `AssistanceReport`."""

    teams: list[Row]
    factors: list[Row]
    best_budget: float | int
    measure: str
    subgroups: list[Row] = field(default_factory=list)
    subgroup_name: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def tried(self) -> list[Row]:
        """The team's rows, from the smallest budget to the largest."""
        return [row for row in self.teams if row["who"] == "team"]

    def at(self, budget: Any) -> Row:
        """The team's row at a budget."""
        return next(row for row in self.tried if row["budget"] == budget)


def decide(found: Findings) -> tuple[str, float | int]:
    """Whether assistance pays ("yes", "no", "unclear"), and the budget that this is about."""
    least = -found.settings["min_gain"]
    if found.best_budget > 0 and found.at(found.best_budget)["difference_low"] <= least:
        return "yes", found.best_budget
    promising = min(found.tried, key=lambda row: row["difference"])["budget"]
    surely_less = all(row["difference_low"] > least for row in found.tried)
    return ("no" if surely_less else "unclear"), promising


def sentences(found: Findings, pays: str, budget: float | int) -> list[str]:
    """The verdict, sentence by sentence."""
    row = found.at(budget)
    say = _speaker(found, row)
    first = {"yes": _pays, "no": _does_not_pay, "unclear": _unclear}[pays](found, row, say)
    harmful = [r["budget"] for r in found.tried if r["difference_low"] > 0]
    if harmful and pays != "yes":
        first.append(say("harmful", budgets=_budgets(harmful)))
    return [
        *first,
        say("on_deferred" if row["deferred"] else "no_case_deferred"),
        *_humans_alone(found, row, say),
        *_other_human_errors(found, row, say),
        *_subgroups(found, budget, say),
        *_reservations(found, say),
    ]


def _speaker(found: Findings, row: Row) -> Say:
    """A function that fills in a sentence by its name, about a row of the team."""
    values = {
        **found.settings,
        **row,
        "budget": share(row["budget"]),
        "percent": 100 * row["deferred"],
        "measure": found.measure,
        "team": row[found.measure],
        "machine": found.teams[0][found.measure],
        "human": found.teams[-1][found.measure],
    }
    values["compared"] = WORDS["compared"].format(**values)
    return lambda name, **more: WORDS[name].format(**values | more)


def _pays(found: Findings, row: Row, say: Say) -> list[str]:
    if row["deferred"] == 1.0:
        more = "takes_every_case"
    else:
        more = "largest_budget" if row is found.tried[-1] else "no_larger_budget"
    return [say("pays"), say(more)]


def _does_not_pay(found: Findings, row: Row, say: Say) -> list[str]:
    n, gain = len(found.tried), found.settings["min_gain"]
    which = "the budget tried" if n == 1 else f"any of the {n} budgets tried"
    by = f" by {gain:g} or more" if gain else ""
    said = [say("does_not_pay", which=which, by=by), say("best_budget")]
    return [*said, say("small_gain")] if row["difference_high"] < 0 else said


def _unclear(found: Findings, row: Row, say: Say) -> list[str]:
    difference, high = row["difference"], row["difference_high"]
    if difference < 0 <= high and -difference >= found.settings["min_gain"]:
        # Half the width falls with the square root of the number of cases.
        needed = found.settings["n_cases"] * ((high - difference) / -difference) ** 2
        more = say("cases_needed", needed=_rounded(needed))
    else:
        more = say("gain_not_shown" if high < 0 else "gain_not_ruled_out")
    return [say("unclear"), more]


def _humans_alone(found: Findings, row: Row, say: Say) -> list[str]:
    if row["deferred"] == 1.0:
        return []
    better, worse = row["versus_human_low"] > 0, row["versus_human_high"] < 0
    do = "would do better still" if better else "would do worse"
    if not (better or worse):
        do = "are not shown to do better or worse"
    panel = say("panel") if found.settings["n_readers"] > 1 else ""
    said = [say("humans_alone", do=do, panel=panel)]
    equal = [share(r["budget"]) for r in found.tried if r["versus_human_low"] <= 0]
    return [*said, say("as_good_as_humans", smallest=equal[0])] if better and equal else said


def _other_human_errors(found: Findings, row: Row, say: Say) -> list[str]:
    """What becomes of the difference if humans err more or less often than in these data."""
    if not row["deferred"]:
        return []
    said = []
    rate, factor = row["human_error_on_deferred"], row["break_even_factor"]
    if factor == 0.0 and row["difference"] > 0:
        said.append(say("no_gain_without_errors"))
    elif rate == 0.0:
        said.append(say("no_human_errors"))
    elif factor is not None and row["difference"] < 0:
        said.append(say("break_even"))
    for other in found.factors:
        sign, same = _sign(other), other["factor"] == 1.0 or rate == 0.0
        if other["budget"] != row["budget"] or sign == _sign(row) or same:
            continue
        capped = other["human_error"] < other["factor"] * rate - 1e-9
        always = ", or always on one class" if capped else ""
        becomes = {-1: "a clear gain", 0: "no clear difference", 1: "a clear loss"}[sign]
        said.append(say("other_factor", **other, rate=rate, always=always, becomes=becomes))
    return said


def _subgroups(found: Findings, budget: float | int, say: Say) -> list[str]:
    rows = [row for row in found.subgroups if row["budget"] == budget]
    worse = [row for row in rows if row["difference_low"] > 0]
    column, count = found.subgroup_name, counted(len(rows), "subgroup")
    if not rows:
        return []
    if not worse:
        return [say("no_subgroup_harmed", column=column, count=count)]
    by_cost = "" if found.measure == "error" else ", by the cost of errors,"
    harmed = [say("subgroup", **row, count=counted(row["n_cases"], "case")) for row in worse]
    said = [say("subgroups_harmed", by_cost=by_cost, column=column, harmed="; ".join(harmed))]
    return [*said, say("many_subgroups", count=count)] if len(rows) > 1 else said


def _reservations(found: Findings, say: Say) -> list[str]:
    settings, said = found.settings, []
    empty = [row["budget"] for row in found.tried if not row["deferred"]]
    if empty and len(empty) < len(found.tried):
        said.append(say("budgets_without_deferral", budgets=_budgets(empty)))
    if left_out := settings["n_left_out"]:
        said.append(say("left_out", were="case was" if left_out == 1 else "cases were"))
    if found.teams[-1]["error"] == 0.0:
        said.append(say("human_equals_truth"))
    if (n := settings["n_groups"]) < FEW:
        kind = "case" if n == settings["n_cases"] else "group"
        said.append(say("few_cases", count=counted(n, kind)))
    return said


def _sign(row: Row) -> int:
    """-1 if the interval of the difference is below 0, 1 if above, else 0."""
    return int(row["difference_low"] > 0) - int(row["difference_high"] < 0)


def share(budget: float | int) -> str:
    """A budget in words."""
    if isinstance(budget, int):
        return counted(budget, "training sample")
    return f"{100 * budget:.4g}%"


def number(value: float) -> str:
    """Three decimals, which is more than most data can tell."""
    return "-" if value is None or np.isnan(value) else f"{value:.3f}"


def interval(row: Row, name: str) -> str:
    """A number and its interval, with signs."""
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


def _budgets(budgets: list[float | int]) -> str:
    """One budget or several, such as "budgets of 5%, 10% and 20%"."""
    *others, last = (share(budget) for budget in budgets)
    return f"budgets of {', '.join(others)} and {last}" if others else f"a budget of {last}"


def _rounded(n: float) -> str:
    """Two digits, rounded up."""
    digits = max(int(np.floor(np.log10(n))) - 1, 0)
    return f"{int(np.ceil(n / 10**digits)) * 10**digits:,}"
