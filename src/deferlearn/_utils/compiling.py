"""How functions are compiled: which flags, and why."""

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba import cfunc, config, njit, typeof, types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.registry import cpu_target
from numba.experimental.function_type import FunctionModel
from numba.extending import NativeValue, register_model, unbox

# This saves time only, and is made of parts of numba that may be different in another version.
_ONLY_FOR_CALLERS: dict[str, Any]
try:
    from deferlearn._utils.linking import LinkedCompiler
except (ImportError, AttributeError):
    _ONLY_FOR_CALLERS = {}
else:
    _ONLY_FOR_CALLERS = {"pipeline_class": LinkedCompiler}


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
# Functions compile faster without what is not needed: C calls a `Kernel` only, and Python calls no internal
# functions. Callers include these, so they are not kept by themselves either.
_NOT_FOR_C: dict[str, Any] = {"no_cfunc_wrapper": True}
_INTERNAL: dict[str, Any] = {
    **_ALWAYS, **_NOT_FOR_C, **_ONLY_FOR_CALLERS, "no_cpython_wrapper": True, "cache": False,
}  # fmt: skip

# For functions that Python calls. They return numbers, or plain tuples of them, and write to arrays that
# they are given: to return an array or a named tuple, numba runs code of Python, and an exception there,
# such as that of Ctrl-C, crashes the process.
compiled = njit(**_ALWAYS, **_NOT_FOR_C)
internal = njit(**_INTERNAL)
# For plain sums whose order does not matter: vector instructions may then add in parallel.
summing = njit(fastmath={"reassoc", "contract", "nsz"}, **_INTERNAL)


class KernelType(types.FunctionType):
    """The type of an `Address`.

    With numba's own type of functions, each call imports a module and unpickles a signature to learn the
    address. That takes longer than a short path, and a signal that is handled meanwhile (Ctrl-C) crashes
    the process.
    """


register_model(KernelType)(FunctionModel)


@unbox(KernelType)
def _take_address(typ: Any, obj: Any, c: Any) -> Any:
    """Read the address, without running any code of Python."""
    known = cgutils.create_struct_proxy(typ)(c.context, c.builder)
    number = c.pyapi.object_getattr_string(obj, "address")
    known[0] = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(known._getvalue(), is_error=c.pyapi.c_api_error())


class Address:
    """Where a compiled function is, as an argument of compiled functions."""

    def __init__(self, function: Any, signature: Any) -> None:
        self._function = function  # the code lives as long as this
        self.address = int(function.address)
        self._numba_type_ = KernelType(signature)


class StandIn:
    """An address that is not known yet: it has the type of one, and cannot be called."""

    def __init__(self, signature: Any) -> None:
        self._numba_type_ = KernelType(signature)


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
    def signature(self) -> Any:
        """The types of the arguments and of the result."""
        arguments, result = self._example()
        result_type = types.void if result is None else typeof(result)
        return result_type(*(typeof(argument) for argument in arguments))

    @property
    def stand_in(self) -> StandIn:
        """What callers can be compiled with before the kernel is."""
        return StandIn(self.signature)

    @property
    def is_kept(self) -> bool:
        """Whether it was compiled before, on this machine and with these versions."""
        cache = FunctionCache(self._function)
        key = cache._index_key(self.signature, cpu_target.target_context.codegen())
        return key in cache._cache_file._load_index()

    @cached_property
    def address(self) -> Any:
        """The address, which compiled functions call; the function itself if nothing is compiled."""
        if getattr(config, "DISABLE_JIT", False):  # set when numba reads its variables
            return self._function
        function = cfunc(self.signature, cache=KEPT, error_model="numpy")(self._function)
        return Address(function, self.signature)
