"""What every page shows of a finding: its word, rate, interval, requirement and end of trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Any

from trialwise.decimals import complement
from trialwise.documents import numbers
from trialwise.model.evidence import Guard, StopReason, Tally
from trialwise.model.verdict import Decision, Dimension, Finding, LatencyFinding, Verdict
from trialwise.procedures.registry import procedure_of
from trialwise.stats.rate_intervals import wilson_interval
from trialwise.stats.result_types import Interval, Undefined

#: Inputs that were not asked and are named; the others are counted.
_NAMED_UNASKED = 5


LATENCY = "latency of successful trials"
"""The name of the section on latencies, which links lead to."""

REASONS = {
    "condition": "condition not met",
    "transform": "reply not readable",
    "no-value": "no reply",
    "unknown": "not told by what was recorded",
    "raised": "check raised",
    "broken": "check broken",
}
"""Why a trial failed a criterion."""


ASKED = {"asked": "value", "expected": "expected", "metadata": "metadata"}
"""What reports of plain values call the fields of an input."""


def read_fields(one: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Read fields for a report of plain values, under their own names or under other ones.

    >>> read_fields(StopReason.DECIDED, "value", called="name")
    {'value': 'decided', 'called': 'DECIDED'}
    >>> read_fields(None, "value")
    {'value': None}
    """
    # Programs read rows by their columns: what is not known is there as None, and no gap.
    fields = dict(zip(names, names, strict=True)) | renamed
    if one is None or isinstance(one, Undefined):
        return dict.fromkeys(fields)
    found = {name: getattr(one, field) for name, field in fields.items()}
    found = {name: x.value if isinstance(x, Enum) else x for name, x in found.items()}
    return {name: None if isinstance(x, Undefined) else x for name, x in found.items()}


def name_finding(finding: Finding) -> str:
    """Name a criterion, or one of its inputs."""
    # Names are what reports are compared by from run to run: an input keeps its criterion's.
    one = finding.input_id
    return finding.criterion if one is None else f"{finding.criterion} [{one}]"


def name_section(finding: Finding) -> str:
    """Name where links to a criterion lead."""
    return f"criterion {finding.criterion}"


def name_mode(finding: Finding) -> str:
    """Inferential or observational, and where the threshold comes from."""
    if not procedure_of(finding).claims_rate:
        return "observational"
    if finding.plan.standing.reported_at is not None:
        return "report only"
    return f"inferential, {finding.threshold.origin}, {finding.procedure.lower()}"


def pick_badge(finding: Finding | LatencyFinding | Verdict) -> str:
    """Pick the word a reader looks for: the label where there is one, else the decision."""
    if isinstance(finding, Finding) and finding.label:
        return finding.label
    if finding.decision is not None:
        return finding.decision.value
    return numbers.REFUSED if finding.refusals else Decision.INCONCLUSIVE.value


def pick_tally(finding: Finding) -> Tally:
    """Pick the counts that decided; all that ran where nothing is claimed about a rate."""
    # An assertion is about all that was seen; a claim only about the trials its rule counted.
    return finding.tally if procedure_of(finding).claims_rate else finding.all_trials


def pick_rate(finding: Finding) -> float | None:
    """Pick the rate of the trials that decided, or the number that is decided in its place.

    That is the estimate of a matched estimator, or a mean score.
    """
    is_mean = procedure_of(finding).decides_mean
    # The share of passes beside a mean score, or beside a weighted estimate, would be another
    # number than the one that was decided.
    if (is_mean or finding.estimator is not None) and finding.estimate is not None:
        return finding.estimate
    if is_mean:
        return None if finding.scores is None else finding.scores.mean
    return pick_tally(finding).rate


def write_later(finding: Finding) -> str:
    """Write at which trial a rate was decided and what came later; nothing if nothing did."""
    if finding.decided_at is None or not procedure_of(finding).claims_rate:
        return ""
    at, later = f"at trial {finding.decided_at:,}", finding.later
    word = f"undecided {at}" if finding.decision is Decision.INCONCLUSIVE else f"decided {at}"
    # A decision can be withdrawn by trials that were under way when it fell.
    if finding.withdrawn is not None:
        word = f"{finding.withdrawn} {at} withdrawn"
    if later.rate is None:
        return word
    if procedure_of(finding).decides_mean:
        return f"{word}; {numbers.as_count(later.trials, 'later trial')}"
    share = f"{later.passed:,} passed ({numbers.as_observed(later.rate)})"
    return f"{word}; of {numbers.as_count(later.trials, 'later trial')} {share}"


def pick_interval(finding: Finding) -> Interval | None:
    """Pick the finding's interval, or Wilson's to describe the counts; none where inputs decide."""
    if finding.interval is not None:
        return finding.interval
    if procedure_of(finding).decides_mean:
        return None if finding.scores is None else finding.scores.interval
    # Wilson's interval takes the number of trials as given. Where the data chose it, the interval
    # would promise a coverage that it does not have.
    tally, plain = finding.tally, not procedure_of(finding).may_stop_early
    if not tally.trials or finding.by_input or not plain or finding.alpha is None:
        return None
    return wilson_interval(tally.passed, tally.trials)


