"""The app: all endpoints around one desk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from deferlearn import __version__
from deferlearn.desk import pages
from deferlearn.desk.api import (
    answers,
    cases,
    experts,
    guards,
    log,
    models,
    monitoring,
    problems,
    queue,
    rules,
    webhooks,
)
from deferlearn.desk.api.quick import Quick
from deferlearn.desk.database import Database
from deferlearn.desk.desk import Desk
from deferlearn.desk.keeper import Keeper
from deferlearn.desk.migrations import check_schema
from deferlearn.desk.settings import Settings

ROUTERS = [
    module.router
    for module in (cases, queue, answers, experts, models, monitoring, rules, log, webhooks)
]


def make_app(
    database: Database, settings: Settings, *, desk: Desk | None = None, keep: bool = True
) -> FastAPI:
    """The app that a server runs.

    Parameters
    ----------
    database : Database
        The database, with the options `audit.key_options`; who opened it closes it.
    settings : Settings
        How the server runs.
    desk : Desk or None, default=None
        The desk on that database; None makes one.
    keep : bool, default=True
        Whether this process looks after deadlines, prices and webhooks.

    Returns
    -------
    app : FastAPI

    Raises
    ------
    SchemaError
        If the database has another schema.
    """
    desk = Desk(database) if desk is None else desk
    check_schema(database)
    keeper = Keeper(desk)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if keep:
            keeper.start()
        yield
        keeper.stop()

    app = FastAPI(
        title="deferlearn desk",
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.desk, app.state.database, app.state.settings = desk, database, settings
    problems.install(app)
    app.add_middleware(Quick, desk=desk)  # within the guards
    guards.install(app)
    for router in [*ROUTERS, *guards.routers()]:
        app.include_router(router, responses=problems.described())
    pages.install(app)
    return app
