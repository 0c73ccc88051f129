"""The rules of the desk, for administrators."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Form, Request, Response

from deferlearn.desk import rules
from deferlearn.desk.api.common import TheDesk
from deferlearn.desk.pages.common import SettingsAdmin, Ticked, Version, pages
from deferlearn.desk.pages.expert_pages import limit_in
from deferlearn.desk.pages.rendering import go_to, render
from deferlearn.desk.permissions import USERS

router = pages()
Whole = Annotated[int, Form(ge=0, le=10**9)]


@router.get("/rules")
def read_rules(request: Request, desk: TheDesk, principal: SettingsAdmin) -> Response:
    """The form, with the rules as they are."""
    with desk.database.reading() as connection:
        found, version = rules.read_rules(connection)
    return render(
        request,
        "rules.html",
        principal,
        rules=found,
        version=version,
        settings=request.app.state.settings.shown() if principal.may(USERS) else {},
        most_readings=rules.MOST_READINGS,
    )


@router.post("/rules")
def change_rules(
    desk: TheDesk,
    principal: SettingsAdmin,
    version: Version,
    readings: Whole,
    audit_percent: Annotated[float, Form(ge=0, le=100)],
    deadline_rule: Annotated[Literal["machine answers", "wait"], Form()],
    lease_seconds: Whole,
    undo_seconds: Whole,
    cases_per_day: Whole,
    timezone: Annotated[str, Form(max_length=100)],
    deadline_seconds: Annotated[str, Form(max_length=20)] = "",
    blind: Ticked = False,
) -> Response:
    """Change the rules."""
    changes = {
        "readings": readings,
        "audit_share": audit_percent / 100,
        "deadline_seconds": limit_in(deadline_seconds),
        "deadline_rule": deadline_rule,
        "blind": blind,
        "lease_seconds": lease_seconds,
        "undo_seconds": undo_seconds,
        "cases_per_day": cases_per_day,
        "timezone": timezone.strip(),
    }
    desk.database.write(
        lambda connection: rules.change_rules(
            connection, changes, actor=principal.actor, version=version
        )
    )
    return go_to("/rules", "changed")
