"""Answers of the middleware to requests that do not reach an endpoint, in the form of RFC 9457."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus

from starlette.responses import JSONResponse

MEDIA_TYPE = "application/problem+json"
# Connections of this process that were ended because what came is no request, by status.
REFUSED: Counter[int] = Counter()


def refusal(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An answer that says why a request was refused.

    Parameters
    ----------
    status : int
        Such as 413.
    detail : str
        What was wrong, and what to do.
    headers : dict or None, default=None
        Further headers.

    Returns
    -------
    JSONResponse
    """
    content = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)
