"""Fitted parts of stored models: what users store comes back, and no position leads out of memory."""

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree

import deferlearn
from deferlearn.teams.forest import ForestRegressor
from deferlearn.teams.machine_arrays import as_arrays as machine_as_arrays
from deferlearn.teams.machine_arrays import machine_from, machine_values
from deferlearn.teams.storage import with_versions

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
THREE = Y + (X[:, 1] > 0.8)
CELLS = np.where(X > 0, "high", "low").astype(object)


def stored_by_a_stranger(model, path):
    path.write_bytes(with_versions(skops.io.dumps(model)))
    return path


MODELS = [
    RandomForestClassifier(3),
    ExtraTreesClassifier(3),
    HistGradientBoostingClassifier(max_iter=3),
    GradientBoostingClassifier(n_estimators=3),
    GradientBoostingClassifier(n_estimators=3, init="zero"),
    LogisticRegression(),
    RidgeClassifier(),
    SGDClassifier(loss="log_loss"),
    SVC(),
    SVC(kernel="poly", gamma="auto"),
    NuSVC(nu=0.2),
    LinearSVC(),
    CalibratedClassifierCV(SVC(), cv=2),
    CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2),
    make_pipeline(StandardScaler(), SVC()),
    make_pipeline(
        make_column_transformer((StandardScaler(), [0, 1]), remainder="passthrough"), GaussianNB()
    ),
    make_pipeline(make_union(MinMaxScaler(), RobustScaler()), LogisticRegression()),
    make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0), LogisticRegression()),
    make_pipeline(KNNImputer(), PowerTransformer(), LogisticRegression()),
    make_pipeline(QuantileTransformer(n_quantiles=9), PolynomialFeatures(), LogisticRegression()),
    make_pipeline(
        KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), LogisticRegression()
    ),
    MLPClassifier([4], max_iter=500, tol=0.1),
    KNeighborsClassifier(),
    KNeighborsClassifier(algorithm="ball_tree", metric="manhattan"),
    KNeighborsClassifier(algorithm="brute"),
    GaussianNB(),
    BernoulliNB(),
    DecisionTreeClassifier(),
    LinearDiscriminantAnalysis(),
    AdaBoostClassifier(n_estimators=2),
    BaggingClassifier(n_estimators=2),
    VotingClassifier([("a", GaussianNB())]),
    StackingClassifier([("a", GaussianNB())], cv=2),
    OneVsRestClassifier(LogisticRegression()),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
def test_what_users_store_comes_back(tmp_path, model, y):
    model.fit(X, y)
    deferlearn.save(model, tmp_path / "model.skops")
    again = deferlearn.load(tmp_path / "model.skops")
    for method in ("decision_function", "predict_proba", "predict"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(drop="first"),
        OneHotEncoder(min_frequency=40, handle_unknown="infrequent_if_exist"),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        SimpleImputer(strategy="constant", fill_value="none of them"),
    ],
    ids=lambda encoder: type(encoder).__name__,
)
def test_encoders_of_categories_come_back(tmp_path, encoder):
    encoder.fit(CELLS)
    deferlearn.save(encoder, tmp_path / "model.skops")
    again = deferlearn.load(tmp_path / "model.skops").transform(CELLS)
    now = encoder.transform(CELLS)
    assert (again != now).sum() == 0


@pytest.mark.parametrize("kind", [SVC, GaussianNB, KNeighborsClassifier])
def test_models_of_sparse_data_come_back(tmp_path, kind):
    model = kind() if kind is not GaussianNB else BernoulliNB()
    model.fit(sp.csr_matrix(X), Y)
    deferlearn.save(model, tmp_path / "model.skops")
    again = deferlearn.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(sp.csr_matrix(X)), model.predict(sp.csr_matrix(X)))


def with_nodes(tree, change, **more):
    """The same tree with changed nodes."""
    _, arguments, state = tree.__reduce__()
    change(state["nodes"])
    other = Tree(*arguments)
    other.__setstate__({**state, **more})
    return other


def set_field(name, row, value):
    def change(nodes):
        nodes[name][row] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_field("left_child", 0, 2**40), "child 1099511627776"),
        (set_field("right_child", 0, -5), "child -5"),
        (set_field("left_child", 1, 0), "child 0"),
        (set_field("feature", 0, 3), "feature 3 of 3"),
        (set_field("feature", 0, -1), "feature -1 of 3"),
    ],
)
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_trees_lead_nowhere_else(tmp_path, kind, change, message):
    model = kind(random_state=0).fit(X, THREE)
    tree = model if kind is DecisionTreeClassifier else model.estimators_[0]
    tree.tree_ = with_nodes(tree.tree_, change)
    path = stored_by_a_stranger(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match=message):
        deferlearn.load(path)


def test_trees_are_as_deep_as_they_say(tmp_path):
    model = DecisionTreeClassifier().fit(X, Y)
    model.tree_ = with_nodes(model.tree_, lambda nodes: None, max_depth=0)
    with pytest.raises(ValueError, match="deeper than it says"):
        deferlearn.load(stored_by_a_stranger(model, tmp_path / "model.skops"))


