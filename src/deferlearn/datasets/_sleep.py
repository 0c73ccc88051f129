"""Nights of sleep, each staged by five experts and six networks: real human answers."""

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from deferlearn._utils.checks import is_whole, plain
from deferlearn._utils.types import Array, Bools
from deferlearn.datasets._bunch import Form, deliver

N_EXPERTS = 5
STAGE_NAMES = ("Wake", "N1", "N2", "N3", "REM")
NOT_SCORED, REM = -1, 4

# Of the table's text, however it is compressed.
TABLE_SHA256 = "17609c39ffd5ff2812afdf65de4731c1d24073423254ecf200a0f9e41b846ff8"

Stages = NDArray[np.int8]


class _Table(NamedTuple):
    """The shipped table, one row per epoch.

    Attributes
    ----------
    experts : ndarray of shape (n_epochs, 5)
        Stages by the experts, `NOT_SCORED` in gaps.
    networks : ndarray of shape (n_epochs, 6)
        Stages by the networks.
    network_names : tuple of str
        Names of the networks.
    night : ndarray of shape (n_epochs,)
        Running number of the night.
    epoch : ndarray of shape (n_epochs,)
        Number of the epoch in the recording of its night.
    night_names : tuple of str
        Identifiers of the nights.
    sets : ndarray of str of shape (n_nights,)
        The set of each night.
    """

    experts: Stages
    networks: Stages
    network_names: tuple[str, ...]
    night: NDArray[np.int64]
    epoch: NDArray[np.int64]
    night_names: tuple[str, ...]
    sets: NDArray[np.str_]


