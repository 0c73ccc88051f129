"""How functions are compiled: which flags, and why."""

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba import cfunc, config, njit, typeof, types
from numba.extending import typeof_impl


def _can_be_kept() -> bool:
    """Whether there is a folder for what is compiled: next to the sources, or of the user.

    Where neither can be written to, numba refuses to compile with a cache, and ``NUMBA_CACHE_DIR`` can name
    another folder. Without one, each process compiles what it needs.
    """
    try:
        njit(cache=True)(lambda: None)
    except RuntimeError:
        warnings.warn(
            "Compiled code cannot be kept: neither the folder of deferlearn nor one of yours can be "
            "written to. Each process compiles it again, which can take a minute. Set the environment "
            "variable NUMBA_CACHE_DIR to a folder that can be written to.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


KEPT = _can_be_kept()
# Compiled once and kept on disk. A division by zero gives inf or NaN, as in numpy, which the checks of
# the result find; testing for it before each division costs time and longer compilation.
# Compiled code does not touch Python's objects, so other threads may run meanwhile.
_ALWAYS: dict[str, Any] = {"cache": KEPT, "error_model": "numpy", "nogil": True}
# For functions that only compiled code calls: without wrappers for Python and C they compile faster.
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled = njit(**_ALWAYS)
internal = njit(**_ALWAYS, **_NO_WRAPPERS)
# For plain sums whose order does not matter: vector instructions may then add in parallel.
summing = njit(fastmath={"reassoc", "contract", "nsz"}, **_ALWAYS, **_NO_WRAPPERS)


class Address(types.WrapperAddressProtocol):
    """Where a compiled function is.

    Its type is worked out once: numba does so again in every call that it is given to, which takes
    longer than a short path.
    """

    def __init__(self, function: Any, signature: Any) -> None:
        self._function, self._signature = function, signature  # the code lives as long as this
        self.address = int(function.address)
        self.numba_type = types.FunctionType(signature)

    def __wrapper_address__(self) -> int:
        return self.address

    def signature(self) -> Any:
        """What it takes and returns."""
        return self._signature


@typeof_impl.register(Address)
def _type_of_address(address: Address, _: Any) -> Any:
    return address.numba_type


class Kernel:
    """A large function that several compiled functions call, by its address.

    A compiled function includes the code of the functions that it calls, and compiles it again: the path
    would be compiled five times. A function that is called by its address is compiled once. Callers get
    `address` as an argument, and call it like a function. A kernel returns numbers, and writes to arrays
    that it is given.

    Parameters
    ----------
    function : callable
        The function. It is compiled when its address is first asked for.
    example : callable
        Returns arguments and a result of the right types: ``(arguments, result)``.
    """

    def __init__(self, function: Callable[..., Any], example: Callable[[], tuple[Any, Any]]):
        self._function, self._example = function, example

    @cached_property
    def address(self) -> Any:
        """The address, which compiled functions call; the function itself if nothing is compiled."""
        if getattr(config, "DISABLE_JIT", False):  # set when numba reads its variables
            return self._function
        arguments, result = self._example()
        result_type = types.void if result is None else typeof(result)
        signature = result_type(*(typeof(argument) for argument in arguments))
        function = cfunc(signature, cache=KEPT, error_model="numpy")(self._function)
        return Address(function, signature)
