"""What the stored model says about each case, besides its answer: probabilities, scores, expectations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array
from deferlearn.tables.cases import Cases
from deferlearn.tables.expert_reasons import expected_of
from deferlearn.tables.routed import DECISION, PROBABILITY
from deferlearn.tables.team import TabularTeam


def machine_probabilities(routed: Any, classes: Sequence[str]) -> Array:
    """The probability of the machine's answer to each case, as the machine sees it; NaN if not known."""
    answers = np.array(routed["machine_answer"].to_pylist(), dtype=object)
    sure = np.full(len(answers), np.nan)
    for label in classes:
        chosen = answers == label
        column = np.array(routed[f"{PROBABILITY}_{label}"].to_pylist(), dtype=np.float64)
        sure[chosen] = column[chosen]
    return sure


def expected_errors(
    model: TabularTeam, cases: Cases, experts: NDArray[Any] | None = None
) -> tuple[Array, Array] | None:
    """What machine and human are expected to lose on cases like each one, if the model learned it.

    If experts are told apart, ``experts`` are those to whom the cases go, or would go first.
    """
    if experts is not None:
        machine, each = model.team.expected_errors(model.encoder.transform(cases.features))
        return machine, expected_of(experts, each, model.team.experts_)[0]
    if not hasattr(model.chosen, "expected_errors"):
        return None
    found: tuple[Array, Array] | None
    found = model.chosen.expected_errors(model.encoder.transform(cases.features))
    return found


def decision_values(routed: Any, seen: bool) -> Array | None:
    """Decision values of two classes, of a machine that was not fitted on the cases."""
    if seen or DECISION not in routed.column_names:
        return None
    return np.array(routed[DECISION].to_pylist(), dtype=np.float64)
