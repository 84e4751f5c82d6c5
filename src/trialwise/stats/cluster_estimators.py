"""Rates over repeated inputs, with the input as the unit of evidence (companion 8.2.1).

A module of its own because here the question "a rate of what?" has more than one answer. An
estimator names the estimand it is for, and none is put in place of another.

The interval was chosen by exact coverage: the law of the counts per prompt enumerated for rates
spread over prompts in a beta shape, and for a few bad prompts among good ones. At 95 %:

- the t interval on the prompts' rates misses with probability up to 0.95, because prompts that
  all succeed show no spread. It is not offered;
- ``"korn-graubard"`` (effective trials from the estimated variance) holds its level on beta
  shapes, but where a bad prompt is rare its lower end is too high in up to 12 % of runs instead of
  2.5 %: a run that met no bad prompt looks homogeneous;
- ``"prompts"`` (as many trials as prompts) never exceeds it in either, at any correlation, and a
  better record never lowers it. It is the default.

Each is Clopper and Pearson's interval for this many trials. Wilson's, the score interval that
decided earlier plans, declares 6.9 % of runs compliant at exactly 80 % with 12 prompts that always
or never succeed, and 7.2 % at 90 % with 25, where 5 % is asked for.

A group is one input, written as (successes, trials). `stratum_weighted` puts a rate together from
strata by their declared weights (companion 8.2.1, 1.4.5b). The weights come from outside: the mix
of the run says nothing about them, and the interval has to answer for a stratum with few trials and
a large weight. The correlation within inputs is in `cluster_correlation`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from trialwise import validation
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import beta_quantile, find_end, upper_z
from trialwise.stats.rate_intervals import wilson_low
from trialwise.stats.result_types import Count, Interval, Undefined

S = TypeVar("S")

Estimand: TypeAlias = Literal["call-weighted", "prompt-weighted"]
"""Which mean of the prompts' rates is estimated."""

Bounds: TypeAlias = Literal["exact", "score"]
"""Clopper and Pearson's interval, or the score interval that decided plans of earlier versions."""


ClusterMethod: TypeAlias = Literal[
    "prompts", "korn-graubard", "gee", "cluster-bootstrap", "beta-binomial"
]
"""How the interval is found: by this many independent trials, or by a model (`cluster_models`)."""


ESTIMANDS: tuple[Estimand, ...] = ("call-weighted", "prompt-weighted")


CLUSTER_METHODS: tuple[ClusterMethod, ...] = ("prompts", "korn-graubard")


POPULATIONS: dict[Estimand, str] = {
    "call-weighted": (
        "calls to the prompts these were drawn from, each prompt counted as often as it is called"
    ),
    "prompt-weighted": "the prompts these were drawn from, each prompt counted once",
}
"""What a rate generalises to, provided the prompts were drawn at random from it."""

Groups: TypeAlias = Sequence[tuple[Count, Count]]
"""One (successes, trials) pair for each distinct input."""

#: n > 2J is the companion's example of "materially exceeds" (8.2.1), taken as the rule.
MATERIAL_REPETITION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEstimate:
    """A rate over prompts, what it is a rate of, and an interval over prompts."""

    estimand: Estimand
    population: str
    prompts: int
    trials: int
    successes: int
    rate: float
    method: ClusterMethod
    effective_trials: float | Undefined
    """The independent trials that the interval is worth."""
    interval: Interval | Undefined


def call_weighted(
    groups: Groups,
    *,
    confidence: float = 0.95,
    method: ClusterMethod = "prompts",
    bounds: Bounds = "exact",
) -> ClusterEstimate:
    """The rate over calls, Σy / Σm, with an interval that takes prompts as the sampled units.

    A prompt called more often weighs more. The effective trials are ``(Σm)² / Σm²`` for
    ``"prompts"``, what is left when every prompt always or never succeeds (the number of prompts
    under equal calls), and for ``"korn-graubard"`` those of the linearised variance
    ``v = J/(J − 1) Σ (yⱼ − p̂ mⱼ)² / (Σm)²`` (see `prompt_weighted`).

    Parameters
    ----------
    groups : (successes, trials) of each distinct prompt, at least one prompt.
    confidence : strictly between 0 and 1, two-sided. The lower end at 1 − 2α is a one-sided bound
        at 1 − α.
    method : how many independent trials the interval is given.
    bounds : "exact", or "score" for Wilson's interval.

    Returns
    -------
    ClusterEstimate
        Its interval is Undefined for fewer than two prompts.

    References
    ----------
    Companion 8.2.1; Kish (1965); Korn and Graubard (1998), Survey Methodology 24, 193–201.

    Examples
    --------
    >>> result = call_weighted([(90, 90), (0, 10)])
    >>> result.rate, result.estimand
    (0.9, 'call-weighted')
    """
    return _estimate("call-weighted", check_groups(groups), confidence, method, bounds)


