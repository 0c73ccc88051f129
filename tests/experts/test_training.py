"""Machines trained for several experts: prices against all subsets and assignments."""

from itertools import combinations, product

import numpy as np
import pytest

from deferlearn import AssistedSVC
from deferlearn.experts import ExpertTeam
from deferlearn.objective import SVMObjective


def tiny(seed, n=8):
    luck = np.random.default_rng(seed)
    X = luck.normal(size=(n, 2))
    y = np.where(np.arange(n) % 2, 1, -1)
    answers = np.where(luck.random((n, 2)) < [0.2, 0.4], -y[:, None], y[:, None])
    return X, y, answers


def best_of_all(X, y, answers, alpha, capacity):
    """The largest fall of the total loss, over all samples to defer and all experts for each."""
    whole = SVMObjective(X, y, alpha=alpha)
    cost = np.where(answers == y[:, None], 0.0, 2.0)
    best = 0.0
    for size in range(1, sum(capacity) + 1):
        for picked in combinations(range(len(y)), size):
            rest = whole.copy()
            for k in picked:
                rest.remove(k)
            fall = whole.value - rest.value
            for who in product(range(2), repeat=size):
                if all(who.count(e) <= capacity[e] for e in range(2)):
                    paid = sum(cost[i, e] for i, e in zip(picked, who, strict=True))
                    best = max(best, fall - paid)
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("capacity", [(1, 2), (2, 1)])
def test_the_bound_holds_and_the_assignment_is_within_it(seed, capacity):
    X, y, answers = tiny(seed)
    team = ExpertTeam(
        AssistedSVC(alpha=0.3, cv=4),
        {"a": capacity[0], "b": capacity[1]},
        skills="class",
        random_state=0,
    )
    team.fit(X, y, answers)
    found, best = team.certify(), best_of_all(X, y, answers, 0.3, capacity)
    assert found.bound >= best - 1e-9
    assert found.value <= best + 1e-9
    assert found.gap == pytest.approx(found.bound - found.value)
    # The value is that of the assignment.
    cost = np.where(answers == y[:, None], 0.0, 2.0)
    taken = np.flatnonzero([who is not None for who in team.assignment_])
    rest = SVMObjective(X, y, alpha=0.3)
    before = rest.value
    for k in taken:
        rest.remove(k)
    paid = sum(cost[i, "ab".index(team.assignment_[i])] for i in taken)
    assert found.value == pytest.approx(before - rest.value - paid, abs=1e-9)
    for e, name in enumerate("ab"):
        assert np.sum(team.assignment_ == name) <= capacity[e]


def test_shares_are_rounded_down_one_by_one():
    for seed in range(4):
        X, y, answers = tiny(seed, n=10)
        team = ExpertTeam(AssistedSVC(alpha=0.3, cv=4), {"a": 0.15, "b": 0.15}, skills="class")
        team.fit(X, y, answers)
        taken = [who for who in team.assignment_ if who is not None]
        assert len(taken) == team.team_.deferred_.sum() <= 2
        found = team.certify()
        best = best_of_all(X, y, answers, 0.3, (1, 1))
        assert found.value <= best + 1e-9
        assert best <= found.bound + 1e-9


def test_one_expert_is_the_team_itself():
    X, y, answers = tiny(0, n=80)
    new = np.random.default_rng(1).normal(size=(50, 2))
    alone = AssistedSVC(0.2, alpha=0.1, random_state=0).fit(X, y, human_labels=answers[:, 0])
    team = ExpertTeam(AssistedSVC(alpha=0.1, random_state=0), {"a": 0.2}, random_state=0)
    team.fit(X, y, answers[:, :1])
    np.testing.assert_array_equal(team.team_.deferred_indices_, alone.deferred_indices_)
    np.testing.assert_array_equal(team.team_.coef_, alone.coef_)
    np.testing.assert_array_equal(team.defer(new), alone.defer(new))
    np.testing.assert_array_equal(team.defer_top(new), alone.defer_top(new))
    np.testing.assert_array_equal(team.assign(new) == "a", alone.defer(new))
    np.testing.assert_array_equal(team.deferral_score(new), alone.deferral_score(new))
    np.testing.assert_array_equal(team.predict_proba(new), alone.predict_proba(new))
    assert team.certify().value == alone.certify().value
    said = np.ones((50, 1), dtype=int)
    np.testing.assert_array_equal(
        team.predict_assisted(new, said), alone.predict_assisted(new, said[:, 0])
    )


def test_weights_and_time_reach_the_selection():
    X, y, answers = tiny(3, n=40)
    weight = np.where(y > 0, 3.0, 1.0)
    team = ExpertTeam(
        AssistedSVC(alpha=0.2, deferral_cost=0.1, random_state=0), {"a": 4, "b": 4}, skills="class"
    ).fit(X, y, answers, sample_weight=weight)
    found = team._training.found
    cost = np.where(answers == y[:, None], 0.0, 2.0) * weight[:, None] + 2 * 0.1
    np.testing.assert_allclose(found.cost, cost)
    np.testing.assert_allclose(team.team_.human_loss_, (cost + found.prices).min(axis=1))


def test_gaps_are_filled_by_how_often_the_expert_errs_on_the_class():
    X, y, answers = tiny(4, n=60)
    given = answers.astype(float)
    given[::3, 0] = np.nan
    team = ExpertTeam(AssistedSVC(alpha=0.2), {"a": 6, "b": 6}, skills="class", random_state=0)
    team.fit(X, y, given)
    filled = team._training.found.cost[::3, 0]
    assert ((filled > 0) & (filled < 2)).all()
    assert len(set(filled.round(12))) <= 2  # one rate per class


def test_a_copy_has_no_certificate():
    import pickle

    X, y, answers = tiny(0, n=30)
    team = ExpertTeam(AssistedSVC(alpha=0.3), {"a": 3, "b": 3}, skills="class").fit(X, y, answers)
    with pytest.raises(ValueError, match="needs the training data"):
        pickle.loads(pickle.dumps(team)).certify()
