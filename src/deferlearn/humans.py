"""What humans know, as one loss a sample; and simulated experts.

A human gives a sample the score h, whose sign is the answer and whose size is the confidence. The
loss is the hinge loss ``[1 - y h]_+``, which the machine pays too: so the two can be compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state


def loss_from_scores(
    scores: ArrayLike, y: ArrayLike, human_bound: float | None = None
) -> NDArray[np.float64]:
    """Hinge loss of a human's scores: 0 when right and sure, 2 when wrong at full confidence.

    The loss of a sample is ``[1 - y h]_+``; with several readers it is the mean of their losses.

    Parameters
    ----------
    scores : array-like of shape (n_samples,) or (n_samples, n_readers)
        The scores h; positive speaks for the class +1. All must be finite.
    y : array-like of shape (n_samples,)
        True labels, -1 or +1.
    human_bound : float, default=None
        The paper's H. When given, a score outside [-human_bound, human_bound] is an error.

    Returns
    -------
    loss : ndarray of shape (n_samples,)
        One non-negative number a sample.

    Examples
    --------
    >>> from deferlearn.humans import loss_from_scores
    >>> loss_from_scores([0.8, -0.5, -1.0], [+1, +1, -1])
    array([0.2, 1.5, 0. ])
    >>> loss_from_scores([[1.0, 0.0], [1.0, 1.0]], [+1, -1])
    array([0.5, 2. ])
    """
    y = _check_labels(y)
    scores = _check_scores(scores)
    if len(scores) != len(y):
        raise ValueError(f"scores has {len(scores)} rows and y has {len(y)}: give one row a sample")
    if human_bound is not None:
        if not human_bound > 0:
            raise ValueError(f"human_bound must be a positive number or None, got {human_bound!r}")
        largest = np.abs(scores).max(initial=0.0)
        if largest > human_bound:
            raise ValueError(
                f"a score of absolute value {largest:g} lies outside [-{human_bound:g}, "
                f"{human_bound:g}]: rescale the scores or raise human_bound"
            )
    readers = scores[:, None] if scores.ndim == 1 else scores
    return np.maximum(0.0, 1.0 - y[:, None] * readers).mean(axis=1)


def labels_from_scores(scores: ArrayLike) -> NDArray[np.int64]:
    """Answer that a score stands for: its sign, where 0 counts as +1.

    Parameters
    ----------
    scores : array-like of shape (n_samples,) or (n_samples, n_readers)
        The scores h. All must be finite.

    Returns
    -------
    labels : ndarray of the same shape
        -1 or +1.

    Examples
    --------
    >>> from deferlearn.humans import labels_from_scores
    >>> labels_from_scores([0.3, -0.2, 0.0])
    array([ 1, -1,  1])
    """
    return np.where(_check_scores(scores) >= 0, 1, -1)


class UniformHuman:
    """The paper's simulated expert: uniform scores that reach a little over to the wrong side.

    A score is drawn from Unif[-spread, 1 - spread] for a sample of class +1, and from
    Unif[spread - 1, spread] for one of class -1. So `spread` (the paper's Delta H) is the
    probability that the expert errs.

    Parameters
    ----------
    spread : float
        Between 0 (never wrong) and 1 (always wrong).

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.humans import UniformHuman
    >>> human = UniformHuman(spread=0.2)
    >>> y = np.repeat([-1, 1], 5000)
    >>> float(np.mean(human.labels(y, random_state=0) != y))
    0.2...
    >>> bool(human.losses(y, random_state=0).max() <= 1.2)
    True
    """

    def __init__(self, spread: float) -> None:
        # `not (...)` rather than the reverse comparison, so that NaN is refused too.
        if not (0.0 <= spread <= 1.0):
            raise ValueError(
                f"spread is a probability of error: give 0 <= spread <= 1, got {spread!r}"
            )
        self.spread = float(spread)

    def __repr__(self) -> str:
        return f"UniformHuman(spread={self.spread!r})"

    def scores(
        self, y: ArrayLike, random_state: int | np.random.RandomState | None = None
    ) -> NDArray[np.float64]:
        """Draw one score for each sample.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels, -1 or +1.
        random_state : int, RandomState or None, default=None
            Seed of the draw. `scores`, `labels` and `losses` called with the same integer
            speak of the same draw.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            In [-1, 1].
        """
        y = _check_labels(y)
        rng = check_random_state(random_state)
        # The two laws mirror each other, so one draw serves both.
        return y * rng.uniform(-self.spread, 1.0 - self.spread, size=len(y))

    def labels(
        self, y: ArrayLike, random_state: int | np.random.RandomState | None = None
    ) -> NDArray[np.int64]:
        """Draw one answer for each sample: the sign of its score, 0 counting as +1.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels, -1 or +1.
        random_state : int, RandomState or None, default=None
            As in `scores`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            -1 or +1.
        """
        return labels_from_scores(self.scores(y, random_state))

    def losses(
        self, y: ArrayLike, random_state: int | np.random.RandomState | None = None
    ) -> NDArray[np.float64]:
        """Draw one loss ``[1 - y h]_+`` for each sample.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels, -1 or +1.
        random_state : int, RandomState or None, default=None
            As in `scores`.

        Returns
        -------
        losses : ndarray of shape (n_samples,)
            In [spread, 1 + spread].
        """
        return loss_from_scores(self.scores(y, random_state), y)


def _check_labels(y: ArrayLike) -> NDArray[np.int64]:
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must have one dimension, got the shape {y.shape}")
    wrong = ~np.isin(y, (-1, 1))
    if wrong.any():
        raise ValueError(
            f"y must hold -1 and +1 only, found {y[wrong][0]!s} at row {np.flatnonzero(wrong)[0]}: "
            "map the two classes to -1 and +1 first"
        )
    return y.astype(np.int64)


def _check_scores(scores: ArrayLike) -> NDArray[np.float64]:
    try:
        scores = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scores must be numbers: {error}") from error
    if scores.ndim not in (1, 2) or (scores.ndim == 2 and scores.shape[1] == 0):
        raise ValueError(
            f"scores must have the shape (n_samples,) or (n_samples, n_readers), got {scores.shape}"
        )
    bad = ~np.isfinite(scores)
    if bad.any():
        raise ValueError(
            f"scores must be finite, row {np.argwhere(bad)[0, 0]} is not: "
            "leave out or fill in the samples that nobody read"
        )
    return scores
