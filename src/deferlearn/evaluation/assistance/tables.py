"""From what happened to each case to the tables of the report: rows as dicts, numbers as floats."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from deferlearn.evaluation.assistance.factors import Row, break_even
from deferlearn.evaluation.assistance.judge import Judge
from deferlearn.evaluation.assistance.trial import Bools
from deferlearn.evaluation.intervals import (
    Floats,
    Index,
    Interval,
    mean_interval,
    single_critical,
)

SHARE = (0.0, 1.0)


def team_table(judge: Judge) -> list[Row]:
    """The machine alone, the team at each budget, the human alone."""
    trial = judge.trial
    rows = []
    gains, against = judge.gains, judge.against_human
    for place, budget in enumerate(trial.budgets):
        row: Row = {"who": "team" if place else "machine", "budget": budget}
        row["deferred"] = float(trial.deferred[place].mean())
        ends = (0.0, judge.ends[1])
        row |= _levels(judge, trial.wrong[place], judge.costs[place], ends, trial.widening)
        if place:
            row |= gains[place - 1].columns("difference")
        row |= against[place].columns("versus_human")
        if place:
            row |= _on_deferred(judge, place)
        rows.append(row)
    human: Row = {"who": "human", "budget": None, "deferred": 1.0}
    ends = (float(judge.prices.deferral_cost), judge.ends[1])
    human |= _levels(judge, trial.human_wrong.astype(np.float64), judge.human_costs, ends, 1.0)
    return [*rows, human]


def _levels(
    judge: Judge, wrong: Floats, costs: Floats, ends: tuple[float, float], widening: float
) -> Row:
    """Error, sensitivity, specificity and cost of one member or team."""
    trial = judge.trial
    row: Row = {}
    parts = {
        "error": (wrong, np.ones(len(wrong), dtype=bool)),
        "sensitivity": (1.0 - wrong, trial.positive),
        "specificity": (1.0 - wrong, ~trial.positive),
    }
    for name, (values, chosen) in parts.items():
        row |= _alone(judge, values, chosen, SHARE, widening).columns(name)
    everybody = np.ones(len(costs), dtype=bool)
    return row | _alone(judge, costs, everybody, ends, widening).columns("cost")


def _alone(
    judge: Judge,
    values: Floats,
    chosen: Bools,
    ends: tuple[float, float],
    widening: float = 1.0,
) -> Interval:
    """Mean over some of the cases, with an interval that holds by itself."""
    group = judge.trial.group[chosen]
    critical = single_critical(group, judge.confidence)
    return mean_interval(values[chosen], group, ends, critical, widening)


def _on_deferred(judge: Judge, place: int) -> Row:
    """Who errs how often on the cases that are handed over, and how often humans may err."""
    trial = judge.trial
    share = trial.deferred[place]
    total = float(share.sum())
    nothing = float("nan")
    return {
        "human_error_on_deferred": float(share @ trial.human_wrong / total) if total else nothing,
        "machine_error_on_deferred": float(trial.machine_wrong[place].sum() / total)
        if total
        else nothing,
        "break_even_factor": break_even(judge, place),
    }


def step_table(judge: Judge) -> list[Row]:
    """What each step to the next larger budget does."""
    pairs = judge.between_budgets
    budgets = judge.trial.budgets
    return [
        {"from_budget": budgets[low], "to_budget": budgets[high]}
        | pairs[low, high].columns("difference")
        for low, high in pairwise(range(len(budgets)))
    ]


def best_place(judge: Judge) -> int:
    """The budget beyond which more deferral is not shown to help; 0 if none is shown to.

    From the machine alone upwards, a larger budget is taken if it is shown to cost less than the
    machine, and less than the budget taken last. So steps too small to be told from chance one by
    one count together, and a budget is not raised for nothing.
    """
    gains, pairs = judge.gains, judge.between_budgets
    current = 0
    for place, gain in enumerate(gains, start=1):
        better = gain.high < 0 and (current == 0 or pairs[current, place].high < 0)
        current = place if better else current
    return current


def subgroup_table(judge: Judge, values: list[Any]) -> list[Row]:
    """Errors by subgroup at each budget; `difference` is in prices of errors, human time left out."""
    trial = judge.trial
    own = [values[row] for row in trial.rows]
    rows = []
    for value in _in_order(own):
        chosen = np.array([entry == value for entry in own], dtype=bool)
        human = _alone(judge, trial.human_wrong.astype(np.float64), chosen, SHARE)
        machine = _alone(judge, trial.wrong[0], chosen, SHARE, trial.widening)
        for place in judge.teams:
            row: Row = {"subgroup": value, "budget": trial.budgets[place]}
            row |= {"n_cases": int(chosen.sum()), "n_groups": _count(trial.group[chosen])}
            row["n_positive"] = int(trial.positive[chosen].sum())
            row["deferred"] = float(trial.deferred[place][chosen].mean())
            row |= machine.columns("machine_error") | human.columns("human_error")
            row |= _alone(judge, trial.wrong[place], chosen, SHARE, trial.widening).columns(
                "team_error"
            )
            harm = (trial.wrong[place] - trial.wrong[0]) * judge.price
            rows.append(row | _alone(judge, harm, chosen, judge.ends).columns("difference"))
    return rows


def _in_order(values: list[Any]) -> list[Any]:
    found = list(dict.fromkeys(values))
    try:
        return sorted(found)
    except TypeError:  # of several kinds: as they came
        return found


def _count(group: Index) -> int:
    return len(np.unique(group))
