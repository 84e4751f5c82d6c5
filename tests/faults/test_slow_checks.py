"""A reply cannot hang a run through a pattern: the check is broken, and the run says which one."""

from __future__ import annotations

import re
import time
from itertools import product
from pathlib import Path

import pytest
from tests.faults.command_runs import SUITE, call, decisions, write

import trialwise as tw
from trialwise.checks import Check, time_limits
from trialwise.checks.patterns import count_choices, find_match

TEXT = "a" * 40 + "b"
PLAIN = "import json\ndef f(q, index): return 'aaa' if index < 3 else 'a' * 40 + 'b'\n"
JSON = "import json\ndef f(q, index): return json.dumps(['aaa' if index < 3 else 'a' * 40 + 'b'])\n"


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


@pytest.mark.parametrize(
    ("check", "named"),
    [
        (tw.matches("^(a+)+$"), "^(a+)+$"),
        (tw.matches("^(a|aa)+$", ignore_case=True), "^(a|aa)+$"),
        (tw.json_path("$[0]", matches="^(a+)+$"), "^(a+)+$"),
        (tw.json_schema({"items": {"pattern": "^(a+)+$"}}), "^(a+)+$"),
        (tw.json_schema({"items": {"patternProperties": {"^(a+)+$": {}}}}), "^(a+)+$"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_every_check_with_a_pattern_is_limited(
    monkeypatch: pytest.MonkeyPatch, check: Check, named: str
) -> None:
    """The limit is short here; the error names the pattern."""
    monkeypatch.setattr(time_limits, "LONGEST_CHECK_S", 0.05)
    value: object = TEXT
    if "json" in type(check).__name__.lower():
        value = [{TEXT: 1}] if "patternProperties" in repr(check) else [TEXT]
    with pytest.raises(tw.BrokenCheck, match=re.escape(named)):
        check.check(tw.Reply(value=value))


def test_white_space_at_the_end_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quadratic time is enough: 99 kB of spaces."""
    monkeypatch.setattr(time_limits, "LONGEST_CHECK_S", 0.05)
    with pytest.raises(tw.BrokenCheck):
        find_match(r"\s+$", " " * 99_000 + "b")


def test_nested_filters_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter inside a filter compares everything with everything."""
    monkeypatch.setattr(time_limits, "LONGEST_CHECK_S", 0.05)
    check = tw.json_path("$[?count($[?count(@[*]) > 1]) > 0]")
    with pytest.raises(tw.BrokenCheck):
        check.check(tw.Reply(value=[[1] * 50] * 2000))


def test_an_ordinary_search_arms_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer costs more than the search itself."""
    monkeypatch.setattr("trialwise.checks.patterns.limit_time", None)
    assert find_match(r"\b\d{3}\b", "It is 555. " * 1000)
    assert find_match("^.*total", "the total" * 10)


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
    with time_limits.limit_time("c", "one reply"):
        assert signal.getsignal(signal.SIGVTALRM) is not before
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
