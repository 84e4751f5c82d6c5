"""What a comparison with a baseline can find, and which comparisons are too small.

Powers here count the baseline as the sample that it is: they average over the baselines that could
have been measured at its rate.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import cast

from trialwise import stats
from trialwise.decimals import as_written
from trialwise.documents.numbers import as_percent, as_probability
from trialwise.model.criterion import Criterion
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Caution, Decision, ObservedRate
from trialwise.procedures.base import Conclusion, Counts, Refused, known, rate_below
from trialwise.procedures.characteristic import Chance
from trialwise.stats.binomial import find_first, normal_quantile, upper_z
from trialwise.stats.compliance_cutoffs import SOUND_ALPHA
from trialwise.stats.staged_regression import (
    apply_scheme,
    average_chances,
    final_level,
    find_level,
    find_scheme,
    staged_regression,
)

#: How far below a size with enough power smaller ones are looked at.
_NEAR = 12
_SMOKE = "or add `intent: smoke` for a quick check"


def average_power(design: stats.RegressionCutoff, rate: float) -> float | None:
    """P(FAIL) where the service passes at `rate`, averaged over the baselines of this size."""
    if design.cutoff is None:
        return None
    measured = design.baseline_successes / design.baseline_trials
    if design.counts_choices:
        return average_chances(design, measured, rate).fails
    sizes = design.baseline_trials, design.trials
    return stats.design_power(measured, rate, *sizes, alpha=design.alpha, rule=design.rule)


def find_alternative(criterion: Criterion, passed: int, size: int) -> float:
    """Find the rate that a comparison is to find: the baseline's less the loss."""
    return rate_below(passed / size, criterion.loss)


def refuse_weak_regression(criterion: Criterion, design: stats.RegressionCutoff) -> str | None:
    """Say why a comparison is too small for a verification, with what would be enough.

    Args:
        criterion: What is promised.
        design: The rule, resolved against the baseline.
    """
    if design.cutoff is None:  # refused for another reason
        return None
    passed, size = design.baseline_successes, design.baseline_trials
    alternative = find_alternative(criterion, passed, size)
    if passed == 0:
        return (
            f"none of the {size} trials of the baseline passed, so that nothing can be worse and "
            "no count would FAIL: give the criterion a required rate (`at_least`), measure a "
            f"baseline that passes, {_SMOKE}"
        )
    wanted = criterion.wanted_power
    # One gate for all rules: whether the exact test could find a drop with this many trials.
    largest = stats.regression_cutoff(passed, size, size, alpha=design.alpha)
    found = average_power(largest, 0.0) or 0.0
    if found < wanted:
        return (
            f"a baseline of {size} {'trial is' if size == 1 else 'trials is'} too small: even a "
            f"service that never passes would FAIL with probability {found:.2f} only. Measure a "
            f"baseline of about {_size_of_both(criterion, design)} trials, {_SMOKE}"
        )
    if design.cutoff > 0 and _is_enough(criterion, design, design.trials):
        return None
    needed = find_fewest_trials(criterion, design)
    if needed is not None and design.trials >= needed:
        return None
    few = "1 trial is" if design.trials == 1 else f"{design.trials} trials are"
    power = average_power(design, alternative)
    larger = _size_of_both(criterion, design)
    out = f"Measure a baseline of about {larger} trials"
    if needed is not None:
        enough = stats.regression_cutoff(passed, size, needed, alpha=design.alpha, rule=design.rule)
        reached = average_power(enough, alternative) or 0.0
        asked = "" if reached >= wanted else f" ({wanted:g} takes about {larger} in both runs)"
        out = f"Run at least {needed} trials, which find it with probability {reached:.2f}{asked}"
    return (
        f"{few} too few to compare with {passed} of {size}: a drop to {as_percent(alternative)} "
        f"would FAIL with probability {power or 0.0:.2f}, less than the {wanted:g} asked for. "
        f"{out}, {_SMOKE}"
    )


