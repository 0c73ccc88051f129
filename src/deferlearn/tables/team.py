"""A team fitted on a table, with all that is needed to apply it to other tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sklearn

from deferlearn.experts import ExpertTeam
from deferlearn.tables.card import model_card
from deferlearn.tables.cases import Cases
from deferlearn.tables.costs import CostRows
from deferlearn.tables.decider import MEMBER, TableDecider, check_card, version_of
from deferlearn.tables.encoder import TableEncoder
from deferlearn.tables.errors import TableError
from deferlearn.tables.experts import answers_by_expert, check_experts
from deferlearn.tables.guard import Guard
from deferlearn.tables.settings import FOLDS, check_settings, grouped_folds
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.brought import ScoreColumn
from deferlearn.teams.parameters import share_of
from deferlearn.teams.pipeline import AssistedPipeline
from deferlearn.teams.search_team import SearchTeam
from deferlearn.teams.team import Team
from deferlearn.teams.team_cv import TeamCV

# What humans may take if nothing else is said.
BUDGET = 0.2


class TabularTeam(AssistedPipeline):
    """A pipeline from the columns of a table to a team, with a card that documents its origin.

    `fit_table` makes it. It has the methods of `AssistedPipeline`, and takes tables (DataFrames, dicts of
    columns, Arrow tables) with the columns that it was fitted on; other columns are ignored.

    Attributes
    ----------
    card_ : dict
        A description of the model: files with their sha256, columns, classes, readers, seed, versions,
        errors.

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
        """The step that turns columns into features."""
        return self.named_steps["table"]

    @property
    def guard(self) -> Guard:
        """What the training cases looked like, to tell which new cases are unusual."""
        return self.encoder.guard_

    @property
    def team(self) -> Any:
        """The step that decides: an `AssistedSVC`, a `TeamCV` if it was tuned, or an `ExpertTeam`."""
        return self.named_steps["team"]

    @property
    def machine(self) -> Any:
        """The fitted team with the machine: the same, or the team within an `ExpertTeam`."""
        return self.team.team_ if isinstance(self.team, ExpertTeam) else self.team

    @property
    def chosen(self) -> Any:
        """The fitted team with the machine: the best one if it was tuned."""
        machine = self.machine
        return machine.best_estimator_ if isinstance(machine, SearchTeam) else machine

    def unusual(self, X: Any) -> list[str]:
        """What makes cases unlike the training cases; see `deferlearn.tables.guard`.

        `deferlearn apply`, `Router` and `TableDecider.decide` give such cases to humans first. `defer` and
        `defer_top` go by the score alone.

        Parameters
        ----------
        X : DataFrame, dict of columns or pyarrow.Table
            Cases.

        Returns
        -------
        reasons : list of str
            For each case the columns with values and ranges; empty if the case is usual.
        """
        codes, _ = self.encoder.codes(X)
        return self.guard.reasons(codes, self.guard.strange(codes))

    def decider(self, version: str = "") -> TableDecider:
        """The part that decides, which is the quickest way to decide about one case after another.

        Parameters
        ----------
        version : str, default=""
            Name of the model in its results.

        Returns
        -------
        TableDecider
            What `load_decider` reads from a file. It does not change if the model is fitted again.
        """
        arrays = self.team.decider() if isinstance(self.team, Team) else None
        team, chosen = (self.team, self.chosen) if arrays is None else (arrays, arrays)
        return TableDecider(self.card_, self.encoder.encoding_, self.guard, team, chosen, version)

    def archive_members(self) -> dict[str, bytes]:
        """What `deferlearn.save` stores beside the model: all that `load_decider` needs."""
        content = self.decider().packed() if hasattr(self, "card_") else None
        return {} if content is None else {MEMBER: content}


def make_team(
    budget: float | int = 0.2,
    *,
    alpha: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    folds: Any = FOLDS,
    scored: bool = False,
    grades: Sequence[str] | None = None,
    costs: CostRows | None = None,
) -> AssistedSVC | TeamCV:
    """Make the estimator at the end of the pipeline, without fitting it.

    Parameters
    ----------
    budget : float or int, default=0.2
        The largest share, or number, of the training cases that humans may take.
    alpha : float or None, default=None
        Regularisation of the machine. None chooses machine and policy for the team
        (`deferlearn.TeamCV`). With a number nothing is tuned: the machine is a linear SVM, and the policy
        is that of the paper (`AssistedSVC` with ``policy="margin"``).
    seed : int, default=0
        Random seed of the folds and of the policy.
    n_jobs : int or None, default=None
        Number of fits that run at the same time.
    folds : int or list of splits, default=5
        Folds for tuning and for the threshold.
    scored : bool, default=False
        Whether the last features are the scores of a machine that cannot be retrained: then no other
        machine is tried.
    grades : sequence of str or None, default=None
        The labels from the lowest grade to the highest; None for classes without an order.
    costs : tuple of tuple of float or None, default=None
        The ``cost_matrix`` of the team: a row per true class and a column per answer, in the order of the
        grades, or of the alphabet if there is none or there are two classes.

    Returns
    -------
    estimator : AssistedSVC or TeamCV

    Examples
    --------
    >>> from deferlearn.tables import make_team
    >>> type(make_team(0.1)).__name__, type(make_team(0.1, alpha=0.5)).__name__
    ('TeamCV', 'AssistedSVC')
    """
    common = {
        "budget": budget,
        "cv": folds,
        "n_jobs": n_jobs,
        "random_state": seed,
        # Two have the order of the alphabet in a team, and so have their costs.
        "classes": "auto"
        if grades is None
        else list(grades)
        if len(grades) > 2
        else sorted(grades),
        "cost_matrix": costs,
    }
    if alpha is None:
        return TeamCV(**common, machines=[ScoreColumn()] if scored else "auto")
    return AssistedSVC(alpha=alpha, policy="margin", **common)


