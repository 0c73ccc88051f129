"""Metrics of many classes and of grades, against scikit-learn and by hand."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning

from deferlearn.metrics import (
    confusion_counts,
    evaluate_team,
    find_metric,
    make_team_scorer,
    sensitivity_by_class,
    team_cost,
    team_error,
    team_f1,
    team_grade_error,
    team_macro_f1,
    team_macro_sensitivity,
    team_quadratic_kappa,
    team_sensitivity,
    team_specificity,
)
from stub_team import StubTeam

KINDS = [
    list(range(5)),
    ["N1", "N2", "N3", "REM", "Wake"],
    [0.2, 0.4, 0.6, 0.8, 1.0],
    [4, 1, 3, 0, 2],
]
ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)
GRADES = np.array([0, 0, 0, 1, 1, 2, 2, 3])
ANSWERS = np.array([0, 1, 0, 1, 3, 2, 0, 3])


def labels_of(rows, classes):
    return (np.array([classes[row[i]] for row in rows]) for i in (0, 1))


@settings(deadline=None)
@given(ROWS, st.sampled_from(KINDS))
def test_classes_against_scikit_learn(rows, classes):
    truth, answer = labels_of(rows, classes)
    codes = [np.array(column) for column in zip(*rows, strict=True)]  # it knows no grades like 0.2
    counts = confusion_counts(truth, answer, classes=classes)
    np.testing.assert_array_equal(counts, metrics.confusion_matrix(*codes, labels=range(5)))
    assert np.trace(counts) / len(rows) == pytest.approx(1 - team_error(truth, answer))
    found = metrics.recall_score(*codes, labels=range(5), average=None, zero_division=np.nan)
    np.testing.assert_allclose(sensitivity_by_class(truth, answer, classes=classes), found)
    # Naming the classes changes nothing in the means: absent ones are left out.
    for names in (None, classes):
        assert team_macro_f1(truth, answer, classes=names) == pytest.approx(
            metrics.f1_score(*codes, average="macro")
        )
        assert team_macro_sensitivity(truth, answer, classes=names) == pytest.approx(
            np.nanmean(found)
        )


@settings(deadline=None)
@given(ROWS, st.sampled_from(KINDS))
def test_grades_against_scikit_learn(rows, grades):
    truth, answer = labels_of(rows, grades)
    codes = [np.array(column) for column in zip(*rows, strict=True)]
    away = [abs(row[0] - row[1]) for row in rows]
    assert team_grade_error(truth, answer, grades=grades) == pytest.approx(np.mean(away))
    assert team_grade_error(truth, answer, grades=grades[::-1]) == pytest.approx(np.mean(away))
    assume(len({*truth.tolist(), *answer.tolist()}) > 1)
    assert team_quadratic_kappa(truth, answer, grades=grades) == pytest.approx(
        metrics.cohen_kappa_score(*codes, labels=range(5), weights="quadratic")
    )


@settings(deadline=None)
@given(ROWS, st.integers(0, 4))
def test_one_class_against_the_rest(rows, positive):
    truth, answer = labels_of(rows, list(range(5)))
    options = {"pos_label": positive, "classes": range(5), "zero_division": 0.0}
    two = {"pos_label": True, "classes": [False, True], "zero_division": 0.0}
    for metric in (team_f1, team_sensitivity, team_specificity):
        of_two = metric(truth == positive, answer == positive, **two)
        assert metric(truth, answer, **options) == of_two


def test_by_hand():
    np.testing.assert_array_equal(
        confusion_counts(GRADES, ANSWERS), [[2, 1, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 1]]
    )
    np.testing.assert_allclose(sensitivity_by_class(GRADES, ANSWERS), [2 / 3, 0.5, 0.5, 1.0])
    assert team_macro_sensitivity(GRADES, ANSWERS) == pytest.approx(2 / 3)
    # F1 of the grades: 4/6, 2/4, 2/3, 2/3.
    assert team_macro_f1(GRADES, ANSWERS) == pytest.approx((2 / 3 + 1 / 2 + 2 / 3 + 2 / 3) / 4)
    assert team_grade_error(GRADES, ANSWERS) == (1 + 2 + 2) / 8
    assert team_error(GRADES, ANSWERS) == 3 / 8


def test_right_and_reversed_answers():
    grades = np.repeat([0, 1, 2], 4)
    assert team_quadratic_kappa(grades, grades) == 1
    assert team_quadratic_kappa(grades, 2 - grades) == pytest.approx(-1)
    assert team_macro_f1(grades, grades) == team_macro_sensitivity(grades, grades) == 1
    with pytest.warns(UndefinedMetricWarning, match="kappa is undefined without two different"):
        assert team_quadratic_kappa([1, 1], [1, 1]) == 0
    assert team_quadratic_kappa([1, 1], [1, 1], zero_division=1.0) == 1
    # Always the same answer, but different labels: no better than chance.
    assert team_quadratic_kappa([0, 1, 2], [1, 1, 1]) == 0


def test_a_grade_that_does_not_occur_still_lies_between():
    assert team_grade_error([0, 3], [3, 3]) == 0.5
    assert team_grade_error([0, 3], [3, 3], grades=[0, 1, 2, 3]) == 1.5


def test_costs_of_many_classes():
    costs = np.array([[0, 1, 2, 3], [1, 0, 1, 2], [10, 1, 0, 1], [3, 2, 1, 0]])
    assert team_cost(GRADES, ANSWERS, cost_matrix=costs) == (1 + 2 + 10) / 8
    away = np.abs(np.subtract.outer(range(4), range(4)))
    assert team_cost(GRADES, ANSWERS, cost_matrix=away) == team_grade_error(GRADES, ANSWERS)
    assert team_cost(GRADES, ANSWERS, false_positive=3, false_negative=3) == 9 / 8
    deferred = np.arange(8) < 4
    assert team_cost(
        GRADES, ANSWERS, deferred, cost_matrix=costs, deferral_cost=0.5
    ) == pytest.approx((13 + 2) / 8)
    # The matrix of two classes is the two costs.
    two = {"cost_matrix": [[0, 2], [7, 0]]}
    truth, answer = [0, 0, 1, 1, 1], [1, 0, 0, 0, 1]
    assert team_cost(truth, answer, **two) == team_cost(
        truth, answer, false_positive=2, false_negative=7
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: team_macro_f1([0, 1], [1, 9], classes=[0, 1]),
            "y_pred holds 9 at row 1, which is neither",
        ),
        (lambda: team_macro_f1([0, 1], [0, 1], classes=[0, 0, 1]), "list of different labels"),
        (lambda: team_macro_f1([0, 1], [0, 1], classes=[]), "list of different labels"),
        (lambda: team_macro_f1(["a"], ["b"], classes="ab"), "list of different labels"),
        (lambda: team_macro_f1([0, 1], [0.0, np.nan]), "y_pred has no label at row 1"),
        (lambda: team_macro_f1(["a", None], ["a", "a"]), "y_true has no label at row 1"),
        (lambda: team_macro_f1([0, 1], ["a", "b"]), "different types"),
        (lambda: team_macro_f1([0, 1], [0]), r"shapes \(2,\) and \(1,\)"),
        (lambda: team_grade_error(["mild", "severe"], ["severe", "mild"]), "Words have no order"),
        (lambda: team_quadratic_kappa(["a", "b"], ["b", "b"]), r"give grades=\[...\]"),
        (lambda: team_f1([0, 1, 2], [0, 1, 2]), "give pos_label, the class to compare with all"),
        (lambda: team_f1([0, 1], [0, 1], classes=[0, 1, 2]), "needs two classes"),
        (lambda: team_f1([0], [1], pos_label=7, classes=[0, 1, 2]), "pos_label=7 is none of"),
        (lambda: team_cost([0, 1, 2], [0, 1, 2], false_negative=2), "give cost_matrix"),
        (lambda: team_cost([0, 1], [0, 1], cost_matrix=[[0, 1, 1]]), r"has the shape \(1, 3\)"),
        (
            lambda: team_cost([0, 1], [0, 1], cost_matrix=[[0, -1], [1, 0]]),
            "finite and not negative",
        ),
        (
            lambda: team_cost([0, 1], [0, 1], cost_matrix=[[0, 1], [1, 0]], false_negative=3),
            "either cost_matrix",
        ),
    ],
)
def test_errors_say_what_was_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


class GradingTeam(StubTeam):
    """A team for grades that needs no training: it answers the first column of X."""

    def __init__(self, classes=(0, 1, 2, 3)):
        self.classes_ = np.array(classes)

    def predict(self, X):
        return self.classes_[np.asarray(X)[:, 0].astype(int)]

    def defer(self, X):
        return np.arange(len(X)) < 2


@pytest.mark.parametrize("name", ["error", "macro_f1", "macro_sensitivity", "cost"])
def test_scorers_of_many_classes(name):
    team, X = GradingTeam(), ANSWERS[:, None]
    function, better = find_metric(name)
    answer = np.where(np.arange(8) < 2, GRADES, ANSWERS)
    value = function(GRADES, answer)
    score = make_team_scorer(name)(team, X, GRADES, human_labels=GRADES)
    assert score == (value if better else -value)
    assert find_metric(function) == (function, better)


@pytest.mark.parametrize(("name", "value"), [("grade_error", -1.5), ("quadratic_kappa", 0.0)])
def test_scorers_of_grades_know_the_grades_of_the_estimator(name, value):
    X, y, human = np.full((4, 1), 3), np.array([0, 3, 0, 3]), np.array([3, 3, 3, 3])
    assert make_team_scorer(name)(GradingTeam(), X, y, human_labels=human) == value
    words = np.array(["mild", "medium", "severe", "worst"])
    team = GradingTeam(words)
    scorer = make_team_scorer(name, grades=words)
    assert scorer(team, X, words[y], human_labels=words[human]) == value
    # An estimator that was told the order passes it on.
    team.classes = words.tolist()
    assert make_team_scorer(name)(team, X, words[y], human_labels=words[human]) == value
    # The alphabet is no order of grades.
    team.classes = "auto"
    with pytest.raises(ValueError, match="Words have no order"):
        make_team_scorer(name)(team, X, words[y], human_labels=words[human])


def test_the_positive_class_of_many_is_never_guessed():
    """Even if a test set holds two of them only."""
    X, y = np.array([[0], [1], [1]]), np.array([0, 0, 1])
    for name in ("f1", "sensitivity", "specificity"):
        with pytest.raises(ValueError, match="needs two classes"):
            make_team_scorer(name)(GradingTeam(), X, y, human_labels=y)
    scorer = make_team_scorer("sensitivity", pos_label=1)
    assert scorer(GradingTeam(), X, y, human_labels=y) == 1


def test_a_metric_gets_what_it_asks_for():
    seen = {}

    def metric(y_true, y_pred, classes=None, grades=None, pos_label=None):
        seen.update(classes=classes, grades=grades, pos_label=pos_label)
        return 0.0

    def ask(classes, metric=metric, **options):
        evaluate_team(metric, classes[:1], classes[:1], list, classes, **options)
        return {name: value if value is None else list(value) for name, value in seen.items()}

    assert ask([2, 0, 1]) == {"classes": [2, 0, 1], "grades": [0, 1, 2], "pos_label": None}
    assert ask(["b", "a", "c"]) == {
        "classes": ["b", "a", "c"],
        "grades": None,
        "pos_label": None,
    }
    assert ask(["b", "a", "c"], ordered=True)["grades"] == ["b", "a", "c"]
    assert ask([2, 0, 1], ordered=True)["grades"] == [2, 0, 1]
    assert ask([0, 1, 2], grades=[2, 1, 0])["grades"] == [2, 1, 0]
    assert ask([0, 1, 2], partial(metric, grades=[2, 1, 0]))["grades"] == [2, 1, 0]
