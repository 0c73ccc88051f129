"""Who takes each new case: chunk by chunk, so that the table may be larger than the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn.tables.encoder import Unknown
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.reasons import Batch, OneByOne, sentences
from deferlearn.tables.team import TabularTeam
from deferlearn.teams.parameters import count_of

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The columns that routing adds, in this order.
COLUMNS = (
    "machine_answer",
    "decision_value",
    "deferral_score",
    "rank",
    "deferred",
    "audit",
    "taken_by",
    "reason",
    "model_version",
)

Chunks = Callable[[], Iterable[Any]]


@dataclass
class Totals:
    """What was routed.

    Attributes
    ----------
    rows : int
        Cases in all.
    deferred, audited : int
        Those that humans take by the rule, and by the lot.
    unknown : dict
        For columns with categories that were not there in training, the number of such cells and one of
        them.
    """

    rows: int = 0
    deferred: int = 0
    audited: int = 0
    unknown: dict[str, Unknown] = field(default_factory=dict)

    def add_unknown(self, unknown: dict[str, Unknown]) -> None:
        """Count what another chunk has brought."""
        for name, (cells, example) in unknown.items():
            before = self.unknown.get(name, Unknown(0, example))
            self.unknown[name] = Unknown(before.cells + cells, before.example)


class Router:
    """Decides about the cases of a table, one chunk after the other.

    Without a budget each case is decided by itself, in one pass. With one, the cases that score highest
    among all go to humans: that takes a first pass for the scores, of which 8 bytes a case are kept.

    The size of the chunks plays no role, with one exception: of equal rows whose score is that of the
    threshold, one by one, the right share of each chunk is deferred.

    Parameters
    ----------
    model : TabularTeam
        From `fit_table`.
    budget : float, int or None, default=None
        The share or number of cases that humans take of this table; None decides one by one.
    audit : float, default=0
        A share of the cases left to the machine that goes to humans by the lot, so that its errors can
        be seen.
    seed : int or None, default=None
        Of the lot.
    version : str, default=""
        How the model is called in the results.

    Attributes
    ----------
    totals : Totals
        What was routed so far.

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

    def __init__(
        self,
        model: TabularTeam,
        *,
        budget: float | int | None = None,
        audit: float = 0.0,
        seed: int | None = None,
        version: str = "",
    ) -> None:
        if not 0.0 <= audit <= 1.0:
            raise TableError(f"audit={audit!r} is a share and must be between 0 and 1")
        if budget is not None:
            _count(budget, 1)  # refuses what is no budget before anything is read
        self.model, self.budget, self.audit, self.version = model, budget, audit, version
        self.totals = Totals()
        self._lot = np.random.default_rng(seed)
        self._sorted: Array | None = None
        self._count = self._ties_left = 0
        self._rule = OneByOne(
            float(model.team.deferral_threshold_), np.array(model.card_["score_percentiles"])
        )

    def route(
        self, chunks: Chunks, seen: Callable[[int], None] = lambda rows: None
    ) -> Iterator[tuple[Any, Any]]:
        """Each chunk with what was decided about its cases.

        Parameters
        ----------
        chunks : callable
            Gives the chunks of the table anew each time it is called: tables with the model's columns.
        seen : callable
            Told the number of rows of each chunk, in either pass.

        Yields
        ------
        chunk : table
            As it came.
        routed : pyarrow.Table
            The columns `deferlearn.tables.routing.COLUMNS` of its rows.
        """
        if self.budget is not None:
            self._rank(chunks, seen)
        for chunk in chunks():
            routed = self._decide(chunk)
            seen(routed.num_rows)
            yield chunk, routed

    def _rank(self, chunks: Chunks, seen: Callable[[int], None]) -> None:
        """Read all once, and keep the scores in their order."""
        parts: list[Array] = []
        rows = 0
        for chunk in chunks():
            features, _ = self._features(chunk, rows)
            parts.append(_rounded(self.model.team.deferral_score(features)))
            rows += len(features)
            seen(len(features))
        self._sorted = np.concatenate(parts) if parts else np.empty(0)
        del parts
        self._sorted.sort()
        self._count = _count(self.budget, rows)
        above = rows - int(np.searchsorted(self._sorted, self._cut(), side="right"))
        self._ties_left = self._count - above

    def _cut(self) -> float:
        """The lowest score that goes to humans; of those who share it, the first rows."""
        assert self._sorted is not None
        return float(self._sorted[len(self._sorted) - self._count]) if self._count else np.inf

    def _features(self, chunk: Any, offset: int) -> tuple[Array, dict[str, Unknown]]:
        encoder = self.model.encoder
        try:
            codes, unknown = encoder.codes(chunk)
            return encoder.features(codes), unknown
        except CellError as error:
            raise error.moved(offset) from None

    def _decide(self, chunk: Any) -> Any:
        import pyarrow as pa

        features, unknown = self._features(chunk, self.totals.rows)
        team = self.model.team
        decision = team.decision_function(features)
        answers = team.classes_[(decision > 0).astype(np.int64)]  # as `predict`, for half the price
        scores = team.deferral_score(features)
        if self._sorted is None:
            deferred, ranks = team.defer(features), None
            clauses = self._rule.clauses(scores, deferred)
        else:
            top, ranks = self._take_top(_rounded(scores))
            deferred = self._welcome(features, top)
            rule = Batch(self._count, len(self._sorted))
            clauses = rule.clauses(scores, ranks, top & ~deferred)
        # One number a case, whoever takes it: the lot does not depend on the size of the chunks.
        audit = (self._lot.random(len(scores)) < self.audit) & ~deferred
        expect = getattr(self.model.chosen, "expected_errors", None)
        expected = None if expect is None else expect(features)
        reasons = sentences(clauses, answers, decision, deferred, audit, expected)
        self.totals.rows += len(scores)
        self.totals.deferred += int(deferred.sum())
        self.totals.audited += int(audit.sum())
        self.totals.add_unknown(unknown)
        return pa.table(
            {
                "machine_answer": pa.array(answers.tolist(), pa.string()),
                "decision_value": decision,
                "deferral_score": scores,
                "rank": pa.nulls(len(scores), pa.int64()) if ranks is None else ranks,
                "deferred": deferred,
                "audit": audit,
                "taken_by": pa.array(np.where(deferred | audit, "human", "machine").tolist()),
                "reason": pa.array(reasons, pa.string()),
                "model_version": pa.array([self.version] * len(scores), pa.string()),
            }
        )

    def _welcome(self, features: Array, top: Bools) -> Bools:
        """Those at the top that a team would defer if it might defer all of them.

        Some teams leave a part of the budget where they expect humans to do no better than the machine.
        """
        deferred = top.copy()
        if top.any():
            deferred[top] = self.model.team.defer_top(features[top], 1.0)
        return deferred

    def _take_top(self, scores: Array) -> tuple[Bools, NDArray[np.int64]]:
        assert self._sorted is not None
        ranks = 1 + len(self._sorted) - np.searchsorted(self._sorted, scores, side="right")
        cut = self._cut()
        tied = np.flatnonzero(scores == cut)[: self._ties_left]
        self._ties_left -= len(tied)
        deferred = scores > cut
        deferred[tied] = True
        return deferred, ranks


def _count(budget: Any, rows: int) -> int:
    """A number is the most that humans can take: of a smaller table they take all."""
    if isinstance(budget, int) and not isinstance(budget, bool) and budget >= 0:
        return min(budget, rows)
    try:
        return count_of(budget, rows, "cases")
    except ValueError as error:
        raise TableError(str(error)) from error


def _rounded(scores: Array) -> Array:
    """Scores to ten digits, as `defer_top` compares them: equal rows may differ in the last bits."""
    mantissa, exponent = np.frexp(scores)
    return np.ldexp(np.round(mantissa * 2.0**33), exponent - 33)
