"""Programs and endpoints that report their own session, tokens, cost, setup and errors."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.trial import ErrorClass
from trialwise.services import CommandService, HttpService
from trialwise.suite import load_suite

Serve = Callable[[Callable[[Any], None]], str]

#: The envelope of the stability report, as its page shows it.
ENVELOPE = {
    "tool_calls": [{"name": "search", "server": "docs", "args": {"q": "a"}}],
    "conversation": {
        "tokens": {"total": 3000},
        "turns": [{"role": "assistant", "content": "It is 555."}],
    },
}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "What is 15 * 37?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "search", "arguments": '{"q": "a"}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "555"},
    {"role": "assistant", "content": "It is 555."},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "What is 15 * 37?"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "search", "input": {"q": "a"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "555"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "It is 555."}]},
]
FORMATS: dict[str, Any] = {"envelope": ENVELOPE, "chat": CHAT, "anthropic": ANTHROPIC}

CALLS = tw.Criterion("calls", tw.tool_called_with("search", args={"q": "a"}), at_least=0.5)
NEVER = tw.Criterion("never", tw.tool_not_called("delete"), never_fails=True)
SAYS = tw.Criterion("says", tw.contains("555"), at_least=0.5)


def say(document: Any, **places: Any) -> CommandService:
    """A shell script that prints a document, and where the suite looks in it."""
    script = f"printf %s {shlex.quote(json.dumps(document))}"
    return CommandService(["sh", "-c", script], input_via="environment", **places)


def run(service: Any, *criteria: tw.Criterion, **settings: Any) -> Any:
    contract = tw.Contract("agent", service, list(criteria or (CALLS, NEVER, SAYS)))
    settings = {"trials": 6, "progress": False, "store": None, **settings}
    return tw.run(contract, inputs=["What is 15 * 37?"], **settings)


@pytest.mark.requirement(
    "stability input",
    "The sub-scores read the trace envelope that an agent leaves.",
    "`trace: $.trace` on a `command` or `http` service",
)
@pytest.mark.parametrize("name", FORMATS)
def test_a_command_reports_its_session(name: str) -> None:
    service = say({"answer": "It is 555.", "trace": FORMATS[name]}, trace="$.trace")
    result = run(service)
    assert str(result.decision) == "PASS"
    assert [call["name"] for call in result.trials[0].tool_calls] == ["search"]


@pytest.mark.parametrize("name", FORMATS)
def test_an_endpoint_reports_its_session(name: str, serve: Serve) -> None:
    body = json.dumps({"answer": "It is 555.", "log": [FORMATS[name]]})
    url = serve(lambda request: request.respond(200, body))
    result = run(HttpService(url, extract="$.answer", trace="$.log[0]"))
    assert str(result.decision) == "PASS"
    assert result.trials[0].reply == "It is 555."


@pytest.mark.parametrize("name", FORMATS)
def test_a_reply_that_is_nothing_but_the_session_is_its_answer(name: str) -> None:
    result = run(say(FORMATS[name], trace="$"))
    assert result.trials[0].reply == "It is 555."
    assert str(result.decision) == "PASS"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"answer": "555", "trace": {"steps": []}}, "cannot be read"),
        ({"answer": "555", "trace": "at 12:00 it called delete"}, "cannot be read"),
        ({"answer": "555"}, "nothing at $.trace"),
        ("555, and no JSON object", "nothing at $.trace"),
    ],
)
def test_a_session_that_cannot_be_read_is_not_one_without_calls(document: Any, why: str) -> None:
    result = run(say(document, trace="$.trace"), NEVER, SAYS)
    by_name = {one.plan.criterion: str(one.decision) for one in result.verdict.findings}
    assert by_name["never"] == "INCONCLUSIVE"
    (outcome,) = [one for one in result.trials[0].outcomes if one.criterion == "never"]
    assert outcome.error_class is ErrorClass.NO_EVIDENCE
    assert why in outcome.result.explanation


CLAUDE_CODE: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": "s"},
    {"type": "assistant", "message": {"id": "m1", **ANTHROPIC[1]}},
    {"type": "user", "message": ANTHROPIC[2]},
    {"type": "assistant", "message": {"id": "m2", **ANTHROPIC[3]}},
    {
        "type": "result",
        "subtype": "success",
        "session_id": "s",
        "result": "It is 555.",
        "total_cost_usd": 0.25,
        "usage": {"input_tokens": 40, "output_tokens": 2},
    },
]


def test_a_coding_agent_needs_no_more_than_its_own_output(serve: Serve) -> None:
    """It prints one event on each line, as `claude -p --output-format stream-json` does."""
    lines = "\n".join(json.dumps(line) for line in CLAUDE_CODE)
    script = f"printf '%s\n' {shlex.quote(lines)}"
    command = CommandService(["sh", "-c", script], input_via="environment", trace="$")
    url = serve(lambda request: request.respond(200, lines))
    for service in (command, HttpService(url, trace="$")):
        result = run(service)
        trial = result.trials[0]
        assert str(result.decision) == "PASS"
        assert (trial.reply, trial.cost_usd, trial.usage.total_tokens) == ("It is 555.", 0.25, 42)


def test_a_session_with_something_unknown_in_it_still_has_its_answer() -> None:
    result = run(say([*CHAT[:-1], {"role": "critic", "content": "hm"}, CHAT[-1]], trace="$"), SAYS)
    assert result.trials[0].reply == "It is 555."


def test_output_that_is_no_json_leaves_the_session_unknown() -> None:
    service = CommandService(["echo", "it is 555", "{input}"], trace="$.trace")
    result = run(service, NEVER)
    assert str(result.decision) == "INCONCLUSIVE"


@pytest.mark.requirement(
    "statistical-ci metrics",
    "Tokens and cost of preparing a trial are kept apart from those of the trial.",
    "`setup:`, `usage:` and `cost:` on a `command` or `http` service; `Reply.setup` in Python",
)
def test_tokens_cost_and_setup_are_counted_where_the_suite_points(serve: Serve) -> None:
    document = {
        "answer": "555",
        "meta": {"usage": {"prompt_tokens": 40, "completion_tokens": 2}, "price": "$0.25"},
        "prepared": {"seconds": 1.5, "usage": {"input": 7, "output": 1}, "cost_usd": 0.5},
    }
    places: dict[str, Any] = {
        "usage": "/meta/usage",
        "cost": "$.meta.price",
        "setup": "$['prepared']",
    }
    url = serve(lambda request: request.respond(200, json.dumps(document)))
    for service in (say(document, **places), HttpService(url, **places)):
        spent = run(service, SAYS, trials=6, curtail=False).verdict.spending
        assert (spent.tokens, spent.usd) == (6 * 42, pytest.approx(6 * 0.25))
        assert (spent.setup_tokens, spent.setup_usd) == (6 * 8, pytest.approx(6 * 0.5))
        assert spent.setup_s == pytest.approx(6 * 1.5)


def test_tokens_and_cost_of_the_session_count_towards_the_budget() -> None:
    """The sum of tokens, which the envelope alone has, counts like any other tokens."""
    service = say({**ENVELOPE, "cost_usd": 0.01}, trace="$")
    spent = run(service, CALLS, trials=6, curtail=False).verdict.spending
    assert (spent.tokens, spent.usd) == (18_000, pytest.approx(0.06))
    ended = run(service, CALLS, trials=40, budget=tw.Budget(tokens=9_000))
    assert str(ended.decision) == "INCONCLUSIVE"
    assert ended.verdict.spending.tokens == 9_000


def test_a_limit_on_money_is_refused_where_no_place_tells_the_cost() -> None:
    limited: dict[str, Any] = {"budget": tw.Budget(usd=1.0)}
    with pytest.raises(tw.TrialwiseError, match="cost"):
        run(say({"answer": "555"}, extract="$.answer"), SAYS, **limited)
    run(say({"answer": "555", "cost": 0.01}, extract="$.answer", cost="$.cost"), SAYS, **limited)


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        ({"class": "infrastructure", "message": "the tools are down"}, ErrorClass.INFRASTRUCTURE),
        ({"type": "overloaded_error", "message": "busy"}, ErrorClass.INFRASTRUCTURE),
        ({"status": 503}, ErrorClass.INFRASTRUCTURE),
        ({"code": 429, "message": "slow down"}, ErrorClass.INFRASTRUCTURE),
        ("pre_validation", ErrorClass.PRE_VALIDATION),
        ({"error_class": "timeout"}, ErrorClass.TIMEOUT),
        ({"message": "the plan made no sense"}, ErrorClass.NONE),
        ("the plan made no sense", ErrorClass.NONE),
        ({"class": "no-evidence"}, ErrorClass.NONE),
    ],
)
def test_an_error_that_the_service_reports_has_its_class(
    error: Any, error_class: ErrorClass
) -> None:
    document = {"answer": "555", "error": error, "cost": 0.25}
    result = run(say(document, extract="$.answer", error="$.error", cost="$.cost"), SAYS, retries=0)
    trial = result.trials[0]
    assert trial.error_class is error_class
    assert trial.cost_usd == 0.25  # paid for all the same
    assert str(result.decision) == ("FAIL" if error_class in _OWN else "INCONCLUSIVE")


_OWN = (ErrorClass.NONE, ErrorClass.TIMEOUT)


@pytest.mark.parametrize("error", [None, False, "", "none", {}])
def test_no_error_is_no_failure(error: Any) -> None:
    document = {"answer": "555", "error": error}
    assert str(run(say(document, extract="$.answer", error="$.error"), SAYS).decision) == "PASS"


def test_a_reply_that_is_not_where_it_should_be_is_a_failure_that_was_paid_for() -> None:
    result = run(say({"cost": 0.25}, extract="$.answer", cost="$.cost"), SAYS)
    assert str(result.decision) == "FAIL"
    assert result.trials[0].cost_usd == 0.25
    assert "nothing at /answer" in result.trials[0].error
    assert "exit code 0" in result.trials[0].error


EVENTS = """
printf '%s\\n' '{"type": "tool_call", "name": "search", "args": {"q": "a"}, "id": "1"}' \
  '{"type": "tool_result", "id": "1", "result": "555"}' \
  '{"type": "token_usage", "input_tokens": 20, "output_tokens": 5, "cost_usd": 0.5}' \
  > "$TRIALWISE_TRACE_FILE"
