"""Cases for supervisors: find one, and see what was decided, read and answered, and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from sqlalchemy import select

from deferlearn.desk.api.common import MOST, RowId, TheDesk, storable_id
from deferlearn.desk.cases import case_row, decision_row
from deferlearn.desk.display import read_display
from deferlearn.desk.errors import NotFound
from deferlearn.desk.pages.common import Supervisor, pages
from deferlearn.desk.pages.rendering import go_to, render
from deferlearn.desk.schema import WAITING, answer, case, expert, model, reading, truth

router = pages()
MOST_CASES = 50


@router.get("/cases")
def list_cases(
    request: Request,
    desk: TheDesk,
    principal: Supervisor,
    before: Annotated[int, Query(ge=1, le=MOST)] = MOST,
    only: Annotated[str, Query(max_length=10)] = "",
    id: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The last cases, or one by its id."""
    if id:
        with desk.database.reading() as connection:
            number = case_row(connection, storable_id(id)).number
        return go_to(f"/cases/{number}")
    columns = [column for column in case.c if column.name != "content"]
    query = select(*columns).where(case.c.number < before)
    if only == "waiting":
        query = query.where(case.c.state == WAITING)
    elif only == "flagged":
        query = query.where(case.c.flag.is_not(None))
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        rows = connection.execute(query.order_by(case.c.number.desc()).limit(MOST_CASES)).all()
    return render(
        request,
        "cases.html",
        principal,
        cases=rows,
        only=only,
        more=rows[-1].number if len(rows) == MOST_CASES else None,
        moment=moment,
    )


@router.get("/cases/{number}")
def read_case(request: Request, number: RowId, desk: TheDesk, principal: Supervisor) -> Response:
    """A case with all that happened to it."""
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        identifier = connection.execute(select(case.c.id).where(case.c.number == number)).scalar()
        if identifier is None:
            raise NotFound(f"There is no case with the number {number}.")
        found = case_row(connection, identifier)
        decided = decision_row(connection, number)
        named = select(model.c.name).where(model.c.id == decided.model_id)
        readings = connection.execute(
            select(reading, expert.c.name, answer.c.value, answer.c.note, answer.c.seconds)
            .outerjoin(expert, expert.c.id == reading.c.leased_by)
            .outerjoin(
                answer, (answer.c.reading_id == reading.c.id) & answer.c.withdrawn_at.is_(None)
            )
            .where(reading.c.case_number == number)
            .order_by(reading.c.id)
        ).all()
        true = connection.execute(
            select(truth.c.value).where(
                truth.c.case_number == number, truth.c.replaced_at.is_(None)
            )
        ).scalar()
        context = {
            "model_name": connection.execute(named).scalar_one(),
            "groups": read_display(connection)[0].arranged(found.content),
        }
    return render(
        request,
        "case_story.html",
        principal,
        case=found,
        decision=decided,
        readings=readings,
        truth=true,
        moment=moment,
        rules=moment.rules,
        **context,
    )
