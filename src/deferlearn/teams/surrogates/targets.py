"""What a loss is told of each sample: its class, how many readers were right, and its weight."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn.humans.coding import mean_weights
from deferlearn.teams.samples import Samples


@dataclass(frozen=True)
class Targets:
    """Labels and human answers as numbers.

    Attributes
    ----------
    codes : ndarray of int of shape (n_samples,)
        The place of the true label among the classes.
    right : ndarray of shape (n_samples,)
        The share of the readers that are right; 0 where there is no answer.
    read : ndarray of bool of shape (n_samples,)
        Whether there is an answer.
    weights : ndarray of shape (n_samples,)
        What an error on each sample costs; the sum is 1, so that sums of losses are means.
    """

    codes: NDArray[np.int64]
    right: Array
    read: Bools
    weights: Array


def targets_of(samples: Samples) -> Targets:
    """The targets of checked samples."""
    right, read = share_right(samples)
    weights = samples.weights / samples.weights.sum()
    return Targets(samples.codes, right, read, weights)


def share_right(samples: Samples) -> tuple[Array, Bools]:
    """The share of the readers that are right, 0 without an answer, and whether there is one.

    Of a score only the side counts, and a score of 0 is on the side of the second class.
    """
    scores = samples.human.scores
    given = ~np.isnan(scores)
    said = scores if samples.coding.several else scores >= 0
    right = given & (said == samples.codes[:, None])
    count = given.sum(axis=1)
    return right.sum(axis=1) / np.maximum(count, 1), count > 0


def class_costs(samples: Samples) -> Array:
    """What an error on each class costs."""
    return mean_weights(samples.codes, samples.weights, len(samples.classes))


def mean_cost(probabilities: Array, costs: Array) -> Array:
    r"""What an error on each case is expected to cost.

    Models that are fitted with weights :math:`v_k` give :math:`p_k \propto v_k P(y = k | x)`, so the mean
    of the weights at x is :math:`\sum_k v_k P(y = k | x) = 1 / \sum_k (p_k / v_k)`.
    """
    return np.asarray(1.0 / (probabilities / costs).sum(axis=1))
