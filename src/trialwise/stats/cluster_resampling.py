"""The cluster bootstrap: whole prompts drawn again, never single trials (companion 8.2.1).

A module of its own because it is the one method here that needs chance, which it takes as a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.cluster_estimators import (
    ESTIMANDS,
    POPULATIONS,
    Estimand,
    Groups,
    check_groups,
)
from trialwise.stats.normal import normal_cdf, normal_quantile
from trialwise.stats.result_types import Interval, Undefined
from trialwise.validation import require_choice, require_count, require_open_rate

BootstrapMethod: TypeAlias = Literal["percentile", "bca"]
"""How the ends are read off the resampled rates."""

BOOTSTRAP_METHODS: tuple[BootstrapMethod, ...] = ("percentile", "bca")

#: Equal rates from different prompts differ by rounding only; this is far above that.
_TIE = 1e-12

Counts: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBootstrap:
    """A rate over prompts with a bootstrap interval, and the seed that reproduces it."""

    estimand: Estimand
    population: str
    prompts: int
    trials: int
    successes: int
    rate: float
    method: BootstrapMethod
    resamples: int
    seed: int
    interval: Interval | Undefined


def cluster_bootstrap(
    groups: Groups,
    *,
    confidence: float = 0.95,
    resamples: SupportsIndex = 1999,
    seed: SupportsIndex,
    estimand: Estimand = "prompt-weighted",
    method: BootstrapMethod = "percentile",
) -> ClusterBootstrap:
    """A rate over prompts with the interval that resampling whole prompts gives.

    J prompts are drawn with replacement from the J observed, with all their trials, and the rate
    is computed again. ``"percentile"`` takes the order statistics ⌊(B + 1) α/2⌋ from either end;
    ``"bca"`` shifts them for bias and, by a jackknife over prompts, for skewness. A resample can
    only repeat prompts that were seen, so with few prompts, or few that differ from the rest, both
    are too short; `prompt_weighted` and `call_weighted` are not.

    Parameters
    ----------
    groups : (successes, trials) of each distinct prompt, at least one prompt.
    confidence : strictly between 0 and 1, two-sided.
    resamples : B, large enough that (B + 1) α/2 is at least 1.
    seed : fixes the draws, on every platform and Python version.
    estimand : ``"prompt-weighted"`` or ``"call-weighted"``.
    method : ``"percentile"`` or ``"bca"``.

    Returns
    -------
    ClusterBootstrap
        Its interval is Undefined for fewer than two prompts and when every prompt has the same
        rate: resampling then shows a point, which is not certainty.

    References
    ----------
    Companion 8.2, 8.2.1; Efron and Tibshirani (1993), sections 13.3 and 14.3; Davison and Hinkley
    (1997), section 3.8.

    Examples
    --------
    >>> groups = [(9, 10), (4, 10), (10, 10), (7, 10), (2, 10), (8, 10)]
    >>> result = cluster_bootstrap(groups, seed=7)
    >>> result == cluster_bootstrap(groups, seed=7)
    True
    >>> result.rate in result.interval
    True
    """
    counts = check_groups(groups)
    alpha = 1 - require_open_rate("confidence", confidence)
    B = require_count("resamples", resamples, minimum=1)
    if (B + 1) * alpha / 2 < 1 - 1e-9:
        needed = math.ceil(2 / alpha - 1e-9) - 1
        raise InvalidArgument("resamples", resamples, f"be at least {needed} at this confidence")
    start = require_count("seed", seed)
    require_choice("estimand", estimand, ESTIMANDS)
    require_choice("method", method, BOOTSTRAP_METHODS)
    mean = _call_mean if estimand == "call-weighted" else _prompt_mean
    return ClusterBootstrap(
        estimand=estimand,
        population=POPULATIONS[estimand],
        prompts=len(counts),
        trials=sum(m for _, m in counts),
        successes=sum(y for y, _ in counts),
        rate=mean(counts),
        method=method,
        resamples=B,
        seed=start,
        interval=_interval(
            counts, mean, confidence=confidence, resamples=B, seed=start, method=method
        ),
    )


def _interval(
    counts: Counts,
    mean: Callable[[Counts], float],
    *,
    confidence: float,
    resamples: int,
    seed: int,
    method: BootstrapMethod,
) -> Interval | Undefined:
    if len(counts) < 2:
        return Undefined("resampling one prompt shows nothing about how prompts differ")
    first_y, first_m = counts[0]
    if all(y * first_m == first_y * m for y, m in counts):
        return Undefined("every prompt has the same rate, so resampling prompts shows no spread")
    replicates = _replicates(counts, mean, resamples, seed)
    alpha = 1 - confidence
    tails = (alpha / 2, 1 - alpha / 2)
    if method == "bca":
        adjusted = _bca_tails(counts, mean, replicates, tails)
        if isinstance(adjusted, Undefined):
            return adjusted
        tails = adjusted
    return Interval(
        replicates[_rank(tails[0], resamples) - 1],
        replicates[resamples - _rank(1 - tails[1], resamples)],
        confidence=confidence,
        method=f"cluster bootstrap, {method}",
    )


def _rank(tail: float, resamples: int) -> int:
    """How many order statistics into the resamples a tail reaches."""
    # (B + 1) α/2 is a whole number for the usual B; rounding must not push it below itself.
    return min(max(math.floor((resamples + 1) * tail + 1e-9), 1), resamples)


def _replicates(
    counts: Counts, mean: Callable[[Counts], float], resamples: int, seed: int
) -> list[float]:
    from random import Random

    # `random()` alone is promised to repeat across Python versions; `choices` is not.
    draw = Random(seed).random
    J = len(counts)
    # In a fixed order, so that the order in which prompts are listed changes nothing.
    prompts = sorted(counts)
    return sorted(
        mean(tuple([prompts[int(draw() * J)] for _ in range(J)])) for _ in range(resamples)
    )


def _bca_tails(
    counts: Counts,
    mean: Callable[[Counts], float],
    replicates: list[float],
    tails: tuple[float, float],
) -> tuple[float, float] | Undefined:
    rate = mean(counts)
    # Counts make ties, up to rounding of their means: half of them lie on either side.
    below = sum((value < rate + _TIE) + (value < rate - _TIE) for value in replicates) / 2
    if not 0 < below < len(replicates):
        return Undefined("every resampled rate lies on one side of the rate: BCa has no bias term")
    bias = normal_quantile(below / len(replicates))
    left_out = [mean(counts[:j] + counts[j + 1 :]) for j in range(len(counts))]
    centre = math.fsum(left_out) / len(left_out)
    square = math.fsum((centre - value) ** 2 for value in left_out)
    cube = math.fsum((centre - value) ** 3 for value in left_out)
    skew = cube / (6 * square**1.5) if square > 0 else 0.0
    shifted = [bias + normal_quantile(tail) for tail in tails]
    if any(skew * z >= 1 for z in shifted):
        return Undefined("the prompts' rates are too skewed for BCa at this confidence")
    low, high = (normal_cdf(bias + z / (1 - skew * z)) for z in shifted)
    return low, high


def _call_mean(counts: Counts) -> float:
    return sum(y for y, _ in counts) / sum(m for _, m in counts)


def _prompt_mean(counts: Counts) -> float:
    return math.fsum(y / m for y, m in counts) / len(counts)
