"""A long selection on disk: one line per round, so that a killed run goes on from its last pick.

The file is text. Its first line says what it is; every other line is a checksum and a JSON value: what
was asked (a dict, at the start of a run), a round (a list), or the end of a run (a dict). A sweep
writes its runs one after the other. Lines are only ever added, each in one write: a process that is
killed leaves at worst a torn last line, which is dropped.
"""

import hashlib
import json
import math
import os
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deferlearn._utils.digest import digest
from deferlearn._utils.types import Array
from deferlearn.selection.result import Iteration
from deferlearn.selection.states import States

if sys.platform != "win32":
    import fcntl

# The number is that of the format: a file with another one is refused.
FIRST_LINE = b"deferlearn selection checkpoint 1\n"
# A killed process loses nothing that it has written; only a machine that loses power does. So lines
# are forced to the disk now and then, not in each round, which may take a millisecond.
SYNC_SECONDS = 5.0
# Difference of F(V), relative to max(1, F(V)), up to which problems are the same: sums in another order
# differ by 1e-15.
SAME_VALUE = 1e-9
# Of other numbers: gamma="scale" is made of a sum, too.
SAME_NUMBER = 1e-12


@dataclass
class Record:
    """One run: what is known of it from before, and where its further rounds go.

    Attributes
    ----------
    asked : what decides the picks
    rounds : what each round recorded
    value : of the finished run; None as long as there are rounds to go
    gap : how far numbers of the finished run may be from the true ones
    checkpoint : the file, or None if nothing is kept
    """

    asked: dict[str, Any] = field(default_factory=dict)
    rounds: list[list[Any]] = field(default_factory=list)
    value: float | None = None
    gap: float = 0.0
    checkpoint: "Checkpoint | None" = None

    def add(self, iteration: Iteration) -> None:
        """Keep one more round."""
        if self.checkpoint is not None:
            self.checkpoint.append(_row(iteration))

    def end(self, value: float, gap: float = 0.0) -> None:
        """Say that the run is finished."""
        if self.checkpoint is not None:
            self.checkpoint.append({"end": value} | ({"gap": gap} if gap > 0.0 else {}))
            self.checkpoint.sync()


class Checkpoint:
    """The file of one selection, or of the runs of a sweep; in use by one process at a time.

    Parameters
    ----------
    path : path-like
        Made if it does not exist; its folder must.

    Raises
    ------
    ValueError
        If the file is something else, damaged, or in use.

    Examples
    --------
    >>> import os, tempfile
    >>> from deferlearn.selection.checkpoint import Checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "run.checkpoint")
    ...     file = Checkpoint(path)
    ...     file.begin({"n": 3}).end(1.5)
    ...     file.close()
    ...     again = Checkpoint(path)
    ...     again.begin({"n": 3}).value
    ...     again.close()
    1.5
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            self._lock()
            self._runs = self._read()
        except BaseException:
            os.close(self._file)
            raise
        self._next = 0
        self._synced = time.monotonic()

    def begin(self, asked: dict[str, Any]) -> Record:
        """The next run of the file, which must be the one that is asked for, or a new one."""
        asked = _as_read(asked)
        self._next += 1
        if self._next <= len(self._runs):
            record = self._runs[self._next - 1]
            differences = _differences(record.asked, asked)
            if differences:
                raise ValueError(
                    f"checkpoint={self.path!r} belongs to another selection: {'; '.join(differences)}. "
                    "Name another file, or delete this one to start from the beginning."
                )
            return replace(record, checkpoint=self)
        self.append(asked)
        return Record(checkpoint=self)

    def append(self, value: Any) -> None:
        """Add a line."""
        text = json.dumps(value).encode()
        self._write(b"%08x %s\n" % (zlib.crc32(text), text))
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()

    def _write(self, line: bytes) -> None:
        while line:  # a disk that gets full takes a part, and the next write says why
            line = line[os.write(self._file, line) :]

    def sync(self) -> None:
        """Have the disk hold what was written."""
        os.fsync(self._file)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Let others have the file."""
        os.close(self._file)

    def _lock(self) -> None:
        """Two runs would write their rounds among each other; the system frees what a killed one held."""
        if sys.platform == "win32":
            return  # two runs are not noticed there
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"checkpoint={self.path!r} is in use by another run; wait for it, or name another file."
            ) from None
        except OSError:
            pass  # a file system without locks

    def _read(self) -> list[Record]:
        """The runs so far; what was torn at the end is cut off, so that the next line starts afresh."""
        with open(self._file, "rb", closefd=False) as file:  # the one that is locked
            content = file.read()
        if FIRST_LINE.startswith(content):  # new, or torn when it was
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            self._write(FIRST_LINE)
            return []
        if not content.startswith(FIRST_LINE):
            raise ValueError(
                f"checkpoint={self.path!r} is no checkpoint of this version of deferlearn. It was left "
                "as it is; name another file."
            )
        whole, runs = len(FIRST_LINE), list[Record]()
        lines = content[whole:].split(b"\n")
        for number, line in enumerate(lines):
            value = _parse(line) if number < len(lines) - 1 else None
            if value is None:
                if any(_parse(later) is not None for later in lines[number + 1 :]):
                    raise self._damaged(number + 2)
                break
            if not _take(value, runs):
                raise self._damaged(number + 2)
            whole += len(line) + 1
        os.ftruncate(self._file, whole)
        os.lseek(self._file, 0, os.SEEK_END)
        return runs

    def _damaged(self, line: int) -> ValueError:
        return ValueError(
            f"checkpoint={self.path!r} is damaged in line {line}. Take another copy, or delete it to "
            "start from the beginning."
        )


