"""The tables of the desk.

All times are whole microseconds since 1970 (UTC), by the clock of the database. The migrations in
`deferlearn.desk.migrations` create these tables; a test compares both.
"""

import json
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    literal_column,
    text,
)

# Seats of a reading that is for nobody in particular: any expert may take it, or any arbiter.
ANYONE, ARBITERS = 0, -1

# States that an index is about. They are written into statements as they are: a database that gets them as
# parameters does not see that the index holds all rows that are asked for.
WAITING: ColumnElement[str] = literal_column("'waiting'")
LEASED: ColumnElement[str] = literal_column("'leased'")
DEAD: ColumnElement[str] = literal_column("'dead'")
# States of a reading that an expert has, or has had. A list of parameters would be spelled out at each use.
HELD: list[ColumnElement[str]] = [
    LEASED,
    literal_column("'answered'"),
    literal_column("'passed'"),
]

# SQLite counts up only in columns of exactly this type.
Number = BigInteger().with_variant(Integer, "sqlite")


def canonical(value: Any) -> str:
    """Plain values as JSON, always in the same spelling, in ASCII; NaN and infinity are refused.

    Examples
    --------
    >>> from deferlearn.desk.schema import canonical
    >>> canonical({"b": [1, None], "a": "ill"})
    '{"a":"ill","b":[1,null]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


class Json(TypeDecorator[Any]):
    """Plain values, stored as canonical JSON text, which both databases keep unchanged."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """From a value to text."""
        return None if value is None else canonical(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """From text to a value."""
        return None if value is None else json.loads(value)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _only(condition: str) -> dict[str, Any]:
    """Options of an index that holds only some rows."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


# -- what is configured -----------------------------------------------------------------------------

# One row. Whoever changes settings, models, experts or webhooks raises the version in the same transaction;
# servers read everything again when they see another one.
configuration = Table(
    "configuration",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
)

setting = Table(
    "setting",
    metadata,
    Column("key", String(100), primary_key=True),
    Column("value", Json, nullable=False),
    Column("version", Integer, nullable=False),
)

