r"""F(V \ S), exact marginal gains, certified bounds and removals."""

from deferlearn.objective.approximate import ApproximateSVMObjective
from deferlearn.objective.classes import class_labels, class_objective
from deferlearn.objective.protocol import Objective, Pick, Rounds
from deferlearn.objective.solver import Counters, NotSeparableError, NumericalError
from deferlearn.objective.sum import SumObjective
from deferlearn.objective.svm import SVMObjective

__all__ = [
    "ApproximateSVMObjective",
    "Counters",
    "NotSeparableError",
    "NumericalError",
    "Objective",
    "Pick",
    "Rounds",
    "SVMObjective",
    "SumObjective",
    "class_labels",
    "class_objective",
]
