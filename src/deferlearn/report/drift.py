"""Whether these cases are like those that the model was fitted on: columns, classes, errors."""

import itertools
from typing import Any

import numpy as np
from scipy import stats

from deferlearn._utils.types import Array, Index
from deferlearn.evaluation.intervals import (
    CONFIDENCE,
    Interval,
    design_effect,
    gap_interval,
    share_interval,
)
from deferlearn.report.beyond import beyond_by_chance
from deferlearn.report.estimates import Row, as_row
from deferlearn.tables.cases import Cases
from deferlearn.tables.decisions import WHO, Decisions, share_with_interval
from deferlearn.tables.summary import bins
from deferlearn.tables.team import TabularTeam

# Bins in which fewer cases are expected are taken together, as the chi-square test needs.
MIN_EXPECTED = 5.0


def drift(
    model: TabularTeam, cases: Cases, group: Index, judged: Decisions, errors: dict[str, Row]
) -> dict[str, Any]:
    """Compare the cases with what the model's card says about its training cases.

    Parameters
    ----------
    model : TabularTeam
        The model.
    cases : Cases
        The cases of the report.
    group : ndarray of int
        The group of each case.
    judged : Decisions
        The answers to the cases.
    errors : dict
        The errors of machine, human and team on these cases.

    Returns
    -------
    found : dict
        With the keys columns, errors and has_summary (whether the card has one). The columns, the one that
        differs most first, have the keys column, spread (the shares of each bin or category, a list of
        dicts with the keys value, training and now), moved (the share of cases that would have to lie
        elsewhere for both spreads to be the same), by_chance (what this share would be on average if
        nothing had changed), p_value (corrected for the number of columns, by Holm's method), supported,
        by_range (whether only the cells beyond the range show it, not the spread),
        new_values, outside and missing (shares of cells with unknown categories, beyond the training cases'
        range, and without a value). The truth counts as a column. The errors have the keys who, training,
        now and difference.
    """
    card = model.card_
    tables = [_classes(card, cases, group)]
    summary = card.get("column_summary")  # not in models of earlier versions
    if summary is not None:
        encoding = model.encoder.encoding_
        codes = model.encoder.codes(cases.features)[0]
        level = (1 - CONFIDENCE) / (1 + len(encoding.columns))
        for place, name in enumerate(encoding.columns):
            categories = encoding.categories.get(name, [])
            tables.append(_column(name, summary[name], codes[:, place], categories, group, level))
    order = np.argsort([row["p_value"] for row in tables], kind="stable")
    largest = 0.0
    for place, row in enumerate(order):  # Holm: the smallest p-value counts for all columns
        largest = max(largest, min(1.0, tables[row]["p_value"] * (len(tables) - place)))
        tables[row] |= {"p_value": largest, "supported": bool(largest < 1 - CONFIDENCE)}
    return {
        "columns": sorted(tables, key=lambda row: -row["moved"]),
        "has_summary": summary is not None,
        "errors": _errors(card, errors, judged, group),
    }


def _classes(card: dict[str, Any], cases: Cases, group: Index) -> Row:
    labels = sorted(card["classes"])
    places = np.searchsorted(labels, cases.truth)
    before = np.array([card["class_counts"][label] for label in labels])
    return {
        "column": "truth", "new_values": 0.0, "outside": 0.0, "missing": 0.0, "by_range": False
    } | _compared(before, places, labels, group)  # fmt: skip


def _column(
    name: str, summary: Row, values: Array, categories: list[str], group: Index, level: float
) -> Row:
    edges = summary.get("edges")
    before = np.array([*summary["counts"], summary["unknown"], summary["missing"]])
    outside = np.zeros(len(values), dtype=bool)
    ranged = edges is not None and summary["least"] is not None
    if ranged:
        outside = (values < summary["least"]) | (values > summary["most"])
    names = categories if edges is None else _spans(edges)
    found = _compared(
        before, bins(values, edges, len(categories)), [*names, "a new category", "missing"], group
    )
    by_range = False
    if ranged:
        # One column, two tests: of the spread, and of both ends of the range.
        beyond = _beyond(values, summary, int(sum(summary["counts"])), group)
        # The spread is what differs if it is clear by itself, however clear the range is.
        by_range = beyond < found["p_value"] and 2.0 * found["p_value"] >= level
        found["p_value"] = min(1.0, 2.0 * min(found["p_value"], beyond))
    return {
        "column": name,
        "new_values": 0.0 if edges is not None else float(np.mean(values < 0)),
        "outside": float(outside.mean()),
        "missing": float(np.isnan(values).mean()),
        "by_range": bool(by_range),
    } | found


