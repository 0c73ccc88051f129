"""Guessing passwords is slowed down, without locking out the user from elsewhere."""

import threading

import pytest
from sqlalchemy import select, update

from deferlearn.desk import login, throttling
from deferlearn.desk.addresses import network_of
from deferlearn.desk.passwords import Passwords
from deferlearn.desk.schema import audit_log, throttle
from deferlearn.desk.throttling import FREE, Counters
from desk.stub_desk import SECRET
from desk.test_users import PASSWORD, PASSWORDS, anna, log_in  # noqa: F401


def attempts(database, number, user="anna", address="10.0.0.1"):
    """How many of these attempts were allowed."""
    counters = Counters.of(user, address)
    return sum(
        database.write(lambda c: throttling.attempt(c, counters)) == 0.0 for _ in range(number)
    )


def later(database, seconds):
    """Let time pass: what was blocked until some time is blocked until an earlier one."""
    earlier = throttle.c.blocked_until - int(seconds * 1_000_000)
    database.write(lambda c: c.execute(update(throttle).values(blocked_until=earlier)) and None)


def test_guessing_is_stopped_after_a_few_and_then_takes_twice_as_long_each_time(database):
    assert attempts(database, 10) == FREE["pair"]
    for wait in (1, 2, 4, 8):
        later(database, wait - 0.5)
        assert attempts(database, 1) == 0
        later(database, 0.6)
        assert attempts(database, 3) == 1


def test_nobody_waits_longer_than_a_quarter_of_an_hour(database):
    attempts(database, 1)
    query = update(throttle).values(failures=5000)
    database.write(lambda c: c.execute(query) and None)
    attempts(database, 1)
    counters = Counters.of("anna", "10.0.0.1")
    wait = database.write(lambda c: throttling.attempt(c, counters))
    assert 890 < wait <= 900


def test_a_user_is_not_locked_out_by_someone_elsewhere(database):
    attempts(database, 10)
    assert attempts(database, 1, address="10.0.0.2") == 1


def test_an_address_that_tries_many_users_is_stopped(database):
    allowed = sum(attempts(database, 1, user=f"user {n}") for n in range(30))
    assert allowed == FREE["address"]


def test_a_network_of_ipv6_is_one_client(database):
    here, elsewhere = "2a00:1:0:1::", "2a00:1:0:2::"
    assert sum(attempts(database, 1, address=f"{here}{n}") for n in range(9)) == FREE["pair"]
    assert attempts(database, 1, address=elsewhere) == 1


@pytest.mark.parametrize("network", ["fd00::", "fe80::"])
def test_machines_of_one_local_network_are_told_apart(database, network):
    assert sum(attempts(database, 1, address=f"{network}1") for _ in range(9)) == FREE["pair"]
    assert attempts(database, 1, address=f"{network}2") == 1


def test_an_address_in_other_letters_is_the_same_client():
    assert network_of("FD00:0::1") == network_of("fd00::1%eth0") == "fd00::1"
    assert network_of("::ffff:10.0.0.1") == "10.0.0.1"


def test_counters_do_not_pile_up(database):
    for place in range(20):
        attempts(database, 1, user=f"user {place}", address=f"10.0.0.{place}")
    later(database, throttling.FORGET_SECONDS + 2)
    attempts(database, 1, user="ben", address="10.0.1.1")
    counters = Counters.of("anna", "10.0.0.200")
    attempts(database, 1, address="10.0.0.200")
    database.write(lambda c: throttling.succeeded(c, counters))
    with database.reading() as connection:
        left = set(connection.execute(select(throttle.c.key)).scalars())
    assert left == {counters.address, *vars(Counters.of("ben", "10.0.1.1")).values()}


def test_a_user_whom_many_addresses_try_is_protected(database):
    allowed = sum(attempts(database, 1, address=f"10.0.0.{n}") for n in range(60))
    assert allowed == FREE["user"]


def test_attempts_at_the_same_time_are_all_counted(database):
    allowed = []
    threads = [
        threading.Thread(target=lambda: allowed.append(attempts(database, 3))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(allowed) == FREE["pair"]


def test_old_attempts_are_forgotten(database):
    attempts(database, 10)
    later(database, throttling.FORGET_SECONDS + 2)
    assert attempts(database, 10) == FREE["pair"]


def test_a_clock_that_was_put_back_locks_nobody_out(database):
    attempts(database, 10)
    later(database, -7200)
    assert attempts(database, 1) == 1


def test_the_right_password_is_refused_too_while_one_must_wait(database, anna):  # noqa: F811
    for _ in range(FREE["pair"]):
        with pytest.raises(login.WrongPassword):
            log_in(database, password="wrong")
    with pytest.raises(login.TooManyAttempts, match="1 seconds"):
        log_in(database)
    later(database, 1.1)
    log_in(database)


def test_a_success_forgets_the_failures_of_the_user_but_not_those_of_the_address(database, anna):  # noqa: F811
    for _ in range(FREE["pair"] - 1):
        with pytest.raises(login.WrongPassword):
            log_in(database, password="wrong")
    log_in(database)
    with database.reading() as connection:
        rows = connection.execute(select(throttle)).all()
    assert [(row.key.partition(":")[0], row.failures) for row in rows] == [("address", 4)]


def test_an_unknown_user_looks_like_a_wrong_password(database, anna, monkeypatch):  # noqa: F811
    asked = []
    monkeypatch.setattr(
        Passwords, "matches", lambda self, stored, password: asked.append(stored) or False
    )
    errors = []
    for name in ("anna", "nobody"):
        with pytest.raises(login.WrongPassword) as caught:
            log_in(database, name)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert len(asked) == 2  # the same work for both


def test_failures_are_on_record_without_what_was_entered(database, anna):  # noqa: F811
    for name, password in (("anna", "wrong"), ("my secret password", "x")):
        with pytest.raises(login.WrongPassword):
            log_in(database, name, password)
    with database.reading() as connection:
        rows = connection.execute(select(audit_log)).all()
    failed = [row.subject for row in rows if row.action == "login.failed"]
    assert failed == [f"user:{anna}", "user:unknown"]
    assert "secret" not in str(rows)


def test_a_password_that_changes_while_it_is_checked_starts_no_session(database, anna):  # noqa: F811
    from deferlearn.desk import users

    class Slow(Passwords):
        def matches(self, stored, password):
            right = super().matches(stored, password)
            users.change_password(
                database, "anna", "another good password", passwords=PASSWORDS, actor="a"
            )
            return right

    slow = Slow(time_cost=1, memory_kib=8)
    with pytest.raises(login.WrongPassword, match="meanwhile"):
        login.log_in(database, "anna", PASSWORD, address="10.0.0.1", secret=SECRET, passwords=slow)
