"""What verdicts together are worth: achieved errors, the largest of a PASS, the sum of a FAIL."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

import trialwise as tw
from trialwise.pages.suite_totals import bound_suite_errors, list_error_sentences


def _run(criteria: list[tw.Criterion], inputs: int = 1, **options: Any) -> Any:
    contract = tw.Contract("x", lambda _: "ok", criteria)
    names = [f"q{n}" for n in range(inputs)]
    return tw.run(contract, inputs=names, store=None, progress=False, seed=1, **options)


def _walk(design: Any, rate: float) -> tuple[float, float]:
    """P(PASS) and P(FAIL) of a sequential design by a plain recursion over trials and failures."""
    here, passes, fails = {0: 1.0}, 0.0, 0.0
    for n in range(1, design.cap + 1):
        after: dict[int, float] = {}
        for failures, weight in here.items():
            for more, chance in ((0, rate), (1, 1 - rate)):
                after[failures + more] = after.get(failures + more, 0.0) + weight * chance
        passes += sum(w for f, w in after.items() if f <= design.accept[n])
        fails += sum(w for f, w in after.items() if f >= design.reject[n])
        here = {f: w for f, w in after.items() if design.accept[n] < f < design.reject[n]}
        if design.futile:
            low, high = design.futile[n]
            here = {f: w for f, w in here.items() if not low <= f <= high}
    return passes, fails


def _size(cutoff: int, trials: int, rate: float) -> float:
    return sum(
        math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k)
        for k in range(cutoff, trials + 1)
    )


def test_a_fixed_criterion_states_its_achieved_size() -> None:
    """Wilson's cutoff at 90 % of 100 is passed in 5.76 % of runs, not in 5 %."""
    result = _run([tw.Criterion("ok", tw.equals("ok"), at_least=0.9)], trials=100, rule="wilson")
    cutoff = result.verdict.findings[0].plan.cutoff
    bound, wrong_fail = bound_suite_errors([result.verdict])
    assert bound.raw is not None
    assert bound.raw == pytest.approx(_size(cutoff, 100, 0.9), abs=1e-12)
    assert bound.is_exact
    assert wrong_fail.raw == pytest.approx(1 - bound.raw, abs=1e-12)
    assert result.verdict.envelopes.false_compliance_envelope == pytest.approx(bound.raw)
    assert f"{bound.raw:.6f}" in result.transparent()
    assert "at most Σα" not in result.transparent()


def test_a_bad_criterion_among_many_passes_with_at_most_the_largest_error() -> None:
    """PASS needs every criterion; 0.1.0 added four errors of 20 % up to 80 %."""
    criteria = [
        tw.Criterion(f"c{n}", tw.equals("ok"), at_least=0.9, margin=0.1, power=0.8)
        for n in range(4)
    ]
    verdict = _run(criteria).verdict
    passes = _walk(verdict.findings[0].plan.design, 0.8)[0]
    fails = _walk(verdict.findings[0].plan.design, 0.9)[1]
    wrong_pass, wrong_fail = bound_suite_errors([verdict])
    assert wrong_pass.raw == pytest.approx(passes, abs=1e-9)
    assert wrong_fail.raw == pytest.approx(4 * fails, abs=1e-9)
    assert not wrong_fail.is_exact


def test_every_input_counts_in_the_sum_of_wrong_fails_and_over_a_horizon() -> None:
    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.8, margin=0.3, each_input=True)
    verdict = _run([criterion], inputs=10, horizon=2).verdict
    one = _walk(verdict.findings[0].by_input[0].plan.design, 0.8)[1]
    assert verdict.envelopes.false_rejection_envelope == pytest.approx(10 * one, abs=1e-9)
    together = 2 * 10 * one
    if together < 1:
        assert verdict.horizon_false_alarm == pytest.approx(together, abs=1e-9)
    else:
        assert verdict.horizon_false_alarm is None


@pytest.mark.slow
def test_a_bound_of_one_or_more_is_not_printed() -> None:
    criteria = [tw.Criterion(f"c{n}", tw.equals("ok"), at_least=0.9, margin=0.1) for n in range(25)]
    verdict = _run(criteria, horizon=2).verdict
    one = _walk(verdict.findings[0].plan.design, 0.9)[1]
    assert 25 * one * 2 > 1
    assert verdict.horizon_false_alarm is None
    result = tw.Result(_run(criteria, horizon=40).record)
    assert "100 %" not in " ".join(list_error_sentences(bound_suite_errors([result.verdict])))


def test_both_errors_of_inputs_that_are_decided_one_by_one_are_stated() -> None:
    """0.1.0 counted one of two errors: five bad inputs have a wrong PASS in two runs of three."""
    criterion = tw.Criterion(
        "ok", tw.equals("ok"), at_least=0.8, margin=0.3, power=0.8, each_input=True
    )
    finding = _run([criterion], inputs=5).verdict.findings[0]
    design = finding.by_input[0].plan.design
    passes, fails = _walk(design, 0.5)[0], _walk(design, 0.8)[1]
    assert f"{100 * (1 - (1 - fails) ** 5):.2f} %" in finding.statement.replace("\u00a0", " ")
    assert f"{100 * (1 - (1 - passes) ** 5):.2f} %" in finding.statement.replace("\u00a0", " ")


def test_an_enforced_latency_against_a_baseline_enters_the_sum_of_wrong_fails() -> None:
    """0.1.0 had its level in no envelope. One with a limit of its own is named."""
    from trialwise.model.plan import LatencyPlan
    from trialwise.procedures.chances import Uncounted, bound_plans

    plan = _run([tw.Criterion("ok", tw.equals("ok"), at_least=0.9, margin=0.1)]).record.plan
    alone = bound_plans([plan], tw.Decision.FAIL)
    measured = LatencyPlan(
        percentile="p95",
        level=0.95,
        experiment=plan.experiments[0].name,
        alpha=0.04,
        baseline_latencies_s=tuple(n / 1000 for n in range(500)),
        enforced=True,
    )
    limited = dataclasses.replace(measured, limit_s=0.5, baseline_latencies_s=None)
    both = bound_plans([dataclasses.replace(plan, latency=(measured, limited))], tw.Decision.FAIL)
    assert alone is not None
    assert both is not None
    assert alone.raw is not None
    assert both.raw == pytest.approx(alone.raw + 0.04)
    assert (both.levels, both.is_exact) == (alone.levels + 1, False)
    (left_out,) = both.not_counted
    assert left_out == Uncounted(
        "latency p95", "fails in at least 96 % of runs if its percentile is exactly the limit"
    )


def test_a_rule_that_exceeds_its_level_does_not_say_that_it_is_controlled_there() -> None:
    """Wilson's cutoff of 25 trials at 90 % is passed in 7.18 % of runs (0.9**25)."""
    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.9)
    said = {
        rule: _run([criterion], trials=trials, rule=rule).verdict.findings[0].confidence_statement
        for rule, trials in (("wilson", 25), ("exact", 29))
    }
    assert f"up to {0.9**25:.4f}, more than the nominal 0.05" in said["wilson"]
    assert "controlled at 0.05" in said["exact"]
