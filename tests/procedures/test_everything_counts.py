"""Reasons and diagnostics are over all trials that ran; a row shows the sample that decided."""

from __future__ import annotations

from typing import Any

import trialwise as tw


def _run(passing: int, trials: int = 100, **more: Any) -> Any:
    contract = tw.Contract(
        "x",
        lambda _, index: "ok" if index < passing else "bad",
        [tw.Criterion("ok", tw.equals("ok"), at_least=0.5)],
        latency=tw.Latency(
            constraints=(tw.model.LatencyConstraint(percentile="p50", limit_s=1.0),)
        ),
    )
    return tw.run(
        contract, inputs=list("abcd"), trials=trials, store=None, progress=False, seed=1, **more
    )


def test_trials_after_a_decision_count_in_the_reasons_and_the_drift() -> None:
    """59 passes decide; the latency limit runs all 100, and the rate is that of the decision."""
    result = _run(59)
    finding = result.verdict.findings[0]
    assert (finding.all_trials.passed, finding.all_trials.trials) == (59, 100)
    assert (finding.tally.passed, finding.tally.trials, finding.decided_at) == (59, 59, 59)
    assert finding.breakdown.condition == 41
    assert finding.diagnostics.second_half_rate == 9 / 50
    text = result.transparent()
    assert "p̂ = 1.000000" in text
    assert "PASS at trial 59 withdrawn; of 41 later trials 0" in text


def test_every_machine_readable_report_has_both_counts() -> None:
    """One sample in a row, and beside it the trials that ran later."""
    from trialwise.pages.result_lines import describe_lines

    record = _run(59).record
    facts = describe_lines(record.verdict, record)[0].facts
    assert (facts["passed"], facts["trials"], facts["rate"]) == (59, 59, 1.0)
    assert (facts["decided_at"], facts["later_trials"], facts["later_passed"]) == (59, 41, 0)
    assert facts["withdrawn"] == "PASS"
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
