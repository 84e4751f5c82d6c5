"""How plans from before `CriterionPlan.family` are corrected: a PASS only, never a FAIL.

Records of such plans are decided again by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trialwise.model.evidence import CutoffEvidence, Note, NoteKind
from trialwise.model.plan import Plan
from trialwise.model.verdict import Decision, Finding
from trialwise.procedures.compliance import NOT_SHOWN, decision_interval
from trialwise.procedures.composite import combine
from trialwise.procedures.registry import procedure_of
from trialwise.stats.compliance_cutoffs import ComplianceCutoff
from trialwise.stats.multiplicity import Adjustment, adjust


def correct_passes(findings: Sequence[Finding], plan: Plan) -> list[Finding]:
    """Correct the findings of a contract; each keeps what it would be on its own."""
    streams = [part for one in findings for part in one.by_input or (one,)]
    fixed = [part for part in streams if _is_ranked(part)]
    adjusted = dict(zip(map(id, fixed), _adjust(fixed, plan), strict=True))
    return [_correct(one, plan, adjusted) for one in findings]


def _is_ranked(finding: Finding) -> bool:
    return finding.plan.uncorrected is None and finding.p_value is not None


def _adjust(fixed: Sequence[Finding], plan: Plan) -> Sequence[float]:
    """Return the adjusted p-value of each, where alpha stands for 1: at most 1 is a rejection."""
    if not fixed:
        return ()
    if plan.correction == "e-bh":
        return _adjust_evidence(fixed, plan)
    # A p-value is measured by its own criterion's level, and the family's other members, which
    # have none or are decided elsewhere, take their shares of the level.
    level = 0.05
    ratios = [min(1.0, level * one.p_value.value / (one.alpha or 1.0)) for one in fixed]  # type: ignore[union-attr]
    share = level * len(fixed) / plan.family_size
    found: Adjustment = adjust(ratios, method=plan.correction, alpha=share)
    return [value / share for value in found.adjusted]


def _adjust_evidence(fixed: Sequence[Finding], plan: Plan) -> Sequence[float]:
    """Return the same by e-BH, which holds whatever the dependence (Wang and Ramdas 2022)."""
    from trialwise.stats.e_values import calibrated_e_value, e_bh, fixed_e_value

    level, evidence = 0.05, []
    for one in fixed:
        assert one.p_value is not None
        if isinstance(one.design, ComplianceCutoff):
            found = fixed_e_value(one.tally.passed, one.tally.trials, one.design.required_rate)
        else:
            found = calibrated_e_value(one.p_value.value)
        evidence.append(found * (one.alpha or 1.0) / level)
    share = level * len(fixed) / plan.family_size
    return [value / share for value in e_bh(evidence, alpha=share).adjusted]


def _correct(finding: Finding, plan: Plan, adjusted: dict[int, float]) -> Finding:
    if finding.by_input:
        parts = tuple(_correct(part, plan, adjusted) for part in finding.by_input)
        singles = [part.single_decision or Decision.INCONCLUSIVE for part in parts]
        decision = combine(part.decision or Decision.INCONCLUSIVE for part in parts)
        return _note(
            replace(finding, by_input=parts, decision=decision),
            single=combine(singles),
            plan=plan,
        )
    if finding.plan.uncorrected is not None:
        return _note(finding, single=finding.single_decision, plan=plan)
    ratio = adjusted.get(id(finding))
    if ratio is None or finding.decision not in (Decision.PASS, Decision.FAIL):
        return finding
    rejects = ratio <= 1
    # Against a baseline a small p-value FAILs; of a required rate it PASSes.
    worse = procedure_of(finding).compares_baseline
    decision = finding.decision
    if worse and finding.decision is Decision.FAIL and not rejects:
        decision = Decision.PASS
    if not worse and finding.decision is Decision.PASS and not rejects:
        decision = Decision.FAIL
    value = min(1.0, ratio * (finding.alpha or 1.0))
    evidence = finding.evidence
    if decision is Decision.FAIL is not finding.decision and isinstance(evidence, CutoffEvidence):
        # Its interval has the family's share of the level on each side, and agrees again.
        share = replace(finding.plan, alpha=(finding.alpha or 1.0) / plan.family_size)
        interval = decision_interval(share, finding.tally, plan.rule)
        evidence = replace(evidence, interval=interval, ground=NOT_SHOWN)
    return _note(
        replace(finding, decision=decision, evidence=evidence),
        single=finding.decision,
        plan=plan,
        adjusted=value,
    )


def _note(
    finding: Finding, *, single: Decision | None, plan: Plan, adjusted: float | None = None
) -> Finding:
    how = "split error limits"
    if adjusted is not None:
        how = f"adjusted p = {adjusted:.3g}"
        if plan.correction == "e-bh":
            how = f"by e-values, from a level of {adjusted:.3g} on"
    text = (
        f"{finding.decision} as one of {plan.family_size} decisions together ({plan.correction}, "
        f"{how}); on its own: {single}"
    )
    statement = finding.statement
    if finding.decision is not single and adjusted is not None:
        statement = f"{statement} Corrected, it is a {finding.decision}."
    return replace(
        finding,
        single_decision=single,
        notes=(*finding.notes, Note(kind=NoteKind.QUALIFICATION, text=text)),
        words=replace(finding.words, statement=statement),
    )
