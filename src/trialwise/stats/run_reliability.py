"""How many runs a pass rate needs, and what the order of passes and failures in them shows.

The decay curve, the variance amplification factor and the graceful degradation score are the ones
of the mcptest reliability report. They borrow their names from Khanal et al. 2026 ("Beyond
pass@1") and are different quantities from the paper's. Every rounding is decided in whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import upper_z
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.result_types import Count, Interval
from trialwise.validation import (
    require_choice,
    require_count,
    require_number,
    require_open_rate,
    require_outcomes,
    require_rate,
    require_successes,
)

#: The critical values as the report prints them, rounded to three decimals. They are part of the
#: published recommendation: exact ones change it at small half-widths (90 % at 0.02: 1691, not
#: 1692).
_ROUNDED_Z = {0.90: "1.645", 0.95: "1.96", 0.99: "2.576"}
WALD_LEVELS = tuple(_ROUNDED_Z)

#: A recommendation this close above a whole number is that number: a half-width computed in
#: doubles may sit one ulp below the decimal it stands for.
_CEILING_GUARD = 1e-9

#: ⌊100 e^−f⌋ for f failures: as k grows, (1 − f/k)^k rises towards e^−f without reaching it, so
#: these are the last values the curve takes; with five failures or more it is below 1 %.
_SETTLED_PERCENT = (100, 36, 13, 4, 1)
#: From this k on the curve has settled for every f (the slowest, f = 2, does so at k = 52).
_SETTLED_FROM = 64


def recommend_runs(half_width: float, confidence: float = 0.95) -> int:
    """The runs at which the nominal Wald half-width is at most `half_width` at any rate.

    N = ⌈(z / half_width)² / 4⌉, the worst case p = ½, with z rounded as in the mcptest report.
    Only the *nominal width* is guaranteed: the Wald interval itself covers far less than it claims
    at rates near 1 (65 % for 95 % at 10 runs and p = 0.9). `recommend_runs_wilson` is the honest
    one.

    Parameters
    ----------
    half_width : float
        Strictly between 0 and 0.5.
    confidence : {0.90, 0.95, 0.99}
        The levels the report defines.

    Examples
    --------
    >>> recommend_runs(0.05, 0.95), recommend_runs(0.02, 0.95)
    (385, 2401)
    """
    half = as_written(check_half_width(half_width))
    runs = (Fraction(_rounded_z(confidence)) / half) ** 2 / 4
    return math.ceil(runs - Fraction(_CEILING_GUARD))


def recommend_runs_wilson(half_width: float, confidence: float = 0.95) -> int:
    """The runs at which the Wilson interval's half-width is at most `half_width` at any rate.

    At the worst case p̂ = ½ the Wilson half-width is z / (2 √(N + z²)), hence
    N = ⌈z² (1 / (4 half_width²) − 1)⌉ with the exact z. Fewer runs than Wald asks for, and an
    interval whose coverage is near its name.

    Parameters
    ----------
    half_width : float
        Strictly between 0 and 0.5.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> recommend_runs_wilson(0.05, 0.95)
    381
    """
    half = as_written(check_half_width(half_width))
    z = Fraction(upper_z((1 - require_open_rate("confidence", confidence)) / 2))
    return max(1, math.ceil(z * z * (1 / (4 * half * half) - 1)))


def confidence_band(runs: Count, confidence: float = 0.95) -> float:
    """The worst-case nominal Wald half-width a number of runs buys: z √(0.25 / runs).

    Both directions are the report's "Power-analysis run-count recommendation".

    Parameters
    ----------
    runs : int
        At least 1.
    confidence : {0.90, 0.95, 0.99}
        As in `recommend_runs`, whose inverse this is.

    Examples
    --------
    >>> confidence_band(100, 0.95)
    0.098
    """
    n = require_count("runs", runs, minimum=1)
    return float(_rounded_z(confidence)) * math.sqrt(1 / (4 * n))


def reliability_decay_curve(outcomes: Sequence[bool]) -> tuple[int, ...]:
    """For k = 1 … N, the whole percent of (c_k / k)^k, c_k the passes among the first k runs.

    The plug-in pass^k of a growing record, rounded down: the report's "Reliability Decay Curve".
    It depends on the order and need not fall: fail, pass, pass, pass gives 0, 25, 29, 31.

    Parameters
    ----------
    outcomes : sequence of bool
        At least one run, in the order they ran.

    Examples
    --------
    >>> reliability_decay_curve([True, True, True, False])
    (100, 100, 100, 31)
    """
    curve = []
    failures = 0
    for k, passed in enumerate(require_outcomes("outcomes", outcomes), start=1):
        failures += not passed
        curve.append(_decay_percent(k, failures))
    return tuple(curve)


def variance_amplification(outcomes: Sequence[bool]) -> int:
    """The population standard deviation of the 0/1 outcomes as a whole percent of its maximum ½.

    200 √(p(1−p)) rounded, the report's "Variance Amplification Factor". Despite its name a
    standard deviation, not a variance; the order does not matter, and one run has none.

    Parameters
    ----------
    outcomes : sequence of bool
        At least one run.

    Examples
    --------
    >>> variance_amplification([True, True, True, False])
    87
    """
    checked = require_outcomes("outcomes", outcomes)
    runs, passes = len(checked), sum(checked)
    # ⌊200 √(c f)/n + ½⌋ = ⌊(400 √(c f) + n) / 2n⌋, where flooring the root first changes nothing
    # because the rest is whole. A half itself never occurs: it would be an odd leg over an even
    # hypotenuse of a right triangle in lowest terms.
    root = math.isqrt(160_000 * passes * (runs - passes))
    return (root + runs) // (2 * runs)


def graceful_degradation(outcomes: Sequence[bool]) -> int:
    """The whole percent of Σ i·pass_i / Σ i over the positions i = 1 … N, halves up.

    The report's "Graceful Degradation Score": 100 when every run passed; a late failure costs more
    than an early one.

    Parameters
    ----------
    outcomes : sequence of bool
        At least one run, in the order they ran.

    Examples
    --------
    >>> graceful_degradation([False, True, True, True])
    90
    >>> graceful_degradation([True, True, True, False])
    60
    """
    checked = require_outcomes("outcomes", outcomes)
    total = len(checked) * (len(checked) + 1) // 2
    earned = sum(place for place, passed in enumerate(checked, start=1) if passed)
    return (200 * earned + total) // (2 * total)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilitySummary:
    """What the runs of one test show together; percents are whole numbers.

    `pass_at_k` and `passhat_k` are the headline with k = N: 100 when any run, and when every run,
    passed, else 0. They estimate nothing; the curve's (c/k)^k is a different quantity.
    """

    outcomes: tuple[bool, ...]
    runs: int
    pass_at_k: int
    passhat_k: int
    variance_amplification: int
    graceful_degradation: int
    decay_curve: tuple[int, ...]

    def resolve_target(self, path: str) -> int:
        """The number a dot-path names, for a matcher to gate; an unknown path is an error.

        >>> summarize([True, False]).resolve_target("reliability.graceful_degradation")
        33
        """
        targets = {f"reliability.{name}": getattr(self, name) for name in _TARGETS}
        value: int = targets[require_choice("path", path, tuple(targets))]
        return value

    def metrics_object(self) -> dict[str, int | list[int]]:
        """The summary as plain JSON data: the targets by their last name, and the curve."""
        metrics: dict[str, int | list[int]] = {name: getattr(self, name) for name in _TARGETS}
        metrics["decay_curve"] = list(self.decay_curve)
        return metrics


#: What can be asserted on; the curve is detail, not a target.
_TARGETS = ("runs", "pass_at_k", "passhat_k", "variance_amplification", "graceful_degradation")


def summarize(outcomes: Sequence[bool]) -> ReliabilitySummary:
    """The reliability summary of one test's runs, in the order they ran: the report's "Targets".

    Parameters
    ----------
    outcomes : sequence of bool
        At least one run.

    Examples
    --------
    >>> summarize([True, True, True, False]).metrics_object()
    {'runs': 4, 'pass_at_k': 100, 'passhat_k': 0, 'variance_amplification': 87,
     'graceful_degradation': 60, 'decay_curve': [100, 100, 100, 31]}
    """
    checked = require_outcomes("outcomes", outcomes)
    return ReliabilitySummary(
        outcomes=checked,
        runs=len(checked),
        pass_at_k=100 * any(checked),
        passhat_k=100 * all(checked),
        variance_amplification=variance_amplification(checked),
        graceful_degradation=graceful_degradation(checked),
        decay_curve=reliability_decay_curve(checked),
    )


def check_half_width(half_width: float) -> float:
    """Strictly between 0 and 0.5: no rate is further than that from the middle of its range."""
    allowed = "lie strictly between 0 and 0.5"
    return require_number("half_width", half_width, allowed, lambda half: 0 < half < 0.5)


def _rounded_z(confidence: float) -> str:
    return _ROUNDED_Z[require_choice("confidence", confidence, WALD_LEVELS)]


def _decay_percent(k: int, failures: int) -> int:
    """⌊100 ((k − f)/k)^k⌋, without large powers once the value no longer changes."""
    if failures >= len(_SETTLED_PERCENT):
        return 0
    if k >= _SETTLED_FROM:
        return _SETTLED_PERCENT[failures]
    return int(100 * (k - failures) ** k // k**k)


# pass@k and pass^k: what k further trials of one task would show, and the mean over many tasks.
#
# A task with success probability p has pass@k = 1 − (1−p)^k (at least one of k trials succeeds) and
# pass^k = p^k (all of them do). Two estimators of each exist and disagree, so they have two names
# and are never swapped in silence: the unbiased one from counts, and the plug-in one from a rate.
#
# Trials of one task are never resampled here. Drawing them with replacement repeats successes, so
# the centre of such a bootstrap of pass^k is the plug-in (c/n)^k, above the unbiased estimate:
# 0.328 for 0.222 at 8 of 10, k = 5.

#: C(n−c, k)/C(n, k) ≤ exp(−kc/n). Beyond kc/n = 38 it is below 2⁻⁵⁴ and 1 minus it rounds to 1;
#: beyond 746 it is below half the smallest double and rounds to 0. Stopping there keeps the
#: shorter of the two equal products under √(746 n) factors, whatever k and c.
_ROUNDS_TO_ONE = 38
_ROUNDS_TO_ZERO = 746
#: So many runs are as good as endless; more would not fit into a double.
_ENDLESS = 2**1000


def pass_at_k(trials: Count, successes: Count, k: Count) -> float:
    """The unbiased estimate of the probability that at least one of k trials succeeds.

    1 − C(n−c, k) / C(n, k): the share of the k-subsets of the trials that hold a success, computed
    in whole numbers and rounded once (Chen et al. 2021). At k = n it is 1 or 0: any success at all.

    Parameters
    ----------
    trials, successes : int
        0 ≤ successes ≤ trials, trials ≥ 1.
    k : int
        1 ≤ k ≤ trials; beyond the trials there is no unbiased estimate.

    Examples
    --------
    >>> pass_at_k(5, 3, 1), pass_at_k(5, 3, 2), pass_at_k(5, 3, 5)
    (0.6, 0.9, 1.0)
    """
    n, c, size = _check_counts(trials, successes, k)
    if size * c > _ROUNDS_TO_ONE * n:
        return 1.0
    without, subsets = _subsets(n, n - c, size)
    return (subsets - without) / subsets


def pass_at_k_naive(rate: float, k: Count) -> float:
    """The plug-in 1 − (1 − rate)^k: exact when `rate` is the true one, biased when it is c/n.

    Parameters
    ----------
    rate : float
        Between 0 and 1.
    k : int
        At least 1.

    Examples
    --------
    >>> round(pass_at_k_naive(0.8, 5), 5)
    0.99968
    """
    return _at_least_one(require_rate("rate", rate), require_count("k", k, minimum=1))


def pass_hat_k(trials: Count, successes: Count, k: Count) -> float:
    """The unbiased estimate of the probability that all of k trials succeed, pass^k.

    C(c, k) / C(n, k): the share of the k-subsets of the trials that hold no failure (Yao et al.
    2024, τ-bench). Parameters as in `pass_at_k`, of which it is the mirror image:
    pass@k of c successes is 1 − pass^k of n − c.

    Examples
    --------
    >>> pass_hat_k(5, 3, 1), pass_hat_k(5, 3, 2), pass_hat_k(5, 3, 4)
    (0.6, 0.3, 0.0)
    """
    n, c, size = _check_counts(trials, successes, k)
    if size * (n - c) > _ROUNDS_TO_ZERO * n:
        return 0.0
    inside, subsets = _subsets(n, c, size)
    return inside / subsets


def pass_hat_k_plugin(rate: float, k: Count) -> float:
    """The plug-in rate^k: exact when `rate` is the true one, biased upward when it is c/n.

    At 4 of 5 and k = 5 it says 0.328 where the unbiased estimate is 0. Parameters as in
    `pass_at_k_naive`.

    Examples
    --------
    >>> round(pass_hat_k_plugin(0.8, 5), 5)
    0.32768
    """
    return _all_succeed(require_rate("rate", rate), require_count("k", k, minimum=1))


def pass_at_k_interval(
    trials: Count, successes: Count, k: Count, *, confidence: float = 0.95
) -> Interval:
    """The exact interval for one task's pass@k: Clopper–Pearson's, mapped by p → 1 − (1−p)^k.

    The map is increasing, so the interval holds 1 − (1−p)^k exactly when Clopper–Pearson's holds
    p: the coverage is the same at every p, never below `confidence`. It is about this task alone,
    under independent trials with one success probability. It is defined for every k, also beyond
    the trials, since only the unbiased estimate needs k ≤ n. It always holds the plug-in value at
    c/n, but may miss the unbiased estimate, which is 0 or 1 at k = n.

    Parameters
    ----------
    trials, successes : int
        0 ≤ successes ≤ trials, trials ≥ 1.
    k : int
        At least 1.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> low, high = pass_at_k_interval(10, 3, 2)
    >>> round(low, 4), round(high, 4)
    (0.129, 0.8792)
    """
    exact = clopper_pearson(successes, trials, confidence=confidence)
    return _map_interval(exact, _at_least_one, "pass@k", require_count("k", k, minimum=1))


def pass_hat_k_interval(
    trials: Count, successes: Count, k: Count, *, confidence: float = 0.95
) -> Interval:
    """The exact interval for one task's pass^k: Clopper–Pearson's, mapped by p → p^k.

    Meaning, coverage and parameters as in `pass_at_k_interval`.

    Examples
    --------
    >>> low, high = pass_hat_k_interval(10, 10, 5)
    >>> round(low, 4), high
    (0.1581, 1.0)
    """
    exact = clopper_pearson(successes, trials, confidence=confidence)
    return _map_interval(exact, _all_succeed, "pass^k", require_count("k", k, minimum=1))


def _check_counts(trials: Count, successes: Count, k: Count) -> tuple[int, int, int]:
    c, n = require_successes(successes, trials)
    size = require_count("k", k, minimum=1)
    if size > n:
        raise InvalidArgument("k", k, f"be at most trials ({n})")
    return n, c, size


def _subsets(n: int, c: int, k: int) -> tuple[int, int]:
    """Two whole numbers in the ratio C(c, k) : C(n, k), by the form with the fewer factors."""
    if k <= n - c:
        return math.comb(c, k), math.comb(n, k)
    # Which k are drawn or which n − c fail: the same tables, counted from the other side.
    return math.comb(n - k, n - c), math.comb(n, n - c)


def _at_least_one(rate: float, k: int) -> float:
    # Through logarithms, so that a rate of 1e-20 is not lost in 1 − rate.
    return -math.expm1(min(k, _ENDLESS) * math.log1p(-rate)) if 0 < rate < 1 else rate


def _all_succeed(rate: float, k: int) -> float:
    return math.pow(rate, min(k, _ENDLESS))


def _map_interval(
    exact: Interval, metric: Callable[[float, int], float], name: str, k: int
) -> Interval:
    return Interval(
        metric(exact.low, k),
        metric(exact.high, k),
        confidence=exact.confidence,
        method=f"{name} of {exact.method}",
    )
