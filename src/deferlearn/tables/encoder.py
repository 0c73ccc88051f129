"""From the columns of a table to the features of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from deferlearn.tables.cells import label_text, numbers
from deferlearn.tables.columns import (
    BOOLEAN,
    BOOLEANS,
    CATEGORY,
    MAX_CATEGORIES,
    NUMBER,
    describe,
)
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.frames import as_table

Array = NDArray[np.float64]

# Rarer categories share one column: less than a handful of rows says nothing about any of them.
MIN_FREQUENCY = 5
UNKNOWN = -1.0
# Squares and sums of larger numbers overflow, in units of the table or of the standard deviation.
LARGEST = 1e100


class Unknown(NamedTuple):
    """Cells with a category that was not there in training: how many, and one of them."""

    cells: int
    example: str


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers, categories and gaps of a table as features; what is no feature is named and left out.

    - Numbers: gaps get the median, then mean 0 and variance 1; a column of 0 and 1 says where gaps were.
    - Categories: a column of 0 and 1 each; those seen fewer than `min_frequency` times share one; a gap is
      a category of its own. A category that is new after `fit` counts as a rare one.
    - Booleans: like categories.

    What a column is, and when it is left out, is told in `deferlearn.tables.columns`.

    Parameters
    ----------
    number, category, drop : sequence of str, default=()
        Columns to take as numbers or categories whatever the rules say, or to leave out.
    max_categories : int, default=50
        Columns with more values are no categories.
    min_frequency : int, default=5
        Categories seen less often share a feature.

    Attributes
    ----------
    kinds_ : dict
        "number", "boolean" or "category" of each column that is used.
    categories_ : dict
        The categories of each that has some.
    dropped_ : dict
        Why each other column is left out.
    medians_ : ndarray
        Of each column of numbers: what stands in its gaps.
    gappy_ : ndarray of bool
        Which of these columns had gaps, and so have a feature that says where.
    scaler_ : sklearn.preprocessing.StandardScaler or None
        Of the numbers, if there are any.
    one_hot_ : sklearn.preprocessing.OneHotEncoder or None
        Of the categories, if there are any.
    feature_names_in_ : ndarray of str
        All columns of the table given to `fit`.
    n_features_in_ : int
        How many they are.

    Examples
    --------
    >>> from deferlearn.tables import TableEncoder
    >>> table = {
    ...     "age": [61, None, 48, 70, 52],
    ...     "site": ["Oslo", "Rome", "Rome", "Oslo", "Rome"],
    ...     "hospital": ["General"] * 5,
    ... }
    >>> encoder = TableEncoder(min_frequency=1).fit(table)
    >>> encoder.kinds_, encoder.dropped_
    ({'age': 'number', 'site': 'category'}, {'hospital': "constant, 'General'"})
    >>> list(encoder.get_feature_names_out())
    ['age', 'age is missing', 'site=Oslo', 'site=Rome']
    >>> encoder.transform({"age": [None], "site": ["Paris"]})
    array([[-0.13130643,  1.        ,  0.        ,  0.        ]])
    """

    def __init__(
        self,
        *,
        number: Sequence[str] = (),
        category: Sequence[str] = (),
        drop: Sequence[str] = (),
        max_categories: int = MAX_CATEGORIES,
        min_frequency: int = MIN_FREQUENCY,
    ) -> None:
        self.number = number
        self.category = category
        self.drop = drop
        self.max_categories = max_categories
        self.min_frequency = min_frequency

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Find out what each column is.

        Parameters
        ----------
        X : DataFrame, dict of columns or pyarrow.Table
            The table, without labels and answers.
        y : ignored

        Returns
        -------
        self
        """
        table = as_table(X)
        self._check_names(table.column_names)
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = table.num_columns
        self.kinds_: dict[str, str] = {}
        self.categories_: dict[str, list[str]] = {}
        self.dropped_: dict[str, str] = {}
        for name in table.column_names:
            if name in self.drop:
                self.dropped_[name] = "as you said"
                continue
            told = NUMBER if name in self.number else CATEGORY if name in self.category else None
            kind, reason, categories = describe(name, table.column(name), told, self.max_categories)
            if kind is None:
                self.dropped_[name] = reason
                continue
            self.kinds_[name] = kind
            if categories:
                self.categories_[name] = list(categories)
        if not self.kinds_:
            said = "; ".join(f"{name!r}: {reason}" for name, reason in self.dropped_.items())
            raise TableError(f"no column can be learned from. Left out: {said or 'none is there'}")
        codes, _ = self.codes(table)
        measured = codes[:, self._is_number()]
        self._refuse_large(measured, measured, "is too large to compute with: rescale the column")
        self.gappy_ = np.isnan(measured).any(axis=0)
        # A column that the user calls a number may be empty.
        empty = np.asarray(np.isnan(measured).all(axis=0))
        self.medians_ = np.zeros(measured.shape[1])
        self.medians_[~empty] = np.nanmedian(measured[:, ~empty], axis=0)
        self.scaler_ = StandardScaler().fit(self._filled(measured)) if len(empty) else None
        self.one_hot_ = None
        if self.categories_:
            self.one_hot_ = OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                min_frequency=self.min_frequency,
                sparse_output=False,
            ).fit(codes[:, ~self._is_number()])
        return self

    def codes(self, X: Any) -> tuple[Array, dict[str, Unknown]]:
        """Numbers, and numbers for categories, of the columns that are used.

        Parameters
        ----------
        X : DataFrame, dict of columns or pyarrow.Table
            A table with these columns; others are not looked at.

        Returns
        -------
        codes : ndarray of shape (n_rows, n_used_columns)
            NaN where a cell is missing, -1 for a category that was not there in `fit`.
        unknown : dict
            For each column that has such cells, their number and an example.
        """
        table = as_table(X)
        missing = [name for name in self.kinds_ if name not in table.column_names]
        if missing:
            raise TableError(
                f"there is no column {missing[0]!r}, which the model needs"
                + (f" (nor {', '.join(map(repr, missing[1:6]))})" if missing[1:] else "")
            )
        out = np.empty((table.num_rows, len(self.kinds_)))
        unknown: dict[str, Unknown] = {}
        for place, (name, kind) in enumerate(self.kinds_.items()):
            column = table.column(name)
            if kind == NUMBER:
                out[:, place] = numbers(column, name)
            else:
                out[:, place], strangers = self._category_codes(name, column)
                if strangers.cells:
                    unknown[name] = strangers
        return out, unknown

    def transform(self, X: Any) -> Array:
        """Features of the rows.

        Parameters
        ----------
        X : DataFrame, dict of columns or pyarrow.Table
            A table with the columns that are used.

        Returns
        -------
        features : ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        return self.features(self.codes(X)[0])

    def features(self, codes: Array) -> Array:
        """Features of rows that `codes` has read.

        Parameters
        ----------
        codes : ndarray of shape (n_rows, n_used_columns)
            Numbers and codes of categories.

        Returns
        -------
        features : ndarray of shape (n_rows, n_features)
        """
        measured = codes[:, self._is_number()]
        parts = []
        if self.scaler_ is not None:
            parts += [self._scaled(self.scaler_, measured)]
            parts += [np.isnan(measured[:, self.gappy_]).astype(np.float64)]
        if self.one_hot_ is not None:
            parts += [self.one_hot_.transform(codes[:, ~self._is_number()])]
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        columns = np.array(list(self.kinds_), dtype=object)
        measured = columns[self._is_number()]
        names = [*measured, *(f"{name} is missing" for name in measured[self.gappy_])]
        if self.one_hot_ is not None:
            names += self._category_names(self.one_hot_, columns[~self._is_number()])
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_names(self, known: list[str]) -> None:
        for what in ("number", "category", "drop"):
            names = getattr(self, what)
            if isinstance(names, str):
                raise TableError(f"{what}={names!r} must be a list of names")
            for name in names:
                if name not in known:
                    raise TableError(f"{what}: there is no column {name!r} among the features")
        for one, other in (("number", "category"), ("number", "drop"), ("category", "drop")):
            both = sorted(set(getattr(self, one)) & set(getattr(self, other)))
            if both:
                raise TableError(f"column {both[0]!r} is named for {one} and for {other}")

    def _is_number(self) -> NDArray[np.bool_]:
        return np.array([kind == NUMBER for kind in self.kinds_.values()])

    def _filled(self, measured: Array) -> Array:
        return np.where(np.isnan(measured), self.medians_, measured)

    def _scaled(self, scaler: StandardScaler, measured: Array) -> Array:
        with np.errstate(over="ignore"):  # such cells are refused
            scaled: Array = scaler.transform(self._filled(measured))
        problem = "lies so far from the training cases that nothing can be computed: correct it"
        self._refuse_large(scaled, measured, problem)
        return scaled

    def _refuse_large(self, values: Array, measured: Array, problem: str) -> None:
        large = np.abs(values) > LARGEST  # False for a gap
        if large.any():
            row, place = (int(i) for i in np.argwhere(large)[0])
            name = [name for name, kind in self.kinds_.items() if kind == NUMBER][place]
            raise CellError(name, row, f"{measured[row, place]:g}", problem)

    def _category_codes(self, name: str, column: Any) -> tuple[Array, Unknown]:
        import pyarrow as pa
        import pyarrow.compute as pc

        text = label_text(column)
        if self.kinds_[name] == BOOLEAN:
            text = pc.utf8_lower(text)
            known = pa.array(BOOLEANS)
        else:
            known = pa.array(self.categories_[name])
        codes = pc.cast(pc.index_in(text, known), pa.float64())
        strangers = pc.and_(pc.is_null(codes), pc.is_valid(text))
        values = np.array(codes.to_numpy(zero_copy_only=False))
        count = int(pc.sum(pc.cast(strangers, pa.int64())).as_py() or 0)
        if not count:
            return values, Unknown(0, "")
        values[np.asarray(strangers)] = UNKNOWN
        return values, Unknown(count, text[pc.index(strangers, True).as_py()].as_py())

    def _category_names(self, encoder: OneHotEncoder, columns: NDArray[Any]) -> list[str]:
        """Names in the order of the encoder: frequent categories, a gap as the last, then the rare."""
        names: list[str] = []
        for place, name in enumerate(columns):
            rare = encoder.infrequent_categories_[place]
            kept = [c for c in encoder.categories_[place] if rare is None or not _among(c, rare)]
            words = ["missing" if np.isnan(c) else self.categories_[name][int(c)] for c in kept]
            names += [f"{name}={word}" for word in words]
            names += [f"{name} is rare"] * (rare is not None)
        return names


def _among(code: float, codes: Array) -> bool:
    return bool(np.isnan(codes).any() if np.isnan(code) else (codes == code).any())
