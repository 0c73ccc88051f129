"""Decide which expert takes each new case, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn.experts.transport import place_all
from deferlearn.tables.decider import TableDecider, with_preferred
from deferlearn.tables.errors import TableError
from deferlearn.tables.expert_reasons import by_prices, expected_of, in_batch
from deferlearn.tables.experts import check_known, places_per_expert
from deferlearn.tables.routed import Choice, Verdicts
from deferlearn.tables.routing import TOLERATED, Chunks, Router
from deferlearn.tables.top import places_for
from deferlearn.teams.budget import share_of

if TYPE_CHECKING:
    from deferlearn.tables.team import TabularTeam


class ExpertRouter(Router):
    """Decides which expert takes the cases of a table, or that the machine does.

    Without a budget and capacities each case is decided by itself, by the prices of the experts' time. With
    one of them the table is one batch, which is shared out at the smallest expected loss within hard
    capacities; the features of all cases are then held in memory.

    Unusual cases go to experts first: within the capacities of a batch; one at a time, to the expert whose
    expected errors plus price are smallest. An audited case goes to an expert who is drawn at random, in
    proportion to capacities, and on top of them.

    Parameters
    ----------
    model : TabularTeam or TableDecider
        A model of several experts, from `fit_table` with capacities.
    capacity : mapping or None, default=None
        For each expert a share of this table, rounded down, or a number of cases; those who are not named
        take none. None: the shares of the model.
    budget : float, int or None, default=None
        The most that all experts take together.
    **options
        Options of `Router`.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables import ExpertRouter, fit_table, select_cases
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=120)
    >>> truth = np.where(size + 0.5 * rng.normal(size=120) > 0, "ill", "well")
    >>> table = {"size": size, "truth": truth, "Ann": truth, "Bob": np.where(size > 0, "ill", "well")}
    >>> cases = select_cases(table, "truth", humans=["Ann", "Bob"])
    >>> team = fit_table(cases, capacity={"Ann": 0.1, "Bob": 0.2}, alpha=0.1)
    >>> router = ExpertRouter(team, capacity={"Ann": 1})
    >>> for _, routed in router.route(lambda: [{"size": [-2.0, 0.1, 1.5]}]):
    ...     print(routed["expert"].to_pylist())
    ['', 'Ann', '']
    """

    _names_experts = True

    def __init__(
        self,
        model: TabularTeam | TableDecider,
        *,
        capacity: Mapping[str, float | int] | None = None,
        budget: float | int | None = None,
        **options: Any,
    ) -> None:
        self.experts: list[dict[str, Any]] = model.card_.get("experts") or []
        if not self.experts:
            raise TableError("the model has no experts who are told apart: use Router")
        check_known(self.experts, capacity)
        if options.get("use_full_budget"):
            raise TableError(
                "use_full_budget is for a model without experts: with several of them, cases on which "
                "they are not expected to do better stay with the machine"
            )
        super().__init__(model, budget=budget, **options)
        self.capacity = capacity
        self._names = tuple(row["expert"] for row in self.experts)
        prices = [model.team.prices_[name] for name in self._names]
        self._prices = np.array(prices) + model.team.budget_price_
        self._who: NDArray[Any] | None = None
        self._places: dict[str, int] = {}
        self.totals.load = dict.fromkeys(self._names, 0)
        self.totals.audits = dict.fromkeys(self._names, 0)

    @property
    def in_batch(self) -> bool:
        """Whether the table is one batch."""
        return self.budget is not None or self.capacity is not None

    def over_budget(self) -> float | None:
        """The model's budget as a share, if unusual cases have clearly exceeded a capacity; else None."""
        rows, card = self.totals.rows, self.model.card_
        if self.in_batch or self.exceed_budget or not self.totals.extra:
            return None
        for row in self.experts:
            share = row["share"]
            chance = 3 * np.sqrt(rows * share * (1 - share)) + TOLERATED * rows
            if self.totals.load[row["expert"]] > share * rows + chance:
                return share_of(card["budget"], card["rows"])
        return None

    def loads(self) -> list[dict[str, Any]]:
        """For each expert the cases by the rule, the limit (a share without a batch), and audits."""
        return [
            {
                "expert": row["expert"],
                "cases": self.totals.load[row["expert"]],
                "limit": self._places.get(row["expert"], row["share"]),
                "audited": self.totals.audits[row["expert"]],
            }
            for row in self.experts
        ]

    def _rank(self, chunks: Chunks, seen: Callable[[int], None]) -> None:
        """Read all chunks once, and share out all cases."""
        parts: list[Array] = []
        firsts: list[Bools] = [np.empty(0, dtype=bool)]
        rows = 0
        for chunk in chunks():
            codes, _ = self._codes(chunk, rows)
            firsts.append(self._comes_first(self.model.guard.strange(codes)))
            parts.append(self._features(codes, rows))
            rows += len(codes)
            seen(len(codes))
        self._who = np.full(rows, None, dtype=object)
        self._places = places_per_expert(self.experts, self.capacity, rows)
        if rows:
            self._share_out(np.concatenate(parts), np.concatenate(firsts), self._who)

    def _share_out(self, features: Array, first: Bools, who: NDArray[Any]) -> None:
        """Fill in who takes each case of the batch: unusual cases first, then where it helps most."""
        rows, left = len(who), dict(self._places)
        total = rows if self.budget is None else places_for(self.budget, rows)
        if first.any():
            gains = self.model.team.gains(features[first])
            found = place_all(-gains, np.array(list(left.values()), dtype=float), total)
            names = [None if place < 0 else self._names[place] for place in found.chosen]
            for name in names:
                if name is not None:
                    left[name] -= 1
                    total -= 1
            if self.exceed_budget:
                best = self.model.team.preferred(gains)
                names = [best[row] if name is None else name for row, name in enumerate(names)]
            who[first] = np.array(names, dtype=object)
        others = ~first
        if others.any() and total > 0 and any(left.values()):
            total = min(total, int(others.sum()))
            who[others] = self.model.team.assign_batch(features[others], left, budget=total)

    def _judge(self, features: Array) -> Verdicts:
        considered = self.model.team.consider(features)
        decision = self.model.machine.decision_function(features)
        return Verdicts(decision, considered.score, None, None, considered)

    def _choose(self, features: Array, judged: Verdicts, first: Bools) -> Choice:
        own, _, gains, machine, experts = judged.by_experts
        if self._who is None:
            usual = np.array([name is not None for name in own], dtype=bool)
            who = with_preferred(self.model.team, own, gains, usual | first)
            self.totals.extra += int((first & ~usual).sum())
            clauses: Iterable[str] = by_prices(who, gains, self._prices, self._names, self._unit)
            if len(self._names) == 1:  # the team decides as it would without capacities
                clauses = self._rule.clauses(judged.scores, usual)
        else:
            who = self._who[self.totals.rows : self.totals.rows + len(features)]
            clauses = in_batch(who, gains, self._places, len(self._who), self._unit)
        deferred = np.array([name is not None for name in who], dtype=bool)
        errors, named = expected_of(who, experts, self._names)
        return Choice(deferred, None, clauses, (machine, errors), who, named)

    def _auditors(self, luck: Array) -> NDArray[Any]:
        """An expert per audited case, in proportion to capacities; `luck` is between 0 and 1."""
        if self.capacity is None:
            time = np.array([row["share"] for row in self.experts])
        else:
            time = np.array(list(self._places.values()), dtype=float)
        if not time.any():
            time = np.ones(len(self._names))
        place = np.searchsorted(np.cumsum(time) / time.sum(), luck, side="right")
        return np.array(self._names, dtype=object)[np.minimum(place, len(self._names) - 1)]
