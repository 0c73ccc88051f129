"""The mean of many trees, from arrays: scikit-learn takes milliseconds around each of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Index


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
    value : ndarray of shape (n_nodes,)
        The answer of a leaf.
    """

    roots: Index
    feature: Index
    edge: Array
    children: Index
    value: Array

    def mean(self, X: Array) -> Array:
        """The mean of the trees' answers, in the order in which scikit-learn adds them.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Cases.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        """
        rows = X.astype(np.float32)  # as scikit-learn has them
        n_trees, n = len(self.roots), len(rows)
        node = np.repeat(self.roots, n)
        row = np.tile(np.arange(n), n_trees)
        inner = np.flatnonzero(self.feature[node] >= 0)
        while len(inner):
            at = node[inner]
            beyond = rows[row[inner], self.feature[at]] > self.edge[at]
            below = self.children[at, beyond.astype(np.intp)]
            node[inner] = below
            inner = inner[self.feature[below] >= 0]
        # `sum` would add in another order.
        return np.cumsum(self.value[node].reshape(n_trees, n), axis=0)[-1] / n_trees


def forest_arrays(forest: Any) -> ForestArrays | None:
    """The arrays of a fitted forest; None for any other model.

    Parameters
    ----------
    forest : estimator
        A random forest or extra trees: a regressor, or a classifier of two classes, whose answer is the
        probability of the second class.

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

    classifies = type(forest) in (RandomForestClassifier, ExtraTreesClassifier)
    if not classifies and type(forest) not in (RandomForestRegressor, ExtraTreesRegressor):
        return None
    if forest.n_outputs_ != 1 or (classifies and forest.n_classes_ != 2):
        return None
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
        value=np.concatenate([tree.value[:, 0, -1] for tree in trees]),
    )
