"""Designs that a claim about other than these inputs' answers calls for."""

from __future__ import annotations

from trialwise.model.criterion import Criterion
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Procedure
from trialwise.procedures.planning.situation import Situation, threshold_of

__all__ = ["plan_corpus", "plan_descriptive"]


def plan_corpus(
    criterion: Criterion, experiment: str, trials: int | None, situation: Situation
) -> CriterionPlan | None:
    """About a finite corpus, of which each input is tried at most once."""
    assert criterion.at_least is not None
    size = len(situation.sampling.inputs)
    planned = size if trials is None else trials
    if planned > size:
        situation.refuse(
            criterion,
            f"{planned} trials are more than the corpus's {size} inputs: a finite-corpus claim "
            "takes each at most once. Run at most so many, or claim these fixed inputs instead",
        )
        return None
    from trialwise.stats.finite import finite_corpus_cutoff

    alpha = criterion.alpha
    design = finite_corpus_cutoff(criterion.at_least, planned, size, alpha=alpha)
    if design.cutoff is None and situation.verifies:
        situation.refuse(
            criterion,
            f"{planned} of {size} inputs cannot show a corpus rate of {criterion.at_least:g} at "
            f"confidence {criterion.confidence:g}; at least {design.minimum_trials} are needed",
        )
        return None
    whole = planned == size
    return CriterionPlan(
        criterion=criterion.name,
        experiment=experiment,
        procedure=Procedure.COMPLIANCE,
        rule=situation.options.rule,
        decision_rule="finite-corpus/exact-rate" if whole else "finite-corpus/hypergeometric",
        alpha=None if whole else alpha,
        trials=planned,
        cutoff=design.required_successes if whole else design.cutoff,
        design=design,
        threshold=threshold_of(criterion),
        category=criterion.category,
        # A rate of the whole corpus is known only once all of it was tried.
        curtailed=situation.options.curtail and not whole,
    )


def plan_descriptive(
    criterion: Criterion, experiment: str, trials: int | None, situation: Situation
) -> CriterionPlan:
    """About nothing but the trials: the observed rate is all there is."""
    return CriterionPlan(
        criterion=criterion.name,
        experiment=experiment,
        procedure=Procedure.COMPLIANCE,
        rule=situation.options.rule,
        decision_rule="no-generalisation/observed-rate",
        alpha=None,
        trials=trials or situation.sampling.slots,
        threshold=threshold_of(criterion),
        category=criterion.category,
        each_input=criterion.each_input,
        curtailed=False,
    )
