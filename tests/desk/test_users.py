"""Users choose their password by an invitation that works once; the last administrator stays."""

import threading

import pytest
from sqlalchemy import insert, select, update

from deferlearn.desk import login, sessions, users
from deferlearn.desk.errors import Conflict, Invalid, NotFound, Stale
from deferlearn.desk.passwords import Passwords
from deferlearn.desk.schema import audit_log, expert, session, user
from desk.stub_desk import SECRET

PASSWORD = "four words no order"
PASSWORDS = Passwords(time_cost=1, memory_kib=8)


def create(database, name="anna", role="admin", **options):
    return database.write(lambda c: users.create(c, name=name, role=role, actor="desk", **options))


def invite(database, number):
    return database.write(lambda c: users.invite(c, number, secret=SECRET, actor="desk"))


def accept(database, token, password=PASSWORD):
    return users.accept(database, token, password, secret=SECRET, passwords=PASSWORDS)


def log_in(database, name="anna", password=PASSWORD, address="10.0.0.1"):
    return login.log_in(
        database, name, password, address=address, secret=SECRET, passwords=PASSWORDS
    )


def who(database, cookie):
    found = sessions.find(database, SECRET, cookie)
    return None if found is None else found.name


@pytest.fixture
def anna(database):
    number = create(database).id
    accept(database, invite(database, number))
    return number


def test_an_invited_user_chooses_a_password_and_logs_in(database):
    number = create(database).id
    token = invite(database, number)
    accepted = accept(database, token)
    assert (accepted.id, accepted.name, accepted.has_password) == (number, "anna", True)
    found = sessions.find(database, SECRET, log_in(database))
    assert (found.id, found.name, found.role) == (number, "anna", "admin")


def test_a_user_without_a_password_cannot_log_in(database):
    create(database)
    for password in ("", "!", PASSWORD):
        with pytest.raises(login.WrongPassword):
            log_in(database, password=password)


def test_an_invitation_works_once(database, anna):
    token = invite(database, anna)
    accept(database, token)
    with pytest.raises(Invalid, match="was used"):
        accept(database, token, "another good password")
    assert who(database, log_in(database)) == "anna"


def test_a_newer_invitation_ends_the_older_one_and_the_sessions(database, anna):
    cookie = log_in(database)
    older, newer = invite(database, anna), invite(database, anna)
    assert who(database, cookie) is None
    with pytest.raises(Invalid, match="was used"):
        accept(database, older)
    accept(database, newer)


def test_an_invitation_ends_after_a_week(database, anna, monkeypatch):
    monkeypatch.setattr(users, "INVITATION_SECONDS", -1)
    with pytest.raises(Invalid, match="too old"):
        accept(database, invite(database, anna))


def test_an_invitation_cannot_be_made_without_the_secret(database, anna):
    token = invite(database, anna)
    other = create(database, "bob").id
    for forged in (
        token[:-1],
        "x" + token,
        token.replace(f"{anna}-", f"{other}-", 1),
        "",
        "1-2-3.x",
    ):
        with pytest.raises(Invalid, match="not valid"):
            accept(database, forged)


def test_an_invitation_of_a_user_who_was_switched_off_is_refused(database, anna):
    bob = create(database, "bob", "supervisor").id
    token = invite(database, bob)
    database.write(lambda c: users.change(c, bob, is_active=False, actor="user:anna"))
    with pytest.raises(Invalid, match="was used"):
        accept(database, token)


def test_an_easy_password_is_refused_and_the_invitation_stays(database, anna):
    token = invite(database, anna)
    with pytest.raises(Invalid, match="12 to 200"):
        accept(database, token, "short")
    accept(database, token)


def test_a_new_password_ends_the_sessions(database, anna):
    cookie = log_in(database)
    users.change_password(
        database, "anna", "another good password", passwords=PASSWORDS, actor="user:anna"
    )
    assert who(database, cookie) is None
    with pytest.raises(login.WrongPassword):
        log_in(database)
    assert who(database, log_in(database, password="another good password")) == "anna"


def test_passwords_and_cookies_are_not_in_the_database(database, anna):
    cookie = log_in(database)
    with database.reading() as connection:
        stored = str([connection.execute(select(t)).all() for t in (user, session, audit_log)])
    assert "$argon2id$" in stored
    assert PASSWORD not in stored
    assert cookie.partition(".")[0] not in stored


def test_a_hash_with_old_parameters_is_made_again_at_the_next_login(database, anna):
    newer = Passwords(time_cost=2, memory_kib=8)
    login.log_in(database, "anna", PASSWORD, address="10.0.0.1", secret=SECRET, passwords=newer)
    with database.reading() as connection:
        stored = connection.execute(select(user.c.password_hash)).scalar_one()
    assert "t=2" in stored
    assert newer.matches(stored, PASSWORD)


# -- sessions


def test_a_revoked_session_is_not_found(database, anna):
    one, other = log_in(database), log_in(database)
    database.write(lambda c: sessions.revoke(c, SECRET, one))
    assert who(database, one) is None
    assert who(database, other) == "anna"


