"""Fixed numbers of trials explained: the integer cutoff, its exact error rates, its reference.

The reference is a required rate, a baseline, or an enumerated corpus that was sampled without
replacement or is known whole (§8.4.6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias, cast

from trialwise import stats
from trialwise.decimals import as_written
from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_computed, as_count
from trialwise.model.baseline import BaselineReference
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Decision, Finding
from trialwise.procedures import explanations
from trialwise.procedures.base import AGREEING, LEFT_OUT_COUNTED, known
from trialwise.procedures.chances import characterize
from trialwise.procedures.explanations import Rows
from trialwise.procedures.registry import procedure_of
from trialwise.procedures.regression import FALSE_ALARM_EXCESS

_Cutoff: TypeAlias = stats.ComplianceCutoff | stats.RegressionCutoff | stats.FiniteCorpusCutoff

#: What kind of test each versioned rule is.
_TESTS = {
    "compliance/wilson-lower-bound": "one-sided Wilson lower bound, score-test inversion",
    "compliance/exact-binomial": "exact binomial, upper tail",
    "regression/wilson-cutoff": "one-sided Wilson lower bound, score-test inversion",
    "regression/fisher": "one-sided Fisher exact test, two samples",
    "regression/boschloo": "one-sided Boschloo test, two samples, unconditional and exact",
    "regression/likelihood-ratio": "likelihood ratio after every trial, unconditional and exact",
    "regression/likelihood-ratio-once": "likelihood ratio at the end, unconditional and exact",
    "finite-corpus/hypergeometric": "exact hypergeometric, without replacement",
    "finite-corpus/exact-rate": "none: every input of the corpus was evaluated",
    "no-generalisation/observed-rate": "none: the observed rate is the claim",
}


def explain_compliance(finding: Finding) -> tuple[Section, ...]:
    """The test of a required rate, where the rate comes from, and the numbers of the cutoff."""
    design = cast("stats.ComplianceCutoff | None", finding.design)
    usual, reference = _state_requirement(finding, design)
    rows: Rows = []
    if design is not None and design.cutoff is not None:
        rows = _infer(finding, design, _compliance_size(design, finding.plan))
    return _lay_out(finding, design, usual, reference, rows)


def explain_regression(finding: Finding) -> tuple[Section, ...]:
    """The test against a baseline, what was measured and when, and the numbers of the cutoff."""
    design = cast("stats.RegressionCutoff | None", finding.design)
    usual = (
        "K follows the reference model; no degradation signal",
        "lower-tail degradation signal under the reference",
    )
    reference, rows = explanations.describe_threshold(finding), []
    if design is not None:
        reference += _describe_baseline(design, finding.threshold.baseline)
        if design.cutoff is not None:
            rows = _infer(finding, design, _regression_size(design)) + _list_difference(finding)
    sections = _lay_out(finding, design, usual, reference, rows)
    if design is None:
        return sections
    return (*sections, *explanations.explain_other_rules(finding, design))


def explain_corpus(finding: Finding) -> tuple[Section, ...]:
    """The test, what share of the corpus was tried, and the exact numbers."""
    design, rows = finding.design, list[tuple[str, str]]()
    sampled = None if isinstance(design, stats.ExactCorpusRate) else design
    sampled = cast("stats.FiniteCorpusCutoff | None", sampled)
    usual, reference = _state_requirement(finding, sampled)
    if isinstance(design, stats.ExactCorpusRate):
        reference.append(("Corpus", f"all {design.corpus_size} inputs evaluated"))
        counted = f"{design.successes} of {design.corpus_size} = {design.rate:.6f}, known"
        rows = [("Corpus rate", counted), ("Interval", f"none: {design.interval.reason}")]
    if sampled is not None:
        share = f"{sampled.trials} of {sampled.corpus_size} inputs, {sampled.sample_fraction:.4f}"
        needed = f"{sampled.required_successes} of {sampled.corpus_size} would have to succeed"
        reference += [("Sample fraction", share), ("Whole corpus", needed)]
        if sampled.cutoff is not None:
            rows = _infer(finding, sampled, _corpus_size(sampled))
    return _lay_out(finding, sampled, usual, reference, rows)


def _state_requirement(
    finding: Finding, design: stats.ComplianceCutoff | stats.FiniteCorpusCutoff | None
) -> tuple[tuple[str, str], Rows]:
    """The two hypotheses about a required rate, and where the rate comes from."""
    required = finding.threshold.required_rate
    if required is None and design is not None:
        required = design.required_rate
    reference = explanations.describe_threshold(finding)
    if required is None:
        return ("", ""), reference
    reference.append(("Normative threshold", f"p* = {required:g} (given, not estimated)"))
    return (f"p ≤ {required:g}", f"p > {required:g}"), reference


def _lay_out(
    finding: Finding, design: _Cutoff | None, usual: tuple[str, str], reference: Rows, rows: Rows
) -> tuple[Section, ...]:
    passes = ""
    if finding.estimator is not None:
        passes = "the estimator's one-sided lower bound reaches the required rate"
    elif design is not None and finding.cutoff is not None:
        passes = f"K ≥ {finding.cutoff} of {design.trials}"
        if design.corpus_size is not None:
            passes += f" drawn of the corpus's {design.corpus_size}"
    name = (finding.decision_rule or "").removesuffix(AGREEING).removesuffix(LEFT_OUT_COUNTED)
    hypotheses = explanations.explain_hypotheses(
        finding, usual=usual, passes=passes, test=_TESTS.get(name, "")
    )
    return explanations.lay_out(hypotheses, reference, rows)


def _infer(finding: Finding, design: _Cutoff, size: Rows) -> Rows:
    procedure, cutoff = procedure_of(finding), known(design.cutoff)
    share = cutoff / design.trials
    rows = [("Integer cutoff", f"c = {cutoff}, displayed as c/n = {share:.6f}")]
    # Inputs that are decided one by one have numbers of their own; pooled ones decide nothing.
    if not finding.tally.trials or finding.by_input:
        return rows + size + explanations.list_power(finding)
    bound = "Wilson" if finding.rule == "wilson" else "Clopper–Pearson"
    if design.corpus_size is not None:
        bound = "hypergeometric"
    rows += explanations.list_precision(finding, bound, corpus=design.corpus_size) + size
    # Only a binomial rule has a normal approximation to compare with.
    if finding.rule == "wilson":
        rows += _diagnostic_z(finding, design) + _list_adequacy(design)
    null = "no degradation from the baseline"
    if not procedure.compares_baseline:
        null = "the required rate is not exceeded"
    rows += explanations.list_p_value(finding, null)
    if procedure.counts_rate:
        rows += _list_achieved_confidence(finding, cast("stats.ComplianceCutoff", design))
    return rows + explanations.list_power(finding)


#: Below the first number a normal approximation is poor, below the second doubtful (§8.1).
_POOR, _DOUBTFUL = 5, 10


def _list_adequacy(design: _Cutoff) -> Rows:
    """Whether the normal approximation behind Wilson's bound has enough of both outcomes (§8.1)."""
    # In rationals, so that 100 trials at 0.9 have 10 failures and not a little less.
    exact = as_written(design.reference_rate)
    passes, failures = float(design.trials * exact), float(design.trials * (1 - exact))
    least = min(passes, failures)
    says = "adequate" if least >= _DOUBTFUL else "doubtful" if least >= _POOR else "poor"
    limit = f"{_DOUBTFUL}" if least >= _POOR else f"{_POOR}"
    side = "at least" if least >= _DOUBTFUL else "below"
    counts = f"n·p = {passes:.4g}, n·(1−p) = {failures:.4g}"
    return [("Normal approximation", f"{says}: {counts}, {side} {limit} (§8.1)")]


