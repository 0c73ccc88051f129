import numpy as np
import pytest

from deferlearn.humans import UniformHuman, labels_from_scores, loss_from_scores

LABELS = np.repeat([-1, 1], 20_000)


@pytest.mark.parametrize("spread", [0.0, 0.2, 0.8, 1.0])
def test_scores_follow_the_papers_uniform_laws(spread):
    h = UniformHuman(spread).scores(LABELS, random_state=0)
    for label, low, high in [(1, -spread, 1 - spread), (-1, spread - 1, spread)]:
        drawn = h[label == LABELS]
        assert low <= drawn.min() <= low + 0.01
        assert high - 0.01 <= drawn.max() <= high
        # Five standard errors of the mean and about as many of the variance.
        assert drawn.mean() == pytest.approx((low + high) / 2, abs=0.011)
        assert drawn.var() == pytest.approx(1 / 12, abs=0.003)


def test_spread_is_the_probability_of_error():
    wrong = UniformHuman(0.2).labels(LABELS, random_state=0) != LABELS
    assert wrong.mean() == pytest.approx(0.2, abs=0.01)
    assert not (UniformHuman(0.0).labels(LABELS, random_state=0) != LABELS).any()


def test_one_seed_is_one_draw():
    human = UniformHuman(0.4)
    h = human.scores(LABELS, random_state=3)
    np.testing.assert_array_equal(h, human.scores(LABELS, random_state=3))
    np.testing.assert_array_equal(human.labels(LABELS, random_state=3), labels_from_scores(h))
    np.testing.assert_array_equal(human.losses(LABELS, random_state=3), loss_from_scores(h, LABELS))
    assert (h != human.scores(LABELS, random_state=4)).any()


def test_losses_are_hinge_losses_of_the_scores():
    human = UniformHuman(0.2)
    h, losses = human.scores(LABELS, random_state=1), human.losses(LABELS, random_state=1)
    np.testing.assert_allclose(losses, np.maximum(0, 1 - LABELS * h))
    assert losses.min() >= 0.2
    assert losses.max() <= 1.2


@pytest.mark.parametrize("spread", [-0.1, 1.1, float("nan")])
def test_spread_must_be_a_probability(spread):
    with pytest.raises(ValueError, match="0 <= spread <= 1"):
        UniformHuman(spread)


def test_repr_can_be_evaluated():
    assert eval(repr(UniformHuman(0.3))).spread == 0.3


def test_label_of_a_tie_is_plus_one():
    labels = labels_from_scores([0.0, -0.0, -1e-300, 1e-300])
    assert labels.tolist() == [1, 1, -1, 1]
    assert labels.dtype.kind == "i"


def test_sure_and_right_costs_nothing_however_large_the_score():
    assert loss_from_scores([5.0, -5.0, 5.0], [1, -1, -1]).tolist() == [0.0, 0.0, 6.0]


def test_several_readers_pay_the_mean_of_their_losses():
    # Not the loss of the mean score: [1 - 1.5]_+ and [1 + 0.5]_+ average to 0.75, not to 0.5.
    assert loss_from_scores([[1.5, -0.5]], [1]).tolist() == [0.75]


def test_no_samples_is_no_error():
    assert loss_from_scores([], []).shape == (0,)
    assert UniformHuman(0.2).losses([], random_state=0).shape == (0,)


def test_score_on_the_bound_is_allowed():
    assert loss_from_scores([1.0, -1.0], [1, 1], human_bound=1.0).tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("scores", "y", "bound", "message"),
    [
        ([0.5], [0], None, "found 0 at row 0"),
        ([0.5, 0.5], [1, 2], None, "found 2 at row 1"),
        ([0.5], ["a"], None, "found a at row 0"),
        ([0.5], [[1]], None, "one dimension"),
        ([0.1, float("nan")], [1, 1], None, "row 1 is not"),
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