def list_latency_marks(finding: LatencyFinding, verdict: Verdict) -> Sequence[str]:
    """List what qualifies a latency result: it may only advise, or rest on too few trials."""
    # Few runs judge latencies, and every report comes by here.
    from trialwise.stats.latency_percentiles import SUPPORTED_PERCENTILES, emission_minimum
    from trialwise.stats.latency_planning import LatencyLimitDecision

    marks = ["advisory"] if Dimension.LATENCY in verdict.advisory else []
    # The exact rule for a limit answers for few trials itself; percentiles do not (§12.5.4).
    answers = isinstance(finding.evidence, LatencyLimitDecision) and finding.rule != "wilson"
    decided = finding.decision in (Decision.PASS, Decision.FAIL)
    # The emission minimum is stated for these percentiles only (§12.5.2).
    known = decided and not answers and finding.percentile in SUPPORTED_PERCENTILES
    if known and finding.trials < emission_minimum(finding.percentile):
        marks.append("indicative")
    return marks


def word_guard(guard: Guard) -> str:
    """Say what a guardrail found, how grave it is, and whether somebody admitted it."""
    admitted = ", admitted by override" if guard.overridden else ""
    # The code stands at the end: it is what an override in the suite file names.
    return f"{guard.severity.value.replace('-', ' ')}{admitted}: {guard.message} [{guard.code}]"


def find_required(finding: Finding) -> float | None:
    """Find what a criterion is held against: a required rate or mean, or its baseline's rate."""
    threshold = finding.threshold
    if procedure_of(finding).decides_mean:
        mean: float | None = getattr(finding.plan.design, "required_mean", None)
        return mean
    # A regression has no required rate: a drop is looked for from what was measured before.
    if threshold.required_rate is None and threshold.baseline is not None:
        return threshold.baseline.passed / threshold.baseline.trials
    return threshold.required_rate


def write_context(finding: Finding) -> str:
    """Write what was measured before, where the criterion is not decided by it."""
    context = finding.threshold.context
    if context is None:
        return ""
    counts = f"{context.passed:,} of {context.trials:,} ({numbers.as_observed(context.rate)})"
    return f"{counts} in baseline {context.identifier} of {context.created_at:%Y-%m-%d}"


def find_alternative(finding: Finding) -> float | None:
    """Find the rate that the required one must be told from, where it is another one."""
    threshold = finding.threshold
    other = threshold.alternative_rate
    return None if other == threshold.required_rate else other


def write_rate(finding: Finding, nothing: str = "–") -> str:
    """Write the rate that a finding is shown with; counts where nothing is claimed about a rate.

    Args:
        finding: The finding whose rate is shown.
        nothing: What stands for a rate that does not exist.
    """
    rate, tally = pick_rate(finding), pick_tally(finding)
    if rate is None:
        return nothing
    if not procedure_of(finding).claims_rate:
        return f"{tally.passed:,} of {tally.trials:,}"
    return (
        f"mean {numbers.as_score(rate)}"
        if procedure_of(finding).decides_mean
        else numbers.as_observed(rate)
    )


def write_interval(finding: Finding, nothing: str = "–", usual: str = "") -> str:
    """Write the two ends of an interval; an approximate one carries the sign ≈.

    Args:
        finding: The finding whose interval is shown.
        nothing: What stands for an interval that does not exist.
        usual: The level that a heading gives, where there is one; another one is added.
    """
    interval = pick_interval(finding)
    if interval is None:
        return nothing
    own = write_level(finding)
    level = f" ({own})" if usual and own not in ("", usual) else ""
    if procedure_of(finding).decides_mean:
        return f"{numbers.as_score_ends(interval)}{level}"
    return f"{'≈ ' if interval.is_approximate else ''}{numbers.as_ends(interval)}{level}"


def write_level(finding: Finding) -> str:
    """Write the level of the interval that a finding is shown with."""
    interval = pick_interval(finding)
    known = interval is not None and interval.confidence is not None
    return numbers.as_level(interval.confidence) if known else ""  # type: ignore[union-attr, arg-type]


def find_usual_level(verdict: Verdict) -> str:
    """Find the level that most intervals of a run have, which a heading gives for all of them."""
    parts = (part for one in verdict.findings for part in (one, *one.by_input))
    # Naming the level once in the heading leaves room in every row; rows with another name it.
    found = Counter(filter(None, map(write_level, parts)))
    return max(found, key=lambda level: found[level], default="")


def list_below(finding: Finding) -> tuple[str, ...]:
    """List what stands below a line at every width: later trials, and cerberus's own interval."""
    tally, alpha = finding.tally, finding.alpha or 0.0
    # Wald's boundaries bound the two errors and bring no interval of their own; the one that is
    # shown treats the number of trials as fixed, and has to say so.
    own, is_wald = "", (finding.decision_rule or "").startswith("sequential/wald/")
    if is_wald and tally.trials and not finding.by_input:
        found = wilson_interval(tally.passed, tally.trials, confidence=complement(alpha))
        level = numbers.as_level(complement(alpha))
        ends = f"{level} interval {numbers.as_ends(found)} by Wilson"
        own = f"{ends}: descriptive, the stop is not counted"
    return tuple(filter(None, (write_later(finding), own)))


