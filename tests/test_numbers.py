"""The numbers in README and the pages are those of the stored tables, from which they were copied."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

import does_it_help as evidence
import measured
import store_printed
from test_measured import NOT_STORED

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


def text_of(name):
    """A page, with single spaces for line breaks."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def tables_in(path, after=""):
    """The cells of all rows of tables below a heading."""
    text = (
        path.read_text(encoding="utf-8").partition(after)[2] if after else path.read_text("utf-8")
    )
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip("* ") for cell in row] for row in rows]


@pytest.fixture(scope="module")
def two():
    return evidence.read_comparison(RESULTS / "team")


@pytest.fixture(scope="module")
def example():
    return evidence.first_example()


def test_the_page_does_it_help_is_that_of_the_tables():
    assert evidence.PAGE.read_text(encoding="utf-8") == evidence.page(), (
        "run python tools/does_it_help.py"
    )


def test_tables_of_the_teams_are_those_of_their_page(two):
    page = RESULTS / "team" / "team.md"
    cells = tables_in(page, "## Every cell")
    assert len(two.cells) == 40
    assert len(cells) > 40
    for cell, row in zip(two.cells, cells[1:], strict=False):
        assert row[:2] == [cell["dataset"], f"{cell['budget']:g}"]
        said = [f"{cell[name]:.3f}" for name in ("team", "humans alone", "best peer")]
        assert [row[2], row[4], row[5]] == said
        assert f"{evidence.difference(cell)} {evidence.mark(cell)}".strip() == row[6]
    others = tables_in(page, "Mean errors of all other methods")
    names = others[0][2:]
    for cell, row in zip(two.cells, others[1:], strict=False):
        assert row[2:] == [f"{cell[name]:.3f}" for name in names]
    counts = tables_in(page, "## How often it pays")[1:]
    for line, row in zip(two.counts, counts, strict=False):
        keys = ("better", "no difference", "worse", "much worse")
        assert row == [line["rival"], *(str(int(line[key])) for key in keys)]


def test_counts_are_those_of_the_cells(two):
    marks = Counter(evidence.mark(cell) for cell in two.cells)
    line = two.count("best peer")
    assert [marks["better"], marks[""], marks["worse"]] == [
        line["better"],
        line["no difference"],
        line["worse"],
    ]


def test_teams_in_readme_and_results(two):
    best, forest = two.count("best peer"), two.count("RF alone")
    readme = text_of("README.md")
    assert (
        f"{len(two.cells)} cells of data and budget, {two.splits} splits | clearly better than the peer "
        f"that cross-validation would pick in {best['better']:.0f} cells and clearly worse in "
        f"{best['worse']:.0f}; than a random forest alone in {forest['better']:.0f} and "
        f"{forest['worse']:.0f} | `{two.command}`"
    ) in readme
    classes = evidence.read_comparison(RESULTS / "classes")
    peer, alone = classes.count("best peer"), classes.count(classes.alone)
    assert (
        f"the same with several classes and grades: {len(classes.cells)} cells, {classes.splits} splits | "
        f"clearly better than that peer in {peer['better']:.0f} cells and clearly worse in "
        f"{peer['worse']:.0f}; than the machine alone in {alone['better']:.0f} and "
        f"{alone['worse']:.0f} | `{classes.command}`"
    ) in readme
    page = text_of("docs/results.md")
    names = {
        "best peer": "the peer that cross-validation picks",
        "RF": "compare-confidence with a random forest",
        "HGB": "compare-confidence with gradient boosting",
        "RF alone": "a random forest alone",
    }
    for rival, words in names.items():
        line = two.count(rival)
        numbers = " | ".join(f"{line[key]:.0f}" for key in ("better", "no difference", "worse"))
        assert f"| {words} | {numbers} |" in page


def test_sleep_experts_on_the_page_about_classes():
    classes = evidence.read_comparison(RESULTS / "classes")
    cells = {k: classes.of(f"stages-{k}") for k in range(1, 6)}
    expert = {k: found[0]["humans alone"] for k, found in cells.items()}
    team = {k: min(cell["team"] for cell in found) for k, found in cells.items()}
    gain = {k: found[0][classes.alone] - team[k] for k, found in cells.items()}
    page = text_of("docs/howto/classes.md")
    assert "Expert 5 errs least, and the team with this expert errs least." in page
    assert min(expert, key=expert.get) == min(team, key=team.get) == 5
    assert "With experts 1 and 4, who err most, there is least to gain." in page
    assert set(sorted(expert, key=expert.get)[-2:]) == set(sorted(gain, key=gain.get)[:2]) == {1, 4}
    assert "with every expert it leaves a part of 30% unused" in page
    assert all(found[-1]["budget"] == 0.3 > found[-1]["asked"] + 0.02 for found in cells.values())


