"""Several experts behind a table: who takes which case, within capacities, in files and in words."""

import io
import json

import numpy as np
import pytest

import deferlearn
from case_tables import make_cases
from deferlearn._utils.units import COSTS, GRADES
from deferlearn.tables import (
    ExpertRouter,
    Router,
    TableError,
    as_table,
    fit_table,
    load_decider,
    select_cases,
)
from deferlearn.tables.expert_reasons import by_prices, in_batch
from deferlearn.tables.labelstudio import TaskWriter

READERS = ["reader_1", "reader_2"]
FEATURES = ("size", "dose", "age", "site")


def cases(n=120, gaps=True, humans=READERS):
    table = make_cases(n)
    if gaps:
        for row in range(0, n, 3):
            table["reader_1"][row] = None
    named = {name: table[name] for name in (*FEATURES, "diagnosis", *humans)}
    return select_cases(named, "diagnosis", humans=humans)


@pytest.fixture(scope="module")
def model():
    return fit_table(cases(), capacity={"reader_1": 0.05, "reader_2": 12}, alpha=0.1)


@pytest.fixture
def new():
    table = make_cases(60, seed=1)
    return {name: table[name] for name in FEATURES}


def routed(model, new, split=60, **options):
    router = ExpertRouter(model, **options)
    parts = [{k: v[:split] for k, v in new.items()}, {k: v[split:] for k, v in new.items()}]
    parts = [part for part in parts if part["size"]]
    rows = [row for _, out in router.route(lambda: parts) for row in out.to_pylist()]
    return router, rows


def named(who):
    return ["" if name is None else name for name in who]


def encoded(model, new):
    return model.encoder.transform(new)


def test_the_card_says_what_is_known_of_each_expert(model):
    first, second = model.card_["experts"]
    assert (first["expert"], first["answers"], first["capacity"], first["share"]) == (
        "reader_1",
        80,
        0.05,
        0.05,
    )
    assert (second["expert"], second["answers"], second["capacity"], second["share"]) == (
        "reader_2",
        120,
        12,
        0.1,
    )
    for row in (first, second):
        assert row["low"] < row["error"] < row["high"]
        assert row["price"] == model.team.prices_[row["expert"]] > 0
        assert row["load"] == model.team.load_[row["expert"]]
    assert model.card_["budget"] == pytest.approx(0.15)
    assert list(model.card_["columns"]) == list(FEATURES)
    json.dumps(model.card_, allow_nan=False)


def test_one_at_a_time_by_prices_whatever_the_chunks(model, new):
    _, rows = routed(model, new)
    who = named(model.team.assign(encoded(model, new)))
    assert [row["expert"] for row in rows] == who
    assert {"", "reader_2"} <= set(who)
    for split in (0, 7, 59):
        assert routed(model, new, split)[1] == rows
    for row in rows:
        assert row["deferred"] == bool(row["expert"])
        assert row["taken_by"] == ("human" if row["expert"] else "machine")
        assert row["reason"].startswith(f"{row['expert'] or 'machine'}: ")


def test_a_batch_keeps_hard_capacities_whatever_the_chunks(model, new):
    capacity = {"reader_1": 5, "reader_2": 2}
    router, rows = routed(model, new, capacity=capacity)
    who = named(model.team.assign_batch(encoded(model, new), capacity))
    assert [row["expert"] for row in rows] == who
    assert {name: who.count(name) for name in READERS} == capacity == router.totals.load
    assert routed(model, new, 7, capacity=capacity)[1] == rows
    assert router.in_batch
    taken = next(row for row in rows if row["expert"] == "reader_1")
    assert "at most 5 cases of this batch of 60" in taken["reason"]


def test_whoever_is_not_named_takes_no_case(model, new):
    router, rows = routed(model, new, capacity={"reader_2": 3})
    assert router.totals.load == {"reader_1": 0, "reader_2": 3}
    assert {row["expert"] for row in rows} == {"", "reader_2"}


def test_numbers_of_numpy_are_numbers_of_cases(model, new):
    router, _ = routed(model, new, capacity={"reader_1": np.int64(1), "reader_2": np.float64(0.05)})
    assert [row["limit"] for row in router.loads()] == [1, 3]


def test_a_batch_without_capacities_keeps_those_of_the_fit(model, new):
    router, rows = routed(model, new, budget=1.0)
    who = named(model.team.assign_batch(encoded(model, new), budget=1.0))
    assert [row["expert"] for row in rows] == who
    assert [row["limit"] for row in router.loads()] == [3, 6]


def test_a_budget_limits_all_experts_together(model, new):
    router, _ = routed(model, new, budget=4)
    assert sum(router.totals.load.values()) == router.totals.deferred == 4


def strange(new, rows):
    for row in rows:
        new["size"][row] = 900.0  # outside of the training cases
    return new


