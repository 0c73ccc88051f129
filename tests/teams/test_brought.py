"""Any scikit-learn classifier as the machine of a team, against loops with scikit-learn alone."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import deferlearn
from brought import (
    HUMAN,
    NEW,
    SPLITS,
    Counting,
    CountingWeights,
    N,
    X,
    Y,
    held_out_log_odds,
    held_out_raw,
    log_odds_by_hand,
    platt,
)
from conventions import WEIGHTS
from deferlearn import AssistedSVC
from deferlearn.teams import (
    AdvantageTriage,
    AssistedTriage,
    FullAutomation,
    PredictedErrorTriage,
    TeamCV,
    UncertaintyTriage,
)
from deferlearn.teams.brought import Calibration, calibrate
from deferlearn.teams.machine_arrays import MachineError, log_odds

MACHINES = {
    "both methods": LogisticRegression(C=0.5),
    "probabilities": GaussianNB(),
    "decisions": RidgeClassifier(),
    "pipeline": make_pipeline(StandardScaler(), SVC(C=2.0)),
    "forest": RandomForestClassifier(15, random_state=3),
    "boosting": HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5, random_state=3),
}
TEAMS = {
    "full": FullAutomation(),
    "uncertainty": UncertaintyTriage(),
    "advantage": AdvantageTriage(),
    "predicted": PredictedErrorTriage(error_model=LogisticRegression()),
    "assisted": AssistedTriage(max_rounds=1),
}


SLOW = pytest.mark.slow


def team(name, machine, **options):
    options = {"cv": SPLITS, "random_state": 0, "machine": machine, **options}
    return clone(TEAMS[name]).set_params(**options)


def fitted(name, machine, X=X, y=Y, human=HUMAN, **options):
    return team(name, machine, **options).fit(X, y, human_labels=human)


# -- what it says -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MACHINES)
def test_decision_values_are_calibrated_log_odds(kind):
    expected = log_odds_by_hand(MACHINES[kind], X, Y, SPLITS, NEW)
    clf = fitted("full", MACHINES[kind])
    assert_allclose(clf.decision_function(NEW), expected, rtol=1e-6, atol=1e-8)
    assert_array_equal(clf.predict(NEW), (expected > 0).astype(int))
    assert not clf.defer(NEW).any()


@pytest.mark.parametrize("name", ["uncertainty", "advantage", "predicted"])
@pytest.mark.parametrize("kind", ["probabilities", "forest"])
def test_all_triages_have_the_same_machine(name, kind):
    expected = log_odds_by_hand(MACHINES[kind], X, Y, SPLITS, NEW)
    clf = fitted(name, MACHINES[kind])
    assert_allclose(clf.decision_function(NEW), expected, rtol=1e-6, atol=1e-8)
    if name == "uncertainty":
        assert_allclose(clf.deferral_score(NEW), -np.abs(expected), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["probabilities", "decisions", "forest"])
def test_held_out_values_are_by_machines_and_curves_that_have_not_seen_them(kind):
    machine = MACHINES[kind]
    search = TeamCV(machines=[machine], cv=SPLITS, random_state=0).open_search(
        X, Y, human_labels=HUMAN
    )
    margin, own = search.context.with_machine(search.machines[0]).margins()
    expected = held_out_log_odds(machine, X, Y, SPLITS)
    assert_allclose(margin, expected, rtol=1e-6, atol=1e-8)
    raw = held_out_raw(machine, X, Y, SPLITS)
    for (train, _), part in zip(
        SPLITS, own, strict=True
    ):  # so are "its own": it may know them by heart
        by_hand = platt(raw[train], Y[train], None, raw[train])
        assert_allclose(part, by_hand, rtol=1e-6, atol=1e-8)


def test_the_advantage_is_learned_from_held_out_answers():
    """A tree is always right about its own samples; the expected errors know better."""
    clf = fitted("advantage", DecisionTreeClassifier(random_state=0), use_full_budget=True)
    machine, _ = clf.expected_errors(X)
    margin = held_out_log_odds(DecisionTreeClassifier(random_state=0), X, Y, SPLITS)
    assert clf.machine_.score(X, Y) == 1.0
    assert machine.mean() == pytest.approx(np.mean((margin > 0) != Y), abs=0.08)
    assert machine.mean() > 0.1


def test_labels_of_any_type():
    names = np.array(["benign", "malign"])
    clf = fitted("advantage", GaussianNB(), y=names[Y], human=names[HUMAN])
    other = fitted("advantage", GaussianNB())
    assert_array_equal(clf.predict(NEW), names[other.predict(NEW)])
    assert_array_equal(clf.defer(NEW), other.defer(NEW))
    assert clf.classes_.tolist() == names.tolist()
    assert clf.machine_.classes_.tolist() == names.tolist()
    yes = fitted("advantage", GaussianNB(), y=Y == 1, human=HUMAN == 1)
    assert_array_equal(yes.predict(NEW), other.predict(NEW) == 1)


def test_our_svm_is_solved_by_the_engine_also_as_a_machine_that_is_brought():
    svm = FullAutomation(alpha=0.05, kernel="rbf", gamma=0.4)
    options = {"alpha": 0.05, "kernel": "rbf", "gamma": 0.4}
    paper = AssistedSVC(0.0, cv=None, **options).fit(X, Y)
    assert_allclose(
        fitted("full", svm).decision_function(NEW), paper.decision_function(NEW), atol=1e-9
    )
    for name in ("uncertainty", "advantage"):
        brought, own = fitted(name, svm), fitted(name, None, **options)
        assert_allclose(brought.decision_function(NEW), own.decision_function(NEW), atol=1e-12)
        assert_array_equal(brought.defer(NEW), own.defer(NEW))
        assert_array_equal(brought.support_, own.support_)


# -- class weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["both methods", "probabilities"])
def test_weights_reach_machine_and_curve(kind):
    weights = np.where(Y == 1, 3.0, 1.0)
    expected = log_odds_by_hand(MACHINES[kind], X, Y, SPLITS, NEW, weights, weights)
    clf = fitted("full", MACHINES[kind], class_weight={0: 1.0, 1: 3.0})
    assert_allclose(clf.decision_function(NEW), expected, rtol=1e-5, atol=1e-6)


def test_weights_reach_the_curve_where_the_machine_takes_none():
    knn = KNeighborsClassifier(9)
    weights = np.where(Y == 1, 3.0, 1.0)
    expected = log_odds_by_hand(knn, X, Y, SPLITS, NEW, weights)
    clf = fitted("full", knn, class_weight={0: 1.0, 1: 3.0})
    assert_allclose(clf.decision_function(NEW), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("machine", [LogisticRegression(), KNeighborsClassifier(150)], ids=str)
def test_the_dearer_error_is_avoided(machine):
    """With errors on the second class four times as dear, it is the answer from a chance of 1/5 on."""
    rng = np.random.RandomState(0)
    A = rng.uniform(-3, 3, size=(3000, 1))
    truth = 1 / (1 + np.exp(-A[:, 0]))
    y = (rng.rand(len(A)) < truth).astype(int)
    grid = np.linspace(-2.5, 2.5, 401)[:, None]
    plain = FullAutomation(machine=machine, random_state=0).fit(A, y)
    clf = FullAutomation(machine=machine, class_weight={0: 1.0, 1: 4.0}, random_state=0).fit(A, y)
    for fit, boundary in ((plain, 0.0), (clf, -np.log(4.0))):
        crossing = grid[np.argmin(np.abs(fit.decision_function(grid))), 0]
        assert crossing == pytest.approx(boundary, abs=0.25)
    cost = np.where(clf.predict(A) == 1, 1 - truth, 4 * truth).mean()
    best = np.minimum(1 - truth, 4 * truth).mean()
    unaware = np.where(plain.predict(A) == 1, 1 - truth, 4 * truth).mean()
    assert best <= cost < best + 0.01 < unaware


def test_weights_are_given_only_where_they_differ_and_are_taken():
    for machine, class_weight, weighted in [
        (CountingWeights(), None, False),
        (CountingWeights(), {0: 1.0, 1: 2.0}, True),
        (Counting(), {0: 1.0, 1: 2.0}, False),
    ]:
        Counting.fits.clear()
        fitted("uncertainty", machine, class_weight=class_weight)
        assert sorted(size for size, _ in Counting.fits) == [60, 60, 60, 90]
        for size, weights in Counting.fits:
            assert (weights is not None) == weighted
            assert weights is None or (set(weights) == {1.0, 2.0} and len(weights) == size)


# -- the rate of `defer` ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine",
    [
        RandomForestClassifier(12, n_jobs=1),
        HistGradientBoostingClassifier(max_iter=12),
        DecisionTreeClassifier(),  # knows its samples by heart, and is equally sure of all
        KNeighborsClassifier(1),
        LogisticRegression(),
    ],
    ids=lambda machine: type(machine).__name__,
)
@pytest.mark.parametrize("name", ["uncertainty", "advantage"])
def test_the_rate_is_the_budget(machine, name):
    """On average over draws, however well the machine remembers its samples."""
    if name == "advantage" and isinstance(machine, KNeighborsClassifier):
        pytest.skip("as for the tree")
    rates, promised = [], []
    for seed in range(8):
        rng = np.random.RandomState(seed)
        A = rng.normal(size=(150 + 1000, 3))
        y = np.where(A[:, 0] + A[:, 1] * A[:, 2] + 0.7 * rng.normal(size=len(A)) > 0, 1, 0)
        human = np.where(rng.rand(len(A)) < 0.02, 1 - y, y)
        clf = clone(TEAMS[name]).set_params(budget=0.2, machine=machine, random_state=seed, cv=5)
        if name == "advantage":
            clf.set_params(use_full_budget=True)
        clf.fit(A[:150], y[:150], human_labels=human[:150])
        rates.append(clf.defer(A[150:]).mean())
        promised.append(clf.deferral_rate_)
    assert promised == [0.2] * 8
    spread = np.std(rates, ddof=1) / np.sqrt(len(rates))
    assert np.mean(rates) == pytest.approx(0.2, abs=0.02 + 2 * spread)
    assert spread < 0.03


# -- seeds, jobs, copies ----------------------------------------------------------------------


def test_a_seed_makes_everything_repeatable():
    forest = RandomForestClassifier(8)
    first, second, other = (fitted("advantage", forest, random_state=s, cv=3) for s in (1, 1, 2))
    assert_array_equal(first.decision_function(NEW), second.decision_function(NEW))
    assert_array_equal(first.defer(NEW), second.defer(NEW))
    assert (first.decision_function(NEW) != other.decision_function(NEW)).any()
    assert forest.random_state is None  # what was given is left as it is
    assert not hasattr(forest, "estimators_")
    jobs = fitted("advantage", forest, random_state=1, cv=3, n_jobs=2)
    assert_array_equal(first.decision_function(NEW), jobs.decision_function(NEW))
    assert_array_equal(first.defer(NEW), jobs.defer(NEW))


def test_a_seed_of_its_own_is_kept():
    clf = fitted("full", RandomForestClassifier(5, random_state=7), random_state=1)
    assert clf.machine_.random_state == 7


@pytest.mark.parametrize("name", TEAMS)
def test_parameters_and_copies(name, tmp_path):
    clf = team(name, RandomForestClassifier(6))
    assert clf.get_params()["machine__n_estimators"] == 6
    clf.set_params(machine__n_estimators=4)
    assert clf.machine.n_estimators == 4
    other = clone(clf)
    assert other.machine is not clf.machine
    assert repr(other) == repr(clf)
    clf.fit(X, Y, human_labels=HUMAN)
    assert len(clf.machine_.estimators_) == 4
    deferlearn.save(clf, tmp_path / "team.skops")
    again = [
        pickle.loads(pickle.dumps(clf)),
        deferlearn.load(tmp_path / "team.skops"),
        other.fit(X, Y, human_labels=HUMAN),
    ]
    for copy in again:
        assert_array_equal(copy.decision_function(NEW), clf.decision_function(NEW))
        assert_array_equal(copy.deferral_score(NEW), clf.deferral_score(NEW))
        assert_array_equal(copy.defer(NEW), clf.defer(NEW))
        assert_array_equal(copy.defer_top(NEW, 9), clf.defer_top(NEW, 9))


@pytest.mark.parametrize("kind", ["both methods", "probabilities", "pipeline", "boosting"])
def test_every_kind_can_be_stored(kind, tmp_path):
    clf = fitted("uncertainty", MACHINES[kind])
    deferlearn.save(clf, tmp_path / "team.skops")
    assert_array_equal(deferlearn.load(tmp_path / "team.skops").defer(NEW), clf.defer(NEW))


@pytest.mark.parametrize(
    "name", [name if name == "advantage" else pytest.param(name, marks=SLOW) for name in TEAMS]
)
def test_scikit_learns_conventions(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the checks' tiny data
        check_estimator(
            team(name, LogisticRegression(), cv=2), on_skip=None, expected_failed_checks=WEIGHTS
        )


def test_what_is_of_an_svm_and_what_of_others():
    clf = fitted("uncertainty", GaussianNB())
    assert isinstance(clf.machine_, GaussianNB)
    for name in ("coef_", "intercept_", "dual_coef_", "support_", "support_vectors_"):
        assert not hasattr(clf, name)
        with pytest.raises(
            AttributeError, match=f"{name} exists for a team whose machine is an SVM"
        ):
            getattr(clf, name)
    assert clf.decider() is None
    svm = fitted("uncertainty", None)
    assert svm.coef_.shape == (1, 3)
    with pytest.raises(AttributeError, match="machine_ exists for machines other than SVMs"):
        _ = svm.machine_
    assert not hasattr(UncertaintyTriage(), "machine_")


def test_sparse_cases():
    few = np.round(X) * (np.abs(X) > 0.5)
    for name in ("full", "uncertainty", "advantage"):
        dense = fitted(name, LogisticRegression(), X=few)
        sparse = fitted(name, LogisticRegression(), X=sp.csr_array(few))
        assert_allclose(
            sparse.decision_function(sp.csr_array(NEW)), dense.decision_function(NEW), atol=1e-3
        )
        assert sparse.__sklearn_tags__().input_tags.sparse
    assert not team("full", GaussianNB()).__sklearn_tags__().input_tags.sparse
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        fitted("full", GaussianNB(), X=sp.csr_array(few))


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEAMS)
@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (LogisticRegression, "is a class; give an instance"),
        ("forest", "must be a scikit-learn classifier or None"),
        (LinearRegression(), "must be a scikit-learn classifier or None"),
        (3, "must be a scikit-learn classifier or None"),
        (AdvantageTriage(), "is a team itself"),
        (AssistedSVC(), "is a team itself"),
        (TeamCV(), "is a team itself"),
        (
            VotingClassifier([("a", GaussianNB())], voting="hard"),
            "neither decision_function nor predict_proba",
        ),
    ],
    ids=str,
)
def test_what_is_no_machine_is_refused(name, machine, message):
    with pytest.raises(ValueError, match=message):
        fitted(name, machine)


@pytest.mark.parametrize("name", ["full", "uncertainty", "predicted"])
def test_folds_are_needed(name):
    with pytest.raises(ValueError, match="cv=None: the machine's scores are calibrated"):
        fitted(name, GaussianNB(), cv=None)
    assert fitted(name, None, cv=None).predict(NEW).shape == (150,)


def test_a_machine_that_fails_says_why():
    class Broken(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("out of order")

    with pytest.raises(MachineError, match=r"Broken\(\) cannot be fitted: out of order") as caught:
        fitted("uncertainty", Broken())
    assert isinstance(caught.value.__cause__, RuntimeError)
    # A search goes on without it, and says so.
    search = TeamCV(machines=["linear", Broken()], policies=["uncertainty"], alphas=[0.1])
    with pytest.warns(FitFailedWarning, match=r"Left out: uncertainty, Broken\. Broken\(\) cannot"):
        search.fit(X, Y, human_labels=HUMAN)
    assert set(search.cv_results_["param_machine"]) == {"linear SVM"}
    with pytest.warns(FitFailedWarning), pytest.raises(MachineError, match="out of order"):
        TeamCV(machines=[Broken()], policies=["uncertainty"]).fit(X, Y, human_labels=HUMAN)


def test_the_curve_of_a_machine_never_falls():
    """A machine that is wrong more often than right knows nothing; the curve of given scores may fall."""
    scores, y = np.linspace(-1, 1, 50), np.where(np.arange(50) < 25, 1.0, -1.0)
    flat = calibrate(scores, y, np.where(y > 0, 3.0, 1.0))
    assert flat.slope == 0.0
    assert flat.offset == pytest.approx(np.log(3.0))
    assert calibrate(scores, y, np.ones(50), rising=False).slope < 0
    assert calibrate(-scores, y, np.ones(50)).slope > 0


# -- odd data ---------------------------------------------------------------------------------


def test_a_machine_that_knows_nothing():
    """Its decision is the log-odds of the classes; who is asked is left to the coin."""
    clf = fitted("uncertainty", DummyClassifier(strategy="uniform"), budget=0.3)
    expected = np.log(Y.sum() / (N - Y.sum()))
    assert_allclose(clf.decision_function(NEW), expected, atol=1e-2)
    assert len(set(clf.decision_function(NEW))) == 1
    assert clf.defer(NEW).mean() == pytest.approx(0.3, abs=0.12)


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 7.3e8, -1e-9, 0.0])
@pytest.mark.parametrize("n", [7, 10, 1000])
def test_equal_scores_have_no_slope(constant, n):
    """Their mean differs from them by rounding, which is no spread."""
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    curve = calibrate(np.full(n, constant), y, np.ones(n))
    near = np.array([constant, constant * (1 + 1e-9), constant * (1 - 1e-9)])
    expected = np.log((y > 0).sum() / (y < 0).sum())
    assert_allclose(curve(near), expected, atol=1e-2)


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e12, 1e200, 1e307])
def test_scores_of_any_size(size):
    scores = np.linspace(-1, 1, 40)
    y = np.where(scores + 0.6 * np.sin(9 * scores) > 0, 1.0, -1.0)
    plain = calibrate(scores, y, np.ones(40))
    assert_allclose(calibrate(size * scores, y, np.ones(40))(size * scores), plain(scores))


def test_a_score_that_is_none():
    with (
        pytest.raises(
            ValueError, match=r"machine=GaussianNB\(\) gives nan as the score of 30 of 30"
        ),
        np.errstate(all="ignore"),
    ):
        fitted("full", GaussianNB(), X=np.ones((N, 2)))  # variances of zero


def test_one_class_alone():
    for sign in (-1.0, 1.0):
        assert calibrate(np.arange(4.0), np.full(4, sign), np.ones(4)) == Calibration(0.0, sign)


def test_probabilities_of_zero_and_one_have_finite_log_odds():
    p = np.array([0.0, 0.5, 1.0])
    assert_allclose(log_odds(p), [np.log(0.005 / 0.995), 0.0, np.log(0.995 / 0.005)], atol=1e-12)


SCORES = st.floats(-50, 50, allow_subnormal=False)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 25))
def test_a_curve_is_finite_and_follows_the_scores(data, n):
    scores = data.draw(arrays(float, n, elements=SCORES))
    y = np.where(data.draw(arrays(bool, n)), 1.0, -1.0)
    weights = data.draw(arrays(float, n, elements=st.sampled_from([0.5, 1.0, 4.0])))
    curve = calibrate(scores, y, weights)
    values = curve(scores)
    assert np.isfinite([curve.slope, curve.offset]).all()
    assert np.isfinite(values).all()
    assert np.abs(values).max() < 1e3
    if (y * scores)[y > 0].sum() == 0 or len(set(y)) < 2:
        return
    # Its mean is that of the weighted classes, as a logistic curve's with an offset is.
    said = np.average(1 / (1 + np.exp(-values)), weights=weights)
    assert said == pytest.approx(np.average(y > 0, weights=weights), abs=5e-3)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(2, 5),
    st.integers(2, 12),
    st.sampled_from(["right", "wrong", "half"]),
    st.sampled_from([KNeighborsClassifier(1), DummyClassifier(), Counting()]),
    st.sampled_from(["uncertainty", "advantage", "assisted"]),
    st.integers(0, 3),
)
def test_tiny_classes_and_equal_rows(few, more, human, machine, name, seed):
    """Folds without a class, rows that occur many times, humans who are always right or wrong."""
    rng = np.random.RandomState(seed)
    y = np.r_[np.zeros(more, int), np.ones(few, int)]
    A = rng.randint(0, 2, size=(len(y), 2)).astype(float)
    answers = {"right": y, "wrong": 1 - y, "half": rng.randint(0, 2, len(y))}[human]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a human who is y itself, a variance of zero
        clf = fitted(name, machine, X=A, y=y, human=answers, cv=3, budget=0.3)
    decision = clf.decision_function(A)
    assert np.isfinite(decision).all()
    assert np.isfinite(clf.deferral_score(A)).all()
    assert 0.0 <= clf.deferral_rate_ <= 0.3
    assert clf.defer_top(A).sum() <= int(0.3 * len(y))
    assert set(clf.predict(A)) <= {0, 1}
    if human == "wrong" and name != "uncertainty":
        assert not clf.defer_top(A).any()
