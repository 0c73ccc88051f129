"""An independent value of F, with a certificate that can be believed.

The engine solves the dual by an active-set path. The witness shares none of that: it hands the
PRIMAL quadratic program (w, b, slacks) to an interior-point solver, on data scaled by a power of
two, and then trusts nothing the solver says about itself. From the solver's answer it takes a
primal point and a dual point, makes the dual point exactly feasible, and evaluates both values in
exact integer arithmetic. F lies between them, whatever the solver did.

    primal   P(w, b) = mu/2 |w|^2 + sum u_i [1 - y_i (w.phi_i + b)]_+         mu = 2 alpha sum(u)
    dual     D(a)    = sum(a) - a'Qa / (2 mu),   0 <= a <= u,   y.a = 0 (with offset)

For the hard margin the hinge is a constraint and `a` has no upper bound.

A kernel problem is known only up to the rounding of its Gram matrix: two correct programs that
evaluate exp() in a different order solve problems whose F differs by about eps a'|K|a / (2 mu).
`Witness.gap` contains that term, so that `ok` is never claimed beyond what the data determine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import clarabel
import numpy as np
import piqp
import scipy.sparse as sp

from exact import Sample, dual_value, primal_value

# A witness counts where its gap is within the first; elsewhere the engine's own gap must be within
# the second. Both relative to `unit`.
WITNESS_GAP = 1e-10
OWN_GAP = 1e-9

Kernel = str | Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Witness:
    """F is in [value - gap, value]; `ok` says that this is accurate enough to judge the engine."""

    value: float
    gap: float
    ok: bool


def gram(
    X: np.ndarray,
    Z: np.ndarray,
    kernel: Kernel,
    *,
    degree: int = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
) -> np.ndarray:
    """Kernel values between the rows of X and Z, computed in extended precision, then rounded.

    A string for gamma is resolved on Z, the training rows.
    """
    if kernel == "precomputed":
        return np.asarray(X, dtype=float)
    if callable(kernel):
        return np.asarray(kernel(X, Z), dtype=float)
    width = np.longdouble(resolve_gamma(Z, gamma))
    A, B = np.asarray(X, dtype=np.longdouble), np.asarray(Z, dtype=np.longdouble)
    if kernel == "poly":
        return np.asarray((width * (A @ B.T) + np.longdouble(coef0)) ** degree, dtype=float)
    if kernel == "rbf":
        # Differences first: the expanded square loses digits where the rows are close.
        squares = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
        return np.asarray(np.exp(-width * squares), dtype=float)
    raise ValueError(f"the witness knows no kernel {kernel!r}")


def resolve_gamma(X: np.ndarray, gamma: float | str) -> float:
    """The number that scikit-learn's SVC uses for gamma="scale" or "auto"."""
    if gamma == "scale":
        variance = float(np.var(X))
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if gamma == "auto":
        return 1.0 / X.shape[1]
    return float(gamma)


def witness_value(
    X: Any,
    y: np.ndarray,
    alpha: float = 1.0,
    *,
    kernel: Kernel = "linear",
    degree: int = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
    fit_intercept: bool = True,
    margin: str = "soft",
    weights: np.ndarray | None = None,
    kept: np.ndarray | None = None,
) -> Witness:
    """F of the kept rows, for any variant of SVMObjective (the same keywords)."""
    sample = make_sample(
        X, y, alpha, kernel=kernel, degree=degree, gamma=gamma, coef0=coef0,
        fit_intercept=fit_intercept, margin=margin, weights=weights, kept=kept,
    )  # fmt: skip
    if not sample.n or (sample.offset and abs(sample.y.sum()) == sample.n):
        return Witness(0.0, 0.0, True)  # w = 0 and b = y_i cost nothing, and F is never negative

    upper, lower, blur, ok = np.inf, 0.0, 0.0, False
    for w_or_c, b, a in _candidates(sample):
        upper = min(upper, primal_value(sample, w_or_c, b))
        lower = max(lower, dual_value(sample, a))
        blur = _rounding_of_the_gram_matrix(sample, a)
        ok = bool(upper - lower + blur <= WITNESS_GAP * unit(sample, upper))
        if ok:
            break
    return Witness(upper, upper - lower + blur, ok)


def unit(sample: Sample, value: float) -> float:
    """What errors are relative to: max(1, F); for the hard margin, which has no hinges, F."""
    return value if sample.hard else max(1.0, value)


