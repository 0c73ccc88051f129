"""Rows on disk: one small file per finished job, written completely or not at all."""

import io
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd

from deferlearn._utils.atomic import write_atomically
from deferlearn.experiments.jobs import Job, Row

# Seconds after which a half-written file has no writer: it takes milliseconds to write one.
ABANDONED = 60.0


class PartStore:
    """A folder of finished jobs. A job is there with all its rows, or not at all.

    Parameters
    ----------
    folder : path-like
        The folder, made if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from deferlearn.experiments.jobs import Job
    >>> from deferlearn.experiments.store import PartStore
    >>> job = Job("toy", {"seed": 0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = PartStore(folder)
    ...     before = store.has(job)
    ...     store.write(job, [{"error": 0.25}])
    ...     before, store.has(job), store.read(job)
    (False, True, [{'error': 0.25}])
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, job: Job) -> Path:
        """The file with the job's rows, which may not exist yet."""
        return self.folder / f"{job.key}.json"

    def has(self, job: Job) -> bool:
        """Whether the job's rows are there and complete."""
        return self._load(job) is not None

    def read(self, job: Job) -> list[Row]:
        """The job's rows."""
        rows = self._load(job)
        if rows is None:
            raise FileNotFoundError(f"{self.path(job)} is missing or damaged; run the job again")
        return rows

    def write(self, job: Job, rows: list[Row]) -> None:
        """Store the rows; those of an earlier run are replaced."""
        write_atomically(self.path(job), json.dumps(rows).encode())

    def table(self, jobs: Iterable[Job]) -> pd.DataFrame:
        """All rows of these jobs, in their order."""
        return pd.DataFrame([row for job in jobs for row in self.read(job)])

    def clean(self) -> None:
        """Remove half-written files that a killed process left some time ago."""
        for partial in self.folder.glob(".*.partial"):
            with suppress(OSError):  # another run may have removed it
                if time.time() - partial.stat().st_mtime > ABANDONED:
                    partial.unlink()

    def _load(self, job: Job) -> list[Row] | None:
        # After a power failure there can be an empty file under the right name.
        try:
            rows = json.loads(self.path(job).read_bytes())
        except (OSError, ValueError):
            return None
        whole = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
        return rows if whole else None


def write_table(path: str | os.PathLike[str], table: pd.DataFrame) -> None:
    """Write a table as parquet or CSV, by the file's name; completely or not at all."""
    path = Path(path)
    content = io.BytesIO()
    if path.suffix == ".parquet":
        table.to_parquet(content, index=False)
    else:
        content.write(table.to_csv(index=False).encode())
    write_atomically(path, content.getvalue())
