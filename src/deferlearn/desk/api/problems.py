"""Errors over HTTP, all in one form: `application/problem+json`, RFC 9457."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.errors import DeskError
from deferlearn.desk.refusals import MEDIA_TYPE, refusal

# When to try again if the database cannot be used.
RETRY_SECONDS = 5
# The most errors of a body that are named.
MOST_ERRORS = 5


class Problem(BaseModel):
    """What went wrong, and what to do."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Conflict"])
    status: int = Field(examples=[409])
    detail: str


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The description of errors for OpenAPI, besides those that every endpoint has.

    Parameters
    ----------
    *statuses : int
        Such as 404.

    Returns
    -------
    responses : dict
    """
    every = (400, 401, 403, 413, 422, 429, 500, 503)
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {"description": "A problem.", "content": content, "model": Problem}
        for status in sorted({*every, *statuses})
    }


def install(app: FastAPI) -> None:
    """Let an app tell errors in this form.

    Parameters
    ----------
    app : FastAPI
        The app.
    """

    @app.exception_handler(DeskError)
    @app.exception_handler(DatabaseUnavailable)
    def of_desk(request: Request, error: Exception) -> Response:
        return told(error)

    @app.exception_handler(HTTPException)
    def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers) if error.headers else None
        return problem(error.status_code, str(error.detail), headers)

    @app.exception_handler(RequestValidationError)
    def of_body(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem(422, _in_words(error))


def told(error: Exception) -> Response:
    """What a client is told when the desk refuses, or its database cannot be used.

    Parameters
    ----------
    error : DeskError or DatabaseUnavailable
        Why.

    Returns
    -------
    Response
    """
    if isinstance(error, DatabaseUnavailable):
        detail = (
            f"{error}. Send the request again: cases, answers and truths are never stored twice."
        )
        return problem(503, detail, {"Retry-After": str(RETRY_SECONDS)})
    return problem(getattr(error, "status", 400), str(error))


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """An answer that says what went wrong.

    Parameters
    ----------
    status : int
        Such as 409.
    detail : str
        In words.
    headers : dict or None, default=None
        Further headers.

    Returns
    -------
    Response
    """
    # Halves of characters, which clients may send, cannot be sent back.
    return refusal(status, detail.encode("utf-8", "replace").decode(), headers)


def _in_words(error: RequestValidationError) -> str:
    words = []
    for one in error.errors()[:MOST_ERRORS]:
        place = ".".join(str(part) for part in one["loc"])
        words.append(f"{place}: {one['msg']}")
    return "; ".join(words)[:2000] or "The request cannot be read."
