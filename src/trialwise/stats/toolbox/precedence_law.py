"""The law of precedence: where a baseline value falls among test values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.latency_baseline import first_rank
from trialwise.stats.latency_percentiles import check_latencies, check_percentile, nearest_rank
from trialwise.stats.unconditional import lower_tail
from trialwise.validation import require_count, require_open_rate


def precedence_cdf(
    rank: SupportsIndex, count: SupportsIndex, *, baseline: SupportsIndex, test: SupportsIndex
) -> float:
    """P(at most `count` of the test values lie below the `rank`-th smallest baseline value).

    Parameters
    ----------
    rank : int
        1 … baseline.
    count : int
        0 … test.
    baseline, test : int
        How many values each side has, at least 1.

    References
    ----------
    Nelson (1963), "Tables for a precedence life test"; companion §12.4.3 asks for it.

    Examples
    --------
    The largest of 19 baseline values is exceeded by one more value with probability 1/20:

    >>> round(precedence_cdf(19, 0, baseline=19, test=1), 12)
    0.05
    """
    nb = require_count("baseline", baseline, minimum=1)
    nt = require_count("test", test, minimum=1)
    k = require_count("rank", rank, minimum=1)
    x = require_count("count", count)
    if k > nb:
        raise InvalidArgument("rank", rank, f"be at most baseline ({nb})")
    if x > nt:
        raise InvalidArgument("count", count, f"be at most test ({nt})")
    return lower_tail(k, x, nb, nt)


def precedence_rank(
    count: SupportsIndex, *, baseline: SupportsIndex, test: SupportsIndex, alpha: float = 0.05
) -> int | None:
    """The smallest baseline rank k with F(k, count) ≤ alpha, or None where no rank reaches it.

    Examples
    --------
    >>> precedence_rank(182, baseline=935, test=192)
    911
    """
    nb = require_count("baseline", baseline, minimum=1)
    nt = require_count("test", test, minimum=1)
    x = require_count("count", count)
    if x > nt:
        raise InvalidArgument("count", count, f"be at most test ({nt})")
    return first_rank(x, nb, nt, require_open_rate("alpha", alpha))


def count_exceedances(
    baseline_latencies: Iterable[float], test_latencies: Iterable[float], percentile: float
) -> int:
    """How many test latencies lie strictly above the baseline's nearest-rank percentile.

    Examples
    --------
    >>> count_exceedances([100, 120, 140, 160], [90, 120, 130, 150], 0.5)
    2
    """
    baseline = check_latencies("baseline_latencies", baseline_latencies)
    test = check_latencies("test_latencies", test_latencies)
    return len(test) - bisect_right(test, nearest_rank(baseline, check_percentile(percentile)))
