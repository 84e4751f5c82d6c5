"""The verdict of a run: every criterion's finding, the latency dimension, and their composite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from trialwise.documents.phrases import STOPS
from trialwise.model.evidence import (
    ExperimentSummary,
    Reproducibility,
    Spending,
    StopReason,
)
from trialwise.model.plan import CriterionPlan, ExperimentPlan, LatencyPlan, Plan
from trialwise.model.run_trials import Trials
from trialwise.model.successful_latencies import list_latencies
from trialwise.model.trial import Trial
from trialwise.model.trial_table import TrialTable
from trialwise.model.verdict import (
    Decision,
    Dimension,
    Finding,
    LatencyFinding,
    Verdict,
)
from trialwise.procedures.chances import bound_plans
from trialwise.procedures.composite import compose
from trialwise.procedures.deciding.criterion_finding import decide_criterion

if TYPE_CHECKING:
    from trialwise.model.metrics import GateFinding


def decide_run(
    plan: Plan,
    trials: Sequence[Trial],
    *,
    stops: Mapping[str, StopReason],
    stop: StopReason,
    spending: Spending,
    run_id: str = "",
    started_at: datetime | None = None,
    message: str = "",
    covariates_at_end: Mapping[str, str] | None = None,
    reproducibility: Reproducibility | None = None,
) -> Verdict:
    """Decide a run from its plan and its trials, and from nothing else.

    Args:
        plan: What was to be run.
        trials: What was run, of all experiments.
        stops: Why each experiment ended.
        stop: Why the run ended.
        spending: What it took.
        run_id: The id of the record.
        started_at: When it began.
        message: Why it ended before its plan did, for a person.
        covariates_at_end: Conditions that had another value when it ended.
        reproducibility: The numerical ingredients.
    """
    held = Trials.of(trials)
    by_experiment = {one.name: held.of_experiment(one.name) for one in plan.experiments}

    def decide(criterion: CriterionPlan) -> Finding:
        experiment = next(one for one in plan.experiments if one.name == criterion.experiment)
        ended = stops.get(experiment.name, stop)
        return decide_criterion(criterion, plan, experiment, by_experiment[experiment.name], ended)

    findings = [decide(criterion) for criterion in plan.criteria]
    if plan.correction != "none":
        from trialwise.procedures.deciding.corrections import correct_findings

        findings = correct_findings(findings, plan, decide)
    if any(one.others.withdrawn_by is not None for one in plan.criteria):
        from trialwise.procedures.later_trials import withdraw

        findings = [withdraw(one, plan) for one in findings]
    if stop is StopReason.ERROR_RATE:
        findings = [_aborted(one, to_fail=plan.options.abort.to_fail) for one in findings]
    latency = [
        _latency(one, plan, by_experiment[one.experiment], stops.get(one.experiment, stop))
        for one in plan.latency
    ]
    enforced = any(one.enforced for one in plan.latency)
    gates: tuple[GateFinding, ...] = ()
    if plan.gates:  # few runs have any
        from trialwise.procedures.gates import PROCEDURE as GATES

        ends = {name: stops.get(name, stop) for name in by_experiment}
        gates = GATES.decide(plan, by_experiment, ends)
    verdict = compose(
        findings,
        latency,
        advisory=() if enforced else (Dimension.LATENCY,),
        gates=gates,
    )
    return replace(
        verdict,
        plan=plan,
        run_id=run_id,
        started_at=started_at,
        experiments=tuple(
            _summary(one, by_experiment[one.name], stops.get(one.name, stop))
            for one in plan.experiments
        ),
        spending=spending,
        stop=stop,
        aborted=message or (f"The run {STOPS[stop].predicate}." if stop.is_premature else ""),
        covariates_at_end=dict(covariates_at_end or {}),
        horizon_false_alarm=_horizon(plan, verdict),
        reproducibility=reproducibility or Reproducibility(seed=plan.seed),
    )


def _aborted(finding: Finding, *, to_fail: bool) -> Finding:
    """An abort never leaves a PASS: what passed before it is not known to have been run fairly."""
    if finding.decision is Decision.FAIL:
        return finding
    is_told = finding.stop is StopReason.ERROR_RATE  # a plan cut short says so itself
    why = "" if is_told else f"The run {STOPS[StopReason.ERROR_RATE].predicate}. "
    return replace(
        finding,
        decision=Decision.FAIL if to_fail else Decision.INCONCLUSIVE,
        words=replace(finding.words, label="", statement=f"{why}{finding.statement}"),
    )


def _summary(experiment: ExperimentPlan, trials: TrialTable, stop: StopReason) -> ExperimentSummary:
    tried = Counter(trials.inputs)
    repetitions = Counter(tried.values())
    return ExperimentSummary(
        name=experiment.name,
        identifier=experiment.identifier,
        version=experiment.version,
        role=experiment.role,
        description=experiment.description,
        fingerprint=experiment.fingerprint,
        inputs=len(experiment.input_ids),
        distinct=experiment.distinct_inputs if experiment.copies else None,
        clusters=len(set(experiment.find_units())) if experiment.clusters else None,
        trials=len(trials),
        planned=experiment.trials,
        draw=experiment.draw,
        sampling_mode=experiment.sampling_mode,
        stop=stop,
        repetitions={str(times): repetitions[times] for times in sorted(repetitions)},
    )


def _latency(
    constraint: LatencyPlan, plan: Plan, trials: TrialTable, stop: StopReason
) -> LatencyFinding:
    """Decide one percentile over the successful trials (companion §12.2.1).

    It needs every trial of its plan: what ended a run early may be the slow replies themselves.
    """
    from trialwise.procedures.latency import decide_latency

    latencies = list_latencies(trials, plan.reported)
    planned = next(one.trials for one in plan.experiments if one.name == constraint.experiment)
    # A limit that only advises is decided whatever the number of trials.
    advises = constraint.limit_s is not None and not constraint.enforced
    found = decide_latency(
        constraint,
        latencies,
        rule=plan.rule,
        intent=plan.intent,
        planned_trials=None if advises else planned,
    )
    if not stop.is_premature or found.decision is None:
        return found
    statement = f"The run {STOPS[stop].predicate}; a percentile needs every trial of its plan."
    return replace(found, decision=Decision.INCONCLUSIVE, statement=statement)


def _horizon(plan: Plan, verdict: Verdict) -> float | None:
    """Bound a false alarm in the declared horizon, whatever the dependence (§8.5).

    Summed over criteria and inputs, of achieved errors; None where it bounds nothing.
    """
    runs = plan.options.horizon_runs
    bound = None if runs is None or verdict.decision is None else bound_plans([plan], Decision.FAIL)
    if runs is None or bound is None or bound.value is None:
        return None
    together = bound.value * runs
    return together if together < 1 else None
