"""Losses of the field's methods: by hand, by differences, and against scikit-learn's minimisers."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from deferlearn.datasets import make_linear
from deferlearn.teams import (
    CompareConfidence,
    CrossEntropySurrogate,
    DifferentiableTriage,
    OneVsAllSurrogate,
    RealizableSurrogate,
)
from deferlearn.teams.odds import log_softmax
from deferlearn.teams.surrogates.cross_entropy import cross_entropy_loss
from deferlearn.teams.surrogates.linear import (
    fit_linear,
    regularised,
    standardisation,
)
from deferlearn.teams.surrogates.logistic import LogisticModel, softmax_loss
from deferlearn.teams.surrogates.one_vs_all import one_vs_all_loss
from deferlearn.teams.surrogates.realizable import realizable_loss
from deferlearn.teams.surrogates.targets import Targets, mean_cost

X, Y = make_linear(120, random_state=3)
X = X * [100.0, 0.1] + [7.0, -3.0]
RNG = np.random.RandomState(0)
LABELS = np.where(RNG.rand(120) < 0.3, -Y, Y)
NEW = make_linear(50, random_state=9)[0] * [100.0, 0.1] + [7.0, -3.0]

LOSSES = {
    "one_vs_all": one_vs_all_loss,
    "cross_entropy": lambda targets: cross_entropy_loss(targets, 1.0),
    "cross_entropy_half": lambda targets: cross_entropy_loss(targets, 0.5),
    "cross_entropy_none": lambda targets: cross_entropy_loss(targets, 0.0),
    "realizable": realizable_loss,
    "realizable_half": lambda targets: realizable_loss(targets, 0.5),
    "softmax": lambda targets: softmax_loss(targets.codes, targets.weights),
}
CONVEX = [name for name in LOSSES if not name.startswith("realizable")]


def random_targets(rng, n, n_classes):
    weights = rng.uniform(0.2, 2.0, n)
    read = rng.rand(n) < 0.8
    right = np.where(read, rng.choice([0.0, 0.25, 0.5, 1.0], n), 0.0)
    return Targets(rng.randint(n_classes, size=n), right, read, weights / weights.sum())


def one(code, right, read=True):
    return Targets(np.array([code]), np.array([right]), np.array([read]), np.ones(1))


# -- by hand ----------------------------------------------------------------------------------

# exp of the outputs: two classes, and deferral.
F = np.log([[1.0, 3.0, 4.0]])


@pytest.mark.parametrize(
    ("loss", "targets", "expected"),
    [
        # Odds 1, 3, 4: probabilities 1/2, 3/4, 4/5.
        ("one_vs_all", one(1, 1.0), -np.log(1 / 2 * 3 / 4 * 4 / 5)),
        ("one_vs_all", one(0, 0.0), -np.log(1 / 2 * 1 / 4 * 1 / 5)),
        ("one_vs_all", one(0, 0.0, False), -np.log(1 / 2 * 1 / 4)),
        ("one_vs_all", one(1, 0.25), -np.log(1 / 2 * 3 / 4 * (4 / 5) ** 0.25 * (1 / 5) ** 0.75)),
        # Softmax 1/8, 3/8, 4/8.
        ("cross_entropy", one(1, 1.0), -np.log(3 / 8 * 4 / 8)),
        ("cross_entropy", one(0, 0.0), -np.log(1 / 8)),
        ("cross_entropy", one(0, 0.0, False), -np.log(1 / 4)),
        ("cross_entropy_half", one(1, 1.0), -0.5 * np.log(3 / 8) - np.log(4 / 8)),
        ("cross_entropy_none", one(1, 1.0), -np.log(4 / 8)),
        ("cross_entropy_none", one(1, 0.25), -0.75 * np.log(3 / 8) - 0.25 * np.log(4 / 8)),
        ("realizable", one(1, 1.0), -np.log(7 / 8)),
        ("realizable", one(1, 0.0), -np.log(3 / 8)),
        ("realizable", one(0, 0.5), -0.5 * np.log(5 / 8) - 0.5 * np.log(1 / 8)),
        ("realizable", one(1, 0.0, False), -np.log(3 / 4)),
        ("realizable_half", one(1, 1.0), -0.5 * np.log(7 / 8) - 0.5 * np.log(3 / 4)),
        ("softmax", one(2, 0.0), -np.log(4 / 8)),
    ],
)
def test_losses_by_hand(loss, targets, expected):
    assert LOSSES[loss](targets)(F)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_the_weighted_sum_over_samples(name):
    rng = np.random.RandomState(1)
    targets, outputs = random_targets(rng, 3, 3), rng.normal(size=(3, 4))
    parts = []
    for i in range(3):
        row = Targets(targets.codes[[i]], targets.right[[i]], targets.read[[i]], np.ones(1))
        parts.append(targets.weights[i] * LOSSES[name](row)(outputs[[i]])[0])
    assert LOSSES[name](targets)(outputs)[0] == pytest.approx(sum(parts), rel=1e-12)


def test_the_realizable_loss_bounds_the_teams_error():
    """Twice the loss, with logarithms to base 2, is at least 1 wherever the team errs."""
    rng = np.random.RandomState(0)
    for _ in range(500):
        outputs, code, right = rng.normal(size=(1, 4)), rng.randint(3), rng.randint(2)
        answer = outputs.argmax()
        wrong = right == 0 if answer == 3 else answer != code
        bound = 2 * realizable_loss(one(code, float(right)))(outputs)[0] / np.log(2)
        assert bound >= wrong


def test_mean_cost_undoes_the_weights_of_classes():
    truth, costs = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([1.0, 5.0])
    weighted = truth * costs / (truth * costs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mean_cost(weighted, costs), truth @ costs)


# -- gradients and convexity ------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_gradients_by_central_differences(name, n_classes):
    rng = np.random.RandomState(n_classes)
    targets, Z = random_targets(rng, 7, n_classes), rng.normal(size=(7, 3))
    objective = regularised(Z, n_classes + 1, 0.1, LOSSES[name](targets))
    point = rng.normal(size=(n_classes + 1) * 4)
    gradient, step = objective(point)[1], 1e-5
    by_hand = np.array(
        [
            (objective(point + step * e)[0] - objective(point - step * e)[0]) / (2 * step)
            for e in np.eye(len(point))
        ]
    )
    np.testing.assert_allclose(gradient, by_hand, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 100_000), name=st.sampled_from(CONVEX))
def test_what_theory_calls_convex_is(seed, name):
    rng = np.random.RandomState(seed)
    loss = LOSSES[name](random_targets(rng, 4, 3))
    a, b = rng.normal(scale=3, size=(2, 4, 4))
    t = rng.rand()
    assert loss(t * a + (1 - t) * b)[0] <= t * loss(a)[0] + (1 - t) * loss(b)[0] + 1e-12


def test_the_realizable_loss_is_not_convex():
    loss = realizable_loss(one(0, 1.0))
    a, b = np.array([[4.0, 0.0, -4.0]]), np.array([[-4.0, 0.0, 4.0]])
    assert loss((a + b) / 2)[0] > (loss(a)[0] + loss(b)[0]) / 2


def test_losses_of_extreme_outputs_are_finite():
    rng = np.random.RandomState(0)
    targets = random_targets(rng, 6, 2)
    for loss in LOSSES.values():
        value, slope = loss(targets)(1e4 * rng.normal(size=(6, 3)))
        assert np.isfinite(value)
        assert np.isfinite(slope).all()


# -- minimisers -------------------------------------------------------------------------------

ALPHA = 0.02
Z, NEW_Z = StandardScaler().fit_transform(X), StandardScaler().fit(X).transform(NEW)


def logistic(y, alpha, weights=None):
    """scikit-learn's minimiser of the mean loss plus alpha times the squared weights."""
    total = len(y) if weights is None else weights.sum()
    model = LogisticRegression(C=1.0 / (2.0 * alpha * total), tol=1e-10, max_iter=10_000)
    return model.fit(Z, y, sample_weight=weights)


