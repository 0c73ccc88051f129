"""The teams among which a search chooses, from simple to elaborate."""

from typing import Any

from sklearn.base import clone

from deferlearn.teams.advantage import AdvantageTriage
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.assisted_triage import AssistedTriage
from deferlearn.teams.automation import FullAutomation
from deferlearn.teams.forest import ForestClassifier
from deferlearn.teams.policy import DeferralPolicy, resolve_policy
from deferlearn.teams.predicted_error import PredictedErrorTriage
from deferlearn.teams.uncertainty import UncertaintyTriage

TEAMS: dict[str, Any] = {
    # Nothing is deferred in training.
    "uncertainty": UncertaintyTriage(),
    "expected_cost": AdvantageTriage(machine_error="probability", human_error="truth"),
    "advantage": AdvantageTriage(),
    "advantage_by_region": AdvantageTriage(human_error="forest"),
    "advantage_forest": AdvantageTriage(machine_error="forest", human_error="forest"),
    "predicted_error": PredictedErrorTriage(),
    "automation": FullAutomation(),
    # The paper's: the machine is trained without the samples that humans take.
    "margin": AssistedSVC(policy="margin"),
    "forest": AssistedSVC(policy=DeferralPolicy(ForestClassifier(), features="both")),
    "mlp": AssistedSVC(policy="mlp"),
    # The same idea for machines other than SVMs, which are refitted in rounds.
    "assisted": AssistedTriage(human_error="forest"),
}

DEFAULT_POLICIES = (
    "uncertainty",
    "advantage",
    "advantage_by_region",
    "advantage_forest",
    "margin",
    "forest",
    "automation",
)


def resolve_team(policy: Any) -> Any:
    """The team, not fitted, that a name, a policy or a classifier stands for."""
    if isinstance(policy, str):
        if policy not in TEAMS:
            raise ValueError(f"policies has {policy!r}, which is not known; use {list(TEAMS)}.")
        return clone(TEAMS[policy])
    if hasattr(policy, "open_search"):
        raise ValueError(f"policies has {policy!r}, which is a search itself; give teams.")
    if hasattr(policy, "predict_assisted") and not isinstance(policy, type):
        if getattr(policy, "shares_machines", False) and policy.margin != "soft":
            raise ValueError(
                f"policies has {policy!r}, but the machines to try have soft margins; leave out its "
                f"margin={policy.margin!r}."
            )
        return clone(policy)
    try:
        resolve_policy(policy)
    except ValueError as error:
        raise ValueError(
            f"policies has {policy!r}, which is no team, none of {list(TEAMS)}, and as a policy: {error}"
        ) from None
    return AssistedSVC(policy=policy)


def suits(team: Any, settings: Any) -> bool:
    """Whether a team can have this machine."""
    for_brought = getattr(team, "for_brought_machines", False)
    if settings.needs_folds:  # it is no SVM
        takes_it = bool(getattr(team, "takes_any_machine", False))
        return takes_it and (settings.can_be_refitted or not for_brought)
    return not for_brought


def equip(team: Any, settings: Any, common: dict[str, Any]) -> Any:
    """The team with this machine, and of the common parameters with those that it has."""
    # Its margin and its cache are the team's own affair, and so is a machine that it does not share.
    fixed = {"margin", "cache_size"}
    if not getattr(team, "takes_any_machine", False):
        fixed.add("machine")
    own = team.get_params(deep=False).keys() - fixed
    wanted = settings.team_parameters() | common
    return clone(team).set_params(**{name: wanted[name] for name in own & wanted.keys()})
