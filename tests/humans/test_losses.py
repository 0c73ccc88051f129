"""Losses of scores and labels, with gaps, several readers and any two labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn.humans import (
    labels_from_scores,
    loss_from_labels,
    loss_from_scores,
    majority_labels,
)


def test_label_of_a_tie_is_plus_one():
    labels = labels_from_scores([0.0, -0.0, -1e-300, 1e-300])
    assert labels.tolist() == [1, 1, -1, 1]
    assert labels.dtype.kind == "i"


def test_sure_and_right_costs_nothing_however_large_the_score():
    assert loss_from_scores([5.0, -5.0, 5.0], [1, -1, -1]).tolist() == [0.0, 0.0, 6.0]


def test_several_readers_pay_the_mean_of_their_losses():
    # Not the loss of the mean score: [1 - 1.5]_+ and [1 + 0.5]_+ average to 0.75, not to 0.5.
    assert loss_from_scores([[1.5, -0.5]], [1]).tolist() == [0.75]


def test_score_on_the_bound_is_allowed():
    assert loss_from_scores([1.0, -1.0], [1, 1], human_bound=1.0).tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("scores", "y", "bound", "message"),
    [
        ([0.5], [0], None, r"two classes are needed, found 1 \(0\)"),
        ([0.5] * 3, [0, 1, 2], None, r"found 3 \(0, 1, 2\)"),
        ([0.5], ["a"], None, "classes="),
        ([0.5, 0.5], ["a", 1], None, "different kinds"),
        ([0.5, 0.5], ["a", None], None, "row 1 has no label"),
        ([[0.5, 0.1], [0.5]], [1, -1], None, "one length"),
        ([None, None], [1, -1], None, "no case has an answer"),
        (["0.5", None], [1, -1], None, "must be numbers"),
        ([0.5 + 1j], [1], None, "must be numbers"),
        ([0.5], [[1]], None, "one dimension"),
        ([[0.1, float("inf")]], [1], None, "row 0 is not"),
        (["x"], [1], None, "must be numbers"),
        ([0.5], [1, -1], None, "1 rows and y has 2"),
        ([[[0.5]]], [1], None, "n_readers"),
        (np.zeros((1, 0)), [1], None, "n_readers"),
        ([1.5], [1], 1.0, r"1.5 lies outside \[-1, 1\]"),
        ([0.5], [1], 0.0, "positive number"),
        ([0.5], [1], float("nan"), "positive number"),
    ],
)
def test_errors_say_what_was_wrong(scores, y, bound, message):
    with pytest.raises(ValueError, match=message):
        loss_from_scores(scores, y, human_bound=bound)


def test_no_samples_is_no_error():
    assert loss_from_scores([], []).shape == (0,)
    assert loss_from_labels([], []).shape == (0,)
    assert majority_labels(np.zeros((0, 3))).shape == (0,)


GAPS = [float("nan"), None, "NA", "masked"]


def with_gap(values, gap):
    """The values with a gap in the second place, in the way that the name says."""
    if gap == "masked":
        return np.ma.masked_array(values, mask=[i == 1 for i in range(len(values))])
    if gap == "NA":
        gap = pytest.importorskip("pandas").NA
    return [values[0], gap, *values[2:]]


@pytest.mark.parametrize("gap", GAPS)
def test_unread_case_gets_the_average_of_its_class(gap):
    # Class +1: losses 0.5 and 1.5; class -1: 0.2.
    scores, y = with_gap([0.5, 0.9, -0.5, -0.8], gap), [1, 1, 1, -1]
    with pytest.warns(UserWarning, match="no answer was given for 1 of 4 cases.*: 1 of class 1"):
        loss = loss_from_scores(scores, y)
    np.testing.assert_allclose(loss, [0.5, 1.0, 1.5, 0.2])
    with pytest.warns(UserWarning, match="1 of 4 cases"):
        loss = loss_from_labels(with_gap([1, 1, -1, -1], gap), y)
    np.testing.assert_allclose(loss, [0, 1, 2, 0])


@pytest.mark.parametrize("gap", [gap for gap in GAPS if gap != "masked"])
def test_gaps_between_words(gap):
    y = np.array(["sick", "sick", "well", "sick"])
    with pytest.warns(UserWarning, match="1 of class 'sick'"):
        loss = loss_from_labels(with_gap(["sick", "sick", "sick", "well"], gap), y)
    np.testing.assert_allclose(loss, [0, 1, 2, 2])


def test_class_that_nobody_read_borrows_the_others_average():
    with pytest.warns(UserWarning, match="2 of class 1 .all of it: the average of the other"):
        loss = loss_from_labels([-1, 1, None, None], [-1, -1, 1, 1])
    assert loss.tolist() == [0, 2, 1, 1]


def test_missing_reader_of_several_brings_no_warning():
    loss = loss_from_scores([[1.0, None], [0.5, 0.0]], [1, 1])
    assert loss.tolist() == [0.0, 0.75]


@pytest.mark.parametrize("kind", ["array", "frame", "nullable", "categorical"])
def test_frames_and_arrays_give_the_same(kind):
    answers = [["a", "b"], ["b", None], ["b", "b"]]
    if kind == "array":
        given = np.array(answers, dtype=object)
    else:
        pd = pytest.importorskip("pandas")
        dtype = {"frame": object, "nullable": "string", "categorical": "category"}[kind]
        given = pd.DataFrame(answers).astype(dtype)
    assert loss_from_labels(given, ["a", "a", "b"]).tolist() == [1, 2, 0]
    assert majority_labels(given).tolist() == ["a", "b", "b"]


@pytest.mark.parametrize(
    ("answers", "y", "options", "message"),
    [
        ([0, 2], [0, 1], {}, "2 at row 1, which is neither of the two classes 0, 1"),
        (["a", "A"], ["a", "b"], {}, "'A' at row 1"),
        (["1", "0"], [1, 0], {}, "'1' at row 0"),
        (np.array(["a", np.nan]), ["a", "b"], {}, "'nan' at row 1.*array of objects"),
        ([1, 0], ["1", "0"], {}, "1 at row 0"),
        ([[1, 1], [1, 7]], [1, -1], {}, "7 at row 1"),
        ([1, 2], [0, 0], {}, "found 3"),
        ([1, -1, 1], [1, -1], {}, "3 rows and y has 2"),
        ([1, -1], [1, -1], {"shrinkage": -1}, "shrinkage must be a number >= 0"),
        ([1, -1], [1, -1], {"shrinkage": "much"}, "'much'"),
        ([1, -1], [1, -1], {"shrinkage": np.nan}, "shrinkage"),
        ([1, -1], [1, -1], {"classes": [1, 1]}, "two different labels"),
        ([1, -1], [1, -1], {"classes": "ab"}, "two different labels"),
    ],
)
def test_labels_that_do_not_fit(answers, y, options, message):
    with pytest.raises(ValueError, match=message):
        loss_from_labels(answers, y, **options)


def test_one_class_alone():
    assert loss_from_labels(["a", "b"], ["a", "a"]).tolist() == [0, 2]
    assert loss_from_labels([0, 0], [0, 0], classes=(0, 1)).tolist() == [0, 0]
    assert loss_from_scores([0.5], ["b"], classes=("a", "b")).tolist() == [0.5]
    assert loss_from_scores([0.5], ["b"], classes=np.array(["a", "b"])).tolist() == [0.5]
    with pytest.raises(ValueError, match=r"neither of the two classes 3, 4$"):
        loss_from_labels([5], [3], classes=np.array([3, 4]))
    assert loss_from_scores([0.5], ["b"], classes=("b", "a")).tolist() == [1.5]


answers_and_truth = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(
            st.lists(st.sampled_from([-1, 1, None]), min_size=3, max_size=3), min_size=n, max_size=n
        ),
        st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n),
    )
)


def by_hand(answers, y, strength):
    """The documented rule, case by case."""
    means = {}
    for i, row in enumerate(answers):
        said = [0.0 if a == y[i] else 2.0 for a in row if a is not None]
        if said:
            means[i] = sum(said) / len(said)
    result = []
    for i, row in enumerate(answers):
        own = [means[j] for j in means if y[j] == y[i]] or list(means.values())
        average = sum(own) / len(own)
        m = sum(a is not None for a in row)
        total = means[i] * m if i in means else 0.0
        result.append((total + strength * average) / (m + strength) if m else average)
    return result


@settings(deadline=None)
@given(answers_and_truth, st.sampled_from([0.0, 0.5, 1.0, 10.0]))
@pytest.mark.filterwarnings("ignore:.*no answer was given for")
def test_losses_follow_the_documented_rule(case, strength):
    answers, y = case
    if all(a is None for row in answers for a in row):
        with pytest.raises(ValueError, match="no case has an answer"):
            loss_from_labels(answers, y)
        return
    loss = loss_from_labels(answers, y, shrinkage=strength)
    np.testing.assert_allclose(loss, by_hand(answers, y, strength), atol=1e-12)
    # Labels are scores of full confidence, and no renaming of the classes matters.
    np.testing.assert_allclose(loss_from_scores(answers, y, 1.0, shrinkage=strength), loss)
    names = {-1: "no", 1: "yes", None: None}
    renamed = [[names[a] for a in row] for row in answers]
    truth = [names[label] for label in y]
    np.testing.assert_allclose(
        loss_from_labels(renamed, truth, classes=("no", "yes"), shrinkage=strength), loss
    )


@settings(deadline=None)
@given(answers_and_truth)
@pytest.mark.filterwarnings("ignore:.*no answer was given for")
def test_estimated_shrinkage_stays_between_the_case_and_its_class(case):
    answers, y = case
    if all(a is None for row in answers for a in row):
        return
    raw, steady = (loss_from_labels(answers, y, shrinkage=k) for k in (0.0, "auto"))
    average = np.array(by_hand(answers, y, 1e12))
    assert (steady >= np.minimum(raw, average) - 1e-9).all()
    assert (steady <= np.maximum(raw, average) + 1e-9).all()


def test_estimated_strength_is_that_of_the_model():
    # Beta(a, b) chances of error: the best strength for 0/1 answers is a + b (conjugate prior).
    rng = np.random.default_rng(0)
    chance = rng.beta(2.0, 4.0, size=20_000)
    n_answers = rng.integers(1, 6, size=len(chance))
    wrong = rng.random((len(chance), 5)) < chance[:, None]
    answers = np.where(wrong, -1.0, 1.0)
    answers[np.arange(5) >= n_answers[:, None]] = np.nan
    y = np.ones(len(chance))
    steady = loss_from_labels(answers, y, shrinkage="auto")
    errors = {
        k: np.mean((loss_from_labels(answers, y, shrinkage=k) / 2 - chance) ** 2)
        for k in (0, 3, 6, 12)
    }
    assert min(errors, key=errors.get) == 6
    assert np.mean((steady / 2 - chance) ** 2) == pytest.approx(errors[6], rel=0.01)


def test_estimated_strength_where_cases_do_not_differ():
    # Nothing but chance: both cases have one right and one wrong answer.
    assert loss_from_labels([[1, -1], [-1, 1]], [1, 1], shrinkage="auto").tolist() == [1, 1]
    # Readers always agree: the cases speak for themselves.
    assert loss_from_labels([[1, 1], [-1, -1]], [1, 1], shrinkage="auto").tolist() == [0, 2]
    # One answer each: strength 1, towards the average 1.
    assert loss_from_labels([1, -1], [1, 1], shrinkage="auto").tolist() == [0.5, 1.5]


def test_sign_of_a_missing_score_is_unknown():
    with pytest.raises(ValueError, match="row 1 of scores has a missing answer"):
        labels_from_scores([1.0, None])


@settings(deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda r: st.lists(
            st.lists(st.sampled_from(["a", "b", "c", None]), min_size=r, max_size=r), min_size=1
        )
    )
)
def test_majority_against_a_count_by_hand(rows):
    expected = []
    for row in rows:
        said = [a for a in row if a is not None]
        expected.append(max(said, key=said.count) if said else "z")  # max takes the first of a tie
    assert majority_labels(rows, default=["z"] * len(rows)).tolist() == expected


def test_majority_keeps_the_type_and_refuses_silence():
    assert majority_labels([3, 1]).tolist() == [3, 1]
    assert majority_labels(np.array([[1, 0, 0]])).dtype.kind == "i"
    assert majority_labels([[1, None]]).dtype.kind == "i"
    assert majority_labels([[True, None]]).dtype.kind == "b"
    with pytest.raises(
        ValueError, match="no answer was given for 2 of 3 rows, the first of them row 0"
    ):
        majority_labels([[None, None], [1, 1], [None, None]])
    assert majority_labels([None, 1.0], default=[5, 5]).tolist() == [5, 1]
    with pytest.raises(ValueError, match="one label for each of the 2 rows"):
        majority_labels([None, 1], default=[1])
