"""Measures everything that the report says, in types that JSON has, so that other programs can use it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deferlearn._utils.words import counted
from deferlearn.report import about, verdict
from deferlearn.report.cases import ReportCases
from deferlearn.report.drift import drift
from deferlearn.report.effect import by_class, effect, errors
from deferlearn.report.estimates import Row, groups_of
from deferlearn.report.experts import asked_experts, experts_of
from deferlearn.report.machine import (
    decision_values,
    expected_errors,
    machine_probabilities,
)
from deferlearn.report.refit_study import (
    Progress,
    Refits,
    RefitStudy,
    budgets_to_try,
    draw_cases,
)
from deferlearn.report.reliability import operating_points, reliability
from deferlearn.report.rows import case_rows
from deferlearn.report.subgroups import subgroup_gaps
from deferlearn.report.unusual import unusual_cases
from deferlearn.report.where import who_errs_where
from deferlearn.report.words import PerThousand
from deferlearn.tables.decisions import Decisions
from deferlearn.tables.errors import TableError
from deferlearn.tables.expert_routing import ExpertRouter
from deferlearn.tables.routing import Router
from deferlearn.tables.team import TabularTeam

# Version of the numbers; raised when the meaning of a key changes.
FORMAT = 2
# Refits on more cases take many minutes and say little more.
REFIT_CASES = 1000
# Whose errors the report shows, unless the model was fitted on the same cases.
STORED = "the stored model"


def _silent(stage: str, done: int, total: int) -> None:
    """Do not show any progress."""


@dataclass(frozen=True)
class CaseReport:
    """What was measured about a model on cases with known truth; made by `case_report`.

    Attributes
    ----------
    numbers : dict
        All that was measured, in types that JSON has: cases, model, effect, errors, classes, confusion,
        together, where, subgroups, experts, points, reliability, drift, unusual, rate, assistance, curves,
        certificate, provenance, notes; with more than two classes also measures over all classes. Experts
        are None unless the model has several of them. All shares are between 0 and 1, with the ends of
        their 95% intervals.
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

    There are two kinds of results: what the stored model does with these cases, which is what the report
    is about; and whether another budget or a refitted team would help, for which teams of its kind are
    fitted on parts of the cases and judged on the other parts.

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
    card, cases, group = model.card_, chosen.cases, groups_of(chosen.cases)
    router = (ExpertRouter if card.get("experts") else Router)(
        model, version=version, probabilities=True
    )
    ((_, routed),) = list(router.route(lambda: [cases.features]))
    who, first = asked_experts(model, cases, routed)
    machine = np.array(routed["machine_answer"].to_pylist())
    stored = Decisions.of(cases, machine, np.array(routed["deferred"].to_pylist()), first)
    if not stored.read.any():
        raise TableError(
            "no human has answered any of the cases with a label"
            if first is None
            else "no case has an answer of the expert to whom it goes, or would go first"
        )
    unusual = np.array(routed["unusual"].to_pylist())
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
    found = errors(judged, group)
    sure = machine_probabilities(routed, card["classes"])
    numbers: Row = {
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
            "experts_told_apart": first is not None,
            "seen_in_training": seen,
            "subgroup": chosen.subgroup,
            "roles": cases.roles,
        },
        "model": {"version": version, **about.model_facts(card)},
        "judged_by": STORED if judged is stored else "teams fitted without the case",
        "effect": effect(
            judged,
            group,
            cases.classes if cases.graded and len(cases.classes) > 2 else None,
            None if cases.costs is None else judged.costs(cases.classes, cases.costs),
            1.0 if cases.costs is None else max(max(row) for row in cases.costs),
        ),
        "errors": found,
        "classes": by_class(judged, group, cases.classes),
        "confusion": judged.confusion(cases.classes),
        "measures": (
            judged.measures(cases.classes, cases.graded) if len(cases.classes) > 2 else None
        ),
        "together": judged.together(),
        "where": who_errs_where(judged, group, cases, card["columns"]),
        "subgroups": (
            None
            if chosen.subgroup_values is None
            else subgroup_gaps(judged, group, chosen.subgroup_values, cases.classes)
        ),
        "experts": experts_of(model, cases, who, group, seen),
        "points": operating_points(judged, group, cases.classes, decision_values(routed, seen)),
        # On the cases that it was fitted on, a machine is right more often than on others.
        "reliability": None if seen else reliability(sure, ~stored.wrong("machine"), group),
        "drift": None if seen else drift(model, cases, group, judged, found),
        "unusual": None if seen else unusual_cases(router.totals, unusual, judged, group),
        "rate": about.deferral_rate(model, stored, group, seen),
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
            *router.totals.unknown_notes(),
            *dict.fromkeys(" ".join(message.split()) for message in warned),
            *_cautions(judged, first is not None, in_sample=seen and judged is stored),
        ],
    }
    told = per_thousand(numbers)
    numbers["effect"] |= {
        "headline": verdict.headline(numbers["effect"], found, told),
        "findings": verdict.findings(numbers, told),
    }
    expected = expected_errors(model, cases, first)
    return CaseReport(numbers, case_rows(chosen, routed, stored, card, sure, expected, first))


def per_thousand(numbers: Row) -> PerThousand:
    """Writes the shares of a report, with as many decimals as its errors need."""
    return PerThousand(found["share"] for found in numbers["errors"].values())


def _cautions(judged: Decisions, experts: bool, in_sample: bool) -> list[str]:
    found = []
    unread = int((~judged.read).sum())
    verb = "is" if unread == 1 else "are"
    if unread and experts:
        deferred = int((judged.deferred & ~judged.read).sum())
        found.append(
            f"{counted(unread, 'case')} without an answer of the expert to whom the case goes, or would go "
            f"first, {verb} not judged. Deferred among them: {deferred}."
        )
    elif unread:
        found.append(f"{counted(unread, 'case')} that no human has answered {verb} not judged.")
    if in_sample:
        found.append(
            "The model was fitted on these cases: the errors of machine and team are too low."
        )
    return found
