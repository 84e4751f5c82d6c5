"""What the data say once a design has stopped: an interval, an estimate, and the naive rate's bias.

A run that stopped because it looked good looks too good. The Wilson interval at the stop ignores
that (95 % becomes 84 to 86 %); the interval here does not. Outcomes are ordered by stage: an
earlier PASS is better than a later one, an open end lies in between (fewer failures first), and a
later FAIL is better than an earlier one. A run that gave up from the side of PASS is better the
later it gave up, one from the side of FAIL the earlier. As boundaries never fall, "at least as
good" is more likely the higher the true rate, and inverting its probability gives exact limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from trialwise.decimals import as_written, complement
from trialwise.errors import InvalidArgument
from trialwise.stats.rate_intervals import Side
from trialwise.stats.result_types import Interval
from trialwise.stats.sequential.walks import Rule, Stop, Stops, stopping_probabilities
from trialwise.validation import require_choice, require_open_rate, require_rate

if TYPE_CHECKING:
    from trialwise.stats.sequential.design import SequentialDesign


#: How finely a limit is found; the end returned is the one on the safe side.
RESOLUTION = 1e-13


class Tails(NamedTuple):
    """P(as good or better) and P(as bad or worse) at one rate; both count the outcome itself."""

    good: float
    bad: float


def stopped_interval(
    design: SequentialDesign,
    trials: int,
    failures: int,
    *,
    confidence: float = 0.95,
    side: Side = "two-sided",
) -> Interval:
    """The exact confidence interval for the rate where a design stopped, stage-wise ordering.

    The lower limit is the largest p at which an outcome as good as this one still has probability
    at most (1 − confidence)/2, the upper limit the smallest p at which one as bad has. Coverage is
    at least `confidence` at every true rate. By construction no PASS has a one-sided 1 − beta lower
    limit below p1, and no FAIL a one-sided 1 − alpha upper limit above p0.

    Parameters
    ----------
    design : SequentialDesign
    trials, failures : int
        Where the design stopped.
    confidence : float
        Strictly between 0 and 1.
    side : {"two-sided", "lower", "upper"}
        "lower" puts all of 1 − confidence below (the upper end is 1), "upper" all of it above.

    References
    ----------
    Armitage 1958; Jennison and Turnbull 2000, section 8.4 (stage-wise ordering).

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> design = SequentialDesign.fixed(0.90, 0.80, batch=78)  # one look: Clopper and Pearson's
    >>> low, high = design.interval(78, 8)
    >>> round(low, 4), round(high, 4)
    (0.8079, 0.9547)
    """
    level = 1 - require_open_rate("confidence", confidence)
    require_choice("side", side, ("two-sided", "lower", "upper"))
    share = level / 2 if side == "two-sided" else level
    tails = _tails(design, trials, failures)
    low = 0.0 if side == "upper" else find_crossing(lambda p: tails(p).good, share)[0]
    high = 1.0 if side == "lower" else find_crossing(lambda p: -tails(p).bad, -share)[1]
    return Interval(low, high, confidence=confidence, method="exact after stopping, stage-wise")


def decision_interval(
    design: SequentialDesign,
    trials: int,
    failures: int,
    *,
    levels: tuple[float, float] | None = None,
    decision: str | None = None,
) -> Interval:
    """The interval that leaves out beta below and alpha above, so that it agrees with the verdict.

    PASS exactly where its lower end is above p1 and FAIL exactly where its upper end is below p0.
    Where neither was shown it is widened to hold both rates, should it not. With other `levels`
    than the design's, below and above, `decision` says what they decide.
    """
    tails = _tails(design, trials, failures)
    below, above = levels or (design.beta, design.alpha)
    low = find_crossing(lambda p: tails(p).good, below)[0]
    high = find_crossing(lambda p: -tails(p).bad, -above)[1]
    match decision or design.decide(trials, failures):
        case "PASS":
            low = max(low, design.p1)  # an error may exceed its level by rounding, 1e-12
        case "FAIL":
            high = min(high, design.p0)
        case _:
            low, high = min(low, design.p1), max(high, design.p0)
    confidence = complement(float(as_written(below) + as_written(above)))
    return Interval(low, high, confidence=confidence, method="exact after stopping, stage-wise")


def stopped_tails(design: SequentialDesign, trials: int, failures: int, rate: float) -> Tails:
    """The chances of an end as good or better, and as bad or worse, at one true rate.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> design = SequentialDesign.wald(0.90, 0.80, cap=50)
    >>> round(stopped_tails(design, 14, 0, 0.8).good, 6) == round(0.8**14, 6)
    True
    """
    return _tails(design, trials, failures)(require_rate("rate", rate))


def stopped_estimate(design: SequentialDesign, trials: int, failures: int) -> float:
    """The mid median-unbiased estimate of the rate where a design stopped.

    The rate at which an outcome better than this one, or this one at the toss of a coin, has
    probability one half.

    Parameters
    ----------
    design : SequentialDesign
    trials, failures : int
        Where the design stopped.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> design = SequentialDesign.wald(0.90, 0.80, cap=50)
    >>> round(design.estimate(21, 1), 3)  # observed: 20 of 21, 0.952
    0.934
    """
    tails = _tails(design, trials, failures)

    def middle(p: float) -> float:
        good, bad = tails(p)
        return good - bad

    if middle(0.0) >= 0:
        return 0.0
    return 1.0 if middle(1.0) <= 0 else sum(find_crossing(middle, 0.0)) / 2


def naive_bias(design: SequentialDesign, p: float) -> float:
    """The mean of the observed rate at the stop, less the true rate p.

    Parameters
    ----------
    design : SequentialDesign
    p : float
        The true rate, 0 and 1 included.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> design = SequentialDesign.wald(0.90, 0.80, cap=50)
    >>> naive_bias(design, 0.80) < 0 < naive_bias(design, 0.90)
    True
    """
    rate = require_rate("p", p)
    stops = stopping_probabilities(design, rate)
    return math.fsum(w * (n - f) / n for part in stops for n, f, w in part) - rate


def check_stop(design: SequentialDesign, trials: int, failures: int) -> tuple[int, int]:
    """Return the counts, at which the design must stop."""
    if design.decide(trials, failures) is None:
        value = (trials, failures)
        raise InvalidArgument("trials and failures", value, "be counts at which the design stops")
    return int(trials), int(failures)


def _tails(design: SequentialDesign, trials: int, failures: int) -> Callable[[float], Tails]:
    """The two tail probabilities of an outcome as functions of the true rate."""
    n, f = check_stop(design, trials, failures)
    # Stages after a verdict of this one cannot matter to it.
    last = design.cap if design.decide(n, f) == "INCONCLUSIVE" else n
    return find_tails(design, n, f, last, (design.p0 + design.p1) / 2)


@lru_cache(maxsize=64)  # interval, estimate and p-value of one stop share them
def find_tails(
    design: SequentialDesign, n: int, f: int, last: int, rate: float
) -> Callable[[float], Tails]:
    """The tails of an outcome where the design ends after `last` trials, from a walk at a rate."""
    _, beyond, own = part_stops(design, n, f, last, rate)
    # How many paths lead to a stop does not depend on the rate, so one recursion serves all.
    paths, own_paths = list_log_paths(beyond, rate), list_log_paths(own, rate)

    def tails(p: float) -> Tails:
        past, itself = sum_paths(paths, p), sum_paths(own_paths, p)
        if f >= design.reject[n]:
            return Tails(1 - past, past + itself)
        return Tails(past + itself, 1 - past)

    return tails


def part_stops(
    design: SequentialDesign, n: int, f: int, last: int, rate: float
) -> tuple[Stops, list[Stop], list[Stop]]:
    """All stops up to `last` trials at a rate, those beyond an outcome, and the outcome itself.

    Stage-wise ordering (Jennison and Turnbull 2000, section 8.4): an earlier verdict is the
    stronger one. Beyond a FAIL lies what is worse, beyond everything else what is better.
    """
    stops = stopping_probabilities(Rule.of(design).until(last), rate)
    if f <= design.accept[n]:
        beyond = [stop for stop in stops.passes if stop[0] < n or stop[1] < f]
    elif f >= design.reject[n]:
        beyond = [stop for stop in stops.fails if stop[0] < n or stop[1] > f]
    else:
        rank = rank_open_end(design, n, f)
        better = (s for s in stops.inconclusive if rank_open_end(design, s[0], s[1]) < rank)
        beyond = [*stops.passes, *better]
    return stops, beyond, [stop for part in stops for stop in part if stop[:2] == (n, f)]


def rank_open_end(design: SequentialDesign, n: int, f: int) -> tuple[int, int, int]:
    """The place of an INCONCLUSIVE end among all of them, the best first.

    Runs below the failures at which a design gives up may still PASS, those above may still FAIL,
    and none gets from one side to the other.
    """
    low, high = design.futile[n - 1] if design.futile else (0, -1)
    from_above = low <= high and f > low
    return (1, n, f) if from_above else (0, -n, f)


def list_log_paths(stops: list[Stop], p: float) -> list[tuple[float, int, int]]:
    """(log of the number of paths, successes, failures) of stops with their chances at rate p."""
    good, bad = math.log(p), math.log1p(-p)
    return [
        (math.log(chance) - (n - f) * good - f * bad, n - f, f) for n, f, chance in stops if chance
    ]


def sum_paths(paths: list[tuple[float, int, int]], p: float) -> float:
    """The chance of ending on one of these paths at true rate p."""
    if p in (0, 1):
        # Only a path without the impossible outcome is left, and of those there is one a stop.
        return float(any((failures if p else successes) == 0 for _, successes, failures in paths))
    good, bad = math.log(p), math.log1p(-p)
    return math.fsum([math.exp(ways + s * good + f * bad) for ways, s, f in paths])


def find_crossing(
    rises: Callable[[float], float], level: float, resolution: float = RESOLUTION
) -> tuple[float, float]:
    """Rates around the one where a rising function meets a level: not above it, not below it.

    Bisection with secant steps pulled towards the middle (the ITP method of Oliveira and
    Takahashi 2020): the speed of one, the certainty of the other.
    """
    low, high = 0.0, 1.0
    below, above = rises(low) - level, rises(high) - level
    if below > 0:
        return low, low
    if above < 0:
        return high, high
    slack = resolution * 2.0 ** math.ceil(math.log2(1 / resolution))
    while high - low > resolution:
        middle, half = (low + high) / 2, (high - low) / 2
        secant = (low * above - high * below) / (above - below) if above > below else middle
        towards = math.copysign(1.0, middle - secant)
        truncated = secant + towards * min(0.2 * (high - low) ** 2, abs(middle - secant))
        radius = max(0.0, slack - half)
        point = truncated if abs(truncated - middle) <= radius else middle - towards * radius
        value = rises(point) - level
        if value > 0:
            high, above = point, value
        else:
            low, below = point, value
        slack /= 2
    return low, high
