"""How each criterion will be decided: the four procedures' designs, refused here or not at all.

What `at_least` alone means stands here: a sequential decision between the required rate and the
margin below it, at the fewest expected trials, within twice the exact fixed sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.model.claim import PopulationClaim
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Threshold
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Procedure
from trialwise.procedures.planning.judged_plans import with_judge
from trialwise.procedures.planning.situation import Situation, origin_of, threshold_of

# What a procedure needs is imported by its planner: few runs have two of them.
if TYPE_CHECKING:
    from trialwise.stats import ComplianceCutoff, RegressionCutoff
    from trialwise.stats.sequential import SequentialDesign

__all__ = ["USUAL_PROBES", "USUAL_REPEATS", "plan_criterion"]

#: Trials of a run that asks only whether anything fails, where nobody says how many.
USUAL_PROBES = 100
#: The same, of each input.
USUAL_REPEATS = 10


_Planner: TypeAlias = Callable[[Criterion, str, int | None, Situation], CriterionPlan | None]


def plan_criterion(
    criterion: Criterion, experiment: str, situation: Situation
) -> CriterionPlan | None:
    """The plan of one criterion, or None with its reasons in the situation's refusals."""
    trials = situation.fixed_trials(criterion, experiment)
    try:
        plan = _planner(criterion, trials, situation)(criterion, experiment, trials, situation)
    except InvalidArgument as error:
        situation.refuse(criterion, str(error))
        return None
    return None if plan is None else with_judge(plan, criterion)


def _planner(criterion: Criterion, trials: int | None, situation: Situation) -> _Planner:
    if situation.measuring:
        return _measured
    if criterion.never_fails:
        return _observational
    if criterion.no_worse_than is not None:
        return _regression
    if situation.claim.population is PopulationClaim.FINITE_CORPUS:
        from trialwise.procedures.planning.claim_plans import plan_corpus

        return plan_corpus
    if situation.claim.population is PopulationClaim.NO_GENERALISATION:
        from trialwise.procedures.planning.claim_plans import plan_descriptive

        return plan_descriptive
    return _sequential if trials is None else _compliance


def _observational(
    criterion: Criterion, experiment: str, trials: int | None, situation: Situation
) -> CriterionPlan:
    size = trials or (USUAL_REPEATS if criterion.each_input else USUAL_PROBES)
    return CriterionPlan(
        criterion=criterion.name,
        experiment=experiment,
        procedure=Procedure.OBSERVATIONAL,
        rule=None,
        decision_rule=None,
        alpha=None,
        trials=size,
        cutoff=size,
        # Without a number of its own it is scored on whatever trials the others need.
        rides_along=trials is None and not criterion.each_input,
        threshold=Threshold(origin=origin_of(criterion), contract_ref=criterion.contract_ref),
        each_input=criterion.each_input,
        min_probes=criterion.min_probes,
        category=criterion.category,
        curtailed=situation.options.curtail,
    )


def _compliance(
    criterion: Criterion, experiment: str, trials: int | None, situation: Situation
) -> CriterionPlan | None:
    from trialwise.procedures.compliance import DECISION_RULES
    from trialwise.stats.compliance_cutoffs import compliance_cutoff

    assert criterion.at_least is not None
    assert trials is not None
    options, estimator = situation.options, situation.claim.estimator
    design = compliance_cutoff(criterion.at_least, trials, alpha=criterion.alpha, rule=options.rule)
    if design.cutoff is None and situation.verifies:
        situation.refuse(criterion, infeasible(design, criterion.confidence))
        return None
    return CriterionPlan(
        criterion=criterion.name,
        experiment=experiment,
        procedure=Procedure.COMPLIANCE,
        rule=options.rule,
        decision_rule=DECISION_RULES[options.rule],
        alpha=criterion.alpha,
        trials=trials,
        # A matched estimator looks at who passed, not only at how many: it decides at the end.
        cutoff=design.cutoff if estimator is None else None,
        design=design,
        threshold=threshold_of(criterion),
        estimator=estimator,
        each_input=criterion.each_input,
        category=criterion.category,
        curtailed=options.curtail,
        caveats=_smoke_caveats(criterion, design, situation),
    )


