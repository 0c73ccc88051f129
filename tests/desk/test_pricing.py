"""Prices follow the load: they rise when hard cases come, and limits last for the day."""

from sqlalchemy import update

from deferlearn.desk.pricing import update_prices
from deferlearn.desk.rules import Rules, read_configuration, touch
from deferlearn.desk.schema import reading, setting
from desk.stub_desk import change, rows, send, stub_desk


def price_of_anyone(desk):
    with desk.database.reading() as connection:
        return read_configuration(connection).price_of_anyone


def test_time_is_kept_for_the_cases_that_need_it_most(database):
    desk = stub_desk(database, {"Ann": 30}, cases_per_day=100)
    for place in range(50):
        send(desk, f"case {place}", gain=(place % 10 + 1) / 10)
        if place % 10 == 9:
            update_prices(desk, every=10)
    # Too few cases are known before the 20th. Then there is time for 10 of 80, the best ones.
    assert 0.7 <= price_of_anyone(desk) < 1.0
    assert [row.case_number for row in rows(desk, reading)] == [*range(1, 21), 30, 40, 50]
    state = {row.key: row.value for row in rows(desk, setting)}["prices found"]
    assert (state["seen"], state["newest"]) == (50, 50)
    assert not update_prices(desk, every=10), "no case has come since"


def test_prices_fall_when_time_would_be_left_over(database):
    desk = stub_desk(database, {"Ann": 25, "Bob": 25}, told_apart=True, cases_per_day=100)
    for place in range(30):
        send(desk, f"case {place}", Ann=0.2 + place / 100, Bob=0.1)
    assert update_prices(desk, every=10)
    with database.reading() as connection:
        experts = read_configuration(connection).experts
    assert experts[1].price >= 0.1
    change(desk, update(reading).values(state="answered"))
    state = update(setting).where(setting.c.key == "prices found")
    change(desk, state.values(value={"day": "2000-01-01", "newest": 30, "seen": 30}))
    database.write(
        lambda c: c.execute(
            update(setting)
            .where(setting.c.key == "rules")
            .values(value={**vars(Rules()), "cases_per_day": 30})
        )
    )
    database.write(touch)
    assert update_prices(desk, every=10), "a day has begun"
    with database.reading() as connection:
        later = read_configuration(connection).experts
    assert later[1].price < experts[1].price
