"""What an expert who cannot tell has to say about the case."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column."""
    op.add_column("reading", sa.Column("remark", sa.Text(), nullable=True))
