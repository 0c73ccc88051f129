"""Whether probabilities can be taken at their word: how often what they say comes true."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.checks import is_whole, plain
from deferlearn._utils.types import Array, Bools
from deferlearn.humans.answers import shown
from deferlearn.metrics.counts import shares
from deferlearn.metrics.probabilities import check_probabilities


@dataclass(frozen=True)
class ReliabilityCurve:
    """Predicted probabilities in bins, and how often they came true; made by `reliability_curve`.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        The ends of all bins, including those without cases.
    predicted : ndarray of shape (n_bins,)
        Mean predicted probability of the cases in each bin; NaN without cases.
    hits : ndarray of int of shape (n_bins,)
        How many of them came true.
    counts : ndarray of int of shape (n_bins,)
        How many cases are in each bin.
    """

    edges: Array
    predicted: Array
    hits: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def observed(self) -> Array:
        """Share of the cases in each bin that came true; NaN without cases."""
        return shares(self.hits, self.counts)

    @property
    def calibration_error(self) -> float:
        """Mean distance between predicted and observed shares, each bin weighted by its cases."""
        used = self.counts > 0
        away = np.abs(self.observed - self.predicted)[used]
        return float(np.average(away, weights=self.counts[used]))


def reliability_curve(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    n_bins: int = 10,
    strategy: Literal["uniform", "quantile"] = "uniform",
) -> ReliabilityCurve:
    """Compare predicted probabilities with how often they come true, bin by bin.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        A column per class, as `predict_proba` gives them; a vector is for the second of two classes.
    classes : array-like of labels, default=None
        The classes in the order of the columns; None means the labels that occur, sorted.
    pos_label : label, default=None
        The class whose probability is examined. None means the second of two classes. With more
        classes, it means the most probable class of each case: its probability, the confidence, is
        compared with how often that class is the true one.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of about equally many cases. Equal probabilities are never put into
        different bins, so there can be fewer bins of the second kind than `n_bins`.

    Returns
    -------
    curve : ReliabilityCurve
        Means and counts of each bin.

    See Also
    --------
    deferlearn.plot.ReliabilityDisplay : The picture.

    Examples
    --------
    >>> from deferlearn.metrics import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 1], [0.1, 0.3, 0.4, 0.9], n_bins=2)
    >>> curve.counts, curve.observed
    (array([3, 1]), array([0.33333333, 1.        ]))
    """
    predicted, right = _examined(y_true, proba, classes, pos_label)
    if not is_whole(n_bins) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number, 1 or larger, got {plain(n_bins)!r}")
    if strategy == "uniform":
        edges = np.linspace(0.0, 1.0, n_bins + 1)
    elif strategy == "quantile":
        inner = np.quantile(predicted, np.arange(1, n_bins) / n_bins)
        edges = np.unique([0.0, *inner, 1.0])
    else:
        raise ValueError(f"strategy must be 'uniform' or 'quantile', got {strategy!r}")
    # A bin holds its upper end, and the first one its lower end too.
    bins = np.searchsorted(edges[1:-1], predicted, side="left")
    n = len(edges) - 1
    counts = np.bincount(bins, minlength=n)
    return ReliabilityCurve(
        edges=edges,
        predicted=shares(np.bincount(bins, weights=predicted, minlength=n), counts),
        hits=np.bincount(bins[right], minlength=n),
        counts=counts,
    )


def expected_calibration_error(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    n_bins: int = 10,
    strategy: Literal["uniform", "quantile"] = "uniform",
) -> float:
    """Mean distance between predicted probabilities and how often they come true (ECE).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        A column per class, as `predict_proba` gives them; a vector is for the second of two classes.
    classes : array-like of labels, default=None
        The classes in the order of the columns; None means the labels that occur, sorted.
    pos_label : label, default=None
        The class whose probability is examined, as in `reliability_curve`: by default the second of two
        classes, or the most probable one of more.
    n_bins : int, default=10
        Number of bins. The value depends on it: compare only values with the same bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of about equally many cases.

    Returns
    -------
    error : float
        Between 0 and 1; smaller is better. With few cases it is too large, even if the probabilities are
        right.

    Examples
    --------
    >>> from deferlearn.metrics import expected_calibration_error
    >>> expected_calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.5, 0.5])
    0.375
    """
    return reliability_curve(
        y_true, proba, classes=classes, pos_label=pos_label, n_bins=n_bins, strategy=strategy
    ).calibration_error


def _examined(
    y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike | None, pos_label: Any
) -> tuple[Array, Bools]:
    """The probabilities to examine, and whether what they say is true."""
    truth, table, known = check_probabilities(y_true, proba, classes)
    if pos_label is not None and pos_label not in known:
        raise ValueError(f"pos_label={plain(pos_label)!r} is none of the classes {shown(known)}")
    if pos_label is None and len(known) > 2:
        return table.max(axis=1), table.argmax(axis=1) == truth
    column = 1 if pos_label is None else known.index(pos_label)
    return table[:, column], truth == column
