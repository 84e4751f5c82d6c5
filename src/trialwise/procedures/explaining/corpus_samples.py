"""An enumerated corpus explained: sampled without replacement, or known whole (§8.4.6)."""

from __future__ import annotations

from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_computed
from trialwise.model.verdict import Finding
from trialwise.procedures.explaining.analysis_sections import (
    Rows,
    describe_threshold,
    explain_hypotheses,
    list_p_value,
    list_power,
    list_precision,
    make_section,
)
from trialwise.stats.finite import ExactCorpusRate, FiniteCorpusCutoff
from trialwise.stats.result_types import Undefined

__all__ = ["explain_corpus"]

_TESTS = {
    "finite-corpus/hypergeometric": "exact hypergeometric, without replacement",
    "finite-corpus/exact-rate": "none: every input of the corpus was evaluated",
    "no-generalisation/observed-rate": "none: the observed rate is the claim",
}


def explain_corpus(finding: Finding) -> tuple[Section, ...]:
    """The test, what share of the corpus was tried, and the exact numbers."""
    design, threshold = finding.design, finding.threshold
    sampled = design if isinstance(design, FiniteCorpusCutoff) else None
    required = None if threshold is None else threshold.required_rate
    if required is None and sampled is not None:
        required = sampled.required_rate
    reference = describe_threshold(finding)
    usual, passes = ("", ""), ""
    if required is not None:
        usual = (f"p ≤ {required:g}", f"p > {required:g}")
        reference.append(("Normative threshold", f"p* = {required:g} (given, not estimated)"))
    if sampled is not None:
        if finding.cutoff is not None:
            drawn = f"{sampled.trials} drawn of the corpus's {sampled.corpus_size}"
            passes = f"K ≥ {finding.cutoff} of {drawn}"
        reference += _describe_sample(sampled)
    if isinstance(design, ExactCorpusRate):
        reference.append(("Corpus", f"all {design.corpus_size} inputs evaluated"))
    test = _TESTS.get(finding.decision_rule or "", "")
    sections = [explain_hypotheses(finding, usual=usual, passes=passes, test=test)]
    if reference:
        sections.append(make_section("THRESHOLD REFERENCE", reference))
    if rows := _infer(finding):
        sections.append(make_section("STATISTICAL INFERENCE", rows))
    return tuple(sections)


def _describe_sample(design: FiniteCorpusCutoff) -> Rows:
    share = f"{design.trials} of {design.corpus_size} inputs, {design.sample_fraction:.4f}"
    needed = f"{design.required_successes} of {design.corpus_size} would have to succeed"
    return [("Sample fraction", share), ("Whole corpus", needed)]


def _infer(finding: Finding) -> Rows:
    design = finding.design
    if isinstance(design, ExactCorpusRate):
        known = f"{design.successes} of {design.corpus_size} = {design.rate:.6f}, known"
        return [("Corpus rate", known), ("Interval", f"none: {design.interval.reason}")]
    if not isinstance(design, FiniteCorpusCutoff) or design.cutoff is None:
        return []
    share = design.cutoff / design.trials
    rows = [("Integer cutoff", f"c = {design.cutoff}, displayed as c/n = {share:.6f}")]
    is_counted = finding.tally.trials and not finding.by_input
    rows += list_precision(finding, "hypergeometric") if is_counted else []
    rows += _list_size(design)
    rows += list_p_value(finding, "the required rate is not exceeded") if is_counted else []
    return rows + list_power(finding)


def _list_size(design: FiniteCorpusCutoff) -> Rows:
    if isinstance(design.size, Undefined):
        return [("Achieved size", f"undefined: {design.size.reason}")]
    short = f"{design.required_successes - 1} of {design.corpus_size}"
    return [
        ("Achieved size", f"{as_computed(design.size)} = P(K ≥ {design.cutoff})"),
        ("  method", "exact-hypergeometric-upper-tail"),
        ("  reference", f"a corpus one success short, {short}"),
        ("  interpretation", "probability of a PASS although the corpus falls short"),
    ]
