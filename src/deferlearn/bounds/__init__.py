"""What the theorems promise: submodularity ratios, reduced hulls, and how good a selection is."""

from deferlearn.bounds.hulls import HullDistance, reduced_hull_distance, separating_hulls
from deferlearn.bounds.ratio import RatioBound, SubmodularityBound, submodularity_bound

__all__ = [
    "HullDistance",
    "RatioBound",
    "SubmodularityBound",
    "reduced_hull_distance",
    "separating_hulls",
    "submodularity_bound",
]
