"""The page by what a parser finds in it: all sections, nothing from afar, and no cell that is markup."""

import json
from base64 import b64encode
from datetime import datetime
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup

from deferlearn.report import case_report, rows, select_report_cases
from deferlearn.report.bars import Bar, bar_chart, difference_bar, spread_bars
from deferlearn.report.charts import Axes, Line, Picture, Point, chart, ticks
from deferlearn.report.page import environment
from deferlearn.report.sections import SECTIONS
from hostile_tables import HOSTILE, hostile_model, hostile_table
from html_page import Page

ANSWER = {"fewer": "yes", "more": "no", "unclear": "open", "not asked": "open"}


@pytest.fixture(scope="module")
def model():
    return hostile_model()


@pytest.fixture(scope="module")
def report(model):
    table = hostile_table()
    chosen = select_report_cases(table, model, subgroup="</script><b>site")
    files = {"cases": {"name": "<script>c.csv", "sha256": "0" * 64}}
    provenance = {"files": files, "command": "deferlearn report '<script>c.csv' --seed 2"}
    return case_report(
        model, chosen, seen=True, quick=True, seed=2, version="v", provenance=provenance
    )


@pytest.fixture(scope="module")
def content(report):
    return report.to_html()


@pytest.fixture(scope="module")
def page(content):
    return Page(content)


def test_all_sections_with_their_numbers(page, report):
    numbers = report.numbers
    ids = [element["id"] for element in page.all("section")]
    # The section on several experts has its own tests.
    assert ids == [section.name for section in SECTIONS if section.name != "experts"]
    assert [a["href"] for a in page.all("a")] == [f"#{name}" for name in ids[1:]]
    said = {element["id"]: element["text"] for element in page.all("section")}
    for sentence in [numbers["effect"]["headline"], *numbers["effect"]["findings"]]:
        assert sentence in said["verdict"]
    for row in numbers["where"]:
        assert row["value"] in said["where"]
    for row in numbers["subgroups"]:
        assert row["subgroup"] in said["subgroups"]
    assert f"it sends them {numbers['rate']['observed']['count']}," in said["drift"]
    for sentence in numbers["certificate"]["words"]:
        assert sentence in said["certificate"]
    for part in ("deferlearn report '<script>c.csv' --seed 2", "0" * 64, "2 for this report"):
        assert part in said["again"]
    for name, version in numbers["provenance"]["versions"].items():
        assert f"{name} {version}" in said["again"]


def test_the_name_of_the_file_and_the_date_are_at_the_top(page, report):
    moment = datetime.fromisoformat(report.numbers["provenance"]["created"])
    (top,) = page.all("p", **{"class": "lead"})
    assert top["text"] == f"<script>c.csv, 60 cases, report of {moment.day} {moment:%B %Y}"
    start = "Machine, human and team: <script>c.csv, 60 cases"
    assert page.all("title")[0]["text"].startswith(start)


def test_the_verdict_is_not_that_of_refitted_teams(page, report):
    """Whose headline, with another machine's errors, was once the first thing to read."""
    told = report.numbers["assistance"]
    text = page.one("section", id="verdict")["text"]
    assert told["headline"] not in text
    answer = page.one("p", **{"class": f"answer {ANSWER[report.numbers['effect']['answer']]}"})
    assert answer["text"] == report.numbers["effect"]["headline"]
    refits = page.one("section", id="refits")
    assert "not about the stored model" in refits["text"]


def test_pictures_have_words(page):
    pictures = page.all("svg", role="img")
    assert len(pictures) == 4  # verdict, points, and two of refitted teams
    texts = {
        e["id"]: e["text"] for e in page.elements if e["tag"] in ("title", "desc") and "id" in e
    }
    for picture in pictures:
        title, description = picture["aria-labelledby"].split()
        assert texts[title]
        assert any(letter.isdigit() for letter in texts[description])
    assert len({e["id"] for e in page.elements if "id" in e}) == sum(
        "id" in e for e in page.elements
    )


