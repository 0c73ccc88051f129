"""The numbers in words, no stronger than the intervals allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deferlearn.evaluation.assistance.factors import Row

# Below that, t-intervals of errors are rough whatever is added to them.
FEW = 30


@dataclass(frozen=True)
class Findings:
    """All that the words are made of.

    Attributes
    ----------
    teams, factors, subgroups : list of dict
        The report's tables.
    best_budget : float or int
        Beyond which more deferral is not shown to help.
    min_gain : float
        Gains that are surely smaller count as none.
    measure : {"error", "cost"}
        What is compared.
    n_cases, n_groups, n_left_out : int
        Cases judged, groups of them, and cases that could not be judged.
    column : str
        Name of the subgroups' column.
    panel : str
        Who the human is, such as "the majority of 4 readers".
    always_right : bool
        Whether the human never errs.
    """

    teams: list[Row]
    factors: list[Row]
    subgroups: list[Row]
    best_budget: float | int
    min_gain: float
    measure: str
    n_cases: int
    n_groups: int
    n_left_out: int
    column: str
    panel: str
    always_right: bool

    @property
    def tried(self) -> list[Row]:
        """The team's rows."""
        return [row for row in self.teams if row["who"] == "team"]

    def at(self, budget: Any) -> Row:
        """The team's row at a budget."""
        return next(row for row in self.tried if row["budget"] == budget)


def decide(found: Findings) -> tuple[str, float | int]:
    """Whether assistance pays ("yes", "no", "unclear"), and the budget that this speaks of."""
    least = -found.min_gain
    if found.best_budget > 0 and found.at(found.best_budget)["difference_low"] <= least:
        return "yes", found.best_budget
    promising = min(found.tried, key=lambda row: row["difference"])["budget"]
    surely_less = all(row["difference_low"] > least for row in found.tried)
    return ("no" if surely_less else "unclear"), promising


def sentences(found: Findings, pays: str, budget: float | int) -> list[str]:
    """The verdict."""
    row = found.at(budget)
    first = {"yes": _pays, "no": _does_not, "unclear": _unclear}[pays](found, row)
    return [
        *first,
        *_humans_alone(found, row),
        *_errors_misjudged(found, row),
        *_subgroups(found, budget),
        *_reservations(found),
    ]


def _pays(found: Findings, row: Row) -> list[str]:
    said = [
        f"Assistance pays: at a budget of {share(row['budget'])} {_compared(found, row)}.",
        _why(row),
    ]
    if row["deferred"] == 1.0:
        said.append("There the human takes every case: nothing is left to the machine.")
    elif row is found.tried[-1]:
        said.append("That is the largest budget tried: a larger one may help more.")
    else:
        said.append(
            f"Beyond {share(row['budget'])}, none of the larger budgets tried is shown to help more."
        )
    return said


def _does_not(found: Findings, row: Row) -> list[str]:
    harmful = [share(r["budget"]) for r in found.tried if r["difference_low"] > 0]
    n = len(found.tried)
    which = "the budget tried" if n == 1 else f"any of the {n} budgets tried"
    if found.min_gain:
        start = (
            f"Assistance does not pay: at {which}, the data rule out that the {found.measure} falls by "
            f"{found.min_gain:g} or more."
        )
    else:
        start = f"Assistance does not pay: at {which}, the data rule out that the {found.measure} falls."
    said = [start, f"The best was a budget of {share(row['budget'])}: {_compared(found, row)}."]
    if row["difference_high"] < 0:
        said.append("So there is a gain, but a small one.")
    if harmful:
        said.append(f"The team is shown to do worse than the machine at {_listed(harmful)}.")
    return [*said, _why(row)]


def _unclear(found: Findings, row: Row) -> list[str]:
    said = [
        "It is unclear whether assistance pays. The most promising budget tried is "
        f"{share(row['budget'])}: {_compared(found, row)}."
    ]
    difference, high = row["difference"], row["difference_high"]
    if difference < 0 <= high and -difference >= found.min_gain:
        # Half the width falls with the root of the number of cases.
        needed = found.n_cases * ((high - difference) / -difference) ** 2
        said.append(
            f"If the difference is what it seems to be, it takes about {_rounded(needed)} cases to show "
            f"it; here were {found.n_cases}."
        )
    elif high < 0:
        said.append(
            f"A gain is shown, but not whether any budget gains {found.min_gain:g} or more."
        )
    else:
        said.append(f"A gain of {found.min_gain:g} or more is not ruled out.")
    harmful = [share(r["budget"]) for r in found.tried if r["difference_low"] > 0]
    if harmful:
        said.append(f"The team is shown to do worse than the machine at {_listed(harmful)}.")
    return [*said, _why(row)]


def _compared(found: Findings, row: Row) -> str:
    machine, name = found.teams[0], found.measure
    return (
        f"the {name} is {number(row[name])}, that of the machine alone {number(machine[name])}, a "
        f"difference of {interval(row, 'difference')}"
    )


