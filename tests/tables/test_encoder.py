"""Features of tables: against scikit-learn's own pipeline, and what is new in a later table."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from case_tables import make_cases
from deferlearn.tables import TableEncoder, TableError
from deferlearn.tables.errors import CellError

USED = ["size", "age", "site"]


def cases(n=60, seed=0):
    columns = make_cases(n, seed)
    columns["site"] = [None if i % 11 == 3 else s for i, s in enumerate(columns["site"])]
    columns["site"][:2] = ["Bergen", "Como"]  # two that are rare
    return {name: columns[name] for name in USED}


def witness(frame):
    """The same by scikit-learn, from a DataFrame with texts."""
    number = ["size", "age"]
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), number),
        (MissingIndicator(error_on_new=False), number),
        (
            OneHotEncoder(
                handle_unknown="infrequent_if_exist", min_frequency=5, sparse_output=False
            ),
            ["site"],
        ),
    ).fit(frame)


def test_features_are_those_of_scikit_learn():
    frame, new = (pd.DataFrame(cases(seed=seed)) for seed in (0, 1))
    new.loc[3, "site"] = "Paris"
    new.loc[4, "size"] = np.nan
    encoder = TableEncoder().fit(frame)
    expected = witness(frame)
    np.testing.assert_allclose(encoder.transform(frame), expected.transform(frame), atol=1e-12)
    np.testing.assert_allclose(encoder.transform(new), expected.transform(new), atol=1e-12)
    assert list(encoder.get_feature_names_out()) == [
        "size",
        "age",
        "age is missing",
        "site=Oslo",
        "site=Rome",
        "site=missing",
        "site is rare",
    ]


def test_text_typed_and_pandas_tables_give_the_same_features():
    columns = cases()
    text = {k: ["" if v is None else str(v) for v in values] for k, values in columns.items()}
    frame = pd.DataFrame(columns)  # whole numbers with gaps are floats there
    encoder = TableEncoder().fit(text)
    for other in (columns, frame, pa.table(columns)):
        np.testing.assert_array_equal(encoder.transform(other), encoder.transform(text))
        again = clone(encoder).fit(other)
        np.testing.assert_array_equal(again.transform(text), encoder.transform(text))


@settings(deadline=None, max_examples=15)
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(-1e6, 1e6)),
            st.one_of(st.none(), st.sampled_from(["a", "b", "c"])),
        ),
        min_size=2,
        max_size=15,
    ),
)
def test_any_column_gives_finite_features_row_by_row(rows):
    table = pa.table(
        {
            "n": pa.array([n for n, _ in rows], pa.float64()),
            "c": pa.array([c for _, c in rows], pa.string()),
            "t": [True, False] * (len(rows) // 2) + [None] * (len(rows) % 2),
        }
    )
    encoder = TableEncoder(category=["c"], number=["n"], min_frequency=2).fit(table)
    features = encoder.transform(table)
    assert np.isfinite(features).all()
    assert features.shape == (len(rows), len(encoder.get_feature_names_out()))
    one_by_one = [encoder.transform(table.slice(i, 1))[0] for i in range(len(rows))]
    np.testing.assert_allclose(features, one_by_one, rtol=1e-12, atol=1e-12)


def test_new_categories_are_counted_and_treated_as_rare():
    encoder = TableEncoder().fit(cases())
    new = {"size": [0.0] * 4, "age": [50] * 4, "site": ["Paris", "Oslo", "Lyon", None]}
    codes, unknown = encoder.codes(new)
    assert unknown == {"site": (2, "Paris")}
    assert codes[:, 2].tolist()[:3] == [-1.0, encoder.categories_["site"].index("Oslo"), -1.0]
    assert np.isnan(codes[3, 2])
    features = encoder.transform(new)
    rare = list(encoder.get_feature_names_out()).index("site is rare")
    assert features[:, rare].tolist() == [1.0, 0.0, 1.0, 0.0]


def test_booleans_are_known_in_any_spelling():
    encoder = TableEncoder(min_frequency=1).fit({"b": ["true", "False", "TRUE", "false"]})
    assert encoder.transform({"b": [True, False]}).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert encoder.transform({"b": ["True"]}).tolist() == [[0.0, 1.0]]


def test_other_columns_are_not_looked_at_and_missing_ones_named():
    encoder = TableEncoder().fit(cases())
    table = {"extra": [[1]], **{name: [None] for name in USED}}
    table["size"] = ["1.5"]
    assert encoder.transform(table).shape == (1, 7)
    with pytest.raises(TableError, match=r"no column 'age' \(nor 'site'\), which the model needs"):
        encoder.transform({"size": [1]})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"drop": ["nose"]}, "no column 'nose'"),
        ({"drop": "size"}, "must be a list"),
        ({"number": ["site"]}, "'site' holds 'Bergen' in row 1"),
        ({"number": ["age"], "drop": ["age"]}, "'age' is given as number and as drop"),
        ({"drop": USED}, "no column can be used as a feature"),
    ],
)
def test_settings_that_make_no_sense(options, says):
    with pytest.raises(TableError, match=says):
        TableEncoder(**options).fit(cases())


def test_what_is_left_out_has_a_reason():
    encoder = TableEncoder(drop=["age"]).fit({**cases(), "k": ["k"] * 60})
    assert encoder.dropped_ == {"age": "dropped on request", "k": "constant, 'k'"}
    assert list(encoder.kinds_) == ["size", "site"]


@pytest.mark.parametrize("large", [1e101, -1e308])
def test_numbers_that_cannot_be_computed_with_are_refused(large):
    table = {"age": [1.0, 2.0, 4.0], "size": [None, 0.5, large]}
    with pytest.raises(CellError, match=r"column 'size' .* row 3 .* too large"):
        TableEncoder().fit(table)
    encoder = TableEncoder().fit({"age": [1.0, 2.0, 4.0], "size": [None, 0.5, 0.7]})
    with pytest.raises(
        CellError, match=r"column 'size' .* row 3 .* so far from the training cases"
    ):
        encoder.transform(table)


def test_large_numbers_are_not_refused_for_their_unit():
    encoder = TableEncoder().fit({"size": [1e99, 2e99, 4e99], "site": ["a", "b", "a"]})
    found = encoder.transform({"size": [3e99, None], "site": ["b", "a"]})
    assert np.isfinite(found).all()


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n_numbers=st.integers(0, 3),
    n_categories=st.integers(0, 3),
    min_frequency=st.integers(1, 6),
)
def test_arrays_encode_as_scikit_learn_does(seed, n_numbers, n_categories, min_frequency):
    """Bit for bit, also what was rare, missing or unknown in `fit`, or occurs in `transform` only."""
    rng = np.random.default_rng(seed)

    def table(n, words):
        columns = {}
        for k in range(n_numbers):
            values = rng.normal(size=n) * 10.0 ** rng.integers(-5, 5)
            columns[f"n{k}"] = [None if rng.random() < 0.2 * k else v for v in values.tolist()]
        for k in range(n_categories):
            drawn = rng.choice(words, n).tolist()
            columns[f"c{k}"] = [None if rng.random() < 0.1 * k else word for word in drawn]
        return columns

    names = [f"n{k}" for k in range(n_numbers)], [f"c{k}" for k in range(n_categories)]
    if not sum(map(len, names)):
        return
    encoder = TableEncoder(number=names[0], category=names[1], min_frequency=min_frequency)
    encoder.fit(table(20, list("aabbbcde")))
    codes, _ = encoder.codes(table(30, list("abcdefg")))
    np.testing.assert_array_equal(encoder.features(codes), encoder.columns_.transform(codes))
    alone = [encoder.features(codes[row : row + 1])[0] for row in range(len(codes))]
    np.testing.assert_array_equal(encoder.features(codes), alone)
