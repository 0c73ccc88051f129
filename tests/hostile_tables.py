"""Tables in which every name and every text is an attack on who shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from deferlearn.tables import TabularTeam, fit_table, select_cases

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    "\"><img src=x onerror='alert(3)'>",
    '=HYPERLINK("http://example.org")',
    "]]> \u2028 & &lt; ${7*7} {{7*7}}",
)

LABEL, READER, IDENTIFIER = "<u>truth", "<script>reader", "<em>id"


def hostile_table(n: int = 60) -> dict[str, list[Any]]:
    """Columns, classes, readers, identifiers and cells."""
    rng = np.random.default_rng(1)
    size = rng.normal(size=n)
    classes = ("<b>ill</b>", "</script>well")
    truth = np.where(size + 0.5 * rng.normal(size=n) > 0, *classes)
    human = np.where(size + 0.5 * rng.normal(size=n) > 0, *classes)
    return {
        '<i>"size"</i>': size.round(3).tolist(),
        "</script><b>site": [HOSTILE[i % len(HOSTILE)] for i in range(n)],
        LABEL: truth.tolist(),
        READER: human.tolist(),
        IDENTIFIER: [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(n)],
    }


def hostile_model() -> TabularTeam:
    """Fitted on such a table."""
    cases = select_cases(hostile_table(), LABEL, humans=[READER], identifier=IDENTIFIER)
    return fit_table(cases, alpha=0.1)
