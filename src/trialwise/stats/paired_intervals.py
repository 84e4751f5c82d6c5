"""Exact intervals of a paired difference that agree with what a rule shows.

The difference is the rate of discordant pairs times (2 · split − 1), where the split is the share
of discordant pairs that B wins. The sign of the difference is that of split − 1/2.

A sequential rule has an exact limit for the split, which inverts its ordering of outcomes, and one
for the rate of discordant pairs, which are independent of who wins them. Nine tenths of an end's
error are spent on the first and one tenth on the second. Whether 0 is left out follows from the
rule alone. A fixed size has the exact unconditional limit of `paired_margins`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trialwise.decimals import complement
from trialwise.stats.binomial import beta_quantile
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_margins import find_low_end
from trialwise.stats.paired_questions import PairedOutcome
from trialwise.stats.result_types import Interval
from trialwise.stats.sequential.characteristic import stopping_probabilities
from trialwise.stats.sequential.stopped_rates import (
    find_crossing,
    list_log_paths,
    rank_open_end,
    sum_paths,
)

if TYPE_CHECKING:
    from trialwise.stats.split_rules import SplitRule

#: The share of each end's error that is spent on the rate of discordant pairs.
_ON_DISCORDANCE = 0.1
#: What has a p-value of up to so many times its level was nearly shown.
_NEARLY = 1.2
#: The lower end of an interval that holds every difference above 0, but not 0 itself.
JUST_ABOVE_0 = sys.float_info.min


def find_difference_interval(
    rule: SplitRule, counts: PairCounts, outcome: PairedOutcome
) -> Interval:
    """Return the interval of the difference at a stop, each end with error alpha/2."""
    low = _find_low(rule, counts, mirrored=False)
    high = -_find_low(rule, counts, mirrored=True)
    if outcome == "better":
        low, high = max(low, JUST_ABOVE_0), max(high, JUST_ABOVE_0)
    elif outcome == "worse":
        low, high = min(low, -JUST_ABOVE_0), min(high, -JUST_ABOVE_0)
    else:
        low, high = min(low, 0.0), max(high, 0.0)
    return Interval(low, high, confidence=complement(rule.alpha), method="exact, paired")


def _find_low(rule: SplitRule, counts: PairCounts, *, mirrored: bool) -> float:
    n, pairs = counts.discordant, counts.pairs
    if not pairs:
        return -1.0
    if rule.boundaries is None:
        wins, losses = counts.only_b, counts.only_a
        first, second = (losses, wins) if mirrored else (wins, losses)
        return find_low_end(first, second, pairs, rule.alpha / 2)
    error = rule.alpha / 2
    spent = _ON_DISCORDANCE * error
    if n == 0:
        return -_most_discordant(0, pairs, spent)
    split = _find_split(rule, counts, error - spent, mirrored=mirrored)
    if split > 0.5:
        return (2 * split - 1) * beta_quantile(spent, n, pairs - n + 1)
    # For arms that are nearly equal the error is spent on "better" alone. So what was nearly shown
    # to be better says nothing of such arms, however rarely they are discordant.
    p_value = rule.find_p_values(counts)[mirrored]
    most = 1.0 if p_value <= _NEARLY * error else _most_discordant(n, pairs, spent)
    return (2 * split - 1) * most


def _most_discordant(n: int, pairs: int, error: float) -> float:
    return 1.0 if n == pairs else beta_quantile(1 - error, n + 1, pairs - n)


def _find_split(rule: SplitRule, counts: PairCounts, error: float, *, mirrored: bool) -> float:
    """Return the lower limit of the share that B wins, or, if mirrored, that A wins."""
    n, losses = counts.discordant, counts.only_a
    design = rule.boundaries
    assert design is not None
    # A comparison that was cut short is treated as if it had been meant to end here.
    is_end = counts.pairs == rule.max_pairs or rule.decide(counts) is None
    gives_up = not is_end and design.accept[n] < losses < design.reject[n]
    last = design.cap if gives_up else n
    stops = stopping_probabilities(
        design.accept[: last + 1], design.reject[: last + 1], 0.5, design.futile[: last + 1]
    )
    if losses <= design.accept[n]:
        beyond = [stop for stop in stops.passes if stop[0] < n or stop[1] < losses]
    elif losses >= design.reject[n]:
        beyond = [stop for stop in stops.fails if stop[0] < n or stop[1] > losses]
    else:
        rank = rank_open_end(design, n, losses)
        better = (s for s in stops.inconclusive if rank_open_end(design, s[0], s[1]) < rank)
        beyond = [*stops.passes, *better]
    own = [stop for part in stops for stop in part if stop[:2] == (n, losses)]
    past, itself = list_log_paths(beyond, 0.5), list_log_paths(own, 0.5)
    is_worse = losses >= design.reject[n]

    def good(split: float) -> float:
        beyond_it = sum_paths(past, split)
        return 1 - beyond_it if is_worse else beyond_it + sum_paths(itself, split)

    def bad(split: float) -> float:
        beyond_it = sum_paths(past, split)
        return beyond_it + sum_paths(itself, split) if is_worse else 1 - beyond_it

    if mirrored:
        return 1 - find_crossing(lambda split: -bad(split), -error)[1]
    return find_crossing(good, error)[0]