def find_fewest_trials(criterion: Criterion, design: stats.RegressionCutoff) -> int | None:
    """Find the fewest trials that a verification takes: more are admitted too, fewer are not.

    Some count of them has to FAIL. None where the rule takes no test of this size.

    Args:
        criterion: What is promised.
        design: The rule, resolved against the baseline.
    """
    passed, size, alpha = design.baseline_successes, design.baseline_trials, design.alpha
    is_enough = partial(_is_enough, criterion, design)
    fewest = find_first(0, _find_feasible(design), is_enough)
    # Power is not quite monotone: a few trials less may do where a cutoff falls well, since the
    # cutoff is a whole number and the size jumps with it.
    while less := [n for n in range(max(1, fewest - _NEAR), fewest) if is_enough(n)]:
        fewest = less[0]
    # Fisher's rule takes no test larger than its baseline, as its reference cases ask. Elsewhere
    # the search has to end: beyond twice the larger run a cutoff of 0 does not become another.
    most = size if design.rule == "fisher" else 2 * max(fewest, size)
    plan = partial(stats.regression_cutoff, passed, size, alpha=alpha, rule=design.rule)
    return next((n for n in range(fewest, most + 1) if plan(n).cutoff), None)


def _find_feasible(design: stats.RegressionCutoff) -> int:
    """Find the trials that could show the baseline's rate as a required one (companion §5.7.1)."""
    passed, size = design.baseline_successes, design.baseline_trials
    return stats.minimum_trials(min(passed / size, size / (size + 1)), alpha=design.alpha)


def _is_enough(criterion: Criterion, design: stats.RegressionCutoff, trials: int) -> bool:
    """Return whether the trials suffice: they are feasible, or have the power that is asked for."""
    passed, size, alpha = design.baseline_successes, design.baseline_trials, design.alpha
    rates = passed / size, find_alternative(criterion, passed, size)
    return (
        trials >= _find_feasible(design)
        or stats.design_power(*rates, size, trials, alpha=alpha) >= criterion.wanted_power
    )


def _size_of_both(criterion: Criterion, design: stats.RegressionCutoff) -> int:
    """Trials of a baseline, and of a test as large, that find the drop; normal approximation."""
    passed, size = design.baseline_successes, design.baseline_trials
    rate, alternative = passed / size, find_alternative(criterion, passed, size)
    middle = (rate + alternative) / 2
    spread = math.sqrt(rate * (1 - rate) + alternative * (1 - alternative))
    alarm = upper_z(design.alpha) * math.sqrt(2 * middle * (1 - middle))
    root = alarm + normal_quantile(criterion.wanted_power) * spread
    return math.ceil((root / (rate - alternative)) ** 2)


# --- How many trials a comparison with a baseline takes, where nobody says ------------------------

#: Trials of a test whose baseline never passed: no number would show a drop.
_TRIALS_WITHOUT_RATE = 100
#: Looking on the way costs a little power: so much more is wanted of the test of all trials.
_MORE_POWER = 0.035
#: The largest staged test, relative to its baseline: beyond it the baseline is what is too small.
_LARGEST = 2


def find_common_size(criterion: Criterion, size: int) -> int:
    """Enough trials to find the loss at every rate, so that their number tells no count.

    Args:
        criterion: What is promised.
        size: Trials of the baseline.
    """
    # The variances of a rate and of one lower by the loss are largest around one half. Were the
    # size taken from the baseline's own count, its sampling would choose the test as well.
    passed = min(size, math.ceil(size * (1 + criterion.loss) / 2))
    return find_size(criterion, (passed, size), "exact")


def find_size(
    criterion: Criterion, baseline: tuple[int, int], rule: stats.Rule, *, looks: bool = False
) -> int:
    """Enough trials for the rule that decides to find the loss; the baseline's if it is too small.

    Args:
        criterion: What is promised.
        baseline: Its passes and trials.
        rule: The rule set that decides.
        looks: Whether the counts may decide on the way, without a scheme.
    """
    passed, size = baseline
    if passed == 0:
        return min(size, _TRIALS_WITHOUT_RATE)
    rates = passed / size, find_alternative(criterion, passed, size)
    power, most = criterion.wanted_power, size
    if looks:
        power, most = min(power + _MORE_POWER, (1 + power) / 2), _LARGEST * size

    def finds(trials: int) -> bool:
        found = stats.design_power(*rates, size, trials, alpha=criterion.wrong_fail, rule=rule)
        return found >= power

    return find_first(0, most, finds) if finds(most) else size


