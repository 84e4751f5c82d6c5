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
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, cast

from trialwise.stats.sequential.design import Method, SequentialDesign
from trialwise.stats.sequential.hypotheses import find_shared_caps, shared_mix

if TYPE_CHECKING:
    from trialwise.model.plan import CriterionPlan
    from trialwise.stats.sequential.shipped_designs import DesignCache

#: A design is changed only where that shortens the run by at least this share.
LEAST_SAVING = 0.01
#: From this many criteria on the smallest cap is tried first.
MANY = 4


class CriteriaGroup(NamedTuple):
    """Criteria that share one design."""

    design: SequentialDesign
    criteria: int


@dataclass(frozen=True, slots=True)
class OtherCriteria:
    """The other criteria that need trials of the same sampling."""

    groups: tuple[CriteriaGroup, ...] = ()
    least: int = 0
    """Trials that are run in any case."""


def expected_longest(groups: Sequence[CriteriaGroup], least: int = 0) -> float:
    """Return the expected trials of a run, averaged over the four cases.

    >>> design = SequentialDesign.optimal(0.9, 0.8)
    >>> one, eight = (expected_longest([CriteriaGroup(design, count)]) for count in (1, 8))
    >>> one < 45, eight > 75
    (True, True)
    """
    cases = zip(*(_decided_by_case(group.design) for group in groups), strict=True)
    means = []
    for case in cases:
        cap = max(len(decided) for decided in case)
        mean = 0.0
        for n in range(cap):
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
    others: OtherCriteria | None = None,
    cache: DesignCache | None = None,
) -> SequentialDesign:
    """Choose the design of criteria that share their trials, with the errors of the usual one.

    Args:
        usual: What one such criterion is decided by on its own. It is kept where it may end
            INCONCLUSIVE or decides in batches.
        count: How many criteria have it.
        others: What else needs trials.
        cache: Where designs that do not ship with the package are kept between runs.
    """
    rest = others or OtherCriteria()
    if usual.batch > 1 or not usual.always_decides:
        return usual

    def weigh(design: SequentialDesign) -> float:
        return expected_longest([CriteriaGroup(design, count), *rest.groups], rest.least)

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
        if _is_adjustable(plan):
            design = cast("SequentialDesign", plan.design)
            key = (-design.cap, design.p0, design.p1, design.alpha, design.beta)
            families.setdefault(key, []).append(place)
    # The longest first: what the others do matters less.
    for _, places in sorted(families.items()):
        others = _gather([plan for place, plan in enumerate(chosen) if place not in places], inputs)
        count = len(places) + sum(group.criteria for group in others.groups)
        if count < 2:
            continue
        usual = cast("SequentialDesign", chosen[places[0]].design)
        design = choose_shared(usual, len(places), others=others, cache=cache)
        if design is not usual:
            for place in places:
                chosen[place] = chosen[place].change(
                    design=design, trials=design.cap, shared_by=count
                )
    return chosen


def _is_adjustable(plan: CriterionPlan) -> bool:
    design = plan.design
    return (
        plan.counting.stops_early
        and not plan.counting.each_input
        and isinstance(design, SequentialDesign)
        and design.method is Method.OPTIMAL
        and design.always_decides
    )


def _gather(plans: Sequence[CriterionPlan], inputs: int) -> OtherCriteria:
    groups: list[CriteriaGroup] = []
    least = 0
    for plan in plans:
        if plan.counting.rides_along:
            least = max(least, min(plan.trials, inputs) if plan.counting.asks_every_input else 0)
        elif (
            plan.counting.stops_early
            and not plan.counting.each_input
            and isinstance(plan.design, SequentialDesign)
        ):
            groups.append(CriteriaGroup(plan.design, 1))
        else:
            least = max(least, plan.trials * (inputs if plan.counting.each_input else 1))
    return OtherCriteria(tuple(groups), least)


def _decided_by_case(design: SequentialDesign) -> Iterator[list[float]]:
    """P(decided within n trials), n = 0 … cap, in each of the four cases."""
    for rate in _list_cases(design.p0, design.p1):
        trials = design.operating_characteristic(rate).distribution
        yield [min(1.0, reached) for reached in accumulate(trials)]


def _list_cases(p0: float, p1: float) -> tuple[float, float, float, float]:
    """List the bad rate, midway, the required rate, and one where services usually are."""
    if p0 == p1:  # without a margin, twice the allowed failures and half as many again
        p1 = max(p0 / 2, p0 - (1 - p0))
    return p1, (p0 + p1) / 2, p0, p0 + 0.7 * (1 - p0)
