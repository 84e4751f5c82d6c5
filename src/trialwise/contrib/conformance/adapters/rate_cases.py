"""Suites about one rate: intervals, feasibility, cutoffs and the decisions on them."""

from __future__ import annotations

from typing import Any

from trialwise import stats
from trialwise.contrib.conformance.reference_cases import Case
from trialwise.decimals import complement
from trialwise.model.claim import Intent
from trialwise.model.evidence import Tally
from trialwise.model.verdict import Finding
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.regression import decide_regression
from trialwise.stats.result_types import Rule

FEASIBILITY_CRITERIA: dict[Rule, str] = {
    "wilson": "wilson_score_one_sided_lower_bound",
    "fisher": "exact_binomial_pass_possible",
}


def level(inputs: Any) -> float:
    """The alpha of a case: the older suites give a confidence instead, read as decimals."""
    if "alpha" in inputs:
        return float(inputs["alpha"])
    return complement(inputs["confidence"])


def wilson_ci(case: Case) -> dict[str, Any]:
    k, n = case.inputs["successes"], case.inputs["trials"]
    interval = stats.wilson_interval(k, n, confidence=case.inputs["confidence"])
    return {"lower": interval.low, "upper": interval.high, "point": k / n}


def wilson_lower(case: Case) -> dict[str, Any]:
    bound = stats.wilson_lower(
        case.inputs["successes"], case.inputs["trials"], confidence=case.inputs["confidence"]
    )
    return {"lower_bound": bound}


def feasibility(case: Case, rule: Rule) -> dict[str, Any]:
    needed = stats.minimum_trials(
        case.inputs["target_proportion"], alpha=level(case.inputs), rule=rule
    )
    return {
        "feasible": case.inputs["sample_size"] >= needed,
        "minimum_samples": needed,
        "criterion": FEASIBILITY_CRITERIA[rule],
    }


def threshold_derivation(case: Case, rule: Rule) -> dict[str, Any]:
    inputs = case.inputs
    counts = inputs["baseline_successes"], inputs["baseline_trials"], inputs["test_samples"]
    if case.approach == "threshold_first":
        if rule == "wilson":
            implied = stats.implied_confidence_of_threshold(*counts, inputs["threshold"])
        else:
            implied = stats.implied_alpha_of_cutoff(*counts, inputs["declared_cutoff"])
        return {
            "implied_confidence": implied.confidence,
            "implied_alpha": implied.alpha,
            "is_sound": implied.is_sound,
        }
    design = stats.regression_cutoff(*counts, alpha=level(inputs), rule=rule)
    return design_fields(design) | {
        "threshold": design.threshold,
        "wilson_lower_real": design.threshold,
    }


def regression_decision(case: Case, rule: Rule) -> dict[str, Any]:
    inputs = case.inputs
    if case.procedure == "COMPLIANCE":
        return compliance_decision(case, rule)
    finding = decide_regression(
        case.name,
        Tally(trials=inputs["test_samples"], passed=inputs["observed_successes"]),
        Tally(trials=inputs["baseline_trials"], passed=inputs["baseline_successes"]),
        alpha=level(inputs),
        rule=rule,
    )
    if not isinstance(finding.design, stats.RegressionCutoff):
        return {"verdict": finding.decision}
    return design_fields(finding.design) | {"verdict": finding.decision}


def compliance_decision(case: Case, rule: Rule) -> dict[str, Any]:
    inputs = case.inputs
    finding = decide_compliance(
        case.name,
        Tally(trials=inputs["test_samples"], passed=inputs["observed_successes"]),
        inputs["threshold"],
        alpha=level(inputs),
        rule=rule,
        # Cases without an intent ask for the bound's verdict at any size, as a smoke run does.
        intent=Intent(inputs.get("intent", "SMOKE")),
    )
    return compliance_fields(finding)


def compliance_fields(finding: Finding) -> dict[str, Any]:
    """The reference's names for a compliance finding; a refused one says nothing but why."""
    design = finding.design
    if not isinstance(design, stats.ComplianceCutoff):
        return {"verdict": finding.decision}
    refused = bool(finding.refusals)
    return {
        "k_min": finding.cutoff,
        "pass_possible": None if refused else finding.cutoff is not None,
        "verdict": finding.decision,
        "configuration_error": list(finding.refusals),
        "false_compliance": None if refused else design.achieved_size,
        "clopper_pearson_lower": None if refused else finding.lower_bound,
        "wilson_lower": finding.lower_bound,
    }


def design_fields(design: stats.RegressionCutoff) -> dict[str, Any]:
    """The reference's names for a regression cutoff."""
    return {
        "cutoff_integer": design.cutoff,
        "configuration_error": [design.refusal] if design.refusal else [],
        "threshold_real": design.threshold,
        "displayed_rate": design.displayed_rate,
        "achieved_size": design.achieved_size,
        "size_at_assumed_common_rate": design.design_false_alarm,
    }


RATES = {
    ("wilson_ci", "wilson"): wilson_ci,
    ("wilson_ci", "fisher"): wilson_ci,
    ("wilson_lower", "wilson"): wilson_lower,
    ("wilson_lower", "fisher"): wilson_lower,
    ("feasibility", "wilson"): lambda case: feasibility(case, "wilson"),
    ("feasibility", "fisher"): lambda case: feasibility(case, "fisher"),
    ("threshold_derivation", "wilson"): lambda case: threshold_derivation(case, "wilson"),
    ("threshold_derivation", "fisher"): lambda case: threshold_derivation(case, "fisher"),
    ("regression_decision", "wilson"): lambda case: regression_decision(case, "wilson"),
    ("regression_decision", "fisher"): lambda case: regression_decision(case, "fisher"),
    ("compliance_decision", "wilson"): lambda case: compliance_decision(case, "wilson"),
    ("compliance_decision", "fisher"): lambda case: compliance_decision(case, "fisher"),
}
