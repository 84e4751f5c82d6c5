"""From a plan and its trials to a verdict: the same whoever decides it, and whenever."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialwise.documents.numbers import as_probability
from trialwise.model.contract import Contract, Latency
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.options import AbortRule, RunOptions
from trialwise.model.plan import Plan
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.model.verdict import Decision, Finding, Verdict
from trialwise.procedures.run_plan import plan_run
from trialwise.procedures.run_verdict import decide_run
from trialwise.stats.rate_intervals import wilson_interval
from trialwise.stats.sequential.design import SequentialDesign

OK = CheckResult.ok()
BAD = CheckResult.fail("it was bad")


def holds(text: str) -> bool:
    return bool(text)


def plan(*criteria: Criterion, inputs: Sequence[str] = ("a",), **given: Any) -> Plan:
    latency = given.pop("latency", None)
    contract = Contract("c", holds, criteria, sampling=list(inputs), latency=latency)
    return plan_run(
        contract,
        RunOptions(**given),
        seed=1,
        structure={one.name: "s" for one in criteria},
        fingerprints={"inputs": "f"},
    )


def trial(index: int, *results: CheckResult, input_id: str = "1", **given: Any) -> Trial:
    names = given.pop("names", ["c", "d", "e"])
    error_class = given.get("error_class", ErrorClass.NONE)
    outcomes = tuple(
        Outcome(criterion=name, result=result, error_class=error_class)
        for name, result in zip(names, results, strict=False)
    )
    defaults = {"experiment": "inputs", "seed": index, "latency_s": 0.1}
    return Trial(index=index, input_id=input_id, outcomes=outcomes, **{**defaults, **given})


def judged(
    made: Plan, trials: Sequence[Trial], stop: StopReason = StopReason.COMPLETE, **given: Any
) -> Verdict:
    return decide_run(
        made,
        trials,
        stops={"inputs": stop},
        stop=stop,
        spending=Spending(trials=len(trials)),
        **given,
    )


def only(verdict: Verdict) -> Finding:
    (finding,) = verdict.findings
    return finding


def outcomes(passed: Sequence[bool]) -> list[Trial]:
    return [trial(index, OK if one else BAD) for index, one in enumerate(passed)]


FIFTY = Criterion("c", holds, at_least=0.8, trials=30)


@given(st.lists(st.booleans(), min_size=30, max_size=30))
def test_a_curtailed_run_has_the_verdict_of_the_whole_run(passed: list[bool]) -> None:
    """Stopping once the rest cannot matter changes nothing but the number of trials."""
    made = plan(FIFTY)
    whole = only(judged(plan(FIFTY, curtail=False), outcomes(passed)))
    assert whole.decision is (
        Decision.PASS if sum(passed) >= (whole.cutoff or 0) else Decision.FAIL
    )
    curtailed = only(judged(made, outcomes(passed)))
    assert curtailed.decision is whole.decision
    assert curtailed.tally.trials <= 30
    if curtailed.tally.trials < 30:
        assert curtailed.stop is StopReason.CURTAILED
        assert curtailed.p_value is None
        assert curtailed.interval is not None
        assert (curtailed.decision is Decision.PASS) == (curtailed.interval.low >= 0.8)


@pytest.mark.slow
@settings(max_examples=8)
@given(st.lists(st.booleans(), max_size=50), st.randoms())
def test_the_order_of_arrival_is_no_part_of_a_verdict(passed: list[bool], chance: Any) -> None:
    """Trials are decided by their place in the issue order, shuffled or not."""
    made = plan(Criterion("c", holds, at_least=0.9, max_trials=50))  # a design that ships
    trials = outcomes(passed)
    shuffled = chance.sample(trials, len(trials))
    stop = StopReason.INTERRUPTED
    assert judged(made, trials, stop) == judged(made, shuffled, stop)


@pytest.mark.slow
def test_what_comes_after_a_gap_does_not_count() -> None:
    """Trial 2 is missing: the verdict rests on trials 0 and 1."""
    made = plan(Criterion("c", holds, at_least=0.9, max_trials=50))
    trials = [trial(index, OK) for index in (0, 1, 3, 4, 5, *range(6, 40))]
    finding = only(judged(made, trials, StopReason.INTERRUPTED))
    assert (2, Decision.INCONCLUSIVE) == (finding.tally.trials, finding.decision)


@pytest.mark.parametrize("stop", [one for one in StopReason if one.is_premature])
def test_a_plan_cut_short_is_inconclusive_and_says_why(stop: StopReason) -> None:
    """Ten clean trials of thirty decide nothing, and nothing is lost."""
    verdict = judged(plan(FIFTY), outcomes([True] * 10), stop)
    finding = only(verdict)
    assert verdict.decision is Decision.INCONCLUSIVE
    assert (10, 10) == (finding.tally.trials, finding.tally.passed)
    assert "10 of 30" in finding.statement
    assert "20 more" in finding.advice
    assert verdict.aborted


def test_an_abort_never_leaves_a_pass() -> None:
    """What passed before the abort is INCONCLUSIVE, or FAIL by policy."""
    passed = outcomes([True] * 30)
    assert judged(plan(FIFTY), passed, StopReason.ERROR_RATE).decision is Decision.INCONCLUSIVE
    strict = plan(FIFTY, abort=AbortRule(to_fail=True), analysis="intent-to-treat")
    assert judged(strict, passed, StopReason.ERROR_RATE).decision is Decision.FAIL


def test_both_denominators_are_always_there_and_the_verdict_names_its_own() -> None:
    """Excused trials fail the whole pipeline, and are left out of the service's own rate."""
    no_value = CheckResult.fail("no reply", reason=FailReason.NO_VALUE)
    trials = [
        *outcomes([True] * 26),
        *(trial(index, no_value, error_class=ErrorClass.INFRASTRUCTURE) for index in range(26, 30)),
    ]
    treated = judged(plan(FIFTY, curtail=False, analysis="intent-to-treat"), trials)
    finding = only(treated)
    assert treated.analysis == "intent-to-treat"
    assert (30, 26) == (finding.tally.trials, finding.tally.passed)
    assert finding.per_protocol is not None
    assert (26, 26) == (finding.per_protocol.trials, finding.per_protocol.passed)
    assert finding.breakdown is not None
    assert (4, {"infrastructure": 4}) == (finding.breakdown.no_value, finding.breakdown.errors)
    assert finding.tally.evaluable == 26

    measured = judged(plan(FIFTY, curtail=False), trials)
    assert measured.analysis == "measured"
    assert (26, 26) == (only(measured).tally.trials, only(measured).tally.passed)

    chosen = judged(plan(FIFTY, curtail=False, analysis="per-protocol"), trials)
    other = only(chosen)
    assert chosen.analysis == "per-protocol"
    assert (26, 26) == (other.tally.trials, other.tally.passed)
    assert other.decision is Decision.PASS
    assert other.intent_to_treat is not None
    assert other.intent_to_treat.trials == 30