CLOSE = {"rtol": 1e-3, "atol": 1e-4}


def test_one_vs_all_is_a_logistic_regression_per_output():
    team = OneVsAllSurrogate(alpha=ALPHA, cv=None).fit(X, Y, human_labels=LABELS)
    outputs = NEW @ team.coef_.T + team.intercept_
    for k, target in enumerate((Y == -1, Y == 1, LABELS == Y)):
        expected = logistic(target, ALPHA).decision_function(NEW_Z)
        np.testing.assert_allclose(outputs[:, k], expected, **CLOSE)
    np.testing.assert_allclose(team.decision_function(NEW), outputs[:, 1] - outputs[:, 0])
    right = 1 / (1 + np.exp(-outputs))
    np.testing.assert_allclose(team.deferral_score(NEW), right[:, 2] - right[:, :2].max(axis=1))


def test_one_vs_all_with_weights_gaps_and_several_readers():
    readers = np.column_stack([LABELS, np.where(RNG.rand(120) < 0.2, -Y, Y)]).astype(float)
    readers[:30, 0] = np.nan
    readers[:10] = np.nan
    costs = {-1: 1.0, 1: 3.0}
    with pytest.warns(UserWarning, match="10 of 120 cases have no answer"):
        team = OneVsAllSurrogate(alpha=ALPHA, cv=None, class_weight=costs).fit(
            X, Y, human_labels=readers
        )
    outputs = NEW @ team.coef_.T + team.intercept_
    weights = np.where(Y == 1, 3.0, 1.0)
    expected = logistic(Y, ALPHA, weights).decision_function(NEW_Z)
    np.testing.assert_allclose(outputs[:, 1], expected, **CLOSE)
    # The human's: a row per answer, by its share, on the samples with an answer.
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        share = np.nanmean(np.where(np.isnan(readers), np.nan, readers == Y[:, None]), axis=1)
    rows = np.flatnonzero(~np.isnan(share))
    both = np.concatenate([weights[rows] * share[rows], weights[rows] * (1 - share[rows])])
    alpha = ALPHA * weights.sum() / weights[rows].sum()  # the mean is over all samples
    model = LogisticRegression(C=1.0 / (2.0 * alpha * both.sum()), tol=1e-10, max_iter=10_000)
    model.fit(np.vstack([Z[rows]] * 2), np.repeat([1, 0], len(rows)), sample_weight=both)
    np.testing.assert_allclose(outputs[:, 2], model.decision_function(NEW_Z), **CLOSE)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_cross_entropy_with_a_human_who_is_never_right_is_logistic_regression(weight):
    team = CrossEntropySurrogate(alpha=ALPHA, cv=None, machine_weight=weight)
    team.fit(X, Y, human_labels=-Y)
    # A softmax over two outputs: each has half of the weights.
    expected = logistic(Y, ALPHA / 2).decision_function(NEW_Z)
    np.testing.assert_allclose(team.decision_function(NEW), expected, rtol=1e-3, atol=1e-3)
    assert (team.deferral_score(NEW) < -0.4).all()
    assert not team.defer(NEW).any()
    assert team.deferral_rate_ == 0.0


