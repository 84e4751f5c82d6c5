"""The transparent-statistics report: the whole reasoning behind a verdict (companion §10.2–10.4).

The contract-level composite comes first, then one analysis block for each criterion with its
hypotheses, data, threshold, inference and three-strand verdict, then what is needed to reproduce
the numbers. Statistical symbols fall back to ASCII where a terminal cannot show them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

from trialwise.model.verdict import Decision, Finding, LatencyFinding, Procedure, Verdict
from trialwise.procedures.regression import FALSE_ALARM_EXCESS
from trialwise.stats.compliance import ComplianceCutoff
from trialwise.stats.intervals import wilson_interval
from trialwise.stats.regression import RegressionCutoff

__all__ = ["render_transparent"]

Rows: TypeAlias = list[tuple[str, str]]
"""Labels and values of one section."""

_ASCII = str.maketrans(
    {"α": "alpha", "≥": ">=", "≤": "<=", "√": "sqrt", "≈": "~=", "₀": "0", "₁": "1", "Σ": "sum "}
    | {"−": "-", "–": "-", "·": "*", "×": "x", "§": "section ", "…": "..."}
)
_WIDTH = 22
_COLUMNS = 80


def render_transparent(verdict: Verdict, *, title: str, unicode: bool = True) -> str:
    """The full statistical analysis of a verdict, as text of at most 80 columns.

    Args:
        verdict: What was concluded.
        title: The contract's name.
        unicode: Whether to use α, ≥ and their like; otherwise their ASCII fallbacks.
    """
    lines = [f"STATISTICAL ANALYSIS: {title}", ""]
    for heading, rows in _sections(verdict):
        lines.append(heading)
        for label, value in rows:
            # Spelled before it is wrapped: "alpha" is longer than "α".
            lines += _row(*((label, value) if unicode else (_ascii(label), _ascii(value))))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _sections(verdict: Verdict) -> Iterator[tuple[str, Rows]]:
    yield "COMPOSITE VERDICT", _composite(verdict)
    total = len(verdict.findings)
    for number, finding in enumerate(verdict.findings, start=1):
        kind = finding.procedure.lower()
        yield f"CRITERION {number} of {total}: {finding.criterion} ({kind})", []
        yield from _criterion(finding)
    if verdict.latency:
        yield "LATENCY", [_latency(finding) for finding in verdict.latency]
    yield "REPRODUCIBILITY", _reproducibility()


def _row(label: str, value: str) -> Iterator[str]:
    first, *rest = _wrapped(value)
    yield f"  {label + ':' if label else '':{_WIDTH}} {first}".rstrip()
    for line in rest:
        yield f"  {'':{_WIDTH}} {line}"


def _ascii(text: str) -> str:
    return text.replace("p̂", "p-hat").translate(_ASCII)


def _wrapped(value: str) -> list[str]:
    from textwrap import wrap

    return wrap(value, width=_COLUMNS - _WIDTH - 3) or [""]


def _composite(verdict: Verdict) -> Rows:
    named = ", ".join(trigger.name for trigger in verdict.triggers)
    decided = str(verdict.decision) if verdict.decision else "none: the design was refused"
    rows = [("Contract verdict", f"{decided} (triggered by {named})" if named else decided)]
    if verdict.refusals:
        rows.append(("Refused because", ", ".join(verdict.refusals)))
    for index, finding in enumerate(verdict.findings):
        summary = (
            f"{finding.criterion}: {finding.decision or 'refused'} ({finding.procedure.lower()})"
        )
        rows.append(("Per criterion" if index == 0 else "", summary))
    for label, value in (
        ("False degradation", verdict.false_degradation_envelope),
        ("False compliance", verdict.false_compliance_envelope),
    ):
        if value is not None:
            rows.append((label, f"at most Σα = {value:g} over the criteria of that direction"))
    return rows


def _criterion(finding: Finding) -> Iterator[tuple[str, Rows]]:
    yield "HYPOTHESIS TEST", _hypothesis(finding)
    yield "OBSERVED DATA", _observed(finding)
    design = finding.design
    if isinstance(design, RegressionCutoff):
        yield "THRESHOLD REFERENCE", _baseline_reference(design)
    elif isinstance(design, ComplianceCutoff):
        required = f"{design.required_rate:g} (given, not estimated)"
        yield "THRESHOLD REFERENCE", [("Required rate", required)]
    if design is not None and design.cutoff is not None:
        yield "STATISTICAL INFERENCE", _inference(finding)
    yield "VERDICT", _strands(finding)


def _hypothesis(finding: Finding) -> Rows:
    if finding.procedure is Procedure.OBSERVATIONAL:
        return [
            ("mode", "observational: no threshold, no α, no inferential claim"),
            ("question", "was any failure observed in the run?"),
        ]
    rows = [("procedure", str(finding.procedure)), ("decision rule", str(finding.decision_rule))]
    if finding.procedure is Procedure.REGRESSION:
        rows += [
            ("H₀ (null)", "the service follows the baseline; no degradation"),
            ("H₁ (alternative)", "the rate has dropped below the baseline"),
        ]
    elif isinstance(finding.design, ComplianceCutoff):
        rate = f"{finding.design.required_rate:g}"
        rows += [("H₀ (null)", f"p ≤ {rate}"), ("H₁ (alternative)", f"p > {rate}")]
    if finding.cutoff is not None:
        rows.append(("PASS iff", f"K ≥ {finding.cutoff} of {finding.tally.trials}"))
    return [*rows, ("configured α", f"{finding.alpha:g} (unadjusted, this criterion alone)")]


def _observed(finding: Finding) -> Rows:
    tally = finding.tally
    rows = [
        ("trials (n)", f"{tally.trials} (every trial counts)"),
        ("successes (K)", str(tally.passed)),
        ("failures", str(tally.failed)),
    ]
    if tally.rate is not None:
        rows.append(("observed rate", f"p̂ = {tally.rate:.6f}"))
    return rows


def _baseline_reference(design: RegressionCutoff) -> Rows:
    rows = [
        ("baseline", f"{design.baseline_successes} of {design.baseline_trials} successes"),
        ("reference rate", f"{design.reference_rate:.6f}"),
    ]
    if design.baseline_successes == design.baseline_trials:
        rows.append(("", "a baseline without failures enters as its own lower bound (§4.3)"))
    if design.rule == "wilson" and design.threshold is not None:
        rows.append(("real-valued bound", f"p* = {design.threshold:.6f}, informational"))
    return rows


def _inference(finding: Finding) -> Rows:
    tally, design = finding.tally, finding.design
    assert design is not None
    rate = tally.passed / tally.trials
    wilson = wilson_interval(tally.passed, tally.trials)
    rows = [
        ("cutoff", f"c = {design.cutoff}, displayed as c/n = {design.displayed_rate:.6f}"),
        ("standard error", f"√(p̂(1−p̂)/n) = {math.sqrt(rate * (1 - rate) / tally.trials):.6f}"),
        ("95 % Wilson interval", f"[{wilson.low:.6f}, {wilson.high:.6f}], descriptive"),
    ]
    if finding.lower_bound is not None:
        method = "Wilson" if finding.rule == "wilson" else "Clopper–Pearson"
        level = f"at α = {finding.alpha:g}"
        rows.append(("lower bound", f"{finding.lower_bound:.6f}, {method}, one-sided {level}"))
    if finding.p_value is not None:
        p = finding.p_value
        rows.append(("p-value", f"{p.value:.6g} ({p.method}, {p.tail})"))
    return rows + _achieved(design)


def _achieved(design: ComplianceCutoff | RegressionCutoff) -> Rows:
    if isinstance(design, ComplianceCutoff):
        size = f"{design.achieved_size:.6f} = P(PASS) at the required rate, exactly"
        return [("achieved size", size)]
    rows = []
    if design.achieved_size is not None:
        rows.append(("achieved size", f"{design.achieved_size:.6f} = P(FAIL) at the reference"))
    alarm = design.design_false_alarm
    if alarm is not None and design.rule == "wilson":
        rows.append(("true false alarm", f"{alarm:.6f} with the baseline's own sampling error"))
        if alarm > FALSE_ALARM_EXCESS * design.alpha:
            ratio = alarm / design.alpha
            rows.append(("", f"{ratio:.1f} × the configured α; the exact rule stays within α"))
    return rows


def _strands(finding: Finding) -> Rows:
    if finding.decision is None:
        reasons = ", ".join(finding.refusals)
        return [("Refused", f"{reasons}. {finding.statement}")]
    if finding.procedure is Procedure.OBSERVATIONAL:
        return [("Result", str(finding.decision)), ("Statement", finding.statement)]
    rows = [
        ("Statistical verdict", f"{finding.decision}. {finding.statement}"),
        ("Observed-rate status", finding.observed_rate.replace("_", " ")),
    ]
    if finding.caution is not None:
        rows.append(("Operational caution", finding.caution.replace("_", " ")))
    return [*rows, ("Confidence statement", _confidence_statement(finding))]


def _confidence_statement(finding: Finding) -> str:
    if finding.procedure is Procedure.COMPLIANCE:
        event = (
            "if the true rate were at or below the requirement, this rule would declare "
            "compliance with the probability stated as achieved size"
        )
    else:
        event = (
            "if nothing had changed, this rule would signal a degradation with the probability "
            "stated above"
        )
    return (
        f"In the long run, {event}, for independent and stationary trials. It is not the "
        "probability that this result is wrong."
    )


def _latency(finding: LatencyFinding) -> tuple[str, str]:
    decision = finding.decision or Decision.INCONCLUSIVE
    rule = f"{finding.decision_rule}, α = {finding.alpha:g}, {finding.trials} successful trials"
    return finding.constraint, f"{decision}. {finding.statement} ({rule})"


def _reproducibility() -> Rows:
    return [
        ("quantile source", "Python statistics.NormalDist.inv_cdf (AS 241)"),
        ("interval", "closed-form score inversion, anchored at 0 and 1"),
        ("sort", "stable; ties: largest-tied-position-for-upper-bound-ranks"),
        ("exact boundary", "within 1e-9 of α, rationals with numbers read as written"),
        ("formula fixtures", "run `trialwise conformance DIR` against a published set"),
        ("calibration fixtures", "not published; no calibration claim is made"),
    ]
