"""What a change of capacities or prices would do, against theory and against a desk that did it."""

import math
import shutil

import numpy as np
import pytest
from sqlalchemy import update

from deferlearn.desk import audit
from deferlearn.desk.answering import give_answer
from deferlearn.desk.database import Database
from deferlearn.desk.errors import Invalid
from deferlearn.desk.experts import change_expert
from deferlearn.desk.forecast import forecast, with_expert
from deferlearn.desk.pricing import STATE, update_prices
from deferlearn.desk.queue import lease_next
from deferlearn.desk.rules import read_configuration
from deferlearn.desk.schema import ANYONE, decision, reading, setting
from deferlearn.desk.waits import Arrival, Reader, waiting_times
from desk.page_clients import app_of, browser_of
from desk.stub_desk import SECRET, change, rows, send, stub_desk

ALWAYS = list(range(96))
ANN, BEN = 1, 2


def alone(times, seat=ANYONE, readings=1):
    return [Arrival(at, at, (seat,) * readings) for at in times]


def test_waiting_times_are_those_of_queueing_theory():
    # Pollaczek and Khinchine: one reader, arrivals by chance, readings of always the same length.
    luck, seconds, load = np.random.default_rng(0), 10.0, 0.8
    times = np.cumsum(luck.exponential(seconds / load, size=20_000)).tolist()
    found = waiting_times(alone(times), {ANN: Reader(seconds, ALWAYS)})
    expected = seconds + load * seconds / (2 * (1 - load))
    assert np.mean(found) == pytest.approx(expected, rel=0.05)
    # Two readers of pairs of cases wait as one reader of single cases does.
    pairs = alone([at for at in times for _ in range(2)])
    both = waiting_times(pairs, {who: Reader(seconds, ALWAYS) for who in (ANN, BEN)})
    assert both[::2] == pytest.approx(found)


def test_waiting_times_by_hand():
    readers = {ANN: Reader(5, ALWAYS), BEN: Reader(20, ALWAYS)}
    # Ann reads both before Ben has finished one, and no case twice.
    assert waiting_times(alone([0, 10], readings=2), readers) == [20, 30]
    assert waiting_times(alone([0, 10], seat=BEN), readers) == [20, 30]
    # She comes at one o'clock, and has time for one case per day.
    late = {ANN: Reader(5, [4], limit=1)}
    assert waiting_times(alone([0, 0]), late) == [3605, 86400 + 3605]
    # What helps more comes first.
    better = [Arrival(0, 0, (ANYONE,)), Arrival(1, 0, (ANYONE,)), Arrival(2, -9, (ANYONE,))]
    assert waiting_times(better, {ANN: Reader(5, ALWAYS)}) == [5, 14, 8]
    assert waiting_times(alone([0]), {}) == [math.inf]
    assert waiting_times(alone([0]), {ANN: Reader(5, ALWAYS, limit=0)}) == [math.inf]


def cases_of_a_day(luck, n=150):
    """Gains of two experts; what a stub expects of an expert is 0.5 less the gain."""
    return luck.uniform(-0.2, 0.4, size=n), luck.uniform(-0.3, 0.2, size=n)


def send_all(desk, name, gains):
    for number, (ann, ben) in enumerate(zip(*gains, strict=True)):
        send(desk, f"{name} {number}", Ann=float(ann), Ben=float(ben))
        if number % 10 == 9:
            update_prices(desk, every=10)


def begin_the_next_day(desk):
    # What is left unread would take part of the next day.
    change(desk, update(reading).values(state="answered"))
    found = update(setting).where(setting.c.key == STATE)
    change(desk, found.values(value={"day": "2000-01-01", "newest": 150, "seen": 150}))
    update_prices(desk)


def outcome(desk, first):
    """Who got the cases since one, and how often the team is expected to be wrong."""
    names = {ANN: "Ann", BEN: "Ben"}
    decided = [row for row in rows(desk, decision) if row.case_number >= first]
    wrong = [row.expected[names[row.expert_id]] if row.deferred else 0.5 for row in decided]
    loads = {who: sum(row.expert_id == who for row in decided) for who in names}
    return loads, float(np.mean(wrong))


def told(desk, **changes):
    """Forecasts with Ann as she is, and as she would be."""
    with desk.database.reading() as connection:
        configuration = read_configuration(connection)
        ann = configuration.experts[ANN]._replace(**changes)
        return (
            forecast(connection, configuration),
            forecast(connection, with_expert(configuration, ann)),
        )


@pytest.mark.parametrize("changes", [{"daily_limit": 25}, {"cost": 0.2}])
def test_what_was_foretold_happens(sqlite_template, tmp_path, changes):
    desk = desk_of_two(sqlite_template, tmp_path)
    luck = np.random.default_rng(3)
    send_all(desk, "before", cases_of_a_day(luck))
    now, then = told(desk, **changes)
    loads, wrong = outcome(desk, 1)
    # What is foretold without a change is what has just happened.
    assert now.error == pytest.approx(wrong, abs=0.005)
    assert all(now.loads[who] == pytest.approx(loads[who], abs=3) for who in loads)
    desk.database.write(lambda c: change_expert(c, ANN, changes, actor="test"))
    begin_the_next_day(desk)
    send_all(desk, "after", cases_of_a_day(luck))
    loads, wrong = outcome(desk, 151)
    assert then.error > now.error + 0.01
    assert then.error == pytest.approx(wrong, abs=0.015)
    assert then.loads[ANN] == pytest.approx(loads[ANN], rel=0.2)
    assert then.loads[BEN] == pytest.approx(loads[BEN], rel=0.2)
    assert loads[ANN] < now.loads[ANN] / 2
    desk.database.close()


def desk_of_two(sqlite_template, tmp_path):
    shutil.copy(sqlite_template, tmp_path / "desk.db")
    database = Database(f"sqlite:///{tmp_path / 'desk.db'}", options=audit.key_options(SECRET))
    return stub_desk(database, {"Ann": None, "Ben": None}, told_apart=True, cases_per_day=150)


def test_waiting_is_foretold_from_answers(sqlite_template, tmp_path):
    desk = desk_of_two(sqlite_template, tmp_path)
    send_all(desk, "case", cases_of_a_day(np.random.default_rng(4), 40))
    assert told(desk)[0].waiting is None, "nobody has answered yet"
    lease = lease_next(desk, ANN)
    give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann")
    half, most = told(desk)[0].waiting
    assert 0 < half <= most < math.inf
    # With one case per day it takes days.
    assert told(desk, daily_limit=1)[1].waiting[1] < most
    client = browser_of(app_of(desk), desk, "sue", "supervisor")
    page = client.get("/experts/1").text
    assert "Nine of ten within" in page
    assert 'name="cost"' in page
    desk.database.close()


def test_costs_are_checked(database):
    desk = stub_desk(database, {"Ann": None})
    for cost in (-0.1, 1.5, math.nan, "much", True):
        with pytest.raises(Invalid, match="cost is"):
            desk.database.write(
                lambda c, cost=cost: change_expert(c, ANN, {"cost": cost}, actor="test")
            )
    changed = desk.database.write(lambda c: change_expert(c, ANN, {"cost": 0.05}, actor="test"))
    assert changed.cost == 0.05
    with desk.database.reading() as connection:
        assert read_configuration(connection).price(ANN) == 0.05
