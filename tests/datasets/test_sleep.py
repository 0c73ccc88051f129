"""What `load_sleep` makes of the shipped table, redone from the table itself."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from deferlearn.datasets import _sleep, load_sleep

EXPERTS = range(1, 6)
NETWORKS = [
    "SimpleSleepNet",
    "DeepSleepNet",
    "SeqSleepNet",
    "Chambon",
    "MixedNeuralNetwork",
    "Tsinalis",
]


@pytest.fixture(scope="module")
def nights():
    content = (files("deferlearn.datasets") / "data" / "sleep.csv.gz").read_bytes()
    csv.field_size_limit(10_000_000)
    return list(csv.DictReader(gzip.decompress(content).decode().splitlines()))


def winner(votes):
    """The answer with most votes; None if no answer has more than the others."""
    (first, most), *rest = Counter(votes).most_common()
    return None if rest and rest[0][1] == most else first


@pytest.mark.parametrize(
    ("classes", "expert"), [("rem", 1), ("rem", 4), ("stages", 2), ("stages", 5)]
)
def test_answers_and_truth(nights, classes, expert):
    def answer(letter):
        if letter == "-":
            return np.nan
        return (1 if letter == "4" else -1) if classes == "rem" else int(letter)

    expected, answers, said, n_ties, row = [], [], [], 0, 0
    for number, night in enumerate(nights):
        stagings = [night[f"expert_{k}"] for k in EXPERTS]
        networks = [night[name] for name in NETWORKS]
        for epoch, letters in enumerate(zip(*stagings, strict=True)):
            votes = [answer(a) for k, a in enumerate(letters, 1) if k != expert and a != "-"]
            truth = winner(votes)
            if truth is None:
                n_ties += 1
            else:
                expected.append((truth, number, int(night["first"]) + epoch, row))
                answers.append([answer(letter) for letter in letters])
                said.append([int(stages[epoch]) for stages in networks])
            row += 1
    bunch = load_sleep(expert=expert, classes=classes, context=0)
    found = np.c_[bunch.target, bunch.groups, bunch.epochs, bunch.rows]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(bunch.answers, answers)
    np.testing.assert_array_equal(bunch.human_labels, bunch.answers[:, expert - 1])
    np.testing.assert_array_equal(bunch.networks, said)
    assert bunch.n_ties == n_ties
    assert len(bunch.target) + n_ties == row == 77_901
    assert bunch.night_names == [night["night"] for night in nights]
    assert bunch.sets.tolist() == [nights[group]["set"] for group in bunch.groups]
    assert bunch.network_names == NETWORKS
    names = ["not REM", "REM"] if classes == "rem" else ["Wake", "N1", "N2", "N3", "REM"]
    assert bunch.target_names == names


def test_features_come_from_the_networks_and_stay_in_the_night(nights):
    bunch = load_sleep(expert=4)
    assert bunch.data.shape == (len(bunch.target), 150)
    assert len(set(bunch.feature_names)) == 150
    assert set(np.unique(bunch.data)) == {0, 1}
    column = {name: k for k, name in enumerate(bunch.feature_names)}
    first = {k: int(night["first"]) for k, night in enumerate(nights)}
    ends = np.flatnonzero(np.diff(bunch.groups))
    for row in {*range(0, len(bunch.data), 997), 0, 1, 2, *ends[:9], *(ends[:9] + 1)}:
        night = nights[bunch.groups[row]]
        here = bunch.epochs[row] - first[bunch.groups[row]]
        expected = np.zeros(150)
        for k in range(-2, 3):
            if 0 <= here + k < len(night["Chambon"]):
                for network in NETWORKS:
                    stage = ("Wake", "N1", "N2", "N3", "REM")[int(night[network][here + k])]
                    offset = f"{k:+d}" if k else "0"
                    expected[column[f"{network}_{stage}_{offset}"]] = 1
        np.testing.assert_array_equal(bunch.data[row], expected)


def test_context():
    wide, narrow = load_sleep(context=2), load_sleep(context=0)
    assert narrow.data.shape[1] == 30
    np.testing.assert_array_equal(wide.data[:, 60:90], narrow.data)
    assert wide.feature_names[60:90] == narrow.feature_names
    assert (narrow.data.sum(axis=1) == 6).all()
    np.testing.assert_array_equal(narrow.networks[:, 0], narrow.data[:, :5].argmax(axis=1))


def test_callers_cannot_change_what_the_next_one_gets():
    first = load_sleep(context=0)
    for name in ("data", "target", "human_labels", "groups", "answers", "networks", "epochs"):
        first[name][:] = 0
    for name in ("feature_names", "network_names", "night_names"):
        first[name].clear()
    second = load_sleep(context=0)
    assert second.data.any()
    assert second.networks.any()
    assert second.epochs.any()
    assert len(second.feature_names) == 30
    assert len(second.night_names) == 80


@pytest.mark.parametrize("expert", [0, 6, 1.0, True, "1", None])
def test_unknown_expert(expert):
    with pytest.raises(ValueError, match=r"expert must be 1, 2, 3, 4 or 5, got "):
        load_sleep(expert=expert)


def test_unknown_classes():
    with pytest.raises(ValueError, match="classes must be 'rem' or 'stages', got 'n3'"):
        load_sleep(classes="n3")


@pytest.mark.parametrize("context", [-1, 1.0, True, None])
def test_context_is_a_count(context):
    with pytest.raises(ValueError, match="context must be a whole number, 0 or larger"):
        load_sleep(context=context)


def test_damaged_table_is_noticed(monkeypatch):
    text = gzip.decompress(_sleep._read("sleep.csv.gz"))
    made = gzip.compress(text.replace(b"222", b"223", 1))
    monkeypatch.setattr(_sleep, "_read", lambda name: made)
    _sleep._table.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"sleep\.csv\.gz .* is damaged: expected sha256"):
            load_sleep()
    finally:
        _sleep._table.cache_clear()


def test_loads_in_two_seconds_without_network():
    code = """
        import socket, time
        import deferlearn.datasets
        def refuse(*args, **kwargs): raise OSError("no network")
        socket.socket = socket.create_connection = refuse
        start = time.perf_counter()
        deferlearn.datasets.load_sleep()
        print(time.perf_counter() - start)
    """
    code = "\n".join(line.strip() for line in code.splitlines())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2.0


def test_experts_and_networks_are_as_good_as_published():
    for expert in EXPERTS:
        bunch = load_sleep(expert=expert, classes="stages", context=0)
        scored = ~np.isnan(bunch.human_labels)
        right = (bunch.human_labels == bunch.target)[scored].mean()
        assert 0.83 < right < 0.885
        accuracy = (bunch.networks == bunch.target[:, None]).mean(axis=0)
        assert accuracy.argmax() == NETWORKS.index("SimpleSleepNet")
        assert 0.88 < accuracy.max() < 0.91
        # Shares of scored epochs on which the others are tied.
        assert 0.08 < bunch.n_ties / 77_901 < 0.1


def test_card():
    card = load_sleep(context=0).DESCR
    for part in ("five experts", "six networks", "five stages are Wake 0, N1 1", "80 nights"):
        assert part in card
    for part in ("MIT", "10.1109/TNSRE.2020.3011181", "77,901 epochs", "24,665", "53,236"):
        assert part in card
    for name in NETWORKS:
        assert f"`{name}`" in card
    for classes, title in (("rem", "REM"), ("stages", "stages")):
        bunches = [load_sleep(expert=k, classes=classes, context=0) for k in EXPERTS]
        network = [np.where(b.networks[:, 0] == 4, 1, -1) for b in bunches]
        if classes == "stages":
            network = [b.networks[:, 0] for b in bunches]
        scored = [~np.isnan(b.human_labels) for b in bunches]
        for what, values in {
            "epochs": [str(len(b.target)) for b in bunches],
            "ties left out": [str(b.n_ties) for b in bunches],
            "error of the human": [
                f"{np.mean((b.human_labels != b.target)[s]):.3f}"
                for b, s in zip(bunches, scored, strict=True)
            ],
            "error of SimpleSleepNet": [
                f"{np.mean(said != b.target):.3f}" for b, said in zip(bunches, network, strict=True)
            ],
        }.items():
            assert f"| {title}: {what} | {' | '.join(values)} |" in card


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ("rem", [0.020, 0.006, 0.016, 0.016, 0.019]),
        pytest.param("stages", [0.088, 0.046, 0.084, 0.085, 0.092], marks=pytest.mark.slow),
    ],
)
def test_figures_of_the_data_card(classes, expected):
    figures = []
    for expert in EXPERTS:
        bunch = load_sleep(expert=expert, classes=classes)
        kept = (bunch.rows % 10 == 0) & ~np.isnan(bunch.human_labels)
        truth = bunch.target[kept]
        # Many threads get in each other's way on products as small as these.
        with threadpool_limits(limits=1):
            proba = cross_val_predict(
                LogisticRegression(C=0.1, max_iter=1000),
                bunch.data[kept],
                truth,
                groups=bunch.groups[kept],
                cv=GroupKFold(5),
                method="predict_proba",
            )
        machine_wrong = np.unique(truth)[proba.argmax(axis=1)] != truth
        human_wrong = bunch.human_labels[kept] != truth
        teams = []
        for share in (0.05, 0.1, 0.2):
            team = machine_wrong.copy()
            unsure = np.argsort(proba.max(axis=1))[: int(share * len(team))]
            team[unsure] = human_wrong[unsure]
            teams.append(team.mean())
        figures.append([machine_wrong.mean(), (machine_wrong & human_wrong).mean(), *teams])
    np.testing.assert_allclose(np.mean(figures, axis=0), expected, atol=0.0015)
