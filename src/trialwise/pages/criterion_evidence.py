"""The rule that decided a criterion and everything it was decided by, as facts."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.numbers import (
    as_count,
    as_ends,
    as_observed,
    as_percent,
    as_probability,
)
from trialwise.model.verdict import Caution, Finding, ObservedRate
from trialwise.pages.finding_facts import pick_interval
from trialwise.pages.requirements import write_need
from trialwise.procedures.registry import procedure_of
from trialwise.stats.sequential.design import SequentialDesign

__all__ = ["REASONS", "list_evidence"]

REASONS = {
    "condition": "condition not met",
    "transform": "reply not readable",
    "no-value": "no reply",
}
"""Why a trial failed a criterion."""

_CAUTIONS = {
    Caution.ADEQUATE_POWER: "the evidence suffices",
    Caution.FAIL_CLEAR: "a clear failure",
    Caution.STRANDS_DISAGREE: "the observed rate is high enough, the evidence is not",
    Caution.FEASIBILITY_REFUSED: "too few trials to show the required rate at all",
    Caution.ZERO_EVALUABLE: "no trial to decide on",
    Caution.CONFIGURATION_ERROR: "the design cannot support its claim",
}
_OBSERVED = {
    ObservedRate.ABOVE_THRESHOLD: "above the threshold",
    ObservedRate.AT_THRESHOLD: "at the threshold",
    ObservedRate.BELOW_THRESHOLD: "below the threshold",
}


def list_evidence(finding: Finding) -> Iterator[tuple[str, str | None]]:
    """Terms with their values, in the order of the reasoning."""
    yield "question", procedure_of(finding).question
    yield "rule", finding.decision_rule
    yield "given up only for evidence", finding.null
    yield "its alternative", finding.alternative
    yield "in counts", _write_counts(finding)
    yield "threshold", _write_threshold(finding)
    yield "estimate", _write_estimate(finding)
    interval = pick_interval(finding)
    if interval is not None:
        level = f" at {as_percent(interval.confidence)}" if interval.confidence else ""
        yield "interval", f"{as_ends(interval)} %{level}, {interval.method or 'Wilson'}"
    if finding.lower_bound is not None and finding.alpha is not None:
        bound = as_probability(finding.lower_bound)
        yield "lower bound", f"{bound} at level {as_percent(finding.alpha)}"
    if finding.p_value is not None:
        p = finding.p_value
        yield "p-value", f"{p.value:.4g} ({p.method}, {p.tail})"
    if finding.power is not None:
        yield "chance to see the alternative", as_probability(finding.power)
    if finding.observed_rate is not None:
        yield "observed rate", _OBSERVED.get(finding.observed_rate)
    if finding.caution is not None:
        yield "caution", _CAUTIONS[finding.caution]
    yield "per protocol", _write_per_protocol(finding)
    yield "failures by reason", _write_reasons(finding)
    yield "category", finding.category
    yield "confidence", finding.confidence_statement


def _write_counts(finding: Finding) -> str | None:
    first = finding.by_input[0] if finding.by_input else finding
    design = first.design
    if isinstance(design, SequentialDesign):
        left = "" if design.always_decides else ", INCONCLUSIVE if none of them does"
        each = " of each input" if finding.by_input else ""
        return f"decided after any of at most {design.cap:,} trials{each}{left}"
    if first.cutoff is None or design is None:
        return None
    trials = first.planned_trials or first.tally.trials
    return f"PASS with at least {first.cutoff:,} successes in {trials:,} trials, else FAIL"


def _write_threshold(finding: Finding) -> str | None:
    threshold = finding.threshold
    if threshold is None:
        return None
    parts = [write_need(finding), f"set by {threshold.origin}", threshold.contract_ref]
    if threshold.alternative_rate is not None:
        parts.insert(1, f"told from {as_percent(round(threshold.alternative_rate, 6))}")
    if threshold.baseline is not None:
        parts.append(f"baseline {threshold.baseline.identifier}")
    return ", ".join(part for part in parts if part)


def _write_estimate(finding: Finding) -> str | None:
    if finding.estimate is None:
        return None
    estimate, rate = as_probability(finding.estimate), finding.tally.rate
    if finding.estimator is not None:
        return f"{estimate}, by the estimator that the claim asks for"
    if rate is None:
        return f"{estimate}, median-unbiased"
    return (
        f"{estimate}, median-unbiased (observed {as_observed(rate)}, too good or too bad on "
        "average where a run stops early)"
    )


def _write_per_protocol(finding: Finding) -> str | None:
    every, fair = finding.intent_to_treat or finding.tally, finding.per_protocol
    if fair is None or fair.rate is None or fair.trials == every.trials:
        return None
    left_out = as_count(every.trials - fair.trials, "trial")
    return (
        f"{as_observed(fair.rate)}, {fair.passed:,} of {fair.trials:,}: without {left_out} in "
        "which the service had no fair chance"
    )


def _write_reasons(finding: Finding) -> str | None:
    found = finding.breakdown
    if found is None or not finding.tally.failed:
        return None
    counts = (found.condition, found.transform, found.no_value)
    named = zip(counts, REASONS.values(), strict=True)
    parts = [f"{count:,} {name}" for count, name in named if count]
    errors = [f"{count:,} {kind}" for kind, count in found.errors.items()]
    return ", ".join(parts) + (f"; errors: {', '.join(errors)}" if errors else "")
