"""The mean of many trees, from arrays; scikit-learn would need milliseconds to ask each tree."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Index
from deferlearn.teams.stored_trees import check_nodes

# Rows at a time: with more, what is looked up leaves the processor's cache.
BLOCK = 400


@dataclass(frozen=True, eq=False)
class ForestArrays:
    """The nodes of all trees of a forest, one tree after the other.

    Attributes
    ----------
    roots : ndarray of shape (n_trees,)
        The first node of each tree.
    feature : ndarray of shape (n_nodes,)
        The feature that a node looks at; negative in a leaf.
    edge : ndarray of shape (n_nodes,)
        A case goes to the first child if its feature is at most this, otherwise to the second.
    children : ndarray of shape (n_nodes, 2)
        The two nodes below.
    value : ndarray of shape (n_nodes,) or (n_nodes, n_classes)
        The answer of a leaf: one number, or one for each of several classes.
    single : bool
        Whether features are rounded to single precision first, as in scikit-learn.
    """

    roots: Index
    feature: Index
    edge: Array
    children: Index
    value: Array
    single: bool

    def mean(self, X: Array) -> Array:
        """The mean of the trees' answers, added in the order of the trees, as the forest does.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Cases.

        Returns
        -------
        mean : ndarray of shape (n_rows,) or (n_rows, n_classes)
        """
        rows = X.astype(np.float32 if self.single else np.float64)
        parts = [self._mean(rows[start : start + BLOCK]) for start in range(0, len(rows), BLOCK)]
        return np.concatenate(parts) if parts else np.empty((0, *self.value.shape[1:]))

    def _mean(self, rows: NDArray[Any]) -> Array:
        n_trees, (n, d) = len(self.roots), rows.shape
        cells, children = rows.ravel(), self.children.ravel()
        node = np.repeat(self.roots, n)
        begin = np.tile(np.arange(n) * d, n_trees)  # of each row among the cells
        # Cases that are not in a leaf yet, of each tree.
        inner = np.flatnonzero(self.feature.take(node) >= 0)
        while len(inner):
            at = node.take(inner)
            beyond = cells.take(begin.take(inner) + self.feature.take(at)) > self.edge.take(at)
            below = children.take(2 * at + beyond)
            node[inner] = below
            inner = inner[self.feature.take(below) >= 0]
        said = self.value.take(node, axis=0).reshape(n_trees, n, *self.value.shape[1:])
        # `sum` would add in another order.
        return np.asarray(np.cumsum(said, axis=0)[-1] / n_trees)


def forest_arrays(forest: Any) -> ForestArrays | None:
    """The arrays of a fitted forest; None for any other model.

    Parameters
    ----------
    forest : estimator
        A forest of this package, or a random forest or extra trees of scikit-learn: a regressor, or a
        classifier, whose answer is the probability of the second of two classes, or of each of several.

    Returns
    -------
    arrays : ForestArrays or None
    """
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    from deferlearn.teams.forest import Forest

    if isinstance(forest, Forest):
        return _own_arrays(forest)
    classifies = type(forest) in (RandomForestClassifier, ExtraTreesClassifier)
    if not classifies and type(forest) not in (RandomForestRegressor, ExtraTreesRegressor):
        return None
    if forest.n_outputs_ != 1:
        return None
    several = classifies and forest.n_classes_ > 2
    trees = [tree.tree_ for tree in forest.estimators_]
    roots = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
    children = [
        np.column_stack([tree.children_left, tree.children_right]) + root
        for tree, root in zip(trees, roots, strict=True)
    ]
    return ForestArrays(
        roots=roots.astype(np.intp),
        feature=np.concatenate([tree.feature for tree in trees]).astype(np.intp),
        edge=np.concatenate([tree.threshold for tree in trees]),
        children=np.concatenate(children).astype(np.intp),
        value=np.concatenate([tree.value[:, 0, slice(None) if several else -1] for tree in trees]),
        single=True,
    )


def boosting_arrays(model: Any) -> tuple[list[ForestArrays], Array] | None:
    """The trees of fitted gradient boosting, and what they are added to; None for any other model.

    Parameters
    ----------
    model : estimator
        scikit-learn's `HistGradientBoostingClassifier`, without categories.

    Returns
    -------
    trees : list of ForestArrays
        One for two classes, otherwise one per class.
    baselines : ndarray
        What the trees of each are added to.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    if type(model) is not HistGradientBoostingClassifier:
        return None
    if getattr(model, "_preprocessor", None) is not None:  # it has put categories in front
        return None
    columns = zip(*model._predictors, strict=True)
    trees = [_boosted([tree.nodes for tree in column]) for column in columns]
    return trees, np.ravel(model._baseline_prediction).astype(np.float64)


def _boosted(nodes: list[NDArray[Any]]) -> ForestArrays:
    """The arrays of boosted trees, given by their nodes."""
    roots = np.cumsum([0, *(len(tree) for tree in nodes)])[:-1]
    leaf = np.concatenate([tree["is_leaf"] for tree in nodes]).astype(bool)
    children = [
        np.column_stack([tree["left"], tree["right"]]).astype(np.intp) + root
        for tree, root in zip(nodes, roots, strict=True)
    ]
    feature = np.concatenate([tree["feature_idx"] for tree in nodes]).astype(np.intp)
    return ForestArrays(
        roots=roots.astype(np.intp),
        feature=np.where(leaf, -1, feature),
        edge=np.concatenate([tree["num_threshold"] for tree in nodes]).astype(np.float64),
        children=np.concatenate(children),
        value=np.concatenate([tree["value"] for tree in nodes]).astype(np.float64),
        single=False,
    )


def _own_arrays(forest: Any) -> ForestArrays | None:
    if forest.trees_ is None:  # grown by scikit-learn on sparse features, which tables do not have
        return None
    roots, feature, edge, left, value = forest.trees_
    return ForestArrays(
        roots=roots.astype(np.intp),
        feature=feature.astype(np.intp),
        edge=edge,
        children=np.column_stack([left, left + 1]).astype(np.intp),
        value=value,
        single=False,
    )


def forest_from(values: dict[str, Any]) -> ForestArrays:
    """A forest of a file, whose trees end.

    Parameters
    ----------
    values : dict
        The attributes.

    Returns
    -------
    forest : ForestArrays

    Raises
    ------
    ValueError
        If a tree has no end, or leads to nodes that do not exist.
    """
    forest = ForestArrays(**values)
    children = forest.children
    check_nodes(children[:, 0], children[:, 1], forest.feature, forest.feature < 0)
    n_nodes, roots = len(forest.feature), forest.roots
    if len(roots) == 0 or roots.min() < 0 or roots.max() >= n_nodes:
        raise ValueError(f"the roots of a forest of {n_nodes} nodes do not exist")
    if len(forest.edge) != n_nodes or len(forest.value) != n_nodes:
        raise ValueError(f"a forest of {n_nodes} nodes has other numbers of edges or values")
    return forest
