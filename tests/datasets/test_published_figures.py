"""The published split of the paper's data sets: wrong test cases and F1 of four ways to decide.

A fifth of the training samples and of the test cases go to humans, with the human draws that are
stored in the files. The figures are known from trials with other code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.metrics import f1_score

from deferlearn import datasets
from deferlearn.objective import SVMObjective
from deferlearn.selection import distorted_greedy

SHARE = 0.2
RATIO = 0.01


@dataclass(frozen=True)
class Published:
    n_test: int
    n_deferred: int  # in training
    n_asked: int  # test cases that humans answer
    figures: dict[str, tuple[int, float]]  # method: wrong test cases, F1


PUBLISHED = {
    "messidor": Published(160, 48, 32, {
        "humans": (24, 0.871), "automation": (53, 0.671),
        "uncertainty": (43, 0.739), "greedy": (47, 0.725),
    }),
    "stare": Published(148, 45, 29, {
        "humans": (21, 0.788), "automation": (35, 0.646),
        "uncertainty": (29, 0.695), "greedy": (28, 0.720),
    }),
    "aptos": Published(280, 85, 56, {
        "humans": (51, 0.824), "automation": (46, 0.835),
        "uncertainty": (39, 0.857), "greedy": (44, 0.843),
    }),
}  # fmt: skip


@dataclass
class Case:
    """One data set on its published split, and the two machines."""

    name: str
    expected: Published
    truth: np.ndarray
    human: np.ndarray
    margin_before: np.ndarray  # on the test cases, by the machine trained on everything
    margin_after: np.ndarray  # by the machine trained on what the greedy kept
    n_picked: int


@pytest.fixture(scope="module", params=list(PUBLISHED))
def case(request, authors_data):
    data = getattr(datasets, f"fetch_{request.param}")(data_home=authors_data)
    train, test = datasets.published_split(data)
    machine = SVMObjective(data.data[train], data.target[train], alpha=data.alpha)
    n = int(SHARE * len(train) + 1e-9)
    result = distorted_greedy(machine, data.human_loss[train], n, RATIO)
    before = machine.decision_function(data.data[test])
    rest = machine.copy()
    for picked in result.order:
        rest.remove(picked)
    after = rest.decision_function(data.data[test])
    return Case(
        request.param, PUBLISHED[request.param], data.target[test], data.human_labels[test],
        before, after, len(result.order),
    )  # fmt: skip


def least_certain(margin, share=SHARE):
    asked = np.zeros(len(margin), dtype=bool)
    asked[np.argsort(np.abs(margin), kind="stable")[: int(share * len(margin) + 1e-9)]] = True
    return asked


def assert_figures(case, method, answer):
    wrong, f1 = case.expected.figures[method]
    assert np.sum(answer != case.truth) == wrong
    assert f"{f1_score(case.truth, answer):.3f}" == f"{f1:.3f}"


def test_sizes(case):
    assert len(case.truth) == case.expected.n_test
    assert case.n_picked == case.expected.n_deferred
    assert least_certain(case.margin_before).sum() == case.expected.n_asked


def test_humans_alone(case):
    assert_figures(case, "humans", case.human)


def test_full_automation(case):
    assert_figures(case, "automation", np.where(case.margin_before >= 0, 1, -1))


@pytest.mark.parametrize(("method", "margin"), [("uncertainty", "before"), ("greedy", "after")])
def test_team(case, method, margin):
    margin = getattr(case, f"margin_{margin}")
    asked = least_certain(margin)
    assert_figures(case, method, np.where(asked, case.human, np.where(margin >= 0, 1, -1)))
