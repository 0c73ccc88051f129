"""Independent calls on several processors or machines."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sklearn.utils.parallel import Parallel, delayed

from deferlearn._utils.progress import Progress, is_watched

Result = TypeVar("Result")


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
    if not is_watched():
        made: list[Result] = Parallel(n_jobs=n_jobs)(tasks)
        return made
    found: list[Result] = []
    with Progress({"call": (len(calls), 1.0)}) as progress:
        progress.begin("call")
        for result in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
            found.append(result)
            progress.done()
            if len(found) < len(calls):
                progress.begin("call")
    return found


def _call(call: tuple[Any, ...]) -> Any:
    work, *arguments = call
    return work(*arguments)
