"""Calls that the Responses API makes itself, and replies in spans of OpenTelemetry."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

import trialwise as tw
from trialwise.traces import read_trace

ARGS = {"path": "a.txt"}


def otlp(*told: dict[str, Any], parents: dict[int, int] | None = None) -> dict[str, Any]:
    """An export with one span for each set of attributes, in the order of their times."""
    made = [
        {
            "traceId": "t",
            "spanId": f"s{number}",
            "parentSpanId": f"s{(parents or {})[number]}" if number in (parents or {}) else "",
            "startTimeUnixNano": str(number * 10**9),
            "endTimeUnixNano": str((number + 1) * 10**9),
            "attributes": [
                {
                    "key": name,
                    "value": {"intValue" if isinstance(value, int) else "stringValue": value},
                }
                for name, value in attributes.items()
            ],
        }
        for number, attributes in enumerate(told)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}


@pytest.mark.parametrize(
    ("item", "call"),
    [
        (
            {
                "type": "mcp_call",
                "name": "f",
                "server_label": "s",
                "arguments": "{}",
                "output": "x",
            },
            ("f", "s", "x", None),
        ),
        (
            {"type": "mcp_call", "name": "f", "server_label": "s", "error": "gone"},
            ("f", "s", None, "gone"),
        ),
        (
            {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "q"}},
            ("web_search", None, "", None),
        ),
        (
            {"type": "code_interpreter_call", "id": "w", "status": "failed", "code": "1/0"},
            ("code_interpreter", None, None, "the call is failed"),
        ),
    ],
)
def test_tools_that_the_responses_api_runs_are_calls(
    item: dict[str, Any], call: tuple[Any, ...]
) -> None:
    (found,) = read_trace([{"role": "user", "content": "Go."}, item]).tool_calls
    assert (found.name, found.server, found.result, found.error) == call


class TestTwoSpansOfOneReply:
    """An SDK and an instrumentation around it may each write a span of the same reply."""

    told: ClassVar = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 22,
        "gen_ai.usage.output_tokens": 14,
    }
    messages = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}])

    def test_they_are_one_by_their_response(self) -> None:
        key = {"gen_ai.response.id": "msg_1"}
        with_text = {**self.told, **key, "gen_ai.output.messages": self.messages}
        for spans in ((with_text, {**self.told, **key}), ({**self.told, **key}, with_text)):
            trace = read_trace(otlp(*spans))
            assert trace.usage == tw.Usage(input_tokens=22, output_tokens=14)
            assert (trace.answer, trace.calls_unknown, len(trace.turns)) == ("Done.", None, 1)

    def test_they_are_one_where_one_lies_within_the_other(self) -> None:
        inner = {**self.told, "gen_ai.output.messages": self.messages}
        trace = read_trace(otlp(self.told, inner, parents={1: 0}))
        assert (trace.total_tokens, trace.answer) == (36, "Done.")

    def test_a_span_around_several_replies_is_none(self) -> None:
        inner = {**self.told, "gen_ai.output.messages": self.messages}
        trace = read_trace(otlp(self.told, inner, inner, parents={1: 0, 2: 0}))
        assert (trace.total_tokens, len(trace.turns)) == (72, 2)

    def test_replies_one_after_the_other_are_two(self) -> None:
        assert read_trace(otlp(self.told, self.told)).total_tokens == 72


class PrintedSpan:
    """A span of OpenTelemetry's SDK for Python, as far as it prints itself."""

    def __init__(self, number: int, parent: int | None, **attributes: Any) -> None:
        told = {name.replace("__", "."): value for name, value in attributes.items()}
        self.document: dict[str, Any] = {
            "name": "span",
            "context": {
                "trace_id": "0x5b8aa5a2d2c872e8321cf37308d69df2",
                "span_id": f"0x{number:016x}",
                "trace_state": "[]",
            },
            "kind": "SpanKind.INTERNAL",
            "parent_id": None if parent is None else f"0x{parent:016x}",
            "start_time": f"2026-01-01T00:00:{number:02}.000000Z",
            "end_time": f"2026-01-01T00:00:{number + 1:02}.000000Z",
            "status": {"status_code": "UNSET"},
            "attributes": told,
            "events": [],
            "links": [],
            "resource": {"attributes": {"service.name": "agent"}, "schema_url": ""},
        }

    def get_span_context(self) -> Any:
        return self.document["context"]

    def to_json(self, indent: int | None = 4) -> str:
        return json.dumps(self.document, indent=indent)


def _say(**part: Any) -> dict[str, Any]:
    return {
        "gen_ai__operation__name": "chat",
        "gen_ai__output__messages": json.dumps([{"role": "assistant", "parts": [part]}]),
        "gen_ai__usage__input_tokens": 25,
        "gen_ai__usage__output_tokens": 3,
    }


class TestSpansOfThePythonSdk:
    """Spans as OpenTelemetry's own SDK prints them."""

    def spans(self) -> list[PrintedSpan]:
        return [
            PrintedSpan(1, 0, **_say(type="tool_call", id="c1", name="delete", arguments=ARGS)),
            PrintedSpan(
                2,
                0,
                gen_ai__operation__name="execute_tool",
                gen_ai__tool__name="delete",
                gen_ai__tool__call__id="c1",
            ),
            PrintedSpan(3, 0, **_say(type="text", content="Done.")),
            PrintedSpan(0, None, gen_ai__operation__name="invoke_agent"),
        ]

    def check(self, trace: Any) -> None:
        assert trace.calls_unknown is None
        assert [(call.name, call.args) for call in trace.tool_calls] == [("delete", ARGS)]
        assert (trace.answer, trace.total_tokens) == ("Done.", 56)
        assert trace.duration_s is not None

    def test_they_are_read_as_json_as_lines_and_as_objects(self) -> None:
        spans = self.spans()
        self.check(read_trace([json.loads(span.to_json()) for span in spans]))
        self.check(read_trace("\n".join(span.to_json(indent=None) for span in spans)))
        self.check(read_trace(spans))

    def test_the_output_of_the_console_exporter_is_read(self) -> None:
        printed = "".join(f"{span.to_json()}\n" for span in self.spans())
        self.check(read_trace(printed))

    def test_a_failed_tool_is_a_failed_call(self) -> None:
        span = self.spans()[1]
        span.document["status"] = {"status_code": "ERROR", "description": "no such file"}
        assert read_trace([span.document]).tool_calls[0].error == "no such file"
