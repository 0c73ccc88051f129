"""The page: numbers and pictures put into the templates, style and script inside, no other file needed."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from deferlearn.report import words
from deferlearn.report.errors_by_column import MAX_COLUMNS
from deferlearn.report.pictures import pictures
from deferlearn.report.rows import MAX_ROWS

if TYPE_CHECKING:
    from deferlearn.report.measure import CaseReport

# Resources of the page, which a browser accepts by their hash only.
STYLE, SCRIPT = "page.css", "page.js"


def environment() -> Environment:
    """The templates; every value is escaped unless it is `Markup`, and a missing one is an error."""
    made = Environment(
        loader=PackageLoader("deferlearn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # `tojson` escapes what could end a script element; compact, and numbers only that JSON has.
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    for function in (
        words.measured,
        words.percent,
        words.counted,
        words.budget,
        words.with_interval,
        words.error_on_class,
        words.difference,
        words.number,
        words.share_in_words,
        words.shade,
    ):
        made.filters[function.__name__] = function
    return made


def render(report: CaseReport) -> str:
    """The report as one HTML page.

    Parameters
    ----------
    report : CaseReport
        What was measured.

    Returns
    -------
    page : str
        It loads nothing, and only its own script can run in it.
    """
    templates = environment()
    resources = {
        name: Markup(templates.loader.get_source(templates, name)[0])  # type: ignore[union-attr]
        for name in (STYLE, SCRIPT)
    }
    return templates.get_template("page.html").render(
        **report.numbers,
        pictures=pictures(report.numbers),
        table=report.rows,
        max_rows=MAX_ROWS,
        max_columns=MAX_COLUMNS,
        style=resources[STYLE],
        script=resources[SCRIPT],
        hashes={name: _hash(content) for name, content in resources.items()},
    )


def _hash(content: str) -> Markup:
    """The source expression by which a content security policy allows this text and no other."""
    return Markup(f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'")
