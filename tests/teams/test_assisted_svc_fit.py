"""`AssistedSVC.fit`: the set is the selection's, the machine is scikit-learn's on the rest."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_validate
from sklearn.svm import SVC

from deferlearn import AssistedSVC, save
from deferlearn.bounds import certificate
from deferlearn.datasets import make_linear
from deferlearn.humans import NoHumanWarning, UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.selection import (
    distorted_greedy,
    stochastic_distorted_greedy,
    submodularity_sweep,
    unconstrained_distorted_greedy,
)
from deferlearn.teams import assisted_svc

X, Y = make_linear(60, random_state=3)
LOSS = UniformHuman(0.2).losses(Y, random_state=0)

KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.05},
    "scaled": {"kernel": "rbf"},
    "poly": {"degree": 2, "gamma": 0.5, "coef0": 1.0},
}


def model(**options):
    return AssistedSVC(**{"cv": None, "random_state": 0, "alpha": 0.05, **options})


def reference(clf, X, y, **options):
    """scikit-learn's machine on the kept samples."""
    kept = ~clf.deferred_
    C = 1.0 / (2.0 * clf.alpha * kept.sum())
    return SVC(C=C, tol=1e-10, max_iter=10**7, **options).fit(X[kept], y[kept])


@pytest.mark.parametrize("name", KERNELS)
def test_set_is_the_selections_and_machine_is_scikit_learns(name):
    options = {"kernel": name, **KERNELS[name]}
    clf = model(budget=0.25, submodularity_ratio=0.4, **options).fit(X, Y, human_loss=LOSS)
    expected = distorted_greedy(SVMObjective(X, Y, 0.05, **options), LOSS, 15, 0.4)
    np.testing.assert_array_equal(clf.deferred_indices_, expected.order)
    assert np.flatnonzero(clf.deferred_).tolist() == sorted(expected.order)
    assert clf.selection_.value == expected.value
    if name == "scaled":  # the kernel is that of all samples, whoever is kept
        options["gamma"] = 1.0 / (2 * X.var())
    svc = reference(clf, X, Y, **options)
    size = np.abs(svc.decision_function(X)).max()
    np.testing.assert_allclose(
        clf.decision_function(X), svc.decision_function(X), atol=1e-6 * size, rtol=0
    )
    np.testing.assert_allclose(clf.intercept_, svc.intercept_, atol=1e-6 * size)
    dense = np.zeros(60)
    dense[np.flatnonzero(~clf.deferred_)[svc.support_]] = svc.dual_coef_[0]
    ours = np.zeros(60)
    ours[clf.support_] = clf.dual_coef_[0]
    np.testing.assert_allclose(ours, dense, atol=1e-6 * np.abs(dense).max())
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    if name == "linear":
        np.testing.assert_allclose(clf.coef_, svc.coef_, atol=1e-6 * np.abs(svc.coef_).max())
    else:
        assert not hasattr(clf, "coef_")


def test_precomputed_and_callable_are_the_kernel_itself():
    K = rbf_kernel(X, gamma=0.05)
    options = {"budget": 0.2, "submodularity_ratio": 0.4, "cv": 3, "alpha": 0.05}
    by_name = AssistedSVC(kernel="rbf", gamma=0.05, random_state=0, **options)
    by_name.fit(X, Y, human_loss=LOSS)
    by_matrix = AssistedSVC(kernel="precomputed", random_state=0, **options)
    by_matrix.fit(K, Y, human_loss=LOSS)
    by_function = AssistedSVC(
        kernel=lambda A, B: rbf_kernel(A, B, gamma=0.05), random_state=0, **options
    ).fit(X, Y, human_loss=LOSS)
    new, _ = make_linear(40, random_state=9)
    K_new = rbf_kernel(new, X, gamma=0.05)
    for other, rows in ((by_matrix, K_new), (by_function, new)):
        np.testing.assert_array_equal(other.deferred_indices_, by_name.deferred_indices_)
        np.testing.assert_allclose(
            other.decision_function(rows), by_name.decision_function(new), atol=1e-9
        )
        np.testing.assert_allclose(
            other.deferral_score(rows), by_name.deferral_score(new), atol=1e-9
        )
        assert other.deferral_threshold_ == pytest.approx(by_name.deferral_threshold_, abs=1e-9)


