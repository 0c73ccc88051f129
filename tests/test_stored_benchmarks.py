"""The tables that benchmarks print are understood by `tools/measured.py`.

The benchmarks run here with measurements that are made up, so that each table is printed as it would be.
"""

import importlib
import io
import re
from types import SimpleNamespace

import pytest

import measured
import printed

ROUNDS = {
    "build": 1.0, "round": 0.025, "elapsed": 0.02, "rounds": 200, "all": 130.0, "dismissed": 99.84,
    "exact": 1.5, "free": 2311, "hits": 90.0, "order": [1, 2], "breakpoints": 40.0, "megabytes": 1638.4,
}  # fmt: skip


@pytest.fixture
def load(monkeypatch):
    """Import a benchmark."""

    def load(name):
        monkeypatch.syspath_prepend(measured.ROOT / "benchmarks")
        return importlib.import_module(name)

    return load


@pytest.fixture
def said(load, monkeypatch, tmp_path):
    """What pages should say after a benchmark has printed a table into a file."""
    from rich.console import Console

    monkeypatch.setattr(printed, "RESULTS", tmp_path)
    monkeypatch.setattr(measured, "RESULTS", tmp_path)

    def said(name, *tables):
        text = io.StringIO()
        for table in tables:
            table(Console(file=text, width=400, highlight=False))
        path = tmp_path / name
        path.parent.mkdir()
        lines = [line.rstrip() for line in text.getvalue().splitlines()]
        path.write_text("\n".join(["$ python benchmarks/x.py", "a computer", "", *lines]), "utf-8")
        return [words for _, words, *_ in measured.SAID[name]()]

    return said


@pytest.fixture
def scale(load, monkeypatch):
    """The benchmark scale.py, with a measurement that is made up."""
    module = load("scale")
    monkeypatch.setattr(module, "measure", lambda **job: ROUNDS | {"SVC": 0.01, "LinearSVC": 0.1})
    return module


def test_rounds(scale, said, monkeypatch):
    def measure(size, **job):
        # As 100,000 samples have twice the time of 25,000, it grows with the power of a half.
        return ROUNDS | {"SVC": 0.01, "LinearSVC": 0.1, "round": 0.025 * (size / 25_000) ** 0.5}

    monkeypatch.setattr(scale, "measure", measure)
    row, sentence = said(
        "times/scale-1.txt", lambda console: scale.growth_table(console, scale.SIZES, 100, 25_000)
    )
    assert "25 ms against 2,500 s (50 ms against 10,000 s), with at most 100 passes per fit" in row
    assert "the power of 0.50, and memory is at most 1638 MB" in row
    assert sentence.startswith(
        "bounds rule out at least 99.8% of them. The time of a round grew like"
    )
    assert sentence.endswith("to the power of 0.5 (`--only 1`).")


def test_goals(scale, said):
    exact, drawn, row = said("times/scale-2.txt", lambda console: scale.goals_table(console, False))
    assert exact == "| 25,000 x 100 | all | 5,000 | 2.2 * | 1,638 | 2 |"
    assert drawn == "| 100,000 x 100 | random | 2,000 | 2.2 * | 1,638 | 2 |"
    assert "| 2.2 * minutes and 1,638 MB; 2.2 * minutes and 1,638 MB |" in row


def test_tolerances(scale, said):
    assert said("times/scale-3.txt", lambda console: scale.tolerance_table(console, 200)) == [
        "| 100,000 x 100 | all | 2,000 | 2.2 * | 1,638 | 3 |",
        "| 100,000 x 100, `tol=0.05` | all | 2,000 | 2.2 * | 1,638 | 3 |",
    ]


def test_sparse_rows(scale, said):
    until = {"rounds": 10**6, "seconds": 120.0}
    assert said(
        "times/scale-4.txt", lambda console: scale.sparse_table(console, 20_000, until)
    ) == [
        "| 20,000 x 50,000, sparse, alpha 0.005 | all | 4,000 | 2.2 * | 1,638 | 4 |",
        "| the same | random | 4,000 | 2.2 * | 1,638 | 4 |",
        "| the same without offset | all | 4,000 | 2.2 * | 1,638 | 4 |",
        "| alpha 0.005 | 2,311 | 25 ms | 25 ms | 1,638 MB |",
        "| alpha 0.0005 | 2,311 | 25 ms | 25 ms | 1,638 MB |",
        "| alpha 0.00005 | 2,311 | 25 ms | 25 ms | 1,638 MB |",
    ]


