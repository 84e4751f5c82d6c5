"""What a criterion asks, what rate it is held against, and why its trials ended, in a few words."""

from __future__ import annotations

from trialwise.documents.numbers import as_ends, as_observed, as_percent, as_probability
from trialwise.documents.phrases import STOPS
from trialwise.model.evidence import StopReason
from trialwise.model.verdict import Finding
from trialwise.pages.finding_facts import pick_interval, pick_rate
from trialwise.procedures.registry import procedure_of

__all__ = [
    "find_alternative",
    "find_required",
    "write_interval",
    "write_need",
    "write_rate",
    "write_stop",
]


def find_required(finding: Finding) -> float | None:
    """The rate a criterion is held against: the required one, or its baseline's."""
    threshold = finding.threshold
    if threshold is None:
        return None
    if threshold.required_rate is None and threshold.baseline is not None:
        return threshold.baseline.passed / threshold.baseline.trials
    return threshold.required_rate


def find_alternative(finding: Finding) -> float | None:
    """The rate that the required one must be told from."""
    threshold = finding.threshold
    return None if threshold is None else threshold.alternative_rate


def write_need(finding: Finding) -> str:
    """What is asked of the rate, in the fewest words."""
    if not procedure_of(finding).claims_rate:
        return "no failure"
    required, threshold = find_required(finding), finding.threshold
    if required is None or threshold is None:
        return ""
    if threshold.required_rate is None:
        return f"baseline {as_probability(required, digits=1)}"
    return f"≥ {as_percent(required)}"


def write_rate(finding: Finding) -> str:
    """The rate that a finding is shown with."""
    rate = pick_rate(finding)
    return "–" if rate is None else as_observed(rate)


def write_interval(finding: Finding) -> str:
    """The two ends of its interval."""
    interval = pick_interval(finding)
    return "–" if interval is None else as_ends(interval)


def write_stop(finding: Finding) -> str:
    """Why no further trial was counted."""
    trials, planned = finding.tally.trials, finding.planned_trials
    most = f" of at most {planned:,}" if planned is not None else ""
    match finding.stop:
        case None:
            return "not run" if not trials else ""
        case StopReason.DECIDED:
            return "every input decided" if finding.by_input else f"decided after {trials:,}{most}"
        case StopReason.CURTAILED:
            return f"verdict certain after {trials:,}{most.replace(' at most', '')}"
        case StopReason.COMPLETE:
            return "all planned trials run"
        case reason:
            return f"{STOPS[reason].clause} after {trials:,}{most}"
