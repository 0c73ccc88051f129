"""Teams with more than two classes, and with grades."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

import deferlearn
from deferlearn import AssistedSVC, AssistedSVCCV, TeamCV
from deferlearn.objective import SumObjective, SVMObjective
from deferlearn.selection import distorted_greedy
from deferlearn.teams import (
    AdvantageTriage,
    AssistedTriage,
    CompareConfidence,
    CrossEntropySurrogate,
    DifferentiableTriage,
    FullAutomation,
    NoAutomation,
    OneVsAllSurrogate,
    PredictedErrorTriage,
    RealizableSurrogate,
    UncertaintyTriage,
)
from deferlearn.teams.blend import Blend

N, K = 150, 4
LEVELS = ["none", "mild", "moderate", "severe"]

TEAMS = {
    "full": FullAutomation(alpha=0.01),
    "none": NoAutomation(),
    "uncertainty": UncertaintyTriage(alpha=0.01),
    "rbf": UncertaintyTriage(alpha=0.01, kernel="rbf"),
    "in sample": UncertaintyTriage(alpha=0.01, cv=None),
    "advantage": AdvantageTriage(alpha=0.01),
    "expected cost": AdvantageTriage(machine_error="probability", human_error="truth"),
    "by region": AdvantageTriage(machine_error="forest", human_error="forest"),
    "predicted": PredictedErrorTriage(error_model=LogisticRegression()),
    "forest": AdvantageTriage(machine=RandomForestClassifier(20)),
    "bayes": UncertaintyTriage(machine=GaussianNB()),
    "decisions only": UncertaintyTriage(machine=LinearSVC()),
    "blend": UncertaintyTriage(machine=Blend([GaussianNB(), FullAutomation(alpha=0.01)])),
    "rounds": AssistedTriage(machine=LogisticRegression()),
    "assisted": AssistedSVC(alpha=0.01, budget=0.1),
    "assisted mlp": AssistedSVC(alpha=0.01, budget=0.1, policy=GaussianNB(), cv=2),
    "OvA": OneVsAllSurrogate(),
    "LCE": CrossEntropySurrogate(),
    "RS": RealizableSurrogate(),
    "CC": CompareConfidence(),
    "DT": DifferentiableTriage(),
    "search": AssistedSVCCV(
        alphas=[0.01, 0.1], kernels=["linear"], policies=["uncertainty", "margin"]
    ),
    "any machine": TeamCV(
        machines=["linear", "forest"], alphas=2, policies=["expected_cost", "advantage"]
    ),
}


def data(n=N, n_classes=K, seed=0, error=0.2):
    """Overlapping clouds on a line, so that classes are grades too; a human who errs by one at times."""
    rng = np.random.RandomState(seed)
    y = rng.randint(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    X = np.column_stack([y + 0.6 * rng.normal(size=n), rng.normal(size=n)])
    wrong = rng.uniform(size=n) < error
    said = np.where(wrong, np.clip(y + rng.choice([-1, 1], size=n), 0, n_classes - 1), y)
    return X, y, said


def team_of(name, **more):
    team = clone(TEAMS[name])
    own = team.get_params(deep=False)
    return team.set_params(**{k: v for k, v in {"random_state": 0, **more}.items() if k in own})


def fit(team, X, y, said):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return team.fit(X, y, human_labels=said)


@pytest.mark.parametrize("graded", [False, True], ids=["classes", "grades"])
@pytest.mark.parametrize("name", TEAMS)
def test_every_team_answers_defers_and_knows_probabilities(name, graded):
    X, y, said = data()
    labels = np.array(LEVELS)
    new, truth, asked = data(seed=1)
    team = fit(team_of(name, classes=LEVELS if graded else "auto"), X, labels[y], labels[said])
    order = LEVELS if graded and hasattr(team, "classes") else sorted(LEVELS)
    assert team.classes_.tolist() == order
    answers = team.predict(new)
    assert set(answers) <= set(LEVELS)
    deferred = team.defer(new)
    assert deferred.shape == (N,)
    assert team.deferral_score(new).shape == (N,)
    together = team.predict_assisted(new, labels[asked])
    np.testing.assert_array_equal(together, np.where(deferred, labels[asked], answers))
    assert team.score_assisted(new, labels[truth], labels[asked]) == np.mean(
        together == labels[truth]
    )
    if name == "in sample":
        assert not hasattr(team, "predict_proba")
        return
    p = team.predict_proba(new)
    assert p.shape == (N, K)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()
    if name != "none":  # it knows no case from another
        places = [order.index(label) for label in labels[truth]]
        assert -np.log(p[np.arange(N), places]).mean() < np.log(K)
        assert np.mean(answers == labels[truth]) > 0.5


@pytest.mark.parametrize("name", [n for n in TEAMS if n not in ("none",)])
def test_the_likeliest_class_is_the_answer(name):
    """Where all errors cost the same; but the probabilities of in-sample teams are not known."""
    X, y, said = data(seed=2)
    team = fit(team_of(name), X, y, said)
    if hasattr(team, "predict_proba"):
        p = team.predict_proba(X)
        best = p.max(axis=1)
        np.testing.assert_allclose(p[np.arange(N), team.predict(X)], best, atol=1e-12)


@pytest.mark.parametrize("name", ["assisted", "uncertainty"])
def test_the_grade_that_is_expected_to_be_off_least_is_the_answer(name):
    X, y, said = data(seed=2)
    team = fit(team_of(name, classes="grades"), X, y, said)
    places = np.arange(K)
    off = team.predict_proba(X) @ np.abs(places[:, None] - places)
    np.testing.assert_allclose(off[np.arange(N), team.predict(X)], off.min(axis=1), atol=1e-4)


@pytest.mark.parametrize(
    "name", ["uncertainty", "advantage", "assisted", "blend", "OvA", "any machine"]
)
def test_stored_and_loaded(name, tmp_path):
    X, y, said = data()
    team = fit(team_of(name), X, y, said)
    deferlearn.save(team, tmp_path / "team.skops")
    again = deferlearn.load(tmp_path / "team.skops")
    np.testing.assert_array_equal(again.predict(X), team.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), team.predict_proba(X))
    np.testing.assert_array_equal(again.defer(X), team.defer(X))


# -- witnesses ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_machine_is_one_against_the_rest(kernel):
    """Against scikit-learn's SVC in its own one-vs-rest wrapper."""
    X, y, _ = data()
    alpha, gamma = 0.02, 0.5
    ours = FullAutomation(alpha=alpha, kernel=kernel, gamma=gamma, cv=None).fit(X, y)
    svc = SVC(C=1 / (2 * alpha * N), kernel=kernel, gamma=gamma, tol=1e-6)
    theirs = OneVsRestClassifier(svc).fit(X, y)
    raw = ours._machine.machine.decision_function(X)
    np.testing.assert_allclose(raw, theirs.decision_function(X), atol=1e-4)
    if kernel == "linear":
        np.testing.assert_allclose(raw, X @ ours.coef_.T + ours.intercept_, atol=1e-12)
        assert ours.coef_.shape == (K, 2)


