"""Curves against the budget: equal to a plain loop, on splits that keep their promises."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from scipy import stats
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, f1_score
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deferlearn.datasets import make_shifted
from deferlearn.evaluation import AutomationCurve, automation_curve
from deferlearn.humans import ConfusedHuman, UniformHuman
from deferlearn.metrics import team_cost
from stub_team import StubTeam

X, Y = make_shifted(120, n_features=3, random_state=0)
HUMAN = UniformHuman(0.1).labels(Y, random_state=0)
BUDGETS = [0.0, 0.25, 1.0]
SPLITS = [(np.arange(60), np.arange(60, 120)), (np.arange(40, 120), np.arange(40))]


@pytest.mark.parametrize("batch", [True, False])
def test_values_equal_a_plain_loop(batch):
    curve = automation_curve(
        StubTeam(), X, Y, human_labels=HUMAN, budgets=BUDGETS, cv=SPLITS, batch=batch
    )
    for i, (train, test) in enumerate(SPLITS):
        for j, budget in enumerate(BUDGETS):
            team = StubTeam(budget=budget).fit(X[train], Y[train])
            answer = team.predict_assisted(X[test], HUMAN[test], batch=batch)
            assert curve.values["error"][i, j] == np.mean(answer != Y[test])
            assert curve.values["f1"][i, j] == pytest.approx(f1_score(Y[test], answer))
            mask = team.defer_top(X[test]) if batch else team.defer(X[test])
            assert curve.deferred[i, j] == mask.mean()
    # Everything deferred in the batch: the human alone.
    if batch:
        np.testing.assert_allclose(
            curve.values["error"][:, 2], [np.mean((HUMAN != Y)[test]) for _, test in SPLITS]
        )


class ManyClasses(StubTeam):
    """Defers by the largest probability, of any number of classes."""

    def fit(self, X, y, human_labels=None):
        self.machine_ = LogisticRegression().fit(X, y)
        self.classes_ = self.machine_.classes_
        return self

    def defer_top(self, X, budget=None):
        sure = self.machine_.predict_proba(X).max(axis=1)
        return sure < np.quantile(sure, self.budget)


def test_many_classes():
    grades = np.clip(np.round(X[:, 0]), -1, 1).astype(int) + 1
    human = ConfusedHuman.off_by_one(0.2, range(3)).labels(grades, random_state=0)
    options = {"human_labels": human, "budgets": [0.2], "cv": SPLITS}
    curve = automation_curve(ManyClasses(), X, grades, **options)
    assert list(curve.values) == ["error", "macro_f1"]
    graded = automation_curve(
        ManyClasses(), X, grades, metrics=["grade_error", "quadratic_kappa"], **options
    )
    for i, (train, test) in enumerate(SPLITS):
        team = ManyClasses(budget=0.2).fit(X[train], grades[train])
        truth, answer = grades[test], team.predict_assisted(X[test], human[test], batch=True)
        assert curve.values["error"][i, 0] == np.mean(answer != truth)
        assert curve.values["macro_f1"][i, 0] == pytest.approx(
            f1_score(truth, answer, average="macro")
        )
        assert graded.values["grade_error"][i, 0] == np.mean(np.abs(answer - truth))
        assert graded.values["quadratic_kappa"][i, 0] == pytest.approx(
            cohen_kappa_score(truth, answer, weights="quadratic")
        )


def test_bands_are_t_intervals():
    curve = automation_curve(
        StubTeam(), X, Y, human_labels=HUMAN, budgets=[0.1], metrics="error", random_state=0
    )
    values = curve.values["error"][:, 0]
    assert len(values) == 20
    interval = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert curve.mean["error"][0] == pytest.approx(values.mean())
    assert curve.lower["error"][0] == pytest.approx(interval.low)
    assert curve.upper["error"][0] == pytest.approx(interval.high)
    wide = AutomationCurve(curve.budgets, curve.values, curve.deferred, confidence=0.99)
    assert wide.upper["error"][0] > curve.upper["error"][0]


def test_bands_of_one_split_are_unknown():
    curve = automation_curve(
        StubTeam(), X, Y, human_labels=HUMAN, budgets=[0.1, 0.2], cv=SPLITS[:1]
    )
    assert np.isnan(curve.lower["error"]).all()
    assert np.isfinite(curve.mean["error"]).all()


def test_default_splits_are_the_papers_share_and_stratified():
    with parallel_config("threading"):  # processes would take seconds to start
        curve = automation_curve(
            StubTeam(), X, Y, human_labels=HUMAN, budgets=[0.1], random_state=3, n_jobs=2
        )
    cv = StratifiedShuffleSplit(20, test_size=0.4, random_state=3)
    again = automation_curve(StubTeam(), X, Y, human_labels=HUMAN, budgets=[0.1], cv=cv)
    np.testing.assert_array_equal(curve.values["error"], again.values["error"])


class Witness(StubTeam):
    """Fails if a group is on both sides; the group is the first feature."""

    def fit(self, X, y, human_labels=None, human_scores=None, human_loss=None):
        self.seen_ = set(X[:, 0])
        return super().fit(X, y, human_labels, human_scores, human_loss)

    def predict_assisted(self, X, human_labels, batch=False):
        assert not self.seen_ & set(X[:, 0])
        return super().predict_assisted(X, human_labels, batch)


@pytest.mark.parametrize("cv", [None, 3])
def test_groups_are_not_torn_apart(cv):
    groups = np.repeat(np.arange(30), 4)
    with_groups = np.column_stack([groups, X])
    options = {"human_labels": HUMAN, "budgets": [0.2], "random_state": 0, "cv": cv}
    automation_curve(Witness(), with_groups, Y, groups=groups, **options)
    with pytest.raises(AssertionError):
        automation_curve(Witness(), with_groups, Y, **options)


class Fixed(BaseEstimator):
    """A machine that has no budget and never defers."""

    fits = 0

    def fit(self, X, y, human_labels=None):
        type(self).fits += 1
        return self

    def defer_top(self, X):
        return np.zeros(X.shape[0], dtype=bool)

    def predict_assisted(self, X, human_labels, batch=False):
        return np.ones(X.shape[0])


def test_several_teams_share_their_splits():
    Fixed.fits = 0
    curves = automation_curve(
        {"stub": StubTeam(), "fixed": Fixed()},
        X,
        Y,
        human_labels=HUMAN,
        budgets=BUDGETS,
        cv=5,
        random_state=0,
    )
    fixed, stub = curves["fixed"], curves["stub"]
    assert Fixed.fits == 5
    # Shuffled, stratified folds: each holds as many of either class, up to one.
    np.testing.assert_allclose(fixed.values["error"], np.mean(Y == -1), atol=1 / 24)
    assert (fixed.values["error"] == fixed.values["error"][:, :1]).all()
    difference = stub.difference(fixed)
    np.testing.assert_allclose(
        difference.values["error"], stub.values["error"] - fixed.values["error"]
    )
    interval = stats.ttest_rel(
        stub.values["error"][:, 1], fixed.values["error"][:, 1]
    ).confidence_interval(0.95)
    assert difference.lower["error"][1] == pytest.approx(interval.low)
    alone = automation_curve(
        StubTeam(), X, Y, human_labels=HUMAN, budgets=BUDGETS, cv=5, random_state=0
    )
    np.testing.assert_array_equal(alone.values["error"], stub.values["error"])


@pytest.mark.parametrize("routing", [False, True])
def test_plain_pipeline(routing):
    options = {"human_labels": HUMAN, "budgets": BUDGETS, "cv": SPLITS}
    with config_context(enable_metadata_routing=routing):
        curve = automation_curve(make_pipeline(StandardScaler(), StubTeam()), X, Y, **options)
    train, test = SPLITS[0]
    scaler = StandardScaler().fit(X[train])
    team = StubTeam(budget=0.25).fit(scaler.transform(X[train]), Y[train])
    answer = team.predict_assisted(scaler.transform(X[test]), HUMAN[test], batch=True)
    assert curve.values["error"][0, 1] == np.mean(answer != Y[test])


class Told(StubTeam):
    """Says by its answers how it was told of the human: 1 for labels, -1 for anything else."""

    def predict_assisted(self, X, human_labels, batch=False):
        return np.full(len(X), 1 if self.human_ == ["labels"] else -1)


@pytest.mark.parametrize(("extra", "says"), [({}, 1), ("human_scores", -1), ("human_loss", -1)])
def test_human_for_fit(extra, says):
    given = {extra: np.zeros(len(Y))} if extra else {}
    metrics = {"answer": lambda y_true, y_pred: float(np.mean(y_pred))}
    curve = automation_curve(
        Told(), X, Y, human_labels=HUMAN, budgets=[0.1], cv=SPLITS, metrics=metrics, **given
    )
    assert (curve.values["answer"] == says).all()


def test_metrics_that_know_who_was_deferred():
    metrics = {"price": partial(team_cost, deferral_cost=0.5), "error": "error"}
    curve = automation_curve(
        StubTeam(), X, Y, human_labels=HUMAN, budgets=BUDGETS, cv=SPLITS, metrics=metrics
    )
    np.testing.assert_allclose(
        curve.values["price"], curve.values["error"] + 0.5 * curve.deferred, atol=1e-12
    )


def test_numbers_of_samples_stay_integers():
    curve = automation_curve(
        StubTeam(), X, Y, human_labels=HUMAN, budgets=[0, 1, 30], cv=SPLITS[:1]
    )
    assert curve.budgets.tolist() == [0, 1, 30]
    # 1 of 60 training samples, not all of them; the same rate of 60 test cases.
    np.testing.assert_allclose(curve.deferred[0], [0, 1 / 60, 0.5])


def test_frames_and_sparse_matrices_are_split_by_rows():
    options = {"human_labels": HUMAN.tolist(), "budgets": [0.2], "cv": SPLITS}
    sparse = automation_curve(Fixed(), sp.csr_array(X), Y.tolist(), **options)
    np.testing.assert_allclose(sparse.values["error"][0], np.mean(Y[60:] == -1))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X).set_index(np.arange(120)[::-1])
    labels = pd.Series(HUMAN, index=frame.index)
    curve = automation_curve(StubTeam(), frame, Y, **(options | {"human_labels": labels}))
    plain = automation_curve(StubTeam(), X, Y, **options)
    np.testing.assert_array_equal(curve.values["f1"], plain.values["f1"])


class TwoBudgets(StubTeam):
    def get_params(self, deep=True):
        return {"a__budget": 1, "b__budget": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budgets": []}, "vector of numbers"),
        ({"budgets": ["few"]}, "vector of numbers"),
        ({"budgets": [0.5, 1.5]}, "fractions between 0 and 1"),
        ({"budgets": [-1, 3]}, "fractions"),
        ({"budgets": [np.nan]}, "fractions"),
        ({"metrics": []}, "at least one metric"),
        ({"metrics": ["luck"]}, "'luck' is not known"),
        ({"metrics": [len]}, "a name"),
        ({"estimator": {}}, "at least one estimator"),
        ({"estimator": TwoBudgets()}, "unclear"),
        ({"human_labels": HUMAN[:-1]}, "inconsistent numbers of samples"),
        ({"human_scores": HUMAN, "human_loss": HUMAN}, "at most one of"),
        ({"human_labels": None}, "human_labels is needed"),
        ({"confidence": 1.0}, "between 0 and 1"),
    ],
)
def test_errors_say_what_was_wrong(change, message):
    good = {"estimator": StubTeam(), "X": X, "y": Y, "human_labels": HUMAN, "cv": SPLITS}
    with pytest.raises(ValueError, match=message):
        automation_curve(**(good | change))


def test_only_like_curves_can_be_compared():
    options = {"human_labels": HUMAN, "cv": ShuffleSplit(3, random_state=0)}
    one = automation_curve(StubTeam(), X, Y, budgets=[0.1], **options)
    two = automation_curve(StubTeam(), X, Y, budgets=[0.2], **options)
    with pytest.raises(ValueError, match="same budgets"):
        one.difference(two)


def test_labels_that_are_words_need_a_positive_class_and_say_so_before_any_fit():
    words = np.where(Y > 0, "sick", "well")
    human = np.where(HUMAN > 0, "sick", "well")

    class Unfit(StubTeam):
        def fit(self, X, y, **human):
            raise AssertionError("fitted before the metrics were checked")

    with pytest.raises(ValueError, match="pos_label"):
        automation_curve(Unfit(), X, words, human_labels=human, budgets=BUDGETS, cv=SPLITS)
    curve = automation_curve(
        StubTeam(), X, words, human_labels=human, budgets=[0.25], cv=SPLITS, pos_label="sick"
    )
    train, test = SPLITS[0]
    team = StubTeam(budget=0.25).fit(X[train], words[train])
    answer = team.predict_assisted(X[test], human[test], batch=True)
    assert curve.values["f1"][0, 0] == f1_score(words[test], answer, pos_label="sick")


class Warns(StubTeam):
    """Warns of its part of the samples, as of answers that are missing there."""

    def fit(self, X, y, human_labels=None):
        warnings.warn(
            f"no answer was given for {int(abs(X[0, 0]) * 1e6)} of {len(X)} cases", stacklevel=2
        )
        return super().fit(X, y)


def test_what_each_split_warns_of_is_said_once():
    """Texts with other numbers on each split were notes of their own."""
    cv = ShuffleSplit(6, random_state=0)
    with pytest.warns(UserWarning, match="no answer was given") as caught:
        automation_curve(Warns(), X, Y, human_labels=HUMAN, budgets=[0.2], cv=cv)
    (text,) = [str(warning.message) for warning in caught]
    assert text.endswith("more like this, with other numbers)")
