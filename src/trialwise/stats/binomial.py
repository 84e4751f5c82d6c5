"""The binomial distribution: the one model every pass rate stands on (companion §1.2).

Binomial tails, Clopper–Pearson bounds and Jeffreys intervals are all one function, the incomplete
beta function. It is written here because a verdict must not wait 0.4 s for `scipy.special` to
import, and because the standard library has none. Densities use Loader's saddle-point form (Loader
2000, "Fast and accurate computation of binomial probabilities"), which keeps full precision where
sums of log-gammas lose one digit for every tenfold growth of n. The tests hold it to mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import accumulate
from statistics import NormalDist

from trialwise.stats.result_types import Count
from trialwise.validation import require_count, require_integer, require_rate

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

_TINY = 1e-300

#: The fraction converges in about √(a + b) steps; this allows for counts in the billions.
_MAX_STEPS = 100_000

#: log F is almost linear in logit x: 8 steps are usual, 200 are a safety net.
_MAX_NEWTON = 200

#: Newton squares its error, so a step this small leaves none a double could show.
_NEWTON_DONE = 1e-8

#: Beyond this the odds overflow a double.
_MAX_LOGIT = 700.0


def binomial_pmf(k: int, n: Count, p: float) -> float:
    """P(K = k) for K ~ Binomial(n, p): C(n, k) p^k (1−p)^(n−k).

    Parameters
    ----------
    k : int
        The count; outside 0 … n the probability is 0.
    n : int
        Trials, at least 0.
    p : float
        The success probability, 0 and 1 included.

    Examples
    --------
    >>> round(binomial_pmf(2, 4, 0.5), 12)
    0.375
    """
    return raw_pmf(require_integer("k", k), require_count("n", n), require_rate("p", p))


def binomial_cdf(k: int, n: Count, p: float) -> float:
    """P(K ≤ k) for K ~ Binomial(n, p) = I_{1−p}(n−k, k+1).

    Examples
    --------
    >>> round(binomial_cdf(1, 2, 0.5), 12)
    0.75
    """
    return raw_cdf(require_integer("k", k), require_count("n", n), require_rate("p", p))


def binomial_tail(k: int, n: Count, p: float) -> float:
    """P(K ≥ k) for K ~ Binomial(n, p) = I_p(k, n−k+1), accurate however small.

    Examples
    --------
    >>> round(binomial_tail(5, 5, 0.5), 12)
    0.03125
    """
    return raw_tail(require_integer("k", k), require_count("n", n), require_rate("p", p))


def raw_pmf(k: int, n: int, p: float) -> float:
    """Return P(K = k) without checking the arguments."""
    return binomial_weight(k, n, p, 1 - p) if 0 <= k <= n else 0.0


def raw_cdf(k: int, n: int, p: float) -> float:
    """Return P(K ≤ k) without checking the arguments."""
    if k < 0:
        return 0.0
    return beta_sf(p, k + 1, n - k) if k < n else 1.0


def raw_tail(k: int, n: int, p: float) -> float:
    """Return P(K ≥ k) without checking the arguments."""
    if k > n:
        return 0.0
    return beta_cdf(p, k, n - k + 1) if k > 0 else 1.0


def exact_tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(K ≥ k) in rationals, for the exact-boundary convention."""
    a, d = p.numerator, p.denominator
    b = d - a
    # Horner from the top count down keeps one running term instead of n binomials.
    term = a**n
    total = term if k <= n else 0
    for j in range(n, max(k, 0), -1):
        term = term * j * b // ((n - j + 1) * a)
        total += term
    return Fraction(total, d**n)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for a, b > 0."""
    return _beta_cdf(x, 1 - x, a, b)


def beta_sf(x: float, a: float, b: float) -> float:
    """The upper tail 1 − I_x(a, b), without the cancellation."""
    return _beta_cdf(1 - x, x, b, a)


def beta_quantile(q: float, a: float, b: float) -> float:
    """The x with I_x(a, b) = q, for 0 < q < 1."""
    if q > 0.5:
        return 1 / (1 + math.exp(_logit_quantile(1 - q, b, a)))
    return 1 / (1 + math.exp(-_logit_quantile(q, a, b)))


def stirling_error(n: float) -> float:
    """log Γ(n + 1) minus Stirling's formula √(2πn)(n/e)^n, for n > 0."""
    if n <= 15:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - _HALF_LOG_2PI
    s = 1 / (n * n)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / n


def deviance(x: float, mean: float) -> float:
    """x log(x/mean) + mean − x, the Poisson deviance term, without cancellation near x = mean."""
    if abs(x - mean) < 0.1 * (x + mean):
        v = (x - mean) / (x + mean)
        total = (x - mean) * v
        term = 2 * x * v
        j = 1
        while True:
            term *= v * v
            following = total + term / (2 * j + 1)
            if following == total:
                return total
            total, j = following, j + 1
    return x * math.log(x / mean) + mean - x


def binomial_weight(k: float, n: float, p: float, q: float) -> float:
    """Γ(n+1)/(Γ(k+1)Γ(n−k+1)) p^k q^(n−k) for real 0 ≤ k ≤ n and p + q = 1."""
    if p <= 0:
        return 1.0 if k == 0 else 0.0
    if q <= 0:
        return 1.0 if k == n else 0.0
    if k == 0:
        return math.exp(n * (math.log1p(-p) if p < 0.5 else math.log(q)))
    if k == n:
        return math.exp(n * (math.log1p(-q) if q < 0.5 else math.log(p)))
    exponent = (
        stirling_error(n)
        - stirling_error(k)
        - stirling_error(n - k)
        - deviance(k, n * p)
        - deviance(n - k, n * q)
    )
    return math.exp(exponent) * math.sqrt(n / (2 * math.pi * k * (n - k)))