def test_grades_are_cumulative_machines():
    X, y, _ = data()
    ours = FullAutomation(alpha=0.02, classes="grades", cv=None).fit(X, y)
    raw = ours._machine.machine.decision_function(X)
    for step in range(1, K):
        svc = SVC(C=1 / (2 * 0.02 * N), kernel="linear", tol=1e-6).fit(
            X, np.where(y >= step, 1, -1)
        )
        np.testing.assert_allclose(raw[:, step - 1], svc.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("graded", [False, True])
def test_assisted_training_minimises_the_sum(graded):
    """The picks are those of distorted greedy on the sum of the machines' objectives."""
    X, y, said = data(60)
    clf = AssistedSVC(
        budget=6, alpha=0.05, submodularity_ratio=0.5, cv=None,
        classes="grades" if graded else "auto",
    )  # fmt: skip
    clf.fit(X, y, human_labels=said)
    cost = 2.0 * np.abs(y - said) if graded else 4.0 * (y != said)
    np.testing.assert_allclose(clf.human_loss_, cost)
    codes = np.arange(1, K) if graded else np.arange(K)
    signs = [np.where(y >= k, 1.0, -1.0) if graded else np.where(y == k, 1.0, -1.0) for k in codes]
    objective = SumObjective([SVMObjective(X, s, alpha=0.05) for s in signs], labels=y)
    found = distorted_greedy(objective, cost, 6, 0.5)
    np.testing.assert_array_equal(clf.deferred_indices_, found.order)
    np.testing.assert_allclose(clf.selection_.value, found.value, rtol=1e-9)
    kept = ~clf.deferred_
    m = kept.sum()
    for k, s in enumerate(signs):
        svc = SVC(C=1 / (2 * 0.05 * m), kernel="linear", tol=1e-6).fit(X[kept], s[kept])
        np.testing.assert_allclose(
            clf.decision_function(X)[:, k], svc.decision_function(X), atol=1e-4
        )
    report = clf.certify()
    assert report.value <= report.optimum.value


def test_two_of_the_classes_alone_are_the_two_class_team():
    """With K = 2 nothing changes: no sum, the same scale."""
    X, y, said = data(n_classes=2)
    one = fit(AssistedSVC(alpha=0.05, random_state=0), X, y, said)
    two = fit(AssistedSVC(alpha=0.05, random_state=0, classes="grades"), X, y, said)
    np.testing.assert_array_equal(one.deferred_, two.deferred_)
    assert one.decision_function(X).shape == (N,)


def test_the_answer_of_least_expected_cost():
    X, y, said = data(400)
    costs = np.array([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [50, 50, 50, 0]], dtype=float)
    plain = fit(AdvantageTriage(alpha=0.01, random_state=0), X, y, said)
    dear = fit(AdvantageTriage(alpha=0.01, cost_matrix=costs, random_state=0), X, y, said)
    p = dear.predict_proba(X)
    np.testing.assert_array_equal(dear.predict(X), (p @ costs).argmin(axis=1))
    found = [np.mean(team.predict(X)[y == 3] == 3) for team in (plain, dear)]
    assert found[1] > found[0]
    cost = [costs[y, team.predict(X)].mean() for team in (plain, dear)]
    assert cost[1] < cost[0]


def test_expected_errors_are_those_of_a_simulation():
    """Classes by known probabilities: what is expected is what happens."""
    rng = np.random.RandomState(0)
    n = 6000
    X = rng.normal(size=(n, 2))
    p = softmax(np.column_stack([2 * X[:, 0], -X[:, 0] + X[:, 1], 0 * X[:, 0]]), axis=1)
    y = (rng.uniform(size=n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    wrong = rng.uniform(size=n) < np.array([0.05, 0.3, 0.1])[y]
    said = np.where(wrong, (y + 1) % 3, y)
    team = AdvantageTriage(
        machine=LogisticRegression(),
        machine_error="probability",
        human_error="truth",
        random_state=0,
    ).fit(X[:3000], y[:3000], human_labels=said[:3000])
    new = slice(3000, n)
    machine, human = team.expected_errors(X[new])
    np.testing.assert_allclose(machine, 1 - p[new].max(axis=1), atol=0.05)
    np.testing.assert_allclose(human, p[new] @ [0.05, 0.3, 0.1], atol=0.03)
    np.testing.assert_allclose(team.predict_proba(X[new]), p[new], atol=0.06)
    assert abs(np.mean(team.predict(X[new]) != y[new]) - machine.mean()) < 0.02


# -- weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["full", "assisted", "OvA", "forest", "advantage"])
def test_weights_of_samples_count_like_weights_of_classes(name):
    X, y, said = data()
    weight = np.array([1.0, 2.0, 5.0, 1.0])
    by_class = fit(team_of(name, class_weight=dict(enumerate(weight))), X, y, said)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        by_sample = team_of(name).fit(X, y, human_labels=said, sample_weight=weight[y])
    np.testing.assert_allclose(
        by_class.decision_function(X), by_sample.decision_function(X), atol=1e-9
    )


def test_a_machine_that_counts_a_sample_twice():
    """Against the same sample given twice."""
    X, y, _ = data(60)
    twice = np.arange(60) % 3 == 0
    weighted = FullAutomation(alpha=0.05, cv=None).fit(X, y, sample_weight=1.0 + twice)
    doubled = FullAutomation(alpha=0.05, cv=None).fit(
        np.vstack([X, X[twice]]), np.concatenate([y, y[twice]])
    )
    np.testing.assert_allclose(weighted.coef_, doubled.coef_, atol=1e-8)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"shape \(3,\), but X has 60 rows"),
        (np.zeros(60), "at least one non-zero"),
        (np.where(np.arange(60) == 7, -1.0, 1.0), "got -1 at row 7"),
        (np.where(np.arange(60) == 7, np.nan, 1.0), "got nan at row 7"),
        (["much"] * 60, "must hold numbers"),
    ],
)
def test_bad_weights(weights, message):
    X, y, _ = data(60)
    with pytest.raises(ValueError, match=message):
        FullAutomation().fit(X, y, sample_weight=weights)


