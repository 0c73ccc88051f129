"""The checked samples of a fit: what machine and human are learned from."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.humans.human import Human
from deferlearn.humans.losses import LOSS_WRONG
from deferlearn.teams.machine import Machine, machine_of

if TYPE_CHECKING:
    from deferlearn.objective import NumericalError
    from deferlearn.teams.machine import MachineObjective

# Samples up to which the linear machine is followed from alpha to alpha.
LINEAR_PATH = 1024


@dataclass(frozen=True)
class Samples:
    """Samples with their labels, the human's answers, and the machine to be fitted on them.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Features, or the Gram matrix of a precomputed kernel.
    labels : ndarray of shape (n_samples,)
        The true labels as the user gave them.
    classes : ndarray of shape (2,)
        The two labels; the second is the positive class.
    y : ndarray of shape (n_samples,)
        The labels as -1 and +1.
    weights : ndarray of shape (n_samples,)
        What an error on each sample costs, whoever errs.
    human : Human
        The human's answers.
    settings : MachineSettings or BroughtSettings
        The machine's parameters.
    trained_on : ndarray of bool of shape (n_samples,) or None
        The samples that the machine is fitted on; None is all of them.
    """

    X: Any
    labels: NDArray[Any]
    classes: NDArray[Any]
    y: Array
    weights: Array
    human: Human
    settings: Any
    trained_on: Bools | None = None

    def __len__(self) -> int:
        return len(self.y)

    def part(self, rows: Index) -> Self:
        """Some of the samples; of a Gram matrix their rows and columns."""
        return replace(
            self,
            X=self.seen_by(rows, rows),
            labels=self.labels[rows],
            y=self.y[rows],
            weights=self.weights[rows],
            human=self.human.part(rows),
            trained_on=None if self.trained_on is None else self.trained_on[rows],
        )

    def training_part(self) -> Self:
        """The samples that the machine is fitted on."""
        return self if self.trained_on is None else self.part(np.flatnonzero(self.trained_on))

    def placed(self, machine: Machine) -> Machine:
        """A machine of the training part, with support vectors by their rows among all samples."""
        if self.trained_on is None:
            return machine
        return replace(machine, support=np.flatnonzero(self.trained_on)[machine.support])

    def seen_by(self, rows: Index, fitted: Index) -> Any:
        """Features of some rows as a machine fitted on the rows ``fitted`` takes them."""
        X = self.X[rows]
        return X[:, fitted] if self.settings is not None and self.settings.precomputed else X

    def objective(self, n_jobs: int | None = None) -> "MachineObjective":
        """The machine's objective on these samples, solved."""
        return self.settings.objective(self.X, self.y, self.weights, n_jobs)

    def machine_in(self, objective: "MachineObjective") -> Machine:
        """The machine in the present state of the objective."""
        return machine_of(objective, self.X, self.y, self.weights, self.settings)

    def with_alpha(self, alpha: float) -> Self:
        """The same samples for a machine with another regularisation."""
        return replace(self, settings=replace(self.settings, alpha=alpha))

    def objectives(
        self, alphas: Sequence[float]
    ) -> Iterator[tuple[int, "MachineObjective | NumericalError"]]:
        """Objectives that differ in alpha only, each with its place; the largest alpha first.

        A kernel's matrix is evaluated once, and the solution followed from one alpha to the next. With the
        linear kernel a fresh solution of thousands of samples costs less than the path. In the place of
        an objective that cannot be solved is the error that says so.
        """
        from deferlearn.objective import NumericalError

        last: Any = None
        follow = not self.settings.linear or len(self) <= LINEAR_PATH
        for place in np.argsort(-np.asarray(alphas), kind="stable").tolist():
            found: Any = None
            if follow and hasattr(last, "with_alpha"):
                with suppress(NumericalError):  # it may be solved alone
                    found = last.with_alpha(alphas[place])
            try:
                found = self.with_alpha(alphas[place]).objective() if found is None else found
            except NumericalError as error:
                found = error
            else:
                last = found
            yield place, found

    def own_decisions(self, objective: "MachineObjective", machine: Machine) -> Array:
        """Decision values of a machine that was fitted on these samples, or on some of them."""
        if self.settings.linear or len(machine.support) == 0:
            return machine.decision_function(self.X)
        return objective.own_decisions  # type: ignore[union-attr]

    def solve(self) -> Machine:
        """The machine fitted on all of these samples."""
        return self.machine_in(self.objective())

    def machine_cost(self, margin: Array) -> Array:
        """Cost of the machine's answers, in units of one error."""
        return self.weights * ((margin > 0) != (self.y > 0))

    def human_cost(self, deferral_cost: float) -> Array:
        """Cost of the human's answers and time, in units of one error."""
        return self.weights * self.human.answer_loss / LOSS_WRONG + float(deferral_cost)

    def hinge_cost(self, deferral_cost: float) -> Array:
        """Loss of the human's answers and time on the scale of the objective."""
        return self.weights * self.human.loss + LOSS_WRONG * float(deferral_cost)
