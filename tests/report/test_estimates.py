"""Intervals of the report: several that hold together, what deferral changes, and its sentences."""

import re

import numpy as np
import pytest

from deferlearn.report.effect import by_class, effect, errors
from deferlearn.report.estimates import Family, paired, share
from deferlearn.report.reliability import operating_points
from deferlearn.report.subgroups import subgroup_gaps
from deferlearn.report.verdict import findings, harms, headline
from deferlearn.report.words import PerThousand
from deferlearn.tables.decisions import Decisions


def made(machine, human, deferred, truth=None):
    """Decisions from masks of wrong answers; the classes are "a" and "b"."""
    truth = np.array(["a", "b"] * (len(machine) // 2)) if truth is None else np.array(truth)
    other = np.where(truth == "a", "b", "a")
    said = [np.where(wrong, other, truth) for wrong in (machine, human)]
    return Decisions(truth, *said, np.array(deferred, dtype=bool), np.ones(len(truth), dtype=bool))


def told_of(decisions, values=None):
    """The numbers of a report that its verdict needs."""
    group = np.arange(len(decisions.truth))
    numbers = {
        "effect": effect(decisions, group),
        "errors": errors(decisions, group),
        "classes": by_class(decisions, group, ("a", "b")),
        "subgroups": None if values is None else subgroup_gaps(decisions, group, values, "ab"),
        "cases": {"subgroup": None if values is None else "ward"},
        "points": operating_points(decisions, group, ("a", "b"), None),
        "unusual": None,
    }
    return numbers, PerThousand(e["share"] for e in numbers["errors"].values())


def masks(n, *counts):
    """As many masks, each true on its own stretch of so many cases."""
    places, start = [], 0
    for count in counts:
        mask = np.zeros(n, dtype=bool)
        mask[start : start + count] = True
        places.append(mask)
        start += count
    return places


# -- intervals that hold together -------------------------------------------------------------


def test_a_family_rarely_finds_what_is_not_there():
    """Single intervals would, in more than a third of the trials."""
    rng = np.random.default_rng(0)
    together = alone = 0
    for _ in range(60):
        one, other = rng.random((2, 150)) < 0.2
        values = one.astype(float) - other
        family = Family(np.arange(150))
        parts = [rng.integers(0, 3, 150) == k for _ in range(4) for k in range(3)]
        for part in parts:
            family.within(values, part)
            family.against_rest(one.astype(float), part)
        together += any(row["supported"] for row in family.rows())
        alone += any(paired(values[part], np.arange(part.sum()))["supported"] for part in parts)
    assert together <= 7  # 3 are expected
    assert alone >= 15


def test_a_family_finds_what_is_there():
    rng = np.random.default_rng(1)
    part = np.arange(300) < 100
    one = rng.random(300) < np.where(part, 0.5, 0.1)
    family = Family(np.arange(300))
    family.against_rest(one.astype(float), part)
    family.within(one.astype(float) - (rng.random(300) < 0.1), part)
    family.within(one.astype(float) - one, ~part)
    assert [row["supported"] for row in family.rows()] == [True, True, False]
    assert Family(np.arange(3)).rows() == []


def test_one_group_says_nothing():
    values = np.array([1.0, 0.0, 1.0, 1.0])
    family = Family(np.zeros(4, dtype=int))
    family.within(values, np.ones(4, dtype=bool))
    (row,) = family.rows()
    assert (row["lower"], row["upper"], row["supported"]) == (-1.0, 1.0, False)
    assert share(values > 0, np.zeros(4, dtype=int))["upper"] == 1.0


# -- what deferral changes --------------------------------------------------------------------


def test_five_against_three_errors_of_169_are_not_shown():
    """The stored model that a headline once called a clear gain."""
    machine, deferred = np.zeros(169, dtype=bool), np.zeros(169, dtype=bool)
    machine[:5], deferred[:34] = True, True
    human = np.arange(169) < 3  # so two errors are put right
    decisions = made(machine, human, deferred, ["a"] * 100 + ["b"] * 69)
    numbers, told = told_of(decisions)
    found = numbers["effect"]
    assert (found["fixed"], found["spoilt"], found["answer"]) == (2, 0, "unclear")
    said = headline(found, numbers["errors"], told)
    assert said.startswith(
        "Not shown. Per 1,000 cases, humans read 201 and errors fall from 30 to 18: 12 fewer."
    )
    low, high = found["difference"]["lower"], found["difference"]["upper"]
    assert f"between {-1000 * low:.0f} fewer and {1000 * high:.0f} more" in said
    assert 170 < found["cases_needed"] < 2000
    assert any(
        f"about {found['cases_needed']:,} cases are needed" in s for s in findings(numbers, told)
    )


def test_more_errors_are_a_no():
    machine, human = masks(200, 5, 30)
    numbers, told = told_of(made(machine, human, np.arange(200) < 100))
    assert numbers["effect"]["answer"] == "more"
    assert headline(numbers["effect"], numbers["errors"], told).startswith(
        "No. Per 1,000 cases, humans read 500 and errors rise from 25 to 150: 125 more, between"
    )
    assert not any("one error avoided" in sentence for sentence in findings(numbers, told))


def test_fewer_errors_have_a_price():
    machine, human = masks(200, 40, 2)
    numbers, told = told_of(made(machine, human, np.arange(200) < 40))
    said = findings(numbers, told)
    assert numbers["effect"]["answer"] == "fewer"
    assert "That is one error avoided for every case that humans read." in said
    assert numbers["effect"]["cases_needed"] is None


def test_a_price_is_not_rounded_in_favour_of_the_team():
    machine, human = masks(200, 17, 0)
    numbers, told = told_of(made(machine, human, np.arange(200) < 40))
    assert "That is one error avoided for every 2.4 cases that humans read." in findings(
        numbers, told
    )


def test_a_gain_is_no_success_if_humans_alone_do_far_better():
    """745 errors became 680, and humans made 265: nobody should read a plain yes."""
    machine, human = np.arange(200) < 149, np.arange(200) >= 147
    numbers, told = told_of(made(machine, human, np.arange(200) < 37))
    said = headline(numbers["effect"], numbers["errors"], told)
    assert numbers["effect"]["answer"] == "fewer"
    assert said.startswith("Yes, but humans alone do better. Per 1,000 cases, humans read 185")
    assert said.endswith("Humans who read all 1,000 would make 265.")


def test_the_errors_on_the_rarer_class_are_told():
    """All in all the machine errs less than humans, but it misses half of what matters."""
    truth = np.array(["a"] * 50 + ["b"] * 150)
    machine, human = np.arange(200) < 25, np.arange(200) % 5 == 0
    numbers, told = told_of(made(machine, human, np.zeros(200), truth))
    assert (
        "Mind the kind of error: of 1,000 cases that are a, the machine misses 500, the team 500, and "
        "humans alone 200."
    ) in findings(numbers, told)
    assert [row["change"] for row in numbers["classes"]] == [None, None]  # nothing was changed


def test_grades_are_compared_by_how_far_they_are_off():
    grades = ("1", "2", "3", "4")
    truth = np.array(["1", "4"] * 50)
    machine = np.array(["4", "4"] * 50)
    human = np.array(["2", "4"] * 50)
    everyone = np.ones(100, dtype=bool)
    decisions = Decisions(truth, machine, human, everyone, everyone)
    found = effect(decisions, np.arange(100), grades)["grades"]
    assert found["difference"] == -1.0  # 2 grades nearer, on every other case
    assert -3.0 < found["lower"] < -1.0 < found["upper"] < 0.0
    assert effect(decisions, np.arange(100))["grades"] is None


def test_a_model_that_asks_nobody():
    machine, human = masks(100, 10, 10)
    numbers, told = told_of(made(machine, human, np.zeros(100)))
    said = headline(numbers["effect"], numbers["errors"], told)
    assert said.startswith("No human is asked. The model leaves all of these cases to the machine")
    assert not any("Humans read" in sentence for sentence in findings(numbers, told))


def test_errors_that_stay():
    machine, human = masks(100, 10, 10)
    numbers, told = told_of(made(machine, human, np.arange(100) < 20))
    assert numbers["effect"]["fixed"] == numbers["effect"]["spoilt"] == 10
    said = headline(numbers["effect"], numbers["errors"], told)
    assert "errors stay at 100. The true change may lie anywhere between" in said


def test_a_class_that_pays_for_the_others_is_named():
    """All in all fewer errors, but more of them on the rare class."""
    truth = np.array(["a"] * 60 + ["b"] * 340)
    machine = np.r_[np.zeros(60), np.ones(100), np.zeros(240)] > 0
    human = np.r_[np.ones(30), np.zeros(370)] > 0
    decisions = made(machine, human, np.ones(400), truth)
    numbers, told = told_of(decisions, ["east" if label == "a" else "west" for label in truth])
    assert numbers["effect"]["answer"] == "fewer"
    warned = harms(numbers, told)
    assert [re.search("on (cases .*?), the", text)[1] for text in warned] == [
        "cases that are a",
        "cases with ward east",
    ]
    assert "500 instead of 0 per 1,000 such cases" in warned[0]
    assert set(warned) <= set(findings(numbers, told))


def test_gaps_between_subgroups():
    rng = np.random.default_rng(0)
    ward = np.where(np.arange(400) < 120, "east", "west")
    machine = rng.random(400) < np.where(ward == "east", 0.4, 0.05)
    decisions = made(machine, np.zeros(400, dtype=bool), rng.random(400) < 0.1)
    rows = subgroup_gaps(decisions, np.arange(400), ward.tolist(), ("a", "b"))
    assert [row["subgroup"] for row in rows] == ["east", "west"]
    assert rows[0]["team_gap"]["supported"]
    assert rows[0]["team_gap"]["difference"] == pytest.approx(-rows[1]["team_gap"]["difference"])
    for row in rows:
        own = ward == row["subgroup"]
        for part in row["classes"]:
            both = own & (decisions.truth == part["class"])
            assert part["cases"] == both.sum()
            assert part["team"]["share"] == decisions.wrong("team")[both].mean()
    (only,) = subgroup_gaps(decisions, np.arange(400), ["all"] * 400, ("a", "b"))
    assert only["team_gap"] is None
    assert [part["team_gap"] for part in only["classes"]] == [None, None]


# -- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "share", "text"),
    [
        ([0.03, 0.018], 0.018, "18"),
        ([0.03, 0.0042], 0.03, "30.0"),
        ([0.00042, 0.1], 0.00042, "0.42"),
        ([0.0, 0.2], 0.0, "0"),
        ([0.0], 1.0, "1,000"),
    ],
)
def test_small_shares_keep_their_digits(shares, share, text):
    assert PerThousand(shares)(share) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.02, -0.004, "between 4 and 20 fewer"),
        (-0.02, -0.0001, "between 0 and 20 fewer"),
        (0.004, 0.02, "between 4 and 20 more"),
        (-0.02, 0.004, "between 20 fewer and 4 more"),
    ],
)
def test_intervals_in_words(low, high, text):
    assert PerThousand([0.5]).between({"lower": low, "upper": high}) == text
