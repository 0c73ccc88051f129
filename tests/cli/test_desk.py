"""The commands of the desk: from a model to a desk, and all that those who look after it do."""

import json
import os
import re
import shutil
import socket
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deferlearn
from case_tables import make_cases, read_csv, write_csv
from deferlearn.cli.app import app
from deferlearn.cli.desk import init as init_command
from deferlearn.cli.desk._opened import settings_of
from deferlearn.desk.settings import Settings
from deferlearn.tables import fit_table, select_cases

PASSWORD = "four words no order"


def run(*words, code=0, text=None):
    """What a command prints."""
    result = CliRunner().invoke(app, ["desk", *map(str, words)], input=text)
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a desk that was just made, a model, and what `init` printed."""
    folder = tmp_path_factory.mktemp("made")
    columns = make_cases()
    write_csv(folder / "cases.csv", columns)
    del columns["patient"]
    cases = select_cases(columns, "diagnosis", humans=["reader_1", "reader_2"], identifier="id")
    deferlearn.save(fit_table(cases, alpha=0.1), folder / "model.skops")
    before = os.getcwd()
    os.chdir(folder)
    try:
        printed = run("init", "--model", "model.skops", "--admin", "anna")
    finally:
        os.chdir(before)
    return folder, printed


@pytest.fixture
def desk(made, tmp_path, monkeypatch):
    """A copy of that folder, in which commands run."""
    folder, _ = made
    for name in ("cases.csv", "model.skops", "desk.db", "desk.secret"):
        shutil.copy(folder / name, tmp_path / name)
    text = (folder / "desk.toml").read_text()
    (tmp_path / "desk.toml").write_text(text.replace(str(folder), str(tmp_path)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEFERLEARN_DESK_PASSWORD_PASSES", "1")
    monkeypatch.setenv("DEFERLEARN_DESK_PASSWORD_MEMORY", "8")
    return tmp_path


def query(text):
    with sqlite3.connect("desk.db") as connection:
        return connection.execute(text).fetchall()


# -- init


def test_init_makes_a_desk_with_an_active_model_and_an_invited_administrator(desk, made):
    _, printed = made
    assert re.search(r"http://127.0.0.1:8470/welcome#1-\d+-\w+\.[\w-]+", printed)
    assert query("SELECT name, state FROM model") == [("model.skops", "active")]
    assert query("SELECT name, role FROM user") == [("anna", "admin")]
    assert "as it was written" in run("audit", "verify")


def test_what_init_writes_is_for_its_owner_only(made):
    folder, _ = made
    for name in ("desk.db", "desk.secret", "desk.toml"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert len((folder / "desk.secret").read_text().strip()) == 64
    assert "secret_file" in (folder / "desk.toml").read_text()


def test_init_replaces_nothing(desk):
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    assert "has a desk already" in run("init", "--model", "model.skops", code=2)
    Path("desk.toml").rename("other.toml")
    assert "desk.secret is there already" in run("init", "--model", "model.skops", code=2)
    Path("other.toml").rename("desk.toml")
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before


def test_init_that_fails_leaves_nothing(desk, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "not a model" in run("init", "--model", "../cases.csv", code=2)
    assert os.listdir() == []
    assert "cannot continue" in run("init", "--model", "none.skops", code=1)
    assert os.listdir() == []
    wrong = run("init", "--model", "../model.skops", "--admin", "<b>", code=2)
    assert "The name of a user" in wrong
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["init"], "name a table"),
        (["init", "cases.csv", "--model", "model.skops"], "name a table"),
        (["init", "cases.csv"], "--label"),
    ],
)
def test_init_says_what_it_needs(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in run(*words, code=2)


def test_init_takes_the_secret_from_the_environment_and_writes_no_settings(
    made, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEFERLEARN_DESK_SECRET", "s" * 40)
    run("init", "--model", made[0] / "model.skops", "--database", "sqlite:///own.db")
    assert os.listdir() == ["own.db"]
    assert "as it was written" in run("audit", "verify", "--database", "sqlite:///own.db")
    monkeypatch.setenv("DEFERLEARN_DESK_SECRET", "t" * 40)
    assert "Fault: " in run("audit", "verify", "--database", "sqlite:///own.db", code=1)


# -- settings


def test_config_prints_what_is_in_force_without_secrets(desk, monkeypatch):
    monkeypatch.setenv("DEFERLEARN_DESK_PORT", "9000")
    shown = json.loads(run("config", "--json"))
    assert shown["settings"]["port"] == 9000
    assert shown["settings"]["secret"] == "(set)"
    assert shown["rules"]["readings"] == 1
    assert Path("desk.secret").read_text().strip() not in run("config")


@pytest.mark.parametrize(
    "address",
    ["//u:HUSH@h/desk", "///desk?host=h&password=HUSH", "//u@h/d?sslpassword=HUSH&port=7"],
)
def test_no_password_of_a_database_is_shown(address):
    shown = Settings(database=f"postgresql+psycopg:{address}").shown()["database"]
    assert "HUSH" not in shown
    assert "***" in shown.replace("%2A", "*")
    assert ("port=7" in shown) == ("port" in address)


def test_rules_can_be_changed(desk):
    run("config", "--set", "readings=2", "--set", "deadline_seconds=3600", "--set", "timezone=UTC")
    run("config", "--set", "deadline_seconds=null")
    rules = json.loads(run("config", "--json"))["rules"]
    assert (rules["readings"], rules["deadline_seconds"], rules["timezone"]) == (2, None, "UTC")
    assert "is not a rule" in run("config", "--set", "reedings=2", code=2)
    assert "name=value" in run("config", "--set", "readings", code=2)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SECRET", "short", "32 or more"),
        ("DATABASE", "nonsense", "not an address"),
        ("DATABASE", "mysql://a/b", "sqlite:///FILE or postgresql"),
        ("DATABASE", "sqlite:////none/desk.db", "cannot be used now"),
        ("PORT", "many", "not a whole number"),
    ],
)
def test_wrong_settings_are_told_in_one_line(desk, monkeypatch, name, value, said):
    monkeypatch.setenv(f"DEFERLEARN_DESK_{name}", value)
    code = 1 if "none" in value else 2
    printed = run("user", "list", code=code)
    assert said in printed
    assert len(printed.splitlines()) == 1


def test_without_a_desk_commands_say_how_to_make_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "desk init" in run("user", "list", code=2)
    monkeypatch.setenv("DEFERLEARN_DESK_SECRET", "s" * 40)
    for words in (["user", "list"], ["migrate"], ["backup", "b"], ["serve"]):
        assert "desk init" in run(*words, code=2)


def test_an_old_schema_is_refused_and_the_way_out_is_told(desk):
    with sqlite3.connect("desk.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    for words in (["serve"], ["user", "list"], ["migrate"]):
        assert "install a newer deferlearn" in run(*words, code=2)
    run("backup", "old.desk")  # this must always be possible


def test_migrate_of_the_newest_schema_changes_nothing(desk):
    before = query("SELECT * FROM audit_log")
    assert "The schema is" in run("migrate")
    assert query("SELECT * FROM audit_log") == before


# -- people and programs


def test_users_are_added_listed_and_changed(desk):
    link = run("user", "add", "bob")
    assert link.startswith("http://127.0.0.1:8470/welcome#2-")
    run("user", "add", "carl", "--role", "supervisor")
    run("user", "add", "dora", "--expert", "Dr D")
    assert query("SELECT name FROM expert ORDER BY id") == [("bob",), ("Dr D",)]
    listed = run("user", "list")
    assert all(name in listed for name in ("anna", "bob", "carl", "Dr D", "invited"))
    assert run("user", "invite", "bob") != link
    run("user", "role", "carl", "admin")
    run("user", "off", "carl")
    assert "off" in run("user", "list")
    run("user", "on", "carl")
    assert "already" in run("user", "add", "bob", code=2)
    assert "There is no user 'eve'" in run("user", "off", "eve", code=2)
    assert "not a role" in run("user", "role", "bob", "boss", code=2)


def test_a_password_is_read_from_the_standard_input(desk):
    run("user", "password", "anna", text=f"{PASSWORD}\n")
    ((stored,),) = query("SELECT password_hash FROM user")
    assert stored.startswith("$argon2id$")
    assert "5 characters" in run("user", "password", "anna", text="short\n", code=2)
    assert "empty" in run("user", "password", "anna", text="", code=2)


def test_the_last_administrator_stays(desk):
    assert "last active administrator" in run("user", "off", "anna", code=2)


def test_keys_are_added_listed_and_revoked(desk):
    key = run("key", "add", "ris", "--scope", "cases:write").strip()
    assert re.fullmatch(r"dlk_\w{12}_[\w-]{43}", key)
    listed = run("key", "list")
    assert key not in listed
    assert "cases:write" in listed
    run("key", "revoke", "1")
    assert "revoked" in run("key", "list")
    assert "There is no key 1" in run("key", "revoke", "1", code=2)
    assert "No scope" in run("key", "add", "ris", "--scope", "all", code=2)


# -- data


def test_cases_and_truths_go_in_and_come_out_as_tables(desk):
    printed = run("import", "cases.csv", "--id", "id", "--truth", "diagnosis", "--drop", "patient")
    assert "New: 80 cases, known before: 0, refused: 0, new truths: 80" in printed
    again = run("import", "cases.csv", "--id", "id", "--truth", "diagnosis", "--drop", "patient")
    assert "New: 0 cases, known before: 80, refused: 0, new truths: 0" in again
    assert "80 rows" in run("export", "cases", "--out", "out.csv")
    source, out = read_csv("cases.csv"), read_csv("out.csv")
    # What experts must not see did not become a field.
    assert list(out[0]) == ["case", "age", "dose", "site", "size", "truth"]
    names = {"case": "id", "truth": "diagnosis"}
    for sent, row in zip(source, out, strict=True):
        assert {names.get(name, name): cell for name, cell in row.items()} == {
            name: cell
            for name, cell in sent.items()
            if name not in ("patient", "reader_1", "reader_2")
        }
    run("export", "decisions", "--out", "decisions.csv")
    decided = read_csv("decisions.csv")
    assert {row["machine_answer"] for row in decided} == {"ill", "well"}
    assert {row["deferred"] for row in decided} == {"true", "false"}
    assert "size" not in decided[0]
    run("export", "answers", "--out", "answers.csv")
    assert Path("answers.csv").read_text() == "case,reader,answer,kind,at,seconds,note\n"
    run("export", "audit", "--out", "audit.csv")
    actions = [row["action"] for row in read_csv("audit.csv")]
    assert actions.count("desk.exported") == 3
    assert "cannot be exported" in run("export", "all", "--out", "x.csv", code=2)
    assert stat.S_IMODE(Path("out.csv").stat().st_mode) == 0o600


def test_rows_that_are_refused_are_told_and_the_others_arrive(desk):
    columns = make_cases(4, seed=1)
    columns["id"] = ["a", "", "b", "c"]
    columns["size"][3] = "large"
    write_csv(Path("new.csv"), columns)
    printed = run("import", "new.csv", "--id", "id", "--drop", "patient", code=2)
    assert "Refused: row 2" in printed
    assert "Refused: row 4" in printed
    assert "New: 2 cases, known before: 0, refused: 2" in printed


def test_truths_of_unknown_cases_are_refused(desk):
    options = ["--id", "id", "--truth", "diagnosis", "--only-truth"]
    printed = run("import", "cases.csv", *options, code=2)
    assert "refused: 80" in printed
    assert printed.count("There is no case") == 10
    assert "--truth" in run("import", "cases.csv", "--id", "id", "--only-truth", code=2)
    assert "no column 'name'" in run("import", "cases.csv", "--id", "name", code=2)


# -- care


def test_a_backup_is_restored_into_another_database(desk):
    run("import", "cases.csv", "--id", "id", "--drop", "patient")
    printed = run("backup", "desk.backup")
    assert "80 cases" in printed
    head = printed.split()[-1]
    assert "has a desk already" in run("restore", "desk.backup", code=2)
    run("restore", "desk.backup", "--database", "sqlite:///other.db")
    assert stat.S_IMODE(Path("other.db").stat().st_mode) == 0o600
    verify = ["audit", "verify", "--database", "sqlite:///other.db"]
    assert "as it was written" in run(*verify, "--noted", head)
    other = head[:-1] + ("0" if head[-1] != "0" else "1")
    assert "not the one that was noted" in run(*verify, "--noted", other, code=1)
    assert "must be a head" in run(*verify, "--noted", "7", code=2)
    assert "not a backup" in run("restore", "cases.csv", "--database", "sqlite:///x.db", code=2)


def test_a_changed_audit_log_is_found(desk):
    with sqlite3.connect("desk.db") as connection:
        connection.execute("UPDATE audit_log SET actor = 'nobody' WHERE sequence = 2")
    assert "Fault: entry 2 was changed" in run("audit", "verify", code=1)


def test_old_cases_are_purged(desk):
    run("import", "cases.csv", "--id", "id", "--drop", "patient")
    with sqlite3.connect("desk.db") as connection:
        connection.execute("UPDATE case_ SET answered_at = 1 WHERE state = 'answered'")
    ((old,),) = query("SELECT count(*) FROM case_ WHERE state = 'answered'")
    assert 40 < old < 80
    assert f"Would be removed: {old} cases" in run("purge", "--older-than", "2y", "--dry-run")
    assert f"Removed: {old} cases" in run("purge", "--older-than", "2y")
    assert query("SELECT count(*) FROM case_") == [(80 - old,)]
    assert "as it was written" in run("audit", "verify")
    for wrong in ("soon", "0", "-1", "1m"):
        assert "must be a time" in run("purge", f"--older-than={wrong}", code=2)


@pytest.mark.parametrize("login", ["//desk:hidden@db/desk", "//desk@db/desk?password=hidden"])
def test_an_address_with_a_password_is_kept_apart_from_the_settings(tmp_path, monkeypatch, login):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init_command, "_check_free", lambda settings: None)
    monkeypatch.setattr(init_command, "_fill", lambda *args: "the link")
    address = f"postgresql+psycopg:{login}"
    printed = run("init", "--model", "model.skops", "--database", address)
    assert "hidden" not in printed
    assert "hidden" not in Path("desk.toml").read_text()
    assert Path("desk.database").read_text().strip() == address
    assert settings_of(None, None).database == address


def test_a_port_that_is_taken_is_told(desk):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        printed = run("serve", "--port", port, code=1)
    assert f"cannot listen at 127.0.0.1, port {port}" in printed


@pytest.mark.parametrize(("table", "admin"), [("user", "anna"), ("patients", "bad/name")])
def test_a_database_of_another_program_is_left_alone(made, tmp_path, monkeypatch, table, admin):
    monkeypatch.chdir(tmp_path)
    shutil.copy(made[0] / "model.skops", tmp_path / "model.skops")
    with closing(sqlite3.connect("other.db")) as other, other:
        other.execute(f'CREATE TABLE "{table}" (name TEXT)')
    before = Path("other.db").read_bytes()
    words = ["init", "--model", "model.skops", "--database", "sqlite:///other.db", "--admin", admin]
    assert f"it has the table {table!r}" in run(*words, code=2)
    assert Path("other.db").read_bytes() == before


def test_whole_numbers_in_columns_with_gaps(desk):
    """Parquet holds them as floats: ids and truths are whole numbers all the same."""
    columns = read_csv("cases.csv")
    ids = pa.array([float(k) for k in range(len(columns))])
    rest = {name: [row[name] for row in columns] for name in columns[0]}
    rest = {name: rest[name] for name in ("age", "dose", "site", "size", "diagnosis")}
    pq.write_table(pa.table({"id": ids, **rest}), "cases.parquet")
    run("import", "cases.parquet", "--id", "id", "--truth", "diagnosis")
    run("export", "cases", "--out", "out.csv")
    assert [row["case"] for row in read_csv("out.csv")[:3]] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("PORT", "99999", "the largest port is 65535"), ("LOG_LEVEL", "loud", "use one of debug")],
)
def test_settings_out_of_range(desk, monkeypatch, name, value, said):
    monkeypatch.setenv(f"DEFERLEARN_DESK_{name}", value)
    assert said in run("config", code=2)


def test_the_password_of_a_database_is_not_printed(desk):
    printed = run("config", "--database", "postgresql+psycopg//u:TopSecret@h/d", code=2)
    assert "TopSecret" not in printed
