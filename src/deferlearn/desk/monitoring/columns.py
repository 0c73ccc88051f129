"""Columns of recent cases against those of the training cases, as far as the model's guard knows them."""

from __future__ import annotations

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.desk.monitoring.figures import Figure, cases
from deferlearn.evaluation.intervals import CONFIDENCE, NOTHING, Interval
from deferlearn.tables.guard import Guard
from deferlearn.tables.shifts import column_distance, shift_notes


def column_shifts(guard: Guard, codes: Array) -> list[Figure]:
    """How far each column has shifted since training.

    Parameters
    ----------
    guard : Guard
        What the training cases looked like.
    codes : ndarray of shape (n_cases, n_columns)
        Recent cases, as `Encoding.codes` reads them.

    Returns
    -------
    figures : list of Figure
        One per column: the largest difference between the shares of values up to some value (of
        categories: of a share), from 0, the same distribution, to 1, no value in common. The sentence
        names the likely cause if the difference is clear, as `deferlearn apply` does.
    """
    n = len(codes)
    notes = shift_notes(guard, codes) if n else []
    figures = []
    for place, name in enumerate(guard.columns):
        if not n or not guard.rows:
            figures.append(Figure("shift", NOTHING, 0, "No case has arrived.", name))
            continue
        distance = column_distance(guard, place, codes[:, place])
        margin = _margin(guard, place, n)
        interval = Interval(distance, max(0.0, distance - margin), min(1.0, distance + margin))
        own = [note for note in notes if repr(name) in note]
        usual = not own and interval.low == 0
        sentence = " ".join(own) or (
            f"Column {name!r} of {cases(n)} differs from training by {distance:.2f} on a scale from 0 to 1 "
            f"(95% interval: {interval.low:.2f} to {interval.high:.2f}), which "
            f"{'may be chance' if usual else 'is more than chance, but little'}."
        )
        figures.append(Figure("shift", interval, n, sentence, name, 0.0, usual))
    return figures


def _margin(guard: Guard, place: int, n: int) -> float:
    """What chance may add to a distance, in training and now, each with half of what is allowed."""
    # Massart's bound of the distance of Kolmogorov and Smirnov; for the shares of categories, and of
    # gaps, it is Hoeffding's for each of them.
    name = guard.columns[place]
    tests = 1 + len(guard.categories[name]) if name in guard.categories else 2
    allowed = np.log(2 * tests / ((1 - CONFIDENCE) / 2)) / 2
    return float(np.sqrt(allowed / guard.rows) + np.sqrt(allowed / n))