"""


def test_a_command_writes_its_session_into_a_file() -> None:
    service = CommandService(
        ["sh", "-c", EVENTS + "echo 'It is 555.'"], input_via="environment", trace="file"
    )
    result = run(service)
    assert str(result.decision) == "PASS"
    trial = result.trials[0]
    assert (trial.usage.total_tokens, trial.cost_usd, trial.reply) == (25, 0.5, "It is 555.")


def test_a_command_that_writes_no_session_leaves_its_calls_unknown() -> None:
    service = CommandService(["echo", "{input}"], trace="file")
    result = run(service, NEVER)
    assert str(result.decision) == "INCONCLUSIVE"
    assert "TRIALWISE_TRACE_FILE" in result.trials[0].outcomes[0].result.explanation


def test_what_a_command_had_done_when_its_time_was_up_is_kept() -> None:
    service = CommandService(
        ["sh", "-c", EVENTS + "sleep 30"], input_via="environment", trace="file", grace_s=0.1
    )
    result = run(service, SAYS, trials=5, timeout_s=0.3)
    trial = result.trials[0]
    assert trial.error_class is ErrorClass.TIMEOUT
    assert (trial.usage.total_tokens, trial.cost_usd) == (25, 0.5)
    assert [call["name"] for call in trial.tool_calls] == ["search"]


@pytest.mark.parametrize("place", ["trace", "$..trace", "$.a[*]", "$.", "$5", "$.a b"])
def test_a_place_that_is_none_is_refused(place: str) -> None:
    with pytest.raises(tw.InvalidArgument, match="name one place"):
        say({}, usage=place)


def test_a_suite_names_the_places(tmp_path: Path) -> None:
    (tmp_path / "agent.sh").write_text(
        f"#!/bin/sh\nprintf %s {shlex.quote(json.dumps({'answer': '555', 'trace': CHAT}))}\n",
        encoding="utf-8",
    )
    (tmp_path / "trialwise.yaml").write_text(
        "name: shell\n"
        "service:\n"
        '  command: {run: [sh, agent.sh, "{input}"], extract: $.answer, trace: $.trace}\n'
        "inputs: [What is 15 * 37?]\n"
        "criteria:\n"
        "  - {name: searches, tool_called: search, at_least: 50%}\n"
        "  - {name: right, equals: '555', at_least: 50%}\n",
        encoding="utf-8",
    )
    (one,) = load_suite(tmp_path / "trialwise.yaml", environment={}).contracts
    result = tw.run(one.contract, options=one.options, store=None, progress=False)
    assert str(result.decision) == "PASS"
