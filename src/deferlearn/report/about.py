"""What a report says about the model: its deferral rate, its certificate, its origin."""

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import deferlearn
from deferlearn._utils.types import Index
from deferlearn._utils.units import unit_of
from deferlearn.report.estimates import share
from deferlearn.tables.decisions import Decisions
from deferlearn.tables.team import TabularTeam
from deferlearn.teams.parameters import share_of

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pyarrow", "pandas", "skops")
FACTS = (
    "created",
    "machine",
    "policy",
    "alpha",
    "tuned",
    "budget",
    "rows",
    "seed",
    "columns",
    "versions",
    "files",
    "deferral_rate",
    "deferral_threshold",
)


def deferral_rate(
    model: TabularTeam, stored: Decisions, group: Index, seen: bool
) -> dict[str, Any]:
    """The budget as a share, the share expected to be deferred, and the share of these cases that is."""
    observed = share(stored.deferred, group)
    expected = float(model.card_["deferral_rate"])
    return {
        "asked": share_of(model.card_["budget"], model.card_["rows"]),
        "expected": expected,
        "observed": observed,
        "agrees": bool(observed["lower"] <= expected <= observed["upper"]),
        "in_sample": seen,
    }


def certificate(model: TabularTeam) -> dict[str, Any]:
    """How far the choice of training cases can be from the best one, in words and numbers."""
    chosen, missing = model.chosen, None
    if not hasattr(chosen, "selection_"):
        missing = (
            f"This model ({type(chosen).__name__}) does not defer any training cases, so there is no "
            "selection and nothing to certify. Only the errors show how good its decisions are."
        )
    elif model.card_.get("experts"):
        missing = (
            "The file of a model of several experts holds no certificate: it needs the training data, so "
            "that only ExpertTeam.certify() gives one, before the model is stored."
        )
    elif not hasattr(chosen, "certificate_"):
        missing = (
            "The model was stored without a certificate, since computing it can take longer than the fit. "
            "To have one here, fit with --certify, or call certify() on the model before it is saved."
        )
    if missing is not None:
        return {"words": [missing], "guaranteed": False}
    found = chosen.certificate_
    return {
        "words": found.summary().splitlines(),
        "guaranteed": bool(found.guaranteed),
        "value": float(found.value),
        "upper_bound": float(found.optimum.value),
        "relative_gap": float(found.relative_gap),
        "n": int(found.n),
    }


def model_facts(card: dict[str, Any]) -> dict[str, Any]:
    """The entries of the model's card that the report shows, and what expected losses count, in words."""
    unit = unit_of(card)
    return {name: card[name] for name in FACTS} | {
        "cost_matrix": card.get("cost_matrix"),
        "unit": unit.name,
        "expected": unit.expected,
    }


def versions(card: dict[str, Any]) -> dict[str, Any]:
    """When the report was made, with which versions and seed."""
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
