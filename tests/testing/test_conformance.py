"""The conformance tests for other people's extensions: ours pass them, and mistakes do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import anyio
import pytest

from trialwise import checks
from trialwise.checks import Check
from trialwise.engine.ports import TrialContext
from trialwise.model.reply import Reply
from trialwise.model.trace import ToolCall, Trace
from trialwise.model.trial import CheckResult
from trialwise.model.verdict import Decision
from trialwise.reports.formats import BUILT_IN, ReportFormat
from trialwise.services import CallableService, CommandService
from trialwise.testing import (
    ScriptedService,
    VirtualClock,
    assert_check_conforms,
    assert_report_format_conforms,
    assert_service_conforms,
    assert_trace_reader_conforms,
    example_records,
)
from trialwise.traces import read_traces


@pytest.mark.parametrize(
    ("constructor", "given", "failing"),
    [
        (checks.contains, {"text": "a"}, "b"),
        (checks.length, {"minimum": 1, "maximum": 9}, ""),
        (checks.equals, {"expected": {"a": 1}}, {"a": 2}),
        (checks.matches, {"pattern": "a+"}, "b"),
        (checks.max_latency, {"seconds": 2.0}, Reply(value="a", latency_s=3.0)),
        (checks.tool_called, {"tool": "search", "minimum": 2}, "b"),
        (checks.json_schema, {"schema": {"type": "object"}}, "[]"),
    ],
)
def test_a_built_in_check_conforms(
    constructor: Callable[..., Any], given: dict[str, Any], failing: object
) -> None:
    assert_check_conforms(constructor, [given], failing=[failing])


@dataclass(frozen=True, slots=True)
class Fine(Check):
    """The reply is fine.

    Args:
        word: What it says.
    """

    spelling: ClassVar[str] = "fine"

    word: str = "fine"

    @property
    def name(self) -> str:
        return f"says {self.word}"

    def _examine(self, reply: Reply) -> CheckResult:
        return CheckResult.fail("it is bad") if reply.value == "bad" else CheckResult.ok()


@dataclass(frozen=True, slots=True)
class Undocumented(Fine):
    """The reply is fine."""


@dataclass(frozen=True, slots=True)
class Raising(Fine):
    """The reply is fine.

    Args:
        word: What it says.
    """

    def check(self, reply: Reply) -> CheckResult:  # noqa: ARG002
        raise KeyError(self.word)


@dataclass(frozen=True, slots=True)
class Lossy(Fine):
    """The reply is fine.

    Args:
        word: What it says.
    """

    def to_dict(self) -> dict[str, Any]:
        return {self.spelling: "something else"}


@dataclass(frozen=True, slots=True, eq=False)
class Identity(Fine):
    """The reply is fine.

    Args:
        word: What it says.
    """

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def test_a_check_of_ones_own_conforms() -> None:
    assert_check_conforms(Fine, [{}, {"word": "good"}], failing=["fine", "bad"])


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (Undocumented, "says nothing of 'word' under Args"),
        (Lossy, "is written as 'something else'"),
        (Identity, "differs from one with the same arguments"),
        (lambda: 5, "must derive from trialwise.checks.Check"),
    ],
)
def test_a_check_that_does_not_conform_is_named(check: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_check_conforms(check, [{}], failing=["bad"])


def test_a_check_that_raises_does_not_conform() -> None:
    with pytest.raises(KeyError):
        assert_check_conforms(Raising, [{}], failing=["bad"])


@dataclass(frozen=True, slots=True)
class RaisingWhereItFails(Fine):
    """The reply is fine.

    Args:
        word: What it says.
    """

    def _examine(self, reply: Reply) -> CheckResult:
        if reply.value == "bad":
            raise KeyError(self.word)
        return CheckResult.ok()


def test_a_check_has_to_fail_a_reply_that_ought_to_fail() -> None:
    """A branch that nobody takes hides its mistakes."""
    with pytest.raises(AssertionError, match="says fine of 'bad' raised KeyError: 'fine'"):
        assert_check_conforms(RaisingWhereItFails, [{}], failing=["bad"])
    with pytest.raises(AssertionError, match=r"says fine with \{\} fails none of the replies"):
        assert_check_conforms(Fine, [{}], failing=["good"])
    with pytest.raises(AssertionError, match="give at least one reply that fails"):
        assert_check_conforms(Fine, [{}], failing=[])


def test_services_conform() -> None:
    assert_service_conforms(lambda: CallableService(str.upper), ["a", "b"])
    assert_service_conforms(lambda: CommandService(["printf", "{input}"]), ["a", "b"])
    assert_service_conforms(lambda: ScriptedService(["yes", "no"]), ["a", "b", "c"])


class _Silent(ScriptedService):
    async def call(self, trial: TrialContext) -> Any:  # noqa: ARG002
        return "no reply"


class _Deaf(ScriptedService):
    async def call(self, trial: TrialContext) -> Reply:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.3)
        return await super().call(trial)


def test_a_service_that_does_not_conform_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="'a' is 'no reply', not a Reply"):
        assert_service_conforms(lambda: _Silent(["yes"]), ["a"])
    monkeypatch.setattr("trialwise.testing.extension_conformance._PATIENCE_S", 0.1)
    with pytest.raises(AssertionError, match="a cancelled call took"):
        assert_service_conforms(lambda: _Deaf(["yes"]), ["a"])


@pytest.mark.slow
def test_the_example_records_hold_every_decision() -> None:
    found = {record.verdict.decision for record in example_records()}

    assert {Decision.PASS, Decision.FAIL, Decision.INCONCLUSIVE} == found


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_format_conforms(name: str) -> None:
    assert_report_format_conforms(BUILT_IN[name])


def test_a_format_that_does_not_conform_is_named() -> None:
    empty = ReportFormat(name="x", endings=(), summary="x", render=lambda _: " ", key="x")
    with pytest.raises(AssertionError, match="x says nothing of 1 runs"):
        assert_report_format_conforms(empty)


def test_a_scripted_service_plays_its_script_again() -> None:
    service = ScriptedService([1, Reply(value=2), ValueError("three")])

    def ask(index: int) -> Any:
        return anyio.run(service.call, TrialContext(index=index, input="x", seed=index)).value

    assert [1, 2, 1] == [ask(0), ask(1), ask(3)]
    with pytest.raises(ValueError, match="three"):
        ask(5)


def test_a_virtual_clock_counts_what_was_waited() -> None:
    clock = VirtualClock()
    anyio.run(clock.sleep, 3.0)
    clock.advance(1.0)

    assert (4.0, [3.0], 4.0) == (clock.monotonic(), clock.waits, clock())
    assert 4.0 == (clock.now() - VirtualClock().now()).total_seconds()


SESSION = [
    {"role": "user", "content": "A table for two"},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "Let me look."}],
        "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "table 4"},
]


def read_calls(document: Any) -> list[Trace]:
    """A reader that expects every document to be as documented."""
    return [Trace(tool_calls=tuple(ToolCall(name=one["name"]) for one in document["calls"]))]


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_built_in_trace_reader_conforms(format: str) -> None:  # noqa: A002
    assert_trace_reader_conforms(lambda document: read_traces(document, format), [SESSION])


def test_a_trace_reader_that_trusts_its_documents_does_not_conform() -> None:
    with pytest.raises(AssertionError, match=r"reading .* raises TypeError"):
        assert_trace_reader_conforms(read_calls, [{"calls": [{"name": "find"}]}])


def test_a_trace_reader_that_finds_nothing_does_not_conform() -> None:
    with pytest.raises(AssertionError, match="no trace is found"):
        assert_trace_reader_conforms(lambda _: [], [SESSION])


def test_a_trace_reader_that_changes_its_document_does_not_conform() -> None:
    def read(document: Any) -> list[Trace]:
        document.append({})
        return [Trace()]

    with pytest.raises(AssertionError, match="reading changes"):
        assert_trace_reader_conforms(read, [[1]])