model = Table(
    "model",
    metadata,
    Column("id", Number, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("state", String(10), nullable=False),  # candidate, active, retired
    Column("blob", LargeBinary, nullable=False),
    Column("card", Json, nullable=False),
    Column("activated_at", BigInteger),
    Column("activated_by", Text),
)
Index("ix_model_one_active", model.c.state, unique=True, **_only("state = 'active'"))

expert = Table(
    "expert",
    metadata,
    Column("id", Number, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("daily_limit", Integer),  # None: no limit
    Column("is_arbiter", Boolean, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("price", Float, nullable=False),  # what the desk adds to the cost while time is scarce
    Column("version", Integer, nullable=False),
    Column("cost", Float, nullable=False, server_default="0"),  # errors that a case must avoid
)

# How many readings each expert opened per day. A row of ANYONE counts nothing: it is there to be locked.
expert_day = Table(
    "expert_day",
    metadata,
    Column("expert_id", Number, primary_key=True, autoincrement=False),
    Column("day", String(10), primary_key=True),  # 2026-11-18, in the time zone of the settings
    Column("taken", Integer, nullable=False),
)

# -- cases --------------------------------------------------------------------------------------------

case = Table(
    "case_",  # `case` is a word of SQL
    metadata,
    Column("number", Number, primary_key=True),
    Column("id", String(200), nullable=False, unique=True),
    Column("content", Json, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("source", Text, nullable=False),
    Column("state", String(10), nullable=False),  # waiting, answered
    Column("required", Integer, nullable=False),
    Column("due_at", BigInteger),
    Column("answer", Text),
    Column("answered_by", String(10)),  # machine, expert, experts, arbiter, deadline
    Column("answered_at", BigInteger),
    Column("flag", Text),
    Column("version", Integer, nullable=False),
    sqlite_autoincrement=True,  # a number is never used again, also after a purge
)
Index("ix_case_due", case.c.due_at, **_only("state = 'waiting'"))
Index("ix_case_waiting", case.c.number, **_only("state = 'waiting'"))
Index("ix_case_flagged", case.c.number, **_only("flag IS NOT NULL"))

decision = Table(
    "decision",
    metadata,
    Column("case_number", Number, ForeignKey("case_.number"), primary_key=True),
    Column("model_id", Number, ForeignKey("model.id"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("machine_answer", Text, nullable=False),
    Column("probabilities", Json),  # by class; None if the model has none
    Column("deferred", Boolean, nullable=False),
    Column("expert_id", Number, ForeignKey("expert.id")),  # None: the machine, or any expert
    Column("expected_machine", Float),
    Column("expected_expert", Float),
    Column("expected", Json),  # errors by expert, if the model tells them apart
    Column("gains", Json, nullable=False),  # by expert's id, ANYONE if experts are not told apart
    Column("score", Float),
    Column("reason", Text, nullable=False),
    Column("unusual", Text, nullable=False),
    Column("prices", Json, nullable=False),  # the same with prices
    Column("audited", Boolean, nullable=False),
    Column("audit_probability", Float, nullable=False),
)
# The last decisions of a model, which has just begun to decide, must not be looked for among all.
Index("ix_decision_model", decision.c.model_id, decision.c.case_number)

reading = Table(
    "reading",
    metadata,
    Column("id", Number, primary_key=True),
    Column("case_number", Number, ForeignKey("case_.number"), nullable=False, index=True),
    Column("kind", String(10), nullable=False),  # reading, arbiter, audit
    Column("seat", Number, nullable=False),  # an expert's id, ANYONE or ARBITERS
    Column("state", String(10), nullable=False),  # waiting, leased, answered, passed, cancelled
    Column("priority", BigInteger, nullable=False),  # smaller comes first; see `queue`
    Column("created_at", BigInteger, nullable=False),
    Column("token_hash", String(64)),
    Column("leased_by", Number, ForeignKey("expert.id")),
    Column("leased_from", BigInteger),
    Column("leased_until", BigInteger),
    # Who opened the reading, and on which day: it counts against that limit.
    Column("counted_for", Number),
    Column("counted_day", String(10)),
    Column("remark", Text),  # of an expert who passed
    sqlite_autoincrement=True,
)
Index("ix_reading_waiting", reading.c.seat, reading.c.priority, **_only("state = 'waiting'"))
Index("ix_reading_leased", reading.c.leased_until, **_only("state = 'leased'"))

answer = Table(
    "answer",
    metadata,
    Column("id", Number, primary_key=True),
    Column("reading_id", Number, ForeignKey("reading.id"), nullable=False),
    Column("case_number", Number, ForeignKey("case_.number"), nullable=False, index=True),
    Column("expert_id", Number, ForeignKey("expert.id"), nullable=False),
    Column("value", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),  # since the lease began
    Column("withdrawn_at", BigInteger),
    sqlite_autoincrement=True,
)
Index("ix_answer_one", answer.c.reading_id, unique=True, **_only("withdrawn_at IS NULL"))
Index("ix_answer_expert", answer.c.expert_id, answer.c.at)

truth = Table(
    "truth",
    metadata,
    Column("id", Number, primary_key=True),
    Column("case_number", Number, ForeignKey("case_.number"), nullable=False, index=True),
    Column("value", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("source", Text, nullable=False),
    Column("replaced_at", BigInteger),
)
Index("ix_truth_one", truth.c.case_number, unique=True, **_only("replaced_at IS NULL"))

# -- telling others -----------------------------------------------------------------------------------

webhook = Table(
    "webhook",
    metadata,
    Column("id", Number, primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("events", Json, nullable=False),  # kinds of events
    Column("is_active", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
)

event = Table(
    "event",
    metadata,
    Column("id", Number, primary_key=True),
    Column("kind", String(50), nullable=False),
    Column("case_number", Number, ForeignKey("case_.number"), index=True),
    Column("body", Json, nullable=False),
    Column("at", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

delivery = Table(
    "delivery",
    metadata,
    Column("id", Number, primary_key=True),
    Column("webhook_id", Number, ForeignKey("webhook.id", ondelete="CASCADE"), nullable=False),
    Column(
        "event_id",
        Number,
        ForeignKey("event.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("state", String(10), nullable=False),  # waiting, done, dead
    Column("attempts", Integer, nullable=False),
    Column("next_at", BigInteger, nullable=False),
    Column("last_error", Text),
    sqlite_autoincrement=True,
)
Index("ix_delivery_waiting", delivery.c.next_at, **_only("state = 'waiting'"))
Index("ix_delivery_webhook", delivery.c.webhook_id, delivery.c.state, delivery.c.next_at)
Index("ix_delivery_dead", delivery.c.id, **_only("state = 'dead'"))

# -- people and programs ------------------------------------------------------------------------------

user = Table(
    "user",
    metadata,
    Column("id", Number, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("password_hash", Text, nullable=False),
    Column("role", String(20), nullable=False),  # expert, supervisor, admin
    Column("expert_id", Number, ForeignKey("expert.id")),
    Column("is_active", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
)

session = Table(
    "session",
    metadata,
    Column("id_hash", String(64), primary_key=True),
    Column("user_id", Number, ForeignKey("user.id"), nullable=False, index=True),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", Number, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("prefix", String(20), nullable=False, unique=True),
    Column("key_hash", String(64), nullable=False),
    Column("scopes", Json, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
)

# The audit log tells programs apart by these names.
Index("ix_api_key_valid_name", api_key.c.name, unique=True, **_only("revoked_at IS NULL"))

throttle = Table(
    "throttle",
    metadata,
    Column("key", String(200), primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("blocked_until", BigInteger, nullable=False),
)

# -- watching and learning ------------------------------------------------------------------------------

# How far each test of the running desk has come; see `deferlearn.desk.monitoring.alarms`.
watch = Table(
    "watch",
    metadata,
    Column("model_id", Number, ForeignKey("model.id"), primary_key=True, autoincrement=False),
    Column("kind", String(50), primary_key=True),
    Column("subject", String(200), primary_key=True),  # an expert, a column, or nothing
    Column("last_seen", BigInteger, nullable=False),  # the last row that was taken into account
    Column("state", Json, nullable=False),
    Column("version", Integer, nullable=False),
)

alarm = Table(
    "alarm",
    metadata,
    Column("id", Number, primary_key=True),
    Column("model_id", Number, ForeignKey("model.id"), nullable=False),
    Column("kind", String(50), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("raised_at", BigInteger, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("closed_at", BigInteger),
    Column("closed_by", Text),
    sqlite_autoincrement=True,
)
Index(
    "ix_alarm_open",
    alarm.c.model_id,
    alarm.c.kind,
    alarm.c.subject,
    unique=True,
    **_only("closed_at IS NULL"),
)

# How a candidate compares with the model that was active when it was fitted.
model_report = Table(
    "model_report",
    metadata,
    Column("model_id", Number, ForeignKey("model.id"), primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("report", Json, nullable=False),
)

# What a candidate would have decided; nothing happens by it.
shadow = Table(
    "shadow",
    metadata,
    Column(
        "case_number",
        Number,
        ForeignKey("case_.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("model_id", Number, ForeignKey("model.id"), primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("machine_answer", Text),  # None: the candidate cannot read the case
    Column("deferred", Boolean, nullable=False),
    Column("expected_machine", Float),
    Column("expected_expert", Float),
    Column("unusual", Text, nullable=False),
)
Index("ix_shadow_model", shadow.c.model_id, shadow.c.case_number)

# -- the record -----------------------------------------------------------------------------------------

audit_log = Table(
    "audit_log",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", String(100), nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False),  # canonical JSON
    Column("previous_hash", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)

# One row: the last entry, signed, so that entries missing at the end are noticed.
audit_head = Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("seal", String(64), nullable=False),
)
