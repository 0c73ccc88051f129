"""People with browsers, whose complaints are collected, and what they do with the keyboard."""

from __future__ import annotations

from contextlib import contextmanager

from deferlearn.desk import sessions
from desk.page_clients import cookie_of

# The machine is shared with other tests.
PATIENCE = 60_000
# A page with more places than this is not for the keyboard.
MOST_TABS = 80


class Visitors:
    """Opens pages for users of a desk; `complaints` collects what a browser has to say about them."""

    def __init__(self, browser, desk, address):
        self.browser, self.desk, self.address = browser, desk, address
        self.cookies, self.contexts, self.complaints = {}, [], []

    def open(self, path, name, role, expert_id=None, width=1280, scheme="light"):
        size = {"width": width, "height": 900}
        context = self.browser.new_context(viewport=size, color_scheme=scheme)
        self.contexts.append(context)
        context.set_default_timeout(PATIENCE)
        if name not in self.cookies:
            self.cookies[name] = cookie_of(self.desk, name, role, expert_id)
        cookie = {"name": sessions.PLAIN_COOKIE, "value": self.cookies[name], "url": self.address}
        context.add_cookies([cookie])
        page = context.new_page()
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self.check_request)
        page.goto(self.address + path)
        return page

    def check_request(self, request):
        if not request.url.startswith(self.address):
            self.complaints.append(f"{request.url} is elsewhere")


@contextmanager
def visitors(browser, desk, address):
    """At the end nothing was complained about, such as a script that the policy forbids."""
    them = Visitors(browser, desk, address)
    yield them
    for context in them.contexts:
        context.close()
    assert them.complaints == []


def look_at(page, axe, rules=None):
    """Anyone can use the page as it is now, by some rules or all, and all of it is on the screen."""
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, page.url
    only = None if rules is None else {"runOnly": {"type": "rule", "values": rules}}
    found = axe.run(page, options=only)
    assert found.violations_count == 0, (page.url, found.generate_report())


def press_on(page, selector, key="Enter"):
    """Reach something by the tabulator, and press a key on it."""
    page.wait_for_selector(selector)
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("text => document.activeElement.matches(text)", selector):
            page.keyboard.press(key)
            return
    raise AssertionError(f"{selector} on {page.url} is out of reach for the keyboard")


def wait_for_title(page, text):
    """Wait until a case is shown, and is not too new for a key: it might be meant for the one before."""
    page.wait_for_function(
        "text => document.querySelector('#case-title')?.textContent === text", arg=text
    )
    page.wait_for_timeout(350)