# -- scores that are given ---------------------------------------------------------------------


def test_given_probabilities_of_every_class():
    X, y, said = data(400)
    new, truth, _ = data(400, seed=1)
    forest = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(
        *data(400, seed=5)[:2]
    )
    team = UncertaintyTriage(random_state=0).fit(
        X, y, human_labels=said, machine_scores=forest.predict_proba(X)
    )
    scores = forest.predict_proba(new)
    answers = team.predict(new, machine_scores=scores)
    assert np.mean(answers == truth) > 0.6
    p = team.predict_proba(new, machine_scores=scores)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    search = TeamCV(policies=["expected_cost", "uncertainty"], random_state=0)
    search.fit(X, y, human_labels=said, machine_scores=forest.predict_proba(X))
    assert search.n_features_in_ == 2
    assert search.predict(new, machine_scores=scores).shape == (400,)


def test_scores_in_another_order_of_the_classes():
    X, y, said = data()
    p = np.full((N, K), 1 / K)
    named = pd.DataFrame(p, columns=[3, 2, 1, 0])
    with pytest.raises(
        ValueError, match=r"columns 3, 2, 1, 0, but the order of the classes is 0, 1, 2, 3"
    ):
        UncertaintyTriage().fit(X, y, human_labels=said, machine_scores=named)
    read = named.set_axis(["3", "2", "1", "0"], axis=1)  # from a file
    with pytest.raises(ValueError, match=r"give machine_scores\[\['0', '1', '2', '3'\]\]"):
        UncertaintyTriage().fit(X, y, human_labels=said, machine_scores=read)
    with pytest.raises(ValueError, match="give a column for each of the 4 classes"):
        UncertaintyTriage().fit(X, y, human_labels=said, machine_scores=p[:, :2])


