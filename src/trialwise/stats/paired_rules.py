"""Rules that decide a paired comparison: when to stop, what is shown, how sure it is.

A pair is one input and repetition under a control (A) and a candidate (B). A rule answers one
question about the difference, which is B's rate minus A's:

- "different": is B better or worse than A?
- "better": is B better than A by more than a margin (0 unless given)?
- "not-worse": is B at most a margin worse than A (non-inferiority)?
- "equivalent": do the two differ by less than a margin?

Every statement that a rule makes is wrong with a probability of at most alpha/2, for every pair of
rates and every correlation of the arms. `plan_paired_rule` makes a rule. Rules without a margin are
in `split_rules`; with a margin and a fixed size in `margin_rules`, without one in `betting_rules`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.errors import InvalidArgument
from trialwise.stats import paired
from trialwise.stats.binomial import find_first
from trialwise.stats.result_types import Decision, Interval
from trialwise.validation import require_choice, require_count, require_open_rate

if TYPE_CHECKING:
    from trialwise.stats.sequential.shipped_designs import DesignCache


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedConclusion:
    """What a rule concludes from the pairs up to its stop."""

    question: paired.PairedQuestion
    outcome: paired.PairedOutcome
    p_value: float
    """It is at most alpha exactly where something was shown, and valid for the stopping rule.

    It is twice the smaller of two one-sided p-values: that of what PASS and that of what FAIL
    refutes. It is 1 where the comparison ended before its rule stopped.
    """
    interval: Interval
    """Where the difference lies: exact, each end with error alpha/2; it agrees with the outcome."""
    used: paired.PairCounts
    """The pairs up to the stop; later ones do not count."""
    is_complete: bool
    """Whether the rule stopped. What is cut short decides nothing."""

    @property
    def difference(self) -> float:
        """The observed difference, B's rate minus A's, over the pairs used; 0 without any."""
        return (self.used.only_b - self.used.only_a) / max(1, self.used.pairs)

    @property
    def decision(self) -> Decision:
        """Whether the outcome is a PASS, a FAIL or INCONCLUSIVE for the question asked."""
        return paired.decide_outcome(self.question, self.outcome)


@dataclass(frozen=True, kw_only=True)
class PairedRule(ABC):
    """A rule for one question about two arms; `plan_paired_rule` makes one."""

    question: paired.PairedQuestion
    alpha: float
    """Two-sided: half of it is the largest probability of each wrong statement."""
    margin: float = 0.0
    max_pairs: int | None = None
    """The most pairs, concordant ones included; None where only discordant pairs are limited."""
    fail_part: float = 1.0
    """How much of the error of a FAIL each way to it has: half, where two ways share the error.

    It is 1 also in old rules for "equivalent", which were wrong in up to twice alpha/2.
    """

    @property
    def is_sequential(self) -> bool:
        """Whether the rule may stop before the last pair."""
        return True

    @property
    def certificate(self) -> float | None:
        """Expected pairs over the proven minimum, where one is known; 1 cannot be beaten."""
        return None

    @abstractmethod
    def decide(self, counts: paired.PairCounts) -> paired.PairedOutcome | None:
        """Return what the pairs so far show, or None to go on.

        It is asked after each pair, in the order of the pairs, until it answers.
        """

    @abstractmethod
    def characteristic(self, only_a: float, only_b: float) -> paired.PairedCharacteristic:
        """Return the exact chances of each outcome and the expected pairs.

        Parameters
        ----------
        only_a, only_b : float
            The probability that only A, and that only B, passes a pair.
        """

    @abstractmethod
    def to_plain(self) -> dict[str, Any]:
        """Return the rule with its boundaries as plain values that JSON can hold."""

    def can_show_equivalence(self) -> bool:
        """Return whether arms that never differ are shown to be equivalent after all pairs."""
        alike = paired.PairCounts(both=self.max_pairs or 1, only_a=0, only_b=0, neither=0)
        return self.decide(alike) == "equivalent"

    @cached_property
    def statements(self) -> tuple[list[paired.Statement], list[paired.Statement]]:
        """What a PASS and what a FAIL shows."""
        return paired.list_statements(self.question, self.margin)

    def check_size(self, counts: paired.PairCounts) -> None:
        """Refuse more pairs than were planned."""
        if self.max_pairs is not None and counts.pairs > self.max_pairs:
            raise InvalidArgument("counts", counts, f"have at most {self.max_pairs} pairs")

    def describe(
        self, chances: dict[paired.PairedOutcome, float], pairs: float, discordant: float
    ) -> paired.PairedCharacteristic:
        """Return the chances of each outcome with the expected pairs."""
        return paired.PairedCharacteristic(
            question=self.question, chances=chances, mean_pairs=pairs, mean_discordant=discordant
        )

    @abstractmethod
    def find_p_values(self, counts: paired.PairCounts) -> tuple[float, float]:
        """Return the one-sided p-values at a stop: of what PASS and of what FAIL refutes."""

    @abstractmethod
    def find_interval(self, counts: paired.PairCounts, outcome: paired.PairedOutcome) -> Interval:
        """Return the interval of the difference for some pairs."""

    @staticmethod
    def from_plain(values: Mapping[str, Any]) -> PairedRule:
        """Return the rule that `to_plain` wrote."""
        from trialwise.stats.betting_rules import BettingRule
        from trialwise.stats.margin_rules import MarginRule
        from trialwise.stats.split_rules import SplitRule

        kinds: dict[str, type[PairedRule]] = {
            "split": SplitRule,
            "margin": MarginRule,
            "betting": BettingRule,
        }
        # A rule is kept with its boundaries, so that a later version decides as this one planned.
        kind = require_choice("kind", str(values.get("kind")), tuple(kinds))
        return kinds[kind].from_plain(values)

    def conclude(self, path: Sequence[tuple[bool, bool]]) -> PairedConclusion:
        """Return what the pairs show, how sure it is, and where the difference lies.

        Parameters
        ----------
        path : sequence of (bool, bool)
            Whether A and whether B passed, pair by pair in order. Pairs after the stop are ignored.

        Examples
        --------
        Ten pairs were planned; 8 passed under B and 5 under A, and 3 pairs are discordant.

        >>> rule = plan_paired_rule(pairs=10)
        >>> found = rule.conclude([(True, True)] * 5 + [(False, True)] * 3 + [(False, False)] * 2)
        >>> found.outcome, found.p_value, round(found.difference, 2)
        ('not shown', 0.25, 0.3)
        """
        return self.conclude_counts(self._follow(path))

    def conclude_counts(self, counts: paired.PairCounts) -> PairedConclusion:
        """Return what `conclude` returns for every path that stops with these counts."""
        # No pair is not evidence, whatever the rule would make of an empty table.
        outcome = self.decide(counts) if counts.pairs else None
        return PairedConclusion(
            question=self.question,
            outcome=outcome or "not shown",
            p_value=self.find_p_value(counts, outcome),
            interval=self.find_interval(counts, outcome or "not shown"),
            used=counts,
            is_complete=outcome is not None,
        )

    def find_p_value(
        self, counts: paired.PairCounts, outcome: paired.PairedOutcome | None
    ) -> float:
        """Return the two-sided p-value at a stop; 1 where the rule has not stopped."""
        if outcome is None:
            return 1.0
        found = min(1.0, 2 * min(self.find_p_values(counts)))
        # A design may miss its level by rounding, on either side.
        if outcome == "not shown":
            return max(found, math.nextafter(self.alpha, 1.0))
        return min(found, self.alpha)

    def _follow(self, path: Sequence[tuple[bool, bool]]) -> paired.PairCounts:
        """Count pairs up to the stop, or all of them."""
        cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
        counts = paired.PairCounts(both=0, only_a=0, only_b=0, neither=0)
        for first, second in path:
            cells[bool(first), bool(second)] += 1
            both, only_a, only_b, neither = cells.values()
            counts = paired.PairCounts(both=both, only_a=only_a, only_b=only_b, neither=neither)
            if self.decide(counts) is not None:
                break
        return counts


class Expected(NamedTuple):
    """The arms that a rule is made for: the chance to find what they differ by, and their rates."""

    power: float
    rates: tuple[float, float] | None
    both: float | None


def plan_paired_rule(
    question: paired.PairedQuestion = "different",
    *,
    margin: float | None = None,
    alpha: float = 0.05,
    power: float = 0.80,
    rates: tuple[float, float] | None = None,
    both: float | None = None,
    pairs: int | None = None,
    max_pairs: int | None = None,
    cache: DesignCache | None = None,
    edition: int = 2,
) -> PairedRule:
    """Plan a comparison of two arms on pairs.

    Parameters
    ----------
    question : {"different", "better", "not-worse", "equivalent"}
        See the module.
    margin : float, optional
        Needed for "not-worse" and "equivalent"; 0 for "better" unless given.
    alpha : float
        Two-sided: half of it is the largest probability of each wrong statement.
    power : float
        The least probability of a PASS at the rates that are expected.
    rates : (float, float), optional
        The rates of A and of B that are expected. Without them and without a margin the rule is the
        one that ships: it finds a split of discordant pairs of 70:30, about 80 % against 90 %.
        With a margin, two arms of 85 % are expected that fail apart; for "better", an A of 80 % and
        a B that is better by the margin and 10 points.
    both : float, optional
        The share of inputs that both arms pass; the product of the rates unless given.
    pairs : int, optional
        Make exactly this many pairs: McNemar's exact test, or with a margin an exact unconditional
        test. Without it the rule may stop early.
    max_pairs : int, optional
        The most pairs of a rule that may stop early.
    cache : DesignCache, optional
        Where boundaries that were searched for are kept.
    edition : int
        1 for comparisons that were made before the two ways to be "not equivalent" shared an error.

    Raises
    ------
    InvalidArgument
        Something is not allowed, or so few pairs could never show that the arms are equivalent.

    Examples
    --------
    >>> rule = plan_paired_rule("better")
    >>> rule.is_sequential, rule.max_pairs
    (True, None)
    """
    asked = require_choice("question", question, paired.PAIRED_QUESTIONS)
    level, wanted = require_open_rate("alpha", alpha), require_open_rate("power", power)
    # A size that is fixed has no upper limit to choose.
    if pairs is not None and max_pairs is not None:
        raise InvalidArgument("max_pairs", max_pairs, "not be given together with pairs")
    for name, number in (("pairs", pairs), ("max_pairs", max_pairs)):
        if number is not None:
            require_count(name, number, minimum=1)
    expected = Expected(wanted, rates, both)
    if asked in ("different", "better") and not margin:
        from trialwise.stats.split_rules import SplitRule, plan_split_rule

        if pairs is not None:
            return SplitRule(question=asked, alpha=level, max_pairs=pairs)
        return plan_split_rule(asked, level, expected, max_pairs, cache)
    if asked == "different" or margin is None:
        needed = "be left out" if asked == "different" else "be given for this question"
        raise InvalidArgument("margin", margin, needed)
    size = require_open_rate("margin", margin)
    # At first each of the two ways to "not equivalent" had the whole error, so that a wrong one
    # came in up to twice as many comparisons.
    shares = asked == "equivalent" and edition > 1
    part = 0.5 if shares else 1.0
    rule: PairedRule
    if pairs is not None:
        from trialwise.stats.margin_rules import MarginRule

        rule = MarginRule(question=asked, alpha=level, margin=size, max_pairs=pairs, fail_part=part)
    else:
        from trialwise.stats.betting_rules import plan_betting_rule

        rule = plan_betting_rule(asked, size, level, expected, max_pairs, fail_part=part)
    if shares:
        _check_reachable(rule, "max_pairs" if pairs is None else "pairs")
    return rule


def _check_reachable(rule: PairedRule, name: str) -> None:
    """Refuse so few pairs that arms which never differ would not be shown to be equivalent."""
    size = rule.max_pairs or 1

    def reaches(pairs: int) -> bool:
        return replace(rule, max_pairs=pairs).can_show_equivalence()

    if reaches(size):
        return
    # No test at this level can do with fewer: all pairs of arms that differ by the margin, each
    # time in the same direction, are alike with this probability.
    least = max(size, math.floor(math.log(rule.alpha / 2) / math.log1p(-rule.margin)))
    enough = least + 1
    while not reaches(enough):
        enough = math.ceil(1.2 * enough)
    allowed = (
        f"be about {find_first(least, enough, reaches)} or more: with so few pairs a difference of "
        f"{100 * rule.margin:g} % cannot be ruled out, even if the two arms never differ"
    )
    raise InvalidArgument(name, size, allowed)
