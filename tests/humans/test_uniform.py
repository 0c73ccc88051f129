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


def test_any_two_labels_are_answered_in_kind():
    y = np.array(["healthy", "sick"] * 50)
    human = UniformHuman(0.3)
    h = human.scores(y, random_state=0)
    np.testing.assert_array_equal(h, human.scores(np.where(y == "sick", 1, -1), random_state=0))
    answers = human.labels(y, random_state=0)
    np.testing.assert_array_equal(answers, np.where(h >= 0, "sick", "healthy"))
    np.testing.assert_array_equal(human.losses(y, random_state=0), loss_from_scores(h, y))


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0])
def test_expected_loss_is_the_mean_over_draws(spread):
    human = UniformHuman(spread)
    drawn = human.losses(LABELS, random_state=0)
    standard_error = np.sqrt(1 / 12 / len(LABELS))
    assert drawn.mean() == pytest.approx(human.expected_losses(LABELS)[0], abs=5 * standard_error)
    assert human.expected_losses(LABELS).shape == LABELS.shape


@pytest.mark.parametrize("y", [[0], [0, 1, 2], [None, 1], [[1, -1]]])
def test_labels_of_no_two_classes_are_refused(y):
    with pytest.raises(ValueError, match=r"two classes|no label|one dimension"):
        UniformHuman(0.1).scores(y)
