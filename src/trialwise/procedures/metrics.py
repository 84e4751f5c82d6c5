"""pass@k and pass^k over inputs, for whoever has outcomes: a run of ours, or somebody's file.

Per input first, then the mean over inputs; trials of different inputs are never pooled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from enum import Enum, auto
from functools import partial

from trialwise.model.claim import PopulationClaim
from trialwise.model.metrics import PassK
from trialwise.stats.bounded_means import bounded_mean_interval
from trialwise.stats.passk import (
    pass_at_k,
    pass_at_k_interval,
    pass_at_k_naive,
    pass_hat_k,
    pass_hat_k_interval,
    pass_hat_k_plugin,
)
from trialwise.stats.result_types import Interval, Undefined

UNREACHED = Undefined("the claim reaches no further than these trials")
UNTRIED = Undefined("no input was tried")

#: Values of k shown where nobody asks for any.
_MOST_KS = 6


class Reach(Enum):
    """What an interval over inputs is about."""

    INPUTS = auto()
    """The mean over exactly these inputs: only their replies are random."""
    POPULATION = auto()
    """The mean over the population that the inputs are independent draws of."""
    NOTHING = auto()
    """These trials alone, which are known."""

    @classmethod
    def of(cls, claim: PopulationClaim) -> Reach:
        """What a run claims."""
        reaches = {
            PopulationClaim.SUPERPOPULATION: cls.POPULATION,
            PopulationClaim.NO_GENERALISATION: cls.NOTHING,
        }
        return reaches.get(claim, cls.INPUTS)


def usual_ks(fewest: int) -> list[int]:
    """1, 2, 4 … and the fewest trials of an input itself, which is the largest k there is.

    >>> usual_ks(5)
    [1, 2, 4, 5]
    """
    powers = [2**power for power in range(_MOST_KS - 1) if 2**power < fewest]
    return [*powers, fewest]


def pass_k_of(
    tasks: Sequence[tuple[int, int]], k: int, *, confidence: float, reach: Reach
) -> PassK:
    """The row of one k.

    Args:
        tasks: (trials, passed) of each input, at least one of each.
        k: How many further trials.
        confidence: Of both intervals.
        reach: What they are about.

    >>> row = pass_k_of([(5, 3)], 2, confidence=0.95, reach=Reach.INPUTS)
    >>> row.pass_at_k, row.pass_hat_k, round(row.pass_hat_k_plugin, 2)
    (0.9, 0.3, 0.36)
    """
    fewest = min((trials for trials, _ in tasks), default=0)
    if k > fewest:
        few = (
            Undefined(f"an input has {fewest} trials only, and k = {k} needs as many as k")
            if tasks
            else UNTRIED
        )
        return PassK(k=k, **{one.name: few for one in fields(PassK) if one.name != "k"})
    some = mean_of([pass_at_k(trials, passed, k) for trials, passed in tasks])
    every = mean_of([pass_hat_k(trials, passed, k) for trials, passed in tasks])
    within = partial(pass_interval, tasks, [k] * len(tasks), confidence=confidence, reach=reach)
    rates = [passed / trials for trials, passed in tasks]
    return PassK(
        k=k,
        pass_at_k=some,
        pass_at_k_interval=within(some, pass_at_k_interval),
        pass_hat_k=every,
        pass_hat_k_interval=within(every, pass_hat_k_interval),
        pass_at_k_naive=mean_of([pass_at_k_naive(rate, k) for rate in rates]),
        pass_hat_k_plugin=mean_of([pass_hat_k_plugin(rate, k) for rate in rates]),
    )


def pass_interval(
    tasks: Sequence[tuple[int, int]],
    ks: Sequence[int],
    estimate: float,
    exact: Callable[..., Interval],
    *,
    confidence: float,
    reach: Reach,
) -> Interval | Undefined:
    """The interval of a mean over inputs of pass@k or pass^k.

    One input alone has its exact interval. Over several of these inputs it is what two intervals
    have in common, each at half the error: the mean is bounded, each estimate being a U-statistic
    of order k and so as good as ⌊trials/k⌋ independent values; and it lies within the mean of the
    inputs' exact intervals, each at its share. The first is shorter for pass^k of good inputs, the
    second for pass@k.

    Args:
        tasks: (trials, passed) of each input.
        ks: The k of each, at most its trials.
        estimate: The unbiased mean.
        exact: The exact interval of one input.
        confidence: Of the interval.
        reach: What it is about.
    """
    if reach is not Reach.INPUTS:
        return mean_interval(estimate, len(tasks), 1, confidence=confidence, reach=reach)
    if len(tasks) == 1:
        return exact(*tasks[0], ks[0], confidence=confidence)
    half = 1 - (1 - confidence) / 2
    blocks = min(trials // k for (trials, _), k in zip(tasks, ks, strict=True))
    bounded = bounded_mean_interval(estimate, len(tasks) * blocks, confidence=half)
    share = 1 - (1 - half) / len(tasks)
    parts = [exact(*task, k, confidence=share) for task, k in zip(tasks, ks, strict=True)]
    low = max(bounded.low, mean_of([part.low for part in parts]))
    high = min(bounded.high, mean_of([part.high for part in parts]))
    if low > high:  # one of the two is wrong, and nobody knows which
        low, high = bounded
    method = "bounded mean and exact intervals of these inputs"
    return Interval(low, high, confidence=confidence, method=method)


def mean_interval(
    mean: float, inputs: int, runs: int, *, confidence: float, reach: Reach
) -> Interval | Undefined:
    """The interval of a mean over inputs of a number between 0 and 1, valid at any size.

    Args:
        mean: What was observed.
        inputs: How many inputs.
        runs: Independent values behind the number of each input, at the fewest.
        confidence: Of the interval.
        reach: What it is about.
    """
    if reach is Reach.NOTHING:
        return UNREACHED
    if reach is Reach.POPULATION and inputs < 2:
        return Undefined("an interval over a population needs at least two inputs")
    count = inputs * runs if reach is Reach.INPUTS else inputs
    found = bounded_mean_interval(mean, count, confidence=confidence)
    about = "these inputs" if reach is Reach.INPUTS else "the inputs' population"
    return Interval(
        found.low, found.high, confidence=confidence, method=f"{found.method} over {about}"
    )


def mean_of(values: Sequence[float]) -> float:
    """The mean of numbers whose sum is rounded once, so that their order changes nothing.

    >>> mean_of([1e16, 1.0, -1e16])
    0.3333333333333333
    """
    return math.fsum(values) / len(values)
