"""Independent calls on several processors or machines."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sklearn.utils.parallel import Parallel, delayed

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
    found: list[Result] = Parallel(n_jobs=n_jobs)(delayed(_call)((work, *call)) for call in calls)
    return found


def _call(call: tuple[Any, ...]) -> Any:
    work, *arguments = call
    return work(*arguments)
