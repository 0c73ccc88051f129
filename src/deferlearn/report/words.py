"""Numbers in the words of the page: shares, counts with their noun, intervals."""

from typing import Any


def measured(share: float) -> str:
    """A share that was measured, always with a decimal.

    Parameters
    ----------
    share : float
        Between 0 and 1.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from deferlearn.report.words import measured
    >>> measured(0.2), measured(1 / 3)
    ('20.0%', '33.3%')
    """
    return f"{100 * share:.1f}%"


def percent(share: float) -> str:
    """A share that was chosen, with a decimal only if it needs one.

    Parameters
    ----------
    share : float
        Between 0 and 1.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from deferlearn.report.words import percent
    >>> percent(0.2), percent(0.025)
    ('20%', '2.5%')
    """
    return f"{round(100 * share, 1):g}%"


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the singular for 1.

    Parameters
    ----------
    count : int
        How many.
    noun : str
        In the singular.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from deferlearn.report.words import counted
    >>> counted(1, "case"), counted(0, "case")
    ('1 case', '0 cases')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def budget(value: float | int) -> str:
    """A budget: a share, or a number of cases."""
    return counted(value, "case") if isinstance(value, int) else percent(value)


def with_interval(row: dict[str, Any], name: str) -> str:
    """A share of a row and its interval; nothing if there is none."""
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return "" if value is None else f"{measured(value)} ({measured(low)} to {measured(high)})"


def error_on_class(row: dict[str, Any], name: str) -> str:
    """The error on a class and its interval, from the share of the class that is recognised."""
    ends = {name: row[name], f"{name}_low": row[f"{name}_high"], f"{name}_high": row[f"{name}_low"]}
    return with_interval({k: None if v is None else 1 - v for k, v in ends.items()}, name)


def difference(row: dict[str, Any]) -> str:
    """The difference from the machine in percentage points, with its interval; nothing if there is none."""
    if row.get("difference") is None:
        return ""
    value, low, high = (100 * row[f"difference{end}"] for end in ("", "_low", "_high"))
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"


def number(value: float | None) -> str:
    """A number that is no share, with three decimals; a dash if it is not known."""
    return "-" if value is None else f"{value:.3f}"


def share_in_words(share: dict[str, float] | None) -> str:
    """A share with its interval, as `deferlearn.tables.decisions.share_with_interval` has it."""
    if share is None:
        return "-"
    low, high = measured(share["lower"]), measured(share["upper"])
    return f"{measured(share['share'])} ({low} to {high})"


def shade(count: int, total: int) -> str:
    """The class of a cell by its share of a row, for the style sheet: none, s1 (few) to s4 (most).

    Parameters
    ----------
    count, total : int
        The share is `count` of `total`.

    Returns
    -------
    name : str

    Examples
    --------
    >>> from deferlearn.report.words import shade
    >>> shade(0, 50), shade(1, 50), shade(50, 50)
    ('none', 's1', 's4')
    """
    return f"s{min(4, 1 + int(4 * count / total))}" if count else "none"
