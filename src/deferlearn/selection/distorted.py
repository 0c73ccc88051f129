"""Distorted greedy: the paper's Algorithm 1."""

from itertools import repeat

from numpy.typing import ArrayLike

from deferlearn.objective import Objective
from deferlearn.selection.checkpoint import CheckpointFile
from deferlearn.selection.greedy import Callback, run
from deferlearn.selection.result import SelectionResult
from deferlearn.selection.states import States


def distorted_greedy(
    objective: Objective,
    human_loss: ArrayLike,
    n: int,
    submodularity_ratio: float = 1.0,
    *,
    tol: float = 0.0,
    min_kept_per_class: int = 0,
    callback: Callback | None = None,
    states: States | None = None,
    checkpoint: CheckpointFile = None,
) -> SelectionResult:
    r"""Defer, in each of n rounds, the sample with the largest distorted score, if it is positive.

    The score of sample k in round i is :math:`\omega_i\,[g(S + k) - g(S)] - c_k` with
    :math:`\omega_i = (1 - \gamma / n)^{n - 1 - i}`. A round without a positive score defers no
    sample, and the next, with a larger omega, may. With gamma at most the true submodularity ratio,

    .. math:: g(S) - c(S) \ge (1 - e^{-\gamma})\, g(OPT) - c(OPT)

    (Harshaw et al. 2019, Theorem 3; the paper's Algorithm 1). The picks are those of evaluating every
    gain in every round: bounds dismiss most candidates, the rest are solved exactly. Scores that agree
    to 1e-9 (relative to the score or to F(V), at most one) are ties, which the smallest index wins.

    Parameters
    ----------
    objective : Objective
        The machine's loss as a set function, e.g. `deferlearn.objective.SVMObjective`; left as it was.
    human_loss : array-like of shape (n_samples,)
        c_k: what a human's answer costs on each sample; not negative.
    n : int
        The budget: the largest number of samples that are deferred.
    submodularity_ratio : float in (0, 1], default=1.0
        The paper's gamma.
    tol : float in [0, 1), default=0.0
        Accept a pick whose score is certified to be at least ``1 - tol`` times the best possible; the
        guarantee then holds with the factor ``1 - result.slack``.
    min_kept_per_class : int, default=0
        How many samples of each class stay with the machine at least; needs ``objective.labels``.
    callback : callable, default=None
        Gets each `Iteration` as it is done; those that a checkpoint brings back come first.
    states : States, default=None
        States shared with other runs from the same objective.
    checkpoint : path-like, default=None
        A file that keeps every round. However the run ends, the same call goes on after the last pick
        and returns the same picks, gains, scores and value; a finished run's result comes back at once.
        Only the counts of work (``n_exact``, ``n_screened``) may differ, since bounds are tighter when
        much has been solved before; and so with ``tol > 0``, where bounds decide, may picks, with the
        same certified slack. A file of another selection is refused. It is text, and holds no data.

    Returns
    -------
    SelectionResult

    Examples
    --------
    >>> from deferlearn.objective import SVMObjective
    >>> from deferlearn.selection import distorted_greedy
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
    >>> result = distorted_greedy(SVMObjective(X, y, alpha=0.1), [0.5] * 5, n=2)
    >>> result.order
    array([4])
    >>> round(result.value, 3)
    2.656
    """
    return run(
        objective,
        human_loss,
        n,
        submodularity_ratio,
        lambda _, budget: repeat(None, budget),
        algorithm="distorted",
        tol=tol,
        min_kept_per_class=min_kept_per_class,
        callback=callback,
        states=states,
        checkpoint=checkpoint,
    )
