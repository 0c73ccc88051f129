"""The meta-algorithm for an unknown submodularity ratio: try a geometric sequence of guesses."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.checks import plain
from deferlearn.objective import Objective
from deferlearn.selection.checkpoint import CheckpointFile, opened
from deferlearn.selection.distorted import distorted_greedy
from deferlearn.selection.greedy import check_budget, check_loss, check_open_unit
from deferlearn.selection.result import SelectionInterrupted, SelectionResult
from deferlearn.selection.states import TIE, States

# A thousand runs per factor of e: finer guesses differ by less than what they are guesses of.
SMALLEST_STEP = 1e-3


def sweep_ratios(delta: float, lower_bound: float = 0.0) -> list[float]:
    """``(1 - delta) ** r`` for r = 0..T, ``T = ceil(ln(1 / max(lower_bound, delta)) / delta)``.

    Examples
    --------
    >>> [round(ratio, 3) for ratio in sweep_ratios(0.5)]
    [1.0, 0.5, 0.25]
    """
    last = math.ceil(math.log(1.0 / max(lower_bound, delta)) / delta)
    return [(1.0 - delta) ** r for r in range(last + 1)]


def submodularity_sweep(
    objective: Objective,
    human_loss: ArrayLike,
    n: int,
    *,
    delta: float = 0.1,
    lower_bound: float = 0.0,
    algorithm: Callable[..., SelectionResult] = distorted_greedy,
    states: States | None = None,
    checkpoint: CheckpointFile = None,
    **options: Any,
) -> SelectionResult:
    """Run a greedy algorithm for a sequence of ratios and keep the best set.

    The submodularity ratio of an SVM is known only by bounds that are often too weak to use. The
    sweep needs none: it loses at most a term in delta against the algorithm with the true ratio
    (Harshaw et al. 2019, Algorithm 4). The empty set stands as a candidate too, so that the value is
    never negative. The runs share states and exact gains. An interrupt leaves the best set so far.

    Parameters
    ----------
    objective, human_loss, n, states
        As in `distorted_greedy`.
    delta : float in (0, 1), default=0.1
        Step of the sequence; smaller means more runs.
    lower_bound : float in [0, 1], default=0.0
        A known lower bound of the ratio, which may shorten the sequence.
    algorithm : callable, default=distorted_greedy
        `distorted_greedy` or `stochastic_distorted_greedy`.
    checkpoint : path-like, default=None
        A file that keeps the rounds of all runs, as in `distorted_greedy`.
    **options
        Passed on to the algorithm.

    Returns
    -------
    SelectionResult
        The best run's, with ``algorithm="sweep"`` and all runs in ``members``.

    Examples
    --------
    >>> from deferlearn.objective import SVMObjective
    >>> from deferlearn.selection import submodularity_sweep
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
    >>> result = submodularity_sweep(SVMObjective(X, y, alpha=0.1), [0.5] * 5, n=2, delta=0.5)
    >>> result.order, len(result.members)
    (array([4]), 3)
    """
    check_loss(objective, human_loss)
    n = check_budget(objective, n)
    delta = check_open_unit("delta", delta)
    if delta < SMALLEST_STEP:
        raise ValueError(
            f"delta={plain(delta)!r} means more than {int(1 / delta):,} runs; take at least "
            f"{SMALLEST_STEP}."
        )
    if not 0.0 <= lower_bound <= 1.0:
        raise ValueError(f"lower_bound={plain(lower_bound)!r} must be a number in [0, 1].")
    ratios = sweep_ratios(delta, lower_bound)
    shared = states if states is not None else States(objective)
    shared.ratios = (ratios[-1], ratios[0])
    runs: list[SelectionResult] = []
    with opened(checkpoint) as file:
        if file is not None:
            options["checkpoint"] = file
        try:
            for ratio in ratios:
                runs.append(algorithm(objective, human_loss, n, ratio, states=shared, **options))
        except KeyboardInterrupt as stopped:
            if isinstance(stopped, SelectionInterrupted):
                runs.append(stopped.result)
            if not runs:
                raise
            best = _best_of(runs, delta, shared, interrupted=True)
            raise SelectionInterrupted(best, None if file is None else file.path) from None
    return _best_of(runs, delta, shared)


def _best_of(
    runs: list[SelectionResult], delta: float, states: States, interrupted: bool = False
) -> SelectionResult:
    """The sweep's result: its best run, the first of those that tie; or no samples if that is better."""
    most = max(run.value for run in runs)
    tie = TIE * max(states.unit, abs(most))
    best = next(run for run in runs if run.value >= most - tie)
    empty = best.value < 0.0
    order = np.empty(0, dtype=np.int64) if empty else best.order
    return SelectionResult(
        order=order,
        gains=best.gains[: len(order)],
        scores=best.scores[: len(order)],
        omegas=best.omegas[: len(order)],
        value=max(best.value, 0.0),
        initial_value=best.initial_value,
        n=best.n,
        submodularity_ratio=best.submodularity_ratio,
        algorithm="sweep",
        epsilon=best.epsilon,
        delta=delta,
        tol=best.tol,
        gap=max(run.gap for run in runs),
        min_kept_per_class=best.min_kept_per_class,
        interrupted=interrupted,
        n_states=states.n_states,
        members=runs,
    )
