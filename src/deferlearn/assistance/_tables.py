"""From what happened to each case to the tables of the report: rows as dicts, numbers as floats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from deferlearn.assistance._input import Prices
from deferlearn.assistance._intervals import (
    Floats,
    Index,
    Interval,
    joint_critical,
    mean_interval,
    single_critical,
)
from deferlearn.assistance._trial import Bools, Trial

Row = dict[str, Any]
SHARE = (0.0, 1.0)


@dataclass(frozen=True)
class Judge:
    """A trial, prices and a level: everything that the tables are made of."""

    trial: Trial
    prices: Prices
    confidence: float

    @cached_property
    def price(self) -> Floats:
        """Of a wrong answer to each case."""
        return self.prices.of_errors(self.trial.positive)

    @cached_property
    def costs(self) -> Floats:
        """Of each case at each budget."""
        return self.trial.wrong * self.price + self.prices.human_time * self.trial.deferred

    @cached_property
    def human_costs(self) -> Floats:
        """Of each case if the human takes it."""
        return self.trial.human_wrong * self.price + self.prices.human_time

    @property
    def ends(self) -> tuple[float, float]:
        """Between which the difference of two costs of a case lies."""
        most = self.prices.largest + self.prices.human_time
        return -most, most

    @cached_property
    def gains(self) -> list[Interval]:
        """Cost at each budget less the machine's, case by case; all intervals hold together."""
        differences = self.costs[1:] - self.costs[0]
        critical = joint_critical(differences, self.trial.group, self.confidence)
        return [mean_interval(d, self.trial.group, self.ends, critical) for d in differences]

    @cached_property
    def against_human(self) -> list[Interval]:
        """Cost at each budget less the human's; all intervals hold together."""
        differences = self.costs - self.human_costs
        critical = joint_critical(differences, self.trial.group, self.confidence)
        # Humans need no training, so what it does to the team does not cancel: its part is widened.
        spread = differences.var(axis=1)
        part = np.divide(self.costs.var(axis=1), spread, out=np.ones_like(spread), where=spread > 0)
        return [
            mean_interval(d, self.trial.group, self.ends, critical, widening)
            for d, widening in zip(differences, 1 + (self.trial.widening - 1) * part, strict=True)
        ]

    @cached_property
    def between_budgets(self) -> dict[tuple[int, int], Interval]:
        """Cost at a budget less that at a smaller one, for all pairs; all intervals hold together."""
        pairs = list(combinations(range(len(self.costs)), 2))
        differences = np.array([self.costs[high] - self.costs[low] for low, high in pairs])
        critical = joint_critical(differences, self.trial.group, self.confidence)
        return {
            pair: mean_interval(d, self.trial.group, self.ends, critical)
            for pair, d in zip(pairs, differences, strict=True)
        }


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
    ends = (float(judge.prices.human_time), judge.ends[1])
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


# -- humans who err more or less often than in these data ------------------------------------------


def factor_table(judge: Judge, factors: list[float]) -> list[Row]:
    """The team if humans erred `factor` times as often on the cases that it hands them.

    The error rate on either class is multiplied, up to 1. Expected costs need no draws: a class's errors
    among deferred cases cost the factor times what they cost here.
    """
    trial = judge.trial
    errors = np.array([[_scaled(judge, place, f) for f in factors] for place in _teams(judge)])
    costs = errors * judge.price + judge.prices.human_time * trial.deferred[1:, None]
    rows = []
    for column, factor in enumerate(factors):
        differences = costs[:, column] - judge.costs[0]
        critical = joint_critical(differences, trial.group, judge.confidence)
        for place in _teams(judge):
            share = trial.deferred[place]
            gain = mean_interval(differences[place - 1], trial.group, judge.ends, critical)
            handed = _factors_by_case(judge, place, factor) * share * trial.human_wrong
            rate = float(handed.sum() / share.sum()) if share.any() else float("nan")
            row: Row = {"budget": trial.budgets[place], "factor": factor, "human_error": rate}
            row["error"] = float(errors[place - 1, column].mean())
            row["cost"] = float(costs[place - 1, column].mean())
            rows.append(row | gain.columns("difference"))
    return sorted(rows, key=lambda row: (row["budget"], row["factor"]))


def _teams(judge: Judge) -> range:
    return range(1, len(judge.trial.budgets))


def _scaled(judge: Judge, place: int, factor: float) -> Floats:
    """Expected errors of the cases at one budget if humans err `factor` times as often."""
    trial = judge.trial
    by_human = trial.deferred[place] * trial.human_wrong
    return trial.wrong[place] + (_factors_by_case(judge, place, factor) - 1.0) * by_human


def _factors_by_case(judge: Judge, place: int, factor: float) -> Floats:
    caps = np.array([cap for _, cap in _human_share(judge, place)])
    return np.minimum(factor, caps)[judge.trial.positive.astype(np.intp)]


def _human_share(judge: Judge, place: int) -> list[tuple[float, float]]:
    """Of negative and of positive cases: the cost of human errors on deferred ones, the largest factor.

    The largest factor is the one that makes every answer wrong.
    """
    trial = judge.trial
    shares = []
    for chosen in (~trial.positive, trial.positive):
        taken = trial.deferred[place][chosen]
        errors = taken * trial.human_wrong[chosen]
        cost = float((errors * judge.price[chosen]).sum() / len(trial.rows))
        cap = float(taken.sum() / errors.sum()) if errors.any() else np.inf
        shares.append((cost, cap))
    return shares


def break_even(judge: Judge, place: int) -> float | None:
    """Factor of the human error at which team and machine cost the same; None if no factor does.

    0 means that the team would cost no less than the machine if humans never erred.
    """
    shares = [(cost, cap) for cost, cap in _human_share(judge, place) if cost > 0]
    by_human = sum(cost for cost, _ in shares)
    costs = judge.costs.mean(axis=1)
    affordable = float(costs[0] - (costs[place] - by_human))
    if affordable <= 0:
        return 0.0
    # The cost of human errors grows with the factor, piece by piece, until every answer is wrong.
    for point in sorted(cap for _, cap in shares):
        full = sum(cost * cap for cost, cap in shares if cap < point)
        slope = sum(cost for cost, cap in shares if cap >= point)
        if full + slope * point >= affordable:
            return (affordable - full) / slope
    return None


# -- more and more deferral, and who gains -----------------------------------------------------------


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
        for place in _teams(judge):
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
