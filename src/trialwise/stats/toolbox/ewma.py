"""The EWMA chart: a running average in which old runs fade, for drifts as much as for steps.

Its own module because its one knob is another: the weight of the newest run instead of the rate to
notice. The average is kept on a fine grid of whole numbers, so that its run lengths are those of a
finite Markov chain and exact for the chart as it is run; the grid moves the average by at most a
tenth of its standard deviation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.cusum import DEPARTURES, Departure
from trialwise.stats.toolbox.run_lengths import (
    Moves,
    alarm_probability,
    likely_counts,
    mean_run_length,
    smallest_limit,
)
from trialwise.stats.toolbox.shewhart import USUAL_ARL, check_arl
from trialwise.validation import (
    require_choice,
    require_count,
    require_open_rate,
    require_rate,
    require_real,
    require_successes,
)

#: Grid points in one standard deviation of the average: at least this many, and 5/weight, since
#: each rounding by half a point is remembered for 1/weight runs.
_FINEST = 25
_MOST_STATES = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EwmaDesign:
    """A one-sided EWMA: E ← max(0, (1 − weight) E + weight · departure), a signal at E ≥ limit.

    E is the average departure of the rate from p0 in the watched direction, in units of 1/grid and
    rounded to whole ones. Made by `ewma_design`.
    """

    p0: float
    trials: int
    """Trials of each run."""
    weight: float
    arl: float
    """The in-control average run length asked for."""
    direction: Departure
    grid: int
    """Grid points in a departure of 1."""
    limit: int

    @property
    def limit_rate(self) -> float:
        """The averaged rate at which the chart signals."""
        return self._rate(self.limit)

    def average_run_length(self, p: float) -> float | Undefined:
        """The mean number of runs up to the signal when the rate is p from the start, exactly."""
        return mean_run_length(self._moves(require_rate("p", p)), self.limit)

    def alarm_probability(self, p: float, *, runs: SupportsIndex) -> float:
        """P(a signal within this many runs) when the rate is p from the start, exactly."""
        horizon = require_count("runs", runs, minimum=1)
        return alarm_probability(self._moves(require_rate("p", p)), self.limit, horizon)

    def chart(self, *, epoch: int = 1) -> EwmaChart:
        """An empty chart for one reference state."""
        return EwmaChart(design=self, epoch=epoch)

    def _rate(self, statistic: int) -> float:
        departure = statistic / self.grid
        return self.p0 - departure if self.direction == "below" else self.p0 + departure

    def _departures(self) -> list[float]:
        """What each count of successes adds to the average, in grid points."""
        sign = -1 if self.direction == "below" else 1
        return [
            self.weight * self.grid * sign * (s / self.trials - self.p0)
            for s in range(self.trials + 1)
        ]

    def _moves(self, p: float) -> Moves:
        counts, departures = likely_counts(self.trials, p), self._departures()

        def moves(state: int) -> dict[int, float]:
            targets: dict[int, float] = {}
            for successes, weight in counts:
                target = _next(state, departures[successes], self.weight)
                targets[target] = targets.get(target, 0.0) + weight
            return targets

        return moves


@dataclass(frozen=True, slots=True, kw_only=True)
class EwmaChart:
    """The chart after some runs: a value that `update` replaces.

    After a signal the average stands until `restart`; the promised run lengths are those up to the
    first signal.

    Examples
    --------
    >>> chart = ewma_design(0.9, 50).chart()
    >>> for successes in (46, 44, 40, 39, 41, 40):
    ...     chart = chart.update(successes)
    >>> chart.signal, round(chart.average, 3)
    (True, 0.84)
    """

    design: EwmaDesign
    epoch: int = 1
    runs: int = 0
    statistic: int = 0
    """The average departure, in grid points."""

    def __post_init__(self) -> None:
        require_count("epoch", self.epoch, minimum=1)
        require_count("runs", self.runs)
        require_count("statistic", self.statistic)

    @property
    def average(self) -> float:
        """The averaged rate, at p0 when nothing points in the watched direction."""
        return self.design._rate(self.statistic)

    @property
    def signal(self) -> bool:
        """Whether the average has reached the limit."""
        return self.statistic >= self.design.limit

    def update(self, successes: SupportsIndex) -> EwmaChart:
        """The chart after one more run of the design's size."""
        design = self.design
        s, _ = require_successes(successes, design.trials)
        statistic = _next(self.statistic, design._departures()[s], design.weight)
        return replace(self, runs=self.runs + 1, statistic=statistic)

    def restart(self) -> EwmaChart:
        """The chart with its average at p0 again, in the same epoch, after a signal."""
        return replace(self, statistic=0)

    def next_epoch(self, design: EwmaDesign) -> EwmaChart:
        """The empty chart of the next reference state, after a baseline refresh."""
        return design.chart(epoch=self.epoch + 1)


def ewma_design(
    p0: float,
    trials: SupportsIndex,
    *,
    weight: float = 0.2,
    arl: float = USUAL_ARL,
    direction: Departure = "below",
) -> EwmaDesign:
    """The EWMA that is quiet for `arl` runs on average while the rate is p0.

    One-sided: the average is held at p0 when it would pass to the other side, so that a good
    stretch cannot hide a later drop (Crowder & Hamilton 1992). The limit is the smallest on the
    grid with an in-control average run length of at least `arl`. Watch both directions with two
    charts.

    Parameters
    ----------
    p0 : float
        The rate of the reference state, strictly between 0 and 1, taken as known.
    trials : int
        Trials of each run, at least 1; all runs have the same.
    weight : float
        The weight of the newest run, from 0.05 to 1. Small weights find small changes, 1 is a
        Shewhart chart.
    arl : float
        The least average number of runs up to a false signal: above 1, at most 1e12.
    direction : {"below", "above"}
        Which departure is averaged.

    References
    ----------
    Roberts 1959; Crowder & Hamilton 1992; Brook & Evans 1972.

    Examples
    --------
    >>> design = ewma_design(0.9, 50)
    >>> round(design.limit_rate, 3), round(design.average_run_length(0.9))
    (0.858, 371)
    >>> round(design.average_run_length(0.8), 1)
    3.1
    """
    rate = require_open_rate("p0", p0)
    n = require_count("trials", trials, minimum=1)
    newest = _check_weight(weight)
    length = check_arl(arl)
    side = require_choice("direction", direction, DEPARTURES)
    deviation = math.sqrt(rate * (1 - rate) / n * newest / (2 - newest))
    design = EwmaDesign(
        p0=rate,
        trials=n,
        weight=newest,
        arl=length,
        direction=side,
        grid=math.ceil(max(_FINEST, 5 / newest) / deviation),
        limit=1,
    )
    limit, mean = smallest_limit(design._moves(rate), length, _MOST_STATES) or (1, math.inf)
    if not math.isfinite(mean):
        raise InvalidArgument(
            "arl",
            arl,
            f"be smaller: no departure {side} p0 is as rare as that in runs of {n} trials",
        )
    return replace(design, limit=limit)


def _next(statistic: int, departure: float, weight: float) -> int:
    # One expression for the chart and for its Markov chain: they can never disagree.
    return max(0, round((1 - weight) * statistic + departure))


def _check_weight(weight: float) -> float:
    newest = require_real("weight", weight)
    if not 0.05 <= newest <= 1:
        raise InvalidArgument("weight", weight, "lie between 0.05 and 1")
    return newest
