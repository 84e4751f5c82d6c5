"""What of a reply records hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.engine.excerpts import Excerpts
from trialwise.model.reply import Reply
from trialwise.model.trace import ToolCall, Trace
from trialwise.pages.run_report import render_html
from trialwise.pages.stored_runs import build_trials_page
from trialwise.renderers.document_text import render_document_text
from trialwise.stores.runs import RunStore

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


@pytest.mark.parametrize("ended", ["max-turns", "refusal", None])
def test_how_a_session_ended_is_kept(ended: str | None, tmp_path: Path) -> None:
    """In the record, past no redaction, and shown where it did not end in an answer."""
    details = {"trace": Trace(tool_calls=(CALL,), ended=ended)}
    criterion = tw.Criterion("says", tw.contains("x"), never_fails=True)
    contract = tw.Contract(
        "c", lambda _: tw.Reply(value="", details=details), [criterion], sampling=["a"]
    )

    result = tw.run(contract, trials=2, store=tmp_path, progress=False)

    (stored,) = RunStore(tmp_path).list()
    again = RunStore(tmp_path).load(stored.run_id)
    assert [ended] * len(again.trials) == [trial.ended for trial in again.trials]
    assert result.record.trials == again.trials
    shown = render_document_text(build_trials_page(again, limit=1, failing=True))
    assert (f"  session ended  {ended}" in shown) is (ended is not None)
    assert ("session ended" in render_html(again)) is (ended is not None)
