"""Independent calls on several processors or machines."""

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sklearn.utils.parallel import Parallel, delayed

from deferlearn._utils.progress import Progress, is_watched

Result = TypeVar("Result")


# Whether this process is a fork of another one. joblib would wait for the worker processes of that one,
# which do not answer, for ever: a fork uses threads.
_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def call_each(
    work: Callable[..., Result], calls: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> list[Result]:
    """What the work makes of the arguments of each call, in their order; n_jobs as in joblib.

    Examples
    --------
    >>> from deferlearn._utils.jobs import call_each
    >>> call_each(max, [(1, 2), (4, 3)], n_jobs=None)
    [2, 4]
    """
    # Each call is one argument. joblib's dask backend would lay arrays among them down at one worker,
    # and cannot go on if that one dies; what is in a tuple is kept with the call, which another repeats.
    calls = list(calls)
    tasks = (delayed(_call)((work, *call)) for call in calls)
    prefer = "threads" if _forked else None
    if not is_watched():
        made: list[Result] = Parallel(n_jobs=n_jobs, prefer=prefer)(tasks)
        return made
    found: list[Result] = []
    with Progress({"call": (len(calls), 1.0)}) as progress:
        progress.begin("call")
        for result in Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator")(tasks):
            found.append(result)
            progress.done()
            if len(found) < len(calls):
                progress.begin("call")
    return found


def _call(call: tuple[Any, ...]) -> Any:
    work, *arguments = call
    return work(*arguments)
