"""Roles of people, scopes of programs, and what they allow."""

from typing import Literal

Role = Literal["expert", "supervisor", "admin"]
ROLES: tuple[Role, ...] = ("expert", "supervisor", "admin")

# What an API key may be allowed, and what it means.
SCOPES = {
    "cases:write": "send cases",
    "cases:read": "read cases, decisions and final answers",
    "answers:write": "lease cases and answer them for an expert",
    "truth:write": "report what was true",
    "experts:write": "read and change experts and their limits",
    "models:write": "read, store and activate models",
    "audit:read": "read the audit log",
    "webhooks:write": "read and change webhooks",
    "metrics:read": "read the measurements of /metrics",
}
# What only people may do.
USERS, KEYS, SETTINGS, EXPORTS = "users:write", "keys:write", "settings:write", "exports:read"
FIELDS = "fields:write"

# An expert cannot read cases in general: that would show the machine's answers.
_EXPERT = frozenset({"answers:write"})
# A supervisor sets the rules of the work, such as deadlines.
_SUPERVISOR = _EXPERT | (frozenset(SCOPES) - {"audit:read"}) | {SETTINGS}
# Fields decide what experts see, and from where pages may load images.
_ADMIN = _SUPERVISOR | {"audit:read", USERS, KEYS, EXPORTS, FIELDS}
PERMISSIONS: dict[Role, frozenset[str]] = {
    "expert": _EXPERT,
    "supervisor": _SUPERVISOR,
    "admin": _ADMIN,
}
# An administrator may do everything.
ALL = _ADMIN
