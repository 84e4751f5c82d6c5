"""Services that a suite describes: built as their constructors would, and really called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from trialwise.engine.ports import TrialContext
from trialwise.services import CallableService, RecordingService
from trialwise.suite import Suite, SuiteError

Load = Callable[..., Suite]
Refused = Callable[..., SuiteError]
Module = Callable[[str], str]

REST = 'inputs: [one]\ncriteria: [{name: c, contains: "1", at_least: 90%}]\n'


def service(suite: Suite) -> Any:
    """The service of its first contract."""
    return suite.contracts[0].contract.service


def reply(suite: Suite, given: Any = "hello", seed: int = 7) -> Any:
    """What the service of its first contract says."""

    async def call() -> Any:
        try:
            return (await service(suite).call(TrialContext(index=0, input=given, seed=seed))).value
        finally:
            await service(suite).aclose()

    return anyio.run(call)


def test_a_function_of_the_suites_folder(load: Load, module: Module) -> None:
    """By its name, or by a name within a class, with options."""
    agent = module(
        "class Agent:\n    @staticmethod\n    def answer(question, seed):\n"
        "        return f'{question} {seed}'\n"
    )

    assert "hello 7" == reply(load(f'service: {{python: "{agent}:Agent.answer"}}\n{REST}'))
    long = f'service: {{python: {{function: "{agent}:Agent.answer", in_thread: false}}}}\n{REST}'
    assert "hello 7" == reply(load(long))


def test_a_function_may_import_its_neighbours_when_it_is_called(load: Load, module: Module) -> None:
    """The suite's folder stays on the path."""
    other = module("WORD = 'neighbour'\n")
    agent = module(f"def answer(question):\n    import {other}\n    return {other}.WORD\n")

    assert "neighbour" == reply(load(f'service: {{python: "{agent}:answer"}}\n{REST}'))


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        ("", "answer", "there is no `answer` in the module"),
        ("def answers(q): ...", "answer", "did you mean `answers`?"),
        ("answer = 5", "answer", "is not a function"),
        ("import no_such_thing_at_all", "answer", "No module named 'no_such_thing_at_all'"),
        ("raise ValueError('odd')", "answer", "failed: ValueError: odd"),
        ("import sys; sys.exit(3)", "answer", "failed: SystemExit: 3"),
        ("def answer(:", "answer", "failed: SyntaxError"),
        ("def answer(a, b): ...", "answer", "must not require the parameter 'b'"),
        ("def answer(a):\n    yield a", "answer", "must return its reply, not yield it"),
        ("def __getattr__(name): raise OSError(name)", "answer", "there is no `answer`"),
    ],
)
def test_a_function_that_cannot_be_used_is_refused_before_anything_runs(
    refused: Refused, module: Module, source: str, name: str, message: str
) -> None:
    """With the place in the suite, and the user's own line where it is about that."""
    error = refused(f'service: {{python: "{module(source)}:{name}"}}\n{REST}')

    (problem,) = error.problems
    assert message in problem.message
    assert (1, 19) == (problem.line, problem.column)


def test_a_module_that_is_not_there_is_named_with_the_folder(
    refused: Refused, tmp_path: Path
) -> None:
    """Where it was looked for."""
    error = refused(f'service: {{python: "no_such_module_here:f"}}\n{REST}')

    assert f"there is no module `no_such_module_here` in {tmp_path.resolve()}" in str(error)


def test_a_module_of_the_same_name_from_elsewhere_is_not_taken_for_it(
    refused: Refused, module: Module, tmp_path: Path
) -> None:
    """Two suites in one process, each with an `agent.py`."""
    name = module("def answer(q): return 1\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{name}.py").write_text("def answer(q): return 2\n")
    sys.path.insert(0, str(elsewhere))
    __import__(name)

    assert "is loaded from" in str(refused(f'service: {{python: "{name}:answer"}}\n{REST}'))


@pytest.mark.parametrize("where", ["m", "m:", ":f", "m:f()", "m f:g", "../m:f", "m:f:g", "m.:f"])
def test_what_names_no_function_is_refused_unimported(refused: Refused, where: str) -> None:
    """Nothing but a module and a name is a function's name."""
    error = refused(f"service: {{python: '{where}'}}\n{REST}")

    assert "must be a function as module:function" in str(error)


@pytest.mark.parametrize(
    ("command", "given", "said"),
    [
        ("[printf, '%s|', 'a b', '{input}']", "it's", "a b|it's|"),
        ("printf '%s|' 'a b' {input}", "x y", "a b|x y|"),
        ("{run: cat, input_via: stdin}", "text", "text"),
        (
            "{run: [cat, '{scenario_file}'], parse_json: true}",
            "x",
            {"input": "x", "index": 0, "seed": 7},
        ),
        (
            "{run: [sh, -c, 'echo $TRIALWISE_INPUT$A'], input_via: environment, env: {A: '!'}}",
            "x",
            "x!",
        ),
        ("{run: [sh, -c, 'pwd; : {input}'], cwd: sub}", "x", "sub"),
    ],
)
def test_commands_are_run_without_a_shell(
    load: Load, tmp_path: Path, command: str, given: str, said: Any
) -> None:
    """As a text or a list, with the input by each of the ways there are."""
    (tmp_path / "sub").mkdir()
    value = reply(load(f"service:\n  command: {command}\n{REST}"), given)

    assert said == (Path(value).name if said == "sub" else value)