def test_trees_of_a_forest_have_its_features(tmp_path):
    """The forest checks the number of features, and its trees do not check it again."""
    model = RandomForestClassifier(2).fit(X, Y)
    model.estimators_[1] = DecisionTreeClassifier().fit(np.hstack([X[:, 1:], X]), Y)
    with pytest.raises(ValueError, match="trees of a forest"):
        deferlearn.load(stored_by_a_stranger(model, tmp_path / "model.skops"))
    del model.n_features_in_
    with pytest.raises(ValueError, match="features do not fit"):
        deferlearn.load(stored_by_a_stranger(model, tmp_path / "model.skops"))


def histogram(change):
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, Y)
    change(model, model._predictors[0][0])
    return model


def support(**attributes):
    model = SVC().fit(X, THREE)
    vars(model).update(attributes)
    return model


def neighbours(position, change):
    model = KNeighborsClassifier(leaf_size=5, algorithm="kd_tree").fit(X, Y)
    state = list(model._tree.__getstate__())
    state[position] = change(state[position].copy())
    model._tree.__setstate__(tuple(state))
    return model


def other(array, at, value):
    array[at] = value
    return array


def boosted(**attributes):
    model = GradientBoostingClassifier(n_estimators=2).fit(X, THREE)
    vars(model).update(attributes)
    return model


def encoder(**attributes):
    model = OneHotEncoder().fit(CELLS)
    vars(model).update(attributes)
    return model


def own_forest(part, row, value):
    model = ForestRegressor(3, random_state=0).fit(X, Y)
    model.trees_[part][row] = value
    return model


def wide(array):
    wider = np.zeros(len(array) + 1, dtype=array.dtype)
    return wider


def codes_beyond():
    model = KNeighborsClassifier(algorithm="brute").fit(X, Y)
    model._y = model._y + 10**6
    return model


def broken_matrix():
    model = LogisticRegression()
    model.coef_ = sp.csr_matrix(X)
    model.coef_.indices[3] = 10**6
    return model


STRUCTURES = {
    "left": lambda: histogram(lambda m, p: other(p.nodes["left"], 0, 10**6)),
    "feature": lambda: histogram(lambda m, p: other(p.nodes["feature_idx"], 0, 3)),
    "category": lambda: histogram(lambda m, p: other(p.nodes["is_categorical"], 0, 1)),
    "bins": lambda: histogram(lambda m, p: vars(m._bin_mapper).update(is_categorical_=np.ones(2))),
    "bits": lambda: histogram(
        lambda m, p: vars(p).update(raw_left_cat_bitsets=np.zeros((1, 1), dtype=np.uint32))
    ),
    "categories": lambda: histogram(
        lambda m, p: vars(m._bin_mapper).update(
            is_categorical_=np.ones(3, dtype=np.uint8), bin_thresholds_=[np.array([999.0])] * 3
        )
    ),
    "no features": lambda: histogram(lambda m, p: vars(m).pop("n_features_in_")),
    "support counts": lambda: support(_n_support=np.array([10**6] * 3, dtype=np.int32)),
    "support coefficients": lambda: support(_dual_coef_=np.ones((1, 5))),
    "support intercepts": lambda: support(_intercept_=np.ones(1)),
    "support probabilities": lambda: support(_probA=np.ones(1)),
    "support vectors": lambda: support(support_vectors_=np.ones((2, 3))),
    "support kind": lambda: support(_impl="epsilon_svr"),
    "neighbour order": lambda: neighbours(1, lambda a: other(a, 0, 10**6)),
    "neighbour spans": lambda: neighbours(2, lambda a: other(a, 0, (0, 10**6, 0, 1.0))),
    "neighbour leaves": lambda: neighbours(2, lambda a: other(a, len(a) - 1, (0, 3, 0, 1.0))),
    "neighbour nodes": lambda: neighbours(2, wide),
    "neighbour bounds": lambda: neighbours(3, lambda a: a[:, :2].copy()),
    "neighbour codes": codes_beyond,
    "boosted columns": lambda: boosted(classes_=np.array([0, 1, 2, 3])),
    "boosted first stage": lambda: boosted(init_=GaussianNB().fit(X, Y)),
    "boosted stages": lambda: boosted(estimators_=np.array([[GaussianNB()] * 3], dtype=object)),
    "encoder columns": lambda: encoder(_n_features_outs=[1, 1, 1]),
    "own forest's children": lambda: own_forest(3, 0, 2**40),
    "own forest's features": lambda: own_forest(1, 0, 7),
    "own forest's roots": lambda: own_forest(0, 0, 2**40),
    "matrix": broken_matrix,
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_parts_that_do_not_fit_together_are_refused(tmp_path, name):
    path = stored_by_a_stranger(STRUCTURES[name](), tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"fit together|of a tree|indices|index"):
        deferlearn.load(path)


@pytest.mark.parametrize("at", [("children", 0, 0), ("children", 2**40, 0), ("roots", 2**40, 0)])
def test_trees_of_a_packed_decider_end(at):
    """They are followed by numpy, which finds positions that are too large, but no circle."""
    values = machine_values(machine_as_arrays(RandomForestClassifier(2).fit(X, Y)))
    machine_from(values)
    name, value, row = at
    values["forest"] = {**values["forest"], name: other(values["forest"][name].copy(), row, value)}
    with pytest.raises(ValueError, match=r"child|roots"):
        machine_from(values)
