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
from trialwise.stats.e_values import calibrated_e_value, e_bh, fixed_e_value
from trialwise.stats.multiplicity import adjust


def correct_passes(findings: Sequence[Finding], plan: Plan) -> list[Finding]:
    """Correct the findings of a contract; each keeps what it would be on its own."""
    streams = [part for one in findings for part in one.by_input or (one,)]
    fixed = [
        (part, part.p_value.value)
        for part in streams
        if part.plan.others.uncorrected is None and part.p_value is not None
    ]
    adjusted = dict(zip((id(part) for part, _ in fixed), _adjust(fixed, plan), strict=True))
    return [_correct(one, plan, adjusted) for one in findings]


def _adjust(fixed: Sequence[tuple[Finding, float]], plan: Plan) -> Sequence[float]:
    """Return the adjusted p-value of each, where alpha stands for 1: at most 1 is a rejection."""
    if not fixed:
        return ()
    # A p-value is measured by its own criterion's level, and the family's other members, which
    # have none or are decided elsewhere, take their shares of the level.
    level = 0.05
    share = level * len(fixed) / plan.family_size
    if plan.correction == "e-bh":
        evidence = [_weigh(one, p) * (one.alpha or 1.0) / level for one, p in fixed]
        return [value / share for value in e_bh(evidence, alpha=share).adjusted]
    ratios = [min(1.0, level * p / (one.alpha or 1.0)) for one, p in fixed]
    found = adjust(ratios, method=plan.correction, alpha=share)
    return [value / share for value in found.adjusted]


def _weigh(finding: Finding, p_value: float) -> float:
    if isinstance(finding.design, ComplianceCutoff):
        tally = finding.tally
        return fixed_e_value(tally.passed, tally.trials, finding.design.required_rate)
    return calibrated_e_value(p_value)


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
    if finding.plan.others.uncorrected is not None:
        return _note(finding, single=finding.single_decision, plan=plan)
    ratio = adjusted.get(id(finding))
    if ratio is None or finding.decision not in (Decision.PASS, Decision.FAIL):
        return finding
    # Against a baseline a small p-value FAILs; of a required rate it PASSes.
    worse, decision = procedure_of(finding).compares_baseline, finding.decision
    if ratio > 1 and decision is (Decision.FAIL if worse else Decision.PASS):
        decision = Decision.PASS if worse else Decision.FAIL
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