def prompt_weighted(
    groups: Groups,
    *,
    confidence: float = 0.95,
    method: ClusterMethod = "prompts",
    bounds: Bounds = "exact",
) -> ClusterEstimate:
    """The mean of the prompts' rates, with an interval that takes prompts as the sampled units.

    ``p̂ = Σ (yⱼ/mⱼ) / J``: each prompt weighs the same, however often it was called. The interval
    is Clopper and Pearson's at p̂ with J trials (``"prompts"``), or with ``n* (z/t)²`` trials
    (``"korn-graubard"``), where ``n* = p̂(1 − p̂)/v``, at most the number of trials, v is the squared
    standard error of the mean of the J rates and t the Student quantile for J − 1 degrees of
    freedom. Unanimous prompts have no variance to estimate and get J trials under both.

    Parameters
    ----------
    groups : (successes, trials) of each distinct prompt, at least one prompt.
    confidence : strictly between 0 and 1, two-sided. The lower end at 1 − 2α is a one-sided bound
        at 1 − α.
    method : how many independent trials the interval is given.
    bounds : "exact", or "score" for Wilson's interval.

    Returns
    -------
    ClusterEstimate
        Its interval is Undefined for fewer than two prompts.

    References
    ----------
    Companion 8.2.1; Korn and Graubard (1998), Survey Methodology 24, 193–201.

    Examples
    --------
    >>> result = prompt_weighted([(90, 90), (0, 10)])
    >>> result.rate, result.effective_trials
    (0.5, 2.0)
    """
    return _estimate("prompt-weighted", check_groups(groups), confidence, method, bounds)


def _estimate(
    estimand: Estimand,
    counts: tuple[tuple[int, int], ...],
    confidence: float,
    method: ClusterMethod,
    bounds: Bounds,
) -> ClusterEstimate:
    alpha = 1 - validation.require_open_rate("confidence", confidence)
    validation.require_choice("method", method, CLUSTER_METHODS)
    trials, successes, J = sum(m for _, m in counts), sum(y for y, _ in counts), len(counts)
    if estimand == "call-weighted":
        rate, units = successes / trials, trials * trials / sum(m * m for _, m in counts)
        squares = math.fsum((y - rate * m) ** 2 for y, m in counts) / trials**2 * J
    else:
        rate, units = math.fsum(y / m for y, m in counts) / J, float(J)
        squares = math.fsum((y / m - rate) ** 2 for y, m in counts) / J
    variance = squares / max(J - 1, 1)
    effective: float | Undefined
    interval: Interval | Undefined
    if len(counts) < 2:
        effective = interval = Undefined(
            "one prompt says nothing about how prompts differ: an interval needs at least two"
        )
    else:
        z = upper_z(alpha / 2)
        effective = units
        if method == "korn-graubard" and 0 < successes < trials and z > 0:
            spread = rate * (1 - rate) / variance if variance > 0 else math.inf
            effective = min(spread, trials) * (z / student_z(alpha / 2, len(counts) - 1)) ** 2
        ends = find_ends(rate, effective, alpha / 2, bounds)
        name = "Clopper-Pearson" if bounds == "exact" else "wilson"
        interval = Interval(*ends, confidence=confidence, method=f"{name}, {method}")
    return ClusterEstimate(
        estimand=estimand,
        population=POPULATIONS[estimand],
        prompts=len(counts),
        trials=trials,
        successes=successes,
        rate=rate,
        method=method,
        effective_trials=effective,
        interval=interval,
    )


def student_z(tail: float, df: int) -> float:
    """The Student quantile with this upper tail: df/(df + t²) is Beta(df/2, 1/2)."""
    x = beta_quantile(2 * tail, df / 2, 0.5)
    return math.sqrt(df * (1 - x) / x)


