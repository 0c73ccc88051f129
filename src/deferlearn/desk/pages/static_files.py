"""Styles, scripts and the icon: a fixed list of files, which browsers may keep."""

from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter, HTTPException, Response

router = APIRouter(include_in_schema=False)
# The colours, tables and charts of the report are those of the desk, too.
_STYLES = ("deferlearn.report", "templates")
_OWN = ("deferlearn.desk.pages", "static")
FILES = {
    "page.css": (_STYLES, "text/css"),
    "desk.css": (_OWN, "text/css"),
    "desk.js": (_OWN, "text/javascript"),
    "welcome.js": (_OWN, "text/javascript"),
    "enter.js": (_OWN, "text/javascript"),
    "htmx.min.js": (_OWN, "text/javascript"),
    "htmx.LICENSE": (_OWN, "text/plain"),
    "icon.svg": (_OWN, "image/svg+xml"),
}


@router.get("/static/{name}")
def static_file(name: str) -> Response:
    """A file; its address changes with its content, so that browsers may keep it for a year."""
    if name not in FILES:
        raise HTTPException(404, "There is no such file.")
    return Response(
        _content(name),
        media_type=FILES[name][1],
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


def address_of(name: str) -> str:
    """Where a file is, for templates.

    Parameters
    ----------
    name : str
        One of `FILES`.

    Returns
    -------
    address : str
    """
    return f"/static/{name}?v={sha256(_content(name)).hexdigest()[:12]}"


@cache
def _content(name: str) -> bytes:
    package, folder = FILES[name][0]
    return (files(package) / folder / name).read_bytes()
