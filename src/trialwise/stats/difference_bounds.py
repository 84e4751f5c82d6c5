"""How far two rates lie apart, bounded so that the bound agrees with the verdict.

A comparison with a baseline shows one of two things. Where it FAILs, the rate is lower by at least
some amount; where it PASSes, it is lower by at most some amount. Both bounds come from two exact
tail probabilities: that of a baseline at least as good (or bad) as the one measured, and that of a
test at least as bad (or good) as this one, given the boundaries that belong to the baseline. Under
any pair of rates the first is at least as large as a uniform variable, and the second likewise
whatever the baseline was, so Fisher's product of the two is a valid test of the pair. The
bound is the extreme difference of all pairs that this test keeps; its baseline rates are covered by
intervals, and each interval counts with the worst it can hold.

A FAIL may be shown by a sharper test than this one. Its bound is then placed just below 0: where
nothing has changed, it is wrong exactly when the verdict is, which is at most alpha.

R. A. Fisher, Statistical Methods for Research Workers (1932), section 21.1, has the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import find_end, raw_cdf, raw_tail
from trialwise.stats.result_types import Interval
from trialwise.stats.sequential.stopped_rates import find_crossing, list_log_paths, sum_paths
from trialwise.stats.sequential.walks import Rule, stopping_probabilities
from trialwise.validation import require_count, require_open_rate

if TYPE_CHECKING:
    from trialwise.stats.regression_cutoffs import RegressionCutoff

#: How much wider a bound may be than the exact extreme: a twentieth of a point.
_SLACK = 5e-4
_FIRST_CELLS = 16
#: How finely the highest rate of a test is found; the end on the safe side counts.
_RESOLUTION = 5e-5
METHOD = "exact, Fisher's product of two tails"
#: The largest number below 0.
JUST_BELOW = math.nextafter(0.0, -1.0)

_Tail: TypeAlias = Callable[[float], float]


@lru_cache(maxsize=256)
def bound_difference(
    design: RegressionCutoff, passed: int, trials: int, *, fails: bool, curtailed: bool
) -> Interval:
    """Bound the rate of a test minus that of its baseline, on the side that its verdict is about.

    Each bound is exceeded with a probability of at most alpha. After a FAIL the lower end is -1
    and the upper end is below 0; after a PASS the upper end is 1.

    Args:
        design: The rule, whose false alarms are at most its alpha.
        passed: Successes where the rule decided.
        trials: Trials where it decided.
        fails: Whether the verdict is FAIL.
        curtailed: Whether a rule without boundaries stops as soon as its verdict is certain.

    Examples
    --------
    >>> from trialwise.stats import regression_cutoff
    >>> design = regression_cutoff(95, 100, 100)
    >>> low, high = bound_difference(design, 80, 100, fails=True, curtailed=False)
    >>> low, round(high, 3)
    (-1.0, -0.055)
    """
    k, nb = design.baseline_successes, design.baseline_trials
    test = _find_tail(design, trials, trials - passed, fails=fails, curtailed=curtailed)
    product = _find_product(design.alpha)
    if fails:
        high = _maximise_difference(lambda rate: raw_tail(k, nb, rate), test, product)
        ends = -1.0, min(high, JUST_BELOW)
    else:
        # The same in failures, whose rates are as far apart.
        low = -_maximise_difference(
            lambda rate: raw_cdf(k, nb, 1 - rate), lambda rate: test(1 - rate), product
        )
        ends = low, 1.0
    return Interval(*ends, confidence=complement(design.alpha), method=METHOD)


def _find_tail(
    design: RegressionCutoff, trials: int, failures: int, *, fails: bool, curtailed: bool
) -> _Tail:
    """P(an end at least as bad), or at least as good after a PASS, as a function of the rate."""
    n, cutoff = design.trials, design.cutoff
    assert cutoff is not None
    if design.accept:
        rule = Rule.of(design)
    elif curtailed:
        rule = Rule([m - cutoff for m in range(n + 1)], [n - cutoff + 1] * (n + 1))
    elif fails:
        return lambda rate: raw_cdf(trials - failures, trials, rate)
    else:
        return lambda rate: raw_tail(trials - failures, trials, rate)
    # Earlier decisions are the stronger ones, and more failures at the same time a stronger FAIL.
    rate = (trials - failures + 0.5) / (trials + 1)
    stops = stopping_probabilities(rule.until(trials), rate)
    sign, part = (1, stops.fails) if fails else (-1, stops.passes)
    beyond = [one for one in part if one[0] < trials or sign * one[1] >= sign * failures]
    paths = list_log_paths(beyond, rate)
    return lambda p: sum_paths(paths, p)


def _find_product(alpha: float) -> float:
    """Return the value that the product of two uniform variables undercuts with chance alpha."""
    return find_end(alpha, 0.0, lambda product: _combine(product) > alpha)


def _maximise_difference(baseline: _Tail, test: _Tail, product: float) -> float:
    """Return the largest y − x with baseline(x) · test(y) > product, from above.

    The baseline's tail rises with x and the test's falls with y, so that the pairs with x between
    two rates are bounded by the largest y of the higher one and by the lower one.
    """

    def bound(left: float, right: float) -> float:
        most = baseline(right)
        if most < product:
            return -math.inf
        return find_crossing(lambda y: -test(y), -product / most, _RESOLUTION)[1] - left

    return _cover(0.0, 1.0, bound, lambda _, left, right: right - left <= _SLACK)


def _cover(
    low: float,
    high: float,
    bound: Callable[[float, float], float],
    is_fine: Callable[[float, float, float], bool],
) -> float:
    """Return the largest value between two rates, from above.

    Args:
        low: The lower rate.
        high: The higher rate.
        bound: What no value between two rates exceeds.
        is_fine: Whether a bound, between two rates, is close enough.
    """
    width = (high - low) / _FIRST_CELLS
    cells = [(low + i * width, low + (i + 1) * width) for i in range(_FIRST_CELLS)]
    heap = [(-bound(*cell), *cell) for cell in cells]
    heapify(heap)
    while True:
        worst, left, right = heappop(heap)
        if is_fine(-worst, left, right):
            return -worst
        middle = (left + right) / 2
        for cell in ((left, middle), (middle, right)):
            heappush(heap, (-bound(*cell), *cell))


# --- Two arms that were not tried on the same inputs ----------------------------------------------
#
# The difference is B's rate minus A's. A test of "the difference is at most t" takes two exact tail
# probabilities, that of so few successes of A and that of this many of B. Each is at least as large
# as a uniform variable and the two are independent, so that Fisher's product of them is a valid
# test of a pair of rates. Its p-value is the largest one over all pairs of rates with this
# difference, found by covering them with intervals of which each counts with the worst it can hold.

#: How finely the rates of A are covered.
_FINEST = 2e-4
#: How much larger a p-value may be than the largest one, as a share.
_MARGIN = 0.01


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
    product = _find_product(require_open_rate("alpha", alpha) / 2)
    a, b = (passed_a, trials_a), (passed_b, trials_b)
    low, high = (
        _maximise_difference(partial(raw_tail, *one), partial(raw_cdf, *other), product)
        for one, other in ((b, a), (a, b))
    )
    return Interval(max(-low, -1.0), min(high, 1.0), confidence=complement(alpha), method=METHOD)


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

    def is_fine(found: float, left: float, right: float) -> bool:
        middle = (left + right) / 2
        return right - left <= _FINEST or found <= (1 + _MARGIN) * bound(middle, middle)

    return _combine(_cover(low, high, bound, is_fine))


def _combine(product: float) -> float:
    """Return the probability that a product of two uniform variables is not larger."""
    return min(1.0, product * (1 - math.log(product))) if product > 0 else 0.0


def _check(passed_a: int, trials_a: int, passed_b: int, trials_b: int) -> None:
    for name, passed, trials in (("a", passed_a, trials_a), ("b", passed_b, trials_b)):
        require_count(f"trials_{name}", trials, minimum=1)
        if require_count(f"passed_{name}", passed) > trials:
            raise InvalidArgument(f"passed_{name}", passed, f"be at most trials_{name} ({trials})")
