"""One criterion's block: what was asked, what was seen, what it was held against, what follows."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.numbers import as_computed
from trialwise.documents.phrases import STOPS
from trialwise.model.criterion import Origin
from trialwise.model.evidence import Breakdown, Diagnostics
from trialwise.model.tally import Tally
from trialwise.model.verdict import Decision, Finding, Procedure, Verdict
from trialwise.pages.finding_facts import pick_badge
from trialwise.pages.judge_facts import (
    CORRECTION_NAMES,
    describe_labels,
    find_labels,
    list_corrections,
    name_missing,
)
from trialwise.reporters.transparent.contract import mode_of
from trialwise.reporters.transparent.guardrail import guardrail_sections
from trialwise.reporters.transparent.inference import inference_sections
from trialwise.reporters.transparent.reference import reference_rows
from trialwise.reporters.transparent.sheet import Rows, Section
from trialwise.stats.compliance_cutoffs import ComplianceCutoff
from trialwise.stats.finite import FiniteCorpusCutoff
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.result_types import Undefined
from trialwise.stats.sequential.design import SequentialDesign

__all__ = ["criterion_sections"]

#: The question by who set the threshold (§7.4).
_QUESTIONS = {
    Origin.SLA: "does the system meet its SLA requirement?",
    Origin.SLO: "does the system meet its SLO target?",
    Origin.POLICY: "does the system meet the policy requirement?",
    Origin.EMPIRICAL: "has the rate degraded from the baseline?",
    Origin.UNSPECIFIED: "does the success rate meet the threshold?",
}
#: What kind of test each versioned rule is.
_TESTS = {
    "compliance/wilson-lower-bound": "one-sided Wilson lower bound, score-test inversion",
    "compliance/exact-binomial": "exact binomial, upper tail",
    "regression/wilson-cutoff": "one-sided Wilson lower bound, score-test inversion",
    "regression/fisher": "one-sided Fisher exact test, two samples",
    "finite-corpus/hypergeometric": "exact hypergeometric, without replacement",
    "finite-corpus/exact-rate": "none: every input of the corpus was evaluated",
    "no-generalisation/observed-rate": "none: the observed rate is the claim",
}

_NO_CLAIM = (
    "A claim about the population needs an inferential criterion of adequate size, or "
    "architectural discharge (§1.4.5b)."
)


def criterion_sections(finding: Finding, verdict: Verdict, place: int) -> Iterator[Section]:
    """The block of one criterion, `place` counted from 1."""
    total = len(verdict.findings)
    mode = f"{mode_of(finding)}, advisory" if finding.advisory else mode_of(finding)
    heading = f"CRITERION {place} of {total}: {finding.criterion} ({mode})"
    yield Section(heading, [])
    yield Section("HYPOTHESIS TEST", _hypothesis(finding, verdict))
    yield Section("OBSERVED DATA", _observed(finding, verdict))
    reference = reference_rows(finding)
    if reference and finding.procedure is not Procedure.OBSERVATIONAL:
        yield Section("THRESHOLD REFERENCE", reference)
    if finding.by_input:
        yield Section("BY INPUT", _by_input(finding))
    yield from inference_sections(finding)
    if find_labels(finding) is not None:
        yield Section("JUDGE", _judge(finding))
    yield from guardrail_sections(finding)
    yield Section("VERDICT", _verdict(finding))
    if finding.diagnostics is not None:
        yield Section("DIAGNOSTICS", _diagnostics(finding.diagnostics))


def _hypothesis(finding: Finding, verdict: Verdict) -> Rows:
    sampling = _sampling(finding, verdict)
    category = [("Category", finding.category)] if finding.category else []
    if finding.procedure is Procedure.OBSERVATIONAL:
        return [
            ("Mode", "observational: no threshold, no α, no inferential claim"),
            ("Question", f"was any failure of {finding.criterion} observed in the run?"),
            *sampling,
            *category,
        ]
    origin = finding.threshold.origin if finding.threshold is not None else None
    null, alternative = _hypotheses(finding)
    rows = [
        ("Procedure", str(finding.procedure)),
        *([("Question", _QUESTIONS[origin])] if origin is not None else []),
        ("H₀ (null)", null),
        ("H₁ (alternative)", alternative),
        ("Decision rule", str(finding.decision_rule)),
        *_passes(finding),
        ("Test type", _test_type(finding)),
    ]
    if finding.alpha is not None:
        rows.append(("configured α", f"{finding.alpha:g} (unadjusted per-test)"))
    if finding.beta is not None:
        rows.append(("configured β", f"{finding.beta:g} (unadjusted per-test)"))
    return [row for row in [*rows, *sampling, *category] if row[1]]


def _sampling(finding: Finding, verdict: Verdict) -> Rows:
    for one in verdict.experiments:
        if one.name == finding.experiment:
            named = f"{one.identifier} {one.version}".strip()
            described = f", {one.description}" if one.description else ""
            return [("Sampling", f"{named} (role: {one.role}{described})")]
    return []


def _hypotheses(finding: Finding) -> tuple[str, str]:
    if finding.null:
        return finding.null, finding.alternative
    design = finding.design
    if finding.procedure is Procedure.REGRESSION:
        null = "K follows the reference model; no degradation signal"
        return null, "lower-tail degradation signal under the reference"
    if isinstance(design, SequentialDesign):
        return f"p ≥ {design.p0:g}, the required rate", f"p ≤ {design.p1:g}, the margin below it"
    required = _required(finding)
    return ("", "") if required is None else (f"p ≤ {required:g}", f"p > {required:g}")


def _required(finding: Finding) -> float | None:
    if finding.threshold is not None and finding.threshold.required_rate is not None:
        return finding.threshold.required_rate
    design = finding.design
    if isinstance(design, ComplianceCutoff | FiniteCorpusCutoff):
        return design.required_rate
    return None


def _passes(finding: Finding) -> Rows:
    design, cutoff = finding.design, finding.cutoff
    if finding.estimator is not None:
        return [("PASS iff", "the estimator's one-sided lower bound reaches the required rate")]
    if isinstance(design, SequentialDesign):
        return [("PASS iff", "the failures fall to the PASS boundary, given below, first")]
    if isinstance(design, FiniteCorpusCutoff) and cutoff is not None:
        drawn = f"{design.trials} drawn of the corpus's {design.corpus_size}"
        return [("PASS iff", f"K ≥ {cutoff} of {drawn}")]
    if isinstance(design, ComplianceCutoff | RegressionCutoff) and cutoff is not None:
        return [("PASS iff", f"K ≥ {cutoff} of {design.trials}")]
    return []


def _test_type(finding: Finding) -> str:
    rule = finding.decision_rule or ""
    if isinstance(finding.design, SequentialDesign):
        return f"sequential, {finding.design.method}; both errors exact by path counting"
    return _TESTS.get(rule, "")


def _observed(finding: Finding, verdict: Verdict) -> Rows:
    tally, every = finding.tally, finding.intent_to_treat or finding.tally
    evaluable = every.trials if every.evaluable is None else every.evaluable
    # What rides along on the others' trials may have seen more of them than it was planned with.
    known = finding.planned_trials is not None and every.trials <= finding.planned_trials
    planned = f" of {finding.planned_trials} planned" if known else ""
    rows = [("Attempted trials", f"{every.trials}{planned}"), ("Evaluable trials", str(evaluable))]
    if every.trials:
        rows.append(("Observation rate (r_obs)", f"{evaluable / every.trials:.3f}"))
    counts = "every trial counts" if tally.trials == every.trials else f"{verdict.analysis}"
    rows += [
        ("Denominator (n)", f"{tally.trials} ({counts})"),
        ("Successes (K)", str(tally.passed)),
        ("Failures", str(tally.failed)),
    ]
    if tally.rate is not None:
        rows.append(("Observed rate", f"p̂ = {tally.rate:.6f}"))
    # Inputs that are judged one by one have these counts of their own.
    if finding.breakdown is not None and not finding.by_input:
        rows += _reasons(finding.breakdown)
    if not finding.by_input:
        rows += _other_counts(finding)
    if finding.stop is not None:
        rows.append(("Stopped", STOPS[finding.stop].label))
    return rows


def _reasons(breakdown: Breakdown) -> Rows:
    reasons = (
        ("condition", breakdown.condition),
        ("transform", breakdown.transform),
        ("no-value", breakdown.no_value),
    )
    told = [f"{name} {count}" for name, count in reasons if count]
    rows = [("FAILs by reason", ", ".join(told) or "none")]
    if breakdown.errors:
        classes = ", ".join(f"{name} {count}" for name, count in breakdown.errors.items())
        rows.append(("Trials by error class", classes))
    if breakdown.retried:
        rows.append(("Passed after a retry", str(breakdown.retried)))
    return rows


def _other_counts(finding: Finding) -> Rows:
    """The counts that did not decide, where they differ from those that did."""
    other = (
        ("Intent-to-treat", finding.intent_to_treat),
        ("Per protocol", finding.per_protocol),
    )
    return [
        (label, _counts(tally))
        for label, tally in other
        if tally is not None and tally.trials != finding.tally.trials
    ]


def _counts(tally: Tally) -> str:
    rate = "" if tally.rate is None else f" = {tally.rate:.6f}"
    return f"{tally.passed} of {tally.trials}{rate}"


def _by_input(finding: Finding) -> Rows:
    rows = []
    for part in finding.by_input:
        bound = "" if part.lower_bound is None else f", at least {as_computed(part.lower_bound)}"
        stop = "" if part.stop is None else f", {STOPS[part.stop].label}"
        name = part.input_id or "?"
        rows.append((name, f"{pick_badge(part)}, {_counts(part.tally)}{bound}{stop}"))
    note = "Each input is judged on its own at the configured level; the worst decides."
    return [*rows, ("", note)]


def _judge(finding: Finding) -> Rows:
    """What the judge's errors leave of its rate; both corrections have to agree."""
    labels = find_labels(finding)
    assert labels is not None
    rows = [("Labels", describe_labels(labels))]
    for one in list_corrections(finding):
        found = one.corrected
        if isinstance(found, Undefined):
            shown = found.reason
        else:
            sure = found.interval.confidence
            level = "" if sure is None else f" at {100 * sure:g} %"
            ends = f"[{as_computed(found.interval.low)}, {as_computed(found.interval.high)}]{level}"
            shown = f"{as_computed(found.rate)} {ends}; {one.decision} at {one.required_rate:g}"
        rows.append((f"Corrected, {CORRECTION_NAMES[one.correction]}", shown))
    judged = finding.judged
    if judged is not None and judged.decision is Decision.INCONCLUSIVE:
        rows += [("Open because of", judged.open_because), ("Missing", name_missing(finding))]
    return rows


