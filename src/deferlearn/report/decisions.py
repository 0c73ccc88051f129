"""Who decides each case, and who is wrong: by the stored model, or by teams that have not seen the case."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone

from deferlearn.tables.cases import Cases
from deferlearn.teams.held_out import splitter_of

Bools = NDArray[np.bool_]
Labels = NDArray[Any]
WHO = ("machine", "human", "team")
FOLDS = 5


@dataclass(frozen=True)
class Decisions:
    """Answers to every case.

    Attributes
    ----------
    truth, machine, human : ndarray of str
        The label, the machine's answer, and the humans' (their majority).
    deferred, read : ndarray of bool
        Whether a human takes the case, and whether one has answered it. Only such cases are judged.
    """

    truth: Labels
    machine: Labels
    human: Labels
    deferred: Bools
    read: Bools

    @property
    def team(self) -> Labels:
        """The human's answer where a case is deferred, else the machine's."""
        return np.where(self.deferred, self.human, self.machine)

    def wrong(self, who: str) -> Bools:
        """Whether the machine, the human or the team errs on each case."""
        return np.asarray(getattr(self, who) != self.truth, dtype=bool)

    def errors(self) -> dict[str, dict[str, float]]:
        """Error of each on the cases that were read, with its 95% interval (Clopper and Pearson)."""
        n = int(self.read.sum())
        return {who: share_of(int(self.wrong(who)[self.read].sum()), n) for who in WHO}

    def confusion(self, classes: tuple[str, str]) -> dict[str, dict[str, dict[str, int]]]:
        """For each of the three, how many cases of a class got which answer."""
        return {
            who: {
                true: {
                    said: int(
                        np.sum(
                            self.read
                            & (self.truth == true)
                            & (np.asarray(getattr(self, who)) == said)
                        )
                    )
                    for said in classes
                }
                for true in classes
            }
            for who in WHO
        }

    def together(self) -> list[dict[str, Any]]:
        """How often machine and human are right or wrong on the same cases, by who takes them."""
        rows = []
        for machine in (False, True):
            for human in (False, True):
                both = self.read & (self.wrong("machine") == machine)
                both &= self.wrong("human") == human
                rows.append(
                    {
                        "machine": "wrong" if machine else "right",
                        "human": "wrong" if human else "right",
                        "deferred": int((both & self.deferred).sum()),
                        "kept": int((both & ~self.deferred).sum()),
                    }
                )
        return rows


def share_of(count: int, n: int) -> dict[str, float]:
    """A share with its exact 95% interval.

    Parameters
    ----------
    count, n : int
        So many of so many.

    Returns
    -------
    share : dict
        With the keys share, lower, upper, count and cases.

    Examples
    --------
    >>> from deferlearn.report.decisions import share_of
    >>> {key: round(value, 3) for key, value in share_of(1, 10).items()}
    {'share': 0.1, 'lower': 0.003, 'upper': 0.445, 'count': 1, 'cases': 10}
    """
    interval = stats.binomtest(count, n).proportion_ci(method="exact")
    return {
        "share": count / n,
        "lower": float(interval.low),
        "upper": float(interval.high),
        "count": count,
        "cases": n,
    }


def stored_decisions(routed: Any, cases: Cases) -> Decisions:
    """What the stored model decides, one case at a time; `routed` is from `deferlearn.tables.Router`."""
    machine = np.array(routed["machine_answer"].to_pylist())
    human, read = cases.human_answers(machine)
    return Decisions(cases.truth, machine, human, np.array(routed["deferred"].to_pylist()), read)


def held_out_decisions(
    team: Any, cases: Cases, seed: int, done: Callable[[], None] = lambda: None
) -> Decisions:
    """What teams decide that were fitted without the case, five parts in turn.

    Parameters
    ----------
    team : TabularTeam
        Not fitted; clones of it are.
    cases : Cases
        The cases that the stored model has learned from.
    seed : int
        Of the parts.
    done : callable
        Called after each fit.

    Returns
    -------
    Decisions
    """
    machine = cases.truth.copy()
    deferred = np.zeros(len(cases), dtype=bool)
    splitter = splitter_of(FOLDS, cases.truth, cases.groups, seed)
    for train, test in splitter.split(cases.truth, cases.truth, cases.groups):
        known, new = cases.part(train), cases.part(test)
        part = clone(team)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said when the model was fitted
            part.fit(known.features, known.truth, team__human_labels=known.answers)
        machine[test] = part.predict(new.features)
        deferred[test] = part.defer(new.features)
        done()
    human, read = cases.human_answers(machine)
    return Decisions(cases.truth, machine, human, deferred, read)
