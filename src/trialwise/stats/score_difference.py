"""How far apart are two measured rates? A score interval for their difference.

The difference is measured in standard errors at the likeliest pair of rates on the boundary
p_t − p_b = −margin,

    z = (p̂_t − p̂_b + margin) / √(p̃_t(1−p̃_t)/n_t + p̃_b(1−p̃_b)/n_b),   p̃_t = p̃_b − margin,

after Farrington & Manning (1990); Miettinen & Nurminen (1985) multiply the variance by N/(N−1)
(companion §3.2 names the two methods). The interval holds the margins that this test does not
reject; the test itself is in `toolbox.margin_tests`.
"""

from __future__ import annotations

import math
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.stats.bisection import find_end
from trialwise.stats.fisher import check_two_runs
from trialwise.stats.normal import upper_z
from trialwise.stats.rate_intervals import wilson_high, wilson_low
from trialwise.stats.result_types import Interval
from trialwise.validation import require_choice, require_open_rate

IntervalMethod: TypeAlias = Literal["miettinen-nurminen", "farrington-manning", "newcombe"]
INTERVAL_METHODS: tuple[IntervalMethod, ...] = (
    "miettinen-nurminen",
    "farrington-manning",
    "newcombe",
)


#: Newton starts from the closed form: 2 steps are usual, 100 halve any bracket to nothing.
_MAX_STEPS = 100
#: The step, relative to the higher rate, after which Newton leaves no error a double could show.
_NEWTON_DONE = 1e-12


def difference_interval(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    successes: SupportsIndex,
    trials: SupportsIndex,
    *,
    confidence: float = 0.95,
    method: IntervalMethod = "miettinen-nurminen",
) -> Interval:
    """A two-sided confidence interval for the test's rate minus the baseline's, within [−1, 1].

    - "miettinen-nurminen", "farrington-manning": the differences the score test of that name does
      not reject on either side, so that a test at alpha shows a margin exactly where the interval
      of confidence 1 − 2 alpha lies above −margin.
    - "newcombe": the Wilson bounds of the two rates, added in square (Newcombe 1998, method 10).

    None is exact.

    Parameters
    ----------
    baseline_successes, baseline_trials, successes, trials : int
        The two runs, as in `noninferiority`.
    confidence : float
        Strictly between 0 and 1.
    method : {"miettinen-nurminen", "farrington-manning", "newcombe"}
        The construction.

    Examples
    --------
    Newcombe's own first example, 56/70 against 48/80:

    >>> interval = difference_interval(48, 80, 56, 70, method="newcombe")
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0524, 0.3339)
    """
    k, nb, x, nt = check_two_runs(baseline_successes, baseline_trials, successes, trials)
    level = require_open_rate("confidence", confidence)
    require_choice("method", method, INTERVAL_METHODS)
    z = upper_z((1 - level) / 2)
    if method == "newcombe":
        low, high = -_newcombe_upper(x, nt, k, nb, z), _newcombe_upper(k, nb, x, nt, z)
    else:
        # The lower limit is the mirrored upper one, so that swapping the runs negates the interval.
        limit = z / variance_factor(method, nb + nt)
        low, high = -_score_upper(x, nt, k, nb, limit), _score_upper(k, nb, x, nt, limit)
    return Interval(low, high, confidence=level, method=method)


def variance_factor(method: str, size: int) -> float:
    """What Miettinen & Nurminen's variance factor N/(N−1) does to z; two runs have N ≥ 2."""
    return math.sqrt((size - 1) / size) if method == "miettinen-nurminen" else 1.0


def score_statistic(k: int, nb: int, x: int, nt: int, difference: float) -> float:
    """The score statistic of p_t − p_b = difference, for a difference inside (−1, 1).

    Where neither run varies under the hypothesis (both all or none, difference 0) the two rates
    agree with it perfectly: 0, not 0/0.
    """
    p_t, p_b = restricted_rates(k, nb, x, nt, difference)
    variance = p_t * (1 - p_t) / nt + p_b * (1 - p_b) / nb
    gap = (x * nb - k * nt) / (nt * nb) - difference
    return gap / math.sqrt(variance) if variance > 0 else 0.0


