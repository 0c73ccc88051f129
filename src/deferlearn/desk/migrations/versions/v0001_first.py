"""The first schema: settings, models, experts, cases, people and the record."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "api_key",
        sa.Column("id", Number, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("prefix", sa.String(length=20), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("prefix", name=op.f("uq_api_key_prefix")),
    )
    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("seal", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_head")),
    )
    op.create_table(
        "audit_log",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.String(length=100), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_audit_log")),
    )
    op.create_table(
        "case_",
        sa.Column("number", Number, nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("required", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("answered_by", sa.String(length=10), nullable=True),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.Column("flag", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_case_")),
        sa.UniqueConstraint("id", name=op.f("uq_case__id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_case_due",
        "case_",
        ["due_at"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index(
        "ix_case_waiting",
        "case_",
        ["number"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_table(
        "configuration",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_configuration")),
    )
    op.create_table(
        "expert",
        sa.Column("id", Number, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("daily_limit", sa.Integer(), nullable=True),
        sa.Column("is_arbiter", sa.Boolean(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("price", sa.Float(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_expert")),
        sa.UniqueConstraint("name", name=op.f("uq_expert_name")),
    )
    op.create_table(
        "expert_day",
        sa.Column("expert_id", Number, autoincrement=False, nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("expert_id", "day", name=op.f("pk_expert_day")),
    )
    op.create_table(
        "model",
        sa.Column("id", Number, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.Column("card", sa.Text(), nullable=False),
        sa.Column("activated_at", sa.BigInteger(), nullable=True),
        sa.Column("activated_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model")),
        sa.UniqueConstraint("digest", name=op.f("uq_model_digest")),
    )
    op.create_index(
        "ix_model_one_active",
        "model",
        ["state"],
        unique=True,
        sqlite_where=sa.text("state = 'active'"),
        postgresql_where=sa.text("state = 'active'"),
    )
    op.create_table(
        "setting",
        sa.Column("key", sa.String(length=100), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_setting")),
    )
    op.create_table(
        "throttle",
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("blocked_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_throttle")),
    )
    op.create_table(
        "webhook",
        sa.Column("id", Number, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook")),
    )
    op.create_table(
        "decision",
        sa.Column("case_number", Number, nullable=False),
        sa.Column("model_id", Number, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("machine_answer", sa.Text(), nullable=False),
        sa.Column("probabilities", sa.Text(), nullable=True),
        sa.Column("deferred", sa.Boolean(), nullable=False),
        sa.Column("expert_id", Number, nullable=True),
        sa.Column("expected_machine", sa.Float(), nullable=True),
        sa.Column("expected_expert", sa.Float(), nullable=True),
        sa.Column("expected", sa.Text(), nullable=True),
        sa.Column("gains", sa.Text(), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("unusual", sa.Text(), nullable=False),
        sa.Column("prices", sa.Text(), nullable=False),
        sa.Column("audited", sa.Boolean(), nullable=False),
        sa.Column("audit_probability", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["case_number"], ["case_.number"], name=op.f("fk_decision_case_number_case_")
        ),
        sa.ForeignKeyConstraint(
            ["expert_id"], ["expert.id"], name=op.f("fk_decision_expert_id_expert")
        ),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model.id"], name=op.f("fk_decision_model_id_model")
        ),
        sa.PrimaryKeyConstraint("case_number", name=op.f("pk_decision")),
    )
    op.create_table(
        "event",
        sa.Column("id", Number, nullable=False),
        sa.Column("kind", sa.String(length=50), nullable=False),
        sa.Column("case_number", Number, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["case_number"], ["case_.number"], name=op.f("fk_event_case_number_case_")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_event_case_number"), "event", ["case_number"], unique=False)
    op.create_table(
        "reading",
        sa.Column("id", Number, nullable=False),
        sa.Column("case_number", Number, nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("seat", Number, nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=True),
        sa.Column("leased_by", Number, nullable=True),
        sa.Column("leased_from", sa.BigInteger(), nullable=True),
        sa.Column("leased_until", sa.BigInteger(), nullable=True),
        sa.Column("counted_for", Number, nullable=True),
        sa.Column("counted_day", sa.String(length=10), nullable=True),
        sa.ForeignKeyConstraint(
            ["case_number"], ["case_.number"], name=op.f("fk_reading_case_number_case_")
        ),
        sa.ForeignKeyConstraint(
            ["leased_by"], ["expert.id"], name=op.f("fk_reading_leased_by_expert")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reading")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_reading_case_number"), "reading", ["case_number"], unique=False)
    op.create_index(
        "ix_reading_leased",
        "reading",
        ["leased_until"],
        unique=False,
        sqlite_where=sa.text("state = 'leased'"),
        postgresql_where=sa.text("state = 'leased'"),
    )
    op.create_index(
        "ix_reading_waiting",
        "reading",
        ["seat", "priority"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_table(
        "truth",
        sa.Column("id", Number, nullable=False),
        sa.Column("case_number", Number, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("replaced_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["case_number"], ["case_.number"], name=op.f("fk_truth_case_number_case_")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_truth")),
    )
    op.create_index(op.f("ix_truth_case_number"), "truth", ["case_number"], unique=False)
    op.create_index(
        "ix_truth_one",
        "truth",
        ["case_number"],
        unique=True,
        sqlite_where=sa.text("replaced_at IS NULL"),
        postgresql_where=sa.text("replaced_at IS NULL"),
    )
    op.create_table(
        "user",
        sa.Column("id", Number, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("expert_id", Number, nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["expert_id"], ["expert.id"], name=op.f("fk_user_expert_id_expert")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user")),
        sa.UniqueConstraint("name", name=op.f("uq_user_name")),
    )
    op.create_table(
        "answer",
        sa.Column("id", Number, nullable=False),
        sa.Column("reading_id", Number, nullable=False),
        sa.Column("case_number", Number, nullable=False),
        sa.Column("expert_id", Number, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("withdrawn_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["case_number"], ["case_.number"], name=op.f("fk_answer_case_number_case_")
        ),
        sa.ForeignKeyConstraint(
            ["expert_id"], ["expert.id"], name=op.f("fk_answer_expert_id_expert")
        ),
        sa.ForeignKeyConstraint(
            ["reading_id"], ["reading.id"], name=op.f("fk_answer_reading_id_reading")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answer")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_answer_case_number"), "answer", ["case_number"], unique=False)
    op.create_index("ix_answer_expert", "answer", ["expert_id", "at"], unique=False)
    op.create_index(
        "ix_answer_one",
        "answer",
        ["reading_id"],
        unique=True,
        sqlite_where=sa.text("withdrawn_at IS NULL"),
        postgresql_where=sa.text("withdrawn_at IS NULL"),
    )
    op.create_table(
        "delivery",
        sa.Column("id", Number, nullable=False),
        sa.Column("webhook_id", Number, nullable=False),
        sa.Column("event_id", Number, nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["event_id"], ["event.id"], name=op.f("fk_delivery_event_id_event"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhook.id"],
            name=op.f("fk_delivery_webhook_id_webhook"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_delivery_dead",
        "delivery",
        ["id"],
        unique=False,
        sqlite_where=sa.text("state = 'dead'"),
        postgresql_where=sa.text("state = 'dead'"),
    )
    op.create_index(op.f("ix_delivery_event_id"), "delivery", ["event_id"], unique=False)
    op.create_index(
        "ix_delivery_waiting",
        "delivery",
        ["next_at"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_table(
        "session",
        sa.Column("id_hash", sa.String(length=64), nullable=False),
        sa.Column("user_id", Number, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_session_user_id_user")),
        sa.PrimaryKeyConstraint("id_hash", name=op.f("pk_session")),
    )
    op.create_index(op.f("ix_session_user_id"), "session", ["user_id"], unique=False)
    op.execute("INSERT INTO configuration (id, version) VALUES (1, 1)")
    op.execute(f"INSERT INTO audit_head (id, sequence, hash, seal) VALUES (1, 0, '{64 * '0'}', '')")
