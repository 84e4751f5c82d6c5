"""pass@k and pass^k over inputs, for whoever has outcomes: a run of ours, or somebody's file.

Per input first, then the mean over inputs; trials of different inputs are never pooled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from trialwise import stats
from trialwise.model.claim import PopulationClaim
from trialwise.model.metrics import PassK
from trialwise.model.trial import Trial

UNREACHED = stats.Undefined("the claim reaches no further than these trials")
UNTRIED = stats.Undefined("no input was tried")
#: Why there is no interval: the figure of a few runs is biased, and so is its mean over inputs.
_BIASED = stats.Undefined(
    "the figure of a few runs is biased, so that its mean over inputs is not the population's"
)
COUNTED = stats.Undefined("it is a count of these runs and estimates nothing")

#: Values of k shown where nobody asks for any.
_MOST_KS = 6


#: Claims of which an interval is about more than these inputs, or about less.
_POPULATION, _NOTHING = PopulationClaim.SUPERPOPULATION, PopulationClaim.NO_GENERALISATION


Tasks: TypeAlias = Sequence[tuple[int, int]]
"""The trials and the passes of each input."""
Found: TypeAlias = stats.Interval | stats.Undefined
"""An interval, or why there is none."""


def usual_ks(fewest: int) -> list[int]:
    """1, 2, 4 … and the fewest trials of an input itself, which is the largest k there is.

    >>> usual_ks(5)
    [1, 2, 4, 5]
    """
    powers = [2**power for power in range(_MOST_KS - 1) if 2**power < fewest]
    return [*powers, fewest]


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of numbers whose sum is rounded once, so that their order changes nothing.

    >>> mean_of([1e16, 1.0, -1e16])
    0.3333333333333333
    """
    return math.fsum(values) / len(values)


class PassFigure(NamedTuple):
    """pass@k or pass^k of one input."""

    estimate: Callable[..., float]
    """The unbiased one, of trials, successes and k."""
    exact: Callable[..., stats.Interval]
    """The exact interval of one input."""
    rises: bool
    """Whether it grows with k, or falls."""

    def average(self, tasks: Tasks, ks: Sequence[int]) -> float:
        """Return the mean of its estimates over inputs, each with its k."""
        return mean_of([self.estimate(*task, k) for task, k in zip(tasks, ks, strict=True)])


# Inputs with the same counts have the same interval, and there are few different counts.
_remember = lru_cache(maxsize=4096)
PASS_AT_K = PassFigure(_remember(stats.pass_at_k), _remember(stats.pass_at_k_interval), rises=True)
PASS_HAT_K = PassFigure(
    _remember(stats.pass_hat_k), _remember(stats.pass_hat_k_interval), rises=False
)


