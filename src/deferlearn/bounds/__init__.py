"""What the theorems promise: submodularity ratios, reduced hulls, and how good a selection is."""

from deferlearn.bounds.hulls import HullDistance, reduced_hull_distance, separating_hulls

__all__ = ["HullDistance", "reduced_hull_distance", "separating_hulls"]
