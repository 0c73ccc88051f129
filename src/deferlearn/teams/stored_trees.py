"""Trees of stored models: whether following them stays within their nodes.

Compiled code follows the children of a node without asking whether they exist.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_nodes(
    left: NDArray[Any],
    right: NDArray[Any],
    feature: NDArray[Any],
    leaf: NDArray[np.bool_],
    n_features: int | None = None,
) -> None:
    """Refuse nodes from which there is a way out of the tree, or no end.

    Parameters
    ----------
    left, right : ndarray of shape (n_nodes,)
        The children of each node, which count only where it is no leaf: each comes after its parent.
    feature : ndarray of shape (n_nodes,)
        The feature that each node looks at.
    leaf : ndarray of bool of shape (n_nodes,)
        Which nodes are leaves.
    n_features : int or None, default=None
        The number of features, if it is known.

    Raises
    ------
    ValueError
        If a child does not exist or does not come after its parent, or a feature does not exist.
    """
    if not left.ndim == right.ndim == feature.ndim == leaf.ndim == 1:
        raise ValueError("a tree does not have one number per node")
    n_nodes = len(leaf)
    if n_nodes == 0 or not len(left) == len(right) == len(feature) == n_nodes:
        raise ValueError("a tree has no nodes, or not as many children as nodes")
    inner = np.flatnonzero(~leaf)
    for child in (left[inner], right[inner]):
        bad = np.flatnonzero((child <= inner) | (child >= n_nodes))
        if len(bad):
            raise ValueError(
                f"node {inner[bad[0]]} of a tree of {n_nodes} has the child {child[bad[0]]}"
            )
    beyond = feature[inner] < 0
    if n_features is not None:
        beyond |= feature[inner] >= n_features
    if beyond.any():
        at = inner[np.flatnonzero(beyond)[0]]
        raise ValueError(f"node {at} of a tree looks at feature {feature[at]} of {n_features}")


def check_tree(made_with: Any, state: Any) -> None:
    """Refuse a tree of scikit-learn that its own code would read beyond its end.

    Parameters
    ----------
    made_with : list
        The number of features, the numbers of classes, and the number of outputs.
    state : dict
        "node_count", "nodes" and "values".

    Raises
    ------
    ValueError
        If the numbers do not agree, or a child or a feature does not exist.
    """
    n_features, n_classes, n_outputs = made_with
    nodes, values = state["nodes"], state["values"]
    whole = all(type(number) is int for number in (n_features, n_outputs, state["node_count"]))
    if not whole or n_features < 1 or n_outputs < 1 or n_classes.shape != (n_outputs,):
        raise ValueError(f"a tree is for {n_features!r} features and {n_outputs!r} outputs")
    if n_classes.dtype.kind not in "iu" or n_classes.min() < 1:
        raise ValueError(f"a tree is for {n_classes.tolist()} classes")
    if nodes.shape != (state["node_count"],):
        raise ValueError(f"a tree has {state['node_count']} nodes, but {nodes.shape} are stored")
    if values.shape != (len(nodes), n_outputs, n_classes.max()):
        raise ValueError(
            f"the values of a tree of {len(nodes)} nodes have the shape {values.shape}"
        )
    left = nodes["left_child"]
    check_nodes(left, nodes["right_child"], nodes["feature"], left == -1, n_features)
    if type(state["max_depth"]) is not int or state["max_depth"] < _depth(nodes):
        raise ValueError(f"a tree is deeper than it says: {state['max_depth']!r}")


def _depth(nodes: NDArray[Any]) -> int:
    """The number of steps to the deepest leaf; the nodes have been checked."""
    depth, level = 0, np.array([0])
    while True:
        level = level[nodes["left_child"][level] != -1]
        if not len(level):
            return depth
        level = np.unique([nodes["left_child"][level], nodes["right_child"][level]])
        depth += 1