def load_sleep(
    *,
    expert: int = 1,
    classes: Literal["rem", "stages"] = "rem",
    context: int = 2,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load nights of sleep, staged by five experts and six networks: one expert plays the human.

    Real answers of real experts, shipped with the package (77,901 epochs
    of 30 seconds in 80 nights, from the Dreem Open Datasets). The features are what six published
    networks say of an epoch and of those around it. The target is the opinion of the other four
    experts. Nights are the groups of every split: epochs of one night resemble each other.

    Parameters
    ----------
    expert : {1, 2, 3, 4, 5}, default=1
        Who plays the human. Experts have the numbers that the publishers gave them, set by set. Report
        results over all five.
    classes : {'rem', 'stages'}, default='rem'
        The target: REM (+1) against the rest (-1), or the stages Wake 0, N1 1, N2 2, N3 3 and REM 4. It
        is what most of the other four experts say, of those who scored the epoch. Epochs on which
        their votes are tied are left out; `n_ties` says how many.
    context : int, default=2
        How many epochs before and after an epoch its features describe. They never belong to another
        night: beyond the ends of a night, features are zero.
    return_X_y : bool, default=False
        Whether to return just ``(data, target)``.
    return_X_y_human : bool, default=False
        Whether to return just ``(data, target, human_labels)``.
    as_frame : bool, default=False
        Whether to return pandas objects; `frame` then holds all columns.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        With `data` of shape (n_epochs, 30 * (2 * context + 1)), `target`, `human_labels` (NaN where the
        expert did not score the epoch), `groups` (the 80 nights), `answers` (n_epochs, 5), those of all
        five experts, `networks` (n_epochs, 6), the stage that each of the six networks says, `epochs`
        (their numbers in the recording), `sets` ('dodh' healthy, 'dodo' apnoea), `rows` (their numbers in
        the shipped table), `n_ties`, `feature_names`, `target_names`, `network_names`, `night_names`,
        `frame` and `DESCR`, the data card.
    tuple
        Instead, if `return_X_y` or `return_X_y_human`.

    Notes
    -----
    The data are derived from the Dreem Open Datasets (Guillot et al. 2020), from the repository
    dreem-learning-evaluation (MIT licence, shipped beside the table). `DESCR` gives the full reference,
    which belongs into what you publish with them.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.datasets import load_sleep
    >>> sleep = load_sleep(expert=2)
    >>> sleep.data.shape, len(set(sleep.groups.tolist())), sleep.n_ties
    ((76405, 150), 80, 1496)
    >>> scored = ~np.isnan(sleep.human_labels)
    >>> float((sleep.human_labels != sleep.target)[scored].mean().round(3))
    0.023
    >>> stages = load_sleep(classes="stages", context=0)
    >>> stages.target_names, stages.answers.shape[1], len(stages.network_names)
    (['Wake', 'N1', 'N2', 'N3', 'REM'], 5, 6)
    >>> stages.feature_names[:2]
    ['SimpleSleepNet_Wake_0', 'SimpleSleepNet_N1_0']
    """
    if isinstance(expert, bool | float) or expert not in range(1, N_EXPERTS + 1):
        raise ValueError(f"expert must be 1, 2, 3, 4 or 5, got {plain(expert)!r}")
    if classes not in ("rem", "stages"):
        raise ValueError(f"classes must be 'rem' or 'stages', got {classes!r}")
    if not is_whole(context) or context < 0:
        raise ValueError(f"context must be a whole number, 0 or larger, got {plain(context)!r}")
    table = _table()
    stages = table.experts.astype(np.float64)
    stages[table.experts == NOT_SCORED] = np.nan
    if classes == "rem":
        labels, names = np.array([-1, 1]), ["not REM", "REM"]
        answers = np.where(np.isnan(stages), np.nan, np.where(stages == REM, 1.0, -1.0))
    else:
        labels, names = np.arange(len(STAGE_NAMES)), list(STAGE_NAMES)
        answers = stages
    target, tied = _majority(np.delete(answers, expert - 1, axis=1), labels)
    kept = np.flatnonzero(~tied)
    bunch = Bunch(
        data=_features(table, context, kept),
        target=target[kept],
        human_labels=answers[kept, expert - 1],
        groups=table.night[kept],
        answers=answers[kept],
        networks=table.networks[kept].astype(np.int64),
        epochs=table.epoch[kept],
        sets=table.sets[table.night[kept]],
        rows=kept,
        n_ties=int(tied.sum()),
        feature_names=_feature_names(table, context),
        target_names=names,
        network_names=list(table.network_names),
        night_names=list(table.night_names),
        DESCR=_read("sleep.md").decode(),
    )
    return deliver(bunch, Form(return_X_y, return_X_y_human, as_frame))


def _majority(answers: Array, labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], Bools]:
    """The label with most votes in each row, and whether no label has more than every other one."""
    votes = (answers[:, :, None] == labels).sum(axis=1)
    most = votes.max(axis=1, keepdims=True)
    return labels[votes.argmax(axis=1)], (votes == most).sum(axis=1) > 1


def _features(table: _Table, context: int, kept: NDArray[np.intp]) -> Array:
    """Whether network j says stage s, k epochs later, for all k from -context to context."""
    n_epochs, n_networks = table.networks.shape
    said = table.networks[:, :, None] == np.arange(len(STAGE_NAMES))
    said = said.reshape(n_epochs, n_networks * len(STAGE_NAMES))
    data = np.zeros((len(kept), 2 * context + 1, said.shape[1]))
    for k in range(2 * context + 1):
        neighbour = kept + k - context
        there = (neighbour >= 0) & (neighbour < n_epochs)
        there[there] = table.night[neighbour[there]] == table.night[kept[there]]
        data[there, k] = said[neighbour[there]]
    return data.reshape(len(kept), -1)


def _feature_names(table: _Table, context: int) -> list[str]:
    return [
        f"{network}_{stage}_{k:+d}" if k else f"{network}_{stage}_0"
        for k in range(-context, context + 1)
        for network in table.network_names
        for stage in STAGE_NAMES
    ]


@cache
def _table() -> _Table:
    """The shipped table, in which a row is a night and a cell is the string of its stages."""
    text = gzip.decompress(_read("sleep.csv.gz"))
    found = hashlib.sha256(text).hexdigest()
    if found != TABLE_SHA256:
        raise ValueError(
            "the table sleep.csv.gz that belongs to this package is damaged: expected sha256 "
            f"{TABLE_SHA256}, found {found}; install deferlearn again"
        )
    header, *lines = text.decode().splitlines()
    # The first three columns are the night's identifier, its set and its first epoch.
    sources = header.split(",")[3:]
    names, sets, first, *stagings = zip(*(line.split(",") for line in lines), strict=True)
    lengths = [len(stages) for stages in stagings[0]]
    # Characters "0" to "4", and "-" for an epoch that was not scored.
    codes = np.array([list("".join(column).encode()) for column in stagings], dtype=np.int8).T
    stages = np.where(codes == ord("-"), NOT_SCORED, codes - ord("0")).astype(np.int8)
    table = _Table(
        experts=np.ascontiguousarray(stages[:, :N_EXPERTS]),
        networks=np.ascontiguousarray(stages[:, N_EXPERTS:]),
        network_names=tuple(sources[N_EXPERTS:]),
        night=np.repeat(np.arange(len(lines)), lengths),
        epoch=np.concatenate(
            [int(start) + np.arange(n) for start, n in zip(first, lengths, strict=True)]
        ),
        night_names=names,
        sets=np.array(sets),
    )
    # All calls share them: a change would reach the data of the next call.
    for value in table:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return table


def _read(name: str) -> bytes:
    return (files("deferlearn.datasets") / "data" / name).read_bytes()
