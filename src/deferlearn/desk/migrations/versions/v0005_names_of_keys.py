"""Valid API keys have different names, and the deliveries of a webhook are found by an index."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Give later keys of a name one of their own, and add the indices."""
    _rename_doubles()
    op.create_index(
        "ix_api_key_valid_name",
        "api_key",
        ["name"],
        unique=True,
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    )
    op.create_index(
        "ix_delivery_webhook", "delivery", ["webhook_id", "state", "next_at"], unique=False
    )


def _rename_doubles() -> None:
    connection = op.get_bind()
    query = "SELECT id, name FROM api_key WHERE revoked_at IS NULL ORDER BY id"
    rows = connection.execute(sa.text(query)).all()
    taken: set[str] = set()
    names = {row.name for row in rows}
    for row in rows:
        name, count = row.name, 1
        while name in taken or (name != row.name and name in names):
            count += 1
            name = f"{row.name} ({count})"
        taken.add(name)
        if name != row.name:
            change = sa.text("UPDATE api_key SET name = :name WHERE id = :id")
            connection.execute(change, {"name": name, "id": row.id})
