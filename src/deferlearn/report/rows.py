"""The table of cases on the page: deferred cases first, plain cells."""

from typing import Any

import numpy as np

from deferlearn.report.cases import ReportCases
from deferlearn.tables.cells import raw_text
from deferlearn.tables.decisions import Decisions

# A page with more rows is slow on a phone.
MAX_ROWS = 2000
MAX_COLUMNS = 30
# Longest text of a cell, and significant digits of a number.
MAX_TEXT = 200
DIGITS = 7

# The report's own columns: heading, and whether the column holds numbers.
OWN = (
    ("case", False),
    ("taken by", False),
    ("deferral score", True),
    ("truth", False),
    ("machine", False),
    ("human", False),
    ("team", False),
    ("who is wrong", False),
)
REASON = ("reason", False)


def case_rows(
    chosen: ReportCases, routed: Any, stored: Decisions, card: dict[str, Any]
) -> dict[str, Any]:
    """The cases as a table: deferred cases first, each part in the order of the stored model's scores.

    Parameters
    ----------
    chosen : ReportCases
        The cases.
    routed : pyarrow.Table
        The answer of `deferlearn.tables.Router`.
    stored : Decisions
        The decisions of the stored model.
    card : dict
        The model's card.

    Returns
    -------
    table : dict
        With the keys columns (dicts with name and number), rows (lists of cells), teamWrong,
        machineWrong and humanWrong (for filters), total, and features_left_out.
    """
    scores = np.array(routed["deferral_score"].to_pylist())
    order = np.lexsort((-scores, ~stored.deferred))[:MAX_ROWS]
    unanswered = stored.deferred & ~stored.read
    wrong = {
        "machine": stored.wrong("machine"),
        "human": stored.wrong("human") & stored.read,
        "team": stored.wrong("team") & ~unanswered,
    }
    human = np.where(stored.read, stored.human, "")
    team = np.where(unanswered, "", stored.team)
    reasons = routed["reason"].to_pylist()
    kinds = list(card["columns"].items())[:MAX_COLUMNS]
    features = [raw_text(chosen.cases.features.column(name)).to_pylist() for name, _ in kinds]
    columns = [*OWN, *((name, kind == "number") for name, kind in kinds), REASON]
    rows = [
        [
            _cut(chosen.names[row]),
            "human" if stored.deferred[row] else "machine",
            float(f"{scores[row]:.4g}") if np.isfinite(scores[row]) else None,
            str(stored.truth[row]),
            str(stored.machine[row]),
            str(human[row]),
            str(team[row]),
            " and ".join(who for who in ("machine", "human") if wrong[who][row]),
            *(
                _number(column[row]) if kind == "number" else _cut(column[row] or "")
                for column, (_, kind) in zip(features, kinds, strict=True)
            ),
            reasons[row],
        ]
        for row in order.tolist()
    ]
    return {
        "columns": [{"name": name, "number": number} for name, number in columns],
        "rows": rows,
        **{f"{who}Wrong": wrong[who][order].tolist() for who in ("team", "machine", "human")},
        "total": len(chosen),
        "features_left_out": len(card["columns"]) - len(kinds),
    }


def _number(text: str | None) -> float | str | None:
    """A number if the text is one, so that it sorts as one; otherwise the text."""
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        return _cut(text)
    if not np.isfinite(value):
        return _cut(text)
    return value if value.is_integer() else float(f"{value:.{DIGITS}g}")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
