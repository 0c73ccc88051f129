"""Near-ties: a simpler policy is taken unless the best one is clearly ahead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import sem
from sklearn.exceptions import FitFailedWarning

from deferlearn.objective import NumericalError, SVMObjective
from deferlearn.teams.choice import by_group, choose
from deferlearn.teams.samples import Samples
from tuned import ALPHAS, HUMAN, SPLITS, X, Y, held_out_margins, top, tuned


def chosen(parts, policy, n_standard_errors):
    parts = np.asarray(parts, dtype=float)
    return choose(
        parts.mean(axis=1), np.asarray(policy), lambda a, b: parts[a] - parts[b], n_standard_errors
    )


# Gains of four cases: the second is ahead by 1, 0, 1, 0, so by 0.5 with a standard error of 0.289.
SIMPLE, BETTER = [-1, -1, -1, 0], [0, -1, 0, 0]


@pytest.mark.parametrize(
    ("n_standard_errors", "index"), [(0, 1), (1, 1), (1.73, 1), (1.74, 0), (5, 0)]
)
def test_a_gap_against_its_standard_error(n_standard_errors, index):
    assert sem([1, 0, 1, 0]) == pytest.approx(0.5 / 1.7320508)
    assert chosen([SIMPLE, BETTER], [0, 1], n_standard_errors) == index


def test_ahead_in_a_single_case_is_a_near_tie_of_one_standard_error():
    """Then gap and standard error are both 1 / n, and the last digits must not decide."""
    for n in range(2, 300):
        simple, better = np.zeros(n), np.zeros(n)
        better[n // 2] = 1
        for unit in (1.0, 0.1, 3.0):
            assert chosen([simple * unit, better * unit], [0, 1], 1.0) == 0
            assert chosen([simple * unit, better * unit], [0, 1], 0.999) == 1


def test_a_simpler_policy_that_is_better_is_taken_whatever_a_near_tie_is():
    for n_standard_errors in (0, 1, 100):
        assert chosen([BETTER, SIMPLE], [0, 1], n_standard_errors) == 0


def test_within_a_policy_the_best_is_taken_however_near_the_others_are():
    assert chosen([SIMPLE, BETTER], [0, 0], 100) == 1


def test_the_best_candidate_of_the_first_policy_that_nearly_ties():
    """The second policy nearly ties with the best, which is the third's; the first is far off."""
    far, near, nearer = [-9, -9, -9, -8], [-1, -1, -1, -1], [-1, 0, -1, -1]
    best = [0, 0, -1, -1]
    assert chosen([far, far, near, nearer, best], [0, 0, 1, 1, 2], 1.0) == 3


def test_equals_go_to_the_first():
    assert chosen([BETTER, BETTER, BETTER], [0, 0, 1], 0) == 0
    assert chosen([SIMPLE, BETTER, BETTER], [0, 1, 1], 0) == 1
    assert chosen([SIMPLE, BETTER, BETTER], [0, 1, 2], 0) == 1


def test_equal_sums_are_equal_in_whatever_order_they_were_added():
    one = np.array([0.1] * 10 + [0.7] * 3)
    other = one[::-1].cumsum()[-1] / len(one)
    means = np.array([one.cumsum()[-1] / len(one), other])
    assert means[0] != means[1]
    for order in (means, means[::-1]):
        ahead = [[0.0, order[1] - order[0]], [order[0] - order[1], 0.0]]
        assert choose(-order, np.array([0, 0]), lambda a, b, gap=ahead: [gap[a][b]], 0.0) == 0


def test_a_single_part_has_no_standard_error():
    assert chosen([[0.0], [1.0]], [0, 1], 100) == 1
    assert chosen([[1.0], [1.0]], [0, 1], 0) == 0


tables = st.integers(2, 5).flatmap(
    lambda rows: st.tuples(
        st.lists(
            st.lists(st.integers(-4, 4), min_size=6, max_size=6), min_size=rows, max_size=rows
        ),
        st.lists(st.integers(0, 2), min_size=rows, max_size=rows).map(sorted),
    )
)


