"""The laboratory around the desk: epochs come from six beds, readers answer, a consensus is the truth."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from deferlearn.desk.demo.client import Client, Refused
from deferlearn.desk.demo.clock import Clock
from deferlearn.desk.demo.making import CASES_PER_DAY, CASES_PER_MINUTE
from deferlearn.desk.demo.nights import Epoch, Nights

# Minutes of the laboratory: to read an epoch, on average, and from the arrival of an epoch until the five
# experts have agreed on its stage.
READING, TRUTH_AFTER = 1.0, 20.0
# Real seconds until a reader without a case looks again: the desk should be busy with cases.
LOOKING = 0.3
# So many minutes later than that, at most.
SLACK = 2.0


@dataclass
class Counts:
    """What has happened so far.

    Attributes
    ----------
    cases, deferred, audited, answers, passes, truths : int
        Cases sent, those given to experts, those of the machine that experts also get, what experts did,
        and truths told.
    """

    cases: int = 0
    deferred: int = 0
    audited: int = 0
    answers: int = 0
    passes: int = 0
    truths: int = 0


@dataclass
class Laboratory:
    """Threads that send what comes from outside.

    Attributes
    ----------
    client : Client
        The desk.
    clock : Clock
        The time.
    nights : Nights
        The epochs to come.
    experts : dict
        Ids of the readers, by name.
    careless, away : set of str
        Readers who answer without looking, and readers who are not there.
    network_broken : bool
        Whether one of the networks says Wake whatever it sees.
    """

    client: Client
    clock: Clock
    nights: Nights
    experts: dict[str, int]
    careless: set[str] = field(default_factory=set)
    away: set[str] = field(default_factory=set)
    network_broken: bool = False
    counts: Counts = field(default_factory=Counts)
    failure: Exception | None = None
    _sent: dict[str, Epoch] = field(default_factory=dict)
    _told: deque[Epoch] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin."""
        work: list[tuple[Callable[..., None], tuple[str, ...]]] = [
            (self._send_cases, ()),
            (self._tell_truths, ()),
            *((self._read, (name,)) for name in self.experts),
        ]
        for place, (function, args) in enumerate(work):
            name = f"laboratory-{place}"
            thread = threading.Thread(target=self._guarded, args=(function, *args), name=name)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Let all finish the request that they have begun."""
        self.clock.stopped.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, function: Callable[..., None], *args: str) -> None:
        try:
            function(*args)
        except Exception as error:
            self.failure = error
            self.clock.stopped.set()
        finally:
            self.client.close()

    @property
    def minutes(self) -> float:
        """How long the laboratory has worked, in its own minutes: by the cases that have come.

        Where the desk cannot keep up, this time slows down, and all happens in the same order.
        """
        return self.counts.cases / CASES_PER_MINUTE

    def _send_cases(self) -> None:
        """Send one epoch after the other, those of one day at most."""
        for epoch, _ in zip(self.nights.coming(), range(CASES_PER_DAY), strict=False):
            # Truths come so much later, and not later still because the desk is slow.
            while len(self._told) > (TRUTH_AFTER + SLACK) * CASES_PER_MINUTE:
                if not self.clock.wait(1 / CASES_PER_MINUTE):
                    return
            began = time.monotonic()
            with self._lock:  # a reader may get an epoch before the desk has replied
                self._sent[epoch.id] = epoch
            fields = epoch.broken_fields if self.network_broken else epoch.fields
            case = self.client.send("POST", "/api/v1/cases", {"id": epoch.id, "fields": fields})
            self.counts.deferred += case["decision"]["deferred"]
            self.counts.audited += case["decision"]["audited"]
            self.counts.cases += 1
            self._told.append(epoch)
            took = (time.monotonic() - began) * self.clock.speed / 60
            if not self.clock.wait(1 / CASES_PER_MINUTE - took):
                return

    def _tell_truths(self) -> None:
        while self.clock.wait(0.0):
            if len(self._told) <= TRUTH_AFTER * CASES_PER_MINUTE:
                self.clock.wait(1 / CASES_PER_MINUTE)
                continue
            epoch = self._told.popleft()
            self.client.send("POST", f"/api/v1/cases/{epoch.id}/truth", {"value": epoch.truth})
            self.counts.truths += 1

    def _read(self, name: str) -> None:
        """Answer what the desk gives to a reader, as the expert did."""
        luck = random.Random(name)
        while self.clock.wait(0.0):
            try:
                if name in self.away or not self._read_one(name, luck):
                    self.clock.stopped.wait(LOOKING)
            except Refused:  # a visitor has taken the case, or has given this reader a day off
                self.clock.stopped.wait(LOOKING)

    def _read_one(self, name: str, luck: random.Random) -> bool:
        """Answer a case, or pass it; False if there is none."""
        given = self.client.send("POST", "/api/v1/queue/next", {"expert": self.experts[name]})
        if given is None or not self.clock.wait(luck.expovariate(1 / READING)):
            return False
        with self._lock:
            epoch = self._sent.get(given["case"])  # a visitor may have sent others
        answer = None if epoch is None else epoch.answers[name]
        if name in self.careless:
            answer = luck.choice(self.nights.stages)
        held = {"token": given["token"]}
        reading = f"/api/v1/queue/{given['reading']}"
        if answer is None:
            self.client.send("POST", f"{reading}/pass", held)
            self.counts.passes += 1
        else:
            self.client.send("POST", f"{reading}/answer", {**held, "answer": answer})
            with self._lock:
                self.counts.answers += 1
        return True
