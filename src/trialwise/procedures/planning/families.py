"""Decisions that are corrected together: who belongs to a family, and how levels are split.

A design that may stop early has no p-value to adjust, so each of the M decisions of a family gets
1/M of its error limits. A fixed design is decided by adjusted p-values once all trials are in. Only
the criteria of one contract are ranked against each other, so that anybody can decide a record
again; contracts share the level by their numbers of decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan
from trialwise.procedures.base import Refused, Situation
from trialwise.procedures.planning.criterion_plans import plan_criterion
from trialwise.procedures.registry import find_procedure
from trialwise.stats.compliance_cutoffs import ComplianceCutoff, compliance_cutoff


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
    return [
        replace(options, family_size=sizes[options.family] or 1)
        if options.correction != "none" and options.family_size is None
        else options
        for _, options in runs
    ]


def plan_corrected(
    criterion: Criterion, situation: Situation, decisions: int
) -> CriterionPlan | Refused:
    """Plan a criterion that is one of several which are corrected together.

    Args:
        criterion: What is promised.
        situation: Where and how it is tested.
        decisions: How many decisions its family has.
    """
    alone = plan_criterion(criterion, situation)
    if situation.options.correction == "none" or situation.measuring or decisions < 2:
        return alone
    if isinstance(alone, Refused) or alone.alpha is None:
        return alone
    if not alone.stops_early:
        return _explain_shortage(alone, situation, decisions) or replace(
            alone, curtailed=False, looks=()
        )
    share = replace(
        criterion,
        alpha=criterion.wrong_fail / decisions,
        beta=criterion.wrong_pass / decisions,
    )
    split = plan_criterion(share, situation)
    if isinstance(split, Refused):
        return Refused(f"with 1/{decisions} of the error limits (correction), {split.reason}")
    return replace(split, uncorrected=alone.design)


def _explain_shortage(plan: CriterionPlan, situation: Situation, decisions: int) -> Refused | None:
    """Explain why a fixed number of trials cannot PASS once it is corrected; None where it can."""
    design = plan.design
    strict = situation.options.correction in ("bonferroni", "holm") and situation.verifies
    if not strict or not find_procedure(plan.procedure).decides_fixed_rate:
        return None
    if not isinstance(design, ComplianceCutoff) or design.cutoff is None:
        return None
    share = design.alpha / decisions
    found = compliance_cutoff(design.required_rate, plan.trials, alpha=share, rule=design.rule)
    if found.cutoff is not None:
        return None
    return Refused(
        f"{plan.trials} trials cannot PASS as one of {decisions} decisions that are corrected by "
        f"{situation.options.correction}: even without a failure the p-value exceeds {share:.4g}; "
        "run more trials, or correct fewer decisions together"
    )
