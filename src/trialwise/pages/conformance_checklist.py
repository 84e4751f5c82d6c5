"""The companion's conformance checklist (§10.7), answered for one verdict.

Each line names what the verdict itself shows, so that an auditor can look it up on the same page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.documents.numbers import as_count
from trialwise.model.claim import PopulationClaim
from trialwise.model.trial import Analysis
from trialwise.model.verdict import Decision, Finding, Verdict
from trialwise.procedures.explanations import Rows
from trialwise.procedures.registry import procedure_of

_NONE = "does not apply"


def list_checklist(verdict: Verdict) -> Rows:
    """List each item of the checklist with what this verdict does about it."""
    inferential = [one for one in verdict.findings if procedure_of(one).claims_rate]
    return [
        ("Procedures kept apart", _list_procedures(inferential)),
        ("Decided on counts", _list_rules(inferential)),
        ("Achieved size", _list_sizes(inferential)),
        ("p-value", _list_p_values(inferential)),
        ("Saturated latency rank", _list_saturated(verdict)),
        ("Repeated inputs", _list_claim(verdict, inferential)),
        ("Denominator", _list_denominator(verdict)),
        ("Availability apart", _list_availability(verdict)),
        ("Two conformance statuses", "met: formula values and calibration, listed above"),
        ("Reproducibility metadata", "met: quantiles, intervals, sort and ties, listed above"),
    ]


def _list_availability(verdict: Verdict) -> str:
    """Say which criteria count what never reached the service as failed, where others do not."""
    plan = verdict.plan
    if plan is None or plan.analysis is Analysis.INTENT_TO_TREAT:
        return f"{_NONE}: every criterion counts what never reached the service as failed"
    counts = [one for one in plan.criteria if one.terms.analysis is Analysis.INTENT_TO_TREAT]
    if not counts:
        return f"{_NONE}: no criterion is about availability"
    names = ", ".join(one.criterion for one in counts)
    return f"met: {names}; no other denominator depends on it"


def _list_procedures(findings: Sequence[Finding]) -> str:
    if not findings:
        return f"{_NONE}: no criterion is inferential"
    named = sorted({str(one.procedure).lower() for one in findings})
    bare = [one.criterion for one in findings if one.decision_rule is None]
    if bare:
        return f"not met: {', '.join(bare)} names no decision rule"
    return f"met: {', '.join(named)}, each with null, alternative and rule"


def _list_rules(findings: Sequence[Finding]) -> str:
    if not findings:
        return _NONE
    bounds = sum(one.estimator is not None for one in findings)
    counts = len(findings) - bounds
    parts = [
        *([f"{as_count(counts, 'criterion', 'criteria')} by counts"] if counts else []),
        *([f"{as_count(bounds, 'criterion', 'criteria')} by a lower bound"] if bounds else []),
    ]
    return f"met: {', '.join(parts)}; no displayed rate decides"


def _list_sizes(findings: Sequence[Finding]) -> str:
    with_cutoff = [one for one in findings if one.cutoff is not None]
    if not with_cutoff:
        return f"{_NONE}: no criterion has an integer cutoff"
    missing = [
        one.criterion
        for one in with_cutoff
        if getattr(one.design, "achieved_size", getattr(one.design, "size", None)) is None
    ]
    return f"not met: {', '.join(missing)}" if missing else "met: reported with each cutoff"


def _list_p_values(findings: Sequence[Finding]) -> str:
    reported = [one for one in findings if one.p_value is not None]
    if not reported:
        return f"{_NONE}: no p-value is reported, because no fixed sample was completed"
    return f"met: {as_count(len(reported), 'p-value')}, each with method, null and tail"


def _list_saturated(verdict: Verdict) -> str:
    saturated = [one for one in verdict.latency if getattr(one.evidence, "saturated", False)]
    if not saturated:
        return f"{_NONE}: no latency rank is saturated"
    passed = [one.constraint for one in saturated if one.decision is Decision.PASS]
    return f"not met: {', '.join(passed)}" if passed else "met: INCONCLUSIVE or advisory"


def _list_claim(verdict: Verdict, findings: Sequence[Finding]) -> str:
    if not findings:
        return _NONE
    if verdict.claim.population is not PopulationClaim.SUPERPOPULATION:
        return f"met: the claim is {verdict.claim.population}, not a population"
    if verdict.claim.estimator is not None:
        return f"met: estimator {verdict.claim.estimator} for {verdict.claim.estimand}"
    return "met: every input was tried once" if _tries_once(verdict) else "not met: no estimator"


def _tries_once(verdict: Verdict) -> bool:
    return all(set(one.repetitions) <= {1, "1"} for one in verdict.experiments)


def _list_denominator(verdict: Verdict) -> str:
    if verdict.analysis == "intent-to-treat":
        return "met: every trial counts"
    missing = sum(_count_left_out(verdict))
    if not missing:
        return "met: every trial counts; none was left out"
    return (
        f"departs: {as_count(missing, 'trial')} that never reached the service did not count; "
        "`analysis: intent-to-treat` counts them as failed"
    )


def _count_left_out(verdict: Verdict) -> Iterator[int]:
    for one in verdict.findings:
        if one.intent_to_treat is not None:
            yield max(0, one.intent_to_treat.trials - one.all_trials.trials)
