"""The machines among which `AssistedSVCCV` chooses: kernels times regularisations."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn._utils.types import Array
from deferlearn.teams.machine import MachineSettings, settings_of

# Of the grid that a number of alphas stands for.
SMALLEST_ALPHA, LARGEST_ALPHA = 1e-3, 10.0
KERNEL_PARAMETERS = {"kernel", "degree", "gamma", "coef0"}


def machines_of(
    alphas: Any, kernels: Any, fit_intercept: Any, X: Any, signs: Array
) -> list[MachineSettings]:
    """Every machine, kernel by kernel."""
    values = _alphas_of(alphas)
    machines = []
    for kernel in kernels:
        given = dict(kernel) if isinstance(kernel, Mapping) else {"kernel": kernel}
        asked = SimpleNamespace(
            **{"kernel": "linear", "degree": 3, "gamma": "scale", "coef0": 0.0, **given},
            alpha=values[0],
            fit_intercept=fit_intercept,
            margin="soft",
        )
        first = settings_of(asked, X, signs)
        machines += [replace(first, alpha=alpha) for alpha in values]
    return machines


def _alphas_of(asked: Any) -> list[float]:
    if is_whole(asked) and asked >= 1:
        return [float(a) for a in np.geomspace(SMALLEST_ALPHA, LARGEST_ALPHA, int(asked))]
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


def parameters_of(settings: MachineSettings) -> dict[str, Any]:
    """The machine's parameters that matter to its kernel."""
    used: dict[str, tuple[str, ...]] = {"poly": ("degree", "gamma", "coef0"), "rbf": ("gamma",)}
    names = used.get(settings.kernel, ()) if isinstance(settings.kernel, str) else ()
    return {
        "alpha": settings.alpha,
        "kernel": settings.kernel,
        **{name: getattr(settings, name) for name in names},
    }
