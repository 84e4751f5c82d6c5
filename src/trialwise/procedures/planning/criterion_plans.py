"""How each criterion will be decided: its question chooses the procedure that plans it.

A judge among its checks changes the plan: errors that nobody knows leave it advice, and measured
ones leave the decision to the corrected rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trialwise.errors import InvalidArgument
from trialwise.model.claim import PopulationClaim
from trialwise.model.criterion import Criterion
from trialwise.model.plan import CriterionPlan
from trialwise.model.postcondition import advisory_reasons, counts_labels, measured_errors
from trialwise.procedures.base import Procedure, Refused, Situation
from trialwise.procedures.later_trials import let_withdraw
from trialwise.procedures.planned_looks import find_looks
from trialwise.procedures.registry import find_procedure

#: Questions that one procedure answers; a required rate has several.
_BY_QUESTION = {
    "never_fails": "OBSERVATIONAL",
    "no_worse_than": "REGRESSION",
    "mean_at_least": "MEAN",
}
_COUNTED_CLAIMS = (PopulationClaim.FINITE_CORPUS, PopulationClaim.NO_GENERALISATION)


def plan_criterion(criterion: Criterion, situation: Situation) -> CriterionPlan | Refused:
    """Plan one criterion, or refuse it with what is wrong with its design."""
    if situation.measuring:
        from trialwise.procedures.observational import plan_measurement

        return with_judge(plan_measurement(criterion, situation), criterion)
    try:
        found = _choose_procedure(criterion, situation).plan(criterion, situation)
    except InvalidArgument as error:
        return Refused(str(error))
    return found if isinstance(found, Refused) else let_withdraw(with_judge(found, criterion))


def _choose_procedure(criterion: Criterion, situation: Situation) -> Procedure:
    if criterion.report_only:
        return find_procedure("REPORTED")
    if criterion.procedure is not None:
        return find_procedure(criterion.procedure)
    if criterion.question in _BY_QUESTION:
        return find_procedure(_BY_QUESTION[criterion.question])
    if situation.claim.population in _COUNTED_CLAIMS:
        return find_procedure("CORPUS")
    fixed = situation.fixed_trials(criterion) is not None
    return find_procedure("COMPLIANCE" if fixed else "SEQUENTIAL")


#: The versioned name of the rule that decides by a rate corrected for a judge's errors.
CORRECTED_RATE = "judged/corrected-interval"


#: By whether the labels count as trials. Otherwise two tests have to agree, because each of them
#: needs something else to carry over from the labels to the trials.
_TESTS: dict[bool, tuple[str, ...]] = {False: ("rectifier", "rogan-gladen"), True: ("pooled",)}

_BOTH_JUDGED = (
    "Both rates are what the judge said, uncorrected: where the judge errs more or less often than "
    "it did for the baseline, that looks like a change of the service."
)


_UNMEASURED_SCORES = (
    "the judge's verdicts were measured against people's, its scores were not; without `pass_at` "
    "and `mean_at_least` its verdicts decide"
)

_POOLED_LABELS = (
    "What is known of the judge's errors is known of all inputs together: about one of them it may "
    "err more often."
)


_ALIKE_TRIALS = (
    "The estimate allows for unlike inputs, and the correction for the judge's errors takes its "
    "trials for independent."
)


def with_judge(plan: CriterionPlan, criterion: Criterion) -> CriterionPlan:
    """Return the plan with what is known of the errors of its judge, if it has one."""
    reasons, errors = advisory_reasons(criterion.checks), measured_errors(criterion.checks)
    if errors is not None and criterion.is_graded:
        # Its verdicts were held against people's, and not the scores that it gives.
        reasons, errors = (*reasons, _UNMEASURED_SCORES), None
    if not reasons and errors is None:
        return plan
    if plan.reported_at is not None:
        # It has no decision that the errors of a judge could change.
        return replace(plan, advisory=(*plan.advisory, *reasons))
    if errors is not None and plan.stops_early:
        # The boundaries are for outcomes that are seen without error. The corrected rate decides
        # once all trials are in, and has a rule of its own.
        plan = replace(plan, stops_early=False, design=None, decision_rule=CORRECTED_RATE)
    planned = replace(
        plan,
        advisory=reasons,
        errors=errors,
        corrected_by=() if errors is None else _TESTS[counts_labels(criterion.checks)],
        # What the judge said so far may be certain and the rate corrected for its errors still not.
        curtailed=plan.curtailed and errors is None,
        caveats=(*plan.caveats, *_caveats(plan)),
    )
    # Advice ends no run, and `curtail: false` asks for all trials.
    may_stop = errors is not None and not reasons and plan.curtailed
    return replace(planned, looks=find_looks(planned)) if may_stop else planned


def _caveats(plan: CriterionPlan) -> Iterator[str]:
    if find_procedure(plan.procedure).compares_baseline:
        yield _BOTH_JUDGED
    elif plan.each_input:
        yield _POOLED_LABELS
    elif plan.estimator is not None:
        yield _ALIKE_TRIALS
