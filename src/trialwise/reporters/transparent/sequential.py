"""A sequential design in words and exact numbers: boundaries, errors, and where it stopped."""

from __future__ import annotations

from trialwise.documents.numbers import as_computed, as_count
from trialwise.documents.phrases import STOPS
from trialwise.model.verdict import Finding
from trialwise.procedures.rule_in_counts import describe_rule
from trialwise.reporters.transparent.sheet import Rows
from trialwise.stats.result_types import Undefined
from trialwise.stats.sequential.design import SequentialDesign

__all__ = ["sequential_rows"]


def sequential_rows(finding: Finding, design: SequentialDesign) -> Rows:
    """The design, what it does at its two rates, the stop, and the exact inference after it."""
    looks = f"every {design.batch} trials" if design.batch > 1 else "after every trial"
    rows = [("Design", f"{design.method}, at most {design.cap} trials, looks {looks}")]
    paragraphs = describe_rule(design)
    rows += [("Boundaries" if place == 0 else "", text) for place, text in enumerate(paragraphs)]
    rows += _errors(design)
    if not isinstance(design.certificate, Undefined):
        found = f"{design.certificate:.4f} × the least expected trials of any such test"
        rows.append(("Certificate", found))
    # Each input has stopped somewhere else; the table of inputs says where.
    return rows if finding.by_input else rows + _stop(finding, design) + _after(finding)


def _errors(design: SequentialDesign) -> Rows:
    rows: Rows = []
    for symbol, rate in (("p₀", design.p0), ("p₁", design.p1)):
        found = design.operating_characteristic(rate)
        verdicts = (("PASS", found.passes), ("FAIL", found.fails))
        told = ", ".join(f"P({word}) = {as_computed(value)}" for word, value in verdicts)
        rows += [
            (f"At {symbol} = {rate:g}", f"{told}, exact"),
            ("", f"P(INCONCLUSIVE) = {as_computed(found.inconclusive)}"),
            ("", f"expected trials {found.mean_trials:.1f}, median {found.median_trials}"),
        ]
    return rows


def _stop(finding: Finding, design: SequentialDesign) -> Rows:
    tally = finding.tally
    if not tally.trials or tally.trials > design.cap:
        return []
    why = "" if finding.stop is None else f"; {STOPS[finding.stop].label}"
    here = f"after {as_count(tally.trials, 'trial')} with {as_count(tally.failed, 'failure')}{why}"
    most, fewest = design.accept[tally.trials], design.reject[tally.trials]
    passes = f"PASS at {most} or fewer" if most >= 0 else "no PASS yet"
    fails = f"FAIL at {fewest} or more" if fewest <= tally.trials else "no FAIL yet"
    return [("Stopped", here), ("Boundaries there", f"failures: {passes}, {fails}")]


def _after(finding: Finding) -> Rows:
    """Exact after stopping: the naive rate of a run that stopped because it looked good is off."""
    rows: Rows = []
    if finding.estimate is not None:
        rows.append(("Estimate", f"{finding.estimate:.6f}, median-unbiased after stopping"))
    if finding.interval is not None:
        level = finding.interval.confidence
        label = "Interval" if level is None else f"{100 * level:.6g} % interval"
        ends = f"[{as_computed(finding.interval.low)}, {as_computed(finding.interval.high)}]"
        rows.append((label, f"{ends}, {finding.interval.method}"))
    if finding.lower_bound is not None:
        rows.append(("Lower bound", f"{as_computed(finding.lower_bound)}, one-sided"))
    if finding.p_value is not None:
        p = finding.p_value
        rows.append(("p-value", f"{as_computed(p.value)} ({p.method}, {p.tail})"))
    return rows
