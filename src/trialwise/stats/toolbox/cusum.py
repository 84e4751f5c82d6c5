"""The CUSUM chart: a small lasting change of the rate, found about as soon as it can be.

Its own module because the chart is a rule of whole numbers: each failure adds a fixed number of
steps and each run takes some off, never below 0. Rounding the log-likelihood ratio to steps tunes
the chart to a rate a hair off the one asked for, which is reported, and makes its run lengths
exact: no grid stands between the chart that is run and the one that is analysed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.run_lengths import (
    Moves,
    alarm_probability,
    likely_counts,
    mean_run_length,
    smallest_limit,
)
from trialwise.stats.toolbox.shewhart import USUAL_ARL, check_arl
from trialwise.validation import require_count, require_open_rate, require_rate, require_successes

Departure: TypeAlias = Literal["below", "above"]
"""Which departure of the rate from p0 a chart accumulates."""

DEPARTURES: tuple[Departure, ...] = ("below", "above")

#: A step is at most this much of log-likelihood ratio: it sets how finely a run length can be met.
_FINEST = 0.15
#: How far the rate a chart is tuned to may lie from p1, as a share of the distance from p0.
_TUNING = 0.02
_MOST_STEPS = 20_000
#: The largest limit tried, and the multiplications it may cost: a few seconds. A chart that needs
#: more watches for a change too small to be found in any useful number of runs of this size.
_MOST_STATES = 5_000
_MOST_WORK = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CusumDesign:
    """A CUSUM of whole numbers: S ← max(0, S + step · events − drift), a signal at S ≥ limit.

    Events are failures when a drop is watched for, successes when a rise is. Made by
    `cusum_design`.
    """

    p0: float
    p1: float
    """The rate to notice, as asked for."""
    tuned_to: float
    """The rate the whole-number steps are the log-likelihood ratio of, close to p1."""
    trials: int
    """Trials of each run; 1 is a Bernoulli CUSUM over single trials."""
    arl: float
    """The in-control average run length asked for."""
    step: int
    drift: int
    limit: int

    @property
    def direction(self) -> Departure:
        """Which departure signals: it follows from p1."""
        return "below" if self.p1 < self.p0 else "above"

    def average_run_length(self, p: float) -> float | Undefined:
        """The mean number of runs up to the signal when the rate is p from the start, exactly."""
        return mean_run_length(self._moves(require_rate("p", p)), self.limit)

    def alarm_probability(self, p: float, *, runs: SupportsIndex) -> float:
        """P(a signal within this many runs) when the rate is p from the start, exactly."""
        horizon = require_count("runs", runs, minimum=1)
        return alarm_probability(self._moves(require_rate("p", p)), self.limit, horizon)

    def chart(self, *, epoch: int = 1) -> CusumChart:
        """An empty chart for one reference state."""
        return CusumChart(design=self, epoch=epoch)

    def _moves(self, p: float) -> Moves:
        event = 1 - p if self.direction == "below" else p
        return _moves(likely_counts(self.trials, event), self.step, self.drift)


@dataclass(frozen=True, slots=True, kw_only=True)
class CusumChart:
    """The chart after some runs: a value that `update` replaces.

    After a signal the sum stands until `restart`; the promised run lengths are those up to the
    first signal.

    Examples
    --------
    >>> chart = cusum_design(0.9, 0.8, trials=50).chart()
    >>> for successes in (46, 44, 40, 39, 41):
    ...     chart = chart.update(successes)
    >>> chart.signal, chart.last_zero
    (True, 2)
    """

    design: CusumDesign
    epoch: int = 1
    runs: int = 0
    statistic: int = 0
    last_zero: int = 0
    """The last run that left the sum at 0: the change, if it is one, most likely came after it."""

    def __post_init__(self) -> None:
        require_count("epoch", self.epoch, minimum=1)
        for name in ("runs", "statistic", "last_zero"):
            require_count(name, getattr(self, name))

    @property
    def signal(self) -> bool:
        """Whether the sum has reached the limit."""
        return self.statistic >= self.design.limit

    def update(self, successes: SupportsIndex) -> CusumChart:
        """The chart after one more run of the design's size."""
        design = self.design
        s, n = require_successes(successes, design.trials)
        events = n - s if design.direction == "below" else s
        total = max(0, self.statistic + design.step * events - design.drift)
        runs = self.runs + 1
        return replace(
            self, runs=runs, statistic=total, last_zero=self.last_zero if total else runs
        )

    def restart(self) -> CusumChart:
        """The chart with its sum at 0 again, in the same epoch, after a signal was dealt with."""
        return replace(self, statistic=0, last_zero=self.runs)

    def next_epoch(self, design: CusumDesign) -> CusumChart:
        """The empty chart of the next reference state, after a baseline refresh."""
        return design.chart(epoch=self.epoch + 1)


