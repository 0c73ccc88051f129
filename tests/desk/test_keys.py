"""API keys are shown once, stored as digests, and can be revoked."""

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from deferlearn.desk import audit, keys
from deferlearn.desk.errors import Conflict, Invalid, NotFound
from deferlearn.desk.schema import api_key, audit_log
from desk.stub_desk import SECRET


def make(database, name="ris", scopes=("cases:write",)):
    return database.write(lambda c: keys.create(c, name=name, scopes=scopes, actor="user:anna"))


def test_a_key_is_found_by_its_text_and_by_nothing_else(database):
    number, text = make(database, scopes=["cases:write", "cases:read"])
    found = keys.find(database, text)
    assert (found.id, found.name) == (number, "ris")
    assert found.scopes == {"cases:write", "cases:read"}
    prefix = text[:17]
    for other in ("", "dlk_", text[:-1], text + "x", text.upper(), prefix + "x" * 43, f" {text}"):
        assert keys.find(database, other) is None


def test_the_database_does_not_hold_the_key(database):
    _, text = make(database)
    token = text.split("_", 2)[2]
    with database.reading() as connection:
        rows = [*connection.execute(select(api_key)), *connection.execute(select(audit_log))]
    assert token not in str(rows)


def test_a_revoked_key_is_not_found(database):
    number, text = make(database)
    database.write(lambda c: keys.revoke(c, number, actor="user:anna"))
    assert keys.find(database, text) is None
    with pytest.raises(NotFound, match=f"no key {number}"):
        database.write(lambda c: keys.revoke(c, number, actor="user:anna"))


def test_valid_keys_have_different_names(database):
    number, _ = make(database)
    with pytest.raises(Conflict, match="a valid key with the name"):
        make(database)
    database.write(lambda c: keys.revoke(c, number, actor="user:anna"))
    make(database)
    with pytest.raises(IntegrityError):  # whoever does it, at the same time or by hand
        database.write(lambda c: c.execute(update(api_key).values(revoked_at=None)))


def test_the_use_of_a_key_is_noted(database):
    _, text = make(database)
    with database.reading() as connection:
        assert keys.all_of(connection)[0].last_used_at is None
    keys.find(database, text)
    with database.reading() as connection:
        used = keys.all_of(connection)[0].last_used_at
    assert used is not None
    keys.find(database, text)
    with database.reading() as connection:
        assert keys.all_of(connection)[0].last_used_at == used


def test_making_and_revoking_are_on_record(database):
    number, _ = make(database)
    database.write(lambda c: keys.revoke(c, number, actor="user:bob"))
    with database.reading() as connection:
        rows = connection.execute(select(audit_log).order_by(audit_log.c.sequence)).all()
        assert audit.verify(connection, SECRET).faults == []
    assert [(r.actor, r.action, r.subject) for r in rows] == [
        ("user:anna", "key.created", f"key:{number}"),
        ("user:bob", "key.revoked", f"key:{number}"),
    ]


@pytest.mark.parametrize(
    ("name", "scopes", "why"),
    [
        ("", ["cases:read"], "1 to 100 characters"),
        ("a\nb", ["cases:read"], "control characters"),
        ("ris", [], "needs a scope"),
        ("ris", ["users:write"], "No scope has the name 'users:write'"),
    ],
)
def test_wrong_keys_are_not_made(database, name, scopes, why):
    with pytest.raises(Invalid, match=why):
        make(database, name, scopes)
