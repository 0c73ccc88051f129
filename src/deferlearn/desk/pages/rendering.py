"""From a template to an answer: escaping, the content security policy, and errors as pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any
from urllib.parse import quote

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined

from deferlearn.desk import display
from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.errors import DeskError
from deferlearn.desk.monitoring.alarms import FALSE_ALARMS
from deferlearn.desk.pages import charts, words
from deferlearn.desk.pages.navigation import links_of
from deferlearn.desk.pages.said import SAID
from deferlearn.desk.pages.static_files import address_of
from deferlearn.desk.principal import Principal

# No inline script or style runs, nothing is loaded from elsewhere but images of named sources.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src {images}; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@cache
def environment() -> Environment:
    """The templates; every value is escaped unless it is `Markup`, and a missing one is an error."""
    own, report = PackageLoader("deferlearn.desk.pages"), PackageLoader("deferlearn.report")
    made = Environment(
        loader=ChoiceLoader([own, PrefixLoader({"report": report})]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(static=address_of, charts=charts, false_alarms=FALSE_ALARMS)
    for function in (
        words.ago,
        words.amount,
        words.clock_time,
        words.counted,
        words.duration,
        words.instant,
        words.percent,
        words.price,
        words.shade,
        words.short_digests,
        words.shown_value,
        words.span,
        words.thousands,
        words.when,
    ):
        made.filters[function.__name__] = function
    return made


def is_fragment(request: Request) -> bool:
    """Whether a script of a page asks for a part of it."""
    return "hx-request" in request.headers and "hx-boosted" not in request.headers


def render(
    request: Request,
    template: str,
    principal: Principal | None = None,
    *,
    status: int = 200,
    **context: Any,
) -> Response:
    """A page.

    Parameters
    ----------
    request : Request
        What was asked for.
    template : str
        Its name.
    principal : Principal or None, default=None
        Who asks; None before the login.
    status : int, default=200
        The status of the answer.
    **context : object
        Values for the template.

    Returns
    -------
    Response
    """
    content = (
        environment()
        .get_template(template)
        .render(
            principal=principal,
            links=[] if principal is None else links_of(principal, request.url.path),
            said=SAID.get(request.query_params.get("said", "")),
            **context,
        )
    )
    return HTMLResponse(content, status, {"Content-Security-Policy": _policy(request, principal)})


def _policy(request: Request, principal: Principal | None) -> str:
    sources = ["'self'"]
    if principal is not None:
        with request.app.state.database.reading() as connection:
            sources += display.read_display(connection)[0].image_sources
    return POLICY.format(images=" ".join(sources))


def go_to(path: str, said: str = "") -> Response:
    """Send the browser to another page.

    Parameters
    ----------
    path : str
        Of the desk.
    said : str, default=""
        Key of a sentence of `SAID`, which that page shows.

    Returns
    -------
    Response
    """
    return RedirectResponse(f"{path}?said={said}" if said else path, 303)


class PageRoute(APIRoute):
    """A route whose errors are pages; scripts get problem details, as programs do."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except (DeskError, HTTPException, RequestValidationError, DatabaseUnavailable) as error:
                if "hx-request" in request.headers:
                    raise
                return _refused(request, error)

        return answer


def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 401:
        back = request.url.path if request.method == "GET" else "/"
        return RedirectResponse(f"/login?next={quote(back)}", 303)
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):
        status, detail = error.status_code, str(error.detail)
        headers = dict(error.headers or {})
    elif isinstance(error, DeskError):
        status, detail = error.status, str(error)
    elif isinstance(error, DatabaseUnavailable):
        status, detail = 503, f"{error}. Look in a moment whether the last step was stored."
    else:
        status, detail = 422, "Something in the form is missing, or has a form that is not known."
    return _told(status, detail, headers)


def no_such_page() -> Response:
    """The page behind an address that leads nowhere."""
    return _told(404, "There is no page at this address.", {})


def _told(status: int, detail: str, headers: dict[str, str]) -> Response:
    content = (
        environment()
        .get_template("refused.html")
        .render(principal=None, links=[], said=None, status=status, detail=detail)
    )
    policy = {"Content-Security-Policy": POLICY.format(images="'self'")}
    return HTMLResponse(content, status, {**headers, **policy})
