"""Widths of the rbf kernel that a search tries: by the distances between samples."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deferlearn.teams import AssistedSVCCV, TeamCV
from deferlearn.teams.machines import MEASURED_ROWS, machines_of, typical_distance
from deferlearn.teams.selector import Selector

RNG = np.random.RandomState(0)
X = RNG.normal(size=(40, 3))
Y = np.where(RNG.rand(40) < 0.5, 1.0, -1.0)


def median_square(X):
    squares = [sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) for p, q in combinations(X, 2)]
    return np.median([square for square in squares if square > 0])


def test_the_median_of_squared_distances():
    assert typical_distance(X) == pytest.approx(median_square(X))
    assert typical_distance(1000 * X) == pytest.approx(1e6 * typical_distance(X))
    assert typical_distance(X + 7) == pytest.approx(typical_distance(X))


def test_constant_columns_do_not_count():
    wide = np.column_stack([X, np.full((40, 5), 3.0)])
    assert typical_distance(wide) == pytest.approx(typical_distance(X))


def test_rows_that_occur_often():
    """Most distances are zero, and say nothing of how far samples are apart."""
    often = np.vstack([np.repeat(X[:1], 60, axis=0), X])
    assert typical_distance(often) == pytest.approx(median_square(often))
    assert typical_distance(np.repeat(X[:2], 50, axis=0)) == pytest.approx(
        ((X[0] - X[1]) ** 2).sum()
    )


@pytest.mark.parametrize("rows", [X[:1], np.repeat(X[:1], 30, axis=0), np.zeros((5, 2))])
def test_where_no_two_rows_differ_it_is_one(rows):
    assert typical_distance(rows) == 1.0


def test_distances_that_are_not_finite():
    with np.errstate(over="ignore"):
        assert typical_distance(np.array([[1e200], [-1e200], [3e200]])) == 1.0


def test_of_many_rows_some_are_looked_at():
    many = np.random.RandomState(1).normal(size=(20 * MEASURED_ROWS, 2))
    assert typical_distance(many) == pytest.approx(4 * np.log(2), rel=0.05)  # of a chi-squared
    ordered = many[np.argsort(many[:, 0])]  # all over the table, not the first ones
    assert typical_distance(ordered) == pytest.approx(4 * np.log(2), rel=0.05)


def test_three_widths_for_the_name():
    machines = machines_of([0.1], ["linear", "rbf"], True, X, Y)
    assert [m.kernel for m in machines] == ["linear", "rbf", "rbf", "rbf"]
    np.testing.assert_allclose(
        [m.gamma for m in machines[1:]], np.array([0.3, 1.0, 3.0]) / median_square(X)
    )
    (own,) = machines_of([0.1], [{"kernel": "rbf", "gamma": 0.7}], True, X, Y)
    assert own.gamma == 0.7


def test_a_number_of_alphas():
    linear, rbf = (machines_of(5, [kernel], True, X, Y)[:5] for kernel in ("linear", "rbf"))
    for machines in (linear, rbf):
        np.testing.assert_allclose([m.alpha for m in machines], 10.0 ** np.arange(-3, 2))
    other = machines_of(5, ["rbf"], True, X, Y, (1e-4, 1.0))[:5]
    np.testing.assert_allclose([m.alpha for m in other], 10.0 ** np.arange(-4, 1))
    (poly,) = machines_of([0.3], [{"kernel": "poly"}], True, X, Y)
    assert poly.alpha == 0.3


def test_auto_is_linear_and_rbf_and_linear_alone_for_sparse_cases():
    def kernels(X):
        clf = AssistedSVCCV(alphas=[0.1], policies=["uncertainty"], cv=2, random_state=0).fit(
            X, Y > 0
        )
        return sorted(clf.cv_results_["param_kernel"])

    assert kernels(X) == ["linear", "rbf", "rbf", "rbf"]
    assert kernels(sp.csr_array(X)) == ["linear"]
    assert AssistedSVCCV().__sklearn_tags__().input_tags.sparse
    assert not AssistedSVCCV().__sklearn_tags__().input_tags.pairwise


@settings(max_examples=50, deadline=None)
@given(
    arrays(
        float,
        st.tuples(st.integers(1, 8), st.integers(1, 3)),
        elements=st.one_of(
            st.sampled_from([0.0, 1.0]), st.floats(-1e6, 1e6, allow_subnormal=False)
        ),
    )
)
def test_widths_are_positive_numbers(rows):
    typical = typical_distance(rows)
    assert typical > 0
    assert np.isfinite(1.0 / typical)


def test_automatic_grids_leave_the_rbf_kernel_out_where_it_would_take_hours(monkeypatch):
    signs = np.where(np.arange(41) % 2 == 0, 1.0, -1.0)
    wide = np.vstack([X, X[:1]])
    searches = (AssistedSVCCV(alphas=[0.1]), TeamCV(alphas=[0.1]))
    for search in searches:
        assert "rbf SVM" in {machine.family for machine in search._machines(wide, signs, False)}
    monkeypatch.setattr("deferlearn.teams.machines.MOST_FOR_RBF", 40)
    for search in searches:
        assert "rbf SVM" not in {machine.family for machine in search._machines(wide, signs, False)}
    asked = AssistedSVCCV(alphas=[0.1], kernels=["rbf"])._machines(wide, signs, False)
    assert {machine.family for machine in asked} == {"rbf SVM"}


def test_a_search_on_many_samples_sweeps_in_larger_steps(monkeypatch):
    """The steps of the winner's own fit stay as they are."""
    seen = []
    run = Selector.run

    def noted(self, objective, loss, n):
        seen.append((self.ratio, self.delta))
        return run(self, objective, loss, n)

    monkeypatch.setattr(Selector, "run", noted)
    monkeypatch.setattr("deferlearn.teams.assisted_svc.FEW_SAMPLES", 39)
    search = AssistedSVCCV(
        0.2, alphas=[0.1], kernels=["linear"], policies=["margin"], random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search.fit(X, Y, human_labels=Y)
    sweeps = [delta for ratio, delta in seen if ratio == "sweep"]
    assert sweeps == [0.5, 0.1]
