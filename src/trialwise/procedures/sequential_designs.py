"""Designs of criteria that share their trials: chosen for the longest of them.

A run ends when its last criterion is decided. The design that needs the fewest trials for one
criterion has a long tail, and the longest of several criteria is often in it. A smaller cap, and
boundaries made for the rate midway between the two of a margin, shorten the tail at the same two
exact errors. Which cap serves best depends on how many criteria there are, so that a few designs
are compared by the expected maximum of the trials of independent criteria,

    E[max] = Σ over n ≥ 0 of 1 − Π over criteria of P(decided within n trials),

averaged over four cases: every criterion at its bad rate, midway, at the required rate, and where
services usually are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple, cast

from trialwise.decimals import as_written
from trialwise.documents.numbers import as_percent
from trialwise.errors import InvalidArgument
from trialwise.model.criterion import Criterion
from trialwise.model.options import Budget
from trialwise.model.plan import CriterionPlan
from trialwise.procedures.base import Refused, Situation, known, rate_below
from trialwise.procedures.registry import find_procedure
from trialwise.stats.sequential.bound import find_shared_caps, fixed_size, likely_mix, shared_mix
from trialwise.stats.sequential.design import Method, SequentialDesign
from trialwise.stats.sequential.shipped_designs import MOST_WITHOUT_CONSENT, DesignCache

#: A design is changed only where that shortens the run by at least this share.
LEAST_SAVING = 0.01
#: From this many criteria on the smallest cap is tried first.
MANY = 4


class CriteriaGroup(NamedTuple):
    """Criteria that share one design."""

    design: SequentialDesign
    criteria: int


def expected_longest(groups: Sequence[CriteriaGroup], least: int = 0) -> float:
    """Return the expected trials of a run, averaged over the four cases.

    >>> design = SequentialDesign.optimal(0.9, 0.8)
    >>> one, eight = (expected_longest([CriteriaGroup(design, count)]) for count in (1, 8))
    >>> one < 45, eight > 75
    (True, True)
    """
    means = []
    for case in zip(*(_decided_by_case(group.design) for group in groups), strict=True):
        mean = 0.0
        for n in range(max(map(len, case))):
            shares = (
                decided[n] ** group.criteria
                for decided, group in zip(case, groups, strict=True)
                if n < len(decided)
            )
            mean += 1.0 if n < least else 1 - math.prod(shares)
        means.append(max(mean, least))
    return math.fsum(means) / len(means)


def choose_shared(
    usual: SequentialDesign,
    count: int,
    *,
    others: Sequence[CriteriaGroup] = (),
    least: int = 0,
    cache: DesignCache | None = None,
) -> SequentialDesign:
    """Choose the design of criteria that share their trials, with the errors of the usual one.

    Args:
        usual: What one such criterion is decided by on its own. It is kept where it may end
            INCONCLUSIVE or decides in batches.
        count: How many criteria have it.
        others: The other criteria that need trials of the same sampling.
        least: Trials that are run in any case.
        cache: Where designs that do not ship with the package are kept between runs.
    """
    # Another cap would change which runs are left open, and that is what the user was told.
    if usual.batch > 1 or not usual.always_decides:
        return usual

    def weigh(design: SequentialDesign) -> float:
        return expected_longest([CriteriaGroup(design, count), *others], least)

    best, limit, before = usual, (1 - LEAST_SAVING) * weigh(usual), math.inf
    rates, alpha, beta = (usual.p0, usual.p1), usual.alpha, usual.beta
    caps = find_shared_caps(*rates, alpha=alpha, beta=beta, most=usual.cap)
    for cap in caps if count >= MANY else reversed(caps):
        design = SequentialDesign.optimal(
            *rates, alpha=alpha, beta=beta, cap=cap, mix=shared_mix(*rates), cache=cache
        )
        trials = weigh(design)
        if trials >= before:  # the best cap lies behind
            break
        before = trials
        if trials < limit:
            best, limit = design, trials
    return best


def share_trials(
    plans: Sequence[CriterionPlan], inputs: int, *, cache: DesignCache | None = None
) -> list[CriterionPlan]:
    """Give the criteria of one sampling that have a margin designs for their longest.

    Args:
        plans: The plans of all criteria of the sampling.
        inputs: How many it has.
        cache: Where designs are kept between runs.
    """
    chosen = list(plans)
    families: dict[tuple[float, ...], list[int]] = {}
    for place, plan in enumerate(plans):
        design = _find_boundaries(plan)
        if design is not None and design.method is Method.OPTIMAL and design.always_decides:
            key = (-design.cap, design.p0, design.p1, design.alpha, design.beta)
            families.setdefault(key, []).append(place)
    # The longest first: what the others do matters less.
    for _, places in sorted(families.items()):
        rest = [plan for place, plan in enumerate(chosen) if place not in places]
        others, least = _gather(rest, inputs)
        count = len(places) + len(others)
        if count < 2:
            continue
        usual = cast("SequentialDesign", chosen[places[0]].design)
        found = choose_shared(usual, len(places), others=others, least=least, cache=cache)
        if found is not usual:
            shared = {"design": found, "trials": found.cap, "shared_by": count}
            for place in places:
                chosen[place] = chosen[place].change(**shared)
    return chosen


def _find_boundaries(plan: CriterionPlan) -> SequentialDesign | None:
    """Find the boundaries at which a criterion may stop for all of its inputs together.

    A procedure of another distribution may stop early by a design of its own.
    """
    may_stop = plan.counting.stops_early and not plan.counting.each_input
    if not may_stop or not find_procedure(plan.procedure).shares_trials:
        return None
    return cast("SequentialDesign", plan.design)


def _gather(plans: Sequence[CriterionPlan], inputs: int) -> tuple[list[CriteriaGroup], int]:
    """Gather the criteria that may stop, each on its own, and the trials that run in any case."""
    groups, least = list[CriteriaGroup](), 0
    for plan in plans:
        design = _find_boundaries(plan)
        if plan.counting.rides_along:
            least = max(least, min(plan.trials, inputs) if plan.counting.asks_every_input else 0)
        elif design is not None:
            groups.append(CriteriaGroup(design, 1))
        else:
            least = max(least, plan.count_trials(inputs))
    return groups, least


def _decided_by_case(design: SequentialDesign) -> Iterator[list[float]]:
    """P(decided within n trials), n = 0 … cap, in each of the four cases."""
    p0, p1 = design.p0, design.p1
    if p0 == p1:  # without a margin, twice the allowed failures and half as many again
        p1 = max(p0 / 2, p0 - (1 - p0))
    for rate in (p1, (p0 + p1) / 2, p0, p0 + 0.7 * (1 - p0)):
        trials = design.operating_characteristic(rate).distribution
        yield [min(1.0, reached) for reached in accumulate(trials)]


# --- A sequential rule as a person would apply it: how many failures after how many trials --------
#
# A design keeps a boundary for every number of trials. A person needs only the steps, and only
# those at which a run can still be going.

#: A rule with more steps than this is shown by its beginning and its end.
MOST_STEPS, FIRST_STEPS, LAST_STEPS = 12, 7, 2


def describe_rule(design: SequentialDesign) -> tuple[str, ...]:
    """When a design says PASS and FAIL, in trials and failures, and what is left in the end."""
    passes, fails = list_passing_steps(design), list_failing_steps(design)
    looks = f"Looking every {design.batch} trials: " if design.batch > 1 else ""
    rest = f"What is open after {design.cap} trials is INCONCLUSIVE."
    if design.always_decides:
        rest = f"By trial {max(n for n, *_ in _list_reached(design))} every run has its verdict."
    given_up = [f"INCONCLUSIVE early {_list_futile(design)}."] if design.futile else []
    first = f"{looks}PASS {_shorten_steps(passes, 'after')}."
    return first, f"FAIL {_shorten_steps(fails, 'within')}.", *given_up, rest


def _list_futile(design: SequentialDesign) -> str:
    """List the failures at which a decision has become improbable, where they change."""
    spans = [(n, span) for n, span in enumerate(design.futile) if span[0] <= span[1]]
    steps = [
        f"with {low if low == high else f'{low} to {high}'} failures after {n} trials"
        for (n, (low, high)), (_, before) in zip(spans, [(0, (-1, -1)), *spans], strict=False)
        if (low, high) != before
    ]
    return ", ".join(_leave_out_middle(steps))


def _leave_out_middle(steps: list[str]) -> list[str]:
    if len(steps) <= MOST_STEPS:
        return steps
    return [*steps[:FIRST_STEPS], "…", *steps[-LAST_STEPS:]]


def list_passing_steps(design: SequentialDesign) -> list[tuple[int, int]]:
    """(failures, trials): the first look at which this many failures PASS, where a run can be."""
    first: dict[int, int] = {}
    for n, low, _ in _list_reached(design):
        if design.accept[n] >= low:
            first.setdefault(design.accept[n], n)
    return [*first.items()]


def list_failing_steps(design: SequentialDesign) -> list[tuple[int, int]]:
    """(failures, trials): the last look at which this many failures FAIL, where a run can be."""
    reached = [(n, high) for n, _, high in _list_reached(design)]
    return [*{design.reject[n]: n for n, high in reached if design.reject[n] <= high}.items()]


def _list_reached(design: SequentialDesign) -> Iterator[tuple[int, int, int]]:
    """(trials, fewest failures, most failures) of the runs that are still going before a look."""
    low = high = 0
    for n in range(1, design.cap + 1):
        high += 1
        yield n, low, high
        low, high = max(low, design.accept[n] + 1), min(high, design.reject[n] - 1)
        if low > high:
            return


def _shorten_steps(steps: list[tuple[int, int]], word: str) -> str:
    if not steps:
        return "never"
    (failures, trials), *rest = steps
    noun = "failure" if failures == 1 else "failures"
    listed = [f"with {failures} {noun} {word} {trials} trials"]
    listed += [f"{f} {word} {n}" for f, n in rest]
    return ", ".join(_leave_out_middle(listed))


def join_steps(steps: list[tuple[int, int]], word: str) -> str:
    """Join all steps in one line."""
    return ", ".join(f"{f} {word} {n}" for f, n in steps) or "never"


# --- The design of a required rate, and what it costs ---------------------------------------------

#: Of the fewest trials that can PASS, what a design is given that somebody agreed to pay for: a
#: service with a third of the allowed failures then passes in most runs.
GENEROUS = 2.7
#: The smallest margin that is proposed: a smaller one would take as many trials again.
_LEAST_MARGIN = 0.001


def plan_strict(
    criterion: Criterion, cap: int | None, situation: Situation
) -> SequentialDesign | Refused:
    """Return the design with both errors at the required rate; refuse one that is too expensive."""
    required, beta = known(criterion.at_least), criterion.wrong_pass
    least = count_passes_needed(required, beta)
    if cap is None and least > MOST_WITHOUT_CONSENT:
        if situation.options.budget == Budget():
            return Refused(_explain_price(criterion, least))
        cap = round_up_count(GENEROUS * least)
    return SequentialDesign.strict(
        required, alpha=criterion.wrong_fail, beta=beta, cap=cap, cache=situation.cache
    )


def plan_with_margin(
    criterion: Criterion, cap: int | None, situation: Situation
) -> SequentialDesign:
    """Return the design between the required rate and the margin below it."""
    required, margin = known(criterion.at_least), known(criterion.margin)
    lower = rate_below(required, margin)
    # Each method is made by the class method of its name.
    make = partial(
        getattr(SequentialDesign, criterion.method),
        required,
        lower,
        alpha=criterion.wrong_fail,
        beta=criterion.wrong_pass,
        cap=cap,
    )
    if criterion.method == "optimal":
        make = partial(make, cache=situation.cache, mix=likely_mix(required, lower))
    try:
        return cast("SequentialDesign", make())
    except InvalidArgument as error:
        if error.argument not in ("p1", "cap"):
            raise
        below = f"{as_percent(margin)} below {as_percent(required)}"
        allowed = f"be wider: {below} takes too many trials"
        raise InvalidArgument("margin", margin, allowed) from None


def count_passes_needed(required: float, beta: float) -> int:
    """Return the fewest trials that show a rate above the required one if all pass."""
    return math.ceil(math.log(beta) / math.log(required) - 1e-9)


def _explain_price(criterion: Criterion, least: int) -> str:
    """Say in numbers what to choose if showing a required rate takes too many trials."""
    required, beta = known(criterion.at_least), criterion.wrong_pass
    margin = max(float((1 - as_written(required)) * 10), _LEAST_MARGIN)
    lower = rate_below(required, margin)
    decided = fixed_size(required, lower, alpha=criterion.wrong_fail, beta=beta).trials
    few, more, cap = map(round_up_count, (least, 1.4 * least, GENEROUS * least))
    return (
        f"{as_percent(required)} needs about {few:,} to {more:,} passing trials in a row; allow "
        f"them with `max_trials: {cap}` or a budget, or accept a margin: `margin: "
        f"{as_percent(margin).replace(' ', '')}` decides in about {decided:,}"
    )


def explain_no_pass(criterion: Criterion, design: SequentialDesign) -> str:
    """Say how many trials a design that can never PASS would need."""
    least = count_passes_needed(design.p1, design.beta)
    return (
        f"{design.cap} trials cannot show a rate above {as_percent(design.p1)}: at least {least:,} "
        f"passing trials are needed. Allow more (`max_trials`), "
        f"{'widen' if criterion.margin else 'accept'} a margin (`margin`), or add `intent: smoke` "
        "for a quick check"
    )


def round_up_count(count: float) -> int:
    """Round a count up to two leading digits."""
    step = int(10 ** max(0, math.floor(math.log10(count)) - 1))
    return math.ceil(count / step) * step


def list_telling_rates(design: SequentialDesign) -> Iterator[tuple[float, str]]:
    """Return the true rates that show what a design does, each with its meaning."""
    required = as_written(design.p0)
    allowed = 1 - required
    yield 1.0, "no failures"
    yield float(required + allowed / 2), "half the allowed failures"
    yield design.p0, "as required"
    if design.p1 != design.p0:
        yield design.p1, "the margin below"
    elif allowed * 2 < 1:
        yield float(required - allowed / 2), "half as many failures again"
        yield float(required - allowed), "twice the allowed failures"
