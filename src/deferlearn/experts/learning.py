"""Which kind of model foresees the experts' errors best, tried on held-out samples."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.experts.error_models import FARTHEST, KINDS, Cases, ErrorModel, Forests
from deferlearn.teams.held_out import held_out

# A more elaborate model must be better by so many standard errors of the difference.
CLEARLY = 1.0


class Learned(NamedTuple):
    """The model of the experts' errors, and what it says of samples that it had not seen.

    Attributes
    ----------
    model : ErrorModel
        Learned from all samples.
    expected : ndarray of shape (n_samples, n_experts)
        The expected cost of each expert's answer to each sample as if it were a new case.
    kind : str
        The kind of the model.
    losses : dict
        The held-out log loss of the best model of each kind.
    """

    model: ErrorModel
    expected: Array
    kind: str
    losses: dict[str, float]


def learn_errors(
    cases: Cases,
    cost: Array,
    stakes: Array,
    kinds: tuple[str, ...],
    splits: list[tuple[Index, Index]],
    seed: int,
    n_jobs: int | None,
) -> Learned:
    """Learn what experts' answers cost, by the simplest kind of model that no other clearly beats.

    Parameters
    ----------
    cases : Cases
        The samples, with their true classes.
    cost : ndarray of shape (n_samples, n_experts)
        What each answer cost, as a share of the worst mistake; NaN where there is none.
    stakes : ndarray of shape (n_classes,)
        What the worst mistake on a case of each class costs.
    kinds : tuple of str
        Kinds of models to try, from simple to elaborate.
    splits : list of (train, test)
        The folds.
    seed : int
        Random seed of the forests.
    n_jobs : int or None
        How many folds to work on at a time.

    Returns
    -------
    Learned
    """
    answered = ~np.isnan(cost)
    best: tuple[str, float, Array, Array] | None = None
    losses: dict[str, float] = {}
    for kind in kinds:
        parts = held_out(_try_kind, splits, kind, cases, cost, stakes, seed, n_jobs=n_jobs)
        options = []
        for place, strength in enumerate(KINDS[kind].strengths):
            expected, rate = np.empty(cost.shape), np.empty(cost.shape)
            for (_, test), found in zip(splits, parts, strict=True):
                expected[test], rate[test] = found[place]
            options.append((strength, expected, _loss_by_sample(rate, cost, answered)))
        strength, expected, loss = min(options, key=lambda option: float(np.nanmean(option[2])))
        losses[kind] = float(np.nanmean(loss))
        if best is None or _clearly_less(loss, best[3]):
            best = (kind, strength, expected, loss)
    assert best is not None
    kind, strength, expected, _ = best
    model = KINDS[kind](strength).fit(cases, cost, seed)
    if not isinstance(model, Forests):
        # Models with few parameters know the samples hardly better than new cases, and those of other folds
        # differ by more than that.
        expected = model.expected(cases._replace(codes=None), stakes)
    return Learned(model, expected, kind, losses)


def _try_kind(
    train: Index,
    test: Index,
    kind: str,
    cases: Cases,
    cost: Array,
    stakes: Array,
    seed: int,
) -> list[tuple[Array, Array]]:
    """Expected costs of the rows ``test``, in the user's units and as shares, for each strength."""
    found, model = [], None
    new = cases.part(test)._replace(codes=None)
    for strength in KINDS[kind].strengths:
        if isinstance(model, Forests):
            model = model.with_strength(strength)
        else:
            model = KINDS[kind](strength).fit(cases.part(train), cost[train], seed)
        found.append((model.expected(new, stakes), model.expected(new, np.ones(len(stakes)))))
    return found


def _loss_by_sample(rate: Array, cost: Array, answered: Any) -> Array:
    """The mean log loss of the answers to each sample; NaN where there is none."""
    rate = np.clip(rate, FARTHEST, 1 - FARTHEST)
    known = np.where(answered, cost, 0.0)
    each = -(known * np.log(rate) + (1 - known) * np.log(1 - rate))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # samples that nobody read
        return np.asarray(np.nanmean(np.where(answered, each, np.nan), axis=1))


def _clearly_less(loss: Array, other: Array) -> bool:
    gain = (other - loss)[~np.isnan(loss)]
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
    return bool(gain.mean() > CLEARLY * error)
