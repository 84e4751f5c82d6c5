"""Calibration of the latency rules, for continuous latencies and for tied ones.

The tied reference is an exponential latency of mean 100 ms reported in whole steps of 20 ms, so
coarse that a fifth of all values coincide. For it every probability is a finite binomial sum:
P(the k-th smallest of n is at most v) = P(Bin(n, F(v)) ≥ k).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trialwise.contrib.conformance.calibration.calibration_row import Row
from trialwise.procedures.latency import BASELINE_RULES, LIMIT_RULES
from trialwise.stats.binomial import binomial_cdf, binomial_tail
from trialwise.stats.latency_baseline import (
    order_statistic_bound,
    order_statistic_false_alarm,
    precedence_existence,
)
from trialwise.stats.latency_planning import latency_limit_cutoff

_ALPHA = 0.05
_PERCENTILES = (0.50, 0.90, 0.95, 0.99)
_BASELINE_SIZES = (59, 200, 299, 935, 3000)
_PAIRS = ((0.50, 50, 50), (0.90, 200, 200), (0.95, 935, 100), (0.95, 935, 500), (0.99, 2000, 200))
_LIMITS = ((0.95, 59), (0.95, 100), (0.90, 200), (0.99, 500))
_MEAN, _STEP = 100.0, 20.0


def latency_rows() -> Iterator[Row]:
    """Coverage of the bound, false alarms of both baseline rules, false compliance of a limit."""
    for percentile in _PERCENTILES:
        for n in _BASELINE_SIZES:
            yield from _coverage(percentile, n)
    for percentile, nb, n in _PAIRS:
        yield from _false_alarms(percentile, nb, n)
    for percentile, n in _LIMITS:
        design = latency_limit_cutoff(percentile, n, alpha=_ALPHA)
        yield Row(
            section="latency",
            rule=LIMIT_RULES["exact"],
            design=f"p{percentile * 100:g}, n = {n}, at least {design.cutoff} within",
            quantity="P(PASS) with the percentile exactly at the limit",
            bound="at most",
            nominal=_ALPHA,
            achieved=design.achieved_size,
            claimed=True,
        )


def _coverage(percentile: float, n: int) -> Iterator[Row]:
    bound = order_statistic_bound(range(n), percentile, confidence=1 - _ALPHA)
    if bound.rank is None:
        return  # saturated: INCONCLUSIVE, no bound and so no coverage
    for kind, below in (("continuous", percentile), ("tied", _below_quantile(percentile))):
        yield Row(
            section="latency",
            rule=BASELINE_RULES["wilson"],
            design=f"p{percentile * 100:g}, n = {n}, rank {bound.rank}, {kind}",
            quantity="P(bound ≥ true percentile)",
            bound="at least",
            nominal=1 - _ALPHA,
            # The bound covers unless k values or more lie strictly below the percentile.
            achieved=binomial_cdf(bound.rank - 1, n, below),
            claimed=True,
        )


def _false_alarms(percentile: float, nb: int, n: int) -> Iterator[Row]:
    yield Row(
        section="latency",
        rule=BASELINE_RULES["wilson"],
        design=f"p{percentile * 100:g}, baseline {nb}, n = {n}, continuous",
        quantity="P(breach) when nothing changed",
        bound="at most",
        nominal=_ALPHA,
        achieved=_number(order_statistic_false_alarm(nb, n, percentile, confidence=0.95)),
        claimed=False,
        note="a confidence bound is not a prediction bound (§12.4.3)",
    )
    design = precedence_existence(nb, n, percentile, alpha=_ALPHA)
    if design.rank is None or design.test_rank is None or design.breach_probability is None:
        return
    tied = _tied_breach(design.rank, nb, design.test_rank, n)
    for kind, achieved in (("continuous", design.breach_probability), ("tied", tied)):
        yield Row(
            section="latency",
            rule=BASELINE_RULES["exact"],
            design=f"p{percentile * 100:g}, baseline {nb}, n = {n}, rank {design.rank}, {kind}",
            quantity="P(breach) when nothing changed",
            bound="at most",
            nominal=_ALPHA,
            achieved=achieved,
            claimed=True,
        )


def _tied_cdf(step: int) -> float:
    """P(latency ≤ step · 20 ms)."""
    return -math.expm1(-step * _STEP / _MEAN)


def _below_quantile(percentile: float) -> float:
    """P(latency < Q(p)) for the tied latencies: the share strictly below the true percentile."""
    step = math.ceil(-_MEAN * math.log1p(-percentile) / _STEP)
    return _tied_cdf(step - 1)


def _tied_breach(rank: int, nb: int, test_rank: int, n: int) -> float:
    """P(test percentile > baseline order statistic) for the tied latencies."""
    total, before = 0.0, 0.0
    step = 0
    while before < 1 - 1e-15:
        step += 1
        share = _tied_cdf(step)
        at_most = binomial_tail(rank, nb, share)
        total += (at_most - before) * binomial_cdf(test_rank - 1, n, share)
        before = at_most
    return total


def _number(value: object) -> float:
    """A design in this table always has its probability: saturation is kept out of it."""
    assert isinstance(value, float)
    return value
