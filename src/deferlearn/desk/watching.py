"""The outermost middleware gives requests ids, logs and measures them, and hides defects from clients."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deferlearn.desk.logs import id_of, request_id
from deferlearn.desk.refusals import refusal

if TYPE_CHECKING:
    from deferlearn.desk.metrics import Metrics

log = logging.getLogger("deferlearn.desk.requests")
HEADER = "X-Request-ID"
# What browsers are told with every answer. Pages may loosen the last one for themselves.
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Other sites learn nothing; but without an address browsers call the desk's own forms foreign.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Watched:
    """Middleware around all others.

    Parameters
    ----------
    app : ASGI application
        What answers the requests.
    metrics : Metrics
        Where requests are counted.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        own_id = id_of(Headers(scope=scope).get(HEADER))
        token = request_id.set(own_id)
        started = time.perf_counter()
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[HEADER] = own_id
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            with self.metrics.in_flight.track_inprogress():
                await self.app(scope, receive, watched)
        except Exception:
            log.exception("a defect")
            if status:  # half of the answer is sent: the server closes the connection
                raise
            detail = f"The desk has a defect. Tell the administrator the request id {own_id}."
            await refusal(500, detail)(scope, receive, watched)
        finally:
            seconds = time.perf_counter() - started
            route = route_of(scope)
            self.metrics.count(scope["method"], route, status, seconds)
            facts = {
                "method": scope["method"],
                "route": route,
                "status": status,
                "milliseconds": round(1000 * seconds, 1),
                "actor": scope.get("state", {}).get("actor"),
            }
            log.info("request", extra={"facts": facts})
            request_id.reset(token)


def route_of(scope: Scope) -> str:
    """The route of a request, such as /api/v1/cases/{id}: the path itself holds the id of a case.

    Parameters
    ----------
    scope : dict
        After the request was answered.

    Returns
    -------
    route : str
    """
    return getattr(scope.get("route"), "path", "unknown")
