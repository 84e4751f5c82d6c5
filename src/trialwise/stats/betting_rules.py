"""Rules with a margin that may stop after every pair.

A pair scores 1 where only B passes, −1 where only A does and 0 otherwise, so its mean is the
difference. Whoever bets a share of a capital of 1, pair by pair, that the score is above δ, has
Π(1 + λ(score − δ)) after some pairs. If the difference is at most δ, no bet gains on average,
whatever the rates and their correlation. So the capital ever reaches 2/alpha in at most alpha/2 of
comparisons (Ville's inequality). A capital of 2/alpha therefore shows a difference above δ, at
any time. The bet λ that grows fastest for the arms that are expected makes the capital the
likelihood ratio of these arms to the least favourable ones without the difference: Wald's test,
made safe for all others. Part of the capital is bet more boldly and part more carefully, for arms
that are discordant more or less often than expected.

All differences that a capital refutes at the stop lie outside of the interval. What is shown
follows from the interval, and a p-value is one over the capital. The errors are bounds: the true
ones are a little smaller, since the capital jumps over 2/alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, TypeAlias

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.stats import paired
from trialwise.stats.binomial import find_end, find_first, upper_z
from trialwise.stats.paired_designs import discordant_rates
from trialwise.stats.paired_rules import Expected, PairedRule
from trialwise.stats.result_types import Interval
from trialwise.validation import require_rate

Bets: TypeAlias = tuple[tuple[float, float], ...]
"""Shares of the capital that are bet on every pair, with the part of the capital for each."""

States: TypeAlias = dict[int, tuple[int, list[float]]]
"""For each number of losses, the fewest wins and the chances of that many and more."""

#: How boldly the parts of the capital are bet, as multiples of the best bet.
_BOLDNESS = ((1.0, 0.8), (2.0, 0.12), (0.5, 0.08))
#: The most that may be lost in one pair, as a part of the capital.
_LARGEST_LOSS = 0.95
#: The rates that are expected where none are given: both arms, or the control.
_USUAL_RATE, _USUAL_CONTROL, _USUAL_GAIN = 0.85, 0.80, 0.10
#: The most pairs, as a multiple of what a fixed size would take (normal approximation).
_CAP_FACTOR = 1.6
#: A rule looks at most so often: with many pairs, a look after each saves next to nothing.
_MOST_LOOKS = 150
#: Probabilities of single tables below this are left out of the chances of a rule.
_NEGLIGIBLE = 1e-13


@dataclass(frozen=True, kw_only=True)
class BettingRule(PairedRule):
    """A rule with a margin that looks after every pair."""

    above: Bets
    """Bets on a difference above some value."""
    below: Bets
    """Bets on a difference below some value."""
    give_up: float
    """A best bet that has lost all but this part of its capital ends the comparison; 0: never."""

    batch: int = 1
    """Decisions fall at multiples of this many pairs, and after the last one."""

    def decide(self, counts: paired.PairCounts) -> paired.PairedOutcome | None:
        """Return what the pairs so far show, or None to go on."""
        self.check_size(counts)
        if counts.pairs % self.batch and counts.pairs != self.max_pairs:
            return None
        return self._decide(counts.pairs, counts.only_b, counts.only_a)

    def find_p_values(self, counts: paired.PairCounts) -> tuple[float, float]:
        """Return the one-sided p-values: of what PASS and of what FAIL refutes."""
        passes, fails = self._find_capitals(counts.pairs, counts.only_b, counts.only_a)
        return min(1.0, 1 / max(passes, 1e-300)), min(1.0, 1 / max(fails, 1e-300))

    def find_interval(self, counts: paired.PairCounts, outcome: paired.PairedOutcome) -> Interval:
        """Return the differences that the capital does not refute."""
        pairs, wins, losses = counts.pairs, counts.only_b, counts.only_a
        wanted = 2 / self.alpha

        def find_low(bets: Bets, won: int, lost: int) -> float:
            if not pairs:
                return 1.0
            return -find_end(
                1.0, -1.0, lambda delta: find_capital(bets, pairs, won, lost, delta) < wanted
            )

        low = -find_low(self.above, wins, losses)
        high = find_low(self.below, losses, wins)
        if self.fail_part < 1 and outcome != "not equivalent":
            # One of two ways to a FAIL has half of its error, and the interval all of it.
            low, high = min(low, self.margin), max(high, -self.margin)
        return Interval(low, high, confidence=complement(self.alpha), method="exact, by betting")

    def characteristic(self, only_a: float, only_b: float) -> paired.PairedCharacteristic:
        """Return the exact chances of each outcome and the expected pairs."""
        require_rate("only_a + only_b", only_a + only_b)
        chances: dict[paired.PairedOutcome, float] = {"not shown": 0.0}
        mean = 0.0
        for pairs, outcome, chance in self._follow_states(only_a, only_b):
            chances[outcome] = chances.get(outcome, 0.0) + chance
            mean += pairs * chance
        return self.describe(chances, mean, mean * (only_a + only_b))

    def to_plain(self) -> dict[str, Any]:
        """Return the rule as plain values, fit for JSON, bets included."""
        return {
            "kind": "betting",
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "above": [list(bet) for bet in self.above],
            "below": [list(bet) for bet in self.below],
        }

    @staticmethod
    def from_plain(values: Mapping[str, Any]) -> BettingRule:
        """Return the rule that `to_plain` wrote."""
        kept = {name: value for name, value in values.items() if name != "kind"}
        for name in ("above", "below"):
            kept[name] = tuple((share, part) for share, part in kept[name])
        return BettingRule(**kept)

    def _decide(self, pairs: int, wins: int, losses: int) -> paired.PairedOutcome | None:
        passes, fails = self._find_capitals(pairs, wins, losses)
        wanted = 2 / self.alpha
        if passes >= wanted:
            return paired.OUTCOMES[self.question][0][0]
        if fails >= wanted:
            return paired.OUTCOMES[self.question][1][-1]
        if pairs == self.max_pairs:
            return "not shown"
        if self.give_up:
            best = find_capital(self.above[:1], pairs, wins, losses, self.margin)
            if best <= self.give_up * self.above[0][1]:
                return "not shown"
        return None

    def _find_capitals(self, pairs: int, wins: int, losses: int) -> tuple[float, float]:
        """Return the capital that speaks for a PASS, and the one that speaks for a FAIL."""

        def find(statement: paired.Statement) -> float:
            is_mirrored, limit = statement
            if is_mirrored:
                return find_capital(self.below, pairs, losses, wins, limit)
            return find_capital(self.above, pairs, wins, losses, limit)

        passing, failing = self.statements
        return min(map(find, passing)), self.fail_part * max(map(find, failing))

    def _follow_states(
        self, only_a: float, only_b: float
    ) -> Iterator[tuple[int, paired.PairedOutcome, float]]:
        """Yield where a comparison stops: pairs, outcome and probability."""
        assert self.max_pairs is not None
        agree = max(0.0, 1 - only_a - only_b)
        state: States = {0: (0, [1.0])}
        for pairs in range(1, self.max_pairs + 1):
            state = _add_pair(state, only_a, only_b, agree)
            if pairs % self.batch and pairs != self.max_pairs:
                continue
            for losses, (low, row) in state.items():
                for wins, outcome in self._list_stops(pairs, losses, range(low, low + len(row))):
                    yield pairs, outcome, row[wins - low]
                    row[wins - low] = 0.0

    def _list_stops(
        self, pairs: int, losses: int, row: range
    ) -> Iterator[tuple[int, paired.PairedOutcome]]:
        """Yield the wins with which a comparison stops, for this many losses.

        They lie at both ends of the row, and for "equivalent" also in the middle.
        """
        first, last = row.start, row.stop - 1
        while first <= last and (outcome := self._decide(pairs, first, losses)):
            yield first, outcome
            first += 1
        while last >= first and (outcome := self._decide(pairs, last, losses)):
            yield last, outcome
            last -= 1
        if self.question != "equivalent" or first > last:
            return

        def leans_up(wins: int) -> bool:
            above = find_capital(self.above, pairs, wins, losses, -self.margin)
            return above >= find_capital(self.below, pairs, losses, wins, -self.margin)

        middle = find_first(first - 1, last, leans_up)
        for step, start in ((-1, middle - 1), (1, middle)):
            wins = start
            while first <= wins <= last and (outcome := self._decide(pairs, wins, losses)):
                yield wins, outcome
                wins += step


def find_capital(bets: Bets, pairs: int, wins: int, losses: int, delta: float) -> float:
    """Return the capital after bets on a difference above delta.

    Examples
    --------
    Half of the capital on each of two pairs that only B passes, against a difference of 0.

    >>> find_capital(((0.5, 1.0),), 2, 2, 0, 0.0)
    2.25
    """
    ties = pairs - wins - losses
    return sum(
        part * math.exp(min(wins * win + losses * loss + ties * tie, 700.0))
        for part, win, loss, tie in _find_steps(bets, delta)
    )


@lru_cache(maxsize=1024)
def _find_steps(bets: Bets, delta: float) -> tuple[tuple[float, float, float, float], ...]:
    """Return the parts of the capital, with what a win, a loss and a tie add to its logarithm."""
    steps = []
    for share, part in bets:
        bet = min(share, _LARGEST_LOSS / (1 + delta)) if delta > -1 else share
        win, loss, tie = (math.log1p(bet * (score - delta)) for score in (1, -1, 0))
        steps.append((part, win, loss, tie))
    return tuple(steps)


def plan_betting_rule(
    question: paired.PairedQuestion,
    margin: float,
    alpha: float,
    expected: Expected,
    max_pairs: int | None,
    *,
    fail_part: float,
) -> BettingRule:
    """Plan a rule with a margin that may stop after every pair; see `plan_paired_rule`."""
    only_a, only_b = _expect(question, margin, expected)
    mean, discordant = only_b - only_a, only_a + only_b
    gap = margin - abs(mean) if question == "equivalent" else mean + margin
    if question == "better":
        gap = mean - margin
    if gap <= 0:
        raise InvalidArgument(
            "rates", expected.rates, "lie where the question is to be answered with yes"
        )
    if question == "better":
        above, below = (margin, mean), (-margin, gap - margin)
    elif question == "not-worse":
        above, below = (-margin, mean), (0.0, margin)
    else:
        above, below = (-margin, mean), (-margin, -mean)
    if max_pairs is None:
        missed = (1 - expected.power) / (2 if question == "equivalent" else 1)
        reach = upper_z(alpha / 2) + upper_z(missed)
        max_pairs = math.ceil(_CAP_FACTOR * (discordant - mean * mean) * (reach / gap) ** 2)
    return BettingRule(
        question=question,
        alpha=alpha,
        margin=margin,
        max_pairs=max(1, max_pairs),
        above=_choose_bets(*above, discordant),
        below=_choose_bets(*below, discordant),
        give_up=1 - expected.power if question == "better" else 0.0,
        batch=math.ceil(max_pairs / _MOST_LOOKS),
        fail_part=fail_part,
    )


def _expect(
    question: paired.PairedQuestion, margin: float, expected: Expected
) -> tuple[float, float]:
    """Return how often only A, and only B, is expected to pass."""
    rates = expected.rates
    if rates is None:
        higher = min(0.99, _USUAL_CONTROL + margin + _USUAL_GAIN)
        usual = (_USUAL_RATE, _USUAL_RATE)
        rates = (_USUAL_CONTROL, higher) if question == "better" else usual
    return discordant_rates(*rates, expected.both)


def _choose_bets(delta: float, mean: float, discordant: float) -> Bets:
    """Return bets on a difference above delta that grow fast where it is `mean`."""
    rate = max(discordant, abs(mean) + 0.01, 0.02)
    wins, losses, ties = (rate + mean) / 2, (rate - mean) / 2, 1 - rate

    def grows(bet: float) -> bool:
        slope = (
            wins * (1 - delta) / (1 + bet * (1 - delta))
            - losses * (1 + delta) / (1 - bet * (1 + delta))
            - ties * delta / (1 - bet * delta)
        )
        return slope > 0

    most = _LARGEST_LOSS / (1 + delta)
    best = most if grows(most) else find_end(most, 0.0, lambda bet: not grows(bet))
    return tuple((min(times * best, most), part) for times, part in _BOLDNESS)


def _add_pair(state: States, only_a: float, only_b: float, agree: float) -> States:
    """Return the chances of wins, by losses, after one more pair; negligible ones are left out."""
    after: States = {}
    if not state:
        return after
    for losses in range(min(state), max(state) + 2):
        low, row = state.get(losses, (0, []))
        before_low, before = state.get(losses - 1, (0, []))
        if not row:
            first, sums = before_low, [only_a * y for y in before]
        else:
            first = low
            sums = [agree * x + only_b * y for x, y in zip([*row, 0.0], [0.0, *row], strict=True)]
            if before:
                first = min(low, before_low)
                last = max(low + len(sums), before_low + len(before))
                sums = [0.0] * (low - first) + sums + [0.0] * (last - low - len(sums))
                for j, y in enumerate(before, before_low - first):
                    sums[j] += only_a * y
        start, stop = 0, len(sums)
        while start < stop and sums[start] < _NEGLIGIBLE:
            start += 1
        while stop > start and sums[stop - 1] < _NEGLIGIBLE:
            stop -= 1
        if start < stop:
            after[losses] = (first + start, sums[start:stop])
    return after
