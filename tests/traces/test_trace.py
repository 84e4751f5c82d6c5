"""A trace: bounded, written as the envelope of the stability report, and read back as it was."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.model import trace as limits
from trialwise.model.reply import Reply, Usage, read_reply
from trialwise.model.trace import MAX_ARGS, ToolCall, Trace, Turn
from trialwise.services.replay import encode_reply
from trialwise.stats.toolbox.stability_across_runs import agent_stability

#: The envelope that the stability report shows.
DOCUMENTED = {
    "tool_calls": [{"name": "search", "server": "docs", "args": {"q": "a"}}],
    "conversation": {"tokens": {"total": 3000}, "turns": [{"role": "assistant", "content": "..."}]},
}

TEXTS = st.text(max_size=20)
AMOUNTS = st.none() | st.floats(0, 1e9) | st.integers(0, 10**9)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
CALLS = st.builds(
    ToolCall,
    name=st.none() | TEXTS,
    server=st.none() | TEXTS,
    args=VALUES,
    result=st.none() | TEXTS,
    error=st.none() | TEXTS,
    started_s=AMOUNTS,
    duration_s=AMOUNTS,
)
TURNS = st.builds(Turn, role=st.sampled_from(["user", "assistant", ""]), content=TEXTS)
USAGES = st.builds(Usage, input_tokens=st.integers(0, 10**9), output_tokens=st.integers(0, 10**9))
TRACES = st.builds(
    Trace,
    turns=st.lists(TURNS, max_size=4),
    tool_calls=st.lists(CALLS, max_size=4),
    usage=st.none() | USAGES,
    total_tokens=st.none() | st.integers(0, 10**12),
    cost_usd=AMOUNTS,
    duration_s=AMOUNTS,
    answer=st.none() | TEXTS,
    ended=st.none() | TEXTS,
    omitted_turns=st.integers(0, 9),
    omitted_calls=st.integers(0, 9),
)


def test_the_documented_envelope_is_read_and_written() -> None:
    """Every part of it arrives, and nothing is made up."""
    trace = Trace.from_dict(DOCUMENTED)

    assert (ToolCall(name="search", server="docs", args={"q": "a"}),) == trace.tool_calls
    assert (Turn(role="assistant", content="..."),) == trace.turns
    assert (3000, None, None) == (trace.total_tokens, trace.usage, trace.answer)
    assert DOCUMENTED == trace.to_dict()


@given(TRACES)
def test_a_trace_survives_json(trace: Trace) -> None:
    """Written as text and read back it is equal, whatever it holds."""
    assert trace == Trace.from_dict(json.loads(json.dumps(trace.to_dict())))


@given(TRACES)
def test_a_recorded_reply_holds_the_same_trace(trace: Trace) -> None:
    """A recording refuses what JSON would change; a trace in a reply it takes."""
    reply = trace.to_reply()

    assert trace == Trace.of(read_reply(json.loads(json.dumps(encode_reply(reply)))))
    assert reply.details["tool_calls"] == trace.to_dict()["tool_calls"]


@given(TRACES)
def test_the_stability_report_sees_the_same(trace: Trace) -> None:
    """Its reader of envelopes counts what the trace holds."""
    shape = agent_stability(trace.to_dict()).shape

    assert shape is not None
    assert len(trace.tool_calls) == shape.total_calls
    assert trace.assistant_turns == len(shape.assistant_lengths)
    assert (trace.total_tokens or 0) == shape.tokens


@given(VALUES | st.dictionaries(st.sampled_from([*DOCUMENTED, "cost_usd", "omitted"]), VALUES))
def test_no_envelope_makes_reading_raise(envelope: Any) -> None:
    """Missing and malformed parts are absent, but every entry of tool_calls is a call."""
    if not isinstance(envelope, dict):
        with pytest.raises(InvalidArgument, match="envelope must be a mapping"):
            Trace.from_dict(envelope)
        return
    calls = envelope.get("tool_calls")

    found = Trace.from_dict(envelope)
    assert len(found.tool_calls) == (len(calls) if isinstance(calls, list) else 0)


@pytest.mark.parametrize("entry", [None, 5, "search", [], {}, {"name": 5}, {"args": {"q": 1}}])
def test_a_malformed_call_is_a_call_without_a_name(entry: Any) -> None:
    """It may have been any tool, so that no check can say that it was not."""
    (call,) = Trace.from_dict({"tool_calls": [entry]}).tool_calls

    assert call.name is None
    assert None is call.to_dict()["name"]


@pytest.mark.parametrize(
    ("given", "failed", "text"),
    [
        ({"result": "sunny"}, False, "sunny"),
        ({"result": {"high": 75}}, False, '{"high": 75}'),
        ({"result": ""}, False, ""),
        ({"error": "gone"}, True, "gone"),
        ({"error": {"message": "gone", "code": 4}}, True, "gone"),
        ({"error": True}, True, "true"),
        ({"error": False, "result": "x"}, False, "x"),
        ({"error": None}, None, None),
        ({}, None, None),
    ],
)
def test_how_a_call_ended_is_told_by_its_result_or_its_error(
    given: dict[str, Any], failed: bool | None, text: str | None
) -> None:
    """With neither it is unknown, which is not the same as well."""
    (call,) = Trace.from_dict({"tool_calls": [{"name": "a", **given}]}).tool_calls

    assert failed is call.failed
    assert text == (call.error or call.result)


def test_other_words_for_the_same() -> None:
    """`arguments` and `latency_s`, as others write them."""
    (call,) = Trace.from_dict(
        {"tool_calls": [{"name": "a", "arguments": '{"q": 1}', "latency_s": 0.5}]}
    ).tool_calls

    assert ('{"q": 1}', 0.5) == (call.args, call.duration_s)


@pytest.mark.slow
def test_hostile_sizes_are_bounded() -> None:
    """Texts are cut, and what is left out is counted."""
    long = "x" * (2 * limits.MAX_ANSWER)
    trace = Trace.from_dict(
        {
            "tool_calls": [{"name": long, "server": long, "args": {"q": long}, "result": long}]
            * 5000,
            "conversation": {"turns": [{"role": "assistant", "content": long}] * 3000},
            "answer": long,
            "ended": long,
        }
    )

    assert (limits.MAX_CALLS, 5000 - limits.MAX_CALLS) == (
        len(trace.tool_calls),
        trace.omitted_calls,
    )
    assert (limits.MAX_TURNS, 3000 - limits.MAX_TURNS) == (len(trace.turns), trace.omitted_turns)
    assert len(json.dumps(trace.to_dict())) < 40_000_000
    assert trace == Trace.from_dict(trace.to_dict())


def test_cut_arguments_are_no_arguments() -> None:
    """A part of an object is not an object, so that no check reads it as the whole."""
    call = ToolCall(name="a", args={"q": "x" * 10**6})

    assert isinstance(call.args, str)
    assert len(call.args) == limits.MAX_ARGS
    with pytest.raises(ValueError, match="Unterminated string"):
        json.loads(call.args)


@pytest.mark.parametrize("args", [{"a": math.nan}, {"a": object()}, {"a": {1, 2}}])
def test_arguments_that_json_cannot_hold_are_text(args: Any) -> None:
    """They are shown, and they are not an object."""
    assert isinstance(ToolCall(name="a", args=args).args, str)


def test_the_arguments_are_the_traces_own() -> None:
    """Whoever passed them in cannot change them afterwards."""
    args = {"q": [1]}
    call = ToolCall(name="a", args=args)
    args["q"].append(2)

    assert {"q": [1]} == call.args


BUILD: Any = ToolCall


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BUILD(name=5), "name must be text"),
        (lambda: BUILD(name="a", started_s=-1), "started_s must be at least 0"),
        (lambda: BUILD(name="a", duration_s=math.inf), "duration_s must be a finite number"),
        (lambda: Trace(cost_usd=-1.0), "cost_usd must be at least 0"),
        (lambda: Trace(total_tokens=-1), "total_tokens must be a whole number"),
        (lambda: Trace(omitted_calls=-1), "omitted_calls must be a whole number"),
    ],
)
def test_a_trace_cannot_be_built_wrong(build: Any, message: str) -> None:
    """The refusal names the field."""
    with pytest.raises(InvalidArgument, match=message):
        build()


def test_tokens_follow_from_the_usage() -> None:
    """Unless a total of its own is told, which may count more than both directions."""
    usage = Usage(input_tokens=3, output_tokens=4)

    assert 7 == Trace(usage=usage).total_tokens
    assert 9 == Trace(usage=usage, total_tokens=9).total_tokens
    assert Trace().total_tokens is None


def test_a_reply_tells_what_it_can() -> None:
    """The whole trace, its object, or what bare tool calls say; nothing where there is none."""
    trace = Trace(tool_calls=(ToolCall(name="a"),), answer="x", duration_s=2.0)

    assert trace == Trace.of(trace.to_reply())
    assert trace == Trace.of(Reply(value="", details={"trace": trace}))
    bare = Trace.of(Reply(value="x", latency_s=2.0, details={"tool_calls": [{"name": "a"}]}))
    assert trace == bare
    assert Trace.of(Reply(value="x", details={"tool_calls": 5})) is None
    assert Trace.of(Reply(value="x", details={"trace": 5})) is None


def test_part_of_a_token_counts_as_one() -> None:
    """A total that cannot be read would look as if the session had cost nothing."""
    trace = Trace.from_dict({"conversation": {"tokens": {"total": 2999.5}}})

    assert 3000 == trace.total_tokens


def test_a_call_tells_the_turn_that_asked_for_it() -> None:
    """Written and read again; nonsense is no turn."""
    call = ToolCall(name="search", turn=2)

    assert call == ToolCall.from_dict(call.to_dict())
    assert [None] * 3 == [ToolCall.from_dict({"turn": bad}).turn for bad in (0, -1, "two")]


def test_long_arguments_are_told_apart() -> None:
    """Cut, they are equal where all of them were, in whatever order their keys came."""
    long = "x" * 20_000
    first, other = (ToolCall(name="w", args={"a": 1, "text": long + end}) for end in "ab")
    shuffled = ToolCall(name="w", args={"text": long + "a", "a": 1})

    assert first.args != other.args
    assert first.args == shuffled.args
    assert isinstance(first.args, str)
    assert len(first.args) <= MAX_ARGS
