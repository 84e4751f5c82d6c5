"""A trace that may hold a call nobody read is not evidence that nothing was called."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

import trialwise as tw
from trialwise.engine.run_state import TrialStart
from trialwise.model.reply import Reply
from trialwise.model.trace import Trace
from trialwise.model.trial import ErrorClass, FailReason

ASKED = {"role": "user", "content": "Delete it?"}
DONE = {"role": "assistant", "content": "Done."}


def spans(*told: dict[str, Any], events: tuple[str, ...] = ()) -> dict[str, Any]:
    """An export with one span for each set of attributes, all in one trace."""
    made = []
    for number, attributes in enumerate(told):
        made.append(
            {
                "traceId": "t",
                "spanId": f"s{number}",
                "startTimeUnixNano": str(number),
                "endTimeUnixNano": str(number + 1),
                "attributes": [
                    {"key": key, "value": _any_value(value)} for key, value in attributes.items()
                ],
                "events": [{"name": name, "attributes": []} for name in events],
            }
        )
    return {"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any_value(one) for one in value]}}
    return {"stringValue": value}


CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}

#: Real shapes in which `delete` was called; each was read as a session without calls.
SHAPES: dict[str, Any] = {
    "vercel ui messages": [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Delete it?"}]},
        {
            "id": "2",
            "role": "assistant",
            "parts": [
                {"type": "tool-delete", "toolCallId": "c1", "state": "output-available"},
                {"type": "text", "text": "Done."},
            ],
        },
    ],
    "an unknown part of gemini's": [
        {"role": "user", "parts": [{"text": "Delete it?"}]},
        {"role": "model", "parts": [{"robotAction": {"name": "delete"}}]},
    ],
    "an unknown block of bedrock's": [
        {"role": "user", "content": [{"text": "Delete it?"}]},
        {"role": "assistant", "content": [{"toolUse": {"name": "look"}}, {"agentStep": {"n": 1}}]},
    ],
    "an unknown item of the responses api": [
        ASKED,
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "item_reference", "id": "fc_1"},
    ],
    "an unknown part of a pydantic-ai message": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Delete it?"}]},
        {"kind": "response", "parts": [{"part_kind": "remote-call", "tool_name": "delete"}]},
    ],
    "tools that openai ran for langchain": [
        {"type": "human", "content": "Delete it?"},
        {
            "type": "ai",
            "content": "Done.",
            "additional_kwargs": {"tool_outputs": [{"type": "mcp_call", "name": "delete"}]},
        },
    ],
    "a server tool in a langchain message": [
        {"type": "human", "content": "Delete it?"},
        {"type": "ai", "content": [{"type": "server_tool_use", "name": "delete"}]},
    ],
    "claude code's result alone": {
        "type": "result",
        "subtype": "success",
        "session_id": "s",
        "result": "Done.",
    },
    "an unknown item of codex": [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"type": "browser_use", "action": "delete"}},
    ],
    "openinference without its messages": spans({"openinference.span.kind": "LLM"}),
    "openinference with hidden messages": spans(
        {"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"}
    ),
    "openinference messages on a chain only": spans(
        {
            "openinference.span.kind": "CHAIN",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "delete",
        },
        {**CHAT, "gen_ai.response.finish_reasons": ["stop"]},
    ),
    "vercel without its outputs": spans(
        {"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "m"}
    ),
    "a text beside a hidden call": spans(
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.response.text": "Let me see.",
            "ai.response.finishReason": "tool-calls",
        }
    ),
    "chat span without content": spans(CHAT),
    "gen_ai.choice events": spans(
        {**CHAT, "gen_ai.response.finish_reasons": ["stop"]}, events=("gen_ai.choice",)
    ),
    "invoke_agent only": spans({"gen_ai.operation.name": "invoke_agent"}),
    "smolagents memory": [
        {"role": "user", "content": [{"type": "text", "text": "Delete it?"}]},
        {"role": "tool-call", "content": [{"type": "text", "text": "Calling tools: delete"}]},
        {"role": "tool-response", "content": [{"type": "text", "text": "ok"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ],
    "inspect server tool": {
        "epoch": 1,
        "messages": [
            ASKED,
            {"role": "assistant", "content": [{"type": "tool_use", "name": "delete"}]},
        ],
    },
    "a message that is not an object": {"messages": [ASKED, "delete()", DONE]},
    "an unknown anthropic block": {
        "messages": [
            ASKED,
            {
                "role": "assistant",
                "content": [
                    {"type": "computer_use", "name": "delete"},
                    {"type": "tool_use", "id": "t", "name": "look", "input": {}},
                ],
            },
        ]
    },
    "a reply that ended with a call it does not show": {
        "messages": [ASKED],
        "choices": [
            {"finish_reason": "tool_calls", "message": {"role": "assistant", "content": None}}
        ],
    },
    "google's reply without its messages": spans(
        {**CHAT, "gen_ai.provider.name": "gcp.gemini", "gen_ai.response.finish_reasons": ["STOP"]}
    ),
    "an unknown operation": spans({"gen_ai.operation.name": "converse"}),
    "an unknown part of an output message": spans(
        {
            **CHAT,
            "gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "parts": [{"type": "server_tool", "name": "delete"}]}]
            ),
        }
    ),
    "an envelope without calls": {"conversation": {"turns": [DONE]}},
    "the last message alone": [DONE],
    "the last messages, a result first": [
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "ok"},
        DONE,
    ],
    "the last message of langchain": [{"type": "ai", "content": "Done."}],
    "the last message of gemini": [{"role": "model", "parts": [{"text": "Done."}]}],
    "the last message of pydantic-ai": [
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]}
    ],
    "the last items of the responses api": [
        {"type": "mcp_list_tools", "server_label": "files"},
        {"type": "message", "role": "assistant", "content": "Done."},
    ],
    "the last reply of anthropic's in a list": [
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    ],
    "steps beside the messages": {
        "messages": [ASKED, DONE],
        "intermediate_steps": [["delete", "ok"]],
    },
    "steps beside the messages of langchain": {
        "messages": [{"type": "human", "content": "?"}, {"type": "ai", "content": "Done."}],
        "intermediate_steps": [["delete", "ok"]],
    },
    "calls that google's client made itself": {
        "contents": [{"role": "user", "parts": [{"text": "Delete it?"}]}],
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}}],
        "automatic_function_calling_history": [{"role": "model", "parts": [{"x": 1}]}],
    },
    "an action beside the messages": {"messages": [ASKED, DONE], "next_action": "delete"},
    "an action as text": [ASKED, {**DONE, "action": "delete", "action_input": "a.txt"}],
    "a tool as text, in camel case": [ASKED, {**DONE, "toolName": "delete"}],
    "an action in a part of text": [
        ASKED,
        {"role": "assistant", "content": [{"type": "text", "text": "Done.", "action": "delete"}]},
    ],
    "a part of data": [
        ASKED,
        {"role": "assistant", "content": [{"type": "data", "data": {"call": "delete"}}]},
    ],
    "an action among langchain's extras": [
        {"type": "human", "content": "?"},
        {"type": "ai", "content": "Done.", "additional_kwargs": {"action": "delete"}},
    ],
    "a compacted session of claude code": [
        {"type": "system", "subtype": "compact_boundary", "session_id": "s"},
        {"type": "user", "message": ASKED},
        {"type": "assistant", "message": {"id": "m", **DONE}},
    ],
    "a session of claude code that begins with a summary": [
        {"type": "user", "isCompactSummary": True, "message": ASKED},
        {"type": "assistant", "message": {"id": "m", **DONE}},
    ],
    "a compacted session of pydantic-ai": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "?"}]},
        {"kind": "response", "parts": [{"part_kind": "compaction", "content": "…"}]},
    ],
}

#: Checks about calls, each of which would hold, or could be turned to hold, without the call.
CHECKS = {
    "not called": tw.tool_not_called("delete"),
    "count": tw.tool_call_count(maximum=1),
    "not (called)": tw.not_(tw.tool_called("delete")),
    "any of": tw.any_of(tw.tool_not_called("delete"), tw.contains("never said")),
    "all of": tw.all_of(tw.length(minimum=0), tw.tool_not_called("delete")),
    "repeats": tw.max_repeated_failures(0),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_that_is_not_read_leaves_the_calls_unknown(shape: str) -> None:
    trace = tw.read_trace(SHAPES[shape])
    assert trace.calls_unknown
    assert Trace.from_dict(trace.to_dict()) == trace


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("check", CHECKS)
def test_no_check_about_calls_passes_on_a_trace_that_does_not_tell_them(
    shape: str, check: str
) -> None:
    result = CHECKS[check].check(tw.read_trace(SHAPES[shape]).to_reply())
    assert not result.passed
    assert result.reason in (FailReason.UNKNOWN, FailReason.TRANSFORM)


@pytest.mark.parametrize(
    "settings", [{}, {"trials": 5}, {"trials": 30, "analysis": "per-protocol"}]
)
def test_a_run_on_unknown_calls_is_not_measured_and_never_passes(settings: dict[str, Any]) -> None:
    trace = tw.read_trace(SHAPES["smolagents memory"])
    criteria = [
        tw.Criterion("never", tw.tool_not_called("delete"), never_fails=True),
        tw.Criterion("rate", tw.tool_not_called("delete"), at_least=0.5),
        tw.Criterion("answer", tw.contains("Done"), at_least=0.5),
    ]
    contract = tw.Contract("x", lambda _: trace.to_reply(), criteria)
    result = tw.run(contract, inputs=["q"], store=None, progress=False, **settings)
    by_name = {one.plan.criterion: one for one in result.verdict.findings}
    assert str(result.decision) == "INCONCLUSIVE"
    assert str(by_name["never"].decision) == str(by_name["rate"].decision) == "INCONCLUSIVE"
    shown = io.StringIO()
    result.show(stream=shown)
    assert "measured" in shown.getvalue()
    assert "does not tell" in " ".join(shown.getvalue().split())


def test_a_call_that_is_seen_fails_although_others_may_be_hidden() -> None:
    trace = tw.read_trace(
        [
            ASKED,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "function": {"name": "delete"}}],
            },
            {"role": "critic", "content": "Hm."},
        ]
    )
    result = tw.tool_not_called("delete").check(trace.to_reply())
    assert trace.calls_unknown
    assert result.reason is FailReason.CONDITION


def test_a_sure_failure_of_another_check_of_the_criterion_counts() -> None:
    trace = tw.read_trace(SHAPES["smolagents memory"])
    both = [tw.tool_not_called("delete"), tw.contains("never said")]
    contract = tw.Contract("x", lambda _: trace.to_reply(), [tw.Criterion("c", both, at_least=0.5)])
    result = tw.run(contract, inputs=["q"], trials=10, store=None, progress=False)
    assert str(result.decision) == "FAIL"


def test_a_session_with_unknown_calls_has_no_shape_for_stability() -> None:
    from trialwise.engine.attempt import Response
    from trialwise.engine.excerpts import Excerpts
    from trialwise.engine.reply_checking import ReplyChecker
    from trialwise.model.claim import Input

    criterion = tw.Criterion("n", tw.tool_not_called("delete"), never_fails=True)
    checker = ReplyChecker(
        "x", [criterion], activity=None, excerpts=Excerpts(reply_limit=100, redact=None)
    )
    shapes = {}
    traces = {
        "known": tw.read_trace([ASKED, DONE]),
        "unknown": tw.read_trace(SHAPES["vercel ui messages"]),
        "too long": Trace(tool_calls=(tw.ToolCall(name="look"),) * 1001),
    }
    for name, trace in traces.items():
        reply: Reply = trace.to_reply()
        response = Response(reply=reply)
        trial = checker.trial(TrialStart(0, 0, 0, 1), Input(id="1", value="q"), response, 0.0)
        shapes[name] = trial.shape
        (outcome,) = trial.outcomes
        expected = ErrorClass.NONE if name == "known" else ErrorClass.NO_EVIDENCE
        assert outcome.error_class is expected
    assert shapes["known"] is not None
    assert shapes["unknown"] is None
    assert shapes["too long"] is None


READ: dict[str, Any] = {
    "plain conversation": [ASKED, DONE],
    "a refusal and an image": [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
        {"role": "assistant", "content": None, "refusal": "no", "annotations": [], "audio": None},
    ],
    "litellm's empty fields": [
        ASKED,
        {**DONE, "provider_specific_fields": {"refusal": None}, "tool_calls": None},
    ],
    "anthropic with thinking": {
        "messages": [
            ASKED,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
        ],
        "id": "m",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Done."}],
        "stop_reason": "end_turn",
    },
    "span that ended without a call": spans({**CHAT, "gen_ai.response.finish_reasons": ["stop"]}),
    "span with its messages": spans(
        {
            **CHAT,
            "llm.request.type": "chat",
            "gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]
            ),
        }
    ),
    "envelope": {"tool_calls": [], "conversation": {"turns": [DONE]}},
    "a model that greets first": [{"role": "assistant", "content": "Hello."}, ASKED, DONE],
    "a request with its usual fields": {
        "model": "m",
        "messages": [ASKED, DONE],
        "tools": [{"type": "function", "function": {"name": "delete"}}],
        "tool_choice": "auto",
        "metadata": {"run": "7"},
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    },
    "a response that its reader was given as all": {
        "choices": [{"finish_reason": "stop", "message": DONE}, {"message": DONE}]
    },
}


CALL = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "delete"}}]}


@pytest.mark.parametrize(
    "document",
    [
        {"messages": [ASKED], "choices": [{"message": DONE}, {"message": CALL}]},
        {"choices": [{"message": CALL}, {"message": DONE}, {"message": DONE}]},
        {
            "contents": [{"role": "user", "parts": [{"text": "?"}]}],
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "Done."}]}},
                {"content": {"role": "model", "parts": [{"functionCall": {"name": "delete"}}]}},
            ],
        },
    ],
)
def test_the_calls_of_every_choice_count(document: Any) -> None:
    """With `n=2` a model may call a tool in its second choice only."""
    trace = tw.read_trace(document)
    assert [one.name for one in trace.tool_calls] == ["delete"]
    assert tw.tool_not_called("delete").check(trace.to_reply()).reason is FailReason.CONDITION


def test_the_answer_and_the_tokens_of_several_choices_are_told_once() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 7}
    other = {"role": "assistant", "content": "Or so."}
    document = {"messages": [ASKED], "choices": [{"message": DONE}, {"message": other}]}
    trace = tw.read_trace({**document, "usage": usage})
    assert (trace.answer, trace.total_tokens, trace.assistant_turns) == ("Done.", 12, 1)


@pytest.mark.parametrize(
    ("name", "is_meant"),
    [
        ("delete", True),
        ("functions.delete", True),
        ("default_api:delete", True),
        ("files/delete", True),
        ("mcp__files__delete", True),
        ("undelete", False),
        ("soft__delete", False),
        ("delete.later", False),
    ],
)
def test_a_tool_is_known_by_its_name_without_the_namespace(name: str, is_meant: bool) -> None:
    """Harmony, Gemini and Claude Code write a namespace before the name of a tool."""
    reply = Reply(value="", details={"tool_calls": [{"name": name, "args": {"path": "a"}}]})
    assert tw.tool_not_called("delete").check(reply).passed is not is_meant
    assert tw.tool_called("delete").check(reply).passed is is_meant
    assert tw.tool_called_with("delete", {"path": "a"}).check(reply).passed is is_meant
    assert tw.tools_in_order(["delete"]).check(reply).passed is is_meant
    assert tw.tools_in_order(["delete"], exact=True).check(reply).passed is is_meant


@pytest.mark.parametrize("shape", READ)
def test_what_is_read_whole_tells_that_nothing_was_called(shape: str) -> None:
    trace = tw.read_trace(READ[shape])
    assert trace.calls_unknown is None
    assert tw.tool_not_called("delete").check(trace.to_reply()).passed
