"""Small pieces of HTML. Text is escaped here, so that no sentence, name or cell can become markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Markup(str):
    """Text that is HTML already; anything else is escaped when it is put into a page."""

    __slots__ = ()


def text(value: Any) -> str:
    """HTML as it is, everything else escaped.

    Parameters
    ----------
    value : object
        `Markup`, or what is to be read as it stands.

    Returns
    -------
    html : str

    Examples
    --------
    >>> from deferlearn.report.html import Markup, text
    >>> text("<b>"), text(Markup("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return str(value) if isinstance(value, Markup) else escape(str(value))


def tag(name: str, content: Any = "", **attributes: Any) -> Markup:
    """An element; a trailing underscore of an attribute is dropped, others become hyphens.

    Parameters
    ----------
    name : str
        Of the element.
    content : object
        Escaped, unless it is `Markup`.
    **attributes
        Escaped too; None is left out.

    Returns
    -------
    html : Markup

    Examples
    --------
    >>> from deferlearn.report.html import tag
    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{words}>{text(content)}</{name}>")


def join(*parts: Any) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(text(part) for part in parts))


def bullets(items: Iterable[Any]) -> Markup:
    """A list."""
    return tag("ul", join(*(tag("li", item) for item in items)))


def definitions(rows: Iterable[tuple[str, Any]]) -> Markup:
    """Names, and what they are."""
    return tag("dl", join(*(join(tag("dt", name), tag("dd", value)) for name, value in rows)))


def grid(
    caption: str, headings: Sequence[Any], rows: Iterable[Sequence[Any]], words: int = 1
) -> Markup:
    """A table in a box that scrolls by itself where the page is narrow.

    Parameters
    ----------
    caption : str
        What it shows.
    headings : sequence
        Of the columns.
    rows : iterable of sequences
        Cells.
    words : int, default=1
        How many of the first columns are words; the others are numbers.

    Returns
    -------
    html : Markup
    """

    def line(cells: Sequence[Any], name: str) -> Markup:
        return join(
            *(
                tag(
                    "th" if name == "th" or place == 0 else "td",
                    cell,
                    scope="col" if name == "th" else "row" if place == 0 else None,
                    class_=None if place < words else "n",
                )
                for place, cell in enumerate(cells)
            )
        )

    body = join(*(tag("tr", line(row, "td")) for row in rows))
    table = join(tag("thead", tag("tr", line(headings, "th"))), tag("tbody", body))
    # Not as the table's own caption, which would scroll out of sight with it.
    above = tag("p", caption, class_="caption")
    named = tag("table", table, aria_label=caption)
    box = tag("div", named, class_="scroll", tabindex=0, role="region", aria_label=caption)
    return join(above, box)


def embedded_json(data: Any) -> Markup:
    r"""JSON for a script element: no character in it can end the element, or begin another.

    Parameters
    ----------
    data : object
        What JSON knows.

    Returns
    -------
    json : Markup

    Examples
    --------
    >>> from deferlearn.report.html import embedded_json
    >>> embedded_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    content = json.dumps(data, allow_nan=False, separators=(",", ":"))  # ASCII only, by default
    for character in "<>&":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return Markup(content)
