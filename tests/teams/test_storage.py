"""Stored models: the same after a round trip; strange, changed and broken files are refused."""

import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import deferlearn
from deferlearn import AssistedSVC
from deferlearn._utils import atomic
from deferlearn.datasets import make_linear
from deferlearn.teams import AssistedPipeline, DeferralPolicy, make_assisted_pipeline, storage
from deferlearn.teams.storage import with_versions
from deferlearn.teams.stored_types import TRUSTED

X, Y = make_linear(24, random_state=0)  # small: a stored model needs its certificate
NEW, _ = make_linear(200, random_state=1)
HUMAN = np.where(np.arange(200) % 5, 1, -1)


def model(**options):
    return AssistedSVC(**{"cv": 2, "random_state": 0, "submodularity_ratio": 0.5, **options})


def assert_same(again, before, new=NEW):
    np.testing.assert_array_equal(again.predict(new), before.predict(new))
    np.testing.assert_array_equal(again.decision_function(new), before.decision_function(new))
    np.testing.assert_array_equal(again.deferral_score(new), before.deferral_score(new))
    np.testing.assert_array_equal(again.defer(new), before.defer(new))
    np.testing.assert_array_equal(again.defer_top(new), before.defer_top(new))
    np.testing.assert_array_equal(
        again.predict_assisted(new, HUMAN), before.predict_assisted(new, HUMAN)
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "rbf", "policy": "mlp", "selection": "stochastic", "random_state": 3},
        {"policy": RandomForestClassifier(10), "class_weight": {-1: 1.0, 1: 2.0}},
        {"policy": DeferralPolicy(HistGradientBoostingClassifier(max_iter=3), features="both")},
        {"policy": KNeighborsClassifier(), "submodularity_ratio": "sweep", "delta": 0.4},
    ],
    ids=["margin", "rbf and mlp", "forest", "boosting", "neighbours and sweep"],
)
def test_round_trip(tmp_path, options):
    clf = model(**options).fit(X, Y)
    clf.certify()
    deferlearn.save(clf, tmp_path / "team.skops")
    again = deferlearn.load(tmp_path / "team.skops")
    assert_same(again, clf)
    assert again.certificate_ == clf.certificate_
    assert again.selection_.order.tolist() == clf.selection_.order.tolist()
    assert again.selection_.n_exact == clf.selection_.n_exact
    assert again._objective is None
    refitted = again.fit(X, Y)
    np.testing.assert_array_equal(refitted.deferred_indices_, clf.deferred_indices_)


def test_round_trip_of_a_pipeline(tmp_path):
    team = make_assisted_pipeline(StandardScaler(), model()).fit(X, Y)
    deferlearn.save(team, tmp_path / "team.skops")
    again = deferlearn.load(tmp_path / "team.skops")
    assert isinstance(again, AssistedPipeline)
    assert_same(again, team)


def test_an_unfitted_model_can_be_stored(tmp_path):
    deferlearn.save(model(budget=3), tmp_path / "team.skops")
    assert deferlearn.load(tmp_path / "team.skops").budget == 3


def test_a_file_of_a_long_sweep_stays_small(tmp_path):
    clf = model(submodularity_ratio="sweep").fit(X, Y)
    deferlearn.save(clf, tmp_path / "team.skops")
    assert (tmp_path / "team.skops").stat().st_size < 500_000


def own_kernel(A, B):
    return A @ B.T


class OwnClassifier(LogisticRegression):
    """A type that no list knows."""


