"""How good a selection is, in numbers that hold and in words that can be read."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.threads import one_blas_thread
from deferlearn._utils.types import Array
from deferlearn._utils.words import counted
from deferlearn.bounds._view import View, parts_of
from deferlearn.bounds.optimum import OptimumBound, optimum_upper_bound
from deferlearn.bounds.ratio import SubmodularityBound, submodularity_bound
from deferlearn.objective import SumObjective, SVMObjective
from deferlearn.selection.greedy import check_budget, check_loss

# A factor of g(OPT) below this is called by its name.
USELESS_FACTOR = 1e-2
# A selection this close to the upper bound, relative to it, is called optimal.
OPTIMAL = 1e-6


@dataclass(frozen=True)
class Certificate:
    """What is known about one selection.

    Attributes
    ----------
    value : float
        g(S) - c(S) of the selection.
    n : int
        The budget.
    algorithm : str
        How it was selected.
    ratio_used : float or None
        The submodularity ratio that the algorithm was given; None for a sweep, which tries many.
    ratio_bound : SubmodularityBound
        What is known about the true ratio.
    guaranteed : bool
        Whether a theorem of Harshaw et al. (2019) applies to this run.
    factor : float
        The guarantee is ``value >= share * (factor * g(OPT) - c(OPT))``; 0 if there is none.
    share : float
        1 for an exact argmax; ``1 - slack`` of a run with a tolerance, ``1 - tol`` if the guarantee is
        in expectation.
    in_expectation : bool
        Whether the guarantee is one for the average over the algorithm's random choices.
    reason : str
        Why the guarantee applies, or why none is claimed.
    optimum : OptimumBound
        An upper bound on the value of the best selection.
    gap : float
        The best selection is better by no more than this.
    relative_gap : float
        The same as a share of the upper bound; 0 is optimal, 1 says nothing.
    """

    value: float
    n: int
    algorithm: str
    ratio_used: float | None
    ratio_bound: SubmodularityBound
    guaranteed: bool
    factor: float
    share: float
    in_expectation: bool
    reason: str
    optimum: OptimumBound
    gap: float
    relative_gap: float

    def summary(self) -> str:
        """The certificate in plain words."""
        best = self.optimum.value
        lines = [
            f"Deferring the selected samples lowers the total loss by {self.value:.4g}.",
            f"No selection of at most {counted(self.n, 'sample')} can lower it by more than {best:.4g} "
            f"(bound: {self.optimum.method}).",
        ]
        if self.gap <= OPTIMAL * max(best, 1e-300):
            lines.append("So the selection is the best possible.")
        elif self.value <= 0:
            lines.append("So it is not known how much better another selection could be.")
        else:
            lines.append(
                f"So this selection reaches at least {100 * (1 - self.relative_gap):.3g}% of the best "
                f"possible, and may fall short of it by {self.gap:.4g} at most."
            )
            if self.relative_gap > 0.5:
                lines.append(
                    "That is a worst case over all selections: the bound is loose when alpha is small "
                    "against the features, and then says little about this selection."
                )
        lines.append(self.ratio_bound.words)
        lines.append(self.reason)
        if self.guaranteed:
            lines.append(self._guarantee())
        return "\n".join(lines)

    def _guarantee(self) -> str:
        average = "on average over its random choices, " if self.in_expectation else ""
        right = f"{self.factor:.3g} times the gain of the best selection, less that selection's human loss"
        text = f"Guarantee: {average}the value is at least {right}."
        if self.share < 1:
            text = (
                f"Guarantee: {average}the value is at least {self.share:.4g} times this: {right}. The "
                f"factor {self.share:.4g} is there because picks could be short of the best score by "
                f"{100 * (1 - self.share):.3g}%."
            )
        if self.factor < USELESS_FACTOR:
            text += " This is true but vacuous; the upper bound above says more."
        return text


def certificate(
    objective: SVMObjective | SumObjective,
    result: Any,
    human_loss: ArrayLike,
    n: int | None = None,
) -> Certificate:
    r"""Say how good a selection is: what the theory guarantees, and how far from the best it can be.

    With a submodularity ratio of at least :math:`\gamma`, distorted greedy run with it returns
    :math:`g(S) - c(S) \ge (1 - e^{-\gamma}) g(OPT) - c(OPT)` (Harshaw et al., 2019, Theorem 3). The
    stochastic variant loses :math:`\epsilon g(OPT)` and holds in expectation, as does the unconstrained
    one. A sweep is as good as the best of its members that used a ratio within the bound, and so loses at
    most :math:`\delta\, g(OPT)` against a run with the bound itself. A ratio beyond what can be proved
    gives no guarantee, however well it works; nor does a run that was interrupted, or in which a floor
    per class may have kept a candidate out.

    A pick whose score is at least ``(1 - slack)`` times the best one multiplies the whole right-hand side
    by ``(1 - slack)``: each step of the proof loses that share and nothing else. In expectation other
    random choices count too, whose slack is not known, so there it is ``(1 - tol)``.

    Parameters
    ----------
    objective : SVMObjective or SumObjective
        In its initial state, before the selection.
    result : object
        A selection's result: ``order``, ``value``, ``algorithm`` ("distorted", "stochastic",
        "unconstrained" or "sweep"), ``submodularity_ratio``, and where they apply ``n``, ``epsilon``,
        ``delta``, ``tol``, ``slack``, ``min_kept_per_class``, ``interrupted``, ``members``.
    human_loss : array-like of shape (n_samples,)
        The losses that the selection was made with.
    n : int, default=None
        The budget; the result's by default. A run with another budget has no guarantee.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from deferlearn.bounds import certificate
    >>> from deferlearn.objective import SumObjective, SVMObjective
    >>> from deferlearn.selection import distorted_greedy
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
    >>> objective = SVMObjective(X, y, alpha=1.0, fit_intercept=False)
    >>> result = distorted_greedy(objective, [0.1] * 5, n=1, submodularity_ratio=0.01)
    >>> report = certificate(objective, result, [0.1] * 5)
    >>> report.guaranteed, report.value <= report.optimum.value
    (True, True)
    >>> print(report.summary().splitlines()[0])
    Deferring the selected samples lowers the total loss by 2.45.
    """
    views = [View.of(part) for part in parts_of(objective)]
    loss = check_loss(objective, human_loss)
    budget = _get(result, "n", None) if n is None else n
    if budget is None:
        raise ValueError("The result does not know its budget n; pass n.")
    budget, order = check_budget(objective, budget), np.asarray(result.order, dtype=np.int64)
    if len(order) > budget:
        raise ValueError(
            f"The result has {counted(len(order), 'sample')}, more than the budget n={budget}."
        )
    with one_blas_thread():
        bound = submodularity_bound(objective, budget)
        optimum = optimum_upper_bound(objective, loss, budget)
        value = _verified_value(objective, result, order, loss)
    unit = objective.value if views[0].problem.hard else max(1.0, objective.value)
    if value > optimum.value + 1e-6 * unit:
        raise ValueError(
            f"The result's value {value:g} is above {optimum.value:g}, which no selection can reach: "
            "it belongs to another objective, other losses or another n."
        )
    gap = max(0.0, optimum.value - value)
    claim = _claim(result, bound, budget, objective.labels)
    ratio = _get(result, "submodularity_ratio", None)
    algorithm = str(result.algorithm)
    return Certificate(
        value=value,
        n=budget,
        algorithm=algorithm,
        ratio_used=None if algorithm == "sweep" or ratio is None else float(ratio),
        ratio_bound=bound,
        guaranteed=claim.guaranteed,
        factor=claim.factor,
        share=claim.share,
        in_expectation=_in_expectation(result),
        reason=claim.reason,
        optimum=optimum,
        gap=gap,
        relative_gap=min(1.0, gap / optimum.value) if optimum.value > 0 else 0.0,
    )  # fmt: skip


def _verified_value(
    objective: SVMObjective | SumObjective, result: Any, order: NDArray[np.int64], loss: Array
) -> float:
    """g(S) - c(S) computed again from the order: a certificate trusts no number that it is given."""
    state = objective.copy()
    for k in order:
        state.remove(int(k))  # names an index that does not exist or stands there twice
    value = objective.value - state.value - float(loss[order].sum())
    if abs(value - float(result.value)) > 1e-6 * max(1.0, objective.value):
        raise ValueError(
            f"The result's value is {float(result.value):g}, but its order gives {value:g} here: it "
            "belongs to another objective or to other losses."
        )
    return value


def _get(result: Any, name: str, default: Any) -> Any:
    """An attribute that may be missing, or None where it does not apply."""
    value = getattr(result, name, None)
    return default if value is None else value


@dataclass(frozen=True)
class _Claim:
    """What a theorem says of a run: nothing unless `guaranteed`."""

    reason: str
    guaranteed: bool = False
    factor: float = 0.0
    share: float = 1.0


def _claim(result: Any, bound: SubmodularityBound, n: int, labels: NDArray[Any] | None) -> _Claim:
    """Whether a theorem applies to the run, with which numbers, and why."""
    algorithm = result.algorithm
    for run in (result, *_get(result, "members", [])):
        if run.algorithm not in ("distorted", "stochastic", "unconstrained", "sweep"):
            return _Claim(f"No theorem is known for algorithm {run.algorithm!r}.")
    if _get(result, "interrupted", False):
        return _Claim(
            "The run was interrupted, so no theorem applies to it; how far it can be from the best is "
            "known all the same."
        )
    budget = int(_get(result, "n", n))
    if budget != n:
        return _Claim(
            f"No guarantee is claimed: the run had the budget {budget}, which the theorem needs to be "
            f"the {n} of this certificate."
        )
    if bound.best == 0:
        return _Claim("No guarantee is claimed, since no positive ratio can be proved.")
    if algorithm == "sweep":
        run, reason = _proved_member(result, bound)
        if run is None:
            return _Claim(reason)
    else:
        run, ratio = result, float(result.submodularity_ratio)
        reason = f"The ratio used, {ratio:.3g}, is within what can be proved."
        if ratio > bound.best:
            return _Claim(
                f"No guarantee is claimed: the ratio used, {ratio:.3g}, is more than the "
                f"{bound.best:.3g} that can be proved."
            )
    floor = int(_get(result, "min_kept_per_class", 0))
    if floor > 0:
        idle = labels is not None and _floor_was_idle(
            run, floor, n, labels, _in_expectation(result)
        )
        if not idle:
            return _Claim(
                f"No guarantee is claimed: a floor of {counted(floor, 'sample')} per class may have kept "
                "candidates out, and the theorem speaks of choosing among all. The upper bound is one on "
                "selections with and without the floor."
            )
        reason += (
            f" The floor of {counted(floor, 'sample')} per class kept no candidate out, so the "
            "guarantee is the one without a floor."
        )
    tol = float(_get(run, "tol", 0.0))
    return _Claim(
        reason,
        guaranteed=True,
        factor=max(
            0.0,
            1.0 - math.exp(-float(run.submodularity_ratio)) - float(_get(result, "epsilon", 0.0)),
        ),
        share=1.0 - (tol if _in_expectation(result) else float(_get(run, "slack", tol))),
    )


def _in_expectation(result: Any) -> bool:
    """Whether the run made random choices (a sweep does if its members do)."""
    return (
        result.algorithm in ("stochastic", "unconstrained")
        or bool(_get(result, "epsilon", 0.0))
        or any(_in_expectation(member) for member in _get(result, "members", []))
    )


def _floor_was_idle(run: Any, floor: int, n: int, labels: NDArray[Any], random: bool) -> bool:
    """Whether the floor kept no candidate out: with random choices, whatever they are."""
    classes, counts = np.unique(labels, return_counts=True)
    if n <= counts.min() - floor:
        return True  # n picks do not reach it
    if random:
        return False
    kept = np.delete(labels, np.asarray(run.order, dtype=np.int64))
    return all(int((kept == label).sum()) > floor for label in classes)


def _proved_member(result: Any, bound: SubmodularityBound) -> tuple[Any, str]:
    """The sweep is as good as its member with the largest ratio within the bound, if there is one."""
    members = list(_get(result, "members", []))
    if not members:
        return None, "No guarantee is claimed: the sweep's ratios are not known."
    proved = [member for member in members if member.submodularity_ratio <= bound.best]
    if not proved:
        least = min(float(member.submodularity_ratio) for member in members)
        return None, (
            f"No guarantee is claimed: every ratio of the sweep, down to {least:.3g}, is above the "
            f"{bound.best:.3g} that can be proved. All that is certain is that the selection is no "
            "worse than deferring no sample."
        )
    run = max(proved, key=lambda member: float(member.submodularity_ratio))
    reason = (
        f"The sweep contains the ratio {run.submodularity_ratio:.3g}, within the {bound.best:.3g} that "
        "can be proved."
    )
    delta = _get(result, "delta", None)
    if delta is not None and run.submodularity_ratio >= (1.0 - delta) * bound.best:
        reason += f" Its steps cost at most delta = {delta:.3g} of the factor."
    return run, reason
