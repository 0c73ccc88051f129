"""Decide who takes each new case, chunk by chunk, so that a table may be larger than the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn._utils.units import unit_of
from deferlearn.tables.cells import with_points
from deferlearn.tables.columns import NUMBER, score_names
from deferlearn.tables.decider import TableDecider, answers_of, probabilities_of
from deferlearn.tables.encoding import Unknown
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.frames import as_table
from deferlearn.tables.reasons import Batch, OneByOne, sentences, unusual_first
from deferlearn.tables.routed import Choice, Verdicts, added_columns
from deferlearn.tables.shifts import CaseSample, shift_notes
from deferlearn.tables.top import TopCases, places_for, rounded
from deferlearn.tables.totals import Totals
from deferlearn.teams.budget import share_of
from deferlearn.teams.decider import Decider

if TYPE_CHECKING:
    from deferlearn.tables.team import TabularTeam

# One by one, unusual cases may exceed the budget by this share of the cases.
TOLERATED = 0.01

Chunks = Callable[[], Iterable[Any]]


class Router:
    """Decides who takes the cases of a table, one chunk after the other.

    Without a budget each case is decided by itself, in one pass. With a budget, the cases with the highest
    scores of the whole table go to humans. This takes a first pass for the scores, of which 9 bytes per
    case are kept.

    The size of the chunks does not change the decisions, with one exception: without a budget, of rows
    whose score equals the threshold, the right share of each chunk is deferred.

    Parameters
    ----------
    model : TabularTeam or TableDecider
        A model from `fit_table`, or the part of it that decides, from `load_decider`.
    budget : float, int or None, default=None
        The share or number of the cases of this table that humans take; None decides one by one.
    audit : float, default=0
        Share of the machine's cases that humans take as well, drawn at random, so that the machine's
        errors become known.
    seed : int or None, default=None
        Random seed of the audit.
    version : str, default=""
        Name of the model in the results.
    decimal : {".", ","}, default="."
        The decimal separator of numbers in text.
    probabilities : bool, default=False
        Whether to add a column with the probability of each class.
    defer_unusual : bool, default=True
        Whether humans take unusual cases first, whatever their scores are; see `deferlearn.tables.guard`.
        With a budget they take no more than it allows, unless `exceed_budget` is set.
    exceed_budget : bool, default=False
        Whether humans take all unusual cases even if these are more than the budget.
    use_full_budget : bool, default=False
        Whether humans also take cases at the top on which they are not expected to do better.

    Attributes
    ----------
    totals : Totals
        Counts of what was routed so far.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables import Router, fit_table, select_cases
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=80)
    >>> table = {"size": size, "truth": np.where(size + 0.5 * rng.normal(size=80) > 0, "ill", "well")}
    >>> team = fit_table(select_cases(table, "truth"), alpha=0.1)
    >>> router = Router(team, budget=1)
    >>> chunks = [{"size": [-2.0, 0.1]}, {"size": [1.5]}]
    >>> for _, routed in router.route(lambda: chunks):
    ...     print(routed["machine_answer"].to_pylist(), routed["taken_by"].to_pylist())
    ['well', 'well'] ['machine', 'human']
    ['ill'] ['machine']
    """

    _names_experts = False

    def __init__(
        self,
        model: TabularTeam | TableDecider,
        *,
        budget: float | int | None = None,
        audit: float = 0.0,
        seed: int | None = None,
        version: str = "",
        decimal: str = ".",
        probabilities: bool = False,
        defer_unusual: bool = True,
        exceed_budget: bool = False,
        use_full_budget: bool = False,
    ) -> None:
        if model.card_.get("experts") and not self._names_experts:
            raise TableError("the model tells experts apart: use ExpertRouter, which names them")
        if not 0.0 <= audit <= 1.0:
            raise TableError(f"audit={audit!r} must be a share between 0 and 1")
        if budget is not None:
            places_for(budget, 1)  # refuses an invalid budget before anything is read
        self.model, self.budget, self.audit, self.version = model, budget, audit, version
        self.probabilities, self.defer_unusual = probabilities, defer_unusual
        self.exceed_budget, self.use_full_budget = exceed_budget, use_full_budget
        self.totals = Totals()
        self._rng = np.random.default_rng(seed)
        card = model.card_
        self._unit = unit_of(card)
        numbers = [name for name, kind in card["columns"].items() if kind == NUMBER]
        numbers += score_names(card.get("machine_score"))
        self._numbers, self._decimal = numbers, decimal
        self._top: TopCases | None = None
        self._sample = CaseSample()
        threshold = float(model.machine.deferral_threshold_)
        self._rule = OneByOne(threshold, np.array(card["score_percentiles"]))

    @property
    def in_batch(self) -> bool:
        """Whether the table is one batch."""
        return self.budget is not None

    def route(
        self, chunks: Chunks, seen: Callable[[int], None] = lambda rows: None
    ) -> Iterator[tuple[Any, Any]]:
        """Each chunk with what was decided about its cases.

        Parameters
        ----------
        chunks : callable
            Returns the chunks of the table each time it is called: tables with the model's columns.
        seen : callable
            Called with the number of rows of each chunk, in both passes.

        Yields
        ------
        chunk : table
            The chunk, unchanged.
        routed : pyarrow.Table
            The columns `deferlearn.tables.routed.added_columns` for its rows.
        """
        if self.in_batch:
            self._rank(chunks, seen)
        for chunk in chunks():
            routed = self._decide(chunk)
            seen(routed.num_rows)
            yield chunk, routed
        self.totals.shifts = shift_notes(self.model.guard, self._sample.codes)

    def over_budget(self) -> float | None:
        """The model's budget as a share, if unusual cases have clearly exceeded it one by one; else None.

        The rule keeps the budget on average only, so chance and a hundredth of the cases are allowed for.
        """
        card, rows = self.model.card_, self.totals.rows
        budget = share_of(card["budget"], card["rows"])
        chance = 3 * np.sqrt(rows * budget * (1 - budget)) + TOLERATED * rows
        if self.budget is not None or self.exceed_budget or not self.totals.extra:
            return None
        return budget if self.totals.deferred > budget * rows + chance else None

    def _rank(self, chunks: Chunks, seen: Callable[[int], None]) -> None:
        """Read all chunks once, to know which scores are at the top."""
        scores: list[Array] = [np.empty(0)]
        firsts: list[Bools] = [np.empty(0, dtype=bool)]
        rows = 0
        for chunk in chunks():
            codes, _ = self._codes(chunk, rows)
            firsts.append(self._comes_first(self.model.guard.strange(codes)))
            scores.append(rounded(self.model.team.deferral_score(self._features(codes, rows))))
            rows += len(codes)
            seen(len(codes))
        first = np.concatenate(firsts)
        count = places_for(self.budget, rows)
        if self.exceed_budget:
            count = max(count, int(first.sum()))
        self._top = TopCases(np.concatenate(scores), first, count)

    def _comes_first(self, strange: Bools) -> Bools:
        """The cases that humans take before all others."""
        unusual: Bools = np.asarray(strange.any(axis=1))
        return unusual if self.defer_unusual else np.zeros_like(unusual)

    def _codes(self, chunk: Any, offset: int) -> tuple[Array, dict[str, Unknown]]:
        try:
            chunk = with_points(as_table(chunk), self._numbers, self._decimal)
            return self.model.encoder.codes(chunk)
        except CellError as error:
            raise error.moved(offset) from None

    def _features(self, codes: Array, offset: int) -> Array:
        try:
            return self.model.encoder.features(codes)
        except CellError as error:
            raise error.moved(offset) from None

    def _decide(self, chunk: Any) -> Any:
        import pyarrow as pa

        codes, unknown = self._codes(chunk, self.totals.rows)
        features = self._features(codes, self.totals.rows)
        strange = self.model.guard.strange(codes)
        first = self._comes_first(strange)
        judged = self._judge(features)
        decision, scores = judged.decision, judged.scores
        team = self.model.machine
        answers = answers_of(team, features, decision)
        several = len(team.classes_) > 2
        chances, sure = None, None
        if several or self.probabilities:
            chances = probabilities_of(team, features, decision)
        if several and chances is not None:
            sure = chances[answers[:, None] == team.classes_]
        choice = self._choose(features, judged, first)
        deferred, ranks = choice.deferred, choice.ranks
        # One random number per case, also for deferred ones: the size of the chunks does not matter.
        luck = self._rng.random(len(scores))
        audit = (luck < self.audit) & ~deferred
        experts = self._experts(choice, audit, luck)
        why = self.model.guard.reasons(codes, strange)
        reasons = sentences(
            unusual_first(choice.clauses, why, deferred & first),
            answers,
            decision,
            deferred,
            audit,
            choice.expected,
            sure,
            why,
            experts,
            choice.compared,
            self._unit,
        )
        self._count(codes, strange, deferred, audit, unknown)
        columns = [
            pa.array(answers.tolist(), pa.string()),
            pa.array(decision if sure is None else sure),
            scores,
            pa.nulls(len(scores), pa.int64()) if ranks is None else ranks,
            deferred,
            audit,
            strange.any(axis=1),
            pa.array(np.where(deferred | audit, "human", "machine").tolist(), pa.string()),
            *([] if experts is None else [pa.array(experts, pa.string())]),
            pa.array(reasons, pa.string()),
            pa.array([self.version] * len(scores), pa.string()),
            *(chances.T if self.probabilities and chances is not None else ()),
        ]
        names = added_columns(team.classes_.tolist(), self.probabilities, experts is not None)
        return pa.table(dict(zip(names, columns, strict=True)))

    def _judge(self, features: Array) -> Verdicts:
        """What the team says of cases."""
        team = self.model.team
        if isinstance(team, Decider):
            return Verdicts(*team.judge(features))
        usual = team.defer(features) if self._top is None else None
        learned = hasattr(self.model.chosen, "expected_errors")
        expected = self.model.chosen.expected_errors(features) if learned else None
        return Verdicts(
            team.decision_function(features), team.deferral_score(features), usual, expected
        )

    def _choose(self, features: Array, judged: Verdicts, first: Bools) -> Choice:
        """Who takes the cases of the next chunk."""
        scores = judged.scores
        if self._top is None:
            usual = np.asarray(judged.usual, dtype=bool)
            self.totals.extra += int((first & ~usual).sum())
            return Choice(usual | first, None, self._rule.clauses(scores, usual), judged.expected)
        top, ranks = self._top.take(rounded(scores), first)
        deferred = self._welcome(features, top, first)
        batch = Batch(self._top.count, self._top.total)
        self.totals.unused += int((top & ~deferred).sum())
        clauses = batch.clauses(scores, ranks, top & ~deferred)
        return Choice(deferred, ranks, clauses, judged.expected)

    def _experts(self, choice: Choice, audit: Bools, luck: Array) -> list[str] | None:
        """The name of the expert for each case, empty for the machine; None if they are not told apart."""
        if choice.experts is None:
            return None
        names = choice.experts.copy()
        for name in names[choice.deferred]:
            self.totals.load[name] += 1
        if audit.any():
            names[audit] = self._auditors(luck[audit] / self.audit)
        for name in names[audit]:
            self.totals.audits[name] += 1
        return ["" if name is None else str(name) for name in names]

    def _auditors(self, luck: Array) -> NDArray[Any]:
        """Who takes audited cases, if experts are told apart."""
        raise NotImplementedError

    def _count(
        self,
        codes: Array,
        strange: Bools,
        deferred: Bools,
        audit: Bools,
        unknown: dict[str, Unknown],
    ) -> None:
        totals, guard = self.totals, self.model.guard
        unusual = strange.any(axis=1)
        totals.rows += len(codes)
        totals.deferred += int(deferred.sum())
        totals.audited += int(audit.sum())
        totals.unusual += int(unusual.sum())
        totals.unusual_deferred += int((unusual & deferred).sum())
        totals.add_unknown(unknown)
        for place in np.flatnonzero(strange.any(axis=0)).tolist():
            rows = np.flatnonzero(strange[:, place])
            example = guard.cell(place, codes[rows[0], place])
            totals.add_strange(guard.columns[place], len(rows), example)
        self._sample.add(codes)

    def _welcome(self, features: Array, top: Bools, first: Bools) -> Bools:
        """The cases at the top that the team defers if its budget allows all of them.

        Some teams leave a part of the budget unused where they expect humans to do no better. What they
        expect of an unusual case does not count.
        """
        deferred = top.copy()
        asked = top & ~first
        if asked.any() and not self.use_full_budget:
            deferred[asked] = self.model.team.defer_top(features[asked], 1.0)
        return deferred
