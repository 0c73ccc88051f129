"""The list of cases on the page: why first, one line per case, and the rest of the case behind it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array
from deferlearn._utils.units import ERRORS, Unit, unit_of
from deferlearn.report.cases import ReportCases
from deferlearn.tables.cells import raw_text
from deferlearn.tables.decisions import Decisions

# A page with more rows is slow on a phone.
MAX_ROWS = 2000
MAX_COLUMNS = 30
# Longest text of a cell, and significant digits of a number.
MAX_TEXT = 200
DIGITS = 7

# What became of a case.
RIGHT, WRONG, FIXED, SPOILT, NO_ANSWER = "right", "wrong", "fixed", "spoilt", "no answer"

# The columns of the list, and those that a case shows when it is opened; whether they hold numbers.
SHOWN = (
    ("why", False),
    ("result", False),
    ("case", False),
    ("truth", False),
    ("machine", False),
    ("sure", True),
    ("human", False),
)
OPENED = (
    ("taken by", False),
    ("team's answer", False),
    ("deferral score", True),
    ("training scores below it, of 1,000", True),
)
# The same, if experts are told apart.
FIRST = ("expert, or the first in line", False)


def case_rows(
    chosen: ReportCases,
    routed: Any,
    stored: Decisions,
    card: dict[str, Any],
    sure: Array,
    expected: tuple[Array, Array] | None = None,
    experts: NDArray[Any] | None = None,
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
    sure : ndarray
        The probability of the machine's answer; NaN if it is not known.
    expected : pair of ndarray or None, default=None
        Expected losses of machine and human, if the model has learned them.
    experts : ndarray of shape (n_cases,) or None, default=None
        If experts are told apart: the one to whom each case goes, or would go first.

    Returns
    -------
    table : dict
        With the keys columns (dicts with name, number and shown), rows (lists of cells), teamWrong,
        machineWrong and humanWrong (for filters), takers (who takes cases), total, and
        features_left_out.
    """
    scores = np.array(routed["deferral_score"].to_pylist())
    order = np.lexsort((-scores, ~stored.deferred))[:MAX_ROWS]
    unanswered = stored.deferred & ~stored.read
    wrong = {
        "machine": stored.wrong("machine"),
        "human": stored.wrong("human") & stored.read,
        "team": stored.wrong("team") & ~unanswered,
    }
    below = np.searchsorted(card["score_percentiles"], scores, side="left") - 1
    kinds = list(card["columns"].items())[:MAX_COLUMNS]
    features = [raw_text(chosen.cases.features.column(name)).to_pylist() for name, _ in kinds]
    humans = np.full(len(chosen), "human") if experts is None else experts
    takers = np.where(stored.deferred, humans, "machine").tolist()
    opened = OPENED if experts is None else (*OPENED, FIRST)
    columns = [*opened, *((name, kind == "number") for name, kind in kinds)]
    why = _reasons(
        takers, humans.tolist(), scores, card["deferral_threshold"], expected, unit_of(card)
    )
    results = _results(stored, unanswered)
    rows = [
        [
            why[row],
            str(results[row]),
            _cut(chosen.names[row]),
            str(stored.truth[row]),
            str(stored.machine[row]),
            round(1000 * float(sure[row])) if np.isfinite(sure[row]) else None,
            str(stored.human[row]) if stored.read[row] else "",
            _cut(str(takers[row])),
            "" if unanswered[row] else str(stored.team[row]),
            float(f"{scores[row]:.4g}") if np.isfinite(scores[row]) else None,
            10 * max(int(below[row]), 0),
            *([] if experts is None else [_cut(str(experts[row]))]),
            *(
                _number(column[row]) if kind == "number" else _cut(column[row] or "")
                for column, (_, kind) in zip(features, kinds, strict=True)
            ),
        ]
        for row in order.tolist()
    ]
    return {
        "columns": [
            *({"name": name, "number": number, "shown": True} for name, number in SHOWN),
            *({"name": name, "number": number, "shown": False} for name, number in columns),
        ],
        "rows": rows,
        **{f"{who}Wrong": wrong[who][order].tolist() for who in ("team", "machine", "human")},
        "takers": [
            _cut(str(name)) for name in [*dict.fromkeys(sorted(humans.tolist())), "machine"]
        ],
        "total": len(chosen),
        "features_left_out": len(card["columns"]) - len(kinds),
    }


def _results(stored: Decisions, unanswered: NDArray[Any]) -> NDArray[Any]:
    """What became of each case, compared with what the machine alone would have made of it."""
    machine, team = stored.wrong("machine"), stored.wrong("team")
    found = np.where(team, np.where(machine, WRONG, SPOILT), np.where(machine, FIXED, RIGHT))
    return np.where(unanswered, NO_ANSWER, found)


def _reasons(
    takers: list[str],
    humans: list[str],
    scores: Array,
    threshold: float | None,
    expected: tuple[Array, Array] | None,
    unit: Unit,
) -> list[str]:
    """Why a human or the machine takes each case, in a few words."""
    if expected is not None:
        rows = zip(takers, humans, *(losses.tolist() for losses in expected), strict=True)
        if unit != ERRORS:  # no shares of cases
            return [
                f"{_cut(who)}: {unit.expected} of the machine {machine:.2g}, of "
                f"{'a human' if name == 'human' else _cut(name)} {human:.2g}"
                for who, name, machine, human in rows
            ]
        return [
            f"{_cut(who)}: the machine would err on {1000 * machine:.0f}, "
            f"{'a human' if name == 'human' else _cut(name)} on {1000 * human:.0f} of 1,000"
            for who, name, machine, human in rows
        ]
    if threshold is None:
        return [f"{who}: the model sends every case there" for who in takers]
    return [
        f"{who}: score {score:.4g}, limit {threshold:.4g}"
        for who, score in zip(takers, scores.tolist(), strict=True)
    ]


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
