"""What the theorems guarantee: submodularity ratios, reduced hulls, and how good a selection is."""

from deferlearn.bounds.certificate import Certificate, certificate
from deferlearn.bounds.hulls import HullDistance, reduced_hull_distance, separating_hulls
from deferlearn.bounds.optimum import OptimumBound, optimum_upper_bound
from deferlearn.bounds.ratio import RatioBound, SubmodularityBound, submodularity_bound

__all__ = [
    "Certificate",
    "HullDistance",
    "OptimumBound",
    "RatioBound",
    "SubmodularityBound",
    "certificate",
    "optimum_upper_bound",
    "reduced_hull_distance",
    "separating_hulls",
    "submodularity_bound",
]
