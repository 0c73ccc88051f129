"""Refits in the database: a candidate that is better, its report, activation, roll-back, and shadows."""

import numpy as np
import pytest
from sqlalchemy import select

from deferlearn.desk.cases import arrive
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, NotFound
from deferlearn.desk.learning.refitting import refit
from deferlearn.desk.learning.shadowing import (
    follow,
    shadow_comparison,
    shadow_model,
    start_shadow,
    stop_shadow,
)
from deferlearn.desk.models import activate_model, load_model
from deferlearn.desk.schema import answer, case, decision, model, model_report, shadow, truth
from desk.learning.desk_of_rows import add_rows, make_model, store
from desk.stub_desk import rows, stub_desk

TURNED = np.pi / 3


@pytest.fixture(scope="module")
def content():
    return make_model()


@pytest.fixture
def desk(database, content):
    store(database, content)
    return Desk(database)


def states(desk):
    with desk.database.reading() as connection:
        query = select(model.c.id, model.c.state).order_by(model.c.id)
        return {row.id: row.state for row in connection.execute(query)}


def test_a_refit_after_a_drift_is_better_and_can_be_activated_and_taken_back(desk, content):
    add_rows(desk.database, content, 400, np.random.default_rng(1), angle=TURNED)
    found = refit(desk, actor="user:1")
    assert states(desk) == {1: "active", 2: "candidate"}
    assert found.created
    assert found.comparison.is_better
    assert found.comparison.count == 100
    (report,) = rows(desk, model_report)
    assert report.model_id == found.model_id
    assert report.report["last_case"] == 300
    assert report.report["cases"] == 300
    assert report.report["comparison"]["sentence"].startswith("The candidate is better")
    for number, expected in ((2, {1: "retired", 2: "active"}), (1, {1: "active", 2: "retired"})):
        desk.database.write(
            lambda connection, number=number: activate_model(connection, number, actor="user:1")
        )
        assert {key: states(desk)[key] for key in (1, 2)} == expected
        case = arrive(desk, f"after {number}", {"a": 0.1, "b": 2.0}, actor="key:1")
        assert rows(desk, decision, case_number=case.number)[0].model_id == number


def test_the_next_refit_is_compared_on_cases_newer_than_those_of_the_active_model(desk, content):
    luck = np.random.default_rng(2)
    add_rows(desk.database, content, 200, luck, angle=TURNED)
    first = refit(desk, actor="user:1")
    desk.database.write(
        lambda connection: activate_model(connection, first.model_id, actor="user:1")
    )
    desk = Desk(desk.database)
    # Of the 200 cases, 150 are known to the model: with a half held out, only 50 are new to it.
    assert refit(desk, actor="user:1", held_out=0.5).comparison.count == 50


def test_cases_of_unknown_truth_are_filled_in_and_weighted_in_the_comparison(desk, content):
    luck = np.random.default_rng(3)
    add_rows(desk.database, content, 700, luck, audits=0.25)

    def forget(connection):
        unread = (
            select(decision.c.case_number)
            .where(~decision.c.deferred, ~decision.c.audited)
            .scalar_subquery()
        )
        connection.execute(truth.delete().where(truth.c.case_number.in_(unread)))

    desk.database.write(forget)
    found = refit(desk, actor="user:1")
    report = found.report
    # It is fitted on all cases up to the last one, whether their truth is known or not.
    assert report["rows"] == report["last_case"] > 2 * report["cases"]
    assert (report["first_case"], report["left_out"]) == (1, 0)
    # Later cases are weighted: they stand for all, of which the active model defers a fifth.
    assert found.comparison.largest_weight == pytest.approx(4.0, abs=1.5)
    assert found.comparison.deferred[1] == pytest.approx(0.2, abs=0.06)
    assert found.comparison.difference.mean == pytest.approx(by_hand(desk, found))
    (candidate,) = [row for row in rows(desk, model) if row.id == 2]
    # The budget of a fifth is that of all cases, and not of the hard ones among the known.
    assert candidate.card["deferral_rate"] == pytest.approx(0.2, abs=0.03)


