"""What expected losses count, in words: errors, grades by which answers are off, or costs given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Unit:
    """The words for a number of units.

    Attributes
    ----------
    name : str
        What is counted, in the plural: something that can be made or avoided.
    expected : str
        What is expected of an answer.

    Examples
    --------
    >>> from deferlearn._utils.units import GRADES
    >>> f"{GRADES.expected}: 0.3", f"0.3 {GRADES.name} avoided"
    ('expected grades off: 0.3', '0.3 grades of error avoided')
    """

    name: str
    expected: str


ERRORS = Unit("errors", "expected errors")
GRADES = Unit("grades of error", "expected grades off")
COSTS = Unit("units of cost", "expected cost")


def choose_unit(n_classes: int, graded: bool, with_costs: bool) -> Unit:
    """The unit of losses.

    Parameters
    ----------
    n_classes : int
        Number of classes. Of two grades, answers are off by one or not at all.
    graded : bool
        Whether the classes are grades.
    with_costs : bool
        Whether there is a cost matrix.

    Returns
    -------
    Unit
    """
    if with_costs:
        return COSTS
    return GRADES if graded and n_classes > 2 else ERRORS


def unit_of(card: Mapping[str, Any]) -> Unit:
    """The unit of the expected losses of a stored model, from its card.

    Parameters
    ----------
    card : dict
        The model's card.

    Returns
    -------
    Unit
    """
    graded, costs = bool(card.get("graded")), card.get("cost_matrix")
    return choose_unit(len(card["classes"]) if graded else 2, graded, costs is not None)


def unit_of_team(team: Any) -> Unit:
    """The unit of the expected losses of a fitted team, from its parameters.

    Parameters
    ----------
    team : estimator
        A fitted team.

    Returns
    -------
    Unit
    """
    given = team.get_params(deep=False)
    classes = given.get("classes", "auto")
    graded = not (isinstance(classes, str) and classes == "auto")
    return choose_unit(len(team.classes_), graded, given.get("cost_matrix") is not None)
