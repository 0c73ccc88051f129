"""Teams fitted anew for a report: cases left out, verdict and curves, one after the other, counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deferlearn.evaluation.curves import AutomationCurve
from deferlearn.report import refits
from deferlearn.report.cases import ReportCases
from deferlearn.report.decisions import FOLDS, Decisions, held_out_decisions
from deferlearn.tables.team import TabularTeam
from deferlearn.teams import UncertaintyTriage

HELD_OUT, VERDICT, CURVES = "cases left out", "verdict", "curves"

# Told what is going on, how many fits are done, and how many there are.
Progress = Callable[[str, int, int], None]


class Anew(NamedTuple):
    """What came out.

    Attributes
    ----------
    judged : Decisions
        To judge by: of teams that had not seen the case, or of the stored model.
    left_out : bool
        Whether they are of such teams.
    found : dict
        The keys assistance and curves; None where nothing was measured.
    skipped : str or None
        Why nothing was.
    """

    judged: Decisions
    left_out: bool
    found: dict[str, Any]
    skipped: str | None


def fit_anew(
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
) -> Anew:
    """Fit what the report needs, unless it is to be skipped.

    Parameters
    ----------
    model : TabularTeam
        The stored one.
    chosen : ReportCases
        The cases.
    rows : ndarray of int
        Positions of those that teams are fitted on.
    stored : Decisions
        What the stored model decides.
    skipped : str or None
        Why nothing shall be fitted, if so.
    seen : bool
        Whether the model was fitted on these very cases.
    quick : bool
        Fewer budgets and splits.
    seed : int
        Of the splits.
    n_jobs : int or None
        How many fits at a time.
    progress : callable
        Told how far it is.

    Returns
    -------
    Anew
    """
    nothing = {"assistance": None, "curves": None}
    if skipped:
        return Anew(stored, False, nothing, skipped)
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
        return Anew(judged, left_out, nothing, " ".join(str(error).split()).rstrip("."))
    found = {
        "assistance": answer.to_dict(),
        "curves": {name: _curve(curve) for name, curve in lines.items()},
    }
    return Anew(judged, left_out, found, None)


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
