"""Rules without a margin: is a discordant pair more likely to be a win of B or of A?

Pairs that both arms pass, or neither, say nothing about the sign of the difference. If the arms are
equally good, B wins a discordant pair with probability 1/2, however often pairs are discordant. So
every error rate here holds for each rate of discordance apart.

A sequential rule looks after each discordant pair. A limit on all pairs ends it: what is known then
is compared with what the rule would have shown with as many discordant pairs, which is exact since
the number of discordant pairs says nothing about who wins them. A fixed size is the same without
any earlier look: McNemar's exact test.

Outcomes are ordered by stage: an early "better" comes before a later one, an open end lies between
"better" and "worse". A one-sided p-value is the probability, for equal arms, of an outcome that
comes no later in this order.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice, takewhile
from typing import Any, Literal

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import beta_quantile, binomial_pmf, binomial_tail, find_first
from trialwise.stats.margin_rules import find_low_end
from trialwise.stats.paired import PairCounts, PairedCharacteristic, PairedOutcome, half_tail
from trialwise.stats.paired_designs import plan_paired_design
from trialwise.stats.paired_rules import Expected, PairedRule
from trialwise.stats.result_types import Decision, Interval, Undefined
from trialwise.stats.sequential import shipped_designs as shipped
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.stats.sequential.stopped_rates import (
    find_crossing,
    find_tails,
    part_stops,
    rank_open_end,
)
from trialwise.stats.sequential.walks import decision_at, keep_open, stopping_probabilities, walk
from trialwise.validation import require_rate

#: The share of each end's error that is spent on the rate of discordant pairs.
_ON_DISCORDANCE = 0.1
#: What has a p-value of up to this many times its level was nearly shown.
_NEARLY = 1.2
#: The lower end of an interval that holds every difference above 0, but not 0 itself.
JUST_ABOVE_0 = sys.float_info.min


@dataclass(frozen=True, kw_only=True)
class SplitRule(PairedRule):
    """A rule for "different" or "better" without a margin."""

    boundaries: SequentialDesign | None = None
    """In discordant pairs, where a success is a win of B; None for a fixed number of pairs."""

    @property
    def is_sequential(self) -> bool:
        """Whether the rule may stop before the last pair."""
        return self.boundaries is not None

    @property
    def certificate(self) -> float | None:
        """Expected discordant pairs over the proven minimum; None for a fixed size."""
        if self.boundaries is None or isinstance(self.boundaries.certificate, Undefined):
            return None
        return self.boundaries.certificate

    def decide(self, counts: PairCounts) -> PairedOutcome | None:
        """Return what the pairs so far show, or None to go on."""
        losses, n = counts.only_a, counts.discordant
        self.check_size(counts)
        design = self.boundaries
        if design is not None:
            if n > design.cap:
                raise InvalidArgument("counts", counts, f"have at most {design.cap} discordant")
            match decision_at(design, n, losses):
                case Decision.PASS:
                    return "better"
                case Decision.FAIL:
                    is_worse = self.question == "different" or self._shows_worse(n, losses)
                    return "worse" if is_worse else "not shown"
                case Decision.INCONCLUSIVE:
                    return "not shown"
        if counts.pairs != self.max_pairs:
            return None
        most, fewest = self._end_limits(n)
        if losses <= most:
            return "better"
        return "worse" if losses >= fewest else "not shown"

    def find_p_values(self, counts: PairCounts) -> tuple[float, float]:
        """Return the one-sided p-values at a stop: that B is better, and that it is worse."""
        wins, losses, n = counts.only_b, counts.only_a, counts.discordant
        if self.boundaries is None:
            return half_tail(wins, n), half_tail(losses, n)
        return _find_tails(self.boundaries, n, losses, is_end=counts.pairs == self.max_pairs)

    def find_interval(self, counts: PairCounts, outcome: PairedOutcome) -> Interval:
        """Return an exact interval of the difference that agrees with the outcome."""
        low, high = (self._find_low(counts, mirrored=mirrored) for mirrored in (False, True))
        high = -high
        if outcome == "better":
            low, high = max(low, JUST_ABOVE_0), max(high, JUST_ABOVE_0)
        elif outcome == "worse":
            low, high = min(low, -JUST_ABOVE_0), min(high, -JUST_ABOVE_0)
        else:
            low, high = min(low, 0.0), max(high, 0.0)
        return Interval(low, high, confidence=complement(self.alpha), method="exact, paired")

    def _find_low(self, counts: PairCounts, *, mirrored: bool) -> float:
        n, pairs, error = counts.discordant, counts.pairs, self.alpha / 2
        if not pairs:
            return -1.0
        if self.boundaries is None:
            wins, losses = counts.only_b, counts.only_a
            first, second = (losses, wins) if mirrored else (wins, losses)
            return find_low_end(first, second, pairs, error)
        spent = _ON_DISCORDANCE * error
        most = 1.0 if n == pairs else beta_quantile(1 - spent, n + 1, pairs - n)
        if n == 0:
            return -most
        split = self._find_split(self.boundaries, counts, error - spent, mirrored=mirrored)
        if split > 0.5:
            return (2 * split - 1) * beta_quantile(spent, n, pairs - n + 1)
        # For arms that are nearly equal the error is spent on "better" alone. So what was nearly
        # shown to be better says nothing of such arms, however rarely they are discordant.
        is_nearly_shown = self.find_p_values(counts)[mirrored] <= _NEARLY * error
        return (2 * split - 1) * (1.0 if is_nearly_shown else most)

    def _find_split(
        self, design: SequentialDesign, counts: PairCounts, error: float, *, mirrored: bool
    ) -> float:
        """Return the lower limit of the share that B wins, or, if mirrored, that A wins."""
        n, losses = counts.discordant, counts.only_a
        # A comparison that was cut short is treated as if it had been meant to end here.
        is_end = counts.pairs == self.max_pairs or self.decide(counts) is None
        gives_up = not is_end and design.accept[n] < losses < design.reject[n]
        tails = find_tails(design, n, losses, design.cap if gives_up else n, 0.5)
        if mirrored:
            return 1 - find_crossing(lambda split: -tails(split).bad, -error)[1]
        return find_crossing(lambda split: tails(split).good, error)[0]

    def characteristic(self, only_a: float, only_b: float) -> PairedCharacteristic:
        """Return the exact chances of each outcome and the expected pairs."""
        discordant = require_rate("only_a + only_b", only_a + only_b)
        split = only_b / discordant if discordant else 0.5
        if self.boundaries is None:
            return self._fixed_characteristic(discordant, split)
        if not discordant:
            most = math.inf if self.max_pairs is None else float(self.max_pairs)
            return self._describe(0.0, 0.0, most, 0.0)
        design, limit = self.boundaries, self.max_pairs
        stops = stopping_probabilities(design, split)
        # The chance that the n-th discordant pair comes within the limit, and how many come on
        # average up to it or the limit: E[min(n, K)] is the sum of P(K ≥ k) for k = 1 … n.
        in_time = [
            1.0 if limit is None else binomial_tail(n, limit, discordant)
            for n in range(design.cap + 1)
        ]
        awaited = [0.0, *accumulate(in_time[1:])]
        better = math.fsum(w * in_time[n] for n, _, w in stops.passes)
        worse = math.fsum(
            w * in_time[n]
            for n, f, w in stops.fails
            if self.question == "different" or self._shows_worse(n, f)
        )
        if limit is not None:
            for n, (low, band) in enumerate(_list_live_states(design, split)[: limit + 1]):
                weight = binomial_pmf(n, limit, discordant)
                most, fewest = self._end_limits(n)
                better += weight * math.fsum(band[: max(0, most + 1 - low)])
                worse += weight * math.fsum(band[max(0, fewest - low) :])
        mean = math.fsum(w * awaited[n] for stop in stops for n, _, w in stop)
        # Pairs by Wald's identity: the discordant ones over their share.
        return self._describe(better, worse, mean / discordant, mean)

    def to_plain(self) -> dict[str, Any]:
        """Return the rule as plain values, fit for JSON, boundaries included."""
        return {
            "kind": "split",
            "question": self.question,
            "alpha": self.alpha,
            "max_pairs": self.max_pairs,
            "boundaries": self.boundaries and self.boundaries.to_dict(),
        }

    @staticmethod
    def from_plain(values: Mapping[str, Any]) -> SplitRule:
        """Return the rule that `to_plain` wrote."""
        kept = values["boundaries"]
        return SplitRule(
            question=values["question"],
            alpha=values["alpha"],
            max_pairs=values["max_pairs"],
            boundaries=None if kept is None else SequentialDesign.from_dict(kept),
        )

    def _end_limits(self, n: int) -> tuple[int, int]:
        """Return the most losses that are "better", and the fewest that are "worse", at the end."""
        if self.boundaries is None:
            most = _find_most_losses(n, self.alpha)
            return most, n - most
        limits = _list_end_limits(self.boundaries, self.alpha)
        return limits[n] if n < len(limits) else (-1, n + 1)

    def _shows_worse(self, n: int, losses: int) -> bool:
        """Whether stopping because B is not better also shows that it is worse."""
        assert self.boundaries is not None
        return _find_tails(self.boundaries, n, losses, is_end=False)[1] <= self.alpha / 2

    def _fixed_characteristic(self, discordant: float, split: float) -> PairedCharacteristic:
        assert self.max_pairs is not None
        size = self.max_pairs
        better = worse = 0.0
        for n in range(size + 1):
            weight = binomial_pmf(n, size, discordant)
            most = _find_most_losses(n, self.alpha)
            if weight and most >= 0:
                better += weight * binomial_tail(n - most, n, split)
                worse += weight * binomial_tail(n - most, n, 1 - split)
        return self._describe(better, worse, float(size), size * discordant)

    def _describe(
        self, better: float, worse: float, pairs: float, discordant: float
    ) -> PairedCharacteristic:
        chances: dict[PairedOutcome, float] = {"better": better, "worse": worse}
        return self.describe({**chances, "not shown": 1 - better - worse}, pairs, discordant)


def plan_split_rule(
    question: Literal["different", "better"],
    alpha: float,
    expected: Expected,
    max_pairs: int | None,
    cache: shipped.DesignCache | None,
) -> SplitRule:
    """Plan a rule without a margin that may stop early; see `plan_paired_rule`."""
    (power, rates, both), design = expected, None
    if rates is None and math.isclose(power, shipped.PAIRED_POWER):
        design = shipped.find_paired_design(question, alpha)
    if rates is None:
        # Rates whose discordant pairs are split as the rule that ships expects it.
        rates, both = ((1 - shipped.PAIRED_SPLIT), shipped.PAIRED_SPLIT), 0.0
    design = design or plan_paired_design(
        *sorted(rates), question=question, alpha=alpha, power=power, both=both, cache=cache
    )
    return SplitRule(question=question, alpha=alpha, max_pairs=max_pairs, boundaries=design)


@lru_cache(maxsize=4096)
def _find_most_losses(n: int, alpha: float) -> int:
    """Return the most losses among n discordant pairs with which B is shown to be better, or −1."""
    return n - find_first(-1, n + 1, lambda wins: half_tail(wins, n) <= alpha / 2)


@lru_cache(maxsize=256)
def _find_tails(
    design: SequentialDesign, n: int, losses: int, *, is_end: bool
) -> tuple[float, float]:
    """Return how likely equal arms do at least as well for B, and at least as badly.

    Args:
        design: The boundaries in discordant pairs.
        n: The discordant pairs at the stop.
        losses: Those that A won.
        is_end: Whether the limit on all pairs ended the comparison.
    """
    if n == 0:
        return 1.0, 1.0
    # Once a design gives up, runs on one side of these states never get to the other. So what comes
    # after the stop does not depend on the limit on all pairs, and the whole design may be used.
    gives_up = not is_end and design.accept[n] < losses < design.reject[n]
    stops, beyond, own = part_stops(design, n, losses, design.cap if gives_up else n, 0.5)
    near = math.fsum(w for *_, w in (*beyond, *own))
    if design.accept[n] < losses < design.reject[n]:
        rank = rank_open_end(design, n, losses)
        below = (s for s in stops.inconclusive if rank_open_end(design, s[0], s[1]) >= rank)
        return near, math.fsum(w for *_, w in (*stops.fails, *below))
    # Rounding must not make the rest of a probability negative.
    far = min(1.0, max(0.0, 1 - (near - math.fsum(w for *_, w in own))))
    return (near, far) if losses <= design.accept[n] else (far, near)


def _list_live_states(design: SequentialDesign, split: float) -> list[tuple[int, list[float]]]:
    """Return, after n = 0, 1, … discordant pairs below the cap, the states that go on.

    Each entry has the fewest losses and the chances from there on.
    """
    rows = (row for row in walk(design, split) if row.n < design.cap)
    return [(0, [1.0]), *map(keep_open, rows)]


@lru_cache(maxsize=32)
def _list_end_limits(design: SequentialDesign, alpha: float) -> tuple[tuple[int, int], ...]:
    """Return, for n = 0 … cap − 1, the most losses that are "better" where all pairs are made.

    Each entry also has the fewest losses that are "worse". They spend what the boundaries up to n
    discordant pairs leave of alpha/2 on each side.
    """
    stops = stopping_probabilities(design, 0.5)
    spent = [[0.0] * (design.cap + 1) for _ in range(2)]
    for part, total in zip((stops.passes, stops.fails), spent, strict=True):
        for n, _, w in part:
            total[n] += w
    limits, better, worse = [(-1, 1)], 0.0, 0.0
    for n, (low, band) in enumerate(_list_live_states(design, 0.5)):
        if n == 0:
            continue
        better, worse = better + spent[0][n], worse + spent[1][n]
        ranks = [rank_open_end(design, n, low + j)[0] for j in range(len(band))]
        is_parted = bool(design.futile) and design.futile[n - 1][0] <= design.futile[n - 1][1]
        below = ranks.count(0)  # states that may still PASS come first
        most = low - 1 + _count_fitting(better, band[:below], alpha / 2)
        above = band[below:] if is_parted else band
        fewest = low + len(band) - _count_fitting(worse, above[::-1], alpha / 2)
        limits.append((most, fewest))
    return tuple(limits)


def _count_fitting(spent: float, chances: list[float], level: float) -> int:
    """Return how many states, from the first, an error has room for beside what it has spent."""
    totals = islice(accumulate(chances, initial=spent), 1, None)
    return sum(1 for _ in takewhile(lambda total: total <= level, totals))
