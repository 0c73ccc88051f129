"""The audit log: a chain of entries, each signed together with the one before it.

Whoever can write to the database but does not have the desk's secret cannot change, remove, insert or
reorder an entry without `verify` finding it. The log is tamper-evident, not tamper-proof: a thief of the
secret can write a new chain, and whoever puts back an old copy of the whole database removes what came
after. If the head that `verify` returns is noted outside the desk from time to time, that is found too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, insert, select, update

from deferlearn.desk.database import clock
from deferlearn.desk.schema import audit_head, audit_log, canonical, model, user
from deferlearn.desk.signing import derive, same, sign

# The name under which an engine's connections carry the key of the chain.
_KEY = "deferlearn_audit_key"
# So many entries are read at a time.
_BATCH = 1000
# After so many faults the search ends.
MOST_FAULTS = 100
# What the first entry has in place of the hash of the one before it.
START = "0" * 64
# Statements of every entry are made once: to make one takes as long as to run it.
_LOCK_HEAD = select(audit_head.c.sequence, audit_head.c.hash, clock()).with_for_update()
_ADD, _MOVE_HEAD = insert(audit_log), update(audit_head)


@dataclass(frozen=True)
class Entry:
    """What happened: who did what to what. It holds no content of cases.

    Attributes
    ----------
    actor : str
        Such as "user:anna", "key:ris" or "desk".
    action : str
        Such as "case.answered".
    subject : str
        Such as "case:17".
    detail : mapping
        Further facts that can be written as JSON.
    """

    actor: str
    action: str
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Head:
    """The newest entry: with its hash, it stands for the whole chain before it.

    Attributes
    ----------
    sequence : int
        Number of the entry; 0 if there is none.
    hash : str
        Its hash, as hexadecimal digits.
    """

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


def key_options(secret: str) -> dict[str, Any]:
    """Options of a database whose transactions can append to the log.

    Parameters
    ----------
    secret : str
        The desk's secret.

    Returns
    -------
    options : dict
        For `deferlearn.desk.database.Database`.
    """
    return {_KEY: derive(secret, "audit")}


def append(
    connection: Connection,
    *,
    actor: str,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Append an entry within the current transaction.

    It should be the last statement, because it holds a lock that all writers of the log need until the
    transaction ends.

    Parameters
    ----------
    connection : Connection
        Of a database with the options `key_options`.
    actor : str
        Who did it, such as `Principal.actor`, or "desk" for what the desk does by itself.
    action : str
        What was done, such as "case.answered".
    subject : str
        To what, such as "case:17".
    detail : mapping or None, default=None
        Further facts that can be written as JSON, without content of cases.
    """
    append_all(connection, [Entry(actor, action, subject, detail or {})])


def append_all(connection: Connection, entries: Sequence[Entry]) -> None:
    """Append several entries within the current transaction, see `append`.

    Parameters
    ----------
    connection : Connection
        Of a database with the options `key_options`.
    entries : sequence of Entry
        In the order in which they happened.
    """
    if not entries:
        return
    key = _key(connection)
    last, previous, at = connection.execute(_LOCK_HEAD).one()
    rows = []
    for entry in entries:
        last += 1
        row = {
            "sequence": last,
            "at": int(at),
            "actor": entry.actor,
            "action": entry.action,
            "subject": entry.subject,
            "detail": canonical(entry.detail),
            "previous_hash": previous,
        }
        row["hash"] = previous = _hash(key, row)
        rows.append(row)
    connection.execute(_ADD, rows)
    seal = _seal(key, Head(last, previous))
    connection.execute(_MOVE_HEAD, {"sequence": last, "hash": previous, "seal": seal})


def fingerprint(connection: Connection, digest: str) -> str:
    """What an entry may hold of the content of a case.

    A plain digest would outlast a purge, and whoever guesses the fields of a case could check the guess.

    Parameters
    ----------
    connection : Connection
        Of a database with the options `key_options`.
    digest : str
        Of the content.

    Returns
    -------
    fingerprint : str
        It tells nothing to whoever does not have the desk's secret.
    """
    return sign(_key(connection), f"case {digest}".encode()).hex()


