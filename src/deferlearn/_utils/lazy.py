"""Names of a package that are loaded when they are first used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose names load their modules when they are first used.

    Parameters
    ----------
    package : str
        Name of the package.
    homes : mapping
        For each name the module of the package that has it.

    Returns
    -------
    __getattr__ : callable

    Examples
    --------
    >>> from deferlearn._utils.lazy import on_first_use
    >>> on_first_use("deferlearn._utils", {"counted": "words"})("counted")(2, "case")
    '2 cases'
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load
