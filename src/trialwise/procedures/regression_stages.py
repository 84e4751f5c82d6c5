"""Comparisons with a baseline that stop as soon as their counts decide: size, chances and words."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from trialwise.documents.numbers import as_percent
from trialwise.model.criterion import Criterion
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Caution, Decision, ObservedRate
from trialwise.procedures.base import Conclusion, Counts, rate_below
from trialwise.procedures.characteristic import Chance
from trialwise.procedures.regression_sizes import find_common_size, size_stages
from trialwise.stats.regression_cutoffs import RegressionCutoff, regression_cutoff
from trialwise.stats.scheme_levels import find_level, find_scheme
from trialwise.stats.staged_regression import (
    apply_scheme,
    average_chances,
    final_level,
    staged_regression,
)

#: The versioned names of the rules of a scheme: decided after every trial, or after all of them.
SCHEME_RULES = ("regression/likelihood-ratio", "regression/likelihood-ratio-once")


def plan_stages(
    criterion: Criterion, baseline: tuple[int, int], limit: int | None, *, waits: bool
) -> RegressionCutoff:
    """Plan a comparison whose size is not given, with errors that count how it was chosen.

    Args:
        criterion: What is promised.
        baseline: Its passes and trials.
        limit: The most trials, where the user has set a limit.
        waits: Whether only all trials together decide, rather than the counts on the way.
    """
    passed, size = baseline
    scheme = find_scheme(
        size,
        criterion.loss,
        alpha=criterion.wrong_fail,
        power=criterion.wanted_power,
        most_trials=limit,
        waits=waits,
    )
    alternative = rate_below(passed / size, criterion.loss)
    if scheme is not None:
        return apply_scheme(scheme, passed, alternative)
    if waits:
        trials = find_common_size(criterion, size)
        trials = min(trials, limit or trials)
        return regression_cutoff(passed, size, trials, alpha=criterion.wrong_fail)
    trials = size_stages(criterion, baseline, alternative)
    trials = min(trials, limit or trials)
    return staged_regression(passed, size, trials, alternative, alpha=criterion.wrong_fail)


def derive_stages(plan: CriterionPlan, passed: int, size: int) -> RegressionCutoff | None:
    """Derive the boundaries of a staged plan again, and the level that they are recorded with."""
    kept, lower = plan.design, plan.threshold.alternative_rate
    if not isinstance(kept, RegressionCutoff) or not kept.counts_choices or lower is None:
        return None
    assert plan.alpha is not None
    if kept.scheme is None:
        return staged_regression(passed, size, plan.trials, lower, alpha=plan.alpha)
    scheme = replace(kept.scheme, baseline_trials=size, alpha=plan.alpha)
    derived = apply_scheme(
        replace(scheme, level=find_level(scheme)),
        passed,
        rate_below(passed / size, scheme.margin),
    )
    return derived if derived.trials == plan.trials else None


def shorten_stages(planned: RegressionCutoff, trials: int) -> RegressionCutoff:
    """The rule for a comparison that ends undecided after fewer trials than were planned."""
    counts = planned.baseline_successes, planned.baseline_trials
    if planned.scheme is None:
        level = final_level(planned.alpha)
        return regression_cutoff(*counts, trials, alpha=level, rule=planned.rule)
    # What the boundaries did not signal, no further test may: they spend all of alpha.
    assert planned.cutoff is not None
    fewest = planned.reject[trials] if planned.reject else planned.trials - planned.cutoff + 1
    cutoff = max(0, trials - fewest + 1)
    return replace(
        planned,
        trials=trials,
        cutoff=cutoff,
        threshold=cutoff / trials,
        accept=(),
        reject=(),
        scheme=None,
    )


def describe_stages(plan: CriterionPlan) -> str:
    """Say when the counts can decide before all trials are in."""
    design = cast("RegressionCutoff", plan.design)
    first = next(n for n, most in enumerate(design.accept) if most >= 0)
    usual = design.reject[-1]
    looks = (n for n in range(1, design.trials) if design.reject[n] < min(usual, n + 1))
    look = next(looks, None)
    early = "" if look is None else f", and FAIL after {look} with {design.reject[look]} failures"
    return f"it can PASS after {first} trials without a failure{early}"


def is_staged(plan: CriterionPlan) -> bool:
    """Whether a comparison may be decided before all trials are in, by boundaries of its own."""
    return isinstance(plan.design, RegressionCutoff) and bool(plan.design.accept)


def conclude_stage(plan: CriterionPlan, counts: Counts) -> Conclusion:
    """Conclude a staged comparison at the trial where its counts decided."""
    design, tally, decision = cast("RegressionCutoff", plan.design), counts.tally, counts.decision
    assert decision is not None
    fails = decision is Decision.FAIL
    passed, rate = f"{tally.passed} of {tally.trials} passed", as_percent(design.reference_rate)
    lower = "" if design.alternative_rate is None else f" of {as_percent(design.alternative_rate)}"
    enough = f"after which a rate{lower} would hardly be signalled any more"
    if design.scheme is not None:
        enough = f"enough to stop looking for a rate{lower}"
    return Conclusion(
        decision=decision,
        tally=tally,
        observed_rate=ObservedRate.BELOW_THRESHOLD if fails else ObservedRate.ABOVE_THRESHOLD,
        caution=Caution.FAIL_CLEAR if fails else Caution.ADEQUATE_POWER,
        statement=(
            f"A degradation from the baseline is signalled: {passed}, the baseline had {rate}."
            if fails
            else f"No degradation signal: {passed}, {enough}; equivalence is not claimed."
        ),
    )


def chance_of_stages(design: RegressionCutoff, rate: float) -> Chance:
    """Compute the chances of a staged comparison at a true rate, with the trials that it takes."""
    measured = design.baseline_successes / design.baseline_trials
    found = average_chances(design, measured, rate)
    return Chance(
        rate=rate, passes=1 - found.fails, fails=found.fails, mean_trials=found.mean_trials
    )
