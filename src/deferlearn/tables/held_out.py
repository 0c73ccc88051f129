"""Teams that decide cases which they were not fitted on: a model's held-out errors."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from deferlearn._utils.types import Bools, Index, Labels
from deferlearn.experts import ExpertTeam
from deferlearn.tables.cases import Cases
from deferlearn.tables.decider import with_preferred
from deferlearn.tables.decisions import Decisions
from deferlearn.tables.experts import answers_by_expert
from deferlearn.tables.settings import FOLDS, grouped_folds
from deferlearn.tables.team import TabularTeam, set_known
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.held_out import held_out, splits_of
from deferlearn.teams.parameters import share_of

# With more cases, `cross_validated_errors` takes a random part of them: all would take minutes.
MAX_CASES = 1000


def unfitted_copy(model: TabularTeam, *, batch: bool, team: Any = None) -> TabularTeam:
    """A team like the model's that is not fitted, with the parameters that were tuned.

    Parameters
    ----------
    model : TabularTeam
        A fitted one; it is not changed.
    batch : bool
        Whether it will decide by the batch rule, which needs no threshold: `AssistedSVC` then makes no
        folds.
    team : estimator or None, default=None
        Another team to put behind the same columns.

    Returns
    -------
    TabularTeam
        Its budget is the model's as a share, so that it means the same for fewer cases.
    """
    member = clone(model.chosen if team is None else team)
    several = team is None and isinstance(model.team, ExpertTeam)
    folds = None if batch and isinstance(member, AssistedSVC) and not several else FOLDS
    share = share_of(model.card_["budget"], model.card_["rows"])
    set_known(member, budget=share, cv=folds)
    if several:
        experts = model.team
        member = clone(experts).set_params(
            team=member,
            capacity=experts.capacity_,
            budget=None if experts.budget is None else share,
            skills=experts.skill_model_,
        )
    return TabularTeam([("table", clone(model.encoder)), ("team", member)])


def held_out_decisions(team: TabularTeam, cases: Cases, *, batch: bool, seed: int = 0) -> Decisions:
    """The decisions of teams that were fitted without the case, on five folds.

    Columns, machine and policy are all learned without the held-out cases.

    Parameters
    ----------
    team : TabularTeam
        Not fitted; clones of it are.
    cases : Cases
        The cases.
    batch : bool
        Whether each fold is decided by the batch rule (`defer_top`) or one case at a time (`defer`).
    seed : int, default=0
        Random seed of the folds.

    Returns
    -------
    Decisions
    """
    splits = splits_of(FOLDS, cases.truth, cases.truth, cases.groups, seed)
    machine, deferred = cases.truth.copy(), np.zeros(len(cases), dtype=bool)
    experts: NDArray[Any] = np.full(len(cases), None, dtype=object)
    parts = held_out(_decide, splits, team, cases, batch, n_jobs=1)
    for (_, test), part in zip(splits, parts, strict=True):
        machine[test], deferred[test], experts[test] = part
    several = isinstance(team.team, ExpertTeam)
    return Decisions.of(cases, machine, deferred, experts if several else None)


class _Part(NamedTuple):
    """The machine's answers to held-out cases, those that are deferred, and to whom they go first."""

    machine: Labels
    deferred: Bools
    experts: NDArray[Any] | None


