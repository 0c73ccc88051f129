"""The forests behind "forest": where humans err, where machines err, and which cases to defer."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestRegressor

from deferlearn._utils.types import Array
from deferlearn.teams.trees import Trees, bin_features, grow, mean_of_trees

# The share of the samples that each tree sees: n draws with replacement hit as many at least once.
SHARE_DRAWN = 0.632


@dataclass(eq=False, repr=False)
class Forest(BaseEstimator):
    """Means over regression trees, each grown on a random part of the samples.

    Features are binned, and trees are grown in compiled code: a search grows a thousand trees, and
    scikit-learn spends more time around each of them than on growing it. Sparse features go to
    scikit-learn.
    """

    n_estimators: int = 50
    _: KW_ONLY
    min_samples_leaf: int = 5
    max_features: float | str = 1 / 3
    random_state: int | None = None

    def _grow(self, X: Any, target: Array) -> Self:
        self.n_features_in_ = X.shape[1]
        self.trees_: Any = None
        self.sparse_: Any = None
        if sp.issparse(X):
            forest = RandomForestRegressor(**self.get_params())
            self.sparse_ = forest.fit(X, target)
            return self
        X = np.asarray(X, dtype=np.float64)
        n, d = X.shape
        self.trees_ = list(
            grow(
                *bin_features(X),
                np.asarray(target, dtype=np.float64),
                self.n_estimators,
                max(1, round(SHARE_DRAWN * n)),
                self._n_tried(d),
                self.min_samples_leaf,
                np.random.RandomState(self.random_state).randint(np.iinfo(np.int32).max),
            )
        )
        return self

    def _n_tried(self, n_features: int) -> int:
        """How many features a split is chosen among, as scikit-learn counts them."""
        if self.max_features == "sqrt":
            return max(1, int(np.sqrt(n_features)))
        return max(1, int(float(self.max_features) * n_features))

    def _mean(self, X: Any) -> Array:
        if self.sparse_ is not None:
            return np.asarray(self.sparse_.predict(X))
        return mean_of_trees(np.ascontiguousarray(X, dtype=np.float64), Trees(*self.trees_))


class ForestRegressor(RegressorMixin, Forest):
    """A forest that predicts a number, such as the expected cost of an answer.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees.
    min_samples_leaf : int, default=5
        The smallest number of samples in a leaf.
    max_features : float or "sqrt", default=1/3
        The share of the features among which each split is chosen. With "sqrt", it is chosen among as many
        as the square root of their number.
    random_state : int or None, default=None
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams.forest import ForestRegressor
    >>> X = np.random.RandomState(0).uniform(size=(200, 2))
    >>> forest = ForestRegressor(random_state=0).fit(X, X[:, 0] > 0.5)
    >>> forest.predict([[0.1, 0.5], [0.9, 0.5]]).round()
    array([0., 1.])
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Finite features.
        y : array-like of shape (n_samples,)
            Numbers.
        """
        return self._grow(X, y)

    def predict(self, X: Any) -> Array:
        """The mean of the trees' predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New cases.
        """
        return self._mean(X)


@dataclass(eq=False, repr=False)
class ForestClassifier(ClassifierMixin, Forest):
    """A forest for two classes.

    Parameters
    ----------
    n_estimators, min_samples_leaf, max_features, random_state
        As in `ForestRegressor`; ``max_features="sqrt"`` is the default.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams.forest import ForestClassifier
    >>> X = np.random.RandomState(0).uniform(size=(200, 2))
    >>> forest = ForestClassifier(random_state=0).fit(X, X[:, 0] > 0.5)
    >>> forest.predict([[0.1, 0.5], [0.9, 0.5]])
    array([False,  True])
    """

    _: KW_ONLY
    max_features: float | str = "sqrt"

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Finite features.
        y : array-like of shape (n_samples,)
            Two classes.
        """
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(f"y has {len(self.classes_)} classes; a forest needs two.")
        return self._grow(X, codes.astype(np.float64))

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, as the mean over trees of its share in the leaf.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New cases.
        """
        second = self._mean(X)
        return np.column_stack([1.0 - second, second])

    def predict(self, X: Any) -> Any:
        """The more probable class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New cases.
        """
        return self.classes_[(self._mean(X) > 0.5).astype(np.int64)]
