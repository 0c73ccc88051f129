"""The numbers that the page shows, recomputed from decisions, truth and answers by plain numpy."""

import re

import numpy as np
import pytest
from scipy import stats

from case_tables import make_cases, make_stages
from deferlearn.report import case_report, select_report_cases
from deferlearn.tables import fit_table, select_cases
from html_page import Page

N = 240


def plain(cell):
    """Numbers of a cell, with their signs."""
    return [float(x) for x in re.findall(r"-?[\d.]+", cell.replace("−", "-").replace(",", ""))]


class Case:
    """A page, and what it is about."""

    def __init__(self, model, table, truth, human, **options):
        chosen = select_report_cases(table, model, humans=[human], **options)
        self.report = case_report(model, chosen, refit_cases=0)
        self.page = Page(self.report.to_html())
        self.tables = self.page.tables()
        self.table = {name: np.array(column) for name, column in table.items()}
        self.truth, self.human = self.table[truth], self.table[human]
        self.machine = model.predict(table)
        # Unusual cases come first; here there is room for them.
        strange = np.array([bool(reason) for reason in model.unusual(table)])
        self.deferred = model.defer(table) | strange
        self.proba = model.predict_proba(table)
        self.team = np.where(self.deferred, self.human, self.machine)

    def wrong(self, who):
        return getattr(self, who) != self.truth

    def rows(self, start):
        """The rows of the only table whose name starts like this, without headings."""
        (name,) = (name for name in self.tables if name.startswith(start))
        return self.tables[name][1:]

    def section(self, name):
        return " ".join(self.page.one("section", id=name)["text"].split())


@pytest.fixture(scope="module")
def two():
    """Two classes and one reader; every case counts for itself."""
    known = {k: v for k, v in make_cases(150).items() if k not in ("patient", "reader_2")}
    model = fit_table(select_cases(known, "diagnosis", humans=["reader_1"]), alpha=0.1, drop=["id"])
    table = make_cases(N, seed=9)
    return Case(model, table, "diagnosis", "reader_1", subgroup="site")


@pytest.fixture(scope="module")
def grouped():
    """The same with two cases per patient."""
    known = {k: v for k, v in make_cases(150).items() if k != "reader_2"}
    cases = select_cases(known, "diagnosis", humans=["reader_1"], group="patient")
    model = fit_table(cases, alpha=0.1, drop=["id"])
    return Case(model, make_cases(N, seed=9), "diagnosis", "reader_1")


@pytest.fixture(scope="module")
def three():
    labels = ("a", "b", "c")

    def answered(columns):
        pairs = zip(columns["reader_1"], columns["stage"], strict=True)
        columns["reader_1"] = [said or truth for said, truth in pairs]
        return {k: v for k, v in columns.items() if k != "reader_2"}

    known = answered(make_stages(150, labels=labels))
    model = fit_table(select_cases(known, "stage", humans=["reader_1"]), alpha=0.1, drop=["id"])
    return Case(model, answered(make_stages(N, seed=3, labels=labels)), "stage", "reader_1")


def exact(wrong):
    """Clopper and Pearson by the beta distribution, per 1,000."""
    count, n = int(wrong.sum()), len(wrong)
    low = stats.beta.ppf(0.025, count, n - count + 1) if count else 0.0
    high = stats.beta.ppf(0.975, count + 1, n - count) if count < n else 1.0
    return [1000 * count / n, 1000 * low, 1000 * high]


def paired(one, other):
    """Bonett and Price for two answers to the same cases, with Student's quantile, per 1,000."""
    n = len(one)
    spoilt, fixed = np.sum(one & ~other), np.sum(~one & other)
    p, q = (spoilt + 1) / (n + 2), (fixed + 1) / (n + 2)
    half = stats.t.ppf(0.975, n - 1) * np.sqrt((p + q - (p - q) ** 2) / (n + 2))
    return [1000 * (spoilt - fixed) / n, 1000 * (p - q - half), 1000 * (p - q + half)]


def by_groups(one, other, group):
    """The same if cases come in groups: the variance of the groups' sums takes the place of n."""
    values = one.astype(float) - other
    away = values - values.mean()
    sums = [away[group == name].sum() for name in set(group)]
    effect = max(1.0, np.sum(np.square(sums)) / np.sum(away**2))
    n = len(values) / effect
    centre, square = n * values.mean() / (n + 2), (n * np.mean(values**2) + 2) / (n + 2)
    half = stats.t.ppf(0.975, len(set(group)) - 1) * np.sqrt((square - centre**2) / (n + 2))
    return [1000 * values.mean(), 1000 * (centre - half), 1000 * (centre + half)]


