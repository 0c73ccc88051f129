"""Teams whose machine is fitted on all samples: our SVM, any classifier, or scores that are given."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.humans.coding import Codes
from deferlearn.teams.blend import BlendedMachine, settings_from
from deferlearn.teams.brought import BroughtMachine, GivenScores, check_machine, takes_sparse
from deferlearn.teams.context import FoldContext
from deferlearn.teams.folds import random_folds
from deferlearn.teams.parameters import check_folds, draw_seed
from deferlearn.teams.samples import Samples
from deferlearn.teams.svm_team import SVMTeam


@dataclass(eq=False, repr=False)
class MachineTeam(SVMTeam):
    """A team with a machine of any kind.

    With ``machine=None`` it is an SVM with the parameters of `SVMTeam`. Any other machine is calibrated on
    held-out samples, and so are scores that are given to `fit`.
    """

    _: KW_ONLY
    machine: Any = None
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = None

    takes_any_machine: ClassVar[bool] = True
    takes_scores: ClassVar[bool] = True

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        check_folds(self.cv, self.n_jobs)
        check_machine(self.machine)
        if self.cv is None and (self.machine is not None or self._given_scores):
            raise ValueError(
                "cv=None: the machine's scores are calibrated on held-out samples, so give folds."
            )
        if self.machine is not None and self._given_scores:
            raise ValueError(
                f"machine={self.machine!r} and machine_scores were given; the scores take the place of "
                "the machine, so give one of them."
            )

    def _note_probabilities(self, context: FoldContext) -> None:
        """Learn probabilities from held-out samples; of several classes, margins are probabilities."""
        self._odds = None
        if context.folds and not context.samples.coding.several:
            # Margins of machines other than SVMs are calibrated already.
            calibrated = context.samples.settings.needs_folds
            self._learn_probabilities(context.samples, context.margins()[0], calibrated)
        elif context.folds:
            self._held_out = np.exp(context.margins()[0])

    def _answers(self, decision: Array) -> Codes:
        if self._coding.several:
            return self._coding.by_probability(decision)
        return super()._answers(decision)

    def _stakes(self) -> Any:
        return self._coding.stakes if self._coding.several else ()

    @property
    def machine_(self) -> Any:
        """The fitted classifier, if one was brought, and a list of them for a blend.

        A team with an SVM has `coef_` and its like.
        """
        machine = self._fitted_machine()
        if isinstance(machine, BlendedMachine):
            return [member.estimator for member in machine.members]
        if not isinstance(machine, BroughtMachine):
            raise AttributeError(
                f"machine_ exists for machines other than SVMs; machine={self.machine!r}."
            )
        return machine.estimator

    def _takes_sparse(self) -> bool:
        if self._given_scores:
            return True
        return super()._takes_sparse() if self.machine is None else takes_sparse(self.machine)

    def _is_kernel(self, name: str) -> bool:
        return self.machine is None and not self._given_scores and super()._is_kernel(name)

    def _machine_settings(self, X: Any, y: Array) -> Any:
        if self._given_scores:
            return GivenScores()
        if self.machine is None:
            return super()._machine_settings(X, y)
        return settings_from(self.machine, X, y)

    def _in_folds(self, samples: Samples, context: FoldContext | None) -> FoldContext:
        """The context of a search, or one with folds of its own; without any if ``cv=None``."""
        if context is not None:
            return context
        seed = draw_seed(self.random_state)
        context = FoldContext(samples, [], seed, self.n_jobs)
        if self.cv is None:
            return context
        return replace(context, folds=random_folds(self.cv, samples.X, samples.y, seed))
