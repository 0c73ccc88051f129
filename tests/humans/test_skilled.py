"""Experts whose skill depends on the case."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn.humans import SkilledHuman, labels_from_scores, loss_from_scores

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20_000, 3))
Y = RNG.choice([-1, 1], size=len(X))


def rate(wrong, where):
    return wrong[where].mean()


def test_half_space():
    human = SkilledHuman.good_in_half_space([1, -1, 0], offset=0.5, good=0.1, poor=0.45)
    wrong = human.labels(X, Y, random_state=0) != Y
    inside = X[:, 0] - X[:, 1] > 0.5
    assert rate(wrong, inside) == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / inside.sum()))
    assert rate(wrong, ~inside) == pytest.approx(0.45, abs=5 * np.sqrt(0.25 / (~inside).sum()))
    np.testing.assert_allclose(human.error_probability(X), np.where(inside, 0.1, 0.45))
    np.testing.assert_allclose(human.error_probability(sp.csr_array(X)), human.error_probability(X))


def test_ball():
    human = SkilledHuman.good_near([0, 1, 0], radius=1.0, good=0.0, poor=0.3)
    wrong = human.labels(X, Y, random_state=0) != Y
    near = ((X - [0, 1, 0]) ** 2).sum(axis=1) < 1
    assert not wrong[near].any()
    assert rate(wrong, ~near) == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / (~near).sum()))
    np.testing.assert_allclose(human.error_probability(sp.csr_array(X)), human.error_probability(X))


def test_width_makes_the_border_smooth():
    human = SkilledHuman.good_in_half_space([1.0], good=0.1, poor=0.5, width=2.0)
    error = human.error_probability([[-1e9], [-2.0], [0.0], [2.0], [1e9]])
    middle = 0.5 - 0.4 / (1 + np.exp(-1))
    np.testing.assert_allclose(error, [0.5, 0.6 - middle, 0.3, middle, 0.1])
    ball = SkilledHuman.good_near([0.0], radius=2.0, good=0.1, poor=0.5, width=2.0)
    np.testing.assert_allclose(ball.error_probability([[2.0], [-4.0]]), [0.3, 0.6 - middle])


def test_one_seed_is_one_draw():
    human = SkilledHuman(lambda X: np.clip(np.abs(X[:, 0]), 0, 1))
    h = human.scores(X, Y, random_state=1)
    assert set(h) == {-1.0, 1.0}
    np.testing.assert_array_equal(human.labels(X, Y, random_state=1), labels_from_scores(h))
    np.testing.assert_array_equal(human.losses(X, Y, random_state=1), loss_from_scores(h, Y))
    assert (h != human.scores(X, Y, random_state=2)).any()
    expected = human.expected_losses(X, Y)
    np.testing.assert_allclose(expected, 2 * human.error_probability(X))
    assert human.losses(X, Y, random_state=1).mean() == pytest.approx(expected.mean(), abs=0.03)


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(0, 20))
def test_constant_error_with_words(error, n):
    words = np.array(["no", "yes"] * 10)[:n] if n > 1 else np.array([1] * n)
    human = SkilledHuman(error)
    answers = human.labels(np.zeros((n, 1)), words, random_state=0)
    losses = human.losses(np.zeros((n, 1)), words, random_state=0)
    np.testing.assert_array_equal(losses, 2.0 * (answers != words))
    if error in (0.0, 1.0):
        assert (answers != words).all() == (error == 1.0) or n == 0


def test_frames_reach_the_function_as_they_are():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": [30, 80]})
    human = SkilledHuman(lambda X: (X["age"] > 60) * 0.5)
    assert human.error_probability(frame).tolist() == [0.0, 0.5]
    half = SkilledHuman.good_in_half_space([1.0], 50)
    assert half.error_probability(frame).tolist() == [0.4, 0.05]


def test_ready_made_experts_can_be_stored_and_shown():
    human = SkilledHuman.good_near([0, 0, 0], 1.5)
    again = pickle.loads(pickle.dumps(human))
    np.testing.assert_array_equal(again.scores(X, Y, 0), human.scores(X, Y, 0))
    assert "radius=1.5" in repr(human)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SkilledHuman(1.5), "0 <= error <= 1, got 1.5"),
        (lambda: SkilledHuman("often"), "got 'often'"),
        (
            lambda: SkilledHuman(lambda X: 2.0 * X[:, 0]).scores([[0.0], [1.0]], [1, 1]),
            "2 at row 1",
        ),
        (lambda: SkilledHuman(lambda X: X).scores([[0.0]], [1]), r"got \(1, 1\)"),
        (lambda: SkilledHuman(lambda X: [np.nan]).scores([[0.0]], [1]), "nan at row 0"),
        (lambda: SkilledHuman(0.1).scores([[0.0]], [1, 1]), "1 rows and y has 2"),
        (lambda: SkilledHuman.good_in_half_space([0.0, 0.0]), "other than zero"),
        (lambda: SkilledHuman.good_in_half_space([1.0], good=-1), "0 <= good <= 1"),
        (lambda: SkilledHuman.good_in_half_space([1.0], width=-1), "width"),
        (lambda: SkilledHuman.good_in_half_space([1.0]).scores([[1.0, 2.0]], [1]), "X has 2"),
        (lambda: SkilledHuman.good_near([np.nan], 1.0), "finite vector"),
        (lambda: SkilledHuman.good_near([1.0], -1.0), "radius"),
    ],
)
def test_errors_say_what_was_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
