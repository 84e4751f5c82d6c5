"""Sessions that a Python function returns as its framework's own objects.

The classes here have the attributes and methods of the libraries' own, which are not installed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.trial import ErrorClass

NEVER = tw.Criterion("never", tw.tool_not_called("delete"), never_fails=True)
FINDS = tw.Criterion("finds", tw.tool_called_with("find", args={"q": 1}), at_least=0.5)
SAYS = tw.Criterion("says", tw.equals("Done."), at_least=0.5)


def run(returned: Any, *criteria: tw.Criterion, **settings: Any) -> Any:
    contract = tw.Contract("x", lambda _: returned, list(criteria or (NEVER, FINDS, SAYS)))
    settings = {"trials": 6, **settings}
    return tw.run(contract, inputs=["q"], store=None, progress=False, **settings)


class Message:
    """A message of LangChain: a pydantic model with a `type`."""

    def __init__(self, type_: str, content: str, **more: Any) -> None:
        self.type, self.content, self._more = type_, content, more

    def model_dump(self) -> dict[str, Any]:
        return {"type": self.type, "content": self.content, **self._more}


LANGCHAIN = [
    Message("human", "Well?"),
    Message(
        "ai",
        "",
        tool_calls=[{"name": "find", "args": {"q": 1}, "id": "c1", "type": "tool_call"}],
        usage_metadata={"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
    ),
    Message("tool", "found", tool_call_id="c1", status="success"),
    Message(
        "ai", "Done.", usage_metadata={"input_tokens": 30, "output_tokens": 2, "total_tokens": 32}
    ),
]


@dataclass
class Part:
    """A part of a message of Pydantic AI."""

    part_kind: str
    content: Any = None
    tool_name: str | None = None
    args: Any = None
    tool_call_id: str | None = None


@dataclass
class RequestUsage:
    input_tokens: int
    output_tokens: int
    details: dict[str, int] = field(default_factory=dict)


@dataclass
class ModelMessage:
    """A request or a response of Pydantic AI."""

    kind: str
    parts: list[Part]
    usage: RequestUsage | None = None


class AgentRunResult:
    """A result of Pydantic AI."""

    output = "Done."

    def all_messages(self) -> list[ModelMessage]:
        call = Part("tool-call", tool_name="find", args='{"q": 1}', tool_call_id="c1")
        returned = Part("tool-return", "found", tool_name="find", tool_call_id="c1")
        return [
            ModelMessage("request", [Part("user-prompt", "Well?")]),
            ModelMessage("response", [call], RequestUsage(20, 5)),
            ModelMessage("request", [returned]),
            ModelMessage("response", [Part("text", "Done.")], RequestUsage(30, 2)),
        ]


@dataclass
class ModelResponse:
    usage: RequestUsage


class RunResult:
    """A result of the OpenAI Agents SDK."""

    final_output = "Done."
    raw_responses = (ModelResponse(RequestUsage(20, 5)), ModelResponse(RequestUsage(30, 2)))

    def to_input_list(self) -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": "Well?"},
            {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"q": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "found"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Done."}],
            },
        ]


CHAT = [
    {"role": "user", "content": "Well?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": '{"q": 1}'}}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 5},
    },
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
    {
        "role": "assistant",
        "content": "Done.",
        "usage": {"prompt_tokens": 30, "completion_tokens": 2},
    },
]
RETURNED: dict[str, Any] = {
    "langchain messages": LANGCHAIN,
    "a state of langgraph": {"messages": LANGCHAIN, "remaining_steps": 20},
    "pydantic-ai": AgentRunResult(),
    "openai agents": RunResult(),
    "chat messages": CHAT,
    "a trace": tw.read_trace(CHAT),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_a_framework_returns_is_its_session(name: str) -> None:
    result = run(RETURNED[name])
    assert str(result.decision) == "PASS"
    trial = result.trials[0]
    assert trial.reply == "Done."
    assert trial.usage == tw.Usage(input_tokens=50, output_tokens=7)
    assert [call["name"] for call in trial.tool_calls] == ["find"]
    assert trial.latency_s < 1


def test_an_answer_of_an_sdk_is_read() -> None:
    """A chat completion, as the OpenAI client returns it."""
    package = ModuleType("openai")
    source = (
        "class ChatCompletion:\n"
        "    def model_dump(self):\n"
        "        return {'object': 'chat.completion', 'choices': [{'finish_reason': 'stop',\n"
        "            'message': {'role': 'assistant', 'content': 'Done.'}}],\n"
        "            'usage': {'prompt_tokens': 20, 'completion_tokens': 5}}\n"
    )
    exec(compile(source, "openai.py", "exec"), vars(package))
    assert "openai" not in sys.modules
    result = run(package.ChatCompletion(), NEVER, SAYS)
    trial = result.trials[0]
    assert (trial.reply, trial.usage.total_tokens) == ("Done.", 25)
    # It may be the last of a loop that called tools before; `read_trace` says that it is all.
    assert str(result.decision) == "INCONCLUSIVE"
    assert str(run(tw.read_trace(package.ChatCompletion()), NEVER, SAYS).decision) == "PASS"


@pytest.mark.parametrize(
    "last", [LANGCHAIN[-1], [LANGCHAIN[-1]], [{"role": "assistant", "content": "Done."}]]
)
def test_the_last_message_alone_is_not_the_session(last: Any) -> None:
    """`agent.invoke(…)["messages"][-1]` tells no call, although `find` was called before it."""
    never = tw.Criterion("never", tw.tool_not_called("find"), never_fails=True)
    result = run(last, never, SAYS)
    by_name = {one.plan.criterion: str(one.decision) for one in result.verdict.findings}
    assert by_name == {"never": "INCONCLUSIVE", "says": "PASS"}


def test_what_stands_beside_the_messages_of_a_state_is_not_overlooked() -> None:
    state = {"messages": LANGCHAIN, "intermediate_steps": [["delete", "ok"]]}
    assert str(run(state, NEVER, SAYS).decision) == "INCONCLUSIVE"


def test_structured_output_stays_what_it_is() -> None:
    class Structured(AgentRunResult):
        output = {"done": True}  # type: ignore[assignment] # noqa: RUF012

    right = tw.Criterion("right", tw.json_path("$.done", equals=True), at_least=0.5)
    assert str(run(Structured(), right, FINDS).decision) == "PASS"


def test_a_session_that_cannot_be_read_leaves_the_calls_unknown() -> None:
    class Later(AgentRunResult):
        def all_messages(self) -> Any:
            return [{"shape": "of a later version"}]

    trial = run(Later(), NEVER, SAYS).trials[0]
    assert trial.reply == "Done."
    (never,) = [one for one in trial.outcomes if one.criterion == "never"]
    assert never.error_class is ErrorClass.NO_EVIDENCE


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "name": "Ann"}, {"role": "admin", "name": "Bob"}],
        [{"role": "user", "content": "only asked"}],
        {"messages": ["plain", "texts"]},
        {"messages": [{"role": "assistant", "content": "part of a document"}]},
        [1, 2, 3],
        [],
        [object()],
    ],
)
def test_other_values_stay_what_they_are(value: Any) -> None:
    same = tw.Criterion("same", tw.predicate(lambda reply: reply.value is value), at_least=0.5)
    assert str(run(value, same).decision) == "PASS"


def test_an_object_whose_methods_raise_stays_what_it_is() -> None:
    class Broken:
        def all_messages(self) -> Any:
            raise RuntimeError("not yet")

    value = Broken()
    same = tw.Criterion("same", tw.predicate(lambda reply: reply.value is value), at_least=0.5)
    assert str(run(value, same).decision) == "PASS"


class TestUsageCountsEverywhere:
    """Tokens beside a reply count like those of its trace."""

    reply = tw.Reply(
        value="Done.",
        usage=tw.Usage(input_tokens=20_000, output_tokens=5_000),
        details={"tool_calls": [{"name": "find"}], "trace": {"tool_calls": [{"name": "find"}] * 2}},
    )

    def test_in_the_stability_gate(self) -> None:
        """25,000 tokens for one distinct call: 2,000/25,000."""
        contract = tw.Contract("x", lambda _: self.reply, [SAYS], stability=tw.model.Stability())
        result = tw.run(contract, inputs=["q"], trials=6, store=None, progress=False)
        (gate,) = result.verdict.gates
        assert str(gate.decision) == "FAIL"
        runs: Any = gate.evidence
        assert {run.cost_per_progress for run in runs.runs} == {0.08}

    def test_in_the_budget(self) -> None:
        result = run(self.reply, SAYS, trials=40, budget=tw.Budget(tokens=75_000))
        assert result.verdict.spending.tokens == 75_000
        assert str(result.decision) == "INCONCLUSIVE"
