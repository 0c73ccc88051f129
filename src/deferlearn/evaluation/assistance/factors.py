"""Humans who err more or less often than in these data, on the cases that a team hands them.

The error rate on either class is multiplied by the factor, up to 1: right answers become wrong at random,
or wrong ones right. Costs are expectations over that, and need no draws: what human errors on deferred
cases of a class cost is multiplied by the factor too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deferlearn.evaluation.assistance.judge import Judge
from deferlearn.evaluation.intervals import Floats, joint_critical, mean_interval

Row = dict[str, Any]


def factor_table(judge: Judge, factors: list[float]) -> list[Row]:
    """The team at each budget and factor."""
    trial = judge.trial
    errors = np.array([[_scaled(judge, place, f) for f in factors] for place in judge.teams])
    costs = errors * judge.price + judge.prices.deferral_cost * trial.deferred[1:, None]
    rows = []
    for column, factor in enumerate(factors):
        differences = costs[:, column] - judge.costs[0]
        critical = joint_critical(differences, trial.group, judge.confidence)
        for place in judge.teams:
            share = trial.deferred[place]
            gain = mean_interval(differences[place - 1], trial.group, judge.ends, critical)
            handed = _factors_by_case(judge, place, factor) * share * trial.human_wrong
            rate = float(handed.sum() / share.sum()) if share.any() else float("nan")
            row: Row = {"budget": trial.budgets[place], "factor": factor, "human_error": rate}
            row["error"] = float(errors[place - 1, column].mean())
            row["cost"] = float(costs[place - 1, column].mean())
            rows.append(row | gain.columns("difference"))
    return sorted(rows, key=lambda row: (row["budget"], row["factor"]))


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
    if not judge.trial.deferred[place].any():
        return None
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
