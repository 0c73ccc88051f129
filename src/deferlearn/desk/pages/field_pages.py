"""How experts see the fields of cases, for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request, Response

from deferlearn.desk.api.common import TheDesk
from deferlearn.desk.display import (
    KINDS,
    SHOWN,
    Display,
    change_display,
    known_fields,
    read_display,
)
from deferlearn.desk.errors import Invalid
from deferlearn.desk.pages.common import FieldAdmin, pages
from deferlearn.desk.pages.rendering import go_to, render

router = pages()
# What the names of the form's entries begin with.
KIND, GROUP = "kind:", "group:"


@router.get("/fields")
def list_fields(request: Request, desk: TheDesk, principal: FieldAdmin) -> Response:
    """All fields, and how each is shown."""
    with desk.database.reading() as connection:
        display, version = read_display(connection)
        names = known_fields(connection)
    return render(
        request,
        "fields.html",
        principal,
        names=[*names, *(name for name in display.kinds if name not in names)],
        display=display,
        version=version,
        kinds=KINDS,
    )


async def form_of(request: Request) -> dict[str, str]:
    """The entries of a form whose names are not known before."""
    form = await request.form(max_fields=10_000)
    return {name: value for name, value in form.items() if isinstance(value, str)}


@router.post("/fields")
def change_fields(
    desk: TheDesk, principal: FieldAdmin, form: Annotated[dict[str, str], Depends(form_of)]
) -> Response:
    """Show fields in another way."""
    if not form.get("version", "").isdecimal():
        raise Invalid("The form has no version: open the page again.")
    kinds = {name.removeprefix(KIND): v for name, v in form.items() if name.startswith(KIND)}
    groups = {name.removeprefix(GROUP): v for name, v in form.items() if name.startswith(GROUP)}
    display = Display(
        kinds={name: kind for name, kind in kinds.items() if kind != SHOWN},
        groups={name: group.strip() for name, group in groups.items() if group.strip()},
        image_sources=form.get("image_sources", "").lower().split(),
    )
    desk.database.write(
        lambda connection: change_display(
            connection, display, actor=principal.actor, version=int(form["version"])
        )
    )
    return go_to("/fields", "changed")
