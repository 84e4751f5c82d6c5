"""A reply cannot hang a run through a pattern: the check is broken, and the run says which one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from tests.faults.command_runs import SUITE, call, decisions, write

import trialwise as tw
from trialwise.checks import Check, time_limits
from trialwise.checks.texts import count_choices, has_match

TEXT = "a" * 40 + "b"
PLAIN = "import json\ndef f(q, index): return 'aaa' if index < 3 else 'a' * 40 + 'b'\n"
JSON = "import json\ndef f(q, index): return json.dumps(['aaa' if index < 3 else 'a' * 40 + 'b'])\n"


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["", "budget: {time: 1s}\n"], ids=["no limit", "time limit"])
def test_a_run_stops_at_a_pattern_that_backtracks_without_end(tmp_path: Path, budget: str) -> None:
    """Exit 4 with the pattern and the trial, also where the time limit passes meanwhile."""
    suite = SUITE.replace('equals: "yes"', 'matches: "^(a+)+$"')
    write(tmp_path, PLAIN, f"{suite}timeout: 1s\n{budget}")
    code, _, errors = call(tmp_path, "run", "-q")

    assert (code, decisions(tmp_path)) == (4, []), errors
    assert "'^(a+)+$'" in errors
    assert "(trial 3, input" in errors
    assert "Traceback" not in errors


LIMITED = [
    tw.matches("^(a+)+$"),
    tw.matches("^(a|aa)+$", ignore_case=True),
    tw.json_path("$[0]", matches="^(a+)+$"),
    tw.json_schema({"items": {"pattern": "^(a+)+$"}}),
    tw.json_schema({"items": {"patternProperties": {"^(a+)+$": {}}}}),
]


def value_for(check: Check) -> object:
    """A reply on which the check's pattern backtracks without end."""
    if "json" not in type(check).__name__.lower():
        return TEXT
    return [{TEXT: 1}] if "patternProperties" in repr(check) else [TEXT]


@pytest.mark.parametrize("check", LIMITED, ids=lambda one: one.name)
def test_every_check_with_a_pattern_is_limited(
    monkeypatch: pytest.MonkeyPatch, check: Check
) -> None:
    """The limit is short here; the error names the pattern."""
    monkeypatch.setattr(time_limits, "LONGEST_CHECK_S", 0.05)
    named = "^(a|aa)+$" if "aa" in repr(check) else "^(a+)+$"
    with pytest.raises(tw.BrokenCheck, match=re.escape(named)):
        check.check(tw.Reply(value=value_for(check)))


def test_white_space_at_the_end_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quadratic time is enough: 99 kB of spaces."""
    monkeypatch.setattr(time_limits, "LONGEST_CHECK_S", 0.05)
    with pytest.raises(tw.BrokenCheck):
        has_match(r"\s+$", " " * 99_000 + "b")


def test_nested_filters_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter inside a filter compares everything with everything."""
    monkeypatch.setattr(time_limits, "LONGEST_CHECK_S", 0.05)
    check = tw.json_path("$[?count($[?count(@[*]) > 1]) > 0]")
    with pytest.raises(tw.BrokenCheck):
        check.check(tw.Reply(value=[[1] * 50] * 2000))


def test_an_ordinary_search_arms_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer costs more than the search itself."""
    monkeypatch.setattr("trialwise.checks.texts.call_limited", None)
    assert has_match(r"\b\d{3}\b", "It is 555. " * 1000)
    assert has_match("^.*total", "the total" * 10)


PIECES = ["a", "b", "(a|b)", "(ab)", "a*", "b+", "(a|ab)*", "(a*)*", "a?", "(b?){2}"]


@pytest.mark.parametrize("pattern", ["".join(one) for one in product(PIECES, repeat=2)])
def test_a_pattern_without_nested_choices_takes_polynomial_time(pattern: str) -> None:
    """Patterns that are taken for cheap are: 2,000 characters within a second."""
    if count_choices(f"{pattern}$") > 1:
        return
    began = time.process_time()
    for text in ("a" * 2000 + "c", "ab" * 1000 + "c", "b" * 2000 + "c"):
        re.search(f"{pattern}$", text)
    assert time.process_time() - began < 1


def test_the_handler_of_the_timer_is_put_back() -> None:
    """Whoever uses the signal finds it as it was."""
    import signal

    before = signal.getsignal(signal.SIGVTALRM)

    def look() -> object:
        return signal.getsignal(signal.SIGVTALRM)

    assert time_limits.call_limited(look, check="c", subject="one reply") is not before
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0


# --- Outside of the main thread -----------------------------------------------------------------


def in_thread(function: Callable[[], object]) -> object:
    """What a function returns, or raises, in a thread of its own."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result(timeout=60)


