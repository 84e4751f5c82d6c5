"""The beta-binomial model of repeated inputs: each input has a rate of its own (companion 8.2.1).

A module of its own because it is the one fitted model among the cluster methods, with a
likelihood, its derivatives and an optimiser. `scipy` is not asked: the likelihood is concave in
the mean and one-dimensional once that is solved, so bisection finds its maximum to the last digit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import fsum, lgamma, log
from typing import Literal, TypeAlias

from trialwise.stats.binomial import find_end
from trialwise.stats.cluster_correlation import unfit_for_correlation
from trialwise.stats.cluster_estimators import Groups, check_groups
from trialwise.stats.result_types import Undefined

FitLocation: TypeAlias = Literal["interior", "rho=0", "rho=1"]
"""Where the likelihood is largest: inside, at the binomial model, or at all-or-nothing inputs."""

#: Where the slope of the profile likelihood is looked at before bisection: ρ/(1 − ρ) = 2^j. Even
#: steps in log odds, because the maximum of a large design can lie close to 0.
_GRID = tuple(2.0**j / (1 + 2.0**j) for j in range(-30, 31, 2))
#: Rounding in the slopes hides any difference below this.
_RESOLUTION = 1e-15
#: Newton takes about six steps and falls back on halving, which needs at most as many as a double
#: has digits.
_MAX_STEPS = 100

Counts: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaBinomialFit:
    """The maximum-likelihood beta-binomial model of counts per input."""

    inputs: int
    trials: int
    successes: int
    mean: float
    """The mean rate over the population of inputs."""
    rho: float
    """The correlation of two trials of one input, 1/(α + β + 1)."""
    location: FitLocation
    log_likelihood: float
    binomial_log_likelihood: float
    """With one common rate: ρ = 0."""
    converged: bool
    """Whether the slope in both directions vanishes, or the maximum is at a proven boundary."""

    @property
    def likelihood_ratio(self) -> float:
        """Twice the gain over the binomial model, never negative."""
        return 2 * max(self.log_likelihood - self.binomial_log_likelihood, 0.0)

    @property
    def shape(self) -> tuple[float, float] | Undefined:
        """The α and β of the beta distribution of rates."""
        if self.location != "interior":
            return Undefined(f"at {self.location} the rates have no beta density")
        precision = (1 - self.rho) / self.rho
        return self.mean * precision, (1 - self.mean) * precision


def beta_binomial_fit(groups: Groups) -> BetaBinomialFit | Undefined:
    """The maximum-likelihood mean rate and within-input correlation under beta-distributed rates.

    Input j has rate θⱼ ~ Beta(α, β) and yⱼ | θⱼ ~ Binomial(mⱼ, θⱼ), with mean μ = α/(α + β) and
    ρ = 1/(α + β + 1). The log-likelihood, with Sᵢ inputs of more than i successes, Fᵢ of more than
    i failures and Tᵢ of more than i trials, is

    ``Σᵢ Sᵢ log(μ(1−ρ) + iρ) + Fᵢ log((1−μ)(1−ρ) + iρ) − Tᵢ log(1−ρ + iρ) + Σⱼ log C(mⱼ, yⱼ)``.

    It is concave in μ for given ρ, and the profile over ρ is searched over the whole of (0, 1).
    When no interior point beats the binomial model, the fit falls back to ρ = 0 and the pooled
    rate; when every input always or never succeeds the maximum is at ρ = 1.

    Parameters
    ----------
    groups : (successes, trials) of each distinct input, at least one input.

    Returns
    -------
    BetaBinomialFit or Undefined
        Undefined for fewer than two inputs, when no input has two trials, and when all outcomes
        are the same: the likelihood then does not determine ρ.

    References
    ----------
    Companion 8.2, 8.2.1; Griffiths (1973), Biometrics 29, 637–648.

    Examples
    --------
    >>> fit = beta_binomial_fit([(9, 10), (4, 10), (10, 10), (7, 10), (2, 10)])
    >>> round(fit.mean, 3), round(fit.rho, 3), fit.location
    (0.652, 0.313, 'interior')
    >>> beta_binomial_fit([(5, 10), (5, 10)]).location
    'rho=0'
    """
    counts = check_groups(groups)
    if (unfit := unfit_for_correlation(counts)) is not None:
        return unfit
    return _fit(counts)


def _fit(counts: Counts) -> BetaBinomialFit:
    likelihood = _Likelihood.of(counts)
    successes, trials = sum(y for y, _ in counts), sum(m for _, m in counts)
    pooled = successes / trials
    binomial = likelihood.value(pooled, 0.0)
    location: FitLocation = "rho=0"
    mean, rho, best, converged = pooled, 0.0, binomial, True
    if all(y in (0, m) for y, m in counts):
        # E θ^m and E (1 − θ)^m grow with ρ at every mean, so the maximum is at ρ = 1.
        location, rho = "rho=1", 1.0
        mean = sum(y > 0 for y, _ in counts) / len(counts)
        best = likelihood.all_or_nothing(mean)
    else:
        peaks, converged = _peaks(likelihood, pooled)
        for candidate in peaks:
            at = likelihood.best_mean(candidate, pooled)
            if (value := likelihood.value(at, candidate)) > best:
                location, mean, rho, best = "interior", at, candidate, value
    return BetaBinomialFit(
        inputs=len(counts),
        trials=trials,
        successes=successes,
        mean=mean,
        rho=rho,
        location=location,
        log_likelihood=best,
        binomial_log_likelihood=binomial,
        converged=converged,
    )


def _peaks(likelihood: _Likelihood, pooled: float) -> tuple[list[float], bool]:
    """Every ρ of (0, 1) where the profile likelihood stops rising, and whether it ends falling."""

    def rising(rho: float) -> bool:
        return likelihood.slope(likelihood.best_mean(rho, pooled), rho) > 0

    peaks = []
    left, was_rising = 0.0, rising(0.0)
    for right in _GRID:
        is_rising = rising(right)
        if was_rising and not is_rising:
            peaks.append(find_end(left, right, rising, _RESOLUTION))
        left, was_rising = right, is_rising
    return peaks, not was_rising


@dataclass(frozen=True, slots=True)
class _Likelihood:
    """The log-likelihood through how many inputs exceed i successes, failures and trials."""

    successes: tuple[int, ...]
    failures: tuple[int, ...]
    trials: tuple[int, ...]
    constant: float
    """Σ log C(m, y), which does not depend on the parameters."""

    @classmethod
    def of(cls, counts: Counts) -> _Likelihood:
        longest = max(m for _, m in counts)
        return cls(
            _exceeding([y for y, _ in counts], longest),
            _exceeding([m - y for y, m in counts], longest),
            _exceeding([m for _, m in counts], longest),
            fsum(lgamma(m + 1) - lgamma(y + 1) - lgamma(m - y + 1) for y, m in counts),
        )

    def value(self, mean: float, rho: float) -> float:
        a, b, c = mean * (1 - rho), (1 - mean) * (1 - rho), 1 - rho
        return self.constant + fsum(
            (S * log(a + i * rho) if S else 0.0)
            + (F * log(b + i * rho) if F else 0.0)
            - T * log(c + i * rho)
            for i, (S, F, T) in enumerate(self._rows())
        )

    def all_or_nothing(self, mean: float) -> float:
        """The limit at ρ = 1, where an input's first trial decides all of its trials."""
        return self.successes[0] * log(mean) + self.failures[0] * log(1 - mean)

    def slope(self, mean: float, rho: float) -> float:
        """The derivative in ρ, which at the best mean is the slope of the profile."""
        a, b, c = mean * (1 - rho), (1 - mean) * (1 - rho), 1 - rho
        return fsum(
            S * (i - mean) / (a + i * rho)
            + F * (i - 1 + mean) / (b + i * rho)
            - T * (i - 1) / (c + i * rho)
            for i, (S, F, T) in enumerate(self._rows())
        )

    def best_mean(self, rho: float, start: float) -> float:
        """The mean at which the likelihood is largest for this ρ: the root of a falling slope."""
        low, high, mean = 0.0, 1.0, start
        for _ in range(_MAX_STEPS):
            slope, bend = self._mean_slope(mean, rho)
            low, high = (mean, high) if slope > 0 else (low, mean)
            following = mean + slope / bend
            if not low < following < high:
                following = (low + high) / 2
            if abs(following - mean) <= _RESOLUTION * mean:
                return following
            mean = following
        return mean

    def _mean_slope(self, mean: float, rho: float) -> tuple[float, float]:
        """The derivative in the mean over 1 − ρ, and minus its own derivative."""
        a, b, c = mean * (1 - rho), (1 - mean) * (1 - rho), 1 - rho
        slope = bend = 0.0
        for i, (S, F, _) in enumerate(self._rows()):
            up, down = 1 / (a + i * rho), 1 / (b + i * rho)
            slope += S * up - F * down
            bend += c * (S * up * up + F * down * down)
        return slope, bend

    def _rows(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.successes, self.failures, self.trials, strict=True)


def _exceeding(values: list[int], longest: int) -> tuple[int, ...]:
    """For i = 0 … longest − 1, how many of the values exceed i."""
    ending = Counter(values)
    left = accumulate((-ending[i] for i in range(longest)), initial=len(values))
    return tuple(left)[1:]
