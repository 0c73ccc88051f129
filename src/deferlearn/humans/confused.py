"""Experts who confuse classes, of any number: a matrix says which are taken for which."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from deferlearn._utils.types import Array, Labels
from deferlearn.humans.answers import as_array
from deferlearn.humans.positions import class_list, label_array, positions
from deferlearn.humans.uniform import Seed, check_probability

# Rows of shares written with a few digits sum to one only approximately.
ROUNDING = 1e-6


class ConfusedHuman:
    """Simulated expert for any number of classes, whose errors depend on the true class.

    On a sample of class i the expert answers class j with probability ``confusion[i, j]``, whatever
    the features. `SkilledHuman` is the expert whose errors depend on the features.

    Parameters
    ----------
    confusion : array-like of shape (n_classes, n_classes)
        Probabilities of the answers: a row per true class, a column per answer. Rows sum to one.
    classes : array-like of labels, default=None
        The classes in the order of rows and columns; None means 0, 1, 2, ...

    See Also
    --------
    ConfusedHuman.with_errors : Wrong answers are spread evenly over the other classes.
    ConfusedHuman.off_by_one : For grades; most wrong answers are one grade off.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.humans import ConfusedHuman
    >>> human = ConfusedHuman([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]], ["a", "b", "c"])
    >>> human.labels(["a", "b", "c", "b"], random_state=0)
    array(['a', 'b', 'c', 'b'], dtype='<U1')
    >>> human.error_probability(["a", "b", "c"]).round(2)
    array([0.1, 0.3, 0. ])
    """

    def __init__(self, confusion: ArrayLike, classes: ArrayLike | None = None) -> None:
        self.confusion = np.array(confusion, dtype=np.float64)
        n_classes = len(self.confusion) if self.confusion.ndim else 0
        if self.confusion.shape != (n_classes, n_classes) or n_classes < 2:
            raise ValueError(
                "confusion must have one row and one column for each of at least two classes, got the "
                f"shape {self.confusion.shape}"
            )
        sums = self.confusion.sum(axis=1)
        if not ((self.confusion >= 0).all() and np.abs(sums - 1).max() <= ROUNDING):
            raise ValueError(
                "each row of confusion must hold probabilities that sum to one, got "
                f"{self.confusion.tolist()}"
            )
        self.confusion /= sums[:, None]
        self.classes = class_list(range(n_classes) if classes is None else classes)
        if len(self.classes) != n_classes:
            raise ValueError(
                f"confusion has {n_classes} rows, but there are {len(self.classes)} classes"
            )

    def __repr__(self) -> str:
        return f"ConfusedHuman({self.confusion.tolist()!r}, {self.classes!r})"

    @classmethod
    def with_errors(cls, error: ArrayLike, classes: ArrayLike) -> Self:
        """Make an expert whose wrong answers are spread evenly over the other classes.

        Parameters
        ----------
        error : float or array-like of shape (n_classes,)
            Probability of error: one for all classes, or one for each.
        classes : array-like of labels
            At least two classes.

        Returns
        -------
        human : ConfusedHuman

        Examples
        --------
        >>> from deferlearn.humans import ConfusedHuman
        >>> ConfusedHuman.with_errors([0.2, 0.0, 0.5], ["a", "b", "c"]).confusion
        array([[0.8 , 0.1 , 0.1 ],
               [0.  , 1.  , 0.  ],
               [0.25, 0.25, 0.5 ]])
        """
        known = class_list(classes)
        return cls(_confusion(_check_errors(error, len(known)), 1 - np.eye(len(known))), known)

    @classmethod
    def off_by_one(cls, error: ArrayLike, grades: ArrayLike, *, further: float = 0.2) -> Self:
        """Make an expert for grades, most of whose wrong answers are one grade off.

        Two wrong grades that are equally far from the truth, one above and one below, are equally probable.

        Parameters
        ----------
        error : float or array-like of shape (n_grades,)
            Probability of error: one for all grades, or one for each.
        grades : array-like of labels
            All grades from the lowest to the highest, at least two.
        further : float, default=0.2
            A wrong answer that is one grade further off is less probable by this factor: if the truth
            is the lowest of four grades, the others are answered in the ratio 1 : 0.2 : 0.04. With 0, no
            answer is more than one grade off.

        Returns
        -------
        human : ConfusedHuman

        Examples
        --------
        >>> from deferlearn.humans import ConfusedHuman
        >>> ConfusedHuman.off_by_one(0.3, [0, 1, 2], further=0.5).confusion.round(2)
        array([[0.7 , 0.2 , 0.1 ],
               [0.15, 0.7 , 0.15],
               [0.1 , 0.2 , 0.7 ]])
        """
        known = class_list(grades)
        if not 0 <= further <= 1:
            raise ValueError(f"further must be between 0 and 1, got {further!r}")
        place = np.arange(len(known))
        away = np.abs(place[:, None] - place)
        weights = np.where(away > 0, float(further) ** np.maximum(away - 1, 0), 0.0)
        return cls(_confusion(_check_errors(error, len(known)), weights), known)

    def labels(self, y: ArrayLike, random_state: Seed = None) -> Labels:
        """Draw one answer for each sample.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels, all of them among `classes`.
        random_state : int, RandomState or None, default=None
            Seed of the draw.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Answers, all of them among `classes`.
        """
        below = self.answer_probabilities(y).cumsum(axis=1)[:, :-1]
        u = check_random_state(random_state).random_sample((len(below), 1))
        return label_array(self.classes)[(below <= u).sum(axis=1)]

    def answer_probabilities(self, y: ArrayLike) -> Array:
        """Probability of each answer to each sample.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes`.
        """
        return self.confusion[positions(as_array(y), self.classes)]

    def error_probability(self, y: ArrayLike) -> Array:
        """Probability of a wrong answer to each sample.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels.

        Returns
        -------
        probability : ndarray of shape (n_samples,)
            In [0, 1].
        """
        codes = positions(as_array(y), self.classes)
        return 1.0 - self.confusion[codes, codes]


def _check_errors(error: ArrayLike, n_classes: int) -> Array:
    errors = np.asarray(error, dtype=object)
    if errors.shape not in ((), (n_classes,)):
        raise ValueError(
            f"error must be one number, or one for each of {n_classes} classes, got {error!r}"
        )
    rates = [check_probability("error", rate) for rate in errors.ravel().tolist()]
    return np.broadcast_to(rates, (n_classes,))


def _confusion(errors: Array, weights: Array) -> Array:
    """Errors spread over the wrong answers in proportion to the weights, which are 0 if right."""
    # A single class has no wrong answers; the constructor refuses it.
    spread = errors[:, None] * weights / np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    return spread + np.diag(1.0 - errors)
