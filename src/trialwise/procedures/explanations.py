"""Sections and rows of the full analysis that several procedures share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias, cast

from trialwise import stats
from trialwise.decimals import RELATIVE_BAND
from trialwise.documents import numbers
from trialwise.documents.blocks import Facts, Section
from trialwise.documents.numbers import as_computed, as_count, as_percent, as_points
from trialwise.model.criterion import Origin
from trialwise.model.verdict import Finding
from trialwise.procedures.sequential_designs import describe_rule
from trialwise.stats.margin_tests import METHODS, Method
from trialwise.stats.multiplicity import CLAIMS
from trialwise.stats.sequential.design import SequentialDesign

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
    """Make a section of the full analysis; terms without a value are left out."""
    pairs = tuple(row for row in rows if row[1])
    blocks = (Facts(pairs=pairs),) if pairs else ()
    return Section(heading=heading, blocks=blocks, depth="analysis")


def put_under(term: str, values: Iterable[str]) -> Rows:
    """List several values under one term, which only the first of them shows.

    >>> put_under("Factor", ["model = a", "tools = b"])
    [('Factor', 'model = a'), ('', 'tools = b')]
    """
    return [("" if place else term, value) for place, value in enumerate(values)]


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
        stops_early = finding.plan.counting.stops_early
        part = f"1/{family.decisions} of the level" if stops_early else "the level"
        how = f"{part} of {family.decisions} decisions together, {CLAIMS[family.correction][0]}"
    elif finding.single_decision is not None:
        how = "corrected together with other decisions"
    for symbol, level in (("α", finding.alpha), ("β", finding.beta)):
        if level is not None:
            rows.append((f"configured {symbol}", f"{level:g} ({how})"))
    return make_section("HYPOTHESIS TEST", rows)


def lay_out(hypotheses: Section, reference: Rows, inference: Rows) -> tuple[Section, ...]:
    """Put the sections of one finding in their order; those without a row are left out."""
    parts = {"THRESHOLD REFERENCE": reference, "STATISTICAL INFERENCE": inference}
    return (hypotheses, *(make_section(heading, rows) for heading, rows in parts.items() if rows))


def describe_threshold(finding: Finding) -> Rows:
    """Describe who says what the criterion is held against (§7.4)."""
    threshold = finding.threshold
    return [("Threshold origin", threshold.origin.value), ("Contract ref", threshold.contract_ref)]


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
    name, method = "95 % Wilson interval", "descriptive"
    if interval is not None:
        name, method = name_interval(interval), interval.method
    ends = as_brackets(interval or stats.wilson_interval(tally.passed, tally.trials))
    rows = [("Standard error", f"{formula} = {as_computed(error)}"), (name, f"{ends}, {method}")]
    if finding.lower_bound is not None:
        how = "by the matched estimator" if finding.estimator is not None else bound_method
        bound = f"p_L({finding.alpha:g}) = {as_computed(finding.lower_bound)}"
        rows.append(("Lower bound", f"{bound}, {how}, one-sided"))
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


def as_brackets(interval: stats.Interval) -> str:
    """Write the two ends of an interval."""
    return f"[{as_computed(interval.low)}, {as_computed(interval.high)}]"


def name_interval(interval: stats.Interval) -> str:
    """Name an interval's level, as a term."""
    level = "" if interval.confidence is None else f"{100 * interval.confidence:.6g} % "
    return f"{level}interval"


def word_long_run(event: str) -> str:
    """Say that a level belongs to the rule and is no probability of this verdict (§7.2)."""
    return (
        f"In the long run, {event}, for independent and stationary trials. It is not the "
        "probability that this result is wrong."
    )


# A sequential design explained: boundaries, exact errors, where it stopped, and what follows.


def explain_sequential(finding: Finding) -> tuple[Section, ...]:
    """Explain the two rates, the design and its errors, the stop and the inference after it."""
    design = cast("SequentialDesign | None", finding.design)
    required = finding.threshold.required_rate
    reference = describe_threshold(finding)
    if required is not None:
        reference.append(("Normative threshold", f"p* = {required:g} (given, not estimated)"))
    if design is None:  # a judge's errors were corrected for, and no boundary decided
        return lay_out(explain_hypotheses(finding), reference, [])
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
    return lay_out(hypotheses, reference, _infer(finding, design))