def _list_achieved_confidence(finding: Finding, design: stats.ComplianceCutoff) -> Rows:
    """The confidence at which these counts just show the required rate (§6.1)."""
    counts = finding.tally.passed, finding.tally.trials, design.required_rate
    if not finding.tally.trials:
        return []
    normal = f"{as_computed(stats.implied_confidence_of_observation(*counts))} = Φ(z)"
    if finding.p_value is None:
        early = "descriptive: it stopped before all trials were in"
        return [("Achieved confidence", f"{normal}, {early}")]
    # Wilson's p-value is that of the score test, so the exact one is counted here.
    exact = f"{as_computed(1 - stats.binomial_tail(*counts))} = 1 − p, exact"
    return [("Achieved confidence", exact), ("", f"{normal}, approximate")]


def _compliance_size(design: stats.ComplianceCutoff, plan: CriterionPlan) -> Rows:
    """The error rate the integer cutoff really has: method, reference, tail, meaning (§10.3)."""
    tail = f"P_(p = {design.required_rate:g})(K ≥ {design.cutoff})"
    required = plan.threshold.required_rate
    has_margin = required is not None and required != design.required_rate
    rate = "the required rate less the margin" if has_margin else "the required rate"
    rows = [
        ("Achieved size", f"{as_computed(design.achieved_size)} = {tail}"),
        ("  method", "exact-binomial-upper-tail"),
        ("  reference", f"{rate}, {design.required_rate:g}"),
        ("  interpretation", f"probability of a PASS at exactly {rate}"),
    ]
    error = characterize(plan).error_of(Decision.FAIL)
    if error is None or error.actual is None or plan.failing.most_failing is None:
        return rows
    tail = f"P_(p = {error.rate:g})(K ≤ {plan.failing.most_failing})"
    return [
        *rows,
        ("Achieved size, FAIL", f"{as_computed(error.actual)} = {tail}"),
        ("  interpretation", "probability of a FAIL at exactly the required rate"),
    ]


