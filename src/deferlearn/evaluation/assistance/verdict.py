"""The numbers in words, no stronger than the intervals allow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deferlearn.evaluation.assistance.factors import Row

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
    first = {"yes": _pays, "no": _does_not_pay, "unclear": _unclear}[pays](found, row)
    harmful = [r["budget"] for r in found.tried if r["difference_low"] > 0]
    if harmful and pays != "yes":
        first.append(f"The team is shown to do worse than the machine at {_budgets(harmful)}.")
    return [
        *first,
        _on_deferred(row),
        *_humans_alone(found, row),
        *_other_human_errors(found, row),
        *_subgroups(found, budget),
        *_reservations(found),
    ]


def _pays(found: Findings, row: Row) -> list[str]:
    if row["deferred"] == 1.0:
        more = "At this budget the human takes every case, and nothing is left to the machine."
    elif row is found.tried[-1]:
        more = "This is the largest budget tried; a larger one may help more."
    else:
        more = "None of the larger budgets tried is shown to help more."
    return [
        f"Assistance pays: at a budget of {share(row['budget'])}, {_compared(found, row)}.",
        more,
    ]


def _does_not_pay(found: Findings, row: Row) -> list[str]:
    n, gain = len(found.tried), found.settings["min_gain"]
    which = "the budget tried" if n == 1 else f"any of the {n} budgets tried"
    by = f" by {gain:g} or more" if gain else ""
    said = [
        f"Assistance does not pay: at {which}, the data rule out that the {found.measure} falls{by}.",
        f"The best budget tried is {share(row['budget'])}, where {_compared(found, row)}.",
    ]
    if row["difference_high"] < 0:
        said.append("This is a gain, but a small one.")
    return said


def _unclear(found: Findings, row: Row) -> list[str]:
    difference, high = row["difference"], row["difference_high"]
    gain, n_cases = found.settings["min_gain"], found.settings["n_cases"]
    if difference < 0 <= high and -difference >= gain:
        # Half the width falls with the square root of the number of cases.
        needed = n_cases * ((high - difference) / -difference) ** 2
        more = (
            f"If the true difference is as large as it seems, about {_rounded(needed)} cases are needed "
            f"to show it; these data have {n_cases}."
        )
    elif high < 0:
        more = f"A gain is shown, but not that any budget gains {gain:g} or more."
    else:
        more = f"A gain of {gain:g} or more is not ruled out."
    return [
        "It is unclear whether assistance pays. The most promising budget tried is "
        f"{share(row['budget'])}, where {_compared(found, row)}.",
        more,
    ]


def _compared(found: Findings, row: Row) -> str:
    machine, name = found.teams[0], found.measure
    return (
        f"the {name} of the team is {number(row[name])} and that of the machine alone "
        f"{number(machine[name])}, a difference of {interval(row, 'difference')}"
    )


def _on_deferred(row: Row) -> str:
    """How often machine and human err on the deferred cases."""
    if not row["deferred"]:
        return (
            f"At a budget of {share(row['budget'])} no case at all was deferred, because it amounts to "
            "less than one case of a test part. Use fewer folds or a larger budget."
        )
    return (
        f"On the deferred cases ({100 * row['deferred']:.3g}% of all), the error of the machine alone is "
        f"{number(row['machine_error_on_deferred'])} and that of the human "
        f"{number(row['human_error_on_deferred'])}."
    )


def _humans_alone(found: Findings, row: Row) -> list[str]:
    if row["deferred"] == 1.0:
        return []
    name, readers = found.measure, found.settings["n_readers"]
    better, worse = row["versus_human_low"] > 0, row["versus_human_high"] < 0
    do = "would do better still" if better else "would do worse"
    if not (better or worse):
        do = "are not shown to do better or worse"
    panel = f" (the majority of {readers} readers)" if readers > 1 else ""
    said = [
        f"Humans alone{panel}, taking every case, {do}: their {name} is "
        f"{number(found.teams[-1][name])}, and the team's {name} minus theirs is "
        f"{interval(row, 'versus_human')}."
    ]
    equal = [share(r["budget"]) for r in found.tried if r["versus_human_low"] <= 0]
    if better and equal:
        said.append(
            "The smallest budget tried at which the team is not shown to be worse than humans alone is "
            f"{equal[0]}."
        )
    return said


def _other_human_errors(found: Findings, row: Row) -> list[str]:
    """What becomes of the difference if humans err more or less often than in these data."""
    if not row["deferred"]:
        return []
    said = []
    rate, factor = row["human_error_on_deferred"], row["break_even_factor"]
    if factor == 0.0 and row["difference"] > 0:
        said.append("Even if humans made no errors on these cases, the team would not do better.")
    elif rate == 0.0:
        said.append(
            "Humans made no errors on the deferred cases, so a multiple of their errors says nothing. "
            "They could err there about as often as the machine before the difference is gone."
        )
    elif factor is not None and row["difference"] < 0:
        said.append(
            f"The gain would be gone if humans erred {factor:.3g} times as often on the deferred cases "
            "as they do in these data."
        )
    for other in found.factors:
        sign, same = _sign(other), other["factor"] == 1.0 or rate == 0.0
        if other["budget"] != row["budget"] or sign == _sign(row) or same:
            continue
        capped = other["human_error"] < other["factor"] * rate - 1e-9
        always = ", or always on one class" if capped else ""
        becomes = {-1: "a clear gain", 0: "no clear difference", 1: "a clear loss"}[sign]
        said.append(
            f"If they err {other['factor']:g} times as often{always} ({number(other['human_error'])} "
            f"instead of {number(rate)}), the difference is {interval(other, 'difference')}: {becomes}."
        )
    return said


def _subgroups(found: Findings, budget: float | int) -> list[str]:
    rows = [row for row in found.subgroups if row["budget"] == budget]
    worse = [row for row in rows if row["difference_low"] > 0]
    name, count = found.subgroup_name, _counted(len(rows), "subgroup")
    if not rows:
        return []
    if not worse:
        return [f"No subgroup of {name!r} is shown to be harmed ({count})."]
    measure = "" if found.measure == "error" else ", by the cost of errors,"
    harmed = "; ".join(
        f"{row['subgroup']!r} ({_counted(row['n_cases'], 'case')}) by {interval(row, 'difference')}"
        for row in worse
    )
    said = [
        f"Warning: the team is worse{measure} than the machine alone for subgroups of {name!r}: "
        f"{harmed}."
    ]
    if len(rows) > 1:
        said.append(
            f"Each of the {count} has an interval of its own: among many, one may look worse by chance."
        )
    return said


def _reservations(found: Findings) -> list[str]:
    settings, said = found.settings, []
    empty = [row["budget"] for row in found.tried if not row["deferred"]]
    if empty and len(empty) < len(found.tried):
        said.append(
            f"At {_budgets(empty)} no case was deferred, because the test parts have too few cases."
        )
    if left_out := settings["n_left_out"]:
        were = "case was" if left_out == 1 else "cases were"
        said.append(
            f"{left_out} {were} not judged, for want of a human's answer or of a test part: all results "
            "are about the others."
        )
    if found.teams[-1]["error"] == 0.0:
        said.append(
            "The human's answers equal y in every case judged. If y was made from these very answers, "
            "the comparison means nothing."
        )
    if (n := settings["n_groups"]) < FEW:
        kind = "case" if n == settings["n_cases"] else "group"
        said.append(f"With {_counted(n, kind)} all intervals are rough.")
    return said


def _sign(row: Row) -> int:
    """-1 if the interval of the difference is below 0, 1 if above, else 0."""
    return int(row["difference_low"] > 0) - int(row["difference_high"] < 0)


def _counted(n: int, noun: str) -> str:
    """The number with its noun, such as "1 case" and "2 cases"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def share(budget: float | int) -> str:
    """A budget in words."""
    if isinstance(budget, int):
        return _counted(budget, "training sample")
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