def _sequential(
    criterion: Criterion,
    experiment: str,
    trials: int | None,  # noqa: ARG001 - there is none: that is why it is sequential
    situation: Situation,
) -> CriterionPlan | None:
    from trialwise.procedures.sizing.sizing_questions import SequentialQuestion, resolved_max_trials

    required = criterion.at_least
    assert required is not None
    alternative = _below(required, criterion.margin)
    if alternative <= 0:
        way_out = "give a smaller margin, or a fixed number of trials"
        situation.refuse(
            criterion,
            f"a margin of {criterion.margin:g} below the required rate of {required:g} leaves no "
            f"rate to tell it from; {way_out}",
        )
        return None
    limit = criterion.max_trials or situation.options.max_trials
    question = SequentialQuestion(
        required_rate=required,
        alternative_rate=alternative,
        confidence=criterion.confidence,
        power=criterion.power,
        max_trials=limit,
    )
    design = _stopping_rule(criterion, alternative, resolved_max_trials(question), situation)
    if not _can_pass(design) and situation.verifies:
        situation.refuse(
            criterion,
            f"with at most {design.cap} trials no result would PASS at a rate of {required:g} "
            f"against {alternative:g} with power {criterion.power:g}; about "
            f"{question.fixed_trials} trials are needed. Allow up to {2 * question.fixed_trials} "
            "(max_trials), widen the margin, or use smoke intent if this is a sentinel check",
        )
        return None
    return CriterionPlan(
        criterion=criterion.name,
        experiment=experiment,
        procedure=Procedure.SEQUENTIAL,
        rule=None,
        decision_rule=f"sequential/{design.method}",
        alpha=criterion.alpha,
        beta=criterion.beta,
        trials=design.cap,
        design=design,
        threshold=threshold_of(criterion, alternative=alternative),
        estimator=situation.claim.estimator,
        each_input=criterion.each_input,
        category=criterion.category,
    )


def _regression(
    criterion: Criterion, experiment: str, trials: int | None, situation: Situation
) -> CriterionPlan | None:
    baseline = situation.baseline
    found = None if baseline is None else baseline.criteria.get(criterion.name)
    if found is None:
        situation.refuse(
            criterion,
            "no baseline holds this criterion; measure one first, or give it a required rate",
        )
        return None
    if criterion.each_input:
        situation.refuse(
            criterion,
            "a baseline keeps counts of all inputs together, so each input cannot be compared "
            "with it; use at_least or never_fails with each_input",
        )
        return None
    from trialwise.procedures.regression import DECISION_RULES
    from trialwise.stats.regression_cutoffs import regression_cutoff

    rule = situation.options.rule
    alternative = _below(found.passed / found.trials, criterion.margin)
    if trials is None:
        trials = _usual_size(criterion, found.passed, found.trials, alternative)
    design = regression_cutoff(found.passed, found.trials, trials, alpha=criterion.alpha, rule=rule)
    if design.cutoff is None:
        situation.refuse(
            criterion,
            f"a test of {trials} trials is larger than its baseline of {found.trials}: measure a "
            f"baseline of at least {trials} trials, or run at most {found.trials}",
        )
        return None
    return CriterionPlan(
        criterion=criterion.name,
        experiment=experiment,
        procedure=Procedure.REGRESSION,
        rule=rule,
        decision_rule=DECISION_RULES[rule],
        alpha=criterion.alpha,
        trials=trials,
        cutoff=design.cutoff,
        design=design,
        threshold=Threshold(
            origin=origin_of(criterion),
            contract_ref=criterion.contract_ref,
            alternative_rate=alternative,
            baseline=situation.references.get(criterion.name),
        ),
        category=criterion.category,
        curtailed=situation.options.curtail,
        caveats=_weakness(criterion, design, alternative),
    )


