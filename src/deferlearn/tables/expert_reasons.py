"""Why an expert takes a case, or none does, in words."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array
from deferlearn._utils.units import ERRORS, Unit
from deferlearn._utils.words import counted


def by_prices(
    who: NDArray[Any],
    gains: Array,
    prices: Array,
    experts: tuple[str, ...],
    unit: Unit = ERRORS,
) -> Iterable[str]:
    """One clause per case that was decided one at a time, by the prices of the experts' time.

    Parameters
    ----------
    who : ndarray of object of shape (n_cases,)
        The expert who takes each case, None for the machine.
    gains : ndarray of shape (n_cases, n_experts)
        What each expert is expected to avoid.
    prices : ndarray of shape (n_experts,)
        What one more case in each expert's time is worth.
    experts : tuple of str
        Names.
    unit : Unit, default=ERRORS
        What gains and prices count.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.expert_reasons import by_prices
    >>> who, gains = np.array(["Ann", None], dtype=object), np.array([[0.3, 0.1], [0.1, 0.02]])
    >>> for clause in by_prices(who, gains, np.array([0.2, 0.1]), ("Ann", "Bob")):
    ...     print(clause)
    expected to avoid 0.3 errors here, and one more case in this expert's time is worth 0.2
    no expert is expected to avoid more errors here than one more case in the expert's time is worth;
    closest is Bob with 0.02, worth 0.1
    """
    best = (gains - prices).argmax(axis=1)
    for name, row, close in zip(who, gains, best, strict=True):
        place = close if name is None else experts.index(name)
        gain, price = f"{row[place]:.2g}", f"{prices[place]:.2g}"
        if name is None:
            yield (
                f"no expert is expected to avoid more {unit.name} here than one more case in the expert's "
                f"time is worth; closest is {experts[place]} with {gain}, worth {price}"
            )
        else:
            yield (
                f"expected to avoid {gain} {unit.name} here, and one more case in this expert's time is "
                f"worth {price}"
            )


def in_batch(
    who: NDArray[Any],
    gains: Array,
    places: Mapping[str, int],
    total: int,
    unit: Unit = ERRORS,
) -> Iterable[str]:
    """One clause per case of a batch that was shared out within hard capacities.

    Parameters
    ----------
    who : ndarray of object of shape (n_cases,)
        The expert who takes each case, None for the machine.
    gains : ndarray of shape (n_cases, n_experts)
        What each expert is expected to avoid.
    places : mapping
        How many cases of the batch each expert can take.
    total : int
        The size of the batch.
    unit : Unit, default=ERRORS
        What gains count.
    """
    experts = tuple(places)
    # Only those who have time at all are worth naming.
    free = np.array([count > 0 for count in places.values()])
    best = np.where(free, gains, -np.inf).argmax(axis=1)
    for name, row, close in zip(who, gains, best, strict=True):
        if name is not None:
            yield (
                f"expected to avoid {row[experts.index(name)]:.2g} {unit.name} here, one of at most "
                f"{counted(places[name], 'case')} of this batch of {total} for this expert"
            )
        elif not free.any():
            yield "no expert has time for a case of this batch"
        elif row[close] <= 0:
            yield "no expert is expected to do better than the machine here"
        else:
            yield (
                f"the experts' time is used for other cases of this batch; here {experts[close]} would be "
                f"expected to avoid {row[close]:.2g} {unit.name}"
            )


def expected_of(
    who: NDArray[Any], experts: Array, names: tuple[str, ...]
) -> tuple[Array, list[str]]:
    """Expected losses of the expert who takes each case, else of the one with the least, and the names."""
    place = np.array(
        [
            row.argmin() if name is None else names.index(name)
            for name, row in zip(who, experts, strict=True)
        ],
        dtype=np.intp,
    )
    return experts[np.arange(len(place)), place], [names[one] for one in place]
