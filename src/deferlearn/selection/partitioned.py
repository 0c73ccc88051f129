"""Partitioned greedy: parts of V nominate candidates side by side, one selection decides among them."""

import math
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn._utils.jobs import call_each
from deferlearn._utils.threads import one_blas_thread
from deferlearn._utils.types import Array, Index
from deferlearn.objective import SVMObjective
from deferlearn.objective.validation import kernel_width
from deferlearn.selection.greedy import (
    Callback,
    check_budget,
    check_floor,
    check_loss,
    check_ratio,
    check_tol,
    run,
)
from deferlearn.selection.result import SelectionInterrupted, SelectionResult


def partitioned_greedy(
    X: Any,
    y: ArrayLike,
    human_loss: ArrayLike,
    n: int,
    submodularity_ratio: float = 1.0,
    *,
    n_partitions: int = 4,
    oversampling: float = 2.0,
    train_on: str = "all",
    tol: float = 0.0,
    min_kept_per_class: int = 0,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    **machine: Any,
) -> SelectionResult:
    r"""Let random parts of V nominate candidates side by side, and select among those.

    Two rounds, as in GreeDi (Mirzasoleiman et al. 2013) with the random parts of RandGreeDi (Barbosa et
    al. 2015). In the first, each part, a random share of each class, runs `distorted_greedy` over its own
    samples with the budget ``oversampling * n / n_partitions`` (at most n). In the second, the same
    algorithm selects among all samples that the parts picked. Should what a single part picked be worth
    more, that is the result. Parts are independent, and may run on several processors or machines.

    **No approximation factor is known for this.** Those of GreeDi and RandGreeDi are for a monotone
    submodular function. Here g is weakly submodular at best, and a loss is subtracted from it; with
    ``train_on="part"`` a part does not even judge by g, but by the g of another, smaller machine. What
    holds: value and gains of the result are exact, for the machine of all of V. And
    `deferlearn.bounds.certificate`, which does not ask how a selection was found, bounds how far from the
    best it is.

    It seldom pays: bounds make a round of `distorted_greedy` cheap, the second run has as many rounds as
    the whole has, and each part trains a machine first. The guide "Very large data" has measurements.

    Parameters
    ----------
    X, y
        All samples, as in `deferlearn.objective.SVMObjective`.
    human_loss, n, submodularity_ratio, tol, min_kept_per_class
        As in `distorted_greedy`.
    n_partitions : int, default=4
        Parts; with one, the picks are those of `distorted_greedy`.
    oversampling : float, default=2.0
        How many candidates the parts nominate together, as a multiple of n; at least 1.
    train_on : {"all", "part"}, default="all"
        The rows on which the machine of a part is trained. With "part" a worker needs only the rows of its
        part, and is quicker; but nominations are good only while n is a few percent of V, since the
        small machines soon have no errors left to defer, and each finds its own way to get there.
    n_jobs : int or None, default=None
        Parts at the same time, as in scikit-learn. The result does not depend on it, nor on the
        joblib backend.
    random_state : int, RandomState or None, default=None
        A seed makes the parts, and so the picks, repeatable.
    callback : callable, default=None
        Gets each `Iteration` of the second run. An interrupt there raises `SelectionInterrupted` with the
        picks so far; before, when there are none, plain `KeyboardInterrupt`.
    **machine
        The other parameters of `SVMObjective`: alpha, kernel, weights and so on.

    Returns
    -------
    SelectionResult
        With ``algorithm="partitioned"``, and the runs of the parts in ``members`` (with
        ``train_on="part"``, their gains and values are those of the parts' own machines).

    Examples
    --------
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.humans import UniformHuman
    >>> from deferlearn.selection import partitioned_greedy
    >>> X, y = make_linear(200, random_state=1)
    >>> loss = UniformHuman(spread=0.2).losses(y, random_state=0)
    >>> result = partitioned_greedy(X, y, loss, n=20, alpha=0.1, random_state=0)
    >>> len(result.order), [len(part.order) for part in result.members]
    (20, [10, 10, 10, 10])
    """
    objective = SVMObjective(X, y, **machine)
    loss = check_loss(objective, human_loss)
    n = check_budget(objective, n)
    ratio, tol = check_ratio(submodularity_ratio), check_tol(tol)
    floor, labels = check_floor(min_kept_per_class), objective.labels
    count = _check_partitions(n_partitions, len(loss))
    budget = min(n, math.ceil(_check_oversampling(oversampling) * n / count))
    if train_on not in ("all", "part"):
        raise ValueError(f"train_on={plain(train_on)!r} must be 'all' or 'part'.")
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    parts = _deal(labels, count, check_random_state(random_state))
    shared: dict[str, Any] = {"X": X, "labels": labels, "loss": loss, "machine": machine}
    shared |= {"budget": budget, "ratio": ratio, "tol": tol, "floor": floor}
    tasks = [_Task(rows=rows, **shared) for rows in parts]
    if train_on == "part":
        tasks = [_on_its_own(task, count) for task in tasks]
    members = call_each(_nominate, ((task,) for task in tasks), n_jobs)
    nominated = np.unique(np.concatenate([member.order for member in members]))
    best = run(
        objective,
        loss,
        n,
        ratio,
        lambda _, rounds: repeat(nominated, rounds),
        algorithm="partitioned",
        tol=tol,
        min_kept_per_class=floor,
        callback=callback,
    )
    for member in members:
        if train_on == "all" and member.value <= best.value:
            continue  # its value is that of the whole problem already
        if _leaves(labels, member.order, floor):
            best = max(best, _on_the_whole(objective, loss, member, best), key=lambda r: r.value)
    best.members = members
    return best


