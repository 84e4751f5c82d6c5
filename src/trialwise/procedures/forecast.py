"""A plan in counts, before the first trial: what PASSes, what FAILs, and how likely each is.

Nothing here is decided or drawn: every chance is exact for trials with one true rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from trialwise.model.plan import CriterionPlan, Plan
from trialwise.procedures.base import Chance
from trialwise.procedures.planned_looks import describe_looks
from trialwise.procedures.registry import find_procedure


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One criterion's rule in counts."""

    criterion: str
    procedure: str
    rule: str
    """PASS and FAIL in numbers of trials."""
    streams: int = 1
    """How many inputs are decided on their own by this rule."""
    max_trials: int
    """The upper limit on trials over all of its streams."""
    chances: tuple[Chance, ...] = ()
    advisory: tuple[str, ...] = ()
    """Why it will decide nothing, where it can only advise."""
    labels: int | None = None
    """How many labels its judge's errors were measured on: the corrected rate has to agree."""


def forecast(plan: Plan) -> tuple[Forecast, ...]:
    """Return every criterion's rule in counts, with its exact chances at the rates that matter."""
    inputs = {one.name: len(one.input_ids) for one in plan.experiments}
    return tuple(_criterion(one, inputs[one.experiment]) for one in plan.criteria)


def _criterion(criterion: CriterionPlan, inputs: int) -> Forecast:
    streams = inputs if criterion.each_input else 1
    procedure = find_procedure(criterion.procedure)
    # The labels of a judge have a part in every verdict: no rate says how likely it is.
    chances = procedure.forecast(criterion) if criterion.errors is None else ()
    return Forecast(
        criterion=criterion.criterion,
        procedure=criterion.procedure,
        rule=procedure.describe_rule(criterion) + describe_looks(criterion),
        streams=streams,
        max_trials=criterion.trials * streams,
        chances=tuple(chances),
        # Its rule says already that it is only reported.
        advisory=criterion.advisory[criterion.reported_at is not None :],
        labels=None if criterion.errors is None else criterion.errors.labels,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitingCriteria:
    """Which criteria of a sampling need the most trials, so that they set their number."""

    experiment: str
    criteria: tuple[str, ...]
    trials: int
    """What they need at most."""
    others: int
    """How many criteria share the trials."""
    further: int = 0
    """Trials besides, so that every input is asked."""


def find_limiting(plan: Plan) -> tuple[LimitingCriteria, ...]:
    """Find the criteria that set the number of trials of each sampling with several (§1.4.7)."""
    found = []
    for one in plan.experiments:
        criteria = plan.criteria_of(one.name)
        if len(criteria) < 2:
            continue
        needs = {
            each.criterion: each.trials * (len(one.input_ids) if each.each_input else 1)
            for each in criteria
            if not each.rides_along
        }
        most = max(needs.values(), default=0)
        names = tuple(name for name, trials in needs.items() if trials == most)
        found.append(
            LimitingCriteria(
                experiment=one.name,
                criteria=names,
                trials=most,
                others=len(criteria) - len(names),
                further=max(0, one.trials - most),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """How likely all decisions of a run or a suite are to PASS, under one condition."""

    condition: str
    decisions: int
    passes: float
    """All PASS, if the decisions are independent."""
    least_passes: float
    """All PASS at least so often, whatever their dependence."""
    none_fails: float
    """None FAILs, if the decisions are independent."""
    least_none_fails: float


#: What a chance stands for, under either condition; a comparison has one where nothing changed.
_CONDITIONS = {
    "if every rate is exactly as required": ("as required", "nothing changed"),
    "if every rate has half the allowed failures": (
        "half the allowed failures",
        "midway to perfect",
        "nothing changed",
    ),
}


def forecast_together(plans: Iterable[Plan]) -> tuple[Together, ...]:
    """Return the chances of all decisions together; nothing where there are fewer than two.

    Criteria that advise, and those whose chances depend on more than a rate, are left out.
    """
    found = [one for plan in plans for one in forecast(plan) if not one.advisory and one.chances]
    together = []
    for condition, meanings in _CONDITIONS.items():
        chances = [
            (one.streams, chance)
            for one in found
            for chance in one.chances
            if chance.meaning in meanings
        ]
        decisions = sum(streams for streams, _ in chances)
        if decisions < 2:
            continue
        together.append(
            Together(
                condition=condition,
                decisions=decisions,
                passes=math.prod(one.passes**streams for streams, one in chances),
                least_passes=_bound(streams * (1 - one.passes) for streams, one in chances),
                none_fails=math.prod((1 - one.fails) ** streams for streams, one in chances),
                least_none_fails=_bound(streams * one.fails for streams, one in chances),
            )
        )
    return tuple(together)


def _bound(misses: Iterable[float]) -> float:
    """Return how often several events at least all happen, given how often each does not."""
    return max(0.0, 1 - math.fsum(misses))
