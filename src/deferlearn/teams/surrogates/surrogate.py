"""Teams that minimise one loss over an output for each class and one for deferral."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.types import Array
from deferlearn.teams.samples import Samples
from deferlearn.teams.surrogates.base import GainTeam
from deferlearn.teams.surrogates.linear import LinearModel, Loss, fit_linear
from deferlearn.teams.surrogates.targets import Targets, targets_of


class SurrogateTeam(GainTeam):
    """Linear outputs, the last of them for deferral, that minimise the loss of `_loss`."""

    _model: LinearModel

    def _loss(self, targets: Targets) -> Loss:
        """The mean loss of outputs, and its gradient."""
        raise NotImplementedError

    def _fit_model(self, samples: Samples, share: float, seed: int) -> LinearModel:
        n_outputs = len(samples.classes) + 1
        loss = self._loss(targets_of(samples))
        return fit_linear(samples.X, n_outputs, float(self.alpha), loss)[0]

    def _decide_by(self, model: Any, X: Any) -> Array:
        F = model.outputs(X)[:, :-1]
        return np.asarray(F[:, 1] - F[:, 0] if F.shape[1] == 2 else F)

    @property
    def coef_(self) -> Array:
        """Weights of the features in their own units: a row per class, and the last for deferral."""
        check_is_fitted(self)
        return self._model.own_units()[0]

    @property
    def intercept_(self) -> Array:
        """Offsets of the outputs."""
        check_is_fitted(self)
        return self._model.own_units()[1]
