"""Agent tests of mcptest become contracts: the same runs, expectations and gates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trialwise.contrib.importers import ImportRefused, import_mcptest, import_suite
from trialwise.contrib.importers.mcptest.target_matching import expect
from trialwise.model.reply import Reply, Usage
from trialwise.suite import Suite

Write = Callable[[str, str], Path]
Load = Callable[..., Suite]

FILE = """\
servers:
  weather: {command: [python, weather.py], env: {UNITS: metric}}
agents:
  - name: weather session is stable on every dimension
    model: claude-sonnet-4-5
    servers: [weather]
    prompt: What is the weather in Sacramento?
    runs: 5
    expect:
      - {target: "tool_calls[0].name", matcher: {exact: get_weather}}
      - {target: "tool_calls[0].args.city", matcher: {regex: "(?i)sacramento"}}
    stability:
      expect:
        - {target: stability.score, matcher: {schema: {minimum: 0.7}}}
        - {target: stability.variance, matcher: {schema: {maximum: 0.05}}}
tools:
  - {name: greets, server: weather, tool: greet}
"""
KEYS = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b"}


def agent(**more: Any) -> str:
    """A suite with one agent test."""
    test = {"name": "t", "model": "gpt-4o", "servers": ["s"], "prompt": "p", **more}
    servers = {"s": {"url": "http://127.0.0.1:1/mcp"}}
    return json.dumps({"servers": servers, "agents": [test]})


@pytest.mark.requirement(
    "stability gate",
    "A suite of mcptest is imported with its runs, its expectations and its stability gate.",
    "`trialwise import mcptest.yaml`",
)
def test_an_agent_test_becomes_a_contract_with_its_gate(write: Write, load: Load) -> None:
    """The gate has the same targets and matchers; tests of tools are listed as left out."""
    imported = import_suite(write("mcptest.yaml", FILE))

    assert {
        "agent": {
            "model": "claude-sonnet-4-5",
            "api": "anthropic",
            "servers": {
                "weather": {"env": {"UNITS": "metric"}, "command": ["python", "weather.py"]}
            },
        }
    } == imported.suite["service"]
    assert (5, False) == (imported.suite["trials"], imported.suite["curtail"])
    assert [0.7, 0.05] == [
        next(iter(one["matcher"]["schema"].values()))
        for one in imported.suite["stability"]["expect"]
    ]
    assert any(note.startswith("Not carried over: `tools`") for note in imported.notes)
    (contract,) = load(imported, KEYS).contracts
    assert contract.contract.criteria[0].never_fails


def test_a_matrix_of_models_becomes_one_contract_for_each(write: Write, load: Load) -> None:
    """Each at the endpoint of its vendor."""
    text = agent(models=["gpt-4o", "claude-x"], stability={}, runs=3).replace(
        '"model": "gpt-4o", ', ""
    )
    imported = import_mcptest(write("mcptest.yaml", text))

    assert ["t [gpt-4o]", "t [claude-x]"] == [one["name"] for one in imported.suite["contracts"]]
    assert 2 == len(load(imported, KEYS).contracts)


SESSION = Reply(
    value="It is sunny.",
    usage=Usage(input_tokens=900, output_tokens=100),
    details={
        "tool_calls": [
            {"name": "get_weather", "server": "weather", "args": {"city": "Sacramento", "days": 2}}
        ]
    },
)


@pytest.mark.parametrize(
    ("target", "matcher", "passes"),
    [
        ("tool_calls[0].name", {"exact": "get_weather"}, True),
        ("tool_calls[0].name", {"exact": "get"}, False),
        ("tool_calls[0].args.city", {"regex": "(?i)sacra"}, True),
        ("tool_calls[0].args.days", {"schema": {"type": "integer", "maximum": 2}}, True),
        ("tool_calls[0].args.days", {"schema": {"minimum": 3}}, False),
        ("tool_calls[1].name", {"regex": ".*"}, False),
        ("tool_calls[0].name", {"not": {"exact": "delete"}}, True),
        ("conversation.tokens.total", {"exact": 1000}, True),
        ("final_text", {"contains": "sunny"}, True),
        ("final_text", {"any_of": [{"exact": "x"}, {"contains": "sun"}]}, True),
        ("final_text", {"all_of": [{"contains": "rain"}, {"contains": "sun"}]}, False),
    ],
)
def test_a_matcher_decides_as_mcptest_documents_it(
    target: str, matcher: dict[str, Any], passes: bool
) -> None:
    """What is missing at a target never matches, `not` excepted there as here."""
    assert passes is expect(target, matcher)(SESSION).passed


def test_a_session_that_does_not_tell_its_calls_matches_nothing() -> None:
    """No evidence is no pass, also for a matcher with `not`."""
    check = expect("tool_calls[0].name", {"not": {"exact": "delete"}})

    assert not check(Reply(value="x")).passed
    assert not check(Reply(value="x", details={"tool_calls": []})).passed


@pytest.mark.parametrize(
    "expectation",
    [
        {"target": "logs[0].level", "matcher": {"exact": "info"}},
        {"target": "final_text", "matcher": {"llm-judge": {"rubric": "kind"}}},
        {"target": "final_text", "matcher": {"regex": "("}},
        {"target": "final_text", "matcher": {"any_of": 5}},
    ],
)
def test_what_is_not_carried_over_is_left_to_be_written(
    write: Write, load: Load, expectation: dict[str, Any]
) -> None:
    """As a function that stops the run until then."""
    imported = import_mcptest(write("mcptest.yaml", agent(expect=[expectation])))

    assert any(note.startswith("Not carried over") for note in imported.notes)
    assert "NotImplementedError" in imported.files["mcptest_functions.py"]
    load(imported, KEYS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (agent(stability={}), "`stability` needs `runs` of at least 2"),
        (agent(stability={}, runs=0), "`stability` needs `runs` of at least 2"),
        (agent(), "without expectations decides nothing"),
        (agent(servers=["x"], expect=[]), "there is no server `x`"),
        (agent(expect=[{"target": "final_text"}]), "needs `target` and `matcher`"),
        (agent(runs=-1, stability={}), "`runs` must be a whole number"),
        ("servers: {a: {}}\nagents: [{name: x, model: m, prompt: p}]", "either `command` or `url`"),
        ("servers: 5\nagents: []", "`servers` must be a mapping"),
    ],
)
def test_what_mcptest_refuses_is_refused_with_its_place(
    write: Write, text: str, message: str
) -> None:
    """A gate needs a sample, and a test something to decide."""
    with pytest.raises(ImportRefused) as caught:
        import_mcptest(write("mcptest.yaml", text))

    assert message in str(caught.value)
