"""Checks of the estimator's parameters, made in `fit`: each error names the parameter and the value."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight

from deferlearn._utils.checks import check_unmasked, is_number, is_whole, plain
from deferlearn.objective.validation import check_cache_size
from deferlearn.selection.greedy import check_floor, check_open_unit, check_ratio, check_tol
from deferlearn.teams.budget import count_of as count_of
from deferlearn.teams.budget import share_of as share_of
from deferlearn.teams.selector import SELECTIONS


def draw_seed(random_state: Any) -> int:
    """One random seed for everything that is random in a fit."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_verbose(verbose: Any) -> None:
    """Refuse a level that is not a whole number, 0 or larger."""
    if not isinstance(verbose, Integral | np.bool_) or verbose < 0:
        raise ValueError(f"verbose={plain(verbose)!r} must be a whole number, 0 for silence.")


def check_assisted_svc(estimator: Any) -> None:
    """Refuse parameters of the wrong type or range, whether or not this fit will use them.

    The objective checks its own (alpha, kernel, degree, gamma, coef0, fit_intercept, margin);
    `count_of` the budget.
    """
    e = estimator
    if not isinstance(e.selection, str) or e.selection not in SELECTIONS:
        raise ValueError(f"selection={e.selection!r} is not known; use one of {SELECTIONS}.")
    if e.selection == "unconstrained" and (
        isinstance(e.budget, Integral) or not isinstance(e.budget, Real) or e.budget != 1.0
    ):
        raise ValueError(
            f"budget={plain(e.budget)!r}: selection='unconstrained' has no budget, so it must be 1.0; "
            "use 'distorted' or 'stochastic' to respect one."
        )
    if not (isinstance(e.submodularity_ratio, str) and e.submodularity_ratio == "sweep"):
        if isinstance(e.submodularity_ratio, str):
            raise ValueError(
                f"submodularity_ratio={e.submodularity_ratio!r} must be 'sweep' or a number in (0, 1]."
            )
        check_ratio(e.submodularity_ratio)
    check_open_unit("epsilon", e.epsilon)
    check_open_unit("delta", e.delta)
    check_tol(e.tol)
    check_floor(e.min_kept_per_class)
    check_cost(e.deferral_cost)
    if e.human_bound is not None and (not is_number(e.human_bound) or e.human_bound <= 0):
        raise ValueError(f"human_bound={plain(e.human_bound)!r} must be a positive number or None.")
    check_folds(e.cv, e.n_jobs)
    check_verbose(e.verbose)
    check_cache_size(e.cache_size)


def check_cost(deferral_cost: Any) -> None:
    """Refuse a cost that is not a number, 0 or larger."""
    if not is_number(deferral_cost) or deferral_cost < 0:
        raise ValueError(f"deferral_cost={plain(deferral_cost)!r} must be a number, 0 or larger.")


def check_folds(cv: Any, n_jobs: Any) -> None:
    """Refuse a cv that is neither folds nor None, and an n_jobs that is no number of jobs."""
    # An iterable of splits or a splitter; a string is iterable too, but holds no splits.
    splitter = hasattr(cv, "split") or hasattr(cv, "__iter__")
    folds = cv >= 2 if is_whole(cv) else splitter and not isinstance(cv, str | bool)
    if cv is not None and not folds:
        raise ValueError(
            f"cv={plain(cv)!r} must be a number of folds (at least 2), a splitter such as KFold, or None, "
            "which takes the threshold from the training samples."
        )
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise ValueError(f"n_jobs={plain(n_jobs)!r} must be a whole number other than 0, or None.")


def error_weights(class_weight: Any, codes: Any, classes: Any) -> Any:
    """What an error on each sample costs, by the places of their labels among the classes."""
    if class_weight is None:
        return np.ones(len(codes))
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not (isinstance(class_weight, dict) or balanced):
        raise ValueError(
            f"class_weight={class_weight!r} must be None, 'balanced' or a dict with a weight per class."
        )
    if isinstance(class_weight, dict):
        unknown = [label for label in class_weight if label not in set(classes.tolist())]
        if unknown:
            raise ValueError(
                f"class_weight has a weight for {plain(unknown[0])!r}, which is none of the classes "
                f"{classes.tolist()}."
            )
        for label, weight in class_weight.items():
            if not is_number(weight) or weight <= 0:
                raise ValueError(
                    f"class_weight of {plain(label)!r} must be a positive number, got "
                    f"{plain(weight)!r}."
                )
        return np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])[codes]
    return compute_class_weight("balanced", classes=np.arange(len(classes)), y=codes)[codes]


def sample_weights(sample_weight: Any, codes: Any) -> Any:
    """Weights of samples, all positive; ones if none are given. ``codes`` are the samples' classes."""
    n = len(codes)
    if sample_weight is None:
        return np.ones(n)
    check_unmasked(sample_weight, "sample_weight")
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}") from None
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}, but X has {n} rows: give one number per sample."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if len(bad) and not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if len(bad) and len(np.unique(codes[weights > 0])) < 2:
        raise ValueError(
            "The samples with a positive sample_weight are all of one class; two classes are needed."
        )
    if len(bad):
        raise ValueError(
            f"sample_weight must be positive, got {weights[bad[0]]:g} at row {bad[0]}: leave out samples "
            "that should not count."
        )
    return weights