@pytest.mark.parametrize(
    ("options", "name"),
    [({"kernel": own_kernel}, "own_kernel"), ({"policy": OwnClassifier()}, "OwnClassifier")],
)
def test_save_refuses_by_name_what_load_would_refuse(tmp_path, options, name):
    path = tmp_path / "team.skops"
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match=name):
        deferlearn.save(model(**options), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_named_type_is_stored_and_loaded(tmp_path, monkeypatch):
    import sys
    import types

    module = types.ModuleType("somebodys_package")
    own = type("OwnPolicy", (LogisticRegression,), {"__module__": "somebodys_package"})
    module.OwnPolicy = own
    monkeypatch.setitem(sys.modules, "somebodys_package", module)
    name, path = "somebodys_package.OwnPolicy", tmp_path / "team.skops"
    clf = model(policy=own()).fit(X, Y)
    deferlearn.save(clf, path, trusted=[name])
    with pytest.raises(ValueError, match=r"somebodys_package\.OwnPolicy"):
        deferlearn.load(path)
    assert_same(deferlearn.load(path, trusted=[name]), clf)


def rewritten(content, change):
    """The file with each member of it changed: `change(name, data)` gives the new one, None for none."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    return out.getvalue()


def commented(content):
    """The file as `save` would write it: with the checksum of its members as they are now."""
    return with_versions(rewritten(content, lambda name, data: data))


def with_description(content, change):
    """The file with its description changed on purpose."""

    def change_schema(name, data):
        return json.dumps(change(json.loads(data))).encode() if name == "schema.json" else data

    return commented(rewritten(content, change_schema))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "team.skops"
    deferlearn.save(model().fit(X, Y), path)
    return path.read_bytes()


@pytest.fixture
def stored(saved, tmp_path):
    path = tmp_path / "team.skops"
    path.write_bytes(saved)
    return path


@pytest.mark.parametrize(("module", "name"), [("os", "system"), ("builtins", "eval")])
def test_a_file_that_asks_for_more_is_refused(stored, module, name):
    def change(schema):
        return {**schema, "__module__": module, "__class__": name}

    stored.write_bytes(with_description(stored.read_bytes(), change))
    with pytest.raises(ValueError, match=f"{module}.{name}"):
        deferlearn.load(stored)


def test_a_hidden_request_is_refused_too(stored):
    def change(schema):
        text = json.dumps(schema).replace("deferlearn.teams.threshold", "subprocess")
        return json.loads(text.replace('"Threshold"', '"Popen"'))

    stored.write_bytes(with_description(stored.read_bytes(), change))
    with pytest.raises(ValueError, match=r"subprocess\.Popen"):
        deferlearn.load(stored)


def test_broken_files_are_refused(stored, tmp_path):
    content = stored.read_bytes()
    for bad in (b"", b"no zip", content[: len(content) // 2]):
        stored.write_bytes(bad)
        with pytest.raises(ValueError, match=r"team\.skops"):
            deferlearn.load(stored)
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("readme.txt", "hello")
    stored.write_bytes(empty.getvalue())
    with pytest.raises(ValueError, match=r"no model that deferlearn\.save"):
        deferlearn.load(stored)


def test_a_rewritten_archive_is_refused(stored):
    """Also if its members are the same: who rewrites it can write a new checksum, by `save`."""
    stored.write_bytes(rewritten(stored.read_bytes(), lambda name, data: data))
    with pytest.raises(ValueError, match=r"team\.skops is no model that deferlearn\.save"):
        deferlearn.load(stored)


def test_a_change_anywhere_is_noticed(stored):
    before = stored.read_bytes()
    with zipfile.ZipFile(stored) as archive:
        assert json.loads(archive.comment[64:]).keys() == {"deferlearn", "scikit-learn"}
        places = [info.header_offset for info in archive.infolist()]
        start = len(before) - len(archive.comment)
    assert len(places) > 3
    # But for the two bytes with the comment's length, which is known without them.
    for place in [*places, *range(start - 100, start - 2), *range(start, len(before))]:
        changed = bytearray(before)
        changed[place] ^= 1
        stored.write_bytes(changed)
        with pytest.raises(ValueError, match=r"team\.skops"):
            deferlearn.load(stored)
    extra = io.BytesIO(before)
    with zipfile.ZipFile(extra, "a") as archive:
        archive.writestr("more.npy", b"more")
    stored.write_bytes(extra.getvalue())
    with pytest.raises(ValueError, match="does not match its checksum"):
        deferlearn.load(stored)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_flipped_bit_changes_no_model(stored, data):
    """Anywhere in the file: it is refused, or what is read is what was saved."""
    before = stored.read_bytes()
    clf = deferlearn.load(stored)
    at = data.draw(st.integers(0, len(before) - 1))
    broken = bytearray(before)
    broken[at] ^= 1 << data.draw(st.integers(0, 7))
    stored.write_bytes(broken)
    try:
        again = deferlearn.load(stored)
    except ValueError as error:
        assert "team.skops" in str(error)  # noqa: PT017
    else:
        np.testing.assert_array_equal(again.decision_function(NEW), clf.decision_function(NEW))
    finally:
        stored.write_bytes(before)


def test_a_file_that_skops_wrote_is_refused(tmp_path):
    path = tmp_path / "plain.skops"
    skops.io.dump(LogisticRegression(), path)
    with pytest.raises(ValueError, match=r"plain\.skops.*no checksum.*skops\.io\.load"):
        deferlearn.load(path)


@pytest.mark.parametrize("package", ["deferlearn", "scikit-learn"])
@pytest.mark.parametrize(("part", "warns"), [(0, True), (1, True), (2, False)])
def test_other_versions_bring_a_warning(stored, monkeypatch, package, part, warns):
    here = storage.versions()
    numbers = here[package].split(".")
    numbers[part] = str(int(numbers[part]) + 1)
    other = {**here, package: ".".join(numbers)}
    assert list(here) == ["deferlearn", "scikit-learn"]
    with monkeypatch.context() as patch:
        patch.setattr(storage, "versions", lambda: other)
        stored.write_bytes(commented(stored.read_bytes()))
    if warns:
        with pytest.warns(
            UserWarning, match=f"saved with .*{package} {other[package]}.* read with"
        ):
            deferlearn.load(stored)
    else:
        deferlearn.load(stored)


def test_missing_parts_are_refused(stored):
    def change(schema):
        return {k: v for k, v in schema.items() if k != "content"}

    stored.write_bytes(with_description(stored.read_bytes(), change))
    with pytest.raises(ValueError, match=r"team\.skops"):
        deferlearn.load(stored)


def test_what_is_no_estimator_is_refused(tmp_path):
    path = tmp_path / "list.skops"
    path.write_bytes(with_versions(skops.io.dumps([1, 2, 3])))
    with pytest.raises(ValueError, match="no estimator"):
        deferlearn.load(path)
    with pytest.raises(TypeError, match="takes an estimator"):
        deferlearn.save([1, 2, 3], path)


def test_trusted_is_a_list_of_names(stored):
    with pytest.raises(TypeError, match="list of names"):
        deferlearn.load(stored, trusted="os.system")
    with pytest.raises(TypeError, match="names such as"):
        deferlearn.load(stored, trusted=[AssistedSVC])


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        deferlearn.load(tmp_path / "none.skops")


def test_a_failed_write_leaves_the_old_file(stored, monkeypatch):
    before = stored.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(atomic.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        deferlearn.save(model(), stored)
    assert stored.read_bytes() == before
    assert list(stored.parent.iterdir()) == [stored]


def test_every_trusted_type_exists():
    from importlib import import_module

    for name in TRUSTED:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name


def test_round_trip_of_tables_and_sparse_data(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = make_linear(60, random_state=0)
    team = AssistedSVC(submodularity_ratio=0.5, random_state=0)
    for kind in (sp.csr_matrix, sp.csr_array):
        before = clone(team).fit(kind(X), y)
        deferlearn.save(before, tmp_path / "sparse.skops")
        again = deferlearn.load(tmp_path / "sparse.skops")
        np.testing.assert_array_equal(again.decision_function(X), before.decision_function(X))
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 0] > 0, "u", None)})
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude=np.number)),
    )
    before = make_assisted_pipeline(columns, team).fit(table, y)
    deferlearn.save(before, tmp_path / "table.skops")
    again = deferlearn.load(tmp_path / "table.skops")
    np.testing.assert_array_equal(again.deferral_score(table), before.deferral_score(table))
