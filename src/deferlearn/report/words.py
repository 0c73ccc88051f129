"""Numbers in the words of the page: all shares are counts per 1,000 cases."""

from typing import Any

from deferlearn._utils.words import counted, listed

Row = dict[str, Any]
__all__ = ["PerThousand", "budget", "counted", "listed", "number", "shade", "with_commas"]
MINUS = "\u2212"


class PerThousand:
    r"""Writes shares as counts per 1,000 cases, with the same number of decimals on the whole page.

    Parameters
    ----------
    shares : iterable of float
        The shares that matter most; the smallest that is not 0 keeps two digits, one if it is below 1 of
        1,000.

    Examples
    --------
    >>> from deferlearn.report.words import PerThousand
    >>> told = PerThousand([0.0296, 0.0178])
    >>> told(0.0296), told.interval({"share": 0.0178, "lower": 0.0037, "upper": 0.0509})
    ('30', '18 (4\xa0to\xa051)')
    >>> told.change_in_words({"difference": -0.0118, "lower": -0.04, "upper": 0.01})
    '12 fewer (between 40 fewer and 10 more)'
    >>> PerThousand([0.0042])(0.0042)
    '4.2'
    """

    def __init__(self, shares: Any) -> None:
        smallest = min((share for share in shares if share > 0), default=1.0)
        self.decimals = 0 if smallest >= 0.01 else 1 if smallest >= 0.001 else 2

    def __call__(self, share: float) -> str:
        """A share."""
        return f"{abs(self.rounded(share)):,.{self.decimals}f}"

    def rounded(self, share: float) -> float:
        """The number that is shown."""
        return round(1000 * share, self.decimals)

    def interval(self, found: Row | None, key: str = "share") -> str:
        """A share and the ends of its interval; a dash if it is not known."""
        if found is None:
            return "–"
        return f"{self(found[key])} ({self.span(found['lower'], found['upper'])})"

    def span(self, low: float, high: float) -> str:
        """Two shares, from one to the other."""
        return _unbroken(self(low), self(high))

    def signed(self, difference: float) -> str:
        """A difference with its sign."""
        shown = self.rounded(difference)
        sign = "+" if shown > 0 else MINUS if shown < 0 else ""
        return sign + self(difference)

    def change(self, found: Row | None) -> str:
        """A difference and the ends of its interval, with signs."""
        if found is None:
            return "–"
        ends = _unbroken(self.signed(found["lower"]), self.signed(found["upper"]))
        return f"{self.signed(found['difference'])} ({ends})"

    def more_or_fewer(self, difference: float, fewer: str = "fewer") -> str:
        """A difference in words; of what cannot be counted, there is less rather than fewer."""
        shown = self.rounded(difference)
        if shown == 0:
            return f"no more and no {fewer}"
        return f"{self(difference)} {'more' if shown > 0 else fewer}"

    def between(self, found: Row, fewer: str = "fewer") -> str:
        """The interval of a difference in words."""
        low, high = found["lower"], found["upper"]
        if high < 0:
            return f"between {self(high)} and {self(low)} {fewer}"
        if low > 0:
            return f"between {self(low)} and {self(high)} more"
        return f"between {self(low)} {fewer} and {self(high)} more"

    def change_in_words(self, found: Row, fewer: str = "fewer") -> str:
        """A difference and its interval in words."""
        return f"{self.more_or_fewer(found['difference'], fewer)} ({self.between(found, fewer)})"


def _unbroken(low: str, high: str) -> str:
    """The ends of an interval, which stay on one line."""
    return f"{low}\u00a0to\u00a0{high}"


def with_commas(count: int) -> str:
    """A count of cases, with commas between thousands."""
    return f"{count:,}"


def budget(value: float | int) -> str:
    """A budget: of 1,000 cases, or a number of cases."""
    if isinstance(value, int):
        return counted(value, "case")
    return f"{round(1000 * value, 1):g} of 1,000 cases"


def number(value: float | None) -> str:
    """A number that is no share, with three decimals; a dash if it is not known."""
    return "–" if value is None else f"{value:.3f}"


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
