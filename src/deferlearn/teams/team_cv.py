"""`TeamCV`: the machine, whatever its kind, and the way to share its work that do best together."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier

from deferlearn._utils.checks import check_flag, is_whole, plain
from deferlearn._utils.types import Array
from deferlearn.teams.blend import settings_from
from deferlearn.teams.brought import BroughtSettings, GivenScores, check_machine, takes_sparse
from deferlearn.teams.context import FoldContext
from deferlearn.teams.folds import stratified_folds
from deferlearn.teams.forest import ForestClassifier
from deferlearn.teams.machines import machines_of
from deferlearn.teams.parameters import draw_seed
from deferlearn.teams.samples import Samples
from deferlearn.teams.search_team import SearchTeam

# Kinds of machines by their names; those of SVMs are kernels.
SVMS = {"linear": "linear", "rbf": "rbf"}
OTHERS = {
    "forest": (
        "random forest",
        ForestClassifier(n_estimators=200, min_samples_leaf=1),
    ),
    "boosting": (
        "gradient boosting",
        HistGradientBoostingClassifier(),
    ),
}
AUTO_MACHINES = ("linear", "rbf", "forest", "boosting")
# From simple to elaborate.
AUTO_POLICIES = (
    "expected_cost",
    "uncertainty",
    "advantage",
    "advantage_by_region",
    "advantage_forest",
    "margin",
    "forest",
    "assisted",
    "automation",
)


@dataclass(eq=False, repr=False)
class TeamCV(SearchTeam):
    """The machine, of any kind, and the way to share its work that do best together.

    Machines and policies are compared by what the *team* gets wrong on held-out samples, as in
    `AssistedSVCCV`, which is the same search restricted to SVMs. The best candidates are tried once more on
    other folds, so that luck with one set of folds does not decide. The winner is fitted on all samples.
    """

    _: KW_ONLY
    machines: Any = "auto"
    policies: Any = "auto"
    alphas: Any = 7
    blend: bool = True
    n_repeats: Any = 2
    n_finalists: Any = 4
    n_refined: Any = 2
    n_standard_errors: float = 2.0

    takes_scores: ClassVar[bool] = True

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        for name in ("machines", "policies"):
            given = getattr(self, name)
            if isinstance(given, str) and given == "auto":
                continue
            ordered = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
            if not ordered or not len(given):
                raise ValueError(
                    f"{name}={given!r} must be 'auto' or a list of at least one entry."
                )
        for machine in self._asked_machines():
            if not isinstance(machine, str):
                check_machine(machine, "machines has an entry that")
            elif machine not in SVMS | OTHERS:
                raise ValueError(
                    f"machines has {machine!r}, which is not known; use {[*SVMS, *OTHERS]}, or a "
                    "scikit-learn classifier."
                )
        check_flag("blend", self.blend)
        for name in ("n_repeats", "n_finalists"):
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise ValueError(f"{name}={plain(value)!r} must be a whole number, 1 or larger.")
        super().check_parameters()

    def _asked_machines(self) -> Sequence[Any]:
        return AUTO_MACHINES if isinstance(self.machines, str) else self.machines

    def _policies(self) -> Sequence[Any]:
        return AUTO_POLICIES if isinstance(self.policies, str) else self.policies

    def _machines(self, X: Any, y: Array) -> list[Any]:
        if self._given_scores:
            return [GivenScores()]
        asked = self._asked_machines()
        if sp.issparse(X) and isinstance(self.machines, str):
            asked = [name for name in asked if name in ("linear", "forest")]
        found: list[Any] = []
        for machine in asked:
            if isinstance(machine, str) and machine in SVMS:
                found += machines_of(self.alphas, [SVMS[machine]], True, X, y)
            elif isinstance(machine, str):
                name, estimator = OTHERS[machine]
                found.append(BroughtSettings(estimator, name))
            else:
                found.append(settings_from(machine, X, y))
        return found

    def _more(self, samples: Samples, groups: Any, seed: int) -> dict[str, Any]:
        more: dict[str, Any] = {
            "blend": bool(self.blend),
            "n_finalists": int(self.n_finalists),
            "sparing": True,
        }
        if not isinstance(self.cv, Integral):  # a splitter may give the same folds again
            return more
        repeats = []
        for k in range(1, int(self.n_repeats)):
            folds = stratified_folds(self.cv, samples.X, samples.labels, groups, seed + k)
            repeats.append(FoldContext(samples, folds, draw_seed(seed), self.n_jobs))
        return more | {"repeats": repeats}

    def _takes_sparse(self) -> bool:
        kinds = self._asked_machines()
        if isinstance(self.machines, str) or self._given_scores:
            return True
        return all(
            machine in ("linear", "forest") if isinstance(machine, str) else takes_sparse(machine)
            for machine in kinds
        )
