"""Forests that are grown once: teams that differ in their budget alone learn the same about errors."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

from deferlearn._utils.digest import digest
from deferlearn.tables.team import TabularTeam
from deferlearn.teams.advantage import AdvantageTriage
from deferlearn.teams.advantage_model import FOREST

# A team has two forests for each of five folds and two for all cases. Budgets of one split are tried one
# after the other, so that two teams' worth is more than enough.
MOST = 24

_grown: OrderedDict[str, RandomForestRegressor] = OrderedDict()
_lock = Lock()


class RememberedForest(RandomForestRegressor):
    """A random forest that grows once from the same cases, parameters and seed, and then is remembered.

    It predicts what `sklearn.ensemble.RandomForestRegressor` does. Each process has its own memory, of
    the last 24 forests.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.report.forests import RememberedForest
    >>> X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) % 3
    >>> first, second = (RememberedForest(5, random_state=0).fit(X, y) for _ in range(2))
    >>> first.estimators_ is second.estimators_
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RememberedForest:
        """Grow, or remember.

        Parameters
        ----------
        X, y, sample_weight
            As for a random forest.

        Returns
        -------
        self
        """
        key = self._key(X, y, sample_weight)
        with _lock:
            known = _grown.get(key) if key is not None else None
            if known is not None and key is not None:
                _grown.move_to_end(key)
        if known is not None:
            self.__dict__.update(vars(known))
            return self
        super().fit(X, y, sample_weight)
        self._said: dict[str, NDArray[np.float64]] = {}
        if key is not None:
            with _lock:
                _grown[key] = self
                while len(_grown) > MOST:
                    _grown.popitem(last=False)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict, or say again what was predicted for the same cases.

        Parameters
        ----------
        X : array-like
            Cases.

        Returns
        -------
        values : ndarray
        """
        if not isinstance(X, np.ndarray) or not hasattr(self, "_said"):
            return np.asarray(super().predict(X))
        key = digest(X)
        if key not in self._said:
            self._said[key] = np.asarray(super().predict(X))
        return self._said[key].copy()

    def _key(self, X: Any, y: Any, sample_weight: Any) -> str | None:
        """What decides how it grows; None where that cannot be told, or is left to chance."""
        if not isinstance(self.random_state, int | np.integer) or sample_weight is not None:
            return None
        if sp.issparse(X) or self.warm_start:
            return None
        return digest(np.asarray(X), np.asarray(y)) + repr(self.get_params())


def with_memory(team: TabularTeam) -> TabularTeam:
    """A clone of a team that is not fitted; what it learns about errors by forests, it learns once.

    Parameters
    ----------
    team : TabularTeam
        Not fitted; it is not changed.

    Returns
    -------
    TabularTeam
    """
    own = clone(team)
    if isinstance(own.team, AdvantageTriage):
        for name in ("machine_error", "human_error"):
            if getattr(own.team, name) == "forest":
                own.team.set_params(**{name: RememberedForest(**FOREST.get_params())})
    return own
