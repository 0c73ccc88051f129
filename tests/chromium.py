"""A real browser for tests of pages."""

import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def chromium():
    """Chromium: that of DEFERLEARN_CHROMIUM, of the system, or playwright's own."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
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
