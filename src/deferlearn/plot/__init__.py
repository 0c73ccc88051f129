"""Displays: each computes first and draws afterwards, and only drawing needs matplotlib."""

from deferlearn.plot.assistance import AssistanceDisplay
from deferlearn.plot.boundary import DeferralBoundaryDisplay
from deferlearn.plot.confusion import ConfusionDisplay
from deferlearn.plot.curves import AutomationCurveDisplay
from deferlearn.plot.load import LoadDisplay
from deferlearn.plot.reliability import ReliabilityDisplay
from deferlearn.plot.selection import SelectionDisplay
from deferlearn.plot.skills import SkillsDisplay

__all__ = [
    "AssistanceDisplay",
    "AutomationCurveDisplay",
    "ConfusionDisplay",
    "DeferralBoundaryDisplay",
    "LoadDisplay",
    "ReliabilityDisplay",
    "SelectionDisplay",
    "SkillsDisplay",
]
