"""A suite of three contracts, small enough to read: every status, every kind of line.

`TRIALWISE_GOLDEN=write pytest tests/reports` writes the golden files anew; read the difference
before it is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.procedures.decided_counts import decide_latency_limit
from tests.revising import criterion_plan, replace

from trialwise.model.claim import Claim, Intent, SamplingMode
from trialwise.model.evidence import (
    Diagnostics,
    Guard,
    Reproducibility,
    Severity,
    Spending,
    StopReason,
    Tally,
    Threshold,
)
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.run import RunRecord, Trials
from trialwise.model.trial import Analysis, CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.model.verdict import Decision, Dimension, Finding, Verdict, Wording
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.composite import compose
from trialwise.procedures.observational import decide_observational
from trialwise.stats.result_types import Interval
from trialwise.stats.sequential.design import SequentialDesign

Mark = Callable[[str], str]
"""What is done to every text that a suite file or a service could have written."""

STARTED = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)


def _plan(contract: str, inputs: Sequence[str], findings: Sequence[Finding], trials: int) -> Plan:
    return Plan(
        contract=contract,
        seed=7,
        intent=Intent.VERIFICATION,
        rule="wilson",
        analysis=Analysis.INTENT_TO_TREAT,
        claim=Claim(),
        options=RunOptions(seed=7),
        experiments=(
            ExperimentPlan(
                name="inputs",
                identifier="inputs",
                fingerprint="f",
                input_ids=tuple(inputs),
                repetitions=(1,) * len(inputs),
                trials=trials,
                draw="balanced",
                sampling_mode=SamplingMode.WITH_REPLACEMENT,
            ),
        ),
        criteria=tuple(
            CriterionPlan(
                criterion=one.criterion,
                experiment="inputs",
                procedure=one.procedure,
                rule=one.rule,
                decision_rule=one.decision_rule,
                alpha=one.alpha,
                trials=trials,
                threshold=one.threshold,
            ).change(each_input=bool(one.by_input))
            for one in findings
        ),
    )


def _trial(
    index: int,
    input_id: str,
    results: dict[str, tuple[str, CheckResult]],
    error_class: ErrorClass = ErrorClass.NONE,
) -> Trial:
    return Trial(
        experiment="inputs",
        index=index,
        input_id=input_id,
        seed=1000 + index,
        outcomes=tuple(
            Outcome(
                criterion=name,
                result=result,
                postcondition=postcondition or None,
                error_class=error_class,
            )
            for name, (postcondition, result) in results.items()
        ),
        error_class=error_class,
        error="timed out" if error_class is ErrorClass.TIMEOUT else "",
        latency_s=0.4 + index / 1000,
    )


def _record(
    findings: Sequence[Finding], trials: Sequence[Trial], inputs: Sequence[str], verdict: Verdict
) -> RunRecord:
    plan = _plan(verdict.contract, inputs, findings, max(len(trials), 20))
    return RunRecord(run_id=verdict.run_id, plan=plan, trials=Trials.of(trials), verdict=verdict)


def support(mark: Mark = str) -> RunRecord:
    """FAIL: one criterion passes, one fails for three reasons, one is observational."""
    json_name, grounded, pii = mark("valid-json"), mark("grounded"), mark("no-pii")
    inputs = [mark("refund"), mark("hours")]
    trials = []
    for index in range(100):
        good = ("", CheckResult.ok())
        results = {json_name: good, grounded: good, pii: good}
        error = ErrorClass.NONE
        if index % 10 == 3:
            explanation = mark(f"expected at most 24.9, found {249 + index}")
            failed = CheckResult.fail(explanation, evidence=mark('"amount": 249'))
            results[grounded] = (mark("amount"), failed)
        elif index == 50:
            cut = CheckResult.fail(mark("not JSON"), reason=FailReason.TRANSFORM)
            results[json_name] = (mark("parses"), cut)
        elif index in (61, 62):
            error = ErrorClass.TIMEOUT
            none = CheckResult.fail("", reason=FailReason.NO_VALUE)
            results[grounded] = ("", none)
        trials.append(_trial(index, inputs[index % 2], results, error))
    findings = (
        replace(
            decide_compliance(json_name, Tally(trials=100, passed=99), 0.95, rule="wilson"),
            interval=Interval(0.9455, 0.9982, confidence=0.95, method="wilson"),
            threshold=Threshold(required_rate=0.95),
            stop=StopReason.COMPLETE,
            planned_trials=100,
            experiment="inputs",
            caveats=(mark("one passing trial needed a retry"),),
        ),
        replace(
            decide_compliance(grounded, Tally(trials=100, passed=88), 0.9, rule="wilson"),
            statement=mark("A rate above 0.9 was not shown (88 of 100, 95 needed)."),
            advice=mark("Look at the amounts."),
            interval=Interval(0.8019, 0.93, confidence=0.95, method="wilson"),
            threshold=Threshold(required_rate=0.9),
            stop=StopReason.COMPLETE,
            planned_trials=100,
            experiment="inputs",
            diagnostics=Diagnostics(warnings=(mark("neighbours are alike (p = 0.004)"),)),
        ),
        replace(
            decide_observational(pii, Tally(trials=100, passed=100)),
            label="NO FAILURE OBSERVED",
            stop=StopReason.COMPLETE,
            planned_trials=100,
            experiment="inputs",
        ),
    )
    times = [trial.latency_s for trial in trials if trial.passed and trial.latency_s is not None]
    latency = decide_latency_limit("p95", times, 0.95, 0.45, rule="wilson")
    verdict = replace(
        compose(findings, [latency], advisory=[Dimension.LATENCY]),
        contract=mark("support-agent"),
        run_id=mark("run-1"),
        started_at=STARTED,
        guards=(
            Guard(
                code="baseline-near-expiry",
                severity=Severity.MINOR,
                message=mark("the baseline expires in 9 days"),
            ),
        ),
        covariates={mark("region"): mark("eu")},
        spending=Spending(trials=100, attempts=101, seconds=41.25, tokens=5100, usd=0.41),
        reproducibility=Reproducibility(seed=7, plan_hash=mark("h")),
    )
    return _record(findings, trials, inputs, verdict)


def booking(mark: Mark = str) -> RunRecord:
    """FAIL input by input, stopped by its budget: one PASS, one FAIL, one INCONCLUSIVE."""
    name, inputs = mark("books"), [mark("table"), mark("terrace"), mark("cellar")]
    wrong = CheckResult.fail(mark("no booking made"), evidence=mark("sorry"))
    # 13 successes PASS the first input, 4 failures FAIL the second, 2 of 3 leave the third open.
    outcomes = [*[(0, True)] * 13, *[(1, False)] * 4, (2, True), (2, False), (2, True)]
    trials = [
        _trial(index, inputs[at], {name: ("", CheckResult.ok()) if good else ("made", wrong)})
        for index, (at, good) in enumerate(outcomes)
    ]
    design = SequentialDesign.optimal(0.90, 0.80, cap=50)
    plan = criterion_plan(
        name,
        experiment="inputs",
        procedure="SEQUENTIAL",
        decision_rule="sequential/optimal",
        alpha=0.05,
        beta=0.2,
        design=design,
        stops_early=True,
        trials=50,
        each_input=True,
        threshold=Threshold(required_rate=0.9, alternative_rate=0.8),
    )
    parts = [
        Finding(
            plan=plan,
            decision=decision,
            tally=tally,
            words=Wording(statement=mark(f"{tally.passed} of {tally.trials}.")),
            stop=stop,
            input_id=input_id,
        )
        for input_id, tally, decision, stop in (
            (inputs[0], Tally(trials=13, passed=13), Decision.PASS, StopReason.DECIDED),
            (inputs[1], Tally(trials=4, passed=0), Decision.FAIL, StopReason.DECIDED),
            (inputs[2], Tally(trials=3, passed=2), Decision.INCONCLUSIVE, StopReason.MONEY_BUDGET),
        )
    ]
    whole = replace(
        parts[0],
        decision=Decision.FAIL,
        tally=Tally(trials=20, passed=15),
        input_id=None,
        by_input=tuple(parts),
        statement=mark("1 of 3 inputs PASS; FAIL: terrace (0/4)."),
        stop=StopReason.MONEY_BUDGET,
        planned_trials=150,
    )
    verdict = replace(
        compose([whole]),
        contract=mark("booking-agent"),
        run_id=mark("run-2"),
        started_at=STARTED,
        stop=StopReason.MONEY_BUDGET,
        aborted=mark("The budget of $0.20 was used up."),
        spending=Spending(trials=20, attempts=20, seconds=9.5, tokens=900, usd=0.2),
    )
    return _record([whole], trials, inputs, verdict)


def refused(mark: Mark = str) -> RunRecord:
    """No decision: twenty trials cannot show 95 %."""
    tally = Tally(trials=0, passed=0)
    finding = decide_compliance(mark("answers"), tally, 0.95, planned_trials=20, rule="wilson")
    verdict = replace(compose([finding]), contract=mark("search"), run_id=mark("run-3"))
    return _record([finding], [], [mark("a")], verdict)


def passing(mark: Mark = str) -> RunRecord:
    """PASS, and nothing to say about it."""
    name, inputs = mark("echoes"), [mark("only")]
    trials = [_trial(i, inputs[0], {name: ("", CheckResult.ok())}) for i in range(60)]
    finding = replace(
        decide_compliance(name, Tally(trials=60, passed=60), 0.9, rule="wilson"),
        experiment="inputs",
    )
    spent = Spending(trials=60, attempts=60, seconds=2.0)
    verdict = replace(
        compose([finding]), contract=mark("echo"), run_id=mark("run-4"), spending=spent
    )
    return _record([finding], trials, inputs, verdict)


@pytest.fixture(scope="session")
def suite() -> list[RunRecord]:
    """FAIL, FAIL by input, refused."""
    return [support(), booking(), refused()]


@pytest.fixture(scope="session")
def runs() -> dict[str, RunRecord]:
    """The same runs by name, and one that PASSes."""
    return {"fail": support(), "inputs": booking(), "refused": refused(), "pass": passing()}


@pytest.fixture(scope="session")
def marked() -> Callable[[str], list[RunRecord]]:
    """The suite with a text at the end of everything that somebody else could have written."""

    def made(text: str) -> list[RunRecord]:
        return [make(lambda own: own + text) for make in (support, booking, refused, passing)]

    return made


@pytest.fixture(scope="session")
def golden() -> Callable[[str, str], None]:
    """Compares a text with the golden file of that name."""

    def compare(name: str, text: str) -> None:
        file = Path(__file__).parent / "golden" / name
        if os.environ.get("TRIALWISE_GOLDEN") == "write":
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(text.encode())
        assert file.read_bytes().decode() == text

    return compare
