"""Generated problems: every variant of the objective crossed with every degenerate shape of data.

`problem(seed)` is a pure function of the seed. Variant and shape are the digits of the seed, so any
run of consecutive seeds covers all pairs systematically; scale, alpha and weights are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from witness import Witness, gram, own_gap, resolve_gamma, witness_value

# `make test-all` sets it: ten times as many problems, and more of each sequence.
FULL = os.environ.get("DEFERLEARN_FULL", "") not in ("", "0")

Rng = np.random.Generator
Data = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """Data and the keywords of SVMObjective; `name` is meant for failure messages."""

    X: Any
    y: np.ndarray
    params: dict[str, Any]
    name: str

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def hard(self) -> bool:
        return bool(self.params["margin"] == "hard")

    def size(self, value: float) -> float:
        """What errors of F are relative to.

        max(1, F), as F counts hinges of size 1; but the hard margin has no hinges, its F is
        proportional to alpha and may be 1e-20: there only F itself gives a test that can fail.
        """
        return value if self.hard else max(1.0, value)

    def objective(self) -> Any:
        from deferlearn.objective import SVMObjective

        return SVMObjective(self.X, self.y, **self.params)

    def witness(self, kept: np.ndarray | None = None) -> Witness:
        return witness_value(self.X, self.y, **self.params, kept=kept)

    def own_gap(self, objective: Any) -> float:
        return own_gap(objective, self.X, self.y, **self.params)

    def restrict(self, kept: np.ndarray) -> Problem:
        """The same problem on the kept rows alone, as a newcomer would state it."""
        params = dict(self.params)
        if params["kernel"] == "precomputed":
            X = self.X[np.ix_(kept, kept)]
        else:
            X = self.X[np.flatnonzero(kept)]
            if params["kernel"] in ("poly", "rbf"):
                # "scale" would be resolved anew on fewer rows, and give another kernel.
                params["gamma"] = resolve_gamma(self.X, params["gamma"])
        if params["weights"] is not None:
            params["weights"] = params["weights"][kept]
        return Problem(X, self.y[kept], params, f"{self.name} restricted to {int(kept.sum())} rows")


# ------------------------------------------------------------------------------------- shapes


def _labels(rng: Rng, n: int) -> np.ndarray:
    """Random labels with both classes present (if n allows)."""
    y = rng.choice([-1.0, 1.0], size=n)
    y[:2] = [1.0, -1.0][:n]
    return y


def _size(rng: Rng) -> tuple[int, int]:
    return int(rng.integers(3, 61)), int(rng.integers(1, 9))


def overlapping(rng: Rng) -> Data:
    n, d = _size(rng)
    y = _labels(rng, n)
    return rng.normal(size=(n, d)) + 0.7 * y[:, None] / np.sqrt(d), y


def separable(rng: Rng) -> Data:
    n, d = _size(rng)
    y = _labels(rng, n)
    X = rng.normal(size=(n, d))
    X[:, 0] = y * (np.abs(X[:, 0]) + 0.3)
    return X, y


def random_labels(rng: Rng) -> Data:
    n, d = _size(rng)
    return rng.normal(size=(n, d)), _labels(rng, n)


def many_features(rng: Rng) -> Data:
    n = int(rng.integers(3, 25))
    return rng.normal(size=(n, n + int(rng.integers(1, 40)))), _labels(rng, n)


def duplicates_same_label(rng: Rng) -> Data:
    X, y = overlapping(rng)
    again = rng.integers(0, len(y), size=len(y) // 2)
    return np.vstack([X, X[again]]), np.concatenate([y, y[again]])


def duplicates_opposite_label(rng: Rng) -> Data:
    X, y = overlapping(rng)
    again = rng.integers(0, len(y), size=len(y) // 2 + 1)
    return np.vstack([X, X[again]]), np.concatenate([y, -y[again]])


def collinear(rng: Rng) -> Data:
    n, d = _size(rng)
    y = _labels(rng, n)
    along = np.round(rng.normal(size=n) + 0.5 * y, 1)
    return along[:, None] * rng.integers(-2, 3, size=d), y


def constant_features(rng: Rng) -> Data:
    X, y = overlapping(rng)
    return np.hstack([X, np.full((len(y), 1), 3.0), np.zeros((len(y), 1))]), y


def integer_grid(rng: Rng) -> Data:
    n, d = _size(rng)
    return rng.integers(-2, 3, size=(n, min(d, 3))).astype(float), _labels(rng, n)


def symmetric_ties(rng: Rng) -> Data:
    """Every point with its mirror image in the other class: events come in equal pairs."""
    n, d = _size(rng)
    half = rng.integers(-3, 4, size=(n // 2 + 1, d)).astype(float)
    return np.vstack([half, -half]), np.repeat([1.0, -1.0], len(half))


def plane(rng: Rng) -> Data:
    """Two dimensions: with a large alpha no sample is on the margin (see `_regularisation`)."""
    n = int(rng.integers(4, 61))
    y = _labels(rng, n)
    return rng.normal(size=(n, 2)) + y[:, None], y


def ring(rng: Rng) -> Data:
    """For quadratic kernels, which have rank 3 in the plane."""
    n = int(rng.integers(6, 61))
    X = rng.normal(size=(n, 2))
    y = np.where((X**2).sum(axis=1) > 1.4, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y


def lone_sample(rng: Rng) -> Data:
    """One sample of its class: its removal leaves one class."""
    X, y = random_labels(rng)
    y[:] = -1.0
    y[int(rng.integers(len(y)))] = 1.0
    return X, y if rng.random() < 0.5 else -y


def one_class(rng: Rng) -> Data:
    X, y = random_labels(rng)
    return X, np.full(len(y), rng.choice([-1.0, 1.0]))


def two_samples(rng: Rng) -> Data:
    X = rng.normal(size=(2, int(rng.integers(1, 5))))
    if rng.random() < 0.3:
        X[1] = X[0]
    return X, rng.choice([-1.0, 1.0], size=2)


def one_sample(rng: Rng) -> Data:
    return rng.normal(size=(1, int(rng.integers(1, 5)))), rng.choice([-1.0, 1.0], size=1)


def all_zero(rng: Rng) -> Data:
    n, d = _size(rng)
    return np.zeros((n, d)), _labels(rng, n)


def far_from_origin(rng: Rng) -> Data:
    X, y = overlapping(rng)
    return X + rng.normal(scale=30.0, size=X.shape[1]), y


def uneven_features(rng: Rng) -> Data:
    X, y = overlapping(rng)
    return X * 10.0 ** rng.uniform(-3, 3, size=X.shape[1]), y


def mostly_zero(rng: Rng) -> Data:
    n, d = _size(rng)
    X = rng.normal(size=(n, d)) * (rng.random(size=(n, d)) < 0.25)
    return X, _labels(rng, n)


SHAPES: tuple[Callable[[Rng], Data], ...] = (
    overlapping, separable, random_labels, many_features, duplicates_same_label,
    duplicates_opposite_label, collinear, constant_features, integer_grid, symmetric_ties, plane,
    ring, lone_sample, one_class, two_samples, one_sample, all_zero, far_from_origin,
    uneven_features, mostly_zero,
)  # fmt: skip

# ----------------------------------------------------------------------------------- variants

# (kernel, sparse, margin), each with and without offset.
VARIANTS: tuple[tuple[str, bool, str, bool], ...] = tuple(
    (kernel, sparse, margin, offset)
    for kernel, sparse, margin in (
        ("linear", False, "soft"),
        ("linear", True, "soft"),
        ("poly", False, "soft"),
        ("rbf", False, "soft"),
        ("precomputed", False, "soft"),
        ("callable", False, "soft"),
        ("linear", False, "hard"),
    )
    for offset in (True, False)
)

# Beyond this ratio of Gram matrix to alpha, F depends on the last digit of the kernel values:
# a difference of one rounding in K moves F by about eps * ratio * n / 16 (see tests/witness.py).
GRAM_OVER_ALPHA = 1e6


def linear_gram(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return X @ Z.T


def quadratic_gram(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return (X @ Z.T) ** 2


def laplacian_gram(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.exp(-np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2))


CALLABLES = (linear_gram, quadratic_gram, laplacian_gram)


def problem(seed: int) -> Problem:
    """The seed-th problem: same seed, same problem."""
    rng = np.random.default_rng([20, seed])
    kernel, sparse, margin, offset = VARIANTS[seed % len(VARIANTS)]
    shape = SHAPES[(seed // len(VARIANTS)) % len(SHAPES)]
    X, y = shape(rng)
    if margin == "hard":
        X = _make_separable(X, y, offset, rng)
    scale, alpha, where = _regularisation(rng, shape)
    X = X * scale
    params: dict[str, Any] = {"kernel": kernel, "fit_intercept": offset, "margin": margin}
    if kernel == "poly":
        params["degree"] = int(rng.integers(1, 4))
        params["coef0"] = float(rng.choice([0.0, 1.0]))
    if kernel in ("poly", "rbf"):
        params["gamma"] = (
            "scale" if rng.random() < 0.5 else float(rng.choice([0.1, 1.0])) / scale**2
        )
    if kernel in ("precomputed", "callable"):
        function = CALLABLES[int(rng.integers(len(CALLABLES)))]
        params["kernel"] = function
        if kernel == "precomputed":
            X = function(X, X)
            X, params["kernel"] = (X + X.T) / 2, "precomputed"
    if kernel != "linear":
        keywords = {k: params[k] for k in ("degree", "coef0", "gamma") if k in params}
        largest = float(np.abs(gram(X, X, params["kernel"], **keywords)).max())
        alpha = max(alpha, largest / GRAM_OVER_ALPHA)
    params["alpha"] = alpha
    params["weights"], weighting = _weights(rng, y)
    name = (
        f"seed {seed}: {margin} {kernel}{' sparse' if sparse else ''}"
        f"{'' if offset else ' without offset'}, {shape.__name__} {X.shape[0]}x{X.shape[1]}, "
        f"scale {scale:.1e}, alpha {alpha:.1e} ({where}), weights {weighting}"
    )
    return Problem(sp.csr_array(X) if sparse else X, y, params, name)


def chunks(first: int, count: int, size: int) -> list[range]:
    """Ranges of seeds, for parametrize: xdist spreads them, and a failure names its seeds."""
    return [range(s, min(s + size, first + count)) for s in range(first, first + count, size)]


def _regularisation(rng: Rng, shape: Callable[[Rng], Data]) -> tuple[float, float, str]:
    """(scale of X, alpha): ordinary, anywhere in the range, or at its corners."""
    draw = rng.random()
    if shape is plane and draw < 0.5:
        return 1.0, float(10.0 ** rng.uniform(0, 3)), "empty margin"
    if draw < 0.4:
        return 1.0, float(10.0 ** rng.uniform(-4, 1)), "ordinary"
    if draw < 0.8:
        return float(10.0 ** rng.uniform(-6, 6)), float(10.0 ** rng.uniform(-6, 6)), "wide"
    return float(rng.choice([1e-6, 1e6])), float(rng.choice([1e-6, 1e6])), "corner"


def _weights(rng: Rng, y: np.ndarray) -> tuple[np.ndarray | None, str]:
    draw = rng.random()
    if draw < 0.55:
        return None, "unit"
    if draw < 0.7:
        return rng.uniform(0.2, 3.0, size=len(y)), "random"
    if draw < 0.85:
        return np.where(y > 0, float(rng.integers(2, 6)), 1.0), "by class"
    return 10.0 ** rng.uniform(-1.5, 1.5, size=len(y)), "ratio 1e3"


def _make_separable(X: np.ndarray, y: np.ndarray, offset: bool, rng: Rng) -> np.ndarray:
    """Fold each class onto its side of a hyperplane, which keeps ties, duplicates and constants."""
    normal = np.eye(X.shape[1])[0]
    if rng.random() < 0.5:
        normal = rng.normal(size=X.shape[1])
        normal /= np.linalg.norm(normal)
    along = X @ normal
    folded = y * (np.abs(along) + rng.choice([1.0, 0.05]))
    shift = rng.choice([0.0, 2.0]) if offset else 0.0
    return X + (folded + shift - along)[:, None] * normal


# --------------------------------------------------------------------------------- hypothesis


@st.composite
def small_problems(draw: st.DrawFn) -> Problem:
    """Few samples with small whole coordinates: nearly everything is tied, flat or duplicated."""
    n = draw(st.integers(1, 8))
    d = draw(st.integers(1, 3))
    row = st.lists(st.integers(-2, 2), min_size=d, max_size=d)
    X = np.array(draw(st.lists(row, min_size=n, max_size=n)), dtype=float)
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    weights = draw(st.none() | st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=n, max_size=n))
    kernel = draw(st.sampled_from(["linear", "poly", "rbf"]))
    params: dict[str, Any] = {
        "alpha": draw(st.sampled_from([1e-3, 0.01, 0.125, 0.5, 1.0, 10.0])),
        "kernel": kernel,
        "fit_intercept": draw(st.booleans()),
        "margin": "soft",
        "weights": None if weights is None else np.array(weights),
    }
    if kernel != "linear":
        params["gamma"] = draw(st.sampled_from([0.5, 1.0]))
    if kernel == "poly":
        params["degree"] = draw(st.integers(1, 3))
        params["coef0"] = draw(st.sampled_from([0.0, 1.0]))
    return Problem(X, y, params, f"small {X.tolist()} {y.tolist()} {params}")


@st.composite
def small_separable_problems(draw: st.DrawFn) -> Problem:
    """The same for the hard margin: each sample is pushed to its side along the first axis."""
    soft = draw(small_problems())
    X = soft.X.copy()
    X[:, 0] = soft.y * (np.abs(X[:, 0]) + 1.0)
    params = {
        "alpha": soft.params["alpha"],
        "kernel": "linear",
        "fit_intercept": soft.params["fit_intercept"],
        "margin": "hard",
        "weights": soft.params["weights"],
    }
    name = f"small hard {X.tolist()} {soft.y.tolist()} {params}"
    return replace(soft, X=X, params=params, name=name)
