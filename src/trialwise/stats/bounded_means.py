"""Intervals for numbers between 0 and 1 of any distribution, valid at every sample size.

For what is no proportion of independent trials with one rate: scores, means over inputs, spreads.
They are wide where there is little to go by. A bootstrap of so few values would be short and
wrong: five equal runs would have a variance of exactly 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trialwise.decimals import as_written, complement
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import find_end
from trialwise.stats.result_types import Count, Interval, Undefined
from trialwise.validation import require_count, require_open_rate, require_positive, require_rate


def bounded_mean_interval(mean: float, count: Count, *, confidence: float = 0.95) -> Interval:
    """The interval for the expected mean of independent values in [0, 1].

    The m with kl(mean, m) ≤ ln(2/α)/count, kl the divergence between two coins (Hoeffding 1963,
    theorem 1). The values need not be alike: it is then about the mean of their expectations. A
    U-statistic of order k of n trials counts as ⌊n/k⌋ values (section 5 there), since it is a mean
    over orders of the trials of such means.

    Parameters
    ----------
    mean : float
        The observed mean, between 0 and 1.
    count : int
        How many values, at least 1.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> low, high = bounded_mean_interval(0.7, 5)
    >>> round(low, 3), round(high, 3)
    (0.157, 0.989)
    """
    centre = require_rate("mean", mean)
    budget = _log_of(confidence) / require_count("count", count, minimum=1)
    return Interval(
        1 - _furthest(1 - centre, budget),
        _furthest(centre, budget),
        confidence=confidence,
        method="bounded mean",
    )


def weighted_mean_interval(
    mean: float, weights: Sequence[float], *, confidence: float = 0.95
) -> Interval:
    """The interval for the expected weighted mean of independent values in [0, 1].

    mean ± √(ln(2/α) Σw² / 2) with the weights' sum set to 1, cut at 0 and 1 (Hoeffding 1963,
    theorem 2).

    Parameters
    ----------
    mean : float
        The observed weighted mean, between 0 and 1.
    weights : sequence of float
        Of each value, above 0.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> low, high = weighted_mean_interval(0.6, range(1, 101))
    >>> round(low, 3), round(high, 3)
    (0.444, 0.756)
    """
    centre = require_rate("mean", mean)
    given = [require_positive("weights", weight) for weight in weights]
    if not given:
        raise InvalidArgument("weights", weights, "hold at least one")
    total = math.fsum(given)
    share = math.fsum((weight / total) ** 2 for weight in given)
    half = math.sqrt(_log_of(confidence) * share / 2)
    return Interval(
        max(0.0, centre - half),
        min(1.0, centre + half),
        confidence=confidence,
        method="weighted bounded mean",
    )


def bounded_variance_interval(
    values: Sequence[float], *, confidence: float = 0.95
) -> Interval | Undefined:
    """The interval for the variance that independent values in [0, 1] come from.

    The standard deviation is within √(2 ln(2/α)/(n−1)) of the sample's (Maurer & Pontil 2009,
    theorem 10); cut at 0 and at 1/4, the largest variance there is.

    Parameters
    ----------
    values : sequence of float
        Between 0 and 1; fewer than two have no spread.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> low, high = bounded_variance_interval([0.2, 0.4] * 200)
    >>> low, round(high, 4)
    (0.0, 0.0557)
    """
    given = [require_rate("values", value) for value in values]
    budget = _log_of(confidence)
    if len(given) < 2:
        return Undefined("a variance needs at least two values")
    mean = math.fsum(given) / len(given)
    freedom = len(given) - 1
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in given) / freedom)
    half = math.sqrt(2 * budget / freedom)
    return Interval(
        max(0.0, spread - half) ** 2,
        min(0.25, (spread + half) ** 2),
        confidence=confidence,
        method="bounded variance",
    )


def _log_of(confidence: float) -> float:
    return math.log(2 / (1 - require_open_rate("confidence", confidence)))


def _furthest(mean: float, budget: float) -> float:
    """The largest m ≥ mean with kl(mean, m) ≤ budget, by bisection, rounded outward."""
    return find_end(mean, 1.0, lambda m: coin_divergence(mean, m) <= budget)


def coin_divergence(a: float, b: float) -> float:
    """The divergence of a coin of rate a from one of rate b, for 0 < b < 1 (Kullback, Leibler)."""
    heads = a * math.log(a / b) if a > 0 else 0.0
    return heads + ((1 - a) * math.log((1 - a) / (1 - b)) if a < 1 else 0.0)


# Bounds on the mean of scores between 0 and 1 of any distribution, by betting against a mean.
#
# A gambler who does not believe that the mean is as low as m bets a share θ of the capital on every
# score: a score x turns 1 into 1 − θ + θ·x/m. If the mean is m or less, the expected capital never
# exceeds 1, so that it reaches 1/α with probability at most α. All m against which it does are
# ruled out. The capital is divided evenly among several θ, so that one of them suits scores that
# hardly vary and another one scores of 0 and 1.
#
# The scores have to be independent, and need not be alike. With a constant θ the expected capital
# is a product of 1 − θ + θ·μᵢ/m, which is largest where all means μᵢ are the same (arithmetic and
# geometric mean; Maclaurin's inequality where an incomplete round draws some of the inputs). So the
# bound is about the mean over fixed inputs, in whatever order they are asked.

#: More different scores are rounded down to this many, which costs less than 0.0003 of a bound.
_MOST_SCORES = 4096
#: How closely the ends are found.
_PRECISION = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDesign:
    """What a required mean score is decided by, from a fixed number of trials."""

    required_mean: float
    trials: int
    low_error: float = 0.05
    """The largest probability of showing the mean although the true one is lower."""
    high_error: float = 0.05
    """The largest probability of showing a lower mean although the true one is as required."""
    undecided: str = "fail"
    """What scores say that show neither: "fail" or "inconclusive"."""

    def bound(self, scores: Sequence[float]) -> Interval:
        """The interval of the mean; its low end reaches the required one where that is shown.

        >>> design = MeanDesign(required_mean=0.8, trials=40)
        >>> design.bound([0.9] * 40).low > 0.8
        True
        """
        found = betting_mean_interval(scores, low_error=self.low_error, high_error=self.high_error)
        required, low, high = self.required_mean, found.low, found.high
        # The ends are found to ten decimals, and a decision must not hang on the eleventh.
        if betting_capital(scores, required) * self.low_error >= 1:
            low = max(low, required)
        elif low >= required:
            low = math.nextafter(required, 0)
        if betting_capital([1 - one for one in scores], 1 - required) * self.high_error >= 1:
            high = min(high, math.nextafter(required, 0))
        elif high < required:
            high = required
        return replace(found, low=low, high=high)


def betting_mean_interval(
    scores: Iterable[float], *, low_error: float = 0.05, high_error: float = 0.05
) -> Interval:
    """The interval for the expected mean of independent scores in [0, 1], for any distribution.

    Each end is wrong with at most its own probability, at every number of scores (Waudby-Smith and
    Ramdas 2024, with constant bets that do not depend on the order of the scores).

    Parameters
    ----------
    scores : iterable of float
        Between 0 and 1, at least one.
    low_error, high_error : float
        The largest probability that the mean is below the low end, and above the high end.

    Examples
    --------
    >>> low, high = betting_mean_interval([0.8, 0.9, 1.0, 0.9] * 10)
    >>> round(low, 3), round(high, 3)
    (0.803, 0.932)
    """
    given = [require_rate("scores", one) for one in scores]
    if not given:
        raise InvalidArgument("scores", [], "hold at least one")
    require_open_rate("low_error", low_error)
    require_open_rate("high_error", high_error)
    counts, mirrored = Counter(given), Counter(1 - score for score in given)
    confidence = complement(float(as_written(low_error) + as_written(high_error)))
    low, high = _find_low(counts, low_error), 1 - _find_low(mirrored, high_error)
    return Interval(low, high, confidence=confidence, method="betting")


def fewest_scores(mean: float, *, error: float = 0.05) -> int:
    """The fewest scores of 1 that show a mean of at least `mean`.

    Parameters
    ----------
    mean : float
        The required mean, strictly between 0 and 1.
    error : float
        The largest probability of showing it wrongly.

    Examples
    --------
    >>> fewest_scores(0.8)
    20
    """
    required, level = require_open_rate("mean", mean), require_open_rate("error", error)
    count = 1
    while _log_capital({1.0: count}, required, count) < -math.log(level):
        count += max(1, count // 64)
    while count > 1 and _log_capital({1.0: count - 1}, required, count - 1) >= -math.log(level):
        count -= 1
    return count


def betting_capital(scores: Iterable[float], mean: float) -> float:
    """What a capital of 1 becomes that bets on a mean above `mean`.

    Its expectation is at most 1 where the true mean is `mean` or lower, so that its inverse is a
    p-value.

    Parameters
    ----------
    scores : iterable of float
        Between 0 and 1, at least one.
    mean : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> round(betting_capital([1.0, 0.5], 0.5), 4)
    1.5833
    """
    counts = Counter(require_rate("scores", one) for one in scores)
    total = require_count("scores", sum(counts.values()), minimum=1)
    found = _log_capital(counts, require_open_rate("mean", mean), total)
    return math.inf if found > 700 else math.exp(found)


def _shares(count: Count) -> list[float]:
    """Return the shares of the capital to bet: 1, 1/2, 1/4 and so on, more of them for more scores.

    A mean that differs by d is told apart by some 1/d² scores, at a share of about d.
    """
    least = math.ceil(math.log2(require_count("count", count, minimum=1)) / 2) + 1
    return [2.0**-step for step in range(least + 1)]


def _log_capital(counts: Mapping[float, int], mean: float, total: int) -> float:
    shares = _shares(total)
    logs = [
        math.fsum(
            count * math.log(gain) if (gain := 1 - share + share * score / mean) > 0 else -math.inf
            for score, count in counts.items()
        )
        for share in shares
    ]
    most = max(logs)
    return most + math.log(math.fsum(math.exp(one - most) for one in logs) / len(shares))


def _find_low(counts: Mapping[float, int], error: float) -> float:
    """The smallest mean that is not ruled out, to ten decimals and rounded outward."""
    if len(counts) > _MOST_SCORES:
        counts = _round_down(counts)
    total, limit = sum(counts.values()), -math.log(error)
    # The capital falls as the mean rises. No bet against the observed mean wins.
    observed = math.fsum(score * count for score, count in counts.items()) / total

    def is_open(mean: float) -> bool:
        return _log_capital(counts, mean, total) < limit

    return find_end(observed, 0.0, is_open, _PRECISION)


def _round_down(counts: Mapping[float, int]) -> Mapping[float, int]:
    """Return lower scores of which few differ: a bound on their mean holds for the others, too."""
    rounded: Counter[float] = Counter()
    for score, count in counts.items():
        rounded[math.floor(score * _MOST_SCORES) / _MOST_SCORES] += count
    return rounded
