"""The sleep data as a laboratory sees them: epochs to learn from, and epochs to come.

The truth of an epoch is what most of the five experts say; ties are left out. So each expert has a vote in
the truth, and errs a little less often here than against the other four.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.datasets import load_sleep

READERS = tuple(f"reader_{k}" for k in range(1, 6))
LABEL, ID = "stage", "epoch"
# How names of fields begin, for an epoch and those around it, and what an expert reads above them.
PLACES = {
    "": "Share of six networks that say so of this epoch",
    "earlier: ": "Of the epoch before",
    "later: ": "Of the epoch after",
}


@dataclass(frozen=True)
class Epoch:
    """30 seconds of a night.

    Attributes
    ----------
    id : str
        Night and number.
    fields : dict
        What the model and the experts are shown.
    broken_fields : dict
        The same, if one network says Wake whatever it sees.
    answers : dict
        What each expert said; None if the expert did not stage the epoch.
    truth : str
        What most of them said.
    """

    id: str
    fields: dict[str, float | str]
    broken_fields: dict[str, float | str]
    answers: dict[str, str | None]
    truth: str


class Nights:
    """Epochs in random order: the nights to learn from are others than those to come.

    Parameters
    ----------
    seed : int, default=0
        Of the order.
    """

    def __init__(self, seed: int = 0) -> None:
        sleep = load_sleep(classes="stages", context=1)
        self._sleep = sleep
        self.stages: list[str] = list(sleep.target_names)
        votes = (sleep.answers[:, :, None] == np.arange(len(self.stages))).sum(axis=1)
        most = votes.max(axis=1, keepdims=True)
        decided = (votes == most).sum(axis=1) == 1
        self._truth = votes.argmax(axis=1)
        rng = np.random.default_rng(seed)
        # Healthy sleepers and patients come one after the other in the list of nights.
        known = sleep.groups % 2 == 0
        self._known = rng.permutation(np.flatnonzero(decided & known))
        self._new = rng.permutation(np.flatnonzero(decided & ~known))
        # One column per place, network and stage.
        n_networks = len(sleep.network_names)
        shape = (len(decided), 3, n_networks, len(self.stages))
        said = sleep.data.reshape(shape)
        # The last network has a vote on the epoch itself only: when it breaks, few columns change.
        self._shares = said[:, :, :-1].mean(axis=2)
        self._broken = self._shares.copy()
        self._shares[:, 1] = said[:, 1].mean(axis=1)
        awake = np.zeros_like(said[:, 1])
        awake[:, :-1], awake[:, -1, 0] = said[:, 1, :-1], 1.0
        self._broken[:, 1] = awake.mean(axis=1)

    def __len__(self) -> int:
        return len(self._new)

    def coming(self) -> Iterator[Epoch]:
        """The epochs to come."""
        return map(self._epoch, self._new.tolist())

    def write(self, path: Path, n_cases: int) -> None:
        """Write a table with epochs to learn from.

        Parameters
        ----------
        path : Path
            The file.
        n_cases : int
            How many of them.
        """
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            for place, row in enumerate(self._known[:n_cases].tolist()):
                one = self._epoch(row)
                if not place:
                    writer.writerow([ID, *one.fields, LABEL, *one.answers])
                said = (answer or "" for answer in one.answers.values())
                writer.writerow([one.id, *one.fields.values(), one.truth, *said])

    def score_columns(self) -> list[str]:
        """The columns with the votes of the networks on an epoch, in alphabetical order of the stages."""
        return sorted(self.stages)

    def groups(self) -> dict[str, str]:
        """The heading above each field."""
        return {
            place + stage: heading for place, heading in PLACES.items() for stage in self.stages
        }

    def _epoch(self, row: int) -> Epoch:
        sleep = self._sleep
        said = sleep.answers[row]
        number = int(sleep.epochs[row])
        return Epoch(
            id=f"{sleep.night_names[sleep.groups[row]][:8]}-{number}",
            fields=self._fields(row, self._shares),
            broken_fields=self._fields(row, self._broken),
            answers={
                reader: None if np.isnan(stage) else self.stages[int(stage)]
                for reader, stage in zip(READERS, said, strict=True)
            },
            truth=self.stages[self._truth[row]],
        )

    def _fields(self, row: int, shares: Array) -> dict[str, float | str]:
        sleep = self._sleep
        order = dict(zip(PLACES, (1, 0, 2), strict=True))  # the data begin with the epoch before
        fields: dict[str, float | str] = {
            "sleeper": "healthy" if sleep.sets[row] == "dodh" else "with apnoea",
            "hours since the start": round(int(sleep.epochs[row]) / 120, 2),
        }
        for place, k in order.items():
            for stage, share in zip(self.stages, shares[row, k].tolist(), strict=True):
                fields[place + stage] = round(share, 2)
        return fields
