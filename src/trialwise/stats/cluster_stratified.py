"""A rate put together from strata by their declared weights (companion 8.2.1, 1.4.5b).

A module of its own because its weights come from outside: the mix of the run says nothing about
them, and the interval has to answer for a stratum with few trials and a large weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.normal import upper_z
from trialwise.stats.result_types import Interval
from trialwise.validation import require_open_rate, require_positive, require_successes

__all__ = ["StratifiedEstimate", "Stratum", "stratified"]

#: Halvings that pin a double down from a bracket of one factor of 2.
_HALVINGS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One part of a stratified sampling, with the weight it has in the population."""

    name: str
    weight: float
    """Above 0; only the proportions between strata matter."""
    successes: SupportsIndex
    trials: SupportsIndex


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


def stratified(strata: Sequence[Stratum], *, confidence: float = 0.95) -> StratifiedEstimate:
    """The weighted mean of the strata's rates, with a score interval.

    ``p̂ = Σ w p̂ₕ``. The interval holds every P that the score test keeps: with p̃ₕ the most likely
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

    References
    ----------
    Companion 8.2.1 (stratified estimators); Rao (1948) for the score test; Wilson (1927).

    Examples
    --------
    >>> result = stratified([
    ...     Stratum(name="easy", weight=0.8, successes=50, trials=50),
    ...     Stratum(name="hard", weight=0.2, successes=30, trials=50),
    ... ])
    >>> result.rate
    0.92
    >>> result.interval
    Interval(low=0.8619..., high=0.9447..., ...)
    """
    parts = _check_strata(strata)
    z = upper_z((1 - require_open_rate("confidence", confidence)) / 2)
    total = math.fsum(part.weight for part in parts)
    weights = tuple(part.weight / total for part in parts)
    cells = tuple(
        _Cell(weight, *require_successes(part.successes, part.trials))
        for weight, part in zip(weights, parts, strict=True)
    )
    return StratifiedEstimate(
        strata=parts,
        weights=weights,
        rate=_rate(cells, 0.0),
        variance=_variance(cells, 0.0),
        interval=Interval(
            0.0 if all(cell.successes == 0 for cell in cells) else _end(cells, z, +1),
            1.0 if all(cell.successes == cell.trials for cell in cells) else _end(cells, z, -1),
            confidence=confidence,
            method="stratified score",
        ),
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


def _check_strata(strata: Sequence[Stratum]) -> tuple[Stratum, ...]:
    parts = tuple(strata)
    if not parts:
        raise InvalidArgument("strata", strata, "hold at least one stratum")
    for part in parts:
        if not isinstance(part, Stratum):
            raise InvalidArgument("strata", part, "hold only Stratum values")
        require_positive(f"weight of stratum {part.name!r}", part.weight)
        require_successes(
            part.successes,
            part.trials,
            names=(f"successes of stratum {part.name!r}", f"trials of stratum {part.name!r}"),
        )
    names = [part.name for part in parts]
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
    while not within(high / 2):
        high /= 2
    low = high / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return _rate(cells, sign * low)
