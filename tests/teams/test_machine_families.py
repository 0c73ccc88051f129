"""Machines that differ in alpha only are made together: each is what it is alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import FitFailedWarning

from deferlearn.kernels.gram import make_gram
from deferlearn.objective import NumericalError, SVMObjective, svm
from deferlearn.teams import context, samples, search_team
from deferlearn.teams.context import FoldContext
from tuned import HUMAN, SPLITS, X, Y, held_out_margins, tuned

ALPHAS = [0.1, 10.0, 0.002, 0.1, 0.5]


def laplacian(A: Any, B: Any) -> Any:
    return np.exp(-0.5 * np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2))


KINDS: dict[str, dict[str, Any]] = {
    "linear": {},
    "sparse": {},
    "rbf": {"kernel": "rbf", "gamma": 0.7},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.5},
    "precomputed": {"kernel": "precomputed"},
    "callable": {"kernel": laplacian},
}
DATA = {"sparse": sp.csr_array(X), "precomputed": laplacian(X, X)}


def search_of(kind: str, **options: Any) -> Any:
    given = {"kernel": "linear", **KINDS[kind]}
    search = tuned(kernels=[given], alphas=ALPHAS, **options)
    return search.open_search(DATA.get(kind, X), Y, human_labels=HUMAN)


def alone(ctx: FoldContext, number: int) -> FoldContext:
    """The same folds for one machine, which knows of no others."""
    own = ctx.with_machine(ctx.machines[number])
    return replace(own, machines=(), _made={})


def assert_alone(ctx: FoldContext, numbers: Any) -> None:
    """Margins of the family against machines that are solved one by one."""
    for number in numbers:
        new, own = ctx.with_machine(ctx.machines[number]).margins()
        expected, expected_own = alone(ctx, number).margins()
        assert_allclose(new, expected, rtol=0, atol=1e-9)
        for mine, other in zip(own, expected_own, strict=True):
            assert_allclose(mine, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [True, False])
def test_margins_of_a_family(kind: str, offset: bool) -> None:
    """Whichever is asked for first, in alphas of any order, one of them twice."""
    for first in (0, 2):
        ctx = search_of(kind, fit_intercept=offset).context
        assert [settings.alpha for settings in ctx.machines] == ALPHAS
        ctx.with_machine(ctx.machines[first]).margins()
        assert_alone(ctx, range(len(ALPHAS)))


@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_margins_against_another_solver(kind: str) -> None:
    ctx = search_of(kind).context
    found = []
    for settings in ctx.machines:
        margin, _ = ctx.with_machine(settings).margins()
        expected = held_out_margins(X, Y, np.ones(len(Y)), settings.alpha, SPLITS, **KINDS[kind])
        assert_allclose(margin, expected, rtol=0, atol=1e-5)
        found.append(margin)
    assert np.abs(found[0] - found[1]).max() > 0.1  # alpha matters
    assert_allclose(found[0], found[3], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("room", "name"), [(samples, "LINEAR_PATH"), (context, "SHARED_VALUES")], ids=["path", "values"]
)
def test_beyond_the_limits(
    monkeypatch: pytest.MonkeyPatch, kind: str, room: Any, name: str
) -> None:
    """Without a path, and without kernel values that are kept."""
    monkeypatch.setattr(room, name, 0)
    assert_alone(search_of(kind).context, [1, 2])


@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_a_fold_that_leaves_one_class(kind: str) -> None:
    ctx = search_of(kind).context
    positive = np.flatnonzero(Y == 1)
    ctx = replace(ctx, folds=[positive, np.flatnonzero(Y == -1)], _made={})
    assert_alone(ctx, [0, 1, 2])
    margin, _ = ctx.margins()
    assert (margin[positive] == -1.0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [True, False])
def test_own_decisions(kind: str, offset: bool) -> None:
    """Of all samples and after removals, until one class is left."""
    part = replace(search_of(kind, fit_intercept=offset).context.samples)
    objective = part.objective()
    for gone in ([], [0, 5, 17], np.flatnonzero(Y == 1).tolist()):
        for k in gone:
            if objective.kept[k]:
                objective.remove(k)
        machine = part.machine_in(objective)
        found = part.own_decisions(objective, machine)
        assert_allclose(found, machine.decision_function(part.X), rtol=0, atol=1e-9)
    assert (found == -1.0).all()


@pytest.mark.parametrize("kind", ["linear", "rbf"])
@pytest.mark.parametrize("policies", [["uncertainty", "advantage"], ["margin"]])
def test_the_same_search(monkeypatch: pytest.MonkeyPatch, kind: str, policies: list[str]) -> None:
    """Scores and choices are those of machines that are solved one by one."""
    options: dict[str, Any] = {
        "kernels": [{"kernel": "linear", **KINDS[kind]}],
        "policies": policies,
    }
    options["n_refined"] = len(ALPHAS)

    def fitted() -> Any:
        return tuned(alphas=ALPHAS, **options).fit(X, Y, human_labels=HUMAN)

    together = fitted()

    def without_machines(*arguments: Any, machines: Any = (), **more: Any) -> FoldContext:
        return FoldContext(*arguments, **more)

    monkeypatch.setattr(search_team, "FoldContext", without_machines)
    separate = fitted()
    assert together.best_params_ == separate.best_params_
    assert together.best_index_ == separate.best_index_
    scores = together.cv_results_["mean_test_score"]
    assert_allclose(scores, separate.cv_results_["mean_test_score"], rtol=0, atol=1e-9)
    assert len(set(scores.round(6))) > 1
    assert_allclose(together.decision_function(X), separate.decision_function(X), rtol=0, atol=1e-9)


def failing(
    monkeypatch: pytest.MonkeyPatch, on_the_path: Callable[[float], bool], afresh: Any
) -> None:
    """Let objectives of some alphas not be solved, on the path or afresh."""
    follow, solve = SVMObjective.with_alpha, SVMObjective.__init__

    def with_alpha(self: SVMObjective, alpha: float) -> SVMObjective:
        if on_the_path(alpha):
            raise NumericalError(f"no path to {alpha}")
        return follow(self, alpha)

    def init(self: SVMObjective, *arguments: Any, alpha: float, **options: Any) -> None:
        if afresh(alpha):
            raise NumericalError(f"no optimum at {alpha}")
        solve(self, *arguments, alpha=alpha, **options)

    monkeypatch.setattr(SVMObjective, "with_alpha", with_alpha)
    monkeypatch.setattr(SVMObjective, "__init__", init)


@pytest.mark.parametrize("kind", ["linear", "rbf"])
@pytest.mark.parametrize("bad", [10.0, 0.5, 0.002])
def test_only_what_cannot_be_solved_is_left_out(
    monkeypatch: pytest.MonkeyPatch, kind: str, bad: float
) -> None:
    """The largest alpha, with which the path begins, one in between, and the last."""
    ctx = search_of(kind).context
    expected = [alone(ctx, number).margins() for number in range(len(ALPHAS))]
    failing(monkeypatch, lambda alpha: alpha == bad, lambda alpha: alpha == bad)
    for number, alpha in enumerate(ALPHAS):
        own = ctx.with_machine(ctx.machines[number])
        if alpha == bad:
            with pytest.raises(NumericalError, match=f"no optimum at {bad}"):
                own.margins()
        else:
            assert_allclose(own.margins()[0], expected[number][0], rtol=0, atol=1e-9)


def test_what_has_no_path_is_solved_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = search_of("rbf").context
    expected = [alone(ctx, number).margins() for number in range(len(ALPHAS))]
    failing(monkeypatch, lambda alpha: alpha < 1.0, lambda alpha: False)
    for number in range(len(ALPHAS)):
        own = ctx.with_machine(ctx.machines[number])
        assert_allclose(own.margins()[0], expected[number][0], rtol=0, atol=1e-9)


def test_a_search_warns_of_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = 0.5
    failing(monkeypatch, lambda alpha: alpha == bad, lambda alpha: alpha == bad)
    search = tuned(kernels=["rbf"], alphas=ALPHAS, policies=["uncertainty"])
    with pytest.warns(
        FitFailedWarning, match=r"Left out: uncertainty, rbf SVM \(alpha 0\.5, gamma"
    ):
        search.fit(X, Y, human_labels=HUMAN)
    tried = {params["alpha"] for params in search.cv_results_["params"]}
    assert tried == set(ALPHAS) - {bad}


@pytest.mark.parametrize("kind", KINDS)
def test_machines_of_several_classes_share_kernel_values(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The kernel of each fold's samples is evaluated once, and each machine is what it is alone."""
    codes = np.digitize(X[:, 0], [-0.4, 0.4])
    search = tuned(kernels=[{"kernel": "linear", **KINDS[kind]}], alphas=ALPHAS)
    ctx = search.open_search(DATA.get(kind, X), codes, human_labels=codes[::-1]).context
    made = []

    def counted(*arguments: Any, **options: Any) -> Any:
        made.append(arguments)
        return make_gram(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(svm, "make_gram", counted)
        together = [ctx.with_machine(settings).class_scores() for settings in ctx.machines]
    assert len(made) == len(SPLITS)
    monkeypatch.delattr(SVMObjective, "with_labels")  # then each is solved from nothing
    for number, found in enumerate(together):
        assert_allclose(found, alone(ctx, number).class_scores(), rtol=0, atol=1e-9)
