"""Tests of the running desk, alarms, reports on candidates, and what candidates would have decided."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "watch",
        sa.Column("model_id", Number, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=50), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("last_seen", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_watch_model_id_model")),
        sa.PrimaryKeyConstraint("model_id", "kind", "subject", name=op.f("pk_watch")),
    )
    op.create_table(
        "alarm",
        sa.Column("id", Number, nullable=False),
        sa.Column("model_id", Number, nullable=False),
        sa.Column("kind", sa.String(length=50), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("raised_at", sa.BigInteger(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("closed_by", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_alarm_model_id_model")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alarm")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_alarm_open",
        "alarm",
        ["model_id", "kind", "subject"],
        unique=True,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_table(
        "model_report",
        sa.Column("model_id", Number, autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model.id"], name=op.f("fk_model_report_model_id_model")
        ),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_report")),
    )
    op.create_table(
        "shadow",
        sa.Column("case_number", Number, autoincrement=False, nullable=False),
        sa.Column("model_id", Number, autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("machine_answer", sa.Text(), nullable=True),
        sa.Column("deferred", sa.Boolean(), nullable=False),
        sa.Column("expected_machine", sa.Float(), nullable=True),
        sa.Column("expected_expert", sa.Float(), nullable=True),
        sa.Column("unusual", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["case_number"],
            ["case_.number"],
            name=op.f("fk_shadow_case_number_case_"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_shadow_model_id_model")),
        sa.PrimaryKeyConstraint("case_number", "model_id", name=op.f("pk_shadow")),
    )
    op.create_index("ix_shadow_model", "shadow", ["model_id", "case_number"], unique=False)
