"""The classes of a problem: codes, signs of machines, answers, and what mistakes cost."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deferlearn.humans.coding import CLASSES, GRADES, TWO, code_classes, codes_among, grades_in
from deferlearn.humans.human import read_human

LEVELS = ["none", "mild", "severe"]


def test_two_classes_have_one_machine():
    coding, codes = code_classes(np.array(["well", "sick", "well"]))
    assert coding.kind == TWO
    assert coding.classes.tolist() == ["sick", "well"]
    assert codes.tolist() == [1, 0, 1]
    assert coding.signs(codes).tolist() == [[1.0], [-1.0], [1.0]]
    assert coding.hinge_per_error == 2.0


def test_several_classes_have_one_machine_each():
    coding, codes = code_classes(np.array([3, 1, 2]))
    assert coding.kind == CLASSES
    assert coding.signs(codes).tolist() == [[-1, -1, 1], [1, -1, -1], [-1, 1, -1]]
    assert coding.costs.tolist() == (1 - np.eye(3)).tolist()


def test_grades_have_a_machine_per_step():
    coding, codes = code_classes(np.array(["mild", "none", "severe"]), LEVELS)
    assert coding.kind == GRADES
    assert codes.tolist() == [1, 0, 2]
    assert coding.signs(codes).tolist() == [[1, -1], [-1, -1], [1, 1]]
    assert coding.costs.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


@given(st.integers(2, 7), st.booleans(), st.integers(0, 10**6))
def test_signs_are_understood_again(n_classes, graded, seed):
    """The answer by votes of machines that say what they should is the class; losses are hinges."""
    labels = np.arange(n_classes)
    coding, codes = code_classes(labels, "grades" if graded else "auto")
    signs = coding.signs(codes)
    votes = signs[:, 0] if n_classes == 2 else signs
    np.testing.assert_array_equal(coding.by_votes(votes), codes)
    # An answer's loss is the sum of the hinge losses of the machines: 0 where it agrees, 2 where not.
    rng = np.random.RandomState(seed)
    said = rng.randint(n_classes, size=n_classes)
    hinges = np.maximum(0.0, 1.0 - signs * coding.signs(said)).sum(axis=1)
    np.testing.assert_allclose(coding.hinge_per_error * coding.costs[codes, said], hinges)
    human = read_human(codes, coding, human_labels=labels[said])
    np.testing.assert_allclose(human.loss, hinges)


def test_machines_that_contradict_each_other_are_counted():
    coding, _ = code_classes(np.arange(4), "grades")
    decision = np.array([[1.0, -1.0, 0.5], [-1.0, -1.0, -1.0], [-1.0, 2.0, 2.0]])
    assert coding.by_votes(decision).tolist() == [2, 0, 2]


def test_probabilities_of_grades_give_the_median():
    coding, _ = code_classes(np.arange(3), "grades")
    p = np.array([[0.4, 0.3, 0.3], [0.2, 0.2, 0.6], [0.6, 0.0, 0.4]])
    assert coding.by_probability(np.log(np.maximum(p, 1e-9))).tolist() == [1, 2, 0]


def test_a_cost_matrix_is_kept_as_weights_and_relative_costs():
    costs = [[0, 2, 2], [1, 0, 3], [6, 6, 0]]
    coding, codes = code_classes(np.array([0, 1, 2, 2]), cost_matrix=costs)
    np.testing.assert_allclose(coding.weights, [2, 2, 6])
    np.testing.assert_allclose(coding.weights[:, None] * coding.costs, costs)
    weighted = coding.weighted(codes, coding.weights[codes])
    np.testing.assert_allclose(weighted.stakes, costs)
    # To say 1 where 0 and 2 are as likely costs (2 + 6) / 2, to say 2 costs 1, to say 0 costs 3.
    p = np.log([[0.5, 1e-9, 0.5]])
    np.testing.assert_allclose(weighted.expected(p), [[3.0, 4.0, 1.0]], atol=1e-6)
    assert weighted.by_probability(p).tolist() == [2]


def test_two_costs_are_class_weights():
    coding, codes = code_classes(np.array([0, 1]), cost_matrix=[[0, 5], [1, 0]])
    assert coding.weights.tolist() == [5, 1]
    assert coding.costs.tolist() == [[0, 1], [1, 0]]
    assert codes.tolist() == [0, 1]


def test_costs_of_two_grades_are_in_the_order_of_the_classes():
    """Two classes are sorted: costs in another order would be those of the other mistake."""
    y, costs = np.array(["well", "ill"]), [[0, 5], [1, 0]]
    with pytest.raises(ValueError, match="belong to 'ill', 'well': give classes and cost_matrix"):
        code_classes(y, ["well", "ill"], costs)
    with pytest.raises(ValueError, match="belong to 'ill', 'well': give classes and cost_matrix"):
        code_classes(y, ["well", "ill"], pd.DataFrame(costs))  # whose columns have no names
    named = pd.DataFrame(costs, index=["ill", "well"], columns=["ill", "well"])
    assert code_classes(y, ["well", "ill"], named)[0].weights.tolist() == [5, 1]
    coding, _ = code_classes(y, ["ill", "well"], costs)
    assert coding.weights.tolist() == [5, 1]
    assert code_classes(y, ["well", "ill"])[0].classes.tolist() == ["ill", "well"]


def test_costs_read_from_a_file():
    """There the names of columns are text, and those of rows may be numbers."""
    costs = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    frame = pd.read_csv(StringIO("truth,0,1,2\n0,0,1,2\n1,3,0,4\n2,5,6,0\n"), index_col=0)
    assert frame.columns.tolist() == ["0", "1", "2"]
    y = np.array([0, 1, 2])
    expected, _ = code_classes(y, cost_matrix=costs)
    np.testing.assert_array_equal(code_classes(y, cost_matrix=frame)[0].costs, expected.costs)
    with pytest.raises(ValueError, match=r"give cost_matrix\[\['0', '1', '2'\]\]"):
        code_classes(y, cost_matrix=frame[["2", "1", "0"]])
    with pytest.raises(ValueError, match=r"give cost_matrix.loc\[\[0, 1, 2\]\]"):
        code_classes(y, cost_matrix=frame.loc[[2, 1, 0]])


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, 1], [1, 0]], r"shape \(2, 2\), but there are 3 classes"),
        ([[0, 1, 1], [1, 0, -1], [1, 1, 0]], "got -1 in row 1, column 2"),
        ([[0, 1, 1], [1, 0, np.nan], [1, 1, 0]], "got nan in row 1, column 2"),
        ([[1, 1, 1], [1, 0, 1], [1, 1, 0]], "1 on its diagonal, for class 'a'"),
        ([[0, 1, 1], [0, 0, 0], [1, 1, 0]], "only zeros for class 'b'"),
        ([["x", 1, 1], [1, 0, 1], [1, 1, 0]], "must hold numbers"),
    ],
)
def test_bad_cost_matrices(costs, message):
    with pytest.raises(ValueError, match=message):
        code_classes(np.array(["a", "b", "c"]), cost_matrix=costs)


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (["b", "a", "c"], "grades", "are words, whose order is not known"),
        (["b", "a", "c"], ["a", "b"], "y holds 'c', which is none of the grades"),
        (["b", "a"], ["a", "b", "c"], "no sample of 'c'"),
        (["b", "a"], ["a", "a", "b"], "different grades"),
        (["b", "a"], "ordered", "must be 'auto', 'grades'"),
        (["b", "a"], None, "must be 'auto', 'grades'"),
        (["b", "a"], 3, "must be 'auto', 'grades'"),
        (["b", "a"], [["a"], ["b"]], "must be 'auto', 'grades'"),
        (["a", "a"], "auto", "1 class, 'a'"),
    ],
)
def test_bad_classes(y, classes, message):
    with pytest.raises(ValueError, match=message):
        code_classes(np.array(y), classes)


def test_an_ordered_categorical_knows_its_order():
    y = pd.Series(pd.Categorical(["mild", "none"], categories=LEVELS, ordered=True))
    assert grades_in(y, "grades") == ["none", "mild"]
    assert grades_in(y, "auto") == "auto"
    assert grades_in(np.array([1, 2]), "grades") == "grades"


def test_answers_among_the_classes():
    classes = np.array(["a", "b", "c"])
    assert codes_among(np.array(["c", "a"]), classes, "y").tolist() == [2, 0]
    with pytest.raises(
        ValueError, match="human_labels holds 'd' at row 1, which is none of the classes"
    ):
        codes_among(np.array(["c", "d"]), classes, "human_labels")
    assert codes_among(np.array([2.0, 7.0]), np.array([2, 5, 7]), "y").tolist() == [0, 2]
    with pytest.raises(ValueError, match="holds 6"):
        codes_among(np.array([6]), np.array([2, 5, 7]), "y")


def test_several_readers_with_gaps():
    coding, codes = code_classes(np.array(["a", "b", "c", "c"]))
    answers = [["a", "b"], ["b", None], [None, None], ["a", "c"]]
    human = read_human(codes, coding, human_labels=np.array(answers, dtype=object))
    # Half wrong costs 2; the unread case of class c has the mean loss of the other case of c.
    np.testing.assert_allclose(human.loss, [2.0, 0.0, 2.0, 2.0])
    assert len(human.gap_notes) == 1
    np.testing.assert_array_equal(human.scores[0], [0, 1])
    assert np.isnan(human.scores[2]).all()


def test_a_class_that_only_humans_name():
    coding, codes = code_classes(np.array(["a", "b", "c"]))
    with pytest.raises(ValueError, match="human_labels holds 'd' at row 2"):
        read_human(
            codes,
            coding,
            human_labels=np.array([["a", None], ["b", "b"], ["c", "d"]], dtype=object),
        )


def test_scores_speak_of_two_classes():
    coding, codes = code_classes(np.array(["a", "b", "c"]))
    with pytest.raises(ValueError, match="human_scores are for two classes, but y has 3"):
        read_human(codes, coding, human_scores=np.zeros(3))
    human = read_human(codes, coding, human_loss=np.array([0.0, 4.0, np.nan]))
    np.testing.assert_allclose(human.loss, [0.0, 4.0, 2.0])
