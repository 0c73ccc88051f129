"""What the metrics are made of: checked input, counts of right and wrong answers, safe ratios."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from deferlearn._utils.checks import plain
from deferlearn.humans.answers import are_numbers


def check_pair(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels and answers as two vectors of one length that can be compared."""
    truth, answer = np.asarray(y_true), np.asarray(y_pred)
    if truth.ndim != 1 or truth.shape != answer.shape:
        raise ValueError(
            f"y_true and y_pred must be two vectors of one length, got the shapes {truth.shape} "
            f"and {answer.shape}"
        )
    if not len(truth):
        raise ValueError("no case to judge: y_true is empty")
    if ("U" in (truth.dtype.kind, answer.dtype.kind)) and truth.dtype.kind != answer.dtype.kind:
        truth, answer = truth.astype(object), answer.astype(object)
    return truth, answer


def count(
    y_true: ArrayLike, y_pred: ArrayLike, pos_label: Any, *, either: bool = False
) -> tuple[int, int, int, int]:
    """True and false positives, false and true negatives; `either` class may be called positive."""
    truth, answer = check_pair(y_true, y_pred)
    try:
        labels = sorted({*truth.tolist(), *answer.tolist()})
    except TypeError:
        raise ValueError("y_true and y_pred mix labels of different types") from None
    if len(labels) > 2:
        raise ValueError(f"two classes are needed, found the labels {labels[:5]}")
    if pos_label is None:
        pos_label = labels[-1] if either else _larger(labels)
    elif len(labels) == 2 and pos_label not in labels:
        raise ValueError(f"pos_label={plain(pos_label)!r} is none of the labels {labels}")
    positive, called = truth == pos_label, answer == pos_label
    return (
        int(np.sum(positive & called)),
        int(np.sum(~positive & called)),
        int(np.sum(positive & ~called)),
        int(np.sum(~positive & ~called)),
    )


def has_larger(labels: ArrayLike) -> bool:
    """Whether the larger label may be taken for the positive one: of numbers, not of words."""
    return are_numbers(np.asarray(labels))


def _larger(labels: list[Any]) -> Any:
    """The positive class where nobody named it."""
    words = not has_larger(labels)
    if len(labels) == 1 and (words or labels[0] not in (-1, 0, 1)):
        raise ValueError(
            f"all labels and answers are {labels[0]!r}, so it is unknown which class is positive: give "
            "pos_label"
        )
    if words:
        raise ValueError(
            f"which of the classes {labels[0]!r} and {labels[1]!r} is positive? The order of the "
            f"alphabet does not tell: give pos_label, such as pos_label={labels[0]!r}"
        )
    return labels[1] if len(labels) == 2 else 1


def ratio(part: int, whole: int, name: str, what: str, zero_division: str | float) -> float:
    """A share, or what `zero_division` says where there is nothing to share."""
    if whole:
        return part / whole
    if isinstance(zero_division, str):
        if zero_division != "warn":
            raise ValueError(
                f"zero_division must be 'warn' or a number, got {plain(zero_division)!r}"
            )
        warnings.warn(
            f"{name} is undefined without {what} and set to 0; zero_division= chooses another value",
            UndefinedMetricWarning,
            stacklevel=4,
        )
        return 0.0
    return float(zero_division)


def check_deferred(deferred: ArrayLike | None, n_samples: int) -> NDArray[np.bool_]:
    """The mask of the deferred cases, where a metric needs it."""
    if deferred is None:
        raise ValueError("deferral_cost has a price: give deferred, the mask of the human's cases")
    mask = np.asarray(deferred)
    if mask.shape != (n_samples,) or mask.dtype != bool:
        raise ValueError(
            f"deferred must be a boolean mask of {n_samples} cases, got the shape {mask.shape} of "
            f"type {mask.dtype}"
        )
    return mask
