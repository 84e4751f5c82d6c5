"""Suites about latency: percentiles, their minimums, thresholds and explicit limits."""

from __future__ import annotations

from typing import Any

from trialwise.contrib.conformance.adapters.rate_cases import level
from trialwise.contrib.conformance.adapters.sizing_cases import unknown_approach
from trialwise.contrib.conformance.reference_cases import Case
from trialwise.model.claim import Intent
from trialwise.model.plan import LatencyPlan
from trialwise.procedures.latency import decide_latency
from trialwise.stats.latency_baseline import (
    order_statistic_bound,
    precedence_existence,
    precedence_threshold,
)
from trialwise.stats.latency_percentiles import (
    emission_minimum,
    latency_summary,
    nearest_rank_percentile,
)
from trialwise.stats.latency_planning import (
    LatencyLimitDecision,
    existence_minimum,
    nondegeneracy_decision,
    precedence_planning,
)
from trialwise.stats.toolbox.nondegeneracy import nondegeneracy_planning


def sequence(value: Any) -> list[float]:
    """A list of latencies that R may have unboxed to one number."""
    return value if isinstance(value, list) else [value]


def latency_percentile(case: Case) -> dict[str, Any]:
    latencies = sequence(case.inputs["latencies"])
    if "percentile" in case.inputs:
        return {"value": nearest_rank_percentile(latencies, case.inputs["percentile"])}
    summary = latency_summary(latencies)
    return {"mean": summary.mean, "max": summary.maximum}


def latency_percentile_minimums(case: Case) -> dict[str, Any]:
    inputs = case.inputs
    percentile = inputs["percentile"]
    match case.approach:
        case "emission_non_degeneracy":
            return {"minimum_contributing_samples": emission_minimum(percentile)}
        case "bound_existence":
            needed = existence_minimum(percentile, confidence=inputs["confidence"])
            return {"minimum_baseline_samples": needed}
        case "precedence_existence":
            existence = precedence_existence(
                inputs["baseline_trials"], inputs["test_samples"], percentile, alpha=level(inputs)
            )
            return {"saturated": existence.saturated, "rank": existence.rank}
        case "precedence_planning":
            plan = precedence_planning(
                inputs["baseline_trials"],
                inputs["planned_samples"],
                inputs["baseline_success_rate"],
                percentile,
                alpha=level(inputs),
            )
            return {
                "expected_test_samples": plan.expected_trials,
                "warning": plan.warning,
                "planning_rank": plan.planning_rank,
                "minimum_baseline_trials": plan.minimum_baseline_trials,
            }
        case "nondegeneracy_planning":
            check = nondegeneracy_planning(
                inputs["planned_samples"], inputs["baseline_success_rate"], percentile
            )
            return {
                "expected_test_samples": check.expected_trials,
                "minimum_contributing_samples": check.minimum_trials,
                "warning": check.warning,
                "planned_samples_needed": check.planned_trials_needed,
            }
        case "nondegeneracy_decision":
            gate = nondegeneracy_decision(
                inputs["test_samples"],
                percentile,
                intent=inputs["intent"],
                threshold_source=inputs["threshold_source"],
            )
            return {"applies": gate.applies, "degenerate": gate.degenerate, "outcome": gate.outcome}
        case _:
            raise unknown_approach(case)


def order_statistic_threshold(case: Case) -> dict[str, Any]:
    """The older suites publish a saturated bound at the maximum, flagged in one of them."""
    inputs = case.inputs
    bound = order_statistic_bound(
        sequence(inputs["baseline_latencies"]), inputs["p"], confidence=inputs["confidence"]
    )
    return {
        "rank": bound.trials if bound.saturated else bound.rank,
        "threshold": bound.advisory_value if bound.saturated else bound.value,
        "baseline_percentile": bound.baseline_percentile,
        "n": bound.trials,
        "k_raw": bound.raw_rank,
        "saturated": bound.saturated,
    }


def precedence_rule(case: Case) -> dict[str, Any]:
    inputs = case.inputs
    design = precedence_threshold(
        sequence(inputs["baseline_latencies"]),
        inputs["test_samples"],
        inputs["p"],
        alpha=level(inputs),
        baseline_run_trials=inputs["baseline_samples"],
        planned_trials=inputs["planned_samples"],
    )
    return {
        "configuration_error": [design.refusal] if design.refusal else [],
        "rank": design.rank,
        "threshold": design.threshold,
        "saturated": design.saturated,
        "breach_probability": design.breach_probability,
        "test_rank": design.test_rank,
        "n": design.baseline_trials,
        "baseline_percentile": design.baseline_percentile,
    }


def latency_compliance_decision(case: Case) -> dict[str, Any]:
    inputs = case.inputs
    plan = LatencyPlan(
        percentile=case.name,
        level=inputs["percentile"],
        alpha=level(inputs),
        limit_s=inputs["threshold_ms"],
    )
    finding = decide_latency(
        plan,
        sequence(inputs["latencies"]),
        rule="fisher",
        intent=Intent(inputs["intent"]),
        planned_trials=inputs["planned_samples"],
    )
    result = finding.evidence
    assert isinstance(result, LatencyLimitDecision)
    return {
        "test_samples": result.trials,
        "within_threshold": result.within,
        "y_min": result.y_min,
        "pass_possible": result.pass_possible,
        "verdict": finding.decision,
        "configuration_error": list(finding.refusals),
        "false_compliance": result.false_compliance,
        "clopper_pearson_lower": result.clopper_pearson_lower,
        "observed_percentile_ms": result.observed_percentile,
        "raw_percentile_pass": result.raw_percentile_pass,
    }


LATENCY = {
    ("latency_percentile", "wilson"): latency_percentile,
    ("latency_percentile", "fisher"): latency_percentile,
    ("latency_percentile_minimums", "wilson"): latency_percentile_minimums,
    ("latency_percentile_minimums", "fisher"): latency_percentile_minimums,
    ("latency_threshold", "wilson"): order_statistic_threshold,
    ("latency_threshold", "fisher"): precedence_rule,
    ("latency_threshold_bootstrap", "wilson"): order_statistic_threshold,
    ("latency_compliance_decision", "fisher"): latency_compliance_decision,
}
