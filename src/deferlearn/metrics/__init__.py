"""How good machine and human are together: error, F1, sensitivity, specificity and cost."""

from deferlearn.metrics.apply import evaluate_team, find_member, find_metric
from deferlearn.metrics.scorer import TeamScorer, make_team_scorer
from deferlearn.metrics.team import (
    team_cost,
    team_error,
    team_f1,
    team_sensitivity,
    team_specificity,
)

__all__ = [
    "TeamScorer",
    "evaluate_team",
    "find_member",
    "find_metric",
    "make_team_scorer",
    "team_cost",
    "team_error",
    "team_f1",
    "team_sensitivity",
    "team_specificity",
]
