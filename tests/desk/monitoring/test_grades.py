"""Models of grades expect grades off: whatever is compared with that is in grades, too."""

import numpy as np
import pytest
from sqlalchemy import update

from deferlearn.desk.answering import give_answer
from deferlearn.desk.desk import Desk
from deferlearn.desk.learning.comparing import Policy, compare, known_cases
from deferlearn.desk.monitoring.alarms import advance
from deferlearn.desk.monitoring.calibration import calibration
from deferlearn.desk.monitoring.evidence import bets_on, first_alarm, log_capital
from deferlearn.desk.monitoring.losses import grades_of, losses, most_lost
from deferlearn.desk.monitoring.overview import overview
from deferlearn.desk.monitoring.records import read_records
from deferlearn.desk.monitoring.watches import DISAGREEMENT, EXPERT, MACHINE, error_bets
from deferlearn.desk.pages.monitoring_view import sections_of
from deferlearn.desk.queue import lease_next
from deferlearn.desk.schema import model
from deferlearn.desk.truths import set_truth
from desk.stub_desk import change, send, stub_desk

GRADES = ("none", "mild", "grave")
ANN = 1


def objects(*values):
    return np.array(values, dtype=object)


def graded_desk(database, **rules) -> Desk:
    """The machine expects to be 0.5 grades off, and the expert 0.2."""
    desk = stub_desk(database, {"Ann": None}, **rules)
    card = {"classes": list(GRADES), "columns": {}, "graded": True, "experts": []}
    desk.judge(1).card = card
    change(desk, update(model).values(card=card))
    return desk


def ask_ann(desk, name, answer, said, truth, gain=0.3):
    send(desk, name, gain=gain, answer=answer)
    lease = lease_next(desk, ANN)
    give_answer(desk, lease.reading_id, lease.token, said, actor="user:1")
    if truth is not None:
        set_truth(desk, name, truth, actor="key:1")


def test_losses_are_grades_off_or_wrong_answers() -> None:
    said = objects("none", "mild", "grave", None, "grave", "other")
    true = objects("grave", "mild", "mild", "none", None, "none")
    np.testing.assert_equal(losses(said, true, GRADES), [2, 0, 1, np.nan, np.nan, 2])
    np.testing.assert_equal(losses(said, true), [1, 0, 1, np.nan, np.nan, 1])
    assert grades_of({"classes": list(GRADES), "graded": True}) == GRADES
    assert grades_of({"classes": list(GRADES)}) == ()
    assert (most_lost(GRADES), most_lost(())) == (2.0, 1.0)


def test_bets_on_parts_are_fair_for_every_distribution_with_the_limit_as_its_mean() -> None:
    for outcomes, chances in (([0, 0.5, 1], [0.7, 0.2, 0.1]), ([0, 0.25], [0.2, 0.8])):
        limit = float(np.dot(outcomes, chances))
        for k in range(5):
            factors = np.exp(bets_on(outcomes, limit))[:, k]
            assert np.dot(factors, chances) == pytest.approx(1.0)


def test_grades_off_as_expected_raise_no_alarm_and_twice_as_many_do() -> None:
    """Wrong answers are rarer than grades off, so a count of them would overlook what is found here."""
    luck = np.random.default_rng(0)
    expected = np.full((2000, 100), 0.5)
    usual = luck.choice([0, 1, 2], p=[0.6, 0.3, 0.1], size=expected.shape)  # 0.5 on average
    bad = luck.choice([0, 1, 2], p=[0.5, 0.0, 0.5], size=expected.shape)  # 1 on average, half wrong
    found = [
        first_alarm(log_capital(error_bets(off, expected, worst))[1], 0.01)
        for off, worst in ((usual, 2.0), (bad, 2.0), ((bad > 0).astype(float), 1.0))
    ]
    assert np.isfinite(found[0]).mean() <= 0.03
    assert np.isfinite(found[1]).all()
    assert np.median(found[1]) < 300
    assert np.isfinite(found[2]).mean() <= 0.03, "as wrong answers they are as expected"


