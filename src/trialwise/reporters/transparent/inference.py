"""The numbers behind a decision: cutoff, achieved size, bounds, p-value and power (§7.1, §10.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trialwise.documents.numbers import as_computed
from trialwise.model.tally import Tally
from trialwise.model.verdict import Finding, Procedure
from trialwise.procedures.regression import FALSE_ALARM_EXCESS
from trialwise.reporters.transparent.sequential import sequential_rows
from trialwise.reporters.transparent.sheet import Rows, Section
from trialwise.stats.cluster_estimators import ClusterEstimate
from trialwise.stats.cluster_stratified import StratifiedEstimate
from trialwise.stats.compliance_cutoffs import ComplianceCutoff
from trialwise.stats.finite import ExactCorpusRate, FiniteCorpusCutoff
from trialwise.stats.rate_intervals import wilson_interval
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.sequential.design import SequentialDesign

__all__ = ["inference_sections"]


def inference_sections(finding: Finding) -> Iterator[Section]:
    """The inference of one criterion; none where the verdict is exact on the observation."""
    design = finding.design
    if isinstance(finding.estimator, ClusterEstimate):
        yield Section("ESTIMATOR", _clusters(finding.estimator))
    elif isinstance(finding.estimator, StratifiedEstimate):
        yield Section("ESTIMATOR", _strata(finding.estimator))
    if finding.procedure is Procedure.OBSERVATIONAL or design is None:
        return
    if isinstance(design, SequentialDesign):
        yield Section("STATISTICAL INFERENCE", sequential_rows(finding, design))
    elif isinstance(design, ExactCorpusRate):
        yield Section("STATISTICAL INFERENCE", _known(design))
    elif design.cutoff is not None:
        yield Section("STATISTICAL INFERENCE", _fixed(finding, design))


def _fixed(
    finding: Finding, design: ComplianceCutoff | RegressionCutoff | FiniteCorpusCutoff
) -> Rows:
    tally, cutoff = finding.tally, design.cutoff
    shown = f"c = {cutoff}, displayed as c/n = {_displayed(design):.6f}"
    rows = [("Integer cutoff", shown)]
    # Inputs that are judged one by one have numbers of their own; pooled ones decide nothing.
    if tally.trials and not finding.by_input:
        rows += _precision(finding, tally)
    rows += _achieved(design)
    if tally.trials and not finding.by_input:
        rows += _diagnostic_z(tally, design)
        rows += _p_value(finding)
    return rows + _power(finding)


def _displayed(design: ComplianceCutoff | RegressionCutoff | FiniteCorpusCutoff) -> float:
    assert design.cutoff is not None
    return design.cutoff / design.trials


def _precision(finding: Finding, tally: Tally) -> Rows:
    rate = tally.passed / tally.trials
    error = math.sqrt(rate * (1 - rate) / tally.trials)
    rows = [("Standard error", f"√(p̂(1−p̂)/n) = {as_computed(error)}")]
    interval = finding.interval
    if interval is None:
        plain = wilson_interval(tally.passed, tally.trials)
        rows.append(("95 % Wilson interval", f"{bracketed(plain)}, descriptive"))
    else:
        rows.append((interval_label(interval), f"{bracketed(interval)}, {interval.method}"))
    if finding.lower_bound is not None:
        bound = f"p_L({finding.alpha:g}) = {as_computed(finding.lower_bound)}"
        rows.append(("Lower bound", f"{bound}, {_bound_method(finding)}, one-sided"))
    return rows


def bracketed(interval: Interval) -> str:
    """The two ends of an interval."""
    return f"[{as_computed(interval.low)}, {as_computed(interval.high)}]"


def interval_label(interval: Interval) -> str:
    """An interval's level, as a label."""
    level = "" if interval.confidence is None else f"{100 * interval.confidence:.6g} % "
    return f"{level}interval"


def _bound_method(finding: Finding) -> str:
    if isinstance(finding.design, FiniteCorpusCutoff):
        return "hypergeometric"
    if finding.estimator is not None:
        return "by the matched estimator"
    return "Wilson" if finding.rule == "wilson" else "Clopper–Pearson"


def _achieved(design: ComplianceCutoff | RegressionCutoff | FiniteCorpusCutoff) -> Rows:
    """The error rate the integer cutoff really has: method, reference, tail, meaning (§10.3)."""
    c = design.cutoff
    if isinstance(design, ComplianceCutoff):
        tail = f"P_(p = {design.required_rate:g})(K ≥ {c})"
        return [
            ("Achieved size", f"{as_computed(design.achieved_size)} = {tail}"),
            ("  method", "exact-binomial-upper-tail"),
            ("  reference", f"the required rate, {design.required_rate:g}"),
            ("  interpretation", "probability of a PASS at exactly the required rate"),
        ]
    if isinstance(design, FiniteCorpusCutoff):
        if isinstance(design.size, Undefined):
            return [("Achieved size", f"undefined: {design.size.reason}")]
        short = f"{design.required_successes - 1} of {design.corpus_size}"
        return [
            ("Achieved size", f"{as_computed(design.size)} = P(K ≥ {c})"),
            ("  method", "exact-hypergeometric-upper-tail"),
            ("  reference", f"a corpus one success short, {short}"),
            ("  interpretation", "probability of a PASS although the corpus falls short"),
        ]
    return _regression_size(design)


