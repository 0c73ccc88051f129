"""Make the table behind `load_sleep` from the stagings that the Dreem Open Datasets publish.

Usage::

    python tools/sleep_build.py dreem.tar.gz sleep.csv.gz

The source is a tar archive with the folders ``scorers`` and ``results`` of the repository
Dreem-Organization/dreem-learning-evaluation, or a folder that holds them, such as a checkout. The same
input gives the same text on every computer; its compressed form may differ with the version of zlib.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tarfile
from pathlib import Path, PurePosixPath

SETS = ("dodh", "dodo")
EXPERTS = tuple(f"scorer_{k}" for k in range(1, 6))
# The folders of two networks are spelt differently in the two sets.
NETWORKS = {
    "SimpleSleepNet": ("SimpleNet",),
    "DeepSleepNet": ("DeepSleepNet",),
    "SeqSleepNet": ("SeqSleepNet",),
    "Chambon": ("Chambon_et_Al", "Chambon_et_al"),
    "MixedNeuralNetwork": ("MixedNeuralNetwork",),
    "Tsinalis": ("Tsinalis_et_Al", "Tsinalis_et_al"),
}
COLUMNS = ("night", "set", "first", *(f"expert_{k}" for k in range(1, 6)), *NETWORKS)

# In these nights the light went out half an hour after the recording began, and networks begin there. The
# publishers' own evaluation shifts two nights of this set by 60 epochs, under other identifiers.
LIGHTS_OFF = {
    "5bf0f969-304c-581e-949c-50c108f62846": 60,
    "b5d5785d-87ee-5078-b9b9-aac6abd4d8de": 60,
}

NOT_SCORED = -1
# How a stage is written: one character for each epoch.
CHARACTER = {NOT_SCORED: "-", 0: "0", 1: "1", 2: "2", 3: "3", 4: "4"}

Stages = list[int]


def build(source: Path) -> str:
    """The table's text, from the archive or the folder of the stagings.

    Parameters
    ----------
    source : Path
        The archive or the folder.

    Returns
    -------
    text : str
        A CSV file: one row for each night, and in it one character for each epoch and each expert or
        network.
    """
    stagings = _read(source)
    lines = [",".join(COLUMNS)]
    for name in SETS:
        nights = sorted(file for folder, file in stagings if folder == f"scorers/{name}/scorer_1")
        if not nights:
            raise ValueError(f"{source} contains no folder scorers/{name}/scorer_1 with stagings")
        for night in nights:
            experts = [_one(stagings, source, night, f"scorers/{name}/{who}") for who in EXPERTS]
            networks = [
                _one(stagings, source, night, *(f"results/{name}/base_models/{f}" for f in spelt))
                for spelt in NETWORKS.values()
            ]
            lines.append(_row(name, night, experts, networks))
    return "\n".join(lines) + "\n"


def first_epoch(night: str, experts: list[Stages]) -> int:
    """The epoch of the recording at which the networks' lists begin.

    They hold no times. They begin where the last of the experts begins, which is at the start of the
    recording in all nights of `dodh`, except for those with a known time of lights off.

    Parameters
    ----------
    night : str
        Identifier of the night.
    experts : list of list of int
        The stages by each expert, from the start of the recording.

    Returns
    -------
    first : int
    """
    leading = (
        next((k for k, stage in enumerate(stages) if stage != NOT_SCORED), len(stages))
        for stages in experts
    )
    return max(LIGHTS_OFF.get(night, 0), *leading)


def _row(name: str, night: str, experts: list[Stages], networks: list[Stages]) -> str:
    first, n_epochs = first_epoch(night, experts), len(networks[0])
    if len({len(stages) for stages in experts}) > 1:
        raise ValueError(f"the experts' lists of night {night} have different lengths")
    if any(len(stages) != n_epochs for stages in networks):
        raise ValueError(f"the networks' lists of night {night} have different lengths")
    if first + n_epochs > len(experts[0]):
        raise ValueError(f"the networks' lists of night {night} are longer than the experts'")
    parts = [stages[first : first + n_epochs] for stages in experts] + networks
    cells = ["".join(CHARACTER[stage] for stage in stages) for stages in parts]
    return ",".join([night, name, str(first), *cells])


def _one(
    stagings: dict[tuple[str, str], Stages], source: Path, night: str, *folders: str
) -> Stages:
    for folder in folders:
        if (folder, night) in stagings:
            return stagings[folder, night]
    raise ValueError(f"{source} contains no {folders[0]}/{night}.json")


def _read(source: Path) -> dict[tuple[str, str], Stages]:
    """All stagings, by folder and night; folders begin with "scorers" or "results"."""
    contents: dict[str, bytes] = {}
    if source.is_dir():
        for path in source.rglob("*.json"):
            contents[path.relative_to(source).as_posix()] = path.read_bytes()
    else:
        try:
            with tarfile.open(source) as archive:
                for member in archive:
                    file = archive.extractfile(member) if member.name.endswith(".json") else None
                    if file is not None:
                        contents[member.name] = file.read()
        except tarfile.TarError as error:
            raise ValueError(f"{source} is neither a folder nor a tar archive: {error}") from None
    out = {}
    for name, content in contents.items():
        where = PurePosixPath(name)
        # An archive of the whole repository has one more folder around.
        parts = list(where.parent.parts)
        start = next((k for k, part in enumerate(parts) if part in ("scorers", "results")), None)
        if start is not None:
            stages = json.loads(content)
            known = isinstance(stages, list) and all(stage in CHARACTER for stage in stages)
            if not known:
                raise ValueError(f"{name} holds no list of stages from -1 to 4")
            out["/".join(parts[start:]), where.stem] = [int(stage) for stage in stages]
    return out


def main() -> None:
    """Command line: read the source, write the table."""
    parser = argparse.ArgumentParser(
        prog="python tools/sleep_build.py",
        description="Make the table behind load_sleep from the stagings of the Dreem Open Datasets.",
    )
    parser.add_argument("source", type=Path, help="the tar archive, or a folder with its files")
    parser.add_argument("table", type=Path, help="the file to write, CSV compressed by gzip")
    arguments = parser.parse_args()
    try:
        text = build(arguments.source)
        # No time stamp: the same text gives the same file.
        arguments.table.write_bytes(gzip.compress(text.encode("ascii"), 9, mtime=0))
    except (OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