def _take(value: Any, runs: list[Record]) -> bool:
    """Put a line where it belongs; False if it belongs nowhere."""
    if isinstance(value, list):
        fits = bool(runs) and runs[-1].value is None and value[:1] == [len(runs[-1].rounds)]
        if fits:
            runs[-1].rounds.append(value)
        return fits
    if not isinstance(value, dict):
        return False
    if "end" in value:
        if not runs or runs[-1].value is not None:
            return False
        runs[-1].value, runs[-1].gap = float(value["end"]), float(value.get("gap", 0.0))
        return True
    if runs and runs[-1].value is None:
        return False
    runs.append(Record(value))
    return True


def _parse(line: bytes) -> Any:
    """The value of a line; None if it is not what was written."""
    checksum, _, text = line.partition(b" ")
    with suppress(ValueError):
        if len(checksum) == 8 and int(checksum, 16) == zlib.crc32(text):
            return json.loads(text)
    return None


def _row(i: Iteration) -> list[Any]:
    score, gain = (None if math.isnan(x) else x for x in (i.score, i.gain))
    return [i.index, i.picked, score, gain, i.n_candidates, i.n_exact, i.slack]


def iteration_of(row: list[Any], omega: float) -> Iteration:
    """The round that a line recorded."""
    index, picked, score, gain, n_candidates, n_exact, slack = row
    return Iteration(
        index=index,
        omega=omega,
        picked=picked,
        score=math.nan if score is None else score,
        gain=math.nan if gain is None else gain,
        n_candidates=n_candidates,
        n_exact=n_exact,
        n_screened=n_candidates - n_exact,
        slack=slack,
    )


def _as_read(asked: dict[str, Any]) -> dict[str, Any]:
    """What was asked in the form in which a file gives it back: tuples are lists there."""
    try:
        read: dict[str, Any] = json.loads(json.dumps(asked))
    except TypeError as error:
        raise ValueError(
            "fingerprint() of an objective must return a dict of numbers, words, True, False, None, and "
            f"lists of them: {error}."
        ) from error
    return read


def _differences(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """What tells two selections apart, in words; digests are only said to differ."""
    found = []
    for name in sorted(set(there) | set(here)):
        a, b = there.get(name), here.get(name)
        if name == "value":
            if (
                a is None
                or b is None
                or not math.isclose(a, b, rel_tol=SAME_VALUE, abs_tol=SAME_VALUE)
            ):
                found.append(f"the machine's loss with no sample deferred is {a} there, {b} here")
        elif not _same(a, b):
            digests = isinstance(a, str) and isinstance(b, str) and len(a) == len(b) == 64
            found.append(f"{name} differs" if digests else f"{name} is {a!r} there, {b!r} here")
    return found


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=SAME_NUMBER) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


def description(states: States, loss: Array, **details: Any) -> dict[str, Any]:
    """What decides the picks of a run, under the names that users know."""
    return {
        "value": states.root.value,
        "samples left": digest(states.root.objective.kept),
        "human_loss": digest(loss),
        **details,
    }


def digest_of_stream(random_state: Any, rng: np.random.RandomState, checkpoint: Any) -> str | None:
    """What stands for the state of a random stream; a run must be able to draw the same again."""
    if checkpoint is None:
        return None
    if random_state is None:
        raise ValueError(
            "A checkpoint needs a random_state: without one, a run that goes on would draw other "
            "candidates than the one that was killed. Pass a whole number."
        )
    state = rng.get_state(legacy=False)
    text = json.dumps(state, sort_keys=True, default=lambda array: array.tolist())
    return hashlib.sha256(text.encode()).hexdigest()


# What the algorithms take: where to keep the rounds; a sweep hands its file on.
CheckpointFile = str | os.PathLike[str] | Checkpoint | None


@contextmanager
def opened(checkpoint: CheckpointFile) -> Iterator[Checkpoint | None]:
    """The checkpoint of a path, closed at the end; of a sweep its own, left open; or none."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        yield checkpoint
        return
    file = Checkpoint(checkpoint)
    try:
        yield file
    finally:
        file.close()
