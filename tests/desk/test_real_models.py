"""Stored models at the desk: two classes, four, and experts who are told apart."""

import time

import numpy as np
import pytest
from sqlalchemy import update

import deferlearn
from case_tables import make_cases, make_stages
from deferlearn.desk.cases import arrive
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Invalid
from deferlearn.desk.judging import Judge
from deferlearn.desk.models import activate_model, load_model, store_model
from deferlearn.desk.rules import change_rules
from deferlearn.desk.schema import case, decision, expert, model
from deferlearn.tables import fit_table, load_decider, select_cases
from desk.stub_desk import change, rows

READERS = ["reader_1", "reader_2"]
USED = ["size", "dose", "age", "site", "patient"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    made, stages = make_cases(120), make_stages(120)
    two = {name: column for name, column in made.items() if name != "id"}
    four = {name: column for name, column in stages.items() if name != "id"}
    answers = {name: two.pop(name) for name in READERS}
    models = {
        "two": fit_table(select_cases({**two, **answers}, "diagnosis", humans=READERS), alpha=0.1),
        "experts": fit_table(
            select_cases({**two, **answers}, "diagnosis", humans=READERS),
            capacity={"reader_1": 0.1, "reader_2": 0.2},
            alpha=0.1,
        ),
    }
    for name in READERS:
        four[name] = [said or "mild" for said in four[name]]
    models["four"] = fit_table(select_cases(four, "stage", humans=READERS), alpha=0.1)
    for name, fitted in models.items():
        deferlearn.save(fitted, folder / f"{name}.skops")
    return folder


def desk_with(database, path, **rules):
    content = path.read_bytes()
    card = load_model(content).card_

    def job(connection):
        number, created = store_model(connection, content, card, name="first", actor="test")
        assert store_model(connection, content, card, name="again", actor="test") == (number, False)
        assert created
        change_rules(connection, {"audit_share": 0.0, **rules}, actor="test")
        activate_model(connection, number, actor="test")

    database.write(job)
    return Desk(database)


def cases_of(columns, names):
    return [
        dict(zip(names, values, strict=True))
        for values in zip(*(columns[name] for name in names), strict=True)
    ]


@pytest.mark.parametrize("kind", ["two", "four"])
def test_the_desk_decides_as_the_model_does(files, database, kind):
    desk = desk_with(database, files / f"{kind}.skops")
    new = make_cases(25, seed=1) if kind == "two" else make_stages(25, seed=1)
    sent = cases_of(new, USED if kind == "two" else ["size", "dose", "site"])
    sent[3]["site"] = "Paris"
    decider = load_decider(files / f"{kind}.skops")
    for place, fields in enumerate(sent):
        arrive(desk, f"case {place}", fields, actor="key:test")
    expected = [decider.decide(fields) for fields in sent]
    found = rows(desk, decision)
    assert [row.machine_answer for row in found] == [one.machine_answer[0] for one in expected]
    assert [row.deferred for row in found] == [bool(one.deferred[0]) for one in expected]
    assert [row.unusual for row in found] == [str(one.unusual[0]) for one in expected]
    for row, one in zip(found, expected, strict=True):
        chances = dict(zip(decider.card_["classes"], one.probabilities[0], strict=True))
        assert row.probabilities == pytest.approx(chances)
    assert "unusual case, 'site'" in found[3].reason
    assert {row.state for row in rows(desk, case)} == {"waiting", "answered"}


def test_experts_of_a_model_come_with_their_limits_and_prices(files, database):
    desk = desk_with(database, files / "experts.skops", cases_per_day=50)
    experts = {row.name: row for row in rows(desk, expert)}
    assert {name: row.daily_limit for name, row in experts.items()} == {
        "reader_1": 5,
        "reader_2": 10,
    }
    decider = load_decider(files / "experts.skops")
    prices = {row["expert"]: row["price"] for row in decider.card_["experts"]}
    assert {name: row.price for name, row in experts.items()} == prices
    for place, fields in enumerate(cases_of(make_cases(20, seed=1), USED)):
        number = arrive(desk, f"case {place}", fields, actor="key:test").number
        (row,) = rows(desk, decision, case_number=number)
        features = decider.encoder.features(decider.encoder.codes(fields)[0])
        gains = dict(zip(READERS, decider.team.gains(features)[0], strict=True))
        for name, gain in gains.items():
            assert row.gains[str(experts[name].id)] == pytest.approx(gain)
        machine, theirs = decider.team.expected_errors(features)
        assert row.expected_machine == pytest.approx(machine[0])
        np.testing.assert_allclose(list(row.expected.values()), theirs[0])
    # A model that comes back brings its prices, and keeps limits that somebody set.
    change(desk, update(expert).values(price=9.0, daily_limit=3))
    change(desk, update(model).values(state="retired"))
    database.write(lambda connection: activate_model(connection, 1, actor="test"))
    assert {row.name: (row.price, row.daily_limit) for row in rows(desk, expert)} == {
        name: (price, 3) for name, price in prices.items()
    }


def test_experts_together_keep_within_the_budget_of_the_model(files, database):
    """Half of what they could take: half of each limit, and the price of the budget on each price."""
    content = (files / "experts.skops").read_bytes()
    card = load_model(content).card_
    assert (card["budget"], card["budget_price"]) == (pytest.approx(0.3), 0.0)
    less = {**card, "budget": 0.15, "budget_price": 0.25}

    def job(connection):
        number, _ = store_model(connection, content, less, name="less", actor="test")
        change_rules(connection, {"cases_per_day": 200}, actor="test")
        activate_model(connection, number, actor="test")

    database.write(job)
    prices = {row["expert"]: row["price"] for row in card["experts"]}
    assert {one.name: (one.daily_limit, one.price) for one in rows(Desk(database), expert)} == {
        "reader_1": (10, prices["reader_1"] + 0.25),
        "reader_2": (20, prices["reader_2"] + 0.25),
    }


def test_fields_are_validated_as_apply_does(files, sqlite_desk):
    database = sqlite_desk.database
    change(sqlite_desk, update(model).values(state="retired"))
    desk = desk_with(database, files / "two.skops")
    good = cases_of(make_cases(1, seed=1), USED)[0]
    for fields, words in [
        ({**good, "size": "large"}, "Field 'size' holds 'large', which is not a finite number"),
        ({**good, "size": 1e200}, "far from the training cases"),
        ({name: good[name] for name in ("size", "dose")}, "no field 'age'"),
    ]:
        with pytest.raises(Invalid, match=words):
            arrive(desk, "a", fields, actor="key:test")
    number = arrive(
        desk, "b", {**good, "size": " 0.5 ", "age": "NA", "more": "x"}, actor="t"
    ).number
    assert rows(desk, case, number=number)[0].content["more"] == "x"


def test_one_decision_takes_less_than_two_milliseconds(files):
    for kind in ("two", "experts"):
        judge = Judge(load_decider(files / f"{kind}.skops"), 1)
        fields = cases_of(make_cases(1, seed=1), USED)[0]
        times = []
        for _ in range(50):
            began = time.thread_time()
            judge.judge(fields)
            times.append(time.thread_time() - began)
        assert np.median(times) < 0.002


def test_a_model_with_costs_of_mistakes_is_refused(tmp_path):
    table = {name: column for name, column in make_cases(120).items() if name != "id"}
    costs = {"classes": ["ill", "well"], "costs": [[0, 5], [1, 0]]}
    cases = select_cases(table, "diagnosis", humans=READERS, cost_matrix=costs)
    deferlearn.save(fit_table(cases, alpha=0.1), tmp_path / "costs.skops")
    with pytest.raises(Invalid, match="without --cost-matrix"):
        load_model((tmp_path / "costs.skops").read_bytes())
