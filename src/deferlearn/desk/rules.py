"""How the desk works: rules that a supervisor sets, and all else that is configured in the database."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection, insert, select, update

from deferlearn.desk import audit
from deferlearn.desk.database import SECOND
from deferlearn.desk.errors import Invalid, Stale
from deferlearn.desk.schema import ANYONE, configuration, expert, model, setting, webhook

RULES, PRICE_OF_ANYONE = "rules", "price of anyone"
MACHINE_ANSWERS, WAIT = "machine answers", "wait"
MOST_READINGS = 9


@dataclass(frozen=True)
class Rules:
    """What a supervisor decides about the work.

    Attributes
    ----------
    readings : int
        How many experts read each deferred case.
    audit_share : float
        The probability that experts also get a case of the machine, so that its errors become known.
    deadline_seconds : int or None
        When a case must be answered; None: there is no deadline.
    deadline_rule : {"machine answers", "wait"}
        What happens to a case that no expert answers in time, or that all of them pass.
    blind : bool
        Whether experts do not see the machine's answer.
    lease_seconds : int
        How long a case is kept for the expert who opened it, without a sign of life.
    undo_seconds : int
        How long experts can take an answer back.
    cases_per_day : int
        How many cases are expected per day: prices are such that experts' time lasts for so many.
    timezone : str
        Where a day begins at midnight.
    """

    readings: int = 1
    audit_share: float = 0.02
    deadline_seconds: int | None = None
    deadline_rule: str = MACHINE_ANSWERS
    blind: bool = True
    lease_seconds: int = 900
    undo_seconds: int = 300
    cases_per_day: int = 1000
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        _check_whole("readings", self.readings, 1, MOST_READINGS)
        if not _is_number(self.audit_share) or not 0.0 <= self.audit_share <= 1.0:
            raise Invalid(f"audit_share is {self.audit_share!r}; it must be a share from 0 to 1.")
        if self.deadline_seconds is not None:
            _check_whole("deadline_seconds", self.deadline_seconds, 1, 10**9)
        if self.deadline_rule not in (MACHINE_ANSWERS, WAIT):
            raise Invalid(
                f"deadline_rule is {self.deadline_rule!r}; use {MACHINE_ANSWERS!r} or {WAIT!r}."
            )
        if not isinstance(self.blind, bool):
            raise Invalid(f"blind is {self.blind!r}; it must be true or false.")
        _check_whole("lease_seconds", self.lease_seconds, 1, 86400)
        _check_whole("undo_seconds", self.undo_seconds, 0, 86400)
        _check_whole("cases_per_day", self.cases_per_day, 1, 10**9)
        try:
            ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
            raise Invalid(
                f"timezone is {self.timezone!r}, which is not known; use a name such as 'Europe/Oslo'."
            ) from error

    def day(self, time: int) -> str:
        """The date of a time, such as 2026-11-18."""
        return datetime.fromtimestamp(time // SECOND, ZoneInfo(self.timezone)).date().isoformat()


class Expert(NamedTuple):
    """A row of the table of experts."""

    id: int
    name: str
    daily_limit: int | None
    is_arbiter: bool
    is_active: bool
    price: float
    version: int
    cost: float = 0.0

    @property
    def takes_cases(self) -> bool:
        """Whether readings may be left to wait for this expert."""
        return self.is_active and self.daily_limit != 0


class Subscription(NamedTuple):
    """An active webhook, and the kinds of events that it wants."""

    id: int
    events: tuple[str, ...]


@dataclass(frozen=True)
class Configuration:
    """All that is configured, as it was at one moment.

    Attributes
    ----------
    version : int
        Differs whenever anything was changed.
    rules : Rules
        The rules.
    experts : dict
        All experts by their ids.
    price_of_anyone : float
        The price of experts' time if the model does not tell them apart.
    model_id : int or None
        The active model.
    subscriptions : tuple of Subscription
        The active webhooks.
    """

    version: int
    rules: Rules
    experts: Mapping[int, Expert] = field(default_factory=dict)
    price_of_anyone: float = 0.0
    model_id: int | None = None
    subscriptions: tuple[Subscription, ...] = ()

    @property
    def active_experts(self) -> list[Expert]:
        """Experts who take cases at present."""
        return [one for one in self.experts.values() if one.is_active]

    @property
    def first_readers(self) -> list[Expert]:
        """Experts who read cases before anybody disagrees.

        An arbiter must not have read the case before: if there are several readings, arbiters are kept
        for disagreement, unless there are too few others.
        """
        active = self.active_experts
        others = [one for one in active if not one.is_arbiter]
        several = self.rules.readings > 1
        return others if several and len(others) >= self.rules.readings else active

    def price(self, expert_id: int) -> float:
        """The price of an expert's time, or of anyone's: errors that a case must avoid."""
        if expert_id == ANYONE:
            return self.price_of_anyone
        return self.experts[expert_id].price + self.experts[expert_id].cost

    def cost(self, expert_id: int) -> float:
        """The part of the price that a supervisor set; anyone's time has none."""
        return 0.0 if expert_id == ANYONE else self.experts[expert_id].cost


