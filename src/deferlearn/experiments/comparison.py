"""Tuned teams against equally tuned baselines and the field's methods, on test parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import process_time
from typing import Any

from deferlearn.experiments.comparison_classes import CLASS_NAMES, class_split
from deferlearn.experiments.comparison_data import NAMES, ComparisonSplit, comparison_split
from deferlearn.experiments.comparison_peers import (
    CLASS_PEERS,
    PEERS,
    Candidate,
    Judged,
    grid_of,
    peer_rows,
)
from deferlearn.experiments.jobs import Job, Row
from deferlearn.teams import AssistedSVCCV, TeamCV

BUDGETS = (0.05, 0.1, 0.2, 0.3)
SPLITS, QUICK_SPLITS = 20, 5
TEAM, SVM_TEAM, ALONE = "team", "SVM team", "machine alone"
# The search that is compared with all others.
TEAM_SEARCH: Any = TeamCV
# Each is tuned like the teams, by the same folds and criterion, but has the kernel of the data and this
# policy alone.
BASELINES = {"automation": "automation", "uncertainty": "uncertainty", "the paper's": "margin"}
ALPHAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


def _team(split: ComparisonSplit, p: dict[str, Any]) -> Iterator[Row]:
    search = TEAM_SEARCH(random_state=p["seed"], classes=split.classes)
    # With several classes no peer answers alone, so the machine that the search would choose does.
    alone = {ALONE: ("automation",)} if p["dataset"] in CLASS_NAMES else {}
    return search_rows(search, split, p["budgets"], {TEAM: None} | alone)


def _svm(split: ComparisonSplit, p: dict[str, Any]) -> Iterator[Row]:
    search = AssistedSVCCV(random_state=p["seed"], classes=split.classes)
    return search_rows(search, split, p["budgets"], {SVM_TEAM: None})


def _baselines(split: ComparisonSplit, p: dict[str, Any]) -> Iterator[Row]:
    search = AssistedSVCCV(
        alphas=p["alphas"], kernels=[split.kernel], classes=split.classes, random_state=p["seed"]
    )
    policies = {name: (word,) for name, word in BASELINES.items()}
    return search_rows(search, split, p["budgets"], policies)


def _peers(split: ComparisonSplit, p: dict[str, Any]) -> Iterator[Row]:
    return peer_rows(split, p["seed"], p["budgets"], peers_for(p["dataset"]))


# What can be computed, and kept, without the others; so a change of the team leaves its rivals alone.
PARTS: dict[str, Callable[[ComparisonSplit, dict[str, Any]], Iterator[Row]]] = {
    "peers": _peers,
    "baselines": _baselines,
    "svm": _svm,
    "team": _team,
}


def comparison_jobs(
    names: Sequence[str] = NAMES,
    splits: int = SPLITS,
    seed: int = 0,
    budgets: Sequence[float] = BUDGETS,
    parts: Sequence[str] = tuple(PARTS),
) -> list[Job]:
    """One job per split, data set and part; split by split, so that all data sets have rows early.

    Parameters
    ----------
    names : sequence of str
        Data sets.
    splits, seed : int
        The number of splits, and the seed of the first.
    budgets : sequence of float
        The most that may be deferred, as shares.
    parts : sequence of str
        Of `PARTS`.

    Returns
    -------
    jobs : list of Job
        Their names begin with the part.
    """
    # What else decides the rows: another grid is another job.
    grids: dict[str, dict[str, Any]] = {"baselines": {"alphas": list(ALPHAS)}}

    def grid(name: str, part: str) -> dict[str, Any]:
        return {"grid": grid_of(peers_for(name))} if part == "peers" else grids.get(part, {})

    return [
        Job(
            f"team-{part}",
            {"seed": number, "dataset": name, "part": part, "budgets": list(budgets)}
            | grid(name, part),
        )
        for number in range(seed, seed + splits)
        for name in names
        for part in parts
    ]


def comparison_work(p: dict[str, Any]) -> list[Row]:
    """The rows of one part on one split, at every budget."""
    make = class_split if p["dataset"] in CLASS_NAMES else comparison_split
    return list(PARTS[p["part"]](make(p["dataset"], p["seed"]), p))


def peers_for(name: str) -> dict[str, list[Candidate]]:
    """The peers on a data set."""
    return CLASS_PEERS if name in CLASS_NAMES else PEERS


def search_rows(
    search: Any, split: ComparisonSplit, budgets: Sequence[float], methods: dict[str, Any]
) -> Iterator[Row]:
    """A row for each method and budget: the candidate that does best on the folds, on the test part.

    Parameters
    ----------
    search : AssistedSVCCV or TeamCV
        Has a method `open_search`.
    split : ComparisonSplit
        Training and test part.
    budgets : sequence of float
        The most that may be deferred, as shares.
    methods : dict
        Names of the methods, and the policies to which each is restricted; None for all.

    Yields
    ------
    row : dict
    """
    opened = search.open_search(
        split.X_train, split.y_train, human_labels=split.human_train, groups=split.groups_train
    )
    fitted: dict[Any, Any] = {}
    for budget in budgets:
        for name, policies in methods.items():
            start = process_time()
            own = opened if policies is None else replace(opened, policies=policies)
            found = own.run(budget)
            # A triage ranks alike at every budget; a team that is trained for one does not.
            trained = not getattr(found.team, "shares_machines", True)
            key = (str(found.params), found.share, budget if trained else None)
            if key not in fitted:
                fitted[key] = Judged(own.fit(found, budget), split)
            team = fitted[key].team
            # A team that was trained for a budget may have found that fewer should be deferred.
            most = min(team.deferral_rate_, budget) if trained else found.share * budget
            yield {
                "budget": budget,
                "method": name,
                **fitted[key].row(most),
                "cv_error": -found.score,
                "policy": str(found.params["policy"]),
                "machine": machine_of(found.params),
                "seconds": process_time() - start,
            }


def machine_of(params: dict[str, Any]) -> str:
    """The machine's parameters as words, such as "kernel linear, alpha 0.1"."""
    said = {
        name: f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in params.items()
        if name != "policy" and value is not None
    }
    order = sorted(said, key=lambda name: (name not in ("machine", "kernel"), name))
    return ", ".join(f"{name} {said[name]}" for name in order)
