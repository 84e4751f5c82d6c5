"""Latency limits and gates in the full analysis.

A latency limit has its ranks and counts (companion §12); a gate has every number with its basis,
its interval and what was asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_computed, as_count, as_seconds
from trialwise.model.metrics import (
    GateCheck,
    GateFinding,
    GateNumber,
    MetricsEvidence,
    PassK,
    ReliabilityEvidence,
    StabilityEvidence,
)
from trialwise.model.verdict import LatencyFinding, Verdict
from trialwise.pages.finding_facts import list_latency_marks, pick_badge
from trialwise.pages.gate_facts import HELD, as_outward, count_runs, list_unlimited
from trialwise.procedures.explaining.analysis_sections import Rows, make_section
from trialwise.stats.latency_baseline import OrderStatisticBound, PrecedenceThreshold
from trialwise.stats.latency_limits import LatencyLimitDecision
from trialwise.stats.latency_percentiles import SUPPORTED_PERCENTILES, emission_minimum
from trialwise.stats.result_types import Interval, Undefined

#: Inputs and runs listed; the rest is in the JSON report.
_MOST = 10


#: Points of a decay curve and outcomes of one input, which are short.
_POINTS, _OUTCOMES = 20, 40


_NONE = "none: a number is held against a limit, and no envelope counts it"


def list_gate_sections(verdict: Verdict) -> Iterator[Section]:
    """A section for each gate."""
    for gate in verdict.gates:
        decided = gate.decision.value if gate.decision else "reported, nothing was asked"
        rows: Rows = [("Decision", decided)]
        if gate.checks:
            rows.append(("Error rate", _NONE))
        rows.append(("Runs", count_runs(gate)))
        for check in gate.checks:
            rows += _list_check(check)
        rows += [(_name_target(one.target), _write_number(one)) for one in list_unlimited(gate)]
        rows += _list_gate_evidence(gate)
        rows += [("Caveat", caveat) for caveat in gate.caveats]
        yield make_section(f"GATE: {gate.gate}", rows)


def _list_check(check: GateCheck) -> Rows:
    outcome = f"{check.shown}; asked: {check.matcher}; {HELD[check.holds]}"
    rows = [(_name_target(check.target), outcome), ("  basis", check.basis.value)]
    if isinstance(check.interval, Interval):
        level = f" at {check.interval.confidence:g}" if check.interval.confidence else ""
        rows.append(("  interval", f"{as_outward(check.interval)}{level}, {check.interval.method}"))
    else:
        rows.append(("  interval", f"none: {check.interval.reason}"))
    return rows


def _name_target(target: str) -> str:
    """A target within its gate, whose name is the heading."""
    return target.partition(".")[2]


def _write_number(number: GateNumber) -> str:
    if isinstance(number.value, Undefined):
        return f"undefined: {number.value.reason}"
    return f"{_write_figure(number.value, number.interval)}; not asked; {number.basis.value}"


def _list_gate_evidence(gate: GateFinding) -> Rows:
    evidence = gate.evidence
    if isinstance(evidence, ReliabilityEvidence):
        return _list_reliability(evidence)
    if isinstance(evidence, StabilityEvidence):
        return _list_stability(evidence)
    return _list_metrics(evidence)


def _list_reliability(evidence: ReliabilityEvidence) -> Rows:
    rows: Rows = []
    if evidence.decay_curve:
        curve = ", ".join(f"{value:.4g}" for value in evidence.decay_curve[:_POINTS])
        rows.append(("Decay curve", f"{curve} (plug-in, in percent; it need not fall)"))
    for one in evidence.inputs[:_MOST]:
        passes = "".join("P" if passed else "F" for passed in one.summary.outcomes[:_OUTCOMES])
        rows.append((f"  input {one.input_id}", passes))
    advice = evidence.recommendation
    if advice is not None:
        wald = "undefined" if isinstance(advice.wald, Undefined) else f"{advice.wald:,}"
        rows.append(
            (
                "Runs for a rate",
                (
                    f"these pin an input's rate to ±{advice.reached:.3f} at worst; "
                    f"±{advice.half_width:g} takes {advice.wilson:,} runs (Wilson; {wald} by the "
                    "nominal width of Wald)"
                ),
            )
        )
    return rows


def _list_stability(evidence: StabilityEvidence) -> Rows:
    rows: Rows = [
        (
            f"  trial {run.trial}",
            f"{run.weakest_score:.3f} at {run.input_id}: tools {run.tool_usage_stability:.3f}, "
            f"replies {run.response_consistency:.3f}, calls {run.redundancy:.3f}, cost "
            f"{run.cost_per_progress:.3f}"
            + (f"; drifted: {', '.join(run.drift)}" if run.drift else ""),
        )
        for run in sorted(evidence.runs, key=lambda run: run.weakest_score)[:_MOST]
    ]
    if len(evidence.runs) > _MOST:
        rows.append(("", f"and {as_count(len(evidence.runs) - _MOST, 'steadier run')}"))
    if evidence.exclude:
        rows.append(("Left out", ", ".join(evidence.exclude)))
    return rows


def _list_metrics(evidence: MetricsEvidence) -> Rows:
    rows = _list_pass_k(evidence.pass_k, "")
    for one in evidence.criteria:
        rows += _list_pass_k(one.pass_k, f" of {one.criterion}")
    if not isinstance(evidence.passed, Undefined) and evidence.threshold is not None:
        word = "reaches" if evidence.passed else "misses"
        rows.append(("Threshold", f"{evidence.threshold:g}, which the mean score {word}"))
    if evidence.flaky:
        named = ", ".join(evidence.flaky[:_MOST])
        rows.append(("Flaky", f"{as_count(len(evidence.flaky), 'input')}: {named}"))
    if evidence.unscored:
        named = ", ".join(evidence.unscored[:_MOST])
        rows.append(("Unscored", f"{as_count(len(evidence.unscored), 'input')}: {named}"))
    return rows


def _list_pass_k(rows: Sequence[PassK], whose: str) -> Rows:
    return [(f"k = {row.k}", _write_pass_k(row, whose)) for row in rows]


def _write_pass_k(row: PassK, whose: str) -> str:
    if isinstance(row.pass_at_k, Undefined):
        return f"pass@k{whose} and pass^k are undefined: {row.pass_at_k.reason}"
    return (
        f"pass@k{whose} {_write_figure(row.pass_at_k, row.pass_at_k_interval)}, pass^k "
        f"{_write_figure(row.pass_hat_k, row.pass_hat_k_interval)}; biased: naive "
        f"{_write_figure(row.pass_at_k_naive)}, plug-in {_write_figure(row.pass_hat_k_plugin)}"
    )


def _write_figure(value: float | Undefined, interval: Interval | Undefined | None = None) -> str:
    shown = "undefined" if isinstance(value, Undefined) else f"{value:.4g}"
    if not isinstance(interval, Interval):
        return shown
    return f"{shown} {as_outward(interval)}"


_INDICATIVE = "a directional signal, not a statistically reliable estimate"


_COVERAGE = (
    "of the baseline's own percentile; a test's exceeds the bound more often than α even if "
    "nothing changed (§12.4.3)"
)


def build_latency_section(verdict: Verdict) -> Section:
    """Every constraint with the ranks and counts it was decided on."""
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
        ("  rule", f"{finding.decision_rule}, α = {finding.alpha:g}"),
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


def _write_observed(finding: LatencyFinding) -> str:
    of = f"{as_count(finding.trials, 'successful trial')}"
    if finding.observed is None:
        return f"no latency, {of}"
    return f"Q({finding.percentile:g}) = {as_seconds(finding.observed)} by nearest rank, {of}"


def _list_evidence(finding: LatencyFinding) -> Rows:
    evidence = finding.evidence
    if isinstance(evidence, LatencyLimitDecision):
        return _list_limit(evidence) if finding.rule == "exact" else []
    if isinstance(evidence, OrderStatisticBound):
        return _list_bound(evidence)
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