def _decide(train: Index, test: Index, team: TabularTeam, cases: Cases, batch: bool) -> _Part:
    known, new = cases.part(train), cases.part(test).features
    fitted = clone(team)
    several = isinstance(fitted.team, ExpertTeam)
    human: dict[str, Any] = {"team__human_labels": known.answers}
    if several:
        said = answers_by_expert(known)
        own = {name: said[name] for name in fitted.team.capacity if name in said}
        human = {"team__answers": own, "team__groups": known.groups}
    elif known.groups is not None and not (batch and isinstance(fitted.team, AssistedSVC)):
        set_known(fitted.team, cv=grouped_folds(known, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit on all cases has shown them already
        fitted.fit(known.features, known.truth, **human)
    answers = fitted.predict(new)
    if not several:
        return _Part(answers, fitted.defer_top(new) if batch else fitted.defer(new), None)
    features = fitted.encoder.transform(new)
    who = fitted.team.assign_batch(features) if batch else fitted.team.assign(features)
    deferred = np.array([name is not None for name in who], dtype=bool)
    return _Part(answers, deferred, first_experts(fitted, who, features))


def first_experts(model: TabularTeam, who: NDArray[Any], features: Any) -> NDArray[Any]:
    """The expert to whom each case goes, or would go first if experts took every case.

    Parameters
    ----------
    model : TabularTeam
        A model of several experts.
    who : ndarray of object of shape (n_cases,)
        The expert who takes each case, None for the machine.
    features : ndarray of shape (n_cases, n_features)
        The cases, as the team sees them.

    Returns
    -------
    experts : ndarray of object of shape (n_cases,)
    """
    gains = model.team.gains(features)
    return with_preferred(model.team, who, gains, np.ones(len(who), dtype=bool))


def cross_validated_errors(
    model: TabularTeam, cases: Cases, seed: int = 0
) -> dict[str, dict[str, float]] | None:
    """Errors of machine, human and team on held-out cases, in five folds.

    The team follows the batch rule, so that the share of deferred cases is the budget in each fold. Tuned
    parameters keep the values chosen on all cases, which makes the errors a little too low. Of more than
    1000 cases, a random sample of 1000 is used, or of whole groups with about as many cases.

    Parameters
    ----------
    model : TabularTeam
        A fitted one; it is not changed.
    cases : Cases
        The cases that it was fitted on.
    seed : int, default=0
        Random seed of the folds.

    Returns
    -------
    errors : dict or None
        For machine, human and team a dict with the keys error, lower, upper (the ends of the exact 95%
        interval), wrong and cases, on the cases that a human has read; with a cost matrix also cost, the
        mean cost of an answer. Without any answers, for the machine only. None if there are too few cases
        in a class, or no human has read any.
    """
    if len(cases) > MAX_CASES:
        cases = cases.part(sampled_rows(cases, MAX_CASES, seed))
    counts = np.unique(cases.truth, return_counts=True)[1]
    if counts.min() < FOLDS:
        return None
    decisions = held_out_decisions(unfitted_copy(model, batch=True), cases, batch=True, seed=seed)
    if not decisions.read.any():
        return None
    costs = None if cases.costs is None else decisions.costs(cases.classes, cases.costs)
    return {
        who: {
            "error": found["share"],
            "lower": found["lower"],
            "upper": found["upper"],
            "wrong": found["count"],
            "cases": found["cases"],
            **({} if costs is None else {"cost": float(costs[who].mean())}),
        }
        for who, found in decisions.errors().items()
        if who == "machine" or cases.answers is not None
    }


def sampled_rows(cases: Cases, most: int, seed: int) -> Index:
    """A random sample of the cases with the same share of each class, or of whole groups.

    Parameters
    ----------
    cases : Cases
        The cases.
    most : int
        How many of them at most.
    seed : int
        Random seed.

    Returns
    -------
    rows : ndarray of int
        In the order of the table.
    """
    rng = np.random.default_rng(seed)
    if cases.groups is not None:
        names, codes = np.unique(cases.groups.astype(str), return_inverse=True)
        order = rng.permutation(len(names))
        sizes = np.bincount(codes)[order]
        return np.flatnonzero(np.isin(codes, order[np.cumsum(sizes) <= most]))
    rows: list[Index] = []
    for label in cases.classes:
        own = rng.permutation(np.flatnonzero(cases.truth == label))
        # Rare classes keep the cases that the folds need.
        rows.append(own[: max(most * len(own) // len(cases), min(FOLDS, len(own)))])
    return np.sort(np.concatenate(rows))
