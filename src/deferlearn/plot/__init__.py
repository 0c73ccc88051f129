"""Pictures. Each display computes first and draws after, and only drawing needs matplotlib."""

from deferlearn.plot.boundary import DeferralBoundaryDisplay
from deferlearn.plot.curves import AutomationCurveDisplay
from deferlearn.plot.selection import SelectionDisplay

__all__ = ["AutomationCurveDisplay", "DeferralBoundaryDisplay", "SelectionDisplay"]