def test_sparse_equals_dense():
    options = {
        "cv": 3,
        "submodularity_ratio": 0.5,
    }  # a sweep may choose between runs of equal value
    dense = model(**options).fit(X, Y, human_loss=LOSS)
    for kind in (sp.csr_matrix, sp.csc_array):
        clf = model(**options).fit(kind(X), Y, human_loss=LOSS)
        np.testing.assert_array_equal(clf.deferred_indices_, dense.deferred_indices_)
        np.testing.assert_allclose(clf.coef_, dense.coef_, atol=1e-9)
        np.testing.assert_array_equal(clf.defer(kind(X)), dense.defer(X))


@pytest.mark.parametrize("policy", ["margin", "mlp"])
def test_sparse_with_every_policy(policy):
    clf = model(policy=policy).fit(sp.csr_array(X), Y)
    assert clf.defer(sp.csr_array(X)).shape == (60,)


def test_selections_and_sweep_are_those_of_the_selection_module():
    def objective():
        return SVMObjective(X, Y, 0.05)

    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    pairs = [
        (model(budget=9), submodularity_sweep(objective(), LOSS, 9)),
        (
            model(budget=9, selection="stochastic", epsilon=0.2, submodularity_ratio=0.5),
            stochastic_distorted_greedy(objective(), LOSS, 9, 0.5, epsilon=0.2, random_state=seed),
        ),
        (
            model(budget=9, selection="stochastic", epsilon=0.2, delta=0.3),
            submodularity_sweep(
                objective(),
                LOSS,
                9,
                delta=0.3,
                algorithm=stochastic_distorted_greedy,
                epsilon=0.2,
                random_state=seed,
            ),
        ),
        (
            model(budget=1.0, selection="unconstrained", submodularity_ratio=0.5),
            unconstrained_distorted_greedy(objective(), LOSS, 0.5, random_state=seed),
        ),
    ]
    for clf, expected in pairs:
        clf.fit(X, Y, human_loss=LOSS)
        np.testing.assert_array_equal(clf.deferred_indices_, expected.order)
        assert clf.selection_.algorithm == expected.algorithm


def test_unconstrained_with_a_sweep_keeps_the_best_run():
    clf = model(budget=1.0, selection="unconstrained", delta=0.3).fit(X, Y, human_loss=LOSS)
    assert len(clf.selection_.members) > 1
    assert clf.selection_.value == max(m.value for m in clf.selection_.members)


def test_hard_margin():
    Z, labels = make_blobs(40, centers=[[-5, 0], [5, 0]], random_state=0)
    clf = model(margin="hard", budget=3).fit(Z, labels)
    kept = ~clf.deferred_
    hard = SVC(kernel="linear", C=1e10, tol=1e-10).fit(Z[kept], labels[kept])
    np.testing.assert_allclose(clf.coef_, hard.coef_, rtol=1e-5)
    assert (clf.predict(Z) == labels).all()


def test_without_offset():
    clf = model(fit_intercept=False).fit(X, Y, human_loss=LOSS)
    assert clf.intercept_ == 0.0
    expected = SVMObjective(X, Y, 0.05, fit_intercept=False)
    for k in clf.deferred_indices_:
        expected.remove(int(k))
    np.testing.assert_allclose(clf.coef_[0], expected.coef, rtol=1e-12)


def test_class_weight_prices_the_errors_of_both():
    weight = {-1: 1.0, 1: 3.0}
    options = {"class_weight": weight, "deferral_cost": 0.25, "submodularity_ratio": 0.5}
    clf = model(budget=9, alpha=0.5, **options).fit(X, Y, human_loss=LOSS)
    prices = np.where(Y == 1, 3.0, 1.0)
    np.testing.assert_allclose(clf.human_loss_, prices * LOSS + 0.5)
    objective = SVMObjective(X, Y, 0.5, weights=prices)
    expected = distorted_greedy(objective, prices * LOSS + 0.5, 9, 0.5)
    np.testing.assert_array_equal(clf.deferred_indices_, expected.order)
    kept = ~clf.deferred_

    def objective_at(w, b):  # by hand, of the kept samples
        hinge = np.maximum(0.0, 1.0 - Y[kept] * (X[kept] @ w + b))
        return 0.5 * prices[kept].sum() * w @ w + prices[kept] @ hinge

    C = 1.0 / (2.0 * 0.5 * prices[kept].sum())
    svc = SVC(kernel="linear", C=C, tol=1e-5, class_weight=weight).fit(X[kept], Y[kept])
    ours = objective_at(clf.coef_[0], clf.intercept_[0])
    theirs = objective_at(svc.coef_[0], svc.intercept_[0])
    assert ours <= theirs + 1e-10
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_balanced_prices_are_scikit_learns():
    clf = model(class_weight="balanced").fit(X, Y, human_loss=np.ones(60))
    counts = {label: (label == Y).sum() for label in (-1, 1)}
    expected = [60 / (2 * counts[label]) for label in Y]
    np.testing.assert_allclose(clf.human_loss_, expected)


