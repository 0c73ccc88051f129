"""Humans who err more or less often than in these data, on the cases that a team defers to them.

The error rate on each class is multiplied by the factor, up to 1: right answers become wrong at random,
or wrong ones right. The costs are expectations over that and need no draws: the cost of human errors on
deferred cases of a class is multiplied by the factor too. With a cost matrix, errors on a class stay of
the same kinds.
"""

from typing import Any

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.evaluation.assistance.judge import Judge

Row = dict[str, Any]


def factor_table(judge: Judge, factors: list[float]) -> list[Row]:
    """The team at each budget and factor."""
    trial, rows = judge.trial, []
    for factor in factors:
        by_human = trial.deferred[1:] * trial.human_wrong
        factors_by_case = np.array([_by_case(judge, place, factor) for place in judge.teams])
        errors = trial.wrong[1:] + (factors_by_case - 1.0) * by_human
        more = (factors_by_case - 1.0) * trial.deferred[1:] * judge.human_error_costs
        costs = judge.costs[1:] + more
        gains = judge.together(costs - judge.costs[0])
        for place, gain in enumerate(gains):
            taken = trial.deferred[place + 1].sum() or float("nan")
            erring = float((factors_by_case * by_human)[place].sum() / taken)
            rows.append(
                {
                    "budget": trial.budgets[place + 1],
                    "factor": factor,
                    "human_error": erring,
                    "error": float(errors[place].mean()),
                    "cost": float(costs[place].mean()),
                    **gain.columns("difference"),
                }
            )
    return sorted(rows, key=lambda row: (row["budget"], row["factor"]))


def _by_case(judge: Judge, place: int, factor: float) -> Array:
    caps = np.array([cap for _, cap in _human_share(judge, place)])
    return np.minimum(factor, caps)[judge.trial.classes]


def _human_share(judge: Judge, place: int) -> list[tuple[float, float]]:
    """For the cases of each class: cost of human errors on deferred ones, and the largest factor.

    The largest factor is the one that makes every answer wrong.
    """
    trial = judge.trial
    shares = []
    for code in range(trial.n_classes):
        chosen = trial.classes == code
        taken = trial.deferred[place][chosen]
        errors = taken * trial.human_wrong[chosen]
        cost = float((taken * judge.human_error_costs[chosen]).sum() / len(trial.rows))
        cap = float(taken.sum() / errors.sum()) if errors.any() else np.inf
        shares.append((cost, cap))
    return shares


def break_even(judge: Judge, place: int) -> float | None:
    """Factor of the human error at which team and machine cost the same; None if no factor does.

    0 means that the team would cost at least as much as the machine even if humans never erred.
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
