"""What a choice between arms will probably take and say, at rates that somebody assumes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from trialwise.errors import InvalidArgument
from trialwise.stats.arm_selection import ArmSelection
from trialwise.validation import require_count, require_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceForecast:
    """The outcomes of simulated choices: all shares are of runs, and each has a sampling error."""

    rates: tuple[float, ...]
    chosen: tuple[float, ...]
    """How often each arm is chosen."""
    tied: float
    undecided: float
    mean_trials: float
    """Of all arms together."""
    trials_error: float
    """The standard error of `mean_trials`."""
    most_trials: int
    """What at most 5 % of the runs exceed."""
    runs: int


def forecast_choice(
    rates: Sequence[float],
    *,
    smallest_difference: float,
    alpha: float = 0.05,
    break_ties: bool = False,
    max_rounds: int = 1000,
    runs: int = 200,
    seed: int = 1,
) -> ChoiceForecast:
    """Simulate choices between independent arms.

    Args:
        rates: The rate of every arm.
        smallest_difference: See `ArmSelection`.
        alpha: See `ArmSelection`.
        break_ties: See `ArmSelection`.
        max_rounds: A choice that takes more rounds is undecided.
        runs: How many choices are simulated.
        seed: The same seed gives the same forecast.

    Examples:
        >>> forecast = forecast_choice((0.9, 0.5), smallest_difference=0.2, runs=20)
        >>> forecast.chosen[0] > 0.9
        True
    """
    every = tuple(require_rate("rates", rate) for rate in rates)
    if len(every) < 2:
        raise InvalidArgument("rates", list(rates), "be of two arms or more")
    require_count("runs", runs, minimum=1)
    chance = Random(seed)
    taken: list[int] = []
    outcomes: Counter[int | str] = Counter()
    for _ in range(runs):
        selection = ArmSelection(
            len(every), smallest_difference=smallest_difference, alpha=alpha, break_ties=break_ties
        )
        rounds = 0
        while selection.outcome is None and rounds < max_rounds:
            selection.add_round({arm: chance.random() < every[arm] for arm in selection.next_arms})
            rounds += 1
        taken.append(selection.trials)
        chosen = selection.chosen
        outcomes[(selection.outcome or "undecided") if chosen is None else chosen] += 1
    mean = math.fsum(taken) / runs
    variance = math.fsum((one - mean) ** 2 for one in taken) / max(1, runs - 1)
    return ChoiceForecast(
        rates=every,
        chosen=tuple(outcomes[arm] / runs for arm in range(len(every))),
        tied=outcomes["tied"] / runs,
        undecided=outcomes["undecided"] / runs,
        mean_trials=mean,
        trials_error=math.sqrt(variance / runs),
        most_trials=sorted(taken)[math.ceil(0.95 * runs) - 1],
        runs=runs,
    )
