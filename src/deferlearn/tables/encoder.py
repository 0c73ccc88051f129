"""From the columns of a table to the features of a machine."""

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.types import Array
from deferlearn.tables.columns import CATEGORY, MAX_CATEGORIES, NUMBER, describe, score_names
from deferlearn.tables.encoding import UNKNOWN, Encoding, Unknown
from deferlearn.tables.errors import TableError
from deferlearn.tables.frames import as_table
from deferlearn.tables.guard import learn_guard

# Rarer categories share one feature: a handful of rows says little about any of them.
MIN_FREQUENCY = 5


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
    score : str, sequence of str or None, default=None
        Column with the score of a machine that cannot be retrained. It is the last feature, not scaled.
        With more than two classes, a column for each class, in their order.
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
    encoding_ : deferlearn.tables.encoding.Encoding
        The same as arrays, which encode new tables.
    guard_ : deferlearn.tables.guard.Guard
        What each column looked like, to tell which new cases are unusual.
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
    score: str | Sequence[str] | None = None
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
        scores = score_names(self.score)
        self._check_names(table.column_names)
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = table.num_columns
        self.kinds_: dict[str, str] = {}
        self.categories_: dict[str, list[str]] = {}
        self.dropped_: dict[str, str] = {}
        for name in table.column_names:
            if name in scores:
                continue
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
        if not self.kinds_ and self.score is None:
            reasons = "; ".join(f"{name!r}: {reason}" for name, reason in self.dropped_.items())
            raise TableError(
                f"no column can be used as a feature. Left out: {reasons or 'the table has no columns'}"
            )
        measured = [name for name in self.kinds_ if name not in self.categories_]
        n_numbers, none = len(measured), np.empty(0)
        reader = Encoding(
            measured, self.categories_, none, none, none, none.astype(np.intp), [], scores or None
        )
        codes, _ = reader.codes(table)
        problem = "is too large to compute with: rescale the column"
        reader.refuse_large(codes[:, :n_numbers], codes, problem)
        parts: list[tuple[str, Any, slice]] = []
        if n_numbers:
            # A column that the user calls a number may be empty: it is kept, and filled with 0.
            filled = SimpleImputer(strategy="median", keep_empty_features=True)
            first = slice(n_numbers)
            parts += [("number", make_pipeline(filled, StandardScaler()), first)]
            # Not by the imputer's `add_indicator`, whose features would be scaled as well.
            parts += [("gap", MissingIndicator(error_on_new=False), first)]
        if self.categories_:
            one_hot = OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                min_frequency=self.min_frequency,
                sparse_output=False,
            )
            last = n_numbers + len(self.categories_)
            parts += [("category", one_hot, slice(n_numbers, last))]
        self.columns_ = ColumnTransformer(parts, sparse_threshold=0.0).fit(codes)
        self.encoding_ = replace(reader, **self._learned())
        self.guard_ = learn_guard(self.encoding_.columns, self.categories_, codes)
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
        check_is_fitted(self)
        return self.encoding_.codes(X)

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
        return self.encoding_.features(codes)

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
        parts, names = self.columns_.named_transformers_, [*self.encoding_.numbers]
        if "gap" in parts:
            names += [f"{names[place]} is missing" for place in parts["gap"].features_]
        if "category" in parts:
            one_hot = copy(parts["category"]).set_params(feature_name_combiner=self._category_name)
            names += list(one_hot.get_feature_names_out(list(self.categories_)))
        names += self.encoding_.scores
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_names(self, known: list[str]) -> None:
        given = {
            "number": self.number,
            "category": self.category,
            "drop": self.drop,
            "score": score_names(self.score),
        }
        for option, names in given.items():
            if isinstance(names, str):
                raise TableError(f"{option}={names!r} must be a list of names")
            for name in names:
                if name not in known:
                    raise TableError(f"{option}: there is no column {name!r} among the features")
        for one, other in combinations(given, 2):
            for name in sorted(set(given[one]) & set(given[other])):
                raise TableError(f"column {name!r} is given as {one} and as {other}: choose one")

    def _learned(self) -> dict[str, Any]:
        """What the parts of `columns_` have learned, as arrays."""
        parts = self.columns_.named_transformers_
        learned: dict[str, Any] = {}
        if "number" in parts:
            imputer, scaler = parts["number"][0], parts["number"][1]
            learned.update(fill=imputer.statistics_, centre=scaler.mean_, scale=scaler.scale_)
            learned.update(gaps=np.asarray(parts["gap"].features_, dtype=np.intp))
        if "category" in parts:
            learned.update(blocks=self._blocks(parts["category"]))
        return learned

    def _blocks(self, one_hot: OneHotEncoder) -> list[Array]:
        """The features of each column's categories, of an unknown one, and of a gap."""
        most = max(map(len, self.categories_.values()))
        # One row per code. Codes that a column does not have are unknown there, and cut off below.
        codes = np.full((most + 2, len(self.categories_)), UNKNOWN)
        counts = [len(categories) for categories in self.categories_.values()]
        for place, count in enumerate(counts):
            codes[:count, place] = np.arange(count)
            codes[count + 1, place] = np.nan
        rare = getattr(one_hot, "infrequent_categories_", [None] * len(counts))
        widths = [
            len(found) - (0 if few is None else len(few) - 1)
            for found, few in zip(one_hot.categories_, rare, strict=True)
        ]
        features = np.split(one_hot.transform(codes), np.cumsum(widths)[:-1], axis=1)
        return [part[: count + 2] for part, count in zip(features, counts, strict=True)]

    def _category_name(self, column: str, code: Any) -> str:
        """Name of a feature; scikit-learn's one-hot encoder has a word instead of a code for rare ones."""
        if isinstance(code, str):
            return f"{column} is rare"
        return f"{column}={'missing' if np.isnan(code) else self.categories_[column][int(code)]}"
