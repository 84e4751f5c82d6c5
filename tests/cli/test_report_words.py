"""What result lines and reports call their numbers."""

from __future__ import annotations

import json
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from tests.cli.suite_folders import enter_folder, type_command

from trialwise.errors import DesignRefused
from trialwise.model.evidence import Spending
from trialwise.pages.suite_totals import list_spent

SERVICE = """
import trialwise as tw

PASSES = {"a": "PPFPP", "b": "PPPPP", "c": "FFFFF", "d": "PFPFP"}
SEEN = {}

def four(input):
    k = SEEN[input] = SEEN.get(input, -1) + 1
    return "ok" if PASSES[input][k] == "P" else "bad"

def timed(input, index):
    return tw.Reply(value="ok", latency_s=(index + 1) / 1000)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def do(suite: str, *arguments: str) -> str:
    """Return what a quiet run of a suite prints."""
    return type_command(f"name: x\n{suite}", "run", "-q", *arguments).output


def test_reliability_without_limits_is_summed_up_as_pass_at_k_and_pass_hat_k() -> None:
    """Three of four inputs pass in any of five runs, one in every one; the folder is no report."""
    text = do(
        'service: {python: "svc:four"}\ninputs: [a, b, c, d]\ntrials: 20\ncurtail: false\n'
        "reliability: {}\ncriteria: [{name: ok, equals: ok, at_least: 1%}]"
    )

    assert "pass@5 0.75, pass^5 0.25 (5 runs of each of 4 inputs)" in text
    assert "kept in .trialwise" in text
    assert "report:" not in text


def test_a_latency_has_its_mean_and_its_longest_in_json() -> None:
    """Trial i takes i ms, of 100 trials."""
    report: dict[str, Any] = json.loads(
        do(
            'service: {python: "svc:timed"}\ninputs: [a]\ntrials: 100\nrule: wilson\n'
            "curtail: false\nlatency: {p50: 20ms}\n"
            "criteria: [{name: ok, equals: ok, at_least: 90%}]",
            "--json",
        )
    )

    (line,) = (one for one in report["runs"][0]["results"] if one["kind"] == "latency")
    times = [k / 1000 for k in range(1, 101)]
    assert line["facts"]["mean_s"] == pytest.approx(fsum(times) / 100)
    assert line["facts"]["maximum_s"] == max(times)
    assert "p50 was 50 ms; at most 20 ms is allowed" in line["statement"]


def test_a_requirement_close_to_certainty_keeps_its_digits() -> None:
    """99.99999 % is not rounded to 1."""
    with pytest.raises(DesignRefused, match=r"a rate above 0\.9999999 at"):
        do(
            'service: {python: "svc:timed"}\ninputs: [a]\ntrials: 10\n'
            "criteria: [{name: ok, equals: ok, at_least: 0.9999999}]"
        )


def test_the_figures_of_a_page_have_all_money() -> None:
    """Judges and setup are paid for too."""
    figures = dict(list_spent(Spending(trials=1, usd=1.0, judging_usd=0.016, setup_usd=0.5)))

    assert (figures["cost"], figures["cost of judges"]) == ("$1.00", "$0.016")
    assert figures["cost of setup"] == "$0.50"


def test_the_terminal_says_what_a_horizon_of_runs_is_worth() -> None:
    """The bound on a false alarm in any of the runs stands in the heading."""
    text = do(
        'service: {python: "svc:timed"}\ninputs: [a]\nhorizon: 2\n'
        "criteria: [{name: ok, equals: ok, at_least: 90%, margin: 10%}]"
    )

    assert "over 2 runs, any false alarm: at most " in text
