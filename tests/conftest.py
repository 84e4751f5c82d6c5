"""Shared set-up: hypothesis without deadlines, since a busy machine is not a defect."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from trialwise.pages import json_report

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


@cache
def _load_validator() -> Any:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    return Draft202012Validator(json_report.read_report_schema())


@pytest.fixture(autouse=True, scope="session")
def every_report_fits_its_schema() -> Iterator[None]:
    """Compare every JSON report that a test makes in this process with the shipped schema."""
    describe = json_report.describe_report

    @wraps(describe)
    def describe_and_check(*given: Any, **named: Any) -> dict[str, Any]:
        report = describe(*given, **named)
        # What is written is what counts: a tuple is a list there.
        errors = _load_validator().iter_errors(json.loads(json.dumps(report)))
        wrong = [f"{one.json_path}: {one.message[:200]}" for one in errors]
        assert [] == wrong[:3], "the JSON report does not fit `trialwise schema --for report`"
        return report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_report, "describe_report", describe_and_check)
        yield
