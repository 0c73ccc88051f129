"""The page in a real browser: it renders, sorts, filters and opens cases; anyone can use it.

Accessibility is checked by axe-core, which axe-playwright-python brings along.
"""

import pytest

from case_tables import make_stages
from chromium import chromium
from deferlearn.report import CaseReport, case_report, select_report_cases
from deferlearn.report.experts import expert_facts
from deferlearn.tables import fit_table, select_cases
from experts_team import expert_cases, expert_team
from hostile_tables import HOSTILE, hostile_model, hostile_table


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def report():
    """A report with every section."""
    model, table = hostile_model(), hostile_table()
    return case_report(
        model, select_report_cases(table, model, subgroup="</script><b>site"), quick=True
    )


def written(report, factory):
    path = factory.mktemp("page") / "report.html"
    path.write_text(report.to_html(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def path(report, tmp_path_factory):
    return written(report, tmp_path_factory)


@pytest.fixture(scope="module")
def ten_classes(tmp_path_factory):
    """The page of a model with ten classes, whose names are long or hostile."""
    labels = (*HOSTILE, "b", "of the lower left lobe, with a halo", "c c c", "d")
    columns = make_stages(150, labels=labels)
    pairs = zip(columns["reader_1"], columns["stage"], strict=True)
    human = [answer or truth for answer, truth in pairs]
    table = columns | {"reader_1": human}
    cases = select_cases(table, "stage", humans=["reader_1"], identifier="id")
    model = fit_table(cases, alpha=0.01, drop=["reader_2"])
    report = case_report(model, select_report_cases(table, model), refit_cases=0)
    return written(report, tmp_path_factory)


@pytest.fixture(scope="module")
def several_experts(report, tmp_path_factory):
    """The page of a model with several experts, one of whom has a hostile name."""
    team, (X, _, _) = expert_team(), expert_cases()
    facts = expert_facts(team, takers=team.assign(X), readings=team.compare_readings(X))
    facts["rows"] = facts["rows"] * 5
    return written(CaseReport({**report.numbers, "experts": facts}, report.rows), tmp_path_factory)


@pytest.fixture
def open_page(browser, path):
    """Opens the page; at the end nothing was complained about, alerted or asked of a network."""
    complaints, contexts = [], []

    def open_it(width=1280, scheme="light", path=path, **options):
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda request: request.url.startswith("file:") or complaints.append(request.url),
        )
        page.goto(path.as_uri())
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == []


def place_of(report, name):
    return [column["name"] for column in report.rows["columns"]].index(name)


def column_of(report, name):
    return [row[place_of(report, name)] for row in report.rows["rows"]]


def cells(page, column):
    """All cells of a column of the list, by its place among those shown."""
    while page.is_visible("#cases-more"):
        page.click("#cases-more")
    return page.eval_on_selector_all(
        "#cases-table tr.case", "(rows, i) => rows.map(row => row.cells[i].textContent)", column
    )


def cases_shown(page):
    return cells(page, 2)


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_and_can_be_read(open_page, width, scheme):
    page = open_page(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for picture in page.query_selector_all("svg[role=img]"):
        box = picture.bounding_box()
        assert 200 < box["width"] <= width
        # Letters are 13 units high, and shrink with the picture.
        units = picture.evaluate("svg => svg.viewBox.baseVal.width")
        assert 13 * box["width"] / units > 9
    colours = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    bright = [sum(map(int, c[c.index("(") + 1 : -1].split(",")[:3])) for c in colours]
    assert (bright[0] > bright[1]) == (scheme == "dark")
    assert abs(bright[0] - bright[1]) > 500


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_ten_classes_fit_the_screen(open_page, ten_classes, width, scheme):
    page = open_page(width, scheme, ten_classes)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    tables = page.query_selector_all("table.confusion")
    assert len(tables) == 3
    for table in tables:
        assert len(table.query_selector_all("td")) == 10 * 10
        assert table.query_selector_all("td *") == []
        heights = [head.bounding_box()["height"] for head in table.query_selector_all("th.tall")]
        assert max(heights) < 200  # long names are cut off
        first = table.query_selector("tbody th")
        before = first.bounding_box()["x"]
        # The names of the rows stay in sight when the table is moved.
        table.evaluate("table => { table.parentElement.scrollLeft = 100; }")
        assert first.bounding_box()["x"] == pytest.approx(before, abs=2)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_experts_fit_the_screen_and_can_be_told_apart(open_page, several_experts, width, scheme):
    page = open_page(width, scheme, several_experts)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    section = page.locator("#experts")
    assert section.locator("b").count() == 0
    for picture in section.locator("svg[role=img]").all():
        frame = picture.bounding_box()
        for text in picture.locator("text").all():
            box = text.bounding_box()
            assert frame["x"] - 1 <= box["x"]
            assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    colours = [
        section.locator(f"circle.{kind}").first.evaluate("dot => getComputedStyle(dot).fill")
        for kind in ("good", "bad", "hollow")
    ]
    assert len(set(colours)) == 3


def test_tables_that_are_too_wide_scroll_and_keep_their_first_column(open_page):
    """Without it, a phone shows numbers of which nobody knows what they are."""
    page = open_page(400)
    boxes = [box for box in page.query_selector_all(".scroll") if box.is_visible()]
    wide = [box for box in boxes if box.evaluate("box => box.scrollWidth > box.clientWidth")]
    assert wide
    for box in wide:
        assert box.evaluate("box => getComputedStyle(box).overflowX") == "auto"
        last = box.query_selector("thead th:last-child")
        box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
        edges = box.bounding_box(), last.bounding_box()
        ends = [edge["x"] + edge["width"] for edge in edges]
        assert ends[1] <= ends[0] + 1  # the last column can be reached
        first = box.query_selector("tbody th[scope=row]")
        if first is not None:
            assert first.bounding_box()["x"] == pytest.approx(edges[0]["x"], abs=2)


@pytest.mark.parametrize(
    ("kind", "width", "scheme"),
    [
        ("two classes", 1280, "light"),
        ("two classes", 400, "dark"),
        ("ten classes", 1280, "dark"),
        ("ten classes", 400, "light"),
        ("several experts", 1280, "dark"),
        ("several experts", 400, "light"),
    ],
)
def test_axe_finds_nothing(open_page, path, ten_classes, several_experts, kind, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
    pages = {"two classes": path, "ten classes": ten_classes, "several experts": several_experts}
    own = pages[kind]
    # The policy of the page would refuse axe's script.
    page = open_page(width, scheme, own, bypass_csp=True)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    page.click("#cases-table td button >> nth=0")
    found = axe.Axe().run(page).response
    problems = [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]]
    assert problems == []
    assert len(found["passes"]) > 20


def test_screen_readers_are_told_what_is_where(open_page, report):
    page = open_page()
    assert page.get_by_role("heading", level=1).inner_text() == "Machine, human and team"
    assert page.get_by_role("heading", level=2).count() == len(page.query_selector_all("section"))
    region = page.get_by_role("region", name="Does it pay to ask humans?", exact=True)
    assert report.numbers["effect"]["headline"] in region.inner_text()
    picture = page.get_by_role(
        "img", name="Errors per 1,000 cases: machine alone, team and humans alone"
    )
    assert picture.count() == 1
    assert page.get_by_role("navigation", name="Sections").count() == 1
    for table in page.get_by_role("table").all():
        assert table.get_attribute("aria-label")
    case = column_of(report, "case")[0]
    why = column_of(report, "why")[0]
    button = page.get_by_role("button", name=f"{why}. Case {case}", exact=True)
    assert button.get_attribute("aria-expanded") == "false"


def test_cells_are_text_and_no_script_of_theirs_runs(open_page, report):
    page = open_page()
    names = [column["name"] for column in report.rows["columns"] if column["shown"]]
    shown = page.eval_on_selector_all(
        "#cases-table th button", "all => all.map(b => b.textContent)"
    )
    assert shown == names
    assert sorted(cases_shown(page)) == sorted(column_of(report, "case"))
    assert page.query_selector_all("#cases-table td :not(button, dl, dt, dd)") == []
    assert page.inner_text("#cases-count") == "60 of 60 cases"


def test_a_case_opens_and_closes_by_the_keyboard(open_page, report):
    page = open_page(400)
    page.locator("#cases-table td button").nth(1).focus()
    page.keyboard.press("Enter")
    names = page.locator("tr.opened dt").all_inner_texts()
    values = page.locator("tr.opened dd").all_inner_texts()
    hidden = [c["name"] for c in report.rows["columns"]][1:]  # all but the reason
    assert names == hidden
    row = report.rows["rows"][1]
    expected = [row[place_of(report, name)] for name in hidden]
    assert values[0] == expected[0]
    site = hidden.index("</script><b>site")
    assert values[site].split() == expected[site].split()
    size = hidden.index('<i>"size"</i>')
    assert float(values[size]) == expected[size]
    # What was opened is in sight, however far the list is scrolled.
    page.evaluate("document.querySelector('#cases-table').parentElement.scrollLeft = 300")
    box = page.locator("tr.opened dl").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 400
    page.keyboard.press("Space")
    assert page.locator("tr.opened").count() == 0


def test_every_line_of_the_list_is_one_line(open_page):
    for width in (1280, 400):
        heights = open_page(width).eval_on_selector_all(
            "#cases-table tr.case", "rows => rows.map(row => row.getBoundingClientRect().height)"
        )
        assert max(heights) < 40


def test_it_sorts(open_page, report):
    page = open_page()
    before = cases_shown(page)
    sure = [column["name"] for column in report.rows["columns"]].index("sure")
    button = page.locator("#cases-table th button").nth(sure)
    button.click()
    numbers = [float(text) for text in cells(page, sure)]
    assert numbers == sorted(numbers)
    button.focus()
    page.keyboard.press("Enter")  # and without a mouse
    assert [float(text) for text in cells(page, sure)] == sorted(numbers, reverse=True)
    states = page.eval_on_selector_all(
        "#cases-table th", "all => all.map(th => th.getAttribute('aria-sort'))"
    )
    assert [state for state in states if state] == ["descending"]
    assert states[sure] == "descending"
    assert sorted(cases_shown(page)) == sorted(before)


def test_it_sorts_by_what_only_open_cases_show(open_page, report):
    page = open_page()
    size = place_of(report, '<i>"size"</i>')
    pairs = zip(column_of(report, '<i>"size"</i>'), column_of(report, "case"), strict=True)
    expected = [case for _, case in sorted(pairs, key=lambda pair: pair[0])]
    page.select_option("#cases-order", f"{size}+")
    assert cases_shown(page) == expected
    page.select_option("#cases-order", f"{size}-")
    assert cases_shown(page) == expected[::-1]
    page.select_option("#cases-order", "")
    assert cases_shown(page) == column_of(report, "case")


def test_it_filters(open_page, report):
    page = open_page()
    names, takers, results = (column_of(report, n) for n in ("case", "taken by", "result"))
    rows = report.rows
    assert cases_shown(page) == names
    page.select_option("#cases-taken", "human")
    assert cases_shown(page) == [n for n, who in zip(names, takers, strict=True) if who == "human"]
    page.select_option("#cases-taken", "")
    for who in ("machine", "human", "team"):
        page.select_option("#cases-wrong", who)
        wrong = rows[f"{who}Wrong"]
        assert cases_shown(page) == [n for n, yes in zip(names, wrong, strict=True) if yes]
    for result in ("fixed", "spoilt"):
        page.select_option("#cases-wrong", result)
        assert cases_shown(page) == [n for n, r in zip(names, results, strict=True) if r == result]
    either = [m or h for m, h in zip(rows["machineWrong"], rows["humanWrong"], strict=True)]
    for value, wanted in (("any", True), ("none", False)):
        page.select_option("#cases-wrong", value)
        assert cases_shown(page) == [n for n, e in zip(names, either, strict=True) if e == wanted]
    page.select_option("#cases-wrong", "")
    page.fill("#cases-search", "ONERROR")
    assert cases_shown(page) == [name for name in names if "onerror" in name]
    page.fill("#cases-search", "no such text")
    assert cases_shown(page) == []
    assert page.inner_text("#cases-count") == "0 of 60 cases"


def test_a_strange_script_is_refused_by_the_policy(browser, path):
    """The second wall: markup that got in by whatever way does not run."""
    page = browser.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    content = path.read_text(encoding="utf-8")
    intruder = "<script>document.title = 'taken over'</script><p onclick='1'>x</p></body>"
    hurt = path.with_name("hurt.html")
    hurt.write_text(content.replace("</body>", intruder), encoding="utf-8")
    page.goto(hurt.as_uri())
    assert page.title() != "taken over"
    assert any("Content Security Policy" in text for text in refused)
    page.close()