def by_hand(desk, found):
    """The difference between both models on later cases, with loops over the rows of the database."""
    models = {row.id: load_model(row.blob) for row in rows(desk, model)}
    truths = {row.case_number: row.value for row in rows(desk, truth)}
    said = {row.case_number: row.value for row in rows(desk, answer)}
    later = [row for row in rows(desk, decision) if row.case_number > found.report["last_case"]]
    fields = {row.number: row.content for row in rows(desk, case)}
    total = weights = 0.0
    for row in later:
        if row.case_number not in truths:
            continue
        # Truth is known of the cases that were read: all that were deferred, and a quarter of the others.
        weight = 1.0 if row.deferred else 1 / row.audit_probability
        right, one, losses = truths[row.case_number], fields[row.case_number], []
        for number in (found.model_id, found.report["active_model"]):
            decided = models[number].decide({key: [one[key]] for key in one})
            final = said[row.case_number] if decided.deferred[0] else decided.machine_answer[0]
            losses.append(str(final) != right)
        total += weight * (losses[0] - losses[1])
        weights += weight
    return total / weights


def test_too_few_truths_are_refused(desk, content):
    add_rows(desk.database, content, 60, np.random.default_rng(4), truths=0.5)
    with pytest.raises(Conflict, match=r"The truth of \d+ cases is known"):
        refit(desk, actor="user:1")
    assert states(desk) == {1: "active"}


def test_a_refit_without_answers_of_experts_is_refused(desk, content):
    add_rows(desk.database, content, 100, np.random.default_rng(6))
    desk.database.write(lambda connection: connection.execute(answer.delete()))
    with pytest.raises(Conflict, match="a refit needs answers of experts beside the truth"):
        refit(desk, actor="user:1")
    assert states(desk) == {1: "active"}


def test_a_shadow_decides_along_without_effect(desk, content, monkeypatch):
    luck = np.random.default_rng(5)
    add_rows(desk.database, content, 300, luck, angle=TURNED)
    candidate = refit(desk, actor="user:1").model_id
    assert follow(desk) == 0
    assert shadow_comparison(desk, candidate) is None
    desk.database.write(lambda connection: start_shadow(connection, candidate, actor="user:1"))
    add_rows(desk.database, content, 250, luck, angle=TURNED, first=301)
    before = rows(desk, decision)
    assert follow(desk) == 250
    assert follow(desk) == 0
    assert rows(desk, decision) == before
    assert rows(desk, shadow)[0].case_number == 301
    found = shadow_comparison(desk, candidate)
    assert found.is_better
    assert found.count == 250
    monkeypatch.setattr("deferlearn.desk.learning.shadowing.MOST_CASES", 100)
    assert shadow_comparison(desk, candidate).count == 100, "only the newest are read"
    desk.database.write(lambda connection: stop_shadow(connection, actor="user:1"))
    with desk.database.reading() as connection:
        assert shadow_model(connection) is None
    desk.database.write(lambda connection: stop_shadow(connection, actor="user:1"))


def test_only_candidates_that_exist_can_be_shadows(database):
    desk = stub_desk(database, {"Ann": None})
    for number, error in ((1, Conflict), (7, NotFound)):
        with pytest.raises(error):
            desk.database.write(
                lambda connection, number=number: start_shadow(connection, number, actor="user:1")
            )


def test_cases_before_a_change_are_used_if_only_they_were_answered(desk, content):
    luck = np.random.default_rng(7)
    add_rows(desk.database, content, 100, luck, audits=1.0)
    add_rows(desk.database, content, 240, luck, angle=np.pi, first=101)
    desk.database.write(
        lambda connection: connection.execute(answer.delete().where(answer.c.case_number > 60))
    )
    assert refit(desk, actor="user:1").report["left_out"] == 0
