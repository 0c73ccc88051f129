"""Experts for any number of classes: by their confusions, and by the region of a case."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn.humans import ConfusedHuman, SkilledHuman
from deferlearn.metrics import confusion_counts

N = 60_000
CONFUSION = [[0.7, 0.3, 0.0], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]]


@pytest.mark.parametrize("classes", [None, ["low", "mid", "high"], [0.2, 0.6, 0.4], [5, "a", 2.5]])
def test_answers_follow_the_confusions(classes):
    human = ConfusedHuman(CONFUSION, classes)
    known = list(range(3)) if classes is None else classes
    codes = np.arange(N) % 3
    y = [known[k] for k in codes]
    answers = human.labels(y, random_state=0)
    place = [known.index(label) for label in answers.tolist()]
    shares = confusion_counts(codes, place) / (N / 3)
    np.testing.assert_allclose(shares, CONFUSION, atol=5 * np.sqrt(0.25 / (N / 3)))
    assert shares[0, 2] == 0
    np.testing.assert_allclose(human.answer_probabilities(y[:3]), CONFUSION)
    np.testing.assert_allclose(human.error_probability(y[:3]), [0.3, 0.4, 0.5])
    np.testing.assert_array_equal(answers, human.labels(y, random_state=0))
    assert (answers != human.labels(y, random_state=1)).any()
    assert human.labels([], random_state=0).shape == (0,)


def test_words_are_as_short_as_they_are_and_types_stay():
    assert ConfusedHuman(CONFUSION, ["a", "b", "c"]).labels(["a"]).dtype == "<U1"
    assert ConfusedHuman(CONFUSION).labels([1, 2]).dtype.kind == "i"
    assert ConfusedHuman(CONFUSION).labels(np.array([1.0, 2.0])).dtype.kind == "i"


@settings(deadline=None)
@given(
    st.integers(2, 8).flatmap(
        lambda k: st.lists(st.floats(0, 1), min_size=k, max_size=k).map(np.array)
    ),
    st.floats(0, 1),
)
def test_ready_made_confusions(errors, further):
    k = len(errors)
    even = ConfusedHuman.with_errors(errors, range(k)).confusion
    grades = ConfusedHuman.off_by_one(errors, range(k), further=further).confusion
    for confusion in (even, grades):
        np.testing.assert_allclose(confusion.sum(axis=1), 1)
        np.testing.assert_allclose(np.diag(confusion), 1 - errors, atol=1e-12)
        assert (confusion >= 0).all()
    wrong = even[~np.eye(k, dtype=bool)].reshape(k, k - 1)
    np.testing.assert_allclose(wrong, np.repeat(errors[:, None] / (k - 1), k - 1, axis=1))
    for true in range(k):
        for step in range(1, k):
            ahead = [place for place in (true - step, true + step) if 0 <= place < k]
            for place in ahead:
                near = true + (place - true) // step
                assert grades[true, place] == pytest.approx(
                    grades[true, near] * further ** (step - 1), abs=1e-12
                )


def test_one_error_for_all():
    human = ConfusedHuman.off_by_one(0.3, ["mild", "medium", "severe"], further=0)
    np.testing.assert_allclose(
        human.confusion, [[0.7, 0.3, 0.0], [0.15, 0.7, 0.15], [0.0, 0.3, 0.7]]
    )
    always = ConfusedHuman.with_errors(1.0, ["a", "b"])
    assert always.labels(["a", "b", "a"]).tolist() == ["b", "a", "b"]


def test_stored_and_shown():
    human = ConfusedHuman(CONFUSION, ["a", "b", "c"])
    again = pickle.loads(pickle.dumps(human))
    np.testing.assert_array_equal(again.labels(["a"] * 50, 0), human.labels(["a"] * 50, 0))
    assert eval(repr(human)).classes == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ConfusedHuman([[1.0]]), "at least two classes"),
        (lambda: ConfusedHuman([[1.0, 0.0]]), r"got the shape \(1, 2\)"),
        (lambda: ConfusedHuman(0.5), r"got the shape \(\)"),
        (lambda: ConfusedHuman([[0.5, 0.6], [0, 1]]), "sum to one"),
        (lambda: ConfusedHuman([[1.5, -0.5], [0, 1]]), "sum to one"),
        (lambda: ConfusedHuman([[np.nan, 1], [0, 1]]), "sum to one"),
        (lambda: ConfusedHuman(np.eye(2), ["a", "b", "c"]), "2 rows, but there are 3 classes"),
        (lambda: ConfusedHuman(np.eye(2), ["a", "a"]), "different labels"),
        (lambda: ConfusedHuman(np.eye(2), ["a", None]), "different labels"),
        (lambda: ConfusedHuman(np.eye(2)).labels([0, 2]), "holds 2 at row 1, which is neither"),
        (lambda: ConfusedHuman(np.eye(2)).labels([[0], [1]]), "one dimension"),
        (lambda: ConfusedHuman(np.eye(2)).labels([0, None]), "no label at row 1"),
        (lambda: ConfusedHuman.with_errors(1.5, [0, 1]), "0 <= error <= 1"),
        (lambda: ConfusedHuman.with_errors([0.1], [0, 1]), "one for each of 2 classes"),
        (lambda: ConfusedHuman.with_errors(0.1, [0]), "at least two classes"),
        (lambda: ConfusedHuman.off_by_one(0.1, [0, 1], further=2), "further must be between"),
    ],
)
def test_errors_say_what_was_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("classes", [list(range(10)), list("abcdefghij"), [3, 9, 4]])
def test_regional_expert_of_many_classes(classes):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(N, 2)), rng.integers(len(classes), size=N)
    y = np.array(classes)[codes]
    human = SkilledHuman.good_in_half_space([1.0, 1.0], good=0.05, poor=0.35)
    answers = human.labels(X, y, random_state=0)
    assert answers.dtype.kind == y.dtype.kind
    inside = X.sum(axis=1) > 0
    for part, error in ((inside, 0.05), (~inside, 0.35)):
        assert np.mean((answers != y)[part]) == pytest.approx(error, abs=0.01)
    # Wrong answers spread evenly over the others.
    wrong = answers != y
    counts = confusion_counts(y[wrong], answers[wrong], classes=classes)
    assert not np.diag(counts).any()
    others = counts[~np.eye(len(classes), dtype=bool)]
    mean = wrong.sum() / len(others)
    assert np.abs(others - mean).max() < 5 * np.sqrt(mean)
    np.testing.assert_array_equal(answers, human.labels(X, y, random_state=0))


def test_regional_expert_knows_classes_that_y_lacks():
    X, y = np.zeros((2000, 1)), np.repeat([0, 1], 1000)
    human = SkilledHuman(1.0)
    assert set(human.labels(X, y, random_state=0)) == {0, 1}
    assert set(human.labels(X, y, random_state=0, classes=range(4))) == {0, 1, 2, 3}
    # Two classes named are the same draw as two classes found.
    half = SkilledHuman(0.5)
    np.testing.assert_array_equal(
        half.labels(X, y, random_state=3), half.labels(X, y, random_state=3, classes=[0, 1])
    )
    assert set(half.labels(X[:9], ["a"] * 9, random_state=0, classes=["a", "b"])) == {"a", "b"}
    with pytest.raises(ValueError, match="y holds 1 at row 1000"):
        human.labels(X, y, classes=[0, 2, 3])
    with pytest.raises(ValueError, match="2000 rows and y has 3"):
        human.labels(X, [0, 1, 2])
    with pytest.raises(ValueError, match="two classes are needed, found 3"):
        human.scores(X[:3], [0, 1, 2])
