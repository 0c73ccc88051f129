"""What an expert's answer is expected to cost, against other solvers and known skills."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from deferlearn.experts.error_models import KINDS, ByClass, Cases, Forests, _logistic
from deferlearn.experts.skills import shrunk_rates


def cases_with(n=600, seed=0):
    luck = np.random.default_rng(seed)
    X = luck.normal(size=(n, 3))
    codes = (luck.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    p = 1 / (1 + np.exp(-X[:, 0]))
    return Cases(X, np.column_stack([1 - p, p]), codes), luck


def test_the_logistic_curve_is_that_of_scikit_learn():
    luck = np.random.default_rng(0)
    F = luck.normal(size=(200, 4))
    y = luck.random(200) < 1 / (1 + np.exp(-F[:, 0]))
    ours = _logistic(F, y.astype(float), np.ones(200), 0.0, np.full(4, 2.0))
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(F, y)
    np.testing.assert_allclose(ours, theirs.coef_[0], rtol=1e-5)


def test_an_offset_is_part_of_the_curve():
    luck = np.random.default_rng(1)
    F, target = luck.normal(size=(300, 2)), luck.random(300)
    offset = F @ [0.7, -0.2]
    moved = _logistic(F, target, np.ones(300), offset, np.zeros(2) + 1e-9)
    plain = _logistic(F, target, np.ones(300), 0.0, np.zeros(2) + 1e-9)
    np.testing.assert_allclose(moved + [0.7, -0.2], plain, atol=1e-6)


def test_rates_by_class_are_shrunk_rates():
    cases, luck = cases_with()
    cost = (luck.random((600, 2)) < [0.1, 0.3]).astype(float)
    cost[:300, 0] = np.nan
    model = ByClass().fit(cases, cost, 0)
    rows = cases.codes == 1
    wrong, count = np.nansum(cost[rows], axis=0), (~np.isnan(cost[rows])).sum(axis=0)
    np.testing.assert_allclose(model.rates_[:, 1], shrunk_rates(wrong, count, 0.0))
    expected = model.expected(cases, np.array([1.0, 2.0]))
    by_hand = cases.probabilities @ (model.rates_ * [1.0, 2.0]).T
    np.testing.assert_allclose(expected, by_hand)


@pytest.mark.parametrize("kind", ["linear", "forest"])
def test_regions_are_found(kind):
    cases, luck = cases_with(3000)
    error = np.where(cases.X[:, 1:2] > 0, [0.05, 0.4], [0.4, 0.05])
    cost = (luck.random((3000, 2)) < error).astype(float)
    model = KINDS[kind](30.0).fit(cases, cost, 0)
    new, _ = cases_with(1000, seed=1)
    found = model.expected(new, np.ones(2))
    first = new.X[:, 1] > 0.3
    assert found[first, 0].mean() < 0.2 < found[first, 1].mean()
    assert found[new.X[:, 1] < -0.3, 1].mean() < 0.2


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_expert_without_answers_is_the_average(kind):
    cases, luck = cases_with()
    cost = (luck.random((600, 3)) < 0.2).astype(float)
    cost[:, 2] = np.nan
    found = KINDS[kind]().fit(cases, cost, 0).expected(cases, np.ones(2))
    assert found[:, 2].mean() == pytest.approx(0.2, abs=0.04)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("kind", list(KINDS))
def test_expected_costs_add_up_over_classes(kind):
    cases, luck = cases_with()
    cost = (luck.random((600, 2)) < [0.1, 0.3]).astype(float)
    model = KINDS[kind]().fit(cases, cost, 0)
    total = model.expected(cases, np.ones(2))
    np.testing.assert_allclose(model.expected(cases, np.full(2, 3.0)), 3 * total)
    if not isinstance(model, Forests):
        parts = [
            model.on_class(cases._replace(codes=np.full(600, k))) * cases.probabilities[:, [k]]
            for k in range(2)
        ]
        np.testing.assert_allclose(sum(parts), total)


def test_forests_mix_by_the_number_of_answers():
    cases, luck = cases_with()
    cost = (luck.random((600, 2)) < [0.1, 0.5]).astype(float)
    model = Forests(600.0).fit(cases, cost, 0)
    X = np.hstack([cases.X, cases.probabilities[:, 1:]])
    half = (model.pool_.predict(X) + model.own_[1].predict(X)) / 2
    np.testing.assert_allclose(model.on_class(cases)[:, 1], half)