def test_calibration_of_grades_off() -> None:
    luck = np.random.default_rng(1)
    expected = luck.uniform(0.2, 0.8, 2000)
    off = np.where(luck.random(2000) < expected / 2, 2.0, 0.0)
    figure, groups = calibration("the machine", off, expected, GRADES)
    assert figure.name == "errors above those expected, in grades"
    assert figure.interval.low < 0 < figure.interval.high
    assert "the answers of the machine were 0." in figure.sentence
    assert "grades off on average" in figure.sentence
    for group in groups:
        assert group.found.low < group.expected < group.found.high
    # Taken for wrong answers, the same cases would be called too good by half.
    assert calibration("the machine", off > 0, expected)[0].interval.high < -0.2
    worse, _ = calibration("experts", 2 * (off > 0) + (luck.random(2000) < 0.2), expected, GRADES)
    assert worse.interval.low > 0
    assert "larger than expected" in worse.sentence


def test_intervals_of_grades_off_cover() -> None:
    luck, hits = np.random.default_rng(2), 0
    for _ in range(400):
        off = luck.choice([0.0, 1.0, 2.0], p=[0.8, 0.15, 0.05], size=80)
        figure, (group, *_) = calibration("experts", off, np.full(80, 0.25), GRADES)
        hits += figure.interval.low <= 0 <= figure.interval.high
        assert 0 <= group.found.low <= group.found.high <= 2
    assert 0.92 < hits / 400 < 0.985


def test_alarms_and_numbers_of_a_desk_of_grades(database) -> None:
    desk = graded_desk(database)
    # Ann is off by one grade in a fifth of the cases, as expected; the machine by two in all.
    for i in range(25):
        said = "mild" if i % 5 == 0 else "none"
        ask_ann(desk, f"case {i}", "grave", said, "none")
    raised = advance(desk)
    assert [one.kind for one in raised] == [MACHINE]
    assert raised[0].sentence.startswith(
        "The machine was 2 grades off on average in 25 cases of known truth; 0.5 was expected."
    )
    found = overview(desk)
    assert found.in_grades
    figures = {(one.name, one.about): one for one in found.figures}
    above = figures["errors above those expected, in grades", "the machine"]
    assert above.interval.mean == pytest.approx(1.5)
    experts = figures["errors above those expected, in grades", "experts"]
    assert experts.interval.mean == pytest.approx(0.0)
    assert figures["expert's error", "Ann"].interval.mean == pytest.approx(0.2)
    assert figures["expert's error", "Ann"].expected is None, "a share is not expected"
    (section,) = [one for one in sections_of(found) if one.name == "calibration"]
    assert "1.5" in {one.text for one in section.figures}
    assert "expected grades off per 1,000 cases" in section.pictures[0]
    for i in range(40):
        ask_ann(desk, f"bad {i}", "none", "grave", "none")
    raised = advance(desk)
    assert [(one.kind, one.subject) for one in raised] == [(EXPERT, "Ann")]
    assert "Ann was 1.3 grades off on average in 65 cases" in raised[0].sentence


def test_distance_of_audited_answers(database) -> None:
    desk = graded_desk(database, audit_share=1.0)
    for i in range(30):  # both together are expected to be 1.1 grades off at most
        ask_ann(desk, f"case {i}", "none", "grave", None, gain=-0.1)
    (raised,) = advance(desk)
    assert raised.kind == DISAGREEMENT
    assert raised.sentence.startswith(
        "The machine and experts were 2 grades apart on average in 30 audited cases; at most 1.1 was"
    )


def test_models_are_compared_by_grades_off(database) -> None:
    desk = graded_desk(database)
    for i in range(40):
        ask_ann(desk, f"case {i}", "grave", "mild", "none")
    with database.reading() as connection:
        records = read_records(connection)
    at_hand = known_cases(records, np.ones(40, dtype=bool), GRADES)
    np.testing.assert_allclose(at_hand.expert_wrong, 1.0)
    machine, nobody, all_of_them = np.full(40, 2.0), np.zeros(40, bool), np.ones(40, bool)
    found = compare(Policy(machine, all_of_them), Policy(machine, nobody), at_hand)
    assert found.difference.mean == pytest.approx(-1.0)
    assert "−1000 grades off per 1,000 cases" in found.sentence
    assert found.plain()["in_grades"]
