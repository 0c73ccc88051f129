"""Refit, activation and roll-back that are killed leave exactly one active model, and all decisions."""

import itertools
import random
import time

import numpy as np
import pytest

from deferlearn.desk import audit
from deferlearn.desk.cases import arrive
from deferlearn.desk.desk import Desk
from deferlearn.desk.schema import case, decision, model, model_report
from desk.learning.desk_of_rows import add_rows, make_model, store
from desk.learning.dying import change_models, processes, refit_again_and_again
from desk.stub_desk import SECRET, count, rows

FIRST = 1


@pytest.fixture(scope="module")
def contents():
    """Files of two models."""
    return make_model(seed=0), make_model(seed=1)


@pytest.fixture
def first_content(contents, database):
    store(database, contents[0])
    return contents[0]


def lives(target, *arguments, kill_after=None):
    """Run a process until it ends or is killed; what it told."""
    receiving, sending = processes.Pipe(duplex=False)
    process = processes.Process(target=target, args=(*arguments, sending), daemon=True)
    process.start()
    sending.close()
    told = []
    if kill_after is not None:
        told.append(receiving.recv())  # it has begun
        time.sleep(kill_after)
        process.kill()
    try:
        while True:
            told.append(receiving.recv())
    except EOFError:
        pass
    process.join()
    return told, process.exitcode


def check(desk, told, active):
    """Nothing that was acknowledged is lost, nothing is half done, and the desk decides on."""
    models = {row.id: row.state for row in rows(desk, model)}
    (now_active,) = [number for number, state in models.items() if state == "active"]
    for step, what in told:
        if step == "activated":
            active = {what}
        elif step == "activating":
            active = active | {what}
    assert now_active in active
    stored = {what for step, what in told if step == "stored"}
    assert stored <= models.keys()
    reports = {row.model_id for row in rows(desk, model_report)}
    assert reports == models.keys() - {FIRST}, (
        "a candidate without its report, or the other way round"
    )
    names = {row.id for row in rows(desk, case)}
    assert {what for step, what in told if step == "case"} <= names
    assert count(desk, decision) == len(names)
    assert {row.model_id for row in rows(desk, decision)} <= models.keys()
    with desk.database.reading() as connection:
        assert audit.verify(connection, SECRET).faults == []
    again = Desk(desk.database)
    number = arrive(again, f"after {len(names)}", {"a": 0.1, "b": 2.0}, actor="key:1").number
    assert rows(desk, decision, case_number=number)[0].model_id == now_active
    return {now_active}


def killed_at(database, database_url, content, steps):
    desk, active = Desk(database), {FIRST}
    for number in steps:
        told, code = lives(change_models, database_url, content, number)
        assert code == -9, told
        active = check(desk, told, active)


def steps_in_all(database_url, content):
    told, code = lives(change_models, database_url, content, None)
    assert code == 0
    return told[-1][1]


def test_killed_at_a_few_statements(database, database_url, contents, first_content):
    # One in each part: a model is stored, activated, taken back; cases come in between.
    luck = random.Random(0)
    parts = [(1, 6), (7, 16), (17, 28), (29, 40)]
    steps = [luck.randint(*part) for part in parts]
    killed_at(database, database_url, contents[1], steps)
    assert steps_in_all(database_url, contents[1]) >= 40


@pytest.mark.slow
def test_killed_at_every_statement(database, database_url, contents, first_content):
    # First while the candidate is being stored; it is there from then on, and each life has fewer steps.
    desk, active = Desk(database), {FIRST}
    for number in itertools.count(1):
        told, code = lives(change_models, database_url, contents[1], number)
        assert code == -9, told
        active = check(desk, told, active)
        if told:
            break
    assert number > 3
    total = steps_in_all(database_url, contents[1])
    killed_at(database, database_url, contents[1], range(1, total + 1))
    assert total >= 40


@pytest.mark.slow
def test_refits_that_are_killed_at_random_moments(database, database_url, first_content):
    add_rows(database, first_content, 200, np.random.default_rng(1), angle=np.pi / 3)
    desk, active, luck = Desk(database), {FIRST}, random.Random(1)
    for _ in range(15):
        told, code = lives(refit_again_and_again, database_url, kill_after=luck.uniform(0, 2))
        assert code == -9
        active = check(desk, told, active)
    assert count(desk, model) > 5