def _deal(labels: Array, count: int, rng: Any) -> list[Index]:
    """Random parts of nearly the same size, each with its share of each class."""
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    return [np.sort(by_class[start::count]) for start in range(count)]


@dataclass(frozen=True, kw_only=True)
class _Task:
    """What a part needs."""

    X: Any
    labels: Array
    loss: Array
    rows: Index
    machine: dict[str, Any]
    budget: int
    ratio: float
    tol: float
    floor: int
    # The number of each row of X in the whole, if it is another.
    numbers: Index | None = None


def _on_its_own(task: _Task, count: int) -> _Task:
    """The task of a part that has a machine of its own: the same kernel, its own rows and weights."""
    own, rows = dict(task.machine), task.rows
    kernel = own.get("kernel", "linear")
    if own.get("weights") is not None:
        own["weights"] = np.asarray(own["weights"])[rows]
    # "scale" and "auto" would mean another width for each part.
    own["gamma"] = kernel_width(own.get("gamma", "scale"), task.X, kernel)
    precomputed = isinstance(kernel, str) and kernel == "precomputed"
    return replace(
        task,
        X=task.X[np.ix_(rows, rows)] if precomputed else task.X[rows],
        labels=task.labels[rows],
        loss=task.loss[rows],
        rows=np.arange(len(rows)),
        machine=own,
        floor=math.ceil(task.floor / count),
        numbers=rows,
    )


def _nominate(task: _Task) -> SelectionResult:
    """What is selected among the rows of a part, in the numbers of the whole."""
    # One thread from the start: sums in another order would change last digits with the worker.
    with one_blas_thread():
        objective = SVMObjective(task.X, task.labels, **task.machine)
    try:
        result = run(
            objective,
            task.loss,
            min(task.budget, len(task.rows)),
            task.ratio,
            lambda _, rounds: repeat(task.rows, rounds),
            algorithm="distorted",
            tol=task.tol,
            min_kept_per_class=task.floor,
        )
    except SelectionInterrupted:
        raise KeyboardInterrupt from None  # what a part has picked so far is no selection
    numbers = task.numbers
    if numbers is None:
        return result
    iterations = [
        i._replace(picked=int(numbers[i.picked])) if i.picked >= 0 else i for i in result.iterations
    ]
    return replace(result, order=numbers[result.order], iterations=iterations)


def _on_the_whole(
    objective: SVMObjective, loss: Array, member: SelectionResult, other: SelectionResult
) -> SelectionResult:
    """A part's picks as a selection of the whole problem: with the gains that they have there."""
    state, gains = objective.copy(), list[float]()
    with one_blas_thread():
        for k in member.order:
            before = state.value
            state.remove(int(k))
            gains.append(before - state.value)
    gain = dict(zip(member.order.tolist(), gains, strict=True))
    iterations = [
        i._replace(gain=gain[i.picked], score=i.omega * gain[i.picked] - float(loss[i.picked]))
        for i in member.iterations
        if i.picked >= 0
    ]
    return replace(
        other,
        order=member.order,
        gains=np.array(gains),
        scores=np.array([i.score for i in iterations]),
        omegas=member.omegas,
        value=objective.value - state.value - float(loss[member.order].sum()),
        iterations=iterations,
    )


def _leaves(labels: Array, order: Index, floor: int) -> bool:
    """Whether at least ``floor`` samples of each class stay when these are deferred."""
    kept = np.delete(labels, order)
    return all(int((kept == label).sum()) >= floor for label in np.unique(labels[order]))


def _check_partitions(count: Any, n_samples: int) -> int:
    if not is_whole(count) or not 1 <= count <= n_samples:
        raise ValueError(
            f"n_partitions={plain(count)!r} must be a whole number from 1 to the number of samples, "
            f"{n_samples}."
        )
    return int(count)


def _check_oversampling(factor: Any) -> float:
    if not is_number(factor) or factor < 1.0:
        raise ValueError(f"oversampling={plain(factor)!r} must be a number, 1 or larger.")
    return float(factor)
