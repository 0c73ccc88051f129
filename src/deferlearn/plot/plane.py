"""What displays of samples in the plane share: colours and markers, checks, and the grid of points."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.types import Array

# Side of the boundary -> colour and marker of its class: blue and vermilion of Okabe and Ito's palette,
# which can be distinguished with every kind of colour vision; the markers differ for print without colour.
CLASS_STYLE = {1: ("#D55E00", "^"), -1: ("#0072B2", "o")}

# Area in points^2 and width of the edge: a hollow marker shows its shape at half the width of a page.
MARKER, EDGE = 26.0, 1.0

# Nearly black, so that it stands out from the samples.
LINE_COLOUR, LINE_WIDTH = "0.15", 1.8

# A decision function that varies by less than this share of its size is constant up to rounding: such a
# machine gives the same answer everywhere, and contours of rounding errors would mislead.
CONSTANT = 1e-6

# Free room around the samples, as a share of their range.
FRAME = 0.06

# Side -> colour and dashes of its margin: a darker shade of the class's colour, visible among samples.
MARGIN_STYLE = {-1: ("#00395C", "-."), 1: ("#8A3B00", "--")}

# Width of the white edges of each line, in points, so that it is visible where samples are dense.
HALO = 1.0


def is_constant(decision: Array) -> bool:
    """Whether a machine with these decision values gives the same answer everywhere."""
    return bool(np.ptp(decision) <= CONSTANT * np.abs(decision).max(initial=0.0))


def check_plane(X: ArrayLike) -> Array:
    """Samples as an array, which must have two columns and at least one row."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != 2 or len(X) == 0:
        raise ValueError(
            f"only samples with two features can be drawn in the plane, got the shape {X.shape}: "
            "choose two of the features"
        )
    return X


def check_samples(
    X: ArrayLike, y: ArrayLike, deferred: ArrayLike
) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    """Samples in the plane, their labels and the mask of the deferred samples, as arrays that match."""
    X, y, deferred = check_plane(X), np.asarray(y), np.asarray(deferred)
    if not y.shape == deferred.shape == (len(X),):
        raise ValueError(
            f"X has {len(X)} rows, y the shape {y.shape} and deferred the shape {deferred.shape}: give one "
            "label and one entry of the mask per sample"
        )
    return X, y, deferred


def grid_around(X: Array, resolution: int) -> tuple[Array, ...]:
    """A grid around samples: both coordinates in the shape of `numpy.meshgrid`, and its points."""
    low, high = X.min(axis=0), X.max(axis=0)
    # Samples that share a coordinate have no range; one unit makes the grid a rectangle.
    room = FRAME * np.where(high > low, high - low, 1.0)
    xx, yy = np.meshgrid(*np.linspace(low - room, high + room, resolution).T)
    return xx, yy, np.column_stack([xx.ravel(), yy.ravel()])