def said_in_headline(case):
    found = re.fullmatch(
        r"(Yes|No|Not shown)(?:, but humans alone do better|; humans alone do better)?\. Per 1,000 cases, "
        r"humans read (\d+) and errors (?:fall|rise) from (\d+) to (\d+): (\d+) (fewer|more)"
        r"(?:, |\. The true change may lie anywhere )"
        r"between (\d+)( fewer)? and (\d+) (fewer|more)\."
        r"(?: Humans who read all 1,000 would make (\d+)\.)?",
        case.report.numbers["effect"]["headline"],
    )
    answer, read, before, after, size, way, low, low_way, high, high_way, alone = found.groups()
    if high_way == "fewer":
        ends = [-int(high), -int(low)]
    else:
        ends = [-int(low) if low_way else int(low), int(high)]
    signed = -int(size) if way == "fewer" else int(size)
    return answer, [int(read), int(before), int(after), signed, *ends], alone


@pytest.mark.parametrize("name", ["two", "grouped", "three"])
def test_the_headline(name, request):
    case = request.getfixturevalue(name)
    machine, team = case.wrong("machine"), case.wrong("team")
    if name == "grouped":
        _, low, high = by_groups(team, machine, case.table["patient"])
        worse = by_groups(team, case.wrong("human"), case.table["patient"])[1] > 0
    else:
        _, low, high = paired(team, machine)
        worse = paired(team, case.wrong("human"))[1] > 0
    answer, shown, alone = said_in_headline(case)
    assert alone == (str(round(1000 * case.wrong("human").mean())) if worse else None)
    before, after = round(1000 * machine.mean()), round(1000 * team.mean())
    assert shown[:4] == [round(1000 * case.deferred.mean()), before, after, after - before]
    np.testing.assert_allclose(shown[4:], [low, high], atol=0.51)
    assert answer == ("Yes" if high < 0 else "No" if low > 0 else "Not shown")
    assert case.report.numbers["effect"]["headline"] in case.section("verdict")


@pytest.mark.parametrize("name", ["two", "three"])
def test_fixed_spoilt_and_humans_alone(name, request):
    case = request.getfixturevalue(name)
    machine, human, team = map(case.wrong, ("machine", "human", "team"))
    said = case.section("verdict")
    fixed, spoilt = (machine & ~team).sum(), (team & ~machine).sum()
    assert (
        f"Counted on these {N} cases: the machine alone is wrong on {machine.sum()}. Humans read "
        f"{case.deferred.sum()}, put {fixed} of its errors right, and turn {spoilt} of its right answers "
        f"into errors, so {team.sum()} remain." in said
    )
    found = re.search(r"would make (\d+) errors: (\d+) (more|fewer)", said)
    size, low, high = paired(human, team)
    assert int(found[1]) == round(1000 * human.mean())
    assert int(found[2]) == round(abs(size))
    assert found[3] == ("more" if size > 0 else "fewer")
    unclear = "which is not a clear difference" in said
    assert unclear == (low <= 0 <= high)
    picture = case.page.one("svg", **{"aria-labelledby": "p-verdict-t p-verdict-d"})["text"]
    shares = [1000 * machine.mean(), 1000 * fixed / N, 1000 * spoilt / N, 1000 * team.mean()]
    assert plain(picture.partition("Machine alone")[2])[:4] == [round(x) for x in shares]


def test_the_kind_of_errors(two, three):
    labels, counts = np.unique(two.truth, return_counts=True)
    own = two.truth == labels[counts.argmin()]
    shares = [round(1000 * two.wrong(who)[own].mean()) for who in ("machine", "team", "human")]
    assert (
        f"the machine misses {shares[0]}, the team {shares[1]}, and humans alone {shares[2]}."
        in two.section("verdict")
    )
    worst = max("abc", key=lambda label: three.wrong("team")[three.truth == label].mean())
    own = three.truth == worst
    shares = [round(1000 * three.wrong(who)[own].mean()) for who in ("team", "machine", "human")]
    assert (
        f"The team errs most often on cases that are {worst}: of 1,000, it gets {shares[0]:,} wrong, the "
        f"machine alone {shares[1]:,}, and humans alone {shares[2]:,}." in three.section("verdict")
    )