# Comparisons with a baseline that stop as soon as their counts decide: size, chances and words.

#: The versioned names of the rules of a scheme: decided after every trial, or after all of them.
SCHEME_RULES = ("regression/likelihood-ratio", "regression/likelihood-ratio-once")


def plan_stages(
    criterion: Criterion, baseline: tuple[int, int], limit: int | None, *, waits: bool
) -> stats.RegressionCutoff:
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
    alternative = find_alternative(criterion, passed, size)
    if scheme is not None:
        return apply_scheme(scheme, passed, alternative)
    alpha, usual = criterion.wrong_fail, partial(find_size, criterion, baseline, "exact")
    trials = find_common_size(criterion, size) if waits else usual(looks=True)
    trials = min(trials, limit or trials)
    if waits:
        return stats.regression_cutoff(passed, size, trials, alpha=alpha)
    return staged_regression(passed, size, trials, alternative, alpha=alpha)


def derive_stages(plan: CriterionPlan, passed: int, size: int) -> stats.RegressionCutoff | None:
    """Derive the boundaries of a staged plan again, and the level that they are recorded with."""
    kept = cast("stats.RegressionCutoff | None", plan.design)
    lower = plan.threshold.alternative_rate
    if kept is None or not kept.counts_choices or lower is None:
        return None
    alpha = known(plan.alpha)
    if kept.scheme is None:
        return staged_regression(passed, size, plan.trials, lower, alpha=alpha)
    scheme = replace(kept.scheme, baseline_trials=size, alpha=alpha)
    derived = apply_scheme(
        replace(scheme, level=find_level(scheme)), passed, rate_below(passed / size, scheme.margin)
    )
    return derived if derived.trials == plan.trials else None


def shorten_design(planned: stats.RegressionCutoff, trials: int) -> stats.RegressionCutoff:
    """The rule for a comparison that ends undecided after fewer trials than were planned."""
    counts = planned.baseline_successes, planned.baseline_trials
    if planned.scheme is None:
        level = final_level(planned.alpha) if planned.counts_choices else planned.alpha
        return stats.regression_cutoff(*counts, trials, alpha=level, rule=planned.rule)
    # What the boundaries did not signal, no further test may: they spend all of alpha. A second
    # test at the end would be a second chance of a false alarm.
    fewest = planned.trials - known(planned.cutoff) + 1
    cutoff = max(0, trials - (planned.reject[trials] if planned.reject else fewest) + 1)
    open_end = replace(planned, accept=(), reject=(), scheme=None)
    return replace(open_end, trials=trials, cutoff=cutoff, threshold=cutoff / trials)


def describe_stages(plan: CriterionPlan) -> str:
    """Say when the counts can decide before all trials are in."""
    design = cast("stats.RegressionCutoff", plan.design)
    first = next(n for n, most in enumerate(design.accept) if most >= 0)
    usual = design.reject[-1]
    looks = (n for n in range(1, design.trials) if design.reject[n] < min(usual, n + 1))
    look = next(looks, None)
    early = "" if look is None else f", and FAIL after {look} with {design.reject[look]} failures"
    return f"it can PASS after {first} trials without a failure{early}"


def is_staged(plan: CriterionPlan) -> bool:
    """Whether a comparison may be decided before all trials are in, by boundaries of its own."""
    return bool(getattr(plan.design, "accept", ()))