def _verdict(finding: Finding) -> Rows:
    weight = "advisory: reported, and left out of the run's verdict"
    return [*([("Weight", weight)] if finding.advisory else []), *_decision(finding)]


def _decision(finding: Finding) -> Rows:
    if finding.decision is None:
        reasons = ", ".join(finding.refusals)
        return [("Refused", f"{reasons}. {finding.statement}")]
    if finding.procedure is Procedure.OBSERVATIONAL:
        return _assertion(finding)
    rows = [
        ("Statistical verdict", f"{pick_badge(finding)}. {finding.statement}"),
        ("Observed-rate status", _status(finding)),
        ("Operational caution", _caution(finding)),
        ("Confidence statement", finding.confidence_statement or _confidence(finding)),
    ]
    return [row for row in rows if row[1]] + _caveats(finding)


def _assertion(finding: Finding) -> Rows:
    """One line suffices: the verdict is exact on the observation (§10.2)."""
    rows = [("Result", f"{finding.decision} (observational)")]
    if finding.label:
        rows.append(("Shown as", finding.label))
    rows += [
        ("Statement", finding.statement),
        ("No population claim", _NO_CLAIM),
    ]
    return rows + _caveats(finding)


def _status(finding: Finding) -> str:
    """The point estimate beside the decision: where they disagree is the point (§10.2)."""
    words = finding.observed_rate.replace("_", " ")
    above = finding.observed_rate in ("ABOVE_THRESHOLD", "AT_THRESHOLD")
    below = finding.observed_rate == "BELOW_THRESHOLD"
    if (above and finding.decision is Decision.FAIL) or (below and finding.decision == "PASS"):
        return f"{words}. The point estimate and the statistical verdict disagree."
    if (above and finding.decision is Decision.PASS) or (below and finding.decision == "FAIL"):
        return f"{words}. The point estimate and the statistical verdict agree."
    return words


