"""A criterion that is only reported: measured and shown everywhere, and part of no verdict."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.cli.suite_folders import enter_folder
from tests.cli.suite_folders import type_command as do

import trialwise as tw

SERVICE = """
def ask(input, index):
    return "good" if index % 4 else "poor"

def slow(input, index):
    import time
    time.sleep(0.02 if index % 4 == 0 else 0)
    return ask(input, index)
"""
SUITE = """
name: x
service: {python: "svc:ask"}
inputs: [a, b]
criteria:
  - {name: answers, matches: "good|poor", at_least: 90%}
  - {name: tone, contains: good, report_only: true}
  - {name: dear, contains: good, report_only: true, at_least: 99.9%}
"""
ALONE = """
name: x
service: {python: "svc:ask"}
inputs: [a, b]
trials: 40
criteria:
  - {name: tone, contains: good, report_only: true}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def _tail(k: int, n: int, p: float) -> float:
    """P(X ≥ k) of a binomial, term by term."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


@pytest.mark.requirement(
    "companion 1.4.5",
    "A criterion may be measured and reported without a part in the verdict.",
    "`report_only: true` on a criterion; `Criterion(report_only=True)`",
)
def test_it_changes_neither_the_verdict_nor_the_trials() -> None:
    """It fails a quarter of the trials, and the 40 that the other criterion needs are run."""
    alone = "\n".join(line for line in SUITE.splitlines() if "report_only" not in line)
    without = do(alone, "run", "--seed", "1", "-o", "without.json")
    done = do(SUITE, "run", "--seed", "1", "-o", "with.json")

    one, other = (json.loads(Path(f"{name}.json").read_text()) for name in ("without", "with"))
    assert (0, 0) == (without.exit_code, done.exit_code)
    assert one["spending"]["trials"] == other["spending"]["trials"] == 40
    assert "tone     REPORTED" in done.output
    assert "PASS  the criterion passed" in done.output
    assert "advisory" not in done.output


@pytest.mark.requirement(
    "scoring skill score",
    "A grader may be reported without failing the run.",
    "`report_only: true`, beside `metrics` that decides on the scores",
)
def test_a_gate_still_counts_its_grades() -> None:
    """The score is what decides: three of four replies are good."""
    suite = (
        ALONE + "metrics: {expect: [{target: metrics.score, matcher: {schema: {minimum: LEAST}}}]}"
    )
    passes = do(suite.replace("LEAST", "0.7"), "run")
    fails = do(suite.replace("LEAST", "0.8"), "run")

    assert (0, 1) == (passes.exit_code, fails.exit_code)
    assert "tone     REPORTED  75.0 %" in fails.output


def test_alone_it_gives_no_pass() -> None:
    """Nothing decides, so the run is INCONCLUSIVE and says why."""
    done = do(ALONE, "run")

    assert 3 == done.exit_code
    assert "INCONCLUSIVE  no verdict: 1 criterion is only reported" in done.output


def test_its_interval_leaves_out_five_percent_on_each_side() -> None:
    """30 of 40 passed: both ends are exact binomial tails, by adding up every term."""
    do(ALONE, "run", "-o", "r.json")

    facts = json.loads(Path("r.json").read_text())["runs"][0]["results"][0]["facts"]
    low, high = facts["interval_low"], facts["interval_high"]
    assert _tail(30, 40, low) == pytest.approx(0.05, abs=1e-9)
    assert 1 - _tail(31, 40, high) == pytest.approx(0.05, abs=1e-9)


def test_every_report_shows_it_with_its_interval() -> None:
    """The same two ends in every format."""
    files = "r.junit.xml r.md r.tap r.txt r.html r.json"
    outputs = [word for name in files.split() for word in ("-o", name)]
    done = do(ALONE, "run", *outputs)

    assert "[61.3, 85.8]" in done.output
    for name in ["r.junit.xml", "r.md", "r.tap", "r.html"]:
        assert "[61.3, 85.8]" in Path(name).read_text().replace("\\", ""), name
    assert "[0.612" in Path("r.txt").read_text()
    suite = ET.parse("r.junit.xml").getroot()[0]
    names = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert ("75.0 %, [61.3, 85.8] (90 %), report only, 40 trials", "0.75") == (
        names["tone"],
        names["tone.rate"],
    )


def test_it_has_no_part_in_which_trials_count_for_latency() -> None:
    """Only the poor replies take 20 ms, and a limit of 10 ms for the 95th percentile finds them."""
    suite = (
        SUITE.replace("svc:ask", "svc:slow").replace("90%}", "50%, trials: 120}")
        + "latency: {p95: 10ms, enforced: true}\n"
    )
    done = do(suite, "run")

    assert 1 == done.exit_code
    assert "120 successes" in done.output


def test_check_says_that_it_decides_nothing() -> None:
    """Beforehand, with the level of its interval."""
    done = do(SUITE, "check")

    assert "tone: reported with its 90 % interval, and no part of the verdict." in done.output


def test_it_needs_no_question_and_takes_one_as_context() -> None:
    """A criterion that decides still needs exactly one."""
    assert tw.Criterion("tone", str.strip, report_only=True).question == "report_only"
    with pytest.raises(tw.InvalidArgument, match="exactly one of"):
        tw.Criterion("tone", str.strip)
    with pytest.raises(tw.InvalidArgument, match="exactly one of"):
        tw.Criterion("tone", str.strip, report_only=True, at_least=0.9, never_fails=True)
    with pytest.raises(tw.InvalidArgument, match="only reported"):
        tw.Criterion("tone", str.strip, report_only=True, each_input=True)

    result = tw.run(
        tw.Contract(
            "x",
            str,
            [tw.Criterion("t", lambda text: text == "a", report_only=True, at_least=0.5)],
            sampling=["a"],
        ),
        trials=20,
    )
    assert "The 50 % it names lies below the interval." in result.verdict.findings[0].statement


def test_a_record_of_it_is_verified_and_shown() -> None:
    """What was reported can be recomputed."""
    do(SUITE, "run")

    assert 0 == do(SUITE, "show", "--verify").exit_code


def test_it_enters_no_family() -> None:
    """A correction over one deciding and two reported criteria divides nothing."""
    suite = (
        SUITE.replace("at_least: 90%}", "at_least: 90%, trials: 60}") + "correction: bonferroni\n"
    )
    do(suite, "run", "-o", "r.json")

    run = json.loads(Path("r.json").read_text())["runs"][0]
    assert "PASS" == run["decision"]
    assert "bonferroni" not in do(SUITE, "check").output


def test_a_page_tells_failures_that_decide_nothing_from_the_others() -> None:
    """A trial that failed a reported criterion alone is not a reason for a red verdict."""
    done = do(SUITE, "run", "--trials", "40", "--seed", "1", "--quiet", "-o", "page.html")

    assert done.exit_code == 0
    page = " ".join(Path("page.html").read_text().split())
    assert "10 of 40 trials failed a criterion or more. 10 of them failed nothing that" in page