def _infer(finding: Finding, design: SequentialDesign) -> Rows:
    looks = f"every {design.batch} trials" if design.batch > 1 else "after every trial"
    rows = [("Design", f"{design.method}, at most {design.cap} trials, looks {looks}")]
    rows += put_under("Boundaries", describe_rule(design)) + _list_errors(design)
    if not isinstance(design.certificate, stats.Undefined):
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
    why = "" if finding.stop is None else f"; {numbers.STOPS[finding.stop].label}"
    failures = as_count(tally.failed, "failure")
    here = f"after {as_count(tally.trials, 'trial')} with {failures}{why}"
    most, fewest = design.accept[tally.trials], design.reject[tally.trials]
    passes = f"PASS at {most} or fewer" if most >= 0 else "no PASS yet"
    fails = f"FAIL at {fewest} or more" if fewest <= tally.trials else "no FAIL yet"
    return [("Stopped", here), ("Boundaries there", f"failures: {passes}, {fails}")]


def _list_after(finding: Finding) -> Rows:
    """Exact after stopping: the naive rate of a run that stopped because it looked good is off."""
    rows: Rows = []
    p, interval, lower = finding.p_value, finding.interval, finding.lower_bound
    if finding.estimate is not None:
        rows.append(("Estimate", f"{finding.estimate:.6f}, median-unbiased after stopping"))
    if interval is not None:
        rows.append((name_interval(interval), f"{as_brackets(interval)}, {interval.method}"))
    if lower is not None:
        rows.append(("Lower bound", f"{as_computed(lower)}, one-sided"))
    if p is not None:
        rows.append(("p-value", f"{as_computed(p.value)} ({p.method}, {p.tail})"))
    return rows + _list_ratio(finding)


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


# --- What other rules say of the same comparison with a baseline (companion §3.2, §4.5) -----------
#
# The companion names three that count the baseline's uncertainty: the posterior predictive rule,
# and the non-inferiority tests of Farrington and Manning and of Miettinen and Nurminen. All three
# are approximate, so each stands beside the error that it really makes. None of them decides here.

_NAMES: dict[Method, str] = {
    "farrington-manning": "Farrington–Manning",
    "miettinen-nurminen": "Miettinen–Nurminen",
}
#: Enumerating the true error of larger comparisons takes seconds.
_LARGEST = 3_000


def explain_other_rules(finding: Finding, design: stats.RegressionCutoff) -> tuple[Section, ...]:
    """Explain what the other rules say; nothing where the trials did not all run, or are many.

    Args:
        finding: Of a comparison with a baseline.
        design: The cutoff that decided it.
    """
    tally, lower = finding.tally, finding.threshold.alternative_rate
    complete = tally.trials == design.trials and design.cutoff is not None
    if not complete or lower is None or design.trials + design.baseline_trials > _LARGEST:
        return ()
    alpha, passed, size = design.alpha, design.baseline_successes, design.baseline_trials
    rows, margin = _list_predictive(finding, design), round(passed / size - lower, 12)
    loss = f"a loss of {as_points(margin)}"
    for method in METHODS if 0 < margin <= passed / size else ():
        found = stats.noninferiority(
            passed, size, tally.passed, tally.trials, margin=margin, alpha=alpha, method=method
        )
        error = stats.noninferiority_size(
            size,
            tally.trials,
            margin=margin,
            baseline_rate=passed / size,
            alpha=alpha,
            method=method,
        )
        shown = "shown" if found.noninferior else "not shown"
        claim = f"a loss of less than {as_points(margin)} is {shown}"
        rows.append((_NAMES[method], f"{claim}, p = {as_computed(found.p_value)}"))
        rows.append(("", _compare(error, alpha, f"of runs claim it after {loss}")))
    rows.append(("", "Approximate, for comparison. They do not decide this criterion."))
    return (make_section("OTHER RULES (§3.2, §4.5)", rows),)


def _list_predictive(finding: Finding, design: stats.RegressionCutoff) -> Rows:
    baseline = design.baseline_successes, design.baseline_trials
    found = stats.predictive_cutoff(*baseline, design.trials, alpha=design.alpha)
    says = "PASS" if finding.tally.passed >= found.cutoff else "FAIL"
    how = "beta-binomial, Jeffreys prior"
    cutoff = f"K ≥ {found.cutoff} of {design.trials} PASSes"
    rows = [("Posterior predictive", f"{says}: {cutoff}; {how}")]
    if not isinstance(found.design_false_alarm, stats.Undefined):
        event = "of runs FAIL if nothing has changed"
        rows.append(("", _compare(found.design_false_alarm, design.alpha, event)))
    return rows


def _compare(actual: float, alpha: float, event: str) -> str:
    """Say what a rule really does, and where that is more than its level."""
    exceeds = actual > alpha * (1 + RELATIVE_BAND)
    above = f", {'more than' if exceeds else 'at most'} {as_percent(alpha)}"
    return f"{numbers.as_probability(actual)} {event}{above}"
