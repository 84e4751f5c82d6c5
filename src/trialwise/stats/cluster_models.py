"""Rates over repeated inputs by a model of how alike trials of one input are (companion §8.2.1).

- generalised estimating equations (Liang and Zeger 1986): one rate, an exchangeable working
  correlation, a sandwich variance and Student's interval on the logit
- cluster bootstrap: whole inputs are drawn again, interval BCa
- beta-binomial: rates of inputs follow a beta distribution, Clopper and Pearson's interval on the
  trials that the fitted correlation leaves

All of them are approximate and too narrow with few inputs. Where no input differs from another, no
model can tell how alike trials are; the interval is then the one over inputs (`prompt_weighted`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats import cluster_estimators as clusters
from trialwise.stats.beta_binomial import beta_binomial_fit
from trialwise.stats.binomial import normal_cdf, normal_quantile
from trialwise.stats.result_types import Count, Interval, Undefined
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

    estimand: clusters.Estimand
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
    groups: clusters.Groups,
    *,
    confidence: float = 0.95,
    resamples: Count = 1999,
    seed: Count,
    estimand: clusters.Estimand = "prompt-weighted",
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
    counts = clusters.check_groups(groups)
    alpha = 1 - require_open_rate("confidence", confidence)
    B = require_count("resamples", resamples, minimum=1)
    if (B + 1) * alpha / 2 < 1 - 1e-9:
        needed = math.ceil(2 / alpha - 1e-9) - 1
        raise InvalidArgument("resamples", resamples, f"be at least {needed} at this confidence")
    start = require_count("seed", seed)
    require_choice("estimand", estimand, clusters.ESTIMANDS)
    require_choice("method", method, BOOTSTRAP_METHODS)
    mean = _call_mean if estimand == "call-weighted" else _prompt_mean
    return ClusterBootstrap(
        estimand=estimand,
        population=clusters.POPULATIONS[estimand],
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


ModelMethod: TypeAlias = Literal["gee", "cluster-bootstrap", "beta-binomial"]

MODEL_METHODS: tuple[ModelMethod, ...] = ("gee", "cluster-bootstrap", "beta-binomial")

#: Until neither the rate nor the correlation moves.
_ROUNDS, _STILL = 200, 1e-12
#: The same draws on every machine, so that a verdict can be computed again.
_SEED = 20_261


@dataclass(frozen=True, slots=True, kw_only=True)
class GeeFit:
    """The fit of one rate by estimating equations with an exchangeable correlation."""

    rate: float
    correlation: float
    """Of two trials of one input, by moments."""
    variance: float
    """Of the rate: the sandwich times J/(J − 1)."""


def fit_gee(groups: clusters.Groups) -> GeeFit | Undefined:
    """Fit one rate to the counts of inputs by generalised estimating equations.

    An input of m trials weighs m/(1 + (m − 1)ρ). The correlation ρ is the mean product of the
    standardised residuals of two trials of one input; rate and correlation are found in turn.

    Parameters
    ----------
    groups : (successes, trials) of each distinct input, at least two inputs.

    References
    ----------
    Liang and Zeger (1986), Biometrika 73, 13–22; companion 8.2.1.

    Examples
    --------
    >>> fit = fit_gee([(9, 10), (4, 10), (10, 10), (7, 10)])
    >>> round(fit.rate, 6), round(fit.correlation, 4)
    (0.75, 0.1961)
    """
    counts = clusters.check_groups(groups)
    trials, successes = sum(m for _, m in counts), sum(y for y, _ in counts)
    if len(counts) < 2:
        return Undefined("one input says nothing about how inputs differ")
    if successes in (0, trials):
        return Undefined("no trial differs from another")
    rate, correlation = successes / trials, 0.0
    weights = [float(m) for _, m in counts]
    for _ in range(_ROUNDS):
        correlation = _correlate(counts, rate)
        weights = [m / (1 + (m - 1) * correlation) for _, m in counts]
        total = math.fsum(weights)
        found = math.fsum(w * y / m for w, (y, m) in zip(weights, counts, strict=True)) / total
        moved, rate = abs(found - rate), found
        if moved < _STILL:
            break
    squares = math.fsum(
        (w * (y / m - rate)) ** 2 for w, (y, m) in zip(weights, counts, strict=True)
    )
    inputs = len(counts)
    variance = inputs / (inputs - 1) * squares / math.fsum(weights) ** 2
    return GeeFit(rate=rate, correlation=correlation, variance=variance)


def _correlate(counts: Sequence[tuple[int, int]], rate: float) -> float:
    """The mean product of two residuals of one input, each in units of their common spread."""
    trials = sum(m for _, m in counts)
    pairs = sum(m * (m - 1) // 2 for _, m in counts)
    if pairs < 2:
        return 0.0
    spread = rate * (1 - rate)
    products = squares = 0.0
    for y, m in counts:
        own = (y * (1 - rate) ** 2 + (m - y) * rate**2) / spread
        squares += own
        products += ((y - m * rate) ** 2 / spread - own) / 2
    found = products / (squares / (trials - 1)) / (pairs - 1)
    # Below this an input of the most trials would have no variance left.
    lowest = -1 / (max(m for _, m in counts) - 1) if pairs else 0.0
    return min(1.0, max(0.9 * lowest, found))


def modelled_rate(
    groups: clusters.Groups,
    *,
    confidence: float = 0.95,
    method: ModelMethod = "gee",
    bounds: clusters.Bounds = "exact",
) -> clusters.ClusterEstimate:
    """The mean rate over inputs with the interval of a model.

    Parameters
    ----------
    groups : (successes, trials) of each distinct input, at least one input.
    confidence : strictly between 0 and 1, two-sided.
    method : {"gee", "cluster-bootstrap", "beta-binomial"}
    bounds : "exact", or "score" for Wilson's interval wherever trials are counted.

    Examples
    --------
    >>> groups = [(9, 10), (4, 10), (10, 10), (7, 10), (2, 10), (8, 10)]
    >>> for method in MODEL_METHODS:
    ...     low, high = modelled_rate(groups, method=method).interval
    ...     print(f"{method}: [{low:.3f}, {high:.3f}]")
    gee: [0.319, 0.895]
    cluster-bootstrap: [0.417, 0.867]
    beta-binomial: [0.410, 0.869]
    """
    counts = clusters.check_groups(groups)
    level = require_open_rate("confidence", confidence)
    chosen = require_choice("method", method, MODEL_METHODS)
    over_inputs = replace(
        clusters.prompt_weighted(counts, confidence=level, bounds=bounds), method=chosen
    )
    rates = {y / m for y, m in counts}
    if len(rates) < 2:
        return over_inputs
    if chosen == "cluster-bootstrap":
        return _resample(over_inputs, counts, level)
    return _fit(over_inputs, counts, level, chosen, bounds)


def _resample(
    over_inputs: clusters.ClusterEstimate, counts: Sequence[tuple[int, int]], level: float
) -> clusters.ClusterEstimate:
    # So many that the ends are order statistics of some resamples, not the extremes.
    resamples = max(1999, math.ceil(200 / (1 - level)) - 1)
    found = cluster_bootstrap(
        counts, confidence=level, resamples=resamples, seed=_SEED, method="bca"
    ).interval
    if isinstance(found, Undefined):
        return over_inputs
    interval = Interval(found.low, found.high, confidence=level, method="cluster bootstrap, BCa")
    return replace(over_inputs, effective_trials=_NO_TRIALS, interval=interval)


_NO_TRIALS = Undefined("resampling does not count trials")


def _fit(
    over_inputs: clusters.ClusterEstimate,
    counts: Sequence[tuple[int, int]],
    level: float,
    method: ModelMethod,
    bounds: clusters.Bounds,
) -> clusters.ClusterEstimate:
    share = (1 - level) / 2
    if method == "gee":
        fit = fit_gee(counts)
        if isinstance(fit, Undefined) or fit.variance <= 0:
            return over_inputs
        spread = fit.rate * (1 - fit.rate)
        half = clusters.student_z(share, len(counts) - 1) * math.sqrt(fit.variance) / spread
        middle = math.log(fit.rate / (1 - fit.rate))
        ends = [1 / (1 + math.exp(-(middle + side * half))) for side in (-1, 1)]
        effective, rate, name = spread / fit.variance, fit.rate, "GEE, logit, Student"
    else:
        model = beta_binomial_fit(counts)
        if isinstance(model, Undefined):
            return over_inputs
        rate = model.mean
        effective = math.fsum(m / (1 + (m - 1) * model.rho) for _, m in counts)
        ends = [*clusters.find_ends(rate, effective, share, bounds)]
        name = f"beta-binomial, {'Clopper-Pearson' if bounds == 'exact' else 'Wilson'}"
    return replace(
        over_inputs,
        estimand="prompt-weighted",
        population=clusters.POPULATIONS["prompt-weighted"],
        rate=rate,
        effective_trials=effective,
        interval=Interval(*ends, confidence=level, method=f"{name}, approximate"),
    )
