"""What a service is made of is recorded by itself, and a change of it is said or refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import DesignRefused
from trialwise.model.evidence import Severity
from trialwise.runtime.chosen_baselines import with_service_factors
from trialwise.services.http_endpoint import HttpService
from trialwise.services.openai_chat import ChatService
from trialwise.services.programs import CommandService
from trialwise.services.service_factors import name_endpoint


def chat(**more: Any) -> ChatService:
    given: dict[str, Any] = {"system": "v1", "temperature": 0.1, "api_key_env": None, **more}
    return ChatService(
        given.pop("base_url", "https://api.example.com/v1"), given.pop("model", "small-1"), **given
    )


class Answers:
    """A service of the user's own with factors."""

    def __init__(self, **factors: str) -> None:
        self.factors = factors

    async def call(self, _trial: tw.TrialContext) -> tw.Reply:
        return tw.Reply(value="ok")

    async def aclose(self) -> None:
        pass


def contract(service: Any, **more: Any) -> tw.Contract:
    criterion = tw.Criterion("ok", tw.equals("ok"), no_worse_than="baseline")
    return tw.Contract("a", service, [criterion], sampling=["q"], **more)


def test_a_chat_service_records_model_endpoint_prompt_parameters_and_tools() -> None:
    told = chat().factors
    assert set(told) == {"model", "endpoint", "prompt", "parameters", "tools"}
    assert (told["model"], told["endpoint"]) == ("small-1", "https://api.example.com/v1")
    assert "v1" != told["prompt"]  # a prompt may be long or private: its fingerprint stands for it


