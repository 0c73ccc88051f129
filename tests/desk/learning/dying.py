"""A process that learns, activates and goes back, until it is killed in the middle of something.

A process finds these functions by the name of this module: a test's own module has no name that other
processes could import.
"""

from __future__ import annotations

import itertools
import os
import signal
from multiprocessing import get_context

from sqlalchemy import event

from deferlearn.desk import audit
from deferlearn.desk.cases import arrive
from deferlearn.desk.database import Database
from deferlearn.desk.desk import Desk
from deferlearn.desk.learning.refitting import refit, store_candidate
from deferlearn.desk.models import activate_model, load_model
from desk.stub_desk import SECRET

# Processes are forked from one that has loaded everything.
processes = get_context("forkserver")
processes.set_forkserver_preload(["desk.learning.dying"])
REPORT = {"active_model": 1, "last_case": 0, "comparison": None}


def die_at(database, number):
    """Kill this process just before a statement, or a commit, that writes; count them if it is None."""
    counter = itertools.count(1)
    seen = [0]

    def step(*_):
        seen[0] = next(counter)
        if seen[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(database.writer, "before_cursor_execute", step)
    event.listen(database.writer, "commit", step)
    return seen


def change_models(url, content, number, told):
    """Store a candidate, activate it, decide, go back, decide; tell each step when it is done."""
    database = Database(url, options=audit.key_options(SECRET))
    desk = Desk(database)
    seen = die_at(database, number)
    card = load_model(content).card_
    candidate, _ = database.write(
        lambda c: store_candidate(c, content, card, REPORT, name="next", actor="user:1")
    )
    told.send(("stored", candidate))
    for model in (candidate, 1):
        told.send(("activating", model))
        database.write(lambda c, model=model: activate_model(c, model, actor="user:1"))
        told.send(("activated", model))
        name = f"by {model} at {number}"
        arrive(desk, name, {"a": 0.1, "b": 2.0}, actor="key:1")
        told.send(("case", name))
    told.send(("steps", seen[0]))


def refit_again_and_again(url, told):
    """The same with real refits, each of which is activated and taken back."""
    database = Database(url, options=audit.key_options(SECRET))
    desk = Desk(database)
    for turn in itertools.count():
        found = refit(desk, actor="user:1", seed=turn)
        told.send(("stored", found.model_id))
        for model in (found.model_id, 1):
            told.send(("activating", model))
            database.write(lambda c, model=model: activate_model(c, model, actor="user:1"))
            told.send(("activated", model))
            name = f"by {model} in {os.getpid()}, {turn}"
            arrive(desk, name, {"a": 0.1, "b": 2.0}, actor="key:1")
            told.send(("case", name))
