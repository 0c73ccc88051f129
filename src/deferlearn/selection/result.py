"""What a selection returns: the picks, why each was made, and how much work it took."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array
from deferlearn._utils.words import counted


class Iteration(NamedTuple):  # made faster than a frozen dataclass: a sweep makes thousands
    """One round of a greedy algorithm.

    Attributes
    ----------
    index : number of the round, from 0
    omega : weight of the gain in this round's score
    picked : the sample that was deferred, -1 if no score was positive
    score, gain : of the best candidate; ``omega * gain - loss`` (NaN where bounds alone showed that no
        candidate has a positive score)
    n_candidates, n_exact, n_screened : candidates, how many of their gains were solved in this round
        (exactly, or to within the gap of an approximate objective), and how many were not: dismissed by
        bounds, or known from an earlier round or run
    slack : how far, relative to the best possible score, the pick may be from it (0 unless tol > 0)
    """

    index: int  # type: ignore[assignment]  # instead of the method of tuples
    omega: float
    picked: int
    score: float
    gain: float
    n_candidates: int
    n_exact: int
    n_screened: int
    slack: float


@dataclass(eq=False)
class SelectionResult:
    """Which samples humans take, in the order in which they were picked.

    Attributes
    ----------
    order : ndarray of shape (n_deferred,)
        Indices of the deferred samples, first pick first.
    gains, scores, omegas : ndarray of shape (n_deferred,)
        Marginal gain of each pick, its distorted score ``omega * gain - loss``, and omega.
    value : float
        ``g(S) - c(S)``: by how much machine and human loss together fell below the machine's alone.
    initial_value : float
        F(V), the machine's loss with nothing deferred.
    n : int
        The budget.
    submodularity_ratio : float
        The ratio gamma that the algorithm worked with.
    algorithm : str
        "distorted", "stochastic", "unconstrained", "sweep" or "partitioned".
    iterations : list of Iteration
        What happened in each round.
    epsilon, delta : float or None
        Of the stochastic algorithm and of the sweep.
    tol : float
        The slack that was allowed; `slack` is the largest that was used. The guarantee of
        `distorted_greedy` holds with the factor ``1 - slack``; a guarantee in expectation, which
        speaks of other random choices too, with the factor ``1 - tol``.
    gap : float
        0 if gains and values are exact. With an `ApproximateSVMObjective` they are not: `value` and
        `initial_value` differ from the true numbers by at most the gap, and each of `gains` is a lower
        bound that is short of the true gain by at most the gap.
    min_kept_per_class : int
        The number of samples of each class that had to stay with the machine.
    interrupted : bool
        Whether the user stopped the run; only the result of a `SelectionInterrupted` is.
    n_states : int
        Distinct sets S whose gains were looked at (shared between the runs of a sweep).
    members : list of SelectionResult
        The runs of a sweep, or of the parts of a partitioned selection.
    """

    order: NDArray[np.int64]
    gains: Array
    scores: Array
    omegas: Array
    value: float
    initial_value: float
    n: int
    submodularity_ratio: float
    algorithm: str
    iterations: list[Iteration] = field(default_factory=list, repr=False)
    epsilon: float | None = None
    delta: float | None = None
    tol: float = 0.0
    gap: float = 0.0
    min_kept_per_class: int = 0
    interrupted: bool = False
    n_states: int = 0
    members: "list[SelectionResult]" = field(default_factory=list, repr=False)

    @property
    def n_exact(self) -> int:
        """Gains that were solved exactly."""
        return sum(i.n_exact for i in self.iterations) + sum(m.n_exact for m in self.members)

    @property
    def n_screened(self) -> int:
        """Gains that were dismissed by bounds."""
        return sum(i.n_screened for i in self.iterations) + sum(m.n_screened for m in self.members)

    @property
    def slack(self) -> float:
        """Largest relative slack of a pick, in any run of a sweep; 0 for exact picks."""
        slacks = [i.slack for i in self.iterations] + [m.slack for m in self.members]
        return max(slacks, default=0.0)


class SelectionInterrupted(KeyboardInterrupt):
    """The user stopped a selection; ``result`` holds the picks so far.

    Parameters
    ----------
    result : SelectionResult
        The picks so far.
    checkpoint : str, default=None
        The file from which the same call goes on.
    """

    def __init__(self, result: SelectionResult, checkpoint: str | None = None) -> None:
        message = (
            f"stopped after {counted(len(result.order), 'pick')}; see the exception's `result`"
        )
        if checkpoint is not None:
            message += f". The same call goes on from here, with checkpoint={checkpoint!r}"
        super().__init__(message)
        self.result, self.checkpoint = result, checkpoint

    def __reduce__(
        self,
    ) -> "tuple[type[SelectionInterrupted], tuple[SelectionResult, str | None]]":
        return type(self), (self.result, self.checkpoint)