def sum_up_scores(finding: Finding) -> str:
    """Sum up the scores of a criterion that grades: their mean, its interval and what passes."""
    scores = finding.scores
    if scores is None:
        return ""
    found = scores.interval
    ends = "" if found is None else f" {numbers.as_score_ends(found)}"
    level = (
        "" if found is None or found.confidence is None else numbers.as_percent(found.confidence)
    )
    stopped = found is not None and found.is_descriptive
    late = ", descriptive: the run stopped early" if stopped else ""
    inside = f" ({level} interval{late})" if level else ""
    pass_at = finding.plan.terms.pass_at
    passes = "" if pass_at is None else f"; {pass_at:g} passes"
    of = numbers.as_count(scores.trials, "score")
    return f"mean score {numbers.as_score(scores.mean)}{ends}{inside} of {of}{passes}"


def collect_scores(finding: Finding) -> dict[str, float | int | None]:
    """Collect the numbers of a criterion that grades; nothing where it does not."""
    scores = finding.scores
    if scores is None:
        return {}
    ends = {f"score_{one}": one for one in ("low", "high", "confidence")}
    required = {"required_mean": find_required(finding)}
    return {
        "score_mean": scores.mean,
        **read_fields(scores.interval, **ends),
        "scores": scores.trials,
        "pass_at": finding.plan.terms.pass_at,
        **(required if procedure_of(finding).decides_mean else {}),
    }


def pick_difference(finding: Finding) -> Interval | None:
    """Pick the bounds on how far the rate is from its baseline's, if they are those of the verdict.

    A correction for several verdicts may have changed the decision; the bounds then go with the
    single one, which is shown beside it.
    """
    found = finding.difference
    # The decision and its bound must not contradict each other on one line.
    is_shown = found is not None and (found.high < 0) == (finding.decision is Decision.FAIL)
    return found if is_shown else None


def write_difference(finding: Finding) -> str:
    """Write how far the rate is from its baseline's, with the level of the bound."""
    found = pick_difference(finding)
    if found is None:
        return ""
    level = "" if found.confidence is None else f" ({numbers.as_percent(found.confidence)})"
    # A FAIL shows a loss, so that its bound is the least loss; a PASS leaves the largest one open.
    if finding.decision is Decision.FAIL:
        least = numbers.floor_points(-found.high)
        return f"at least {least:.1f} points worse{level}" if least else f"worse{level}"
    return numbers.word_loss(found.low, found.confidence)


def write_delta(finding: Finding) -> str:
    """Return the difference in a short form, for a column of a table."""
    found = pick_difference(finding)
    if found is None:
        return ""
    if finding.decision is not Decision.FAIL:
        return f"may be {numbers.floor_points(found.low):+.1f}".replace("-", "−")
    least = numbers.floor_points(-found.high)
    return f"Δ ≤ −{least:.1f}" if least else "Δ < 0"


def tells_later(finding: Finding) -> bool:
    """Return whether the end of its trials is told by how later ones came out."""
    reports = finding.plan.standing.reported_at is not None
    return finding.stop is not None and not reports and bool(write_later(finding))


def write_stop(finding: Finding) -> str:
    """Write why no further trial was counted."""
    trials, planned = finding.tally.trials, finding.planned_trials
    most = f" of at most {planned:,}" if planned is not None else ""
    match finding.stop:
        case None:
            return "not run" if not trials else ""
        case _ if later := write_later(finding):
            return later
        case StopReason.DECIDED:
            return "every input decided" if finding.by_input else f"decided after {trials:,}{most}"
        # Not "decided": the rule would have reached the same verdict at its planned end.
        case StopReason.CURTAILED:
            of = most.replace(" at most", "")
            return f"no further trial could change it after {trials:,}{of}"
        case StopReason.COMPLETE:
            return "all planned trials run"
        case reason:
            return f"the run {numbers.STOPS[reason].predicate}, after {trials:,}{most}"


def write_coverage(finding: Finding) -> str:
    """Write how many of the inputs were asked; nothing where there is only one."""
    coverage = finding.coverage
    if coverage is None or coverage.inputs == 1:
        return ""
    inputs = numbers.as_count(coverage.inputs, "input")
    if coverage.asked == coverage.inputs:
        return numbers.as_all(coverage.inputs, "input")
    return f"{coverage.asked:,} of {inputs}"


def list_unasked(finding: Finding) -> str:
    """List which inputs were not asked, in a sentence; nothing where all were."""
    # Of a run without a trial its end says everything.
    coverage = finding.coverage if finding.all_trials.trials else None
    if coverage is None or coverage.asked == coverage.inputs:
        return ""
    left, of = coverage.inputs - coverage.asked, numbers.as_count(coverage.inputs, "input")
    named = ", ".join(coverage.unasked[:_NAMED_UNASKED])
    more = f" and {left - _NAMED_UNASKED:,} more" if left > _NAMED_UNASKED else ""
    return f"{left:,} of {of} {'was' if left == 1 else 'were'} not asked: {named}{more}"
