r"""Upper bounds on the best that any selection of at most n samples can reach.

The best selection minimises :math:`F(V \setminus S) + c(S)`, so a lower bound of that, whatever S, bounds
:math:`g(S) - c(S) = F(V) - F(V \setminus S) - c(S)` from above. Two of them, each valid alone, and
F(V) itself, as F and c are not negative; the smallest counts.
"""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from deferlearn.bounds._blocks import block_bound
from deferlearn.bounds._restricted import restricted_dual_bound
from deferlearn.bounds._summed import summed_dual_bound
from deferlearn.bounds._view import View, parts_of
from deferlearn.kernels import WHOLE_GRAM_LIMIT
from deferlearn.objective import SumObjective, SVMObjective
from deferlearn.selection.greedy import check_budget, check_loss

# The engine's values are verified to 1e-10 of max(1, F); the bound is raised by more than that.
RAISED = 1e-8


@dataclass(frozen=True)
class OptimumBound:
    """An upper bound on ``max g(S) - c(S)`` over all S of at most n samples.

    Attributes
    ----------
    value : float
        The smallest of the bounds.
    method : str
        Which one it is.
    bounds : dict
        All of them, by name.
    """

    value: float
    method: str
    bounds: dict[str, float]


def optimum_upper_bound(
    objective: SVMObjective | SumObjective, human_loss: ArrayLike, n: int
) -> OptimumBound:
    r"""No selection of at most n samples has a value g - c above this.

    Parameters
    ----------
    objective : SVMObjective or SumObjective
        In its initial state.
    human_loss : array-like of shape (n_samples,)
        The human's loss on each sample; non-negative.
    n : int
        The budget.

    Returns
    -------
    OptimumBound
        With the bounds

        - ``"everything"``: F(V), as if the machine were left without loss at no cost;
        - ``"restricted dual"``: the machine's dual solution for V, shrunk, and without the n samples
          whose loss hurts it most;
        - ``"blocks"``: F is superadditive, so best selections of small blocks, found by trying all, add
          up to a bound.

        For a sum, each method bounds all machines together, since all of them lose the same samples.

    Examples
    --------
    >>> from deferlearn.bounds import optimum_upper_bound
    >>> from deferlearn.objective import SumObjective, SVMObjective
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
    >>> objective = SVMObjective(X, y, alpha=0.1)
    >>> bound = optimum_upper_bound(objective, [0.1] * 5, n=1)
    >>> objective.gain(4) - 0.1 <= bound.value <= objective.value
    True
    """
    parts = parts_of(objective)
    views = [View.of(part) for part in parts]
    loss = check_loss(objective, human_loss)
    n = check_budget(objective, n)
    value, hard = objective.value, views[0].problem.hard
    if n == 0 or value == 0:
        return OptimumBound(0.0, "nothing to defer", {"everything": value})
    bounds = {"everything": value}
    lower = {"blocks": block_bound(parts, loss, n)}
    # The hard margin's dual variables have no bound, so dropping some of them can cost anything.
    if views[0].n_samples <= WHOLE_GRAM_LIMIT and not hard:
        if len(parts) == 1:
            lower["restricted dual"] = restricted_dual_bound(views[0], loss, n)
        else:
            lower["restricted dual"] = summed_dual_bound(parts, views, loss, n)
    unit = value if hard else max(1.0, value)
    for name, kept_cost in lower.items():
        # Deferring no sample is worth 0.
        bounds[name] = max(0.0, value - kept_cost + RAISED * unit)
    method = min(bounds, key=lambda name: bounds[name])
    return OptimumBound(bounds[method], method, bounds)