@pytest.mark.parametrize("name", ["two", "three"])
def test_errors_on_each_class(name, request):
    case = request.getfixturevalue(name)
    rows = case.rows("Errors per 1,000 cases of each class")
    assert [row[0] for row in rows] == sorted(set(case.truth))
    for label, n, *cells, change in rows:
        own = case.truth == label
        assert int(n) == own.sum()
        for who, cell in zip(("machine", "human", "team"), cells, strict=True):
            np.testing.assert_allclose(plain(cell), exact(case.wrong(who)[own]), atol=0.51)
        size, low, high = paired(case.wrong("team")[own], case.wrong("machine")[own])
        found = plain(change)
        assert found[0] == pytest.approx(size, abs=0.51)
        assert found[1] < low  # several intervals that hold together are longer
        assert high < found[2]
        assert ("fewer" in change) == (found[2] < 0)
        assert ("more" in change) == (found[1] > 0)


def test_all_answers_are_counted(three):
    for who in ("machine", "human", "team"):
        rows = three.rows(f"{who.capitalize()}: {three.wrong(who).sum()} of {N} wrong")
        for label, *cells in rows:
            own = getattr(three, who)[three.truth == label]
            assert list(map(int, cells)) == [np.sum(own == said) for said in "abc"]


def test_found_and_false_alarms(two):
    labels, counts = np.unique(two.truth, return_counts=True)
    positive = labels[counts.argmin()]
    assert f"If {positive}, the rarer class, is what has to be found" in two.section("classes")
    ill = two.truth == positive
    for who, said in (("Machine", two.machine), ("Human", two.human), ("Team", two.team)):
        found = re.search(
            rf"{who}: of 1,000 [^;]*, (\d+) \(.*?false alarms", two.section("classes")
        )
        numbers = plain(found[0].replace("1,000", ""))
        np.testing.assert_allclose(numbers[:3], exact((said == positive)[ill]), atol=0.51)
        np.testing.assert_allclose(numbers[3:], exact((said == positive)[~ill]), atol=0.51)
    # The curve passes through every threshold: by counting, not by scikit-learn.
    curve = two.report.numbers["points"]["curve"]
    score = two.proba[:, labels.tolist().index(positive)]
    reached = {(np.mean(score[~ill] >= cut), np.mean(score[ill] >= cut)) for cut in score}
    assert {tuple(pair) for pair in curve} <= reached | {(0.0, 0.0)}
    assert len(curve) > 20
    # The area by counting pairs; its interval holds what a bootstrap gives.
    pairs = np.sign(score[ill][:, None] - score[~ill]) / 2 + 0.5
    said = re.search(r"higher for \S+ in (\d+) \((.*?)\)", two.section("classes"))
    area, low, high = plain(said[0])
    assert area == pytest.approx(1000 * pairs.mean(), abs=0.51)
    rng = np.random.default_rng(0)
    rows, columns = (rng.integers(0, n, (300, n)) for n in pairs.shape)
    drawn = [pairs[i][:, j].mean() for i, j in zip(rows, columns, strict=True)]
    np.testing.assert_allclose([low, high], 1000 * np.quantile(drawn, [0.025, 0.975]), atol=25)


def parts_of(case, column):
    values = case.table[column]
    if values.dtype.kind == "f":
        cuts = np.quantile(values, [0.25, 0.5, 0.75])
        return np.searchsorted(cuts, values, side="right")
    return values


def test_who_errs_where(two):
    rows = two.rows("All parts")
    sizes = [plain(row[2])[0] for row in rows]
    assert sizes == sorted(sizes)
    for column in ("size", "dose", "site"):
        parts = parts_of(two, column)
        own = [row for row in rows if row[0].startswith(f"{column}:")]
        expected = []
        for value in sorted(set(parts)):
            part = parts == value
            machine, human, team = (
                1000 * two.wrong(w)[part].mean() for w in ("machine", "human", "team")
            )
            elsewhere = 1000 * two.wrong("machine")[~part].mean()
            numbers = [human - machine, machine, human, team, 1000 * two.deferred[part].mean()]
            expected.append([*numbers, part.sum(), machine - elsewhere])
        found = [
            [plain(row[2])[0], *(float(cell) for cell in row[3:8]), plain(row[8])[0]] for row in own
        ]
        np.testing.assert_allclose(sorted(found), sorted(expected), atol=0.51)
    for row in rows:
        _, low, high = plain(row[2])
        assert row[1] == ("human better" if high < 0 else "machine better" if low > 0 else "")


