"""The page: sections in the order in which a reader asks, style and script inside, nothing from afar."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from deferlearn.report import sections
from deferlearn.report.html import Markup, embedded_json, join, tag

if TYPE_CHECKING:
    from deferlearn.report.measure import CaseReport

TITLE = "Machine, human and team"


def render(report: CaseReport) -> str:
    """The report as one HTML page.

    Parameters
    ----------
    report : CaseReport
        What was measured.

    Returns
    -------
    page : str
        It loads nothing, and no script but its own runs in it.
    """
    numbers = report.numbers
    style, script = _resource("page.css"), _resource("page.js")
    parts = [
        ("verdict", "The verdict", sections.verdict(numbers)),
        ("errors", "Who errs, and how often", sections.errors(numbers)),
        ("where", "Who errs where", sections.where(numbers)),
        ("curves", "More or fewer cases for humans", sections.curves(numbers)),
        ("rate", "Does the model defer what it promises?", sections.rate(numbers)),
        ("cases", "Cases, those for humans first", sections.cases(numbers, report.rows)),
        ("certificate", "What is certain about the selection", sections.certificate(numbers)),
        ("again", "To run it again", sections.again(numbers)),
    ]
    links = join(*(tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in parts))
    body = join(
        tag("header", join(tag("h1", TITLE), sections.summary(numbers))),
        tag("nav", tag("ul", links), aria_label="Sections"),
        tag(
            "main",
            join(
                *(
                    tag("section", join(tag("h2", title, id=f"{name}-h"), content), id=name)
                    for name, title, content in parts
                )
            ),
        ),
        tag(
            "script",
            embedded_json({k: v for k, v in report.rows.items() if k != "total"}),
            type="application/json",
            id="cases-data",
        ),
        tag("script", script),
    )
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; "
        "form-action 'none'"
    )
    head = join(
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        tag("title", f"{TITLE}: {numbers['cases']['rows']} cases"),
        tag("style", style),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _resource(name: str) -> Markup:
    return Markup(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _hash(content: str) -> str:
    """By which a browser knows the page's own style and script from any other."""
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
