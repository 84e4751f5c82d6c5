"""Sizes beside those of pairs: two arms on separate inputs, and a choice between several arms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trialwise.documents.numbers import as_points
from trialwise.errors import InvalidArgument
from trialwise.procedures.sizing.sizing_base import SizingPlan
from trialwise.stats.binomial import find_first, normal_quantile, upper_z
from trialwise.stats.regression_cutoffs import design_power
from trialwise.stats.toolbox.choice_forecast import ChoiceForecast, forecast_choice
from trialwise.validation import require_count, require_open_rate

#: Beyond this many trials of an arm a test suite is not the instrument.
MOST_TRIALS = 50_000


class UnpairedSize(NamedTuple):
    """Two separate runs of equal size, decided by Fisher's exact test."""

    trials_each: int | None
    """The fewest trials from which the power is kept; None beyond 50,000."""
    power: float | None
    normal_trials_each: int


def unpaired_size(
    better: float, worse: float, *, alpha: float = 0.05, power: float = 0.80
) -> UnpairedSize:
    """Return the equal sizes at which Fisher's one-sided exact test tells two rates apart.

    >>> unpaired_size(0.9, 0.7).trials_each
    56
    """
    pooled, z_alpha, z_beta = (better + worse) / 2, upper_z(alpha), normal_quantile(power)
    # Without a correction for continuity: the exact size stands beside it and needs none.
    # ⌈((z_α √(2 p̄ q̄) + z_β √(p_A q_A + p_B q_B)) / δ)²⌉ for each of the two.
    root = z_alpha * math.sqrt(2 * pooled * (1 - pooled))
    root += z_beta * math.sqrt(better * (1 - better) + worse * (1 - worse))
    normal = max(1, math.ceil((max(0.0, root) / (better - worse)) ** 2))

    def power_at(n: int) -> float:
        return design_power(better, worse, n, n, alpha=alpha, rule="fisher")

    # Boschloo's test is never less powerful than Fisher's (Boschloo 1970), so that a test decided
    # by it needs no more trials than these.
    trials = _find_kept_size(power_at, power, normal)
    return UnpairedSize(
        trials_each=trials,
        power=None if trials is None else power_at(trials),
        normal_trials_each=normal,
    )


def find_size(has_power: Callable[[int], bool], guess: int, most: int) -> int | None:
    """Find a size that has the power next to one that has not; None beyond the most.

    Args:
        has_power: Rises with the size but for a small sawtooth, so that the caller looks around.
        guess: Where to begin.
        most: The largest size that is looked at.
    """
    low, high = 0, max(1, guess)
    while high <= most:
        if has_power(high):
            return find_first(low, high, has_power)
        low, high = high, high + max(8, high // 4)
    return None


def _find_kept_size(power_at: Callable[[int], float], target: float, guess: int) -> int | None:
    """Find the fewest trials from which the power stays, as far as a tenth more trials tell."""
    high = find_size(lambda n: power_at(n) >= target, guess, MOST_TRIALS)
    if high is None:
        return None
    # Fisher's test is conditional on the total of successes, so that its size jumps with every
    # trial.
    # The power of a discrete test goes up and down by a few trials: the last dip counts.
    reach = 10 + min(100, high // 10)
    short = [n for n in range(max(1, high - reach), high + reach) if power_at(n) < target]
    return max(short, default=0) + 1


# --- What a choice between arms will take and say, in the situations that a user has in mind ------

#: The rate of the best arm, unless given.
EXPECTED = 0.9
#: Simulated choices: few enough for a second or two. A choice by a smaller difference takes longer.
_RUNS, _FEW_RUNS, _COARSE = 100, 40, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicePlan(SizingPlan):
    """What to expect of a choice."""

    form = "choice"

    arms: int
    smallest_difference: float
    confidence: float
    break_ties: bool
    max_rounds: int
    forecasts: tuple[tuple[str, ChoiceForecast], ...]
    """What is assumed, and what comes of it."""


def plan_choice(
    arms: int = 2,
    *,
    smallest_difference: float = 0.1,
    confidence: float = 0.95,
    break_ties: bool = False,
    max_rounds: int = 1000,
    rates: Sequence[float] = (),
) -> ChoicePlan:
    """What will a choice between several arms take and say, by simulation?

    Args:
        arms: How many there are.
        smallest_difference: The smallest difference that matters.
        confidence: Of the choice.
        break_ties: Whether the last arm is chosen at once.
        max_rounds: The most rounds.
        rates: The rate of each arm; a single one is that of the best arm.
    """
    require_count("arms", arms, minimum=2)
    require_open_rate("smallest_difference", smallest_difference)
    if len(rates) not in (0, 1, arms):
        allowed = f"be one rate, or one for each of {arms} arms"
        raise InvalidArgument("rates", list(rates), allowed)
    # A choice by a smaller difference takes quadratically more rounds, in a simulation as well.
    runs = _RUNS if smallest_difference >= _COARSE else _FEW_RUNS
    asked: Any = {
        "smallest_difference": smallest_difference,
        "break_ties": break_ties,
        "max_rounds": max_rounds,
    }
    forecasts = tuple(
        (assumed, forecast_choice(several, alpha=1 - confidence, runs=runs, **asked))
        for assumed, several in _list_situations(arms, smallest_difference, rates)
    )
    return ChoicePlan(arms=arms, confidence=confidence, forecasts=forecasts, **asked)


def _list_situations(
    arms: int, difference: float, rates: Sequence[float]
) -> Iterator[tuple[str, tuple[float, ...]]]:
    if len(rates) == arms:
        yield "the rates you expect", tuple(rates)
        return
    best = rates[0] if rates else EXPECTED
    # Twice the smallest difference shows how much faster a plain winner is found.
    for times in (1, 2):
        gap = times * difference
        if best - gap > 0:
            yield f"one arm {as_points(gap)} better", (best, *[best - gap] * (arms - 1))
    yield "all equal", (best,) * arms
