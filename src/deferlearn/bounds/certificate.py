"""How good a selection is, in numbers that hold and in words that can be read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn.bounds._view import View
from deferlearn.bounds.optimum import OptimumBound, check_loss, optimum_upper_bound
from deferlearn.bounds.ratio import SubmodularityBound, submodularity_bound
from deferlearn.objective import SVMObjective

# A factor of g(OPT) below this is called by its name.
USELESS_FACTOR = 1e-2
# A selection this close to the upper bound, relative to it, is optimal for all that can be told.
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
        1 for an exact argmax, ``1 - tol`` otherwise.
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
            f"No selection of at most {self.n} samples can lower it by more than {best:.4g} "
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
        share = "" if self.share == 1 else f"{self.share:.4g} of "
        average = "on average over its random choices, " if self.in_expectation else ""
        text = (
            f"Guarantee: {average}the value is at least {share}{self.factor:.3g} times the gain of the "
            "best selection, less that selection's human loss."
        )
        if self.factor < USELESS_FACTOR:
            text += " This is true but vacuous; the upper bound above says more."
        return text


def certificate(
    objective: SVMObjective, result: Any, human_loss: ArrayLike, n: int | None = None
) -> Certificate:
    r"""Say how good a selection is: what the theory guarantees, and how far from the best it can be.

    With a submodularity ratio of at least :math:`\gamma`, distorted greedy run with it returns
    :math:`g(S) - c(S) \ge (1 - e^{-\gamma}) g(OPT) - c(OPT)` (Harshaw et al., 2019, Theorem 3). The
    stochastic variant loses :math:`\epsilon g(OPT)` and holds in expectation, as does the unconstrained
    one. A sweep is as good as the best of its members that used a ratio within the bound. A ratio beyond
    what can be proved gives no guarantee, however well it works.

    An argmax within ``tol``, whose score is at least ``(1 - tol)`` times the best one, multiplies the whole
    right-hand side by ``(1 - tol)``: each step of the proof loses that share and nothing else.

    Parameters
    ----------
    objective : SVMObjective
        In its initial state, before the selection.
    result : object
        A selection's result: ``order``, ``value``, ``algorithm`` ("distorted", "stochastic",
        "unconstrained" or "sweep"), ``submodularity_ratio``, and where they apply ``n``, ``epsilon``,
        ``delta``, ``tol``.
    human_loss : array-like of shape (n_samples,)
        The losses that the selection was made with.
    n : int, default=None
        The budget; the result's by default.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deferlearn.bounds import certificate
    >>> from deferlearn.objective import SVMObjective
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
    >>> objective = SVMObjective(X, y, alpha=1.0, fit_intercept=False)
    >>> result = SimpleNamespace(order=[4], value=objective.gain(4) - 0.1, n=1, tol=0.0,
    ...     algorithm="distorted", submodularity_ratio=0.01, epsilon=None, delta=None)
    >>> report = certificate(objective, result, [0.1] * 5)
    >>> report.guaranteed, report.value <= report.optimum.value
    (True, True)
    >>> print(report.summary().splitlines()[0])
    Deferring the selected samples lowers the total loss by 2.45.
    """
    view = View.of(objective)
    loss = check_loss(human_loss, view)
    budget = _get(result, "n", None) if n is None else n
    if budget is None:
        raise ValueError("The result does not know its budget n; pass n.")
    budget, order = int(budget), np.asarray(result.order, dtype=np.int64)
    if len(order) > budget:
        raise ValueError(f"The result has {len(order)} samples, more than the budget n={budget}.")
    bound = submodularity_bound(objective, budget)
    optimum = optimum_upper_bound(objective, loss, budget)
    value = float(result.value)
    unit = view.value if view.problem.hard else max(1.0, view.value)
    if value > optimum.value + 1e-6 * unit:
        raise ValueError(
            f"The result's value {value:g} is above {optimum.value:g}, which no selection can reach: "
            "it belongs to another objective, other losses or another n."
        )
    gap = max(0.0, optimum.value - value)
    guaranteed, factor, reason = _guarantee(result, bound)
    ratio = _get(result, "submodularity_ratio", None)
    algorithm = str(result.algorithm)
    return Certificate(
        value=value,
        n=budget,
        algorithm=algorithm,
        ratio_used=None if algorithm == "sweep" or ratio is None else float(ratio),
        ratio_bound=bound,
        guaranteed=guaranteed,
        factor=factor,
        share=1.0 - float(_get(result, "tol", 0.0)),
        in_expectation=algorithm in ("stochastic", "unconstrained") or bool(_get(result, "epsilon", 0)),
        reason=reason,
        optimum=optimum,
        gap=gap,
        relative_gap=min(1.0, gap / optimum.value) if optimum.value > 0 else 0.0,
    )  # fmt: skip


def _get(result: Any, name: str, default: Any) -> Any:
    """An attribute that may be missing, or None where it does not apply."""
    value = getattr(result, name, None)
    return default if value is None else value


def _guarantee(result: Any, bound: SubmodularityBound) -> tuple[bool, float, str]:
    """Whether a theorem applies, its factor of g(OPT), and why."""
    algorithm = result.algorithm
    epsilon = float(_get(result, "epsilon", 0.0))
    if algorithm not in ("distorted", "stochastic", "unconstrained", "sweep"):
        return False, 0.0, f"No theorem is known for algorithm {algorithm!r}."
    if _get(result, "interrupted", False):
        return False, 0.0, "The run was interrupted, so no theorem applies to it."
    if _get(result, "min_kept_per_class", 0):
        return False, 0.0, (
            "Samples were kept with the machine by a floor per class, which the theorem does not cover."
        )  # fmt: skip
    if bound.best == 0:
        return False, 0.0, "No guarantee is claimed, since no positive ratio can be proved."
    if algorithm == "sweep":
        return _sweep(result, bound, epsilon)
    ratio = float(result.submodularity_ratio)
    if ratio > bound.best:
        return False, 0.0, (
            f"No guarantee is claimed: the ratio used, {ratio:.3g}, is more than the {bound.best:.3g} "
            "that can be proved."
        )  # fmt: skip
    factor = max(0.0, 1.0 - math.exp(-ratio) - epsilon)
    return True, factor, f"The ratio used, {ratio:.3g}, is within what can be proved."


def _sweep(result: Any, bound: SubmodularityBound, epsilon: float) -> tuple[bool, float, str]:
    """The sweep is as good as its member with the largest ratio within the bound."""
    ratios = _sweep_ratios(result)
    if not ratios:
        return False, 0.0, "No guarantee is claimed: the sweep's ratios are not known."
    proved = [ratio for ratio in ratios if ratio <= bound.best]
    if not proved:
        return (
            False,
            0.0,
            (
                f"No guarantee is claimed: every ratio of the sweep, down to {min(ratios):.3g}, is above "
                f"the {bound.best:.3g} that can be proved. All that is certain is that the selection is "
                "no worse than deferring nobody."
            ),
        )
    factor = max(0.0, 1.0 - math.exp(-max(proved)) - epsilon)
    return (
        True,
        factor,
        f"The sweep contains the ratio {max(proved):.3g}, within what can be proved.",
    )


def _sweep_ratios(result: Any) -> list[float]:
    """The members' ratios, or those that a sweep with this delta tries."""
    members = _get(result, "members", [])
    delta = float(_get(result, "delta", 0.0))
    if members or not 0 < delta < 1:
        return [float(member.submodularity_ratio) for member in members]
    steps = math.ceil(math.log(1.0 / delta) / delta)
    return [(1.0 - delta) ** r for r in range(steps + 1)]
