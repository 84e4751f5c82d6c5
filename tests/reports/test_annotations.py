"""Annotations: no text ends a command early or begins another."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reports.short_reports import render_github, render_gitlab
from tests.revising import replace

from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Tally
from trialwise.model.run import RunRecord
from trialwise.renderers.ci_formats import MOST_ANNOTATIONS

Made = Callable[[str], list[RunRecord]]
Runs = dict[str, RunRecord]
Command = tuple[str, dict[str, str], str]

HOSTILE = ["\n::error::x", "::", "%0A::add-mask::y", ",title=z", "%", "\r::stop-commands::t", "%3A"]
TEXTS = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(HOSTILE)).map("".join)


def unescaped(text: str, *, is_property: bool) -> str:
    """What the runner makes of a value; the percent sign comes last."""
    codes = [("%0D", "\r"), ("%0A", "\n"), *([("%3A", ":"), ("%2C", ",")] if is_property else [])]
    for code, meant in [*codes, ("%25", "%")]:
        text = text.replace(code, meant)
    return text


def parsed(line: str) -> Command:
    """A line as the runner reads it: a command, its properties up to the next ::, its message."""
    found = re.fullmatch(r"::(?P<name>[a-z-]+)(?: (?P<given>.*?))?::(?P<data>.*)", line)
    assert found is not None, line
    pairs = [one.split("=", 1) for one in (found["given"] or "").split(",")]
    properties = {key: unescaped(value, is_property=True) for key, value in pairs}
    return found["name"], properties, unescaped(found["data"], is_property=False)


def commands(text: str) -> list[Command]:
    # The runner ends a line at CR and LF alike.
    return [parsed(line) for line in re.split(r"\r\n|\r|\n", text.removesuffix("\n"))]


def test_the_golden_commands(suite: list[RunRecord], golden: Callable[[str, str], None]) -> None:
    """Errors first, then warnings, then the suite."""
    golden("github.txt", render_github(suite, file="trialwise.yaml"))


def test_levels_by_what_they_mean(suite: list[RunRecord]) -> None:
    """FAIL and refused: error. INCONCLUSIVE, advisory, caveats: warning. The suite: notice."""
    found = {properties["title"]: name for name, properties, _ in commands(render_github(suite))}

    assert "error" == found["support-agent: grounded is FAIL"]
    assert "error" == found["search: answers is REFUSED"]
    assert "warning" == found["booking-agent: books [cellar] is INCONCLUSIVE"]
    assert "warning" == found["support-agent: latency p95 is FAIL (advisory)"]
    assert "warning" == found["support-agent: valid-json"]
    assert "notice" == found["trialwise: FAIL"]


def test_a_message_tells_why(runs: Runs) -> None:
    """The statement, the advice, then the reasons, a line each."""
    _, _, message = commands(render_github([runs["fail"]]))[0]
    lines = message.split("\n")

    assert "A rate above 0.9 was not shown (88 of 100, 95 needed)." == lines[0]
    assert "10 x condition, amount: expected at most 24.9, found 252" == lines[2]


def test_a_passing_suite_says_one_thing(runs: Runs) -> None:
    """A notice and nothing else."""
    ((name, properties, message),) = commands(render_github([runs["pass"]]))

    assert ("notice", "trialwise: PASS") == (name, properties["title"])
    assert "the criterion passed, 60 trials, 2 s" == message


def test_what_github_would_drop_is_counted(runs: Runs) -> None:
    """Twelve failing criteria: nine, and one that names the other three."""
    found = commands(render_github([runs["fail"]] * 12))
    errors = [
        (properties["title"], message) for name, properties, message in found if name == "error"
    ]

    assert MOST_ANNOTATIONS == len(errors)
    assert ("3 more", "\n".join(["support-agent: grounded is FAIL"] * 3)) == errors[-1]


@pytest.mark.slow
@given(TEXTS)
def test_no_text_makes_a_command(marked: Made, text: str) -> None:
    """As many commands of the same names, and the text in the title where it can be shown."""
    plain = commands(render_github(marked("")))
    found = commands(render_github(marked(text), file="suite.yaml"))

    assert [name for name, _, _ in plain] == [name for name, _, _ in found]
    assert {"suite.yaml"} == {properties["file"] for _, properties, _ in found}
    assert all({"file", "title"} == properties.keys() for _, properties, _ in found)
    if text.isprintable():
        assert f"support-agent{text}: grounded{text} is FAIL" == found[0][1]["title"]


# --- GitLab -----------------------------------------------------------------------------------


def test_the_golden_report(suite: list[RunRecord], golden: Callable[[str, str], None]) -> None:
    """One entry for each line that is no PASS."""
    golden("gitlab.codequality.json", render_gitlab(suite))


def test_gitlab_finds_what_it_asks_for(suite: list[RunRecord]) -> None:
    """A description, a fingerprint, a severity it knows, and a place."""
    entries = json.loads(render_gitlab(suite, file="suites/nightly.yaml"))

    assert 6 == len(entries)
    for entry in entries:
        assert {"description", "check_name", "fingerprint", "severity", "location"} <= entry.keys()
        assert entry["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert "suites/nightly.yaml" == entry["location"]["path"]
        assert 1 == entry["location"]["lines"]["begin"]
    assert 6 == len({entry["fingerprint"] for entry in entries})


def test_a_fingerprint_outlives_the_counts(runs: Runs) -> None:
    """The next run fails by other numbers, and is the same finding."""
    record = runs["fail"]
    first, second, *rest = record.verdict.findings
    other = replace(second, tally=Tally(trials=90, passed=70), statement="70 of 90.")
    verdict = replace(record.verdict, findings=(first, other, *rest), run_id="other")
    later = replace(record, verdict=verdict, run_id="other")

    def prints(one: RunRecord) -> list[str]:
        return [entry["fingerprint"] for entry in json.loads(render_gitlab([one]))]

    assert prints(record) == prints(later)
    assert prints(record)[0] != prints(runs["inputs"])[0]


def test_a_contract_that_ran_twice_has_two_fingerprints(runs: Runs) -> None:
    """GitLab drops the second of two that are equal."""
    entries = json.loads(render_gitlab([runs["fail"], runs["fail"]]))

    assert 4 == len(entries) == len({entry["fingerprint"] for entry in entries})


def test_a_passing_suite_has_no_entry(runs: Runs) -> None:
    """An empty list is a valid report."""
    assert [] == json.loads(render_gitlab([runs["pass"]]))


@given(TEXTS)
def test_any_text_gives_a_report(marked: Made, text: str) -> None:
    """UTF-8, and as many entries as without it."""
    entries = json.loads(render_gitlab(marked(text), file=text).encode("utf-8"))

    assert 6 == len(entries)


@pytest.mark.parametrize("render", [render_github, render_gitlab])
def test_an_empty_suite_is_refused(render: Callable[[list[RunRecord]], str]) -> None:
    """What was not run has no annotations either."""
    with pytest.raises(InvalidArgument, match="never PASS"):
        render([])
