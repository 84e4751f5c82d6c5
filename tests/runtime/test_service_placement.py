"""Where a function runs: in place if nothing else has to happen meanwhile, else in threads."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.suite import load_suite

_MAIN = threading.main_thread().name


class Threads:
    """A function that notes where it runs."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __call__(self, question: str) -> str:
        self.names.add(threading.current_thread().name)
        return question


def run(service: Any, **settings: Any) -> None:
    criterion = tw.Criterion("answers", str.isalpha, at_least=0.5)
    contract = tw.Contract("c", service, [criterion])
    tw.run(contract, inputs=["a", "b"], trials=20, store=None, progress=False, **settings)


@pytest.mark.parametrize(
    ("settings", "in_place"), [({}, True), ({"concurrency": 4}, False), ({"timeout_s": 5.0}, False)]
)
@pytest.mark.parametrize("wrapped", [False, True], ids=["function", "service"])
def test_a_function_gets_a_thread_only_where_it_needs_one(
    settings: dict[str, Any], in_place: bool, wrapped: bool
) -> None:
    """One trial at a time without a limit needs none, whoever made a service of the function."""
    seen = Threads()

    run(tw.services.CallableService(seen) if wrapped else seen, **settings)

    assert in_place is (seen.names == {_MAIN})
    assert in_place or _MAIN not in seen.names


@pytest.mark.parametrize("in_thread", [True, False])
def test_a_service_that_says_where_it_runs_stays_there(in_thread: bool) -> None:
    """Whatever the run would choose."""
    seen = Threads()

    run(tw.services.CallableService(seen, in_thread=in_thread), concurrency=1 if in_thread else 2)

    assert in_thread is (_MAIN not in seen.names)


@pytest.mark.parametrize(("concurrency", "in_place"), [(1, True), (3, False)])
def test_a_plain_function_in_a_suite_runs_in_place(
    tmp_path: Path, concurrency: int, in_place: bool
) -> None:
    """A suite file decides no more about threads than Python does."""
    module = f"agent_placed_{concurrency}"
    (tmp_path / f"{module}.py").write_text(
        "import threading\nNAMES = set()\n"
        "def answer(question):\n"
        "    NAMES.add(threading.current_thread().name)\n"
        "    return 'yes'\n"
    )
    (tmp_path / "trialwise.yaml").write_text(
        f"service: {{python: '{module}:answer'}}\n"
        "inputs: [a, b]\n"
        f"trials: 20\nconcurrency: {concurrency}\n"
        "criteria:\n  - {name: says-yes, contains: 'yes', at_least: 50%}\n"
    )
    (one,) = load_suite(tmp_path / "trialwise.yaml", environment={}).contracts

    tw.run(one.contract, options=one.options, store=None, progress=False)

    assert in_place is ({_MAIN} == sys.modules[module].NAMES)
