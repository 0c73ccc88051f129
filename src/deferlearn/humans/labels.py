"""True labels: the two classes, and labels to judge by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from deferlearn._utils.types import Array


def binary_labels(y: Any) -> tuple[NDArray[Any], Array]:
    """The two classes of y, and y as signs: +1 for the second class."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > 2 or kind != "binary":
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{kind}: y has the {len(classes)} classes {classes.tolist()[:5]}."
        )
    if len(classes) < 2:
        raise ValueError(
            f"y has 1 class, {classes.tolist()[0]!r}; two classes are needed to tell apart."
        )
    return classes, np.where(codes == 1, 1.0, -1.0)


def check_truth(y: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """True labels as an array; a label that is none of the classes is an error."""
    truth = np.asarray(y)
    unknown = ~np.isin(truth, classes)
    if unknown.any():
        raise ValueError(
            f"y holds {truth[unknown].tolist()[0]!r}, but the model knows only the classes "
            f"{classes.tolist()}; use the labels it was fitted on."
        )
    return truth
