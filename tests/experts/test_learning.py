"""How models of errors judge the training samples as if they were new cases."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from deferlearn import FullAutomation
from deferlearn.experts import ExpertTeam, learning
from deferlearn.experts.error_models import Cases, Forests

CAPACITY = {"left": 0.1, "right": 0.1}


def draw(n, seed=0):
    luck = np.random.default_rng(seed)
    X = luck.normal(size=(n, 2))
    y = (luck.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    error = np.column_stack([np.where(X[:, 1] < 0, 0.03, 0.4), np.where(X[:, 1] > 0, 0.03, 0.4)])
    return X, y, np.where(luck.random((n, 2)) < error, 1 - y[:, None], y[:, None])


@pytest.fixture
def folds(monkeypatch):
    """The number of folds and of strengths of each held-out judgement."""
    seen = []
    own = learning.held_out

    def spy(work, splits, *shared, **more):
        seen.append((shared[0], len(shared[1]), len(splits)))
        return own(work, splits, *shared, **more)

    monkeypatch.setattr(learning, "held_out", spy)
    return seen


def fitted(n=200, **more):
    X, y, said = draw(n)
    base = FullAutomation(machine=LogisticRegression())
    return ExpertTeam(base, CAPACITY, random_state=0, **more).fit(X, y, said)


def test_prices_of_forests_rest_on_forests_that_saw_nearly_all_samples(folds):
    """Forests of five folds tell experts apart less well: the best experts got too many new cases."""
    team = fitted(skills="forest")
    assert folds == [("forest", 3, 5), ("forest", 1, 20)]
    model = team._routing.model
    strengths = [strength * 20 / 19 for strength in Forests.strengths]
    assert min(abs(model.strength - one) for one in strengths) < 1e-9
    # So each expert's own forest has the share that it had in the folds, with 19 of 20 answers.
    strength = model.strength * 19 / 20
    assert 200 / (200 + model.strength) == pytest.approx(190 / (190 + strength))


def test_other_models_and_splitters_need_no_more_folds(folds):
    fitted(skills="linear")
    fitted(skills="forest", cv=KFold(4))
    fitted(skills="forest", cv=20)
    assert folds == [("linear", 3, 5), ("forest", 3, 4), ("forest", 3, 20)]


def test_what_a_forest_expects_of_samples_is_what_it_expects_of_new_cases():
    X, y, said = draw(300)
    share = (said != y[:, None]).astype(float)
    known = np.column_stack([1 - y * 0.4 - 0.3, y * 0.4 + 0.3])
    splits = list(KFold(20, shuffle=True, random_state=0).split(X))
    options = ((300.0,), splits, Cases(X, known, y), share, np.ones(2), 0, None)
    ((expected, rate),) = learning._as_new("forest", *options)
    np.testing.assert_array_equal(expected, rate)  # every mistake costs 1
    model = Forests(300.0).fit(Cases(X, known, y), share, 0)
    new, truth, _ = draw(3000, seed=1)
    chances = np.column_stack([1 - truth * 0.4 - 0.3, truth * 0.4 + 0.3])
    found = model.expected(Cases(new, chances), np.ones(2))
    np.testing.assert_allclose(expected.mean(axis=0), found.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(expected.std(axis=0), found.std(axis=0), rtol=0.12)