# -- what is rare or missing -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["full", "advantage", "assisted", "forest", "OvA", "CC", "any machine"]
)
def test_a_class_with_one_sample(name):
    X, y, said = data(60)
    y[y == 2] = 1
    said[said == 2] = 1
    y[10] = said[10] = 2
    team = fit(team_of(name), X, y, said)
    assert team.classes_.tolist() == [0, 1, 2, 3]
    assert team.predict_proba(X).shape == (60, 4)


def test_humans_take_a_whole_class():
    X, y = make_blobs(60, centers=[[0, 0], [4, 0], [2, 2]], cluster_std=0.3, random_state=0)
    keep = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:3]])
    X, y = X[keep], y[keep]
    loss = np.where(y == 2, 0.0, 4.0)
    clf = AssistedSVC(budget=3, alpha=0.001, cv=None)
    with pytest.warns(UserWarning, match="all 3 samples of class 2: the machine never answers 2"):
        clf.fit(X, y, human_loss=loss)
    assert set(clf.predict(X)) == {0, 1}
    floor = AssistedSVC(budget=3, alpha=0.001, cv=None, min_kept_per_class=1)
    assert (y[~floor.fit(X, y, human_loss=loss).deferred_] == 2).any()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_everything_deferred_leaves_the_majority():
    X, y, _ = data(40)
    y[:25] = 2
    clf = AssistedSVC(budget=1.0, alpha=10.0).fit(X, y, human_labels=y)
    if clf.deferred_.all():
        assert set(clf.predict(X)) == {2}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("metric", ["error", "macro_f1", "quadratic_kappa", "grade_error"])
