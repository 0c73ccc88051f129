"""Models: candidates, the active one, and those to which one can go back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import File, Form, Request, Response
from sqlalchemy import func, select

from deferlearn.desk import models
from deferlearn.desk.api.common import RowId, TheDesk
from deferlearn.desk.errors import Invalid, NotFound
from deferlearn.desk.learning.shadowing import (
    shadow_comparison,
    shadow_model,
    start_shadow,
    stop_shadow,
)
from deferlearn.desk.pages.common import Modeller, pages
from deferlearn.desk.pages.rendering import go_to, render
from deferlearn.desk.schema import decision, model, model_report

router = pages()
MOST_MODELS = 50


@router.get("/models")
def list_models(request: Request, desk: TheDesk, principal: Modeller) -> Response:
    """All models, the newest first."""
    query = select(*models.SHOWN).order_by(model.c.id.desc()).limit(MOST_MODELS)
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        rows = connection.execute(query).all()
    return render(request, "models.html", principal, models=rows, rules=moment.rules)


@router.get("/models/{number}")
def read_model(request: Request, number: RowId, desk: TheDesk, principal: Modeller) -> Response:
    """What is known about a model."""
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        row = connection.execute(select(*models.SHOWN).where(model.c.id == number)).first()
        if row is None:
            raise NotFound(f"There is no model {number}.")
        decided = connection.execute(
            select(func.count()).where(decision.c.model_id == number)
        ).scalar_one()
        report = connection.execute(
            select(model_report.c.report).where(model_report.c.model_id == number)
        ).scalar()
        shadow = shadow_model(connection)
    along = shadow is not None and shadow[0] == number
    return render(
        request,
        "model.html",
        principal,
        model=row,
        report=report,
        along=along,
        compared=shadow_comparison(desk, number) if along else None,
        decided=decided,
        facts=_facts(row.card),
        columns=row.card.get("columns") or {},
        experts=row.card.get("experts") or [],
        rules=moment.rules,
    )


def _facts(card: dict[str, Any]) -> list[tuple[str, Any]]:
    """What the card says in single values; what it leaves open is left out."""
    return [
        (name.replace("_", " "), value)
        for name, value in card.items()
        if value is not None and not isinstance(value, dict | list)
    ]


@router.post("/models")
def store_model(
    desk: TheDesk,
    principal: Modeller,
    name: Annotated[str, Form(max_length=200)],
    file: Annotated[bytes, File()],
) -> Response:
    """Store the file of a model as a candidate."""
    if not name.strip() or not name.isprintable():
        raise Invalid("Give the model a name.")
    card = models.load_model(file).card_
    number, _ = desk.database.write(
        lambda connection: models.store_model(
            connection, file, card, name=name.strip(), actor=principal.actor
        )
    )
    return go_to(f"/models/{number}", "stored")


@router.post("/models/{number}/shadow")
def decide_along(number: RowId, desk: TheDesk, principal: Modeller) -> Response:
    """Let a candidate decide along, without effect; another one stops."""
    desk.database.write(lambda connection: start_shadow(connection, number, actor=principal.actor))
    return go_to(f"/models/{number}", "shadow")


@router.post("/models/{number}/unshadow")
def stop_deciding(number: RowId, desk: TheDesk, principal: Modeller) -> Response:
    """Stop the candidate that decides along."""
    desk.database.write(lambda connection: stop_shadow(connection, actor=principal.actor))
    return go_to(f"/models/{number}", "shadow-ended")


@router.post("/models/{number}/activate")
def activate_model(number: RowId, desk: TheDesk, principal: Modeller) -> Response:
    """Let a model decide; the one before stays, and can come back in the same way."""
    desk.database.write(
        lambda connection: models.activate_model(connection, number, actor=principal.actor)
    )
    return go_to("/models", "activated")
