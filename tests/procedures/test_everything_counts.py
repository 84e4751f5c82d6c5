"""Rates, counts, reasons and diagnostics are over all trials that ran; a decision keeps its own."""

from __future__ import annotations

from typing import Any

import trialwise as tw


def _run(passing: int, trials: int = 100, **more: Any) -> Any:
    contract = tw.Contract(
        "x",
        lambda _, index: "ok" if index < passing else "bad",
        [tw.Criterion("ok", tw.equals("ok"), at_least=0.5)],
        latency=tw.Latency(constraints=(tw.LatencyConstraint(percentile="p50", limit_s=1.0),)),
    )
    return tw.run(
        contract, inputs=list("abcd"), trials=trials, store=None, progress=False, seed=1, **more
    )


def test_trials_after_a_decision_count_in_the_rate_the_reasons_and_the_drift() -> None:
    """59 passes decide; the latency limit runs all 100. 0.1.0 reported 100 % of 59."""
    result = _run(59)
    finding = result.verdict.findings[0]
    assert (finding.all_trials.passed, finding.all_trials.trials) == (59, 100)
    assert (finding.tally.passed, finding.tally.trials, finding.decided_at) == (59, 59, 59)
    assert finding.breakdown.condition == 41
    assert finding.diagnostics.second_half_rate == 9 / 50
    text = result.transparent()
    assert "p̂ = 0.590000" in text
    assert "at trial 59, on 59 of 59" in text


def test_a_caveat_says_that_what_came_later_differs() -> None:
    assert "of the 41 trials after that 0 passed" in " ".join(_run(59).verdict.findings[0].caveats)
    # Had all passed, nothing would look different.
    assert "after that" not in " ".join(_run(100).verdict.findings[0].caveats)


def test_every_machine_readable_report_has_both_counts() -> None:
    from trialwise.pages.result_lines import describe_lines

    record = _run(59).record
    facts = describe_lines(record.verdict, record)[0].facts
    assert (facts["passed"], facts["trials"], facts["rate"]) == (59, 100, 0.59)
    assert (facts["decided_at"], facts["decided_passed"]) == (59, 59)
    assert (facts["inputs_asked"], facts["inputs"]) == (4, 4)


def test_failures_after_the_decision_have_their_reasons() -> None:
    from trialwise.pages.result_lines import describe_lines

    record = _run(59).record
    line = describe_lines(record.verdict, record)[0]
    assert sum(group.count for group in line.failures) == 41


def test_a_criterion_that_is_decided_early_counts_the_trials_of_another() -> None:
    """14 trials of 0.1.0's report were 156 trials, 15 of them failed."""
    quick = tw.Criterion("quick", tw.contains("o"), at_least=0.5, trials=10)
    slow = tw.Criterion("slow", tw.equals("ok"), at_least=0.5, trials=100)

    def service(_: str, index: int) -> str:
        return "ok" if index < 20 or index % 2 else "xx"

    result = tw.run(
        tw.Contract("x", service, [quick, slow]),
        inputs=["a"],
        store=None,
        progress=False,
        curtail=False,
    )
    finding = result.verdict.findings[0]
    assert (finding.tally.trials, finding.tally.passed) == (10, 10)
    assert (finding.all_trials.trials, finding.all_trials.passed) == (100, 60)
