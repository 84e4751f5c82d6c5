"""Two conditions tried on the same inputs: what the pairs say about the difference.

Its own module because pairing changes the arithmetic: only the discordant pairs, where exactly
one of A and B passed, bear on the difference, and overlapping intervals of the two rates are no
substitute for a paired test. A pair is one input and repetition index under both conditions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import binomial_tail, exact_tail, find_end, normal_quantile, upper_z
from trialwise.stats.result_types import Count, Decision, Interval
from trialwise.validation import require_choice, require_count, require_open_rate

SignAlternative: TypeAlias = Literal["two-sided", "greater", "less"]
"""What a small p-value would support: any difference, more wins, or more losses."""

SIGN_ALTERNATIVES: tuple[SignAlternative, ...] = ("two-sided", "greater", "less")


#: Up to here a tail at one half is summed in integers and rounded once, so that 6 to 0 is 0.03125.
_INTEGER_PAIRS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """A paired two-by-two table: how many inputs each condition passed."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def discordant(self) -> int:
        """How many pairs tell A and B apart."""
        return self.only_a + self.only_b


@dataclass(frozen=True, slots=True, kw_only=True)
class SignTest:
    """An exact sign test; ties take no part in it."""

    wins: int
    losses: int
    alternative: SignAlternative
    p_value: float


def pairs_from_outcomes(a: Sequence[bool], b: Sequence[bool]) -> PairCounts:
    """The paired table of two conditions tried on the same inputs, in the same order.

    Parameters
    ----------
    a, b : sequence of bool
        Whether each trial passed; a[i] and b[i] are one pair. Equally long, at least one pair.

    Examples
    --------
    >>> pairs_from_outcomes([True, True, False], [True, False, False])
    PairCounts(both=1, only_a=1, only_b=0, neither=1)
    """
    first, second = _check_outcomes("a", a), _check_outcomes("b", b)
    if not first:
        raise InvalidArgument("a", a, "hold at least one outcome")
    if len(first) != len(second):
        raise InvalidArgument("b", b, f"hold one outcome for each of a ({len(first)})")
    pairs = list(zip(first, second, strict=True))
    return PairCounts(
        both=pairs.count((True, True)),
        only_a=pairs.count((True, False)),
        only_b=pairs.count((False, True)),
        neither=pairs.count((False, False)),
    )


def sign_test(
    wins: Count, losses: Count, *, alternative: SignAlternative = "two-sided"
) -> SignTest:
    """The exact sign test that wins and losses are equally likely; ties are left out.

    Over the discordant pairs of two conditions it is McNemar's exact test.

    Parameters
    ----------
    wins, losses : int
        Counts of at least 0; with neither, the p-value is 1.
    alternative : {"two-sided", "greater", "less"}
        "greater" looks for more wins than losses, "less" for fewer.

    Examples
    --------
    >>> sign_test(5, 0, alternative="greater").p_value
    0.03125
    >>> sign_test(7, 1).p_value
    0.0703125
    """
    won, lost = require_count("wins", wins), require_count("losses", losses)
    side = require_choice("alternative", alternative, SIGN_ALTERNATIVES)
    n = won + lost
    if side == "two-sided":
        p_value = min(2 * half_tail(max(won, lost), n), 1.0)
    else:
        p_value = half_tail(won if side == "greater" else lost, n)
    return SignTest(wins=won, losses=lost, alternative=side, p_value=p_value)


def minimum_discordant(
    alpha: float, *, alternative: Literal["two-sided", "one-sided"] = "two-sided"
) -> int:
    """The fewest discordant pairs with which an exact sign or McNemar test can reject at all.

    The smallest n with 2⁻ⁿ ≤ alpha, or 2¹⁻ⁿ ≤ alpha when two-sided: below it, even a clean sweep
    proves nothing.

    Examples
    --------
    >>> minimum_discordant(0.05, alternative="one-sided"), minimum_discordant(0.05)
    (5, 6)
    """
    require_choice("alternative", alternative, ("two-sided", "one-sided"))
    # alpha = m · 2^e with ½ ≤ m < 1, so 2^(e−1) is the largest power of two not above it.
    _, exponent = math.frexp(require_open_rate("alpha", alpha))
    return 1 - exponent + (alternative == "two-sided")