def test_a_tampered_cookie_is_not_found(database, anna):
    cookie = log_in(database)
    token, _, signature = cookie.rpartition(".")
    for forged in (token, f"{token}.", f"{token}.{signature[::-1]}", f"x{cookie}", ""):
        assert who(database, forged) is None


def test_a_cookie_of_another_secret_is_not_found(database, anna):
    assert sessions.find(database, "x" * 40, log_in(database)) is None


def test_a_session_ends_after_a_working_day(database, anna):
    cookie = log_in(database)
    day = sessions.SESSION_SECONDS * 1_000_000
    earlier = update(session).values(expires_at=session.c.expires_at - day)
    database.write(lambda c: c.execute(earlier) and None)
    assert who(database, cookie) is None


def test_sessions_that_ended_long_ago_are_removed(database, anna):
    log_in(database)
    database.write(lambda c: c.execute(update(session).values(expires_at=1)) and None)
    log_in(database)
    with database.reading() as connection:
        assert len(connection.execute(select(session)).all()) == 1


def test_a_user_who_is_switched_off_is_out_at_once(database, anna):
    bob = create(database, "bob", "supervisor").id
    accept(database, invite(database, bob))
    cookie = log_in(database, "bob")
    database.write(lambda c: users.change(c, bob, is_active=False, actor="user:anna"))
    assert who(database, cookie) is None
    with pytest.raises(login.WrongPassword):
        log_in(database, "bob")
    database.write(lambda c: users.change(c, bob, is_active=True, actor="user:anna"))
    assert who(database, cookie) is None


def test_a_session_of_a_user_who_is_off_is_not_found_even_if_it_was_left_open(database, anna):
    cookie = log_in(database)
    database.write(lambda c: c.execute(update(user).values(is_active=False)) and None)
    assert who(database, cookie) is None


def test_a_changed_role_counts_at_once(database, anna):
    create(database, "carl")
    cookie = log_in(database)
    database.write(lambda c: users.change(c, anna, role="supervisor", actor="user:carl"))
    assert sessions.find(database, SECRET, cookie).role == "supervisor"


# -- what is refused


def test_the_last_administrator_stays(database, anna):
    for change in ({"role": "supervisor"}, {"is_active": False}):
        with pytest.raises(Conflict, match="last active administrator"):
            database.write(lambda c, new=change: users.change(c, anna, actor="user:anna", **new))
    with database.reading() as connection:
        assert users.find(connection, "anna").role == "admin"


def test_two_administrators_cannot_switch_off_each_other_at_the_same_time(database, anna):
    bob = create(database, "bob").id
    both = threading.Barrier(2)
    outcomes = []

    def switch_off(number):
        both.wait()
        try:
            database.write(lambda c: users.change(c, number, is_active=False, actor="a"))
            outcomes.append("off")
        except Conflict:
            outcomes.append("refused")

    threads = [threading.Thread(target=switch_off, args=[number]) for number in (anna, bob)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["off", "refused"]


def test_two_names_are_never_the_same(database, anna):
    with pytest.raises(Conflict, match="'anna' already"):
        create(database)


@pytest.mark.parametrize("name", ["", " anna", "a" * 101, "a\nb", "<b>", "a\x00"])
def test_names_are_plain(database, name):
    with pytest.raises(Invalid, match="The name of a user"):
        create(database, name)


def test_an_expert_needs_an_expert(database):
    with pytest.raises(Invalid, match="needs an expert"):
        create(database, "bob", "expert")
    with pytest.raises(Invalid, match="no expert 7"):
        create(database, "bob", "expert", expert_id=7)
    values = {"name": "Dr B", "is_arbiter": False, "is_active": True, "price": 0.0, "version": 1}
    new = insert(expert).values(values).returning(expert.c.id)
    number = database.write(lambda c: c.execute(new).scalar_one())
    create(database, "bob", "expert", expert_id=number)
    with database.reading() as connection:
        assert users.find(connection, "bob").expert_id == number


def test_a_role_that_does_not_exist_is_refused(database):
    with pytest.raises(Invalid, match="'boss' is not a role"):
        create(database, "bob", "boss")


def test_a_change_of_what_was_changed_meanwhile_is_refused(database, anna):
    with database.reading() as connection:
        version = users.find(connection, "anna").version
    database.write(lambda c: users.change(c, anna, version=version, actor="a", role="admin"))
    with pytest.raises(Stale, match="meanwhile"):
        database.write(lambda c: users.change(c, anna, version=version, actor="a", role="admin"))


def test_users_that_do_not_exist_are_not_found(database):
    with pytest.raises(NotFound, match="no user 9"):
        database.write(lambda c: users.change(c, 9, actor="a", role="admin"))
    with pytest.raises(NotFound, match="no user 9"):
        invite(database, 9)
    with pytest.raises(NotFound, match="'bob'"):
        users.change_password(database, "bob", PASSWORD, passwords=PASSWORDS, actor="a")


def test_all_users_are_listed(database, anna):
    create(database, "bob")
    with database.reading() as connection:
        listed = users.all_of(connection)
    assert [(u.name, u.has_password) for u in listed] == [("anna", True), ("bob", False)]


def test_a_name_that_no_database_holds_is_a_wrong_name(database):
    with pytest.raises(login.WrongPassword):
        log_in(database, name="an\x00na")
