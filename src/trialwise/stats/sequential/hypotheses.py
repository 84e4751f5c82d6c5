"""The hypotheses of a sequential test: two rates to tell apart, and how often to be wrong.

One home for the checks and defaults that every kind of design shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.validation import require_count, require_open_rate, require_positive, require_rate


def allow_rounding(level: float) -> float:
    """Return an error level with the rounding that a sum of doubles may have.

    The allowance is relative to small levels, so that a level of 1e-13 is still kept.
    """
    return level + min(1e-12, 2e-11 * level)


#: Nothing longer is designed: a boundary is kept for every number of trials.
MOST_TRIALS = 200_000

#: Caps that are compared where criteria share their trials, as multiples of the fixed sample.
SHARED_CAPS = (1.0, 1.25)

Mix: TypeAlias = tuple[tuple[float, float], ...]
"""Pairs (true rate, weight): the rates over which expected trials are averaged."""


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """Good is a rate of at least p0, bad one of at most p1."""

    p0: float
    p1: float
    alpha: float
    """P(FAIL) at p0 is at most this."""
    beta: float
    """P(PASS) at p1 is at most this."""

    @property
    def alpha_limit(self) -> float:
        """The largest computed P(FAIL) that counts as alpha."""
        return allow_rounding(self.alpha)

    @property
    def beta_limit(self) -> float:
        """The largest computed P(PASS) that counts as beta."""
        return allow_rounding(self.beta)

    @classmethod
    def from_numbers(cls, p0: float, p1: float | None, alpha: float, beta: float) -> Hypotheses:
        """Hypotheses of valid numbers, with the usual alternative where none is given."""
        good = require_rate("p0", p0)
        bad = default_alternative(good) if p1 is None else require_open_rate("p1", p1)
        if bad >= good:
            raise InvalidArgument("p1", bad, f"lie below p0 ({good})")
        return cls(good, bad, *_check_levels(alpha, beta))

    @classmethod
    def of_rate(cls, rate: float, alpha: float, beta: float) -> Hypotheses:
        """Hypotheses about one required rate, where both errors are counted at that rate."""
        required = require_open_rate("rate", rate)
        return cls(required, required, *_check_levels(alpha, beta))


def _check_levels(alpha: float, beta: float) -> tuple[float, float]:
    a, b = require_open_rate("alpha", alpha), require_open_rate("beta", beta)
    if a + b >= 1:
        raise InvalidArgument("beta", b, f"add up with alpha ({a}) to less than 1")
    return a, b


def default_alternative(p0: float) -> float:
    """The bad rate when only a threshold is given: max(0.01, p0 − 0.10), in decimals.

    Examples
    --------
    >>> default_alternative(0.95), default_alternative(0.11)
    (0.85, 0.01)
    """
    from decimal import Decimal

    threshold = Decimal(repr(require_rate("p0", p0)))
    return float(max(Decimal("0.01"), threshold - Decimal("0.10")))


def check_cap(cap: int) -> int:
    """A number of trials that a design may be made for."""
    trials = require_count("cap", cap, minimum=1)
    if trials > MOST_TRIALS:
        raise InvalidArgument("cap", cap, f"be at most {MOST_TRIALS}")
    return trials


def resolve_cap(hypotheses: Hypotheses, cap: int | None, batch: int) -> int:
    """The cap given, or twice the exact fixed sample, in whole batches."""
    if cap is not None:
        return check_cap(cap)
    from trialwise.stats.sequential.bound import first_deciding

    twice = 2 * first_deciding(hypotheses, start=1).trials
    return check_cap(-(-twice // batch) * batch)


def even_mix(hypotheses: Hypotheses) -> Mix:
    """The two rates of the hypotheses, with even weights."""
    return ((hypotheses.p0, 0.5), (hypotheses.p1, 0.5))


def likely_mix(p0: float, p1: float) -> Mix:
    """The two rates and one where services usually are, seven tenths of the way from p0 to 1.

    A rule made for the two rates alone takes 14 trials for a perfect service at 0.90 against 0.80
    with errors of 5 and 20 %; this mix takes 11, at 2 % more trials at 0.90.
    """
    third = 1 / 3
    return ((p0, third), (p1, third), (p0 + 0.7 * (1 - p0), third))


def shared_mix(p0: float, p1: float) -> Mix:
    """Midway between the two rates, where trials are many, and one where services usually are.

    For criteria that share their trials: a rule made for the middle has a shorter tail, and the
    longest of several criteria is in the tail.
    """
    return (((p0 + p1) / 2, 2 / 3), (p0 + 0.7 * (1 - p0), 1 / 3))


def find_shared_caps(
    p0: float, p1: float, *, alpha: float, beta: float, most: int
) -> tuple[int, ...]:
    """Caps for criteria that share their trials, from the fixed sample on.

    Examples
    --------
    >>> find_shared_caps(0.90, 0.80, alpha=0.05, beta=0.20, most=156)
    (78, 98, 156)
    """
    from trialwise.stats.sequential.bound import first_deciding

    least = first_deciding(Hypotheses.from_numbers(p0, p1, alpha, beta), start=1).trials
    return tuple(sorted({min(most, round(times * least)) for times in SHARED_CAPS} | {most}))


def check_mix(mix: Sequence[Sequence[float]]) -> Mix:
    """Pairs (rate, weight) with weights that add up to 1."""
    allowed = "be pairs (rate, weight) with weights that add up to 1"
    try:
        pairs = tuple((require_rate("mix", rate), require_positive("mix", w)) for rate, w in mix)
    except (TypeError, ValueError):
        raise InvalidArgument("mix", mix, allowed) from None
    if not pairs or abs(sum(w for _, w in pairs) - 1) > 1e-9:
        raise InvalidArgument("mix", mix, allowed)
    return pairs


def list_looks(cap: int, batch: int) -> tuple[int, ...]:
    """When a rule may decide: at the multiples of the batch, and at the cap."""
    return (*range(batch, cap, batch), cap)
