"""Experts whose skill depends on the case: better in some regions than in others."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.metrics import euclidean_distances
from sklearn.utils import check_array, check_random_state

from deferlearn._utils.types import Array, Labels
from deferlearn.humans.answers import Signs, as_array, distinct, encode_labels
from deferlearn.humans.losses import LOSS_WRONG, loss_from_scores
from deferlearn.humans.positions import class_list, label_array, positions
from deferlearn.humans.uniform import Seed, answers_of_scores, check_probability


class SkilledHuman:
    """Simulated expert for any data set, who errs with a probability that depends on the case.

    On a sample x the expert is wrong with probability ``error(x)``. With two classes the expert is always
    sure: the score is +1 or -1, so the loss is 0 for a right answer and 2 for a wrong one. With more
    classes there are no scores, and a wrong answer is any of the other classes, all equally probable.

    Parameters
    ----------
    error : callable or float
        Function from X to one probability per row; a number is the probability for every row.
        `good_in_half_space` and `good_near` make experts with ready-made functions.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.humans import SkilledHuman
    >>> X, y = make_linear(4000, random_state=0)
    >>> human = SkilledHuman.good_in_half_space([1.0, 0.0], good=0.02, poor=0.4)
    >>> wrong = human.labels(X, y, random_state=0) != y
    >>> bool(wrong[X[:, 0] > 0].mean() < 0.05), bool(wrong[X[:, 0] < 0].mean() > 0.35)
    (True, True)
    >>> human = SkilledHuman(lambda X: np.where(X[:, 1] > 0, 0.4, 0.1))
    >>> human.expected_losses([[5.0, 1.0], [5.0, -1.0]], [1, 1])
    array([0.8, 0.2])
    """

    def __init__(self, error: Callable[[Any], ArrayLike] | float) -> None:
        if not callable(error):
            check_probability("error", error)
        self.error = error

    def __repr__(self) -> str:
        return f"SkilledHuman({self.error!r})"

    @classmethod
    def good_in_half_space(
        cls,
        direction: ArrayLike,
        offset: float = 0.0,
        *,
        good: float = 0.05,
        poor: float = 0.4,
        width: float = 0.0,
    ) -> Self:
        """Make an expert who errs little where ``<direction, x> > offset`` and much elsewhere.

        Parameters
        ----------
        direction : array-like of shape (n_features,)
            Points into the good half-space; it is used as given, not normalised.
        offset : float, default=0
            Where the boundary lies.
        good, poor : float, default=0.05, 0.4
            Probability of error on either side.
        width : float, default=0
            The error goes from one to the other like a logistic curve of this scale; 0 is a jump.

        Returns
        -------
        human : SkilledHuman
        """
        vector = np.asarray(direction, dtype=np.float64)
        if vector.ndim != 1 or not vector.any() or not np.isfinite(vector).all():
            raise ValueError(
                f"direction must be a finite vector other than zero, got {direction!r}"
            )
        where = tuple(vector.tolist()), float(offset)
        return cls(_HalfSpace(*where, good=good, poor=poor, width=width))

    @classmethod
    def good_near(
        cls,
        centre: ArrayLike,
        radius: float,
        *,
        good: float = 0.05,
        poor: float = 0.4,
        width: float = 0.0,
    ) -> Self:
        """Make an expert who errs little within `radius` of `centre` and much elsewhere.

        Parameters
        ----------
        centre : array-like of shape (n_features,)
            The case that the expert knows best.
        radius : float
            Euclidean distance up to which the expert is good.
        good, poor : float, default=0.05, 0.4
            Probability of error inside and outside.
        width : float, default=0
            The error goes from one to the other like a logistic curve of this scale; 0 is a jump.

        Returns
        -------
        human : SkilledHuman
        """
        point = np.asarray(centre, dtype=np.float64)
        if point.ndim != 1 or not len(point) or not np.isfinite(point).all():
            raise ValueError(f"centre must be a finite vector, got {centre!r}")
        if not 0 <= radius < np.inf:
            raise ValueError(f"radius must be a number >= 0, got {radius!r}")
        where = tuple(point.tolist()), float(radius)
        return cls(_Ball(*where, good=good, poor=poor, width=width))

    def error_probability(self, X: Any) -> Array:
        """Probability of a wrong answer for each row of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The cases; a function given as `error` gets them as they are.

        Returns
        -------
        probability : ndarray of shape (n_samples,)
            In [0, 1].
        """
        X = X if hasattr(X, "shape") else np.asarray(X)
        n_samples = X.shape[0]
        if not callable(self.error):
            return np.full(n_samples, float(self.error))
        probability = np.asarray(self.error(X), dtype=np.float64)
        if probability.shape != (n_samples,):
            raise ValueError(
                f"error(X) must give one probability per row, the shape ({n_samples},), got "
                f"{probability.shape}"
            )
        outside = ~((probability >= 0) & (probability <= 1))
        if outside.any():
            row = np.flatnonzero(outside)[0]
            raise ValueError(
                f"error(X) must lie in [0, 1], it is {probability[row]:g} at row {row}"
            )
        return probability

    def scores(self, X: Any, y: ArrayLike, random_state: Seed = None) -> Array:
        """Draw one score for each sample, +1 or -1.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The cases.
        y : array-like of shape (n_samples,)
            True labels: -1 and +1, or any two labels, of which the larger one is taken as +1.
        random_state : int, RandomState or None, default=None
            Seed of the draw. `scores`, `labels` and `losses` called with the same integer
            use the same draw.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            +1 or -1.
        """
        signs, error = self._check(X, y)
        wrong = check_random_state(random_state).random_sample(len(signs)) < error
        return np.where(wrong, -signs, signs).astype(np.float64)

    def labels(
        self, X: Any, y: ArrayLike, random_state: Seed = None, *, classes: ArrayLike | None = None
    ) -> Labels:
        """Draw one answer for each sample; with two classes, it is the sign of the score.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The cases.
        y : array-like of shape (n_samples,)
            True labels: -1 and +1, or any two or more labels.
        random_state : int, RandomState or None, default=None
            As in `scores`.
        classes : array-like of labels, default=None
            All classes, if y may lack some of them; None means the labels of y.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            In the labels of y.

        Examples
        --------
        >>> from deferlearn.humans import SkilledHuman
        >>> human = SkilledHuman(lambda X: X[:, 0])
        >>> X = [[0.0], [0.0], [1.0], [1.0], [1.0]]
        >>> human.labels(X, ["a", "b", "c", "c", "c"], random_state=0)
        array(['a', 'b', 'a', 'b', 'a'], dtype='<U1')
        """
        truth = as_array(y)
        known = distinct(truth) if classes is None else class_list(classes)
        if classes is None and len(known) <= 2:
            return answers_of_scores(self.scores(X, y, random_state), y)
        codes, error = positions(truth, known), self._error(X, len(truth))
        rng = check_random_state(random_state)
        wrong = rng.random_sample(len(codes)) < error
        # All steps from 1 to K - 1 around the circle of classes lead to another class.
        steps = rng.randint(1, len(known), size=len(codes))
        return label_array(known)[np.where(wrong, codes + steps, codes) % len(known)]

    def losses(self, X: Any, y: ArrayLike, random_state: Seed = None) -> Array:
        """Loss ``[1 - y h]_+`` of the score drawn for each sample: 0 or 2.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The cases.
        y : array-like of shape (n_samples,)
            As in `scores`.
        random_state : int, RandomState or None, default=None
            As in `scores`.

        Returns
        -------
        losses : ndarray of shape (n_samples,)
            0 where right, 2 where wrong.
        """
        return loss_from_scores(self.scores(X, y, random_state), y)

    def expected_losses(self, X: Any, y: ArrayLike) -> Array:
        """Mean of the losses over all draws: twice the probability of error.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The cases.
        y : array-like of shape (n_samples,)
            As in `scores`.

        Returns
        -------
        losses : ndarray of shape (n_samples,)
            Nothing is drawn, so there is no seed.
        """
        _, error = self._check(X, y)
        return LOSS_WRONG * error

    def _check(self, X: Any, y: ArrayLike) -> tuple[Signs, Array]:
        signs, _ = encode_labels(y)
        return signs, self._error(X, len(signs))

    def _error(self, X: Any, n_samples: int) -> Array:
        error = self.error_probability(X)
        if len(error) != n_samples:
            raise ValueError(
                f"X has {len(error)} rows and y has {n_samples}: give one row per sample"
            )
        return error


@dataclass(frozen=True, kw_only=True)
class _Region(ABC):
    """Error of an expert who is good in a region; a class, so that it can be compared and stored."""

    good: float
    poor: float
    width: float

    def __post_init__(self) -> None:
        check_probability("good", self.good)
        check_probability("poor", self.poor)
        if not 0 <= self.width < np.inf:
            raise ValueError(f"width must be a number >= 0, got {self.width!r}")

    @abstractmethod
    def depth(self, X: Any) -> Array:
        """How deep inside the region each row of X lies; negative outside."""

    def __call__(self, X: Any) -> Array:
        depth = self.depth(check_array(X, accept_sparse="csr", dtype=float, ensure_min_samples=0))
        if self.width == 0:
            return np.where(depth > 0, self.good, self.poor)
        return self.poor + (self.good - self.poor) * expit(depth / self.width)


@dataclass(frozen=True)
class _HalfSpace(_Region):
    """Good on one side of a plane."""

    direction: tuple[float, ...]
    offset: float

    def depth(self, X: Any) -> Array:
        _check_features(X, len(self.direction))
        return np.asarray(X @ np.array(self.direction)) - self.offset


@dataclass(frozen=True)
class _Ball(_Region):
    """Good around a centre."""

    centre: tuple[float, ...]
    radius: float

    def depth(self, X: Any) -> Array:
        _check_features(X, len(self.centre))
        return self.radius - euclidean_distances(X, np.array([self.centre]))[:, 0]


def _check_features(X: Any, n_features: int) -> None:
    if X.shape[1] != n_features:
        raise ValueError(f"this expert knows {n_features} features, X has {X.shape[1]}")
