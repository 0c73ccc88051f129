"""Does assistance pay? A team against its machine and its human over many splits, with intervals."""

from deferlearn.evaluation.assistance.report import AssistanceReport
from deferlearn.evaluation.assistance.study import assistance_report
from deferlearn.evaluation.curves import AutomationCurve, automation_curve

__all__ = ["AssistanceReport", "AutomationCurve", "assistance_report", "automation_curve"]
