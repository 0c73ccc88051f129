"""Anyone can use every page of the desk, on any screen, by day and by night, says axe-core.

It is part of axe-playwright-python.
"""

import shutil

import pytest

from chromium import chromium
from deferlearn.desk import audit
from deferlearn.desk.database import Database
from deferlearn.desk.display import Display, change_display
from desk.browsing import look_at, visitors
from desk.page_clients import app_of
from desk.running import served
from desk.stub_desk import SECRET, add_model, send, stub_desk

REPORT = "Cough for three weeks.\nNo weight loss. " + "Breath sounds are normal. " * 20
PAGES = [
    "/work",
    "/work/history",
    "/today",
    "/monitoring",
    "/cases",
    "/cases/1",
    "/experts",
    "/experts/1",
    "/models",
    "/models/2",
    "/import",
    "/export",
    "/users",
    "/keys",
    "/fields",
    "/rules",
    "/log",
    "/login",
    "/welcome",
]


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def desk(sqlite_template, tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "desk.db"
    shutil.copy(sqlite_template, path)
    database = Database(f"sqlite:///{path}", options=audit.key_options(SECRET))
    desk = stub_desk(database, {"Ann": 40, "Dr. Ben Hernández-Whitfield": 40, "Arbiter": 20})
    add_model(database, "second", active=False)
    display = Display(
        kinds={"gain": "hidden", "answer": "hidden", "scan": "image"},
        groups={"temperature": "Measured", "pulse": "Measured", "report": "Told"},
    )
    database.write(lambda c: change_display(c, display, actor="test", version=0))
    for number in range(60):  # so many that the effect of a capacity can be foretold
        send(desk, f"old {number}", gain=-0.1 if number % 4 else 0.2, answer="well")
    yield desk
    database.close()


@pytest.mark.parametrize(
    ("width", "scheme", "other"), [(1280, "light", "dark"), (400, "dark", "light")]
)
def test_anyone_can_use_every_page(desk, browser, width, scheme, other):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    seen = {"temperature": 38.2, "pulse": 90, "report": REPORT, "scan": "/static/icon.svg"}
    send(desk, f"seen {width}", gain=0.4, **seen)
    with served(app_of(desk)) as address, visitors(browser, desk, address) as people:
        page = people.open("/work", f"ada {width}", "admin", 3, width, scheme)
        for path in PAGES:
            page.goto(address + path)
            if path == "/work":
                page.wait_for_function(
                    "() => document.querySelector('.image img')?.naturalWidth > 0"
                )
            look_at(page, axe)
            # Only colours differ between day and night.
            page.emulate_media(color_scheme=other)
            look_at(page, axe, rules=["color-contrast"])
            page.emulate_media(color_scheme=scheme)
