"""The SVM's optimal value as a set function, with exact marginal gains and removals."""

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deferlearn._utils.checks import check_flag
from deferlearn._utils.digest import digest
from deferlearn._utils.threads import one_blas_thread
from deferlearn._utils.types import Array, Bools, Index
from deferlearn.kernels import KernelGram, LinearGram, kernel_function, make_gram
from deferlearn.kernels.doubledouble import weighted_row_sum
from deferlearn.objective import solver
from deferlearn.objective.advice import kernel_remedy, unequal_columns, warn_of_large_values
from deferlearn.objective.arrays import Ends
from deferlearn.objective.evaluation import exact_gains, idle_end, leaves_nothing, optimal
from deferlearn.objective.faint import faint_columns
from deferlearn.objective.first_use import compile_on_first_use
from deferlearn.objective.path import OUT
from deferlearn.objective.protocol import Objective, Pick, Rounds
from deferlearn.objective.rounds import Plan, Terms
from deferlearn.objective.screening import Screening, check_score, first_bounds
from deferlearn.objective.solver import Counters
from deferlearn.objective.stage import WHOLE_ARENA, Stage, rounds_ahead
from deferlearn.objective.state import Problem, State, WorkingSet, empty_state, whole_set
from deferlearn.objective.validation import (
    check_alpha,
    check_cache_size,
    check_indices,
    check_labels,
    check_new,
    check_polynomial,
    check_problem,
    count_jobs,
    kernel_width,
)

# End states of candidates' paths that are kept, so that committing one of them costs nothing; fewer where
# their inverses would take more bytes than this.
ENDS_KEPT, ENDS_BYTES = 8, 2**28
# Entries of X up to which a first solution is quicker with one thread than with several.
SMALL = 10**6
# alpha times a weight over the size of the kernel: beyond, sums of such numbers mean nothing.
SMALLEST_MU, LARGEST_MU = 1e-100, 1e100


# With columns whose sizes have a larger ratio than this, more samples than this take minutes.
SLOW_RATIO, SLOW_SAMPLES = 3e6, 500
# Gains at once where paths are carried in pairs: bounds are loose there, and many gains are asked for.
AT_ONCE_PRECISE = 16


def _scaled(alpha: float, unit: float, weight: Array) -> float:
    """Alpha in the engine's units, if floats can hold what follows from it."""
    scaled = float(alpha) / unit
    lightest, heaviest = float(weight.min()), float(weight.max())
    if not SMALLEST_MU < scaled * lightest <= scaled * heaviest < LARGEST_MU:
        raise ValueError(
            f"alpha={alpha!r} cannot be set against kernel values of size {unit:g} and weights "
            f"of {heaviest:g} in floats; rescale them."
        )
    return scaled