def test_a_search_by_other_metrics(metric):
    X, y, said = data()
    labels = np.array(LEVELS)
    search = AssistedSVCCV(
        alphas=[0.01, 1.0], kernels=["linear"], policies=["uncertainty", "automation"],
        scoring=metric, classes=LEVELS, random_state=0,
    )  # fmt: skip
    search.fit(X, labels[y], human_labels=labels[said])
    assert np.isfinite(search.best_score_)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_cost_by_name_is_that_of_the_search():
    X, y, said = data()
    options = {
        "alphas": [0.1], "kernels": ["linear"], "policies": ["uncertainty"], "random_state": 0,
        "cost_matrix": [[0, 1, 1, 2], [4, 0, 1, 1], [9, 3, 0, 1], [8, 8, 2, 0]], "deferral_cost": 0.3,
    }  # fmt: skip
    named = AssistedSVCCV(scoring="cost", **options).fit(X, y, human_labels=said)
    default = AssistedSVCCV(**options).fit(X, y, human_labels=said)
    # Means of folds of equal sizes: the same figure by two routes.
    assert named.best_score_ == pytest.approx(default.best_score_, rel=1e-9)
    cheap = AssistedSVCCV(scoring="error", **options).fit(X, y, human_labels=said)
    assert named.best_score_ < cheap.best_score_ - 0.05


def test_a_search_spends_less_than_the_budget_where_that_is_better():
    """The human knows only the cases of which the machine is least sure, so few of them."""
    rng = np.random.RandomState(0)
    n = 900
    x = rng.uniform(0, 3, size=n)
    y = np.digitize(x + 0.1 * rng.normal(size=n), [1.0, 2.0])
    near = np.minimum(np.abs(x - 1), np.abs(x - 2)) < 0.08
    said = np.where(near, y, rng.randint(3, size=n))
    options = {
        "machines": ["linear"],
        "alphas": [0.0003],
        "policies": ["uncertainty", "automation"],
    }
    search = TeamCV(0.6, **options, random_state=0).fit(x[:, None], y, human_labels=said)
    assert search.best_params_["policy"] == "uncertainty"
    assert search.deferral_rate_ == pytest.approx(0.15)
    assert search.score_assisted(x[:, None], y, said) > search.score(x[:, None], y)


@pytest.mark.parametrize("machine", [LogisticRegression(), RandomForestClassifier(10)])
def test_two_classes_need_no_order(machine):
    X, y, said = data(n_classes=2)
    labels = np.array(["well", "sick"])  # the alphabet has it the other way round
    team = fit(
        UncertaintyTriage(machine=machine, classes=["well", "sick"], random_state=0),
        X, labels[y], labels[said],
    )  # fmt: skip
    assert team.classes_.tolist() == ["sick", "well"]
    assert team.score(X, labels[y]) > 0.7


