"""Support vector machines that learn which cases to defer to a human.

The parts, in the order in which data flows through them:

- `deferlearn.datasets`: generators of the paper's synthetic data, fetchers of its real data.
- `deferlearn.humans`: what humans know, as one loss a sample.
- `deferlearn.objective`: the machine's objective and the exact gain of deferring a sample.
- `deferlearn.selection`: the algorithms that choose the samples to defer.
- `deferlearn.bounds`: what the theorems promise, and a certificate for each selection.
- `deferlearn.policy`: from the samples that were deferred to new cases.
- `deferlearn.AssistedSVC`: all of it as a scikit-learn classifier; `deferlearn.pipeline` for what comes
  before it, `deferlearn.save` and `deferlearn.load` to store it.
- `deferlearn.plot`: pictures; matplotlib is needed only once something is drawn.

Each is imported by its own name, so that ``import deferlearn`` stays fast; `AssistedSVC`, `save` and
`load` are fetched when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deferlearn.assistance import assistance_report
    from deferlearn.persistence import load, save
    from deferlearn.svc import AssistedSVC

__version__ = "0.1.0"

__all__ = ["AssistedSVC", "assistance_report", "load", "save"]

_HOMES = {
    "AssistedSVC": "deferlearn.svc",
    "assistance_report": "deferlearn.assistance",
    "load": "deferlearn.persistence",
    "save": "deferlearn.persistence",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
