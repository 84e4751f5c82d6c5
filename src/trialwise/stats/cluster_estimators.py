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
- ``"prompts"`` (as many trials as prompts) keeps that error near 3 % in both, at any correlation,
  and a better record never lowers it. It is the default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.stats.beta_functions import beta_quantile
from trialwise.stats.clusters import Groups, check_groups
from trialwise.stats.normal import upper_z
from trialwise.stats.result_types import Interval, Undefined
from trialwise.validation import require_choice, require_open_rate

__all__ = [
    "ClusterEstimate",
    "ClusterMethod",
    "Estimand",
    "call_weighted",
    "prompt_weighted",
]

Estimand: TypeAlias = Literal["call-weighted", "prompt-weighted"]
"""Which mean of the prompts' rates is estimated."""

ClusterMethod: TypeAlias = Literal["prompts", "korn-graubard"]
"""How many independent trials a Wilson interval is given."""

ESTIMANDS: tuple[Estimand, ...] = ("call-weighted", "prompt-weighted")
CLUSTER_METHODS: tuple[ClusterMethod, ...] = ("prompts", "korn-graubard")

POPULATIONS: dict[Estimand, str] = {
    "call-weighted": (
        "calls to the prompts these were drawn from, each prompt counted as often as it is called"
    ),
    "prompt-weighted": "the prompts these were drawn from, each prompt counted once",
}
"""What a rate generalises to, provided the prompts were drawn at random from it."""


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
    """The trials the Wilson interval was given."""
    interval: Interval | Undefined


def call_weighted(
    groups: Groups, *, confidence: float = 0.95, method: ClusterMethod = "prompts"
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
    method : how many independent trials the Wilson interval is given.

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
    counts = check_groups(groups)
    trials, successes = sum(m for _, m in counts), sum(y for y, _ in counts)
    rate = successes / trials
    J = len(counts)
    squares = math.fsum((y - rate * m) ** 2 for y, m in counts)
    return _estimate(
        "call-weighted",
        counts,
        rate=rate,
        units=trials * trials / sum(m * m for _, m in counts),
        variance=J / max(J - 1, 1) * squares / trials**2,
        confidence=confidence,
        method=method,
    )


def prompt_weighted(
    groups: Groups, *, confidence: float = 0.95, method: ClusterMethod = "prompts"
) -> ClusterEstimate:
    """The mean of the prompts' rates, with an interval that takes prompts as the sampled units.

    ``p̂ = Σ (yⱼ/mⱼ) / J``: each prompt weighs the same, however often it was called. The interval
    is Wilson's at p̂ with J trials (``"prompts"``), or with ``n* (z/t)²`` trials
    (``"korn-graubard"``), where ``n* = p̂(1 − p̂)/v``, at most the number of trials, v is the squared
    standard error of the mean of the J rates and t the Student quantile for J − 1 degrees of
    freedom. Unanimous prompts have no variance to estimate and get J trials under both.

    Parameters
    ----------
    groups : (successes, trials) of each distinct prompt, at least one prompt.
    confidence : strictly between 0 and 1, two-sided. The lower end at 1 − 2α is a one-sided bound
        at 1 − α.
    method : how many independent trials the Wilson interval is given.

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
    counts = check_groups(groups)
    rates = [y / m for y, m in counts]
    J = len(counts)
    rate = math.fsum(rates) / J
    squares = math.fsum((value - rate) ** 2 for value in rates)
    return _estimate(
        "prompt-weighted",
        counts,
        rate=rate,
        units=float(J),
        variance=squares / max(J - 1, 1) / J,
        confidence=confidence,
        method=method,
    )


def _estimate(
    estimand: Estimand,
    counts: tuple[tuple[int, int], ...],
    *,
    rate: float,
    units: float,
    variance: float,
    confidence: float,
    method: ClusterMethod,
) -> ClusterEstimate:
    alpha = 1 - require_open_rate("confidence", confidence)
    require_choice("method", method, CLUSTER_METHODS)
    trials, successes = sum(m for _, m in counts), sum(y for y, _ in counts)
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
            effective = min(spread, trials) * (z / _student_z(alpha / 2, len(counts) - 1)) ** 2
        low, high = _wilson(rate, effective, z)
        interval = Interval(low, high, confidence=confidence, method=f"wilson, {method}")
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


def _student_z(tail: float, df: int) -> float:
    """The Student quantile with this upper tail: df/(df + t²) is Beta(df/2, 1/2)."""
    x = beta_quantile(2 * tail, df / 2, 0.5)
    return math.sqrt(df * (1 - x) / x)


def _wilson(rate: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's interval for a real number of trials, each end from the product of the roots."""
    return _wilson_low(rate, n, z), 1 - _wilson_low(1 - rate, n, z)


def _wilson_low(rate: float, n: float, z: float) -> float:
    if rate <= 0:
        return 0.0
    square = z * z / n
    root = math.sqrt(square * max(rate * (1 - rate), 0.0) + square * square / 4)
    return rate * rate / (rate + square / 2 + root)
