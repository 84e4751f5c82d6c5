"""Decisions that are corrected together: who belongs to a family, and how levels are split.

The boundaries of a design that may stop early have 1/M of its error limits, where the family has M
decisions. A fixed design runs all its trials. `deciding.corrections` then corrects both statements
of all of them. Only the criteria of one contract are tested against each other, so that anybody can
decide a record again; contracts share the level by their numbers of decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from trialwise import stats
from trialwise.documents.numbers import as_percent
from trialwise.errors import InvalidArgument
from trialwise.model.claim import PopulationClaim
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, Family
from trialwise.model.trial import advisory_reasons, counts_labels, measured_errors
from trialwise.procedures.base import Procedure, Refused, Situation
from trialwise.procedures.registry import find_procedure
from trialwise.stats.judged_looks import LAST_SHARE, JudgedLook, plan_looks

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
    if isinstance(found, Refused):
        return found
    plan = with_judge(found, criterion)
    # Later trials can withdraw a decision that is about their rate.
    is_plain = plan.judging.errors is None and plan.estimator is None
    may = find_procedure(plan.procedure).may_be_withdrawn and is_plain
    return plan.change(withdrawn_by=WITHDRAWAL_LEVEL) if may else plan


#: How often the trials of a service that did not change may contradict its decision.
WITHDRAWAL_LEVEL = 0.01


def _choose_procedure(criterion: Criterion, situation: Situation) -> Procedure:
    is_counted = situation.claim.population in _COUNTED_CLAIMS
    usual = "SEQUENTIAL" if situation.fixed_trials(criterion) is None else "COMPLIANCE"
    usual = "CORPUS" if is_counted else usual
    name = criterion.procedure or _BY_QUESTION.get(criterion.question, usual)
    return find_procedure("REPORTED" if criterion.report_only else name)


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
    if plan.standing.reported_at is not None:
        # It has no decision that the errors of a judge could change.
        return plan.change(advisory=(*plan.standing.advisory, *reasons))
    if errors is not None and plan.counting.stops_early:
        # The boundaries are for outcomes that are seen without error. The corrected rate decides
        # once all trials are in, and has a rule of its own.
        plan = plan.change(stops_early=False, design=None, decision_rule=CORRECTED_RATE)
    caveat = None
    if find_procedure(plan.procedure).compares_baseline:
        caveat = _BOTH_JUDGED
    elif plan.counting.each_input:
        caveat = _POOLED_LABELS
    elif plan.estimator is not None:
        caveat = _ALIKE_TRIALS
    planned = plan.change(
        advisory=reasons,
        errors=errors,
        corrected_by=() if errors is None else _TESTS[counts_labels(criterion.checks)],
        # What the judge said so far may be certain and the rate corrected for its errors still not.
        curtailed=plan.counting.curtailed and errors is None,
        caveats=plan.caveats if caveat is None else (*plan.caveats, caveat),
    )
    # Advice ends no run, and `curtail: false` asks for all trials.
    may_stop = errors is not None and not reasons and plan.counting.curtailed
    return planned.change(looks=find_looks(planned)) if may_stop else planned


#: From this sum of levels on a correction is advised.
_MANY_ERRORS = 0.2


def count_decisions(contract: Contract) -> int:
    """Count how many decisions of a contract can be wrong: every input where each is decided."""
    return sum(
        len(contract.samplings[contract.experiment_of(one)].inputs) if one.each_input else 1
        for one in contract.criteria
        if not one.never_fails and not one.report_only
    )


def size_families(runs: Sequence[tuple[Contract, RunOptions]]) -> list[RunOptions]:
    """Return the options of contracts that are run together, each with the size of its family."""
    sizes: Counter[str] = Counter()
    for contract, options in runs:
        if options.correction != "none":
            sizes[options.family] += count_decisions(contract)
    sized = [options for _, options in runs]
    for place, options in enumerate(sized):
        if options.correction != "none" and options.family_size is None:
            # A family of criteria that cannot be wrong, such as `never_fails`, has none.
            sized[place] = replace(options, family_size=max(1, sizes[options.family]))
    return sized


def advise_correction(decisions: int, level: float) -> str:
    """Say what a correction would give where wrong decisions add up; nothing where they are few."""
    if decisions * level < _MANY_ERRORS:
        return ""
    return (
        f"`correction: holm` keeps the chance that any of these {decisions} decisions is a wrong "
        f"FAIL at {as_percent(level)}, and that any is a wrong PASS; it takes more trials"
    )


def find_family_size(contract: Contract, options: RunOptions) -> int:
    """Return how many decisions are corrected together: as many as are given, or counted."""
    counted = count_decisions(contract)
    if options.family_size is None or options.correction == "none":
        return counted
    # Fewer than are made would divide the level by too little, and the error would be exceeded.
    if options.family_size < counted:
        allowed = f"be at least {counted}: this many decisions are made here"
        raise InvalidArgument("family_size", options.family_size, allowed)
    return options.family_size


def plan_corrected(
    criterion: Criterion, situation: Situation, decisions: int
) -> CriterionPlan | Refused:
    """Plan a criterion that is one of several which are corrected together.

    Args:
        criterion: What is promised.
        situation: Where and how it is tested.
        decisions: How many decisions its family has.
    """
    options = situation.options
    if options.correction == "none" or situation.measuring or decisions < 2:
        return plan_criterion(criterion, situation)
    # A comparison with a baseline that may stop early has no p-value: it is made at its full size.
    alone = plan_criterion(criterion, replace(situation, options=replace(options, curtail=False)))
    if isinstance(alone, Refused) or alone.alpha is None:
        return alone
    procedure = find_procedure(alone.procedure)
    family = Family(
        correction=options.correction,
        decisions=decisions,
        wrong_pass=alone.alpha if alone.beta is None else alone.beta,
        wrong_fail=criterion.wrong_fail if criterion.pass_from is None else alone.alpha,
        fails_open=not situation.leaves_open(criterion)
        and (procedure.decides_fixed_rate or procedure.decides_mean)
        and alone.judging.errors is None,
        keeps_boundaries=alone.counting.stops_early
        and options.correction in ("bonferroni", "holm", "bh")
        # The errors of Wald's boundaries are approximate.
        and criterion.method != "wald",
    )
    if not alone.counting.stops_early:
        whole = alone.change(family=family, curtailed=False, looks=())
        return _explain_shortage(alone, situation, decisions) or whole
    alpha, beta = criterion.wrong_fail / decisions, criterion.wrong_pass / decisions
    # `power` says the same as `beta`, which stands here instead of it.
    share = replace(criterion, alpha=alpha, beta=beta, power=None)
    split = plan_criterion(share, situation)
    if isinstance(split, Refused):
        return Refused(f"with 1/{decisions} of the error limits (correction), {split.reason}")
    return split.change(family=family)


def _explain_shortage(plan: CriterionPlan, situation: Situation, decisions: int) -> Refused | None:
    """Explain why a fixed number of trials cannot PASS once it is corrected; None where it can."""
    procedure = find_procedure(plan.procedure)
    strict = situation.options.correction in ("bonferroni", "holm") and situation.verifies
    if not strict or not procedure.decides_fixed_rate or plan.cutoff is None or plan.alpha is None:
        return None
    share = plan.alpha / decisions
    if procedure.scale_levels(plan, lambda level: level / decisions).cutoff is not None:
        return None
    return Refused(
        f"{plan.trials} trials cannot PASS as one of {decisions} decisions that are corrected by "
        f"{situation.options.correction}: even without a failure the p-value exceeds {share:.4g}; "
        "run more trials, or correct fewer decisions together"
    )


# When a judged rate may be decided before all trials are in, and with how much of the error.


def find_looks(plan: CriterionPlan) -> tuple[JudgedLook, ...]:
    """Find the counts that decide a judged rate early; none for plans that need every trial.

    Args:
        plan: A criterion's, with the errors of its judge.
    """
    required, alpha, counting = plan.threshold.required_rate, plan.alpha, plan.counting
    shown = {
        "COMPLIANCE": (required, alpha),
        "SEQUENTIAL": (plan.threshold.alternative_rate, plan.beta),
    }.get(plan.procedure)
    is_several = counting.each_input or counting.rides_along or plan.estimator is not None
    if shown is None or plan.judging.errors is None or is_several:
        return ()
    return plan_looks(
        plan.judging.errors,
        plan.trials,
        cast("tuple[stats.Correction, ...]", plan.judging.corrected_by),
        above=cast("tuple[float, float]", shown),
        below=cast("tuple[float, float]", (required, alpha)),
    )


def find_share(plan: CriterionPlan, trials: int, *, is_look: bool) -> float:
    """Return the share of the error limit that the decision after some trials may spend.

    Args:
        plan: The criterion's.
        trials: How many trials were judged.
        is_look: Whether the decision was made before all trials were in.
    """
    if not plan.judging.looks:
        return 1.0
    # Each look spends a part of the error and the end the rest, so that together they spend it
    # once, however often somebody looked.
    shares = {look.trials: look.share for look in plan.judging.looks}
    return shares.get(trials, LAST_SHARE) if is_look else LAST_SHARE


def describe_looks(plan: CriterionPlan) -> str:
    """Say when a judged rate may be decided early; empty where it may not be."""
    early = " or ".join(
        f"after {look.trials} with at most {look.accept} failures (PASS) or at least {look.reject} "
        "(FAIL)"
        for look in plan.judging.looks
    )
    return f"; it may stop {early}" if early else ""
