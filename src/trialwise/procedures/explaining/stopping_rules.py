"""A sequential design explained: boundaries, exact errors, where it stopped, and what follows."""

from __future__ import annotations

import math

from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_computed, as_count
from trialwise.documents.phrases import STOPS
from trialwise.model.verdict import Finding
from trialwise.procedures.explaining.analysis_sections import (
    Rows,
    as_brackets,
    describe_threshold,
    explain_hypotheses,
    make_section,
)
from trialwise.procedures.rule_in_counts import describe_rule
from trialwise.stats.result_types import Undefined
from trialwise.stats.sequential.design import SequentialDesign


def explain_sequential(finding: Finding) -> tuple[Section, ...]:
    """Explain the two rates, the design and its errors, the stop and the inference after it."""
    design, threshold = finding.design, finding.threshold
    reference = describe_threshold(finding)
    if threshold.required_rate is not None:
        required = f"p* = {threshold.required_rate:g} (given, not estimated)"
        reference.append(("Normative threshold", required))
    if not isinstance(design, SequentialDesign):
        return (
            explain_hypotheses(finding),
            *((make_section("THRESHOLD REFERENCE", reference),) if reference else ()),
        )
    strict = design.p0 == design.p1
    below = f"p ≤ {design.p1:g}, the {'required rate' if strict else 'margin below it'}"
    margin = "none" if strict else f"{design.p0 - design.p1:.6g} below it: p = {design.p1:g}"
    reference.append(("Margin", margin))
    hypotheses = explain_hypotheses(
        finding,
        usual=(f"p ≥ {design.p0:g}, the required rate", below),
        passes="the failures fall to the PASS boundary, given below, first",
        test=f"sequential, {design.method}; both errors exact by path counting",
    )
    return (
        hypotheses,
        make_section("THRESHOLD REFERENCE", reference),
        make_section("STATISTICAL INFERENCE", _infer(finding, design)),
    )


def _infer(finding: Finding, design: SequentialDesign) -> Rows:
    looks = f"every {design.batch} trials" if design.batch > 1 else "after every trial"
    rows = [("Design", f"{design.method}, at most {design.cap} trials, looks {looks}")]
    rule = describe_rule(design)
    rows += [("Boundaries" if place == 0 else "", text) for place, text in enumerate(rule)]
    rows += _list_errors(design)
    if not isinstance(design.certificate, Undefined):
        strict = design.p0 == design.p1
        least = "objective" if strict else "expected trials"
        found = f"{design.certificate:.4f} × the least {least} of any such test"
        rows.append(("Certificate", found))
    # Each input has stopped somewhere else; the table of inputs says where.
    return rows if finding.by_input else rows + _list_stop(finding, design) + _list_after(finding)


def _list_errors(design: SequentialDesign) -> Rows:
    rows: Rows = []
    rates = {"p₁": design.p1, "p₀": design.p0} if design.p0 != design.p1 else {"p₀": design.p0}
    for symbol, rate in sorted(rates.items()):
        found = design.operating_characteristic(rate)
        chances = f"P(PASS) = {as_computed(found.passes)}, P(FAIL) = {as_computed(found.fails)}"
        rows += [
            (f"At {symbol} = {rate:g}", f"{chances}, exact"),
            ("", f"P(INCONCLUSIVE) = {as_computed(found.inconclusive)}"),
            ("", f"expected trials {found.mean_trials:.1f}, median {found.median_trials}"),
        ]
    return rows


def _list_stop(finding: Finding, design: SequentialDesign) -> Rows:
    tally = finding.tally
    if not tally.trials or tally.trials > design.cap:
        return []
    why = "" if finding.stop is None else f"; {STOPS[finding.stop].label}"
    here = f"after {as_count(tally.trials, 'trial')} with {as_count(tally.failed, 'failure')}{why}"
    most, fewest = design.accept[tally.trials], design.reject[tally.trials]
    passes = f"PASS at {most} or fewer" if most >= 0 else "no PASS yet"
    fails = f"FAIL at {fewest} or more" if fewest <= tally.trials else "no FAIL yet"
    return [("Stopped", here), ("Boundaries there", f"failures: {passes}, {fails}")]


def _list_after(finding: Finding) -> Rows:
    """Exact after stopping: the naive rate of a run that stopped because it looked good is off."""
    rows: Rows = []
    if finding.estimate is not None:
        rows.append(("Estimate", f"{finding.estimate:.6f}, median-unbiased after stopping"))
    if finding.interval is not None:
        level = finding.interval.confidence
        label = "Interval" if level is None else f"{100 * level:.6g} % interval"
        rows.append((label, f"{as_brackets(finding.interval)}, {finding.interval.method}"))
    if finding.lower_bound is not None:
        rows.append(("Lower bound", f"{as_computed(finding.lower_bound)}, one-sided"))
    if finding.p_value is not None:
        p = finding.p_value
        rows.append(("p-value", f"{as_computed(p.value)} ({p.method}, {p.tail})"))
    rows += _list_ratio(finding)
    return rows


def _list_ratio(finding: Finding) -> Rows:
    """The log-likelihood ratio at the stop, beside Wald's two boundaries for it."""
    ratio, alpha, beta = getattr(finding.evidence, "log_ratio", None), finding.alpha, finding.beta
    if ratio is None or alpha is None or beta is None:
        return []
    upper, lower = math.log((1 - alpha) / beta), math.log(alpha / (1 - beta))
    return [
        ("Log-likelihood ratio", f"ln Λ = {ratio:.4f} of the required rate to the lower one"),
        ("", f"Wald's test PASSes from {upper:.4f} and FAILs from {lower:.4f}, for orientation"),
    ]
