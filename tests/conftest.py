"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("deferlearn", deadline=None)
settings.load_profile("deferlearn")


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
