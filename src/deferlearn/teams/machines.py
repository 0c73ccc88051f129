"""The SVMs among which a search chooses: kernels times regularisations."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn._utils.types import Array
from deferlearn.teams.machine import MachineSettings, settings_of

# Of the grid that a number of alphas stands for: the smallest and the largest one.
ALPHAS = (1e-3, 10.0)
# Of the rbf kernel, in units of one over the typical squared distance, by so many rows.
WIDTHS = (0.3, 1.0, 3.0)
MEASURED_ROWS = 500
# With more samples than this, the exact solutions of a grid of kernel machines would take hours.
MOST_FOR_RBF = 5000
KERNEL_PARAMETERS = {"kernel", "degree", "gamma", "coef0"}


def machines_of(
    alphas: Any,
    kernels: Any,
    fit_intercept: Any,
    X: Any,
    signs: Array,
    ends: tuple[float, float] = ALPHAS,
) -> list[MachineSettings]:
    """Every machine, kernel by kernel."""
    values = _alphas_of(alphas, ends)
    machines = []
    for given in (one for kernel in kernels for one in _widths_of(kernel, X)):
        asked = SimpleNamespace(
            **{"kernel": "linear", "degree": 3, "gamma": "scale", "coef0": 0.0, **given},
            alpha=values[0],
            fit_intercept=fit_intercept,
            margin="soft",
        )
        first = settings_of(asked, X, signs)
        machines += [replace(first, alpha=alpha) for alpha in values]
    return machines


def _widths_of(kernel: Any, X: Any) -> list[dict[str, Any]]:
    """A kernel's parameters; the name "rbf" stands for several widths."""
    if isinstance(kernel, Mapping):
        return [{"kernel": "linear", **kernel}]
    if isinstance(kernel, str) and kernel == "rbf" and not sp.issparse(X):
        typical = typical_distance(X)
        return [{"kernel": kernel, "gamma": width / typical} for width in WIDTHS]
    return [{"kernel": kernel}]


def suits_rbf(X: Any) -> bool:
    """Whether a search tries the rbf kernel where nothing else is asked for."""
    return not sp.issparse(X) and X.shape[0] <= MOST_FOR_RBF


def typical_distance(X: Array) -> float:
    """The median of the squared distances between some rows that differ; 1 if none do."""
    rows = np.linspace(0, len(X) - 1, min(len(X), MEASURED_ROWS)).astype(np.int64)
    apart = pdist(np.asarray(X[rows], dtype=np.float64), "sqeuclidean")
    apart = apart[apart > 0]
    typical = float(np.median(apart)) if len(apart) else 1.0
    return typical if np.isfinite(typical) else 1.0


def _alphas_of(asked: Any, ends: tuple[float, float]) -> list[float]:
    if is_whole(asked) and asked >= 1:
        return [float(a) for a in np.geomspace(*ends, int(asked))]
    if not np.iterable(asked) or isinstance(asked, str | Mapping):
        raise ValueError(
            f"alphas={plain(asked)!r} must be the number of values to try, or a list of positive numbers."
        )
    alphas = list(asked)
    for alpha in alphas:
        if not is_number(alpha) or alpha <= 0:
            raise ValueError(f"alphas has {plain(alpha)!r}; each must be a positive number.")
    if not alphas:
        raise ValueError(f"alphas={asked!r} is empty; give at least one.")
    return [float(alpha) for alpha in alphas]


def check_kernel(kernel: Any) -> None:
    """Refuse a dict with entries that no kernel has."""
    strange = set(kernel) - KERNEL_PARAMETERS if isinstance(kernel, Mapping) else set()
    if strange:
        raise ValueError(
            f"kernels has {kernel!r}: {sorted(strange)[0]!r} is not one of {sorted(KERNEL_PARAMETERS)}."
        )


def kernel_name(kernel: Any) -> Any:
    """The name, or the function, of an entry of the kernels to try."""
    return kernel.get("kernel", "linear") if isinstance(kernel, Mapping) else kernel
