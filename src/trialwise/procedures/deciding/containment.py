"""What a guardrail experiment adds to a finding: bounds on its misses, by stratum and residual.

Only candidates shown to the guardrail itself say what it blocks. Red-team inputs go through the
generator first, so a clean run of theirs may only mean that nothing harmful was proposed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trialwise.decimals import complement
from trialwise.model.claim import PopulationClaim
from trialwise.model.evidence import Note, NoteKind, StopReason
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.sampling import CHALLENGES, SamplingRole
from trialwise.procedures.base import Conclusion
from trialwise.procedures.criterion_rows import Rows
from trialwise.stats.result_types import Rule

if TYPE_CHECKING:
    from trialwise.stats import GuardrailBound, ResidualHarm, StratifiedContainment


_RED_TEAM = (
    "Red-team inputs show what reached the user under adversarial prompting; they do not isolate "
    "what the guardrail blocks."
)
_NOT_WHOLE = (
    "A bound on the miss probability needs every planned trial: the run stopped as soon as its "
    "verdict was certain. Switch curtailing off, and fix the number of trials, to have one."
)
_ONLY_THESE = (
    "A bound on misses beyond these candidates needs a superpopulation claim with an argument "
    "that they represent it."
)


def contain(
    conclusion: Conclusion,
    criterion: CriterionPlan,
    plan: Plan,
    experiment: ExperimentPlan,
    rows: Rows,
    *,
    stop: StopReason,
) -> Conclusion:
    """Add what a challenge sampling says of its guardrail (§1.4.5b).

    Args:
        conclusion: What was decided.
        criterion: Its plan.
        plan: The run's.
        experiment: Whose role says what was sampled.
        rows: The counted trials.
        stop: Why no further trial was counted.
    """
    role = SamplingRole(experiment.role)
    if role not in CHALLENGES:
        return conclusion
    unsupported = _explain_unsupported(role, plan, stop)
    if unsupported:
        note = Note(kind=NoteKind.GUARDRAIL, text=unsupported)
        return replace(conclusion, notes=(*conclusion.notes, note))
    evidence, tally = conclusion.evidence, conclusion.tally
    if criterion.alpha is None or criterion.estimator is not None or not rows:
        return conclusion
    from trialwise.stats.guardrail_bounds import guardrail_sensitivity, guardrail_specificity

    confidence, counts = complement(criterion.alpha), (tally.passed, tally.trials)
    if role is SamplingRole.HARMLESS_CANDIDATES:
        bound = guardrail_specificity(*counts, confidence=confidence, rule=plan.rule)
        return replace(conclusion, evidence=replace(evidence, containment=bound))
    bound = guardrail_sensitivity(*counts, confidence=confidence, rule=plan.rule)
    contained = replace(
        evidence,
        containment=bound,
        containment_strata=_strata(experiment, rows, confidence, plan.rule),
        residual=_residual(plan, bound),
    )
    return replace(conclusion, evidence=contained)


def _explain_unsupported(role: SamplingRole, plan: Plan, stop: StopReason) -> str:
    """Explain why no bound on the guardrail follows, or nothing."""
    if role is SamplingRole.RED_TEAM:
        return _RED_TEAM
    if plan.claim.population is not PopulationClaim.SUPERPOPULATION:
        return _ONLY_THESE
    return "" if stop is StopReason.COMPLETE else _NOT_WHOLE


def _strata(
    experiment: ExperimentPlan, rows: Rows, confidence: float, rule: Rule
) -> StratifiedContainment | None:
    if not experiment.strata:
        return None
    from trialwise.stats.guardrail_bounds import ChallengeStratum, stratified_containment

    stratum_of = dict(zip(experiment.input_ids, experiment.strata, strict=True))
    counts: dict[str, tuple[int, int]] = {}
    for name, (passed, trials) in rows.tally_inputs().items():
        stratum = stratum_of[name] or "unnamed"
        blocked, presented = counts.get(stratum, (0, 0))
        counts[stratum] = blocked + passed, presented + trials
    parts = [
        ChallengeStratum(name=name, blocked=blocked, presented=presented)
        for name, (blocked, presented) in counts.items()
    ]
    return stratified_containment(parts, confidence=confidence, rule=rule)


def _residual(plan: Plan, bound: GuardrailBound) -> ResidualHarm:
    from trialwise.stats.guardrail_bounds import residual_harm_bound

    prevalence = plan.prevalence
    if prevalence is None:
        return residual_harm_bound(bound.error_upper, miss_confidence=bound.confidence)
    return residual_harm_bound(
        bound.error_upper,
        prevalence.rate,
        prevalence_source="pre-guardrail",
        miss_confidence=bound.confidence,
        prevalence_confidence=prevalence.confidence,
    )
