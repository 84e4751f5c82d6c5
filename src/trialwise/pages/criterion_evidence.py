"""The rule that decided a criterion and everything it was decided by, as facts."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.blocks import Block, Facts, Section
from trialwise.documents.numbers import as_count, as_observed
from trialwise.model.verdict import Caution, Finding, ObservedRate
from trialwise.procedures.registry import procedure_of

__all__ = ["REASONS", "list_evidence_blocks"]

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


def list_evidence_blocks(finding: Finding) -> Iterator[Block]:
    """What its procedure explains, and then what was observed, in words."""
    yield from procedure_of(finding).explain(finding)
    yield Section(
        heading="WHAT WAS OBSERVED",
        blocks=(Facts(pairs=tuple(_list_observations(finding))),),
        depth="analysis",
    )


def _list_observations(finding: Finding) -> Iterator[tuple[str, str | None]]:
    if finding.observed_rate is not None:
        yield "Observed rate", _OBSERVED.get(finding.observed_rate)
    if finding.caution is not None:
        yield "Caution", _CAUTIONS[finding.caution]
    yield "Per protocol", _write_per_protocol(finding)
    yield "Failures by reason", _write_reasons(finding)
    yield "Category", finding.category
    yield "Confidence", finding.confidence_statement


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
