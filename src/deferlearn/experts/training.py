"""Which samples experts take in training, and who takes which: the paper's problem with prices.

Expert e takes at most n_e samples, all experts together at most n. With a price per case for each
expert, sample i costs ``c_i = min_e (c_ie + price_e)``. That is the paper's problem again, so its
algorithms select. For all prices that are not negative, the best value of the priced problem plus the
sum of ``price_e n_e`` is an upper bound of what any assignment within the capacities can reach: so the
bound on the priced problem certifies the assignment that was found.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.bounds.optimum import optimum_upper_bound
from deferlearn.experts.transport import Places, place_all, transport
from deferlearn.selection import SelectionResult, States
from deferlearn.teams.selector import Selector

# How often prices are changed in the search for those at which capacities hold.
ROUNDS = 12
# Steps of a sweep in that search.
COARSE_DELTA = 0.5


class PricedSelection(NamedTuple):
    """Prices of the experts' time in training, and what they make of the losses.

    Attributes
    ----------
    prices : ndarray of shape (n_experts,)
        On the scale of the objective.
    loss : ndarray of shape (n_samples,)
        The priced loss of each sample.
    cost : ndarray of shape (n_samples, n_experts)
        What each expert's answer costs on the scale of the objective, time included.
    capacity : ndarray of shape (n_experts,)
        The most samples that each expert takes.
    total : int
        The most samples that all of them take.
    """

    prices: Array
    loss: Array
    cost: Array
    capacity: Array
    total: int

    def value_of(self, result: SelectionResult) -> tuple[float, Places]:
        """By how much a selection lowers the total loss, with samples assigned at the smallest cost."""
        chosen, paid = _assign_all(self.cost, result.order, self.capacity)
        return result.value + float(self.loss[result.order].sum()) - paid, chosen


class ExpertCertificate(NamedTuple):
    """How good the assignment in training is.

    Attributes
    ----------
    value : float
        By how much it lowers the total loss.
    bound : float
        No assignment within the capacities lowers it by more.
    gap, relative_gap : float
        The difference, and its share of the bound.
    method : str
        How the priced problem was bounded.
    """

    value: float
    bound: float
    gap: float
    relative_gap: float
    method: str

    def summary(self) -> str:
        """The certificate in plain words."""
        text = (
            f"The assignment to experts lowers the total loss by {self.value:.4g}. No assignment within "
            f"the capacities lowers it by more than {self.bound:.4g} (bound: prices, and {self.method}). "
        )
        if self.gap <= 1e-6 * max(self.bound, 1e-300):
            return text + "So it is the best possible."
        if self.value <= 0:
            return text + f"So another one could be better by at most {self.gap:.4g}."
        return text + (
            f"So it reaches at least {100 * (1 - self.relative_gap):.3g}% of the best possible."
        )


def find_prices(
    objective: Any, selector: Selector, cost: Array, capacity: Array, total: int
) -> PricedSelection:
    """Find the prices at which the samples that are selected fit into the experts' time.

    Parameters
    ----------
    objective : SVMObjective or SumObjective
        On all samples.
    selector : Selector
        The selection algorithm; its sweep takes larger steps here.
    cost : ndarray of shape (n_samples, n_experts)
        What each expert's answer costs on the scale of the objective, time included.
    capacity : ndarray of int of shape (n_experts,)
        The most samples that each expert takes.
    total : int
        The most samples that all of them take.

    Returns
    -------
    PricedSelection
        Of all prices that were tried, those of the best assignment.
    """
    n = len(cost)
    total = min(total, int(capacity.sum()), n)
    quick = replace(selector, delta=max(selector.delta, COARSE_DELTA))
    states = States(objective, keep=True)
    alone = np.asarray(objective.gains(np.arange(n)))
    # Gains of single samples say roughly who will be asked for most.
    prices = transport(alone[:, None] - cost, capacity, total).prices
    size = float(np.ptp(cost)) or 1.0
    best, best_value = None, -np.inf
    for turn in range(ROUNDS):
        found = PricedSelection(prices, (cost + prices).min(axis=1), cost, capacity, total)
        result, _ = quick.run(objective, found.loss, total, states)
        value, _ = found.value_of(result)
        if value > best_value:
            best, best_value = found, value
        wanted = (cost[result.order] + prices).argmin(axis=1)
        excess = np.bincount(wanted, minlength=len(capacity)) - capacity
        if (excess <= 0).all() and not prices[excess < 0].any():
            break
        step = size / (2.0 * (1 + turn)) / max(float(np.abs(excess).max()), 1.0)
        prices = np.maximum(prices + step * excess, 0.0)
    assert best is not None
    return best


def certify_experts(objective: Any, found: PricedSelection, value: float) -> ExpertCertificate:
    """Bound what any assignment within the capacities could reach, by weak duality."""
    bound = optimum_upper_bound(objective, found.loss, found.total)
    most = max(bound.value + float(found.prices @ found.capacity), 0.0)
    if value > most + 1e-6 * max(most, 1.0):
        raise RuntimeError(
            f"The assignment has the value {value}, above its bound {most}: please report this."
        )
    most = max(most, value)
    gap = most - value
    return ExpertCertificate(value, most, gap, gap / most if most > 0 else 0.0, bound.method)


def _assign_all(cost: Array, picked: Any, capacity: Array) -> tuple[Places, float]:
    """All picked samples to experts at the smallest total cost, and that cost."""
    chosen = np.full(len(cost), -1)
    if len(picked) == 0:
        return chosen, 0.0
    own = cost[picked]
    places = place_all(own, capacity, len(picked)).chosen
    if (places < 0).any():
        raise ValueError(
            f"{len(picked)} samples were selected, but the experts can take {int(capacity.sum())}."
        )
    chosen[picked] = places
    return chosen, float(own[np.arange(len(picked)), places].sum())