def test_realizable_with_a_human_who_is_never_right_is_logistic_regression():
    team = RealizableSurrogate(alpha=ALPHA, cv=None).fit(X, Y, human_labels=-Y)
    expected = logistic(Y, ALPHA / 2).decision_function(NEW_Z)
    np.testing.assert_allclose(team.decision_function(NEW), expected, rtol=1e-3, atol=1e-3)
    assert not team.defer(NEW).any()


def test_cross_entropy_is_multinomial_regression_on_repeated_rows():
    """Its loss is that of three classes, where a sample with a right answer counts for two of them."""
    team = CrossEntropySurrogate(alpha=ALPHA, cv=None).fit(X, Y, human_labels=LABELS)
    right = LABELS == Y
    rows, target = np.vstack([Z, Z[right]]), np.concatenate([(Y + 1) // 2, np.full(right.sum(), 2)])
    model = LogisticRegression(C=1.0 / (2.0 * ALPHA * 120), tol=1e-10, max_iter=10_000)
    p = model.fit(rows, target).predict_proba(NEW_Z)
    outputs = NEW @ team.coef_.T + team.intercept_
    np.testing.assert_allclose(np.exp(log_softmax(outputs)), p, **CLOSE)
    machine, human = team.expected_errors(NEW)
    np.testing.assert_allclose(human, 1 - np.minimum(1, p[:, 2] / (1 - p[:, 2])), **CLOSE)
    np.testing.assert_allclose(machine, 1 - p[:, :2].max(axis=1) / (1 - p[:, 2]), **CLOSE)
    np.testing.assert_allclose(team.deferral_score(NEW), machine - human, atol=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_the_sign_of_a_score_is_the_papers_rule(weight):
    expert = np.where(X[:, 0] > 7, Y, -Y)
    for team in (
        CrossEntropySurrogate(machine_weight=weight, cv=None),
        RealizableSurrogate(joint_weight=weight, cv=None),
        OneVsAllSurrogate(cv=None),
    ):
        team.set_params(budget=1.0).fit(X, Y, human_labels=expert)
        outputs = NEW @ team.coef_.T + team.intercept_
        rule = outputs[:, 2] > outputs[:, :2].max(axis=1)
        np.testing.assert_array_equal(team.deferral_score(NEW) > 0, rule)
        np.testing.assert_array_equal(team.defer(NEW), rule)
        np.testing.assert_array_equal(team.defer_top(NEW), rule)
        assert rule.any() or weight == 0.0


def test_compare_confidence_is_two_logistic_regressions():
    by_hand = [logistic(target, ALPHA / 2).predict_proba(NEW_Z) for target in (Y, LABELS == Y)]
    expected = by_hand[1][:, 1] - by_hand[0].max(axis=1)
    team = CompareConfidence(alpha=ALPHA, cv=None).fit(X, Y, human_labels=LABELS)
    np.testing.assert_allclose(team.deferral_score(NEW), expected, **CLOSE)
    machine, human = team.expected_errors(NEW)
    np.testing.assert_allclose(machine, by_hand[0].min(axis=1), **CLOSE)
    np.testing.assert_allclose(human, by_hand[1][:, 0], **CLOSE)
    own = LogisticRegression(C=0.3)
    team = CompareConfidence(machine=own, cv=None).fit(X, Y, human_labels=LABELS)
    models = [LogisticRegression(C=0.3).fit(X, target) for target in (Y, LABELS == Y)]
    p, right = (model.predict_proba(NEW) for model in models)
    np.testing.assert_array_equal(team.deferral_score(NEW), right[:, 1] - p.max(axis=1))
    np.testing.assert_array_equal(team.predict(NEW), models[0].predict(NEW))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_machine_without_a_machine_is_scikit_learns(n_classes):
    y = np.digitize(X[:, 0] + 60 * RNG.normal(size=120), [-30, 40][: n_classes - 1])
    weights = RNG.uniform(0.5, 2.0, 120)
    model = LogisticModel(alpha=ALPHA).fit(X, y, weights)
    expected = logistic(y, ALPHA / 2 if n_classes == 2 else ALPHA, weights)
    np.testing.assert_allclose(model.predict_proba(NEW), expected.predict_proba(NEW_Z), **CLOSE)
    np.testing.assert_array_equal(model.predict(NEW), expected.predict(NEW_Z))


def test_the_realizable_minimum_is_the_lower_of_two():
    expert = np.where(X[:, 0] > 7, Y, -Y)
    team = RealizableSurrogate(alpha=1e-3, cv=None).fit(X, Y, human_labels=expert)
    right = (expert == Y).astype(float)
    targets = Targets((Y + 1) // 2, right, np.ones(120, dtype=bool), np.full(120, 1 / 120))
    loss = realizable_loss(targets)
    convex, _ = fit_linear(X, 3, 1e-3, cross_entropy_loss(targets, 1.0))
    values = [fit_linear(X, 3, 1e-3, loss, start)[1] for start in (None, convex)]
    model = team._model
    weights = np.column_stack([model.coef, model.intercept]).ravel()
    value, gradient = regularised(Z, 3, 1e-3, loss)(weights)
    assert value == pytest.approx(min(values))
    assert np.abs(gradient).max() < 1e-5


def test_a_realizable_team_is_found():
    """Human and machine are each right on one side of a line: no loss is left but the penalty."""
    rng = np.random.RandomState(0)
    points = rng.normal(size=(400, 2))
    y = np.where(points[:, 0] > 0, np.sign(points[:, 1]), rng.choice([-1, 1], 400)).astype(int)
    expert = np.where(points[:, 0] > 0, rng.choice([-1, 1], 400), y)
    team = RealizableSurrogate(budget=1.0, alpha=1e-5, cv=None, random_state=0)
    assert team.fit(points, y, human_labels=expert).score_assisted(points, y, expert) > 0.97


# -- units, scale and effort ------------------------------------------------------------------


@pytest.mark.parametrize(
    "team",
    [
        OneVsAllSurrogate(),
        CrossEntropySurrogate(),
        RealizableSurrogate(),
        CompareConfidence(),
        DifferentiableTriage(),
    ],
    ids=lambda team: type(team).__name__,
)
def test_units_of_the_features_do_not_matter(team):
    team.set_params(random_state=0).fit(X, Y, human_labels=LABELS)
    scores, threshold = team.deferral_score(NEW), team.deferral_threshold_
    team.fit(1000 * X - 5, Y, human_labels=LABELS)
    np.testing.assert_allclose(team.deferral_score(1000 * NEW - 5), scores, atol=1e-4)
    assert team.deferral_threshold_ == pytest.approx(threshold, abs=1e-4)


def test_constant_columns_are_not_scaled():
    columns = np.column_stack([np.full(5, 0.1), np.arange(5.0), np.full(5, 1e9)])
    mean, scale = standardisation(columns)
    np.testing.assert_allclose(mean, [0.1, 2.0, 1e9])
    np.testing.assert_allclose(scale, [1.0, np.sqrt(2.0), 1.0])


def test_steps_that_do_not_suffice_bring_a_warning(monkeypatch):
    monkeypatch.setattr("deferlearn.teams.surrogates.linear.STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="not converged in 2 steps"):
        OneVsAllSurrogate(cv=None).fit(X, Y, human_labels=LABELS)


# -- differentiable triage --------------------------------------------------------------------


def test_differentiable_triage_by_hand():
    """The rounds with scikit-learn's machine, fitted on the kept samples alone."""
    expert = np.where(X[:, 0] > 7, Y, -Y)
    team = DifferentiableTriage(budget=0.25, alpha=ALPHA, cv=None).fit(X, Y, human_labels=expert)
    human, deferred = np.where(expert == Y, 0.0, np.log(2)), np.zeros(120, dtype=bool)
    values = []
    for _ in range(50):
        kept = ~deferred
        # Half of the penalty for a softmax over two outputs, and the mean is over all samples.
        model = LogisticRegression(C=1.0 / (ALPHA * 120), tol=1e-10, max_iter=10_000)
        model.fit(Z[kept], Y[kept])
        loss = np.log1p(np.exp(-Y * model.decision_function(Z)))
        penalty = ALPHA / 2 * (model.coef_**2).sum()
        values.append((loss[kept].sum() + human[deferred].sum()) / 120 + penalty)
        gain = loss - human
        chosen = np.zeros(120, dtype=bool)
        chosen[np.argsort(-gain, kind="stable")[:30]] = True
        chosen &= gain > 0
        if (chosen == deferred).all():
            break
        deferred = chosen
    np.testing.assert_array_equal(team.deferred_, deferred)
    np.testing.assert_allclose(team.objective_values_, values, rtol=1e-6)
    decision = model.decision_function(NEW_Z)
    np.testing.assert_allclose(team.decision_function(NEW), decision, rtol=1e-2, atol=1e-2)
    policy = logistic(deferred, ALPHA / 2).decision_function(NEW_Z)
    np.testing.assert_allclose(team.deferral_score(NEW), policy, **CLOSE)
    assert team.deferral_rate_ == 0.25


@pytest.mark.parametrize("seed", range(6))
def test_no_round_raises_the_objective(seed):
    Z, y = make_linear(80, random_state=seed)
    answers = np.where(np.random.RandomState(seed).rand(80) < 0.3, -y, y)
    team = DifferentiableTriage(budget=0.4, alpha=1e-3, cv=None, class_weight={-1: 1.0, 1: 2.5})
    values = team.fit(Z, y, human_labels=answers).objective_values_
    assert len(values) > 1
    assert (np.diff(values) < 0).all()


def test_differentiable_triage_defers_less_where_time_is_costly():
    shares = []
    for cost in (0.0, 0.3, 10.0):
        team = DifferentiableTriage(budget=1.0, deferral_cost=cost, cv=None)
        team.fit(X, Y, human_labels=LABELS)
        shares.append(team.deferral_rate_)
        assert team.deferral_rate_ == team.deferred_.mean()
    assert shares[0] > shares[1] > shares[2] == 0.0
    assert not team.defer(NEW).any()


def test_differentiable_triage_keeps_what_no_one_has_read():
    loss = np.zeros(120)
    loss[:100] = np.nan
    with pytest.warns(UserWarning, match="100 of 120 cases have no answer"):
        team = DifferentiableTriage(budget=0.5, cv=None).fit(X, Y, human_loss=loss)
    assert team.deferred_[100:].all()
    assert not team.deferred_[:100].any()
    assert team.deferral_rate_ == 20 / 120


def test_differentiable_triage_may_defer_everything():
    team = DifferentiableTriage(budget=1.0).fit(X, Y)
    assert team.deferred_.all()
    assert team.deferral_rate_ == 1.0
    assert team.defer(NEW).all()
    plain = LogisticModel(alpha=0.01).fit(X, Y)  # the machine is that of all samples
    np.testing.assert_array_equal(team.predict(NEW), plain.predict(NEW))
