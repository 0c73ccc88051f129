"""What stands around the endpoints: limits, refusal of other sites, request ids, logs and measurements."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI

from deferlearn.desk import sessions, state
from deferlearn.desk.api import keys, operations, users
from deferlearn.desk.api import sessions as session_endpoints
from deferlearn.desk.csrf import RefuseForeign
from deferlearn.desk.limits import LimitBodies, LimitRates, Rates
from deferlearn.desk.metrics import Metrics
from deferlearn.desk.passwords import Passwords
from deferlearn.desk.refusals import REFUSED
from deferlearn.desk.settings import Settings
from deferlearn.desk.watching import Watched

# A case is flat, and many cases are a list of objects: real bodies have four levels.
MOST_LEVELS = 32
# A client may send so many seconds' worth of requests at once.
BURST_SECONDS = 10


def install(app: FastAPI) -> None:
    """Put the guards around an app, and what its endpoints need for users and keys into its state.

    Parameters
    ----------
    app : FastAPI
        Whose state has `database` and `settings`.
    """
    settings: Settings = app.state.settings
    database = app.state.database
    metrics = Metrics()
    metrics.watch(lambda: state.numbers(database), lambda: state.open_alarms(database))
    metrics.watch_refused(REFUSED)
    app.state.metrics = metrics
    app.state.passwords = Passwords(settings.password_passes, settings.password_memory)
    per_second = settings.requests_per_second
    # The last one is the outermost.
    app.add_middleware(LimitBodies, most_bytes=settings.max_body, most_levels=MOST_LEVELS)
    app.add_middleware(RefuseForeign, cookies=sessions.COOKIES)
    app.add_middleware(LimitRates, rates=Rates(per_second, BURST_SECONDS * per_second))
    app.add_middleware(Watched, metrics=metrics)


def routers() -> list[APIRouter]:
    """The endpoints for users, sessions, keys, and for those who look after the desk."""
    return [
        session_endpoints.router,
        users.router,
        keys.router,
        operations.router,
    ]
