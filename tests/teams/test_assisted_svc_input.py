"""Bad input to `AssistedSVC`: each error says what was wrong, with the value."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.svm import LinearSVC

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear
from deferlearn.kernels.gram import kernel_function
from deferlearn.teams import DeferralPolicy, UncertaintyTriage

X, Y = make_linear(30, random_state=0)

WRONG_PARAMETERS = [
    ("budget", 1.5, r"budget=1\.5.*\[0, 1\]"),
    ("budget", -0.1, r"budget=-0\.1"),
    ("budget", 31, "budget=31.*between 0 and 30"),
    ("budget", -1, "budget=-1"),
    ("budget", True, "budget=True"),
    ("budget", "0.2", "budget='0.2'"),
    ("budget", None, "budget=None"),
    ("budget", np.nan, "budget=nan"),
    ("budget", np.float64(1.5), r"budget=1\.5 "),
    ("class_weight", {np.str_("x"): 1.0}, "class_weight has a weight for 'x'"),
    ("class_weight", {1: np.float64(-2.0)}, r"class_weight of 1 must be .* got -2\.0\."),
    ("deferral_cost", np.float64(-1.0), r"deferral_cost=-1\.0 "),
    ("alpha", 0.0, "alpha=0.0"),
    ("alpha", "1", "alpha='1'"),
    ("kernel", "sigmoid", "kernel='sigmoid'"),
    ("kernel", 3, "kernel=3"),
    ("degree", "two", "degree='two'"),
    ("degree", 0, "degree=0"),
    ("coef0", None, "coef0=None"),
    ("fit_intercept", "yes", "fit_intercept='yes'"),
    ("margin", "firm", "margin='firm'"),
    ("class_weight", "even", "class_weight='even'"),
    ("class_weight", {7: 1.0}, "class_weight.*7"),
    ("class_weight", {1: -1.0}, "class_weight of 1"),
    ("class_weight", [1, 2], "class_weight"),
    ("deferral_cost", -1.0, "deferral_cost=-1.0"),
    ("deferral_cost", "free", "deferral_cost='free'"),
    ("min_kept_per_class", -1, "min_kept_per_class=-1"),
    ("min_kept_per_class", 0.5, "min_kept_per_class=0.5"),
    ("selection", "greedy", "selection='greedy'"),
    ("selection", None, "selection=None"),
    ("submodularity_ratio", 0.0, "submodularity_ratio=0.0"),
    ("submodularity_ratio", "auto", "submodularity_ratio='auto'"),
    ("epsilon", 1.0, "epsilon=1.0"),
    ("delta", 0, "delta=0"),
    ("tol", -1e-3, "tol=-0.001"),
    ("tol", "0", "tol='0'"),
    ("policy", "forest", "policy='forest'"),
    ("policy", None, "policy=None"),
    ("policy", 5, "policy=5"),
    ("policy", DeferralPolicy(5), "estimator=5"),
    ("policy", LogisticRegression, "instance"),
    ("policy", LinearRegression(), "classifier"),
    ("policy", DeferralPolicy(features="all"), "features='all'"),
    ("policy", DeferralPolicy(signed="no"), "signed='no'"),
    ("policy", DeferralPolicy(LinearRegression()), "classifier"),
    ("human_bound", 0, "human_bound=0"),
    ("human_bound", "1", "human_bound='1'"),
    ("cv", 1, "cv=1"),
    ("cv", True, "cv=True"),
    ("cv", "five", "cv='five'"),
    ("cv", 2.5, "cv=2.5"),
    ("cv", ShuffleSplit(3, random_state=0), "exactly once"),
    ("n_jobs", 0, "n_jobs=0"),
    ("n_jobs", "all", "n_jobs='all'"),
    ("random_state", "seed", "seed"),
    ("verbose", -1, "verbose=-1"),
    ("verbose", "yes", "verbose='yes'"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG_PARAMETERS)
def test_wrong_parameters_are_named_with_their_value(name, value, message):
    with pytest.raises(ValueError, match=message):
        AssistedSVC(submodularity_ratio=0.5).set_params(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("gamma", [-1.0, "wide", None])
def test_wrong_gamma(gamma):
    with pytest.raises(ValueError, match="gamma="):
        AssistedSVC(kernel="rbf", gamma=gamma).fit(X, Y)


@pytest.mark.parametrize("budget", [0.2, 1, 30])
def test_unconstrained_needs_the_whole_budget(budget):
    with pytest.raises(ValueError, match=r"unconstrained.*1\.0"):
        AssistedSVC(selection="unconstrained", budget=budget).fit(X, Y)


def test_hard_margin_is_linear():
    with pytest.raises(ValueError, match="hard"):
        AssistedSVC(kernel="rbf", margin="hard").fit(X, Y)


def test_a_splitter_that_is_a_partition_is_fine():
    AssistedSVC(cv=KFold(3), submodularity_ratio=0.5).fit(X, Y)


WRONG_HUMANS = [
    ({"human_loss": np.ones(30), "human_labels": Y}, "human_loss and human_labels"),
    ({"human_scores": Y, "human_labels": Y}, "human_scores and human_labels"),
    ({"human_loss": np.ones(29)}, "human_loss has 29 rows, but y has 30"),
    ({"human_labels": Y[:-1]}, "human_labels has 29 rows"),
    ({"human_scores": np.ones((31, 2))}, "human_scores has 31 rows"),
    ({"human_loss": 1.0}, "human_loss has no rows"),
    ({"human_loss": -np.ones(30)}, "not negative, got -1 at row 0"),
    ({"human_loss": np.full(30, np.inf)}, "finite"),
    ({"human_loss": np.ones((30, 2))}, "one number per sample"),
    ({"human_loss": ["a"] * 30}, "human_loss must be numbers, got 'a', 'a'"),
    ({"human_loss": ["1"] * 30}, "human_loss must be numbers, got '1'"),
    ({"human_loss": np.array(["1"] * 30)}, "human_loss must be numbers, got '1'"),
    ({"human_loss": np.ones(30) * 1j}, "human_loss must be numbers"),
    ({"human_loss": lambda rows: rows}, "human_loss is a function.*give an array"),
    ({"human_labels": lambda rows: Y[rows]}, "human_labels is a function.*predict_assisted"),
    ({"human_labels": np.where(np.arange(30) == 4, 9, Y)}, "9 at row 4.* two classes -1, 1$"),
    ({"human_labels": ["yes"] * 30}, "yes"),
    ({"human_labels": [None] * 30}, "no case has an answer"),
    ({"human_scores": ["a"] * 30}, "numbers"),
    ({"human_scores": np.full(30, np.inf)}, "finite"),
]


@pytest.mark.parametrize(("human", "message"), WRONG_HUMANS)
def test_wrong_humans(human, message):
    with pytest.raises(ValueError, match=message):
        AssistedSVC().fit(X, Y, **human)


def test_scores_beyond_the_bound():
    scores = np.where(Y.max() == Y, 0.5, -0.5)
    scores[3] = 1.5
    with pytest.raises(ValueError, match=r"1\.5.*outside"):
        AssistedSVC(human_bound=1.0).fit(X, Y, human_scores=scores)
    AssistedSVC(submodularity_ratio=0.5, cv=None).fit(X, Y, human_scores=scores)


def test_the_human_is_given_by_name():
    with pytest.raises(TypeError):
        AssistedSVC().fit(X, Y, Y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones(30), "1 class"),
        (np.linspace(0, 1, 30), "continuous"),
        (Y[:-1], "inconsistent"),
    ],
)
def test_wrong_targets(y, message):
    with pytest.raises(ValueError, match=message):
        AssistedSVC().fit(X, y)


def test_sparse_is_for_the_linear_kernel():
    with pytest.raises(TypeError, match=r"(?i)sparse"):
        AssistedSVC(kernel="rbf").fit(sp.csr_array(X), Y)


def test_precomputed_must_be_a_gram_matrix():
    with pytest.raises(ValueError, match="square"):
        AssistedSVC(kernel="precomputed").fit(X, Y)


@pytest.mark.parametrize(
    "call",
    [
        lambda clf: clf.predict(X),
        lambda clf: clf.decision_function(X),
        lambda clf: clf.defer(X),
        lambda clf: clf.defer_top(X),
        lambda clf: clf.deferral_score(X),
        lambda clf: clf.predict_assisted(X, Y),
        lambda clf: clf.score_assisted(X, Y, Y),
        lambda clf: clf.certificate_,
        lambda clf: clf.certify(),
        lambda clf: clf.coef_,
    ],
)
def test_nothing_works_before_fit(call):
    with pytest.raises(NotFittedError):
        call(AssistedSVC())


def test_new_cases_are_checked():
    clf = AssistedSVC(cv=None, submodularity_ratio=0.5).fit(X, Y)
    with pytest.raises(ValueError, match="3 features"):
        clf.defer(np.ones((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        clf.deferral_score([[np.nan, 0.0]])
    with pytest.raises(ValueError, match=r"budget=1\.1"):
        clf.defer_top(X, budget=1.1)
    with pytest.raises(ValueError, match="budget=31"):
        clf.defer_top(X, budget=31)


def test_a_fractional_degree_needs_positive_bases():
    assert (X @ X.T).min() < 0
    with pytest.raises(ValueError, match=r"degree=2\.5 has no value.*negative.*whole degree"):
        AssistedSVC(kernel="poly", degree=2.5).fit(X, Y)
    Z = X / 20
    by_hand = (0.5 * Z @ Z[:3].T + 5.0) ** 2.5
    np.testing.assert_allclose(kernel_function("poly", 2.5, 0.5, 5.0)(Z, Z[:3]), by_hand)
    for degree in (2, 2.0):  # a whole degree has a value everywhere
        by_hand = (0.5 * X @ X.T - 1.0) ** 2
        np.testing.assert_allclose(kernel_function("poly", degree, 0.5, -1.0)(X, X), by_hand)


def test_a_team_without_its_human():
    clf = AssistedSVC(cv=None, submodularity_ratio=0.5).fit(X, Y)
    for call in (
        lambda: clf.predict_assisted(X, None),
        lambda: clf.predict_assisted(X, None, batch=True),
        lambda: clf.score_assisted(X, Y, None),
    ):
        with pytest.raises(ValueError, match=r"human_labels is None.*predict\(X\)"):
            call()


@pytest.mark.parametrize("batch", ["no", 0, 1.0, None])
def test_top_is_yes_or_no(batch):
    clf = AssistedSVC(cv=None, submodularity_ratio=0.5).fit(X, Y)
    with pytest.raises(ValueError, match=f"batch={batch!r} must be True or False"):
        clf.predict_assisted(X, Y, batch=batch)
    with pytest.raises(ValueError, match=f"batch={batch!r} must be True or False"):
        clf.score_assisted(X, Y, Y, batch=batch)
    clf.predict_assisted(X, Y, batch=np.True_)


def test_answers_in_another_order_than_the_cases_bring_a_warning():
    pd = pytest.importorskip("pandas")
    cases = pd.DataFrame(X, index=np.arange(100, 130))
    answers = pd.Series(np.where(np.arange(30) % 3, Y, -Y), index=cases.index)
    mixed = answers.sample(frac=1.0, random_state=0)
    for clf in (
        AssistedSVC(cv=None, submodularity_ratio=0.5, random_state=0),
        UncertaintyTriage(cv=None),
    ):
        with pytest.warns(UserWarning, match=r"human_labels has the index of X in another order"):
            clf.fit(cases, Y, human_labels=mixed)
        with pytest.warns(UserWarning, match=r"human_loss\.loc\[X\.index\]"):
            clf.fit(cases, Y, human_loss=1.0 + mixed)
        with pytest.warns(UserWarning, match=r"human_labels\.to_numpy\(\)"):
            by_position = clf.predict_assisted(cases, mixed)
        np.testing.assert_array_equal(by_position, clf.predict_assisted(cases, mixed.to_numpy()))
        clf.fit(cases, Y, human_labels=answers).predict_assisted(cases, answers)


def test_messages_show_plain_labels():
    words = np.where(Y == 1, "sick", "well")
    human = words.astype(object)
    human[3] = np.str_("ill")
    with pytest.raises(ValueError, match=r"'ill' at row 3.* two classes 'sick', 'well'$"):
        AssistedSVC().fit(X, words, human_labels=human)
    human[3] = None
    fast = AssistedSVC(cv=None, submodularity_ratio=0.5)
    with (
        pytest.warns(UserWarning, match=r"1 of 30 cases.*: 1 of class '(sick|well)'$"),
        pytest.warns(UserWarning, match="equals y everywhere"),
    ):
        clf = fast.fit(X, words, human_labels=human)
    with pytest.raises(ValueError, match=r"'ill' at row .* two classes \['sick', 'well'\]"):
        clf.predict_assisted(X, np.full(30, "ill"), batch=True)
    with pytest.warns(UserWarning, match=r": 1 of class -?1$"):
        fast.fit(X, Y, human_loss=[None] + [1.0] * 29)


def test_a_classifier_without_scores_is_refused():
    class Mute(LinearSVC):
        @property
        def decision_function(self):
            raise AttributeError

    with pytest.raises(ValueError, match="cannot rank"):
        AssistedSVC(policy=Mute()).fit(X, Y)


def test_a_floor_that_a_class_cannot_meet_is_refused_with_counts():
    X, y = make_linear(40, random_state=0)
    y[:] = -1
    y[:9] = 1
    with pytest.raises(ValueError, match=r"min_kept_per_class=10, but there are only 9 .* class 1"):
        AssistedSVC(min_kept_per_class=10).fit(X, y)


def test_scores_that_mean_something_else_bring_a_warning():
    X, y = make_linear(40, random_state=0)
    words = np.where(y > 0, "sick", "well")
    clf = AssistedSVC(submodularity_ratio=0.5, cv=None)
    with pytest.warns(UserWarning, match=r"positive scores stand for 'well'"):
        clf.fit(X, words, human_scores=0.9 * y)
    with pytest.warns(UserWarning, match=r"2 \* p - 1"):
        clf.fit(X, y, human_scores=np.where(y > 0, 0.8, 0.1))


def test_a_fit_that_fails_leaves_no_half_of_an_older_one():
    X, y = make_linear(40, random_state=0)
    for team in (AssistedSVC(submodularity_ratio=0.5), UncertaintyTriage()):
        team.fit(X, y, human_loss=np.ones(40))
        with pytest.raises(ValueError, match="human_labels"):
            team.fit(X, np.where(y > 0, "ill", "well"), human_labels=[1])
        with pytest.raises(NotFittedError):
            team.predict(X)


def test_messages_show_plain_numbers():
    X, y = make_linear(40, random_state=0)
    with pytest.raises(ValueError, match=r"alpha=-1\.0 must"):
        AssistedSVC(alpha=np.float64(-1.0)).fit(X, y)
    with pytest.raises(ValueError, match=r"tol=2\.0 must"):
        AssistedSVC(tol=np.float64(2.0)).fit(X, y)
