"""The word, the rate, the interval and the marks that stand for one finding on every page."""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.documents.phrases import REFUSED
from trialwise.model.verdict import (
    Decision,
    Dimension,
    Finding,
    LatencyFinding,
    Verdict,
)
from trialwise.procedures.registry import procedure_of
from trialwise.stats.rate_intervals import wilson_interval
from trialwise.stats.result_types import Interval

__all__ = [
    "claims_rate",
    "list_latency_marks",
    "pick_badge",
    "pick_interval",
    "pick_rate",
]


def claims_rate(finding: Finding) -> bool:
    """Whether the criterion makes a claim about a rate, and not only about the observed trials."""
    return procedure_of(finding).claims_rate


def pick_badge(finding: Finding | LatencyFinding | Verdict) -> str:
    """The word a reader looks for: the label where there is one, else the decision."""
    if isinstance(finding, Finding) and finding.label:
        return finding.label
    if finding.decision is not None:
        return finding.decision.value
    return REFUSED if finding.refusals else Decision.INCONCLUSIVE.value


def pick_rate(finding: Finding) -> float | None:
    """The rate a criterion is decided by: the matched estimator's where there is one."""
    if finding.estimator is not None and finding.estimate is not None:
        return finding.estimate
    return finding.tally.rate


def pick_interval(finding: Finding) -> Interval | None:
    """The finding's interval, or Wilson's to describe the counts; none where inputs decide."""
    if finding.interval is not None:
        return finding.interval
    tally, plain = finding.tally, not procedure_of(finding).may_stop_early
    if not tally.trials or finding.by_input or not plain or finding.alpha is None:
        return None
    return wilson_interval(tally.passed, tally.trials)


def list_latency_marks(finding: LatencyFinding, verdict: Verdict) -> Sequence[str]:
    """What qualifies a latency result: that it does not bind, that it rests on too few trials."""
    # Few runs judge latencies, and every report comes by here.
    from trialwise.stats.latency_limits import LatencyLimitDecision
    from trialwise.stats.latency_percentiles import SUPPORTED_PERCENTILES, emission_minimum

    advisory = Dimension.LATENCY in verdict.advisory
    marks = ["advisory"] if advisory else []
    # The exact rule for a limit answers for few trials itself; percentiles do not (§12.5.4).
    answers = isinstance(finding.evidence, LatencyLimitDecision) and finding.rule == "exact"
    decided = finding.decision in (Decision.PASS, Decision.FAIL)
    known = decided and not answers and finding.percentile in SUPPORTED_PERCENTILES
    if known and finding.trials < emission_minimum(finding.percentile):
        marks.append("indicative")
    return marks
