"""Which kind of model of the experts' errors makes the best team, tried on held-out samples."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.experts.error_models import FARTHEST, KINDS, Cases, ErrorModel, Forests
from deferlearn.experts.transport import transport
from deferlearn.teams.choice import by_group
from deferlearn.teams.held_out import Split, held_out

# By how many standard errors of the difference a more elaborate model must be better: at predicting
# answers, and in what the team gets wrong.
CLEARLY = 2.0


class Machine(NamedTuple):
    """What the machine's answers to held-out samples cost.

    Attributes
    ----------
    expected, real : ndarray of shape (n_samples,)
        By the probabilities, and by the true class.
    """

    expected: Array
    real: Array


class Learned(NamedTuple):
    """The model of the experts' errors, and what it says of samples.

    Attributes
    ----------
    model : ErrorModel
        Learned from all samples.
    expected : ndarray of shape (n_samples, n_experts)
        The expected cost of each expert's answer to each sample as if it were a new case.
    kind : str
        The kind of the model.
    costs : dict
        The held-out cost per sample of the team with the best model of each kind.
    """

    model: ErrorModel
    expected: Array
    kind: str
    costs: dict[str, float]


def learn_errors(
    cases: Cases,
    share: Array,
    worst: Array,
    machine: Machine,
    weights: Array,
    deferral_cost: float,
    capacity: Array,
    total: float,
    kinds: tuple[str, ...],
    splits: list[Split],
    finer: list[Split] | None,
    groups: Any,
    seed: int,
    n_jobs: int | None,
) -> Learned:
    """Learn what experts' answers cost, by the simplest kind of model that no other beats.

    A more elaborate kind must predict the answers to held-out samples clearly better, and make a better
    team: held-out samples go to the experts by the expected costs, within the capacities, among those who
    have answered. The first alone is not enough, since only the answers to a few hard cases matter; the
    second alone depends too much on luck.

    Parameters
    ----------
    cases : Cases
        The samples, with their true classes.
    share : ndarray of shape (n_samples, n_experts)
        What each answer cost, as a share of the worst mistake; NaN where there is none.
    worst : ndarray of shape (n_classes,)
        What the worst mistake on a case of each class costs.
    machine : Machine
        What the machine's answers cost.
    weights : ndarray of shape (n_samples,)
        What the worst mistake on each sample costs.
    deferral_cost : float
        The cost of human time per case.
    capacity : ndarray of shape (n_experts,)
        The share of the samples that each expert can take.
    total : float
        The share that all of them can take.
    kinds : tuple of str
        Kinds of models to try, from simple to elaborate.
    splits : list of (train, test)
        The folds.
    finer : list of (train, test) or None
        More folds, for the expected costs that forests would have of new cases; None takes the same. A
        forest tells experts apart the better the more samples it has seen: forests of few folds see fewer
        than the final one, and prices that fit them would let the best experts have too many new cases.
    groups : ndarray of shape (n_samples,) or None
        Samples that belong together, and so say less than others.
    seed : int
        Random seed of the forests.
    n_jobs : int or None
        How many folds to work on at a time.

    Returns
    -------
    Learned
    """
    answered, n = ~np.isnan(share), len(share)
    real = np.where(answered, share, 0.0) * weights[:, None] + deferral_cost
    best: tuple[str, float, Array] | None = None
    least, cheapest = np.full(n, np.nan), np.full(n, np.nan)
    costs: dict[str, float] = {}
    for kind in kinds:
        strengths = KINDS[kind].strengths
        found = _as_new(kind, strengths, splits, cases, share, worst, seed, n_jobs)
        options = [
            (_log_loss(rate, share, answered), strength, expected)
            for strength, (expected, rate) in zip(strengths, found, strict=True)
        ]
        loss, strength, expected = min(options, key=lambda option: float(np.nanmean(option[0])))
        gain = np.where(answered, machine.expected[:, None] - expected - deferral_cost, -1.0)
        # Experts who have answered a part of the samples can take that part of their capacity here.
        chosen = transport(gain, capacity * answered.sum(axis=0), total * n).chosen
        cost = np.where(chosen < 0, machine.real, real[np.arange(n), chosen])
        costs[kind] = float(cost.mean())
        if best is None or (_less(loss, least, groups) and _less(cost, cheapest, groups)):
            best, least, cheapest = (kind, strength, expected), loss, cost
    assert best is not None
    kind, strength, expected = best
    model = KINDS[kind](strength).fit(cases, share, seed)
    if isinstance(model, Forests):
        used = splits if finer is None else finer
        if finer is not None:
            ((expected, _),) = _as_new(kind, (strength,), finer, cases, share, worst, seed, n_jobs)
        # Each expert's own forest counts as much as it did in the folds, where it had fewer answers.
        model = model.with_strength(strength * len(used) / (len(used) - 1))
    else:
        # Models with few parameters know the samples hardly better than new cases, and those of other folds
        # differ by more than that.
        expected = model.expected(cases._replace(codes=None), worst)
    return Learned(model, expected, kind, costs)


def _as_new(
    kind: str,
    strengths: tuple[float, ...],
    splits: list[Split],
    cases: Cases,
    share: Array,
    worst: Array,
    seed: int,
    n_jobs: int | None,
) -> list[tuple[Array, Array]]:
    """Expected costs of all samples by models that have not seen them; see `_try_kind`."""
    parts = held_out(_try_kind, splits, kind, strengths, cases, share, worst, seed, n_jobs=n_jobs)
    found = [(np.empty(share.shape), np.empty(share.shape)) for _ in strengths]
    for (_, test), part in zip(splits, parts, strict=True):
        for (expected, rate), (own_expected, own_rate) in zip(found, part, strict=True):
            expected[test], rate[test] = own_expected, own_rate
    return found


def _try_kind(
    train: Index,
    test: Index,
    kind: str,
    strengths: tuple[float, ...],
    cases: Cases,
    share: Array,
    worst: Array,
    seed: int,
) -> list[tuple[Array, Array]]:
    """Expected costs of the rows ``test``, in the user's units and as shares, for each strength."""
    found, model = [], None
    new = cases.part(test)._replace(codes=None)
    for strength in strengths:
        if isinstance(model, Forests):
            model = model.with_strength(strength)
        else:
            model = KINDS[kind](strength).fit(cases.part(train), share[train], seed)
        found.append((model.expected(new, worst), model.expected(new, np.ones(len(worst)))))
    return found


def _log_loss(rate: Array, share: Array, answered: Any) -> Array:
    """The mean log loss of the answers to each sample; NaN where there is none."""
    rate = np.clip(rate, FARTHEST, 1 - FARTHEST)
    known = np.where(answered, share, 0.0)
    each = -(known * np.log(rate) + (1 - known) * np.log(1 - rate))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # samples that nobody read
        return np.asarray(np.nanmean(np.where(answered, each, np.nan), axis=1))


def _less(values: Array, others: Array, groups: Any) -> bool:
    """Whether the mean is clearly less."""
    known = ~np.isnan(values)
    gain = by_group((others - values)[known], None if groups is None else groups[known])
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
    return bool(gain.mean() > CLEARLY * error)
