"""The paper's algorithms: which samples humans take. One algorithm per file; none knows an SVM."""

from deferlearn.objective import Objective
from deferlearn.selection.distorted import distorted_greedy
from deferlearn.selection.partitioned import partitioned_greedy
from deferlearn.selection.result import Iteration, SelectionInterrupted, SelectionResult
from deferlearn.selection.states import States
from deferlearn.selection.stochastic import stochastic_distorted_greedy
from deferlearn.selection.sweep import submodularity_sweep
from deferlearn.selection.unconstrained import unconstrained_distorted_greedy

__all__ = [
    "Iteration",
    "Objective",
    "SelectionInterrupted",
    "SelectionResult",
    "States",
    "distorted_greedy",
    "partitioned_greedy",
    "stochastic_distorted_greedy",
    "submodularity_sweep",
    "unconstrained_distorted_greedy",
]
