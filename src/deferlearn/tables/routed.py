"""What is decided about the cases of a chunk, and the columns that say it."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools

# The columns that routing adds with two classes, in this order; see `added_columns`.
COLUMNS = (
    "machine_answer",
    "decision_value",
    "deferral_score",
    "rank",
    "deferred",
    "audit",
    "unusual",
    "taken_by",
    "reason",
    "model_version",
)

# How sure the machine is: with two classes by its decision value, with more by a probability.
DECISION, PROBABILITY = "decision_value", "probability"

# The column of a model of several experts, after `taken_by`.
EXPERT = "expert"


class Verdicts(NamedTuple):
    """What the team says of some cases; `Considered` of the experts if they are told apart."""

    decision: Array
    scores: Array
    usual: Bools | None
    expected: tuple[Array, Array] | None
    by_experts: Any = None


class Choice(NamedTuple):
    """Who takes some cases, and why; experts are None if they are not told apart."""

    deferred: Bools
    ranks: NDArray[np.int64] | None
    clauses: Iterable[str]
    expected: tuple[Array, Array] | None
    experts: NDArray[Any] | None = None
    compared: Sequence[str] | None = None


def added_columns(
    classes: Sequence[str], probabilities: bool = False, experts: bool = False
) -> list[str]:
    """The columns that routing adds, in this order.

    Parameters
    ----------
    classes : sequence of str
        The labels.
    probabilities : bool, default=False
        Whether there is a column with the probability of each class.
    experts : bool, default=False
        Whether there is a column with the expert who takes a case.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from deferlearn.tables.routed import added_columns
    >>> added_columns(["none", "mild", "severe"])[:3]
    ['machine_answer', 'probability', 'deferral_score']
    >>> added_columns(["ill", "well"], probabilities=True)[-2:]
    ['probability_ill', 'probability_well']
    """
    several = len(classes) > 2
    names = [PROBABILITY if several and name == DECISION else name for name in COLUMNS]
    if experts:
        names.insert(names.index("taken_by") + 1, EXPERT)
    return names + [f"{PROBABILITY}_{label}" for label in classes if probabilities]
