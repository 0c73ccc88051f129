"""The expert of the paper's synthetic experiments."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from deferlearn._utils.checks import is_number
from deferlearn._utils.types import Array, Labels
from deferlearn.humans.answers import encode_labels
from deferlearn.humans.losses import labels_from_scores, loss_from_scores

Seed = int | np.random.RandomState | None


def check_probability(name: str, value: Any) -> float:
    """The probability of an error as a float."""
    if not is_number(value) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is a probability of error: give 0 <= {name} <= 1, got {value!r}")
    return float(value)


def answers_of_scores(scores: Array, y: ArrayLike) -> Labels:
    """Answers that the scores stand for, in the labels of y."""
    _, classes = encode_labels(y)
    return np.array(classes)[(labels_from_scores(scores) == 1).astype(np.intp)]


class UniformHuman:
    """The paper's simulated expert: uniform scores, some of them on the wrong side of 0.

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
        self.spread = check_probability("spread", spread)

    def __repr__(self) -> str:
        return f"UniformHuman(spread={self.spread!r})"

    def scores(self, y: ArrayLike, random_state: Seed = None) -> Array:
        """Draw one score for each sample.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels: -1 and +1, or any two labels, of which the larger one is taken as +1.
        random_state : int, RandomState or None, default=None
            Seed of the draw. `scores`, `labels` and `losses` called with the same integer
            use the same draw.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            In [-1, 1].
        """
        signs, _ = encode_labels(y)
        rng = check_random_state(random_state)
        # The two laws mirror each other, so one draw serves both.
        return signs * rng.uniform(-self.spread, 1.0 - self.spread, size=len(signs))

    def labels(self, y: ArrayLike, random_state: Seed = None) -> Labels:
        """Draw one answer for each sample: the sign of its score, 0 counting as +1.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            As in `scores`.
        random_state : int, RandomState or None, default=None
            As in `scores`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            In the labels of y.
        """
        return answers_of_scores(self.scores(y, random_state), y)

    def losses(self, y: ArrayLike, random_state: Seed = None) -> Array:
        """Loss ``[1 - y h]_+`` of the score drawn for each sample.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            As in `scores`.
        random_state : int, RandomState or None, default=None
            As in `scores`.

        Returns
        -------
        losses : ndarray of shape (n_samples,)
            In [spread, 1 + spread].
        """
        return loss_from_scores(self.scores(y, random_state), y)

    def expected_losses(self, y: ArrayLike) -> Array:
        """Mean of the losses over all draws, the same for every sample: ``spread + 1/2``.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            As in `scores`.

        Returns
        -------
        losses : ndarray of shape (n_samples,)
            Nothing is drawn, so there is no seed.
        """
        signs, _ = encode_labels(y)
        return np.full(len(signs), self.spread + 0.5)
