"""Which pages there are, and who sees a link to them."""

from typing import NamedTuple

from deferlearn.desk.permissions import EXPORTS, FIELDS, KEYS, SETTINGS, USERS
from deferlearn.desk.principal import Principal


class Link(NamedTuple):
    """A link of the navigation."""

    path: str
    name: str
    here: bool


# Where, how it is called, and what it takes to see it.
_PAGES = (
    ("/work", "Work", "answers:write"),
    ("/work/history", "My answers", "answers:write"),
    ("/today", "Today", "cases:read"),
    ("/monitoring", "Monitoring", "cases:read"),
    ("/cases", "Cases", "cases:read"),
    ("/experts", "Experts", "experts:write"),
    ("/models", "Models", "models:write"),
    ("/import", "Import", "cases:write"),
    ("/export", "Export", EXPORTS),
    ("/users", "Users", USERS),
    ("/keys", "Keys", KEYS),
    ("/fields", "Fields", FIELDS),
    ("/rules", "Rules", SETTINGS),
    ("/log", "Log", "audit:read"),
)


def links_of(principal: Principal, path: str) -> list[Link]:
    """The links that somebody sees.

    Parameters
    ----------
    principal : Principal
        Who asks.
    path : str
        The page that is open.

    Returns
    -------
    links : list of Link
    """
    allowed = [page for page in _PAGES if principal.may(page[2])]
    if principal.expert_id is None:
        allowed = [page for page in allowed if page[2] != "answers:write"]
    inside = [place for place, _, _ in allowed if path == place or path.startswith(f"{place}/")]
    here = max(inside, key=len, default="")
    return [Link(place, name, place == here) for place, name, _ in allowed]


def home_of(principal: Principal) -> str:
    """The page that somebody sees first.

    Parameters
    ----------
    principal : Principal
        Who logged in.

    Returns
    -------
    path : str
    """
    return "/today" if principal.may("cases:read") else "/work"
