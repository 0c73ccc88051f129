"""Everything that the report says, measured; what JSON can hold, so that other programs can use it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deferlearn.report import about, refits
from deferlearn.report.anew import Progress, fit_anew
from deferlearn.report.cases import ReportCases
from deferlearn.report.decisions import stored_decisions
from deferlearn.report.rows import case_rows
from deferlearn.report.where import where_errors
from deferlearn.tables.errors import TableError
from deferlearn.tables.routing import Router
from deferlearn.tables.team import TabularTeam

# Of the dict; raised when its keys change their meaning.
FORMAT = 1
# Teams are fitted anew on no more cases than that: beyond, it takes many minutes, and says little more.
REFIT_CASES = 1000


def _nobody(stage: str, done: int, total: int) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class CaseReport:
    """What was found about a model on cases with known truth; made by `case_report`.

    Attributes
    ----------
    numbers : dict
        All that was measured, in what JSON knows: cases, model, errors, confusion, together, where,
        calibration, assistance, curves, certificate, provenance, notes.
    rows : dict
        The table of cases: columns, rows, and how many cases there are in all.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.report import case_report, select_report_cases
    >>> from deferlearn.tables import fit_table, select_cases
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=60)
    >>> table = {"size": size, "truth": np.where(size + rng.normal(size=60) > 0, "ill", "well")}
    >>> table["doctor"] = np.where(size + rng.normal(size=60) > 0, "ill", "well")
    >>> team = fit_table(select_cases(table, "truth", humans=["doctor"]), alpha=0.1)
    >>> report = case_report(team, select_report_cases(table, team), refit_cases=0)
    >>> sorted(report.numbers["confusion"])
    ['human', 'machine', 'team']
    >>> report.to_html().startswith("<!doctype html>")
    True
    """

    numbers: dict[str, Any]
    rows: dict[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, without the table of cases.

        Returns
        -------
        numbers : dict
            In what JSON knows.
        """
        return dict(self.numbers)

    def to_html(self) -> str:
        """One page that needs nothing else: no network, no other file.

        Returns
        -------
        page : str
        """
        from deferlearn.report.page import render

        return render(self)


def case_report(
    model: TabularTeam,
    chosen: ReportCases,
    *,
    seen: bool = False,
    quick: bool = False,
    refit_cases: int = REFIT_CASES,
    seed: int = 0,
    n_jobs: int | None = None,
    version: str = "",
    notes: Sequence[str] = (),
    provenance: dict[str, Any] | None = None,
    progress: Progress = _nobody,
) -> CaseReport:
    """Measure a model on cases with known truth and human answers.

    Two kinds of results stand side by side. What the stored model does with these cases; and whether
    assistance pays at all on cases like these, for which teams of its kind are fitted on parts of them
    and judged on the rest.

    Parameters
    ----------
    model : TabularTeam
        From `deferlearn.tables.fit_table`.
    chosen : ReportCases
        From `select_report_cases`.
    seen : bool, default=False
        Whether the model was fitted on these very cases. Then errors are those of teams that were fitted
        without the case, since the model's own would flatter it.
    quick : bool, default=False
        Fewer budgets and splits.
    refit_cases : int, default=1000
        Teams are fitted anew on at most so many cases, drawn by lot; 0 fits none.
    seed : int, default=0
        Of splits and lots.
    n_jobs : int or None, default=None
        How many fits at a time.
    version : str, default=""
        How the model is called.
    notes : sequence of str, default=()
        What else there is to know, to be told.
    provenance : dict or None, default=None
        Files and command, to be told.
    progress : callable
        Told what is going on, how many fits are done, and how many there are.

    Returns
    -------
    CaseReport

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.report import case_report, select_report_cases
    >>> from deferlearn.tables import fit_table, select_cases
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=60)
    >>> table = {"size": size, "truth": np.where(size + rng.normal(size=60) > 0, "ill", "well")}
    >>> table["doctor"] = np.where(np.arange(60) % 30, table["truth"], "ill")
    >>> half = {name: column[:30] for name, column in table.items()}
    >>> team = fit_table(select_cases(half, "truth", humans=["doctor"]), alpha=0.1, budget=0.4)
    >>> rest = {name: column[30:] for name, column in table.items()}
    >>> report = case_report(team, select_report_cases(rest, team), refit_cases=0)
    >>> error = report.numbers["errors"]["human"]
    >>> error["count"], error["cases"]
    (1, 30)
    """
    card, cases = model.card_, chosen.cases
    router = Router(model, version=version)
    ((_, routed),) = list(router.route(lambda: [cases.features]))
    stored = stored_decisions(routed, cases)
    if not stored.read.any():
        raise TableError("no human has answered any of the cases with a label")
    told = [*notes]
    told += [
        f"Column {name!r} has {unknown.cells} cells with a category that was not there in training, such "
        f"as {unknown.example!r}; they count as rare ones."
        for name, unknown in router.totals.unknown.items()
    ]
    rows = refits.drawn(chosen, refit_cases, seed)
    skipped = "it was not asked for" if refit_cases == 0 else None
    skipped = skipped or refits.why_not(model, cases.part(rows))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        judged, left_out, again, skipped = fit_anew(
            model, chosen, rows, stored, skipped, seen, quick, seed, n_jobs, progress
        )
    told += dict.fromkeys(
        " ".join(str(w.message).split()) for w in caught if issubclass(w.category, UserWarning)
    )
    unread = int((~stored.read).sum())
    if unread:
        told.append(f"{unread} cases that no human has answered are not judged.")
    if seen and not left_out:
        told.append(
            "The model was fitted on these very cases: errors of machine and team are too low."
        )
    if cases.groups is not None:
        told.append(
            "Cases of a group are alike: the intervals of the errors of machine, human and team, and of "
            "the share deferred, are narrower than they should be. Those of the verdict allow for it."
        )
    numbers = {
        "format": FORMAT,
        "cases": {
            "rows": len(cases),
            "rows_without_label": cases.n_unlabelled,
            "classes": list(cases.classes),
            "class_counts": {c: int(np.sum(cases.truth == c)) for c in cases.classes},
            "groups": None if cases.groups is None else len(set(cases.groups.tolist())),
            "judged": int(judged.read.sum()),
            "readers": cases.reader_errors(),
            "seen_in_training": seen,
            "roles": cases.roles,
        },
        "model": {"version": version, **about.model_facts(card)},
        "judged_by": "teams fitted without the case" if left_out else "the stored model",
        "errors": judged.errors(),
        "confusion": judged.confusion(cases.classes),
        "together": judged.together(),
        "where": where_errors(judged, cases, card["columns"]),
        "calibration": about.calibration(model, stored, seen),
        **again,
        "refits": {
            "skipped": skipped,
            "cases": 0 if skipped else len(rows),
            "quick": quick,
            "seed": seed,
        },
        "certificate": about.certificate(model),
        "provenance": {**about.versions(card), "seed": seed, **(provenance or {})},
        "notes": told,
    }
    return CaseReport(numbers, case_rows(chosen, routed, stored, card))