def _caution(finding: Finding) -> str:
    words = "" if finding.caution is None else finding.caution.replace("_", " ")
    return ". ".join(part for part in (words, finding.advice) if part)


def _caveats(finding: Finding) -> Rows:
    return [("Caveat", caveat) for caveat in finding.caveats]


def _confidence(finding: Finding) -> str:
    """A long-run property of the rule, never a probability about this verdict (§7.2)."""
    events = {
        Procedure.COMPLIANCE: (
            "if the true rate were at or below the requirement, this rule would declare "
            "compliance with the probability stated as achieved size"
        ),
        Procedure.REGRESSION: (
            "if nothing had changed, this rule would signal a degradation with the probability "
            "stated above"
        ),
        Procedure.SEQUENTIAL: (
            "at the required rate or above this rule would FAIL, and at the margin below it or "
            "lower it would PASS, with at most the probabilities stated above"
        ),
    }
    if finding.alpha is None:
        return ""
    return (
        f"In the long run, {events[finding.procedure]}, for independent and stationary trials. "
        "It is not the probability that this result is wrong."
    )


def _diagnostics(found: Diagnostics) -> Rows:
    rows: Rows = []
    if found.autocorrelation is not None:
        p = "" if found.autocorrelation_p is None else f", runs test p = {_p(found)}"
        rows.append(("Lag-1 autocorrelation", f"{found.autocorrelation:.3f}{p}"))
    if found.first_half_rate is not None and found.second_half_rate is not None:
        p = "" if found.drift_p is None else f", Fisher p = {as_computed(found.drift_p)}"
        halves = f"{found.first_half_rate:.3f} and {found.second_half_rate:.3f}"
        rows.append(("Rate of the two halves", f"{halves}{p}"))
    if found.untestable_share is not None:
        rows.append(("Untestable share", f"{found.untestable_share:.3f}"))
    rows += [("Warning", warning) for warning in found.warnings]
    return rows or [("", "none: too few trials to look for dependence")]


def _p(found: Diagnostics) -> str:
    assert found.autocorrelation_p is not None
    return as_computed(found.autocorrelation_p)
