"""Alarms: tests that go on with every case, answer and truth, and alarms that are raised, told and closed.

Each test has a row with its state and the last case, answer or truth that it took into account. Whoever
calls `advance`, such as a thread of the server once a minute, reads what is new, moves the tests on, and
stores their states, if nobody else has done so meanwhile. A new model begins with new tests. Closing an
alarm lets its test begin again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from deferlearn._utils.types import Array
from deferlearn.desk import audit
from deferlearn.desk.database import now
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import NotFound
from deferlearn.desk.judging import Judge
from deferlearn.desk.monitoring import watches
from deferlearn.desk.monitoring.case_tables import codes_of
from deferlearn.desk.monitoring.evidence import Evidence
from deferlearn.desk.monitoring.figures import number, percent
from deferlearn.desk.monitoring.losses import grades_of, losses, most_lost
from deferlearn.desk.monitoring.observations import (
    Seen,
    new_audits,
    new_cases,
    new_truths,
)
from deferlearn.desk.monitoring.watches import (
    COLUMN,
    DEFERRED,
    DISAGREEMENT,
    EXPERT,
    MACHINE,
    UNUSUAL,
)
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import alarm, watch
from deferlearn.desk.webhooks import tell
from deferlearn.teams.parameters import share_of

# How often an alarm is false, of whatever kind.
FALSE_ALARMS = (
    "As long as nothing has changed, the probability of an alarm of any one kind is at most "
    f"{percent(watches.RATE)}, however long one waits."
)


@dataclass(frozen=True)
class Alarm:
    """An alarm.

    Attributes
    ----------
    id : int
        Its number.
    model_id : int
        The model that was active.
    kind : str
        What it is about.
    subject : str
        The expert or the column; empty for the desk as a whole.
    raised_at : int
        When.
    sentence : str
        What was found, and how often such an alarm is false.
    closed_at : int or None
        When somebody closed it.
    closed_by : str or None
        Who.
    """

    id: int
    model_id: int
    kind: str
    subject: str
    raised_at: int
    sentence: str
    closed_at: int | None
    closed_by: str | None

    @property
    def found(self) -> str:
        """The sentence without how often such an alarm is false, if that is the same for all."""
        return self.sentence.removesuffix(f" {FALSE_ALARMS}")


class _News(NamedTuple):
    """What a test has to take into account: bets, and counts for the sentence."""

    kind: str
    subject: str
    rate: float
    bets: Array
    happened: float
    n_cases: int
    expected: float
    in_grades: bool = False


def advance(desk: Desk) -> list[Alarm]:
    """Take into account what has happened since the last call, and raise the alarms that are due.

    Parameters
    ----------
    desk : Desk
        The desk. Without an active model nothing happens.

    Returns
    -------
    raised : list of Alarm
        New alarms.
    """
    with desk.database.reading() as connection:
        moment = desk.look(connection)
    model_id = moment.configuration.model_id
    if model_id is None:
        return []
    judge = desk.judge(model_id)
    raised: list[Alarm] = []
    for source, tests in (
        (new_cases, _of_cases),
        (new_audits, _of_audits),
        (new_truths, _of_truths),
    ):
        while True:
            with desk.database.reading() as connection:
                states = _states(connection, model_id)
                mark = (
                    states[source.__name__, ""].last_seen if (source.__name__, "") in states else 0
                )
                seen = source(connection, model_id, mark)
            if not len(seen):
                break
            news = list(tests(judge, seen, len(moment.configuration.experts)))
            job = partial(_store, desk, model_id, source.__name__, seen, states, news)
            try:
                found = desk.database.write(job)
            except IntegrityError:
                found = None
            if found is None:  # somebody else was quicker
                break
            raised += found
    return raised


def _states(connection: Connection, model_id: int) -> dict[tuple[str, str], Any]:
    rows = connection.execute(select(watch).where(watch.c.model_id == model_id))
    return {(row.kind, row.subject): row for row in rows}


def _of_cases(judge: Judge, seen: Seen, n_experts: int) -> Iterator[_News]:
    unusual = np.array([bool(row.unusual) for row in seen.rows], dtype=np.float64)
    limit = watches.UNUSUAL_LIMIT
    yield _news(UNUSUAL, "", watches.unusual_bets(unusual), unusual, np.full(len(unusual), limit))
    card = judge.card
    if "budget" in card:
        budget = float(share_of(card["budget"], card["rows"]))
        deferred = np.array([row.deferred for row in seen.rows], dtype=np.float64)
        bets = watches.deferral_bets(deferred, budget)
        yield _news(DEFERRED, "", bets, deferred, np.full(len(deferred), budget))
    decider = getattr(judge, "decider", None)
    if decider is None:
        return
    guard = decider.guard
    codes = codes_of(decider, [row.content for row in seen.rows])
    nothing = np.full(len(codes), np.nan)
    for place, name in enumerate(guard.columns):
        bets = watches.column_bets(guard, place, codes[:, place])
        rate = watches.column_rate(guard)
        yield _news(COLUMN, name, bets, nothing, nothing, rate)


def _of_audits(judge: Judge, seen: Seen, n_experts: int) -> Iterator[_News]:
    grades = grades_of(judge.card)
    worst = most_lost(grades)
    differ = losses(seen.column("value"), seen.column("machine_answer"), grades)
    # Two answers are no farther from each other than both are from the truth.
    expected = seen.expected_machine + seen.expected_expert
    bets = watches.error_bets(differ, np.minimum(expected, worst), worst)
    yield _news(DISAGREEMENT, "", bets, differ, expected, in_grades=bool(grades))


def _of_truths(judge: Judge, seen: Seen, n_experts: int) -> Iterator[_News]:
    # One row per answer: the machine's error counts once per case.
    numbers = [row.case_number for row in seen.rows]
    _, first = np.unique(numbers, return_index=True)
    grades = grades_of(judge.card)
    worst, graded, once = most_lost(grades), bool(grades), np.sort(first)
    own = losses(seen.column("machine_answer"), seen.column("truth"), grades)[once]
    foreseen = seen.expected_machine[once]
    bets = watches.error_bets(own, foreseen, worst)
    yield _news(MACHINE, "", bets, own, foreseen, in_grades=graded)
    names = np.array([row.name or "" for row in seen.rows])
    said = losses(seen.column("value"), seen.column("truth"), grades)
    for name in np.unique(names[names != ""]).tolist():
        hers = names == name
        foreseen = seen.expected_expert[hers]
        bets = watches.error_bets(said[hers], foreseen, worst)
        rate = watches.RATE / max(n_experts, 1)
        yield _news(EXPERT, name, bets, said[hers], foreseen, rate, in_grades=graded)


def _news(
    kind: str,
    subject: str,
    bets: Array,
    happened: Array,
    expected: Array,
    rate: float = watches.RATE,
    *,
    in_grades: bool = False,
) -> _News:
    used = ~np.isnan(happened) & ~np.isnan(expected)
    total = float(expected[used].sum())
    found = float(happened[used].sum())
    return _News(kind, subject, rate, bets, found, int(used.sum()), total, in_grades)


def _store(
    desk: Desk,
    model_id: int,
    source: str,
    seen: Seen,
    states: dict[tuple[str, str], Any],
    news: Sequence[_News],
    connection: Connection,
) -> list[Alarm] | None:
    """Store the states of tests, and alarms; None if they have moved on meanwhile."""
    moment = desk.look(connection)
    if not _move(connection, model_id, source, "", seen.last, {}, states):
        return None
    raised = []
    for one in news:
        before = states.get((one.kind, one.subject))
        state = before.state if before is not None else {}
        evidence = Evidence.from_plain(state["evidence"]) if state else Evidence()
        after, _ = evidence.after(one.bets)
        counts = {
            "happened": state.get("happened", 0.0) + one.happened,
            "count": state.get("count", 0) + one.n_cases,
            "expected": state.get("expected", 0.0) + one.expected,
        }
        stored = {"evidence": after.plain(), **counts}
        # A test whose alarm was closed meanwhile begins again without these cases.
        moved = _move(connection, model_id, one.kind, one.subject, seen.last, stored, states)
        if moved and after.peak >= -math.log(one.rate):
            found = _raise(connection, moment, model_id, one, counts)
            raised += [] if found is None else [found]
    return raised


def _move(
    connection: Connection,
    model_id: int,
    kind: str,
    subject: str,
    last: int,
    state: dict[str, Any],
    states: dict[tuple[str, str], Any],
) -> bool:
    before = states.get((kind, subject))
    if before is None:
        taken = connection.execute(
            select(watch.c.kind).where(
                watch.c.model_id == model_id, watch.c.kind == kind, watch.c.subject == subject
            )
        ).first()
        if taken is not None:
            return False
        row = insert(watch).values(
            model_id=model_id, kind=kind, subject=subject, last_seen=last, state=state, version=1
        )
        connection.execute(row)
        return True
    moved = connection.execute(
        update(watch)
        .where(
            watch.c.model_id == model_id,
            watch.c.kind == kind,
            watch.c.subject == subject,
            watch.c.version == before.version,
        )
        .values(last_seen=last, state=state, version=watch.c.version + 1)
    )
    return bool(moved.rowcount)


def _raise(
    connection: Connection, moment: Moment, model_id: int, news: _News, counts: dict[str, Any]
) -> Alarm | None:
    """Raise an alarm, unless it is raised already."""
    same = (alarm.c.model_id == model_id) & (alarm.c.kind == news.kind)
    same &= (alarm.c.subject == news.subject) & alarm.c.closed_at.is_(None)
    if connection.execute(select(alarm.c.id).where(same)).first() is not None:
        return None
    sentence = _sentence(news, counts)
    number = connection.execute(
        insert(alarm)
        .values(
            model_id=model_id,
            kind=news.kind,
            subject=news.subject,
            raised_at=moment.now,
            sentence=sentence,
        )
        .returning(alarm.c.id)
    ).scalar_one()
    body = {"alarm": number, "kind": news.kind, "subject": news.subject, "sentence": sentence}
    tell(connection, moment, "alarm.raised", body)
    audit.append(
        connection,
        actor="desk",
        action="alarm.raised",
        subject=f"alarm:{number}",
        detail={"kind": news.kind, "subject": news.subject, "model": model_id},
    )
    return Alarm(number, model_id, news.kind, news.subject, moment.now, sentence, None, None)


def _sentence(news: _News, counts: dict[str, Any]) -> str:
    n = max(counts["count"], 1)
    words = number if news.in_grades else percent
    share, expected = words(counts["happened"] / n), words(counts["expected"] / n)
    if news.in_grades:
        errors = f"was {share} grades off on average in {n:,} cases of known truth"
        differ = f"were {share} grades apart on average in"
    else:
        errors = f"was wrong in {share} of {n:,} cases of known truth"
        differ = f"disagreed in {share} of"
    errors += f"; {expected} was expected."
    found = {
        UNUSUAL: f"{share} of {n:,} cases were unlike the training cases; {expected} would be usual.",
        DEFERRED: f"{share} of {n:,} cases were deferred; the budget is {expected}.",
        COLUMN: f"Column {news.subject!r} is no longer distributed as in training.",
        MACHINE: f"The machine {errors}",
        DISAGREEMENT: (
            f"The machine and experts {differ} {n:,} audited cases; at most {expected} was expected."
        ),
        EXPERT: f"{news.subject} {errors}",
    }[news.kind]
    return f"{found} {FALSE_ALARMS}"


def open_alarms(connection: Connection) -> list[Alarm]:
    """The alarms that nobody has closed, the newest first.

    Parameters
    ----------
    connection : Connection
        A connection to the database.

    Returns
    -------
    alarms : list of Alarm
    """
    query = select(alarm).where(alarm.c.closed_at.is_(None)).order_by(alarm.c.id.desc())
    return [Alarm(*row) for row in connection.execute(query)]


def close_alarm(connection: Connection, number: int, *, actor: str) -> None:
    """Close an alarm, and let its test begin again; an alarm that is closed already stays as it is.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    number : int
        The alarm.
    actor : str
        Who closes it.
    """
    row = connection.execute(select(alarm).where(alarm.c.id == number).with_for_update()).first()
    if row is None:
        raise NotFound(f"There is no alarm {number}.")
    if row.closed_at is not None:
        return
    connection.execute(
        update(alarm).where(alarm.c.id == number).values(closed_at=now(connection), closed_by=actor)
    )
    connection.execute(
        update(watch)
        .where(
            watch.c.model_id == row.model_id,
            watch.c.kind == row.kind,
            watch.c.subject == row.subject,
        )
        .values(state={"evidence": Evidence().plain()}, version=watch.c.version + 1)
    )
    audit.append(connection, actor=actor, action="alarm.closed", subject=f"alarm:{number}")
