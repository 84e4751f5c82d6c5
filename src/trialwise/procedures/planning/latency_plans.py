"""The latency dimension of a plan: whose limit, and whether enough successes can be expected."""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.model.baseline import Baseline
from trialwise.model.contract import Contract
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan, LatencyPlan
from trialwise.model.verdict import Intent
from trialwise.stats.latency_planning import verification_gate

__all__ = ["plan_latency"]


def plan_latency(
    contract: Contract,
    options: RunOptions,
    experiments: Sequence[ExperimentPlan],
    criteria: Sequence[CriterionPlan],
    baseline: Baseline | None,
) -> tuple[tuple[LatencyPlan, ...], list[str]]:
    """The rule of every percentile, and the reasons why one cannot be decided."""
    latency = contract.latency
    assert latency is not None
    name = contract.latency_experiment
    experiment = next((one for one in experiments if one.name == name), None)
    if experiment is None:  # its criteria were refused, and so is the run
        return (), []
    refusals: list[str] = []
    plans = []
    known = None if baseline is None else baseline.latencies_s.get(name)
    for constraint in latency.constraints:
        if constraint.limit_s is None and known is None:
            refusals.append(
                f"latency {constraint.percentile}: no baseline holds latencies of {name!r}; "
                "measure one first, or give a limit"
            )
            continue
        plans.append(
            LatencyPlan(
                percentile=constraint.percentile,
                level=constraint.level,
                experiment=name,
                alpha=latency.alpha,
                limit_s=constraint.limit_s,
                baseline_latencies_s=known if constraint.limit_s is None else None,
                baseline_run_trials=None if baseline is None else baseline.run_trials.get(name),
                enforced=latency.enforced,
            )
        )
    if latency.enforced and options.intent is Intent.VERIFICATION:
        rate = _success_rate(criteria, name, baseline)
        refusals += _latency_gate(plans, experiment.trials, rate, latency.confidence)
    return tuple(plans), refusals


def _success_rate(
    criteria: Sequence[CriterionPlan], experiment: str, baseline: Baseline | None
) -> float:
    """The share of trials expected to succeed: the baseline's, else the least that is required."""
    if baseline is not None:
        run, good = baseline.run_trials.get(experiment), baseline.latencies_s.get(experiment)
        if run and good is not None:
            return len(good) / run
    rates = [
        one.threshold.required_rate
        for one in criteria
        if one.experiment == experiment and one.threshold.required_rate is not None
    ]
    return min(rates, default=1.0)


def _latency_gate(
    plans: Sequence[LatencyPlan], trials: int, rate: float, confidence: float
) -> list[str]:
    """Refuse a percentile whose bound would not exist at the expected successes (§12.5.3)."""
    reasons = []
    for plan in plans:
        gate = verification_gate(trials, rate, plan.level, confidence=confidence)
        if not gate.feasible:
            reasons.append(
                f"latency {plan.percentile}: {trials} trials at a success rate of {rate:.3g} give "
                f"about {gate.expected_trials} latencies, and {gate.minimum_trials} are needed; "
                f"plan at least {gate.planned_trials_needed} trials, or leave latency advisory"
            )
    return reasons