@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (3, 7), ("1", "2")], ids=str)
def test_any_two_labels(labels):
    y = np.array(labels)[(Y + 1) // 2]
    answers = y.copy()
    answers[:10] = labels[0]
    clf = model().fit(X, y, human_labels=answers)
    plain = model().fit(X, Y, human_labels=np.where(answers == labels[1], 1, -1))
    np.testing.assert_array_equal(clf.deferred_indices_, plain.deferred_indices_)
    assert clf.predict(X).dtype == y.dtype
    np.testing.assert_array_equal(clf.predict(X) == labels[1], plain.predict(X) == 1)
    np.testing.assert_array_equal(
        clf.predict_assisted(X, answers) == labels[1],
        plain.predict_assisted(X, np.where(answers == labels[1], 1, -1)) == 1,
    )


def test_frames_and_rows_by_position():
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(60)[::-1] + 100)
    y = pd.Series(np.where(Y == 1, "yes", "no"), index=frame.index)
    answers = y.copy()
    answers.iloc[:5] = None
    with pytest.warns(UserWarning, match="5"):
        clf = model().fit(frame, y, human_labels=answers.where(y.index > 130, "no"))
    assert clf.feature_names_in_.tolist() == ["a", "b"]
    assert clf.n_features_in_ == 2
    assert clf.deferred_indices_.max() < 60
    asked = []

    def doctor(rows):
        asked.extend(rows.tolist())
        return ["no"] * len(rows)

    clf.predict_assisted(frame, doctor)
    assert asked == np.flatnonzero(clf.defer(frame)).tolist()


@pytest.mark.parametrize(
    ("budget", "count"),
    [(0.2, 12), (0.29, 17), (7, 7), (np.int64(7), 7), (np.float64(0.2), 12), (0, 0)],
)
def test_budget_is_a_fraction_or_a_number(budget, count):
    clf = model(budget=budget, submodularity_ratio=0.5).fit(X, Y)
    assert clf.selection_.n == count
    assert clf.deferred_.sum() == count
    assert clf.defer_top(X).sum() == count
    assert clf.defer_top(X[:30]).sum() == int(count / 60 * 30 + 1e-9)


def test_fraction_that_floats_round_down():
    clf = model(budget=0.29, submodularity_ratio=0.5).fit(*make_linear(100, random_state=0))
    assert clf.selection_.n == 29


def test_all_deferred_leaves_the_majority():
    y = np.where(np.arange(60) < 25, "rare", "usual")
    with pytest.warns(UserWarning, match="Humans take|all samples were") as caught:
        # Without an offset no sample is free of cost while it is kept.
        clf = model(budget=1.0, submodularity_ratio=0.5, cv=5, fit_intercept=False).fit(X, y)
    said = " ".join(str(w.message) for w in caught)
    assert "25 of 25" in said
    assert "35 of 35" in said
    assert "all samples were" in said
    assert clf.deferred_.all()
    assert (clf.predict(X) == "usual").all()
    assert clf.defer(X).all()
    assert clf.deferral_threshold_ == -np.inf


def test_none_deferred_never_defers():
    with pytest.warns(UserWarning, match="no sample was"):
        clf = model(deferral_cost=1e6).fit(X, Y)
    assert not clf.deferred_.any()
    assert not clf.defer(X).any()
    assert clf.deferral_threshold_ == np.inf
    svc = reference(clf, X, Y, kernel="linear")
    np.testing.assert_allclose(clf.coef_, svc.coef_, atol=1e-6 * np.abs(svc.coef_).max())


def test_budget_zero_is_a_plain_machine_without_a_warning():
    clf = model(budget=0.0, cv=5).fit(X, Y)
    assert not clf.defer(X).any()


def imbalanced():
    rng = np.random.RandomState(0)
    y = np.where(np.arange(200) < 10, "sick", "well")
    return rng.normal(size=(200, 3)) + 0.5 * (y == "sick")[:, None], y


def test_imbalance_defers_the_whole_minority_and_says_so():
    Z, y = imbalanced()
    clf = AssistedSVC(random_state=0, submodularity_ratio=0.5, alpha=3.0)
    with pytest.warns(UserWarning, match=r"10 of 10 samples of class 'sick'.*min_kept_per_class"):
        clf.fit(Z, y)
    assert (clf.predict(Z) == "well").all()
    assert clf.defer_top(Z).sum() == 40


