"""Does assistance pay here? A team against its machine and its human, with a verdict in words."""

from deferlearn.assistance.report import AssistanceReport
from deferlearn.assistance.study import assistance_report

__all__ = ["AssistanceReport", "assistance_report"]