def _why(row: Row) -> str:
    """Who errs how often on what is handed over."""
    if not row["deferred"]:
        return (
            f"At a budget of {share(row['budget'])} no case at all was deferred: in test parts this "
            "small it is less than one case. Use fewer folds, or a larger budget."
        )
    return (
        f"On the cases handed over there ({100 * row['deferred']:.3g}%) the machine alone errs "
        f"{number(row['machine_error_on_deferred'])}, the human "
        f"{number(row['human_error_on_deferred'])}."
    )


def _humans_alone(found: Findings, row: Row) -> list[str]:
    human, name = found.teams[-1], found.measure
    if row["deferred"] == 1.0:
        return []
    start = f"Humans alone{found.panel}, who would take every case,"
    level = f"({name} {number(human[name])}; team less human {interval(row, 'versus_human')})"
    if row["versus_human_low"] > 0:
        said = [f"{start} would do better still {level}."]
        equal = [r for r in found.tried if r["versus_human_low"] <= 0]
        if equal:
            said.append(
                f"The smallest budget tried at which the team is not shown to be worse than they are "
                f"is {share(equal[0]['budget'])}."
            )
        return said
    if row["versus_human_high"] < 0:
        return [f"{start} would do worse {level}."]
    return [f"{start} are not shown to do better or worse {level}."]


def _errors_misjudged(found: Findings, row: Row) -> list[str]:
    said = []
    rate, factor = row["human_error_on_deferred"], row["break_even_factor"]
    if not row["deferred"]:
        return []
    if factor == 0.0 and row["difference"] > 0:
        said.append("Even with humans who never err on these cases the team would not do better.")
    elif rate == 0.0:
        said.append(
            "Humans made no error on the cases handed over, so that a multiple of their errors says "
            "nothing. About as often as the machine errs there, they may."
        )
    elif factor is not None and row["difference"] < 0:
        said.append(
            f"The difference would be gone if humans erred {factor:.3g} times as often on the cases "
            "they take as in these data."
        )
    rows = [r for r in found.factors if r["budget"] == row["budget"]]
    here = _sign(row)
    for r in rows:
        if r["factor"] != 1.0 and _sign(r) != here and rate > 0.0:
            capped = r["human_error"] < r["factor"] * rate - 1e-9
            always = ", or always on a class" if capped else ""
            becomes = {-1: "a clear gain", 0: "no clear difference", 1: "a clear loss"}[_sign(r)]
            said.append(
                f"If they err {r['factor']:g} times as often{always} ({number(r['human_error'])} instead "
                f"of {number(rate)}), the difference is {interval(r, 'difference')}: {becomes}."
            )
    return said


def _subgroups(found: Findings, budget: float | int) -> list[str]:
    rows = [row for row in found.subgroups if row["budget"] == budget]
    worse = [row for row in rows if row["difference_low"] > 0]
    if not rows:
        return []
    if not worse:
        return [
            f"No subgroup of {found.column!r} is shown to be made worse ({len(rows)} subgroups)."
        ]
    priced = "" if found.measure == "error" else ", in prices of errors,"
    named = "; ".join(
        f"{row['subgroup']!r} ({row['n_cases']} cases) by {interval(row, 'difference')}"
        for row in worse
    )
    said = [
        f"Warning: assistance makes subgroups of {found.column!r} worse{priced} than the machine "
        f"alone: {named}."
    ]
    if len(rows) > 1:
        said.append(
            f"Each of the {len(rows)} subgroups has an interval of its own: of many, one may seem worse "
            "by chance."
        )
    return said


def _reservations(found: Findings) -> list[str]:
    said = []
    empty = [share(row["budget"]) for row in found.tried if not row["deferred"]]
    if empty and len(empty) < len(found.tried):
        said.append(f"At {_listed(empty)} no case was deferred: test parts have too few cases.")
    if found.n_left_out:
        said.append(
            f"{found.n_left_out} cases without a human's answer, or in no test part, were not judged: "
            "all this is about the others."
        )
    if found.always_right:
        said.append(
            "The human's answers equal y in every case judged. If y comes from that very reader, the "
            "comparison is worth nothing."
        )
    if found.n_groups < FEW:
        kind = "cases" if found.n_groups == found.n_cases else "groups of cases"
        said.append(f"With {found.n_groups} {kind} all intervals are rough.")
    return said


def _sign(row: Row) -> int:
    """-1 if the interval of the difference is below 0, 1 if above, else 0."""
    return int(row["difference_low"] > 0) - int(row["difference_high"] < 0)


def share(budget: float | int) -> str:
    """A budget in words."""
    if isinstance(budget, int):
        return f"{budget} training sample{'s' if budget != 1 else ''}"
    return f"{100 * budget:.4g}%"


def number(value: float) -> str:
    """Three digits, which is more than most data can tell."""
    return "-" if value is None or np.isnan(value) else f"{value:.3f}"


def interval(row: Row, name: str) -> str:
    """A number and its interval, with signs."""
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _rounded(n: float) -> str:
    """Two digits."""
    digits = max(int(np.floor(np.log10(n))) - 1, 0)
    return f"{int(np.ceil(n / 10**digits)) * 10**digits:,}"
