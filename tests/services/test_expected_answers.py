"""What an input expects is for its postconditions: no service is shown it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.engine.ports import Service, TrialContext
from trialwise.services import (
    AgentService,
    CallableService,
    ChatService,
    CommandService,
    HttpService,
    McpServer,
    RecordingService,
)

Serve = Callable[[Callable[[Any], None]], str]
SECRET = "the-right-answer"
TOOLS = Path(__file__).parent / "mcp_tools.py"
#: A program that tells everything that it can see of its trial.
TELLS = "import os, sys; print(sys.argv[1:], sys.stdin.read(), dict(os.environ))"


def judged(service: Service, seen: list[str]) -> tw.Result:
    """One run over an input that expects something, and what its postcondition was given."""

    def knows(text: str, input: str, expected: str) -> bool:  # noqa: A002 - as it is asked for
        seen.append(f"{input}/{expected}")
        return SECRET not in text

    contract = tw.Contract(
        "asked",
        service,
        [tw.Criterion("unseen", knows, at_least=0.5, trials=2)],
        sampling=[tw.Input(id="one", value="question", expected=SECRET)],
    )
    return tw.run(contract, store=None, progress=False, intent=tw.model.Intent.SMOKE, curtail=False)


def services(serve: Serve, said: list[str], tmp_path: Path) -> dict[str, Service]:
    def everything(trial: TrialContext) -> str:
        return repr((trial, vars(type(trial)), trial.input, trial.index, trial.seed))

    def echo(request: Any) -> None:
        told = f"{request.path} {dict(request.headers)} {request.received.decode()}"
        said.append(told)
        message = {"role": "assistant", "content": told}
        request.respond(200, json.dumps({"choices": [{"message": message}]}))

    url = serve(echo)
    program = [sys.executable, "-c", TELLS]
    found: dict[str, Service] = {
        "callable": CallableService(everything),
        "recorded": RecordingService(CallableService(everything), tmp_path / "replies.jsonl"),
        "argument": CommandService([*program, "{input}"]),
        "standard input": CommandService(program, input_via="stdin"),
        "http": HttpService(f"{url}/ask?q={{input}}", method="POST", body={"q": "{input}"}),
        "chat": ChatService(url, "small", api_key_env=None),
    }
    try:
        import mcp  # noqa: F401
    except ImportError:
        return found
    server = McpServer(command=[sys.executable, str(TOOLS)])
    return found | {"agent": AgentService(url, "small", api_key_env=None, servers={"t": server})}


@pytest.mark.slow
def test_no_service_is_shown_what_is_expected(serve: Serve, tmp_path: Path) -> None:
    """Whatever it can see of its trial; its postconditions see it every time."""
    said: list[str] = []
    for name, service in services(serve, said, tmp_path).items():
        seen: list[str] = []

        verdict = judged(service, seen).verdict

        assert 2 == verdict.findings[0].tally.passed, name
        assert [f"question/{SECRET}"] * 2 == seen, name
    assert said
    assert not any(SECRET in text for text in said)
    assert SECRET not in (tmp_path / "replies.jsonl").read_text()


@pytest.mark.parametrize(("answer", "passed"), [(SECRET, 2), ("another", 0)])
def test_a_reply_is_held_to_what_its_input_expects(answer: str, passed: int) -> None:
    """By the built-in postcondition, from Python."""
    contract = tw.Contract(
        "asked",
        lambda _: answer,
        [tw.Criterion("right", tw.as_expected(), at_least=0.5, trials=2)],
        sampling=[tw.Input(id="one", value="question", expected=SECRET)],
    )

    result = tw.run(
        contract, store=None, progress=False, intent=tw.model.Intent.SMOKE, curtail=False
    )

    assert passed == result.verdict.findings[0].tally.passed


def test_inputs_that_expect_nothing_are_refused_by_name() -> None:
    """When the contract is made, and when it is tried on other inputs."""
    criteria = [tw.Criterion("right", tw.as_expected(), at_least=0.5)]

    with pytest.raises(tw.InvalidArgument, match="be given for the input '2': 'right' compares"):
        tw.Contract(
            "asked", len, criteria, sampling=[tw.Input(id="1", value="a", expected="b"), "c"]
        )
    with pytest.raises(tw.InvalidArgument, match="be given for the input '1'"):
        tw.Contract("asked", len, criteria).with_inputs(["a"])
