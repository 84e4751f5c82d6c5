"""What result lines and reports call their numbers."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from math import comb, floor, fsum
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

    assert "pass@5 0.75, pass^5 0.25; decay curve" in text
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


FOUR = (
    'service: {python: "svc:four"}\ninputs: [a, b, c, d]\ntrials: 20\ncurtail: false\n'
    "criteria: [{name: ok, equals: ok, at_least: 1%}]\n"
)


def test_reliability_without_limits_is_in_every_report(folder: Path) -> None:
    """Also a few points of its decay curve, which is computed here from the outcomes."""
    outputs = [part for name in ("r.md", "r.junit.xml", "r.tap") for part in ("-o", name)]
    terminal = " ".join(do(f"{FOUR}reliability: {{}}", *outputs).split())
    # Of the first k runs c_k passed; the plug-in pass^k is rounded down to whole percents.
    passes = ["PPFPP", "PPPPP", "FFFFF", "PFPFP"]
    curve = [
        fsum(floor(100 * Fraction(one[:k].count("P"), k) ** k) for one in passes) / 4
        for k in (1, 2, 4, 5)
    ]
    said = f"decay curve {', '.join(f'{value:.3g}' for value in curve)} % at k = 1, 2, 4, 5"

    for text in (terminal, *((folder / name).read_text() for name in ("r.junit.xml", "r.tap"))):
        assert f"pass@5 0.75, pass^5 0.25; {said}" in text
    assert said in (folder / "r.md").read_text()
    assert (
        '<property name="reliability.passhat_k" value="25.0" />'
        in (folder / "r.junit.xml").read_text()
    )


def test_metrics_show_pass_at_k_of_every_input(folder: Path) -> None:
    """By the largest k below the number of runs: at k = n they say only any and all."""
    do(f"{FOUR}metrics: {{k: [1, 3, 5]}}", "-o", "r.html")
    page = (folder / "r.html").read_text()
    (table,) = re.findall(r"<table>(?:(?!</table>).)*pass@3(?:(?!</table>).)*</table>", page, re.S)
    cells = [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", table, re.S)
    ]
    head, *rows = cells
    at, hat = head.index("pass@3"), head.index("pass^3")

    for row in rows:
        passed = {"1": 4, "2": 5, "3": 0, "4": 3}[row[0]]
        assert float(row[at]) == pytest.approx(1 - comb(5 - passed, 3) / comb(5, 3), abs=1e-4)
        assert float(row[hat]) == pytest.approx(comb(passed, 3) / comb(5, 3), abs=1e-4)
    assert len(rows) == 4


def test_score_prints_biased_values_and_those_of_every_input(folder: Path) -> None:
    """The plug-in values put the rate of each input into the formula."""
    passes = {"a": "PPFPP", "b": "PPPPP", "c": "FFFFF", "d": "PFPFP"}
    lines = [
        json.dumps({"input": name, "criterion": "ok", "passed": one == "P"})
        for name, outcomes in passes.items()
        for one in outcomes
    ]
    (folder / "o.jsonl").write_text("\n".join(lines))
    text = type_command("name: x\n", "score", "o.jsonl").output
    rates = [one.count("P") / 5 for one in passes.values()]
    naive, plug_in = (fsum(1 - (1 - p) ** 4 for p in rates), fsum(p**4 for p in rates))

    assert f"(naive {naive / 4:.3f})" in text
    assert f"(plug-in {plug_in / 4:.3f})" in text
    assert "  a: 4 of 5 passed, pass@4 1.000, pass^4 0.200" in text


def test_a_latency_line_has_mean_and_maximum_and_json_has_them_without_a_limit() -> None:
    """Trial i takes i ms, of 100 trials."""
    suite = (
        'service: {python: "svc:timed"}\ninputs: [a]\ntrials: 100\ncurtail: false\n'
        "criteria: [{name: ok, equals: ok, at_least: 90%}]\n"
    )
    limited = " ".join(do(f"{suite}rule: wilson\nlatency: {{p50: 20ms}}").split())
    free = json.loads(do(suite, "--json"))["runs"][0]["latency"]

    assert "50 ms, limit 20 ms, mean 50.5 ms, maximum 100 ms, 100 successes" in limited
    assert free["successes"] == 100
    assert free["mean_s"] == pytest.approx(0.0505)
    assert free["maximum_s"] == 0.1


def test_a_result_line_says_nothing_about_a_usual_end() -> None:
    """Criterion, verdict, rate, interval, requirement, trials: words for an early end only."""
    suite = 'service: {python: "svc:timed"}\ninputs: [a]\n'
    fixed = do(f"{suite}trials: 40\ncriteria: [{{name: ok, equals: ok, at_least: 90%}}]")
    early = do(f"{suite}criteria: [{{name: ok, equals: ok, at_least: 90%}}]")

    for text in (fixed, early):
        (line,) = (one for one in text.splitlines() if one.startswith("  ok "))
        assert re.fullmatch(r"  ok  PASS  100\.0 %  \[.*\]  required ≥ 90 %  \d+ trials", line)


def test_an_observation_shows_counts_and_no_rate() -> None:
    """Nothing is claimed about a rate."""
    text = do(
        'service: {python: "svc:timed"}\ninputs: [a]\ntrials: 10\n'
        "criteria: [{name: ok, equals: ok, never_fails: true}]",
        "--transparent",
    )

    assert "p̂" not in text
    assert "Successes (K):             10" in text


def test_the_terminal_says_how_often_several_decisions_err() -> None:
    """One line for a suite of several decisions, none for one."""
    suite = 'service: {python: "svc:timed"}\ninputs: [a]\ntrials: 50\n'
    one = "{name: ok, equals: ok, at_least: 90%}"
    two = "{name: again, equals: ok, at_least: 90%}"
    alone, both = (do(f"{suite}criteria: [{some}]") for some in (one, f"{one}, {two}"))
    # 50 of 50 are needed, which a service at the required rate reaches with 0.9 ** 50.
    cutoff = next(c for c in range(51) if _tail(50, c, Fraction(9, 10)) <= Fraction(1, 20))
    size = float(_tail(50, cutoff, Fraction(9, 10)))

    assert "too low" not in alone
    said = f"If one rate were too low, this suite would still pass in at most {100 * size:.2f} % of"
    assert said in " ".join(both.split())


def _tail(trials: int, fewest: int, rate: Fraction) -> Fraction:
    """The probability of at least this many passes."""
    return sum(
        (comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(fewest, trials + 1)),
        Fraction(0),
    )


def test_left_out_sub_scores_of_a_session_are_not_shown(folder: Path) -> None:
    """The numbers of a gate say what they are."""
    (folder / "svc.py").write_text(
        "import trialwise as tw\n"
        "def ask(input):\n"
        "    trace = {'tool_calls': [{'name': 'a'}, {'name': 'b'}],"
        " 'conversation': {'turns': [{'role': 'assistant', 'content': 'hi'}] * 2}}\n"
        "    return tw.Reply(value='ok', details={'trace': trace})\n"
    )
    do(
        'service: {python: "svc:ask"}\ninputs: [a]\ntrials: 10\ncurtail: false\n'
        "criteria: [{name: ok, equals: ok, at_least: 1%}]\n"
        "stability: {exclude: [tool_usage_stability, response_consistency]}",
        *("-o", "r.html"),
    )
    page = (folder / "r.html").read_text()
    runs = page[page.index("Runs, the least steady first") :]
    table = runs[: runs.index("</table>")]

    assert "redundancy" in table
    assert "tool usage stability" not in table
    assert "weakest score of the worst run (heuristic)" in page


def test_an_approximate_interval_is_marked_in_every_report(folder: Path) -> None:
    """Under `rule: wilson`; an exact interval has no mark."""
    suite = (
        'service: {python: "svc:timed"}\ninputs: [a]\ntrials: 100\n'
        "criteria: [{name: ok, equals: ok, at_least: 90%}]\n"
    )
    for rule, mark in (("wilson", "≈ ["), ("exact", "  [")):
        text = do(f"{suite}rule: {rule}", "-o", "r.html", "-o", "r.md")
        page, table = ((folder / name).read_text() for name in ("r.html", "r.md"))
        approximate = rule == "wilson"
        assert mark in text
        assert ("(≈ approximate, by Wilson)" in text) is approximate
        assert ("≈ marks an interval" in table) is approximate
        assert ("≈ marks an interval" in page) is approximate


def test_a_page_says_first_what_a_fail_leaves_undecided(folder: Path) -> None:
    """A FAIL settles the verdict before the other criterion is decided."""
    do(
        'service: {python: "svc:timed"}\ninputs: [a]\n'
        "criteria: [{name: no, equals: no, at_least: 90%}, {name: ok, equals: ok, at_least: 90%}]",
        *("-o", "r.html"),
    )
    page = (folder / "r.html").read_text()

    assert "1 of 2 criteria failed: no. 1 could not be decided: ok." in page


def test_the_page_of_a_suite_names_the_contracts_that_did_not_pass(folder: Path) -> None:
    """It is called by the suite's name, and what only advises takes no part."""
    suite = (
        'service: {python: "svc:timed"}\ninputs: [a]\ncontracts:\n'
        "  - {name: good, criteria: [{name: ok, equals: ok, at_least: 90%}]}\n"
        "  - {name: bad, criteria: [{name: ok, equals: no, at_least: 90%}]}\n"
    )
    type_command(suite, "run", "-q", "-o", "r.html")
    page = (folder / "r.html").read_text()

    assert "1 of 2 contracts failed: bad." in page
    assert f"<h1>{folder.name}</h1>" in page or f"<bdi>{folder.name}</bdi>" in page