def own_gap(objective: Any, X: Any, y: np.ndarray, alpha: float = 1.0, **params: Any) -> float:
    """P - D of the engine's PUBLIC answer, in exact arithmetic, relative to `unit`.

    The primal point is `coef` (for kernels: dual * y / mu) and `intercept`, the dual point is
    `dual`. Neither is improved, except that a violation of y.a = 0 at rounding level is repaired,
    because the dual value of an infeasible point bounds nothing. The engine's `value` must lie
    within the bracket too: how far it lies outside is added.
    """
    kept = np.asarray(objective.kept, dtype=bool)
    sample = make_sample(X, y, alpha, kept=kept, **params)
    if not sample.n:
        return abs(float(objective.value))
    a = np.asarray(objective.dual, dtype=float)[kept]
    if sample.is_gram:
        w_or_c = np.asarray(a * sample.y / np.longdouble(float(sample.mu)), dtype=np.longdouble)
    else:
        w_or_c = np.ravel(np.asarray(objective.coef, dtype=float))
    b = float(objective.intercept) if sample.offset else 0.0
    upper, lower = primal_value(sample, w_or_c, b), dual_value(sample, a)
    outside = max(0.0, float(objective.value) - upper, lower - float(objective.value))
    gap = abs(upper - lower) + outside
    return gap / unit(sample, upper) if gap else 0.0


def make_sample(
    X: Any,
    y: np.ndarray,
    alpha: float,
    *,
    kernel: Kernel = "linear",
    degree: int = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
    fit_intercept: bool = True,
    margin: str = "soft",
    weights: np.ndarray | None = None,
    kept: np.ndarray | None = None,
) -> Sample:
    """The kept rows as one plain problem: features or Gram matrix, labels, weights, mu."""
    y = np.asarray(y, dtype=float)
    keep = np.ones(len(y), dtype=bool) if kept is None else np.asarray(kept, dtype=bool)
    u = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    if kernel == "linear":
        data = dense[keep]
    else:
        # The whole Gram matrix first: gamma="scale" refers to all of X, whatever was removed.
        K = gram(dense, dense, kernel, degree=degree, gamma=gamma, coef0=coef0)
        data = K[np.ix_(keep, keep)]
    total = sum((Fraction(float(v)) for v in u[keep]), Fraction(0))
    return Sample(
        data=data,
        is_gram=kernel != "linear",
        y=y[keep],
        u=u[keep],
        mu=2 * Fraction(float(alpha)) * total,
        offset=fit_intercept,
        hard=margin == "hard",
    )


def _rounding_of_the_gram_matrix(sample: Sample, a: np.ndarray) -> float:
    """How much F moves when every entry of K is off by one unit in the last place."""
    if not sample.is_gram:
        return 0.0
    size = float(np.asarray(a, dtype=float) @ np.sqrt(np.abs(np.diag(sample.data))))
    return float(np.finfo(float).eps) * size**2 / (2 * float(sample.mu))


# ---------------------------------------------------------------------------- the two solvers


def _candidates(sample: Sample) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """(w or c, b, a) in the sample's own scale, cheapest first."""
    features, expand = _features(sample)
    top = float(sample.u.max())
    mu = float(sample.mu) / top
    # F(X, mu) = F(X/s, mu/s^2). With s the size of X the entries are about 1; where mu dominates,
    # s = sqrt(mu) keeps the quadratic term at 1 instead. A power of two makes the scaling exact.
    size = float(np.abs(features).max(initial=0.0))
    s = _power_of_two(size if sample.hard else max(size, np.sqrt(mu)))
    Z, mu = features / s, mu / s**2
    if sample.hard:
        mu = 1.0  # w does not depend on it
    u = np.full(sample.n, np.inf) if sample.hard else sample.u / top
    back = float(sample.mu) / s**2 if sample.hard else top
    for solve in (_piqp, _clarabel):
        answer = solve(Z, sample.y, u, mu, sample.offset)
        if answer is None:
            continue
        w, b, a = answer
        yield expand(w / s, a * back), b, a * back
        a = _restore(Z, sample.y, u, a, mu * w, sample.offset)
        yield expand(w / s, a * back), b, a * back


