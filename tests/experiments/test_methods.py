"""Methods on a split: what the estimators of the package say, and scikit-learn of the machine."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from deferlearn import AssistedSVC
from deferlearn.experiments.data import pairs_differ, retina_split, synthetic_split
from deferlearn.experiments.methods import (
    algorithm_rows,
    baseline_rows,
    choose_alpha,
    predicted_error_scores,
    signs_of,
)
from deferlearn.experiments.selecting import ALGORITHMS, Selecting, objective_of, selections
from deferlearn.teams import UncertaintyTriage
from deferlearn.teams.policy import DeferralPolicy

BUDGETS = (0.0, 0.1, 0.25)
PARAMETERS = {
    "protocol": "repeated", "submodularity_ratio": "sweep", "delta": 0.3, "epsilon": 0.05,
    "policies": ["margin", "signed", "mlp", "nearest"], "seed": 3,
}  # fmt: skip


@pytest.fixture(scope="module", params=["linear", "quadratic"])
def split(request):
    return synthetic_split(request.param, 70, spread=0.2, seed=3)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_algorithms_are_the_estimator(split, algorithm):
    rows = list(algorithm_rows(split, 0.1, algorithm, BUDGETS, Selecting.of(PARAMETERS)))
    assert len(rows) == 12
    for row in rows:
        if row["policy"] == "nearest" or row["budget"] == 0.0:
            continue
        slope = DeferralPolicy(LogisticRegression(fit_intercept=False), signed=True)
        clf = AssistedSVC(
            budget=row["budget"], alpha=0.1, selection=algorithm, delta=0.3, epsilon=0.05,
            policy=slope if row["policy"] == "signed" else row["policy"], cv=None, random_state=3,
            **split.kernel,
        )  # fmt: skip
        clf.fit(split.X_train, split.y_train, human_loss=split.loss)
        assert row["n_deferred"] == len(clf.deferred_indices_)
        assert row["ratio"] == clf.selection_.submodularity_ratio
        # The share that was deferred in training.
        asked = clf.defer_top(split.X_test, len(clf.deferred_indices_) / len(split.y_train))
        answer = np.where(asked, split.answers, clf.predict(split.X_test))
        assert row["n_asked"] == asked.sum()
        assert row["wrong"] == np.sum(answer != split.y_test)
        assert row["f1"] == pytest.approx(f1_score(split.y_test, answer))


def test_without_a_budget_all_are_the_machine(split):
    how = Selecting.of(PARAMETERS)
    rows = list(algorithm_rows(split, 0.1, "distorted", (0.0,), how))
    machine = SVC(C=1 / (2 * 0.1 * len(split.y_train)), **split.kernel, tol=1e-5)
    answer = machine.fit(split.X_train, split.y_train).predict(split.X_test)
    rows += [row for row in baseline_rows(split, 0.1, (0.0,), 0) if row["method"] != "humans"]
    assert {row["wrong"] for row in rows} == {int(np.sum(answer != split.y_test))}


def test_baselines_are_the_estimators(split):
    rows = {(row["method"], row["budget"]): row for row in baseline_rows(split, 0.1, BUDGETS, 5)}
    assert len(rows) == 12
    for budget in BUDGETS:
        # A whole number of training samples, as the algorithms have it.
        share = rows["uncertainty", budget]["n"] / len(split.y_train)
        assert share == pytest.approx(budget, abs=1 / len(split.y_train))
        team = UncertaintyTriage(budget=share, alpha=0.1, random_state=5, cv=None, **split.kernel)
        team.fit(split.X_train, split.y_train, human_labels=split.train_answers)
        right = team.score_assisted(split.X_test, split.y_test, split.answers, batch=True)
        assert rows["uncertainty", budget]["error"] == pytest.approx(1 - right)
    for budget in BUDGETS:
        assert rows["humans", budget]["error"] == np.mean(split.answers != split.y_test)
        assert rows["humans", budget]["n_asked"] == len(split.y_test)
        assert rows["full", budget]["n_asked"] == 0


def test_predicted_errors_are_those_of_the_appendix(split):
    """Two perceptrons by scikit-learn alone, on the appendix's labels; the human is the first reader."""
    machine = SVC(C=1 / (2 * 0.1 * len(split.y_train)), **split.kernel, tol=1e-8)
    said = machine.fit(split.X_train, split.y_train).predict(split.X_train)
    chances = []
    for errs in (said != split.train_answers, split.readers_differ):
        assert 0 < errs.sum() < len(errs)
        network = MLPClassifier((100,), solver="sgd", max_iter=500, random_state=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make_pipeline(StandardScaler(), network).fit(split.X_train, errs)
        chances.append(model.predict_proba(split.X_test)[:, 1])
    expected = chances[0] - chances[1]
    found = predicted_error_scores(split, objective_of(split, 0.1), 5)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    rows = [r for r in baseline_rows(split, 0.1, (0.25,), 5) if r["method"] == "predicted"]
    asked = np.isin(np.arange(len(expected)), np.argsort(-expected)[: rows[0]["n_asked"]])
    answer = np.where(asked, split.answers, machine.predict(split.X_test))
    assert rows[0]["wrong"] == np.sum(answer != split.y_test)


def test_labels_of_human_errors():
    """Two pairs of four: on average as often different as the law says, and not the truth's."""
    split = synthetic_split("linear", 20_000, spread=0.2, seed=0)
    # The mean of two uniform scores has a triangular law: below 0 with probability 2 * 0.2 ** 2.
    wrong = 2 * 0.2**2
    assert split.readers_differ.mean() == pytest.approx(2 * wrong * (1 - wrong), abs=0.01)
    assert np.mean(split.train_answers != split.y_train) == pytest.approx(0.2, abs=0.01)
    grades = np.array([[1, 2, 2, 2], [1, 2, 1, 1], [0, 3, 3, 1], [0, 0, 3, 0]])
    assert pairs_differ(grades, 1.5).tolist() == [True, False, True, False]


def test_at_the_decision_value_zero_the_answer_is_positive():
    assert signs_of(np.array([-1e-300, -0.0, 0.0, 1e-300])).tolist() == [-1, 1, 1, 1]


def test_stop_at_the_first_round_without_a_positive_score():
    split = synthetic_split("linear", 100, spread=0.8, seed=0)
    how = Selecting.of({**PARAMETERS, "protocol": "published", "submodularity_ratio": 1.0})
    on = Selecting.of({**PARAMETERS, "submodularity_ratio": 1.0})
    stopped, whole = (next(selections(split, 1.0, "distorted", (0.5,), each)) for each in (how, on))
    assert 0 < len(stopped.picks) < len(whole.picks)
    assert stopped.picks == whole.picks[: len(stopped.picks)]
    for chosen in (stopped, whole):  # the value is that of the samples that are deferred
        left = objective_of(split, 1.0)
        before = left.value
        for k in chosen.picks:
            left.remove(k)
        fall = before - left.value - split.loss[chosen.picks].sum()
        assert chosen.value == pytest.approx(fall, rel=1e-9)


def test_lambda_is_the_one_of_scikit_learn():
    split = synthetic_split("quadratic", 100, spread=0.2, seed=1)
    alphas = (0.1, 1.0, 10.0, 1000.0)
    folds = StratifiedKFold(5, shuffle=True, random_state=4)
    wrong = {}
    for alpha in alphas:
        wrong[alpha] = 0
        for train, test in folds.split(split.X_train, split.y_train):
            machine = SVC(C=1 / (2 * alpha * len(train)), **split.kernel, tol=1e-8)
            machine.fit(split.X_train[train], split.y_train[train])
            wrong[alpha] += np.sum(machine.predict(split.X_train[test]) != split.y_train[test])
    best = min(wrong.values())
    expected = max(alpha for alpha in alphas if wrong[alpha] == best)
    assert choose_alpha(split, alphas, 5, 4) == expected
    assert len(set(wrong.values())) > 1  # there was something to choose


def test_splits_are_stratified_and_draws_paired():
    few, many = (synthetic_split("linear", 200, spread=s, seed=9) for s in (0.2, 0.6))
    np.testing.assert_array_equal(few.X_train, many.X_train)
    # The same luck at a larger spread: every score moves to the wrong side by the same step.
    np.testing.assert_allclose(many.loss - few.loss, 0.4)
    assert (few.train_answers != few.y_train)[few.loss > 1].all()
    whole = np.concatenate([few.y_train, few.y_test])
    assert abs(few.y_test.mean() - whole.mean()) < 0.02
    assert not np.array_equal(synthetic_split("linear", 200, 0.2, 10).X_test, few.X_test)


def test_doctors_of_a_random_split(authors_data):
    one, again, other = (retina_split("stare", seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.answers, again.answers)
    assert not np.array_equal(one.X_test, other.X_test)
    assert len(one.train_answers) == len(one.readers_differ) == len(one.y_train)
    assert 0.05 < one.readers_differ.mean() < 0.4
    guessing = retina_split("stare", 0, uniform_weight=1.0)
    np.testing.assert_array_equal(guessing.X_test, one.X_test)
    assert guessing.loss.mean() > one.loss.mean()
