"""Time left, by a clock that moves when it is told to."""

from __future__ import annotations

from itertools import pairwise

import pytest

from deferlearn._utils.jobs import call_each
from deferlearn._utils.progress import Progress, in_words, sometimes, watched_by


class Clock:
    """Stands still between calls of `wait`."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


def work(progress, clock, kind, seconds):
    progress.begin(kind)
    clock.wait(seconds)
    progress.done()


def test_nothing_is_known_before_the_first_unit(clock):
    progress = Progress({"fold": (3, 1.0)}, clock)
    assert progress.left() is None
    progress.begin("fold")
    clock.wait(5)
    assert progress.left() is None


def test_units_take_as_long_as_others_of_their_kind(clock):
    progress = Progress({"quick": (3, 1.0), "slow": (2, 1.0)}, clock)
    work(progress, clock, "quick", 2)
    assert progress.left() == pytest.approx(2 * 2 + 2 * 2)  # weights are all that is known
    work(progress, clock, "quick", 4)
    work(progress, clock, "slow", 60)
    assert progress.left() == pytest.approx(3 + 60)
    work(progress, clock, "slow", 60)
    assert progress.left() == pytest.approx(3)
    work(progress, clock, "quick", 3)
    assert progress.left() == 0.0


def test_weights_stand_in_for_kinds_that_were_not_met_yet(clock):
    progress = Progress({"quick": (1, 1.0), "middle": (1, 3.0), "slow": (1, 10.0)}, clock)
    work(progress, clock, "quick", 2)
    assert progress.left() == pytest.approx(2 * 3 + 2 * 10)
    work(progress, clock, "middle", 2)  # quicker than its weight said: so may the other be
    assert progress.left() == pytest.approx(10 * 4 / 4)


def test_time_runs_within_a_unit(clock):
    progress = Progress({"fold": (3, 1.0)}, clock)
    work(progress, clock, "fold", 10)
    progress.begin("fold")
    clock.wait(4)
    assert progress.left() == pytest.approx(6 + 10)
    clock.wait(40)  # it takes longer than expected
    assert progress.left() == pytest.approx(10)


def test_parts_of_a_unit_tell_before_it_is_done(clock):
    progress = Progress({"first": (1, 1.0), "second": (1, 2.0)}, clock)
    progress.begin("first")
    clock.wait(5)
    progress.part(0.25)
    assert progress.left() == pytest.approx(15 + 40)
    progress.part(0.1)  # what is done stays done
    assert progress.left() == pytest.approx(15 + 40)


def test_more_units_than_planned_do_no_harm(clock):
    progress = Progress({"fold": (1, 1.0)}, clock)
    for _ in range(3):
        work(progress, clock, "fold", 1)
    assert progress.left() == 0.0


def test_the_watcher_hears_of_every_unit(clock):
    heard = []
    with (
        watched_by(lambda *now: heard.append(now)),
        Progress({"fold": (4, 1.0)}, clock) as progress,
    ):
        for _ in range(4):
            work(progress, clock, "fold", 2)
    assert heard == [(0.25, 6.0), (0.5, 4.0), (0.75, 2.0), (1.0, 0.0)]


def test_without_a_watcher_nothing_is_said(clock, capsys):
    with Progress({"fold": (1, 1.0)}, clock) as progress:
        work(progress, clock, "fold", 2)
    assert capsys.readouterr() == ("", "")


def test_work_within_a_unit_is_a_part_of_it(clock):
    heard = []
    with watched_by(lambda *now: heard.append(now)), Progress({"trial": (2, 1.0)}, clock) as outer:
        for _ in range(2):
            outer.begin("trial")
            with Progress({"fold": (2, 1.0)}, clock) as inner:
                for _ in range(2):
                    work(inner, clock, "fold", 3)
            outer.done()
    assert heard == [
        *[(0.25, 9.0), (0.5, 6.0), (0.5, 6.0)],
        *[(0.75, 3.0), (1.0, 0.0), (1.0, 0.0)],
    ]


def one_unit(clock):
    with Progress({"fold": (1, 1.0)}, clock) as progress:
        work(progress, clock, "fold", 2)


def test_the_outermost_watcher_is_the_only_one(clock):
    outer, inner = [], []
    with watched_by(lambda *now: outer.append(now)), watched_by(lambda *now: inner.append(now)):
        one_unit(clock)
    assert outer == [(1.0, 0.0)]
    assert inner == []
    with watched_by(None), watched_by(lambda *now: inner.append(now)):
        one_unit(clock)
    assert inner == [(1.0, 0.0)]


def test_an_error_leaves_no_trace(clock):
    heard = []

    def fail():
        with watched_by(lambda *now: heard.append(now)), Progress({"fold": (2, 1.0)}, clock):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    one_unit(clock)
    assert heard == []


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_calls_are_units(n_jobs):
    shares = []
    with watched_by(lambda share, left: shares.append(share)):
        assert call_each(abs, [(-1,), (2,), (-3,)], n_jobs) == [1, 2, 3]
    assert len(shares) == 3
    assert shares[-1] == 1.0


def test_lines_are_at_least_a_second_apart_and_then_rarer(clock):
    times = []
    show = sometimes(lambda share, left: times.append(clock.now - 100), clock)
    for _ in range(4000):
        clock.wait(0.1)
        show(0.5, 1.0)
    assert times[0] >= 1
    gaps = [b - a for a, b in pairwise(times)]
    assert min(gaps) > 0.99
    assert gaps[-1] > 10
    before = len(times)
    clock.wait(1000)
    show(1.0, 0.0)  # the end shows by itself
    assert len(times) == before


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "1 s"), (89.4, "89 s"), (90.0, "2 min"), (3600.0, "60 min"), (5400.0, "2 h")],
)
def test_times_are_said_in_units_that_suit_them(seconds, words):
    assert in_words(0.123, seconds) == f"12% done, about {words} left"