def approximate_pairs(gap: float, discordance: float, *, level: float, power: float) -> int:
    """Approximate how many pairs find a difference: ⌈((z_α √ψ + z_β √(ψ − δ²)) / δ)²⌉.

    Connor (1987), Biometrics 43, 207–211. A textbook size for a forecast; no verdict uses it.

    Examples
    --------
    >>> approximate_pairs(0.1, 0.26, level=0.025, power=0.8)
    202
    """
    root = upper_z(level) * math.sqrt(discordance)
    root += normal_quantile(power) * math.sqrt(max(0.0, discordance - gap * gap))
    return max(1, math.ceil((max(0.0, root) / gap) ** 2))


def _check_outcomes(argument: str, outcomes: Sequence[bool]) -> list[bool]:
    if not isinstance(outcomes, Iterable):
        raise InvalidArgument(argument, outcomes, "be a sequence of outcomes")
    members = list(outcomes)
    for i, outcome in enumerate(members):
        if not isinstance(outcome, bool):
            raise InvalidArgument(f"{argument}[{i}]", outcome, "be True or False")
    return members


def half_tail(k: int, n: int) -> float:
    """P(X ≥ k) for X ~ Binomial(n, ½)."""
    if n > _INTEGER_PAIRS:
        return binomial_tail(k, n, 0.5)
    return float(exact_tail(k, n, Fraction(1, 2)))


def paired_difference_interval(
    both: Count, only_a: Count, only_b: Count, neither: Count, *, confidence: float = 0.95
) -> Interval:
    """A confidence interval for A's rate minus B's, (only_a − only_b)/n, from n pairs.

    It holds the differences Δ that the score test would not reject, (a − b − nΔ)² ≤
    z² n(2q + Δ − Δ²) with q the likeliest chance of "only B" at that Δ (Tango 1998). It excludes 0
    exactly when the uncorrected chi-square form of `mcnemar` rejects.

    It is not exact, and was chosen for its coverage: enumerated at 95 % over every table of
    positive cell probabilities in twentieths, its least and mean coverage are 0.944 and 0.956 with
    20 pairs and 0.944 and 0.951 with 50. `other_paired_interval` has Newcombe's and Wald's.

    Parameters
    ----------
    both, only_a, only_b, neither : int
        The paired table; at least one pair.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> interval = paired_difference_interval(59, 6, 16, 80)
    >>> round(interval.low, 4), round(interval.high, 4)
    (-0.124, -0.0054)
    """
    counts = check_pair_counts(both, only_a, only_b, neither)
    level = require_open_rate("confidence", confidence)
    z, n = upper_z((1 - level) / 2), counts.pairs

    def find_upper(won: int, lost: int) -> float:
        return find_end((won - lost) / n, 1.0, lambda at: tango_score(won, lost, n, at) > -z)

    # The lower limit is the mirrored upper one, so that swapping A and B negates the interval.
    low, high = find_upper(counts.only_b, counts.only_a), find_upper(counts.only_a, counts.only_b)
    return Interval(-low, high, confidence=level, method="tango")


def check_pair_counts(both: Count, only_a: Count, only_b: Count, neither: Count) -> PairCounts:
    """Return the paired table, which must count at least one pair."""
    counts = PairCounts(
        both=require_count("both", both),
        only_a=require_count("only_a", only_a),
        only_b=require_count("only_b", only_b),
        neither=require_count("neither", neither),
    )
    if counts.pairs == 0:
        raise InvalidArgument("both, only_a, only_b, neither", counts, "count at least one pair")
    return counts


def tango_score(wins: int, losses: int, pairs: int, difference: float) -> float:
    """Return Tango's score statistic: how far the wins exceed what a difference leads to expect."""
    excess = wins - losses - pairs * difference
    if not excess:
        return 0.0
    # The likeliest chance of "only A" at this difference solves 2n q² + linear q + constant = 0.
    linear = (2 * pairs - wins + losses) * difference - wins - losses
    constant = -losses * difference * (1 - difference)
    root = math.sqrt(max(linear * linear - 8 * pairs * constant, 0.0))
    only_a = -2 * constant / (linear + root) if linear > 0 else (root - linear) / (4 * pairs)
    variance = pairs * (2 * only_a + difference * (1 - difference))
    if variance <= 0:
        return math.copysign(math.inf, excess)
    return excess / math.sqrt(variance)


