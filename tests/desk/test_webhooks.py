"""Webhooks: signed, at least once, with growing pauses, and a list of those that were given up."""

import hashlib
import hmac
import json
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from sqlalchemy import update

from deferlearn.desk import webhooks
from deferlearn.desk.answering import give_answer
from deferlearn.desk.database import SECOND
from deferlearn.desk.queue import lease_next
from deferlearn.desk.schema import delivery, event, webhook
from deferlearn.desk.subscriptions import add_webhook, remove_webhook, retry_dead_letter
from deferlearn.desk.webhooks import ATTEMPTS, bring_forward, dead_letters, deliver_due
from deferlearn.desk.withdrawing import take_back
from desk.stub_desk import change, rows, send, stub_desk


@pytest.fixture
def receiver():
    """A server that answers with the statuses in its list, and keeps what it got."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.got.append((dict(self.headers), body))
            self.send_response(server.statuses.pop(0) if server.statuses else 200)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.statuses = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def hook(desk, url="http://127.0.0.1:9/x", events=("case.answered", "case.reopened")):
    return desk.database.write(lambda c: add_webhook(c, url, list(events), actor="test"))


def make_due(desk):
    change(desk, update(delivery).values(next_at=delivery.c.next_at - 10**5 * SECOND))


def test_an_answer_is_told_with_a_signature(database, receiver):
    desk = stub_desk(database, {"Ann": None})
    _, secret = hook(desk, f"http://127.0.0.1:{receiver.server_port}/path?x=1")
    send(desk, "a", gain=-1, answer="well")
    assert (deliver_due(desk), deliver_due(desk)) == (1, 0)
    ((headers, body),) = receiver.got
    stated = dict(part.split("=") for part in headers["X-Deferlearn-Signature"].split(","))
    mac = hmac.new(secret.encode(), stated["t"].encode() + b"." + body, hashlib.sha256)
    assert stated["v1"] == mac.hexdigest()
    told = json.loads(body)
    assert (told["event"], told["case"], told["answer"]) == ("case.answered", "a", "well")
    assert headers["X-Deferlearn-Event"] == str(told["id"])
    assert [row.state for row in rows(desk, delivery)] == ["done"]


def test_experts_answers_and_withdrawals_are_told_in_versions(database):
    desk = stub_desk(database, {"Ann": None})
    hook(desk)
    send(desk, "a", gain=1)
    assert rows(desk, event) == [], "nothing is told before there is an answer"
    lease = lease_next(desk, 1)
    given = give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann")
    take_back(desk, given.answer_id, expert_id=1, actor="user:ann")
    bodies = [row.body for row in rows(desk, event)]
    assert [(one["event"], one["version"], one["answer"]) for one in bodies] == [
        ("case.answered", 2, "ill"),
        ("case.reopened", 3, None),
    ]


def test_a_redirection_or_an_error_is_tried_again(database, receiver):
    desk = stub_desk(database)
    hook(desk, f"http://127.0.0.1:{receiver.server_port}")
    receiver.statuses += [302, 500]
    send(desk, "a", gain=-1)
    for _ in range(3):
        deliver_due(desk)
        assert deliver_due(desk) == 0, "not before the pause is over"
        make_due(desk)
    (row,) = rows(desk, delivery)
    assert (row.state, row.attempts, len(receiver.got)) == ("done", 3, 3)
    assert len({body for _, body in receiver.got}) == 1


def test_what_is_given_up_can_be_sent_again(database):
    desk = stub_desk(database)
    hook(desk)
    send(desk, "a", gain=-1)
    pauses = []
    for _ in range(ATTEMPTS):
        make_due(desk)
        deliver_due(desk, lambda parcel: "no route")
        pauses.append(rows(desk, delivery)[0].next_at)
    with database.reading() as connection:
        (letter,) = dead_letters(connection)
    assert (letter.attempts, letter.last_error) == (ATTEMPTS, "no route")
    assert deliver_due(desk, lambda parcel: None) == 0
    database.write(lambda c: retry_dead_letter(c, letter.id, actor="test"))
    assert deliver_due(desk, lambda parcel: None) == 1
    assert rows(desk, delivery)[0].state == "done"


def test_who_dies_while_sending_has_it_sent_again(database):
    desk = stub_desk(database)
    hook(desk)
    send(desk, "a", gain=-1)

    def dies(parcel):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deliver_due(desk, dies)
    assert deliver_due(desk, lambda parcel: None) == 0, "it may still be on its way"
    change(desk, update(delivery).values(next_at=delivery.c.next_at - 61 * SECOND))
    assert deliver_due(desk, lambda parcel: None) == 1


def test_a_webhook_that_is_off_or_removed_gets_nothing(database):
    desk = stub_desk(database)
    number, _ = hook(desk)
    hook(desk, events=["case.reopened"])
    send(desk, "a", gain=-1)
    assert len(rows(desk, delivery)) == 1
    database.write(lambda c: remove_webhook(c, number, actor="test"))
    send(desk, "b", gain=-1)
    assert rows(desk, delivery) == []
    assert len(rows(desk, webhook)) == 1


def test_an_address_where_nobody_listens_is_a_problem_in_words():
    parcel = webhooks.Parcel(1, 1, "http://127.0.0.1:1/", "secret", 1, b"{}", 0)
    assert "refused" in webhooks.post(parcel)


def test_events_of_a_hook_that_was_switched_off_wait(database):
    desk, got = stub_desk(database, {"Ann": None}), []
    number, _ = hook(desk)
    send(desk, "a", gain=-1)
    change(desk, update(webhook).where(webhook.c.id == number).values(is_active=False))
    assert deliver_due(desk, got.append) == 0
    change(desk, update(webhook).where(webhook.c.id == number).values(is_active=True))
    assert deliver_due(desk, got.append) == 1
    assert len(got) == 1


def test_a_silent_receiver_delays_no_other_one(database, monkeypatch):
    desk = stub_desk(database, {"Ann": None})
    hook(desk, "http://silent.example/x")
    hook(desk, "http://quick.example/x")
    for name in "abc":
        send(desk, name, gain=-1)
    heard, got = threading.Event(), []

    def one_is_silent(parcel):
        if "silent" in parcel.url:
            assert heard.wait(20), "the quick receiver has to wait for the silent one"
            return "it does not answer"
        got.append(parcel.event_id)
        heard.set()
        return None

    monkeypatch.setattr(webhooks, "TIMEOUT", 0)  # so the silent one is asked once in this round
    deliver_due(desk, one_is_silent)
    assert [row.state for row in rows(desk, delivery)].count("done") == len(got)
    while len(got) < 3:
        make_due(desk)
        deliver_due(desk, one_is_silent)


def test_the_others_get_what_becomes_due_while_one_is_silent(database, monkeypatch):
    monkeypatch.setattr(webhooks, "BATCH", 2)
    desk = stub_desk(database, {"Ann": None})
    hook(desk, "http://silent.example/x")
    hook(desk, "http://quick.example/x")
    for place in range(3):
        send(desk, f"before {place}", gain=-1)
    got_all, asked, got = threading.Event(), [], []

    def one_is_silent(parcel):
        if "silent" in parcel.url:
            asked.append(parcel.event_id)
            if len(asked) > 1:
                return None
            assert got_all.wait(20), "the quick receiver has to wait for the silent one"
            return "it does not answer"
        got.append(parcel.event_id)
        if len(got) == 3:
            send(desk, "in the meantime", gain=-1)
        if len(got) == 4:
            got_all.set()
        return None

    assert deliver_due(desk, one_is_silent) >= 5
    assert got == sorted(set(got))
    assert len(got) == 4
    assert asked.count(asked[0]) == 1, "it was asked again while it was busy"


@pytest.mark.parametrize("minutes", [5, 60, 24 * 60])
def test_a_clock_that_is_set_back_delays_nothing_for_long(database, minutes):
    desk = stub_desk(database, {"Ann": None})
    hook(desk)
    send(desk, "a", gain=-1)
    assert deliver_due(desk, lambda parcel: "busy") == 1
    assert deliver_due(desk, lambda parcel: None) == 0
    change(desk, update(delivery).values(next_at=delivery.c.next_at + minutes * 60 * SECOND))
    assert (bring_forward(desk), bring_forward(desk)) == (1, 0)
    assert deliver_due(desk, lambda parcel: None) == 1


def test_a_pause_is_not_taken_for_a_clock_that_was_set_back(database):
    desk = stub_desk(database, {"Ann": None})
    hook(desk)
    send(desk, "a", gain=-1)
    for _ in range(ATTEMPTS - 1):
        assert deliver_due(desk, lambda parcel: "busy") == 1
        assert bring_forward(desk) == 0
        assert deliver_due(desk, lambda parcel: "busy") == 0
        make_due(desk)


def test_a_receiver_that_is_behind_leaves_the_others_their_share(database, monkeypatch):
    monkeypatch.setattr(webhooks, "BATCH", 3)
    monkeypatch.setattr(webhooks, "TIMEOUT", 0)
    desk = stub_desk(database, {"Ann": None})
    hook(desk, "http://silent.example/x")
    for place in range(10):
        send(desk, f"before {place}", gain=-1)
    make_due(desk)
    hook(desk, "http://quick.example/x")
    send(desk, "now", gain=-1)
    got = []
    assert deliver_due(desk, lambda parcel: got.append(parcel.url) or "busy") == 2
    assert sorted(got) == ["http://quick.example/x", "http://silent.example/x"]


def test_only_attempts_count_as_attempts(database, monkeypatch):
    monkeypatch.setattr(webhooks, "TIMEOUT", 0)  # time for one attempt per round
    desk = stub_desk(database, {"Ann": None})
    hook(desk)
    for name in "abc":
        send(desk, name, gain=-1)
    tried = []
    for turn in range(1, ATTEMPTS):
        assert deliver_due(desk, lambda parcel: tried.append(parcel.id) or "silent") == 1
        assert [row.attempts for row in rows(desk, delivery)] == [
            tried.count(row.id) for row in rows(desk, delivery)
        ]
        assert len(tried) == turn
        make_due(desk)
    assert {row.state for row in rows(desk, delivery)} == {"waiting"}


@pytest.mark.parametrize(
    ("peer", "refused"),
    [
        ("169.254.169.254", True),
        ("::ffff:169.254.169.254", True),
        ("fe80::1%eth0", True),
        ("10.0.0.1", False),
        ("127.0.0.1", False),
        ("2001:db8::1", False),
    ],
)
def test_nothing_is_sent_to_link_local_addresses(receiver, monkeypatch, peer, refused):
    # Whatever the name in the address resolves to at this moment.
    monkeypatch.setattr("socket.socket.getpeername", lambda self: (peer, 80))
    url = f"http://localhost:{receiver.server_port}/"
    problem = webhooks.post(webhooks.Parcel(1, 1, url, "secret", 1, b"{}", 0))
    assert (problem is not None, len(receiver.got)) == (refused, 0 if refused else 1)


@pytest.mark.parametrize("slow", [0, 0.3])
def test_a_reply_in_drops_ends_in_time(monkeypatch, slow):
    monkeypatch.setattr(webhooks, "TIMEOUT", 0.2)
    look_up = socket.getaddrinfo

    def look_up_slowly(*arguments):
        time.sleep(slow)
        return look_up(*arguments)

    monkeypatch.setattr(socket, "getaddrinfo", look_up_slowly)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            connection, _ = server.accept()
            with connection, suppress(OSError):
                for letter in b"HTTP/1.1 200 OK and a very long reason":
                    connection.sendall(bytes([letter]))
                    time.sleep(0.1)

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        begin = time.monotonic()
        assert webhooks.post(webhooks.Parcel(1, 1, url, "secret", 1, b"{}", 0)) is not None
        assert time.monotonic() - begin < 2, "the whole reply takes nearly 4 seconds"
        thread.join()
