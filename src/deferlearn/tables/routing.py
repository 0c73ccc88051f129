"""Decide who takes each new case, chunk by chunk, so that a table may be larger than the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn._utils.words import counted
from deferlearn.tables.cells import with_points
from deferlearn.tables.columns import NUMBER, score_names
from deferlearn.tables.decider import TableDecider, answers_of, probabilities_of
from deferlearn.tables.encoding import Unknown
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.frames import as_table
from deferlearn.tables.reasons import Batch, OneByOne, sentences
from deferlearn.teams.budget import count_of
from deferlearn.teams.decider import Decider

if TYPE_CHECKING:
    from deferlearn.tables.team import TabularTeam

# The columns that routing adds with two classes, in this order; see `added_columns`.
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

# How sure the machine is: with two classes by its decision value, with more by a probability.
DECISION, PROBABILITY = "decision_value", "probability"

Chunks = Callable[[], Iterable[Any]]


def added_columns(classes: Sequence[str], probabilities: bool = False) -> list[str]:
    """The columns that routing adds, in this order.

    Parameters
    ----------
    classes : sequence of str
        The labels.
    probabilities : bool, default=False
        Whether there is a column with the probability of each class.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from deferlearn.tables.routing import added_columns
    >>> added_columns(["none", "mild", "severe"])[:3]
    ['machine_answer', 'probability', 'deferral_score']
    >>> added_columns(["ill", "well"], probabilities=True)[-2:]
    ['probability_ill', 'probability_well']
    """
    several = len(classes) > 2
    names = [PROBABILITY if several and name == DECISION else name for name in COLUMNS]
    return names + [f"{PROBABILITY}_{label}" for label in classes if probabilities]


@dataclass
class Totals:
    """Counts of what was routed.

    Attributes
    ----------
    rows : int
        Number of all cases.
    deferred, audited : int
        Number of cases that humans take by the rule, and as a random audit.
    unknown : dict
        For each column with categories that did not occur in training, the number of such cells and an
        example.
    """

    rows: int = 0
    deferred: int = 0
    audited: int = 0
    unknown: dict[str, Unknown] = field(default_factory=dict)

    def add_unknown(self, unknown: dict[str, Unknown]) -> None:
        """Add the unknown categories of another chunk."""
        for name, (cells, example) in unknown.items():
            before = self.unknown.get(name, Unknown(0, example))
            self.unknown[name] = Unknown(before.cells + cells, before.example)

    def notes(self) -> list[str]:
        """What the user should know about unknown categories."""
        return [
            f"Column {name!r} has {counted(found.cells, 'cell')} with a category that did not occur in "
            f"training, such as {found.example!r}; it counts as a rare category."
            for name, found in self.unknown.items()
        ]


class Router:
    """Decides who takes the cases of a table, one chunk after the other.

    Without a budget each case is decided by itself, in one pass. With a budget, the cases with the highest
    scores of the whole table go to humans. This takes a first pass for the scores, of which 8 bytes per
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
    ) -> None:
        if not 0.0 <= audit <= 1.0:
            raise TableError(f"audit={audit!r} must be a share between 0 and 1")
        if budget is not None:
            _count(budget, 1)  # refuses an invalid budget before anything is read
        self.model, self.budget, self.audit, self.version = model, budget, audit, version
        self.probabilities = probabilities
        self.totals = Totals()
        self._rng = np.random.default_rng(seed)
        card = model.card_
        numbers = [name for name, kind in card["columns"].items() if kind == NUMBER]
        numbers += score_names(card.get("machine_score"))
        self._commas = numbers if decimal == "," else []
        self._sorted: Array | None = None
        self._count = self._ties_left = 0
        self._rule = OneByOne(
            float(model.team.deferral_threshold_), np.array(card["score_percentiles"])
        )

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
            The columns `deferlearn.tables.routing.added_columns` for its rows.
        """
        if self.budget is not None:
            self._rank(chunks, seen)
        for chunk in chunks():
            routed = self._decide(chunk)
            seen(routed.num_rows)
            yield chunk, routed

    def _rank(self, chunks: Chunks, seen: Callable[[int], None]) -> None:
        """Read all chunks once, and keep the sorted scores."""
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
        """The lowest score that goes to humans; of the rows that share it, the first ones do."""
        assert self._sorted is not None
        return float(self._sorted[len(self._sorted) - self._count]) if self._count else np.inf

    def _features(self, chunk: Any, offset: int) -> tuple[Array, dict[str, Unknown]]:
        encoder = self.model.encoder
        try:
            if self._commas:
                chunk = with_points(as_table(chunk), self._commas)
            codes, unknown = encoder.codes(chunk)
            return encoder.features(codes), unknown
        except CellError as error:
            raise error.moved(offset) from None

    def _decide(self, chunk: Any) -> Any:
        import pyarrow as pa

        features, unknown = self._features(chunk, self.totals.rows)
        team = self.model.team
        deferred: Any = None
        if isinstance(team, Decider):
            decision, scores, deferred, expected = team.judge(features)
        else:
            decision, scores = team.decision_function(features), team.deferral_score(features)
            if self._sorted is None:
                deferred = team.defer(features)
            learned = hasattr(self.model.chosen, "expected_errors")
            expected = self.model.chosen.expected_errors(features) if learned else None
        answers = answers_of(team, features, decision)
        several = len(team.classes_) > 2
        chances, sure = None, None
        if several or self.probabilities:
            chances = probabilities_of(team, features, decision)
        if several and chances is not None:
            sure = chances[answers[:, None] == team.classes_]
        if self._sorted is None:
            ranks = None
            clauses = self._rule.clauses(scores, deferred)
        else:
            top, ranks = self._take_top(_rounded(scores))
            deferred = self._welcome(features, top)
            rule = Batch(self._count, len(self._sorted))
            clauses = rule.clauses(scores, ranks, top & ~deferred)
        # One random number per case, also for deferred ones: the size of the chunks does not matter.
        audit = (self._rng.random(len(scores)) < self.audit) & ~deferred
        reasons = sentences(clauses, answers, decision, deferred, audit, expected, sure)
        self.totals.rows += len(scores)
        self.totals.deferred += int(deferred.sum())
        self.totals.audited += int(audit.sum())
        self.totals.add_unknown(unknown)
        columns = [
            pa.array(answers.tolist(), pa.string()),
            pa.array(decision if sure is None else sure),
            scores,
            pa.nulls(len(scores), pa.int64()) if ranks is None else ranks,
            deferred,
            audit,
            pa.array(np.where(deferred | audit, "human", "machine").tolist(), pa.string()),
            pa.array(reasons, pa.string()),
            pa.array([self.version] * len(scores), pa.string()),
            *(chances.T if self.probabilities and chances is not None else ()),
        ]
        names = added_columns(team.classes_.tolist(), self.probabilities)
        return pa.table(dict(zip(names, columns, strict=True)))

    def _welcome(self, features: Array, top: Bools) -> Bools:
        """The cases at the top that the team defers if its budget allows all of them.

        Some teams leave a part of the budget unused where they expect humans to do no better.
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
    """The number of cases for humans; of a table with fewer cases than the budget they take all."""
    if isinstance(budget, int) and not isinstance(budget, bool) and budget >= 0:
        return min(budget, rows)
    try:
        return count_of(budget, rows, "cases")
    except ValueError as error:
        raise TableError(str(error)) from error


def _rounded(scores: Array) -> Array:
    """Scores rounded to ten digits, as `defer_top` does: equal rows may differ in the last bits."""
    mantissa, exponent = np.frexp(scores)
    return np.ldexp(np.round(mantissa * 2.0**33), exponent - 33)
