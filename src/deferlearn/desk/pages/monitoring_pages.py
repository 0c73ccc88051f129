"""Monitoring: every number with its interval and the sentence that says what it means."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Query, Request, Response

from deferlearn.desk.api.common import RowId, TheDesk
from deferlearn.desk.desk import Desk
from deferlearn.desk.monitoring.alarms import close_alarm, open_alarms
from deferlearn.desk.monitoring.overview import Overview, overview
from deferlearn.desk.pages.common import Organiser, Supervisor, pages
from deferlearn.desk.pages.monitoring_view import sections_of
from deferlearn.desk.pages.rendering import go_to, render

router = pages()
PERIODS = (1, 7, 28)
# Seconds for which numbers are shown again: to find them reads all cases of the period.
KEPT_SECONDS = 60.0


class Kept:
    """Numbers that were found a short time ago.

    Parameters
    ----------
    desk : Desk
        Whose numbers they are.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._found: dict[tuple[int, int | None], tuple[float, Overview]] = {}

    def overview(self, days: int, model_id: int | None) -> Overview:
        """The numbers of the last days.

        Parameters
        ----------
        days : int
            How many days.
        model_id : int or None
            The active model: another one has other numbers.

        Returns
        -------
        Overview
        """
        at, found = self._found.get((days, model_id), (0.0, None))
        if found is None or time.monotonic() - at > KEPT_SECONDS:
            found = overview(self.desk, days)
            self._found = {key: kept for key, kept in self._found.items() if key[1] == model_id} | {
                (days, model_id): (time.monotonic(), found)
            }
        return found


@router.get("/monitoring")
def monitoring(
    request: Request,
    desk: TheDesk,
    principal: Supervisor,
    days: Annotated[int, Query(ge=1, le=366)] = 7,
) -> Response:
    """The numbers of the last days."""
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        alarms = open_alarms(connection)
    app = request.app.state
    if not hasattr(app, "kept_numbers"):
        app.kept_numbers = Kept(desk)
    active = moment.configuration.model_id
    found = None if active is None else app.kept_numbers.overview(days, active)
    return render(
        request,
        "monitoring.html",
        principal,
        alarms=alarms,
        cases=0 if found is None else found.cases,
        since=None if found is None else found.since,
        sections=[] if found is None else sections_of(found),
        days=days,
        periods=PERIODS,
        rules=moment.rules,
    )


@router.post("/monitoring/alarms/{number}/close")
def close(number: RowId, desk: TheDesk, principal: Organiser) -> Response:
    """Close an alarm; its test begins again."""
    desk.database.write(lambda connection: close_alarm(connection, number, actor=principal.actor))
    return go_to("/monitoring", "closed")
