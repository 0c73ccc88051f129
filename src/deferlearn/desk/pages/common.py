"""What the pages share: who may see them, forms, and the day."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Form
from sqlalchemy import Connection, func, select

from deferlearn.desk.api.common import MOST
from deferlearn.desk.database import SECOND
from deferlearn.desk.pages.rendering import PageRoute
from deferlearn.desk.permissions import EXPORTS, FIELDS, KEYS, SETTINGS, USERS
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import case

Answerer = Annotated[Principal, require("answers:write")]
Supervisor = Annotated[Principal, require("cases:read")]
Organiser = Annotated[Principal, require("experts:write")]
Modeller = Annotated[Principal, require("models:write")]
Sender = Annotated[Principal, require("cases:write")]
UserAdmin = Annotated[Principal, require(USERS)]
KeyAdmin = Annotated[Principal, require(KEYS)]
SettingsAdmin = Annotated[Principal, require(SETTINGS)]
FieldAdmin = Annotated[Principal, require(FIELDS)]
Exporter = Annotated[Principal, require(EXPORTS)]
Reader = Annotated[Principal, require("audit:read")]

Text = Annotated[str, Form(max_length=10_000)]
Version = Annotated[int, Form(ge=0, le=MOST)]
# A box of a form that is not ticked is not sent.
Ticked = Annotated[bool, Form()]


def pages() -> APIRouter:
    """A router whose endpoints are pages."""
    return APIRouter(include_in_schema=False, route_class=PageRoute)


def start_of_day(moment: Moment) -> int:
    """When the day began, where the rules say that days begin.

    Parameters
    ----------
    moment : Moment
        Now.

    Returns
    -------
    time : int
    """
    return _midnight(moment, 0)


def end_of_day(moment: Moment) -> int:
    """When the next day begins.

    Parameters
    ----------
    moment : Moment
        Now.

    Returns
    -------
    time : int
    """
    return _midnight(moment, 1)


def _midnight(moment: Moment, days: int) -> int:
    zone = ZoneInfo(moment.rules.timezone)
    date = datetime.fromtimestamp(moment.now / SECOND, zone).date() + timedelta(days=days)
    return int(datetime.combine(date, time(), zone).timestamp()) * SECOND


def first_case_since(connection: Connection, moment: int) -> int:
    """The number of the first case that arrived at a time or later.

    Numbers rise with the time of arrival, so that halving finds it without an index of times.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    moment : int
        The time.

    Returns
    -------
    number : int
        Beyond all numbers if there is none.
    """
    # Each by itself is one look at the index; both in one list would be a look at every case.
    low = connection.execute(select(func.min(case.c.number))).scalar() or 1
    high = connection.execute(select(func.max(case.c.number))).scalar() or 0
    high += 1
    while low < high:
        middle = (low + high) // 2
        row = connection.execute(
            select(case.c.number, case.c.received_at)
            .where(case.c.number >= middle)
            .order_by(case.c.number)
            .limit(1)
        ).first()
        if row is None or row.received_at >= moment:
            high = middle
        else:
            low = row.number + 1
    return int(low)