def test_kernels(scale, said):
    assert said("times/scale-5.txt", lambda console: scale.kernel_table(console, 10_000, {})) == [
        "| 10,000 x 20, rbf, `cache_size=256` | all | 2,000 | 2.2 * | 1,638 | 5 |",
        "| 10,000 x 20, rbf, `cache_size=2048` | all | 2,000 | 2.2 * | 1,638 | 5 |",
    ]


def test_threads(scale, said):
    (sentence,) = said(
        "times/scale-6.txt", lambda console: scale.threads_table(console, 25_000, 300)
    )
    assert "was 1.00 times as fast" in sentence


@pytest.fixture
def waiting(load, monkeypatch):
    """The benchmark waiting.py, with fits that do nothing."""
    module = load("waiting")

    class Nothing:
        def __init__(self, *arguments, **options):
            self.alphas, self.alpha, self.best_params_ = 2, 0.1, {"policy": "none"}

        def fit(self, *arguments, **options):
            return self

        def set_params(self, **options):
            return self

    for name in ("AssistedSVC", "AssistedSVCCV", "SVC", "GridSearchCV"):
        monkeypatch.setattr(module, name, Nothing)
    monkeypatch.setattr(module, "seconds", lambda work, clock=None: 3.04)
    return module


def test_a_tuned_fit(waiting, said):
    (row,) = said("times/waiting-1.txt", lambda console: waiting.tuned(console, waiting.SIZES))
    assert (
        "| 3 s against 3 s at 1,000 x 30, 3 s against 3 s at 4,000 x 30; the linear kernel" in row
    )
    assert "costs 1 times scikit-learn's |" in row


def test_one_fit(waiting, said):
    row, sentence = said(
        "times/waiting-2.txt", lambda console: waiting.one_fit(console, waiting.SIZES)
    )
    assert "| 3 s against 3 s of CPU time at 1,000 x 30, 3 s against 3 s at 4,000 x 30 |" in row
    assert sentence.startswith("With 4,000 x 30 samples it takes 3 s of CPU time")


def test_text(waiting, said, monkeypatch):
    found = SimpleNamespace(
        n_picks=750, seconds=47.2, cpu_seconds=28.1, megabytes=327.4, slack=0.0455, gap=0.0011,
        loss=9938.7, linear_svc_seconds=0.12,
    )  # fmt: skip
    monkeypatch.setattr(waiting, "measure_fit", lambda tol: found)
    row, loose, tight, heading, alone = said("times/waiting-3.txt", waiting.text)
    assert "| 47 s (28 s of CPU time) and 327 MB; each pick is certified to within 4.5% of" in row
    assert "F to within 0.0011 of 9,939 |" in row
    assert [loose, tight] == [
        f"| {tol} | 750 | 28 | 0.045 | 0.0011 | 327 MB |" for tol in ("0.05", "0.01")
    ]
    assert heading == "certified gap, F = 9,939"
    assert alone.endswith("in 0.12 s")


def test_applying(load, said):
    module = load("apply")
    measure = {"rows": 1_000_000, "seconds": 23.8, "cpu": 20.0, "peak": 492.4}

    def table(console):
        headings = ["", "rows", "seconds", "of a processor", "rows / s", "peak MB"]
        rows = [module.row(f"chunks of {n:,}", measure) for n in module.CHUNKS]
        module.show(console, "CSV", headings, rows)

    (row,) = said("times/apply.txt", table)
    assert "| a million from CSV at 42,000 rows per second, within 492 MB |" in row


def test_load_of_the_desk(said):
    def table(console):
        for name in ("SQLite", "PostgreSQL"):
            console.print(
                f"{name}: 200 decisions per second for 45 s, 20 experts\n"
                "  decisions  p50   10.0 ms   p99   77.5 ms   most   900.0 ms   (9000)   199.9 per second\n"
                "  server     0.91 cores, 3.00 ms per request\n"
                "  held: 99 of 100 decisions within 100 ms"
            )

    (sentence,) = said("times/desk.txt", table)
    found = (
        "the desk decided 200 cases per second, 99 of 100 within 78 ms, which is within the 100 ms"
    )
    assert len(re.findall(f"on (?:SQLite|PostgreSQL), {found}", sentence)) == 2
    assert sentence.endswith("The process of the server used 0.91 and 0.91 cores.")
