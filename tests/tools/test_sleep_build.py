"""The shipped table of sleep stagings, against a new build and against other code."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import sleep_build
from sleep_build import COLUMNS, EXPERTS, NETWORKS, build, first_epoch

DATA = files("deferlearn.datasets") / "data"
SETS = {"dodh": 25, "dodo": 55}


def shipped():
    return gzip.decompress((DATA / "sleep.csv.gz").read_bytes()).decode()


@pytest.fixture(scope="module")
def archive():
    source = os.environ.get("DEFERLEARN_DREEM")
    if not source:
        pytest.skip("DEFERLEARN_DREEM names neither the archive nor a folder of the Dreem stagings")
    return Path(source)


@pytest.fixture
def made(tmp_path):
    """A folder with one short night in each set."""

    def make(name, night, experts, networks):
        for who, stages in zip(EXPERTS, experts, strict=True):
            path = tmp_path / "scorers" / name / who / f"{night}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(stages))
        for spelt, stages in zip(NETWORKS.values(), networks, strict=True):
            folder = spelt[0 if name == "dodh" else -1]
            path = tmp_path / "results" / name / "base_models" / folder / f"{night}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(stages))

    make("dodh", "a", [[0, 1, 2, 3]] * 5, [[k % 5, 1, 2] for k in range(6)])
    late = [[0, 0, 1, 2, 4], [-1, 0, 1, 2, 4], [-1, -1, 1, -1, 4], [0, 0, 1, 2, 3], [0] * 5]
    make("dodo", "b", late, [[1, 2, 4]] * 6)
    return tmp_path


def test_rows_of_made_nights(made):
    header, healthy, apnoea = build(made).splitlines()
    assert header.split(",") == list(COLUMNS)
    assert healthy == "a,dodh,0," + ",".join(["012"] * 5 + [f"{k % 5}12" for k in range(6)])
    assert apnoea == "b,dodo,2," + ",".join(["124", "124", "1-4", "123", "000"] + ["124"] * 6)


def test_archive_of_the_whole_repository_gives_the_same(made, tmp_path):
    path = tmp_path / "made.tar.gz"
    with tarfile.open(path, "w:gz") as out:
        for folder in ("scorers", "results"):
            out.add(made / folder, f"./dreem-learning-evaluation-main/{folder}")
        readme = tarfile.TarInfo("./dreem-learning-evaluation-main/README.md")
        readme.size = 2
        out.addfile(readme, io.BytesIO(b"hi"))
    assert build(path) == build(made)


def test_lights_off():
    (night, *_) = sleep_build.LIGHTS_OFF
    assert first_epoch(night, [[0, 1]] * 5) == 60
    assert first_epoch("other", [[-1, 0]] + [[0, 0]] * 4) == 1
    assert first_epoch("other", [[0, -1]] * 5) == 0


def broken(made, part, content):
    (made / part).write_text(content)
    return made


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("scorers/dodh/scorer_2/a.json", "[0, 1]", "experts' lists of night a have different"),
        (
            "results/dodh/base_models/SimpleNet/a.json",
            "[0, 1]",
            "networks' lists of night a have different",
        ),
        ("scorers/dodh/scorer_2/a.json", "[0, 1, 2, 7]", r"a\.json holds no list of stages"),
        ("scorers/dodo/scorer_2/b.json", "[-1, -1, -1, 1, 1]", "b are longer than the experts'"),
    ],
)
def test_files_that_do_not_fit(made, part, content, message):
    with pytest.raises(ValueError, match=message):
        build(broken(made, part, content))


def test_missing_files(made, tmp_path):
    (made / "scorers/dodo/scorer_4/b.json").unlink()
    with pytest.raises(ValueError, match=r"contains no scorers/dodo/scorer_4/b\.json"):
        build(made)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="contains no folder scorers/dodh/scorer_1"):
        build(tmp_path / "empty")
    other = tmp_path / "other.tar.gz"
    other.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"other\.tar\.gz is neither a folder nor a tar archive"):
        build(other)


def test_command_line(made, monkeypatch, capsys, tmp_path):
    table = tmp_path / "sleep.csv.gz"
    monkeypatch.setattr("sys.argv", ["build", str(made), str(table)])
    sleep_build.main()
    assert gzip.decompress(table.read_bytes()).decode() == build(made)
    first = table.read_bytes()
    sleep_build.main()
    assert table.read_bytes() == first
    monkeypatch.setattr("sys.argv", ["build", str(tmp_path / "missing"), str(table)])
    with pytest.raises(SystemExit) as caught:
        sleep_build.main()
    assert caught.value.code == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_table_is_complete_and_plausible():
    header, *lines = shipped().splitlines()
    assert header.split(",") == list(COLUMNS)
    rows = [dict(zip(COLUMNS, line.split(","), strict=True)) for line in lines]
    assert {name: sum(row["set"] == name for row in rows) for name in SETS} == SETS
    assert [(row["set"], row["night"]) for row in rows] == sorted(
        (row["set"], row["night"]) for row in rows
    )
    assert len({row["night"] for row in rows}) == 80
    assert sum(len(row["SimpleSleepNet"]) for row in rows) == 77_901
    for row in rows:
        assert len({len(row[name]) for name in COLUMNS[3:]}) == 1
        assert all(set(row[name]) <= set("01234") for name in NETWORKS)
        assert all(set(row[f"expert_{k}"]) <= set("01234-") for k in range(1, 6))
    assert len((DATA / "sleep.csv.gz").read_bytes()) < 100_000
    assert "MIT License" in (DATA / "sleep-LICENSE.txt").read_text()


def test_build_gives_the_shipped_table(archive):
    assert build(archive) == shipped()


def test_nights_begin_where_networks_and_experts_agree_most(archive):
    """The rule by which nights are aligned, against the stages themselves."""
    stagings = sleep_build._read(archive)
    for line in shipped().splitlines()[1:]:
        night, name, first = line.split(",")[:3]
        experts = np.array([stagings[f"scorers/{name}/{who}", night] for who in EXPERTS])
        networks = np.array(
            [
                stages
                for (folder, file), stages in stagings.items()
                if file == night and folder.startswith(f"results/{name}/")
            ]
        )
        assert networks.shape[0] == 6
        n = networks.shape[1]
        agreement = [
            np.mean(experts[:, None, start : start + n] == networks)
            for start in range(experts.shape[1] - n + 1)
        ]
        assert np.argmax(agreement) == int(first), night


def test_licence_is_the_archives(archive):
    if archive.is_dir():
        text = (archive / "LICENSE").read_text()
    else:
        with tarfile.open(archive) as source:
            (member,) = [m for m in source.getmembers() if Path(m.name).name == "LICENSE"]
            text = source.extractfile(member).read().decode()
    assert text == (DATA / "sleep-LICENSE.txt").read_text()
