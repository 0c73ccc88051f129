"""The supervisor's first page: today at a glance."""

from __future__ import annotations

from fastapi import Request, Response

from deferlearn.desk.api.common import TheDesk
from deferlearn.desk.monitoring.alarms import open_alarms
from deferlearn.desk.pages.common import Supervisor, pages
from deferlearn.desk.pages.rendering import is_fragment, render
from deferlearn.desk.pages.today import look_at_today
from deferlearn.desk.pages.verdicts import verdicts

router = pages()


@router.get("/today")
def today(request: Request, desk: TheDesk, principal: Supervisor) -> Response:
    """Cases, the queue, experts and alarms; a script asks for them again every minute."""
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        found = look_at_today(connection, moment)
        alarms = open_alarms(connection)
    return render(
        request,
        "today_numbers.html" if is_fragment(request) else "today.html",
        principal,
        today=found,
        alarms=alarms,
        verdicts=verdicts(found, moment),
        moment=moment,
        rules=moment.rules,
    )
