"""A model's card: what it was fitted on and how, of plain values that any program can read."""

from __future__ import annotations

import platform
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn

from deferlearn import __version__
from deferlearn._utils.words import listed
from deferlearn.experts import ExpertTeam
from deferlearn.tables.cases import Cases
from deferlearn.tables.columns import score_names
from deferlearn.tables.decider import FORMAT
from deferlearn.tables.experts import expert_rows
from deferlearn.tables.summary import column_summary

if TYPE_CHECKING:
    from deferlearn.tables.team import TabularTeam


def model_card(model: TabularTeam, cases: Cases, budget: float | int, seed: int) -> dict[str, Any]:
    """The model's description, of plain values that any program can read."""
    encoder, team, chosen = model.encoder, model.machine, model.chosen
    experts = expert_rows(model.team) if isinstance(model.team, ExpertTeam) else []
    tuned = team is not chosen
    machine = team.best_params_ if tuned else {"alpha": chosen.alpha}
    family = team.cv_results_["param_machine"][team.best_index_] if tuned else "linear SVM"
    counts = Counter(cases.truth.tolist())
    human, read = cases.human_answers(cases.truth)
    scores = model.deferral_score(cases.features)
    # The score of several experts has the prices in it, and is above 0 if one of them takes the case.
    threshold = 0.0 if len(experts) > 1 else team.deferral_threshold_
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
        "files": {},  # the command line fills it
        "rows": len(cases),
        "rows_without_label": cases.n_unlabelled,
        "classes": list(cases.classes),
        "graded": cases.graded,
        "class_counts": {label: counts[label] for label in cases.classes},
        "cost_matrix": (
            None
            if cases.costs is None
            else {"classes": list(cases.classes), "costs": [list(row) for row in cases.costs]}
        ),
        "columns": dict(encoder.kinds_),
        "dropped": dict(encoder.dropped_),
        "features": [str(name) for name in encoder.get_feature_names_out()],
        "groups": cases.n_groups,
        "readers": cases.reader_errors(),
        "experts": experts,
        # What a reading costs besides the price of its expert, if the budget is less than experts can take.
        "budget_price": float(model.team.budget_price_) if experts else 0.0,
        "human": {
            "read": int(read.sum()) if cases.answers is not None else 0,
            "error": float(np.mean(human[read] != cases.truth[read])) if read.any() else None,
        },
        "budget": budget,
        "seed": seed,
        "tuned": tuned,
        "policy": team.best_params_["policy"] if tuned else team.policy,
        "machine": _machine_words(cases, str(family), machine),
        "alpha": float(machine["alpha"]) if "alpha" in machine else None,  # of an SVM
        "deferral_rate": float(model.team.deferral_rate_),
        # JSON has no infinity: None if no case or every case is deferred.
        "deferral_threshold": float(threshold) if np.isfinite(threshold) else None,
        "score_percentiles": np.percentile(scores, np.arange(101)).tolist(),
        "column_summary": column_summary(encoder.encoding_, encoder.codes(cases.features)[0]),
    }


def _machine_words(cases: Cases, family: str, parameters: dict[str, Any]) -> str:
    scores = score_names(cases.roles["machine_score"])
    if scores:
        return f"the scores in {listed([repr(name) for name in scores])}, calibrated"
    if "members" in parameters:
        return f"the mean of {listed(list(parameters['members']), 5)}"
    return family