@given(tables)
def test_without_near_ties_the_best_wins(table):
    parts, policy = table
    means = np.mean(parts, axis=1)
    assert chosen(parts, policy, 0) == int(np.flatnonzero(means == means.max())[0])


@given(tables, st.floats(0, 5), st.floats(0, 5))
def test_a_wider_near_tie_never_takes_a_more_elaborate_policy(table, one, other):
    parts, policy = table
    narrow, wide = (policy[chosen(parts, policy, width)] for width in sorted((one, other)))
    assert wide <= narrow


@given(tables, st.floats(0, 5), st.lists(st.integers(-100, 100), min_size=6, max_size=6))
def test_only_gaps_count(table, n_standard_errors, shift):
    """What all candidates gain or lose in a part of the data changes nothing."""
    parts, policy = table
    assert chosen(parts, policy, n_standard_errors) == chosen(
        np.add(parts, shift), policy, n_standard_errors
    )


@given(tables, st.floats(0, 5), st.randoms())
def test_parts_have_no_order_and_copies_of_policies_no_effect(table, n_standard_errors, random):
    parts, policy = np.array(table[0]), table[1]
    order = list(range(6))
    random.shuffle(order)
    index = chosen(parts, policy, n_standard_errors)
    assert chosen(parts[:, order], policy, n_standard_errors) == index
    assert chosen([*parts, *parts], [*policy, *[9] * len(policy)], n_standard_errors) == index


@given(tables, st.floats(0.01, 100))
def test_units_do_not_count(table, unit):
    parts, policy = table
    assert chosen(parts, policy, 1.0) == chosen(np.multiply(parts, unit), policy, 1.0)


# -- groups are the independent parts ---------------------------------------------------------


def test_groups_are_summed_and_keep_the_mean():
    values = np.array([1.0, 2.0, 3.0, 6.0])
    parts = by_group(values, np.array(["b", "a", "b", "b"]))
    np.testing.assert_allclose(parts, [2.0 * 2 / 4, 10.0 * 2 / 4])
    assert parts.mean() == values.mean()
    assert by_group(values, None) is values


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-1, 1)), min_size=1, max_size=20))
def test_groups_keep_any_mean(rows):
    groups, values = map(np.array, zip(*rows, strict=True))
    np.testing.assert_allclose(by_group(values, groups).mean(), values.mean(), atol=1e-12)


# -- the choice in a search -------------------------------------------------------------------


def test_a_search_takes_the_first_within_a_standard_error_of_cases():
    """The gaps are those of cases, found by hand; `n_standard_errors` moves the choice where they say."""
    policies = ["automation", "uncertainty"]
    gains = {}
    for alpha in ALPHAS:
        margin = held_out_margins(X, Y, np.ones(len(Y)), alpha, SPLITS)
        wrong = np.where(margin > 0, 1, -1) != Y
        deferred = top(-np.abs(margin), 18)
        gains["automation", alpha] = -wrong.astype(float)
        gains["uncertainty", alpha] = -np.where(deferred, HUMAN != Y, wrong).astype(float)
    best = {
        policy: max((gains[policy, alpha] for alpha in sorted(ALPHAS, reverse=True)), key=np.mean)
        for policy in policies
    }
    gap = best["uncertainty"] - best["automation"]
    ratio = gap.mean() / sem(gap)
    assert ratio > 1
    for n_standard_errors, expected in [(0, 1), (ratio * 0.999, 1), (ratio * 1.001, 0)]:
        clf = tuned(policies=policies, n_standard_errors=n_standard_errors).fit(
            X, Y, human_labels=HUMAN
        )
        assert clf.best_params_["policy"] == policies[expected]
        assert clf.best_score_ == pytest.approx(best[policies[expected]].mean())


