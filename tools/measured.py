"""The rows and sentences that README and the pages have from what benchmarks have printed.

`tools/store_printed.py` stores what benchmarks print in docs/results. `said` makes the words from it that a
page should have, and `tests/test_measured.py` looks for them there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from printed import RESULTS, Row, by_name, command_of, number, printed, tables

ROOT = Path(__file__).parents[1]
README, LARGE, RUNNING = "README.md", "docs/howto/large.md", "docs/desk/running.md"


class Said(NamedTuple):
    """Words that a page should have; of a row, the first cells, which name it, are not measured."""

    page: str
    words: str
    keys: int = 1


def _range(values: list[float], digits: int = 2) -> str:
    low, high = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _duration(milliseconds: str) -> str:
    ms = number(milliseconds)
    return f"{ms:.0f} ms" if ms < 500 else f"{ms / 1000:.1f} s"


def _minutes(cell: str) -> str:
    return f"{number(cell):.1f}" + (" *" if "extrapolated" in cell else "")


def _readme(what: str, measured: str, name: str) -> Said:
    return Said(README, f"| {what} | {measured} | `{command_of(name)}` |")


def _selection() -> Iterator[Said]:
    rows = by_name(tables("times/selection.txt")[0])
    faster = {
        name: rows[name]["times faster, tol=0.001"] for name in ("Messidor", "Stare", "Aptos")
    }
    yield _readme(
        "a whole selection, exact, against a greedy that refits scikit-learn's `SVC` for each candidate "
        "(tolerance 0.001)",
        f"{faster['Messidor']} times faster on Messidor, {faster['Stare']} on Stare, {faster['Aptos']} on "
        "Aptos",
        "times/selection.txt",
    )


def _scale_rounds() -> Iterator[Said]:
    name = "times/scale-1.txt"
    rows = by_name(tables(name)[0])
    large, largest = rows["25,000"], rows["100,000"]
    power = float(re.search(r"grows like \|V\|\^(\d+\.\d+)", printed(name)).group(1))  # type: ignore[union-attr]
    most = max(number(row["peak, MB"]) for row in rows.values())
    yield _readme(
        "one exact round on 25,000 x 100 samples (100,000 x 100), and the time to refit `LinearSVC` once "
        "per candidate",
        f"{_duration(large['a round, ms'])} against {large['by LinearSVC, s']} s "
        f"({_duration(largest['a round, ms'])} against {largest['by LinearSVC, s']} s), with at most 100 "
        "passes per fit; the time of a round grows like the number of samples to the power of "
        f"{power:.2f}, and memory is at most {most:.0f} MB",
        name,
    )
    dismissed = math.floor(10 * min(number(row["dismissed, %"]) for row in rows.values())) / 10
    yield Said(
        LARGE,
        f"bounds rule out at least {dismissed:.1f}% of them. The time of a round grew like the number of "
        f"samples to the power of {power:.1f} (`--only 1`).",
    )


def _scale_goals() -> Iterator[Said]:
    name = "times/scale-2.txt"
    rows = by_name(tables(name)[0])
    exact, drawn = rows["25,000 x 100, exact"], rows["100,000 x 100, by random samples"]
    told = []
    for row, size, candidates in ((exact, "25,000", "all"), (drawn, "100,000", "random")):
        minutes, memory = _minutes(row["all, minutes"]), row["peak, MB"]
        told.append(f"{minutes} minutes and {memory} MB")
        yield Said(
            LARGE, f"| {size} x 100 | {candidates} | {row['n']} | {minutes} | {memory} | 2 |", 2
        )
    yield _readme(
        f"{exact['n']} of 25,000 x 100 samples selected exactly; {drawn['n']} of 100,000 x 100 selected "
        "from random candidates",
        "; ".join(told),
        name,
    )


def _scale_tolerance() -> Iterator[Said]:
    rows = by_name(tables("times/scale-3.txt")[0])
    for what, tol in (("100,000 x 100", "0"), ("100,000 x 100, `tol=0.05`", "0.05")):
        row = rows[f"tol = {tol}"]
        yield Said(
            LARGE,
            f"| {what} | all | {row['n']} | {_minutes(row['all, minutes'])} | {row['peak, MB']} | 3 |",
            2,
        )


def _scale_sparse() -> Iterator[Said]:
    rows = tables("times/scale-4.txt")[0]

    def found(alpha: str, offset: str, candidates: str) -> Row:
        wanted = {"alpha": alpha, "offset": offset, "candidates": candidates}
        return next(row for row in rows if wanted.items() <= row.items())

    for what, offset, candidates in (
        ("20,000 x 50,000, sparse, alpha 0.005", "yes", "all"),
        ("the same", "yes", "random"),
        ("the same without offset", "no", "all"),
    ):
        row = found("0.005", offset, candidates)
        yield Said(
            LARGE,
            f"| {what} | {candidates} | 4,000 | {_minutes(row['all, minutes'])} | {row['peak, MB']} | 4 |",
            2,
        )
    for alpha in ("0.005", "0.0005", "5e-05"):
        every, drawn = (found(alpha, "yes", candidates) for candidates in ("all", "random"))
        yield Said(
            LARGE,
            f"| alpha {float(alpha):.6f}".rstrip("0")
            + f" | {every['free samples']} | {_duration(every['a round, ms'])} | "
            f"{_duration(drawn['a round, ms'])} | {every['peak, MB']} MB |",
        )


def _scale_kernels() -> Iterator[Said]:
    for row in tables("times/scale-5.txt")[0]:
        if row[""] == "rbf" and row["candidates"] == "all" and row["limit, MB"] != "512":
            limit = row["limit, MB"].replace(",", "")
            yield Said(
                LARGE,
                f"| 10,000 x 20, rbf, `cache_size={limit}` | all | 2,000 | "
                f"{_minutes(row['all, minutes'])} | {row['peak, MB']} | 5 |",
                2,
            )


def _scale_threads() -> Iterator[Said]:
    row = tables("times/scale-6.txt")[0][0]
    if row["same picks"] != "yes":
        raise ValueError("one thread and two differ in their picks")
    yield Said(
        LARGE,
        f"`n_jobs=2` gives exactly the same picks, and was {row['times faster']} times as fast on 25,000 x "
        "100 (`--only 6`)",
    )


def _waiting_tuned() -> Iterator[Said]:
    name = "times/waiting-1.txt"
    rows = tables(name)[0]
    cells = by_name(rows)

    def both(size: str) -> str:
        row = cells[f"default grid, {size} x 30"]
        ours, theirs = (number(row[who]) for who in ("AssistedSVCCV", "GridSearchCV(SVC)"))
        return f"{ours:.0f} s against {theirs:.0f} s at {size} x 30"

    ratios = [number(row["ratio"]) for row in rows if row[""].startswith("linear alone")]
    yield _readme(
        "a tuned team (`AssistedSVCCV`, linear and rbf) against a tuned machine (`GridSearchCV(SVC)`, same "
        "machines and number of folds), CPU time",
        f"{both('1,000')}, {both('4,000')}; the linear kernel alone costs {_range(ratios, 0)} times "
        "scikit-learn's",
        name,
    )


def _waiting_once() -> Iterator[Said]:
    name = "times/waiting-2.txt"
    rows = by_name(tables(name)[0])
    small, large = rows["1,000 x 30"], rows["4,000 x 30"]

    def seconds(row: Row) -> str:
        ours, theirs = (number(row[who]) for who in ("AssistedSVC", "SVC, tol 1e-6"))
        return f"{ours:.2g} s against {theirs:.2g} s"

    yield _readme(
        "`AssistedSVC` with defaults (a sweep, and selections on five folds) against one `SVC` at "
        "tolerance 1e-6",
        f"{seconds(small)} of CPU time at 1,000 x 30, {seconds(large)} at 4,000 x 30",
        name,
    )
    yield Said(
        LARGE,
        f"With 4,000 x 30 samples it takes {number(large['AssistedSVC']):.2g} s of CPU time "
        f"(`{command_of(name)}`)",
    )


def _waiting_text() -> Iterator[Said]:
    name = "times/waiting-3.txt"
    rows = by_name(tables(name)[0])
    row = rows["tol 0.05"]
    yield _readme(
        "`AssistedSVC` on text, 15,000 documents with 24,000 words, 5% deferred, `tol=0.05`",
        f"{row['seconds']} s ({row['of the processor']} s of CPU time) and {row['peak, MB']} MB; each pick "
        f"is certified to within {100 * number(row['certified slack']):.1f}% of the best score, and F to "
        f"within {row['certified gap']} of {row['F']}",
        name,
    )
    for tol in ("0.05", "0.01"):
        row = rows[f"tol {tol}"]
        yield Said(
            LARGE,
            f"| {tol} | {row['picks']} | {row['of the processor']} | "
            f"{number(row['certified slack']):.3f} | {row['certified gap']} | {row['peak, MB']} MB |",
        )
    yield Said(LARGE, f"certified gap, F = {row['F']}")
    slowest = max(number(row["LinearSVC, s"]) for row in rows.values())
    yield Said(LARGE, f"fits the machine alone, without a selection, in {slowest:.2f} s")


def _waiting_first() -> Iterator[Said]:
    name = "times/waiting-4.txt"
    rows = by_name(tables(name)[0])
    times = {what: row["best of 3"] for what, row in rows.items()}
    cold, warm = (
        number(times[f"first AssistedSVC in a process, 500 x 30, {cache} cache"])
        for cache in ("cold", "warm")
    )
    (worked,) = re.findall(r"cold cache.*\(([\d.]+) s of the processor\)", printed(name))
    yield _readme(
        "the first fit after installation, which compiles the engine, and the first fit of a later process",
        f"{cold:.0f} s ({number(worked):.0f} s of CPU time) and {warm:.1f} s",
        name,
    )
    version = number(times["deferlearn --version"])
    applied = number(times["deferlearn apply, 200 rows"])
    yield _readme(
        "the command line: `deferlearn --version`, and `deferlearn apply` of 200 rows",
        f"{version:.2f} s and {applied:.1f} s",
        name,
    )
    one, thousand = (number(times[f"{what}, model loaded"]) for what in ("one case", "1,000 cases"))
    yield _readme(
        "one decision by `load_decider(path).decide(case)` with the model loaded, and a thousand",
        f"{one:.1f} ms and {thousand:.0f} ms",
        name,
    )


def _applying() -> Iterator[Said]:
    name = "times/apply.txt"
    row = by_name(tables(name)[0])["chunks of 20,000"]
    speed = round(number(row["rows / s"]), -3)
    yield _readme(
        "new cases decided by `deferlearn apply`",
        f"a million from CSV at {speed:,.0f} rows per second, within {row['peak MB']} MB",
        name,
    )


def _given_scores() -> Iterator[Said]:
    name = "given_scores.txt"
    *cells, mean = tables(name)[0]
    key = "difference, 95% interval"
    clear = []
    for row in cells:
        middle, low, high = map(float, re.findall(r"[+-][\d.]+", row[key]))
        if low > 0 or high < 0:
            clear.append(f"{middle:+.4f}")
    said = {0: "none is clear of zero", 1: f"one is clear of zero ({', '.join(clear)})"}
    many = f"{len(clear)} are clear of zero ({', '.join(clear)})"
    yield _readme(
        "scores of a forest that was trained elsewhere, given as a column, against the forest as the "
        f"team's machine: {len(cells)} cells, 20 splits",
        f"the mean difference of the errors is {mean[key]}; of the cells, {said.get(len(clear), many)}",
        name,
    )


def _partitions() -> Iterator[Said]:
    name = "times/partitions.txt"
    values, costs = tables(name)

    def span(budget: str, on: str) -> str:
        found = [number(row[f"{on}, 4"]) for row in values if row["budget"] == budget]
        return _range(found)

    for what, budget in (
        ("value relative to `distorted_greedy`, budget 2%", "2%"),
        ("the same, budget 20%", "20%"),
    ):
        yield Said(LARGE, f"| {what} | {span(budget, 'all')} | {span(budget, 'part')} |")
    rows = by_name(costs)
    every, part = rows["4 parts, all"], rows["4 parts, part"]
    yield Said(
        LARGE,
        f"| CPU seconds, 20,000 x 100, n = 60 (`distorted_greedy`: {rows['whole']['all']}) | "
        f"{every['all']} | {part['all']} |",
    )
    yield Said(
        LARGE,
        f"| of these, sequential seconds with one processor per part | {every['critical path']} | "
        f"{part['critical path']} |",
    )


def _desk_load() -> Iterator[Said]:
    name = "times/desk.txt"
    told, cores = [], []
    for part in re.split(r"^(?=\w+: \d+ decisions per second)", printed(name), flags=re.M)[1:]:
        database = part.partition(":")[0]
        p99, rate = re.search(r"decisions .*p99\s+([\d.]+) ms.*?([\d.]+) per second", part).groups()  # type: ignore[union-attr]
        promised = re.search(r"99 of 100 decisions within (\d+) ms", part).group(1)  # type: ignore[union-attr]
        kept = "within" if float(p99) <= float(promised) else "not within"
        told.append(
            f"on {database}, the desk decided {float(rate):.0f} cases per second, 99 of 100 within "
            f"{float(p99):,.0f} ms, which is {kept} the {promised} ms that the command asks for"
        )
        cores += re.findall(r"^  (?:processor|server) +([\d.]+) cores", part, re.M)
    yield Said(
        RUNNING,
        f"`{command_of(name)}` gave: {'; '.join(told)}. The process of the server used "
        f"{' and '.join(cores)} cores.",
    )


def _desk_pages() -> Iterator[Said]:
    rows = by_name(tables("times/desk_pages.txt")[0])

    def times(*names: str) -> str:
        columns = []
        for key in ("p50", "p95", "processor"):
            columns.append(" and ".join(_duration(rows[name][key]) for name in names))
        return " | ".join(columns)

    for what, names in (
        ("an expert's page with the next case", ["expert: page with the next case"]),
        ("an answer by one key, and the next case", ["expert: one key, answer and next case"]),
        ("*Today*", ["supervisor: today"]),
        (
            "an expert's page of the supervisor, with the effect of a capacity",
            ["supervisor: effect of a capacity"],
        ),
        (
            "*Monitoring* of 7 days, and of 28, computed afresh (they are kept for a minute)",
            ["supervisor: monitoring, 7 days", "supervisor: monitoring, 28 days"],
        ),
    ):
        yield Said(RUNNING, f"| {what} | {times(*names)} |")


SAID: dict[str, Callable[[], Iterator[Said]]] = {
    "times/selection.txt": _selection,
    "times/scale-1.txt": _scale_rounds,
    "times/scale-2.txt": _scale_goals,
    "times/scale-3.txt": _scale_tolerance,
    "times/scale-4.txt": _scale_sparse,
    "times/scale-5.txt": _scale_kernels,
    "times/scale-6.txt": _scale_threads,
    "times/waiting-1.txt": _waiting_tuned,
    "times/waiting-2.txt": _waiting_once,
    "times/waiting-3.txt": _waiting_text,
    "times/waiting-4.txt": _waiting_first,
    "times/apply.txt": _applying,
    "times/partitions.txt": _partitions,
    "times/desk.txt": _desk_load,
    "times/desk_pages.txt": _desk_pages,
    "given_scores.txt": _given_scores,
}


def one_line(page: str) -> str:
    """The text of a page, with single spaces for line breaks."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def absent() -> list[str]:
    """The files that are not stored, so that nothing can be compared with them."""
    return [name for name in SAID if not (RESULTS / name).exists()]


def missing() -> list[Said]:
    """The words that pages should have and do not have, from the files that are stored."""
    return [
        said
        for name, say in SAID.items()
        if (RESULTS / name).exists()
        for said in say()
        if " ".join(said.words.split()) not in one_line(said.page)
    ]
