"""Shared set-up: hypothesis without deadlines, since a busy machine is not a defect."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache, wraps
from typing import Any

import pytest
from hypothesis import settings

from trialwise.pages import json_report

settings.register_profile("trialwise", deadline=None, derandomize=True, max_examples=15)
#: `make test-all` asks for it.
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "trialwise"))

#: Parameter sets that a marker `slow` names and no test has.
UNKNOWN_SLOW = pytest.StashKey[set[str]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the marker `slow("one", "two")` from the parameter sets that it does not name."""
    unknown = config.stash.setdefault(UNKNOWN_SLOW, set())
    for item in items:
        for mark in item.iter_markers("slow"):
            test = item.nodeid.partition("[")[0]
            unknown.update(f"{test}[{one}]" for one in mark.args)
    for item in items:
        unknown.discard(item.nodeid)
        named = [mark.args for mark in item.iter_markers("slow")]
        if named and all(named) and not any(item.nodeid.endswith(f"[{one}]") for one in named[0]):
            item.own_markers = [mark for mark in item.own_markers if mark.name != "slow"]


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
