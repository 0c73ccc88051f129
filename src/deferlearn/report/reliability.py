"""Whether the machine's probabilities can be taken at their word, and how its scores part two classes."""

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import roc_curve

from deferlearn._utils.types import Array, Bools, Index, Labels
from deferlearn.evaluation.intervals import auc_interval
from deferlearn.metrics import reliability_curve
from deferlearn.report.estimates import Family, Row, paired, share
from deferlearn.tables.decisions import WHO, Decisions

# Bins have about this many cases, and there are at most so many bins.
CASES_PER_BIN, MAX_BINS = 30, 10
# With fewer groups of a class, the area under the curve says nothing.
AUC_CASES = 10
# More points of a curve cannot be seen.
MAX_POINTS = 200
# What the intervals say about the machine's probabilities.
TOO_SURE, NOT_SURE_ENOUGH, IN_PARTS, AGREES = "too sure", "not sure enough", "in parts", "agrees"


def reliability(sure: Array, right: Bools, group: Index) -> Row | None:
    """How sure the machine is of its answers, and how often they are right.

    Parameters
    ----------
    sure : ndarray of shape (n,)
        The probability of the machine's answer, as the machine sees it.
    right : ndarray of bool of shape (n,)
        Whether the answer is right.
    group : ndarray of int of shape (n,)
        The group of each case.

    Returns
    -------
    found : dict or None
        With the keys answer, says (the mean probability), right (the share), difference (right minus
        says), and bins: a list of dicts with the keys low, high, cases, says, right and difference, whose
        intervals hold together. None if the machine has no probabilities.
    """
    if not np.isfinite(sure).all():
        return None
    # Differences that nobody would see must not part cases: some machines are almost equally sure of many.
    sure = sure.round(3)
    n_bins = int(np.clip(len(sure) // CASES_PER_BIN, 1, MAX_BINS))
    curve = reliability_curve(
        right, sure, classes=[False, True], n_bins=n_bins, strategy="quantile"
    )
    places = np.searchsorted(curve.edges[1:-1], sure, side="left")
    parts = [places == place for place in range(len(curve.counts)) if curve.counts[place]]
    away = right - sure
    family = Family(group)
    for part in parts:
        family.within(away, part)
    bins: list[Row] = [
        {
            "low": float(sure[part].min()),
            "high": float(sure[part].max()),
            "cases": int(part.sum()),
            "says": float(sure[part].mean()),
            "right": share(right[part], group[part]),
            "difference": row,
        }
        for part, row in zip(parts, family.rows(), strict=True)
    ]
    overall = paired(away, group)
    answer = AGREES
    if overall["supported"]:
        answer = TOO_SURE if overall["difference"] < 0 else NOT_SURE_ENOUGH
    elif any(row["difference"]["supported"] for row in bins):
        answer = IN_PARTS
    return {
        "answer": answer,
        "says": float(sure.mean()),
        "right": share(right, group),
        "difference": overall,
        "bins": bins,
    }


def operating_points(
    judged: Decisions, group: Index, classes: Sequence[str], decision: Array | None
) -> Row | None:
    """How many cases of the rarer class are found, for how many false alarms; for two classes only.

    Parameters
    ----------
    judged : Decisions
        The answers of machine and human, and who decides.
    group : ndarray of int
        The group of each case.
    classes : sequence of str
        The classes in their order.
    decision : ndarray of shape (n_cases,) or None
        Decision values of the machine, positive for the second class. None leaves the curve out.

    Returns
    -------
    found : dict or None
        With the keys positive and negative (the classes), points (for machine, human and team the shares
        found and false_alarms), curve (what the machine would do at other thresholds, as pairs of false
        alarms and found; None without decision values) and auc (the area under the curve with the keys
        share, lower and upper; None without a curve or with too few groups). None if a class has no case
        that was read, or with more than two classes.
    """
    read, own = judged.read, group[judged.read]
    truth = judged.truth[read]
    counts = {label: int((truth == label).sum()) for label in classes}
    if len(classes) != 2 or not all(counts.values()):
        return None
    positive = min(classes, key=lambda label: counts[label])
    (negative,) = (label for label in classes if label != positive)
    ill = truth == positive
    points = {}
    for who in WHO:
        said: Labels = getattr(judged, who)[read] == positive
        points[who] = {
            "found": share(said[ill], own[ill]),
            "false_alarms": share(said[~ill], own[~ill]),
        }
    curve = auc = None
    if decision is not None and np.isfinite(decision).all():
        scores = decision[read] * (1.0 if positive == classes[1] else -1.0)
        alarms, found, _ = roc_curve(ill, scores)
        kept = np.unique(np.linspace(0, len(alarms) - 1, MAX_POINTS).round().astype(int))
        curve = [[float(alarms[k]), float(found[k])] for k in kept]
        if min(len(np.unique(own[ill])), len(np.unique(own[~ill]))) >= AUC_CASES:
            area = auc_interval(scores, ill, own)
            auc = {"share": area.mean, "lower": area.low, "upper": area.high}
    return {
        "positive": positive, "negative": negative, "points": points, "curve": curve, "auc": auc
    }  # fmt: skip