def find_ends(rate: float, n: float, tail: float, bounds: Bounds) -> tuple[float, float]:
    """An interval for a real number of trials; a bound misses with probability `tail` or less."""
    if validation.require_choice("bounds", bounds, ("exact", "score")) == "score":
        z = upper_z(tail)
        return wilson_low(rate * n, n, z), 1 - wilson_low((1 - rate) * n, n, z)
    return _exact_low(rate, n, tail), 1 - _exact_low(1 - rate, n, tail)


def _exact_low(rate: float, n: float, tail: float) -> float:
    return 0.0 if rate <= 0 else beta_quantile(tail, rate * n, (1 - rate) * n + 1)


def check_groups(groups: object) -> tuple[tuple[int, int], ...]:
    """One or more (successes, trials) pairs, each with at least one trial."""
    allowed = "hold one (successes, trials) pair for each of at least one input"
    if isinstance(groups, str) or not isinstance(groups, Sequence) or not groups:
        raise InvalidArgument("groups", groups, allowed)
    counts = []
    for group in groups:
        if not isinstance(group, Sequence) or len(group) != 2:
            raise InvalidArgument("groups", group, allowed)
        counts.append(
            validation.require_successes(*group, names=("groups' successes", "groups' trials"))
        )
    return tuple(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One part of a stratified sampling, with the weight it has in the population."""

    name: str
    weight: float
    """Above 0; only the proportions between strata matter."""
    successes: Count
    trials: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class StratifiedEstimate:
    """A stratum-weighted rate with its interval, and the weights it was put together with."""

    estimand: Literal["stratum-weighted"] = "stratum-weighted"
    population: str = (
        "the declared strata in the proportions of their weights, each stratum's trials taken as "
        "independent draws from it"
    )
    strata: tuple[Stratum, ...]
    weights: tuple[float, ...]
    """As used: they sum to 1."""
    rate: float
    variance: float
    """Σ w² p̂(1 − p̂)/n, which is 0 when every stratum is unanimous; the interval is not."""
    interval: Interval
    effective_trials: float | None = None
    """The trials that an exact interval was given; None for a score interval."""


def stratum_weighted(
    strata: Sequence[Stratum], *, confidence: float = 0.95, method: Bounds = "exact"
) -> StratifiedEstimate:
    """The weighted mean of the strata's rates, with an interval.

    ``p̂ = Σ w p̂ₕ``. The exact interval is Clopper and Pearson's for ``m = minₕ nₕ/wₕ`` trials at p̂:
    no trial weighs more than 1/m, so that ``Σ w² pₕ(1 − pₕ)/nₕ ≤ P(1 − P)/m`` whatever the rates of
    the strata, and the weighted mean is less spread than the mean of m alike trials. Enumerated for
    strata of 1 to 60 trials and weights up to 50 to 1, each end misses in at most its share of
    runs. The score interval is narrower where weights differ, and misses up to four times as often
    as it says where strata have few trials; it is an approximation for large ones.

    The score interval holds every P that the score test keeps: with p̃ₕ the most likely
    stratum rates among those with ``Σ w p̃ₕ = P``, ``(p̂ − P)² ≤ z² Σ w² p̃ₕ(1 − p̃ₕ)/nₕ``. It is
    Wilson's interval for one stratum, and for equal rates under proportional allocation Wilson's
    interval of the pooled counts. Where the estimated variance is 0 it is still an interval: after
    unanimous strata the one with the largest weight per trial sets its width.

    Parameters
    ----------
    strata : at least one, with distinct names, positive weights (normalised to sum 1) and at
        least one trial each.
    confidence : strictly between 0 and 1, two-sided. The lower end at 1 − 2α is a one-sided bound
        at 1 − α.
    method : "exact", or "score" for strata of many trials each.

    References
    ----------
    Companion 8.2.1 (stratified estimators); Hoeffding (1956); Clopper and Pearson (1934); Rao
    (1948) for the score test; Wilson (1927).

    Examples
    --------
    >>> result = stratum_weighted([
    ...     Stratum(name="easy", weight=0.8, successes=50, trials=50),
    ...     Stratum(name="hard", weight=0.2, successes=30, trials=50),
    ... ])
    >>> result.rate
    0.92
    >>> result.interval, result.effective_trials
    (Interval(low=0.8230..., high=0.9735..., ...), 62.5)
    """
    checked = check_strata(strata, Stratum, ("successes", "trials"))
    parts = tuple(part for part, _, _ in checked)
    for part in parts:
        validation.require_positive(f"weight of stratum {part.name!r}", part.weight)
    validation.require_choice("method", method, ("exact", "score"))
    z = upper_z((1 - validation.require_open_rate("confidence", confidence)) / 2)
    total = math.fsum(part.weight for part in parts)
    weights = tuple(part.weight / total for part in parts)
    cells = tuple(_Cell(part.weight / total, k, n) for part, k, n in checked)
    rate, worth = _rate(cells, 0.0), min(cell.trials / cell.weight for cell in cells)
    none = all(cell.successes == 0 for cell in cells)
    every = all(cell.successes == cell.trials for cell in cells)
    if method == "exact":
        # Rounding must not move the rate of strata that all pass.
        low, high = find_ends(1.0 if every else rate, worth, (1 - confidence) / 2, "exact")
    else:
        low, high = 0.0 if none else _end(cells, z, +1), 1.0 if every else _end(cells, z, -1)
    return StratifiedEstimate(
        strata=parts,
        weights=weights,
        rate=rate,
        variance=_variance(cells, 0.0),
        interval=Interval(low, high, confidence=confidence, method=f"stratified {method}"),
        effective_trials=worth if method == "exact" else None,
    )


@dataclass(frozen=True, slots=True)
class _Cell:
    weight: float
    successes: int
    trials: int

    def rate(self, tilt: float) -> float:
        """The most likely rate under the tilt: the p of [0, 1] with y − n p = tilt · w p(1 − p)."""
        n, y, t = self.trials, self.successes, tilt * self.weight
        if t >= 0:
            return 2 * y / (n + t + math.sqrt((n - t) ** 2 + 4 * t * (n - y))) if y else 0.0
        # The same by the failures, which are tilted the other way: nothing cancels.
        return 1 - _Cell(self.weight, n - y, n).rate(-tilt)


def check_strata(
    strata: Iterable[S], kind: type[S], counts: tuple[str, str]
) -> list[tuple[S, int, int]]:
    """One or more parts with names of their own, each with its successes and trials."""
    parts, names = [], []
    for part in strata:
        if not isinstance(part, kind):
            raise InvalidArgument("strata", part, f"hold only {kind.__name__} values")
        name, *given = (getattr(part, field) for field in ("name", *counts))
        called = (f"{counts[0]} of stratum {name!r}", f"{counts[1]} of stratum {name!r}")
        parts.append((part, *validation.require_successes(*given, names=called)))
        names.append(name)
    if not parts:
        raise InvalidArgument("strata", strata, "hold at least one stratum")
    # Two strata of one name would hide the weaker one.
    if len(set(names)) < len(names):
        raise InvalidArgument("strata", names, "have distinct names")
    return parts


def _rate(cells: tuple[_Cell, ...], tilt: float) -> float:
    # Rounding of the weights must not carry a rate out of [0, 1].
    return min(math.fsum(cell.weight * cell.rate(tilt) for cell in cells), 1.0)


def _variance(cells: tuple[_Cell, ...], tilt: float) -> float:
    rates = [cell.rate(tilt) for cell in cells]
    return math.fsum(
        cell.weight**2 * rate * (1 - rate) / cell.trials
        for cell, rate in zip(cells, rates, strict=True)
    )


def _end(cells: tuple[_Cell, ...], z: float, sign: int) -> float:
    """The rate at which the score statistic reaches z², below (+1) or above (−1) the estimate.

    The tilt λ is the multiplier of the constraint Σ w p = P; then p̂ − P = λ V and the statistic
    is λ² V, which grows with |λ| because every stratum's rate moves away from its estimate.
    """

    def within(tilt: float) -> bool:
        return tilt * tilt * _variance(cells, sign * tilt) <= z * z

    high = 1.0
    while within(high):
        high *= 2
    return _rate(cells, sign * find_end(high, 0.0, lambda tilt: not within(tilt)))
