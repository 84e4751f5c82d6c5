"""A plan in counts, before the first trial: what PASSes, what FAILs, and how likely each is.

Nothing here is decided or drawn: every chance is exact for trials with one true rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from trialwise.model.plan import CriterionPlan, Plan
from trialwise.procedures.base import Chance
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
    """Of all its streams together."""
    chances: tuple[Chance, ...] = ()
    advisory: tuple[str, ...] = ()
    """Why it will decide nothing, where it can only advise."""
    labels: int | None = None
    """How many labels its judge's errors were measured on: the corrected rate has to agree."""


def forecast(plan: Plan) -> tuple[Forecast, ...]:
    """Every criterion's rule in counts, with its exact chances at the rates that matter."""
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
        rule=procedure.describe_rule(criterion),
        streams=streams,
        max_trials=criterion.trials * streams,
        chances=tuple(chances),
        advisory=criterion.advisory,
        labels=None if criterion.errors is None else criterion.errors.labels,
    )
