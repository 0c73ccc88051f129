"""Files of strangers: none runs code, touches a file that it names, or fills the memory."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import FeatureAgglomeration
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import all_estimators
from sklearn.utils._param_validation import HasMethods

import deferlearn
from deferlearn import AdvantageTriage, AssistedSVC
from deferlearn._utils import archives
from deferlearn._utils.packing import packed, unpacked
from deferlearn.datasets import make_linear
from deferlearn.teams import DeferralPolicy, make_assisted_pipeline
from deferlearn.teams.storage import with_versions
from deferlearn.teams.stored_values import FREE_TEXT

X, Y = make_linear(40, random_state=0)


class Touch:
    """A pickle that leaves a folder behind when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def written_past_save(model, path):
    """The file that a stranger would write: with a checksum, but without what `save` checks."""
    path.write_bytes(with_versions(skops.io.dumps(model)))
    return path


def changed(path, change):
    """The file with its description changed, and a new checksum."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "schema.json":
                data = json.dumps(change(json.loads(data))).encode()
            new.writestr(name, data)
    path.write_bytes(with_versions(out.getvalue()))
    return path


def poisoned_cache(folder, marker):
    """A cache of joblib in which every result is a pickle that leaves a folder behind."""
    agglomeration = FeatureAgglomeration(2, memory=str(folder))
    agglomeration.fit(X)
    results = list(folder.rglob("output.pkl"))
    assert results
    for result in results:
        result.write_bytes(pickle.dumps(Touch(marker)))
    return agglomeration


def test_a_poisoned_cache_is_never_read(tmp_path):
    marker = tmp_path / "marker"
    agglomeration = poisoned_cache(tmp_path / "cache", marker)
    policy = Pipeline([("agg", clone(agglomeration)), ("clf", LogisticRegression())])
    clf = AssistedSVC(cv=2, random_state=0, policy=policy)
    path = written_past_save(clf, tmp_path / "team.skops")
    with pytest.raises(ValueError, match=r"FeatureAgglomeration.*not a part of"):
        deferlearn.load(path)
    with pytest.raises(TypeError, match="FeatureAgglomeration"):
        deferlearn.save(clf, path)
    assert not marker.exists()
    # The cache is live: whoever trusts the types of this file runs what is in it.
    names = ["sklearn.cluster._agglomerative.FeatureAgglomeration", "numpy.mean"]
    trusting = deferlearn.load(path, trusted=names).policy.steps[0][1]
    with pytest.raises(Exception):  # noqa: B017, PT011
        trusting.fit(X)
    assert marker.exists()


@pytest.mark.parametrize(
    "holder",
    [
        lambda memory: Pipeline([("clf", GaussianNB())], memory=memory),
        lambda memory: AssistedSVC(policy=make_pipeline(GaussianNB(), memory=memory)),
        lambda memory: AssistedSVC(
            policy=DeferralPolicy(make_pipeline(GaussianNB(), memory=memory))
        ),
        lambda memory: AdvantageTriage(machine=make_pipeline(GaussianNB(), memory=memory)),
        lambda memory: make_assisted_pipeline(StandardScaler(), AssistedSVC(), memory=memory),
    ],
    ids=["pipeline", "policy", "wrapped policy", "machine", "assisted pipeline"],
)
def test_no_part_of_a_model_names_a_cache(tmp_path, holder):
    model = holder(str(tmp_path / "cache"))
    path = written_past_save(model, tmp_path / "team.skops")
    with pytest.raises(ValueError, match=r"Pipeline has memory=.*no cache"):
        deferlearn.load(path)
    with pytest.raises(TypeError, match=r"Pipeline has memory=.*memory=None"):
        deferlearn.save(model, path)
    deferlearn.save(holder(None), path)
    deferlearn.load(path)


def made(kind):
    """An estimator of a kind of scikit-learn, however it is made."""
    inner = LogisticRegression()
    for arguments in ({}, {"estimator": inner}, {"estimators": [("a", inner)]}):
        try:
            return kind(**arguments)
        except TypeError:
            continue
    needed = {"steps": [("a", inner)], "transformers": [("a", StandardScaler(), [0])]}
    for name, value in {**needed, "transformer_list": [("a", StandardScaler())]}.items():
        try:
            return kind(**{name: value})
        except TypeError:
            continue
    return None


def dangerous_values(estimator, folder):
    """A path or a function for every parameter that would take one."""
    constraints = getattr(type(estimator), "_parameter_constraints", {})
    for name, choices in constraints.items():
        if name not in estimator.get_params(deep=False) or name in FREE_TEXT:
            continue
        kinds = choices if isinstance(choices, list) else [str, callable]
        if str in kinds or any(isinstance(kind, HasMethods) for kind in kinds):
            yield name, str(folder)
        if callable in kinds:
            yield name, np.log1p


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of estimators that scikit-learn gives up
def test_no_estimator_takes_paths_or_functions_from_a_file(tmp_path):
    tried, path = 0, tmp_path / "estimator.skops"
    for _, kind in all_estimators():
        estimator = made(kind)
        if estimator is None:
            continue
        for name, value in dangerous_values(estimator, tmp_path):
            bad = clone(estimator)
            setattr(bad, name, value)
            try:
                written_past_save(bad, path)
            except Exception:
                continue
            tried += 1
            with pytest.raises(ValueError, match=r"is refused|cannot be read"):
                deferlearn.load(path)
    assert tried > 60


def test_files_named_by_the_data_are_not_read_for_a_model(tmp_path):
    from sklearn.feature_extraction.text import CountVectorizer

    path = written_past_save(CountVectorizer(input="filename"), tmp_path / "words.skops")
    with pytest.raises(ValueError, match="CountVectorizer"):
        deferlearn.load(path)


def test_functions_need_their_names(tmp_path):
    model, path = FunctionTransformer(np.log1p), tmp_path / "model.skops"
    with pytest.raises(TypeError, match="log1p"):
        deferlearn.save(model, path)
    names = ["numpy.log1p"]
    deferlearn.save(model, path, trusted=names)
    assert deferlearn.load(path, trusted=names).func is np.log1p


def test_nothing_takes_the_place_of_a_method(tmp_path):
    model = StandardScaler()
    model.fit = LogisticRegression()
    path = written_past_save(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"fit=LogisticRegression.*in the place of a method"):
        deferlearn.load(path)


@pytest.mark.parametrize(
    ("loader", "name"),
    [("ListNode", "deferlearn.teams.threshold.Threshold"), ("CachedNode", "builtins.list")],
)
def test_a_trusted_type_is_trusted_at_its_own_loader_only(tmp_path, loader, name):
    """skops would call the type with a list of the file's choice."""
    model = LogisticRegression(class_weight={0: [1.0], 1: [2.0]})
    path = written_past_save(model, tmp_path / "model.skops")

    def change(schema):
        module, _, kind = name.rpartition(".")
        text = json.dumps(schema)
        old = '"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"'
        assert old in text
        new = f'"__class__": "{kind}", "__module__": "{module}", "__loader__": "{loader}"'
        return json.loads(text.replace(old, new))

    with pytest.raises(ValueError, match=name):
        deferlearn.load(changed(path, change))


