"""Seven things that were green in 0.1.0 and meant less than they said, as a shell sees them now."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import comb
from pathlib import Path

import pytest

import trialwise as tw

SERVICE = """
import os
from random import Random

def ask(input, index, seed):
    if "K" in os.environ:
        return "ok" if index < int(os.environ["K"]) else "bad"
    return "ok" if Random(seed).random() < float(os.environ.get("P", "0.95")) else "bad"

def jail(input):
    return "recipe" if input == "q37" else "no"

def forgets(text):
    "yes" in text
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "svc.py").write_text(SERVICE)
    lines = "".join(f'{{"value": "q{k}"}}\n' for k in range(50))
    (tmp_path / "in.jsonl").write_text(lines)
    return tmp_path


def run(folder: Path, suite: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """The exit code and everything that `trialwise run` prints."""
    (folder / "trialwise.yaml").write_text(f"name: x\n{suite}")
    done = subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", "run", "-q", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )
    return done.returncode, done.stdout + done.stderr


def simple(criterion: str, more: str = "") -> str:
    return (
        'service: {python: "svc:ask"}\ninputs: [a, b, c, d]\n'
        f"criteria: [{{name: ok, equals: ok, {criterion}}}]\n{more}"
    )


@pytest.mark.slow
def test_a_97_percent_service_does_not_pass_99_9_percent(folder: Path) -> None:
    """
    Without consent to thousands of trials the run is refused, and with it the service fails.
    """
    code, text = run(folder, simple("at_least: 99.9%, origin: SLA"), P="0.97")
    assert code == 2
    assert "max_trials" in text
    assert "margin: 1%" in text
    code, text = run(folder, simple("at_least: 99.9%", "max_trials: 4000"), "--seed", "1", P="0.97")
    assert (code, "FAIL" in text) == (1, True)


def test_an_85_percent_service_passes_90_percent_in_at_most_5_percent_of_runs() -> None:
    """
    Counted over every end of the design that a plain `at_least: 90%` plans.
    """
    contract = tw.Contract("x", lambda _: "ok", [tw.Criterion("ok", tw.equals("ok"), at_least=0.9)])
    (one,) = tw.check(contract, inputs=["a"]).criteria
    limits, states, passes = one.limits, {0: 1.0}, 0.0
    for n in range(1, limits.cap + 1):
        after: dict[int, float] = {}
        for failures, weight in states.items():
            for f, chance in ((failures, 0.85), (failures + 1, 0.15)):
                after[f] = after.get(f, 0.0) + weight * chance
        decided = {f: limits.decide(n, f) for f in after}
        passes += sum(w for f, w in after.items() if decided[f] == "PASS")
        states = {f: w for f, w in after.items() if decided[f] is None}
    assert passes <= 0.05


@pytest.mark.slow
def test_fixed_trials_ask_the_same_question(folder: Path) -> None:
    """
    At a true 90 % a PASS is rare with and without `trials: 100`, and a FAIL says its ground.
    """
    code, text = run(folder, simple("at_least: 90%", "curtail: false"), "--trials", "100", K="93")
    assert code == 1
    assert "93 of 100 passed; 96 were needed to show 90 %" in " ".join(text.split())
    assert sum(comb(100, k) * 0.9**k * 0.1 ** (100 - k) for k in range(96, 101)) <= 0.05
    assert run(folder, simple("at_least: 90%", "curtail: false"), "--trials", "100", K="96")[0] == 0


@pytest.mark.slow
def test_one_input_in_fifty_that_always_violates_never_fails_is_found(folder: Path) -> None:
    """
    Every input is asked before a criterion that must never fail can PASS, whatever the seed.
    """
    suite = (
        'service: {python: "svc:jail"}\ninputs: {jsonl: in.jsonl}\ncriteria:\n'
        "  - {name: short, length: {maximum: 9}, at_least: 50%}\n"
        "  - {name: safe, not_contains: recipe, never_fails: true}\n"
    )
    for seed in ("1", "2", "3"):
        assert run(folder, suite, "--seed", seed)[0] == 1


def test_trials_after_a_decision_are_counted(folder: Path) -> None:
    """
    With a latency limit all 100 trials run, and the 41 that fail withdraw the PASS of the first 59.
    """
    suite = simple("at_least: 50%", "trials: 100\nlatency: {p50: 1s}\n")
    code, text = run(folder, suite, K="59")
    assert code == 3
    assert "PASS at trial 59 withdrawn; of 41 later trials 0 passed (0.0 %)" in text
    assert "100 trials" in text


class Handler(BaseHTTPRequestHandler):
    """A server that knows no page."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/ask"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_wrong_address_is_not_a_polite_service(folder: Path, url: str) -> None:
    """
    HTTP 404 stops the run after a few calls, with what was called and what came back.
    """
    suite = (
        f'service: {{http: "{url}"}}\ninputs: [a]\n'
        "criteria: [{name: polite, not_contains: stupid, at_least: 90%}]\n"
    )
    code, text = run(folder, suite)
    assert code == 4
    assert "404" in text
    assert url in text


def test_a_check_without_return_is_broken(folder: Path) -> None:
    """
    A function that returns nothing and asserts nothing decides nothing.
    """
    suite = (
        'service: {python: "svc:ask"}\ninputs: [a]\n'
        'criteria: [{name: c, python: "svc:forgets", at_least: 90%}]\n'
    )
    code, text = run(folder, suite, P="0")
    assert code == 4
    assert "forgets" in text


def test_a_broken_check_prints_its_traceback_and_exits_4(folder: Path) -> None:
    """0.1.0 ended with FAIL, exit code 1, and no word about the check."""
    (folder / "bad.py").write_text('def boom(text):\n    raise TypeError("boom")\n')
    suite = """
service: {python: "svc:ask"}
inputs: [a, b]
criteria: [{name: c, python: "bad:boom", at_least: 90%, margin: 10%}]
"""

    code, printed = run(folder, suite)

    assert 4 == code
    assert "the check 'boom' is broken: it raised on each of the first 3 replies" in printed
    assert "TypeError: boom" in printed
    assert 'bad.py", line 2, in boom' in printed


def test_a_service_that_is_not_running_is_named_in_the_first_line(folder: Path) -> None:
    """0.1.0: FAIL for the criterion that never fails, and seven bullets."""
    suite = """
service: {http: "http://127.0.0.1:9/ask"}
inputs: [a, b]
retries: 0
criteria: [{name: safe, not_contains: "4111", never_fails: true}]
"""

    code, printed = run(folder, suite)

    assert 3 == code
    first, rest = printed.split("\n", 1)
    assert "Nothing answers at http://127.0.0.1:9/ask (connection refused). Is it running?" == first
    assert "Needs attention" not in rest
    assert "FAIL" not in printed
