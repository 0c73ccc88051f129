import hashlib
import io
import os
import pickle
from dataclasses import replace
from urllib.error import URLError

import numpy as np
import pytest
from sklearn.utils import Bunch

from deferlearn.datasets import (
    _files,
    _retina,
    fetch_aptos,
    fetch_messidor,
    fetch_stare,
    published_split,
)
from deferlearn.datasets._files import RemoteFile
from deferlearn.humans import ConfusedHuman
from deferlearn.metrics import team_error, team_quadratic_kappa

# fetcher, rows, threshold, alpha; on the published test part: rows, wrong human answers, F1.
REAL = [
    (fetch_messidor, 400, 1.5, 0.03, 160, 24, 0.871),
    (fetch_stare, 373, 0.5, 0.5, 148, 21, 0.788),
    (fetch_aptos, 705, 1.8, 0.6, 280, 51, 0.824),
]
IDS = ["messidor", "stare", "aptos"]


@pytest.mark.parametrize(
    ("fetch", "n", "threshold", "alpha", "n_test", "wrong", "f1"), REAL, ids=IDS
)
def test_real_files(authors_data, fetch, n, threshold, alpha, n_test, wrong, f1):
    bunch = fetch(data_home=authors_data, download_if_missing=False)
    assert bunch.data.shape == (n, 50)
    assert bunch.data.dtype == np.float64
    np.testing.assert_array_equal(bunch.target, np.where(bunch.grades > threshold, 1, -1))
    assert bunch.target.dtype.kind == bunch.human_labels.dtype.kind == "i"
    assert set(bunch.target) == set(bunch.human_labels) == {-1, 1}
    assert bunch.human_loss.shape == (n,)
    assert bunch.human_loss.min() >= 0
    assert np.abs(bunch.human_scores).max() <= 1
    assert set(bunch.human_prob) == {0.0, 1.0}
    assert bunch.alpha == alpha
    assert str(alpha) in bunch.DESCR

    train, test = published_split(bunch)
    assert len(test) == n_test
    np.testing.assert_array_equal(np.concatenate([test, train]), np.arange(n))
    truth, answer = bunch.target[test], bunch.human_labels[test]
    assert np.sum(answer != truth) == wrong
    hits = np.sum((answer == 1) & (truth == 1))
    assert 2 * hits / (np.sum(answer == 1) + np.sum(truth == 1)) == pytest.approx(f1, abs=5e-4)


@pytest.mark.parametrize("fetch", [fetch_messidor, fetch_stare, fetch_aptos], ids=IDS)
def test_what_the_description_says_of_the_readers(authors_data, fetch):
    bunch = fetch(data_home=authors_data)
    agreed = bunch.human_prob == 0
    sign = np.where(bunch.human_scores > 0, 1, -1)
    np.testing.assert_array_equal(sign[agreed], bunch.human_labels[agreed])
    assert (sign[~agreed] != bunch.human_labels[~agreed]).any()


