"""Regression trees on binned features: compiled, so that a small forest takes milliseconds.

A search grows a thousand trees, and on a thousand samples scikit-learn spends most of its time around the
growing.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.compiling import compiled, internal
from deferlearn._utils.types import Array, Index

# Bins of a feature; a bin is one byte.
MOST_BINS = 64
# A split must explain more of the variance than rounding can.
LEAST_GAIN = 1e-12

Bins = NDArray[np.uint8]


class Trees(NamedTuple):
    """Nodes of all trees, one after the other.

    Attributes
    ----------
    roots : ndarray of shape (n_trees,)
        The first node of each tree.
    feature : ndarray of shape (n_nodes,)
        The feature that a node looks at; -1 in a leaf.
    edge : ndarray of shape (n_nodes,)
        Cases up to this value go to the left child.
    left : ndarray of shape (n_nodes,)
        The left child; the right one follows it.
    value : ndarray of shape (n_nodes,)
        The mean of the targets in the node.
    """

    roots: Index
    feature: Index
    edge: Array
    left: Index
    value: Array


class _Work(NamedTuple):
    """Memory in which trees are grown.

    Attributes
    ----------
    state : ndarray of shape (1,)
        The state of the random numbers.
    order : ndarray of shape (n_samples,)
        Rows; those of a node are next to each other.
    features : ndarray of shape (n_features,)
        Features in the order in which they are drawn.
    sums, counts : ndarray of shape (n_bins,)
        The sum and the number of the targets in each bin; zero between uses.
    span : ndarray of shape (n_nodes, 2)
        Where the rows of each node begin and end.
    """

    state: NDArray[np.uint64]
    order: Index
    features: Index
    sums: Array
    counts: Index
    span: Index


def bin_features(X: Array) -> tuple[Bins, Array]:
    """The bin of each value, with one row per feature, and the upper edges of the bins.

    A feature with few values has a bin for each; others have bins with equally many samples.
    """
    n, d = X.shape
    edges = np.full((d, MOST_BINS - 1), np.inf)
    bins = np.empty((d, n), dtype=np.uint8)
    order = np.sort(X, axis=0)
    inner = np.arange(1, MOST_BINS) * n // MOST_BINS
    for k in range(d):
        values = order[:, k]
        steps = np.flatnonzero(values[1:] > values[:-1])
        if len(steps) >= MOST_BINS:
            # The next step at or after each quantile.
            steps = np.unique(steps[np.minimum(np.searchsorted(steps, inner - 1), len(steps) - 1)])
        middle = values[steps] + 0.5 * (values[steps + 1] - values[steps])
        edges[k, : len(steps)] = middle
        bins[k] = np.searchsorted(middle, X[:, k], side="left")
    return bins, edges


@internal
def _below(state, n):
    """A random whole number below n, by Marsaglia's xorshift."""
    s = state[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    state[0] = s
    return np.int64((s >> np.uint64(32)) % np.uint64(n))


@internal
def _best_cut(row_bins, target, rows, sums, counts, smallest_leaf):
    """The last bin of the left part, the first of the right one, and what the split explains.

    The bins are -1 if there is no split.
    """
    lowest, highest = len(sums), -1
    all_sum = 0.0
    for row in rows:
        b = row_bins[row]
        sums[b] += target[row]
        counts[b] += 1
        all_sum += target[row]
        lowest, highest = min(lowest, b), max(highest, b)
    last, first, best = -1, -1, -np.inf
    n, left_n, left_sum = len(rows), 0, 0.0
    for b in range(lowest, highest + 1):
        if counts[b] == 0:
            continue
        if first < 0:
            first = b  # of the best split so far, which is the one before
        left_n += counts[b]
        left_sum += sums[b]
        if left_n >= smallest_leaf and n - left_n >= smallest_leaf:
            right_sum = all_sum - left_sum
            explained = left_sum * left_sum / left_n + right_sum * right_sum / (n - left_n)
            if explained > best:
                last, first, best = b, -1, explained
    for b in range(lowest, highest + 1):
        sums[b] = 0.0
        counts[b] = 0
    return last, first, best


def grow(
    bins: Bins,
    edges: Array,
    target: Array,
    n_trees: int,
    n_drawn: int,
    n_tried: int,
    smallest_leaf: int,
    seed: int,
) -> Trees:
    """Grow trees, each on rows drawn without replacement, with features drawn at each node."""
    d, n = bins.shape
    # Arrays are made here, since allocations take long to compile.
    most = n_trees * 2 * max(n_drawn // smallest_leaf, 1)
    n_bins = edges.shape[1] + 1
    work = _Work(
        state=np.array([seed + 0x9E3779B97F4A7C15], dtype=np.uint64),
        order=np.arange(n),
        features=np.arange(d),
        sums=np.zeros(n_bins),
        counts=np.zeros(n_bins, dtype=np.int64),
        span=np.empty((most, 2), dtype=np.int64),
    )
    trees = Trees(
        roots=np.empty(n_trees, dtype=np.int64),
        feature=np.full(most, -1),
        edge=np.zeros(most),
        left=np.full(most, -1),
        value=np.empty(most),
    )
    used = _grow(bins, edges, target, n_drawn, n_tried, smallest_leaf, work, trees)
    columns: dict[str, Any] = trees._asdict()
    return Trees(**{name: column[:used].copy() for name, column in columns.items()})


@compiled
def _grow(bins, edges, target, n_drawn, n_tried, smallest_leaf, work, trees):
    """Fill the nodes of the trees, and return their number."""
    state, order, features, sums, counts, span = work
    roots, feature, edge, left, value = trees
    d, n = bins.shape
    used = 0
    for tree in range(len(roots)):
        for i in range(n_drawn):
            j = i + _below(state, n - i)
            order[i], order[j] = order[j], order[i]
        roots[tree] = node = used
        span[node, 0], span[node, 1] = 0, n_drawn
        used += 1
        while node < used:
            rows = order[span[node, 0] : span[node, 1]]
            total = 0.0
            same = True
            for row in rows:
                total += target[row]
                same = same and target[row] == target[rows[0]]
            size = len(rows)
            value[node] = total / size
            found, last, first, best = -1, -1, -1, total * total / size
            best += LEAST_GAIN * abs(best)
            tried = 0
            if size >= 2 * smallest_leaf and not same:
                for i in range(d):
                    if tried == n_tried:
                        break
                    j = i + _below(state, d - i)
                    features[i], features[j] = features[j], features[i]
                    k = features[i]
                    a, b, explained = _best_cut(bins[k], target, rows, sums, counts, smallest_leaf)
                    tried += a >= 0  # a feature that cannot split does not count
                    if a >= 0 and explained > best:
                        found, last, first, best = k, a, b, explained
            if found >= 0:
                middle = 0
                for i in range(size):
                    if bins[found, rows[i]] <= last:
                        rows[i], rows[middle] = rows[middle], rows[i]
                        middle += 1
                feature[node], left[node] = found, used
                # In the middle of the bins that no sample of the node is in.
                edge[node] = 0.5 * (edges[found, last] + edges[found, first - 1])
                middle += span[node, 0]
                span[used, 0], span[used, 1] = span[node, 0], middle
                span[used + 1, 0], span[used + 1, 1] = middle, span[node, 1]
                used += 2
            node += 1
    return used


def mean_of_trees(X: Array, trees: Trees) -> Array:
    """The mean over trees of the leaf's value, for each row."""
    out = np.zeros(len(X))
    _add_leaves(X, trees, out)
    return out / len(trees.roots)


@compiled
def _add_leaves(X, trees, out):
    roots, feature, edge, left, value = trees
    for row in range(len(X)):
        for root in roots:
            node = root
            while feature[node] >= 0:
                node = left[node] + (X[row, feature[node]] > edge[node])
            out[row] += value[node]
