"""How each criterion will be decided: its question chooses the procedure that plans it."""

from __future__ import annotations

from trialwise.errors import InvalidArgument
from trialwise.model.claim import PopulationClaim
from trialwise.model.criterion import Criterion
from trialwise.model.plan import CriterionPlan
from trialwise.procedures.base import Procedure, Refused, Situation
from trialwise.procedures.planning.judged_plans import with_judge
from trialwise.procedures.registry import find_procedure

__all__ = ["plan_criterion"]

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
    return found if isinstance(found, Refused) else with_judge(found, criterion)


def _choose_procedure(criterion: Criterion, situation: Situation) -> Procedure:
    if criterion.procedure is not None:
        return find_procedure(criterion.procedure)
    if criterion.never_fails:
        return find_procedure("OBSERVATIONAL")
    if criterion.no_worse_than is not None:
        return find_procedure("REGRESSION")
    if situation.claim.population in _COUNTED_CLAIMS:
        return find_procedure("CORPUS")
    fixed = situation.fixed_trials(criterion) is not None
    return find_procedure("COMPLIANCE" if fixed else "SEQUENTIAL")