class Moment(NamedTuple):
    """The time of a transaction, and what is configured then."""

    now: int
    configuration: Configuration

    @property
    def rules(self) -> Rules:
        """The rules."""
        return self.configuration.rules

    @property
    def day(self) -> str:
        """The date."""
        return self.rules.day(self.now)

    def after(self, seconds: float) -> int:
        """The time in so many seconds."""
        return self.now + int(seconds * SECOND)


def read_configuration(connection: Connection) -> Configuration:
    """Read all that is configured.

    Parameters
    ----------
    connection : Connection
        A connection to the database.

    Returns
    -------
    Configuration
    """
    version = connection.execute(select(configuration.c.version)).scalar_one()
    keys = select(setting.c.key, setting.c.value).where(setting.c.key.in_([RULES, PRICE_OF_ANYONE]))
    settings = {row.key: row.value for row in connection.execute(keys)}
    active = connection.execute(select(model.c.id).where(model.c.state == "active")).scalar()
    hooks = select(webhook.c.id, webhook.c.events).where(webhook.c.is_active)
    return Configuration(
        version=int(version),
        rules=Rules(**settings.get(RULES, {})),
        experts={one.id: one for one in list_experts(connection)},
        price_of_anyone=float(settings.get(PRICE_OF_ANYONE, 0.0)),
        model_id=active,
        subscriptions=tuple(
            Subscription(row.id, tuple(row.events)) for row in connection.execute(hooks)
        ),
    )


def list_experts(connection: Connection) -> list[Expert]:
    """All experts, in the order in which they were added.

    Parameters
    ----------
    connection : Connection
        A connection to the database.

    Returns
    -------
    experts : list of Expert
    """
    return [Expert(*row) for row in connection.execute(select(expert).order_by(expert.c.id))]


def touch(connection: Connection) -> None:
    """Say that something that is configured has changed; the transaction that changes it calls this.

    Parameters
    ----------
    connection : Connection
        A connection to the database, in that transaction.
    """
    # By chance, not by counting: the version of a transaction that fails must not come again.
    connection.execute(update(configuration).values(version=secrets.randbits(62)))


def hold_configuration(connection: Connection) -> None:
    """Be the only one who changes what is configured, until the transaction ends.

    Whoever reads something in order to change it calls this first: else two could read the same version,
    and one change would be lost.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    """
    connection.execute(select(configuration.c.version).with_for_update())


def read_rules(connection: Connection) -> tuple[Rules, int]:
    """The rules, and their version for `If-Match`.

    Parameters
    ----------
    connection : Connection
        A connection to the database.

    Returns
    -------
    rules : Rules
    version : int
    """
    value, version = read_setting(connection, RULES)
    return Rules(**(value or {})), version


def change_rules(
    connection: Connection, changes: Mapping[str, Any], *, actor: str, version: int | None = None
) -> tuple[Rules, int]:
    """Change some of the rules.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    changes : mapping
        New values by name.
    actor : str
        Who changes them.
    version : int or None, default=None
        The version that was seen; if they have another one now, nothing is changed.

    Returns
    -------
    rules : Rules
    version : int
    """
    known = [one.name for one in fields(Rules)]
    for name in changes:
        if name not in known:
            raise Invalid(f"{name!r} is not a rule; use one of {', '.join(known)}.")
    hold_configuration(connection)
    before, found = read_rules(connection)
    if version is not None and version != found:
        raise Stale(f"The rules have version {found}, not {version}: read them again.")
    after = replace(before, **changes)
    store_setting(connection, RULES, asdict(after))
    touch(connection)
    detail = {name: getattr(after, name) for name in changes}
    audit.append(connection, actor=actor, action="rules.changed", subject="rules", detail=detail)
    return after, found + 1


def read_setting(connection: Connection, key: str) -> tuple[Any, int]:
    """A setting, and its version for those who edit it.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    key : str
        Its name.

    Returns
    -------
    value : object
        Plain values; None if it was never stored.
    version : int
        0 if it was never stored.
    """
    query = select(setting.c.value, setting.c.version).where(setting.c.key == key)
    row = connection.execute(query).first()
    return (None, 0) if row is None else (row.value, row.version)


def store_setting(connection: Connection, key: str, value: Any) -> None:
    """Store a setting, whether it is there already or not.

    Parameters
    ----------
    connection : Connection
        A connection that writes, after `hold_configuration`.
    key : str
        Its name.
    value : object
        Plain values.
    """
    changed = connection.execute(
        update(setting)
        .where(setting.c.key == key)
        .values(value=value, version=setting.c.version + 1)
    )
    if not changed.rowcount:
        connection.execute(insert(setting).values(key=key, value=value, version=1))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_whole(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Invalid(f"{name} is {value!r}; it must be a whole number from {low} to {high}.")
