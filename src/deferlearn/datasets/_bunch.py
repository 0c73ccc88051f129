"""The forms in which every data set is handed over."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from deferlearn._utils.checks import check_flag
from deferlearn._utils.types import Array


class Form(NamedTuple):
    """The form in which the caller wants a data set.

    Attributes
    ----------
    return_X_y : bool
        Whether just ``(data, target)`` is wanted.
    return_X_y_human : bool
        Whether just ``(data, target, human_labels)`` is wanted.
    as_frame : bool
        Whether `data` becomes a DataFrame and every field with one value per row a Series; `frame`
        then holds all of them.
    """

    return_X_y: bool
    return_X_y_human: bool
    as_frame: bool


def deliver(bunch: Bunch, form: Form) -> Any:
    """Hand over a data set as its caller asked: all of it, or a part; as arrays or with pandas.

    Parameters
    ----------
    bunch : Bunch
        With `data`, `target`, `human_labels` and `feature_names` among its fields.
    form : Form
        What the caller wants.

    Returns
    -------
    bunch : Bunch
        Or one of the two tuples.
    """
    for name, value in form._asdict().items():
        check_flag(name, value)
    if form.return_X_y and form.return_X_y_human:
        raise ValueError("return_X_y and return_X_y_human exclude each other: set one of them")
    bunch.frame = None
    if form.as_frame:
        _put_into_frames(bunch)
    if form.return_X_y:
        return bunch.data, bunch.target
    if form.return_X_y_human:
        return bunch.data, bunch.target, bunch.human_labels
    return bunch


def rows_as_groups(data: Array) -> NDArray[np.int64]:
    """Groups where none are known: equal rows are one group, and any other row is its own.

    The groups are numbered in the order in which they appear.
    """
    _, first, inverse = np.unique(data, axis=0, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[inverse.ravel()]


def _put_into_frames(bunch: Bunch) -> None:
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("as_frame=True needs pandas: pip install pandas") from error
    n_rows = len(bunch.data)
    bunch.data = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    for name, value in bunch.items():
        if not isinstance(value, np.ndarray) or len(value) != n_rows:
            continue
        if value.ndim == 1:
            bunch[name] = pd.Series(value, name=name)
        else:
            columns = [f"{name}_{k}" for k in range(value.shape[1])]
            bunch[name] = pd.DataFrame(value, columns=columns)
    parts = [value for value in bunch.values() if isinstance(value, pd.DataFrame | pd.Series)]
    bunch.frame = pd.concat(parts, axis=1)
