"""Measures everything that the report says, in types that JSON has, so that other programs can use it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deferlearn.report import about
from deferlearn.report.cases import ReportCases
from deferlearn.report.errors_by_column import errors_by_column
from deferlearn.report.refit_study import (
    Progress,
    Refits,
    RefitStudy,
    budgets_to_try,
    draw_cases,
)
from deferlearn.report.rows import case_rows
from deferlearn.report.words import counted
from deferlearn.tables.cases import Cases
from deferlearn.tables.decisions import Decisions
from deferlearn.tables.errors import TableError
from deferlearn.tables.routing import Router
from deferlearn.tables.team import TabularTeam

# Version of the numbers; raised when the meaning of a key changes.
FORMAT = 1
# Refits on more cases take many minutes and say little more.
REFIT_CASES = 1000


def _silent(stage: str, done: int, total: int) -> None:
    """Do not show any progress."""


@dataclass(frozen=True)
class CaseReport:
    """What was measured about a model on cases with known truth; made by `case_report`.

    Attributes
    ----------
    numbers : dict
        All that was measured, in types that JSON has: cases, model, errors, confusion, together, where,
        calibration, assistance, curves, certificate, provenance, notes; with more than two classes also
        measures over all classes, and sensitivities of each.
    rows : dict
        The table of cases: columns, rows, and the number of all cases.

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
            In types that JSON has.
        """
        return dict(self.numbers)

    def to_html(self) -> str:
        """One page that needs no network and no other file.

        Returns
        -------
        page : str
        """
        from deferlearn.report.page import render  # needs jinja2

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
    progress: Progress = _silent,
) -> CaseReport:
    """Measure a model on cases with known truth and human answers.

    There are two kinds of results: what the stored model does with these cases; and whether assistance
    pays at all on cases like these, for which teams of its kind are refitted on parts of the cases and
    judged on the other parts.

    Parameters
    ----------
    model : TabularTeam
        The model, from `deferlearn.tables.fit_table`.
    chosen : ReportCases
        The cases, from `select_report_cases`.
    seen : bool, default=False
        Whether the model was fitted on these cases. The errors are then those of teams that were fitted
        without the case, since the model's own errors would be too low.
    quick : bool, default=False
        Whether to try fewer budgets and splits.
    refit_cases : int, default=1000
        Teams are refitted on at most this many cases, drawn at random; 0 refits none.
    seed : int, default=0
        Random seed of the splits and of the cases drawn.
    n_jobs : int or None, default=None
        How many fits run at the same time.
    version : str, default=""
        The model's version, to be shown.
    notes : sequence of str, default=()
        Further notes, to be shown.
    provenance : dict or None, default=None
        Files and command, to be shown.
    progress : callable
        Called with the stage, the number of fits that are done, and the number of all fits.

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
    machine = np.array(routed["machine_answer"].to_pylist())
    stored = Decisions.of(cases, machine, np.array(routed["deferred"].to_pylist()))
    if not stored.read.any():
        raise TableError("no human has answered any of the cases with a label")
    rows = draw_cases(chosen, refit_cases, seed)
    study = RefitStudy(model, chosen, rows, budgets_to_try(model, quick), quick, seed, n_jobs)
    skipped = "it was not asked for" if refit_cases == 0 else study.obstacle()
    refits, warned = Refits(None, None, None, skipped), []
    if not skipped:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            refits = study.run(hold_out=seen and len(rows) == len(cases), progress=progress)
        warned = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    judged = stored if refits.judged is None else refits.judged
    numbers = {
        "format": FORMAT,
        "cases": {
            "rows": len(cases),
            "rows_without_label": cases.n_unlabelled,
            "classes": list(cases.classes),
            "graded": cases.graded,
            "class_counts": {c: int(np.sum(cases.truth == c)) for c in cases.classes},
            "groups": None if cases.groups is None else len(set(cases.groups.tolist())),
            "judged": int(judged.read.sum()),
            "readers": cases.reader_errors(),
            "seen_in_training": seen,
            "roles": cases.roles,
        },
        "model": {"version": version, **about.model_facts(card)},
        "judged_by": "the stored model" if judged is stored else "teams fitted without the case",
        "errors": judged.errors(),
        "confusion": judged.confusion(cases.classes),
        **_by_class(judged, cases),
        "together": judged.together(),
        "where": errors_by_column(judged, cases, card["columns"]),
        "calibration": about.calibration(model, stored, seen),
        "assistance": refits.assistance,
        "curves": refits.curves,
        "refits": {
            "skipped": refits.skipped,
            "cases": 0 if refits.skipped else len(rows),
            "quick": quick,
            "seed": seed,
        },
        "certificate": about.certificate(model),
        "provenance": {**about.versions(card), "seed": seed, **(provenance or {})},
        "notes": [
            *notes,
            *_unknown_categories(router),
            *dict.fromkeys(" ".join(message.split()) for message in warned),
            *_cautions(cases, stored, in_sample=seen and judged is stored),
        ],
    }
    return CaseReport(numbers, case_rows(chosen, routed, stored, card))


def _by_class(judged: Decisions, cases: Cases) -> dict[str, Any]:
    """What the report says in addition about more than two classes."""
    if len(cases.classes) == 2:
        return {"measures": None, "sensitivities": None}
    return {
        "measures": judged.measures(cases.classes, cases.graded),
        "sensitivities": judged.sensitivities(cases.classes),
    }


def _unknown_categories(router: Router) -> list[str]:
    return [
        f"Column {name!r} has {counted(unknown.cells, 'cell')} with a category that did not occur in "
        f"training, such as {unknown.example!r}; the model treats it as a rare category."
        for name, unknown in router.totals.unknown.items()
    ]


def _cautions(cases: Cases, stored: Decisions, in_sample: bool) -> list[str]:
    found = []
    unread = int((~stored.read).sum())
    if unread:
        verb = "is" if unread == 1 else "are"
        found.append(f"{counted(unread, 'case')} that no human has answered {verb} not judged.")
    if in_sample:
        found.append(
            "The model was fitted on these cases: the errors of machine and team are too low."
        )
    if cases.groups is not None:
        found.append(
            "Cases of the same group are alike: the intervals of the errors of machine, human and team, "
            "and of the share deferred, are narrower than they should be. Those of the verdict take the "
            "groups into account."
        )
    return found