# --- The questions of a paired comparison, what can be shown, and what that means -----------------

PairedQuestion: TypeAlias = Literal["different", "better", "not-worse", "equivalent"]
"""What is asked about B; the last two need a margin."""

PairedOutcome: TypeAlias = Literal[
    "better", "not better", "not worse", "worse", "equivalent", "not equivalent", "not shown"
]
"""What the pairs show of B. "not better" is shown to lie below the margin asked for."""

PAIRED_QUESTIONS: tuple[PairedQuestion, ...] = ("different", "better", "not-worse", "equivalent")


def require_margin(question: PairedQuestion, margin: float | None) -> None:
    """Refuse a question that is unknown, and a margin that it does not have or has to have."""
    require_choice("question", question, PAIRED_QUESTIONS)
    if margin is not None:
        require_open_rate("margin", margin)
        if question == "different":
            allowed = "be left out where the question is whether the arms are different"
            raise InvalidArgument("margin", margin, allowed)
    elif question in ("not-worse", "equivalent"):
        allowed = f'be given, such as 0.02, where the question is "{question}"'
        raise InvalidArgument("margin", None, allowed)


#: The outcomes of each question that PASS and that FAIL; "not shown" is INCONCLUSIVE.
OUTCOMES: dict[PairedQuestion, tuple[tuple[PairedOutcome, ...], ...]] = {
    "different": (("better",), ("worse",)),
    "better": (("better",), ("worse", "not better")),
    "not-worse": (("not worse",), ("worse",)),
    "equivalent": (("equivalent",), ("not equivalent",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCharacteristic:
    """What a rule does for two arms, exactly."""

    question: PairedQuestion
    chances: Mapping[PairedOutcome, float]
    """The probability of each outcome that can happen; they add up to 1."""
    mean_pairs: float
    """Expected pairs, concordant ones included."""
    mean_discordant: float

    @property
    def better(self) -> float:
        """The probability of "B is better"."""
        return self.chances.get("better", 0.0)

    @property
    def worse(self) -> float:
        """The probability of "B is worse"."""
        return self.chances.get("worse", 0.0)

    def chance_of(self, decision: Decision) -> float:
        """Return the probability of PASS, of FAIL or of INCONCLUSIVE for the question asked."""
        return sum(
            chance
            for outcome, chance in self.chances.items()
            if decide_outcome(self.question, outcome) is decision
        )


def decide_outcome(question: PairedQuestion, outcome: PairedOutcome) -> Decision:
    """Return what an outcome means for the question that was asked.

    Examples
    --------
    >>> decide_outcome("different", "worse"), decide_outcome("not-worse", "not worse")
    (<Decision.FAIL: 'FAIL'>, <Decision.PASS: 'PASS'>)
    """
    passing, failing = OUTCOMES[question]
    if outcome in passing:
        return Decision.PASS
    return Decision.FAIL if outcome in failing else Decision.INCONCLUSIVE


Statement: TypeAlias = tuple[bool, float]
"""Whether the difference is mirrored, and a limit that it is shown to be above."""


def list_statements(
    question: PairedQuestion, margin: float
) -> tuple[list[Statement], list[Statement]]:
    """Return what PASS and what FAIL shows of the difference.

    PASS shows all of its statements, FAIL any of its own. That the difference is below a limit is
    that its mirror image is above minus the limit, so that one test serves both sides.

    Examples
    --------
    >>> list_statements("not-worse", 0.05)
    ([(False, -0.05)], [(True, -0.0)])
    """
    match question:
        case "different" | "better":
            return [(False, margin)], [(True, -margin)]
        case "not-worse":
            return [(False, -margin)], [(True, -0.0)]
        case "equivalent":
            return [(False, -margin), (True, -margin)], [(False, margin), (True, margin)]
