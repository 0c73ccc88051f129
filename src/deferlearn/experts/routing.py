"""Who takes a case: expected losses of the machine, the experts and groups of them, at prices."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.experts.error_models import Cases, ErrorModel
from deferlearn.experts.groups import Groups
from deferlearn.experts.transport import MACHINE, Assignment, Places, transport
from deferlearn.humans.coding import Codes, Coding
from deferlearn.teams.threshold import coins

# Differences between experts below this, as a share of the worst mistake, are decided by a coin of the
# case: else one of two experts who are alike would get all cases, whatever the prices.
COIN = 1e-3


@dataclass(frozen=True)
class Routing:
    """What is known about experts and their time.

    Attributes
    ----------
    model : ErrorModel
        What the experts' answers are expected to cost.
    worst : ndarray of shape (n_classes,)
        What the worst mistake on a case of each class costs.
    stakes : ndarray of shape (n_classes, n_classes)
        What each answer (column) to a case of each class (row) costs.
    groups : Groups
        Who may read a case.
    mix : ndarray of shape (n_classes,)
        The shares of the classes.
    deferral_cost : float
        The cost of human time per case.
    seed : int
        Seed of the coin.
    capacity : ndarray of shape (n_experts,)
        The share of the cases that each expert can take.
    total : float
        The share that all of them can take.
    prices : ndarray of shape (n_experts,)
        What one more case in each expert's time would be worth.
    common : float
        What one more case in anybody's time would be worth, on top of the prices.
    """

    model: ErrorModel
    worst: Array
    stakes: Array
    groups: Groups
    mix: Array
    deferral_cost: float
    seed: int
    capacity: Array
    total: float
    prices: Array
    common: float = 0.0

    @property
    def usage(self) -> Array:
        """How many cases of each expert's capacity each option uses: (n_options, n_experts)."""
        return self.groups.usage(len(self.capacity), self.mix)

    def machine_cost(self, probabilities: Array, said: Codes) -> Array:
        """The expected cost of the machine's answers."""
        return np.asarray((probabilities * self.stakes[:, said].T).sum(axis=1))

    def gains(self, cases: Cases, said: Codes, single: Array | None = None) -> Array:
        """By how much each option is expected to lose less than the machine: (n_cases, n_options).

        ``single`` holds the expected costs of single experts, if they are known already.
        """
        after = self.worst * self.groups.ratio
        if single is None:
            theirs = self.model.expected(cases, after)
        else:
            whole = np.maximum(cases.probabilities @ self.worst, 1e-300)
            theirs = single * (cases.probabilities @ after / whole)[:, None]
        time = self.deferral_cost * self.usage.sum(axis=1)
        own = self.machine_cost(cases.probabilities, said)[:, None]
        return np.asarray(own - theirs[:, self.groups.members].mean(axis=2) - time)

    def net(self, gains: Array, X: Any) -> Array:
        """What each option gains at the present prices, with a coin that depends on the case alone."""
        size = COIN * float(self.worst.max())
        # It never speaks for an expert against the machine.
        coin = size * (_coin_per_option(coins(X, self.seed), gains.shape[1]) - 1.0)
        return self.at_prices(gains + coin)

    def at_prices(self, gains: Array) -> Array:
        """What each option gains at the present prices; -inf where it needs somebody who takes no cases."""
        usage = self.usage
        idle = (usage[:, self.capacity <= 0] > 0).any(axis=1)
        return np.where(idle, -np.inf, gains - usage @ self.prices - self.common)

    def place(self, gains: Array, X: Any) -> Places:
        """The option that takes each case, one at a time; -1 is the machine."""
        return chosen_of(self.net(gains, X))

    def batch(self, gains: Array, counts: Array, total: float) -> Assignment:
        """The option that takes each case of a batch, at the smallest expected loss."""
        return transport(gains, counts, total, self.usage)

    def priced(self, gains: Array, X: Any) -> Self:
        """The same with the prices at which these cases fill the experts' time, and no more."""
        n = len(gains)
        plain = replace(self, prices=np.zeros(len(self.capacity)), common=0.0)
        net = np.maximum(plain.net(gains, X), -1e300)  # a programme takes no infinite numbers
        found = transport(net, self.capacity * n, self.total * n, self.usage)
        return replace(self, prices=found.prices, common=found.common)

    def loads(self, places: Places) -> Array:
        """The share of the cases that each expert gets."""
        taken = places[places != MACHINE]
        return np.asarray(self.usage[taken].sum(axis=0) / max(len(places), 1))


def chosen_of(net: Array) -> Places:
    """The option that gains most in each row, if that is more than nothing; else -1, the machine."""
    best = net.argmax(axis=1)
    return np.where(net[np.arange(len(net)), best] > 0, best, MACHINE)


def worst_mistakes(coding: Coding) -> Array:
    """What the worst mistake on a case of each class costs."""
    cost = coding.costs.sum(axis=1)
    weight = np.where(cost > 0, coding.stakes.sum(axis=1) / np.where(cost > 0, cost, 1.0), 1.0)
    return np.asarray(weight * float(coding.costs.max()))


def _coin_per_option(coin: Array, n_options: int) -> Array:
    """Numbers from 0 to 1 that depend on a case's coin and on the option: (n_cases, n_options).

    They are as good as independent (SplitMix64). Coins of two options that moved together would not decide
    between them: their difference would be the same for many cases.
    """
    steps = np.arange(1, n_options + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (coin * 2.0**53).astype(np.uint64)[:, None] * np.uint64(0xD1342543DE82EF95) + steps
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray((mixed >> np.uint64(11)) / 2.0**53)
