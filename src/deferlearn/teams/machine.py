"""The fitted machine ``w.phi(x) + b``: what prediction needs, and nothing else of the training data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deferlearn._utils.types import Array, Index

# The compiled engine is imported where it is used: a stored machine decides without it.
if TYPE_CHECKING:
    from deferlearn.objective import ApproximateSVMObjective, SumObjective, SVMObjective

    # Either can be asked for gains and for its machine.
    MachineObjective = SVMObjective | ApproximateSVMObjective

# There are at most as many free samples as samples, and as features and one more. The exact engine keeps a
# matrix of them: up to this many it is the faster one.
MOST_FREE = 2000
# Samples on which a machine is compared with the optimum that it was made from, and the largest difference.
MOST_CHECKED, MOST_WRONG = 64, 1e-4


@dataclass(frozen=True)
class MachineSettings:
    """The parameters of an SVM, with ``gamma`` as a number: all folds share the kernel of the whole."""

    alpha: float
    kernel: Any
    degree: float
    gamma: float
    coef0: float
    fit_intercept: bool
    margin: str
    cache_size: float = 512.0  # megabytes
    approximate: bool = False  # whether certified bounds of gains are enough

    # Its margins have a scale of their own, so that nothing is learned from held-out samples.
    needs_folds: ClassVar[bool] = False

    @property
    def family(self) -> str:
        """Its name in the results of a search."""
        return f"{self.kernel if isinstance(self.kernel, str) else 'kernel'} SVM"

    def team_parameters(self) -> dict[str, Any]:
        """The parameters of a team with this machine."""
        return vars(self) | {"machine": None}

    def parameters(self) -> dict[str, Any]:
        """What sets it apart from other machines: the parameters that matter to its kernel."""
        used: dict[str, tuple[str, ...]] = {"poly": ("degree", "gamma", "coef0"), "rbf": ("gamma",)}
        names = used.get(self.kernel, ()) if isinstance(self.kernel, str) else ()
        return {
            "alpha": self.alpha,
            "kernel": self.kernel,
            **{name: getattr(self, name) for name in names},
        }

    @property
    def linear(self) -> bool:
        """Whether there is a weight vector."""
        return isinstance(self.kernel, str) and self.kernel == "linear"

    @property
    def precomputed(self) -> bool:
        """Whether X holds kernel values with the training samples."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def kernel_values(self, X: Any, vectors: Any) -> Any:
        """Kernel values of the rows of X with others; X itself if it is linear or precomputed."""
        if self.linear or self.precomputed:
            return X
        from deferlearn.kernels.gram import kernel_function

        K = kernel_function(self.kernel, self.degree, self.gamma, self.coef0)(X, vectors)
        if not np.isfinite(K).all():
            raise ValueError(f"kernel={self.kernel!r} gives values that are not finite here.")
        return K

    def objective(
        self, X: Any, y: Array, weights: Array, n_jobs: int | None = None
    ) -> MachineObjective:
        """The machine's objective on these samples, solved.

        It is the approximate one if that is enough, and if thousands of samples may be on the margin.
        """
        from deferlearn.objective import ApproximateSVMObjective, SVMObjective

        soft = self.linear and self.margin == "soft"
        if self.approximate and soft and min(X.shape) > MOST_FREE:
            return ApproximateSVMObjective(
                X, y, self.alpha, fit_intercept=self.fit_intercept, weights=weights
            )
        made = SVMObjective(X, y, **self._options(), weights=weights, n_jobs=n_jobs)
        _refuse_slow_columns(made)
        return made

    def class_objective(
        self,
        X: Any,
        codes: Index,
        n_classes: int,
        kind: Any,
        weights: Array,
        n_jobs: int | None = None,
    ) -> SumObjective:
        """The sum of the objectives of the machines that tell several classes apart, solved."""
        from deferlearn.objective import class_objective

        made = class_objective(
            X, codes, n_classes, kind, **self._options(), weights=weights, n_jobs=n_jobs
        )
        for part in made.parts:
            _refuse_slow_columns(part)
        return made

    def _options(self) -> dict[str, Any]:
        """The parameters of an exact objective, whose names the settings have."""
        return {name: value for name, value in vars(self).items() if name != "approximate"}


def settings_of(estimator: Any, X: Any, signs: Array) -> MachineSettings:
    """The machine's parameters of an estimator, checked."""
    from deferlearn.objective.validation import check_polynomial, check_problem, kernel_width

    if not isinstance(estimator.fit_intercept, bool | np.bool_):
        raise ValueError(f"fit_intercept={estimator.fit_intercept!r} must be True or False.")
    check_problem(X[:1], signs[:1], estimator.alpha, estimator.kernel, estimator.margin, None)
    check_polynomial(estimator.degree, estimator.coef0)
    return MachineSettings(
        alpha=float(estimator.alpha),
        kernel=estimator.kernel,
        degree=estimator.degree,
        gamma=kernel_width(estimator.gamma, X, estimator.kernel),
        coef0=estimator.coef0,
        fit_intercept=bool(estimator.fit_intercept),
        margin=estimator.margin,
    )


