"""Costs of the cases, and how they compare: with the machine, with the human, between budgets."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from deferlearn._utils.types import Array, Bools
from deferlearn.evaluation.assistance.inputs import Costs
from deferlearn.evaluation.assistance.trial import Trial
from deferlearn.evaluation.intervals import (
    Ends,
    Interval,
    joint_critical,
    mean_interval,
    single_critical,
)

SHARE = (0.0, 1.0)


@dataclass(frozen=True)
class Judge:
    """A trial, costs and a confidence level: everything that the tables are made of."""

    trial: Trial
    unit_costs: Costs
    confidence: float

    @cached_property
    def error_costs(self) -> Array:
        """What the answer to each case costs at each budget, without human time."""
        if self.unit_costs.cost_matrix is not None:
            return self.trial.costs_by(np.array(self.unit_costs.cost_matrix))
        return self.trial.wrong * self.unit_costs.of_errors(self.trial.positive)

    @cached_property
    def human_error_costs(self) -> Array:
        """What the human's answer to each case costs, without time."""
        kinds, matrix = self.trial.kinds, self.unit_costs.cost_matrix
        if matrix is not None and kinds is not None:
            return np.array(matrix)[kinds.truth, kinds.human]
        return self.trial.human_wrong * self.unit_costs.of_errors(self.trial.positive)

    @cached_property
    def costs(self) -> Array:
        """The cost of each case at each budget."""
        return self.error_costs + self.unit_costs.deferral_cost * self.trial.deferred

    @cached_property
    def human_costs(self) -> Array:
        """The cost of each case if the human takes it."""
        return self.human_error_costs + self.unit_costs.deferral_cost

    @property
    def ends(self) -> Ends:
        """The smallest and the largest difference of two costs of a case."""
        most = self.unit_costs.largest + self.unit_costs.deferral_cost
        return -most, most

    @property
    def teams(self) -> range:
        """The rows of the trial with a budget above 0."""
        return range(1, len(self.trial.budgets))

    def alone(
        self,
        values: Array,
        chosen: Bools | slice = slice(None),
        *,
        ends: Ends = SHARE,
        widening: float = 1.0,
    ) -> Interval:
        """Mean over the chosen cases, with an interval that holds by itself."""
        group = self.trial.group[chosen]
        critical = single_critical(group, self.confidence)
        return mean_interval(values[chosen], group, ends, critical, widening)

    def together(self, differences: Array, widening: Array | None = None) -> list[Interval]:
        """Mean of each row of differences of costs, with intervals that all hold together."""
        group = self.trial.group
        critical = joint_critical(differences, group, self.confidence)
        factors = np.ones(len(differences)) if widening is None else widening
        return [
            mean_interval(row, group, self.ends, critical, float(factor))
            for row, factor in zip(differences, factors, strict=True)
        ]

    @cached_property
    def gains(self) -> list[Interval]:
        """Cost at each budget minus the machine's, case by case."""
        return self.together(self.costs[1:] - self.costs[0])

    @cached_property
    def against_human(self) -> list[Interval]:
        """Cost at each budget minus the human's, case by case."""
        differences = self.costs - self.human_costs
        # The human is not trained, so what training does to the team does not cancel: its part of the
        # variance is widened.
        spread = differences.var(axis=1)
        part = np.divide(self.costs.var(axis=1), spread, out=np.ones_like(spread), where=spread > 0)
        return self.together(differences, 1 + (self.trial.widening - 1) * part)

    @cached_property
    def between_budgets(self) -> dict[tuple[int, int], Interval]:
        """Cost at a budget minus that at a smaller one, for all pairs (smaller, larger)."""
        pairs = list(combinations(range(len(self.costs)), 2))
        differences = np.array([self.costs[high] - self.costs[low] for low, high in pairs])
        return dict(zip(pairs, self.together(differences), strict=True))
