"""Pictures. Each display computes first and draws after, and only drawing needs matplotlib."""

from deferlearn.plot.selection import SelectionDisplay

__all__ = ["SelectionDisplay"]
