"""Comparisons with a baseline that stop as soon as their counts decide: one rule for each baseline.

After every trial the counts are weighed by a likelihood ratio: that of "nothing has changed" to
that of "the rate is lower by the margin", each averaged over the rates that the baseline leaves
possible. A small ratio FAILs and a large one PASSes. Both limits start at about those of Wald's
test and meet at the last trial, which is how the rules that need the fewest trials on average
behave (Kiefer and Weiss 1957, Lorden 1976).

The height at which the limits meet is the one thing that is not given. It is chosen at a few rates,
so that false alarms are as frequent as alpha allows at every rate; `staged_regression` chooses it
and proves the level by counting paths. Boundaries between these rates are interpolated, and
baselines whose rates differ by far less than their sampling error share one, which makes counting
cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from trialwise.stats.binomial import normal_quantile, upper_z

#: After 0, 1, … trials, the most failures that PASS and the fewest that FAIL.
Boundaries: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]

#: How far apart the rates are at which heights are chosen, in standard deviations of a baseline.
#: Baselines of one true rate spread that far, so that closer heights could not be told apart.
_NODE_SPACING = 1.6
#: The fewest rates at which boundaries are computed; heights between nodes are interpolated.
_FEWEST_CURVES = 32
#: When boundaries are computed, as shares of all trials: more often towards the end.
_TIMES = tuple(1 - (1 - i / 10) ** 2 for i in range(11))
#: Where both limits start, relative to Wald's, and how they approach each other.
_FAIL_START, _FAIL_BEND = -0.45, 0.5
_PASS_START, _PASS_BEND = 1.8, 0.4
#: Stopping early costs power: this much more is aimed at, with this share more trials.
_MORE_POWER, _MORE_TRIALS, _FEW_TRIALS = 0.04, 1.3, 8
#: How many more trials than the approximation says are wanted where nothing stops early.
_MORE_AT_ONCE = 1.04
#: The largest test, relative to its baseline, and that with a baseline too small for the margin.
_LARGEST, _HOPELESS, _FALL = 2.2, 1.0, 4
#: Baselines whose rates differ by less, in standard deviations of the difference between two runs
#: of the sizes compared, share boundaries. The sampling error grows by less than 1 %.
_ALIKE = 0.35
#: How rates that the baseline leaves possible are spaced, in its standard deviations.
_SPACING, _POINTS = 0.6, 7
#: A crossing is found to about this many failures.
_RESOLUTION = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedScheme:
    """The boundaries for every baseline of a size, and how often they are wrong."""

    baseline_trials: int
    alpha: float
    margin: float
    """The loss that is to be found."""
    power: float
    """The wanted probability of finding it."""
    most_trials: int | None
    """A limit on the trials of a test; None where nothing is limited."""
    heights: tuple[float, ...]
    """Where both limits meet, as logarithms of likelihood ratios, from low rates to high ones."""
    level: float | None = None
    """The largest probability of a FAIL over all rates, if nothing has changed."""
    waits: bool = False
    """Whether only all trials together decide; their number still depends on the baseline."""

    def boundaries(self, baseline_successes: int) -> Boundaries:
        """The boundaries for one baseline."""
        if baseline_successes == 0:
            return (-1, 1), (2, 2)  # nothing is lower than a rate of 0
        return _draw(self, _find_alike(self.baseline_trials, self._middle)[baseline_successes])

    def group_baselines(self) -> Iterator[range]:
        """The counts of a baseline, from 1 on, that share boundaries."""
        alike = _find_alike(self.baseline_trials, self._middle)
        first = 1
        for k in range(2, self.baseline_trials + 2):
            if k > self.baseline_trials or alike[k] != alike[first]:
                yield range(first, k)
                first = k

    def size_at(self, angle: float) -> float:
        """The most trials for a baseline at a rate, on the arcsine scale."""
        sizes = [_find_size(self, angle)]
        if angle < math.pi / 4:
            # A rate near 0 cannot fall by the margin, and less would take ever more trials.
            sizes.append(_find_size(self, math.pi / 4))
        return min(sizes if self.most_trials is None else [*sizes, self.most_trials])

    @property
    def largest(self) -> float:
        """The largest test, relative to its baseline."""
        return 1.0 if self.waits else _LARGEST

    @property
    def _middle(self) -> int:
        return math.ceil(self.size_at(math.pi / 4))


@lru_cache(maxsize=16)
def _find_alike(baseline_trials: int, trials: int) -> tuple[float, ...]:
    """For each count of a baseline, the count in the middle of those that share its boundaries."""
    width = _ALIKE * math.sqrt(1 / baseline_trials + 1 / trials) / 2
    middles, first = [0.0], 1
    while first <= baseline_trials:
        last, start = first, _angle(first, baseline_trials)
        while last < baseline_trials and _angle(last + 1, baseline_trials) - start < width:
            last += 1
        middles += [(first + last) / 2] * (last - first + 1)
        first = last + 1
    return tuple(middles)


def list_nodes(baseline_trials: int) -> list[float]:
    """The rates, on the arcsine scale, at which heights are chosen."""
    first = _angle(0, baseline_trials)
    steps = math.ceil(math.pi * math.sqrt(baseline_trials) / _NODE_SPACING)
    return [first + (math.pi / 2 - 2 * first) * i / steps for i in range(steps + 1)]


def _angle(successes: float, trials: int) -> float:
    return math.asin(math.sqrt((successes + 0.5) / (trials + 1)))


def _find_size(scheme: StagedScheme, angle: float) -> float:
    """The most trials: enough to find the margin, by the arcsine approximation, if nb is."""
    nb, largest = scheme.baseline_trials, scheme.largest
    both, limit = _find_needed(scheme, angle), nb * largest / (1 + largest)
    if both < limit:
        more = _MORE_AT_ONCE if scheme.waits else _MORE_TRIALS
        return min(largest * nb, more / (1 / both - 1 / nb) + _FEW_TRIALS)
    return max(2.0, _HOPELESS * nb, largest * nb - _FALL * (both - limit))


def _find_needed(scheme: StagedScheme, angle: float) -> float:
    """What 1/(1/nb + 1/trials) has to be for the margin to be found."""
    apart = angle - math.asin(math.sqrt(max(0.0, math.sin(angle) ** 2 - scheme.margin)))
    return (_find_distance(scheme) / apart) ** 2 if apart > 0 else math.inf


def _find_distance(scheme: StagedScheme) -> float:
    """How far apart two rates must be, if that is 1, on the arcsine scale."""
    power = scheme.power if scheme.waits else _aim(scheme.power)
    return (upper_z(scheme.alpha) + normal_quantile(power)) / 2


def _find_margin(scheme: StagedScheme, angle: float) -> float:
    """The loss that the likelihood ratio is about: a larger one, where nb is too small for it."""
    limit = scheme.baseline_trials * scheme.largest / (1 + scheme.largest)
    lowest = max(0.0, angle - _find_distance(scheme) / math.sqrt(limit))
    return max(scheme.margin, math.sin(angle) ** 2 - math.sin(lowest) ** 2)


def _aim(power: float) -> float:
    return min(power + _MORE_POWER, (1 + power) / 2)


def _count_curves(nodes: list[float]) -> int:
    """How many curves are computed from one node to the next."""
    return math.ceil(_FEWEST_CURVES / (len(nodes) - 1))


class _Curve(NamedTuple):
    """Both boundaries at one rate, in failures with fractions, at the shares `_TIMES`."""

    trials: float
    accept: tuple[float, ...]
    reject: tuple[float, ...]


@lru_cache(maxsize=4096)
def _draw(scheme: StagedScheme, successes: float) -> Boundaries:
    """Interpolate boundaries between the two nodes around a baseline, and round them."""
    nodes = list_nodes(scheme.baseline_trials)
    finer = _count_curves(nodes)
    place = (_angle(successes, scheme.baseline_trials) - nodes[0]) / (nodes[1] - nodes[0]) * finer
    left = min(int(place), (len(nodes) - 1) * finer - 1)
    share = place - left
    before, after = (_find_curve(scheme, i) for i in (left, left + 1))

    def blend(a: float, b: float) -> float:
        return (1 - share) * a + share * b

    n = max(1, math.ceil(blend(before.trials, after.trials) - 1e-9))
    if scheme.waits:
        allowed = min(max(math.floor(blend(before.accept[-1], after.accept[-1])), 0), n)
        return tuple(max(-1, allowed - n + m) for m in range(n + 1)), (allowed + 1,) * (n + 1)
    accept = list(_follow(n, list(map(blend, before.accept, after.accept))))
    reject = list(_follow(n, list(map(blend, before.reject, after.reject))))
    # The last trial decides: one more failure than those that PASS is a FAIL.
    allowed = accept[n] = min(max(accept[n], 0), n)
    fewest = allowed + 1
    for m in range(n, -1, -1):
        fewest = min(fewest, max(reject[m], 0) + 1)
        reject[m] = max(fewest, allowed + 1 - (n - m))
    most = -1
    for m in range(n + 1):
        # Few enough failures that no later trial can FAIL are a PASS too.
        most = max(most, min(accept[m], reject[m] - 1, m), allowed - (n - m))
        accept[m] = most
    reject[n] = allowed + 1
    return tuple(accept), tuple(reject)


def _follow(n: int, values: list[float]) -> Iterator[int]:
    """The whole failures below a curve after 0, 1, … n trials."""
    yield math.floor(values[0])
    for (start, end), (low, high) in zip(pairwise(_TIMES), pairwise(values), strict=True):
        slope = (high - low) / ((end - start) * n)
        base = low - slope * start * n
        for m in range(math.floor(start * n + 1e-9) + 1, math.floor(end * n + 1e-9) + 1):
            yield math.floor(base + slope * m)


@lru_cache(maxsize=1024)
def _find_curve(scheme: StagedScheme, place: int) -> _Curve:
    """Find both boundaries at a rate: where the likelihood ratio crosses its limits."""
    nb, alpha, power = scheme.baseline_trials, scheme.alpha, _aim(scheme.power)
    nodes = list_nodes(nb)
    finer = _count_curves(nodes)
    left = min(place // finer, len(nodes) - 2)
    share = place / finer - left
    angle = nodes[left] + share * (nodes[left + 1] - nodes[left])
    height = (1 - share) * scheme.heights[left] + share * scheme.heights[left + 1]
    trials = scheme.size_at(angle)
    ratio = _weigh(angle, nb, _find_margin(scheme, angle))
    fail = max(0.1, math.log(power / alpha) + _FAIL_START)
    passing = math.log((1 - alpha) / (1 - power)) + _PASS_START
    accept: list[float] = []
    reject: list[float] = []
    low, high = 0.0, 1.0
    for share in _TIMES:
        m, rest = share * trials, 1 - share
        low = _cross(ratio, m, height + passing * rest**_PASS_BEND, low)
        high = _cross(ratio, m, height - fail * rest**_FAIL_BEND, high)
        accept.append(low)
        reject.append(high)
    return _Curve(trials, tuple(accept), tuple(reject))


def _weigh(angle: float, nb: int, margin: float) -> Callable[[float, float], float]:
    """Return the log of the likelihood ratio as a function of trials and failures."""
    k = min(max((nb + 1) * math.sin(angle) ** 2 - 0.5, 0.0), nb)
    step = _SPACING / (2 * math.sqrt(nb))
    angles = (angle + i * step for i in range(-_POINTS, _POINTS + 1))
    rates = [math.sin(a) ** 2 for a in angles if 1e-6 < a < math.pi / 2 - 1e-6]
    weights = [k * math.log(p) + (nb - k) * math.log1p(-p) for p in rates]
    # A margin of more than half the rate would leave nothing of it.
    lower = [max(p - margin, p / 2) for p in rates]
    same, worse = ([(math.log(p), math.log1p(-p)) for p in ps] for ps in (rates, lower))

    def average(logs: list[tuple[float, float]], passed: float, failed: float) -> float:
        found = [w + passed * a + failed * b for w, (a, b) in zip(weights, logs, strict=True)]
        top = max(found)
        return top + math.log(sum(math.exp(one - top) for one in found))

    def ratio(trials: float, failures: float) -> float:
        passed = trials - failures
        return average(same, passed, failures) - average(worse, passed, failures)

    return ratio


def _cross(
    ratio: Callable[[float, float], float], trials: float, limit: float, start: float
) -> float:
    """Find the failures at which the ratio falls to a limit, by secants."""
    before, here = start, start + 1
    value, other = ratio(trials, here) - limit, ratio(trials, before) - limit
    for _ in range(20):
        before, here, other = here, here - value * (here - before) / (value - other), value
        if abs(here - before) < _RESOLUTION:
            break
        value = ratio(trials, here) - limit
    return round(here, 6)
