"""What every text reporter says the same way: decisions, rates, stops, latencies and times."""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.model.evidence import StopReason
from trialwise.model.verdict import (
    Decision,
    Dimension,
    Finding,
    LatencyFinding,
    Procedure,
    Verdict,
)
from trialwise.reporters.terminal import Style
from trialwise.stats.intervals import wilson_interval
from trialwise.stats.values import Interval

__all__ = [
    "REFUSED",
    "STOPS",
    "badge",
    "counted",
    "ends",
    "interval_of",
    "latency_marks",
    "observed_percent",
    "rate_of",
    "seconds",
    "style_of",
]

REFUSED = "REFUSED"

#: Why no further trial was counted, in a word or two.
STOPS: dict[StopReason, str] = {
    StopReason.DECIDED: "decided",
    StopReason.CURTAILED: "certain",
    StopReason.COMPLETE: "all run",
    StopReason.TRIALS_BUDGET: "trial budget",
    StopReason.TIME_BUDGET: "time budget",
    StopReason.TOKEN_BUDGET: "token budget",
    StopReason.MONEY_BUDGET: "money budget",
    StopReason.ERROR_RATE: "too many errors",
    StopReason.INTERRUPTED: "interrupted",
    StopReason.SERVICE: "service unusable",
}

_STYLES = {
    Decision.PASS: Style.GOOD,
    Decision.FAIL: Style.BAD,
    Decision.INCONCLUSIVE: Style.OPEN,
}


def badge(finding: Finding | LatencyFinding | Verdict) -> str:
    """The word a reader looks for: the label where there is one, else the decision."""
    if isinstance(finding, Finding) and finding.label:
        return finding.label
    if finding.decision is not None:
        return finding.decision.value
    return REFUSED if finding.refusals else Decision.INCONCLUSIVE.value


def style_of(decision: Decision | None) -> Style:
    """How a decision stands out; a refusal like an open end."""
    return Style.OPEN if decision is None else _STYLES[decision]


def observed_percent(rate: float) -> str:
    """An observed rate to a tenth of a percent; never a 0 or 100 that it is not.

    >>> observed_percent(0.98), observed_percent(1.0), observed_percent(0.99999)
    ('98.0 %', '100.0 %', '>99.9 %')
    """
    if 0 < rate < 0.0005:
        return "<0.1 %"
    return ">99.9 %" if 0.9995 <= rate < 1 else f"{100 * rate:.1f} %"


def ends(interval: Interval) -> str:
    """The two ends of an interval, in percent.

    >>> ends(Interval(0.943, 0.993))
    '[94.3, 99.3]'
    """
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def rate_of(finding: Finding) -> float | None:
    """The rate a criterion is judged by: the matched estimator's where there is one."""
    if finding.estimator is not None and finding.estimate is not None:
        return finding.estimate
    return finding.tally.rate


def interval_of(finding: Finding) -> Interval | None:
    """The finding's interval, or Wilson's to describe the counts; none where inputs decide."""
    if finding.interval is not None:
        return finding.interval
    tally, plain = finding.tally, finding.procedure in (Procedure.COMPLIANCE, Procedure.REGRESSION)
    if not tally.trials or finding.by_input or not plain or finding.alpha is None:
        return None
    return wilson_interval(tally.passed, tally.trials)


def latency_marks(finding: LatencyFinding, verdict: Verdict) -> Sequence[str]:
    """What qualifies a latency result: that it does not bind, that it rests on too few trials."""
    # Few runs judge latencies, and every report comes by here.
    from trialwise.stats.latency import SUPPORTED_PERCENTILES, emission_minimum
    from trialwise.stats.latency_limits import LatencyLimitDecision

    advisory = Dimension.LATENCY in verdict.advisory
    marks = ["advisory"] if advisory else []
    # The exact rule for a limit answers for few trials itself; percentiles do not (§12.5.4).
    answers = isinstance(finding.evidence, LatencyLimitDecision) and finding.rule == "exact"
    decided = finding.decision in (Decision.PASS, Decision.FAIL)
    known = decided and not answers and finding.percentile in SUPPORTED_PERCENTILES
    if known and finding.trials < emission_minimum(finding.percentile):
        marks.append("indicative")
    return marks


def seconds(value: float) -> str:
    """A latency, exact enough to be held against its limit.

    >>> seconds(0.4123), seconds(1.25)
    ('412.3 ms', '1.25 s')
    """
    return f"{1000 * value:.4g} ms" if value < 0.9995 else f"{value:.4g} s"


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "trial"), counted(1200, "trial")
    ('1 trial', '1,200 trials')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
