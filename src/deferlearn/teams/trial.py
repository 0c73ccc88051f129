"""What a candidate of a search did with samples that it had not seen, and what that is worth."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.humans.answers import find_missing
from deferlearn.humans.coding import Codes
from deferlearn.humans.losses import majority_labels
from deferlearn.metrics import evaluate_team, find_metric
from deferlearn.teams.choice import by_group
from deferlearn.teams.context import FoldContext
from deferlearn.teams.samples import Samples


class Trial(NamedTuple):
    """What a candidate did with samples that it had not seen, and what that is worth.

    Attributes
    ----------
    deferred : ndarray of bool of shape (n_samples,)
        The samples that went to the human.
    by_fold : ndarray of shape (n_folds,)
        The score in each fold, larger is better.
    by_part : ndarray of shape (n_parts,)
        The score in each independent part of the data: a sample, a group of samples, or a fold. Its mean
        is the score of all samples.
    share : float
        The share of the budget that it was allowed to spend.
    """

    deferred: Bools
    by_fold: Array
    by_part: Array
    share: float = 1.0


def judge(
    context: FoldContext,
    answers: Codes,
    deferred: Bools,
    groups: NDArray[Any] | None,
    scoring: Any,
    costs: Mapping[str, Any],
) -> Trial:
    """What the team's answers to held-out samples are worth.

    Parameters
    ----------
    context : FoldContext
        The samples in folds.
    answers : ndarray of int of shape (n_samples,)
        The machine's answers, as places among the classes.
    deferred : ndarray of bool of shape (n_samples,)
        The samples that went to the human.
    groups : ndarray of shape (n_samples,) or None
        Samples that belong together.
    scoring : str, callable or None
        A metric, or None for the cost of the team's answers.
    costs : mapping
        The search's "deferral_cost" and "cost_matrix".

    Returns
    -------
    trial : Trial
    """
    samples, folds = context.samples, context.folds
    if scoring is None:
        machine = samples.machine_cost(answers)
        human = samples.human_cost(float(costs["deferral_cost"]))
        gain = -np.where(deferred, human, machine)
        by_fold = np.array([gain[fold].mean() for fold in folds])
        return Trial(deferred, by_fold, by_group(gain, groups))
    function, larger = find_metric(scoring)
    # A cost that is asked for by name is that of the search's own parameters.
    own = dict(costs) if scoring == "cost" else {}
    said = np.where(deferred, answers_of(samples), samples.classes[answers])

    def value_in(fold: Index) -> float:
        truth, part = samples.labels[fold], deferred[fold]
        value = evaluate_team(
            function,
            truth,
            said[fold],
            lambda: part,
            samples.classes,
            ordered=samples.coding.graded,
            **own,
        )
        if not np.isfinite(value):
            raise ValueError(
                f"scoring={scoring!r} gives {value} for a fold of {len(fold)} cases: such "
                "candidates cannot be compared."
            )
        return value if larger else -value

    by_fold = np.array([value_in(fold) for fold in folds])
    return Trial(deferred, by_fold, by_fold)


def answers_of(samples: Samples) -> NDArray[Any]:
    """The human's answer to each sample, for metrics that need one."""
    given = samples.human.given
    if not given:
        return samples.labels
    if "human_labels" not in given:
        raise ValueError(
            f"scoring needs the human's answers, but {next(iter(given))} was given: give human_labels, "
            "or leave scoring=None, which looks at losses."
        )
    answers = given["human_labels"]
    missing = find_missing(answers if answers.ndim == 2 else answers[:, None]).all(axis=1)
    if missing.any():
        raise ValueError(
            f"scoring needs an answer to every case, but {int(missing.sum())} have none: leave them "
            "out, or leave scoring=None, which gives them the average loss of their class."
        )
    return majority_labels(answers) if answers.ndim == 2 else answers