@pytest.mark.parametrize(
    ("fetch", "counts"),
    [
        (fetch_messidor, [151, 30, 70, 149]),
        (fetch_stare, [2, 247, 77, 9, 38]),
        (fetch_aptos, [351, 61, 201, 31, 61]),
    ],
    ids=IDS,
)
def test_grades(authors_data, fetch, counts):
    bunch, two = fetch(data_home=authors_data, grades=True), fetch(data_home=authors_data)
    assert np.bincount(bunch.target).tolist() == counts
    assert bunch.target.dtype == bunch.human_labels.dtype == np.int64
    k = len(counts)
    assert len(bunch.target_names) == k
    # The order is that of the stored grades, and both questions are about the same images.
    names = [float(bunch.target_names[grade].removeprefix("grade ")) for grade in bunch.target]
    np.testing.assert_allclose(bunch.grades, names)
    np.testing.assert_array_equal(bunch.grades, two.grades)
    np.testing.assert_array_equal(bunch.data, two.data)
    np.testing.assert_array_equal(bunch.groups, two.groups)
    # What belongs to the other question is not there to be mixed up.
    assert not {"human_loss", "human_scores", "human_prob"} & set(bunch)
    np.testing.assert_allclose(bunch.human_error, 0.25)
    for field in ("target", "human_labels", "human_error", "grades"):
        assert field in bunch.DESCR
    assert "human draws" not in bunch.DESCR
    assert "human draws" in two.DESCR

    assert team_error(bunch.target, bunch.human_labels) == pytest.approx(0.25, abs=0.04)
    off = np.abs(bunch.target - bunch.human_labels)
    assert np.mean(off[off > 0] == 1) > 0.7
    kappa = team_quadratic_kappa(bunch.target, bunch.human_labels, grades=range(k))
    assert 0.8 < kappa < 0.9
    _, y, human = fetch(data_home=authors_data, grades=True, return_X_y_human=True)
    np.testing.assert_array_equal(y, bunch.target)
    np.testing.assert_array_equal(human, bunch.human_labels)
    other = fetch(data_home=authors_data, grades=True, random_state=1)
    assert (other.human_labels != bunch.human_labels).any()
    perfect = ConfusedHuman(np.eye(k))
    bunch = fetch(data_home=authors_data, grades=True, human=perfect, as_frame=True)
    assert (bunch.human_labels == bunch.target).all()
    assert bunch.human is perfect
    assert "grades" in bunch.frame


def test_experts_for_grades(tmp_path):
    def fetch(**options):
        return fetch_messidor(data_home=tmp_path, download_if_missing=False, **options)

    with pytest.raises(ValueError, match="human= is only for grades=True"):
        fetch(human=ConfusedHuman(np.eye(4)))
    with pytest.raises(TypeError, match=r"must be a deferlearn\.humans\.ConfusedHuman or None"):
        fetch(grades=True, human="doctor")
    with pytest.raises(ValueError, match=r"grades of Messidor are \[0, 1, 2, 3\]"):
        fetch(grades=True, human=ConfusedHuman(np.eye(5)))


def test_unknown_grades(fetch_made):
    bunch = fetch_made(contents(), grades=True)
    assert bunch.target.tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match=r"holds grades other than \[0, 1, 2, 3\]"):
        fetch_made(contents() | {"Y": np.array([0.0, 2.5, 3.0])}, grades=True)


def test_variable_names_the_folder(authors_data):
    X, y = fetch_stare(return_X_y=True, download_if_missing=False)
    assert X.shape == (373, 50)
    assert y.shape == (373,)


def test_aptos_has_the_quirks_that_its_description_tells(authors_data):
    X = fetch_aptos(data_home=authors_data).data
    norms = np.sort((X**2).sum(axis=1))
    assert len(X) - len(np.unique(X, axis=0)) == 4
    assert norms[-1] == pytest.approx(56_596, abs=1)
    assert np.median(norms) == pytest.approx(343, abs=1)


