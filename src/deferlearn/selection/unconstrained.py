"""Unconstrained distorted greedy: no budget, one random candidate per round."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from deferlearn.objective import Objective
from deferlearn.selection.checkpoint import CheckpointFile, digest_of_stream
from deferlearn.selection.greedy import Callback, run
from deferlearn.selection.result import SelectionResult
from deferlearn.selection.states import States


def unconstrained_distorted_greedy(
    objective: Objective,
    human_loss: ArrayLike,
    submodularity_ratio: float = 1.0,
    *,
    min_kept_per_class: int = 0,
    random_state: Any = None,
    callback: Callback | None = None,
    states: States | None = None,
    checkpoint: CheckpointFile = None,
) -> SelectionResult:
    r"""Look, in each of \|V\| rounds, at one random sample, and defer it if its score is positive.

    The fastest of the algorithms, for when humans could take everything: a single gain per round. In
    expectation :math:`g(S) - c(S) \ge (1 - e^{-\gamma})\, g(OPT) - c(OPT)` over all sets (Harshaw et al.
    2019), with gamma the submodularity ratio over all sets, which no bound of the paper covers for
    an SVM with offset.

    Parameters
    ----------
    objective, human_loss, submodularity_ratio, min_kept_per_class, callback, states, checkpoint
        As in `distorted_greedy`.
    random_state : int, RandomState or None, default=None
        A seed makes the picks repeatable. A checkpoint needs one, or a RandomState that is in the same
        state when the run is called again.

    Returns
    -------
    SelectionResult

    Examples
    --------
    >>> from deferlearn.objective import SVMObjective
    >>> from deferlearn.selection import unconstrained_distorted_greedy
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
    >>> objective = SVMObjective(X, y, alpha=0.1)
    >>> result = unconstrained_distorted_greedy(objective, [1.0] * 5, random_state=0)
    >>> result.order
    array([4])
    """
    rng = check_random_state(random_state)
    return run(
        objective,
        human_loss,
        int(np.sum(objective.kept)),
        submodularity_ratio,
        lambda ground, budget: (rng.choice(ground, 1) for _ in range(budget)),
        algorithm="unconstrained",
        min_kept_per_class=min_kept_per_class,
        callback=callback,
        states=states,
        checkpoint=checkpoint,
        stream=digest_of_stream(random_state, rng, checkpoint),
    )
