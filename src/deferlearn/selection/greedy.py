"""The loop that all algorithms share; they differ in who stands as a candidate in each round."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._checks import plain
from deferlearn._threads import one_blas_thread
from deferlearn.objective.validation import as_reals
from deferlearn.selection.result import Iteration, SelectionInterrupted, SelectionResult
from deferlearn.selection.states import Array, Index, Objective, States

Callback = Callable[[Iteration], None]


def omega(ratio: float, n: int, index: int) -> float:
    """``(1 - gamma / n) ** (n - 1 - i)``, which grows to one: early rounds distrust gains."""
    return float((1.0 - ratio / n) ** (n - 1 - index))


def run(
    states: States,
    loss: Array,
    n: int,
    ratio: float,
    rounds: Iterable[Index | None],
    *,
    algorithm: str,
    tol: float,
    floor: ClassFloor,
    callback: Callback | None,
    **details: Any,
) -> SelectionResult:
    """Go through the rounds, each a set of candidates (None: everybody), and defer the best of each."""
    state, picked = states.root, list[int]()
    iterations: list[Iteration] = []

    def result(interrupted: bool = False) -> SelectionResult:
        made = [i for i in iterations if i.picked >= 0]
        order = np.array([i.picked for i in made], dtype=np.int64)
        return SelectionResult(
            order=order,
            gains=np.array([i.gain for i in made]),
            scores=np.array([i.score for i in made]),
            omegas=np.array([i.omega for i in made]),
            value=states.root.value - state.value - float(loss[order].sum()),
            initial_value=states.root.value,
            n=n,
            submodularity_ratio=ratio,
            algorithm=algorithm,
            iterations=iterations,
            tol=tol,
            min_kept_per_class=floor.least,
            interrupted=interrupted,
            n_states=states.n_states,
            **details,
        )

    free = np.zeros(len(loss), dtype=bool)
    free[states.candidates] = True
    try:
        with one_blas_thread():
            for index, drawn in enumerate(rounds):
                weight = omega(ratio, n, index)
                candidates = states.candidates if drawn is None else drawn
                candidates = floor.allowed(candidates[free[candidates]])
                choice = state.best(candidates, weight, loss, tol)
                iterations.append(
                    Iteration(
                        index=index,
                        omega=weight,
                        picked=choice.k,
                        score=choice.score,
                        gain=choice.gain,
                        n_candidates=len(candidates),
                        n_exact=choice.n_exact,
                        n_screened=len(candidates) - choice.n_exact,
                        slack=choice.slack,
                    )
                )
                if choice.k >= 0:
                    # One assignment: an interrupt finds state and picks in agreement.
                    state, picked = (
                        states.after(state, frozenset(picked), choice.k),
                        [*picked, choice.k],
                    )
                    free[choice.k] = False
                    floor.take(choice.k)
                if callback is not None:
                    callback(iterations[-1])
    except KeyboardInterrupt:
        # A pick counts once its state has been reached.
        while sum(i.picked >= 0 for i in iterations) > len(picked):
            iterations.pop()
        raise SelectionInterrupted(result(interrupted=True)) from None
    return result()


class ClassFloor:
    """Keeps at least a number of samples of each class with the machine."""

    def __init__(self, objective: Objective, least: int) -> None:
        self.least = least
        if least > 0:
            self._labels = np.asarray(objective.labels)  # type: ignore[attr-defined]
            kept = self._labels[objective.kept]
            self._left = {label: int((kept == label).sum()) for label in np.unique(kept)}

    def allowed(self, candidates: Index) -> Index:
        """The candidates that may still be deferred."""
        if self.least <= 0:
            return candidates
        open_ = [label for label, left in self._left.items() if left > self.least]
        return candidates[np.isin(self._labels[candidates], open_)]

    def take(self, k: int) -> None:
        """Count a deferred sample."""
        if self.least > 0:
            self._left[self._labels[k]] -= 1


def check_loss(objective: Objective, human_loss: ArrayLike) -> Array:
    """Human losses: one finite, non-negative number a sample."""
    n = len(objective.kept)
    loss = as_reals(human_loss, "human_loss")
    if loss.shape != (n,):
        raise ValueError(
            f"human_loss must hold one number for each of the {n} samples, got shape {loss.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(loss) & (loss >= 0.0)))
    if len(bad):
        raise ValueError(
            f"human_loss must be finite and not negative, got {loss[bad[0]]} at index {bad[0]}."
        )
    return loss


def check_budget(objective: Objective, n: Any) -> int:
    """The number of samples that may be deferred: 0 to all that are kept."""
    most = int(np.sum(objective.kept))
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise ValueError(f"n={plain(n)!r} must be a whole number of samples.")
    if not 0 <= n <= most:
        raise ValueError(f"n={n} must be between 0 and the number of samples, {most}.")
    return int(n)


def check_ratio(ratio: Any) -> float:
    """A submodularity ratio in (0, 1]."""
    return _in_interval("submodularity_ratio", ratio, upper_open=False)


def check_open_unit(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    return _in_interval(name, value, upper_open=True)


def check_tol(tol: Any) -> float:
    """A relative slack in [0, 1)."""
    if isinstance(tol, bool) or not isinstance(tol, int | float | np.floating) or not 0 <= tol < 1:
        raise ValueError(f"tol={plain(tol)!r} must be a number in [0, 1); 0 is exact.")
    return float(tol)


def _in_interval(name: str, value: Any, *, upper_open: bool) -> float:
    number = isinstance(value, int | float | np.floating | np.integer) and not isinstance(
        value, bool
    )
    if not number or not (0 < value < 1 if upper_open else 0 < value <= 1):
        raise ValueError(
            f"{name}={plain(value)!r} must be a number in (0, 1{')' if upper_open else ']'}."
        )
    return float(value)


def check_floor(least: Any) -> int:
    """How many of each class must stay: a whole number, 0 for no floor."""
    if isinstance(least, bool) or not isinstance(least, int | np.integer) or least < 0:
        raise ValueError(
            f"min_kept_per_class={plain(least)!r} must be a whole number, 0 or larger."
        )
    return int(least)