@pytest.mark.parametrize(
    ("changed", "factor"),
    [
        ({"model": "large-9"}, "model"),
        ({"base_url": "https://eu.example.com/v1"}, "endpoint"),
        ({"system": "v2"}, "prompt"),
        ({"temperature": 1.5}, "parameters"),
        ({"extra": {"top_p": 0.5}}, "parameters"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    ],
)
def test_each_part_of_a_chat_service_changes_its_factor_and_no_other(
    changed: dict[str, Any], factor: str
) -> None:
    then, now = chat().factors, chat(**changed).factors
    assert [name for name in then if then[name] != now[name]] == [factor]


def test_an_agent_records_its_servers_as_tools() -> None:
    pytest.importorskip("mcp")
    from trialwise.services.agent import AgentService, McpServer

    def agent(*tools: str) -> dict[str, str]:
        servers = {"shop": McpServer(url="https://tools.example.com/mcp", tools=tools)}
        url = "https://api.example.com/v1"
        return AgentService(url, "small-1", api_key_env=None, servers=servers).factors

    assert agent("find")["model"] == "small-1"
    assert agent("find")["tools"] != agent("find", "delete")["tools"]


def test_an_endpoint_records_its_address_without_credentials_or_a_random_port() -> None:
    """Two services on chosen ports of one machine are two; a port that a test drew is none."""
    assert HttpService("http://127.0.0.1:40931/ask").factors["endpoint"] == "http://localhost/ask"
    assert name_endpoint("http://localhost:8001/v1") != name_endpoint("http://localhost:8002/v1")
    assert name_endpoint("http://[::1]:8001/v1") == name_endpoint("http://127.0.0.1:8001/v1")
    assert name_endpoint("https://api.example.com:8443/v1") == "https://api.example.com:8443/v1"
    assert (
        name_endpoint("https://key:secret@api.example.com/v1?token=x")
        == "https://api.example.com/v1"
    )
    first, second = (
        HttpService("http://h/a", body={"q": "{input}"}),
        HttpService("http://h/a", body="{input}"),
    )
    assert first.factors["parameters"] != second.factors["parameters"]


def test_a_command_records_itself_and_the_code_it_names(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text("print(1)")
    service = CommandService([sys.executable, "agent.py", "{input}"], cwd=tmp_path)
    before = service.factors
    script.write_text("print(2)")
    assert "agent.py" in before["command"]
    assert before["code"] != service.factors["code"]
    assert before["command"] == service.factors["command"]


def test_declared_factors_win() -> None:
    one = with_service_factors(
        contract(Answers(model="m-1", region="eu"), factors={"model": "mine"})
    )
    assert dict(one.factors) == {"model": "mine", "region": "eu"}


def test_the_baseline_and_the_plan_keep_them(tmp_path: Path) -> None:
    one = contract(Answers(model="m-1"))
    found = tw.measure(one, trials=100, store=tmp_path, baselines=tmp_path, progress=False)
    assert dict(found.baseline.factors) == {"model": "m-1"}
    result = tw.run(one, trials=100, store=tmp_path, baselines=tmp_path, progress=False)
    assert dict(result.verdict.factors) == {"model": "m-1"}


@pytest.mark.parametrize(
    ("factor", "severity"),
    [
        ("model", Severity.HARD),
        ("prompt", Severity.HARD),
        ("evaluator", Severity.HARD),
        ("endpoint", Severity.MAJOR),
        ("parameters", Severity.MAJOR),
        ("tools", Severity.MAJOR),
        ("code", Severity.MINOR),
        ("shoe size", Severity.MINOR),
    ],
)
def test_a_changed_factor_matters_by_its_category(
    tmp_path: Path, factor: str, severity: Severity
) -> None:
    places: dict[str, Any] = {"store": tmp_path, "baselines": tmp_path, "progress": False}
    tw.measure(contract(Answers(**{factor: "then"})), trials=100, **places)
    now = contract(Answers(**{factor: "now"}))
    if severity is Severity.MINOR:
        result = tw.run(now, trials=100, **places)
        assert any(f"Factor {factor}: then" in one.message for one in result.verdict.plan.guards)  # type: ignore[union-attr]
        return
    with pytest.raises(DesignRefused, match=f"Factor {factor}: then"):
        tw.run(now, trials=100, **places)
    admitted = f"factor:{factor}"
    if severity is Severity.MAJOR:
        assert tw.run(now, trials=100, overrides=(admitted,), **places).passed


@pytest.mark.parametrize(
    ("model", "is_alias"),
    [("chat-4-latest", True), ("small:Latest", True), ("chat-4-2026-05-14", False)],
)
def test_a_model_that_is_named_by_an_alias_is_noticed(
    tmp_path: Path, model: str, *, is_alias: bool
) -> None:
    """The name is the same, and the provider may have moved it (companion 1.3.1)."""
    places: dict[str, Any] = {"store": tmp_path, "baselines": tmp_path, "progress": False}
    one = contract(Answers(model=model))
    tw.measure(one, trials=100, **places)
    (plan,) = [tw.run(one, trials=100, **places).verdict.plan]
    assert plan is not None
    said = [(guard.severity, "is an alias" in guard.message) for guard in plan.guards]
    assert ([(Severity.MINOR, True)] if is_alias else []) == said


def test_any_factor_can_be_made_critical(tmp_path: Path) -> None:
    places: dict[str, Any] = {"store": tmp_path, "baselines": tmp_path, "progress": False}
    tw.measure(contract(Answers(code="1")), trials=100, **places)
    now = contract(Answers(code="2"), critical_factors=["code"])
    with pytest.raises(DesignRefused, match="Factor code: 1"):
        tw.run(now, trials=100, **places)


def test_a_suite_makes_factors_critical(tmp_path: Path) -> None:
    import os

    from trialwise.suite.loading import load_suite

    suite = tmp_path / "trialwise.yaml"
    suite.write_text(
        "name: x\n"
        "service: {command: {run: [echo, '{input}']}}\n"
        "inputs: [a]\n"
        "factors: {prompt: v1, flags: {value: fast, critical: true}, code: {critical: true}}\n"
        "criteria: [{name: ok, equals: a, at_least: 90%}]\n"
    )
    (one,) = load_suite(suite, environment=os.environ).contracts
    assert dict(one.contract.factors) == {"prompt": "v1", "flags": "fast"}
    assert tuple(one.contract.critical_factors) == ("flags", "code")
