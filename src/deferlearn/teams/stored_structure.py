"""Whether the fitted parts of a stored model fit together.

Compiled code of scikit-learn, scipy and ours takes sizes and positions from fitted models without checking
them. A stranger's file could make it read or write elsewhere in memory. Trees of scikit-learn are checked
in `stored_description`, before they are made; what they are parts of is checked here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from deferlearn.teams.stored_trees import check_nodes

# A category of gradient boosting is one of this many bits.
CATEGORIES = 256


def _must(condition: Any, what: str) -> None:
    if not condition:
        raise ValueError(f"{what} do not fit together")


def _n_features(estimator: Any) -> int:
    """The number of features, without which scikit-learn does not check that of new cases."""
    number = vars(estimator).get("n_features_in_")
    _must(isinstance(number, int | np.integer) and not isinstance(number, bool), "features")
    return int(number)


def _check_decision_tree(tree: Any) -> None:
    from sklearn.tree._tree import Tree

    if "tree_" not in vars(tree):
        return
    _must(type(tree.tree_) is Tree, "a tree and its nodes")
    _must(tree.tree_.n_features == _n_features(tree), "a tree and its number of features")


def _check_forest(forest: Any) -> None:
    if "estimators_" not in vars(forest):
        return
    expected = _n_features(forest)
    for tree in forest.estimators_:
        _must("tree_" in vars(tree), "a forest and its trees")
        _must(_n_features(tree) == expected, "trees of a forest")


def _check_boosted_trees(model: Any) -> None:
    from sklearn.dummy import DummyClassifier

    if "estimators_" not in vars(model):
        return
    trees, expected = model.estimators_, _n_features(model)
    n_classes = len(model.classes_)
    columns = 1 if n_classes == 2 else n_classes
    _must(type(trees) is np.ndarray and trees.ndim == 2 and trees.flags.c_contiguous, "stages")
    _must(trees.shape[1] == columns == model.n_trees_per_iteration_, "stages and classes")
    for tree in trees.ravel():
        _must("tree_" in vars(tree), "stages and trees")
        _must(_n_features(tree) == expected, "trees of stages")
        _must(tree.tree_.value.shape[1:] == (1, 1), "values of stages")
    named = "HalfBinomialLoss" if n_classes == 2 else "HalfMultinomialLoss"
    _must(type(model._loss).__name__ == named, "classes and the loss")
    if model.init_ != "zero":
        _must(type(model.init_) is DummyClassifier, "the first stage and its type")
        _must(np.shape(model.init_.class_prior_) == (n_classes,), "the first stage and classes")
        _must(model.init_.n_classes_ == n_classes, "the first stage and classes")


def _check_histogram_boosting(model: Any) -> None:
    if "_predictors" not in vars(model):
        return
    n_features, bins = _n_features(model), model._bin_mapper
    _must(vars(model).get("_preprocessor") is None, "categories and boosting")
    categorical = bins.is_categorical_
    _must(np.shape(categorical) == (n_features,), "features and their bins")
    _must(len(bins.bin_thresholds_) == n_features, "features and their bins")
    for feature in np.flatnonzero(categorical):
        known = np.asarray(bins.bin_thresholds_[feature])
        _must(((known >= 0) & (known < CATEGORIES)).all(), "categories and their bits")
    for predictor in (tree for stage in model._predictors for tree in stage):
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
        check_nodes(left, right, nodes["feature_idx"], leaf, n_features)
        by_category = nodes["is_categorical"].astype(bool) & ~leaf
        _must(
            np.asarray(categorical)[nodes["feature_idx"][by_category]].astype(bool).all(),
            "splits by categories and features",
        )
        for bits in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
            _must(bits.ndim == 2 and bits.shape[1] == CATEGORIES // 32, "categories and their bits")
            _must((nodes["bitset_idx"][by_category] < len(bits)).all(), "splits and their bits")


def _check_ball_or_kd_tree(tree: Any) -> None:
    data, order, nodes, bounds, leaf_size, n_levels, n_nodes, *_, weights = tree.__getstate__()
    n_samples, n_features = data.shape
    _must(n_samples >= 1 and leaf_size >= 1 and weights is None, "samples of a neighbour tree")
    _must(np.array_equal(np.sort(order), np.arange(n_samples)), "the order of a neighbour tree")
    _must(1 <= n_levels < 60 and n_nodes == 2**n_levels - 1, "levels of a neighbour tree")
    _must(nodes.shape == (n_nodes,), "nodes of a neighbour tree")
    sides = 2 if type(tree).__name__ == "KDTree" else 1
    _must(bounds.shape == (sides, n_nodes, n_features), "bounds of a neighbour tree")
    start, end = nodes["idx_start"], nodes["idx_end"]
    _must(((start >= 0) & (start <= end) & (end <= n_samples)).all(), "spans of a neighbour tree")
    last = np.arange(n_nodes) * 2 + 1 >= n_nodes
    _must((nodes["is_leaf"].astype(bool) | ~last).all(), "leaves of a neighbour tree")


def _check_neighbours(model: Any) -> None:
    if "_fit_X" not in vars(model):
        return
    _must(np.ndim(model._y) in (1, 2), "answers of neighbours")
    _must(len(model._y) == model._fit_X.shape[0], "neighbours and their answers")
    if model._tree is not None:
        _must(
            model._tree.__getstate__()[0].shape == model._fit_X.shape, "neighbours and their tree"
        )
    if "classes_" in vars(model) and np.ndim(model._y) == 1:
        codes = model._y
        _must(codes.dtype.kind in "iu", "answers of neighbours")
        _must(((codes >= 0) & (codes < len(model.classes_))).all(), "neighbours and their classes")


def _check_support_vectors(model: Any) -> None:
    if "support_" not in vars(model):
        return
    _must("_impl" not in vars(model), "a support vector machine and its kind")
    n_vectors, n_classes = len(model.support_), len(model.classes_)
    counts, vectors, coefficients = model._n_support, model.support_vectors_, model._dual_coef_
    _must(np.shape(counts) == (n_classes,) and n_classes >= 2, "support vectors and classes")
    _must((counts >= 0).all() and int(counts.sum()) == n_vectors, "support vectors and classes")
    if model.kernel == "precomputed":
        _must(_n_features(model) == model.shape_fit_[0], "support vectors and samples")
        _must(((model.support_ >= 0) & (model.support_ < model.shape_fit_[0])).all(), "samples")
    else:
        _must(vectors.shape == (n_vectors, _n_features(model)), "support vectors and features")
    _must(bool(model._sparse) == sp.issparse(vectors), "support vectors and their kind")
    _must(coefficients.shape == (n_classes - 1, n_vectors), "support vectors and coefficients")
    if sp.issparse(coefficients):
        _must(len(coefficients.data) == (n_classes - 1) * n_vectors, "coefficients")
    pairs = n_classes * (n_classes - 1) // 2
    _must(np.shape(model._intercept_) == (pairs,), "classes and intercepts")
    for name in ("_probA", "_probB"):
        _must(len(getattr(model, name)) in (0, pairs), "classes and probabilities")


def _check_one_hot(encoder: Any) -> None:
    """Columns are written to a sparse matrix at positions that follow from the encoder."""
    if "categories_" not in vars(encoder):
        return
    counts = list(encoder._n_features_outs)
    _must(counts == list(encoder._compute_n_features_outs()), "categories and columns")
    _must(len(counts) == len(encoder.categories_) == _n_features(encoder), "categories and columns")
    if encoder._infrequent_enabled:
        for mapping, categories in zip(
            encoder._default_to_infrequent_mappings, encoder.categories_, strict=True
        ):
            if mapping is not None:
                _must(len(mapping) == len(categories), "rare categories")
                groups = np.unique(mapping)
                _must(np.array_equal(groups, np.arange(len(groups))), "rare categories")
    if encoder._drop_idx_after_grouping is not None:
        for index, count in zip(encoder._drop_idx_after_grouping, counts, strict=True):
            _must(index is None or 0 <= index <= count, "categories and the one left out")


def _check_own_forest(forest: Any) -> None:
    if vars(forest).get("trees_") is None:
        return
    roots, feature, edge, left, value = (np.asarray(part) for part in forest.trees_)
    check_nodes(left, left + 1, feature, feature < 0, _n_features(forest))
    _must(edge.shape == value.shape == feature.shape and roots.ndim == 1, "nodes of a forest")
    _must(((roots >= 0) & (roots < len(feature))).all(), "roots of a forest")


_FOREST, _TREE, _SVM = _check_forest, _check_decision_tree, _check_support_vectors
_CHECKS: dict[str, Callable[[Any], None]] = {
    "deferlearn.teams.forest.ForestClassifier": _check_own_forest,
    "deferlearn.teams.forest.ForestRegressor": _check_own_forest,
    "sklearn.ensemble._forest.ExtraTreesClassifier": _FOREST,
    "sklearn.ensemble._forest.ExtraTreesRegressor": _FOREST,
    "sklearn.ensemble._forest.RandomForestClassifier": _FOREST,
    "sklearn.ensemble._forest.RandomForestRegressor": _FOREST,
    "sklearn.ensemble._gb.GradientBoostingClassifier": _check_boosted_trees,
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier": (
        _check_histogram_boosting
    ),
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingRegressor": (
        _check_histogram_boosting
    ),
    "sklearn.neighbors._ball_tree.BallTree": _check_ball_or_kd_tree,
    "sklearn.neighbors._classification.KNeighborsClassifier": _check_neighbours,
    "sklearn.neighbors._kd_tree.KDTree": _check_ball_or_kd_tree,
    "sklearn.neighbors._regression.KNeighborsRegressor": _check_neighbours,
    "sklearn.preprocessing._encoders.OneHotEncoder": _check_one_hot,
    "sklearn.svm._classes.NuSVC": _SVM,
    "sklearn.svm._classes.SVC": _SVM,
    "sklearn.tree._classes.DecisionTreeClassifier": _TREE,
    "sklearn.tree._classes.DecisionTreeRegressor": _TREE,
    "sklearn.tree._classes.ExtraTreeClassifier": _TREE,
    "sklearn.tree._classes.ExtraTreeRegressor": _TREE,
}


def check_structure(part: Any) -> None:
    """Refuse a part of a model whose sizes and positions contradict each other.

    Parameters
    ----------
    part : object
        An estimator, a matrix, or something that an estimator holds.

    Raises
    ------
    ValueError
        If they do.
    """
    if sp.issparse(part):
        part.check_format(full_check=True)
        return
    kind = type(part)
    check = _CHECKS.get(f"{kind.__module__}.{kind.__qualname__}")
    if check is not None:
        check(part)
