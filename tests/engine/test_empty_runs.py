"""An empty answer that called no tool is an empty run, as the guide on errors says."""

from __future__ import annotations

from typing import Any

import pytest

import trialwise as tw
from trialwise.model.trial import ErrorClass


@pytest.mark.parametrize(
    ("value", "details", "expected"),
    [
        ("", {"tool_calls": []}, ErrorClass.EMPTY_RUN),
        (" \n", {"trace": {"tool_calls": []}}, ErrorClass.EMPTY_RUN),
        (None, {"tool_calls": []}, ErrorClass.EMPTY_RUN),
        ("done", {"tool_calls": []}, ErrorClass.NONE),
        ("", {"tool_calls": [{"name": "find", "args": {}}]}, ErrorClass.NONE),
        ("", {}, ErrorClass.NONE),
        ("", {"tool_calls": 5}, ErrorClass.NONE),
    ],
)
def test_who_neither_answers_nor_calls_a_tool_did_nothing(
    value: Any, details: dict[str, Any], expected: ErrorClass
) -> None:
    """A service that does not tell its calls may have made some, and a text is an answer."""
    contract = tw.Contract(
        "x",
        lambda _: tw.Reply(value=value, details=details),
        [tw.Criterion("short", tw.length(maximum=9), at_least=0.5)],
    )
    result = tw.run(contract, inputs=["a"], trials=5, store=None, progress=False)

    assert expected is result.trials[0].error_class
