"""How much of a long piece of work is done, and how long the rest may take.

`watched_by` names the function that shows it, and `Progress` counts the units of the work. Neither needs to
know the other. Work that is done within a unit of other work counts as a part of that unit.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from time import monotonic
from typing import Self

# Called with the share of the work that is done, and the seconds left.
Show = Callable[[float, float], None]

_watcher: ContextVar[Show | None] = ContextVar("watcher", default=None)
_running: ContextVar["Progress | None"] = ContextVar("running", default=None)


@contextmanager
def watched_by(show: Show | None) -> Iterator[None]:
    """A context whose work is shown, unless an outer context shows it already.

    Parameters
    ----------
    show : callable or None
        Called, not too often, with the share that is done and the seconds left. None changes nothing.
    """
    if show is None or _watcher.get() is not None:
        yield
        return
    token = _watcher.set(show)
    try:
        yield
    finally:
        _watcher.reset(token)


def is_watched() -> bool:
    """Whether progress is shown here."""
    return _watcher.get() is not None


class Progress:
    """Units of work, of several kinds, and what is known about how long they take.

    A unit is expected to take as long as others of its kind did on average. Until the first unit of a kind
    is done, the weight says how long it takes compared with other kinds.

    Parameters
    ----------
    units : mapping of str to (int, float)
        For each kind, the number of units and the weight of one.
    clock : callable, default=time.monotonic
        Seconds.

    Examples
    --------
    >>> from deferlearn._utils.progress import Progress
    >>> now = iter([0.0, 3.0, 3.0])
    >>> progress = Progress({"small": (2, 1.0), "large": (1, 10.0)}, clock=lambda: next(now))
    >>> progress.begin("small")
    >>> progress.done()
    >>> progress.left()  # a small unit and a large one
    33.0
    """

    def __init__(
        self, units: Mapping[str, tuple[int, float]], clock: Callable[[], float] = monotonic
    ) -> None:
        self._clock = clock
        self._weights = {kind: weight for kind, (_, weight) in units.items()}
        self._open = {kind: count for kind, (count, _) in units.items()}
        self._seconds: dict[str, list[float]] = {}
        self._kind: str | None = None
        self._began = self._spent = self._part = self._shown = 0.0
        self._parent: Progress | None = None
        self._token: Token[Progress | None] | None = None

    def __enter__(self) -> Self:
        self._parent = _running.get()
        self._token = _running.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._token is not None:
            _running.reset(self._token)

    def begin(self, kind: str) -> None:
        """Note that a unit of this kind begins."""
        self._kind, self._part, self._began = kind, 0.0, self._clock()
        self._open[kind] -= 1

    def part(self, share: float) -> None:
        """Note which share of the present unit is done."""
        self._part = max(self._part, min(share, 1.0))
        self._tell()

    def done(self) -> None:
        """Note that the present unit is done."""
        if self._kind is not None:
            seconds = self._clock() - self._began
            self._seconds.setdefault(self._kind, []).append(seconds)
            self._spent += seconds
        self._kind = None
        self._tell()

    def left(self) -> float | None:
        """Seconds until all units are done; None if nothing is known about this yet."""
        rest = 0.0
        for kind, count in self._open.items():
            cost = self._cost(kind)
            if count > 0 and cost is None:
                return None
            rest += max(count, 0) * (cost or 0.0)
        if self._kind is None:
            return rest
        cost, gone = self._cost(self._kind), self._clock() - self._began
        if cost is None:
            return None
        return rest + (cost * (1.0 - self._part) if self._part else max(cost - gone, 0.0))

    def _cost(self, kind: str) -> float | None:
        """Expected seconds for a unit."""
        own = self._seconds.get(kind)
        if own:
            return sum(own) / len(own)
        weight = sum(self._weights[known] * len(of) for known, of in self._seconds.items())
        if weight > 0:
            return self._weights[kind] * self._spent / weight
        if self._kind is None or not self._part:
            return None
        # Only a part of the first unit is done yet.
        first = (self._clock() - self._began) / self._part
        return self._weights[kind] * first / self._weights[self._kind]

    def _tell(self) -> None:
        if self._parent is None and _watcher.get() is None:
            return
        left = self.left()
        if left is None:
            return
        gone = self._spent + (0.0 if self._kind is None else self._clock() - self._began)
        share = gone / (gone + left) if gone + left > 0 else 1.0
        if self._parent is not None:
            self._parent.part(share)
        elif (show := _watcher.get()) is not None:
            show(share, left)


def sometimes(show: Show, clock: Callable[[], float] = monotonic) -> Show:
    """A function that calls ``show`` at most once per second, and less often the longer the work takes.

    Parameters
    ----------
    show : callable
        The function that is called.
    clock : callable, default=time.monotonic
        Seconds.
    """
    began = clock()
    due = began + 1.0

    def shown(share: float, left: float) -> None:
        nonlocal due
        now = clock()
        if now >= due and share < 1.0:
            due = now + max(1.0, 0.05 * (now - began))
            show(share, left)

    return shown


def in_words(share: float, left: float) -> str:
    """The share that is done and the time left, for people.

    Parameters
    ----------
    share : float
        Between 0 and 1.
    left : float
        Seconds.

    Examples
    --------
    >>> from deferlearn._utils.progress import in_words
    >>> in_words(0.5, 12.3), in_words(0.25, 200.0), in_words(0.01, 7000.0)
    ('50% done, about 12 s left', '25% done, about 3 min left', '1% done, about 2 h left')
    """
    return f"{share:.0%} done, about {time_in_words(left)} left"


def time_in_words(seconds: float) -> str:
    """A time as a whole number of seconds, minutes or hours."""
    for unit, size in (("s", 1), ("min", 60), ("h", 3600)):
        if seconds < 90 * size or unit == "h":
            return f"{max(1, round(seconds / size))} {unit}"
    raise AssertionError