def test_unusual_cases_go_to_an_expert_first(model, new):
    new = strange(new, [3])
    assert model.team.assign(encoded(model, new))[3] is None  # the score alone would not defer it
    _, rows = routed(model, new)
    gains = model.team.gains(encoded(model, new))[3]
    best = gains - np.array([model.team.prices_[name] for name in READERS])
    assert rows[3]["expert"] == READERS[best.argmax()]
    assert "unusual case, 'size' is 900" in rows[3]["reason"]
    _, rows = routed(model, new, defer_unusual=False)
    assert rows[3]["expert"] == ""


def test_unusual_cases_keep_within_the_capacities_of_a_batch(model, new):
    new = strange(new, range(10))
    router, rows = routed(model, new, capacity={"reader_1": 2, "reader_2": 4})
    assert router.totals.load == {"reader_1": 2, "reader_2": 4}
    assert sum(bool(row["expert"]) for row in rows[:10]) == 6
    router, rows = routed(model, new, capacity={"reader_1": 8, "reader_2": 4})
    assert all(row["expert"] for row in rows[:10])  # and two places are left for others
    assert sum(bool(row["expert"]) for row in rows[10:]) == 2
    router, rows = routed(model, new, capacity={"reader_1": 2, "reader_2": 4}, exceed_budget=True)
    assert all(row["expert"] for row in rows[:10])
    assert sum(router.totals.load.values()) == 10


def test_too_many_unusual_cases_are_noticed_one_at_a_time(model, new):
    assert routed(model, new)[0].over_budget() is None
    router, _ = routed(model, strange(new, range(30)))
    assert router.over_budget() == pytest.approx(0.15)


def test_audited_cases_have_an_expert_too(model, new):
    router, rows = routed(model, new, audit=1.0, seed=0)
    assert all(row["expert"] in READERS for row in rows)
    audited = [row for row in rows if row["audit"]]
    assert sum(router.totals.audits.values()) == len(audited) == 60 - router.totals.deferred
    assert all(row["reason"].startswith(f"{row['expert']} (random audit): ") for row in audited)
    assert routed(model, new, 7, audit=1.0, seed=0)[1] == rows
    # Twice the capacity, about twice the audits; nobody without time is drawn.
    assert router.totals.audits["reader_2"] > router.totals.audits["reader_1"] > 0
    router, _ = routed(model, new, audit=1.0, seed=0, capacity={"reader_2": 1})
    assert router.totals.audits == {"reader_1": 0, "reader_2": 59}


def test_tasks_name_the_expert_and_nothing_of_the_machine(model, new):
    _, rows = routed(model, new, audit=0.5, seed=0)
    file = io.BytesIO()
    writer = TaskWriter(file)
    router = ExpertRouter(model, audit=0.5, seed=0)
    for chunk, out in router.route(lambda: [as_table(new)]):
        writer.write(chunk, out)
    writer.close()
    tasks = json.loads(file.getvalue())
    assert [task["data"]["expert"] for task in tasks] == [r["expert"] for r in rows if r["expert"]]
    assert all(task["data"].keys() == {"id", "case", "expert"} for task in tasks)


def test_a_stored_model_decides_the_same(model, new, tmp_path):
    deferlearn.save(model, tmp_path / "model.skops")
    again = deferlearn.load(tmp_path / "model.skops")
    assert again.card_ == model.card_
    assert again.team.prices_ == model.team.prices_
    assert again.team.skills_.rows() == model.team.skills_.rows()
    decider = load_decider(tmp_path / "model.skops")
    new = strange(new, [3])
    _, rows = routed(model, new)
    for other in (again, decider):
        own = routed(other, new)[1]
        assert [r["expert"] for r in own] == [r["expert"] for r in rows]
        capacity = {"reader_1": 5, "reader_2": 2}
        assert routed(other, new, capacity=capacity)[1] == routed(model, new, capacity=capacity)[1]
    decided = decider.decide(new)
    assert decided.expert.tolist() == [row["expert"] for row in rows]
    assert decided.deferred.tolist() == [row["deferred"] for row in rows]
    assert decided.machine_answer.tolist() == [row["machine_answer"] for row in rows]


def test_one_expert_is_decided_as_the_team_alone_would(new):
    one = cases(gaps=False, humans=["reader_1"])
    model = fit_table(one, capacity={"reader_1": 0.2}, alpha=0.1)
    plain = fit_table(one, budget=0.2, alpha=0.1)
    _, rows = routed(model, new)
    assert [row["deferred"] for row in rows] == plain.defer(new).tolist()
    _, rows = routed(model, new, capacity={"reader_1": 4})
    assert [row["deferred"] for row in rows] == plain.defer_top(new, 4).tolist()


