"""Read the authors' Python-2 pickles of numpy arrays without running anything that is in them.

A pickle is a program: it names callables and calls them. Here the four names that arrays and numbers
of numpy need are answered with stand-ins of our own, and any other name is refused. So not even numpy's own
reconstruction runs on what a file says: an array is made from checked bytes and a checked type, or
not at all. It also makes us independent of where numpy keeps these names: ``numpy.core``, which the
files mention, has moved.
"""

import io
import pickle
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

Record = dict[str, "NDArray[Any] | dict[str, NDArray[Any]]"]
# Arrays, numbers, and dicts of them, however deep.
Tree = dict[str, Any]

# Booleans, numbers and strings of a stated size; no objects ("O") and no records ("V").
_PLAIN_TYPE = re.compile(r"b1|[iu][1248]|f[248]|[SU][1-9][0-9]{0,3}")


class _DType:
    """Stand-in for `numpy.dtype`: a type code, later a byte order."""

    def __init__(self, code: object, align: object, copy: object) -> None:
        if not (isinstance(code, str) and _PLAIN_TYPE.fullmatch(code)):
            raise pickle.UnpicklingError(f"arrays of the type {code!r} are not allowed")
        self.code = code
        self.order = "="

    def __setstate__(self, state: Any) -> None:
        # (version, byte order, subarray, names, fields, ...): plain types lack the last three.
        _version, order, *structure = state[:5]
        if order not in ("<", ">", "|", "=") or structure != [None, None, None]:
            raise pickle.UnpicklingError("only arrays of plain numbers or strings are allowed")
        self.order = order


class _Array:
    """Stand-in for `numpy.core.multiarray._reconstruct` and the array that it would make."""

    value: NDArray[Any] | None = None

    def __init__(self, subtype: object, shape: object, code: object) -> None:
        # Both are placeholders in every pickle of an array; what counts comes in `__setstate__`.
        if subtype is not _NDARRAY:
            raise pickle.UnpicklingError("only plain numpy arrays are allowed")

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, fortran, raw = state
        # Exact classes, because a stand-in made by other means may lack its checked attributes.
        if type(dtype) is not _DType or type(raw) not in (str, bytes):
            raise pickle.UnpicklingError("only arrays of plain numbers or strings are allowed")
        # Strict, because `reshape` reads a negative length as "whatever fits".
        if type(shape) is not tuple or not all(type(n) is int and n >= 0 for n in shape):
            raise pickle.UnpicklingError(f"an array cannot have the shape {shape!r}")
        # Python 2 made no difference between text and bytes: latin1 maps one onto the other.
        content = raw.encode("latin1") if isinstance(raw, str) else raw
        flat = np.frombuffer(content, dtype=np.dtype(dtype.order + dtype.code))
        array = flat.reshape(shape, order="F" if fortran else "C")
        # A copy in this machine's byte order, which unlike a view of `bytes` can be written to.
        self.value = array.astype(array.dtype.newbyteorder("="), copy=True)


class _Number:
    """Stand-in for `numpy.core.multiarray.scalar`: one number from checked bytes."""

    def __init__(self, dtype: object, raw: object) -> None:
        if type(dtype) is not _DType or not isinstance(raw, str | bytes):
            raise pickle.UnpicklingError("only plain numbers are allowed")
        content = raw.encode("latin1") if isinstance(raw, str) else raw
        (number,) = np.frombuffer(content, dtype=np.dtype(dtype.order + dtype.code))
        self.value = number.item()


# A bare object: whatever a pickle tries to do to it fails, as it can be neither called nor changed.
_NDARRAY = object()

_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.multiarray", "scalar"): _Number,
    ("numpy._core.multiarray", "scalar"): _Number,
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _DType,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"the name {module}.{name} is not allowed") from None


def read_arrays(content: bytes) -> Record:
    """Arrays in a pickle that holds a dict of them, or a dict of dicts of them.

    Parameters
    ----------
    content : bytes
        The whole pickle.

    Returns
    -------
    record : dict
        Names mapped to arrays, or to dicts that map names to arrays.

    Raises
    ------
    ValueError
        If there is anything else in it, or if it is damaged. Nothing in the pickle has run.
    """
    try:
        return {name: _arrays(value) for name, value in _items(_loaded(content))}
    # A damaged or hostile pickle can end in nearly any exception; all mean the same to the caller.
    except Exception as error:
        raise ValueError(f"this is not a pickle of plain numpy arrays: {error}") from error


def read_tree(content: bytes) -> Tree:
    """Arrays and numbers in a pickle that holds dicts of them, within each other.

    Parameters
    ----------
    content : bytes
        The whole pickle.

    Returns
    -------
    tree : dict
        Names mapped to arrays, to numbers, or to dicts of the same kind.

    Raises
    ------
    ValueError
        As in `read_arrays`.
    """
    try:
        return {name: _branch(value) for name, value in _items(_loaded(content))}
    # Dicts within themselves end in RecursionError, which is an Exception too.
    except Exception as error:
        raise ValueError(f"this is not a pickle of plain arrays and numbers: {error}") from error


def _loaded(content: bytes) -> object:
    return _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()


def _branch(value: object) -> Any:
    if type(value) is dict:
        return {name: _branch(inner) for name, inner in _items(value)}
    # Exact classes, because a stand-in made by other means may lack its checked value.
    if type(value) is _Number or type(value) is _Array:
        if getattr(value, "value", None) is None:
            raise pickle.UnpicklingError("an array or number without content")
        return value.value
    if type(value) not in (int, float):
        raise pickle.UnpicklingError(f"expected an array or a number, found {type(value).__name__}")
    return value


def _arrays(value: object) -> NDArray[Any] | dict[str, NDArray[Any]]:
    if type(value) is dict:
        return {name: _array(inner) for name, inner in _items(value)}
    return _array(value)


def _array(value: object) -> NDArray[Any]:
    if type(value) is not _Array or value.value is None:
        raise pickle.UnpicklingError(f"expected an array, found {type(value).__name__}")
    return value.value


def _items(value: object) -> list[tuple[str, object]]:
    if type(value) is not dict or not all(type(name) is str for name in value):
        raise pickle.UnpicklingError("expected a dict whose keys are strings")
    return list(value.items())
