"""Costs of the cases, and how they compare: with the machine, with the human, between budgets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from deferlearn.evaluation.assistance.inputs import Prices
from deferlearn.evaluation.assistance.trial import Trial
from deferlearn.evaluation.intervals import Floats, Interval, joint_critical, mean_interval


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
        return self.trial.wrong * self.price + self.prices.deferral_cost * self.trial.deferred

    @cached_property
    def human_costs(self) -> Floats:
        """Of each case if the human takes it."""
        return self.trial.human_wrong * self.price + self.prices.deferral_cost

    @property
    def ends(self) -> tuple[float, float]:
        """Between which the difference of two costs of a case lies."""
        most = self.prices.largest + self.prices.deferral_cost
        return -most, most

    @property
    def teams(self) -> range:
        """Rows of the trial that have a human in them."""
        return range(1, len(self.trial.budgets))

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
