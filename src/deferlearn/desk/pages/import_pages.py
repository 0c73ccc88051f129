"""Cases and truths from a table that a supervisor drops on a page."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Form, Request, Response, UploadFile

from deferlearn.desk.api.common import TheDesk
from deferlearn.desk.errors import Invalid
from deferlearn.desk.importing import import_table
from deferlearn.desk.pages.common import Sender, pages
from deferlearn.desk.pages.rendering import render
from deferlearn.tables import TableError, open_table

router = pages()
Column = Annotated[str, Form(max_length=200)]
Delimiter = Annotated[str, Form(max_length=1)]
ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".xlsx")


@router.get("/import")
def import_page(request: Request, desk: TheDesk, principal: Sender) -> Response:
    """The form."""
    return render(
        request,
        "import.html",
        principal,
        done=None,
        most=request.app.state.settings.max_body,
    )


@router.post("/import")
def import_file(
    request: Request,
    desk: TheDesk,
    principal: Sender,
    file: UploadFile,
    identifier: Column,
    truth: Column = "",
    what: Annotated[Literal["cases", "truths"], Form()] = "cases",
    decimal: Annotated[Literal[".", ","], Form()] = ".",
) -> Response:
    """Let the rows of a table arrive; those that are known already are left as they are."""
    ending = Path(file.filename or "").suffix.lower()
    if ending not in ENDINGS:
        raise Invalid(f"The file is of the kind {ending!r}; use {', '.join(ENDINGS)}.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{ending}"
        path.write_bytes(file.file.read())
        try:
            table = open_table(path, decimal=decimal)
            _check_columns(table.columns, identifier, truth)
            done = import_table(
                desk,
                table,
                identifier=identifier,
                truth=truth or None,
                only_truth=what == "truths",
                actor=principal.actor,
            )
        except TableError as error:
            raise Invalid(
                f"The table cannot be read: {str(error).replace(str(path), 'it')}."
            ) from None
    return render(
        request,
        "import.html",
        principal,
        done=done,
        most=request.app.state.settings.max_body,
    )


def _check_columns(columns: tuple[str, ...], *wanted: str) -> None:
    for name in filter(None, wanted):
        if name not in columns:
            raise Invalid(f"The table has no column {name!r}; it has {', '.join(columns[:30])}.")
