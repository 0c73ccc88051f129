"""The entrance: log in, log out, and one-time links to choose a password or to come in."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from deferlearn.desk import login, sessions
from deferlearn.desk.api.sessions import address_of
from deferlearn.desk.pages.common import Text, pages
from deferlearn.desk.pages.navigation import home_of
from deferlearn.desk.pages.rendering import go_to, render
from deferlearn.desk.principal import Principal, current

router = pages()
Next = Annotated[str, Query(max_length=500)]


@router.get("/")
def home(principal: Annotated[Principal, Depends(current)]) -> Response:
    """The first page of whoever asks."""
    return RedirectResponse(home_of(principal), 303)


@router.get("/login")
def log_in_page(request: Request, next: Next = "/") -> Response:
    """The form."""
    return render(request, "login.html", next=next, problem=None, name="")


@router.post("/login")
def log_in(request: Request, name: Text, password: Text, next: Text = "/") -> Response:
    """Log in, and go to the page that was asked for."""
    app = request.app.state
    try:
        cookie = login.log_in(
            app.database,
            name,
            password,
            address=address_of(request),
            secret=app.settings.secret,
            passwords=app.passwords,
        )
    except (login.WrongPassword, login.TooManyAttempts) as error:
        return render(
            request, "login.html", status=error.status, next=next, problem=str(error), name=name
        )
    response = RedirectResponse(own_path(next), 303)
    sessions.give(response, cookie, secure=sessions.is_secure(request))
    return response


@router.post("/logout")
def log_out(request: Request) -> Response:
    """Log out: the session ends, also for copies of its cookie."""
    app = request.app.state
    cookie = sessions.cookie_of(request)
    if cookie is not None:
        app.database.write(lambda c: sessions.revoke(c, app.settings.secret, cookie))
    response = go_to("/login", "logged-out")
    sessions.take(response)
    return response


@router.get("/welcome")
def welcome(request: Request) -> Response:
    """The page behind the one-time link; its script reads the invitation from behind the sign #."""
    return render(request, "welcome.html")


@router.get("/enter")
def enter(request: Request) -> Response:
    """The page behind a link that signs a user in; its script sends the text behind the sign #."""
    return render(request, "enter.html")


def own_path(path: str) -> str:
    """A path of the desk; what could lead elsewhere leads home.

    Parameters
    ----------
    path : str
        What a form or an address holds.

    Returns
    -------
    path : str

    Examples
    --------
    >>> from deferlearn.desk.pages.entrance import own_path
    >>> own_path("/today"), own_path("//elsewhere.org"), own_path("https://elsewhere.org")
    ('/today', '/', '/')
    """
    is_own = path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable()
    return path if is_own and "\\" not in path else "/"
