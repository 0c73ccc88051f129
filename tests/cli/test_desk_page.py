"""The first page of the documentation of the desk is right: five commands lead to a decision."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from case_tables import make_cases, write_csv
from deferlearn.cli.desk._opened import connect, settings_of
from deferlearn.desk.answering import give_answer
from deferlearn.desk.desk import Desk
from deferlearn.desk.queue import lease_next

PAGE = Path(__file__).parents[2] / "docs" / "desk" / "index.md"
MAIN = "from deferlearn.cli import main; main()"


def commands():
    (block,) = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return block.splitlines()


def deferlearn(line, *more):
    """The same command, by this Python and with the modules of this folder."""
    words = shlex.split(line.partition(">")[0].rstrip("& "))
    assert words[0] == "deferlearn"
    return [sys.executable, "-c", MAIN, *words[1:], *more]


def request(line, key, port):
    """What `curl` would send."""
    words = shlex.split(line.replace("$(cat key.txt)", key))
    url = next(word for word in words if word.startswith("http")).replace(":8470", f":{port}")
    headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")
    body = words[words.index("-d") + 1].encode()
    return urllib.request.Request(url, body, headers)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_until_ready(server, port):
    for _ in range(1800):
        assert server.poll() is None, server.communicate()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.status
        except OSError:
            time.sleep(0.1)
    raise TimeoutError


def stop_in_the_middle_of(sent, server, port):
    """Stop a server that has half of a request: it takes no other one, and answers this one."""
    lines = [f"{name}: {value}" for name, value in sent.header_items()]
    head = "\r\n".join(["POST /api/v1/cases HTTP/1.1", *lines, f"Content-Length: {len(sent.data)}"])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"{head}\r\n\r\n".encode() + sent.data[:20])
        time.sleep(0.3)
        server.send_signal(signal.SIGTERM)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                break
            time.sleep(0.02)
        else:
            raise TimeoutError("the server still takes connections")
        connection.sendall(sent.data[20:])
        reply = b""
        while piece := connection.recv(65_536):
            reply += piece
    assert reply.startswith(b"HTTP/1.1 200"), reply  # the case is known by now
    assert b"connection: close" in reply


def follow_the_page(folder, *options):
    """Run the commands of the page; the first decision, what the server printed, and its exit code."""
    columns = make_cases()
    del columns["reader_2"], columns["patient"]
    write_csv(folder / "cases.csv", columns)
    install, init, add_key, serve, send = commands()
    assert install == "pip install 'deferlearn[desk]'"
    quick = {**os.environ, "DEFERLEARN_DESK_PASSWORD_PASSES": "1"}
    run = {"cwd": folder, "env": quick, "text": True}
    subprocess.run(deferlearn(init, *options), check=True, stdout=subprocess.DEVNULL, **run)
    made = subprocess.run(deferlearn(add_key), check=True, stdout=subprocess.PIPE, **run)
    port = free_port()
    server = subprocess.Popen(
        deferlearn(serve, "--port", str(port)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **run,
    )
    try:
        assert wait_until_ready(server, port) == 200
        with urllib.request.urlopen(request(send, made.stdout.strip(), port)) as answer:
            reply = json.load(answer)
        stop_in_the_middle_of(request(send, made.stdout.strip(), port), server, port)
        out, err = server.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
    return reply, out, err, server.returncode


def check(reply, out, err, code):
    assert reply["id"] == "case-1"
    assert reply["decision"]["machine_answer"] in ("ill", "well")
    assert isinstance(reply["decision"]["deferred"], bool)
    assert reply["decision"]["reason"]
    assert "The desk is at http://127.0.0.1:" in out
    assert "/welcome#1-" in out  # nobody has chosen a password yet
    *lines, last = err.splitlines()
    assert last == "The desk has stopped."
    assert code == 0
    logged = [json.loads(line) for line in lines]
    assert any(line.get("route") == "/api/v1/cases" and line["status"] == 201 for line in logged)
    assert "case-1" not in err
    assert "Oslo" not in err


def test_five_commands_lead_to_the_first_decision(tmp_path):
    # The machine is not tuned, which would take most of the time.
    check(*follow_the_page(tmp_path, "--alpha", "0.1"))


@pytest.mark.slow
def test_five_commands_lead_to_the_first_decision_exactly_as_they_stand_there(tmp_path):
    check(*follow_the_page(tmp_path))


def answer_all(folder):
    """The experts answer what waits for them, as the page says on pages and not in commands."""
    with closing(connect(settings_of(folder / "desk.toml", None))) as database:
        desk = Desk(database)
        for expert in (1, 2, 3):
            while (lease := lease_next(desk, expert)) is not None:
                value = "melanoma" if float(lease.fields["asymmetry"]) > 0.5 else "naevus"
                give_answer(desk, lease.reading_id, lease.token, value, actor="test")


@pytest.mark.slow
def test_the_first_ten_minutes_go_as_the_page_says(tmp_path):
    """All commands of the page but those that start a server, in the same folder."""
    text = PAGE.with_name("start.md").read_text(encoding="utf-8")
    printed = {}
    for kind, code in re.findall(r"^```(python|console)\n(.*?)^```", text, re.M | re.S):
        run = {"cwd": tmp_path, "check": True, "text": True, "stdout": subprocess.PIPE}
        if kind == "python":
            subprocess.run([sys.executable, "-c", code], **run)
            continue
        for line in code.splitlines():
            if line.startswith("pip ") or line == "deferlearn desk serve":
                continue
            # The machine is not tuned, which would take most of the time.
            more = ["--alpha", "0.1"] if " init " in line else []
            if " --only-truth" in line:
                answer_all(tmp_path)
            printed[line] = subprocess.run(deferlearn(line, *more), **run).stdout
    links = [out for line, out in printed.items() if " user add " in line]
    assert len(links) == 4
    assert all("/welcome#" in link for link in links)
    assert printed["deferlearn desk import new.csv --id case"].startswith("New: 100 cases")
    (truths,) = (out for line, out in printed.items() if "--only-truth" in line)
    assert "new truths: 100" in truths
    assert "candidate" in printed["deferlearn desk refit"]
