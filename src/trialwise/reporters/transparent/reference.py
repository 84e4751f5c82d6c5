"""What a criterion was held against: who says so, or what was measured and when (§7.4, §8.4.3)."""

from __future__ import annotations

from collections.abc import Mapping

from trialwise.model.baseline import BaselineReference
from trialwise.model.evidence import Threshold
from trialwise.model.verdict import Finding
from trialwise.reporters.transparent.sheet import Rows
from trialwise.stats.compliance_cutoffs import ComplianceCutoff
from trialwise.stats.finite import ExactCorpusRate, FiniteCorpusCutoff
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.sequential.design import SequentialDesign

__all__ = ["reference_rows"]


def reference_rows(finding: Finding) -> Rows:
    """The threshold's provenance; empty where there is no threshold."""
    design, threshold = finding.design, finding.threshold
    rows = [] if threshold is None else _origin(threshold)
    if isinstance(design, RegressionCutoff):
        reference = threshold.baseline if threshold is not None else None
        return rows + _measured(design, reference)
    required = None if threshold is None else threshold.required_rate
    if required is None and isinstance(design, ComplianceCutoff | FiniteCorpusCutoff):
        required = design.required_rate
    if required is not None:
        rows.append(("Normative threshold", f"p* = {required:g} (given, not estimated)"))
    if isinstance(design, SequentialDesign):
        rows.append(("Margin", f"{design.p0 - design.p1:.6g} below it: p = {design.p1:g}"))
    if isinstance(design, FiniteCorpusCutoff):
        share = f"{design.trials} of {design.corpus_size} inputs, {design.sample_fraction:.4f}"
        needed = f"{design.required_successes} of {design.corpus_size} would have to succeed"
        rows += [("Sample fraction", share), ("Whole corpus", needed)]
    if isinstance(design, ExactCorpusRate):
        rows.append(("Corpus", f"all {design.corpus_size} inputs evaluated"))
    return rows


def _origin(threshold: Threshold) -> Rows:
    rows = [("Threshold origin", threshold.origin.value)]
    if threshold.contract_ref:
        rows.append(("Contract ref", threshold.contract_ref))
    return rows


def _measured(design: RegressionCutoff, reference: BaselineReference | None) -> Rows:
    observed = f"{design.baseline_successes} of {design.baseline_trials} successes"
    rows = [] if reference is None else _identity(reference)
    rows += [
        ("Baseline observation", f"{observed}, reference rate {design.reference_rate:.6f}"),
        ("Test sample size", f"n = {design.trials}"),
    ]
    if design.baseline_successes == design.baseline_trials:
        rows.append(("", "a baseline without failures enters as its own lower bound (§4.3)"))
    if design.threshold is None:
        return rows
    if design.rule == "wilson":
        made = f"WilsonLB({design.reference_rate:g}; {design.trials}, {design.alpha:g})"
        derived = f"p* = {made} = {design.threshold:.6f} (§1.5.4), informational"
    else:
        derived = f"c/n = {design.threshold:.6f}, from Fisher's exact test"
    return [*rows, ("Derived threshold", derived)]


def _identity(reference: BaselineReference) -> Rows:
    expires = reference.expires_at
    until = "none declared" if expires is None else expires.isoformat(" ", "minutes")
    rows = [
        ("Baseline ID", reference.identifier),
        ("Baseline file", reference.file),
        ("Generated", reference.created_at.isoformat(" ", "minutes")),
        ("Covariates", _joined(reference.covariates)),
        ("Covariate match", reference.covariate_match),
        ("Factors", _joined(reference.factors)),
        ("Expiration", until),
        ("Reference-state epoch", str(reference.epoch)),
    ]
    return [row for row in rows if row[1]]


def _joined(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
