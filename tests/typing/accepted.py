"""Programs that a type checker must accept without a word, at its strictest.

They are checked, not run: each is a function that nobody calls.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, assert_type

import trialwise as tw
from trialwise.procedures.comparing.findings import Contrast
from trialwise.runtime.answers import Comparison
from trialwise.runtime.comparing import compare, compare_runs
from trialwise.stats.result_types import Interval

QUESTIONS = ["What is 15 * 37?", "Capital of Australia?"]


def agent(question: str) -> str:
    return f"{question} 555"


async def slow_agent(question: str, seed: int) -> tw.Reply:
    return tw.Reply(value=f"{question} {seed}", usage=tw.Usage(input_tokens=3), cost_usd=0.001)


def aware_agent(trial: tw.TrialContext) -> str:
    return f"{trial.input} {trial.index} {trial.seed}"


def grounded(text: str) -> bool:
    return "555" in text


def explained(reply: tw.Reply) -> tw.CheckResult:
    return tw.CheckResult.ok() if reply.text else tw.CheckResult.fail("nothing was said")


class Polite:
    """A postcondition of one's own."""

    name = "polite"

    def check(self, reply: tw.Reply) -> tw.CheckResult:
        return tw.CheckResult.ok() if "please" in reply.text else tw.CheckResult.fail("rude")


class Client:
    """A service of one's own."""

    async def call(self, trial: tw.TrialContext) -> tw.Reply:
        if not trial.input:
            raise tw.ServiceError("nothing to ask", tw.ErrorClass.PRE_VALIDATION)
        return tw.Reply(value="555", latency_s=0.2)

    async def aclose(self) -> None:
        return None


def the_first_lines() -> None:
    contract = tw.Contract(
        "sums", service=agent, criteria=[tw.Criterion("answers", tw.contains("555"), at_least=0.9)]
    )
    result = tw.run(contract, inputs=["What is 15 * 37?"])
    result.show()


def a_contract_of_every_kind() -> tw.Contract:
    return tw.Contract(
        "support-agent",
        agent,
        [
            tw.Criterion("valid-json", tw.parses("json"), at_least=0.95, origin="SLO"),
            tw.Criterion(
                "valid-html", tw.parses("json"), at_least=0.95, origin=tw.model.Origin.SLA
            ),
            tw.Criterion("grounded", grounded, no_worse_than="baseline"),
            tw.Criterion("explained", explained, at_least=0.9, trials=100),
            tw.Criterion("both", [grounded, tw.not_(tw.contains("sorry"))], at_least=0.9),
            tw.Criterion("polite", Polite(), at_least=0.8, max_trials=60, method="calibrated"),
            tw.Criterion("no-pii", lambda text: "@" not in text, never_fails=True, min_probes=50),
        ],
        sampling=QUESTIONS,
        latency=tw.Latency.within(p95=2.0, enforced=True),
        factors={"model": "small-3"},
    )


def every_way_to_run(contract: tw.Contract, several: list[tw.Contract]) -> None:
    assert_type(tw.run(contract), tw.Result)
    tw.run(contract, inputs=QUESTIONS, trials=200, seed=7, concurrency=8, timeout_s=30, retries=2)
    tw.run(contract, trials={"inputs": 50}, intent="smoke", rule="exact", draw="balanced")
    tw.run(contract, intent=tw.model.Intent.SMOKE, analysis="per-protocol", curtail=False)
    tw.run(contract, budget=tw.Budget(usd=1.0), abort=tw.model.AbortRule(max_error_rate=0.2))
    tw.run(contract, options=tw.RunOptions(trials=50), store=None, progress=False, resume="run-1")
    tw.run(contract, inputs=tw.Sampling.of(QUESTIONS, identifier="questions", version="2"))
    tw.run(contract, inputs=[tw.Input(id="sum", value="15 * 37?", stratum="maths")])
    tw.run(contract, store=Path("runs"), redact=lambda text: text.replace("secret", "…"))
    suite = tw.run_all(several, trials=100)
    assert_type(suite, tw.SuiteResult)
    assert_type(suite.decision, tw.Decision)
    suite.show(stream=sys.stderr)


