"""The page: numbers and pictures put into the templates, style and script inside, no other file needed."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from deferlearn.plot.load import price_words
from deferlearn.report import verdict, words
from deferlearn.report.bars import difference_bar, spread_bars
from deferlearn.report.measure import STORED, per_thousand
from deferlearn.report.pictures import pictures
from deferlearn.report.rows import MAX_ROWS
from deferlearn.report.sections import sections_of
from deferlearn.report.where import MAX_COLUMNS, MIN_CASES, telling_rows

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
        words.counted,
        words.budget,
        words.listed,
        words.number,
        price_words,
        words.shade,
        words.with_commas,
        day,
    ):
        made.filters[function.__name__] = function
    return made


def day(timestamp: str) -> str:
    """The date of a timestamp, as people write it."""
    moment = datetime.fromisoformat(timestamp)
    return f"{moment.day} {moment:%B %Y}"


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
    told = per_thousand(report.numbers)
    return templates.get_template("page.html").render(
        **report.numbers,
        told=told,
        answers=verdict,
        sections=sections_of(report.numbers),
        by_stored=report.numbers["judged_by"] == STORED,
        pictures=pictures(report.numbers, told),
        telling=telling_rows(report.numbers["where"]),
        difference_bar=difference_bar,
        spread_bars=spread_bars,
        largest=max(
            (abs(row["change"]["difference"]) for row in report.numbers["where"]), default=0.0
        ),
        table=report.rows,
        max_rows=MAX_ROWS,
        max_columns=MAX_COLUMNS,
        min_cases=MIN_CASES,
        style=resources[STYLE],
        script=resources[SCRIPT],
        hashes={name: _hash(content) for name, content in resources.items()},
    )


def _hash(content: str) -> Markup:
    """The source expression by which a content security policy allows this text and no other."""
    return Markup(f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'")
