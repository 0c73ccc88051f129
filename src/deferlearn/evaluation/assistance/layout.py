"""The report for readers: aligned columns for a terminal, HTML tables for a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from deferlearn.evaluation.assistance.factors import Row
from deferlearn.evaluation.assistance.verdict import interval, number, share


@dataclass(frozen=True)
class Section:
    """A title and a table of strings."""

    title: str
    header: list[str]
    rows: list[list[str]]

    def text(self) -> str:
        """Aligned columns: the first to the left, the others to the right."""
        table = [self.header, *self.rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.header))]
        lines = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        return "\n".join([self.title, *(f"  {line}" for line in lines)])

    def html(self) -> str:
        """A caption and a table; all text is escaped."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )


def sections(report: Any) -> list[Section]:
    """The tables of a report; factors and subgroups at the budget that its verdict is about."""
    parts = [_team_section(report)]
    budget = share(report.budget)
    factors = [row for row in report.factors if row["budget"] == report.budget]
    if len(factors) > 1:
        parts.append(
            Section(
                f"If humans err more or less often on the deferred cases, at a budget of {budget}",
                ["factor", "human error", f"team's {report.measure}", "team - machine"],
                [
                    [
                        f"{row['factor']:g}",
                        number(row["human_error"]),
                        number(row[report.measure]),
                        interval(row, "difference"),
                    ]
                    for row in factors
                ],
            )
        )
    own = [row for row in report.subgroups if row["budget"] == report.budget]
    if own:
        measure = "error" if report.measure == "error" else "cost of errors"
        parts.append(
            Section(
                f"Errors by {report.subgroup_name}, at a budget of {budget}",
                ["", "cases", "positive", "machine", "human", "team", f"{measure}: team - machine"],
                [
                    [
                        str(row["subgroup"]),
                        str(row["n_cases"]),
                        str(row["n_positive"]),
                        *(number(row[f"{who}_error"]) for who in ("machine", "human", "team")),
                        interval(row, "difference"),
                    ]
                    for row in own
                ],
            )
        )
    return parts


def _team_section(report: Any) -> Section:
    level = f"{100 * report.confidence:.4g}%"
    names = ["error", "sensitivity", "specificity"]
    if report.measure == "cost":
        names.append("cost")
    header = ["", "budget", "deferred", *names, f"{report.measure}: team - machine", "team - human"]
    rows = []
    for row in report.teams:
        budget = "all" if row["budget"] is None else share(row["budget"])
        rows.append(
            [
                row["who"] + (" alone" if row["who"] != "team" else ""),
                budget.replace(" training", ""),
                f"{100 * row['deferred']:.3g}%",
                *(_level(row, name) for name in names),
                interval(row, "difference") if "difference" in row else "",
                interval(row, "versus_human") if row["who"] == "team" else "",
            ]
        )
    title = f"[{level} intervals; the intervals of differences hold at all budgets together]"
    return Section(title, header, rows)


def _level(row: Row, name: str) -> str:
    value = number(row[name])
    if value == "-":
        return value
    return f"{value} [{number(row[f'{name}_low'])}, {number(row[f'{name}_high'])}]"