@dataclass(frozen=True)
class Verified:
    """What `verify` found.

    Attributes
    ----------
    head : Head
        The newest entry. Note it outside the desk: whoever puts back an older database cannot hide it.
    faults : list of str
        What is wrong, in the order of the log; empty if the log is as it was written.
    """

    head: Head
    faults: list[str]


def verify(connection: Connection, secret: str, noted: Sequence[Head] = ()) -> Verified:
    """Check that no entry was changed, removed, inserted or moved.

    Parameters
    ----------
    connection : Connection
        Sees one state of the database.
    secret : str
        The desk's secret.
    noted : sequence of Head, default=()
        Heads that were noted earlier; the log must still have these entries.

    Returns
    -------
    Verified
    """
    key = derive(secret, "audit")
    row = connection.execute(select(audit_head)).one_or_none()
    if row is None:
        return Verified(Head(0, START), ["the head of the log is missing"])
    head = Head(row.sequence, row.hash)
    faults = [] if _is_sealed(key, head, row.seal) else ["the head of the log was changed"]
    if not head.sequence and _is_in_use(connection):
        faults.append("the log is empty, but there are users or models")
    expected = {one.sequence: one.hash for one in noted if one.sequence}
    last = Head(0, START)
    for entry in _entries(connection):
        faults += _faults_of(key, entry, last)
        if expected.pop(entry["sequence"], entry["hash"]) != entry["hash"]:
            faults.append(f"entry {entry['sequence']} is not the one that was noted")
        last = Head(entry["sequence"], entry["hash"])
        if len(faults) >= MOST_FAULTS:
            return Verified(head, [*faults, "there may be more"])
    if last != head:
        faults.append(f"the log ends with entry {last.sequence}, but its head is {head.sequence}")
    faults += [f"entry {number} was noted, but is not in the log" for number in sorted(expected)]
    return Verified(head, faults)


def _entries(connection: Connection) -> Iterator[Mapping[str, Any]]:
    """All entries in their order; few are in memory at a time."""
    last = -1
    while True:
        query = select(audit_log).where(audit_log.c.sequence > last)
        rows = connection.execute(query.order_by(audit_log.c.sequence).limit(_BATCH)).all()
        if not rows:
            return
        for row in rows:
            yield row._asdict()
        last = rows[-1].sequence


def _faults_of(key: bytes, entry: Mapping[str, Any], last: Head) -> list[str]:
    """What is wrong with an entry, given the one before it."""
    number, faults = entry["sequence"], []
    if number != last.sequence + 1:
        faults.append(f"entries {last.sequence + 1} to {number - 1} are missing")
    elif entry["previous_hash"] != last.hash:
        faults.append(f"entry {number} does not follow entry {last.sequence}")
    if not same(_hash(key, entry).encode(), entry["hash"].encode()):
        faults.append(f"entry {number} was changed")
    return faults


def _key(connection: Connection) -> bytes:
    key = connection.get_execution_options().get(_KEY)
    if key is None:
        raise RuntimeError(
            "this connection cannot write the audit log: its database needs the options of key_options"
        )
    return key


def _hash(key: bytes, row: Mapping[str, Any]) -> str:
    """The hash of an entry, over everything in it and the hash of the one before."""
    return sign(key, canonical({k: v for k, v in row.items() if k != "hash"}).encode()).hex()


def _seal(key: bytes, head: Head) -> str:
    """A signature of the head, so that nobody can cut the log and name an earlier entry the newest."""
    return sign(key, f"head {head}".encode()).hex()


def _is_in_use(connection: Connection) -> bool:
    """Whether there is a user or a model, whose making the log must have."""
    return any(connection.execute(select(one.c.id).limit(1)).first() for one in (user, model))


def _is_sealed(key: bytes, head: Head, seal: str) -> bool:
    if head.sequence == 0 and not seal:  # a log that was never written
        return head.hash == START
    return same(_seal(key, head).encode(), seal.encode())
