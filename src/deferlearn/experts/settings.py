"""Parameters of a team of several experts: whether they fit together, and what they allow."""

from collections.abc import Mapping
from typing import Any

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn.experts.capacity import as_shares, check_capacity, name_text
from deferlearn.experts.error_models import KINDS
from deferlearn.experts.groups import MOST_READINGS
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.parameters import check_folds, count_of, share_of
from deferlearn.teams.team import Team


def check_settings(team: Any) -> dict[str, float | int]:
    """Refuse parameters of an `ExpertTeam` that do not fit together.

    Parameters
    ----------
    team : ExpertTeam
        It need not be fitted.

    Returns
    -------
    capacity : dict
        The checked capacities.
    """
    capacity = check_capacity(team.capacity)
    if team.team is not None and not isinstance(team.team, Team):
        raise ValueError(
            f"team={team.team!r} must be a team such as TeamCV(), AssistedSVC() or "
            "AdvantageTriage(machine=...), or None."
        )
    kinds = ("auto", *KINDS)
    if team.skills not in kinds:
        raise ValueError(f"skills={team.skills!r} is not known; use one of {list(kinds)}.")
    if not is_whole(team.readings) or not 1 <= team.readings <= MOST_READINGS:
        raise ValueError(f"readings={plain(team.readings)!r} must be 1, 2 or 3.")
    check_folds(team.cv, team.n_jobs)
    if team.cv is None:
        raise ValueError(
            "cv=None: what experts err on is learned on folds; give their number, such as 5."
        )
    if team.arbiter is not None:
        if name_text(team.arbiter) not in capacity:
            raise ValueError(
                f"arbiter={team.arbiter!r} has no capacity; experts are {list(capacity)}."
            )
        if team.readings == 1:
            raise ValueError(
                f"arbiter={team.arbiter!r}: with one reading nobody disagrees; set readings to 2 or 3."
            )
    if team.readings > 1 and isinstance(team.team, AssistedSVC):
        raise ValueError(
            f"readings={team.readings}: AssistedSVC trains its machine for single readings; use "
            "another team, such as TeamCV()."
        )
    readers = len(capacity) - (team.arbiter is not None)
    if team.readings > readers:
        raise ValueError(
            f"readings={team.readings} needs as many experts besides the arbiter, but capacity has "
            f"{readers}: {list(capacity)}."
        )
    if team.budget is not None and not is_number(team.budget):
        raise ValueError(f"budget={plain(team.budget)!r} must be a share, a number, or None.")
    return capacity


def team_budget(team: Any, capacity: Mapping[str, float | int], n: int) -> float | int:
    """What the team within an `ExpertTeam` may defer, as it was given for one expert and no budget.

    Parameters
    ----------
    team : ExpertTeam
        It need not be fitted.
    capacity : mapping
        The checked capacities.
    n : int
        The number of samples.

    Returns
    -------
    budget : float or int
    """
    arbiter = None if team.arbiter is None else name_text(team.arbiter)
    readers = {name: value for name, value in capacity.items() if name != arbiter}
    shares = float(min(as_shares(readers, n).sum() / team.readings, 1.0))
    if team.budget is None:
        (one, *others) = capacity.values()
        return shares if others or one > n else one
    count_of(team.budget, n)
    return min(share_of(team.budget, n), shares)
