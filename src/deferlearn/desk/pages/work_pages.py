"""The expert's pages: the next case, one key per answer, and the answers of the past with undo."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from fastapi import Form, Request, Response
from sqlalchemy import Connection

from deferlearn.desk import answering, leases, passing, queue, withdrawing
from deferlearn.desk.api.common import RowId, TheDesk, expert_of
from deferlearn.desk.api.queue import check_note
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, NotFound
from deferlearn.desk.experts import find_expert
from deferlearn.desk.pages import workplace
from deferlearn.desk.pages.common import Answerer, Text, pages
from deferlearn.desk.pages.rendering import go_to, is_fragment, render
from deferlearn.desk.principal import Principal

router = pages()
Token = Annotated[str, Form(max_length=200)]
Reading = Annotated[int, Form(ge=0, le=2**63 - 1)]
# One key per answer: digits first; n, p and u have other meanings.
ANSWER_KEYS = "123456789abcdefghijklmoqrstvwxyz"
# Answers of the past on one page.
MOST_ANSWERS = 100
# Seconds between two looks at an empty queue.
LOOK_SECONDS = 20
LOST = "The case had gone back to the queue, because it was kept too long or opened elsewhere."


@router.get("/work")
def work(request: Request, desk: TheDesk, principal: Answerer) -> Response:
    """The page. Its script asks for the case at once: to look at a page takes no case from others."""
    with desk.database.reading() as connection:
        context = _context(desk, connection, expert_of(principal, None))
    return render(request, "work.html", principal, **context, lease=None, begun=False)


@router.post("/work/next")
def next_case(request: Request, desk: TheDesk, principal: Answerer) -> Response:
    """The next case."""
    return _show_next(request, desk, principal)


@router.post("/work/{reading}/answer")
def answer(
    request: Request,
    reading: RowId,
    desk: TheDesk,
    principal: Answerer,
    token: Token,
    answer: Text,
    note: Text = "",
) -> Response:
    """Answer the case, and show the next one."""
    check_note(note)
    try:
        given = answering.give_answer(
            desk,
            reading,
            token,
            answer,
            note=note.strip(),
            actor=principal.actor,
            expert_id=expert_of(principal, None),
        )
    except leases.LeaseLost:
        return _show_next(request, desk, principal, notice=f"{LOST} Your answer was not stored.")
    last = {"id": given.answer_id, "case": given.case_id, "value": answer}
    return _show_next(request, desk, principal, last=last)


@router.post("/work/{reading}/pass")
def pass_on(
    request: Request,
    reading: RowId,
    desk: TheDesk,
    principal: Answerer,
    token: Token,
    note: Text = "",
) -> Response:
    """Say that the expert cannot tell, and show the next case."""
    check_note(note)
    try:
        passing.pass_on(
            desk,
            reading,
            token,
            note=note.strip(),
            actor=principal.actor,
            expert_id=expert_of(principal, None),
        )
    except leases.LeaseLost:
        return _show_next(request, desk, principal, notice=LOST)
    notice = "You passed the case on: somebody else will look at it."
    return _show_next(request, desk, principal, notice=notice)


@router.post("/work/{reading}/renew", status_code=204, response_model=None)
def renew(reading: RowId, desk: TheDesk, principal: Answerer, token: Token) -> None:
    """Keep the case while the page is open."""
    leases.renew(desk, reading, token, expert_id=expert_of(principal, None))


@router.post("/work/answers/{number}/undo")
def undo(
    request: Request,
    number: RowId,
    desk: TheDesk,
    principal: Answerer,
    token: Token = "",
    reading: Reading = 0,
) -> Response:
    """Take an answer back. On the page of cases, its case comes in the place of the one that is open."""
    own = expert_of(principal, None)
    taken = withdrawing.take_back(desk, number, expert_id=own, actor=principal.actor)
    if not token and not is_fragment(request):
        return go_to("/work/history", "undone")
    if token:
        with suppress(Conflict, NotFound):  # it may not be held any more
            leases.release(desk, reading, token, expert_id=own)
    notice = "Your answer was taken back."
    return _show_next(request, desk, principal, notice=notice, first=taken)


@router.get("/work/history")
def history(request: Request, desk: TheDesk, principal: Answerer) -> Response:
    """The last answers of the expert."""
    own = expert_of(principal, None)
    with desk.database.reading() as connection:
        context = _context(desk, connection, own)
        rows = workplace.last_answers(connection, own, MOST_ANSWERS)
    return render(request, "history.html", principal, **context, answers=rows)


def _context(desk: Desk, connection: Connection, expert_id: int) -> dict[str, Any]:
    moment = desk.look(connection)
    who = find_expert(connection, expert_id)
    progress = workplace.progress_of(connection, moment, who)
    return {"moment": moment, "rules": moment.rules, "who": who, "progress": progress}


def _show_next(
    request: Request,
    desk: Desk,
    principal: Principal,
    *,
    notice: str = "",
    last: dict[str, Any] | None = None,
    first: int | None = None,
) -> Response:
    """Lease the next case and show it; a script gets it without the page around it."""
    own = expert_of(principal, None)
    lease = queue.lease_next(desk, own, first=first)
    with desk.database.reading() as connection:
        context = _context(desk, connection, own)
        display = desk.display(connection, context["moment"])
        later = None
        if lease is None:
            later = workplace.come_back(
                connection, context["moment"], context["who"], context["progress"]
            )
    return render(
        request,
        "case_fragment.html" if is_fragment(request) else "work.html",
        principal,
        **context,
        begun=True,
        lease=lease,
        groups=[] if lease is None else display.arranged(lease.seen),
        answers=[] if lease is None else _with_keys(lease.classes),
        later=later,
        look_seconds=LOOK_SECONDS,
        notice=notice,
        last=last,
    )


def _with_keys(classes: list[str]) -> list[tuple[str, str]]:
    """Each answer with its key; there may be more answers than keys."""
    keys = [*ANSWER_KEYS, *([""] * len(classes))]
    return list(zip(keys, classes, strict=False))