@pytest.mark.slow
def test_never_fails_is_judged_on_every_trial_the_others_needed() -> None:
    """It shares the trials, and one failure among them is enough."""
    criteria = (
        Criterion("c", holds, at_least=0.9, margin=0.1, power=0.8),
        Criterion("d", holds, never_fails=True, min_probes=50),
    )
    made = plan(*criteria)
    trials = [trial(index, OK, OK) for index in range(11)]
    first, second = judged(made, trials, StopReason.DECIDED).findings
    assert (Decision.PASS, 11) == (first.decision, first.tally.trials)
    assert (Decision.PASS, 11) == (second.decision, second.tally.trials)
    assert second.label == "NO FAILURE OBSERVED"
    trials[5] = trial(5, OK, BAD)
    assert judged(made, trials, StopReason.DECIDED).decision is Decision.FAIL


def test_each_input_is_judged_and_the_multiplicity_is_stated() -> None:
    """Three streams, three findings, and the union bound over them."""
    criterion = Criterion("c", holds, at_least=0.5, each_input=True, trials=10)
    made = plan(criterion, inputs=["x", "y", "z"])
    trials = [
        trial(index, BAD if name == "2" else OK, input_id=name)
        for index, name in enumerate(["1", "2", "3"] * 10)
    ]
    verdict = judged(made, trials)
    finding = only(verdict)
    assert finding.decision is Decision.FAIL
    assert {"1": "PASS", "2": "FAIL", "3": "PASS"} == {
        part.input_id: part.decision for part in finding.by_input
    }
    assert "2 of 3 inputs PASS" in finding.statement
    cutoff = finding.by_input[0].cutoff
    assert cutoff is not None
    size = sum(math.comb(10, k) for k in range(cutoff, 11)) / 2**10
    some = as_probability(1 - (1 - size) ** 3)
    assert f"some input PASSes in {some} of runs" in finding.statement
    assert verdict.envelopes.false_compliance_envelope == pytest.approx(size)


