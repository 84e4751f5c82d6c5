"""Findings of counts that no run made, by the same route that a run's counts take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trialwise.model.claim import Claim, Intent, PopulationClaim, SamplingMode
from trialwise.model.evidence import Tally, Threshold
from trialwise.model.plan import CriterionPlan, ExperimentPlan, LatencyPlan
from trialwise.model.trial import CheckResult, Outcome, Trial
from trialwise.model.verdict import Decision, Finding, LatencyFinding
from trialwise.procedures.base import Counts
from trialwise.procedures.claims import ClaimCheck, check_claim
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.criterion_rows import Rows
from trialwise.procedures.latency import decide_latency
from trialwise.procedures.registry import find_procedure
from trialwise.stats.result_types import Rule
from trialwise.stats.sequential.concurrency import Draw
from trialwise.stats.sequential.design import SequentialDesign

PASSED = Outcome(criterion="c", result=CheckResult.ok())
FAILED = Outcome(criterion="c", result=CheckResult.fail("no"))


def decide_sequential(
    criterion: str,
    tally: Tally,
    design: SequentialDesign,
    *,
    claimed: Decision | None = None,
    intent: Intent = Intent.VERIFICATION,
) -> Finding:
    """What a sequential design says of the counts at which its stream ended."""
    plan = CriterionPlan(
        criterion=criterion,
        procedure="SEQUENTIAL",
        decision_rule=f"sequential/{design.method}",
        alpha=design.alpha,
        beta=design.beta,
        trials=design.cap,
        design=design,
        threshold=Threshold(required_rate=design.p0, alternative_rate=design.p1),
    ).change(stops_early=True)
    counts = Counts(tally=tally, decision=claimed, intent=intent)
    return find_procedure(plan.procedure).decide(plan, counts).to_finding(plan)


def decide_claimed(
    criterion: str,
    outcomes: Mapping[str, tuple[int, int]],
    claim: Claim,
    required_rate: float,
    *,
    alpha: float | None = 0.05,
    rule: Rule = "wilson",
    intent: Intent = Intent.VERIFICATION,
    corpus_size: int | None = None,
    weights: Mapping[str, float] | None = None,
    strata: Mapping[str, str | None] | None = None,
    decision_rule: str | None = None,
    **planned: Any,
) -> Finding:
    """What a claim's own rule says of successes and trials by input.

    Args:
        criterion: Its name.
        outcomes: Successes and trials of each input.
        claim: What is claimed.
        required_rate: The rate that is asked for.
        alpha: The largest probability of a wrong PASS.
        rule: The rule set, where no estimator decides.
        intent: Verification or smoke.
        corpus_size: All inputs, tried or not.
        weights: Of each input.
        strata: Of each input.
        decision_rule: The name of an earlier rule, where it is not today's.
        planned: Further fields of the plan of an estimator.
    """
    rows = Rows.of(
        [
            Trial(experiment="", index=index, input_id=name, seed=0, outcomes=(outcome,))
            for index, (name, (passed, trials)) in enumerate(outcomes.items())
            for outcome in [PASSED] * passed + [FAILED] * (trials - passed)
        ]
    )
    tally = Tally(trials=len(rows), passed=rows.passed)
    counts = Counts(
        tally=tally,
        intent=intent,
        claim=claim,
        experiment=_experiment(outcomes, corpus_size, weights or {}, strata or {}),
        rows=rows,
    )
    plan = CriterionPlan(
        criterion=criterion,
        procedure="CORPUS",
        decision_rule="no-generalisation/observed-rate",
        trials=tally.trials,
        threshold=Threshold(required_rate=required_rate),
    )
    if claim.population is PopulationClaim.FINITE_CORPUS:
        whole = tally.trials == corpus_size
        name = "exact-rate" if whole else "hypergeometric"
        plan = replace(plan, decision_rule=f"finite-corpus/{name}", alpha=None if whole else alpha)
    elif claim.population is not PopulationClaim.NO_GENERALISATION:
        assert alpha is not None
        if claim.estimator is None:
            return decide_compliance(
                criterion, tally, required_rate, alpha=alpha, rule=rule, intent=intent
            )
        plan = plan.change(
            procedure="COMPLIANCE",
            decision_rule=decision_rule or _name_rule(claim),
            estimator=claim.estimator,
            alpha=alpha,
            **planned,
        )
    return find_procedure(plan.procedure).conclude(plan, counts).to_finding(plan)


def _experiment(
    outcomes: Mapping[str, tuple[int, int]],
    size: int | None,
    weights: Mapping[str, float],
    strata: Mapping[str, str | None],
) -> ExperimentPlan:
    size = len(outcomes) if size is None else size
    more = [f"untried {place}" for place in range(len(outcomes), size)]
    ids = dict.fromkeys((*weights, *strata, *outcomes, *more))
    names = tuple(ids)[: max(size, len(weights), len(strata))]
    return ExperimentPlan(
        name="",
        identifier="",
        fingerprint="",
        input_ids=names,
        repetitions=(1,) * len(names),
        weights=tuple(weights[name] for name in names) if weights else (),
        strata=tuple(strata[name] for name in names) if strata else (),
        trials=len(names),
        draw="balanced",
        sampling_mode=SamplingMode.WITHOUT_REPLACEMENT,
    )


def check_design(
    claim: Claim,
    *,
    inputs: int,
    trials: int,
    repetitions: Sequence[int] = (),
    weights: Sequence[float] = (),
    strata: Sequence[str | None] = (),
    procedure: str = "COMPLIANCE",
    intent: Intent = Intent.VERIFICATION,
    draw: Draw = "balanced",
    required_rate: float | None = None,
    alpha: float | None = None,
) -> ClaimCheck:
    """What stands between a design and its claim."""
    experiment = ExperimentPlan(
        name="",
        identifier="",
        fingerprint="",
        input_ids=tuple(map(str, range(inputs))),
        repetitions=tuple(repetitions) or (1,) * inputs,
        weights=tuple(weights),
        strata=tuple(strata),
        trials=trials,
        draw=draw,
        sampling_mode=SamplingMode.WITHOUT_REPLACEMENT,
    )
    criterion = CriterionPlan(
        criterion="c",
        procedure=procedure,
        alpha=alpha,
        trials=trials,
        threshold=Threshold(required_rate=required_rate),
    )
    return check_claim(claim, criterion, experiment, intent)


def decide_latency_limit(
    constraint: str,
    latencies: Sequence[float],
    percentile: float,
    limit: float,
    *,
    alpha: float = 0.05,
    **given: Any,
) -> LatencyFinding:
    """What a rule says of a percentile with a limit of its own."""
    plan = LatencyPlan(percentile=constraint, level=percentile, alpha=alpha, limit_s=limit)
    return decide_latency(plan, latencies, **given)


def decide_latency_baseline(
    constraint: str,
    latencies: Sequence[float],
    baseline_latencies: Sequence[float],
    percentile: float,
    *,
    alpha: float = 0.05,
    run_sizes: tuple[int, int] | tuple[None, None] = (None, None),
    **given: Any,
) -> LatencyFinding:
    """What a rule says of a percentile that a baseline bounds."""
    plan = LatencyPlan(
        percentile=constraint,
        level=percentile,
        alpha=alpha,
        baseline_latencies_s=tuple(baseline_latencies),
        baseline_run_trials=run_sizes[0],
    )
    return decide_latency(plan, latencies, planned_trials=run_sizes[1], **given)


def _name_rule(claim: Claim) -> str:
    return f"compliance/{claim.estimator}/{claim.estimand}/2"
