"""A team fitted on a table, and all that is needed to apply it to other tables."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sklearn
from sklearn.model_selection import StratifiedGroupKFold

from deferlearn import __version__
from deferlearn.tables.cases import Cases
from deferlearn.tables.encoder import TableEncoder
from deferlearn.tables.errors import TableError
from deferlearn.teams import AssistedSVCCV
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.parameters import count_of
from deferlearn.teams.pipeline import AssistedPipeline

# Of the card; raised when its keys change their meaning.
FORMAT = 1
FOLDS = 5
# Fewer cases of a class leave folds without it.
MIN_PER_CLASS = FOLDS


class TabularTeam(AssistedPipeline):
    """A pipeline from the columns of a table to a team, with a card that says where it comes from.

    `fit_table` makes it. It has the methods of `AssistedPipeline`, and takes tables (DataFrames, dicts of
    columns, Arrow tables) with the columns that it knows; others are not looked at.

    Attributes
    ----------
    card_ : dict
        What went in and what came out: files with their sha256, columns, classes, readers, seed,
        versions, errors.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables import fit_table, select_cases
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=80)
    >>> table = {
    ...     "size": size,
    ...     "site": rng.choice(["Oslo", "Rome"], 80),
    ...     "truth": np.where(size + 0.5 * rng.normal(size=80) > 0, "ill", "well"),
    ...     "doctor": np.where(size + 0.5 * rng.normal(size=80) > 0, "ill", "well"),
    ... }
    >>> team = fit_table(select_cases(table, "truth", humans=["doctor"]), alpha=0.1, seed=0)
    >>> team.predict({"size": [-2.0, 2.0], "site": ["Oslo", "Paris"]})
    array(['well', 'ill'], dtype='<U4')
    >>> team.card_["columns"], team.card_["classes"]
    ({'size': 'number', 'site': 'category'}, ['ill', 'well'])
    """

    card_: dict[str, Any]

    @property
    def encoder(self) -> TableEncoder:
        """The step from columns to features."""
        return self.named_steps["table"]

    @property
    def team(self) -> Any:
        """The step that decides."""
        return self.named_steps["team"]

    @property
    def chosen(self) -> Any:
        """The team itself: of one that was tuned, the winner."""
        return getattr(self.team, "best_estimator_", self.team)


def make_team(
    budget: float | int = 0.2,
    alpha: float | None = None,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    folds: Any = FOLDS,
) -> Any:
    """The estimator at the end of the pipeline, not fitted.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that humans may take: a share, or a number of the training cases.
    alpha : float or None, default=None
        Regularisation of the machine. None tunes it, and who is deferred, for the team
        (`deferlearn.teams.AssistedSVCCV`); else nothing is tuned, and the policy is the
        paper's (`AssistedSVC` with ``policy="margin"``).
    seed : int, default=0
        Of all that is random.
    n_jobs : int or None, default=None
        How many fits at a time.
    folds : int or list of splits, default=5
        Behind the choice and the threshold.

    Returns
    -------
    estimator
        With the methods of `AssistedSVC`.

    Examples
    --------
    >>> from deferlearn.tables import make_team
    >>> type(make_team(0.1)).__name__, type(make_team(0.1, alpha=0.5)).__name__
    ('AssistedSVCCV', 'AssistedSVC')
    """
    common = {"budget": budget, "cv": folds, "n_jobs": n_jobs, "random_state": seed}
    if alpha is None:
        return AssistedSVCCV(**common)
    return AssistedSVC(alpha=alpha, policy="margin", **common)


def fit_table(
    cases: Cases,
    *,
    budget: float | int = 0.2,
    alpha: float | None = None,
    seed: int = 0,
    number: Sequence[str] = (),
    category: Sequence[str] = (),
    drop: Sequence[str] = (),
    n_jobs: int | None = None,
) -> TabularTeam:
    """Fit a team on the cases of a table.

    Parameters
    ----------
    cases : Cases
        From `select_cases`.
    budget : float or int, default=0.2
        The most that humans may take: a share, or a number of the cases.
    alpha : float or None, default=None
        Regularisation of the machine; None tunes it for the team.
    seed : int, default=0
        Of all that is random.
    number, category, drop : sequence of str, default=()
        Columns to take as numbers or categories, or to leave out, as in `TableEncoder`.
    n_jobs : int or None, default=None
        How many fits at a time.

    Returns
    -------
    TabularTeam
        Fitted.
    """
    check_settings(cases, budget, alpha)
    encoder = TableEncoder(number=tuple(number), category=tuple(category), drop=tuple(drop))
    team = make_team(budget, alpha, seed=seed, n_jobs=n_jobs, folds=_folds(cases, seed))
    model = TabularTeam([("table", encoder), ("team", team)])
    # Parameters go to the last step by its name, whether or not the caller has routing on.
    with sklearn.config_context(enable_metadata_routing=False):
        model.fit(cases.features, cases.truth, team__human_labels=cases.answers)
    # The model need not remember who was in which fold.
    for estimator in (model.team, model.chosen):
        estimator.set_params(cv=FOLDS)
    model.card_ = _card(model, cases, budget, seed)
    return model


def check_settings(cases: Cases, budget: float | int, alpha: float | None) -> None:
    """Refuse what no fit can work with, before one begins.

    Parameters
    ----------
    cases : Cases
        The cases.
    budget : float or int
        The most that humans may take.
    alpha : float or None
        Regularisation.
    """
    try:
        count_of(budget, len(cases), "cases")
    except ValueError as error:
        raise TableError(str(error)) from error
    if alpha is not None and not (np.isfinite(alpha) and alpha > 0):
        raise TableError(f"alpha={alpha!r} must be a positive number")
    for label, count in Counter(cases.truth.tolist()).items():
        if count < MIN_PER_CLASS:
            raise TableError(
                f"class {label!r} has {count} of {len(cases)} cases; at least {MIN_PER_CLASS} are needed"
            )
    if cases.groups is not None and len(set(cases.groups.tolist())) < FOLDS:
        n_groups = len(set(cases.groups.tolist()))
        raise TableError(f"there are {n_groups} groups only; at least {FOLDS} are needed")


def _folds(cases: Cases, seed: int) -> Any:
    """Cases of one group stay together."""
    if cases.groups is None:
        return FOLDS
    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    return list(splitter.split(cases.truth, cases.truth, cases.groups))


def _card(model: TabularTeam, cases: Cases, budget: float | int, seed: int) -> dict[str, Any]:
    """What the model knows about itself; plain values only, so that any program can read them."""
    encoder, team = model.encoder, model.team
    counts = Counter(cases.truth.tolist())
    human, read = cases.human_answers(cases.truth)
    scores = model.deferral_score(cases.features)
    threshold = team.deferral_threshold_
    return {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "deferlearn": __version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        **cases.roles,
        "files": {},  # filled by who has read them
        "rows": len(cases),
        "rows_without_label": cases.n_unlabelled,
        "classes": list(cases.classes),
        "class_counts": {label: counts[label] for label in cases.classes},
        "columns": dict(encoder.kinds_),
        "dropped": dict(encoder.dropped_),
        "features": [str(name) for name in encoder.get_feature_names_out()],
        "groups": None if cases.groups is None else len(set(cases.groups.tolist())),
        "readers": cases.reader_errors(),
        "human": {
            "read": int(read.sum()) if cases.answers is not None else 0,
            "error": float(np.mean(human[read] != cases.truth[read])) if read.any() else None,
        },
        "budget": budget,
        "seed": seed,
        "tuned": team is not model.chosen,
        "policy": team.best_params_["policy"] if team is not model.chosen else team.policy,
        "alpha": float(model.chosen.alpha),
        "deferral_rate": float(team.deferral_rate_),
        # None where nobody or everybody was deferred: JSON knows no infinity.
        "deferral_threshold": float(threshold) if np.isfinite(threshold) else None,
        "score_percentiles": np.percentile(scores, np.arange(101)).tolist(),
    }
