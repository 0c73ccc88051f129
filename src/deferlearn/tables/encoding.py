"""From the cells of a table to features, by what a `TableEncoder` has learned.

It needs numpy and pyarrow only, so that a stored model decides without loading scikit-learn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.tables.cells import NotPlain, label_of, label_text, number_of, numbers
from deferlearn.tables.columns import score_names
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.frames import as_table, cases_of, missing_columns

UNKNOWN = -1.0
# Squares and sums of larger numbers overflow, in units of the table or of the standard deviation.
LARGEST = 1e100
# Up to this many rows are read cell by cell in Python: pyarrow takes tens of microseconds per column.
FEW_ROWS = 8


class Unknown(NamedTuple):
    """Cells with a category that did not occur in training: how many, and one of them."""

    cells: int
    example: str


@dataclass(frozen=True, eq=False)
class Encoding:
    """How cells become codes, and codes become features.

    Attributes
    ----------
    numbers : list of str
        Columns of numbers.
    categories : dict
        The categories of each other column.
    fill, centre, scale : ndarray of shape (n_numbers,)
        The number for a gap. The centre is then subtracted, and the result is divided by the scale.
    gaps : ndarray of int
        Columns of numbers that have a second feature, which marks gaps.
    blocks : list of ndarray of shape (n_categories + 2, n_features)
        For each other column the features of its categories, of an unknown category, and of a gap.
    score : str, list of str or None
        Column with the score of a machine, which is the last feature, as it is; with more than two
        classes, as many columns.
    """

    numbers: list[str]
    categories: dict[str, list[str]]
    fill: Array
    centre: Array
    scale: Array
    gaps: Index
    blocks: list[Array]
    score: str | list[str] | None = None

    @property
    def scores(self) -> list[str]:
        """The columns with scores of a machine, none or more."""
        return score_names(self.score)

    @property
    def columns(self) -> list[str]:
        """The columns that are used, in the order of their codes: numbers, the others, the scores."""
        return [*self.numbers, *self.categories, *self.scores]

    def codes(self, X: Any) -> tuple[Array, dict[str, Unknown]]:
        """Read the columns that are used; see `TableEncoder.codes`."""
        cases = cases_of(X, FEW_ROWS)
        if cases is not None:
            try:
                return self._codes_of_cases(cases)
            except (NotPlain, KeyError):
                # pyarrow reads cells of every kind, and its messages name what is wrong.
                if isinstance(X, Mapping | list):
                    used = self.columns
                    X = [{name: case[name] for name in used if name in case} for case in cases]
        return self._codes_of_table(as_table(X))

    def _codes_of_cases(self, cases: list[Mapping[str, Any]]) -> tuple[Array, dict[str, Unknown]]:
        """The same codes as those of a table, cell by cell; `NotPlain` for cells of unusual kinds."""
        out = np.empty((len(cases), len(self.columns)))
        unknown: dict[str, Unknown] = {}
        scores = self.scores
        for row, case in enumerate(cases):
            codes = [number_of(case[name]) for name in self.numbers]
            for name, categories in self.categories.items():
                label = label_of(case[name])
                if label is None:
                    codes.append(np.nan)
                elif label in categories:
                    codes.append(float(categories.index(label)))
                else:
                    codes.append(UNKNOWN)
                    before = unknown.get(name, Unknown(0, label))
                    unknown[name] = Unknown(before.cells + 1, before.example)
            codes += [number_of(case[name]) for name in scores]
            out[row] = codes
        return out, unknown

    def _codes_of_table(self, table: Any) -> tuple[Array, dict[str, Unknown]]:
        missing = missing_columns(self.columns, table.column_names)
        if missing:
            raise TableError(f"there is no column {missing}, which the model needs")
        out = np.empty((table.num_rows, len(self.columns)), order="F")
        unknown: dict[str, Unknown] = {}
        for place, name in enumerate(self.columns):
            if name not in self.categories:
                out[:, place] = numbers(table.column(name), name)
                continue
            out[:, place], cells = category_codes(table.column(name), self.categories[name])
            if len(cells):
                unknown[name] = Unknown(len(cells), cells[0].as_py())
        return out, unknown

    def features(self, codes: Array) -> Array:
        """Features of rows that `codes` has read; see `TableEncoder.features`."""
        n_numbers = len(self.numbers)
        measured = codes[:, :n_numbers]
        missing = np.isnan(measured)
        values = np.where(missing, self.fill, measured)
        with np.errstate(over="ignore"):  # such cells are refused
            values -= self.centre
            values /= self.scale
        problem = "is so far from the training cases that no result can be computed: correct it"
        self.refuse_large(values, codes, problem)
        parts = [values, missing[:, self.gaps]]
        for place, block in enumerate(self.blocks, start=n_numbers):
            # The last two rows of a block are for unknown categories and for gaps.
            code = np.where(np.isnan(codes[:, place]), len(block) - 1, codes[:, place])
            parts.append(block[np.where(code < 0, len(block) - 2, code).astype(np.intp)])
        for place, name in enumerate(self.scores, start=n_numbers + len(self.categories)):
            missing_scores = np.flatnonzero(np.isnan(codes[:, place]))
            if len(missing_scores):
                problem = "is no score: leave the case out, or send it to a human"
                raise CellError(name, int(missing_scores[0]), "", problem)
            parts.append(codes[:, [place]])
        return np.concatenate(parts, axis=1)

    def refuse_large(self, values: Array, codes: Array, problem: str) -> None:
        """Refuse the first cell of a number whose value, as it is or scaled, is too large."""
        large = np.abs(values) > LARGEST  # False for a gap
        if large.any():
            row, place = (int(i) for i in np.argwhere(large)[0])
            raise CellError(self.columns[place], row, f"{codes[row, place]:g}", problem)


def category_codes(column: Any, categories: list[str]) -> tuple[Array, Any]:
    """Positions of the categories of a column, and the cells that hold an unknown one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = label_text(column)
    codes = pc.index_in(text, pa.array(categories))
    unknown = pc.and_(pc.is_null(codes), pc.is_valid(text))
    values = np.array(pc.cast(codes, pa.float64()).to_numpy(zero_copy_only=False))
    values[np.asarray(unknown)] = UNKNOWN
    return values, text.filter(unknown)
