"""What of a reply records hold."""

from __future__ import annotations

from typing import Any

import pytest

from trialwise.engine.excerpts import Excerpts
from trialwise.model.reply import Reply
from trialwise.model.trace import ToolCall, Trace

CALL = ToolCall(name="find", server="shop", args={"key": "hunter2"}, error="no hunter2")


@pytest.mark.parametrize("form", [Trace(tool_calls=(CALL,)), Trace(tool_calls=(CALL,)).to_dict()])
def test_the_calls_of_a_trace_are_kept(form: Any) -> None:
    """Where a reply carries a trace and no list of calls; past no redaction."""
    excerpts = Excerpts(reply_limit=0, redact=lambda text: text.replace("hunter2", "***"))

    (kept,) = excerpts.tool_calls(Reply(value="", details={"trace": form}))

    assert {"name": "find", "server": "shop", "args": {"key": "***"}, "error": "no ***"} == kept


def test_a_list_of_calls_goes_before_a_trace() -> None:
    """It is what the service says they were."""
    details = {"tool_calls": [{"name": "other"}], "trace": Trace(tool_calls=(CALL,))}

    kept = Excerpts(reply_limit=0, redact=None).tool_calls(Reply(value="", details=details))

    assert ({"name": "other"},) == kept
