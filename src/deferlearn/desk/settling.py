"""Settling: when the readings of a case suffice, what its final answer is, and who arbitrates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from deferlearn.desk.readings import add_reading, cancel_waiting, readers
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import ARBITERS, answer, case, reading
from deferlearn.desk.webhooks import announce

# Flags of a case.
DISAGREED, ALL_PASSED = "readers disagreed, without an arbiter", "nobody could tell"
LATE, STILL_WAITING = "not answered in time", "not answered in time, still waiting"
# Statements of every answer are made once: to make one takes as long as to run it.
_ANSWERS = (
    select(answer.c.value, reading.c.kind)
    .join(reading, reading.c.id == answer.c.reading_id)
    .where(
        answer.c.case_number == bindparam("case"),
        answer.c.withdrawn_at.is_(None),
        reading.c.kind != "audit",
    )
    .order_by(answer.c.id)
)
_FINISH = (
    update(case)
    .where(case.c.number == bindparam("case"))
    .values(
        state="answered",
        answered_at=bindparam("now"),
        version=bindparam("next"),
        answer=bindparam("new_answer"),
        answered_by=bindparam("new_answered_by"),
        flag=bindparam("new_flag"),
    )
)


def settle(connection: Connection, moment: Moment, found: Any, decided: Any) -> bool:
    """Find out whether the readings of a case suffice for its final answer, or an arbiter is needed.

    Parameters
    ----------
    connection : Connection
        A connection that writes; the case is locked.
    moment : Moment
        Now.
    found, decided : Row
        The case and the decision about it.

    Returns
    -------
    final : bool
    """
    rows = _answers_to(connection, found.number)
    for row in rows:
        if row.kind == "arbiter":
            return _finish(connection, moment, found, row.value, "arbiter", None)
    values = [row.value for row in rows]
    if len(values) < found.required:
        return False
    who = "expert" if len(values) == 1 else "experts"
    if len(set(values)) == 1:
        return _finish(connection, moment, found, values[0], who, None)
    if _ask_arbiter(connection, moment, found):
        return False
    return _finish(connection, moment, found, _majority(values, decided), who, DISAGREED)


def finish_disagreement(connection: Connection, moment: Moment, found: Any, decided: Any) -> None:
    """Settle a case without an arbiter, because all of them have passed.

    Parameters
    ----------
    connection : Connection
        A connection that writes; the case is locked.
    moment : Moment
        Now.
    found, decided : Row
        The case and the decision about it.
    """
    values = [row.value for row in _answers_to(connection, found.number) if row.kind == "reading"]
    finish_case(connection, moment, found, _majority(values, decided), "experts", DISAGREED)


def _answers_to(connection: Connection, number: int) -> Sequence[Any]:
    """Values and kinds of the answers to a case that count, in the order in which they were given."""
    return connection.execute(_ANSWERS, {"case": number}).all()


def _majority(values: list[str], decided: Any) -> str:
    """The commonest answer; of several, the machine's if it is one of them, or else the first."""
    counts = Counter(values)
    most = max(counts.values())
    tied = [value for value in values if counts[value] == most]
    return str(decided.machine_answer) if decided.machine_answer in tied else tied[0]


def _ask_arbiter(connection: Connection, moment: Moment, found: Any) -> bool:
    """Let an arbiter read the case who has not read it yet; False if there is none."""
    had = readers(connection, found.number)
    arbiters = [one for one in moment.configuration.active_experts if one.is_arbiter]
    if not any(one.takes_cases and one.id not in had for one in arbiters):
        return False
    add_reading(connection, moment, found, "arbiter", ARBITERS)
    return True


def _finish(
    connection: Connection, moment: Moment, found: Any, value: str, who: str, flag: str | None
) -> bool:
    finish_case(connection, moment, found, value, who, flag)
    return True


def finish_case(
    connection: Connection, moment: Moment, found: Any, value: str, who: str, flag: str | None
) -> None:
    """Store the final answer of a case, and tell those who want to know.

    Readings that nobody has begun are cancelled. An expert who is reading the case may still answer: that
    tells how good the answer is.

    Parameters
    ----------
    connection : Connection
        A connection that writes; the case is locked.
    moment : Moment
        Now.
    found : Row
        The case.
    value : str
        The answer.
    who : {"machine", "expert", "experts", "arbiter", "deadline"}
        Whose answer it is.
    flag : str or None
        What is unusual about it; None: what was said of the case before.
    """
    before = LATE if found.flag == STILL_WAITING else found.flag
    facts = {"answer": value, "answered_by": who, "flag": flag or before}
    version = found.version + 1
    values = {"case": found.number, "now": moment.now, "next": version}
    connection.execute(_FINISH, {**values, **{f"new_{name}": v for name, v in facts.items()}})
    cancel_waiting(connection, found.number)
    announce(
        connection,
        moment,
        "case.answered",
        found.number,
        found.id,
        facts,
        version=version,
    )
