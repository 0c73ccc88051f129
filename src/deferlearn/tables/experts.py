"""Several experts with limited time behind the columns of a table: who they are, and what they can take."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Bools, Labels
from deferlearn._utils.words import listed
from deferlearn.experts import ExpertTeam
from deferlearn.experts.capacity import as_counts, check_capacity
from deferlearn.tables.cases import Cases
from deferlearn.tables.errors import TableError


def check_experts(cases: Cases, capacity: Mapping[str, float | int]) -> None:
    """Refuse capacities that are not those of the readers of the cases.

    Parameters
    ----------
    cases : Cases
        Cases with answers.
    capacity : mapping
        For each reader a share of the cases, or a whole number of them.
    """
    readers = listed([repr(name) for name in cases.readers]) if cases.readers else "nobody"
    for name in capacity:
        if name not in cases.readers:
            raise TableError(f"the expert {name!r} has no answers; there are those of {readers}")
    for name in cases.readers:
        if name not in capacity:
            raise TableError(
                f"the reader {name!r} has answers, but no capacity: give one, which is 0 for an expert who "
                "takes no new cases"
            )


def answers_by_expert(cases: Cases) -> dict[str, Any]:
    """The answers as `ExpertTeam.fit` takes them: a column per expert, None where there is no answer."""
    if cases.answers is None:
        return {}
    return dict(zip(cases.readers, cases.answers.T, strict=True))


def answers_of(experts: NDArray[Any], cases: Cases, default: Labels) -> tuple[Labels, Bools]:
    """The answer of one expert to each case, and whether there is one.

    Parameters
    ----------
    experts : ndarray of shape (n_cases,)
        The name of the expert who is asked about each case.
    cases : Cases
        Cases with answers.
    default : ndarray of str of shape (n_cases,)
        The answers to use where the expert gave none.

    Returns
    -------
    answers : ndarray of str of shape (n_cases,)
    answered : ndarray of bool of shape (n_cases,)
    """
    said: NDArray[Any] = np.full(len(cases), None, dtype=object)
    for name, column in answers_by_expert(cases).items():
        said[experts == name] = column[experts == name]
    answered = np.array([answer is not None for answer in said], dtype=bool)
    return np.where(answered, said, default).astype(str), answered


def expert_rows(team: ExpertTeam) -> list[dict[str, Any]]:
    """What a model's card says of each expert, in plain values.

    Parameters
    ----------
    team : ExpertTeam
        A fitted one.

    Returns
    -------
    rows : list of dict
        With the keys expert, answers, error, low, high and verdict of `Skills.rows`, and: capacity as it
        was given, the same as a share of the cases, the price, and the share of the cases that the
        expert would get (load).
    """
    capacity = check_capacity(team.capacity)
    return [
        {
            **row,
            "capacity": capacity[row["expert"]],
            "share": team.capacity_[row["expert"]],
            "price": float(team.prices_[row["expert"]]),
            "load": float(team.load_[row["expert"]]),
        }
        for row in team.skills_.rows()
    ]


def places_per_expert(
    experts: list[dict[str, Any]], capacity: Mapping[str, float | int] | None, n_cases: int
) -> dict[str, int]:
    """How many cases of a batch each expert of a model takes at most.

    Parameters
    ----------
    experts : list of dict
        The experts of the model's card.
    capacity : mapping or None
        A share of the batch, rounded down, or a number of cases for each expert; those who are not named
        take none. None: the shares of the model.
    n_cases : int
        The size of the batch.

    Returns
    -------
    places : dict
        For each expert of the model, in the model's order.

    Examples
    --------
    >>> from deferlearn.tables.experts import places_per_expert
    >>> experts = [{"expert": "Ann", "share": 0.05}, {"expert": "Bob", "share": 0.1}]
    >>> places_per_expert(experts, None, 90), places_per_expert(experts, {"Bob": 7}, 90)
    ({'Ann': 4, 'Bob': 9}, {'Ann': 0, 'Bob': 7})
    """
    given = {row["expert"]: row["share"] for row in experts} if capacity is None else capacity
    asked = {row["expert"]: given.get(row["expert"], 0) for row in experts}
    counts = as_counts(asked, n_cases).astype(int).tolist()
    return dict(zip(asked, counts, strict=True))


def check_known(experts: list[dict[str, Any]], capacity: Mapping[str, float | int] | None) -> None:
    """Refuse capacities that are no shares or numbers, or of somebody whom the model does not know.

    Parameters
    ----------
    experts : list of dict
        The experts of the model's card; empty if it has none.
    capacity : mapping or None
        Capacities for a batch.
    """
    names = [row["expert"] for row in experts]
    for name in capacity or ():
        if not names:
            raise TableError(
                f"the capacity of {name!r} is for a model of several experts, which this one is not: "
                "fit one with --expert"
            )
        if name not in names:
            shown = listed([repr(known) for known in names])
            raise TableError(f"the model does not know the expert {name!r}; it knows {shown}")
    if capacity is not None:
        try:
            check_capacity(capacity)
        except ValueError as error:
            raise TableError(str(error).rstrip(".")) from error