def _features(sample: Sample) -> tuple[np.ndarray, Callable[..., np.ndarray]]:
    """Explicit features, and how a primal point in them is written for `primal_value`."""
    if not sample.is_gram:
        return sample.data, lambda w, a: w
    # K = V diag(e) V'. Eigenvalues at rounding level are noise of either sign: without them the
    # features have the numerical rank of K. The values are evaluated on K itself, so whatever was
    # dropped widens the gap and can't hide.
    e, V = np.linalg.eigh(sample.data)
    solid = e > sample.n * np.finfo(float).eps * e.max(initial=0.0)
    mu = np.longdouble(float(sample.mu))
    return V[:, solid] * np.sqrt(e[solid]), lambda w, a: sample.y * a / mu


def _power_of_two(x: float) -> float:
    return float(2.0 ** np.round(np.log2(x))) if x > 0 else 1.0


def _program(
    Z: np.ndarray, y: np.ndarray, u: np.ndarray, mu: float, offset: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P, q, G of: minimise v'Pv/2 + q'v with G v >= 1 and slacks >= 0, v = (w, b, slacks)."""
    n, d = Z.shape
    slacks = np.eye(n) if np.isfinite(u).all() else np.zeros((n, 0))
    G = np.hstack([y[:, None] * Z, y[:, None] * np.ones((n, int(offset))), slacks])
    P = np.zeros((G.shape[1], G.shape[1]))
    P[:d, :d] = mu * np.eye(d)
    q = np.zeros(G.shape[1])
    q[d + int(offset) :] = u[: slacks.shape[1]]
    return P, q, G


def _piqp(
    Z: np.ndarray, y: np.ndarray, u: np.ndarray, mu: float, offset: bool
) -> tuple[np.ndarray, float, np.ndarray] | None:
    P, q, G = _program(Z, y, u, mu, offset)
    n, d = Z.shape
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_duality_gap_abs = 1e-13
    solver.settings.eps_rel = solver.settings.eps_duality_gap_rel = 0.0
    solver.settings.max_iter = 100
    lowest = np.full(len(q), -np.inf)
    lowest[d + int(offset) :] = 0.0
    solver.setup(
        np.asfortranarray(P), q, None, None, np.asfortranarray(G), np.ones(n), None, lowest
    )
    solver.solve()
    return _split(np.array(solver.result.x), np.abs(solver.result.z_l), d, offset)


def _clarabel(
    Z: np.ndarray, y: np.ndarray, u: np.ndarray, mu: float, offset: bool
) -> tuple[np.ndarray, float, np.ndarray] | None:
    P, q, G = _program(Z, y, u, mu, offset)
    n, d = Z.shape
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-14
    settings.max_iter = 200
    rows = -np.vstack([G, np.eye(len(q))[d + int(offset) :]])
    right = np.concatenate([-np.ones(n), np.zeros(len(rows) - n)])
    cones = [clarabel.NonnegativeConeT(len(rows))]
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(P), q, sp.csc_matrix(rows), right, cones, settings
    )
    result = solver.solve()
    return _split(np.array(result.x), np.array(result.z)[:n], d, offset)


def _split(
    v: np.ndarray, a: np.ndarray, d: int, offset: bool
) -> tuple[np.ndarray, float, np.ndarray] | None:
    if not (np.isfinite(v).all() and np.isfinite(a).all()):
        return None
    return v[:d], float(v[d]) if offset else 0.0, a


def _restore(
    Z: np.ndarray, y: np.ndarray, u: np.ndarray, a: np.ndarray, target: np.ndarray, offset: bool
) -> np.ndarray:
    """Move `a` so that sum a_i y_i z_i = mu w and y.a = 0 hold to extended precision.

    The dual value contains |sum a_i y_i z_i|^2 / (2 mu): at mu = 1e-18 a solver's 1e-12 in that
    sum would ruin it. Each sample moves in proportion to its distance from the box, so that those
    at a bound stay there.
    """
    B = (y[:, None] * np.hstack([Z, np.ones((len(y), int(offset)))])).T
    goal = np.concatenate([target, np.zeros(int(offset))]).astype(np.longdouble)
    a = np.clip(a.astype(np.longdouble), 0, u)
    for _ in range(4):
        residual = np.asarray(goal - B.astype(np.longdouble) @ a, dtype=float)
        size = float(np.abs(residual).max(initial=0.0))
        if size == 0.0:
            break
        room = np.asarray(np.minimum(a, u - a), dtype=float)
        step = np.linalg.lstsq(B * room, residual / size, rcond=1e-13)[0]
        a = np.clip(a + room * step * size, 0, u)
    return a