def _beta_cdf(x: float, y: float, a: float, b: float) -> float:
    """I_x(a, b) with y = 1 − x given, so that neither end loses digits."""
    if x <= 0:
        return 0.0
    if y <= 0:
        return 1.0
    if x < (a + 1) / (a + b + 2):
        return _front(x, y, a, b) * continued_fraction(x, a, b)
    return 1 - _front(y, x, b, a) * continued_fraction(y, b, a)


def _front(x: float, y: float, a: float, b: float) -> float:
    """x^a y^b / (a B(a, b))."""
    return binomial_weight(a, a + b, x, y) * b / (a + b)


def continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b) by the modified Lentz method (DLMF 8.17.22)."""
    c = 1.0
    d = 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MAX_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _away_from_zero(1 + even * d)
        c = _away_from_zero(1 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _away_from_zero(1 + odd * d)
        c = _away_from_zero(1 + odd / c)
        step = d * c
        value *= step
        if abs(step - 1) < 1e-16:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _rough_upper_z(q: float) -> float:
    """z with P(Z > z) ≈ q for q ≤ ½, to three digits (Hastings 1955, sheet 67)."""
    t = math.sqrt(-2 * math.log(q))
    return t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t))


def _logit_quantile(q: float, a: float, b: float) -> float:
    """The logit of the quantile for q ≤ ½: Newton on log F against logit x, kept in a bracket."""
    low, high = -_MAX_LOGIT, _MAX_LOGIT
    # Start where a normal of the same mean and spread, on the logit scale, has its quantile.
    u = math.log(a / b) - _rough_upper_z(q) * math.sqrt((a + b) ** 2 / (a * b * (a + b + 1)))
    u = min(max(u, low), high)
    for _ in range(_MAX_NEWTON):
        x, y = 1 / (1 + math.exp(-u)), 1 / (1 + math.exp(u))
        value = _beta_cdf(x, y, a, b)
        low, high = (low, u) if value > q else (u, high)
        # d log F / d logit x = x^a (1−x)^b / (B(a, b) F(x))
        slope = binomial_weight(a, a + b, x, y) * a * b / (a + b) / value if value else 0.0
        step = math.log(value / q) / slope if slope else math.inf
        if not low <= u - step <= high:
            u = (low + high) / 2
            continue
        u -= step
        if abs(step) < _NEWTON_DONE:
            break
    return u


# --- Bisection: where a condition that changes once stops or begins to hold -----------------------


def find_end(
    inside: float, outside: float, holds: Callable[[float], bool], resolution: float = 0.0
) -> float:
    """Return where a condition ends on the way from inside to outside, rounded outward.

    Unless a resolution is given, it halves down to neighbouring doubles.
    """
    while (middle := (inside + outside) / 2) not in (inside, outside):
        if abs(outside - inside) <= resolution:
            break
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return outside


def find_first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest integer above low from which on a condition holds, as it does at high."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# --- The standard normal distribution, from the standard library alone ----------------------------

_SQRT2 = math.sqrt(2)

#: The package exports none of these: Python has `statistics.NormalDist`.


def normal_cdf(x: float) -> float:
    """P(Z ≤ x), accurate in the lower tail.

    >>> normal_cdf(0.0)
    0.5
    """
    return math.erfc(-x / _SQRT2) / 2


def normal_sf(x: float) -> float:
    """P(Z > x), accurate in the upper tail."""
    return math.erfc(x / _SQRT2) / 2


def normal_quantile(q: float) -> float:
    """The z with P(Z ≤ z) = q, for 0 < q < 1 (Wichura's AS 241, as the standard library has it).

    >>> round(normal_quantile(0.95), 6)
    1.644854
    """
    return NormalDist().inv_cdf(q)


def upper_z(alpha: float) -> float:
    """The one-sided critical value z with P(Z > z) = alpha.

    Taken from the lower tail and reflected: 1 − alpha would round a small alpha away.
    """
    return -normal_quantile(alpha) + 0.0


# --- The binomial counts that matter: all whose probability can move a sum of doubles -------------

#: Counts rarer than this, relative to the likeliest, cannot move a sum of doubles.
NEGLIGIBLE = 1e-19


def likely_counts(n: int, p: float, *, negligible: float = NEGLIGIBLE) -> tuple[int, list[float]]:
    """The first binomial count that matters, and the probabilities from there to the last."""
    if p in (0, 1):
        return (n if p else 0), [1.0]
    mode = min(int((n + 1) * p), n)
    odds = p / (1 - p)
    peak = binomial_weight(mode, n, p, 1 - p)
    below, weight, k = [], peak, mode
    while k > 0 and weight > negligible * peak:
        weight *= k / ((n - k + 1) * odds)
        k -= 1
        below.append(weight)
    above, weight, first, k = [peak], peak, k, mode
    while k < n and weight > negligible * peak:
        weight *= (n - k) * odds / (k + 1)
        k += 1
        above.append(weight)
    return first, below[::-1] + above


def average_below(
    weights: Iterable[float], cutoffs: Iterable[int], trials: int, rate: float
) -> float:
    """Σ w P(K < c): how often a count stays below its cutoff, with a weight for each cutoff."""
    first, chances = likely_counts(trials, rate)
    below = [0.0, *accumulate(chances)]
    places = (min(max(cutoff - first, 0), len(chances)) for cutoff in cutoffs)
    return min(1.0, math.fsum(w * below[at] for w, at in zip(weights, places, strict=True)))
