"""What no test can beat: the least sample, the least undecided share, the least expected trials.

A design is worth choosing only beside what is possible at all. Three exact limits are here: the
fewest trials a fixed sample needs, the Neyman–Pearson limit on the chance of an open end when the
cap is smaller than that, and the least expected number of trials of any test, sequential or not,
with or without coin tosses, that keeps the two errors.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import log
from typing import TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import binomial_cdf, binomial_pmf, binomial_tail, find_first
from trialwise.validation import require_count, require_open_rate, require_positive, require_rate

#: Two rates that a sample this large cannot tell apart are practically the same.
MOST_SIZED = 10**8

#: How many times the fixed sample the any-test bound looks ahead. Beyond, trials are counted as
#: free, so that the bound stays a bound; so few runs get there that it loses nothing to see.
LOOK_AHEAD = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSize:
    """A fixed sample that keeps both errors: PASS with at most `most_failures` failures."""

    trials: int
    most_failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """What a cap below the need leaves undecided, whatever the rule.

    Examples
    --------
    >>> print(shortfall(0.90, 0.80, cap=50))
    50 trials cannot always decide between 0.9 and 0.8: whatever the rule, at least 6.7 % of runs
    at 0.9 and 14.0 % of runs at 0.8 end INCONCLUSIVE; 78 trials can decide every run
    """

    p0: float
    p1: float
    alpha: float
    beta: float
    cap: int
    inconclusive_p0: float
    """The least P(INCONCLUSIVE) any rule can have at p0 with this cap (Neyman–Pearson)."""
    inconclusive_p1: float
    """The same at p1."""
    smallest_cap: int
    """The fewest trials, from this cap on, with which a rule can decide every run."""

    def __str__(self) -> str:
        sentence = f"{self.cap} trials cannot always decide between {self.p0:g} and {self.p1:g}"
        way_out = f"{self.smallest_cap} trials can decide every run"
        if max(self.inconclusive_p0, self.inconclusive_p1) < 5e-4:
            return f"{sentence} without tossing a coin now and then; {way_out}"
        return (
            f"{sentence}: whatever the rule, at least {100 * self.inconclusive_p0:.1f} % of runs "
            f"at {self.p0:g} and {100 * self.inconclusive_p1:.1f} % of runs at {self.p1:g} end "
            f"INCONCLUSIVE; {way_out}"
        )


def fixed_size(p0: float, p1: float, *, alpha: float = 0.05, beta: float = 0.20) -> FixedSize:
    """The smallest fixed sample with P(FAIL) ≤ alpha at p0 and P(PASS) ≤ beta at p1, exactly.

    Discreteness makes a larger sample fail now and then where a smaller one succeeds; this is
    the smallest of all that succeed.

    Parameters
    ----------
    p0, p1 : float
        The good and the bad rate, 0 < p1 < p0 ≤ 1.
    alpha, beta : float
        The two errors, strictly between 0 and 1, together below 1.

    Examples
    --------
    >>> fixed_size(0.90, 0.80)
    FixedSize(trials=78, most_failures=12)
    >>> [fixed_size(p0, p1).trials for p0, p1 in ((.95, .85), (.99, .97), (.80, .70))]
    [52, 301, 116]
    """
    hypotheses = Hypotheses.from_numbers(p0, p1, alpha, beta)
    return first_deciding(hypotheses, start=1)


def shortfall(
    p0: float, p1: float, *, cap: int, alpha: float = 0.05, beta: float = 0.20, batch: int = 1
) -> Shortfall | None:
    """What no rule with this cap can avoid leaving undecided, or None where a rule can decide.

    By the Neyman–Pearson lemma P(PASS) at p0 is at most the power of the best test of level beta,
    and P(FAIL) at p1 at most that of the best test of level alpha; the rest is undecided.

    Parameters
    ----------
    p0, p1 : float
        The good and the bad rate, 0 < p1 < p0 ≤ 1.
    cap : int
        The most trials, at least 1.
    alpha, beta : float
        The two errors, strictly between 0 and 1, together below 1.
    batch : int
        Verdicts fall at multiples of this many trials, and at the cap.

    Examples
    --------
    >>> short = shortfall(0.90, 0.80, cap=50)
    >>> round(short.inconclusive_p0, 3), round(short.inconclusive_p1, 3), short.smallest_cap
    (0.067, 0.14, 78)
    >>> shortfall(0.90, 0.80, cap=78) is None
    True
    """
    hypotheses = Hypotheses.from_numbers(p0, p1, alpha, beta)
    n = require_count("cap", cap, minimum=1)
    looks = list_looks(n, require_count("batch", batch, minimum=1))
    if deciding_look(hypotheses, looks) is not None:
        return None
    return Shortfall(
        p0=hypotheses.p0,
        p1=hypotheses.p1,
        alpha=hypotheses.alpha,
        beta=hypotheses.beta,
        cap=n,
        inconclusive_p0=max(0.0, 1 - hypotheses.alpha - _passing_power(hypotheses, n)),
        inconclusive_p1=max(0.0, 1 - hypotheses.beta - _failing_power(hypotheses, n)),
        smallest_cap=first_deciding(hypotheses, start=n).trials,
    )


def expected_trials_bound(
    p0: float, p1: float, p: float, *, alpha: float = 0.05, beta: float = 0.20
) -> float:
    """The least expected trials at true rate p of any test that decides with these two errors.

    The maximum over λ0, λ1 ≥ 0 of U(0, 0) − λ0·alpha − λ1·beta, where U is the least expected
    cost when every trial costs 1 at rate p, FAIL costs λ0 at p0 and PASS costs λ1 at p1 (weak
    duality of the linear programme over all tests, coin tosses included). It holds for every
    test with two verdicts, of any length; a test that may end INCONCLUSIVE can be shorter.

    Parameters
    ----------
    p0, p1 : float
        The good and the bad rate, 0 < p1 < p0 ≤ 1.
    p : float
        The true rate at which trials are counted, 0 and 1 included.
    alpha, beta : float
        The two errors, strictly between 0 and 1, together below 1.

    Examples
    --------
    >>> [round(expected_trials_bound(0.90, 0.80, p), 1) for p in (0.90, 0.85, 0.80)]
    [36.6, 50.4, 43.2]
    """
    from trialwise.stats.sequential.best_rules import Column, Problem
    from trialwise.stats.sequential.price_search import relax, start_prices
    from trialwise.stats.sequential.walks import never

    levels = Hypotheses.from_numbers(p0, p1, alpha, beta)
    horizon = LOOK_AHEAD * first_deciding(levels, start=1).trials
    mix = ((require_rate("p", p), 1.0),)
    problem = Problem.of_two_rates(levels, tuple(range(horizon + 1)), mix, 0.0)
    safe = Column(float(horizon), 0.0, 0.0, never(horizon))
    return max(0.0, relax(problem, start_prices(problem), safe=safe).bound)


def most_passing(hypotheses: Hypotheses, n: int) -> int:
    """The most failures among n trials that may PASS with P(PASS) ≤ beta at p1; −1 for none."""
    limit = hypotheses.beta_limit
    return find_first(-1, n + 1, lambda f: binomial_tail(n - f, n, hypotheses.p1) > limit) - 1


def fewest_failing(hypotheses: Hypotheses, n: int) -> int:
    """The fewest failures among n trials that may FAIL with P(FAIL) ≤ alpha at p0; n+1 for none."""
    limit = hypotheses.alpha_limit
    return find_first(-1, n + 1, lambda f: binomial_cdf(n - f, n, hypotheses.p0) <= limit)


def first_deciding(hypotheses: Hypotheses, *, start: int) -> FixedSize:
    """The smallest fixed sample of at least `start` trials that keeps both errors."""
    low, high = start - 1, start
    while not _decides_with_coins(hypotheses, high):
        low, high = high, 2 * high
        if high > MOST_SIZED:
            raise InvalidArgument("p1", hypotheses.p1, f"lie further below p0 ({hypotheses.p0})")
    high = find_first(low, high, lambda n: _decides_with_coins(hypotheses, n))
    # With coins more trials never hurt; without, the first size that serves lies a little higher.
    while (found := _cutoff(hypotheses, high)) is None:
        high += 1
    return FixedSize(trials=high, most_failures=found)


def deciding_look(hypotheses: Hypotheses, looks: tuple[int, ...]) -> FixedSize | None:
    """The first look at which a fixed sample would keep both errors."""
    if not _decides_with_coins(hypotheses, looks[-1]):
        return None
    least = first_deciding(hypotheses, start=1).trials
    for n in looks[bisect_left(looks, least) :]:
        if (found := _cutoff(hypotheses, n)) is not None:
            return FixedSize(trials=n, most_failures=found)
    return None


def _cutoff(hypotheses: Hypotheses, n: int) -> int | None:
    """The most failures that PASS in a fixed sample of n trials with both errors kept."""
    most, fewest = most_passing(hypotheses, n), fewest_failing(hypotheses, n)
    # Where several cutoffs serve, the middle one shares the slack.
    return (most + fewest - 1) // 2 if fewest <= most + 1 else None


def _failing_power(hypotheses: Hypotheses, n: int) -> float:
    """The most P(FAIL) at p1 of a test of n trials with P(FAIL) ≤ alpha at p0."""
    most = n - fewest_failing(hypotheses, n)  # successes
    spare = hypotheses.alpha - binomial_cdf(most, n, hypotheses.p0)
    return binomial_cdf(most, n, hypotheses.p1) + _toss(
        spare, most + 1, n, hypotheses.p0, hypotheses.p1
    )


def _passing_power(hypotheses: Hypotheses, n: int) -> float:
    """The most P(PASS) at p0 of a test of n trials with P(PASS) ≤ beta at p1."""
    fewest = n - most_passing(hypotheses, n)  # successes
    spare = hypotheses.beta - binomial_tail(fewest, n, hypotheses.p1)
    return binomial_tail(fewest, n, hypotheses.p0) + _toss(
        spare, fewest - 1, n, hypotheses.p1, hypotheses.p0
    )


def _toss(spare: float, successes: int, n: int, rate: float, other: float) -> float:
    """The power at the other rate of a coin that spends the spare error at one count."""
    weight = binomial_pmf(successes, n, rate)
    coin = min(1.0, max(0.0, spare) / weight) if weight > 0 else 0.0
    return coin * binomial_pmf(successes, n, other)


def _decides_with_coins(hypotheses: Hypotheses, n: int) -> bool:
    return 1 - _failing_power(hypotheses, n) <= hypotheses.beta_limit


# --- The hypotheses of a sequential test: two rates to tell apart, and how often to be wrong ------
#
# One home for the checks and defaults that every kind of design shares.


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
    def wald_limits(self) -> tuple[float, float]:
        """Wald's log likelihood ratios at which to FAIL and to PASS."""
        return log(self.alpha / (1 - self.beta)), log((1 - self.alpha) / self.beta)

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