def _beyond(values: Array, summary: Row, known: int, group: Index) -> float:
    """How likely as many cells are beyond the training range if nothing has changed.

    Groups count as one: by the number that is furthest out.
    """
    there = ~np.isnan(values)
    if not there.any():
        return 1.0
    new = len(np.unique(group[there]))
    known = round(known * new / int(there.sum()))
    counts = (
        len(np.unique(group[beyond]))
        for beyond in (values < summary["least"], values > summary["most"])
    )
    return min(1.0, 2.0 * min(beyond_by_chance(count, new, known) for count in counts))


def _spans(edges: list[float]) -> list[str]:
    """The bins between edges, in words."""
    if not edges:
        return ["any number"]
    between = [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(edges)]
    return [f"up to {edges[0]:.4g}", *between, f"above {edges[-1]:.4g}"]


def _compared(before: Index, places: Index, names: list[str], group: Index) -> Row:
    """Two spreads over the same bins: how far they are apart, and whether chance explains it.

    The chi-square of grouped cases is divided by the mean design effect of the bins (Rao and Scott).
    """
    now = np.bincount(places, minlength=len(before))
    effects = [design_effect((places == k).astype(np.float64), group) for k in np.flatnonzero(now)]
    inflation = float(np.mean(effects))
    both = np.array([before, now], dtype=np.float64)
    sizes = both.sum(axis=1)
    shares = both / sizes[:, None]
    pooled = both.sum(axis=0) / sizes.sum()
    # Half the mean absolute difference of two independent shares, summed over the bins.
    spread = np.sqrt(inflation * pooled * (1 - pooled) * (1 / sizes).sum())
    used = np.flatnonzero(pooled)
    return {
        "spread": [
            {"value": names[k], "training": float(shares[0, k]), "now": float(shares[1, k])}
            for k in used.tolist()
        ],
        "moved": float(np.abs(shares[0] - shares[1]).sum() / 2),
        "by_chance": float(np.sqrt(2 / np.pi) * spread.sum() / 2),
        "p_value": _p_value(both, inflation),
    }


def _p_value(both: Array, inflation: float) -> float:
    rare = both.sum(axis=0) * both.sum(axis=1).min() / both.sum() < MIN_EXPECTED
    table = np.c_[both[:, ~rare], both[:, rare].sum(axis=1)]
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return 1.0
    found = stats.chi2_contingency(table, correction=False)
    return float(stats.chi2.sf(found.statistic / inflation, found.dof))


def _errors(
    card: dict[str, Any], errors: dict[str, Row], judged: Decisions, group: Index
) -> list[Row]:
    """The errors that were expected after training, and those on these cases.

    Training cases are taken to be as much alike within their groups as these are: both counts are divided
    by the design effect. The differences hold together, by Bonferroni's correction.
    """
    expected = dict.fromkeys(WHO)
    for who, held_out in (card.get("errors") or {}).items():
        expected[who] = (held_out["wrong"], held_out["cases"])
    human = card["human"]
    # If experts are told apart, the human of the card is their majority, and no expert is.
    known_alone = human["error"] is not None and not card.get("experts")
    if expected["human"] is None and known_alone:
        expected["human"] = (round(human["error"] * human["read"]), human["read"])
    known = {who: counts for who, counts in expected.items() if counts is not None}
    level = 1 - (1 - CONFIDENCE) / max(len(known), 1)
    rows = []
    for who, (wrong, n) in known.items():
        inflation = design_effect(
            judged.wrong(who)[judged.read].astype(np.float64), group[judged.read]
        )
        pairs = [(wrong, n), (errors[who]["count"], errors[who]["cases"])]
        before, now = (_interval(*pair, inflation, level) for pair in pairs)
        rows.append(
            {
                "who": who,
                "training": share_with_interval(wrong, n),
                "now": errors[who],
                "difference": as_row(gap_interval(now, before)),
            }
        )
    return rows


def _interval(count: int, n: int, inflation: float, level: float) -> Interval:
    """A share of cases of which several tell as much as one."""
    ends = share_interval(round(count / inflation), max(1, round(n / inflation)), level)
    return Interval(count / n, min(ends[0], count / n), max(ends[1], count / n))
