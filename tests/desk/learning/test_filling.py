"""What is filled in against what is true of all cases, of which a simulated desk knows a part."""

import numpy as np
import pytest

from deferlearn.desk.learning.filling import (
    Known,
    better_way,
    curved,
    fill,
    learn_chances,
    like_the_newest,
    straight,
)

LABELS = np.array(["ill", "well"], dtype=object)
SWAPPED = {"ill": "well", "well": "ill"}


def desk(luck, n, audits=0.05, angle=0.0, deferred=0.2, slope=1.5):
    """All cases with truth and answers; the desk defers those near the boundary, if the expert is good."""
    X = luck.normal(size=(n, 4))
    side = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + 0.4 * luck.normal(size=n)
    truth = LABELS[(side > 0).astype(int)]
    wrong = luck.random(n) < 1 / (1 + np.exp(2 + slope * X[:, 2]))
    answer = np.array([SWAPPED[one] if w else one for one, w in zip(truth, wrong, strict=True)])
    hard = np.abs(X[:, 0]) + (X[:, 2] < 0)
    chance = np.where(hard < np.quantile(hard, deferred), 1.0, audits)
    return X, truth, answer.astype(object), luck.random(n) < chance, chance


def known_to(X, truth, answer, read, chance):
    """What the desk knows if the truth of cases that were read is known."""
    return Known(X, hidden(truth, read), hidden(answer, read), chance, chance)


def hidden(values, shown):
    return np.where(shown, values, None)


def test_filled_cases_are_like_all_cases_although_hard_ones_were_read() -> None:
    """Truths and errors are as frequent as they are in all cases, and not as among those that were read."""
    luck = np.random.default_rng(0)
    X, truth, answer, read, chance = desk(luck, 20_000)
    known = known_to(X, truth, answer, read, chance)
    filled, said = fill(known, luck)
    assert (filled[read] == truth[read]).all()
    assert (said[read] == answer[read]).all()
    for kind in (X[:, 2] > 0, X[:, 2] <= 0, np.abs(X[:, 0]) > 1):
        unread = kind & ~read
        # By logistic curves, where the true one is that of a normal distribution: nearly the same.
        for got, right in (
            (filled == "ill", truth == "ill"),
            (said != filled, answer != truth),
            ((filled == "ill") == (X[:, 0] < 0), (truth == "ill") == (X[:, 0] < 0)),
        ):
            assert got[unread].mean() == pytest.approx(right[unread].mean(), abs=0.05)
    # Who takes the cases that were read for all believes in a better expert and in a worse machine.
    assert (answer != truth)[read].mean() < (answer != truth).mean() - 0.05


def test_weights_help_where_the_curve_does_not_fit() -> None:
    """The expert's errors jump: a curve without weights fits the many cases without errors only."""
    losses = {"weighted": [], "not weighted": []}
    for seed in range(6):
        luck = np.random.default_rng(seed)
        X, _, _, read, chance = desk(luck, 1800)
        wrong = luck.random(1800) < np.where(X[:, 2] > 0, 0.03, 0.25)
        for name, weighted in (("weighted", chance[read]), ("not weighted", np.ones(read.sum()))):
            way = better_way(X[read], wrong[read], weighted)
            chances = learn_chances(way, X[read], wrong[read], weighted)
            losses[name].append(chances.losses(X, wrong).mean())
    gain = np.array(losses["not weighted"]) - np.array(losses["weighted"])
    assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_an_answer_tells_about_a_truth_that_is_not_known() -> None:
    luck = np.random.default_rng(1)
    X, truth, answer, *_ = desk(luck, 3000)
    has_truth, has_answer = luck.random(3000) < 0.2, luck.random(3000) < 0.6
    known = hidden(truth, has_truth), hidden(answer, has_answer)
    filled, _ = fill(Known(X, *known, np.full(3000, 0.2), np.full(3000, 0.12)), luck)
    with_answer = (filled == truth)[~has_truth & has_answer].mean()
    without = (filled == truth)[~has_truth & ~has_answer].mean()
    assert with_answer > without + 0.05
    # As often right as somebody who knows the probabilities and draws.
    good = has_answer & ~has_truth & (X[:, 2] > 0)
    assert (filled == answer)[good].mean() == pytest.approx(
        (truth == answer)[good].mean(), abs=0.04
    )


def test_wrong_answers_are_those_that_were_given_to_the_same_truth() -> None:
    luck = np.random.default_rng(2)
    truth = np.array(["a", "b", "c"] * 100, dtype=object)
    wrong = np.array(["b", "c", "b"] * 100, dtype=object)
    answer = np.where(luck.random(300) < 0.4, wrong, truth)
    X = luck.normal(size=(300, 1))
    known = truth, hidden(answer, np.arange(300) < 150)
    _, said = fill(Known(X, *known, np.ones(300), np.full(300, 0.5)), luck)
    differ = said != truth
    assert differ[150:].mean() == pytest.approx(0.4, abs=0.12)
    assert (said[differ] == wrong[differ]).all()


def test_a_kernel_is_taken_where_a_line_does_not_do() -> None:
    luck = np.random.default_rng(3)
    X = luck.normal(size=(400, 2))
    lined = np.where(X[:, 0] + 0.3 * luck.normal(size=400) > 0, "a", "b")
    crossed = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")
    ones = np.ones(400)
    assert better_way(X, lined, ones) is straight
    assert better_way(X, crossed, ones) is curved
    assert learn_chances(curved, X, np.full(400, "a"), ones).of(X[:3]).tolist() == [[1.0]] * 3


@pytest.mark.parametrize(("turns", "least"), [(0.0, 0), (np.pi / 3, 600)])
def test_old_cases_are_left_out_if_they_are_no_longer_like_the_newest(turns, least) -> None:
    luck = np.random.default_rng(4)
    starts = []
    for _ in range(10):
        months = [desk(luck, 600, angle=angle) for angle in (0.0, 0.0, turns, turns)]
        parts = [np.concatenate(part) for part in zip(*months, strict=True)]
        starts.append(like_the_newest(known_to(*parts)))
    if least:
        assert np.mean(np.array(starts) >= least) >= 0.8, "cases before the change are left out"
    else:
        assert np.mean(np.array(starts) == 0) >= 0.7, "nothing has changed: all cases are used"


def test_few_cases_are_all_used() -> None:
    luck = np.random.default_rng(5)
    assert like_the_newest(known_to(*desk(luck, 80, audits=1.0))) == 0


def test_a_window_without_answers_is_not_better_for_that() -> None:
    """Experts answered the first cases and the newest ones, and nothing has changed."""
    starts = []
    for seed in range(10):
        X, truth, answer, *_ = desk(np.random.default_rng(seed), 300)
        at = np.arange(300)
        read = (at < 100) | (at >= 225)
        starts.append(
            like_the_newest(Known(X, truth, hidden(answer, read), np.ones(300), np.full(300, 0.5)))
        )
    assert np.mean(np.array(starts) == 0) >= 0.7
