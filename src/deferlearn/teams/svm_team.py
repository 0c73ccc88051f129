"""`SVMTeam`: a team whose machine is an SVM."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.types import Array
from deferlearn.teams.decider import Decider
from deferlearn.teams.machine import Machine, MachineSettings, SumMachine, settings_of
from deferlearn.teams.machine_arrays import as_arrays
from deferlearn.teams.probabilities import ClassMachine
from deferlearn.teams.ranking import Ranking
from deferlearn.teams.team import Team


@dataclass(eq=False, repr=False)
class SVMTeam(Team):
    """A team whose machine is an SVM; its parts have the names that `sklearn.svm.SVC` gives to them.

    Parameters are fields, so that each is written once: `dataclass` makes the constructor, which only
    stores them.
    """

    _: KW_ONLY
    alpha: float = 1.0
    kernel: Any = "linear"
    degree: float = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    fit_intercept: bool = True
    margin: str = "soft"
    class_weight: Any = None
    classes: Any = "auto"
    cost_matrix: Any = None

    # Whether a search may judge it by machines on all samples, which other teams use too.
    shares_machines: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_kernel("precomputed")
        return tags

    def _is_kernel(self, name: str) -> bool:
        return isinstance(self.kernel, str) and self.kernel == name

    def _takes_sparse(self) -> bool:
        return self._is_kernel("linear")

    def _class_weight(self) -> Any:
        return self.class_weight

    def _machine_settings(self, X: Any, y: Array) -> MachineSettings:
        return settings_of(self, X, y)

    def _decide(self, X: Any) -> Array:
        decision: Array = self._machine.decision_function(X)
        return decision

    def decider(self) -> Decider | None:
        """What the fitted team needs to decide, as arrays; see `Team.decider`."""
        machine, ranking = as_arrays(self._fitted_machine()), self._ranking()
        if machine is None or ranking is None:
            return None
        return Decider(
            self.classes_,
            machine,
            ranking,
            self._threshold,
            self._own_budget(),
            only_gains=self._only_gains(),
            stakes=self._stakes(),
            odds=self._odds,
        )

    def _stakes(self) -> Any:
        """What mistakes cost, if answers are those of least expected cost; empty if they are votes."""
        return ()

    def _ranking(self) -> Ranking | None:
        """How it ranks cases, as arrays; None if there is no such form of it."""
        return None

    def _fitted_machine(self) -> Any:
        check_is_fitted(self)
        return self._machine

    def _fitted_svms(self, name: str) -> list[Machine]:
        """The SVMs that tell the classes apart: one for two classes."""
        machine = self._fitted_machine()
        if isinstance(machine, ClassMachine):
            machine = machine.machine
        if isinstance(machine, SumMachine):
            return machine.parts
        if not isinstance(machine, Machine):
            raise AttributeError(f"{name} exists for a team whose machine is an SVM; see machine_.")
        return [machine]

    @property
    def coef_(self) -> Array:
        """The weight vectors w, one per row, for a linear kernel."""
        machines = self._fitted_svms("coef_")
        coefs = [machine.coef for machine in machines if machine.coef is not None]
        if not coefs:
            kernel = machines[0].settings.kernel
            raise AttributeError(f"coef_ exists for kernel='linear' only, not {kernel!r}.")
        return np.vstack(coefs)

    @property
    def intercept_(self) -> Array:
        """The offsets b."""
        return np.array([machine.intercept for machine in self._fitted_svms("intercept_")])

    @property
    def dual_coef_(self) -> Array:
        """Coefficients of the support vectors in each w."""
        machines, support = self._fitted_svms("dual_coef_"), self.support_
        coefs = np.zeros((len(machines), len(support)))
        for row, machine in zip(coefs, machines, strict=True):
            row[np.searchsorted(support, machine.support)] = machine.dual_coef
        return coefs

    @property
    def support_(self) -> NDArray[np.int64]:
        """Rows of the support vectors of any machine."""
        supports = [machine.support for machine in self._fitted_svms("support_")]
        return supports[0] if len(supports) == 1 else np.unique(np.concatenate(supports))

    @property
    def support_vectors_(self) -> Any:
        """The support vectors; empty for a precomputed kernel."""
        machines = self._fitted_svms("support_vectors_")
        if machines[0].vectors is None:
            return np.empty((0, 0))
        if len(machines) == 1:
            return machines[0].vectors
        _, first = np.unique(
            np.concatenate([machine.support for machine in machines]), return_index=True
        )
        vectors = [machine.vectors for machine in machines]
        return (sp.vstack(vectors).tocsr() if sp.issparse(vectors[0]) else np.vstack(vectors))[
            first
        ]
