"""What the metrics of a positive class are made of: counts of answers, safe ratios, checked costs."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from deferlearn._utils.checks import is_number, plain
from deferlearn._utils.types import Array, Bools
from deferlearn.metrics.labels import check_pair, find_classes, has_larger


def count(
    y_true: ArrayLike, y_pred: ArrayLike, pos_label: Any, classes: ArrayLike | None = None
) -> tuple[int, int, int, int]:
    """True negatives, false positives, false negatives and true positives.

    With more than two classes, all but `pos_label` are negative.
    """
    truth, answer = check_pair(y_true, y_pred)
    labels = find_classes(classes, y_true=truth, y_pred=answer)
    if pos_label is None:
        pos_label = _larger(labels)
    elif len(labels) > 1 and pos_label not in labels:
        raise ValueError(f"pos_label={plain(pos_label)!r} is none of the labels {labels[:10]}")
    kinds = 2 * (truth == pos_label) + (answer == pos_label)
    tn, fp, fn, tp = np.bincount(kinds, minlength=4).tolist()
    return tn, fp, fn, tp


def _larger(labels: list[Any]) -> Any:
    """The positive class if no pos_label is given."""
    if len(labels) > 2:
        raise ValueError(
            f"the metric needs two classes, but found the labels {labels[:5]}: give pos_label, the class "
            "to compare with all others, or use a metric for many classes, such as 'macro_f1'"
        )
    words = not has_larger(labels)
    if len(labels) == 1 and (words or labels[0] not in (-1, 0, 1)):
        raise ValueError(
            f"all labels and answers are {labels[0]!r}, so the positive class is unknown: give "
            "pos_label"
        )
    if words:
        raise ValueError(
            f"which of the classes {labels[0]!r} and {labels[1]!r} is positive? Words have no larger "
            f"one: give pos_label, such as pos_label={labels[0]!r}"
        )
    return labels[1] if len(labels) == 2 else 1


def ratio(part: float, whole: float, name: str, what: str, zero_division: str | float) -> float:
    """The share ``part / whole``, or the value of `zero_division` if `whole` is 0."""
    if whole:
        return part / whole
    if not isinstance(zero_division, str):
        return float(zero_division)
    if zero_division != "warn":
        raise ValueError(f"zero_division must be 'warn' or a number, got {plain(zero_division)!r}")
    warnings.warn(
        f"{name} is undefined without {what} and set to 0; zero_division= chooses another value",
        UndefinedMetricWarning,
        stacklevel=4,
    )
    return 0.0


def shares(parts: NDArray[Any], wholes: NDArray[Any]) -> Array:
    """Many ratios ``part / whole``, NaN where the whole is 0."""
    return np.divide(parts, wholes, out=np.full(len(wholes), np.nan), where=wholes > 0)


def check_costs(**costs: Any) -> None:
    """Refuse costs, given by their names, that are no finite numbers >= 0."""
    for name, cost in costs.items():
        if not is_number(cost) or cost < 0:
            raise ValueError(f"{name} must be a finite number >= 0, got {plain(cost)!r}")


def check_deferred(deferred: ArrayLike | None, n_samples: int) -> Bools:
    """The mask of the deferred cases, for a metric that needs it."""
    if deferred is None:
        raise ValueError("deferral_cost is not 0, so give deferred, the mask of the human's cases")
    mask = np.asarray(deferred)
    if mask.shape != (n_samples,) or mask.dtype != bool:
        raise ValueError(
            f"deferred must be a boolean mask of {n_samples} cases, got the shape {mask.shape} and "
            f"the type {mask.dtype}"
        )
    return mask
