"""The report for readers: aligned columns for a terminal, HTML tables for a notebook."""

from dataclasses import dataclass
from html import escape
from typing import Any

from deferlearn.evaluation.assistance.factors import Row
from deferlearn.evaluation.assistance.verdict import interval, number, share

# Of two classes, of several, and of grades.
MEASURES = ("sensitivity", "specificity", "macro_f1", "grade_error", "quadratic_kappa")


@dataclass(frozen=True)
class Section:
    """A title and a table of strings, whose rows have the same keys: the heads of the columns."""

    title: str
    rows: list[dict[str, str]]

    @property
    def table(self) -> list[list[str]]:
        """The heads of the columns, and all rows."""
        return [list(self.rows[0]), *(list(row.values()) for row in self.rows)]

    def text(self) -> str:
        """Aligned columns: the first to the left, the others to the right."""
        widths = [max(map(len, column)) for column in zip(*self.table, strict=True)]
        lines = [self.title]
        for first, *others in self.table:
            cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join(["", first.ljust(widths[0]), *cells]).rstrip())
        return "\n".join(lines)

    def html(self) -> str:
        """A caption and a table; all text is escaped."""
        head, *body = (
            "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
            for row, tag in zip(self.table, ["th", *["td"] * len(self.rows)], strict=True)
        )
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead><tbody>"
            + "".join(f"<tr>{row}</tr>" for row in body)
            + "</tbody></table>"
        )


def sections(report: Any) -> list[Section]:
    """The tables of a report; factors and subgroups at the budget that its verdict is about."""
    level, budget = f"{100 * report.confidence:.4g}%", f"at a budget of {share(report.budget)}"
    measure = "error" if report.measure == "error" else "cost of errors"
    factors = [
        {
            "factor": f"{row['factor']:g}",
            "human error": number(row["human_error"]),
            f"team's {report.measure}": number(row[report.measure]),
            "team - machine": interval(row, "difference"),
        }
        for row in report.factors
        if row["budget"] == report.budget
    ]
    subgroups = [
        {
            "": str(row["subgroup"]),
            "cases": str(row["n_cases"]),
            **({"positive": str(row["n_positive"])} if "n_positive" in row else {}),
            **{who: number(row[f"{who}_error"]) for who in ("machine", "human", "team")},
            f"{measure}: team - machine": interval(row, "difference"),
        }
        for row in report.subgroups
        if row["budget"] == report.budget
    ]
    found = [
        Section(
            f"[{level} intervals; the intervals of differences hold at all budgets together]",
            [_team_row(row, report.measure) for row in report.teams],
        )
    ]
    found_shares = [
        {
            "": str(row["class"]),
            "cases": str(row["n_cases"]),
            **{who: _level(row, f"{who}_sensitivity") for who in ("machine", "human", "team")},
        }
        for row in report.sensitivities
        if row["budget"] == report.budget
    ]
    if found_shares:
        found.append(Section(f"Share of each class that is found, {budget}", found_shares))
    if len(factors) > 1:
        title = f"If humans err more or less often on the deferred cases, {budget}"
        found.append(Section(title, factors))
    if subgroups:
        found.append(Section(f"Errors by {report.subgroup_name}, {budget}", subgroups))
    return found


def _team_row(row: Row, measure: str) -> dict[str, str]:
    measures = [name for name in MEASURES if name in row]
    names = ["error", *measures, *(["cost"] if measure == "cost" else [])]
    budget = "all" if row["budget"] is None else share(row["budget"])
    team = row["who"] == "team"
    return {
        "": row["who"] + ("" if team else " alone"),
        "budget": budget.replace(" training", ""),
        "deferred": f"{100 * row['deferred']:.3g}%",
        **{name.replace("_", " "): _level(row, name) for name in names},
        f"{measure}: team - machine": interval(row, "difference") if team else "",
        "team - human": interval(row, "versus_human") if team else "",
    }


def _level(row: Row, name: str) -> str:
    value = number(row[name])
    if value == "-" or f"{name}_low" not in row:
        return value
    return f"{value} [{number(row[f'{name}_low'])}, {number(row[f'{name}_high'])}]"