class Intervals(NamedTuple):
    """Makes intervals of figures over inputs, all about the same and equally sure.

    They are valid at any number of runs, and therefore wide at few. They decide nothing: a gate
    that passes with an interval far below its limit says so.
    """

    claim: PopulationClaim
    """The mean over exactly these inputs, over their population, or of nothing but these trials."""
    confidence: float

    def pass_k(self, tasks: Tasks, k: int) -> PassK:
        """Return the row of one k.

        Args:
            tasks: (trials, passed) of each input, at least one of each.
            k: How many further trials.

        >>> row = Intervals(PopulationClaim.FIXED_INPUTS, 0.95).pass_k([(5, 3)], 2)
        >>> row.pass_at_k, row.pass_hat_k, round(row.pass_hat_k_plugin, 2)
        (0.9, 0.3, 0.36)
        """
        fewest = min((trials for trials, _ in tasks), default=0)
        if k > fewest:
            # The unbiased estimators choose k of the runs that there are. Of fewer runs they say
            # nothing, and a power of the rate would be an extrapolation.
            few = f"an input has {fewest} trials only, and k = {k} needs as many as k"
            missing = stats.Undefined(few) if tasks else UNTRIED
            return PassK(k=k, **{one.name: missing for one in fields(PassK) if one.name != "k"})
        ks = [k] * len(tasks)
        rates = [passed / trials for trials, passed in tasks]
        return PassK(
            k=k,
            pass_at_k=PASS_AT_K.average(tasks, ks),
            pass_at_k_interval=self.of_passes(PASS_AT_K, tasks, ks),
            pass_hat_k=PASS_HAT_K.average(tasks, ks),
            pass_hat_k_interval=self.of_passes(PASS_HAT_K, tasks, ks),
            pass_at_k_naive=mean_of([stats.pass_at_k_naive(rate, k) for rate in rates]),
            pass_hat_k_plugin=mean_of([stats.pass_hat_k_plugin(rate, k) for rate in rates]),
        )

    def of_passes(self, figure: PassFigure, tasks: Tasks, ks: Sequence[int]) -> Found:
        """Return the interval of a mean over inputs of pass@k or pass^k, with its estimate inside.

        One input alone has its exact interval. Over several of these inputs it is what two
        intervals have in common, each at half the error: the mean is bounded, each estimate being
        a U-statistic of order k and so as good as ⌊trials/k⌋ independent values; and it lies within
        the mean of the inputs' exact intervals, each at its share. The first is shorter for pass^k
        of good inputs, the second for pass@k.

        The ends move with k as the figure does. Exact intervals do so by themselves, and so does
        the end of the bounded mean in the direction of the figure. The other end at k is the best
        one of 1, 2, 4 … up to k: pass@k is at least pass@j, and pass^k at most pass^j, for every j
        below k. Each j has its own share of the error of that end.

        The unbiased estimate at k = trials is 0 or 1, which the exact interval may miss; it is then
        widened to it.

        Args:
            figure: Which of the two.
            tasks: (trials, passed) of each input.
            ks: The k of each, at most its trials.
        """
        estimate = figure.average(tasks, ks)
        if self.claim in (_POPULATION, _NOTHING):
            return self.of_mean(estimate, len(tasks), 1)
        if len(tasks) == 1:
            found = figure.exact(*tasks[0], ks[0], confidence=self.confidence)
            return _widen(found, estimate, found.method)
        half = (1 - self.confidence) / 2
        bounded = _bound_mean(figure, tasks, ks, half)
        share = 1 - half / len(tasks)
        parts = [
            figure.exact(*task, k, confidence=share) for task, k in zip(tasks, ks, strict=True)
        ]
        low = max(bounded[0], mean_of([part.low for part in parts]))
        high = min(bounded[1], mean_of([part.high for part in parts]))
        if low > high:  # one of the two is wrong, and nobody knows which
            low, high = bounded
        method = "bounded mean and exact intervals of these inputs"
        whole = stats.Interval(low, high, confidence=self.confidence)
        return _widen(whole, estimate, method)

    def of_mean(self, mean: float, inputs: int, runs: int) -> Found:
        """Return the interval of a mean over inputs of a number between 0 and 1.

        Args:
            mean: What was observed.
            inputs: How many inputs.
            runs: Independent values behind the number of each input, at the fewest.
        """
        if self.claim is _NOTHING:
            return UNREACHED
        if self.claim is _POPULATION and inputs < 2:
            return stats.Undefined("an interval over a population needs at least two inputs")
        # Repeated runs of one input say nothing more of the population that it is drawn from.
        count = inputs if self.claim is _POPULATION else inputs * runs
        found = stats.bounded_mean_interval(mean, count, confidence=self.confidence)
        about = "the inputs' population" if self.claim is _POPULATION else "these inputs"
        return replace(found, confidence=self.confidence, method=f"{found.method} over {about}")

    def of_mapped(self, tasks: Tasks, figure: Callable[[float], float], name: str) -> Found:
        """Bound a figure of the rate that is 1 at one half and falls to 0 on both sides alike.

        A mean over these inputs: the exact interval of each input's rate, mapped, each at its share
        of the error. Over a population there is none, since the figure of a few runs is biased.

        Args:
            tasks: (trials, passed) of each input.
            figure: Of a rate.
            name: The name of the figure, for the method.
        """
        if self.claim in (_POPULATION, _NOTHING):
            return UNREACHED if self.claim is _NOTHING else _BIASED
        parts = []
        for trials, passed in tasks:
            rate = stats.clopper_pearson(passed, trials, confidence=self._share(len(tasks)))
            # The figure rises up to one half and falls beyond, so that its extremes over an
            # interval are at the ends, or at one half where that lies inside.
            ends = [figure(end) for end in rate]
            parts.append((min(ends), 1.0 if 0.5 in rate else max(ends)))
        return self._average(parts, f"{name} of clopper-pearson")

    def of_weighted(self, lengths: Sequence[int], mean: float) -> Found:
        """Bound the mean of rates in which run i of an input counts i times.

        Args:
            lengths: Runs of each input.
            mean: What was observed, from 0 to 1.
        """
        if self.claim in (_POPULATION, _NOTHING):
            return self.of_mean(mean, len(lengths), 1)
        weights = [
            2 * place / (runs * (runs + 1)) for runs in lengths for place in range(1, runs + 1)
        ]
        return stats.weighted_mean_interval(mean, weights, confidence=self.confidence)

    def of_variance(self, scores: Sequence[Sequence[float]]) -> Found:
        """Bound the variance between runs of one input, as a mean over inputs.

        Args:
            scores: The scores of each input's runs, at least two.
        """
        if self.claim in (_POPULATION, _NOTHING):
            return self._of_sample_variance(scores)
        parts: list[stats.Interval] = []
        for mine in scores:
            part = stats.bounded_variance_interval(mine, confidence=self._share(len(scores)))
            if isinstance(part, stats.Undefined):
                return part
            parts.append(part)
        return self._average(parts, "bounded variance")

    def _of_sample_variance(self, scores: Sequence[Sequence[float]]) -> Found:
        from statistics import variance

        # The sample's, which is unbiased, and at most n/(n−1) times a quarter.
        fewest = min(map(len, scores))
        # A quarter is the largest variance of numbers between 0 and 1 (Popoviciu 1935).
        most = fewest / (4 * (fewest - 1))
        share = min(1.0, mean_of([*map(variance, scores)]) / most)
        found = self.of_mean(share, len(scores), 1)
        if isinstance(found, stats.Undefined):
            return found
        return replace(found, low=most * found.low, high=min(0.25, most * found.high))

    def _share(self, inputs: int) -> float:
        """Return the confidence of each of several inputs at which all hold together."""
        # Bonferroni: all of them hold together with at least the confidence, and then so does the
        # mean of their ends, whatever the replies to different inputs have in common.
        return 1 - (1 - self.confidence) / inputs

    def _average(self, parts: Sequence[Iterable[float]], method: str) -> stats.Interval:
        lows, highs = zip(*parts, strict=True)
        several = ", each input at its share" if len(parts) > 1 else ""
        return stats.Interval(
            mean_of(lows), mean_of(highs), confidence=self.confidence, method=f"{method}{several}"
        )


