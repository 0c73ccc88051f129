"""The desk under load: decisions per second while experts lease and answer, on both databases.

Run it with::

    python benchmarks/desk.py               # ten minutes at 200 per second on both, then the highest rate
    python benchmarks/desk.py --seconds 20 --no-search --database sqlite    # a short look
    python benchmarks/desk.py --kills 20    # the server is killed 20 times meanwhile

Cases are sent at planned times, and the time until the reply is measured from the plan, so that a server
that stands still is charged for all who wait. Each expert takes a case, reads it for a while, and answers.
On two cores, the server, the database and the clients share them. How much of the processor each of them
took per request is printed, too: that tells more than times if other work keeps the machine busy.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import uvloop

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "desk")]

SECRET = "the secret of the desk in benchmarks"
PROMISED = 0.1  # seconds, for 99 of 100 decisions


# -- the server, in a process of its own ------------------------------------------------------------


class Server:
    def __init__(self, url: str, port: int) -> None:
        self.url, self.port, self.kills = url, port, 0
        self.start()

    def start(self) -> None:
        program = "from deferlearn.cli import main; main()"
        command = [sys.executable, "-c", program, "desk", "serve"]
        settings = {"DATABASE": self.url, "SECRET": SECRET, "PORT": str(self.port)}
        # All clients have one address here.
        settings["REQUESTS_PER_SECOND"] = "1000000"
        environment = {
            **os.environ,
            **{f"DEFERLEARN_DESK_{name}": value for name, value in settings.items()},
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        # It writes a line per request, as it does in use.
        with tempfile.TemporaryFile() as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            if self.process.poll() is not None:
                raise SystemExit("the server has ended")
            time.sleep(0.1)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def usage(self) -> tuple[float, float]:
        """Seconds of processor, and the most memory in MB, so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return processor_of(self.process.pid), int(peak.split()[1]) / 1024


