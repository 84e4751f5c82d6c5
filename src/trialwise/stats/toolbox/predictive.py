"""The Bayesian way to carry the baseline's uncertainty: predict the test before judging it.

Companion §4.5 names it as the cleaner alternative to the Wilson threshold. Given a Beta(a, b)
prior and k successes in n baseline trials, the successes of the coming test are

    K_t | k, n ~ BetaBinomial(n_t, a + k, b + n − k),

and the cutoff is the integer below which that count falls with probability at most alpha. The
probability is averaged over the posterior; the false-alarm probability at a fixed rate is another
number, may exceed alpha, and is therefore reported beside it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul
from typing import SupportsIndex, TypeAlias

from trialwise.decimals import RELATIVE_BAND, as_written
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import average_below, binomial_weight, likely_counts
from trialwise.stats.result_types import Undefined
from trialwise.validation import (
    require_count,
    require_open_rate,
    require_positive,
    require_rate,
    require_successes,
)

Prior: TypeAlias = tuple[float, float]

#: The reference prior for a rate, and the companion's choice.
JEFFREYS: Prior = (0.5, 0.5)

#: A walk adds rounding at every step; a fresh sum this often keeps it below 1e-13.
_REFRESH = 128
#: Bits of the fixed-point sums that decide where doubles cannot, and of those that must agree.
_BITS, _EQUAL_BITS = 256, 166


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorPredictive:
    """What a baseline predicts for the successes of a test."""

    baseline_successes: int
    baseline_trials: int
    trials: int
    prior: Prior
    pmf: tuple[float, ...] = field(repr=False)
    """P(K_t = 0), …, P(K_t = trials)."""

    @property
    def shape(self) -> tuple[float, float]:
        """The two parameters of the posterior Beta distribution of the rate."""
        return _shape(self.baseline_successes, self.baseline_trials, self.prior)

    @property
    def mean(self) -> float:
        """The expected successes, n_t A/(A + B)."""
        a, b = self.shape
        return self.trials * a / (a + b)

    @property
    def variance(self) -> float:
        """The binomial variance at the mean rate, times (A + B + n_t)/(A + B + 1) for its doubt."""
        a, b = self.shape
        total = a + b
        return self.trials * (a / total) * (b / total) * (total + self.trials) / (total + 1)

    def cdf(self, successes: int) -> float:
        """P(K_t ≤ successes); 0 and 1 outside the range."""
        if successes >= self.trials:
            return 1.0
        return min(1.0, math.fsum(self.pmf[: max(successes + 1, 0)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictiveCutoff:
    """A regression cutoff from the posterior predictive distribution."""

    baseline_successes: int
    baseline_trials: int
    trials: int
    alpha: float
    prior: Prior
    cutoff: int
    """The fewest successes that PASS: the largest c with P(K_t < c) ≤ alpha."""
    predictive_tail: float
    """P(K_t < cutoff) under the posterior predictive: what the rule spends of alpha."""
    mean: float
    """The expected successes of the test."""
    design_false_alarm: float | Undefined
    """P(FAIL) at the baseline's observed rate with the baseline random too: nothing changed.

    Undefined where that rate is 0 or 1, since nothing then varies.
    """

    @property
    def prior_name(self) -> str:
        """What the prior is called: "Jeffreys", "uniform" or by its parameters."""
        if self.prior == JEFFREYS:
            return "Jeffreys"
        a, b = self.prior
        return "uniform" if a == b == 1 else f"Beta({a:g}, {b:g})"

    @property
    def displayed_rate(self) -> float:
        """The cutoff as a rate to six decimals, for people; the integer decides (§3.4)."""
        return round(self.cutoff / self.trials, 6)


def posterior_predictive(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    *,
    prior: Prior = JEFFREYS,
) -> PosteriorPredictive:
    """The beta-binomial distribution of a test's successes, given a baseline (companion §4.5).

    P(K_t = j) ∝ C(n_t, j) B(A + j, B + n_t − j), A = a + k, B = b + n − k, by ratios outward from
    the likeliest count and divided by their sum.

    Parameters
    ----------
    baseline_successes, baseline_trials : int
        The measured baseline, 0 ≤ successes ≤ trials, at least one trial.
    trials : int
        Trials of the test, at least 1.
    prior : (float, float)
        The two parameters of the Beta prior, above 0. Jeffreys' (½, ½) by default.

    Examples
    --------
    Under a uniform prior, n successes in n trials are followed by another with odds n + 1 to 1:

    >>> [round(p, 9) for p in posterior_predictive(8, 8, 1, prior=(1, 1)).pmf]
    [0.1, 0.9]
    """
    k, nb, n = _check_runs(baseline_successes, baseline_trials, trials)
    ab = _check_prior(prior)
    return PosteriorPredictive(
        baseline_successes=k,
        baseline_trials=nb,
        trials=n,
        prior=ab,
        pmf=tuple(_pmfs(n, *_shape(k, nb, ab))),
    )


def predictive_cutoff(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
    prior: Prior = JEFFREYS,
) -> PredictiveCutoff:
    """The largest c with P(K_t < c) ≤ alpha under the posterior predictive: PASS iff K_t ≥ c.

    Parameters
    ----------
    baseline_successes, baseline_trials : int
        The measured baseline, 0 ≤ successes ≤ trials, at least one trial.
    trials : int
        Trials of the test, at least 1.
    alpha : float
        The predictive probability of a FAIL, strictly between 0 and 1.
    prior : (float, float)
        The two parameters of the Beta prior, above 0.

    References
    ----------
    Companion §4.5; Gelman et al. (2013), "Bayesian Data Analysis", §2.

    Examples
    --------
    >>> design = predictive_cutoff(951, 1000, 100)
    >>> design.cutoff, design.prior_name, round(design.predictive_tail, 6)
    (91, 'Jeffreys', 0.032917)
    """
    k, nb, n = _check_runs(baseline_successes, baseline_trials, trials)
    level = require_open_rate("alpha", alpha)
    ab = _check_prior(prior)
    a, b = _shape(k, nb, ab)
    rule = _Rule(baseline_trials=nb, trials=n, prior=ab, alpha=level)
    cutoff, tail = rule.cutoff(k)
    return PredictiveCutoff(
        baseline_successes=k,
        baseline_trials=nb,
        trials=n,
        alpha=level,
        prior=ab,
        cutoff=cutoff,
        predictive_tail=tail,
        mean=n * a / (a + b),
        design_false_alarm=(
            Undefined("at a rate of 0 or 1 neither run varies")
            if k in (0, nb)
            else rule.false_alarm(k / nb)
        ),
    )


def predictive_false_alarm(
    rate: float,
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
    prior: Prior = JEFFREYS,
) -> float:
    """P(FAIL) of the predictive rule when baseline and test are drawn at one common rate.

    Σ_k P(K_b = k) P(K_t < c(k)), enumerated. The rule bounds the average over the posterior, not
    this: it may exceed alpha.

    Examples
    --------
    >>> round(predictive_false_alarm(0.977, 100, 500), 4)
    0.0602
    """
    rule = _Rule(
        baseline_trials=require_count("baseline_trials", baseline_trials, minimum=1),
        trials=require_count("trials", trials, minimum=1),
        prior=_check_prior(prior),
        alpha=require_open_rate("alpha", alpha),
    )
    return rule.false_alarm(require_rate("rate", rate))


def _check_runs(
    baseline_successes: SupportsIndex, baseline_trials: SupportsIndex, trials: SupportsIndex
) -> tuple[int, int, int]:
    k, nb = require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    return k, nb, require_count("trials", trials, minimum=1)


def _check_prior(prior: Prior) -> Prior:
    try:
        a, b = prior
    except (TypeError, ValueError):
        raise InvalidArgument("prior", prior, "be a pair of numbers above 0") from None
    return require_positive("prior[0]", a), require_positive("prior[1]", b)


def _shape(k: int, nb: int, prior: Prior) -> tuple[float, float]:
    return prior[0] + k, prior[1] + (nb - k)


def _mode(n: int, a: float, b: float) -> int:
    """The likeliest count, or the likelier end where both shapes are below 1."""
    if a + b <= 2:
        return n if a > b else 0
    return min(max(math.floor((n + 1) * (a - 1) / (a + b - 2)), 0), n)


def _pmfs(n: int, a: float, b: float) -> list[float]:
    mode, top = _mode(n, a, b), b + (n - 1)
    rising = [(n - j) * (a + j) / ((j + 1) * (top - j)) for j in range(mode, n)]
    falling = [j * (b + (n - j)) / ((n - j + 1) * (a + (j - 1))) for j in range(mode, 0, -1)]
    weights = list(accumulate(falling, mul))
    weights.reverse()
    weights.extend(accumulate(rising, mul, initial=1.0))
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def _mass(x: int, n: int, a: float, b: float) -> float:
    """P(K_t = x), as a ratio of three binomial weights at a common rate."""
    total = a + b + n
    p, q = (x + a) / total, (n - x + b) / total
    return (
        binomial_weight(x, n, p, q)
        * binomial_weight(a, a + b, p, q)
        / binomial_weight(x + a, total, p, q)
        * (a * b / (a + b))
        / (total * p * q)
    )


def _tail(x: int, n: int, a: float, b: float) -> float:
    """P(K_t ≤ x), summed downward from x."""
    term = total = _mass(x, n, a, b)
    for j in range(x, 0, -1):
        term *= j * (b + (n - j)) / ((n - j + 1) * (a + (j - 1)))
        total += term
        if term < 1e-18 * total:
            break
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """The predictive cutoff as a function of the baseline's count."""

    baseline_trials: int
    trials: int
    prior: Prior
    alpha: float

    def cutoff(self, k: int) -> tuple[int, float]:
        """The cutoff at one baseline count, with P(K_t < cutoff)."""
        pmf = _pmfs(self.trials, *_shape(k, self.baseline_trials, self.prior))
        below = list(accumulate(pmf))
        x = bisect_left(below, self.alpha * (1 - RELATIVE_BAND), hi=self.trials)
        while x < self.trials and self.admits(below[x], k, x):
            x += 1
        return x, math.fsum(pmf[:x])

    def cutoffs(self, first: int, last: int) -> Iterator[int]:
        """The cutoff for every baseline count from `first` to `last`, one term a step.

        With G the predictive distribution function and g its mass at x, one more baseline success
        changes G(x) by −g(x) (n−x)(x+A) / (A(n−x+B−1)) and g(x) by (x+A)(B−1) / (A(n−x+B−1)).
        """
        n, alpha = self.trials, self.alpha
        x, _ = self.cutoff(first)
        mass = tail = largest = 0.0
        for k in range(first, last + 1):
            a, b = _shape(k, self.baseline_trials, self.prior)
            # Adding keeps its digits. Subtracting wears them away, and leaves none near a small
            # alpha that is reached from far above.
            if (k - first) % _REFRESH == 0 or tail < 10 * alpha < largest / 100:
                mass, tail = _mass(x, n, a, b), _tail(x, n, a, b)
                largest = tail
            while x < n and self.admits(tail, k, x):
                mass *= (n - x) * (a + x) / ((x + 1) * (b + (n - x - 1)))
                tail += mass
                x += 1
            yield x
            if k < last:
                largest = max(largest, tail)
                ratio = (x + a) / (a * (n - x + b - 1))
                tail -= mass * (n - x) * ratio
                mass *= (b - 1) * ratio

    def false_alarm(self, rate: float) -> float:
        """P(FAIL) when both runs are drawn at one rate."""
        first, weights = likely_counts(self.baseline_trials, rate)
        cutoffs = list(self.cutoffs(first, first + len(weights) - 1))
        return average_below(weights, cutoffs, self.trials, rate)

    def admits(self, tail: float, k: int, x: int) -> bool:
        """Whether P(K_t ≤ x), which is about `tail`, is at most alpha (companion §10.6)."""
        if abs(tail - self.alpha) > RELATIVE_BAND * self.alpha:
            return tail <= self.alpha
        return self._admits_in_fixed_point(k, x)

    def _admits_in_fixed_point(self, k: int, x: int) -> bool:
        """The same in 256-bit integers; sums that agree to fifty digits count as equal.

        Not in rationals, as elsewhere: with real shapes these grow at every step by the decimals
        of the prior, and a tie in a large test would take minutes.
        """
        n = self.trials
        a = as_written(self.prior[0]) + k
        b = as_written(self.prior[1]) + self.baseline_trials - k
        mode, one = _mode(n, float(a), float(b)), 1 << _BITS
        weights = {mode: one}
        for j in range(mode, n):
            ratio = (n - j) * (a + j) / ((j + 1) * (b + n - j - 1))
            weights[j + 1] = weights[j] * ratio.numerator // ratio.denominator
        for j in range(mode, 0, -1):
            ratio = j * (b + n - j) / ((n - j + 1) * (a + j - 1))
            weights[j - 1] = weights[j] * ratio.numerator // ratio.denominator
        level = as_written(self.alpha)
        lower = sum(weights[j] for j in range(x + 1)) * level.denominator
        allowed = sum(weights.values()) * level.numerator
        return lower - allowed <= level.denominator << (_BITS - _EQUAL_BITS)