def test_without_an_offset_too_one_class_alone_is_the_answer():
    loss = np.where(Y == 1, 0.0, 100.0)
    clf = model(budget=int((Y == 1).sum()), fit_intercept=False, submodularity_ratio=0.5)
    with pytest.warns(UserWarning, match="0 of"):
        clf.fit(X, Y, human_loss=loss)
    assert (clf.predict(X) == -1).all()


def test_a_floor_keeps_the_minority():
    Z, y = imbalanced()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoHumanWarning)
        clf = AssistedSVC(
            random_state=0, min_kept_per_class=4, submodularity_ratio=0.5, alpha=3.0
        ).fit(Z, y)
    assert (y[~clf.deferred_] == "sick").sum() >= 4
    assert len(np.unique(y[~clf.deferred_])) == 2


def small():
    return model(submodularity_ratio=0.5, budget=3).fit(X[:20], Y[:20], human_loss=LOSS[:20])


COPIES = [copy.deepcopy, lambda clf: pickle.loads(pickle.dumps(clf))]


@pytest.fixture
def certificates(monkeypatch):
    """The calls that compute a certificate."""
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return certificate(*arguments)

    monkeypatch.setattr(assisted_svc, "certificate", counted)
    return calls


def test_certify_computes_the_certificate_once_and_drops_the_data(certificates):
    clf = small()
    assert not hasattr(clf, "certificate_")
    with pytest.raises(AttributeError, match=r"call certify\(\)"):
        _ = clf.certificate_
    expected = certificate(SVMObjective(X[:20], Y[:20], 0.05), clf.selection_, LOSS[:20])
    assert clf.certify() == expected
    assert clf.certificate_ is clf.certify()
    assert len(certificates) == 1
    assert clf._objective is None


@pytest.mark.parametrize("copied", COPIES)
def test_copies_know_the_certificate_and_hold_no_data(copied):
    clf = small()
    clf.certify()
    other = copied(clf)
    assert other._objective is None
    assert other.certificate_ == clf.certificate_
    np.testing.assert_array_equal(other.deferral_score(X), clf.deferral_score(X))
    assert other.selection_.iterations == clf.selection_.iterations


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_cannot_certify_later(copied):
    other = copied(small())
    assert not hasattr(other, "certificate_")
    with pytest.raises(ValueError, match="before it is copied or stored"):
        other.certify()


def test_copying_storing_and_displaying_compute_no_certificate(certificates, tmp_path):
    clf = small()
    for use in (pickle.dumps, copy.copy, copy.deepcopy, clone, repr, lambda c: c._repr_html_()):
        use(clf)
    save(clf, tmp_path / "team.skops")
    assert certificates == []
    clf.certify()  # the fitted model has lost nothing by it
    assert len(certificates) == 1


def test_cross_validation_in_other_processes_computes_no_certificate(certificates):
    found = cross_validate(
        model(submodularity_ratio=0.5, budget=3, cv=None),
        X[:40],
        Y[:40],
        cv=2,
        return_estimator=True,
        n_jobs=2,
    )
    assert certificates == []
    assert len(found["estimator"]) == 2
    for clf in found["estimator"]:
        assert not hasattr(clf, "certificate_")
        assert len(pickle.dumps(clf)) < 50_000


def test_the_state_of_a_model_holds_no_training_data_but_its_support_vectors():
    wide = np.hstack([np.tile(X, (5, 1)), np.zeros((300, 998))])
    clf = model(submodularity_ratio=0.5, budget=9).fit(wide, np.tile(Y, 5))
    others = len(pickle.dumps(clf)) - clf.support_vectors_.nbytes
    assert others < wide.nbytes / 20


@pytest.mark.slow
def test_same_seed_same_model_and_n_jobs_changes_nothing():
    options = {"selection": "stochastic", "policy": "mlp", "cv": 3, "submodularity_ratio": 0.5}
    first = model(**options).fit(X, Y, human_loss=LOSS)
    second = model(n_jobs=2, **options).fit(X, Y, human_loss=LOSS)
    np.testing.assert_array_equal(first.deferred_indices_, second.deferred_indices_)
    assert first.deferral_threshold_ == second.deferral_threshold_


def test_verbose_says_what_is_done(capsys):
    model(verbose=1, cv=2, submodularity_ratio=0.5).fit(X, Y, human_loss=LOSS)
    said = capsys.readouterr().out
    assert "round 12" in said
    assert "2 folds" in said


def test_silent_by_default(capsys):
    model(cv=2, submodularity_ratio=0.5).fit(X, Y, human_loss=LOSS)
    assert capsys.readouterr() == ("", "")
