"""Passwords are stored as argon2id hashes, and easy ones are refused."""

import pytest

from deferlearn.desk.passwords import PasswordError, Passwords, check_password
from deferlearn.desk.signing import derive
from deferlearn.desk.tokens import new_token, signed, stored_form, unsigned


@pytest.fixture(scope="module")
def passwords():
    return Passwords(time_cost=1, memory_kib=8)


def test_a_password_is_stored_as_an_argon2id_hash_with_a_salt(passwords):
    one, other = (passwords.hashed("four words no order") for _ in range(2))
    assert one.startswith("$argon2id$")
    assert one != other
    assert "four" not in one


@pytest.mark.parametrize("stored", [None, "", "!invited", "$argon2id$broken", "plain"])
def test_a_user_without_a_password_matches_none(passwords, stored):
    for entered in ("", "plain", "nobody has this password"):
        assert passwords.matches(stored, entered) is False


def test_a_user_who_does_not_exist_costs_a_hash_too(passwords, monkeypatch):
    asked = []
    monkeypatch.setattr(passwords._hasher.__class__, "verify", lambda *args: asked.append(args))
    passwords.matches(None, "x")
    assert len(asked) == 1


def test_a_hash_with_old_parameters_is_outdated(passwords):
    stored = passwords.hashed("four words no order")
    assert not passwords.is_outdated(stored)
    assert Passwords(time_cost=2, memory_kib=8).is_outdated(stored)


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("short", "5 characters"),
        ("x" * 201, "201 characters"),
        ("abababababab", "same few"),
        ("four words of Anna", "name of the user"),
    ],
)
def test_easy_passwords_are_refused(password, why):
    with pytest.raises(PasswordError, match=why):
        check_password(password, "anna")


def test_a_good_password_is_accepted():
    check_password("four words no order", "anna")


def test_a_short_secret_is_refused():
    with pytest.raises(ValueError, match="31 characters"):
        derive("x" * 31, "audit")


@pytest.mark.parametrize(
    "change", [lambda v: "x" + v, lambda v: v + "x", lambda v: v[:-1], str.upper]
)
def test_a_changed_text_or_signature_is_not_ours(change):
    value = signed(b"key", "token")
    assert unsigned(b"key", value) == "token"
    assert unsigned(b"key", change(value)) is None


@pytest.mark.parametrize("value", ["", ".", "token", "token.", "\u00e9.\u00e9", "\ud800.\ud800"])
def test_any_other_text_is_not_ours(value):
    assert unsigned(b"key", value) is None


def test_tokens_are_random_and_stored_as_digests():
    one, other = new_token(), new_token()
    assert one != other
    assert len(one) >= 43
    assert stored_form(one) != stored_form(other)
    assert one not in stored_form(one)