def test_the_same_case_many_times_is_no_better_known_if_the_copies_are_a_group():
    """Copies as groups give the standard error of the originals; as cases a smaller one."""
    fold = np.arange(len(Y)) % 3
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    policies = ["automation", "uncertainty"]
    options = {"policies": policies, "alphas": [1.0]}
    copies = np.tile(np.arange(len(Y)), 9)
    many = [
        (np.flatnonzero(fold[copies] != k), np.flatnonzero(fold[copies] == k)) for k in (0, 1, 2)
    ]

    def choice(n_standard_errors, rows, cv, groups):
        clf = tuned(**options, n_standard_errors=n_standard_errors, cv=cv)
        clf.fit(X[rows], Y[rows], human_labels=HUMAN[rows], groups=groups)
        return clf.best_params_["policy"], clf.best_score_

    widths = np.arange(0.5, 6, 1.0)
    once = [choice(t, np.arange(len(Y)), splits, None)[0] for t in widths]
    grouped = [choice(t, copies, many, copies)[0] for t in widths]
    torn = [choice(t, copies, many, None)[0] for t in widths]
    assert once == grouped
    assert set(once) == set(policies)
    assert torn != once


def unsolvable_at(alpha, monkeypatch):
    """Machines with this alpha cannot be solved, neither alone nor from another alpha."""
    solve, follow = Samples.objective, SVMObjective.with_alpha

    def fail(samples, n_jobs=None):
        if samples.settings.alpha == alpha:
            raise NumericalError(f"no optimum at {alpha}")
        return solve(samples, n_jobs)

    def lead_nowhere(objective, other):
        if other == alpha:
            raise NumericalError(f"no path to {alpha}")
        return follow(objective, other)

    monkeypatch.setattr(Samples, "objective", fail)
    monkeypatch.setattr(SVMObjective, "with_alpha", lead_nowhere)


@pytest.mark.parametrize("policies", [["uncertainty", "margin"], ["margin"]], ids=["both", "slow"])
def test_a_machine_that_cannot_be_solved_is_left_out(policies, monkeypatch):
    unsolvable_at(ALPHAS[0], monkeypatch)
    clf = tuned(policies=policies, n_refined=len(ALPHAS))
    with pytest.warns(
        FitFailedWarning, match=rf"Left out: .* SVM \(alpha {ALPHAS[0]:g}\). no optimum"
    ):
        clf.fit(X, Y, human_labels=HUMAN)
    tried = [(p["policy"], p["alpha"]) for p in clf.cv_results_["params"]]
    rest = sorted(ALPHAS[1:], reverse=True)
    assert tried == [(policy, alpha) for policy in policies for alpha in rest]
    assert np.isfinite(clf.cv_results_["mean_test_score"]).all()
    assert clf.predict(X).shape == Y.shape


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_no_machine_can_be_solved(monkeypatch):
    unsolvable_at(ALPHAS[0], monkeypatch)
    with pytest.raises(NumericalError, match="no optimum at"):
        tuned(alphas=[ALPHAS[0]]).fit(X, Y, human_labels=HUMAN)


def test_no_human_time_for_a_tie():
    """The last policy asks no human. Where it is best, another that nearly ties is not taken."""
    worse, tie = [0, -1, 0, 0], [0, 0, 0, 0]
    last = np.array([False, True])
    for first, expected in ((worse, 1), (tie, 1)):
        parts = np.array([first, tie], dtype=float)
        picked = choose(
            parts.mean(axis=1), np.array([0, 1]), lambda a, b, p=parts: p[a] - p[b], 9.0, last
        )
        assert picked == expected
    # Where it is not best, near-ties go to the first as ever.
    parts = np.array([tie, worse], dtype=float)
    assert (
        choose(parts.mean(axis=1), np.array([1, 0]), lambda a, b: parts[a] - parts[b], 9.0, last)
        == 1
    )
    assert (
        choose(parts.mean(axis=1), np.array([0, 1]), lambda a, b: parts[a] - parts[b], 9.0, last)
        == 0
    )


def test_experts_who_always_err_are_not_asked():
    clf = tuned(policies=["uncertainty", "automation"], n_standard_errors=99.0)
    clf.fit(X, Y, human_labels=-Y)
    assert clf.best_params_["policy"] == "automation"
    assert not clf.defer(X).any()
