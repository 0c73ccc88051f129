"""Refit a team on each split, at each budget, and let it answer the held-out cases with its human."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import has_fit_parameter

from deferlearn._utils.types import Bools, Index
from deferlearn._utils.words import without_repeats
from deferlearn.metrics import find_member
from deferlearn.teams.held_out import Split, held_out


@dataclass(frozen=True)
class SplitData:
    """All that splits are taken from.

    Attributes
    ----------
    X, y : array-like
        Cases and true labels.
    human_labels : array-like
        The answers that the team gives to deferred test cases.
    human : dict of str to array-like
        The argument of `fit` that describes the human, by its name.
    groups : array-like or None
        Passed on to a `fit` that asks for them.
    """

    X: Any
    y: Any
    human_labels: Any
    human: dict[str, Any]
    groups: Any = None


@dataclass(frozen=True)
class TestPart:
    """What a team did on the test part of one split.

    Attributes
    ----------
    answers : ndarray of shape (n_test,)
        The team's answers.
    deferred : ndarray of bool of shape (n_test,)
        The cases that the human took.
    classes : ndarray or None
        The classes of the fitted estimator, if it tells.
    warned : tuple of (type, str)
        The warnings that were caught.
    """

    __test__ = False  # pytest takes classes of this name for tests

    answers: NDArray[Any]
    deferred: Bools
    classes: NDArray[Any] | None
    warned: tuple[tuple[type[Warning], str], ...] = ()


def refit(
    estimator: Any,
    data: SplitData,
    splits: Sequence[Split],
    budgets: Sequence[float | int],
    batch: bool,
    n_jobs: int | None,
    stacklevel: int = 3,
) -> list[list[TestPart]]:
    """For each split a list with the test part at each budget; clones are fitted, never `estimator`.

    A warning that several fits repeat is given once, as from the caller's caller, also if its numbers
    differ from split to split.
    """
    tasks = [(split, budget) for split in splits for budget in budgets]
    parts = held_out(
        _answer_split,
        [split for split, _ in tasks],
        estimator,
        data,
        batch,
        each=[budget for _, budget in tasks],
        n_jobs=n_jobs,
    )
    warned = [warning for part in parts for warning in part.warned]
    for category in dict.fromkeys(category for category, _ in warned):
        for text in without_repeats(text for own, text in warned if own is category):
            warnings.warn(text, category, stacklevel=stacklevel)
    width = len(budgets)
    return [parts[start : start + width] for start in range(0, len(parts), width)]


def _answer_split(
    train: Index, test: Index, estimator: Any, data: SplitData, batch: bool, budget: float | int
) -> TestPart:
    with warnings.catch_warnings(record=True) as caught:
        part = _fit_and_answer(train, test, clone(estimator), data, batch, budget)
    return replace(part, warned=tuple((w.category, str(w.message)) for w in caught))


def _fit_and_answer(
    train: Index, test: Index, estimator: Any, data: SplitData, batch: bool, budget: float | int
) -> TestPart:
    name = budget_name(estimator)
    if name is not None:
        estimator.set_params(**{name: budget})
    # A kernel matrix is cut by rows and columns, which scikit-learn knows how to do.
    X_train, _ = _safe_split(estimator, data.X, None, train)
    X_test, _ = _safe_split(estimator, data.X, None, test, train)
    more = dict(data.human)
    if data.groups is not None and _asks_for_groups(estimator):
        more["groups"] = data.groups
    more = {_fit_name(estimator, key): _safe_indexing(all_, train) for key, all_ in more.items()}
    estimator.fit(X_train, _safe_indexing(data.y, train), **more)
    member, cases = find_member(estimator, X_test)
    answers = member.predict_assisted(cases, _safe_indexing(data.human_labels, test), batch=batch)
    deferred = member.defer_top(cases) if batch else member.defer(cases)
    classes = getattr(member, "classes_", None)
    return TestPart(np.asarray(answers), np.asarray(deferred), classes)


def budget_name(estimator: Any) -> str | None:
    """Parameter that holds the budget: of the estimator itself, or of a step inside it."""
    names = [n for n in estimator.get_params() if n == "budget" or n.endswith("__budget")]
    if len(names) > 1 and "budget" not in names:
        raise ValueError(f"which of the parameters {names} is the team's budget is unclear")
    return "budget" if "budget" in names else (names[0] if names else None)


def _fit_name(estimator: Any, name: str) -> str:
    """Keyword for an argument of `fit`: a pipeline without routing wants the name of the step, too."""
    if isinstance(estimator, Pipeline) and not get_config()["enable_metadata_routing"]:
        return f"{estimator.steps[-1][0]}__{name}"
    return name


def _asks_for_groups(estimator: Any) -> bool:
    """Whether the team's own `fit` has a parameter `groups`; routing has its own ways to ask."""
    if isinstance(estimator, Pipeline):
        routed = get_config()["enable_metadata_routing"]
        return not routed and has_fit_parameter(estimator.steps[-1][1], "groups")
    return bool(has_fit_parameter(estimator, "groups"))