def _weakness(
    criterion: Criterion, design: RegressionCutoff, alternative: float
) -> tuple[str, ...]:
    power = design.power(alternative)
    if power is None or power >= criterion.power:
        return ()
    caveat = (
        f"{design.trials} trials against {design.baseline_trials} of the baseline see a drop to "
        f"{alternative:.3g} with probability {power:.2f} only, less than the "
        f"{criterion.power:g} asked for: a PASS then says little"
    )
    return (caveat,)


def _measured(
    criterion: Criterion,
    experiment: str,
    trials: int | None,
    situation: Situation,  # noqa: ARG001 - whatever it is, it is counted
) -> CriterionPlan:
    """Nothing is decided while a baseline is measured; its trials are counted."""
    return CriterionPlan(
        criterion=criterion.name,
        experiment=experiment,
        procedure=Procedure.OBSERVATIONAL,
        rule=None,
        decision_rule=None,
        alpha=None,
        trials=trials or USUAL_PROBES,
        threshold=Threshold(origin=origin_of(criterion), contract_ref=criterion.contract_ref),
        category=criterion.category,
        curtailed=False,
    )


def infeasible(design: ComplianceCutoff, confidence: float) -> str:
    """What is configured, what is needed and the way out (companion §5.7.1)."""
    return (
        f"{design.trials} trials cannot show a rate above {design.required_rate:g} at confidence "
        f"{confidence:g}: even without a failure the bound stays below it. At least "
        f"{design.minimum_trials} trials are needed, or smoke intent if this is a sentinel check"
    )


def _smoke_caveats(
    criterion: Criterion, design: ComplianceCutoff, situation: Situation
) -> tuple[str, ...]:
    """What a smoke run against somebody's promise has to say of itself (companion §5.7.4)."""
    if situation.verifies or not criterion.is_normative:
        return ()
    if design.trials < design.minimum_trials:
        caveat = (
            f"Sample not sized for verification (N = {design.trials}, need "
            f"{design.minimum_trials}). A PASS is a directional signal, not a compliance "
            "determination."
        )
    else:
        caveat = (
            "Sample is sized for verification. Consider setting intent = VERIFICATION for "
            "evidential strength."
        )
    return (caveat,)


def _usual_size(criterion: Criterion, passed: int, trials: int, alternative: float) -> int:
    """Enough trials to see the margin with the power asked for, if the baseline is large enough."""
    if passed == 0:
        return min(trials, USUAL_PROBES)
    from trialwise.stats.risk_sizing import resolved_required_trials

    sizing = resolved_required_trials(
        passed, trials, alternative, alpha=criterion.alpha, power=criterion.power
    )
    return trials if sizing.trials is None else sizing.trials


def _below(rate: float, margin: float) -> float:
    """A rate lower by the margin, in decimals, and never below 0."""
    return max(0.0, float(as_written(rate) - as_written(margin)))


def _stopping_rule(
    criterion: Criterion, alternative: float, cap: int, situation: Situation
) -> SequentialDesign:
    """The boundaries, by the criterion's own method."""
    from trialwise.stats.sequential import SequentialDesign

    assert criterion.at_least is not None
    rates = criterion.at_least, alternative
    alpha, beta = criterion.alpha, criterion.beta
    match criterion.method:
        case "wald":
            return SequentialDesign.wald(*rates, alpha=alpha, beta=beta, cap=cap)
        case "calibrated":
            return SequentialDesign.calibrated(*rates, alpha=alpha, beta=beta, cap=cap)
        case "fixed":
            return SequentialDesign.fixed(*rates, alpha=alpha, beta=beta, cap=cap)
    cache = situation.cache
    return SequentialDesign.optimal(*rates, alpha=alpha, beta=beta, cap=cap, cache=cache)


def _can_pass(design: SequentialDesign) -> bool:
    return max(design.accept) >= 0
