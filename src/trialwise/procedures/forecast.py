"""A plan in counts, before the first trial: what PASSes, what FAILs, and how likely each is.

Nothing here is decided or drawn: every chance is exact for trials with one true rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trialwise.decimals import as_written
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Procedure
from trialwise.stats.compliance_cutoffs import ComplianceCutoff

if TYPE_CHECKING:
    from trialwise.stats.sequential import SequentialDesign

__all__ = ["Chance", "Forecast", "forecast"]

#: Failure rates that a person thinks of when nothing is claimed about any.
_RARE_FAILURES = (0.001, 0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """What a rule does where the true rate is so high."""

    rate: float
    meaning: str
    """What this rate stands for, such as "as required"."""
    passes: float
    fails: float
    inconclusive: float = 0.0
    mean_trials: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One criterion's rule in counts."""

    criterion: str
    procedure: Procedure
    rule: str
    """PASS and FAIL in numbers of trials."""
    streams: int = 1
    """How many inputs are judged on their own by this rule."""
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
    return Forecast(
        criterion=criterion.criterion,
        procedure=criterion.procedure,
        rule=_rule(criterion),
        streams=streams,
        max_trials=criterion.trials * streams,
        chances=tuple(_chances(criterion)),
        advisory=criterion.advisory,
        labels=None if criterion.errors is None else criterion.errors.labels,
    )


def _rule(criterion: CriterionPlan) -> str:
    boundaries, n = criterion.limits.design, criterion.trials
    if boundaries is not None:
        return _sequential_rule(boundaries)
    if criterion.procedure is Procedure.SEQUENTIAL:
        good, bad = criterion.threshold.required_rate, criterion.threshold.alternative_rate
        return f"PASS where {n} trials show a corrected rate above {bad:g}, FAIL below {good:g}"
    return _fixed_rule(criterion, n)


def _fixed_rule(criterion: CriterionPlan, n: int) -> str:
    if criterion.procedure is Procedure.OBSERVATIONAL:
        size = "however many trials the other criteria need" if criterion.rides_along else f"{n}"
        return f"PASS without a failure in {size}, FAIL with one"
    if criterion.estimator is not None:
        return f"PASS where the {criterion.estimator} bound after {n} trials reaches the rate"
    if criterion.decision_rule == "no-generalisation/observed-rate":
        return f"PASS where the observed rate of {n} trials reaches the required one"
    if criterion.cutoff is None or criterion.cutoff > n:
        return f"no count of {n} trials would PASS"
    return f"PASS with at least {criterion.cutoff} of {n}, FAIL with at most {criterion.cutoff - 1}"


def _sequential_rule(design: SequentialDesign) -> str:
    first = next((n for n in range(1, design.cap + 1) if design.accept[n] >= 0), None)
    last = next((n for n in range(1, design.cap + 1) if design.reject[n] <= n), None)
    parts = []
    if first is not None:
        parts.append(f"PASS after {first} of {first} at the earliest")
    if last is not None:
        parts.append(f"FAIL after {design.reject[last]} failures in {last} at the earliest")
    cap, accept, reject = design.cap, design.accept[design.cap], design.reject[design.cap]
    end = f"after {cap} trials PASS with at least {cap - accept}, FAIL with at most {cap - reject}"
    if not design.always_decides:
        end += ", between: INCONCLUSIVE"
    return "; ".join([*parts, end])


def _chances(criterion: CriterionPlan) -> Iterator[Chance]:
    design, boundaries = criterion.design, criterion.limits.design
    if criterion.errors is not None:
        return  # the labels of its judge have a part in every verdict: no rate tells its chance
    if boundaries is not None:
        yield from _sequential(boundaries)
    elif isinstance(design, ComplianceCutoff) and criterion.cutoff is not None:
        required = design.required_rate
        midway = float((as_written(required) + 1) / 2)
        for rate, meaning in ((required, "as required"), (midway, "midway to perfect")):
            passes = design.power(rate)
            yield Chance(rate=rate, meaning=meaning, passes=passes, fails=1 - passes)
    elif criterion.procedure is Procedure.REGRESSION:
        yield from _regression(criterion)
    elif criterion.procedure is Procedure.OBSERVATIONAL and not criterion.rides_along:
        for failure in _RARE_FAILURES:
            passes = (1 - failure) ** criterion.trials
            meaning = f"one failure in {round(1 / failure):,}"
            yield Chance(rate=1 - failure, meaning=meaning, passes=passes, fails=1 - passes)


def _sequential(design: SequentialDesign) -> Iterator[Chance]:
    for rate, meaning in ((design.p0, "as required"), (design.p1, "the margin below")):
        found = design.operating_characteristic(rate)
        yield Chance(
            rate=rate,
            meaning=meaning,
            passes=found.passes,
            fails=found.fails,
            inconclusive=found.inconclusive,
            mean_trials=found.mean_trials,
        )


def _regression(criterion: CriterionPlan) -> Iterator[Chance]:
    from trialwise.stats.regression_cutoffs import RegressionCutoff

    design = criterion.design
    if not isinstance(design, RegressionCutoff):
        return
    alarm = design.design_false_alarm
    if alarm is not None:
        yield Chance(
            rate=design.reference_rate, meaning="nothing changed", passes=1 - alarm, fails=alarm
        )
    alternative = criterion.threshold.alternative_rate
    signal = None if alternative is None else design.power(alternative)
    if alternative is not None and signal is not None:
        yield Chance(rate=alternative, meaning="the margin below", passes=1 - signal, fails=signal)