def test_a_command_runs_in_the_suites_folder(load: Load, tmp_path: Path) -> None:
    """Wherever trialwise was started."""
    (tmp_path / "agent.sh").write_text("#!/bin/sh\necho here $1\n")
    (tmp_path / "agent.sh").chmod(0o755)

    assert "here x" == reply(load(f"service: {{command: [./agent.sh, '{{input}}']}}\n{REST}"), "x")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("[echo, hello]", "say `input_via: stdin`"),
        ("echo hello", "say `input_via: stdin`"),
        ("[echo, {input}]", 'put quotes around it, "{input}"'),
        ("[echo, 5]", 'put quotes around it, "5"'),
        ("'echo \"{input}'", "with its quotes closed"),
        ("[]", "it has 0"),
        ("'\"\" {input}'", "must be a list of at least one text"),
        ("{run: cat, input_via: pipe}", "`argument`, `stdin`, `file` or `environment`"),
        ("{run: cat, input_via: file}", "hold {scenario_file} in an argument"),
        ("{input_via: stdin}", "`command` lacks `run`"),
        ("{run: cat, input_via: stdin, cwd: nowhere}", "a folder that exists"),
        ("{run: cat, input_via: stdin, grace: 5}", "did you mean 5s?"),
        ("{run: cat, input_via: stdin, shell: true}", "unknown key `shell`"),
    ],
)
def test_a_command_that_cannot_work_is_refused(
    refused: Refused, command: str, message: str
) -> None:
    """Before it is started."""
    assert message in str(refused(f"service: {{command: {command}}}\n{REST}"))


def test_an_endpoint_with_everything(load: Load) -> None:
    """Times with units, a body as JSON, a pointer to the reply."""
    suite = load(
        "service:\n  http:\n    url: http://localhost:1/ask\n    method: put\n"
        "    headers: {X-Trial: '{index}'}\n    body: {q: '{input}', n: 5}\n"
        "    extract: /answer\n    infrastructure_statuses: [503]\n"
        "    timeout: 30s\n    connect_timeout: 500ms\n    response_limit: 1000\n" + REST
    )
    found = service(suite)

    assert "HttpService('http://localhost:1/ask', method='PUT')" == repr(found)
    assert ({"q": "{input}", "n": 5}, "/answer") == (found.body, "/answer")
    assert [503] == list(found.infrastructure_statuses)
    assert (30.0, 0.5, 1000) == (found.timeout_s, found.connect_timeout_s, found.response_limit)


def test_a_chat_model_with_everything(load: Load) -> None:
    """Prices as money for a million tokens."""
    suite = load(
        "service:\n  chat:\n    model: small-1\n    base_url: https://llm.example.com/v1\n"
        "    api_key_env: MY_KEY\n    system: Be brief.\n    temperature: 0.7\n"
        "    max_tokens: 100\n"
        "    tools: [{type: function, function: {name: f}}]\n    extra: {top_p: 0.9}\n"
        "    send_seed: true\n    prices: {input: $0.15, output: 0.60}\n    timeout: 1m\n" + REST,
        {"MY_KEY": "k-123456"},
    )
    found = service(suite)

    assert "ChatService('https://llm.example.com/v1', 'small-1')" == repr(found)
    assert {
        "model": "small-1",
        "temperature": 0.7,
        "max_tokens": 100,
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "top_p": 0.9,
    } == found._fields
    assert (0.15, 0.6) == (found.prices.input_usd, found.prices.output_usd)
    assert ("Be brief.", True, 60.0) == (found.system, found.send_seed, found.timeout_s)


