"""Two arms that were not tried on the same inputs: exact bounds and tests of the difference.

The difference is B's rate minus A's. A test of "the difference is at most t" takes two exact tail
probabilities, that of so few successes of A and that of so many of B. Each is at least as large as
a uniform variable and the two are independent, so that Fisher's product of them is a valid test of
a pair of rates. Its p-value is the largest one over all pairs of rates with this difference, found
by covering them with intervals of which each counts with the worst it can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import raw_cdf, raw_tail
from trialwise.stats.difference_bounds import METHOD, find_product, maximise_difference
from trialwise.stats.result_types import Interval
from trialwise.validation import require_count, require_open_rate

_FIRST_CELLS = 16
#: How finely the rates of A are covered.
_FINEST = 2e-4
#: How much larger a p-value may be than the largest one, as a share.
_SLACK = 0.01


@lru_cache(maxsize=256)
def bound_unpaired_difference(
    passed_a: int, trials_a: int, passed_b: int, trials_b: int, *, alpha: float = 0.05
) -> Interval:
    """Return an exact interval for the rate of B minus that of A, each end with error alpha/2.

    Parameters
    ----------
    passed_a, trials_a, passed_b, trials_b : int
        The successes and trials of each.
    alpha : float
        Half of it is the largest probability of each wrong end.

    Examples
    --------
    >>> low, high = bound_unpaired_difference(80, 100, 95, 100)
    >>> round(low, 2), round(high, 2)
    (0.04, 0.27)
    """
    _check(passed_a, trials_a, passed_b, trials_b)
    product = find_product(require_open_rate("alpha", alpha) / 2)
    high = maximise_difference(
        lambda rate: raw_tail(passed_a, trials_a, rate),
        lambda rate: raw_cdf(passed_b, trials_b, rate),
        product,
    )
    low = -maximise_difference(
        lambda rate: raw_tail(passed_b, trials_b, rate),
        lambda rate: raw_cdf(passed_a, trials_a, rate),
        product,
    )
    return Interval(max(low, -1.0), min(high, 1.0), confidence=complement(alpha), method=METHOD)


@lru_cache(maxsize=256)
def find_margin_p_value(
    passed_a: int, trials_a: int, passed_b: int, trials_b: int, *, limit: float
) -> float:
    """Return the exact p-value of "the rate of B minus that of A is at most the limit".

    Parameters
    ----------
    passed_a, trials_a, passed_b, trials_b : int
        The successes and trials of each.
    limit : float
        Above −1 and below 1; negative to show that B is not worse by so much.

    Examples
    --------
    >>> round(find_margin_p_value(90, 100, 90, 100, limit=-0.2), 5)
    6e-05
    """
    _check(passed_a, trials_a, passed_b, trials_b)
    if not -1 < limit < 1:
        raise InvalidArgument("limit", limit, "lie between -1 and 1")

    def bound(left: float, right: float) -> float:
        """Return the largest product for a rate of A in an interval."""
        highest = min(1.0, max(0.0, right + limit))
        return raw_cdf(passed_a, trials_a, left) * raw_tail(passed_b, trials_b, highest)

    low, high = max(0.0, -limit), min(1.0, 1.0 - limit)
    width = (high - low) / _FIRST_CELLS
    cells = [(low + i * width, low + (i + 1) * width) for i in range(_FIRST_CELLS)]
    return _combine(_cover(cells, bound))


def _cover(cells: Sequence[tuple[float, float]], bound: Callable[[float, float], float]) -> float:
    """Return the largest product over intervals of A's rate, from above."""
    heap = [(-bound(*cell), *cell) for cell in cells]
    heapify(heap)
    while True:
        worst, left, right = heappop(heap)
        middle = (left + right) / 2
        if right - left <= _FINEST or -worst <= (1 + _SLACK) * bound(middle, middle):
            return -worst
        for cell in ((left, middle), (middle, right)):
            heappush(heap, (-bound(*cell), *cell))


def _combine(product: float) -> float:
    """Return the probability that a product of two uniform variables is not larger."""
    return min(1.0, product * (1 - math.log(product))) if product > 0 else 0.0


def _check(passed_a: int, trials_a: int, passed_b: int, trials_b: int) -> None:
    for name, passed, trials in (("a", passed_a, trials_a), ("b", passed_b, trials_b)):
        require_count(f"trials_{name}", trials, minimum=1)
        if require_count(f"passed_{name}", passed) > trials:
            raise InvalidArgument(f"passed_{name}", passed, f"be at most trials_{name} ({trials})")
