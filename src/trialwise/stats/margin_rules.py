"""Rules with a margin at a fixed number of pairs: exact unconditional tests.

The interval of the difference (`paired_margins`) has ends that are each wrong in at most alpha/2 of
comparisons, for every pair of rates and every correlation of the arms. What is shown follows from
the interval: PASS and FAIL are exact tests at the margin. "Not equivalent" can be shown in two
ways, which share the error of alpha/2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trialwise.decimals import complement
from trialwise.stats import paired_margins
from trialwise.stats.binomial import likely_counts
from trialwise.stats.paired import (
    OUTCOMES,
    PairCounts,
    PairedCharacteristic,
    PairedOutcome,
    Statement,
)
from trialwise.stats.paired_rules import PairedRule
from trialwise.stats.result_types import Interval
from trialwise.validation import require_rate

#: Counts rarer than this, relative to the likeliest, are left out of the chances of a rule.
_NEGLIGIBLE = 1e-15
#: What is kept of a rule besides its tables.
_KEPT = ("question", "alpha", "margin", "max_pairs", "fail_part")


@dataclass(frozen=True, kw_only=True)
class MarginRule(PairedRule):
    """A rule for a question with a margin that decides once, after the planned pairs."""

    max_pairs: int

    @property
    def is_sequential(self) -> bool:
        """Whether the rule may stop before the last pair."""
        return False

    def decide(self, counts: PairCounts) -> PairedOutcome | None:
        """Return what all pairs show, or None before the last one."""
        self.check_size(counts)
        if counts.pairs < self.max_pairs:
            return None
        return self._decide(counts.only_b, counts.only_a)

    def can_show_equivalence(self) -> bool:
        """Return whether arms that never differ are shown to be equivalent; no FAIL is needed."""
        return self._shows(0, 0, (False, -self.margin))

    def find_p_values(self, counts: PairCounts) -> tuple[float, float]:
        """Return the one-sided p-values: of what PASS and of what FAIL refutes."""
        passes, fails = (
            [self._find_chance(counts.only_b, counts.only_a, one) for one in part]
            for part in self.statements
        )
        return max(passes), min(fails)

    def find_interval(self, counts: PairCounts, outcome: PairedOutcome) -> Interval:
        """Return an exact interval of the difference that agrees with the outcome."""
        pairs, wins, losses = counts.pairs, counts.only_b, counts.only_a
        confidence = complement(self.alpha)
        if not pairs:
            return Interval(-1.0, 1.0, confidence=confidence, method="exact, paired")
        # The upper end is minus the lower end of the mirrored difference.
        ends = [
            paired_margins.find_low_end(first, second, pairs, self.alpha / 2)
            for first, second in ((wins, losses), (losses, wins))
        ]
        if outcome != "not shown" or pairs == self.max_pairs:
            # Rounding outward may have moved an end across a limit that was refuted.
            for is_mirrored, limit in {one for part in self.statements for one in part}:
                shown = self._shows(wins, losses, (is_mirrored, limit))
                end = ends[is_mirrored]
                ends[is_mirrored] = max(end, math.nextafter(limit, 2)) if shown else min(end, limit)
        return Interval(ends[0], -ends[1], confidence=confidence, method="exact, paired")

    def characteristic(self, only_a: float, only_b: float) -> PairedCharacteristic:
        """Return the exact chances of each outcome."""
        discordant = require_rate("only_a + only_b", only_a + only_b)
        size, chances = self.max_pairs, dict.fromkeys(self._list_outcomes(), 0.0)
        split = only_b / discordant if discordant else 0.5
        first, weights = likely_counts(size, discordant, negligible=_NEGLIGIBLE)
        for n, weight in enumerate(weights, first):
            fewest, shares = likely_counts(n, split, negligible=_NEGLIGIBLE)
            for wins, share in enumerate(shares, fewest):
                chances[self._decide(wins, n - wins)] += weight * share
        return self.describe(chances, float(size), size * discordant)

    def to_plain(self) -> dict[str, Any]:
        """Return the rule as plain values, fit for JSON, with the tables that decide."""
        regions = [[limit, list(self._find_region(limit))] for limit in self._list_limits()]
        return {
            "kind": "margin",
            **{name: getattr(self, name) for name in _KEPT},
            "regions": regions,
        }

    @staticmethod
    def from_plain(values: Mapping[str, Any]) -> MarginRule:
        """Return the rule that `to_plain` wrote."""
        # The first edition of the rule had no parts.
        rule = MarginRule(**{name: values[name] for name in _KEPT if name in values})
        # The tables that decided once decide again, on every machine.
        rule._regions.update((limit, tuple(region)) for limit, region in values["regions"])
        return rule

    def _list_outcomes(self) -> tuple[PairedOutcome, ...]:
        passing, failing = OUTCOMES[self.question]
        return (passing[0], failing[-1], "not shown")

    def _decide(self, wins: int, losses: int) -> PairedOutcome:
        passing, failing = self.statements
        passes, fails, neither = self._list_outcomes()
        if all(self._shows(wins, losses, one) for one in passing):
            return passes
        return fails if any(self._shows(wins, losses, one) for one in failing) else neither

    def _shows(self, wins: int, losses: int, statement: Statement) -> bool:
        is_mirrored, limit = statement
        first, second = (losses, wins) if is_mirrored else (wins, losses)
        return second <= self._find_region(limit)[first]

    @cached_property
    def _regions(self) -> dict[float, tuple[int, ...]]:
        """The tables that show a difference above a limit, as far as they are known."""
        return {}

    def _list_limits(self) -> list[float]:
        """Return all limits, those of a difference below them mirrored."""
        return sorted({limit for part in self.statements for _, limit in part})

    def _find_region(self, limit: float) -> tuple[int, ...]:
        found = self._regions.get(limit)
        if found is None:
            shares = self.fail_part < 1 and limit == self.margin
            find = paired_margins.find_outer_region if shares else paired_margins.find_region
            found = self._regions[limit] = find(self.max_pairs, limit, self.alpha / 2)
        return found

    def _find_chance(self, wins: int, losses: int, statement: Statement) -> float:
        """Return the p-value of "the difference is at most the limit"."""
        level, (is_mirrored, limit) = self.alpha / 2, statement
        first, second = (losses, wins) if is_mirrored else (wins, losses)
        tables = paired_margins.order_tables(first, second, self.max_pairs, level)
        found = paired_margins.bound_chance(tables, self.max_pairs, limit, level)
        if limit == self.margin:
            found /= self.fail_part
        shown = self._shows(wins, losses, statement)
        return min(found, level) if shown else max(found, math.nextafter(level, 1))