def test_costs_of_errors_do_not_depend_on_the_order_of_the_samples():
    X, y, said = data()
    weight = np.random.RandomState(3).uniform(0.1, 1.0, size=N)
    order = np.random.RandomState(4).permutation(N)
    one, other = (
        CompareConfidence(cv=None, random_state=0).fit(
            X[rows], y[rows], human_labels=said[rows], sample_weight=weight[rows]
        )
        for rows in (np.arange(N), order)
    )
    np.testing.assert_allclose(one.deferral_score(X), other.deferral_score(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(6))
def test_a_class_that_humans_take_is_never_the_machines_answer(kernel, seed):
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(60, 2)), rng.randint(5, size=60)
    loss = np.where(y == 4, 0.0, 4.0)
    clf = AssistedSVC(0.3, alpha=0.001, kernel=kernel, cv=None).fit(X, y, human_loss=loss)
    lost = [k for k in range(5) if not (y[~clf.deferred_] == k).any()]
    assert not set(lost) & set(clf.predict(rng.normal(size=(2000, 2))))


def test_a_loss_that_is_given_is_what_the_human_costs():
    """With a cost matrix, too: it says what machines cost."""
    X, y, said = data()
    costs = 1.0 + np.arange(16.0).reshape(4, 4)
    np.fill_diagonal(costs, 0.0)
    options = {"alpha": 0.05, "budget": 0.1, "cost_matrix": costs, "random_state": 0, "cv": None}
    by_label = AssistedSVC(**options).fit(X, y, human_labels=said)
    by_loss = AssistedSVC(**options).fit(X, y, human_loss=4.0 * costs[y, said])
    np.testing.assert_allclose(by_label.human_loss_, 4.0 * costs[y, said])
    np.testing.assert_allclose(by_loss.human_loss_, by_label.human_loss_)


def test_costs_in_another_order_of_the_classes():
    X, y, _ = data()
    labels = np.array(LEVELS)
    frame = pd.DataFrame(1.0 - np.eye(4), index=LEVELS[::-1], columns=LEVELS[::-1])
    with pytest.raises(ValueError, match="cost_matrix has the index 'severe', 'moderate', 'mild'"):
        FullAutomation(cost_matrix=frame, classes=LEVELS).fit(X, labels[y])
    FullAutomation(cost_matrix=frame.loc[LEVELS, LEVELS], classes=LEVELS, cv=None).fit(X, labels[y])
    # Numbers of rows say nothing, other names are those of other classes.
    plain = pd.DataFrame(np.asarray(frame.loc[LEVELS, LEVELS]))
    FullAutomation(cost_matrix=plain, classes=LEVELS, cv=None).fit(X, labels[y])
    strange = plain.set_axis(["a", "b", "c", "d"], axis=1)
    with pytest.raises(ValueError, match="has the columns 'a', 'b', 'c', 'd', but the classes are"):
        FullAutomation(cost_matrix=strange, classes=LEVELS).fit(X, labels[y])


class SureOfNothing(ClassifierMixin, BaseEstimator):
    """A team of other authors, whose classes are sorted."""

    def __init__(self, budget=0.2):
        self.budget = budget

    def fit(self, X, y, human_labels=None):
        self.model_ = GaussianNB().fit(X, y)
        self.classes_, self.deferral_rate_, self.deferral_threshold_ = (
            self.model_.classes_,
            0.0,
            np.inf,
        )
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def decision_function(self, X):
        return self.model_.predict_joint_log_proba(X)

    def deferral_score(self, X):
        return np.zeros(len(X))

    def predict_assisted(self, X, human_labels):
        return self.predict(X)


def test_a_winner_of_other_authors_has_an_order_of_its_own():
    X, y, said = data()
    search = TeamCV(
        machines=["linear"],
        alphas=[0.1],
        policies=[SureOfNothing()],
        classes=[2, 0, 1, 3],
        random_state=0,
    )
    fit(search, X, y, said)
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    assert search.best_score_ > -0.6


def test_a_machine_with_pairwise_decisions_is_refused():
    X, y, said = data()
    machine = SVC(decision_function_shape="ovo")
    with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
        UncertaintyTriage(machine=machine).fit(X, y, human_labels=said)


def test_iris_with_boosting():
    X, y = load_iris(return_X_y=True)
    team = AdvantageTriage(machine=HistGradientBoostingClassifier(max_iter=20), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        team.fit(X[::2], y[::2], human_labels=y[::2])
    assert team.score(X[1::2], y[1::2]) > 0.85