def test_first_example_in_readme(example):
    readme = text_of("README.md")
    team, svc, forest, expert = (
        f"{100 * example[who]['error']:.2f}%"
        for who in ("team", "SVC, tuned", "random forest", "expert")
    )
    svc_less = [100 * example["SVC, tuned"][key] for key in ("difference", "low", "high")]
    assert (
        f"(which asks about {100 * example['asked']['error']:.1f}%), a tuned `SVC`, a random forest, and "
        f"the expert | {team} against {svc}, {forest} and {expert}; the team's difference from each is "
        "clear of zero, such as {:+.2f} points [{:+.2f}, {:+.2f}] from the `SVC`".format(*svc_less)
    ) in readme
    short = [
        f"{100 * example[who]['error']:.1f}%"
        for who in ("expert", "random forest", "SVC, tuned", "team")
    ]
    assert (
        "the expert alone {}, a random forest alone {}, a tuned SVC alone {}, the team of machine and "
        "expert {}".format(*short)
    ) in readme
    assert f"asks the expert about {100 * example['asked']['error']:.0f}% of the cases" in readme
    for who in ("SVC, tuned", "random forest", "expert"):
        if example[who]["high"] is not None:
            assert example[who]["high"] < 0


def test_claims_in_readme():
    page = (RESULTS / "repeated" / "results.md").read_text(encoding="utf-8")
    row = r"^\| \w+ \| .*? \| \*\*(holds|holds in part|does not hold)\*\* \|"
    found = Counter(re.findall(row, page, re.M))
    assert (
        f"of {sum(found.values())} claims, {found['holds']} hold, {found['holds in part']} hold in part "
        f"and {found['does not hold']} do not:"
    ) in text_of("README.md")


def test_points_of_the_published_figure():
    page = text_of("docs/results/published/results.md")
    assert "**30 of 30 points of the published curves to the last digit**" in page
    for name in ("README.md", "docs/results.md"):
        assert re.search(
            r"regenerates all 30 points of (the figure's greedy|these) curves", text_of(name)
        )


def test_times_of_rounds():
    page = RESULTS / "repeated" / "results.md"
    means = {}
    for row in tables_in(page, "## runtime")[1:]:
        if len(row) == 5 and row[1] in ("distorted", "stochastic") and row[2] != "distorted":
            means.setdefault(row[0], []).append(1000 * float(row[4].split()[0]))
    assert set(means) == {"messidor", "stare", "aptos"}
    said = {row[0].lower(): row[1:3] for row in tables_in(ROOT / "docs/engine.md", "## Speed")[:4]}
    for name, milliseconds in means.items():
        # Three digits on the page of results, two decimals here.
        assert [float(text) for text in said[name]] == pytest.approx(milliseconds, abs=0.00501)


def test_unusual_cases_in_readme():
    found = tables_in(ROOT / "docs/howto/unusual.md", "What it finds")
    rows = {
        row[0]: row for row in reversed(found)
    }  # of several tables, the first: means of all data
    row, clean = rows["one column x 1000 in 10% of the rows"], rows["clean"]
    readme = text_of("README.md")
    assert (
        f"the team errs on {row[4]} without the guard and on {row[5]} with it, at the same budget "
        f"({clean[5]} if the cases are clean)"
    ) in readme
    share = re.search(r"clean cases, (\d\.\d+%) were", text_of("docs/howto/unusual.md"))
    assert f"clean cases called unusual: {share.group(1)}" in readme


def test_experts_on_their_page():
    path = ROOT / "docs/howto/experts.md"
    rows = tables_in(path, "## What it gains")
    differ = evidence.skills()
    assert len(differ) == 6
    for row, said in zip(differ, rows[1:], strict=False):
        means = [f"{row[key]:.3f}" for key in ("known", "learned", "average")]
        interval = "{difference:+.3f} [{low:+.3f}, {high:+.3f}]".format(**row)
        assert said == [f"{row['answers']:,}", *means, interval]
    names = {
        "nobody: the machine alone": "machine alone",
        "routing, each expert equally many": "routing, equal time",
        "a random expert, the epochs at which the average human gains most": "average human, random expert",
        "routing, whoever is best": "routing, any split of the time",
        "the best single expert": "best single expert",
    }
    sleep = evidence.routing()
    said = {row[0]: row[1:] for row in rows}
    for words, who in names.items():
        errors = [f"{sleep[budget][who]['error']:.4f}" for budget in (0.05, 0.1)]
        assert said[words][:2] == errors, "the column of 20% is not stored"


def test_calibration_on_its_page():
    stored = tables_in(RESULTS / "calibration" / "calibration.txt")[1:]
    stored = [[*row, ""][:7] for row in stored]
    assert len(stored) == 3 * 2 * 3
    page = ROOT / "docs/howto/classes.md"
    said = {tuple(row[:2]): row[2:] for row in tables_in(page, "## Probabilities") if len(row) == 6}
    gaps = []
    for data, machine, who, together, mean, loss, apart in stored:
        row = said[data, machine]
        place = ("ours", "sigmoid", "isotonic").index(who)
        assert row[place] == f"{together} ({loss})"
        if who == "ours":
            assert row[3] == mean
            assert float(together) <= 0.03
        else:
            gaps.append([float(number) for number in re.findall(r"[+-]\d\.\d+", apart)])
    better = sum(high < 0 for _, _, high in gaps)
    worst = max(gaps)
    assert not any(low > 0 for _, low, _ in gaps)
    text = text_of("docs/howto/classes.md")
    assert (
        f"clearly smaller than theirs in {better} of {len(gaps)} comparisons, and clearly" in text
    )
    assert f"{worst[0]:+.4f} [{worst[1]:+.4f}, {worst[2]:+.4f}]" in text