def fit_table(
    cases: Cases,
    *,
    budget: float | int | None = None,
    capacity: Mapping[str, float | int] | None = None,
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
        Cases from `select_cases`.
    budget : float, int or None, default=None
        The largest share, or number, of the cases that humans may take. None: 0.2, and with `capacity`
        as much as the experts' capacities allow.
    capacity : mapping or None, default=None
        For each reader of the cases a share of them, such as 0.1, or a whole number: the readers are then
        experts who are told apart (`deferlearn.experts.ExpertTeam`). None: the majority of the readers
        counts.
    alpha : float or None, default=None
        Regularisation of the machine; None tunes it for the team.
    seed : int, default=0
        Random seed of the folds and of the policy.
    number, category, drop : sequence of str, default=()
        Columns to take as numbers or as categories, or to leave out, as in `TableEncoder`.
    n_jobs : int or None, default=None
        Number of fits that run at the same time.

    Returns
    -------
    model : TabularTeam
        The fitted model.
    """
    if capacity is not None:
        check_experts(cases, capacity)
    elif budget is None:
        budget = BUDGET
    check_settings(cases, budget, alpha)
    score = cases.roles["machine_score"]
    encoder = TableEncoder(
        number=tuple(number), category=tuple(category), drop=tuple(drop), score=score
    )
    by_splits = alpha is not None and capacity is None
    team: Any = make_team(
        BUDGET if budget is None else budget,
        alpha=alpha,
        seed=seed,
        n_jobs=n_jobs,
        folds=grouped_folds(cases, seed) if by_splits else FOLDS,
        scored=score is not None,
        grades=cases.classes if cases.graded else None,
        costs=_costs_of_team(cases),
    )
    human: dict[str, Any] = {"team__human_labels": cases.answers}
    if capacity is not None:
        team = ExpertTeam(team, dict(capacity), budget=budget, n_jobs=n_jobs, random_state=seed)
        human = {"team__answers": answers_by_expert(cases)}
    model = TabularTeam([("table", encoder), ("team", team)])
    # Parameters reach the last step by its name, also if the caller has metadata routing on.
    with sklearn.config_context(enable_metadata_routing=False):
        more = {} if cases.groups is None or by_splits else {"team__groups": cases.groups}
        model.fit(cases.features, cases.truth, **human, **more)
    # The model does not keep the rows of the folds.
    for estimator in (model.team, model.machine, model.chosen):
        set_known(estimator, cv=FOLDS)
    if budget is None or capacity is not None:  # what all experts can take
        budget = float(share_of(model.machine.budget, len(cases)))
    model.card_ = model_card(model, cases, budget, seed)
    return model


def _costs_of_team(cases: Cases) -> CostRows | None:
    """The cost matrix in the order of the team's classes: two have that of the alphabet, grades or not."""
    if cases.costs is None or len(cases.classes) > 2:
        return cases.costs
    order = sorted(range(2), key=lambda place: cases.classes[place])
    return tuple(tuple(cases.costs[truth][said] for said in order) for truth in order)


def set_known(estimator: Any, **params: Any) -> None:
    """Set those of the parameters that an estimator has: `FullAutomation` has no budget and no folds.

    Parameters
    ----------
    estimator : estimator
        It is changed.
    **params
        The parameters.
    """
    known = estimator.get_params(deep=False)
    estimator.set_params(**{name: value for name, value in params.items() if name in known})


def load_team(path: Path) -> tuple[TabularTeam, str]:
    """Read a model that `deferlearn fit` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    model : TabularTeam
    version : str
        A name of the model that no other model has.
    """
    import deferlearn

    try:
        version = version_of(path.read_bytes())
        model = deferlearn.load(path)
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TableError(str(error)) from error
    if not isinstance(model, TabularTeam) or not hasattr(model, "card_"):
        raise TableError(f"{path} holds a model that `deferlearn fit` did not write")
    try:
        check_card(model.card_)
    except TableError as error:
        raise TableError(f"{path} {error}") from error
    return model, version