def test_latency_is_of_successful_trials_and_advisory_unless_enforced() -> None:
    """Slow failures do not count; a breach is reported and changes nothing until it is enforced."""
    trials = [trial(index, OK, latency_s=0.2) for index in range(100)]
    trials[3] = trial(3, BAD, latency_s=90.0)
    criterion = Criterion("c", holds, at_least=0.8, trials=100)
    advisory = judged(plan(criterion, latency=Latency.within(p95=0.1), curtail=False), trials)
    assert (Decision.PASS, Decision.FAIL) == (advisory.decision, advisory.latency_decision)
    assert (99, 0.2) == (advisory.latency[0].trials, advisory.latency[0].observed)
    enforced = Latency.within(p95=0.1, enforced=True)
    strict = judged(plan(criterion, latency=enforced, curtail=False), trials)
    assert strict.decision is Decision.FAIL
    assert ["p95"] == [trigger.name for trigger in strict.triggers]


def test_a_retried_pass_is_disclosed() -> None:
    """With the number of passes that needed one."""
    trials = outcomes([True] * 30)
    trials[4] = trial(4, OK, attempts=2, attempt_errors=("busy",))
    finding = only(judged(plan(FIFTY, curtail=False), trials))
    assert finding.breakdown is not None
    assert finding.breakdown.retried == 1
    assert any("1 of the 30 passes needed a retry" in caveat for caveat in finding.caveats)


def test_a_declared_horizon_is_bounded_over_its_runs() -> None:
    """Ten runs have at most ten times the achieved error of one (§8.5)."""
    made = plan(Criterion("c", holds, at_least=0.9), horizon=10)
    verdict = judged(made, outcomes([True] * 14), StopReason.DECIDED)
    design = only(verdict).plan.design
    assert isinstance(design, SequentialDesign)
    fails = design.operating_characteristic(0.9).fails
    assert 0 < fails <= 0.05
    assert verdict.horizon_false_alarm == pytest.approx(10 * fails)


def test_a_whole_run_carries_its_interval_and_its_statement() -> None:
    """Wilson with the decision's 5 % on each side, and a long-run property in words."""
    made = plan(FIFTY, curtail=False, rule="wilson")
    finding = only(judged(made, outcomes([True] * 28 + [False] * 2)))
    assert finding.interval is not None
    assert tuple(finding.interval) == pytest.approx(tuple(wilson_interval(28, 30, confidence=0.9)))
    assert (0.9, "Wilson, approximate") == (finding.interval.confidence, finding.interval.method)
    assert "not a posterior probability" in finding.confidence_statement
    assert finding.words.null.startswith("p ≤ 0.8")
    assert finding.stop is StopReason.COMPLETE


def test_an_empty_run_is_inconclusive() -> None:
    """No trial, no verdict on the service."""
    verdict = judged(plan(FIFTY), [], StopReason.INTERRUPTED)
    assert verdict.decision is Decision.INCONCLUSIVE
    assert only(verdict).interval is None


def test_a_dead_server_is_no_finding_about_the_service() -> None:
    """Not one trial reached it: INCONCLUSIVE, or FAIL where the policy says so."""
    no_value = CheckResult.fail("no reply", reason=FailReason.NO_VALUE)
    dead = [
        trial(index, no_value, error_class=ErrorClass.INFRASTRUCTURE, error="refused")
        for index in range(30)
    ]
    finding = only(judged(plan(FIFTY), dead))
    assert finding.decision is Decision.INCONCLUSIVE
    assert "None of the 30 trials was measured" in finding.statement
    assert finding.breakdown is not None
    assert finding.breakdown.commonest_error == "refused"
    strict = plan(FIFTY, abort=AbortRule(to_fail=True), analysis="intent-to-treat")
    assert only(judged(strict, dead)).decision is Decision.FAIL
    # Under intent-to-treat one reply is enough: from then on every trial counts.
    every = plan(FIFTY, analysis="intent-to-treat")
    assert only(judged(every, [trial(0, BAD), *dead[1:]])).decision is Decision.FAIL