def conclude_stage(plan: CriterionPlan, counts: Counts) -> Conclusion:
    """Conclude a staged comparison at the trial where its counts decided."""
    design, tally = cast("stats.RegressionCutoff", plan.design), counts.tally
    fails = counts.decision is Decision.FAIL
    passed, rate = f"{tally.passed} of {tally.trials} passed", as_percent(design.reference_rate)
    lower = "" if design.alternative_rate is None else f" of {as_percent(design.alternative_rate)}"
    enough = f"after which a rate{lower} would hardly be signalled"
    if design.scheme is not None:
        enough = f"enough to stop looking for a rate{lower}"
    return Conclusion(
        decision=counts.decision,
        tally=tally,
        observed_rate=ObservedRate.BELOW_THRESHOLD if fails else ObservedRate.ABOVE_THRESHOLD,
        caution=Caution.FAIL_CLEAR if fails else Caution.ADEQUATE_POWER,
        statement=(
            f"A degradation from the baseline is signalled: {passed}, the baseline had {rate}."
            if fails
            else f"No degradation signal: {passed}, {enough}; equivalence is not claimed."
        ),
    )


def chance_of_stages(design: stats.RegressionCutoff, rate: float) -> Chance:
    """Compute the chances of a staged comparison at a true rate, with the trials that it takes."""
    measured = design.baseline_successes / design.baseline_trials
    found = average_chances(design, measured, rate)
    return Chance(
        rate=rate, passes=1 - found.fails, fails=found.fails, mean_trials=found.mean_trials
    )


# --- A threshold that somebody chose for a comparison with a baseline (companion §6.3) ------------
#
# The threshold is given, so the error follows: the level at which the rule that decides would have
# this very threshold. The comparison is planned at that level and says so.

#: From here on a FAIL says nothing: it happens in every second run although nothing has changed.
_MEANINGLESS = 0.5
#: Moves a level off the count at which a cutoff changes, by more than rounding.
_ASIDE = 1e-6


def plan_chosen(
    criterion: Criterion, baseline: tuple[int, int], trials: int | None, rule: stats.Rule
) -> stats.RegressionCutoff | Refused:
    """Return the rule that has the chosen threshold, or say why there is none.

    Args:
        criterion: With a threshold, `pass_from`.
        baseline: Its passes and trials.
        trials: The fixed number of trials.
        rule: The rule set that decides.
    """
    threshold = known(criterion.pass_from)
    written = f"`pass_from: {as_percent(threshold).replace(' ', '')}`"
    if trials is None:
        return Refused(f"{written} needs a fixed number of trials: add `trials`")
    cutoff = math.ceil(as_written(threshold) * trials)
    alarm = stats.binomial_cdf(cutoff - 1, trials, baseline[0] / baseline[1])
    if rule == "wilson":
        alpha = stats.implied_confidence_of_threshold(*baseline, trials, threshold).alpha
    elif rule == "fisher":
        alpha = stats.implied_alpha_of_cutoff(*baseline, trials, cutoff).alpha
    else:
        alpha = stats.boschloo(*baseline, cutoff - 1, trials).p_value if baseline[0] else None
    if alpha is None or alpha >= _MEANINGLESS or alarm >= _MEANINGLESS:
        implied = "no α" if alpha is None else f"α = {alpha:.3f}"
        return Refused(
            f"{written} implies {implied}: with {trials} trials it FAILs in "
            f"{as_probability(alarm)} of runs although nothing has changed since {baseline[0]} of "
            f"{baseline[1]}. Lower it; `trialwise plan regression --threshold` shows by how much"
        )
    for aside in (1.0, 1 - _ASIDE, 1 + _ASIDE):
        design = stats.regression_cutoff(*baseline, trials, alpha=alpha * aside, rule=rule)
        if design.cutoff == cutoff or design.cutoff is None:
            return design
    return Refused(f"{written} is not a threshold of `rule: {rule}` with {trials} trials")


def describe_chosen(criterion: Criterion, design: stats.RegressionCutoff) -> tuple[str, ...]:
    """Say what the chosen threshold implies, beside the threshold at the usual level."""
    if criterion.pass_from is None or design.cutoff is None:
        return ()
    unsound = ", more than 0.2: most FAILs would be false" if design.alpha > SOUND_ALPHA else ""
    caveat = (
        f"the threshold of {as_percent(criterion.pass_from)} was chosen, not derived: for "
        f"`rule: {design.rule}` it implies α = {design.alpha:.4g}{unsound}"
    )
    return (caveat,)
