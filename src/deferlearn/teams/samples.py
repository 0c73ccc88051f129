"""The checked samples of a fit: what machine and human are learned from."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.humans.coding import CLASSES, Codes, Coding, code_signs
from deferlearn.humans.human import Human
from deferlearn.teams.machine import AnyMachine, SumMachine, below_others, machine_of

if TYPE_CHECKING:
    from deferlearn.objective import NumericalError
    from deferlearn.teams.machine import MachineObjective

# Samples up to which the linear machine is followed from alpha to alpha.
LINEAR_PATH = 2048


@dataclass(frozen=True)
class Samples:
    """Samples with their labels, the human's answers, and the machine to be fitted on them.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Features, or the Gram matrix of a precomputed kernel.
    labels : ndarray of shape (n_samples,)
        The true labels as the user gave them.
    coding : Coding
        The classes, and what it costs to mistake one for another.
    codes : ndarray of int of shape (n_samples,)
        The place of each label among the classes.
    weights : ndarray of shape (n_samples,)
        What an error on each sample costs, whoever errs.
    human : Human
        The human's answers.
    settings : MachineSettings or BroughtSettings
        The machine's parameters.
    trained_on : ndarray of bool of shape (n_samples,) or None
        The samples that the machine is fitted on; None is all of them.
    sample_weight : ndarray of shape (n_samples,) or None
        The part of the weights that the user gave to `fit`, for teams that make their own of the rest.
    """

    X: Any
    labels: NDArray[Any]
    coding: Coding
    codes: Codes
    weights: Array
    human: Human
    settings: Any
    trained_on: Bools | None = None
    sample_weight: Array | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def classes(self) -> NDArray[Any]:
        """The labels in their order; if there are two, the second is the positive class."""
        return self.coding.classes

    @cached_property
    def y(self) -> Array:
        """The labels of two classes as -1 and +1; of more, their codes."""
        if self.coding.several:
            return self.codes.astype(np.float64)
        return self.coding.signs(self.codes)[:, 0]

    def part(self, rows: Index) -> Self:
        """Some of the samples; of a Gram matrix their rows and columns."""
        return replace(
            self,
            X=self.seen_by(rows, rows),
            labels=self.labels[rows],
            codes=self.codes[rows],
            weights=self.weights[rows],
            human=self.human.part(rows),
            trained_on=None if self.trained_on is None else self.trained_on[rows],
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
        )

    def fit_other(self, team: Any) -> Any:
        """Fit a team that does not take checked samples: one of another author.

        Parameters
        ----------
        team : estimator
            It is changed. If its `fit` takes no ``sample_weight``, it learns from all samples alike.

        Returns
        -------
        team : estimator
            The same, fitted.
        """
        weighted = self.sample_weight is not None and has_fit_parameter(team, "sample_weight")
        more = {"sample_weight": self.sample_weight} if weighted else {}
        return team.fit(self.X, self.labels, **self.human.given, **more)

    def training_part(self) -> Self:
        """The samples that the machine is fitted on."""
        return self if self.trained_on is None else self.part(np.flatnonzero(self.trained_on))

    def placed(self, machine: AnyMachine) -> AnyMachine:
        """A machine of the training part, with support vectors by their rows among all samples."""
        if self.trained_on is None:
            return machine
        rows = np.flatnonzero(self.trained_on)
        if isinstance(machine, SumMachine):
            parts = [replace(part, support=rows[part.support]) for part in machine.parts]
            return replace(machine, parts=parts)
        return replace(machine, support=rows[machine.support])

    def seen_by(self, rows: Index, fitted: Index) -> Any:
        """Features of some rows as a machine fitted on the rows ``fitted`` takes them."""
        X = self.X[rows]
        return X[:, fitted] if self.settings is not None and self.settings.precomputed else X

    def objective(self, n_jobs: int | None = None) -> Any:
        """The machine's objective on these samples, solved; with several classes a sum of objectives."""
        if not self.coding.several:
            return self.settings.objective(self.X, self.y, self.weights, n_jobs)
        return self.settings.class_objective(
            self.X, self.codes, len(self.classes), self.coding.kind, self.weights, n_jobs
        )

    def machine_in(self, objective: Any) -> AnyMachine:
        """The machine in the present state of the objective."""
        if not self.coding.several:
            return machine_of(objective, self.X, self.y, self.weights, self.settings)
        signs, kept = self.coding.signs(self.codes).T, objective.kept
        if not kept.any():  # then it answers with the majority, as a machine for two classes does
            most = np.array([np.bincount(self.codes).argmax()])
            signs = np.repeat(self.coding.signs(most).T, len(self), axis=1)
        parts = [
            machine_of(part, self.X, own, self.weights, self.settings)
            for part, own in zip(objective.parts, signs, strict=True)
        ]
        return SumMachine(parts, self.lost_among(kept))

    def lost_among(self, kept: Bools) -> list[int]:
        """Of several classes without an order, those of which no sample is kept, if any is."""
        if self.coding.kind != CLASSES or not kept.any():
            return []
        there = np.bincount(self.codes[kept], minlength=len(self.classes))
        return [int(code) for code in np.flatnonzero(there == 0)]

    def told_apart(self) -> Iterator[Self]:
        """The same samples with two classes, once for each machine that tells classes apart."""
        for signs in self.coding.signs(self.codes).T:
            coding, codes = code_signs(signs)
            yield replace(self, coding=coding, codes=codes)

    def with_alpha(self, alpha: float) -> Self:
        """The same samples for a machine with another regularisation."""
        return replace(self, settings=replace(self.settings, alpha=alpha))

    def objectives(
        self, alphas: Sequence[float], like: Any = None
    ) -> Iterator[tuple[int, "MachineObjective | NumericalError"]]:
        """Objectives that differ in alpha only, each with its place; the largest alpha first.

        A kernel's matrix is evaluated once, and the solution followed from one alpha to the next. With the
        linear kernel a fresh solution of thousands of samples costs less than the path. In the place of
        an objective that cannot be solved is the error that says so. Kernel values are shared with
        ``like``, the first objective that this method gave for other labels of the same samples.
        """
        from deferlearn.objective import NumericalError

        last: Any = None
        follow = not self.settings.linear or len(self) <= LINEAR_PATH
        for step, place in enumerate(np.argsort(-np.asarray(alphas), kind="stable").tolist()):
            found: Any = None
            with suppress(NumericalError):  # it may be solved alone
                if step == 0 and hasattr(like, "with_labels"):
                    found = like.with_labels(self.y)
                elif follow and hasattr(last, "with_alpha"):
                    found = last.with_alpha(alphas[place])
            try:
                found = self.with_alpha(alphas[place]).objective() if found is None else found
            except NumericalError as error:
                found = error
            else:
                last = found
            yield place, found

    def own_decisions(self, objective: Any, machine: Any) -> Array:
        """Decision values of a machine that was fitted on these samples, or on some of them."""
        if isinstance(machine, SumMachine):
            parts = zip(objective.parts, machine.parts, strict=True)
            values = np.column_stack([self.own_decisions(part, own) for part, own in parts])
            return below_others(values, machine.lost)
        if self.settings.linear or len(machine.support) == 0:
            return machine.decision_function(self.X)
        return np.asarray(objective.own_decisions)

    def solve(self) -> AnyMachine:
        """The machine fitted on all of these samples."""
        return self.machine_in(self.objective())

    def answers(self, margin: Array) -> Codes:
        """The codes of a machine's answers, by its margins as `FoldContext.margins` gives them."""
        if self.coding.several:
            return self.coding.by_probability(margin)
        return self.coding.by_votes(margin)

    def machine_cost(self, said: Codes) -> Array:
        """Cost of answers, given by their codes, in units of one error."""
        return self.weights * self.coding.costs[self.codes, said]

    def human_cost(self, deferral_cost: float) -> Array:
        """Cost of the human's answers and time, in units of one error."""
        errors = self.human.answer_loss / self.coding.hinge_per_error
        return self.weights * errors + float(deferral_cost)

    def hinge_cost(self, deferral_cost: float) -> Array:
        """Loss of the human's answers and time on the scale of the objective."""
        time = self.coding.hinge_per_error * float(deferral_cost)
        return self.weights * self.human.loss + time
