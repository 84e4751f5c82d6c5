"""Latency limits in the full analysis, with their ranks and counts (companion §12)."""

from __future__ import annotations

from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_computed, as_count, as_seconds
from trialwise.model.verdict import LatencyFinding, Verdict
from trialwise.pages.finding_facts import list_latency_marks, pick_badge
from trialwise.procedures.explanations import Rows, make_section
from trialwise.procedures.latency import find_false_alarm
from trialwise.stats.latency_baseline import OrderStatisticBound, PrecedenceThreshold
from trialwise.stats.latency_limits import LatencyLimitDecision
from trialwise.stats.latency_percentiles import SUPPORTED_PERCENTILES, emission_minimum

_INDICATIVE = "a directional signal, not a statistically reliable estimate"


_COVERAGE = "of the baseline's own percentile (§12.4.3)"


def explain_latency(verdict: Verdict) -> Section:
    """Explain every constraint with the ranks and counts it was decided on."""
    rows: Rows = []
    for finding in verdict.latency:
        rows += _list_constraint(finding, verdict)
    rows.append(("", "Latencies of successful trials only; distribution-free, no model."))
    return make_section("LATENCY", rows)


def _list_constraint(finding: LatencyFinding, verdict: Verdict) -> Rows:
    marks = list_latency_marks(finding, verdict)
    qualified = f" ({', '.join(marks)})" if marks else ""
    rows = [
        (finding.constraint, f"{pick_badge(finding)}{qualified}. {finding.statement}"),
        ("  rule", f"{finding.decision_rule}{_write_level(finding)}"),
        ("  observed", _write_observed(finding)),
    ]
    if finding.threshold is not None:
        rows.append(("  threshold", as_seconds(finding.threshold)))
    rows += _list_evidence(finding)
    if "indicative" in marks and finding.percentile in SUPPORTED_PERCENTILES:
        fewest = emission_minimum(finding.percentile)
        few = f"n = {finding.trials}, at least {fewest} recommended: {_INDICATIVE}"
        rows.append(("  indicative", few))
    if finding.refusals:
        rows.append(("  refused because", ", ".join(finding.refusals)))
    return rows


def _write_level(finding: LatencyFinding) -> str:
    return "" if finding.level is None else f", α = {finding.level:g}"


def _write_observed(finding: LatencyFinding) -> str:
    of = f"{as_count(finding.trials, 'successful trial')}"
    if finding.observed is None:
        return f"no latency, {of}"
    return f"Q({finding.percentile:g}) = {as_seconds(finding.observed)} by nearest rank, {of}"


def _list_evidence(finding: LatencyFinding) -> Rows:
    evidence = finding.evidence
    if isinstance(evidence, LatencyLimitDecision):
        half = "no evidence asked for: a service at its limit passes about half the time"
        return _list_limit(evidence) if finding.rule != "wilson" else [("  error rate", half)]
    if isinstance(evidence, OrderStatisticBound):
        alarm = find_false_alarm(finding)
        told = "" if alarm is None else f"{as_computed(alarm)} = P(FAIL) if nothing changed, exact"
        return [*_list_bound(evidence), *([("  false alarm", told)] if told else [])]
    return _list_precedence(evidence) if isinstance(evidence, PrecedenceThreshold) else []


def _list_limit(evidence: LatencyLimitDecision) -> Rows:
    rows = []
    if evidence.within is not None:
        needed = "no count would do" if evidence.y_min is None else f"{evidence.y_min} needed"
        rows.append(("  within the limit", f"{evidence.within} of {evidence.trials}, {needed}"))
    if evidence.clopper_pearson_lower is not None:
        share = as_computed(evidence.clopper_pearson_lower)
        rows.append(("  share within, at least", f"{share} at 1 − α, exact"))
    if evidence.false_compliance is not None:
        rows.append(("  achieved size", f"{as_computed(evidence.false_compliance)}, exact"))
    return rows


def _list_bound(evidence: OrderStatisticBound) -> Rows:
    rows = _list_baseline(evidence.baseline_percentile, evidence.trials)
    if evidence.saturated:
        rows.append(("  saturated", "no rank of this baseline bounds the percentile (§12.5.2.1)"))
        if evidence.advisory_value is not None:
            largest = f"t({evidence.trials}) = {as_seconds(evidence.advisory_value)}"
            rows.append(("  advisory", f"{largest}, the largest latency; it is not a bound"))
        return rows
    rows.append(("  rank", f"{evidence.rank} of {evidence.trials}"))
    if evidence.achieved_coverage is not None:
        coverage = as_computed(evidence.achieved_coverage)
        rows.append(("  achieved coverage", f"{coverage} {_COVERAGE}"))
    return rows


def _list_precedence(evidence: PrecedenceThreshold) -> Rows:
    rows = _list_baseline(evidence.baseline_percentile, evidence.baseline_trials)
    if evidence.saturated:
        rows.append(("  saturated", "no rank of this baseline keeps α"))
    if evidence.rank is not None:
        rows.append(("  rank", f"{evidence.rank} of {evidence.baseline_trials}"))
    if evidence.breach_probability is not None:
        value = as_computed(evidence.breach_probability)
        rows.append(("  achieved size", f"{value} = P(breach) if nothing changed, exact"))
    return rows


def _list_baseline(percentile: float, trials: int) -> Rows:
    return [("  baseline", f"Q = {as_seconds(percentile)} of {trials} latencies")]