def cusum_design(
    p0: float, p1: float, arl: float = USUAL_ARL, *, trials: SupportsIndex = 1
) -> CusumDesign:
    """The CUSUM that notices a change from p0 to p1, quiet for `arl` runs on average before it.

    The sum of the log-likelihood ratios of p1 against p0, restarted whenever it falls below 0: no
    chart as rarely wrong finds that change sooner on the worst delay (Moustakides 1986). The
    limit is the smallest whole number with an in-control average run length of at least `arl`,
    from the chart's own Markov chain, solved without cancellation.

    Parameters
    ----------
    p0 : float
        The rate of the reference state, strictly between 0 and 1, taken as known.
    p1 : float
        The rate to notice, strictly between 0 and 1; below p0 a drop, above it a rise.
    arl : float
        The least average number of runs up to a false signal: above 1, at most 1e12.
    trials : int
        Trials of each run, at least 1; all runs have the same. With 1, feed the trials singly and
        runs of any size can follow one another.

    References
    ----------
    Page 1954; Reynolds & Stoumbos 1999 (Bernoulli); Brook & Evans 1972.

    Examples
    --------
    >>> design = cusum_design(0.9, 0.8, arl=500, trials=50)
    >>> round(design.average_run_length(0.9)), round(design.average_run_length(0.8), 1)
    (669, 3.0)
    """
    good, bad = require_open_rate("p0", p0), require_open_rate("p1", p1)
    if good == bad:
        raise InvalidArgument("p1", p1, f"differ from p0 ({good})")
    length = check_arl(arl)
    n = require_count("trials", trials, minimum=1)
    before, after = (1 - good, 1 - bad) if bad < good else (good, bad)
    tuning = _steps(before, after, n)
    if tuning is None:
        raise InvalidArgument("p1", p1, f"lie further from p0 ({good})")
    step, drift, tuned = tuning
    counts = likely_counts(n, before)
    work = max(1, drift * (step * counts[-1][0] - drift))
    found = smallest_limit(
        _moves(counts, step, drift), length, min(_MOST_STATES, _MOST_WORK // work)
    )
    if found is None:
        raise InvalidArgument("arl", arl, f"be smaller, or `trials` larger than {n}")
    return CusumDesign(
        p0=good,
        p1=bad,
        tuned_to=1 - tuned if bad < good else tuned,
        trials=n,
        arl=length,
        step=step,
        drift=drift,
        limit=found[0],
    )


def _moves(counts: list[tuple[int, float]], step: int, drift: int) -> Moves:
    """Where a run leads, from the distribution of its events."""

    def moves(state: int) -> dict[int, float]:
        targets: dict[int, float] = {}
        for events, weight in counts:
            target = max(0, state + step * events - drift)
            targets[target] = targets.get(target, 0.0) + weight
        return targets

    return moves


def _steps(before: float, after: float, n: int) -> tuple[int, int, float] | None:
    """Steps per event and per run that tune the chart closely enough to a rate, and that rate."""
    gain = math.log(after / before) + math.log((1 - before) / (1 - after))
    goal = _reference(before, after)
    slack = _TUNING * (after - before)
    least = _reference(before, after - slack)
    most = _reference(before, min(after + slack, (1 + after) / 2))
    fewest = max(1, math.ceil(gain / _FINEST))
    tuned = (
        (step, drift)
        for step in range(fewest, _MOST_STEPS)
        if least <= (drift := round(step * n * goal)) / (step * n) <= most
    )
    first = next(tuned, None)
    if first is None:
        return None
    # A common divisor would waste steps, so the next choice without one is taken if it is near;
    # where the reference itself is a simple fraction there is none, and the divisor goes.
    step, drift = next(
        (
            (step, drift)
            for step, drift in (first, *takewhile(lambda pair: pair[0] <= 10 * first[0], tuned))
            if math.gcd(step, drift) == 1
        ),
        first,
    )
    divisor = math.gcd(step, drift)
    return step // divisor, drift // divisor, _tune_rate(before, drift / (step * n))


def _reference(before: float, after: float) -> float:
    """The share of events at which the likelihood ratio of the two rates is 1."""
    fewer = math.log((1 - before) / (1 - after))
    return fewer / (fewer + math.log(after / before))


def _tune_rate(before: float, share: float) -> float:
    """The rate whose reference share this is, by bisection: the reference rises with the rate."""
    low, high = before, 1.0
    while low < (middle := (low + high) / 2) < high:
        if _reference(before, middle) < share:
            low = middle
        else:
            high = middle
    return low