def test_every_measured_line_is_checked():
    section = (
        (ROOT / "README.md").read_text("utf-8").partition("## Measured")[2].partition("\n## ")[0]
    )
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(lines) >= 15
    elsewhere = ("reproduce all", "bench team", "shifted_inputs.py", "first_example.py")
    stored = [name for name in measured.SAID if name not in NOT_STORED]
    compared = {said.words for name in stored for said in measured.SAID[name]()}
    waiting = {f"python benchmarks/{store_printed.RUNS[name]}" for name in NOT_STORED}
    for line in lines:
        command = re.search(r"`((?:python benchmarks/\w+\.py|deferlearn)[^`]*)`[^`]*\|$", line)
        assert command, f"no command: {line}"
        known = line in compared or command.group(1) in waiting
        assert known or any(part in command.group(1) for part in elsewhere), line


@pytest.fixture
def with_classes(tmp_path, monkeypatch, two):
    """Stored results with a comparison of several classes, made of that of two."""
    shutil.copytree(
        RESULTS, tmp_path / "results", ignore=shutil.ignore_patterns("*.png", "classes")
    )
    folder = tmp_path / "results" / "classes"
    folder.mkdir()
    for name in ("team.csv", "counts.csv", "team.md"):
        text = (RESULTS / "team" / name).read_text(encoding="utf-8")
        text = text.replace("sleep,", "stages-1,").replace("aptos,", "aptos-grades,")
        # The team is clearly worse in one cell.
        text = text.replace("HGB,0.173,-0.018,-0.024,-0.012", "HGB,0.173,0.018,0.012,0.024")
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(evidence, "RESULTS", tmp_path / "results")


def test_a_data_set_without_help_needs_a_reason(with_classes, monkeypatch):
    monkeypatch.setattr(evidence, "WHY", {})
    with pytest.raises(
        SystemExit, match=r"lidc-majority has cells in which the team is not better"
    ):
        evidence.page()


def test_several_classes_have_their_place(with_classes, monkeypatch):
    class Any(dict):
        def __missing__(self, name):
            return f"why {name}"

        def __contains__(self, name):
            return True

    monkeypatch.setattr(evidence, "WHY", Any(evidence.WHY))
    monkeypatch.setattr(evidence, "ALONE", ("best peer",))
    page = evidence.page()
    assert "Several classes, and grades" in page
    assert page.count("| against | better | neither | worse |") == 2
    assert "- budget 0.05: +0.018 [+0.012, +0.024], **worse**" in page
    assert "| 1 | 0.025 | 0.019 | 0.018 | 0.018 | 0.019 | 0.019 | 20%, 30% | - |" in page
    assert "- **Expert 1**: asking pays at 20%, 30%; at the other budgets no gain is clear." in page


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        ([(-2, -1), (-2, -1)], "asking pays at every budget that was tried, up to 20%."),
        ([(-2, -1), (-1, 1)], "asking pays at 10%; at the other budgets no gain is clear."),
        ([(-1, 1), (1, 2)], "no budget clearly pays. At 20% it does harm."),
    ],
)
def test_advice_about_an_expert(intervals, said):
    cells = [
        {"dataset": "a", "budget": budget, "machine alone": 1.0, "low machine alone": low}
        | {"high machine alone": high}
        for budget, (low, high) in zip((0.1, 0.2), intervals, strict=True)
    ]
    assert evidence.advice(evidence.Comparison(cells, [], ""), "a") == said


def test_what_refits_bring_on_the_page_of_the_desk():
    told = (RESULTS / "desk" / "learning.txt").read_text(encoding="utf-8")
    page = ROOT / "docs/desk/monitoring.md"
    rows = {tuple(row[:2]): row[2:] for row in tables_in(page, "### What refits bring")}
    scenarios = re.findall(r"^Drift of (.+); truth becomes known (.+)\n((?:  .+\n)+)", told, re.M)
    assert len(scenarios) == 8
    for drift, known, lines in scenarios:
        row = rows[drift, "of all" if known == "of all cases" else "of those read"]
        assert row[:4] == re.findall(r"^  [a-z, ]+?\s+([\d.]+%) \(", lines, re.M)
        differences = re.findall(r"refit minus .+: (\S+)% \((\S+)% to (\S+)%\)", lines)
        shown = ["{} ({} to {})".format(*one).replace("-", "−") for one in differences]
        assert [cell.replace("*", "") for cell in row[4:]] == shown
        clear = [float(low) * float(high) > 0 for _, low, high in differences]
        text = page.read_text("utf-8")
        assert all(
            (f"**{one[0]}**".replace("-", "−") in text)
            for one, c in zip(differences, clear, strict=True)
            if c
        )
