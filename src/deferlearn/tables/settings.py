"""What a fit needs of its cases and settings, and the folds by which teams are judged."""

from collections import Counter
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from deferlearn._utils.words import counted, listed
from deferlearn.tables.cases import Cases
from deferlearn.tables.columns import score_names
from deferlearn.tables.errors import TableError
from deferlearn.teams.parameters import count_of

FOLDS = 5
# With fewer cases of a class, some folds would have none of it.
MIN_PER_CLASS = FOLDS


def check_settings(cases: Cases, budget: float | int | None, alpha: float | None) -> None:
    """Refuse settings and cases that cannot be fitted, before the fit begins.

    Parameters
    ----------
    cases : Cases
        The cases.
    budget : float, int or None
        The largest share, or number, of the cases that humans may take; None: experts' capacities say it.
    alpha : float or None
        Regularisation of the machine.
    """
    try:
        if budget is not None:
            count_of(budget, len(cases), "cases")
    except ValueError as error:
        raise TableError(str(error)) from error
    if alpha is not None and not (np.isfinite(alpha) and alpha > 0):
        raise TableError(f"alpha={alpha!r} must be a positive number")
    if alpha is not None and cases.roles["machine_score"] is not None:
        scores = listed([repr(name) for name in score_names(cases.roles["machine_score"])])
        raise TableError(
            f"alpha={alpha!r} is for a machine that is trained, but the scores of {scores} take its place: "
            "give one of the two"
        )
    for label, count in Counter(cases.truth.tolist()).items():
        if count < MIN_PER_CLASS:
            raise TableError(
                f"class {label!r} has {count} of {counted(len(cases), 'case')}; at least "
                f"{MIN_PER_CLASS} are needed"
            )
    n_groups = cases.n_groups
    if n_groups is not None and n_groups < FOLDS:
        raise TableError(
            f"the cases belong to only {counted(n_groups, 'group')}; at least {FOLDS} are needed"
        )


def grouped_folds(cases: Cases, seed: int) -> Any:
    """Folds in which the cases of one group stay together."""
    if cases.groups is None:
        return FOLDS
    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    return list(splitter.split(cases.truth, cases.truth, cases.groups))