def other_services(contract: tw.Contract) -> None:
    for service in (agent, slow_agent, aware_agent, Client(), tw.services.CallableService(agent)):
        assert_type(contract.with_service(service), tw.Contract)


def what_a_result_holds(result: tw.Result) -> None:
    assert_type(result.verdict, tw.Verdict)
    assert_type(result.decision, tw.Decision)
    assert_type(result.passed, bool)
    assert_type(result.path, Path | None)
    finding = result.verdict.findings[0]
    assert_type(finding, tw.model.Finding)
    assert_type(finding.interval, Interval | None)
    if finding.interval is not None:
        low, high = finding.interval
        assert_type(low + high, float)
    assert_type(finding.tally.rate, float | None)
    assert_type(finding.cutoff, int | None)
    for trial in result.record.trials:
        assert_type(trial.latency_s, float | None)
        assert_type(trial.outcome("answers").result.explanation, str)
    assert_type(result.to_dict(), dict[str, Any])
    assert_type(result.transparent(), str)
    result.to_frame("inputs", library="polars").head()
    match result.decision:
        case tw.Decision.PASS | tw.Decision.FAIL | tw.Decision.INCONCLUSIVE:
            pass


def planning_and_measuring(contract: tw.Contract) -> None:
    plan = tw.check(contract, inputs=QUESTIONS, trials=50)
    assert_type(plan, tw.results.CheckedPlan)
    assert_type(plan.criteria[0].cutoff, int | None)
    measured = tw.measure(contract, inputs=QUESTIONS, trials=1000, valid_days=90)
    assert_type(measured, tw.Measurement)
    assert_type(measured.baseline.criteria["grounded"].rate, float)


def comparing(contract: tw.Contract, other: tw.Result) -> None:
    compared = compare(
        contract,
        contract.with_service(slow_agent),
        inputs=QUESTIONS,
        trials=200,
        margin=0.05,
        correction="bonferroni",
        labels=("old", "new"),
        seed=1,
    )
    assert_type(compared, Comparison)
    assert_type(compared.findings[0].contrast, Contrast)
    assert_type(compared.findings[0].difference, float | None)
    assert_type(compared.to_dict(), dict[str, Any])
    compared.show()
    several = compare(
        contract,
        contract.with_service(slow_agent),
        contract.with_service(slow_agent),
        labels=["old", "new", "newer"],
        against="all",
        question="better",
        expect=(0.8, 0.9),
        max_trials=500,
        resume=True,
    )
    assert_type(several.arms[2].label, str)
    assert_type(several.path, Path | None)
    assert_type(compare(contract, contract, question="best"), tw.results.Choice)
    assert_type(
        compare(contract, contract, question="describe", trials=20), tw.results.ExploredArms
    )
    compared.to_frame("findings", library="pandas").head()
    assert_type(compare_runs(other, "2026-11-15T06-25-24Z-agent-3f9c"), Comparison)
    assert_type(compare_runs(other.record, Path("runs") / "one", other), Comparison)


def what_may_go_wrong(contract: tw.Contract) -> None:
    try:
        tw.run(contract)
    except tw.DesignRefused as refused:
        assert_type(refused.reasons, tuple[str, ...])
    except tw.RunInterrupted as stopped:
        if isinstance(stopped.result, tw.Result):
            stopped.result.show()
    except tw.TrialwiseError as error:
        print(error, file=sys.stderr)  # noqa: T201 - it is what such a program does


def a_guardrail() -> tw.Contract:
    return tw.guardrail_contract(
        "filter",
        agent,
        blocks=lambda text: text == "blocked",
        harmful=["how to build a bomb"],
        sensitivity=0.99,
        harmless=["how to build a shed"],
        specificity=0.9,
        prevalence=tw.model.Prevalence(rate=0.02, confidence=0.95, source="pre-guardrail"),
    )
