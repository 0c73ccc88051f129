"""Errors of machine, human and team on held-out cases."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from deferlearn.tables.cases import Cases
from deferlearn.tables.team import TabularTeam
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.parameters import share_of

# Beyond so many cases the fits take minutes, and their errors differ little from those on new cases.
MAX_CASES = 1000
FOLDS = 5


def cross_validated_errors(
    model: TabularTeam, cases: Cases, seed: int = 0
) -> dict[str, dict[str, float]] | None:
    """Errors on cases left out, five parts in turn: columns, machine and choice are learned without them.

    The team follows the batch rule, so that the share which humans take is the budget in each part. What
    was tuned keeps the values that all cases together have chosen, which flatters a little.

    Parameters
    ----------
    model : TabularTeam
        A fitted one; it is not changed.
    cases : Cases
        Those it was fitted on.
    seed : int, default=0
        Of the parts.

    Returns
    -------
    errors : dict or None
        For machine, human and team the error and its 95% interval (Clopper and Pearson), on the cases
        that somebody has read; None where they are too many, or too few in a class, to do so.
    """
    counts = np.unique(cases.truth, return_counts=True)[1]
    if len(cases) > MAX_CASES or counts.min() < FOLDS:
        return None
    share = share_of(model.card_["budget"], len(cases))
    # A number of cases means the same share of fewer. The batch rule needs no threshold, and where folds
    # serve no other end, none are made.
    folds = None if isinstance(model.chosen, AssistedSVC) else FOLDS
    team = clone(model.chosen).set_params(budget=share, cv=folds)
    unfitted = TabularTeam([("table", clone(model.encoder)), ("team", team)])
    machine, deferred = _held_out(unfitted, cases, seed)
    human, read = cases.human_answers(machine)
    if not read.any():
        return None
    both = np.where(deferred, human, machine)
    answers = {"machine": machine, "human": human, "team": both}
    return {who: _error(said[read], cases.truth[read]) for who, said in answers.items()}


def _held_out(model: Any, cases: Cases, seed: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    machine = cases.truth.copy()
    deferred = np.zeros(len(cases), dtype=bool)
    for train, test in _splits(cases, seed):
        known, new = cases.part(train), cases.part(test)
        part = clone(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # was said already when all were fitted
            part.fit(known.features, known.truth, team__human_labels=known.answers)
        machine[test] = part.predict(new.features)
        deferred[test] = part.defer_top(new.features)
    return machine, deferred


def _splits(cases: Cases, seed: int) -> Any:
    if cases.groups is None:
        splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        return splitter.split(cases.truth, cases.truth)
    grouped = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    return grouped.split(cases.truth, cases.truth, cases.groups)


def _error(answers: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    wrong, n = int((answers != truth).sum()), len(truth)
    interval = stats.binomtest(wrong, n).proportion_ci(method="exact")
    return {
        "error": wrong / n,
        "lower": float(interval.low),
        "upper": float(interval.high),
        "wrong": wrong,
        "cases": n,
    }
