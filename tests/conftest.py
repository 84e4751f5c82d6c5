"""Shared set-up: hypothesis without deadlines, since a busy machine is not a defect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("trialwise", deadline=None, derandomize=True, max_examples=15)
#: `make test-all` asks for it.
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "trialwise"))

#: The names of tests that `make test` leaves out, one on a line.
SLOW_TESTS = Path(__file__).with_name("slow_tests.txt")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests as slow that the list names."""
    lines = SLOW_TESTS.read_text(encoding="utf-8").splitlines()
    slow = {line for line in lines if line and not line.startswith("#")}
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
