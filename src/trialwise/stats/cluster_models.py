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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from trialwise.stats.beta_binomial import beta_binomial_fit
from trialwise.stats.cluster_estimators import (
    POPULATIONS,
    Bounds,
    ClusterEstimate,
    Groups,
    check_groups,
    find_ends,
    prompt_weighted,
    student_z,
)
from trialwise.stats.cluster_resampling import cluster_bootstrap
from trialwise.stats.result_types import Interval, Undefined
from trialwise.validation import require_choice, require_open_rate

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


def fit_gee(groups: Groups) -> GeeFit | Undefined:
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
    counts = check_groups(groups)
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
    groups: Groups,
    *,
    confidence: float = 0.95,
    method: ModelMethod = "gee",
    bounds: Bounds = "exact",
) -> ClusterEstimate:
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
    beta-binomial: [0.438, 0.839]
    """
    counts = check_groups(groups)
    level = require_open_rate("confidence", confidence)
    chosen = require_choice("method", method, MODEL_METHODS)
    over_inputs = replace(prompt_weighted(counts, confidence=level, bounds=bounds), method=chosen)
    rates = {y / m for y, m in counts}
    if len(rates) < 2:
        return over_inputs
    if chosen == "cluster-bootstrap":
        return _resample(over_inputs, counts, level)
    return _fit(over_inputs, counts, level, chosen, bounds)


def _resample(
    over_inputs: ClusterEstimate, counts: Sequence[tuple[int, int]], level: float
) -> ClusterEstimate:
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
    over_inputs: ClusterEstimate,
    counts: Sequence[tuple[int, int]],
    level: float,
    method: ModelMethod,
    bounds: Bounds,
) -> ClusterEstimate:
    share = (1 - level) / 2
    if method == "gee":
        fit = fit_gee(counts)
        if isinstance(fit, Undefined) or fit.variance <= 0:
            return over_inputs
        spread = fit.rate * (1 - fit.rate)
        half = student_z(share, len(counts) - 1) * math.sqrt(fit.variance) / spread
        middle = math.log(fit.rate / (1 - fit.rate))
        ends = [1 / (1 + math.exp(-(middle + side * half))) for side in (-1, 1)]
        effective, rate, name = spread / fit.variance, fit.rate, "GEE, logit, Student"
    else:
        model = beta_binomial_fit(counts)
        if isinstance(model, Undefined):
            return over_inputs
        rate = model.mean
        effective = math.fsum(m / (1 + (m - 1) * model.rho) for _, m in counts)
        ends = [*find_ends(rate, effective, share, bounds)]
        name = f"beta-binomial, {'Clopper-Pearson' if bounds == 'exact' else 'Wilson'}"
    return replace(
        over_inputs,
        estimand="prompt-weighted",
        population=POPULATIONS["prompt-weighted"],
        rate=rate,
        effective_trials=effective,
        interval=Interval(*ends, confidence=level, method=f"{name}, approximate"),
    )
