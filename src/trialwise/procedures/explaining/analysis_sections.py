"""Sections and rows of the full analysis that several procedures share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from trialwise.documents.blocks import Facts, Section
from trialwise.documents.numbers import as_computed
from trialwise.model.criterion import Origin
from trialwise.model.verdict import Finding
from trialwise.stats.multiplicity import CLAIMS
from trialwise.stats.rate_intervals import wilson_interval
from trialwise.stats.result_types import Interval

Rows: TypeAlias = list[tuple[str, str]]
"""Terms and values; an empty term continues the one before."""

#: The question by who set the threshold (§7.4).
_QUESTIONS = {
    Origin.SLA: "does the system meet its SLA requirement?",
    Origin.SLO: "does the system meet its SLO target?",
    Origin.POLICY: "does the system meet the policy requirement?",
    Origin.EMPIRICAL: "has the rate degraded from the baseline?",
    Origin.UNSPECIFIED: "does the success rate meet the threshold?",
}


def make_section(heading: str, rows: Sequence[tuple[str, str]]) -> Section:
    """Make a section of the full analysis."""
    blocks = (Facts(pairs=tuple(rows)),) if rows else ()
    return Section(heading=heading, blocks=blocks, depth="analysis")


def explain_hypotheses(
    finding: Finding, *, usual: tuple[str, str] = ("", ""), passes: str = "", test: str = ""
) -> Section:
    """Explain what was asked, by which rule, and at which levels.

    Args:
        finding: What to explain.
        usual: Null and alternative, where the finding does not state its own.
        passes: When the rule says PASS.
        test: What kind of test the rule is.
    """
    words = finding.words
    null, alternative = (words.null, words.alternative) if words.null else usual
    rows = [
        ("Procedure", str(finding.procedure)),
        ("Question", _QUESTIONS[finding.threshold.origin]),
        ("H₀ (null)", null),
        ("H₁ (alternative)", alternative),
        ("Decision rule", str(finding.decision_rule)),
        ("PASS iff", passes),
        ("Test type", test),
    ]
    how, family = "unadjusted per-test", finding.plan.others.family
    if family is not None:
        part = (
            f"1/{family.decisions} of the level"
            if finding.plan.counting.stops_early
            else "the level"
        )
        how = f"{part} of {family.decisions} decisions together, {CLAIMS[family.correction][0]}"
    elif finding.single_decision is not None:
        how = "corrected together with other decisions"
    for symbol, level in (("α", finding.alpha), ("β", finding.beta)):
        if level is not None:
            rows.append((f"configured {symbol}", f"{level:g} ({how})"))
    return make_section("HYPOTHESIS TEST", [row for row in rows if row[1]])


def describe_threshold(finding: Finding) -> Rows:
    """Describe who says what the criterion is held against (§7.4)."""
    threshold = finding.threshold
    rows = [("Threshold origin", threshold.origin.value)]
    if threshold.contract_ref:
        rows.append(("Contract ref", threshold.contract_ref))
    return rows


def list_precision(finding: Finding, bound_method: str, *, corpus: int | None = None) -> Rows:
    """List how precisely the trials show the rate.

    Args:
        finding: With at least one trial.
        bound_method: How its bound was found.
        corpus: How many inputs the corpus has that the trials are a part of.
    """
    tally, interval = finding.tally, finding.interval
    rate, n = tally.passed / tally.trials, tally.trials
    error, formula = math.sqrt(rate * (1 - rate) / n), "√(p̂(1−p̂)/n)"
    if corpus is not None and corpus > 1:
        # What was tried of a corpus is known: only the rest varies (§8.4.6).
        error *= math.sqrt((corpus - n) / (corpus - 1))
        formula = "√(p̂(1−p̂)/n · (N−n)/(N−1))"
    rows = [("Standard error", f"{formula} = {as_computed(error)}")]
    if interval is None:
        plain = wilson_interval(tally.passed, tally.trials)
        rows.append(("95 % Wilson interval", f"{as_brackets(plain)}, descriptive"))
    else:
        rows.append((name_interval(interval), f"{as_brackets(interval)}, {interval.method}"))
    if finding.lower_bound is not None:
        method = "by the matched estimator" if finding.estimator is not None else bound_method
        bound = f"p_L({finding.alpha:g}) = {as_computed(finding.lower_bound)}"
        rows.append(("Lower bound", f"{bound}, {method}, one-sided"))
    return rows


def list_p_value(finding: Finding, usual_null: str) -> Rows:
    """List the p-value with its method, its null and its tail (§10.3)."""
    p = finding.p_value
    if p is None:
        return []
    return [
        ("p-value", as_computed(p.value)),
        ("  method", p.method),
        ("  null", f"{finding.words.null or usual_null}; small values speak against it"),
        ("  tail", p.tail),
    ]


def list_power(finding: Finding) -> Rows:
    """List the exact power at the alternative rate, where one was named."""
    alternative = finding.threshold.alternative_rate
    if finding.power is None or alternative is None:
        return []
    at = f"{alternative:g}"
    return [("Power", f"{as_computed(finding.power)} = P(not PASS) at a true rate of {at}, exact")]


def as_brackets(interval: Interval) -> str:
    """Write the two ends of an interval."""
    return f"[{as_computed(interval.low)}, {as_computed(interval.high)}]"


def name_interval(interval: Interval) -> str:
    """Name an interval's level, as a term."""
    level = "" if interval.confidence is None else f"{100 * interval.confidence:.6g} % "
    return f"{level}interval"


def word_long_run(event: str) -> str:
    """Say that a level belongs to the rule and is no probability of this verdict (§7.2)."""
    return (
        f"In the long run, {event}, for independent and stationary trials. It is not the "
        "probability that this result is wrong."
    )
