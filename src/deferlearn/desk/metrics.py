"""Measurements for Prometheus: requests when they are answered, and the state of the desk when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Seconds: the desk promises 0.1 for 99 of 100 decisions.
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
# Names of methods that clients invent would fill the memory.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The measurements of one desk.

    Examples
    --------
    >>> from deferlearn.desk.metrics import Metrics
    >>> metrics = Metrics()
    >>> metrics.count("GET", "/healthz", 200, 0.001)
    >>> 'requests_total{method="GET",route="/healthz",status="200"} 1.0' in metrics.text().decode()
    True
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "deferlearn_desk_requests",
            "Requests that were answered.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "deferlearn_desk_request_seconds",
            "Time until a request was answered.",
            ["method", "route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "deferlearn_desk_requests_in_flight",
            "Requests that are being answered.",
            registry=self.registry,
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered.

        Parameters
        ----------
        method : str
            Such as "POST".
        route : str
            Such as "/api/v1/cases/{id}".
        status : int
            Such as 200; 0 if the client was gone.
        seconds : float
            How long it took.
        """
        method = method if method in METHODS else "other"
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(method, route).observe(seconds)

    def watch(
        self,
        state: Callable[[], dict[str, float]],
        alarms: Callable[[], dict[str, float]] = dict,
    ) -> None:
        """Also report the state of the desk, each time when it is asked for.

        Parameters
        ----------
        state : callable
            Gives numbers by name.
        alarms : callable
            Gives the number of open alarms by kind. Without it there are none.
        """
        self.registry.register(_State(state, alarms))

    def watch_refused(self, counts: Mapping[int, int]) -> None:
        """Also report connections that were refused before there was a request.

        Parameters
        ----------
        counts : mapping
            How many there were so far, by status.
        """
        self.registry.register(_Refused(counts))

    def text(self) -> bytes:
        """All measurements in the format of Prometheus."""
        return generate_latest(self.registry)


class _Refused(Collector):
    def __init__(self, counts: Mapping[int, int]) -> None:
        self.counts = counts

    def collect(self) -> Iterable[CounterMetricFamily]:
        found = CounterMetricFamily(
            "deferlearn_desk_refused_connections",
            "Connections that the server ended because they sent no valid HTTP request.",
            labels=["status"],
        )
        # Connections are refused meanwhile, in another thread.
        for status, count in sorted(dict(self.counts).items()):
            found.add_metric([str(status)], count)
        yield found


class _State(Collector):
    def __init__(
        self, state: Callable[[], dict[str, float]], alarms: Callable[[], dict[str, float]]
    ) -> None:
        self.state, self.alarms = state, alarms

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return []  # so that nothing is read from the database before the first scrape

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for name, value in self.state().items():
            words = name.replace("_", " ").capitalize()
            yield GaugeMetricFamily(f"deferlearn_desk_{name}", f"{words}.", value=value)
        kinds = GaugeMetricFamily(
            "deferlearn_desk_alarms_open_by_kind", "Open alarms of each kind.", labels=["kind"]
        )
        for kind, count in self.alarms().items():
            kinds.add_metric([kind], count)
        yield kinds
