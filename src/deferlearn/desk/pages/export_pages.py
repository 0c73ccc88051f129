"""Tables of all that the desk knows, for administrators."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Form, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from deferlearn.desk.api.common import TheDesk
from deferlearn.desk.exporting import KINDS, export
from deferlearn.desk.pages.common import Exporter, pages
from deferlearn.desk.pages.rendering import render

router = pages()
Kind = Annotated[Literal["cases", "decisions", "answers", "audit"], Form()]
Ending = Annotated[Literal["csv", "parquet", "xlsx"], Form()]


@router.get("/export")
def export_page(request: Request, principal: Exporter) -> Response:
    """The form."""
    kinds = {kind: words.replace("`", "") for kind, words in KINDS.items()}
    return render(request, "export.html", principal, kinds=kinds)


@router.post("/export")
def export_file(desk: TheDesk, principal: Exporter, kind: Kind, ending: Ending = "csv") -> Response:
    """A table as a file; the audit log records who took it."""
    folder = tempfile.mkdtemp(prefix="deferlearn-export-")
    path = Path(folder) / f"{kind}.{ending}"
    try:
        export(desk.database, kind, path, actor=principal.actor)
    except BaseException:
        shutil.rmtree(folder)
        raise
    # The file goes when it has been sent, or the browser has gone.
    return FileResponse(
        path, filename=path.name, background=BackgroundTask(shutil.rmtree, folder, True)
    )
