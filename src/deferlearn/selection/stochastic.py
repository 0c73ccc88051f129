"""Stochastic distorted greedy: each round looks at a random sample of the candidates."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from deferlearn._utils.types import Index
from deferlearn.objective import Objective
from deferlearn.selection.checkpoint import CheckpointFile, digest_of_stream
from deferlearn.selection.greedy import Callback, check_open_unit, run
from deferlearn.selection.result import SelectionResult
from deferlearn.selection.states import States


def sample_size(n_candidates: int, n: int, epsilon: float) -> int:
    """``ceil(|V| / n * ln(1 / epsilon))``, at most |V|.

    Examples
    --------
    >>> sample_size(1000, 100, 0.01)
    47
    """
    return min(n_candidates, math.ceil(n_candidates / n * math.log(1.0 / epsilon)))


def stochastic_distorted_greedy(
    objective: Objective,
    human_loss: ArrayLike,
    n: int,
    submodularity_ratio: float = 1.0,
    *,
    epsilon: float = 0.01,
    tol: float = 0.0,
    min_kept_per_class: int = 0,
    random_state: Any = None,
    callback: Callback | None = None,
    states: States | None = None,
    checkpoint: CheckpointFile = None,
) -> SelectionResult:
    r"""Distorted greedy over a fresh random sample of V in each round.

    The sample has ``min(|V|, ceil(|V| / n * ln(1 / epsilon)))`` members, less those already taken, so
    that all rounds together look at about ``|V| ln(1 / epsilon)`` candidates. In expectation

    .. math:: g(S) - c(S) \ge (1 - e^{-\gamma} - \epsilon)\, g(OPT) - c(OPT)

    (Harshaw et al. 2019); with a ``tol``, ``1 - tol`` times that. Other parameters are those of
    `distorted_greedy`.

    Parameters
    ----------
    objective, human_loss, n, submodularity_ratio, tol, min_kept_per_class, callback, states, checkpoint
        As in `distorted_greedy`.
    epsilon : float in (0, 1), default=0.01
        Smaller means larger samples.
    random_state : int, RandomState or None, default=None
        A seed makes the picks repeatable. A checkpoint needs one, or a RandomState that is in the same
        state when the run is called again.

    Returns
    -------
    SelectionResult

    Examples
    --------
    >>> from deferlearn.objective import SVMObjective
    >>> from deferlearn.selection import stochastic_distorted_greedy
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
    >>> objective = SVMObjective(X, y, alpha=0.1)
    >>> stochastic_distorted_greedy(objective, [0.5] * 5, n=2, random_state=0).order
    array([4])
    """
    epsilon = check_open_unit("epsilon", epsilon)
    rng = check_random_state(random_state)

    def draw(ground: Index, budget: int) -> Iterator[Index]:
        size = sample_size(len(ground), budget, epsilon) if budget else 0
        for _ in range(budget):
            yield np.sort(rng.choice(ground, size, replace=False))

    return run(
        objective,
        human_loss,
        n,
        submodularity_ratio,
        draw,
        algorithm="stochastic",
        tol=tol,
        min_kept_per_class=min_kept_per_class,
        callback=callback,
        states=states,
        checkpoint=checkpoint,
        stream=digest_of_stream(random_state, rng, checkpoint),
        epsilon=epsilon,
    )
