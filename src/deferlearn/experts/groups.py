"""Second readings: groups of experts who read a case, and what becomes of their answers."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn.experts.answers import NO_ANSWER
from deferlearn.humans.coding import Codes

# The most experts who read a case, besides an arbiter.
MOST_READINGS = 3
# A ratio that was measured on few cases is drawn towards what independent readers would reach, as if so
# many more cases had been read.
PRIOR_CASES = 20.0


@dataclass(frozen=True)
class Groups:
    """Who may read a case together.

    Attributes
    ----------
    members : ndarray of int of shape (n_groups, readings)
        Places of the experts.
    arbiter : int
        The place of the expert who decides where the readers disagree; -1 is the machine.
    ratio : ndarray of shape (n_classes,)
        What a group's answer costs on each class, as a share of what an answer of one member costs.
    disagree : ndarray of shape (n_classes,)
        How often an arbiter is needed on each class.
    """

    members: NDArray[np.int64]
    arbiter: int
    ratio: Array
    disagree: Array

    @property
    def readings(self) -> int:
        """How many experts read a case, without the arbiter."""
        return self.members.shape[1]

    def usage(self, n_experts: int, mix: Array) -> Array:
        """How many cases of each expert's capacity each group uses: (n_groups, n_experts)."""
        used = np.zeros((len(self.members), n_experts))
        np.put_along_axis(used, self.members, 1.0, axis=1)
        if self.arbiter >= 0:
            used[:, self.arbiter] += float(self.disagree @ mix)
        return used


def make_groups(
    readings: int,
    arbiter: int,
    said: Codes,
    codes: Codes,
    machine: Codes,
    costs: Array,
    hard: Bools,
) -> Groups:
    """Form all groups, and measure what their answers cost on cases that enough experts have read.

    That readers fail on the same cases is part of what is measured; where few cases were read by several,
    the estimate leans on readers who err independently.

    Parameters
    ----------
    readings : int
        How many experts read each case.
    arbiter : int
        The place of the expert who decides where they disagree, -1 for the machine.
    said : ndarray of int of shape (n_samples, n_experts)
        The experts' answers, -1 where there is none.
    codes, machine : ndarray of int of shape (n_samples,)
        The true classes, and the machine's answers to samples that it had not seen.
    costs : ndarray of shape (n_classes, n_classes)
        What each answer (column) to a case of each class (row) costs.
    hard : ndarray of bool of shape (n_samples,)
        Samples like those that experts will get, on which groups are measured: there readers disagree
        more often, and the machine knows less.

    Returns
    -------
    Groups
    """
    n_experts, n_classes = said.shape[1], len(costs)
    readers = [e for e in range(n_experts) if e != arbiter]
    members = np.array(list(combinations(readers, readings)), dtype=np.int64)
    if readings == 1:
        return Groups(members, arbiter, np.ones(n_classes), np.zeros(n_classes))
    paid, alone, apart, count = (np.zeros(n_classes) for _ in range(4))
    for group in members:
        rows = hard & (said[:, group] != NO_ANSWER).all(axis=1)
        if arbiter >= 0:
            rows &= said[:, arbiter] != NO_ANSWER
        if not rows.any():
            continue
        last = machine[rows] if arbiter < 0 else said[rows, arbiter]
        answer, disagree = settle(said[np.ix_(rows, group)], last)
        truth = codes[rows]
        own = costs[truth[:, None], said[np.ix_(rows, group)]].mean(axis=1)
        for total, values in (
            (paid, costs[truth, answer]),
            (alone, own),
            (apart, disagree),
            (count, np.ones(len(truth))),
        ):
            total += np.bincount(truth, weights=values, minlength=n_classes)
    # Independent readers who err at the mean rate r: two err together with r * r, and so on.
    rate = (alone + 0.1) / (count + 1.0) / max(float(costs.max()), 1e-12)
    # Two of three are wrong; or both of two, or one of two and the arbiter, who errs as often.
    wrong = 3 * rate**2 - 2 * rate**3
    strength = PRIOR_CASES * rate * float(costs.max())
    ratio = (paid + strength * np.minimum(wrong / rate, 1.0)) / (alone + strength)
    differ = 2 * rate * (1 - rate) if readings == 2 else np.zeros(n_classes)
    disagree = (apart + PRIOR_CASES * differ) / (count + PRIOR_CASES)
    return Groups(members, arbiter, ratio, disagree)


def settle(answers: Codes, last: Codes) -> tuple[Codes, NDArray[np.float64]]:
    """The answer of the majority of the readers; where there is none, the arbiter's.

    Parameters
    ----------
    answers : ndarray of int of shape (n_cases, readings)
        The readers' answers.
    last : ndarray of int of shape (n_cases,)
        The arbiter's answers.

    Returns
    -------
    answer : ndarray of int of shape (n_cases,)
    disagree : ndarray of shape (n_cases,)
        1.0 where the arbiter was needed.
    """
    votes = (answers[:, :, None] == answers[:, None, :]).sum(axis=2)
    most = votes.argmax(axis=1)
    needed = votes.max(axis=1) * 2 <= answers.shape[1]
    answer = np.where(needed, last, answers[np.arange(len(answers)), most])
    return answer, needed.astype(np.float64)
