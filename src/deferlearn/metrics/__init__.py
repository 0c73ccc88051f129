"""How good machine and human are together, for two classes, many classes and grades."""

from deferlearn.metrics.apply import evaluate_team, find_member, find_metric
from deferlearn.metrics.classes import (
    confusion_counts,
    sensitivity_by_class,
    team_macro_f1,
    team_macro_sensitivity,
)
from deferlearn.metrics.grades import team_grade_error, team_quadratic_kappa
from deferlearn.metrics.probabilities import brier_score, log_loss
from deferlearn.metrics.reliability import (
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)
from deferlearn.metrics.scorer import TeamScorer, make_team_scorer
from deferlearn.metrics.team import (
    team_cost,
    team_error,
    team_f1,
    team_sensitivity,
    team_specificity,
)

__all__ = [
    "ReliabilityCurve",
    "TeamScorer",
    "brier_score",
    "confusion_counts",
    "evaluate_team",
    "expected_calibration_error",
    "find_member",
    "find_metric",
    "log_loss",
    "make_team_scorer",
    "reliability_curve",
    "sensitivity_by_class",
    "team_cost",
    "team_error",
    "team_f1",
    "team_grade_error",
    "team_macro_f1",
    "team_macro_sensitivity",
    "team_quadratic_kappa",
    "team_sensitivity",
    "team_specificity",
]
