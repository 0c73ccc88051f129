"""Words for numbers of things, so that messages count correctly."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

# A number by itself: those in names, such as reader_1, tell things apart.
NUMBER = re.compile(r"(?<![\w'])\d+(\.\d+)?(?![\w'])")

# A name that is longer is cut.
LONGEST_NAME = 16


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun in the singular or the plural.

    Parameters
    ----------
    n : int
        The number.
    noun : str
        The singular.
    plural : str or None, default=None
        The plural, if it is not the singular with an s.

    Returns
    -------
    words : str

    Examples
    --------
    >>> from deferlearn._utils.words import counted
    >>> counted(1, "case"), counted(0, "case"), counted(2, "class", "classes")
    ('1 case', '0 cases', '2 classes')
    """
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def without_repeats(texts: Iterable[str]) -> list[str]:
    """Texts of which those that differ in their numbers only are kept once.

    Parameters
    ----------
    texts : iterable of str
        Such as the warnings of many fits on parts of the same cases.

    Returns
    -------
    kept : list of str
        The first of each kind; if others differ from it, their number is said.

    Examples
    --------
    >>> from deferlearn._utils.words import without_repeats
    >>> without_repeats(["2 of 80 are empty", "3 of 79 are empty", "2 of 80 are empty", "reader_1 is late"])
    ['2 of 80 are empty (and 1 more like this, with other numbers)', 'reader_1 is late']
    """
    kinds: dict[str, dict[str, None]] = {}
    for text in texts:
        kinds.setdefault(NUMBER.sub("#", text), {})[text] = None
    kept = []
    for alike in kinds.values():
        more = f" (and {len(alike) - 1} more like this, with other numbers)"
        kept.append(next(iter(alike)) + more * (len(alike) > 1))
    return kept


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names separated by commas, of which at most so many are written out.

    Parameters
    ----------
    names : sequence of str
        The names.
    most : int, default=12
        How many of them to write out.

    Returns
    -------
    words : str

    Examples
    --------
    >>> from deferlearn._utils.words import listed
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def short_name(name: str, most: int = LONGEST_NAME) -> str:
    """A name that fits beside an axis, cut off at its end.

    Parameters
    ----------
    name : str
        The name.
    most : int, default=16
        How many letters fit.

    Returns
    -------
    name : str

    Examples
    --------
    >>> from deferlearn._utils.words import short_name
    >>> short_name("of the lower left lobe")
    'of the lower le…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def distinct_names(names: Sequence[str], most: int = LONGEST_NAME) -> list[str]:
    """Names that fit beside an axis, cut in the middle if they would be alike when cut at the end.

    Parameters
    ----------
    names : sequence of str
        The names.
    most : int, default=16
        How many letters fit.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from deferlearn._utils.words import distinct_names
    >>> distinct_names(["reader of the ward 1", "reader of the ward 2"])
    ['reader …e ward 1', 'reader …e ward 2']
    """
    short = [short_name(name, most) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    end = most // 2
    return [
        name if len(name) <= most else f"{name[: most - end - 1]}…{name[-end:]}" for name in names
    ]


def printable(text: str) -> str:
    r"""Text in which nothing acts on a terminal, and which can be written as UTF-8.

    Parameters
    ----------
    text : str
        Any text, such as the name of a column or of a file.

    Returns
    -------
    text : str
        Control characters, and bytes of file names that are not UTF-8, are written out. Line breaks and
        tabs stay.

    Examples
    --------
    >>> from deferlearn._utils.words import printable
    >>> print(printable("a\x1b[31mb"), printable("r\udce9sum\xe9"))
    a\x1b[31mb r\udce9sumé
    """
    if text.isprintable():
        return text
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") else ascii(c)[1:-1]
        for c in text
    )
