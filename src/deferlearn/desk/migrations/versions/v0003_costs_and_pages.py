"""What the time of an expert costs, and indices for pages that show a few of very many cases."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column, in which time that was free of charge stays so, and the indices."""
    op.add_column("expert", sa.Column("cost", sa.Float(), nullable=False, server_default="0"))
    op.create_index(
        "ix_case_flagged",
        "case_",
        ["number"],
        unique=False,
        sqlite_where=sa.text("flag IS NOT NULL"),
        postgresql_where=sa.text("flag IS NOT NULL"),
    )
    op.create_index("ix_decision_model", "decision", ["model_id", "case_number"], unique=False)
