"""Tuned teams against equally tuned baselines: error on test parts, with paired intervals."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from deferlearn.evaluation.intervals import t_interval
from deferlearn.experiments.comparison_data import NAMES, comparison_split
from deferlearn.experiments.experiment import jobs_of
from deferlearn.experiments.jobs import Job, Row
from deferlearn.teams import AssistedSVCCV
from deferlearn.teams.candidates import DEFAULT_POLICIES, equip

BUDGETS = (0.05, 0.1, 0.2, 0.3)
SPLITS, QUICK_SPLITS = 20, 5
TEAM = "team"
# Each is tuned like the team, with the same machines, folds and criterion, but has this policy alone.
BASELINES = {
    "automation": "automation",
    "uncertainty": "uncertainty",
    "predicted error": "predicted_error",
    "the paper's": "margin",
}
ALPHAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# The team is much worse than a baseline if the whole interval of the difference is above this.
WORST = 0.01


def comparison_jobs(
    names: Sequence[str] = NAMES, splits: int = SPLITS, seed: int = 0, budgets: Any = BUDGETS
) -> list[Job]:
    """One job per split and data set; split by split, so that all data sets have rows early."""
    axes = {"seed": range(seed, seed + splits), "dataset": names}
    return jobs_of("team", axes, budgets=list(budgets), alphas=list(ALPHAS))


def comparison_work(p: dict[str, Any]) -> list[Row]:
    """The team and the baselines at every budget on one split."""
    split = comparison_split(p["dataset"], p["seed"])
    policies = {TEAM: DEFAULT_POLICIES, **{name: (word,) for name, word in BASELINES.items()}}
    search = AssistedSVCCV(alphas=p["alphas"], kernels=[split.kernel], random_state=p["seed"])
    opened = search.open_search(
        split.X_train, split.y_train, human_labels=split.human_train, groups=split.groups_train
    )
    fitted: dict[Any, Any] = {}
    rows = []
    for budget in p["budgets"]:
        for name, chosen in policies.items():
            start = perf_counter()
            found = replace(opened, policies=chosen).run(budget)
            # A triage ranks alike at every budget; a team that is trained for one does not.
            trained = not found.team.shares_machines
            key = (str(found.params), budget if trained else None)
            if key not in fitted:
                # Without folds a ranking is the same, unless it is learned from held-out samples.
                folds = {} if found.team.needs_folds else {"cv": None}
                samples = replace(opened.context.samples, settings=found.settings)
                fitted[key] = equip(found.team, found.settings, folds).fit_samples(samples)
            team = fitted[key]
            # A team that was trained for a budget may have found that fewer should be deferred.
            asked = team.defer_top(split.X_test, team.deferral_rate_ if trained else budget)
            answer = np.where(asked, split.human_test, team.predict(split.X_test))
            rows.append(
                {
                    "budget": budget,
                    "method": name,
                    "error": float(np.mean(answer != split.y_test)),
                    "asked": float(asked.mean()),
                    "cv_error": -found.score,
                    "policy": str(found.params["policy"]),
                    "alpha": found.settings.alpha,
                    "humans": float(np.mean(split.human_test != split.y_test)),
                    "n_train": len(split.y_train),
                    "n_test": len(split.y_test),
                    "seconds": perf_counter() - start,
                }
            )
    return rows


def comparison_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per data set and budget: mean errors, and paired differences from each baseline."""
    lines = []
    for (dataset, budget), cell in rows.groupby(["dataset", "budget"], sort=False):
        errors = cell.pivot(index="seed", columns="method", values="error")
        team = cell[cell["method"] == TEAM]
        line: dict[str, Any] = {
            "dataset": dataset,
            "budget": budget,
            "splits": len(errors),
            TEAM: errors[TEAM].mean(),
            "asked": team["asked"].mean(),
            "humans alone": team["humans"].mean(),
            "policy": team["policy"].mode()[0],
        }
        for name in BASELINES:
            mean, low, high = t_interval(errors[TEAM] - errors[name])
            line |= {name: errors[name].mean()}
            line |= {f"minus {name}": mean, f"low {name}": low, f"high {name}": high}
        lines.append(line)
    return pd.DataFrame(lines)


def comparison_counts(table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """For each baseline, in how many cells the team is better, neither, worse, or much worse."""
    out = {}
    for name in BASELINES:
        low, high = table[f"low {name}"], table[f"high {name}"]
        out[name] = {
            "cells": len(table),
            "better": int((high < 0).sum()),
            "no difference": int(((low <= 0) & (high >= 0)).sum()),
            "worse": int((low > 0).sum()),
            "much worse": int((low > WORST).sum()),
        }
    return out
