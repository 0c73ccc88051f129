"""Who decides each case of a table, and who is wrong: machine, human and team."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from deferlearn._utils.types import Array, Bools, Labels
from deferlearn.evaluation.intervals import share_interval
from deferlearn.metrics import team_grade_error, team_macro_f1, team_quadratic_kappa
from deferlearn.tables.cases import Cases
from deferlearn.tables.costs import CostRows
from deferlearn.tables.experts import answers_of

WHO = ("machine", "human", "team")


@dataclass(frozen=True)
class Decisions:
    """The answers to every case, and who gives the team's answer.

    Attributes
    ----------
    truth, machine, human : ndarray of str of shape (n_cases,)
        The true label, the machine's answer, and the majority of the human answers. If experts are told
        apart, the human is the expert to whom the case goes, or would go first.
    deferred, read : ndarray of bool of shape (n_cases,)
        Whether the case is deferred to a human, and whether the human has answered it. Errors are counted
        on the cases that were read.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.decisions import Decisions
    >>> decisions = Decisions(
    ...     truth=np.array(["ill", "well"]),
    ...     machine=np.array(["well", "well"]),
    ...     human=np.array(["ill", "ill"]),
    ...     deferred=np.array([True, False]),
    ...     read=np.array([True, True]),
    ... )
    >>> decisions.team.tolist()
    ['ill', 'well']
    >>> {who: error["count"] for who, error in decisions.errors().items()}
    {'machine': 1, 'human': 1, 'team': 0}
    """

    truth: Labels
    machine: Labels
    human: Labels
    deferred: Bools
    read: Bools

    @classmethod
    def of(
        cls,
        cases: Cases,
        machine: Labels,
        deferred: Bools,
        experts: NDArray[Any] | None = None,
    ) -> Self:
        """The decisions on cases from the machine's answers and the mask of the deferred cases.

        Parameters
        ----------
        cases : Cases
            The cases.
        machine : ndarray of str of shape (n_cases,)
            The machine's answers.
        deferred : ndarray of bool of shape (n_cases,)
            The cases that humans take.
        experts : ndarray of shape (n_cases,) or None, default=None
            If experts are told apart: the one to whom each case goes, or would go first. A case that this
            expert has not answered does not count, whether it is deferred or not. If only deferred cases
            were left out, easy cases would be too many among those that count.

        Returns
        -------
        Decisions
        """
        if experts is None:
            human, read = cases.human_answers(machine)
        else:
            human, read = answers_of(experts, cases, machine)
        return cls(cases.truth, machine, human, deferred, read)

    @property
    def team(self) -> Labels:
        """The human's answer if a case is deferred, otherwise the machine's."""
        return np.where(self.deferred, self.human, self.machine)

    def wrong(self, who: str) -> Bools:
        """Whether "machine", "human" or "team" is wrong on each case."""
        return np.asarray(getattr(self, who) != self.truth, dtype=bool)

    def errors(self) -> dict[str, dict[str, float]]:
        """The errors of machine, human and team on the cases that were read, as `share_with_interval`."""
        n = int(self.read.sum())
        return {who: share_with_interval(int(self.wrong(who)[self.read].sum()), n) for who in WHO}

    def confusion(self, classes: tuple[str, ...]) -> dict[str, dict[str, dict[str, int]]]:
        """For machine, human and team: how many read cases of each class got which answer."""
        found = {}
        for who in WHO:
            answers = getattr(self, who)[self.read]
            counts = confusion_matrix(self.truth[self.read], answers, labels=classes).tolist()
            found[who] = {
                true: dict(zip(classes, row, strict=True))
                for true, row in zip(classes, counts, strict=True)
            }
        return found

    def measures(
        self, classes: tuple[str, ...], graded: bool
    ) -> dict[str, dict[str, float | None]]:
        """Measures over all classes of machine, human and team, on the cases that were read.

        Macro F1; of grades also the mean number of grades by which answers are off, and the kappa with
        quadratic weights, which is None if it is not defined.
        """
        truth = self.truth[self.read]
        found: dict[str, dict[str, float | None]] = {}
        for who in WHO:
            said = getattr(self, who)[self.read]
            found[who] = {"macro_f1": team_macro_f1(truth, said, classes=classes)}
            if graded:
                kappa = team_quadratic_kappa(
                    truth, said, grades=classes, zero_division=float("nan")
                )
                found[who]["grade_error"] = team_grade_error(truth, said, grades=classes)
                found[who]["quadratic_kappa"] = None if np.isnan(kappa) else kappa
        return found

    def costs(self, classes: Sequence[str], costs: CostRows) -> dict[str, Array]:
        """What each answer of machine, human and team costs, on the cases that were read.

        Parameters
        ----------
        classes : sequence of str
            The classes.
        costs : tuple of tuple of float
            A row per true class and a column per answer, in the order of the classes.

        Returns
        -------
        costs : dict of ndarray
            An array for each of "machine", "human" and "team".
        """
        place = {label: code for code, label in enumerate(classes)}
        matrix = np.array(costs, dtype=np.float64)

        def codes(labels: Labels) -> list[int]:
            return [place[label] for label in labels[self.read].tolist()]

        truth = codes(self.truth)
        return {who: matrix[truth, codes(getattr(self, who))] for who in WHO}

    def together(self) -> list[dict[str, Any]]:
        """How many read cases machine and human get right or wrong, deferred ones and others."""
        rows = []
        for machine, human in itertools.product((False, True), repeat=2):
            both = self.read & (self.wrong("machine") == machine) & (self.wrong("human") == human)
            rows.append(
                {
                    "machine": "wrong" if machine else "right",
                    "human": "wrong" if human else "right",
                    "deferred": int((both & self.deferred).sum()),
                    "kept": int((both & ~self.deferred).sum()),
                }
            )
        return rows


def share_with_interval(count: int, n: int) -> dict[str, float]:
    """A share with its exact 95% interval (Clopper and Pearson).

    Parameters
    ----------
    count, n : int
        The share is `count` of `n`.

    Returns
    -------
    share : dict
        With the keys share, lower, upper, count and cases.

    Examples
    --------
    >>> from deferlearn.tables.decisions import share_with_interval
    >>> {key: round(value, 3) for key, value in share_with_interval(1, 10).items()}
    {'share': 0.1, 'lower': 0.003, 'upper': 0.445, 'count': 1, 'cases': 10}
    """
    lower, upper = share_interval(count, n)
    return {"share": count / n, "lower": lower, "upper": upper, "count": count, "cases": n}