def _widen(found: stats.Interval, estimate: float, method: str) -> stats.Interval:
    low, high = found
    return replace(found, low=min(low, estimate), high=max(high, estimate), method=method)


def _bound_mean(
    figure: PassFigure, tasks: Tasks, ks: Sequence[int], error: float
) -> tuple[float, float]:
    """Return the ends of the interval of a bounded mean; they move with k as the mean does."""
    first = _bound_at(figure, tasks, ks, error)
    ends = []
    # 1, 2, 4 …: their shares 6/π² · 1, 1/4, 1/9 … add up to at most 1.
    for step in range(max(ks).bit_length()):
        lower = [min(k, 2**step) for k in ks]
        share = 6 / (math.pi * (step + 1)) ** 2
        ends.append(_bound_at(figure, tasks, lower, error * share))
    if figure.rises:
        return max(one.low for one in ends), first.high
    return first.low, min(one.high for one in ends)


def _bound_at(figure: PassFigure, tasks: Tasks, ks: Sequence[int], error: float) -> stats.Interval:
    blocks = min(trials // k for (trials, _), k in zip(tasks, ks, strict=True))
    mean = figure.average(tasks, ks)
    return stats.bounded_mean_interval(mean, len(tasks) * blocks, confidence=1 - error)


def percent(found: Found, *, of: float = 100) -> Found:
    """Return the same, of a hundred or of another whole."""
    if isinstance(found, stats.Undefined):
        return found
    return replace(found, low=of * found.low, high=of * found.high)


Graders: TypeAlias = Mapping[str, Sequence[str]]
"""The criteria that grade the runs of each input."""
Runs: TypeAlias = Mapping[str, Sequence[Trial]]
"""The runs that count, by input, in the order of inputs; an input without any has none."""


class Measured(NamedTuple):
    """A target's number."""

    value: float | stats.Undefined
    interval: Found
