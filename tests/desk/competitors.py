"""Experts in processes of their own, who lease and answer until nothing is left to do.

A process finds these functions by the name of this module: a test's own module has no name that other
processes could import.
"""

import random
import time

from deferlearn.desk import audit
from deferlearn.desk.answering import give_answer
from deferlearn.desk.database import SECOND, Database, DatabaseUnavailable
from deferlearn.desk.leases import LeaseLost
from deferlearn.desk.queue import lease_next
from desk.stub_desk import SECRET, open_stub

LEASE = 1


def work(url, expert_id, total, together, results):
    """Send back what this process held; nothing if it failed."""
    held = []
    try:
        held = lease_and_answer(url, expert_id, total, together)
    finally:
        results.put(held)


def lease_and_answer(url, expert_id, total, together):
    """Lease and answer until all cases are answered; now and then let a lease end.

    No process begins the next step before all have done the one before: else a quick one would answer
    everything while the others are still being started.
    """
    database = Database(url, options=audit.key_options(SECRET), pool_size=2)
    desk, luck = open_stub(database), random.Random(expert_id)
    held = [let_end(desk, next_case(desk, expert_id))]
    together.wait()
    held.append(answer(desk, next_case(desk, expert_id)))
    together.wait()
    idle = 0
    while idle < 30:
        lease = next_case(desk, expert_id)
        if lease is None:
            idle += 1
            time.sleep(0.1)
            continue
        idle = 0
        held.append((let_end if luck.random() < 3 / total else answer)(desk, lease))
    database.close()
    return held


def insist(function):
    """Do as a client does to whom the desk says that the database is locked: try again."""
    for _ in range(20):
        try:
            return function()
        except DatabaseUnavailable as error:
            reason = error
    raise reason


def next_case(desk, expert_id):
    return insist(lambda: lease_next(desk, expert_id))


def began(lease):
    """When the lease began, by the clock of the database: this process may have learned it much later."""
    return lease.until - LEASE * SECOND


def let_end(desk, lease):
    """Wait until the lease has ended, and answer in vain."""
    time.sleep(1.2 * LEASE)
    try:
        insist(lambda: give_answer(desk, lease.reading_id, lease.token, "ill", actor="late"))
    except LeaseLost:
        # Nobody else has it before it ends.
        return lease.reading_id, began(lease), lease.until
    raise AssertionError("a lease that has ended was accepted")


def answer(desk, lease):
    """Answer, and tell when the lease began and ended: at once if the process had no time to answer."""
    try:
        insist(lambda: give_answer(desk, lease.reading_id, lease.token, "ill", actor="test"))
    except LeaseLost:
        return lease.reading_id, began(lease), began(lease)
    return lease.reading_id, began(lease), lease.until
