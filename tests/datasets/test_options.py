"""Every loader and fetcher hands its data over in the same forms."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from sklearn.utils import Bunch

from deferlearn import datasets
from deferlearn.datasets._bunch import rows_as_groups

SHIPPED = ["load_lidc", "load_sleep", "load_breast_cancer", "load_digits", "load_digits_parity"]
# Experts there gave labels only, and left out a few epochs.
WITH_GAPS = ["load_sleep"]
# Scores and their loss are for two classes.
WITHOUT_SCORES = ["load_sleep", "load_digits"]
FETCHED = ["fetch_messidor", "fetch_stare", "fetch_aptos"]


@pytest.fixture(params=SHIPPED + FETCHED)
def load(request):
    if request.param in FETCHED:
        request.getfixturevalue("authors_data")  # skips without them
    return getattr(datasets, request.param)


def test_no_data_set_is_forgotten():
    public = [name for name in datasets.__all__ if name.startswith(("load_", "fetch_"))]
    assert sorted(public) == sorted(SHIPPED + FETCHED)
    for name in public:
        options = inspect.signature(getattr(datasets, name)).parameters
        assert list(options)[-3:] == ["return_X_y", "return_X_y_human", "as_frame"]
        assert all(option.kind is option.KEYWORD_ONLY for option in options.values())


def test_bunch(load):
    bunch = load()
    assert isinstance(bunch, Bunch)
    n = len(bunch.target)
    assert bunch.data.shape == (n, len(bunch.feature_names))
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert bunch.target.dtype == np.int64
    classes = set(range(10)) if load is datasets.load_digits else {-1, 1}
    assert set(bunch.target) == classes
    fields = ["target", "human_labels", "groups"]
    if load.__name__ in WITH_GAPS:
        assert bunch.human_labels.dtype == np.float64
        gaps = np.isnan(bunch.human_labels)
        assert 0 < gaps.mean() < 0.001
        assert set(bunch.human_labels[~gaps]) == classes
    else:
        assert bunch.human_labels.dtype == np.int64
        assert set(bunch.human_labels) == classes
    if load.__name__ not in WITHOUT_SCORES:
        assert np.abs(bunch.human_scores).max() <= 1
        assert bunch.human_loss.min() >= 0
        fields += ["human_scores", "human_loss"]
    for name in fields:
        assert bunch[name].shape == (n,)
    assert bunch.groups.dtype.kind == "i"
    assert len(bunch.target_names) == len(classes)
    assert bunch.frame is None
    for name in ("data", *fields):
        assert name in bunch.DESCR.lower()


def test_tuples(load):
    bunch = load()
    X, y = load(return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    X, y, human = load(return_X_y_human=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    np.testing.assert_array_equal(human, bunch.human_labels)
    with pytest.raises(ValueError, match="exclude each other"):
        load(return_X_y=True, return_X_y_human=True)


@pytest.mark.parametrize("word", ["no", 0, None])
def test_flags_are_yes_or_no(load, word):
    flags = [
        name
        for name, p in inspect.signature(load).parameters.items()
        if p.annotation in (bool, "bool")
    ]
    assert flags[-3:] == ["return_X_y", "return_X_y_human", "as_frame"]
    assert (load is datasets.load_lidc) == ("drop_undecided" in flags)
    for name in flags:
        with pytest.raises(ValueError, match=f"{name}={word!r} must be True or False"):
            load(**{name: word})


def test_frames(load):
    pd = pytest.importorskip("pandas")
    bunch, framed = load(), load(as_frame=True)
    assert isinstance(framed.data, pd.DataFrame)
    assert list(framed.data.columns) == bunch.feature_names
    for name, value in bunch.items():
        if isinstance(value, np.ndarray):
            assert isinstance(framed[name], pd.DataFrame | pd.Series)
            np.testing.assert_array_equal(framed[name].to_numpy(), value)
            if value.ndim == 1:
                assert framed[name].name == name
                np.testing.assert_array_equal(framed.frame[name], value)
    assert list(framed.frame.columns[: len(bunch.feature_names)]) == bunch.feature_names
    assert framed.frame.columns.is_unique
    if load.__name__ not in WITH_GAPS:
        assert not framed.frame.isna().to_numpy().any()
    X, y, human = load(return_X_y_human=True, as_frame=True)
    pd.testing.assert_frame_equal(X, framed.data)
    pd.testing.assert_series_equal(y, framed.target)
    pd.testing.assert_series_equal(human, framed.human_labels)
    assert framed.DESCR == bunch.DESCR


def test_frames_without_pandas_say_what_to_install():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from deferlearn.datasets import load_lidc\n"
        "load_lidc()\n"
        "load_lidc(as_frame=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "as_frame=True needs pandas: pip install pandas" in done.stderr


def test_equal_rows_are_one_group_numbered_as_they_appear():
    rows = np.array([[2.0, 1.0], [1.0, 1.0], [2.0, 1.0], [0.0, 5.0], [1.0, 1.0]])
    assert rows_as_groups(rows).tolist() == [0, 1, 0, 2, 1]
    assert rows_as_groups(np.empty((0, 3))).tolist() == []


def test_aptos_duplicates_share_a_group(authors_data):
    bunch = datasets.fetch_aptos(data_home=authors_data)
    assert len(set(bunch.groups.tolist())) == len(bunch.groups) - 4
    assert bunch.data.shape[0] == len(bunch.groups)
    first = {group: row for row, group in reversed(list(enumerate(bunch.groups.tolist())))}
    for row, group in enumerate(bunch.groups.tolist()):
        np.testing.assert_array_equal(bunch.data[row], bunch.data[first[group]])