def test_an_agent_has_a_model_and_servers(load: Load, tmp_path: Path) -> None:
    """Programs that start in the suite's folder, and URLs whose secrets stay references."""
    (tmp_path / "tools").mkdir()
    suite = load(
        "service:\n"
        "  agent:\n"
        "    {model: small-1, base_url: 'https://llm.example.com/v1', api_key_env: KEY,\n"
        "     system: Be brief., temperature: 0.7, max_turns: 5, max_tool_calls: 9,\n"
        "     tool_timeout: 2s, start_timeout: 1m, result_limit: 100, timeout: 30s,\n"
        "     prices: {input: $1, output: $2},\n"
        "     servers: {\n"
        "       shop: {command: 'python \"my tools.py\"', cwd: tools, env: {A: '${KEY}'}},\n"
        "       web: {url: 'https://${HOST}/mcp', headers: {Authorization: 'Bearer ${KEY}'},\n"
        "             tools: [find]}}}\n" + REST,
        {"KEY": "secret-value", "HOST": "tools.example.com"},
    )
    found = service(suite)
    shop, web = found.servers["shop"], found.servers["web"]

    assert "AgentService('https://llm.example.com/v1', 'small-1', servers=['shop', 'web'])" == repr(
        found
    )
    assert (("python", "my tools.py"), str(tmp_path.resolve() / "tools")) == (
        shop.command,
        shop.cwd,
    )
    assert "secret-value" == shop.env["A"]
    assert ({"Authorization": "Bearer ${KEY}"}, ("find",)) == (web.headers, web.tools)
    assert "secret-value" not in repr(found.servers)
    assert (5, 9, 2.0, 100) == (
        found.max_turns,
        found.max_tool_calls,
        found.tool_timeout_s,
        found.result_limit,
    )
    assert (60.0, 30.0) == (found.start_timeout_s, found.timeout_s)
    assert "small-1" == suite.contracts[0].contract.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{http: nowhere}", "be an http:// or https:// URL"),
        ("{http: {url: 'http://h/${KEY}'}}", "take nothing from the environment after the host"),
        ("{http: {url: 'http://u:p@h/'}}", "hold no user or password"),
        ("{http: {url: 'http://h/', extract: a}}", "`extract` must"),
        ("{http: {url: 'http://h/', headers: {Cookie: x}}}", "take a secret from the environment"),
        ("{http: {url: 'http://h/', headers: {X: 5}}}", 'put quotes around it, "5"'),
        ("{http: {url: 'http://h/', timeout: 30}}", "did you mean 30s?"),
        ("{http: {method: GET}}", "`http` lacks `url`"),
        (
            "{chat: {model: m}}",
            "`chat` must refer to a variable that is set, and OPENAI_API_KEY is",
        ),
        ("{chat: {model: m}}", "name another one with `api_key_env`, or make that null"),
        ("{chat: {model: m, api_key_env: NONE}}", "`api_key_env` must refer to a variable"),
        ("{chat: gpt}", "`chat` must be a mapping"),
        ("{chat: {model: m, api_key_env: KEY, prices: {input: 1}}}", "lacks `output`"),
        ("{chat: {model: m, api_key_env: KEY, extra: {model: x}}}", "not repeat a field"),
        ("{chat: {model: m, api_key_env: KEY, temprature: 1}}", "did you mean `temperature`?"),
        ("{agent: {model: m, api_key_env: KEY}}", "`agent` lacks `servers`"),
        (
            "{agent: {model: m, api_key_env: KEY, servers: {}}}",
            "must be MCP servers by name, it is empty",
        ),
        (
            "{agent: {model: m, api_key_env: KEY, servers: {a: {}}}}",
            "lacks one of `command`, `url`",
        ),
        (
            "{agent: {model: m, api_key_env: KEY, servers: {a: {url: nowhere}}}}",
            "`url` must be an http:// or https:// URL",
        ),
        (
            "{agent: {model: m, servers: {a: {url: 'http://h/', headers: {Cookie: x}}}}}",
            "take a secret from the environment",
        ),
        (
            "{agent: {model: m, api_key_env: KEY, servers: {a: {command: x, cwd: nowhere}}}}",
            "`cwd` must be a folder that exists",
        ),
        (
            "{agent: {model: m, api_key_env: KEY, max_turns: 2000, servers: {a: {command: x}}}}",
            "`max_turns` must be at most 1000",
        ),
        ("{replay: missing.jsonl}", "the recording cannot be read"),
        ("{python: 'm:f', http: 'http://h/'}", "`http` and `python` exclude one another"),
        ("{}", "`service` lacks one of `agent`, `chat`, `command`, `http`, `python`"),
        ("[a]", "must be a service, or the name of one, got a list"),
    ],
)
def test_a_service_that_cannot_work_is_refused(refused: Refused, text: str, message: str) -> None:
    """Before a trial is spent on it."""
    assert message in str(refused(f"service: {text}\n{REST}", {"KEY": "secret-value"}))


def test_a_recording_is_played_back(load: Load, refused: Refused, tmp_path: Path) -> None:
    """As it was recorded; what is none is refused."""
    recording = RecordingService(CallableService(str.upper), tmp_path / "calls.jsonl")
    trial = TrialContext(index=0, input="hello", seed=7)
    anyio.run(recording.call, trial)
    anyio.run(recording.aclose)

    assert "HELLO" == reply(load(f"service: {{replay: calls.jsonl}}\n{REST}"))
    (tmp_path / "calls.jsonl").write_bytes(b"{}\n")
    assert "`replay`: line 1" in str(refused(f"service: {{replay: calls.jsonl}}\n{REST}"))
    (tmp_path / "calls.jsonl").write_bytes(b"\xff\xfe\n")
    assert "`replay`" in str(refused(f"service: {{replay: calls.jsonl}}\n{REST}"))


def test_contracts_that_name_one_service_share_it(load: Load) -> None:
    """It is built once."""
    suite = load(
        "services: {a: {command: [echo, '{input}']}}\nservice: a\n"
        + REST
        + "contracts: [{name: x}, {name: y}]\n"
    )
    first, second = (one.contract.service for one in suite.contracts)

    assert first is second
