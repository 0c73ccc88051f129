"""Inputs that all evaluations share, checked before anything is fitted."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from deferlearn.teams.refits import SplitData


def split_data(
    X: Any, y: Any, human_labels: Any, human_scores: Any, human_loss: Any, groups: Any
) -> SplitData:
    """All that splits are taken from; `fit` gets the most detailed description of the human."""
    if human_labels is None:
        raise ValueError("human_labels is needed: the answers that the team gives on test cases")
    if human_scores is not None and human_loss is not None:
        raise ValueError("give at most one of human_scores and human_loss")
    check_consistent_length(X, y, human_labels, human_scores, human_loss, groups)
    ways = {"human_loss": human_loss, "human_scores": human_scores, "human_labels": human_labels}
    name = next(name for name, value in ways.items() if value is not None)
    return SplitData(X, y, human_labels, {name: ways[name]}, groups)


def check_budgets(budgets: ArrayLike) -> list[float | int]:
    """Fractions, or numbers of samples if all are integers."""
    array = np.asarray(budgets)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iuf":
        raise ValueError(f"budgets must be a vector of numbers, got {budgets!r}")
    whole = array.dtype.kind in "iu"
    if not ((array >= 0) & (whole | (array <= 1))).all():
        raise ValueError(
            "budgets must be fractions between 0 and 1, or numbers of samples if all are integers, "
            f"got {budgets!r}"
        )
    return list(array.tolist())


def check_confidence(confidence: float) -> None:
    """Refuse a level of intervals that does not lie between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
