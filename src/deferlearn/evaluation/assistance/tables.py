"""The tables of the report: rows as dicts, numbers as floats."""

from itertools import pairwise
from typing import Any

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.evaluation.assistance.classes import class_levels
from deferlearn.evaluation.assistance.factors import Row, break_even
from deferlearn.evaluation.assistance.judge import Judge


def team_table(judge: Judge) -> list[Row]:
    """The machine alone, the team at each budget, the human alone."""
    trial = judge.trial
    rows: list[Row] = []
    for place, budget in enumerate(trial.budgets):
        levels = _levels(judge, trial.wrong[place], judge.costs[place], 0.0, trial.widening, place)
        against = judge.against_human[place].columns("versus_human")
        deferred = float(trial.deferred[place].mean())
        row = {"who": "machine", "budget": budget, "deferred": deferred} | levels
        if place:
            row |= {"who": "team"} | judge.gains[place - 1].columns("difference") | against
            rows.append(row | _on_deferred(judge, place))
        else:
            rows.append(row | against)
    human = {"who": "human", "budget": None, "deferred": 1.0}
    least = float(judge.unit_costs.deferral_cost)
    wrong = trial.human_wrong.astype(np.float64)
    return [*rows, human | _levels(judge, wrong, judge.human_costs, least, 1.0, None)]


def _levels(
    judge: Judge, wrong: Array, costs: Array, least: float, widening: float, place: int | None
) -> Row:
    """Error and cost of machine, team or human; a case costs `least` or more.

    With two classes also sensitivity and specificity; with more, measures over all classes.
    """
    positive = judge.trial.positive
    if judge.trial.kinds is None:
        more = judge.alone(1.0 - wrong, positive, widening=widening).columns("sensitivity")
        more |= judge.alone(1.0 - wrong, ~positive, widening=widening).columns("specificity")
    else:
        more = class_levels(judge, place)
    return (
        judge.alone(wrong, widening=widening).columns("error")
        | more
        | judge.alone(costs, ends=(least, judge.ends[1]), widening=widening).columns("cost")
    )


def _on_deferred(judge: Judge, place: int) -> Row:
    """Errors of human and machine on the deferred cases, and how often humans may err there."""
    trial = judge.trial
    share = trial.deferred[place]
    total = float(share.sum()) or float("nan")
    return {
        "human_error_on_deferred": float(share @ trial.human_wrong / total),
        "machine_error_on_deferred": float(trial.machine_wrong[place].sum() / total),
        "break_even_factor": break_even(judge, place),
    }


def step_table(judge: Judge) -> list[Row]:
    """What each step to the next larger budget does."""
    budgets = judge.trial.budgets
    return [
        {"from_budget": budgets[low], "to_budget": budgets[high]}
        | judge.between_budgets[low, high].columns("difference")
        for low, high in pairwise(range(len(budgets)))
    ]


def best_place(judge: Judge) -> int:
    """The budget beyond which more deferral is not shown to help; 0 if no budget is shown to help.

    From the machine alone upwards, a larger budget is taken if it is shown to cost less than the
    machine, and less than the budget taken last. So several steps that are too small to be distinguished
    from chance one by one count together, and a budget is not raised for nothing.
    """
    current = 0
    for place, gain in enumerate(judge.gains, start=1):
        if gain.high < 0 and (current == 0 or judge.between_budgets[current, place].high < 0):
            current = place
    return current


def subgroup_table(judge: Judge, values: list[Any]) -> list[Row]:
    """Errors by subgroup at each budget; `difference` counts the cost of errors, not human time."""
    trial = judge.trial
    own = [values[row] for row in trial.rows] if values else []
    human_wrong = trial.human_wrong.astype(np.float64)
    rows = []
    for value in _in_order(own):
        chosen = np.array([entry == value for entry in own], dtype=bool)
        common = (
            {"n_cases": int(chosen.sum()), "n_groups": len(np.unique(trial.group[chosen]))}
            | n_positive(judge, chosen)
            | judge.alone(trial.wrong[0], chosen, widening=trial.widening).columns("machine_error")
            | judge.alone(human_wrong, chosen).columns("human_error")
        )
        for place in judge.teams:
            wrong = trial.wrong[place]
            harm = judge.error_costs[place] - judge.error_costs[0]
            rows.append(
                {"subgroup": value, "budget": trial.budgets[place]}
                | common
                | {"deferred": float(trial.deferred[place][chosen].mean())}
                | judge.alone(wrong, chosen, widening=trial.widening).columns("team_error")
                | judge.alone(harm, chosen, ends=judge.ends).columns("difference")
            )
    return rows


def n_positive(judge: Judge, chosen: Any = slice(None)) -> Row:
    """The number of positive cases, if there are two classes."""
    trial = judge.trial
    return {"n_positive": int(trial.positive[chosen].sum())} if trial.kinds is None else {}


def _in_order(values: list[Any]) -> list[Any]:
    found = list(dict.fromkeys(values))
    try:
        return sorted(found)
    except TypeError:  # values of several types stay in the order in which they came
        return found
