"""Counts of what was decided about the cases of a table, and what the user should know about it."""

from dataclasses import dataclass, field

from deferlearn._utils.words import counted
from deferlearn.tables.encoding import Unknown

# So many columns with unusual cells are named; the first ones have the most.
MAX_NAMED = 5


@dataclass
class Totals:
    """Counts of what was routed.

    Attributes
    ----------
    rows : int
        Number of all cases.
    deferred, audited : int
        Number of cases that humans take by the rule, and as a random audit.
    unusual, unusual_deferred : int
        Number of cases that are unlike the training cases, and how many of them humans take.
    extra : int
        How many of these a human would not have taken if they were usual.
    unused : int
        Number of places of the budget that are not used, because humans are not expected to do better.
    unknown : dict
        For each column with categories that did not occur in training, the number of such cells and an
        example.
    strange : dict
        For each column with unusual cells, their number and an example in words.
    load, audits : dict
        For each expert the number of cases by the rule, and as a random audit; empty if experts are not
        told apart.
    shifts : list of str
        What is different about the cases as a whole.

    Examples
    --------
    >>> from deferlearn.tables.totals import Totals
    >>> totals = Totals(rows=40, unusual=2, unusual_deferred=2)
    >>> totals.add_strange("age", 2, "'age' is 610 (30 to 80 in training)")
    >>> for note in totals.notes():
    ...     print(note)
    2 of 40 cases are unusual: the machine has seen nothing like them. Humans take all of them.
    Unusual: 'age' is 610 (30 to 80 in training).
    """

    rows: int = 0
    deferred: int = 0
    audited: int = 0
    unusual: int = 0
    unusual_deferred: int = 0
    extra: int = 0
    unused: int = 0
    unknown: dict[str, Unknown] = field(default_factory=dict)
    strange: dict[str, tuple[int, str]] = field(default_factory=dict)
    load: dict[str, int] = field(default_factory=dict)
    audits: dict[str, int] = field(default_factory=dict)
    shifts: list[str] = field(default_factory=list)

    def add_unknown(self, unknown: dict[str, Unknown]) -> None:
        """Add the unknown categories of another chunk."""
        for name, (cells, example) in unknown.items():
            before = self.unknown.get(name, Unknown(0, example))
            self.unknown[name] = Unknown(before.cells + cells, before.example)

    def add_strange(self, column: str, cells: int, example: str) -> None:
        """Add unusual cells of a column."""
        before, first = self.strange.get(column, (0, example))
        self.strange[column] = (before + cells, first)

    def notes(self) -> list[str]:
        """What the user should know, one sentence or two per note."""
        return [
            *self.unusual_notes(),
            *self.shifts,
            *self.unknown_notes(),
            *self._unused_notes(),
        ]

    def unknown_notes(self) -> list[str]:
        """The columns with categories that did not occur in training."""
        return [
            f"Column {name!r} has {counted(found.cells, 'cell')} with a category that did not occur in "
            f"training, such as {found.example!r}; it counts as a rare category."
            for name, found in self.unknown.items()
        ]

    def unusual_notes(self) -> list[str]:
        """How many cases are unlike the training cases, and in which columns."""
        if not self.unusual:
            return []
        kept = self.unusual - self.unusual_deferred
        one = self.unusual == 1
        who = "A human takes it." if one else "Humans take all of them."
        if kept:
            whose = "it, and its answer is" if one else f"{kept} of them, and its answers there are"
            who = f"The machine keeps {whose} not to be trusted."
        notes = [
            f"{self.unusual} of {counted(self.rows, 'case')} {'is' if one else 'are'} unusual: the machine "
            f"has seen nothing like {'it' if one else 'them'}. {who}"
        ]
        ordered = sorted(self.strange.items(), key=lambda item: -item[1][0])
        for name, (cells, example) in ordered[:MAX_NAMED]:
            many = f" There are {cells} such cells in column {name!r}." if cells > 2 else ""
            notes.append(f"Unusual: {example}.{many}")
        if len(ordered) > MAX_NAMED:
            more = counted(len(ordered) - MAX_NAMED, "more column has", "more columns have")
            notes.append(f"{more} unusual cells.")
        return notes

    def _unused_notes(self) -> list[str]:
        if not self.unused:
            return []
        places = counted(self.unused, "place of the budget is", "places of the budget are")
        return [
            f"{places} unused: humans are not expected to do better there. --use-full-budget uses them."
        ]
