"""The table of cases: those that humans take first, as plain cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn.report.cases import ReportCases
from deferlearn.report.decisions import Decisions
from deferlearn.tables.cells import raw_text

# A page with more of them is slow on a phone, and nobody reads them all.
MAX_ROWS = 2000
MAX_COLUMNS = 30
# Of a cell: free text may be a novel, and computed numbers have digits that nobody reads.
MAX_TEXT = 200
DIGITS = 7

# Of the report's own columns: heading, and whether it is a number.
OWN = (
    ("case", False),
    ("taken by", False),
    ("deferral score", True),
    ("truth", False),
    ("machine", False),
    ("human", False),
    ("team", False),
    ("who errs", False),
)
REASON = ("reason", False)


def case_rows(
    chosen: ReportCases, routed: Any, stored: Decisions, card: dict[str, Any]
) -> dict[str, Any]:
    """The cases in the order of their need for a human, as the stored model sees it.

    Parameters
    ----------
    chosen : ReportCases
        The cases.
    routed : pyarrow.Table
        From `deferlearn.tables.Router`.
    stored : Decisions
        What the stored model decides.
    card : dict
        The model's.

    Returns
    -------
    table : dict
        With the keys columns (dicts with name and number), rows (lists of cells), teamWrong,
        machineWrong and humanWrong (for filters), total, and features_left_out.
    """
    scores = np.array(routed["deferral_score"].to_pylist())
    order = np.lexsort((-scores, ~stored.deferred))[:MAX_ROWS]
    team = np.where(stored.deferred & ~stored.read, "", stored.team)
    team_wrong = stored.wrong("team") & ~(stored.deferred & ~stored.read)
    human = np.where(stored.read, stored.human, "")
    wrong = {who: stored.wrong(who) for who in ("machine", "human")}
    reasons = routed["reason"].to_pylist()
    kinds = list(card["columns"].items())
    features = [raw_text(chosen.cases.features.column(name)).to_pylist() for name, _ in kinds]
    features, kinds = features[:MAX_COLUMNS], kinds[:MAX_COLUMNS]
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
            _who_errs(row, wrong, stored.read),
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
        "teamWrong": team_wrong[order].tolist(),
        "machineWrong": stored.wrong("machine")[order].tolist(),
        "humanWrong": (stored.read & stored.wrong("human"))[order].tolist(),
        "total": len(chosen),
        "features_left_out": len(card["columns"]) - len(kinds),
    }


def _who_errs(row: int, wrong: dict[str, NDArray[np.bool_]], read: NDArray[np.bool_]) -> str:
    names = [who for who, own in wrong.items() if own[row] and (who == "machine" or read[row])]
    return " and ".join(names)


def _number(text: str | None) -> float | str | None:
    """A number if it is one, so that it sorts as such; else what stands there."""
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