def test_old_loaders_of_skops_are_not_used(tmp_path):
    path = written_past_save(LogisticRegression(), tmp_path / "model.skops")
    with pytest.raises(ValueError, match="protocol 0"):
        deferlearn.load(changed(path, lambda schema: {**schema, "protocol": 0}))


def test_one_identity_does_not_hide_another_part_of_a_tree(tmp_path):
    """skops takes the first part with an identity for all of them."""
    model = RandomForestClassifier(1).fit(X, Y)
    path = written_past_save(model, tmp_path / "model.skops")

    def change(schema):
        nodes = schema["content"]["content"]["estimators_"]["content"][0]
        tree = nodes["content"]["content"]["tree_"]
        hidden = dict(tree["__reduce__"]["args"]["content"][0])
        hidden["content"] = "1000000"
        schema["content"]["content"]["verbose"] = hidden
        return schema

    with pytest.raises(ValueError, match="two different parts of it have the identity"):
        deferlearn.load(changed(path, change))


def zeros(n_bytes):
    """An archive with many zeros."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(n_bytes))
    return out.getvalue()


def test_a_zip_bomb_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "FREE_SIZE", 2**16)
    path = tmp_path / "bomb.skops"
    path.write_bytes(with_versions(zeros(2**22)))

    def read(*_, **__):
        raise AssertionError("a part was read")

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "read", read)
        patch.setattr(zipfile.ZipFile, "open", read)
        with pytest.raises(ValueError, match=r"bomb\.skops is refused: .* would become 4,194,304"):
            deferlearn.load(path)
    with pytest.raises(archives.ArchiveTooLarge, match="4,194,304"):
        unpacked(zeros(2**22))


def test_a_part_that_is_read_many_times_counts_as_often(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "FREE_SIZE", 2**16)
    monkeypatch.setattr(archives, "MOST_RATIO", 2)
    model = LogisticRegression()
    model.coef_ = np.zeros(1000)
    path = written_past_save(model, tmp_path / "model.skops")

    def change(schema):
        attributes = schema["content"]["content"]
        same = [{**attributes["coef_"], "__id__": k + 1} for k in range(100)]
        attributes["coef_"] = {
            "__class__": "list",
            "__module__": "builtins",
            "__loader__": "ListNode",
            "content": same,
        }
        return schema

    with pytest.raises(ValueError, match="reads more than"):
        deferlearn.load(changed(path, change))


def test_an_array_that_claims_to_be_larger_takes_no_memory(tmp_path):
    model = LogisticRegression()
    model.coef_ = np.zeros(1234)
    out, header = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**10,)}
    )
    with (
        zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as old,
        zipfile.ZipFile(out, "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, header.getvalue() if name.endswith("npy") else old.read(name))
    path = tmp_path / "model.skops"
    path.write_bytes(with_versions(out.getvalue()))
    with pytest.raises(ValueError, match=r"says that it has the shape \(10000000000,\)"):
        deferlearn.load(path)


def test_a_model_that_compresses_well_is_stored_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "FREE_SIZE", 2**16)
    model = LogisticRegression()
    model.coef_ = np.zeros((1, 300_000))
    deferlearn.save(model, tmp_path / "model.skops")
    assert deferlearn.load(tmp_path / "model.skops").coef_.shape == (1, 300_000)


def test_each_array_of_a_pack_is_read_once():
    array = np.arange(3.0)
    again = unpacked(packed({"a": array, "b": [array]}))
    np.testing.assert_array_equal(again["b"][0], array)
    content = packed({"a": array})
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        text = json.dumps({"many": [{"array:": "a0"}] * 3}).encode()
        buffer = io.BytesIO()
        np.save(buffer, np.frombuffer(text, dtype=np.uint8))
        new.writestr("values.npy", buffer.getvalue())
        new.writestr("a0.npy", old.read("a0.npy"))
    many = unpacked(out.getvalue())["many"]
    assert many[0] is many[1] is many[2]


def test_owners_add_types(tmp_path):
    model, path = FeatureAgglomeration(2), tmp_path / "model.skops"
    names = ["sklearn.cluster._agglomerative.FeatureAgglomeration", "numpy.mean"]
    deferlearn.save(model, path, trusted=names)
    assert isinstance(deferlearn.load(path, trusted=names), BaseEstimator)
