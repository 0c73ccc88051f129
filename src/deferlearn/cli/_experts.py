"""Several experts on the command line: their capacities from options, and tables about them."""

from collections.abc import Iterable
from typing import Any

from deferlearn._utils.units import ERRORS, Unit
from deferlearn._utils.words import counted
from deferlearn.cli._options import parse_budget
from deferlearn.cli._screen import print_grid


def parse_capacities(texts: Iterable[str], option: str) -> dict[str, float | int]:
    """What each expert can take, from the texts of an option that is repeated.

    Parameters
    ----------
    texts : iterable of str
        Such as reader_1=0.05 or reader_2=10. A name may hold the sign itself: the last one counts.
    option : str
        The option, for errors.

    Returns
    -------
    capacity : dict
        For each expert a share, or a whole number of cases.

    Examples
    --------
    >>> from deferlearn.cli._experts import parse_capacities
    >>> parse_capacities(["reader_1=0.05", "Dr. B=10%", "a=b=12"], "--expert")
    {'reader_1': 0.05, 'Dr. B': 0.1, 'a=b': 12}
    """
    from deferlearn.tables import TableError

    capacity: dict[str, float | int] = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        name = name.strip()
        if not sign or not name:
            raise TableError(
                f"{option} {text[:60]} must be a name and a capacity, such as {option} reader_1=0.05"
            )
        if name in capacity:
            raise TableError(f"{option} names {name!r} twice: give each expert one capacity")
        capacity[name] = parse_budget(value, f"{option} {name}:")
    return capacity


def print_experts(experts: Iterable[dict[str, Any]], unit: Unit = ERRORS) -> None:
    """Print what a model knows of its experts, and what their time is worth.

    Parameters
    ----------
    experts : iterable of dict
        The experts of the model's card.
    unit : Unit, default=ERRORS
        What the price of their time counts.
    """
    rows = [
        (
            row["expert"],
            row["answers"],
            f"{row['error']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            row["verdict"],
            _capacity(row["capacity"]),
            f"{row['price']:.3f}",
        )
        for row in experts
    ]
    headings = ["expert", "answers", "error", "95% interval", "verdict", "capacity"]
    print_grid("Experts", [*headings, f"{unit.name} avoided per further case"], rows)


def _capacity(capacity: float | int) -> str:
    if isinstance(capacity, int):
        return counted(capacity, "case")
    return f"{capacity:.1%} of the cases"


def print_loads(experts: Iterable[dict[str, Any]], rows: int) -> None:
    """Print how many cases of a table each expert gets.

    Parameters
    ----------
    experts : iterable of dict
        With the keys expert, cases, limit and audited.
    rows : int
        The number of all cases.
    """
    experts = list(experts)
    audited = any(row["audited"] for row in experts)
    print_grid(
        "Experts",
        ["expert", "cases", "share", "capacity", *(["audited"] if audited else [])],
        [
            (
                row["expert"],
                f"{row['cases']:,}",
                f"{row['cases'] / rows:.1%}",
                f"{row['limit']:,}" if isinstance(row["limit"], int) else f"{row['limit']:.1%}",
                *([f"{row['audited']:,}"] if audited else []),
            )
            for row in experts
        ],
    )
