"""From the columns of a table to the features of a machine."""

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.types import Array
from deferlearn.tables.cells import label_text, numbers
from deferlearn.tables.columns import CATEGORY, MAX_CATEGORIES, NUMBER, describe
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.frames import as_table, missing_columns

# Rarer categories share one feature: a handful of rows says little about any of them.
MIN_FREQUENCY = 5
UNKNOWN = -1.0
# Squares and sums of larger numbers overflow, in units of the table or of the standard deviation.
LARGEST = 1e100


class Unknown(NamedTuple):
    """Cells with a category that did not occur in training: how many, and one of them."""

    cells: int
    example: str


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode numbers, categories and gaps of a table as features; list the columns that are left out.

    The rules of `deferlearn.tables.columns` decide what each column is, and which columns are left out. The
    features come from scikit-learn's `ColumnTransformer`:

    - Numbers: a gap is filled with the median, then the column is scaled to mean 0 and variance 1. A
      column that has gaps gets a second feature, which is 1 where a value was missing and 0 elsewhere.
    - Categories: one feature per category, which is 0 or 1. Categories that occur fewer than
      `min_frequency` times share one feature, and a gap is a category of its own. A category that did
      not occur in `fit` counts as a rare one.
    - Booleans: like categories.

    Parameters
    ----------
    number, category, drop : sequence of str, default=()
        Columns to take as numbers or as categories, or to leave out, whatever the rules say.
    max_categories : int, default=50
        Text columns with more different values are left out.
    min_frequency : int, default=5
        Categories that occur fewer times share a feature.

    Attributes
    ----------
    kinds_ : dict
        "number", "boolean" or "category" for each column that is used.
    categories_ : dict
        The categories of each boolean or category column.
    dropped_ : dict
        The reason why each other column is left out.
    columns_ : sklearn.compose.ColumnTransformer
        Turns the codes of the columns that are used into features.
    feature_names_in_ : ndarray of str
        All columns of the table given to `fit`.
    n_features_in_ : int
        Number of these columns.

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

    _: KW_ONLY
    number: Sequence[str] = ()
    category: Sequence[str] = ()
    drop: Sequence[str] = ()
    max_categories: int = MAX_CATEGORIES
    min_frequency: int = MIN_FREQUENCY

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what each column is, and learn medians, scales and categories.

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
                self.dropped_[name] = "dropped on request"
                continue
            given = NUMBER if name in self.number else CATEGORY if name in self.category else None
            column = describe(name, table.column(name), given, self.max_categories)
            if column.kind is None:
                self.dropped_[name] = column.reason
                continue
            self.kinds_[name] = column.kind
            if column.kind != NUMBER:
                self.categories_[name] = list(column.categories)
        if not self.kinds_:
            reasons = "; ".join(f"{name!r}: {reason}" for name, reason in self.dropped_.items())
            raise TableError(
                f"no column can be used as a feature. Left out: {reasons or 'the table has no columns'}"
            )
        codes, _ = self.codes(table)
        n_numbers = self._n_numbers
        problem = "is too large to compute with: rescale the column"
        self._refuse_large(codes[:, :n_numbers], codes, problem)
        parts: list[tuple[str, Any, slice]] = []
        if n_numbers:
            # A column that the user calls a number may be empty: it is kept, and filled with 0.
            filled = SimpleImputer(strategy="median", keep_empty_features=True)
            measured = slice(n_numbers)
            parts += [("number", make_pipeline(filled, StandardScaler()), measured)]
            # Not by the imputer's `add_indicator`, whose features would be scaled as well.
            parts += [("gap", MissingIndicator(error_on_new=False), measured)]
        if self.categories_:
            one_hot = OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                min_frequency=self.min_frequency,
                sparse_output=False,
            )
            parts += [("category", one_hot, slice(n_numbers, None))]
        self.columns_ = ColumnTransformer(parts, sparse_threshold=0.0).fit(codes)
        return self

    def codes(self, X: Any) -> tuple[Array, dict[str, Unknown]]:
        """Read the columns that are used: numbers as they are, categories as their position.

        Parameters
        ----------
        X : DataFrame, dict of columns or pyarrow.Table
            A table with these columns; other columns are ignored.

        Returns
        -------
        codes : ndarray of shape (n_rows, n_used_columns)
            Numbers come first, in the order of the table, and categories follow. NaN where a cell is
            missing, -1 for a category that did not occur in `fit`.
        unknown : dict
            For each column with such categories, the number of cells and an example.
        """
        table = as_table(X)
        missing = missing_columns(self.kinds_, table.column_names)
        if missing:
            raise TableError(f"there is no column {missing}, which the model needs")
        out = np.empty((table.num_rows, len(self.kinds_)), order="F")
        unknown: dict[str, Unknown] = {}
        for place, name in enumerate(self._used()):
            if name not in self.categories_:
                out[:, place] = numbers(table.column(name), name)
                continue
            out[:, place], cells = self._category_codes(name, table.column(name))
            if len(cells):
                unknown[name] = Unknown(len(cells), cells[0].as_py())
        return out, unknown

    def transform(self, X: Any) -> Array:
        """Encode the rows of a table.

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
        with np.errstate(over="ignore"):  # such cells are refused
            features: Array = self.columns_.transform(codes)
        problem = "is so far from the training cases that no result can be computed: correct it"
        self._refuse_large(features[:, : self._n_numbers], codes, problem)
        return features

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
        parts, names = self.columns_.named_transformers_, self._used()[: self._n_numbers]
        if "gap" in parts:
            names += [f"{names[place]} is missing" for place in parts["gap"].features_]
        if "category" in parts:
            one_hot = copy(parts["category"]).set_params(feature_name_combiner=self._category_name)
            names += list(one_hot.get_feature_names_out(list(self.categories_)))
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_names(self, known: list[str]) -> None:
        given = {"number": self.number, "category": self.category, "drop": self.drop}
        for option, names in given.items():
            if isinstance(names, str):
                raise TableError(f"{option}={names!r} must be a list of names")
            for name in names:
                if name not in known:
                    raise TableError(f"{option}: there is no column {name!r} among the features")
        for one, other in combinations(given, 2):
            for name in sorted(set(given[one]) & set(given[other])):
                raise TableError(f"column {name!r} is given as {one} and as {other}: choose one")

    @property
    def _n_numbers(self) -> int:
        return len(self.kinds_) - len(self.categories_)

    def _used(self) -> list[str]:
        """The columns that are used, in the order of their codes: numbers, then the others."""
        return [name for name in self.kinds_ if name not in self.categories_] + [*self.categories_]

    def _refuse_large(self, values: Array, codes: Array, problem: str) -> None:
        """Refuse the first cell whose value, as it is or scaled, is too large."""
        large = np.abs(values) > LARGEST  # False for a gap
        if large.any():
            row, place = (int(i) for i in np.argwhere(large)[0])
            raise CellError(self._used()[place], row, f"{codes[row, place]:g}", problem)

    def _category_codes(self, name: str, column: Any) -> tuple[Array, Any]:
        """Positions of the categories, and the cells that hold an unknown one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = label_text(column)
        codes = pc.index_in(text, pa.array(self.categories_[name]))
        unknown = pc.and_(pc.is_null(codes), pc.is_valid(text))
        values = np.array(pc.cast(codes, pa.float64()).to_numpy(zero_copy_only=False))
        values[np.asarray(unknown)] = UNKNOWN
        return values, text.filter(unknown)

    def _category_name(self, column: str, code: Any) -> str:
        """Name of a feature; scikit-learn's one-hot encoder has a word instead of a code for rare ones."""
        if isinstance(code, str):
            return f"{column} is rare"
        return f"{column}={'missing' if np.isnan(code) else self.categories_[column][int(code)]}"
