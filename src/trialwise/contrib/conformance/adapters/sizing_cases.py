"""Suites about planning: power, sample sizes and risk-driven sizing."""

from __future__ import annotations

from typing import Any

from trialwise import stats
from trialwise.contrib.conformance.adapters.rate_cases import level
from trialwise.contrib.conformance.reference_cases import Case
from trialwise.errors import ReferenceDataError


def normal_power_analysis(case: Case) -> dict[str, Any]:
    inputs = case.inputs
    answer = stats.normal_sizing(
        inputs["baseline_rate"],
        inputs["min_detectable_effect"],
        alpha=level(inputs),
        power=inputs["power"],
    )
    return {"required_samples": answer.required_trials, "achieved_power": answer.achieved_power}


def exact_power_analysis(case: Case) -> dict[str, Any]:
    inputs = case.inputs
    alpha = level(inputs)
    if case.approach == "compliance_sizing":
        answer = stats.compliance_sizing(
            inputs["threshold"],
            inputs.get("min_detectable_effect"),
            alternative_rate=inputs.get("alternative_rate"),
            alpha=alpha,
            power=inputs["power"],
            rule="fisher",
        )
        return {
            "required_samples": answer.required_trials,
            "achieved_power": answer.achieved_power,
            "alternative_rate": answer.alternative_rate,
            "alternative_kind": answer.alternative_kind,
            "first_crossing": answer.first_crossing,
        }
    if case.approach == "regression_power":
        rate = inputs["baseline_rate"]
        drop = inputs["min_detectable_effect"]
        trials = inputs["baseline_trials"], inputs["test_samples"]
        value = stats.design_power(rate, rate - drop, *trials, alpha=alpha, rule="fisher")
        return {"design_power": value}
    if case.approach == "regression_resolved_power":
        design = stats.regression_cutoff(
            inputs["baseline_successes"],
            inputs["baseline_trials"],
            inputs["test_samples"],
            alpha=alpha,
            rule="fisher",
        )
        resolved = design.power(inputs["design_alternative_rate"])
        return {"cutoff_integer": design.cutoff, "resolved_test_power": resolved}
    if case.approach == "regression_mdd":
        drop = stats.minimum_detectable_degradation(
            inputs["baseline_rate"],
            inputs["baseline_trials"],
            inputs["test_samples"],
            alpha=alpha,
            power=inputs["power"],
            rule="fisher",
        )
        return {"minimum_detectable_degradation": drop}
    raise unknown_approach(case)


def floor_sizing(case: Case) -> dict[str, Any]:
    inputs = case.inputs
    rate, confidence = inputs["baseline_rate"], inputs["confidence"]
    match case.approach:
        case "required_n":
            answer = stats.floor_required_trials(
                rate,
                inputs["minimum_acceptable_rate"],
                confidence=confidence,
                power=inputs["target_power"],
            )
        case "power_at":
            answer = stats.floor_power_at(
                rate,
                inputs["minimum_acceptable_rate"],
                inputs["test_samples"],
                confidence=confidence,
            )
        case "detectable_rate":
            answer = stats.floor_detectable_rate(
                rate, inputs["test_samples"], confidence=confidence, power=inputs["target_power"]
            )
        case _:
            raise unknown_approach(case)
    return _fields(answer)


def exact_sizing(case: Case) -> dict[str, Any]:
    inputs = case.inputs
    alpha, trials = level(inputs), inputs["baseline_trials"]
    target = inputs.get("target_power", 0.8)
    tested = inputs.get("test_samples", 1)
    rate = inputs.get("baseline_rate", 0)
    successes = inputs.get("baseline_successes", 0)
    alternative = inputs.get("design_alternative_rate", 0)
    match case.approach:
        case "required_n":
            answer = stats.design_required_trials(
                rate, trials, alternative, alpha=alpha, power=target
            )
        case "power_at":
            answer = stats.design_power_at(rate, trials, alternative, tested, alpha=alpha)
        case "detectable_rate":
            answer = stats.design_detectable_rate(rate, trials, tested, alpha=alpha, power=target)
        case "resolved_required_n":
            answer = stats.resolved_required_trials(
                successes, trials, alternative, alpha=alpha, power=target
            )
        case "resolved_power_at":
            answer = stats.resolved_power_at(successes, trials, alternative, tested, alpha=alpha)
        case _:
            raise unknown_approach(case)
    return _fields(answer)


def unknown_approach(case: Case) -> ReferenceDataError:
    """The error for a case that asks a question no adapter knows."""
    return ReferenceDataError(f"no answer to the approach {case.approach!r}")


def _fields(answer: stats.Sizing) -> dict[str, Any]:
    """The reference's names; a refusal's category appears only where there is one."""
    fields: dict[str, Any] = {
        "sizing_gate": "ADMIT" if answer.admitted else "REFUSE",
        "required_n": answer.trials,
        "achieved_power": answer.power,
        "power": answer.power,
        "resolved_power": answer.power,
        "detectable_rate": answer.detectable_rate,
        "first_crossing": answer.first_crossing,
        "cutoff_integer": answer.cutoff,
        "floor": answer.floor,
    }
    return fields if answer.admitted else fields | {"refusal_category": answer.refusal}


SIZING = {
    ("power_analysis", "wilson"): normal_power_analysis,
    ("power_analysis", "fisher"): exact_power_analysis,
    ("risk_driven_sizing", "wilson"): floor_sizing,
    ("risk_driven_sizing", "fisher"): exact_sizing,
}
