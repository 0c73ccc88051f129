"""The page in a real browser: it renders, sorts and filters; no errors, no sideways scrolling."""

import os
import shutil

import pytest

from case_tables import make_stages
from deferlearn.report import case_report, select_report_cases
from deferlearn.tables import fit_table, select_cases
from hostile_tables import HOSTILE, hostile_model, hostile_table

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def browser():
    """Chromium: that of DEFERLEARN_CHROMIUM, of the system, or playwright's own."""
    own = os.environ.get("DEFERLEARN_CHROMIUM")
    path = own or next(filter(None, map(shutil.which, NAMES)), None)
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path)
        except sync_api.Error as error:
            if own:
                raise
            pytest.skip(f"no Chromium that starts: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report():
    model = hostile_model()
    return case_report(model, select_report_cases(hostile_table(), model), quick=True)


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


@pytest.fixture
def open_page(browser, path):
    """Opens the page; at the end nothing was complained about, alerted or asked of a network."""
    complaints, contexts = [], []

    def open_it(width=1280, scheme="light", path=path):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
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


def cells(page, column):
    return page.eval_on_selector_all(
        "#cases-table tbody tr", "(rows, i) => rows.map(row => row.cells[i].textContent)", column
    )


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


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ten_classes_fit_the_screen(open_page, ten_classes, width, scheme):
    page = open_page(width, scheme, ten_classes)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    tables = page.query_selector_all("table.confusion")
    assert len(tables) == 3
    for table in tables:
        assert len(table.query_selector_all("td")) == 10 * 11
        assert table.query_selector_all("td *") == []
        heights = [head.bounding_box()["height"] for head in table.query_selector_all("th.tall")]
        assert max(heights) < 200  # long names are cut off
        first = table.query_selector("tbody th")
        before = first.bounding_box()["x"]
        # The names of the rows stay in sight when the table is moved.
        table.evaluate("table => { table.parentElement.scrollLeft = 100; }")
        assert first.bounding_box()["x"] == pytest.approx(before, abs=2)


def test_cells_are_text_and_no_script_of_theirs_runs(open_page, report):
    page = open_page()
    names = [column["name"] for column in report.rows["columns"]]
    shown = page.eval_on_selector_all(
        "#cases-table th button", "all => all.map(b => b.textContent)"
    )
    assert shown == names
    assert set(cells(page, names.index("</script><b>site"))) == set(HOSTILE)
    assert page.query_selector_all("#cases-table td *") == []
    assert page.inner_text("#cases-count") == "60 of 60 cases"


def test_it_sorts(open_page, report):
    page = open_page()
    names = [column["name"] for column in report.rows["columns"]]
    size = names.index('<i>"size"</i>')
    before = cells(page, 0)
    button = page.locator("#cases-table th button").nth(size)
    button.click()
    numbers = [float(text) for text in cells(page, size)]
    assert numbers == sorted(numbers)
    button.focus()
    page.keyboard.press("Enter")  # and without a mouse
    assert [float(text) for text in cells(page, size)] == sorted(numbers, reverse=True)
    states = page.eval_on_selector_all(
        "#cases-table th", "all => all.map(th => th.getAttribute('aria-sort'))"
    )
    assert [state for state in states if state] == ["descending"]
    assert states[size] == "descending"
    assert sorted(cells(page, 0)) == sorted(before)


def test_it_filters(open_page, report):
    page = open_page()
    rows = report.rows["rows"]
    assert cells(page, 1) == [row[1] for row in rows]
    page.select_option("#cases-taken", "human")
    assert cells(page, 0) == [row[0] for row in rows if row[1] == "human"]
    page.select_option("#cases-taken", "")
    for who in ("machine", "human"):
        page.select_option("#cases-wrong", who)
        assert cells(page, 0) == [row[0] for row in rows if who in row[7]]
    page.select_option("#cases-wrong", "team")
    assert cells(page, 0) == [row[0] for row in rows if row[6] != row[3]]
    page.select_option("#cases-wrong", "none")
    assert cells(page, 0) == [row[0] for row in rows if not row[7]]
    page.select_option("#cases-wrong", "")
    page.fill("#cases-search", "ONERROR")
    assert cells(page, 0) == [row[0] for row in rows if "onerror" in row[0]]
    page.fill("#cases-search", "no such text")
    assert cells(page, 0) == []
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
