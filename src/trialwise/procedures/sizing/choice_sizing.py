"""What a choice between arms will take and say, in the situations that a user has in mind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trialwise.documents.numbers import as_points
from trialwise.errors import InvalidArgument
from trialwise.stats.toolbox.choice_forecast import ChoiceForecast, forecast_choice
from trialwise.validation import require_count, require_open_rate

#: The rate of the best arm, unless given.
EXPECTED = 0.9
#: Simulated choices: few enough for a second or two. A choice by a smaller difference takes longer.
_RUNS, _FEW_RUNS, _COARSE = 100, 40, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicePlan:
    """What to expect of a choice."""

    arms: int
    smallest_difference: float
    confidence: float
    break_ties: bool
    max_rounds: int
    forecasts: tuple[tuple[str, ChoiceForecast], ...]
    """What is assumed, and what comes of it."""


def plan_choice(
    arms: int,
    *,
    smallest_difference: float = 0.1,
    confidence: float = 0.95,
    break_ties: bool = False,
    max_rounds: int = 1000,
    rates: Sequence[float] = (),
) -> ChoicePlan:
    """Forecast a choice by simulation.

    Args:
        arms: How many there are.
        smallest_difference: The smallest difference that matters.
        confidence: Of the choice.
        break_ties: Whether the last arm is chosen at once.
        max_rounds: The most rounds.
        rates: The rate of each arm; a single one is that of the best arm.

    >>> plan = plan_choice(2, smallest_difference=0.3, rates=(0.9,))
    >>> [assumed for assumed, _ in plan.forecasts]
    ['one arm 30 points better', 'one arm 60 points better', 'all equal']
    """
    require_count("arms", arms, minimum=2)
    require_open_rate("smallest_difference", smallest_difference)
    if len(rates) not in (0, 1, arms):
        allowed = f"be one rate, or one for each of {arms} arms"
        raise InvalidArgument("rates", list(rates), allowed)
    runs = _RUNS if smallest_difference >= _COARSE else _FEW_RUNS
    forecasts = tuple(
        (
            assumed,
            forecast_choice(
                several,
                smallest_difference=smallest_difference,
                alpha=1 - confidence,
                break_ties=break_ties,
                max_rounds=max_rounds,
                runs=runs,
            ),
        )
        for assumed, several in _list_situations(arms, smallest_difference, rates)
    )
    return ChoicePlan(
        arms=arms,
        smallest_difference=smallest_difference,
        confidence=confidence,
        break_ties=break_ties,
        max_rounds=max_rounds,
        forecasts=forecasts,
    )


def _list_situations(
    arms: int, difference: float, rates: Sequence[float]
) -> Iterator[tuple[str, tuple[float, ...]]]:
    if len(rates) == arms:
        yield "the rates you expect", tuple(rates)
        return
    best = rates[0] if rates else EXPECTED
    for times in (1, 2):
        gap = times * difference
        if best - gap > 0:
            yield f"one arm {as_points(gap)} better", (best, *[best - gap] * (arms - 1))
    yield "all equal", (best,) * arms
