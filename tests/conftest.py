"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def authors_data() -> Path:
    """Folder with the authors' data files; a test that asks for it is skipped without one."""
    folder = os.environ.get("DEFERLEARN_DATA")
    if not folder:
        pytest.skip("DEFERLEARN_DATA names no folder with the authors' data files")
    return Path(folder)


@pytest.fixture(scope="session")
def authors_results() -> Path:
    """Folder with the authors' result files; a test that asks for it is skipped without one."""
    folder = os.environ.get("DEFERLEARN_RESULTS")
    if not folder:
        pytest.skip("DEFERLEARN_RESULTS names no folder with the authors' result files")
    return Path(folder)