@pytest.mark.parametrize("n", [0, 9, 10, 19, 100])
def test_published_split_covers_every_row_once(n):
    train, test = published_split(Bunch(target=np.ones(n)))
    assert len(test) == 4 * (n // 10)
    assert sorted([*train, *test]) == list(range(n))


def contents():
    return {
        "X": np.arange(6, dtype=np.float32).reshape(3, 2),
        "Y": np.array([0, 2, 3]),
        "c": {"1": np.array([0.5, 0.0, 1.0])},
        "h": {"1": np.array([-1.0, 0.5, 1.0])},
        "y_h": {"1": np.array([-1, 1, 1])},
        "Pr_H": {"1": np.array([0.0, 1.0, 0.0])},
    }


@pytest.fixture
def fetch_made(monkeypatch, tmp_path):
    """Messidor's fetcher, reading a file made of given contents with the right checksum."""

    def fetch(content, **options):
        if not isinstance(content, bytes):
            content = pickle.dumps(content, protocol=4)
        file = RemoteFile("made.pkl", hashlib.sha256(content).hexdigest())
        (tmp_path / file.name).write_bytes(content)
        monkeypatch.setattr(_retina, "_MESSIDOR", replace(_retina._MESSIDOR, file=file))
        return fetch_messidor(data_home=tmp_path, download_if_missing=False, **options)

    return fetch


def test_made_file(fetch_made):
    bunch = fetch_made(contents())
    assert bunch.data.dtype == np.float64
    assert bunch.target.tolist() == [-1, 1, 1]
    assert bunch.human_labels.tolist() == [-1, 1, 1]
    assert bunch.human_loss.tolist() == [0.5, 0.0, 1.0]
    X, y = fetch_made(contents(), return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


@pytest.mark.parametrize(
    ("key", "value", "where"),
    [
        ("X", np.arange(3.0), r"\['X'\]"),
        ("X", {"1": np.eye(3)}, r"\['X'\]"),
        ("Y", np.arange(2), r"\['Y'\]"),
        ("Y", np.array([0.0, np.nan, 1.0]), r"\['Y'\]"),
        ("c", np.arange(3.0), r"\['c'\]\['1'\]"),
        ("c", {"2": np.arange(3.0)}, r"\['c'\]\['1'\]"),
        ("h", {"1": np.array(["a", "b", "c"])}, r"\['h'\]\['1'\]"),
        ("y_h", {"1": np.ones((3, 1))}, r"\['y_h'\]\['1'\]"),
    ],
)
def test_wrong_structure_is_named(fetch_made, key, value, where):
    with pytest.raises(ValueError, match=f"right shape at {where}"):
        fetch_made(contents() | {key: value})


@pytest.mark.parametrize("key", list(contents()))
def test_missing_field_is_named(fetch_made, key):
    content = contents()
    del content[key]
    with pytest.raises(ValueError, match=f"right shape at .*{key}"):
        fetch_made(content)


class Trap:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_pickle_that_imports_something_is_refused_and_does_not_run(fetch_made, tmp_path):
    # Even with the right checksum: that one may come from whoever changed the file.
    trap = tmp_path / "trap"
    with pytest.raises(ValueError, match=r"the name \w+\.mkdir is not allowed"):
        fetch_made(contents() | {"X": Trap(trap)})
    assert not trap.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["made.pkl"]


@pytest.fixture(params=[fetch_messidor, fetch_stare, fetch_aptos], ids=IDS)
def fetch(request):
    return request.param


def test_truncated_copy_is_an_error_and_stays(fetch, authors_data, tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "urlopen", unreachable)
    name = fetch.__name__.removeprefix("fetch_").capitalize()
    path = tmp_path / f"data_dict_{name}.pkl"
    content = (authors_data / path.name).read_bytes()[:-1]
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not the file it should be: expected sha256"):
        fetch(data_home=tmp_path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def unreachable(url, timeout):
    raise URLError("no network")


def test_neither_network_nor_copy(fetch, tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "urlopen", unreachable)
    with pytest.raises(
        OSError, match=r"could not be downloaded from https:.*no network.*data_home="
    ):
        fetch(data_home=tmp_path / "new")
    with pytest.raises(FileNotFoundError, match="download_if_missing is False: put data_dict_"):
        fetch(data_home=tmp_path / "new", download_if_missing=False)
    assert list(tmp_path.iterdir()) == []


def test_wrong_download_leaves_nothing(fetch, tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "urlopen", lambda url, timeout: io.BytesIO(b"<html>sign in</html>"))
    with pytest.raises(ValueError, match="nothing was stored"):
        fetch(data_home=tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_not_a_pickle_at_all(fetch_made):
    with pytest.raises(ValueError, match="not a pickle of plain numpy arrays"):
        fetch_made(b"hello")
