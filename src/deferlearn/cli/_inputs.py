"""The files that several commands read: models, long tables of answers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deferlearn.tables import TabularTeam


def load_team(path: Path) -> tuple[TabularTeam, str]:
    """The model, and a name for it that no other has."""
    import deferlearn
    from deferlearn.tables import TableError, TabularTeam
    from deferlearn.tables.team import FORMAT

    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        model = deferlearn.load(path)
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TableError(str(error)) from error
    if not isinstance(model, TabularTeam) or not hasattr(model, "card_"):
        raise TableError(f"{path} holds a model, but none that `deferlearn fit` wrote")
    if model.card_.get("format") != FORMAT:
        raise TableError(f"{path} was written by another version of deferlearn: fit it again")
    return model, f"deferlearn-{digest[:12]}"


def long_table(path: Path, columns: list[str], written: dict[str, Any]) -> Any:
    """The long table of answers, its columns renamed."""
    from deferlearn.tables import open_table

    file = open_table(path, **written)
    file.require(columns, "named by --case, --reader and --answer; it is read as the cases are")
    return file.read().select(columns).rename_columns(["case", "reader", "answer"])


def name_and_digest(path: Path) -> dict[str, str]:
    """What a model's card says of a file that it was made from."""
    from deferlearn.tables.files import sha256_of

    return {"name": path.name, "sha256": sha256_of(path)}
