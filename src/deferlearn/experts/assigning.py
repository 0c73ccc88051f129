"""Who takes a case: one at a time by prices that follow the load, or in batches within hard capacities."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn._utils.types import Array
from deferlearn.experts.capacity import as_counts, check_capacity, name_text
from deferlearn.experts.considering import Considering, named
from deferlearn.experts.groups import Groups
from deferlearn.experts.routing import Routing
from deferlearn.experts.transport import MACHINE, Places
from deferlearn.teams.parameters import count_of


class Assigning(Considering):
    """The part of `ExpertTeam` that says who takes a case."""

    budget: float | int | None
    readings: int
    prices_: dict[str, float]
    budget_price_: float
    _all_groups: list[Groups]

    def _route(self, routing: Routing) -> None:
        self._routing = routing
        self.prices_ = dict(zip(self.experts_, routing.prices.tolist(), strict=True))
        self.budget_price_ = float(routing.common)

    def preferred(self, gains: Array) -> NDArray[Any]:
        """Who would take each case at the present prices if an expert had to, whether that pays or not.

        Parameters
        ----------
        gains : ndarray of shape (n_cases, n_options)
            Of the method `gains`.

        Returns
        -------
        who : ndarray of object of shape (n_cases,)
            Options that need nobody without capacity.
        """
        check_is_fitted(self)
        return named(self._routing.at_prices(np.asarray(gains)).argmax(axis=1), self.options_)

    def assign(self, X: Any) -> NDArray[Any]:
        """Who takes each case, one at a time, by the present prices.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            Cases.

        Returns
        -------
        who : ndarray of object of shape (n_cases,)
            The expert's name, a tuple of names with several readings, or None for the machine.
        """
        return named(self._assigned(X), self.options_)

    def _assigned(self, X: Any) -> Places:
        check_is_fitted(self)
        if len(self.experts_) == 1:
            return np.where(self.team_.defer(X), 0, MACHINE)
        cases, machine = self._new(X)
        return self._routing.place(self._routing.gains(cases, machine), cases.X)

    def assign_batch(
        self,
        X: Any,
        capacity: Mapping[str, float | int] | None = None,
        *,
        budget: float | int | None = None,
    ) -> NDArray[Any]:
        """Who takes each case of a batch, at the smallest expected loss within hard capacities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            The batch.
        capacity : dict or None, default=None
            For each expert a share of the batch, rounded down, or a number of cases; one above the size of
            the batch is the whole batch. An expert who is not named takes none. None: the capacities of
            `fit`, as shares.
        budget : float, int or None, default=None
            The most that all experts take; None: as much as their capacities allow, and the share in
            `fit` if both are None.

        Returns
        -------
        who : ndarray of object of shape (n_cases,)
            As in `assign`.
        """
        return named(self._assigned_batch(X, capacity, budget), self.options_)

    def _assigned_batch(self, X: Any, capacity: Any, budget: Any) -> Places:
        check_is_fitted(self)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        counts, total = self._counts(capacity, budget, n)
        if not counts.any():
            return np.full(n, MACHINE)
        if len(self.experts_) == 1:
            return np.where(self.team_.defer_top(X, int(min(counts[0], total))), 0, MACHINE)
        return self._routing.batch(self.gains(X), counts, total).chosen

    def _counts(self, capacity: Any, budget: Any, n: int) -> tuple[Array, float]:
        if capacity is None:
            counts = np.floor(self._routing.capacity * n + 1e-9)
            total = float(np.floor(self._routing.total * n + 1e-9))
        else:
            given = check_capacity(capacity, idle=True)
            stray = [name for name in given if name not in self.experts_]
            if stray:
                raise ValueError(
                    f"capacity has {stray[0]!r}, who is not among the experts {list(self.experts_)}."
                )
            counts = as_counts({name: given.get(name, 0) for name in self.experts_}, n)
            total = float(n)
        if is_whole(budget):
            budget = min(budget, n)
        return counts, total if budget is None else float(count_of(budget, n, "cases"))

    def update_prices(self, load: Mapping[str, int], n_cases: int, *, step: float = 0.1) -> Self:
        """Move the prices after some cases: up for experts who got more than they can take, else down.

        Parameters
        ----------
        load : dict
            How many of the cases each expert got; 0 for those who are not named.
        n_cases : int
            How many cases there were.
        step : float, default=0.1
            The change of a price, in errors, if the load differs from the capacity by all cases.

        Returns
        -------
        self
            With new `prices_`. Limits that must never be exceeded are the business of `Stream`.
        """
        check_is_fitted(self)
        load = {name_text(name): count for name, count in load.items()}
        stray = [name for name in load if name not in self.experts_]
        if stray:
            raise ValueError(
                f"load has {stray[0]!r}, who is not among the experts {list(self.experts_)}."
            )
        if not is_whole(n_cases) or n_cases < 1:
            raise ValueError(f"n_cases={plain(n_cases)!r} must be a whole number, 1 or larger.")
        for name, count in load.items():
            if not is_whole(count) or not 0 <= count <= n_cases:
                raise ValueError(
                    f"load[{name!r}]={plain(count)!r} must be a whole number from 0 to {n_cases}."
                )
        if not is_number(step) or step <= 0:
            raise ValueError(f"step={plain(step)!r} must be a positive number.")
        if len(self.experts_) == 1:
            raise ValueError("With a single expert the team's own rule decides, without prices.")
        routing = self._routing
        share = np.array([load.get(name, 0) / n_cases for name in self.experts_])
        prices = np.maximum(routing.prices + step * (share - routing.capacity), 0.0)
        over = float(share.sum()) / self.readings - routing.total
        common = max(routing.common + step * over, 0.0)
        self._route(replace(routing, prices=prices, common=common))
        return self

    def compare_readings(self, X: Any) -> list[dict[str, float]]:
        """What one, two and three readers per case would cost and reach, side by side.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            Cases like those to come.

        Returns
        -------
        rows : list of dict
            For each number of readers: "readings", the share "deferred", the "time" in readings per case,
            with those of an arbiter, and the expected "error" per case of the team, which takes the
            experts' capacities for this batch. The cost of time is part of it if the team has one.
        """
        cases, machine = self._new(X)
        own = self._routing.machine_cost(cases.probabilities, machine)
        counts, total = self._counts(None, None, len(own))
        if self.budget is None:  # what capacities allow depends on the number of readers
            total = float(len(own))
        rows = []
        for groups in self._all_groups:
            routing = replace(self._routing, groups=groups)
            found = routing.batch(routing.gains(cases, machine), counts, total)
            time = float(routing.loads(found.chosen).sum())
            rows.append(
                {
                    "readings": groups.readings,
                    "deferred": float(np.mean(found.chosen != MACHINE)),
                    "time": time,
                    "error": float((own.sum() - found.gain) / len(own)),
                }
            )
        return rows