def _regression_size(design: stats.RegressionCutoff) -> Rows:
    rows: Rows = []
    wilson, reference = design.rule == "wilson", design.reference_rate
    if design.achieved_size is not None:
        tail = f"P_(p = {reference:g})(K < {design.cutoff})" if wilson else "P(FAIL), unchanged"
        method = "exact-binomial-lower-tail" if wilson else "exact-two-sample-enumeration"
        taken = "the reference, taken as known" if wilson else "both runs at the reference rate"
        rows += [
            ("Achieved size", f"{as_computed(design.achieved_size)} = {tail}"),
            ("  method", method),
            ("  reference", f"p_ref = {reference:.6g}, {taken}"),
            ("  interpretation", "false-degradation-alarm probability at the cutoff"),
        ]
    alarm = design.design_false_alarm
    if alarm is not None and wilson:
        own = f"{as_computed(alarm)} with the baseline's own sampling error"
        rows.append(("True false alarm", own))
        if alarm > FALSE_ALARM_EXCESS * design.alpha:
            ratio = alarm / design.alpha
            rows.append(("", f"{ratio:.1f} × the configured α; the exact rule stays within α"))
    return rows


def _list_difference(finding: Finding) -> Rows:
    """The rate minus the baseline's, bounded on the side that the verdict is about."""
    found = finding.difference
    if found is None:
        return []
    bound = f"at least {as_computed(found.low)}"
    if found.high < 0:  # exactly after a FAIL
        bound = f"at most {as_computed(found.high)}"
    how = f"{explanations.name_interval(found)}, {found.method}"
    return [("Rate minus baseline's", f"{bound}, {how}")]


def _corpus_size(design: stats.FiniteCorpusCutoff) -> Rows:
    if isinstance(design.size, stats.Undefined):
        return [("Achieved size", f"undefined: {design.size.reason}")]
    short = f"{design.required_successes - 1} of {design.corpus_size}"
    return [
        ("Achieved size", f"{as_computed(design.size)} = P(K ≥ {design.cutoff})"),
        ("  method", "exact-hypergeometric-upper-tail"),
        ("  reference", f"a corpus one success short, {short}"),
        ("  interpretation", "probability of a PASS although the corpus falls short"),
    ]


def _diagnostic_z(finding: Finding, design: _Cutoff) -> Rows:
    """Wald's z, for orientation: it is not the operative test (§7.1)."""
    tally, threshold = finding.tally, getattr(design, "threshold", design.reference_rate)
    if tally.trials != design.trials or threshold is None or not 0 < threshold < 1:
        return []
    error = math.sqrt(threshold * (1 - threshold) / tally.trials)
    z = (tally.passed / tally.trials - threshold) / error
    return [
        ("Diagnostic z-score", f"(p̂ − p*)/√(p*(1−p*)/n) = {z:.3f}"),
        ("", "Wald form, illustrative: not the operative test"),
    ]


def _describe_baseline(design: stats.RegressionCutoff, reference: BaselineReference | None) -> Rows:
    observed = f"{design.baseline_successes} of {design.baseline_trials} successes"
    rows = [] if reference is None else _identify_baseline(reference)
    rows += [
        ("Baseline observation", f"{observed}, reference rate {design.reference_rate:.6f}"),
        ("Test sample size", f"n = {design.trials}"),
    ]
    if design.rule == "wilson" and design.baseline_successes == design.baseline_trials:
        rows.append(("", "a baseline without failures enters as its own lower bound (§4.3)"))
    if design.threshold is None:
        return rows
    exact = "Boschloo's exact test" if design.scheme is None else "a likelihood ratio"
    test = "Fisher's exact test" if design.rule == "fisher" else exact
    derived = f"c/n = {design.threshold:.6f}, from {test}"
    if design.rule == "wilson":
        made = f"WilsonLB({design.reference_rate:g}; {design.trials}, {design.alpha:g})"
        derived = f"p* = {made} = {design.threshold:.6f} (§1.5.4), informational"
    return [*rows, ("Derived threshold", derived)]


def _identify_baseline(reference: BaselineReference) -> Rows:
    expires = reference.expires_at
    until = "none declared" if expires is None else expires.isoformat(" ", "minutes")
    if (left := reference.days_left) is not None:  # when the run started
        days = as_count(math.floor(abs(left)), "day")
        until += f" ({days} remaining)" if left >= 0 else f" (expired {days} ago)"
    return [
        ("Baseline ID", reference.identifier),
        ("Baseline file", reference.file),
        ("Generated", reference.created_at.isoformat(" ", "minutes")),
        ("Covariates", _join(reference.covariates)),
        ("Covariate match", reference.covariate_match),
        ("Factors", _join(reference.factors)),
        ("Expiration", until),
        ("Reference-state epoch", str(reference.epoch)),
    ]


def _join(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