def test_nothing_comes_from_elsewhere_and_only_its_own_script_may_run(page):
    for element in page.elements:
        assert element["tag"] not in ("img", "link", "iframe", "object", "base", "form")
        assert not {"src", "style", "xlink:href", "action", "srcset"} & set(element)
        assert not [name for name in element if name.startswith("on")]
    scripts = page.all("script")
    assert [script.get("type") for script in scripts] == ["application/json", None]
    policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"})["content"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for element in (scripts[1], page.one("style")):
        digest = b64encode(sha256(element["text"].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
        assert "http" not in element["text"]


def test_hostile_cells_arrive_as_text(page, content, report):
    data = json.loads(page.one("script", id="cases-data")["text"])
    assert data["rows"] == report.rows["rows"]
    names = [column["name"] for column in data["columns"]]
    site = names.index("</script><b>site")
    assert {row[site] for row in data["rows"]} == set(HOSTILE)
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "dl",
        "dt",
        "dd",
        "nav",
    }
    allowed |= {"strong", "em", "details", "summary", "path", "rect"}
    allowed |= {"ul", "li", "a", "main", "section", "h2", "p", "div", "figure", "figcaption", "svg"}
    allowed |= {"desc", "line", "text", "circle", "polygon", "polyline", "table", "thead", "tbody"}
    allowed |= {
        "tr",
        "th",
        "td",
        "span",
        "noscript",
        "label",
        "input",
        "select",
        "option",
        "button",
    }
    assert {element["tag"] for element in page.elements} <= allowed | {"pre", "code", "script"}
    assert content.count("<script") == 2
    assert content.count("</script") == 2


def test_a_large_table_is_cut_and_says_so(model, monkeypatch):
    monkeypatch.setattr(rows, "MAX_ROWS", 25)
    chosen = select_report_cases(hostile_table(), model)
    cut = case_report(model, chosen, refit_cases=0)
    data = json.loads(Page(cut.to_html()).one("script", id="cases-data")["text"])
    assert len(data["rows"]) == 25
    deferred = cut.numbers["rate"]["observed"]["count"]
    taken = [column["name"] for column in data["columns"]].index("taken by")
    assert [row[taken] for row in data["rows"]].count("human") == min(deferred, 25)
    assert "the first 25 of 60 cases" in Page(cut.to_html()).one("section", id="cases")["text"]


def test_what_was_not_measured_is_said(report):
    numbers = report.numbers | {"assistance": None, "curves": None}
    numbers["refits"] = numbers["refits"] | {"skipped": "it was <not> asked for"}
    page = Page(type(report)(numbers, report.rows).to_html())
    assert "Not measured: it was <not> asked for." in page.one("section", id="refits")["text"]
    verdict = page.one("section", id="verdict")["text"]
    assert (
        "The model was fitted on these very cases. Its own answers to them prove nothing."
        in verdict
    )
    assert "on which it is surer" in page.one("section", id="reliability")["text"]
    assert "the training cases themselves" in page.one("section", id="drift")["text"]


def test_the_limits_are_those_of_the_case(page, model):
    limits = page.one("section", id="limits")["text"]
    assert "column <u>truth says" in limits
    assert "name the column that says so (--group)" in limits
    assert "A change of how columns go together" not in limits  # these are the training cases
    table = hostile_table() | {
        "patient": [i // 2 for i in range(60)],
        "other": hostile_table()["<script>reader"],
    }
    table["<script>reader"][0] = table["other"][0] = None
    chosen = select_report_cases(table, model, group="patient", humans=["<script>reader", "other"])
    other = Page(case_report(model, chosen, refit_cases=0).to_html())
    limits = other.one("section", id="limits")["text"]
    assert "--group" not in limits
    assert "since cases come in groups" in limits
    assert "The majority of the 2 readers counts" in limits
    assert "Only the 59 cases that a human has answered are judged." in limits


def test_counts_have_the_right_number(report):
    table = report.rows | {"rows": report.rows["rows"][:1], "total": 2, "features_left_out": 1}
    cases = report.numbers["cases"] | {"judged": 1}
    page = Page(type(report)(report.numbers | {"cases": cases}, table).to_html())
    assert "Errors are counted on the 1 case that" in page.one("section", id="compared")["text"]
    assert "1 of the model's columns is not shown" in page.one("section", id="cases")["text"]


# -- the pieces -------------------------------------------------------------------------------


def rendered(source, **values):
    return environment().from_string(source).render(**values)


@settings(max_examples=20)
@given(st.text() | st.sampled_from(HOSTILE))
def test_any_text_is_escaped_and_comes_back(said):
    element = rendered('<p title="{{ said }}">{{ said }}</p>', said=said)
    assert not {"<", ">"} & set(element[3:-4].partition(">")[2])
    page = Page(element.replace("\r", "&#13;"))
    if "\0" not in said:
        assert page.one("p")["text"] == said
        assert page.one("p")["title"] == said
    assert rendered("{{ said }}", said=Markup("<b>")) == "<b>"


@settings(max_examples=50)
@given(st.recursive(st.text() | st.integers() | st.none(), st.lists))
def test_embedded_json_never_ends_its_element(data):
    content = rendered("{{ data | tojson }}", data=data)
    assert not {"<", ">", "&", "\u2028"} & set(content)
    assert content.isascii()
    assert json.loads(content) == data


def test_json_holds_no_number_that_json_does_not_have():
    with pytest.raises(ValueError, match="not JSON compliant"):
        rendered("{{ data | tojson }}", data=[float("nan")])


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="'said' is undefined"):
        rendered("{{ said }}")


def test_tables_escape_names_and_cells():
    found = Page(
        rendered(
            "{% from 'macros.html' import numbers, table %}{% call table(caption, headings) %}"
            "<tr><th>{{ cell }}</th>{{ numbers([1]) }}</tr>{% endcall %}",
            caption="<a>",
            headings=["<b>", "n"],
            cell="<c>",
        )
    )
    assert [e["text"] for e in found.elements if e["tag"] in ("p", "th", "td")] == [
        "<a>",
        "<b>",
        "n",
        "<c>",
        "1",
    ]


@given(st.floats(1e-6, 1.0))
def test_ticks_are_few_and_reach_beyond_the_largest(most):
    found = ticks(most)
    assert 2 <= len(found) <= 6
    assert found[0] == 0.0
    assert found[-1] >= most * (1 - 1e-9)
    assert found[-2] <= most


def test_an_axis_has_some_length():
    assert ticks(0.0) == ticks(5e-324) == ticks(1e-6)


def inside(content):
    """All places of a picture lie in it."""
    page = Page(content)
    width, height = map(float, page.all("svg")[0]["viewbox"].split()[2:])
    pairs = [pair.split(",") for e in page.elements for pair in e.get("points", "").split()]
    for e in page.elements:
        if e["tag"] == "rect":
            x, y, wide, high = (float(e[key]) for key in ("x", "y", "width", "height"))
            pairs += [(x, y), (x + wide, y + high)]
        pairs += [(e[f"x{i}"], e[f"y{i}"]) for i in (1, 2) if f"x{i}" in e]
        pairs += [(e["cx"], e["cy"])] if "cx" in e else []
    for across, down in pairs:
        assert -1 <= float(across) <= width + 1
        assert -1 <= float(down) <= height + 1


ends = st.none() | st.tuples(st.floats(-1, 2), st.floats(-1, 2))


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
    st.lists(st.none() | st.floats(-1, 2), min_size=5, max_size=5),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), ends, ends), max_size=3),
    st.floats(0, 1),
)
@example(y=[5e-324], upper=[None] * 5, points=[], least=0.0)
@example(y=[1.0], upper=[None] * 5, points=[], least=1.0)
def test_points_of_a_chart_lie_inside_the_picture(y, upper, points, least):
    x = np.linspace(0, 0.3, len(y)).tolist()
    line = Line(
        "a", "team", x, y, [None if u is None else u - 1 for u in upper[: len(y)]], upper[: len(y)]
    )
    marks = [Point("p", "human", *point) for point in points]
    inside(chart(Picture("p", "t", "d"), Axes("x", "y", least, least), [line], marks))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-1, 1), ends), min_size=1, max_size=5))
def test_bars_lie_inside_the_picture(bars):
    made = [Bar("a", "team", start, start + by, "1", own) for start, by, own in bars]
    inside(bar_chart(Picture("p", "t", "d"), made, "x"))


shares = st.floats(0.001, 1)


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=12))
def test_spreads_lie_inside_the_picture(pairs):
    content = spread_bars([{"training": one, "now": other} for one, other in pairs])
    inside(content)
    bars = Page(content).all("rect")
    heights = np.reshape([float(bar["height"]) for bar in bars], (-1, 2))
    np.testing.assert_allclose(heights, 19 * np.array(pairs) / np.max(pairs), atol=0.06)


@given(st.floats(-1, 1), st.floats(0, 2), st.floats(0, 2), st.booleans())
def test_bars_of_differences_show_their_sign_and_whether_they_are_supported(
    size, below, above, yes
):
    found = {"difference": size, "lower": size - below, "upper": size + above, "supported": yes}
    content = difference_bar(found, 0.5)
    inside(content)
    kind = Page(content).one("rect")["class"]
    assert kind == ("bar open" if not yes else "bar good" if size < 0 else "bar bad")