def restricted_rates(k: int, nb: int, x: int, nt: int, difference: float) -> tuple[float, float]:
    """The likeliest rates (p_t, p_b) with p_t − p_b = difference."""
    if difference == 0:
        pooled = (k + x) / (nb + nt)
        return pooled, pooled
    if difference > 0:
        p_b = _lower_rate(k, nb, x, nt, difference)
        return min(p_b + difference, 1.0), p_b
    p_t = _lower_rate(x, nt, k, nb, -difference)
    return p_t, min(p_t - difference, 1.0)


def _lower_rate(x: int, n: int, y: int, m: int, gap: float) -> float:
    """The likeliest r for x successes in n at rate r and y in m at rate r + gap, 0 < gap < 1.

    The score of r, multiplied by r(1−r)(r+gap)(1−r−gap), is a cubic: positive below the maximum
    of the likelihood and negative above it, its middle root. The closed form (Farrington & Manning
    1990, appendix) loses half the digits where two roots meet, so Newton's method finishes, held
    in a bracket.
    """
    top, spread = 1 - gap, gap * (1 - gap)
    cubic = (
        float(n + m),
        (2 * n + m) * gap - (n + m + x + y),
        x * (1 - 2 * gap) + y - n * spread - m * gap,
        x * spread,
    )
    # No success at the lower rate, or no failure at the higher: the maximum may be an end.
    if x == 0 and _slope(cubic, 0.0) <= 0:
        return 0.0
    if y == m and _slope(cubic, top) <= 0:
        return top
    low, high, r = 0.0, top, _middle_root(cubic)
    for _ in range(_MAX_STEPS):
        if not low < r < high:
            r = (low + high) / 2
        value = (x - n * r) * (r + gap) * (top - r) + (y - m * (r + gap)) * r * (1 - r)
        low, high = (r, high) if value > 0 else (low, r)
        slope = _slope(cubic, r)
        step = (value / slope if slope else math.inf) if value else 0.0
        r -= step
        if abs(step) <= _NEWTON_DONE * (r + gap):
            break
    return min(max(r, 0.0), top)


def _slope(cubic: tuple[float, float, float, float], r: float) -> float:
    return (3 * cubic[0] * r + 2 * cubic[1]) * r + cubic[2]


def _middle_root(cubic: tuple[float, float, float, float]) -> float:
    """The middle of three real roots, by Viète's cosine; rounding may leave it a little outside."""
    shift = -cubic[1] / (3 * cubic[0])
    radius = math.sqrt(max(shift * shift - cubic[2] / (3 * cubic[0]), 0.0))
    if radius == 0:
        return shift
    height = ((shift * cubic[0] + cubic[1]) * shift + cubic[2]) * shift + cubic[3]
    cosine = -height / (2 * cubic[0] * radius**3)
    angle = math.acos(min(max(cosine, -1.0), 1.0))
    return shift + 2 * radius * math.cos((angle + 4 * math.pi) / 3)


def _score_upper(k: int, nb: int, x: int, nt: int, limit: float) -> float:
    """The difference above the observed one where the score reaches −limit, to the last bit."""
    observed = (x * nb - k * nt) / (nt * nb)
    return find_end(observed, 1.0, lambda d: score_statistic(k, nb, x, nt, d) > -limit)


def _newcombe_upper(k: int, nb: int, x: int, nt: int, z: float) -> float:
    difference = (x * nb - k * nt) / (nt * nb)
    room = math.hypot(wilson_high(x, nt, z) - x / nt, k / nb - wilson_low(k, nb, z))
    return min(difference + room, 1.0)
