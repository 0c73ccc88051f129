"""Pictures. Each display computes first and draws after, and only drawing needs matplotlib."""

from deferlearn.plot.gains import GainDisplay

__all__ = ["GainDisplay"]
