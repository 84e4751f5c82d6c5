"""The Shewhart chart: one run at a time against exact limits, and what all charts here share.

A monitor watches a stream of runs of one service, each this many successes of this many trials. Its
promise is not an alpha per run but how long it stays quiet while nothing is wrong: the average run
length, in runs, or the chance of an alarm within a horizon (companion §8.5). A Shewhart chart has
no memory and finds large drops at once; CUSUM (`monitoring_cusum`) and EWMA (`monitoring_ewma`)
add up small ones.

Every chart belongs to one reference state. A baseline refresh begins a new epoch and with it a new
chart: nothing is carried over, and the run lengths below hold within an epoch, never across two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, SupportsIndex, TypeAlias

from trialwise.decimals import as_written, at_most
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import exact_tail, raw_cdf, raw_tail
from trialwise.stats.result_types import Undefined
from trialwise.validation import (
    require_choice,
    require_count,
    require_open_rate,
    require_rate,
    require_real,
    require_successes,
)

if TYPE_CHECKING:
    from fractions import Fraction


ChartDirection: TypeAlias = Literal["below", "above", "both"]
"""Which departures of the rate from p0 are to be noticed."""

CHART_DIRECTIONS: tuple[ChartDirection, ...] = ("below", "above", "both")

#: The in-control average run length of a textbook chart with limits at three standard deviations.
USUAL_ARL = 370.0

#: No chart is designed to be quiet for longer.
LONGEST_ARL = 1e12

_SILENT = Undefined("no run can signal at this rate, so there is no mean time to a signal")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShewhartDesign:
    """The limits of a Shewhart chart for runs of one size: made by `shewhart_design`."""

    p0: float
    trials: int
    """Trials of each run."""
    arl: float
    """The in-control average run length asked for."""
    direction: ChartDirection
    lower: int
    """The most successes that signal a low rate; −1: none do."""
    upper: int
    """The fewest successes that signal a high rate; trials + 1: none do."""

    def false_alarm(self) -> float:
        """The exact chance that one run signals while the rate is p0: at most 1/arl."""
        return self._signals(self.p0)

    def average_run_length(self, p: float) -> float | Undefined:
        """The mean number of runs up to the first signal at a true rate p: 1/P(signal)."""
        chance = self._signals(require_rate("p", p))
        return 1 / chance if chance else _SILENT

    def alarm_probability(self, p: float, *, runs: SupportsIndex) -> float:
        """P(a signal within this many runs) at a true rate p: 1 − (1 − P(signal))^runs."""
        horizon = require_count("runs", runs, minimum=1)
        chance = self._signals(require_rate("p", p))
        return -math.expm1(horizon * math.log1p(-chance)) if chance < 1 else 1.0

    def chart(self, *, epoch: int = 1) -> ShewhartChart:
        """An empty chart for one reference state."""
        return ShewhartChart(design=self, epoch=epoch)

    def _signals(self, p: float) -> float:
        return min(1.0, raw_cdf(self.lower, self.trials, p) + raw_tail(self.upper, self.trials, p))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShewhartChart:
    """The chart after some runs: a value that `update` replaces.

    Examples
    --------
    >>> chart = shewhart_design(0.9, 50).chart()
    >>> chart.update(45).signal, chart.update(37).signal
    (None, 'below')
    """

    design: ShewhartDesign
    epoch: int = 1
    runs: int = 0
    signal: Literal["below", "above"] | None = None
    """What the last run signalled."""

    def __post_init__(self) -> None:
        require_count("epoch", self.epoch, minimum=1)
        require_count("runs", self.runs)

    def update(
        self, successes: SupportsIndex, trials: SupportsIndex | None = None
    ) -> ShewhartChart:
        """The chart after one more run.

        A run of another size is held against the exact limits for that size, so that the
        false-alarm probability of every run stays at most 1/arl.
        """
        design = self.design
        n = design.trials if trials is None else require_count("trials", trials, minimum=1)
        s, n = require_successes(successes, n)
        if n != design.trials:
            design = shewhart_design(design.p0, n, arl=design.arl, direction=design.direction)
        signal: Literal["below", "above"] | None = None
        if s <= design.lower:
            signal = "below"
        elif s >= design.upper:
            signal = "above"
        return replace(self, runs=self.runs + 1, signal=signal)

    def next_epoch(self, design: ShewhartDesign) -> ShewhartChart:
        """The empty chart of the next reference state, after a baseline refresh."""
        return design.chart(epoch=self.epoch + 1)


def shewhart_design(
    p0: float, trials: SupportsIndex, *, arl: float = USUAL_ARL, direction: ChartDirection = "below"
) -> ShewhartDesign:
    """The limits of a chart that judges each run alone, with exact binomial tails.

    A run signals when its count of successes is so low (or high) that P_p0(as extreme) ≤ 1/arl;
    with "both", half of that on each side. The textbook limits p0 ± 3√(p0(1−p0)/n) promise the
    same from a normal approximation that fails for the rates and sizes of interest here.

    Parameters
    ----------
    p0 : float
        The rate of the reference state, strictly between 0 and 1, taken as known.
    trials : int
        Trials of each run, at least 1.
    arl : float
        The least average run length while the rate is p0: above 1, at most 1e12.
    direction : {"below", "above", "both"}
        Which departures signal.

    References
    ----------
    Shewhart 1931; companion §8.5.

    Examples
    --------
    >>> design = shewhart_design(0.9, 50)
    >>> design.lower, round(design.average_run_length(0.9))
    (37, 995)
    >>> round(design.average_run_length(0.7), 1)
    1.3
    """
    rate = require_open_rate("p0", p0)
    n = require_count("trials", trials, minimum=1)
    length = check_arl(arl)
    side = require_choice("direction", direction, CHART_DIRECTIONS)
    share = 2 if side == "both" else 1
    exactly = as_written(rate)
    # Counted from their own end, few successes and few failures are the same problem.
    few_successes = _rare_count(
        n,
        share * length,
        lambda count: raw_cdf(count, n, rate),
        lambda count: exact_tail(n - count, n, 1 - exactly),
    )
    few_failures = _rare_count(
        n,
        share * length,
        lambda count: raw_tail(n - count, n, rate),
        lambda count: exact_tail(n - count, n, exactly),
    )
    return ShewhartDesign(
        p0=rate,
        trials=n,
        arl=length,
        direction=side,
        lower=-1 if side == "above" else few_successes,
        upper=n + 1 if side == "below" else n - few_failures,
    )


def check_arl(arl: float) -> float:
    """An average run length to aim for: above 1, and no more than a stream will ever have."""
    length = require_real("arl", arl)
    if not 1 < length <= LONGEST_ARL:
        raise InvalidArgument("arl", arl, f"be above 1 and at most {LONGEST_ARL:.0e}")
    return length


def _rare_count(
    n: int, arl: float, tail: Callable[[int], float], exact: Callable[[int], Fraction]
) -> int:
    """The largest count with a tail probability of at most 1/arl, ties decided in rationals."""
    rare, common = -1, n
    while common - rare > 1:
        middle = (rare + common) // 2
        if at_most(tail(middle) * arl, 1.0, lambda c=middle: exact(c) * as_written(arl)):  # type: ignore[misc]
            rare = middle
        else:
            common = middle
    return rare
