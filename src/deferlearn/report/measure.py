"""Everything that the report says, measured; what JSON can hold, so that other programs can use it."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

import deferlearn
from deferlearn.baselines import UncertaintyTriage
from deferlearn.curves import AutomationCurve
from deferlearn.report import refits
from deferlearn.report.cases import ReportCases
from deferlearn.report.decisions import (
    FOLDS,
    Decisions,
    held_out_decisions,
    share_of,
    stored_decisions,
)
from deferlearn.report.rows import case_rows
from deferlearn.report.where import where_errors
from deferlearn.svc import AssistedSVC
from deferlearn.tabular.errors import TableError
from deferlearn.tabular.routing import Router
from deferlearn.tabular.team import TabularTeam

# Of the dict; raised when its keys change their meaning.
FORMAT = 1
# Teams are fitted anew on no more cases than that: beyond, it takes many minutes, and says little more.
REFIT_CASES = 1000
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pyarrow", "pandas", "skops")
HELD_OUT, VERDICT, CURVES = "cases left out", "verdict", "curves"

# Told what is going on, how many fits are done, and how many there are.
Progress = Callable[[str, int, int], None]


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
    >>> from deferlearn.tabular import fit_table, select_cases
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
        From `deferlearn.tabular.fit_table`.
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
    >>> from deferlearn.tabular import fit_table, select_cases
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
        judged, left_out, again, skipped = _fit_anew(
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
        "model": {"version": version, **_model_facts(card)},
        "judged_by": "teams fitted without the case" if left_out else "the stored model",
        "errors": judged.errors(),
        "confusion": judged.confusion(cases.classes),
        "together": judged.together(),
        "where": where_errors(judged, cases, card["columns"]),
        "calibration": _calibration(model, stored, seen),
        **again,
        "refits": {
            "skipped": skipped,
            "cases": 0 if skipped else len(rows),
            "quick": quick,
            "seed": seed,
        },
        "certificate": _certificate(model),
        "provenance": {**_versions(card), "seed": seed, **(provenance or {})},
        "notes": told,
    }
    return CaseReport(numbers, case_rows(chosen, routed, stored, card))


def _fit_anew(
    model: TabularTeam,
    chosen: ReportCases,
    rows: Any,
    stored: Decisions,
    skipped: str | None,
    seen: bool,
    quick: bool,
    seed: int,
    n_jobs: int | None,
    progress: Progress,
) -> tuple[Decisions, bool, dict[str, Any], str | None]:
    """Decisions to judge by and whether they are of cases left out; verdict and curves; why not."""
    nothing = {"assistance": None, "curves": None}
    if skipped:
        return stored, False, nothing, skipped
    some = chosen.cases.part(rows)
    plan = refits.make_plan(model, quick)
    alone = n_jobs in (None, 1)
    hold_out = seen and len(rows) == len(chosen)
    total = plan.n_verdict + plan.n_curve + (FOLDS if hold_out else 0)
    count = _Count(total, progress)
    watch = count.one if alone else None  # in other processes nobody can be told
    judged, left_out = stored, False
    try:
        if hold_out:
            count.begin(HELD_OUT)
            team = refits.unfitted(model, threshold=True)
            judged = held_out_decisions(team, chosen.cases, seed, count.one)
            left_out = True
        count.begin(VERDICT)
        subgroup, extra = None, []
        if chosen.subgroup is not None and chosen.subgroup_values is not None:
            subgroup = chosen.subgroup, [chosen.subgroup_values[row] for row in rows]
            extra = [name for name in [chosen.subgroup] if name not in model.card_["columns"]]
        answer = refits.verdict(
            refits.unfitted(model, threshold=False, done=watch, drop=extra),
            some,
            plan,
            subgroup=subgroup,
            seed=seed,
            n_jobs=n_jobs,
        )
        count.reach(total - plan.n_curve)
        count.begin(CURVES)
        teams = {refits.TEAM: refits.unfitted(model, threshold=True, done=watch)}
        if not isinstance(model.chosen, UncertaintyTriage):
            triage = UncertaintyTriage(alpha=model.card_["alpha"], random_state=seed)
            teams[refits.TRIAGE] = refits.unfitted(model, threshold=True, done=watch, team=triage)
        lines = refits.curves(teams, some, plan, seed=seed, n_jobs=n_jobs)
        count.reach(total)
    except ValueError as error:  # parts of these cases that nothing can be learned from
        return judged, left_out, nothing, " ".join(str(error).split()).rstrip(".")
    found = {
        "assistance": answer.to_dict(),
        "curves": {name: _curve(curve) for name, curve in lines.items()},
    }
    return judged, left_out, found, None


class _Count:
    """How many fits are done."""

    def __init__(self, total: int, progress: Progress) -> None:
        self.total, self.progress, self.done, self.stage = total, progress, 0, ""

    def begin(self, stage: str) -> None:
        self.stage = stage
        self.progress(stage, self.done, self.total)

    def one(self) -> None:
        self.reach(self.done + 1)

    def reach(self, done: int) -> None:
        self.done = min(done, self.total)
        self.progress(self.stage, self.done, self.total)


def _curve(curve: AutomationCurve) -> dict[str, Any]:
    shares = AutomationCurve(curve.budgets, {"deferred": curve.deferred}, curve.deferred)

    def listed(values: Any) -> list[float | None]:
        return [float(v) if np.isfinite(v) else None for v in values]

    return {
        "budgets": listed(curve.budgets),
        "n_splits": len(curve.deferred),
        **{
            name: {
                "mean": listed(of.mean[name]),
                "lower": listed(of.lower[name]),
                "upper": listed(of.upper[name]),
            }
            for name, of in (("error", curve), ("deferred", shares))
        },
    }


def _calibration(model: TabularTeam, stored: Decisions, seen: bool) -> dict[str, Any]:
    """The share that was asked for, that the model promises, and that it defers of these cases."""
    observed = share_of(int(stored.deferred.sum()), len(stored.deferred))
    promised = float(model.card_["deferral_rate"])
    return {
        "asked": refits.own_share(model),
        "promised": promised,
        "observed": observed,
        "kept": bool(observed["lower"] <= promised <= observed["upper"]),
        "in_sample": seen,
    }


def _certificate(model: TabularTeam) -> dict[str, Any]:
    if not isinstance(model.chosen, AssistedSVC):
        name = type(model.chosen).__name__
        return {
            "words": [
                f"This model ({name}) sets no training cases aside for humans, so there is no "
                "selection, and nothing to certify. How good its choice is, only the errors can tell."
            ],
            "guaranteed": False,
        }
    found = model.chosen.certificate_
    return {
        "words": found.summary().splitlines(),
        "guaranteed": bool(found.guaranteed),
        "value": float(found.value),
        "upper_bound": float(found.optimum.value),
        "relative_gap": float(found.relative_gap),
        "n": int(found.n),
    }


def _model_facts(card: dict[str, Any]) -> dict[str, Any]:
    names = ("created", "policy", "alpha", "tuned", "budget", "rows", "seed", "columns", "versions")
    return {name: card[name] for name in names} | {
        "files": card["files"],
        "deferral_rate": card["deferral_rate"],
        "deferral_threshold": card["deferral_threshold"],
    }


def _versions(card: dict[str, Any]) -> dict[str, Any]:
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "deferlearn": deferlearn.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "platform": f"{platform.system()} {platform.machine()}",
        "model_seed": card["seed"],
    }