def _regression_size(design: RegressionCutoff) -> Rows:
    rows: Rows = []
    wilson, reference = design.rule == "wilson", design.reference_rate
    if design.achieved_size is not None:
        tail = f"P_(p = {reference:g})(K < {design.cutoff})" if wilson else "P(FAIL), unchanged"
        method = "exact-binomial-lower-tail" if wilson else "exact-two-sample-enumeration"
        known = "the reference, taken as known" if wilson else "both runs at the reference rate"
        rows += [
            ("Achieved size", f"{as_computed(design.achieved_size)} = {tail}"),
            ("  method", method),
            ("  reference", f"p_ref = {reference:.6g}, {known}"),
            ("  interpretation", "false-degradation-alarm probability at the cutoff"),
        ]
    alarm = design.design_false_alarm
    if alarm is not None and wilson:
        rows.append(
            ("True false alarm", f"{as_computed(alarm)} with the baseline's own sampling error")
        )
        if alarm > FALSE_ALARM_EXCESS * design.alpha:
            ratio = alarm / design.alpha
            rows.append(("", f"{ratio:.1f} × the configured α; the exact rule stays within α"))
    return rows


def _diagnostic_z(
    tally: Tally, design: ComplianceCutoff | RegressionCutoff | FiniteCorpusCutoff
) -> Rows:
    """Wald's z, for orientation: it is not the operative test (§7.1)."""
    if isinstance(design, FiniteCorpusCutoff) or design.rule != "wilson":
        return []
    threshold = design.required_rate if isinstance(design, ComplianceCutoff) else design.threshold
    if threshold is None or not 0 < threshold < 1 or tally.trials != design.trials:
        return []
    error = math.sqrt(threshold * (1 - threshold) / tally.trials)
    z = (tally.passed / tally.trials - threshold) / error
    return [
        ("Diagnostic z-score", f"(p̂ − p*)/√(p*(1−p*)/n) = {z:.3f}"),
        ("", "Wald form, illustrative: not the operative test"),
    ]


def _p_value(finding: Finding) -> Rows:
    p = finding.p_value
    if p is None:
        return []
    degraded = finding.procedure is Procedure.REGRESSION
    usual = "no degradation from the baseline" if degraded else "the required rate is not exceeded"
    return [
        ("p-value", as_computed(p.value)),
        ("  method", p.method),
        ("  null", f"{finding.null or usual}; small values speak against it"),
        ("  tail", p.tail),
    ]


def _power(finding: Finding) -> Rows:
    threshold = finding.threshold
    if finding.power is None or threshold is None or threshold.alternative_rate is None:
        return []
    at = f"{threshold.alternative_rate:g}"
    return [("Power", f"{as_computed(finding.power)} = P(not PASS) at a true rate of {at}, exact")]


def _known(design: ExactCorpusRate) -> Rows:
    return [
        ("Corpus rate", f"{design.successes} of {design.corpus_size} = {design.rate:.6f}, known"),
        ("Interval", f"none: {design.interval.reason}"),
    ]


def _clusters(found: ClusterEstimate) -> Rows:
    effective, interval = found.effective_trials, found.interval
    trials = effective.reason if isinstance(effective, Undefined) else f"{effective:.2f}"
    ends = interval.reason if isinstance(interval, Undefined) else bracketed(interval)
    return [
        ("Target estimand", found.estimand),
        ("Estimate", f"{found.rate:.6f} from {found.trials} trials of {found.prompts} inputs"),
        ("Method", f"{found.method}: Wilson's interval on the effective number of trials"),
        ("Effective trials", trials),
        ("Interval", ends),
        ("Generalises to", found.population),
    ]


def _strata(found: StratifiedEstimate) -> Rows:
    rows = [
        ("Target estimand", found.estimand),
        ("Estimate", f"{found.rate:.6f}, score interval {bracketed(found.interval)}"),
    ]
    for place, (stratum, weight) in enumerate(zip(found.strata, found.weights, strict=True)):
        counts = f"{int(stratum.successes)} of {int(stratum.trials)}"
        label = "Strata" if place == 0 else ""
        rows.append((label, f"{stratum.name}: {counts}, weight {weight:.4f}"))
    return [*rows, ("Generalises to", found.population)]