@pytest.mark.parametrize("check", LIMITED, ids=lambda one: one.name)
def test_every_check_with_a_pattern_is_limited_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, check: Check
) -> None:
    """The search goes to a process of its own, since no signal reaches the thread."""
    monkeypatch.setattr(time_limits, "LONGEST_CHECK_S", 0.05)
    with pytest.raises(tw.BrokenCheck, match=re.escape("^(a")):
        in_thread(lambda: check.check(tw.Reply(value=value_for(check))))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "aaa"),
        ("^(a+)+$", "b"),
        (r"(\w|x)+$", "\u0939\u093f"),
        (r"(\s|x)*$", "\x1c \ud800"),
    ],
)
def test_a_thread_finds_what_the_main_thread_finds(pattern: str, text: str) -> None:
    """It is the same engine: others read the letters of Hindi and white space otherwise."""
    assert in_thread(lambda: has_match(pattern, text)) == has_match(pattern, text)


def test_what_a_check_says_is_the_same_in_a_thread() -> None:
    """Places, explanations and evidence come back from the process."""
    checks = [
        (tw.json_path("$[?@.a > 1].b", matches="^(b+)+$"), [{"a": 2, "b": "c"}]),
        (tw.json_schema({"items": {"pattern": "^(a+)+$"}}), ["b"]),
        (tw.matches("^(a+)+$"), "b"),
    ]
    for check, value in checks:
        reply = tw.Reply(value=value)
        said = in_thread(lambda check=check, reply=reply: check.check(reply))  # type: ignore[misc]
        assert said == check.check(reply)


@pytest.mark.slow("notebook", "threads")
@pytest.mark.parametrize(
    "how", ["notebook", pytest.param("processes", marks=pytest.mark.slow), "threads"]
)
def test_a_run_outside_of_the_main_thread_stops_at_a_slow_pattern(tmp_path: Path, how: str) -> None:
    """In a thread with an event loop, in worker processes, and with services in threads."""
    (tmp_path / "agent.py").write_text(PLAIN, encoding="utf-8")
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(tmp_path)!r})
import trialwise as tw
from agent import f
contract = tw.Contract("c", f, [tw.Criterion("m", tw.matches("^(a+)+$"), at_least=0.5)])
settings = dict(inputs=["x"], trials=20, store=None, progress=False)
if __name__ == "__main__":
    how = {how!r}
    if how == "notebook":
        async def cell():
            return await asyncio.to_thread(tw.run, contract, **settings)
        asyncio.run(cell())
    elif how == "processes":
        tw.run(contract, executor="processes", **settings)
    else:
        tw.run(contract, concurrency=4, timeout_s=5.0, **settings)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert "BrokenCheck" in done.stderr
    assert "took longer than 1 s of processor time" in done.stderr


def test_a_copy_of_the_process_starts_its_own() -> None:
    """After a fork both go on, and neither reads the answers of the other."""
    assert in_thread(lambda: has_match("^(a+)+$", "aaa"))
    first = time_limits._process
    child = os.fork()
    if child == 0:
        ok = time_limits._process is None and in_thread(lambda: has_match("^(a+)+$", "aaa"))
        time_limits._end()
        os._exit(0 if ok else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert in_thread(lambda: has_match("^(a+)+$", "aaa"))
    assert time_limits._process is first


def test_a_process_that_was_killed_is_replaced() -> None:
    """Between two checks; the check that it was killed in is broken."""
    assert in_thread(lambda: has_match("^(a+)+$", "aaa"))
    first = time_limits._process
    assert first is not None
    first[0].kill()
    first[0].wait()

    assert in_thread(lambda: has_match("^(a+)+$", "aaa"))
    assert time_limits._process is not first


def test_the_main_thread_starts_no_process() -> None:
    """Neither does an import of the checks."""
    program = (
        "import sys, trialwise as tw; tw.matches('^(a+)+$').check(tw.Reply(value='a' * 20));"
        "sys.exit(sys.modules['trialwise.checks.time_limits']._process is not None)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