class SVMObjective(Objective):
    r"""How much the SVM loses on the samples it keeps, and how that changes when one is deferred.

    For the kept samples :math:`A = V \setminus S`, with weights :math:`u_i` (one by default) and
    :math:`m = \sum_{i \in A} u_i`,

    .. math::

        F(A) = \min_{w, b} \; \alpha m \|w\|^2 + \sum_{i \in A} u_i [1 - y_i (w^T \phi_i + b)]_+ ,

    the machine's part of the paper's Eq. (2); ``alpha`` is the paper's lambda. With a hard margin
    the hinge losses are constraints. The paper's set function is :math:`g(S) = F(V) - F(V \setminus S)`
    and the marginal gain of deferring k is :math:`F(A) - F(A \setminus k) \ge 0`.

    Scaling: ``mu = 2 * alpha * m`` is the weight of ``|w|^2 / 2`` against the sum of the hinge losses, so
    scikit-learn's C is ``1 / mu`` and changes with every removal. Dual variables lie between 0 and the
    weight of their sample, and ``w = sum_i dual_i y_i phi_i / mu``. Arrays such as `kept` and `dual`
    have one entry per row of X, removed samples included; gains and bounds have one entry for each sample
    that was asked for.

    Nothing is refitted: the exact solution is followed along a piecewise linear path while a sample
    leaves. Every state that is reached has been verified (`optimality_residual`). Columns of a linear
    kernel that are a millionth of others, and so small that they change F by less than 1e-12, are left out:
    their coefficients are zero. One objective is for one thread; a `copy` for each is cheap,
    since the data are shared.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Sparse for the linear kernel only; the Gram matrix if ``kernel="precomputed"``.
    y : array-like of shape (n_samples,)
        Labels -1 and +1; one of them alone is allowed.
    alpha : float, default=1.0
        Regularisation, the paper's lambda; positive.
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        A callable gets two sets of rows and returns their kernel values.
    degree, gamma, coef0 : float
        As in :class:`sklearn.svm.SVC`: ``(gamma <x, x'> + coef0) ** degree`` and
        ``exp(-gamma |x - x'|^2)``; ``gamma="scale"`` is ``1 / (n_features * X.var())``.
    fit_intercept : bool, default=True
        Whether there is an offset b.
    margin : {"soft", "hard"}, default="soft"
        "hard" is for the linear kernel and separable classes.
    weights : array-like of shape (n_samples,), default=None
        Positive weight of the error on each sample.
    cache_size : float, default=512
        Megabytes for kernels other than the linear one. The whole Gram matrix is kept where it and what
        it takes to make it fit (up to 4096 samples), beyond that columns of it, and what bounds carry
        from one state to the next; X and about 200 MB come on top of that, more where thousands of
        samples are on the margin. It changes the time, not the results.
    n_jobs : int or None, default=None
        Number of threads for the bounds and gains of many candidates, -1 for as many as there are
        processors. The results are the same, bit by bit.

    Attributes
    ----------
    counters : Counters
        What has been solved so far, repairs included.

    Examples
    --------
    >>> from deferlearn.objective import SVMObjective
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
    >>> objective = SVMObjective(X, y, alpha=0.1)
    >>> gains = objective.gains(range(5))
    >>> int(gains.argmax())  # the sample on the wrong side
    4
    >>> before = objective.value
    >>> objective.remove(4)
    >>> bool(abs(before - objective.value - gains[4]) < 1e-12)
    True
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        alpha: float = 1.0,
        *,
        kernel: Any = "linear",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        margin: str = "soft",
        weights: ArrayLike | None = None,
        cache_size: float = 512,
        n_jobs: int | None = None,
    ) -> None:
        X, labels, weight = check_problem(X, y, alpha, kernel, margin, weights)
        check_polynomial(degree, coef0)
        offset = check_flag("fit_intercept", fit_intercept)
        self._X = X
        self._kernel, self._degree, self._coef0 = kernel, degree, coef0
        self._alpha = float(alpha)
        self._gamma = kernel_width(gamma, X, kernel)
        self._faint = np.zeros(X.shape[1], dtype=bool)
        rows = X
        if (
            isinstance(kernel, str)
            and kernel == "linear"
            and margin == "soft"
            and not sp.issparse(X)
        ):
            self._faint = faint_columns(X, weight, float(alpha), offset)
            if self._faint.any():
                rows = np.where(self._faint, 0.0, X)
        gram = make_gram(
            rows, labels, kernel=kernel, degree=degree, gamma=self._gamma, coef0=coef0,
            offset=offset, memory=check_cache_size(cache_size),
        )  # fmt: skip
        if isinstance(gram, KernelGram):
            gram.remedy = kernel_remedy(X, kernel, degree, self._gamma, coef0)
        scaled = _scaled(alpha, gram.unit, weight)
        if callable(kernel) or kernel in ("poly", "rbf"):
            warn_of_large_values(gram, scaled, kernel)
        self._problem = Problem(
            gram=gram,
            y=labels,
            weight=weight,
            upper=weight if margin == "soft" else np.full(len(labels), np.inf),
            alpha=scaled,
            offset=offset,
            root=np.sqrt(np.maximum(gram.diagonal, 0.0)),
            hard=margin == "hard",
        )
        self._screening = Screening(count_jobs(n_jobs))
        self._solve()

    def _solve(self) -> None:
        """Find the state in which every sample is kept."""
        self.counters = Counters()
        compile_on_first_use()
        self._working_set_: WorkingSet | None = None
        self._state = empty_state(self._problem)
        with one_blas_thread() if self._X.size <= SMALL else nullcontext():
            solver.solve(self._state, self.counters)
        self._moved()

    def _moved(self) -> None:
        """Drop what belonged to the last state."""
        self._ends: OrderedDict[int, Ends | State] = OrderedDict()
        self._idle: dict[float, tuple[Ends, Bools] | None] = {}
        # A working set that holds every sample serves every state.
        if self._working_set_ is not None and not self._working_set_.whole:
            self._working_set_ = None

    @property
    def _working_set(self) -> WorkingSet:
        current = self._working_set_
        if current is None or current.precise != self._state.precise:
            self._working_set_ = current = solver.working_set(self._state)
        return current

    # -- the set function ---------------------------------------------------------------------

    @property
    def value(self) -> float:
        """F of the kept samples."""
        return self._state.value

    def gain(self, k: int) -> float:
        """Exact marginal gain of deferring sample k."""
        index = check_indices([k], self._state.kept)
        k = int(index[0])
        if k not in self._ends and not leaves_nothing(self._state, index)[0]:
            state, ws = self._state, self._working_set
            alone = solver.candidates_of(state, ws, index)
            end = solver.removal_ends(state, ws, alone, self.counters)
            if optimal(state, ws, end)[0]:
                self.counters.n_exact += 1
                self._keep(k, end)
                return max(0.0, float(end.gain[0]))
        known = self._ends.get(k)
        if isinstance(known, Ends):
            return max(0.0, float(known.gain[0]))
        return max(0.0, self._state.value - self._without(k).value)

    def gains(self, ks: Iterable[int]) -> Array:
        """Exact marginal gains of several samples, each taken alone."""
        index = check_indices(ks, self._state.kept)
        with one_blas_thread():
            return exact_gains(
                self._state, self._working_set, index, self.counters, self._screening.n_jobs
            )

    @property
    def gains_at_once(self) -> int:
        """Many, where states are carried in twice the digits; else one, whose end `remove` then knows."""
        return AT_ONCE_PRECISE if self._state.precise else 1

    def gain_bounds(self, ks: Iterable[int]) -> tuple[Array, Array]:
        """Certified lower and upper bounds of the gains of several samples, cheaply.

        They meet for every sample whose dual variable stays zero.
        """
        index = check_indices(ks, self._state.kept)
        return self._screening.gain_bounds(
            self._state, self._working_set, index, None, self.gain, self.counters
        )

    def score_bounds(
        self, ks: Iterable[int], scale: float, cost: ArrayLike, tol: float = 0.0
    ) -> tuple[Array, Array]:
        """Bounds of gains, tight only as far as it tells the largest ``scale * gain - cost``.

        Bounds that show that a sample is not the one are left as wide as they are; of the others most,
        usually all, are solved, so that their bounds meet.

        Parameters
        ----------
        ks : iterable of int
            Kept samples.
        scale : float
            Positive.
        cost : array-like
            One number for each of ks.
        tol : float in [0, 1), default=0.0
            The largest up to the factor ``1 - tol`` is good enough.

        Returns
        -------
        lower, upper : ndarrays
            Of the gains.
        """
        index = check_indices(ks, self._state.kept)
        score = check_score(scale, cost, tol, len(index))
        return self._screening.gain_bounds(
            self._state, self._working_set, index, score, self.gain, self.counters
        )

    def rounds_ahead(self, rounds: Rounds) -> list[Pick]:
        """Remove the best candidate of each round, for as many rounds as can be made quickly."""
        state, drawn = self._state, rounds.drawn
        partial = drawn is not None and self.n_samples > WHOLE_ARENA
        if state.precise or state.trivial or state.problem.hard or partial:
            return []
        if drawn is None:
            drawn = np.empty((len(rounds.omegas), 0), dtype=np.int64)
        plan = Plan(rounds.omegas, rounds.lowest, rounds.highest, drawn)
        terms = Terms(solver.GAP, rounds.tie, rounds.unit, solver.most_steps(self.n_samples))
        state = state.copy()
        with one_blas_thread():
            picks, self._screening.stage = rounds_ahead(
                state, self._screening.stage, rounds.cost, rounds.allowed.copy(), plan, terms,
                self.counters,
            )  # fmt: skip
        if picks:
            self._moved()
            self._state = state
        return picks

    def remove(self, k: int) -> None:
        """Defer sample k: the state moves on to the kept samples without it."""
        index = check_indices([k], self._state.kept)
        state = self._without(int(index[0]))
        self._moved()  # first what belonged to the old state goes: an interrupt leaves nothing stale
        self._state = state
        self.counters.n_removed += 1

    def _without(self, k: int) -> State:
        """The verified state without sample k."""
        known = self._ends.get(k)
        if isinstance(known, State):
            return known
        state = self._state.copy()
        solver.remove(state, self._working_set, k, self.counters, known)
        if known is None:
            self.counters.n_exact += 1
        self._keep(k, state)
        return state

    def _keep(self, k: int, end: Ends | State) -> None:
        self._ends[k] = end
        most = max(1, min(ENDS_KEPT, ENDS_BYTES // max(end.free.R.nbytes, 1)))
        while len(self._ends) > most:
            self._ends.popitem(last=False)

    def copy(self) -> "SVMObjective":
        """An independent objective in the same state; the data are shared.

        It holds what the state consists of, `nbytes`, and nothing else that the original has worked out.
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._state = self._state.copy()
        other.counters = Counters(**vars(self.counters))
        other._moved()
        return other

    def with_alpha(self, alpha: float) -> "SVMObjective":
        """An objective with another regularisation; it keeps the same samples, and shares the data.

        The exact solution is followed from this alpha to the other, along a piecewise linear path: the
        closer the two are, the faster this is.

        Parameters
        ----------
        alpha : float
            Positive.

        Returns
        -------
        objective : SVMObjective
            Verified like any other state.

        Examples
        --------
        >>> from deferlearn.objective import SVMObjective
        >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
        >>> there = SVMObjective(X, y, alpha=1.0).with_alpha(0.1)
        >>> bool(abs(there.value - SVMObjective(X, y, alpha=0.1).value) < 1e-12)
        True
        """
        check_alpha(alpha)
        if self._faint.any() and alpha < self._alpha:
            return self._from_nothing(alpha)  # columns that were left out may count there
        other = self.copy()
        other._alpha = float(alpha)
        scaled = _scaled(alpha, self._problem.gram.unit, self._problem.weight)
        stage = self._screening.stage
        ws = self._working_set
        if not ws.whole and self.n_samples <= WHOLE_ARENA and not self._state.precise:
            ws = stage.ws if stage is not None else whole_set(self._problem)
        with one_blas_thread():
            other._state = solver.change_alpha(self._state, ws, scaled, other.counters)
        other._problem = other._state.problem
        other._screening = Screening(self._screening.n_jobs)
        if ws.whole and not ws.precise:
            other._screening.stage = Stage(other._state, ws)
        other._moved()
        return other

    def _from_nothing(self, alpha: float) -> "SVMObjective":
        """An objective of a linear kernel with another alpha, solved without this one."""
        problem = self._problem
        other = SVMObjective(
            self._X, problem.y, alpha, fit_intercept=problem.offset, weights=problem.weight,
            n_jobs=self._screening.n_jobs,
        )  # fmt: skip
        for k in self.removed.tolist():
            other.remove(k)
        return other

    @property
    def nbytes(self) -> int:
        """Bytes that a copy takes on top of what all copies share."""
        return self._state.nbytes

    # -- as a part of a sum -------------------------------------------------------------------

    def with_labels(self, y: ArrayLike) -> "SVMObjective":
        """An objective on the same data with other labels, every sample kept; kernel values are shared.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels -1 and +1; one of them alone is allowed.

        Returns
        -------
        objective : SVMObjective
            The same as a new one, bit for bit.

        Examples
        --------
        >>> from deferlearn.objective import SVMObjective
        >>> X = [[-2.0], [-1.0], [1.0], [2.0]]
        >>> other = SVMObjective(X, [-1, -1, 1, 1]).with_labels([-1, 1, 1, 1])
        >>> other.value == SVMObjective(X, [-1, 1, 1, 1]).value
        True
        """
        labels = check_labels(y, self.n_samples)
        other = self.copy()
        gram = self._problem.gram.relabelled(labels * self._problem.y)
        other._problem = replace(self._problem, gram=gram, y=labels)
        other._screening = Screening(self._screening.n_jobs)
        other._solve()
        return other

    def hold_everything(self, like: "SVMObjective | None" = None) -> None:
        """Keep the Gram matrix of all samples for paths: they need no check outside of a working set.

        That of another objective on the same data, which has one, is not computed again.
        """
        Q = self._problem.gram.whole
        there = None if like is None else like._working_set_
        if like is not None and Q is None and there is not None and there.whole:
            flip = self._problem.y * like._problem.y
            Q = there.arrays.Q * flip
            Q *= flip[:, None]
        self._working_set_ = whole_set(self._problem, Q)

    def first_bounds(self, ks: Index) -> tuple[Array, Array]:
        """Bounds of gains that cost next to nothing."""
        return first_bounds(self._state, ks)

    def response_bounds(self, ks: Index, floor: Array | None = None) -> Array:
        """Upper bounds of gains, tightened until each is below its floor, or few are not.

        Without floors, as tight as they can be for little.
        """
        return self._screening.response_bounds(self._state, self._working_set, ks, floor)

    def idle(self, ks: Index) -> Bools:
        """Which samples have no part in the machine: their dual variables are zero."""
        return np.asarray(self._state.a[ks] == 0.0)

    def idle_gain(self, k: int) -> tuple[float, Bools]:
        """The gain that idle samples of the weight of k share, and the mask of those that have it.

        One path serves them all; the mask is empty where that could not be proved.
        """
        found = self._idle_end(k)
        if found is None:
            return 0.0, np.zeros(self.n_samples, dtype=bool)
        end, mask = found
        return min(max(0.0, float(end.gain[0])), self._state.value), mask

    def _idle_end(self, k: int) -> tuple[Ends, Bools] | None:
        weight = float(self._problem.weight[k])
        if weight not in self._idle:
            self._idle[weight] = idle_end(self._state, self._working_set, k, self.counters)
        return self._idle[weight]

    def prepare(self, k: int) -> None:
        """Work out the state without sample k, so that removing it cannot fail."""
        found = self._idle.get(float(self._problem.weight[k]))
        if k not in self._ends and found is not None and found[1][k]:
            end = found[0]
            at, status = self._working_set.position[k], end.status.copy()
            if at >= 0:
                status[0, at] = OUT
            self._keep(k, end._replace(ks=np.array([k]), status=status))
        self._without(k)

    # -- the machine --------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Number of samples in V."""
        return len(self._problem.y)

    @property
    def problem(self) -> Problem:
        """The data in the engine's units: kernel values divided by a power of two, and alpha likewise."""
        return self._problem

    @property
    def kept(self) -> Bools:
        """Mask of the samples that the machine keeps."""
        return self._state.kept.copy()

    @property
    def slow_columns(self) -> str:
        """Which columns of X to rescale, in words, if they make each gain take far longer.

        Columns of very unequal size need twice the digits of floats. The results are exact as long as no
        error is raised, but more than 500 samples take minutes. Empty if there is nothing to rescale.
        """
        ratio, words = unequal_columns(self._problem.gram)
        slow = self._state.precise and ratio > SLOW_RATIO and self.n_samples > SLOW_SAMPLES
        return words if slow else ""

    @property
    def labels(self) -> Array:
        """The labels -1 and +1 of all samples."""
        return self._problem.y.copy()

    @property
    def removed(self) -> Index:
        """The deferred samples in the order of their removal."""
        return np.array(self._state.removed, dtype=np.int64)

    @property
    def dual(self) -> Array:
        """Dual variables: ``w = sum_i dual_i y_i phi_i / (2 alpha m)``, between 0 and the weight."""
        return np.clip(self._state.a, 0.0, self._problem.upper)  # rounding may leave -1e-22

    @property
    def intercept(self) -> float:
        """The offset b; the midpoint where an interval of offsets is optimal."""
        state, gram = self._state, self._problem.gram
        if not self._problem.offset or state.mu == 0:
            return 0.0
        low, high = (state.beta, state.beta) if state.trivial else state.beta_interval()
        if not np.isfinite(low) or not np.isfinite(high):
            low = high = state.beta
        b = (low + high) / (2.0 * state.mu)
        # The engine may have moved the origin to the centre of the rows.
        return b - float(self.coef @ gram.centre) if isinstance(gram, LinearGram) else b

    @property
    def own_decisions(self) -> Array:
        """The decision values ``w.phi_i + b`` of all samples, removed ones included."""
        state = self._state
        images = state.G - self._problem.y * state.beta + state.mu  # y_i mu w.phi_i
        if state.mu == 0.0:
            return np.zeros(self.n_samples)
        values: Array = self._problem.y * images / state.mu
        gram = self._problem.gram
        shift = float(self.coef @ gram.centre) if isinstance(gram, LinearGram) else 0.0
        return values + self.intercept + shift

    @property
    def coef(self) -> Array:
        """The weight vector w of a linear kernel."""
        gram = self._problem.gram
        if not isinstance(gram, LinearGram):
            raise AttributeError("coef exists for kernel='linear' only; use decision_function.")
        state = self._state
        if state.trivial:
            return np.zeros(gram.n_features)
        used = np.flatnonzero(state.a)
        if state.precise:
            hi, lo = gram.combine_pair(used, state.a[used], state.a_lo[used])
            return (hi + lo) / (state.mu * gram.scale)
        return gram.combine(used, state.a[used]) / (state.mu * gram.scale)

    def decision_function(self, X: Any) -> Array:
        """``w.phi(x) + b`` of new rows; for a precomputed kernel, rows of kernel values with V."""
        X = check_new(X, self._X, self._kernel)
        problem, state = self._problem, self._state
        if isinstance(problem.gram, LinearGram):
            return np.asarray(X @ self.coef) + self.intercept
        if state.trivial or X.shape[0] == 0:
            return np.full(X.shape[0], self.intercept)
        used = np.flatnonzero(state.a)
        if isinstance(self._kernel, str) and self._kernel == "precomputed":
            K = X[:, used]
        else:
            function = kernel_function(self._kernel, self._degree, self._gamma, self._coef0)
            K = function(X, self._X[used])
            if not np.isfinite(K).all():
                raise ValueError(f"kernel={self._kernel!r} gives values that are not finite here.")
        scale = state.mu * problem.gram.unit
        y = problem.y[used]
        if state.precise:
            rows = np.ascontiguousarray(K.T, dtype=np.float64)
            hi, lo = weighted_row_sum(rows, state.a[used] * y, state.a_lo[used] * y)
            return np.asarray((hi + lo) / scale + self.intercept)
        return np.asarray(K @ (state.a[used] * y)) / scale + self.intercept

    def fingerprint(self) -> dict[str, Any]:
        """Numbers, words and digests that tell these data and settings from others, under their names.

        Of a kernel that is a function, its name.

        Examples
        --------
        >>> from deferlearn.objective import SVMObjective
        >>> X, y = [[-1.0], [1.0], [2.0]], [-1, 1, 1]
        >>> one, other = (SVMObjective(X, y, alpha=a).fingerprint() for a in (0.1, 0.2))
        >>> [name for name in one if one[name] != other[name]]
        ['alpha']
        """
        X, problem, kernel = self._X, self._problem, self._kernel
        by_name = isinstance(kernel, str)
        found = {
            "labels": digest(problem.y),
            "X": digest(*_sparse_parts(X) if sp.issparse(X) else (X,)),
            "weights": digest(problem.weight),
            "alpha": problem.alpha * problem.gram.unit,
            "fit_intercept": problem.offset,
            "margin": "hard" if problem.hard else "soft",
            "kernel": kernel
            if by_name
            else getattr(kernel, "__qualname__", type(kernel).__qualname__),
        }
        if by_name and kernel in ("poly", "rbf"):
            found["gamma"] = self._gamma
        if by_name and kernel == "poly":
            found |= {"degree": float(self._degree), "coef0": float(self._coef0)}
        return found

    def optimality_residual(self) -> float:
        """Largest violation of the optimality conditions, relative to their terms, computed afresh."""
        fresh = self._state.copy()
        if fresh.trivial:
            return 0.0
        fresh.refresh(afresh=True)
        return fresh.measures.worst


def _sparse_parts(X: Any) -> tuple[Any, ...]:
    """What sparse rows consist of, whatever the integers are by which they are indexed."""
    return X.shape, X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data
