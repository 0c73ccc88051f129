"""What a report says of the model: its rate, its certificate, where it comes from."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import deferlearn
from deferlearn.report import refits
from deferlearn.report.decisions import Decisions, share_of
from deferlearn.tables.team import TabularTeam
from deferlearn.teams.assisted_svc import AssistedSVC

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pyarrow", "pandas", "skops")


def calibration(model: TabularTeam, stored: Decisions, seen: bool) -> dict[str, Any]:
    """The share that was asked for, that the model promises, and that it defers of these cases."""
    observed = share_of(int(stored.deferred.sum()), len(stored.deferred))
    promised = float(model.card_["deferral_rate"])
    return {
        "asked": refits.own_share(model),
        "promised": promised,
        "observed": observed,
        "kept": bool(observed["lower"] <= promised <= observed["upper"]),
        "in_sample": seen,
    }


def certificate(model: TabularTeam) -> dict[str, Any]:
    """How far the choice of training cases can be from the best one, in words and numbers."""
    if not isinstance(model.chosen, AssistedSVC):
        name = type(model.chosen).__name__
        return {
            "words": [
                f"This model ({name}) sets no training cases aside for humans, so there is no "
                "selection, and nothing to certify. How good its choice is, only the errors can tell."
            ],
            "guaranteed": False,
        }
    found = model.chosen.certificate_
    return {
        "words": found.summary().splitlines(),
        "guaranteed": bool(found.guaranteed),
        "value": float(found.value),
        "upper_bound": float(found.optimum.value),
        "relative_gap": float(found.relative_gap),
        "n": int(found.n),
    }


def model_facts(card: dict[str, Any]) -> dict[str, Any]:
    """What of the model's card the report tells."""
    names = ("created", "policy", "alpha", "tuned", "budget", "rows", "seed", "columns", "versions")
    return {name: card[name] for name in names} | {
        "files": card["files"],
        "deferral_rate": card["deferral_rate"],
        "deferral_threshold": card["deferral_threshold"],
    }


def versions(card: dict[str, Any]) -> dict[str, Any]:
    """When, by which programs and with which seed."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "deferlearn": deferlearn.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "platform": f"{platform.system()} {platform.machine()}",
        "model_seed": card["seed"],
    }
