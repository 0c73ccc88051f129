"""What the parts of a stored model may hold: no cache, no file, nothing in the place of a method.

Refitting or asking a model must not run code or touch a file that the model names. So a text is allowed as
a parameter of scikit-learn only where it is one of the choices that scikit-learn lists, and in few other
places.
"""

from collections.abc import Iterator
from inspect import signature
from types import FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp

# Parameters that may be any text, since it is only compared with cells or with labels.
FREE_TEXT = frozenset({"constant", "fill_value", "missing_values"})
# Joblib evaluates this parameter, and caches in files by the other.
PRE_DISPATCH, MEMORY = "pre_dispatch", "memory"


def parts_of(model: Any) -> Iterator[Any]:
    """Each object that a model holds, itself included, once; plain values and arrays are left out.

    Parameters
    ----------
    model : object
        A model.
    """
    waiting, seen = [model], set()
    kept = []  # so that no identity is used twice
    while waiting:
        part = waiting.pop()
        if part is None or isinstance(part, str | bytes | int | float | np.generic | type):
            continue
        if id(part) in seen:
            continue
        seen.add(id(part))
        kept.append(part)
        if isinstance(part, dict):
            waiting.extend([*part.keys(), *part.values()])
        elif isinstance(part, list | tuple | set | frozenset):
            waiting.extend(part)
        elif isinstance(part, np.ndarray):
            if part.dtype == object:
                waiting.extend(part.ravel().tolist())
        else:
            yield part
            if not sp.issparse(part):
                waiting.extend(_held_by(part).values())


def _held_by(part: Any) -> dict[str, Any]:
    """The attributes of an object that are stored."""
    from sklearn.base import BaseEstimator

    if isinstance(part, BaseEstimator):
        kind: Any = type(part)  # the class, since a stranger may have put something into the object
        return dict(kind.__getstate__(part))
    return getattr(part, "__dict__", {})


def check_values(part: Any) -> None:
    """Refuse a part that names a cache or a file, or puts something in the place of a method.

    Parameters
    ----------
    part : object
        An estimator, or something that an estimator holds.

    Raises
    ------
    ValueError
        If it does; the message names the type and the attribute.
    """
    from sklearn.base import BaseEstimator

    own = getattr(part, "__dict__", {})
    for name, value in own.items():
        if isinstance(_attribute_of(type(part), name), FunctionType | classmethod | staticmethod):
            raise ValueError(
                f"{_name_of(part)} has {name}={_short(value)} in the place of a method"
            )
        if name == MEMORY and value is not None and isinstance(part, BaseEstimator):
            raise ValueError(
                f"{_name_of(part)} has {name}={_short(value)}: a model may name no cache, since what is "
                f"in it would be run. Set {name}=None"
            )
    if not isinstance(part, BaseEstimator) or not type(part).__module__.startswith("sklearn."):
        return
    for name in type(part)._get_param_names():
        value = own.get(name)
        text = isinstance(value, str | bytes)
        if text and not _is_choice(type(part), name, value) and name not in FREE_TEXT:
            raise ValueError(
                f"{_name_of(part)} has {name}={_short(value)}, which is not one of the choices that "
                "scikit-learn lists"
            )


def _attribute_of(kind: type, name: str) -> Any:
    """What a class has under a name, as it stands there."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _is_choice(kind: Any, name: str, value: Any) -> bool:
    from sklearn.utils._param_validation import Options

    if value == signature(kind.__init__).parameters[name].default:
        return True
    if name == PRE_DISPATCH:
        return False
    constraints = getattr(kind, "_parameter_constraints", {}).get(name, [])
    if isinstance(constraints, str):  # "no_validation"
        return False
    choices = (getattr(choice, "constraint", choice) for choice in constraints)  # some are hidden
    return any(isinstance(choice, Options) and value in choice.options for choice in choices)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _name_of(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