@dataclass(eq=False)
class Machine:
    """``w.phi(x) + b`` by its support vectors.

    Attributes
    ----------
    settings : MachineSettings
        The kernel and its parameters.
    support : ndarray of shape (n_support,)
        Rows of the training data.
    vectors : ndarray or sparse matrix of shape (n_support, n_features), or None
        Those rows; None for a precomputed kernel.
    dual_coef : ndarray of shape (n_support,)
        ``w = sum_i dual_coef_i phi(vectors_i)``.
    coef : ndarray of shape (n_features,) or None
        w, for a linear kernel.
    intercept : float
        b.
    """

    settings: MachineSettings
    support: Index
    vectors: Any
    dual_coef: Array
    coef: Array | None
    intercept: float

    def decision_function(self, X: Any) -> Array:
        """``w.phi(x) + b`` of validated rows; of kernel values with V if the kernel is precomputed.

        A row has the same value alone as among others, to the last bit.
        """
        if self.coef is not None or self.settings.precomputed:
            return self.decide_by(X)
        if len(self.support) == 0:
            return np.full(X.shape[0], self.intercept)
        K = self.settings.kernel_values(X, self.vectors)
        return _products(K, self.dual_coef) + self.intercept

    def decide_by(self, values: Any) -> Array:
        """The same by rows of X for the linear kernel, else by kernel values with all training samples."""
        if self.coef is not None:
            return _products(values, self.coef) + self.intercept
        if len(self.support) == 0:
            return np.full(values.shape[0], self.intercept)
        return _products(values[:, self.support], self.dual_coef) + self.intercept


@dataclass(eq=False)
class SumMachine:
    """Machines for two classes that together tell several apart, a column of decision values each.

    Attributes
    ----------
    parts : list of Machine
        The machines.
    lost : list of int
        Classes of which no sample was left to learn from: they are never the answer.
    """

    parts: list[Machine]
    lost: list[int] = field(default_factory=list)

    def decision_function(self, X: Any) -> Array:
        """Decision values of validated rows: (n_samples, n_machines)."""
        values = np.column_stack([part.decision_function(X) for part in self.parts])
        return below_others(values, self.lost)


def below_others(values: Array, lost: list[int]) -> Array:
    """Decision values in which lost classes are below all others."""
    if lost:
        others = np.delete(values, lost, axis=1)
        values[:, lost] = others.min(axis=1, keepdims=True) - 1.0
    return values


AnyMachine = Machine | SumMachine


def _products(X: Any, weights: Array) -> Array:
    """``X @ weights``, where the rounding of a row does not depend on the rows around it, as in BLAS."""
    if hasattr(X, "tocsr"):
        return np.asarray(X @ weights).ravel()
    return np.asarray(np.einsum("ij,j->i", np.ascontiguousarray(X), weights))


def machine_of(
    objective: MachineObjective, X: Any, y: Array, weights: Array, settings: MachineSettings
) -> Machine:
    """The machine in an objective's present state.

    Where one class alone is left, the machine answers with it, whatever x is: with an offset that is
    the optimum, and without one it is the only sense in which a machine can know a single class. Where
    nothing is left, it answers with the majority of y (the smaller label if there is none).
    """
    from deferlearn.objective.scaling import mu_from_alpha

    kept = objective.kept
    if len(np.unique(y[kept])) < 2:
        votes = y[kept] if kept.any() else y
        return _constant(1.0 if votes.sum() > 0 else -1.0, X, settings)
    dual = objective.dual
    support = np.flatnonzero(dual)
    mu = mu_from_alpha(settings.alpha, float(weights[kept].sum()))
    machine = Machine(
        settings=settings,
        support=support,
        vectors=None if settings.precomputed else X[support],
        dual_coef=dual[support] * y[support] / mu,
        coef=objective.coef if settings.linear else None,
        intercept=float(objective.intercept),
    )
    _check_machine(machine, objective, X, y, weights)
    return machine


def _refuse_slow_columns(objective: Any) -> None:
    """Refuse columns of such unequal sizes that fits take minutes, and say which."""
    from deferlearn.objective import NumericalError

    words = objective.slow_columns
    if words:
        raise NumericalError(f"The columns of X are too unequal for an SVM. {words}")


def _check_machine(
    machine: Machine, objective: MachineObjective, X: Any, y: Array, weights: Array
) -> None:
    """Refuse a machine that decides otherwise than the optimum that it was made from.

    The optimum may be carried in twice the digits of floats, and a machine is made of floats: where its
    terms are far larger than their sum, rounding is all that is left of it.
    """
    from deferlearn.objective import NumericalError, SVMObjective

    if not isinstance(objective, SVMObjective):
        return
    kept = np.flatnonzero(objective.kept)
    rows = kept[np.unique(np.linspace(0, len(kept) - 1, MOST_CHECKED).astype(np.int64))]
    expected = objective.own_decisions[rows]
    said = machine.decision_function(X[rows])
    worst = float((np.abs(said - expected) / np.maximum(1.0, np.abs(expected))).max())
    # The losses on some of the samples are at most F, which holds those of all.
    loss = float(weights[rows] @ np.maximum(0.0, 1.0 - y[rows] * said))
    if worst <= MOST_WRONG and loss <= objective.value + MOST_WRONG * max(1.0, objective.value):
        return
    raise NumericalError(
        f"The fitted machine is not the optimum that was found: its decision values differ by {worst:.1e} "
        f"of their size, and on {len(rows)} samples it loses {loss:.3g} where all may lose "
        f"{objective.value:.3g}. With these features decision values are small differences of huge "
        "numbers, which floats cannot hold. Rescale the columns of X, for example with StandardScaler."
    )


def _constant(answer: float, X: Any, settings: MachineSettings) -> Machine:
    return Machine(
        settings=settings,
        support=np.empty(0, dtype=np.int64),
        vectors=None if settings.precomputed else X[:0],
        dual_coef=np.empty(0),
        coef=np.zeros(X.shape[1]) if settings.linear else None,
        intercept=answer,
    )
