"""Displays: each computes first and draws afterwards, and only drawing needs matplotlib."""

from deferlearn.plot.assistance import AssistanceDisplay
from deferlearn.plot.boundary import DeferralBoundaryDisplay
from deferlearn.plot.confusion import ConfusionDisplay
from deferlearn.plot.curves import AutomationCurveDisplay
from deferlearn.plot.reliability import ReliabilityDisplay
from deferlearn.plot.selection import SelectionDisplay

__all__ = [
    "AssistanceDisplay",
    "AutomationCurveDisplay",
    "ConfusionDisplay",
    "DeferralBoundaryDisplay",
    "ReliabilityDisplay",
    "SelectionDisplay",
]
