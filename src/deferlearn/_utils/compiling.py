"""How functions are compiled: which flags, and why."""

from typing import Any

from numba import njit

# Compiled once and kept on disk. A division by zero gives inf or NaN, as in numpy, which the checks of
# the result find; testing for it before each division costs time and longer compilation.
# Nothing that is compiled touches Python's objects: other threads may go on meanwhile.
_ALWAYS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
# For functions that only compiled code calls: without wrappers for Python and C they compile faster.
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled = njit(**_ALWAYS)
internal = njit(**_ALWAYS, **_NO_WRAPPERS)
# For plain sums whose order does not matter: vector instructions may then add in parallel.
summing = njit(fastmath={"reassoc", "contract", "nsz"}, **_ALWAYS, **_NO_WRAPPERS)