def test_subgroups(two):
    rows = two.rows("Errors per 1,000 cases by site")
    sites = two.table["site"]
    assert {row[0] for row in rows} == set(sites)
    for site, n, read, *cells in rows:
        own = sites == site
        assert int(n) == own.sum()
        assert int(read) == round(1000 * two.deferred[own].mean())
        for who, cell in zip(("machine", "human", "team"), cells[:3], strict=True):
            np.testing.assert_allclose(plain(cell), exact(two.wrong(who)[own]), atol=0.51)
        team, machine = two.wrong("team"), two.wrong("machine")
        sizes = [team[own].mean() - machine[own].mean()]
        sizes += [wrong[own].mean() - wrong[~own].mean() for wrong in (machine, team)]
        found = [plain(cell)[0] for cell in cells[3:]]
        np.testing.assert_allclose(found, 1000 * np.array(sizes), atol=0.51)


@pytest.mark.parametrize("name", ["two", "three"])
def test_reliability(name, request):
    case = request.getfixturevalue(name)
    labels = np.unique(case.truth)
    sure = case.proba[np.arange(N), np.searchsorted(labels, case.machine)].round(3)
    right = ~case.wrong("machine")
    rows = case.rows("The machine's answers by how sure it is")
    assert sum(int(row[1]) for row in rows) == N
    for span, n, says, was, away in rows:
        low, high = plain(span)
        part = (1000 * sure >= low - 1e-6) & (1000 * sure <= high + 1e-6)
        assert int(n) == part.sum()
        assert int(says) == pytest.approx(1000 * sure[part].mean(), abs=0.51)
        np.testing.assert_allclose(plain(was), exact(right[part]), atol=0.51)
        assert plain(away)[0] == pytest.approx(1000 * (right[part] - sure[part]).mean(), abs=0.51)
    said = re.search(
        r"It says that (\d+) of 1,000 of its answers are right, and (\d+) are",
        case.section("reliability"),
    )
    assert [int(said[1]), int(said[2])] == [round(1000 * sure.mean()), round(1000 * right.mean())]


def test_drift(two):
    rows = {row[0]: row for row in two.rows("How the cases are spread")}
    assert set(rows) == {"truth", "size", "dose", "age", "site"}
    before = {name: np.array(column) for name, column in make_cases(150).items()}
    site = np.mean(before["site"] == "Oslo") - np.mean(two.table["site"] == "Oslo")
    truth = np.mean(before["diagnosis"] == "ill") - np.mean(two.truth == "ill")
    assert int(rows["site"][1]) == round(1000 * abs(site))
    assert int(rows["truth"][1]) == round(1000 * abs(truth))
    edges = np.quantile(before["size"], np.arange(1, 10) / 10)
    counts = [
        np.bincount(np.searchsorted(edges, values), minlength=10) / len(values)
        for values in (before["size"], two.table["size"])
    ]
    assert int(rows["size"][1]) == round(500 * np.abs(counts[0] - counts[1]).sum())
    new, old = two.table["size"], before["size"]
    outside = np.mean((new < old.min()) | (new > old.max()))
    assert int(rows["size"][6]) == round(1000 * outside)
    gaps = [value is None for value in two.table["age"]]
    assert int(rows["age"][7]) == round(1000 * np.mean(gaps))
    oslo = [round(1000 * np.mean(own["site"] == "Oslo")) for own in (two.table, before)]
    assert rows["site"][4] == f"Oslo: {oslo[0]} instead of {oslo[1]}"
    # The p-value of the site, by hand, before the correction for five columns.
    table = [
        [np.sum(values == name) for name in ("Oslo", "Rome")]
        for values in (before["site"], two.table["site"])
    ]
    own = stats.chi2_contingency(table, correction=False).pvalue
    assert own <= float(rows["site"][8].replace("<", "")) + 0.001


def test_every_share_on_the_page_is_per_thousand(two, three):
    """Percentages would mix two units; certificates have units of their own."""
    for case in (two, three):
        for section in case.page.all("section"):
            if section["id"] not in ("certificate", "again"):
                assert "%" not in section["text"], section["id"]
