"""Synthetic data: the paper's two examples, and one that grows to any size."""

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from deferlearn._utils.types import Array

# Section "Experiments on Synthetic Data" of the paper.
LINEAR_COVARIANCE = np.array([[6.0, 1.0], [1.0, 6.0]])
LINEAR_CENTRE = np.array([5.0, 5.0])
QUADRATIC_COVARIANCE = np.array([[12.0, 1.0], [1.0, 14.0]])
QUADRATIC_CENTRE = np.array([1.0, 1.0])
QUADRATIC_INNER_RADIUS = 2.0
QUADRATIC_OUTER_RADIUS = 5.0

Samples = tuple[Array, NDArray[np.int64]]


def make_linear(
    n_samples: int = 400, *, random_state: int | np.random.RandomState | None = None
) -> Samples:
    """Two classes that no line can tell apart: one lies on both sides of the other.

    The paper's data for linear machines. A fair coin gives the label y. The features are N(0, C)
    for y = -1; for y = +1 a second fair coin takes N([5, 5], C) or N([-5, -5], C). The covariance
    matrix C is [[6, 1], [1, 6]].

    Parameters
    ----------
    n_samples : int, default=400
        How many samples.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Features.
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.

    Examples
    --------
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(400, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((400, 2), [-1, 1])
    """
    n_samples = _check_count("n_samples", n_samples)
    rng = check_random_state(random_state)
    y = _fair_coin(rng, n_samples)
    side = _fair_coin(rng, n_samples)
    noise = rng.multivariate_normal(np.zeros(2), LINEAR_COVARIANCE, size=n_samples)
    centre = np.where(y == 1, side, 0)[:, None] * LINEAR_CENTRE
    return centre + noise, y


def make_quadratic(
    n_samples: int = 400, *, random_state: int | np.random.RandomState | None = None
) -> Samples:
    """Disc and surroundings against an off-centre ring: a quadratic machine fits them in part.

    The paper's data for machines with a kernel. The features are N(0, [[12, 1], [1, 14]]). The
    label is +1 if ``|x - [1, 1]| <= 2`` or ``|x + [1, 1]| >= 5``, and -1 otherwise. The kernel that
    goes with it, ``(<x, x'> / 2)^2``, is ``kernel="poly", degree=2, gamma=0.5, coef0=0``.

    Parameters
    ----------
    n_samples : int, default=400
        How many samples.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Features.
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.

    Examples
    --------
    >>> from deferlearn.datasets import make_quadratic
    >>> X, y = make_quadratic(400, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((400, 2), [-1, 1])
    """
    n_samples = _check_count("n_samples", n_samples)
    rng = check_random_state(random_state)
    X = rng.multivariate_normal(np.zeros(2), QUADRATIC_COVARIANCE, size=n_samples)
    inside = np.linalg.norm(X - QUADRATIC_CENTRE, axis=1) <= QUADRATIC_INNER_RADIUS
    outside = np.linalg.norm(X + QUADRATIC_CENTRE, axis=1) >= QUADRATIC_OUTER_RADIUS
    return X, np.where(inside | outside, 1, -1)


def make_shifted(
    n_samples: int = 400,
    n_features: int = 50,
    *,
    shift: float = 0.3,
    random_state: int | np.random.RandomState | None = None,
) -> Samples:
    """Two overlapping Gaussian clouds of any size, to see how the work grows with the data.

    A fair coin gives the label y, and ``x = N(0, I) + shift * y * u``. The direction u is drawn
    from Unif[0, 1]^n_features once for the whole data set.

    Parameters
    ----------
    n_samples : int, default=400
        How many samples.
    n_features : int, default=50
        How many features.
    shift : float, default=0.3
        How far apart the classes are; 0 makes them the same.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.

    Examples
    --------
    >>> from deferlearn.datasets import make_shifted
    >>> X, y = make_shifted(1000, n_features=10, random_state=0)
    >>> X.shape, y.shape
    ((1000, 10), (1000,))
    """
    n_samples = _check_count("n_samples", n_samples)
    n_features = _check_count("n_features", n_features)
    if not np.isfinite(shift):
        raise ValueError(f"shift must be a finite number, got {shift!r}")
    rng = check_random_state(random_state)
    direction = rng.uniform(size=n_features)
    y = _fair_coin(rng, n_samples)
    X = rng.standard_normal((n_samples, n_features))
    X += shift * y[:, None] * direction
    return X, y


def _fair_coin(rng: np.random.RandomState, n: int) -> NDArray[np.int64]:
    # int64 by name: what `randint` gives by default differs between platforms.
    return 2 * rng.randint(2, size=n, dtype=np.int64) - 1


def _check_count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return int(value)