def test_several_classes_have_probabilities(new):
    table = make_cases(60)
    size = np.array(table["size"])
    truth = np.array(["a", "b", "c"])[np.digitize(size, [-0.5, 0.5])].tolist()
    named = {"size": (size + 0.3).tolist(), "dose": table["dose"], "y": truth, "A": truth}
    named["B"] = truth[:40] + ["a"] * 20
    model = fit_table(
        select_cases(named, "y", humans=["A", "B"]), capacity={"A": 0.1, "B": 0.1}, alpha=1.0
    )
    _, rows = routed(model, new, probabilities=True)
    for row in rows:
        assert row["probability"] == row[f"probability_{row['machine_answer']}"]
    assert {row["expert"] for row in rows} > {""}


def test_mistakes_are_named(model):
    with pytest.raises(TableError, match="does not know the expert 'x'; it knows 'reader_1', 'rea"):
        ExpertRouter(model, capacity={"x": 1})
    for wrong in (1.5, -1, -0.5, "10", None, True, float("nan")):
        with pytest.raises(TableError, match=r"capacity\['reader_1'\]=.* must be a share from"):
            ExpertRouter(model, capacity={"reader_1": wrong})
    with pytest.raises(TableError, match="leaves no time to any expert"):
        ExpertRouter(model, capacity={"reader_1": 0})
    with pytest.raises(TableError, match="use_full_budget is for a model without experts"):
        ExpertRouter(model, use_full_budget=True)
    with pytest.raises(TableError, match="use ExpertRouter"):
        Router(model)
    plain = fit_table(cases(gaps=False), alpha=0.1)
    with pytest.raises(TableError, match="no experts who are told apart: use Router"):
        ExpertRouter(plain)
    with pytest.raises(TableError, match="'x' has no answers; there are those of 'reader_1', 'rea"):
        fit_table(cases(), capacity={"reader_1": 0.1, "reader_2": 0.1, "x": 0.1}, alpha=0.1)
    with pytest.raises(TableError, match="'reader_2' has answers, but no capacity"):
        fit_table(cases(), capacity={"reader_1": 0.1}, alpha=0.1)
    with pytest.raises(
        TableError, match="the expert 'x' has no answers; there are those of nobody"
    ):
        fit_table(cases(humans=[]), capacity={"x": 0.1}, alpha=0.1)


@pytest.mark.parametrize(("unit", "name"), [(GRADES, "grades of error"), (COSTS, "units of cost")])
def test_reasons_say_in_which_unit_time_is_worth_it(unit, name):
    who = np.array(["Ann", None], dtype=object)
    gains = np.array([[0.3, 0.1], [0.1, 0.02]])
    taken, kept = by_prices(who, gains, np.array([0.2, 0.05]), ("Ann", "Bob"), unit)
    assert taken.startswith(f"expected to avoid 0.3 {name} here, and")
    assert f"expected to avoid more {name} here than" in kept
    taken, kept = in_batch(who, gains, {"Ann": 1, "Bob": 0}, 2, unit)
    assert taken.startswith(f"expected to avoid 0.3 {name} here, one of at most")
    assert kept.endswith(f"would be expected to avoid 0.1 {name}")


def test_reasons_say_what_time_is_worth():
    who = np.array(["Ann", None], dtype=object)
    gains = np.array([[0.3, 0.1], [0.1, -0.02]])
    prices = np.array([0.2, 0.05])
    taken, kept = by_prices(who, gains, prices, ("Ann", "Bob"))
    assert "avoid 0.3 errors" in taken
    assert "worth 0.2" in taken
    assert "closest is Bob with -0.02, worth 0.05" in kept
    taken, kept = in_batch(who, gains, {"Ann": 1, "Bob": 0}, 2)
    assert "avoid 0.3 errors here, one of at most 1 case of this batch of 2" in taken
    assert "here Ann would be expected to avoid 0.1 errors" in kept
    _, kept = in_batch(who, gains[:, ::-1], {"Ann": 1, "Bob": 0}, 2)
    assert kept == "no expert is expected to do better than the machine here"  # Bob has no time
    (kept,) = in_batch(who[1:], gains[:1], {"Ann": 0, "Bob": 0}, 1)
    assert kept == "no expert has time for a case of this batch"
    (kept,) = in_batch(who[1:], -gains[:1], {"Ann": 1, "Bob": 0}, 1)
    assert kept == "no expert is expected to do better than the machine here"


def test_the_machine_is_asked_once_per_chunk(model, new, monkeypatch):
    asked = []
    own = type(model.team)._new

    def spy(team, X):
        asked.append(len(X))
        return own(team, X)

    monkeypatch.setattr(type(model.team), "_new", spy)
    new = strange(new, [3])  # one more of them needs an expert
    routed(model, new, split=20)
    assert asked == [20, 40]
    asked.clear()
    model.decider().decide(new)
    assert asked == [60]
