"""A project with a suite, for every executor."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.executors.worker_projects import write_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a suite and the function that it tests."""
    write_project(tmp_path)
    return tmp_path
