"""Who errs where: labels for models of the machine's and of the human's errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn.humans import majority_labels
from deferlearn.humans.answers import as_array, check_answers, fill_gaps, find_missing, match

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The hinge loss of an answer at h = 0: what costs more is on the wrong side.
LOSS_UNDECIDED = 1.0


def scores_of(
    signs: Array, classes: NDArray[Any], human_loss: Any, human_scores: Any, human_labels: Any
) -> Array:
    """Every reader's answer as a score of shape (n_samples, n_readers), NaN where there is none.

    The three have been checked. Labels are scores of -1 and +1. A loss tells only whether the answer
    was right; and with none of them, it always was.
    """
    if human_scores is not None:
        return fill_gaps(check_answers(human_scores, "human_scores"))
    if human_labels is not None:
        table = check_answers(human_labels, "human_labels")
        given = ~find_missing(table)
        scores = np.full(table.shape, np.nan)
        pair = (classes[0], classes[1])
        scores[given] = np.where(match(np.asarray(table)[given], pair, "human_labels"), 1.0, -1.0)
        return scores
    right = signs.copy()
    if human_loss is not None:
        loss = fill_gaps(as_array(human_loss))
        right[loss > LOSS_UNDECIDED] *= -1.0
        right[np.isnan(loss)] = np.nan
    return right[:, None]


def differs_from_human(machine: Array, scores: Array) -> Bools:
    """Whether the machine's answer is not the one that the team would get from the human.

    That is the majority of those who answered, ties to the first. Every row needs an answer.
    """
    said = np.where(np.isnan(scores), np.nan, np.where(scores >= 0, 1.0, -1.0))
    return np.asarray(np.where(machine > 0, 1.0, -1.0) != majority_labels(said))


def disagrees_with_self(scores: Array, signs: Array) -> Bools:
    """Whether humans err, as told by two halves of them that differ.

    Those who answered are split in their order into two halves, the first one larger if need be; each
    half's scores are averaged, and the sign is its answer. Of a single one the truth is the judge.
    """
    given = ~np.isnan(scores)
    count = given.sum(axis=1, keepdims=True)
    place = np.cumsum(given, axis=1) - 1
    in_first = given & (2 * place < count)
    first = _sign_of_mean(scores, in_first)
    second = _sign_of_mean(scores, given & ~in_first)
    return np.where(count[:, 0] == 1, first != signs, first != second)


def _sign_of_mean(scores: Array, members: Bools) -> Array:
    """The sign of the members' mean; of a mean of zero, the first one's side."""
    total = np.where(members, scores, 0.0).sum(axis=1)
    first = scores[np.arange(len(scores)), members.argmax(axis=1)]
    return np.where(np.where(total == 0, first, total) >= 0, 1.0, -1.0)