def processor_of(process: int) -> float:
    """Seconds of processor of a process, and of those of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def processor_of_all(parent: int | None) -> float:
    """The same of a process and its children, such as those of PostgreSQL; 0 if there is none."""
    if parent is None:
        return 0.0
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    total = processor_of(parent)
    for child in children:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since they were listed
            total += processor_of(int(child))
    return total


class Gone(Exception):
    """The connection ended before the reply was here."""


class Client(asyncio.Protocol):
    """A connection that is kept. It reads no more of HTTP than the desk's replies need: the load takes
    little of the processor."""

    def __init__(self, port: int, key: str) -> None:
        self.port, self.transport = port, None
        self.head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        self.received, self.reply = b"", None

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, content = self.received.partition(b"\r\n\r\n")
        if not end or self.reply is None:
            return
        found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        if len(content) >= (int(found[1]) if found else 0):
            self.received = b""
            if not self.reply.done():
                self.reply.set_result((int(head[9:12]), json.loads(content) if content else None))

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if self.reply is not None and not self.reply.done():
            self.reply.set_exception(Gone())

    async def send(self, method: str, path: str, body: object) -> tuple[int, object]:
        loop = asyncio.get_running_loop()
        if self.transport is None:
            self.received = b""
            self.transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self.port)
        content = json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\n{self.head}Content-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        self.reply = loop.create_future()
        self.transport.write(head.encode() + content)
        try:
            return await asyncio.wait_for(self.reply, 30)
        except TimeoutError:
            if self.transport is not None:
                self.transport.abort()
            raise Gone from None


# -- the load -----------------------------------------------------------------------------------------


class Load:
    """Sources that send cases at planned times, and experts who answer."""

    def __init__(
        self, port: int, key: str, cases: list[dict], rate: float, seconds: float, name: str
    ) -> None:
        self.port, self.key, self.cases, self.name = port, key, cases, name
        self.rate, self.total = rate, int(rate * seconds)
        self.next, self.over = 0, threading.Event()
        self.arrivals: list[float] = []
        self.leases: list[float] = []
        self.answers: list[float] = []
        self.failures = 0

    @property
    def requests(self) -> int:
        return len(self.arrivals) + len(self.leases) + len(self.answers)

    def run(self, senders: int, experts: int) -> float:
        return uvloop.run(self.running(senders, experts))

    async def running(self, senders: int, experts: int) -> float:
        self.began = time.perf_counter() + 0.2
        readers = [asyncio.create_task(self.expert(n + 1)) for n in range(experts)]
        await asyncio.gather(*(self.source() for _ in range(senders)))
        took = time.perf_counter() - self.began
        self.over.set()
        await asyncio.gather(*readers)
        return took

    async def post(self, client: Client, path: str, body: object) -> tuple[int, object]:
        """Send until there is a reply."""
        while True:
            try:
                status, reply = await client.send("POST", path, body)
            except (OSError, Gone):
                status, reply = 503, None
            if status != 503:
                return status, reply
            self.failures += 1
            await asyncio.sleep(0.05)

    async def source(self) -> None:
        client = Client(self.port, self.key)
        while self.next < self.total:
            place, self.next = self.next, self.next + 1
            planned = self.began + place / self.rate
            await asyncio.sleep(max(planned - time.perf_counter(), 0))
            fields = self.cases[place % len(self.cases)]
            body = {"id": f"{self.name}-{place}", "fields": fields}
            status, reply = await self.post(client, "/api/v1/cases", body)
            self.arrivals.append(time.perf_counter() - planned)
            if status not in (200, 201) or reply["id"] != body["id"] or not reply["decision"]:
                raise SystemExit(f"a case was refused: {status} {reply}")

    async def expert(self, number: int) -> None:
        client, luck = Client(self.port, self.key), random.Random(number)
        while not self.over.is_set():
            began = time.perf_counter()
            status, lease = await self.post(client, "/api/v1/queue/next", {"expert": number})
            self.leases.append(time.perf_counter() - began)
            if status == 204:
                await asyncio.sleep(0.2)
                continue
            if status != 200:
                raise SystemExit(f"a lease was refused: {status} {lease}")
            await asyncio.sleep(luck.uniform(0.1, 0.5))
            body = {"token": lease["token"], "answer": luck.choice(lease["classes"])}
            began = time.perf_counter()
            path = f"/api/v1/queue/{lease['reading']}/answer"
            status, reply = await self.post(client, path, body)
            self.answers.append(time.perf_counter() - began)
            if status not in (200, 409) or (status == 200 and reply["case"] != lease["case"]):
                raise SystemExit(f"an answer was refused: {status} {reply}")


def summary(times: list[float]) -> str:
    if not times:
        return "none"
    middle, high, most = np.percentile(np.array(times) * 1000, [50, 99, 100])
    return f"p50 {middle:6.1f} ms   p99 {high:6.1f} ms   most {most:7.1f} ms   ({len(times)})"


# -- one database ---------------------------------------------------------------------------------------


def prepare(url: str, experts: int) -> tuple[str, list[dict]]:
    """Tables, a model, experts and a key; the key, and cases to send."""
    import deferlearn
    from case_tables import make_cases
    from deferlearn.desk import audit, keys
    from deferlearn.desk.database import Database
    from deferlearn.desk.experts import add_expert
    from deferlearn.desk.migrations import migrate
    from deferlearn.desk.models import activate_model, load_model, store_model
    from deferlearn.desk.permissions import SCOPES
    from deferlearn.desk.rules import change_rules
    from deferlearn.tables import fit_table, select_cases

    used = ["size", "dose", "age", "site"]
    train = make_cases(600)
    table = {name: train[name] for name in [*used, "diagnosis", "reader_1", "reader_2"]}
    with tempfile.TemporaryDirectory() as folder:
        chosen = select_cases(table, "diagnosis", humans=["reader_1", "reader_2"])
        deferlearn.save(fit_table(chosen, alpha=0.1), Path(folder) / "model.skops")
        content = (Path(folder) / "model.skops").read_bytes()
    database = Database(url, options=audit.key_options(SECRET))
    migrate(database)
    card = load_model(content).card_

    def fill(connection):
        number, _ = store_model(connection, content, card, name="benchmark", actor="benchmark")
        change_rules(connection, {"cases_per_day": 10**7}, actor="benchmark")
        activate_model(connection, number, actor="benchmark")
        for n in range(experts):
            add_expert(connection, f"expert {n}", actor="benchmark")
        return keys.create(connection, name="load", scopes=SCOPES, actor="benchmark")[1]

    key = database.write(fill)
    database.close()
    new = make_cases(2000, seed=1)
    return key, [dict(zip(used, row, strict=True)) for row in zip(*(new[name] for name in used))]  # noqa: B905


def check(url: str, sent: int) -> None:
    """Everything that was acknowledged is there exactly once, and the log is whole."""
    from sqlalchemy import func, select

    from deferlearn.desk import audit
    from deferlearn.desk.database import Database
    from deferlearn.desk.schema import answer, case, decision

    database = Database(url)
    with database.reading() as connection:
        cases, decisions, answers, answered = (
            connection.execute(select(what)).scalar_one()
            for what in (
                func.count(case.c.number),
                func.count(decision.c.case_number),
                func.count(answer.c.id),
                func.count(answer.c.case_number.distinct()),
            )
        )
        faults = audit.verify(connection, SECRET).faults
    database.close()
    assert cases == decisions == sent, (cases, decisions, sent)
    assert answers == answered, "a case was answered twice"
    assert faults == [], faults[:3]
    print(f"  checked: {cases} cases and {answers} answers, each once; the audit log is whole")


def size_of(url: str) -> float:
    """MB on the disk."""
    from sqlalchemy import create_engine, make_url, text

    if url.startswith("sqlite"):
        path = Path(str(make_url(url).database))
        return sum(one.stat().st_size for one in path.parent.glob(path.name + "*")) / 1e6
    engine = create_engine(url)
    with engine.connect() as connection:
        size = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
    engine.dispose()
    return size / 1e6


def killer(server: Server, kills: int, seconds: float, over: threading.Event) -> None:
    luck = random.Random(0)
    for _ in range(kills):
        if over.wait(luck.uniform(0.5, 1.5) * seconds / (kills + 1)):
            return
        server.kill()
        server.start()


def measure(name: str, url: str, options: argparse.Namespace, database: int | None = None) -> None:
    key, cases = prepare(url, options.experts)
    before = size_of(url)
    server = Server(url, options.port)
    Load(options.port, key, cases, 50, 2, "warm").run(options.senders, 0)
    sent = 100
    print(
        f"{name}: {options.rate:g} decisions per second for {options.seconds:g} s, "
        f"{options.experts} experts"
    )
    load = Load(options.port, key, cases, options.rate, options.seconds, "case")
    before_load = [server.usage()[0], time.process_time(), processor_of_all(database)]
    killing = None
    if options.kills:
        arguments = (server, options.kills, options.seconds, load.over)
        killing = threading.Thread(target=killer, args=arguments)
        killing.start()
    took = load.run(options.senders, options.experts)
    if killing is not None:
        killing.join()
    sent += load.total
    used, memory = server.usage()
    after_load = [used, time.process_time(), processor_of_all(database)]
    held = np.percentile(load.arrivals, 99) < PROMISED
    print(f"  decisions  {summary(load.arrivals)}   {load.total / took:.1f} per second")
    print(f"  leases     {summary(load.leases)}")
    print(f"  answers    {summary(load.answers)}")
    if options.kills:
        print(f"  the server was killed {server.kills} times")
    else:
        for who, one, other in zip(
            ("server", "load", "database"), before_load, after_load, strict=True
        ):
            if other:
                each = 1000 * (other - one) / load.requests
                print(f"  {who:<10} {(other - one) / took:.2f} cores, {each:.2f} ms per request")
    size = size_of(url)
    print(
        f"  memory     {memory:.0f} MB   database {size:.1f} MB "
        f"({1e3 * (size - before) / sent:.1f} kB per case)   repeated requests {load.failures}"
    )
    print(
        f"  {'held' if held else 'NOT HELD'}: 99 of 100 decisions within {1000 * PROMISED:.0f} ms"
    )
    if options.search:
        best, rate = 0.0, options.rate
        for trial in range(20):
            load = Load(options.port, key, cases, rate, options.search_seconds, f"search{trial}")
            took = load.run(options.senders, options.experts)
            sent += load.total
            high = np.percentile(load.arrivals, 99)
            print(
                f"  at {rate:6.0f} per second: p99 {1000 * high:.0f} ms, {load.total / took:.0f} done"
            )
            if high > PROMISED or load.total / took < 0.97 * rate:
                break
            best, rate = rate, 1.15 * rate
        print(f"  the highest rate that was held: {best:.0f} per second")
    server.stop()
    check(url, sent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--experts", type=int, default=20)
    parser.add_argument("--senders", type=int, default=16, help="connections that send cases")
    parser.add_argument("--database", choices=["sqlite", "postgresql", "both"], default="both")
    parser.add_argument(
        "--search",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="find the highest rate that is held, too",
    )
    parser.add_argument("--search-seconds", type=float, default=20)
    parser.add_argument("--kills", type=int, default=0, help="kill the server so often meanwhile")
    parser.add_argument("--port", type=int, default=8479)
    options = parser.parse_args()
    if options.database != "postgresql":
        folder = tempfile.mkdtemp(prefix="deferlearn-desk-")
        measure("SQLite", f"sqlite:///{folder}/desk.db", options)
        shutil.rmtree(folder)
    if options.database != "sqlite":
        from postgres_server import PostgresServer, find_programs

        if find_programs() is None:
            print("PostgreSQL: there is no server on this machine")
            return
        server = PostgresServer(safe=True)
        try:
            measure("PostgreSQL", server.url("postgres"), options, server.process.pid)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
