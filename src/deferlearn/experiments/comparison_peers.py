"""The field's methods, each tuned like the team: by the team's error on the same held-out folds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from time import process_time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from deferlearn._utils.types import Labels
from deferlearn.experiments.comparison_data import ComparisonSplit
from deferlearn.experiments.jobs import Row
from deferlearn.teams import (
    AssistedSVCCV,
    CompareConfidence,
    CrossEntropySurrogate,
    DifferentiableTriage,
    OneVsAllSurrogate,
    RealizableSurrogate,
    UncertaintyTriage,
)
from deferlearn.teams.brought import BroughtSettings
from deferlearn.teams.budget import count_of
from deferlearn.teams.context import FoldContext
from deferlearn.teams.surrogates.logistic import LogisticModel
from deferlearn.teams.threshold import first_of

# Regularisation of the linear ones, on standardised features.
ALPHAS = (0.3, 0.03, 0.003, 0.0003)
FORESTS: dict[str, dict[str, Any]] = {
    "leaves of 1": {"min_samples_leaf": 1},
    "leaves of 5": {"min_samples_leaf": 5},
    "half of the features": {"max_features": 0.5},
}
TREES = 100
BOOSTINGS: dict[str, dict[str, Any]] = {
    "depth 2": {"max_depth": 2, "max_iter": 100},
    "depth 4": {"max_depth": 4, "max_iter": 100},
    "31 leaves": {"max_leaf_nodes": 31, "max_iter": 60},
}
# The published rules defer where a gain is expected, within the budget; the other one spends all of it.
RULES = {"gain": False, "full budget": True}
ALONE = "automation"


@dataclass(frozen=True)
class Candidate:
    """A setting of a peer.

    Attributes
    ----------
    machine, policy : str
        What it is called in the rows.
    team : Team
        Not fitted.
    settings : BroughtSettings or None
        Its machine, if folds share it.
    """

    machine: str
    policy: str
    team: Any
    settings: Any = None


def _linear(kind: Callable[..., Any], **others: tuple[float, ...]) -> list[Candidate]:
    """All alphas, with all values of one other parameter if one is given, by both rules."""
    ((other, values),) = others.items() or [("", (None,))]
    return [
        Candidate(
            f"alpha {alpha:g}" + (f", {other} {value:g}" if other else ""),
            rule,
            kind(alpha=alpha, use_full_budget=full, **({other: value} if other else {})),
        )
        for rule, full in RULES.items()
        for value in values
        for alpha in ALPHAS
    ]


def _compared(machines: dict[str, Any]) -> list[Candidate]:
    return [
        Candidate(name, rule, CompareConfidence(machine=machine, use_full_budget=full))
        for rule, full in RULES.items()
        for name, machine in machines.items()
    ]


_RF = {name: RandomForestClassifier(TREES, **given) for name, given in FORESTS.items()}
_HGB = {name: HistGradientBoostingClassifier(**given) for name, given in BOOSTINGS.items()}

# Of settings with the same error on the folds, the first is taken; and so of methods.
PEERS: dict[str, list[Candidate]] = {
    "CC": _linear(CompareConfidence),
    "OvA": _linear(OneVsAllSurrogate),
    "LCE": _linear(CrossEntropySurrogate, machine_weight=(1.0, 0.5)),
    "RS": _linear(RealizableSurrogate, joint_weight=(1.0, 0.5)),
    "DT": [
        Candidate(f"alpha {alpha:g}", "policy", DifferentiableTriage(alpha=alpha))
        for alpha in ALPHAS
    ],
    "HGB": _compared(_HGB),
    "RF": _compared(_RF),
    "HGB alone": [Candidate(c.machine, ALONE, c.team) for c in _compared(_HGB)[: len(_HGB)]],
    "RF alone": [Candidate(c.machine, ALONE, c.team) for c in _compared(_RF)[: len(_RF)]],
}


def _uncertain(machines: dict[str, Any]) -> list[Candidate]:
    return [
        Candidate(
            name, "uncertainty", UncertaintyTriage(machine=machine), BroughtSettings(machine, name)
        )
        for name, machine in machines.items()
    ]


# With several classes gradient boosting takes minutes: fewer settings are tried, and fewer peers.
_FEW = {
    "depth 3": HistGradientBoostingClassifier(max_depth=3, max_iter=60),
    "31 leaves": HistGradientBoostingClassifier(max_iter=40),
}
_LOGISTIC = {f"alpha {alpha:g}": LogisticModel(alpha=alpha) for alpha in ALPHAS}
CLASS_PEERS: dict[str, list[Candidate]] = {
    "UT": _uncertain(_LOGISTIC | _RF),
    "OvA": PEERS["OvA"],
    "HGB": _compared(_FEW),
}


def grid_of(peers: dict[str, list[Candidate]] | None = None) -> list[str]:
    """The settings that are tried, as words: other settings are other jobs."""
    peers = PEERS if peers is None else peers
    return [f"{name}: {c.machine}, {c.policy}" for name, given in peers.items() for c in given]


def peer_rows(
    split: ComparisonSplit,
    seed: int,
    budgets: list[float],
    peers: dict[str, list[Candidate]] | None = None,
) -> Iterator[Row]:
    """A row for each peer and budget: the setting that does best on the folds, on the test part.

    Parameters
    ----------
    split : ComparisonSplit
        Training and test part.
    seed : int
        Seed of the folds, which are those of a search with this seed, and of the models.
    budgets : list of float
        The most that may be deferred, as shares.
    peers : dict of list of Candidate, default=None
        Methods and their settings; None is `PEERS`.

    Yields
    ------
    row : dict
    """
    context = fold_context(split, seed)
    for name, candidates in (PEERS if peers is None else peers).items():
        fitted: dict[Any, Any] = {}
        for budget in budgets:
            start = process_time()
            errors = [held_out_error(c, budget, context) for c in candidates]
            best = int(np.argmin(errors))
            chosen = candidates[best]
            # Its machine is trained for a budget; all others only rank, alike at every budget.
            trained = isinstance(chosen.team, DifferentiableTriage)
            key = (best, budget if trained else None)
            if key not in fitted:
                team = clone(chosen.team).set_params(budget=budget, random_state=seed)
                if (
                    chosen.settings is None
                ):  # the rate of the test part is given, so no threshold matters
                    team.set_params(cv=None)
                team.fit(split.X_train, split.y_train, human_labels=split.human_train)
                fitted[key] = Judged(team, split)
            most = fitted[key].team.deferral_rate_ if trained else budget
            yield {
                "budget": budget,
                "method": name,
                **fitted[key].row(0.0 if chosen.policy == ALONE else most),
                "cv_error": errors[best],
                "policy": chosen.policy,
                "machine": chosen.machine,
                "seconds": process_time() - start,
            }


def fold_context(split: ComparisonSplit, seed: int) -> FoldContext:
    """The training part in the folds of a search with this seed."""
    search = AssistedSVCCV(random_state=seed, classes=split.classes).open_search(
        split.X_train, split.y_train, human_labels=split.human_train, groups=split.groups_train
    )
    return search.context


def held_out_error(candidate: Candidate, budget: float, context: FoldContext) -> float:
    """The team's error on held-out samples; what does not depend on the budget is fitted once."""
    samples = context.samples
    if candidate.settings is not None:
        context = context.with_machine(candidate.settings)
    found = clone(candidate.team).set_params(budget=budget).held_out_scores(context)
    cost = samples.machine_cost(found.said)
    if candidate.policy != ALONE:
        count = count_of(float(found.rate), len(samples))
        asked = first_of(found.score, count) & (found.score > -np.inf)
        cost = np.where(asked, samples.human_cost(0.0), cost)
    return float(cost.mean())


def error_of(answers: Labels, split: ComparisonSplit) -> float:
    """The share of wrong answers to the test part; of grades, how far answers are off on average."""
    if split.classes == "grades":
        return float(np.abs(answers - split.y_test).mean())
    return float(np.mean(answers != split.y_test))


@dataclass
class Judged:
    """A fitted team on the test part of a split.

    Attributes
    ----------
    team : Team
        Fitted on the training part.
    split : ComparisonSplit
        The split.
    """

    team: Any
    split: ComparisonSplit

    @cached_property
    def said(self) -> Labels:
        """The machine's answers, which are the same at every budget."""
        answers: Labels = self.team.predict(self.split.X_test)
        return answers

    def row(self, budget: float) -> Row:
        """What the team does where the human may take this share of the cases."""
        split = self.split
        asked = self.team.defer_top(split.X_test, float(budget))
        return {
            "error": error_of(np.where(asked, split.human_test, self.said), split),
            "asked": float(asked.mean()),
            "humans": error_of(split.human_test, split),
            "n_train": len(split.y_train),
            "n_test": len(split.y_test),
        }
