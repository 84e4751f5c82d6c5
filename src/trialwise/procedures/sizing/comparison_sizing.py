"""The plan of an A/B comparison: how many inputs tell two variants apart.

Tried on the same inputs, only the pairs on which exactly one of the two passed count, so that the
size depends on how often they disagree. That is rarely known before, so the plan spans what is
possible: from "B fails wherever A does" to "A and B have nothing in common".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache as remembered
from typing import Literal

from trialwise.decimals import as_written
from trialwise.documents.numbers import as_points
from trialwise.errors import InvalidArgument
from trialwise.procedures.sizing.sizing_base import PowerQuestion, SizingPlan
from trialwise.stats.binomial import (
    binomial_tail,
    find_first,
    likely_counts,
    normal_quantile,
    upper_z,
)
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.paired import approximate_pairs, minimum_discordant
from trialwise.stats.regression_cutoffs import design_power
from trialwise.stats.toolbox.choice_forecast import ChoiceForecast, forecast_choice
from trialwise.validation import require_count, require_given, require_open_rate

#: Beyond this many pairs a test suite is not the instrument.
MOST_PAIRS = 50_000
CURVE_POINTS = 31

Discordance = Literal["least", "halfway", "independent", "assumed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareQuestion(PowerQuestion):
    """How many inputs show that B is worse than A by so much?"""

    rate: float
    """The rate of A."""
    drop: float
    """How far B lies below it."""
    discordance: float | None = None
    """P(exactly one of the two passes on an input), where it can be said."""
    two_sided: bool = False
    pairs: int | None = None

    def __post_init__(self) -> None:
        PowerQuestion.__post_init__(self)
        require_open_rate("rate", self.rate)
        require_open_rate("drop", self.drop)
        # B cannot pass less often than never.
        if self.drop >= self.rate:
            raise InvalidArgument("drop", self.drop, f"lie below the rate of A ({self.rate:g})")
        low, high = self.possible_discordance
        if self.discordance is not None:
            require_open_rate("discordance", self.discordance)
            if not low <= self.discordance <= high:
                allowed = f"lie between the drop ({low:g}) and what the rates allow ({high:g})"
                raise InvalidArgument("discordance", self.discordance, allowed)
        require_given(self, "pairs", require_count, minimum=1)
        if (self.pairs or 0) > MOST_PAIRS:
            raise InvalidArgument("pairs", self.pairs, f"be at most {MOST_PAIRS}")

    @property
    def level(self) -> float:
        """The level of the side that finds A better."""
        return float((1 - as_written(self.confidence)) / (2 if self.two_sided else 1))

    @property
    def worse_rate(self) -> float:
        """The rate of B, in decimals."""
        return float(as_written(self.rate) - as_written(self.drop))

    @property
    def possible_discordance(self) -> tuple[float, float]:
        """The least and the most discordance that the two rates allow."""
        a, drop = as_written(self.rate), as_written(self.drop)
        b = a - drop
        # The least is a B that fails wherever A does; the most lets them disagree wherever rates
        # allow.
        return float(drop), float(min(2 * min(a, 1 - b) - drop, 2 * min(1 - a, b) + drop))

    @property
    def independent_discordance(self) -> float:
        """The discordance of two variants that have nothing in common."""
        a, b = as_written(self.rate), as_written(self.worse_rate)
        return float(a * (1 - b) + b * (1 - a))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedSize:
    """The exact McNemar test at one discordance."""

    kind: Discordance
    discordance: float
    only_a: float
    """P(A passes and B fails)."""
    only_b: float
    pairs: int | None
    """The fewest pairs from which the power is kept; None beyond 50,000."""
    power: float | None
    expected_discordant: float | None
    normal_pairs: int
    """The textbook size (Connor 1987)."""
    given_power: float | None
    """The power at the pairs asked about, if any were."""
    given_enough: float | None
    """P(enough discordant pairs for the test to reject at all) at the pairs asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpairedSize:
    """Two separate runs of equal size, decided by Fisher's exact test."""

    trials_each: int | None
    """The fewest trials from which the power is kept; None beyond 50,000."""
    power: float | None
    normal_trials_each: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePoint:
    """The power at a number of pairs, or of trials for each variant."""

    pairs: int
    paired: tuple[float, ...]
    """One for each of the plan's discordances."""
    unpaired: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePlan(SizingPlan):
    """The sizes of an A/B comparison."""

    form = "compare"

    question: CompareQuestion
    minimum_discordant: int
    """With fewer discordant pairs not even a clean sweep would reject."""
    paired: tuple[PairedSize, ...]
    unpaired: UnpairedSize
    curve: tuple[ComparePoint, ...]


def plan_compare(question: CompareQuestion) -> ComparePlan:
    """Paired and unpaired sizes for a comparison of two rates, exactly.

    >>> plan = plan_compare(CompareQuestion(rate=0.9, drop=0.05, discordance=0.1))
    >>> plan.minimum_discordant, plan.paired[0].expected_discordant > 5
    (5, True)
    """
    paired = tuple(_paired_size(question, *pair) for pair in _discordances(question))
    unpaired = unpaired_size(
        question.rate, question.worse_rate, alpha=question.level, power=question.power
    )
    return ComparePlan(
        question=question,
        minimum_discordant=minimum_discordant(
            question.alpha, alternative="two-sided" if question.two_sided else "one-sided"
        ),
        paired=paired,
        unpaired=unpaired,
        curve=tuple(_curve(question, paired, unpaired)),
    )


def exact_paired_power(pairs: int, only_a: float, only_b: float, *, alpha: float = 0.05) -> float:
    """P(the exact one-sided McNemar test finds A better), by enumeration.

    Σ_m P(M = m) P(X ≥ c(m)) with M ~ Binomial(pairs, only_a + only_b) discordant pairs, of which
    X ~ Binomial(m, only_a/(only_a + only_b)) favour A, and c(m) the exact cutoff at one half.

    >>> round(exact_paired_power(100, 0.15, 0.05), 4)
    0.6754
    """
    return _paired_power(only_a, only_b, alpha)(pairs)


def unpaired_size(
    better: float, worse: float, *, alpha: float = 0.05, power: float = 0.80
) -> UnpairedSize:
    """Return the equal sizes at which Fisher's one-sided exact test tells two rates apart.

    >>> unpaired_size(0.9, 0.7).trials_each
    56
    """
    normal = _normal_unpaired(better, worse, upper_z(alpha), normal_quantile(power))

    def power_at(n: int) -> float:
        return design_power(better, worse, n, n, alpha=alpha, rule="fisher")

    trials = _find_kept_size(power_at, power, normal)
    return UnpairedSize(
        trials_each=trials,
        power=None if trials is None else power_at(trials),
        normal_trials_each=normal,
    )


def _discordances(question: CompareQuestion) -> Iterator[tuple[Discordance, float]]:
    if question.discordance is not None:
        yield "assumed", question.discordance
        return
    least = question.drop
    independent = question.independent_discordance
    yield "least", least
    yield "halfway", float((as_written(least) + as_written(independent)) / 2)
    yield "independent", independent


def _paired_size(question: CompareQuestion, kind: Discordance, discordance: float) -> PairedSize:
    total, drop = as_written(discordance), as_written(question.drop)
    only_a, only_b = float((total + drop) / 2), float((total - drop) / 2)
    normal = approximate_pairs(
        question.drop, discordance, level=question.level, power=question.power
    )
    power_at = _paired_power(only_a, only_b, question.level)
    pairs = _find_kept_size(power_at, question.power, normal)
    given = question.pairs
    least = minimum_discordant(question.level, alternative="one-sided")
    return PairedSize(
        kind=kind,
        discordance=discordance,
        only_a=only_a,
        only_b=only_b,
        pairs=pairs,
        power=None if pairs is None else power_at(pairs),
        expected_discordant=None if pairs is None else pairs * discordance,
        normal_pairs=normal,
        given_power=None if given is None else power_at(given),
        given_enough=None if given is None else binomial_tail(least, given, discordance),
    )


def find_size(has_power: Callable[[int], bool], guess: int, most: int) -> int | None:
    """Find a size that has the power next to one that has not; None beyond the most.

    Args:
        has_power: Rises with the size but for a small sawtooth, so that the caller looks around.
        guess: Where to begin.
        most: The largest size that is looked at.
    """
    low, high = 0, max(1, guess)
    while high <= most:
        if has_power(high):
            return find_first(low, high, has_power)
        low, high = high, high + max(8, high // 4)
    return None


def _find_kept_size(power_at: Callable[[int], float], target: float, guess: int) -> int | None:
    """Find the fewest trials from which the power stays, as far as a tenth more trials tell."""
    high = find_size(lambda n: power_at(n) >= target, guess, MOST_PAIRS)
    if high is None:
        return None
    # The power of a discrete test goes up and down by a few trials: the last dip counts.
    reach = 10 + min(100, high // 10)
    short = [n for n in range(max(1, high - reach), high + reach) if power_at(n) < target]
    return max(short, default=0) + 1


def _paired_power(only_a: float, only_b: float, alpha: float) -> Callable[[int], float]:
    """Return the power by number of pairs."""
    discordance = only_a + only_b
    share = min(1.0, only_a / discordance)

    @remembered
    def given(discordant: int) -> float:
        if discordant == 0:
            return 0.0
        cutoff = compliance_cutoff(0.5, discordant, alpha=alpha, rule="exact").cutoff
        return 0.0 if cutoff is None else binomial_tail(cutoff, discordant, share)

    def power_at(pairs: int) -> float:
        first, weights = likely_counts(pairs, discordance)
        return min(1.0, math.fsum(w * given(m) for m, w in enumerate(weights, first)))

    return power_at


def _normal_unpaired(better: float, worse: float, z_alpha: float, z_beta: float) -> int:
    """⌈((z_α √(2 p̄ q̄) + z_β √(p_A q_A + p_B q_B)) / δ)²⌉ for each of the two."""
    pooled = (better + worse) / 2
    root = z_alpha * math.sqrt(2 * pooled * (1 - pooled))
    root += z_beta * math.sqrt(better * (1 - better) + worse * (1 - worse))
    return max(1, math.ceil((max(0.0, root) / (better - worse)) ** 2))


def _curve(
    question: CompareQuestion, paired: tuple[PairedSize, ...], unpaired: UnpairedSize
) -> Iterator[ComparePoint]:
    known = [size.pairs for size in paired] + [unpaired.trials_each, question.pairs]
    longest = max((n for n in known if n is not None), default=1000)
    # A little beyond the largest size, so that every curve is seen to reach the power.
    sizes = {max(1, round(1.2 * longest * i / CURVE_POINTS)) for i in range(1, CURVE_POINTS + 1)}
    powers = [_paired_power(size.only_a, size.only_b, question.level) for size in paired]
    for n in sorted(sizes):
        yield ComparePoint(
            pairs=n,
            paired=tuple(power_at(n) for power_at in powers),
            unpaired=design_power(
                question.rate, question.worse_rate, n, n, alpha=question.level, rule="fisher"
            ),
        )


# --- What a choice between arms will take and say, in the situations that a user has in mind ------

#: The rate of the best arm, unless given.
EXPECTED = 0.9
#: Simulated choices: few enough for a second or two. A choice by a smaller difference takes longer.
_RUNS, _FEW_RUNS, _COARSE = 100, 40, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicePlan(SizingPlan):
    """What to expect of a choice."""

    form = "choice"

    arms: int
    smallest_difference: float
    confidence: float
    break_ties: bool
    max_rounds: int
    forecasts: tuple[tuple[str, ChoiceForecast], ...]
    """What is assumed, and what comes of it."""


def plan_choice(
    arms: int,
    *,
    smallest_difference: float = 0.1,
    confidence: float = 0.95,
    break_ties: bool = False,
    max_rounds: int = 1000,
    rates: Sequence[float] = (),
) -> ChoicePlan:
    """Forecast a choice by simulation.

    Args:
        arms: How many there are.
        smallest_difference: The smallest difference that matters.
        confidence: Of the choice.
        break_ties: Whether the last arm is chosen at once.
        max_rounds: The most rounds.
        rates: The rate of each arm; a single one is that of the best arm.

    >>> plan = plan_choice(2, smallest_difference=0.3, rates=(0.9,))
    >>> [assumed for assumed, _ in plan.forecasts]
    ['one arm 30 points better', 'one arm 60 points better', 'all equal']
    """
    require_count("arms", arms, minimum=2)
    require_open_rate("smallest_difference", smallest_difference)
    if len(rates) not in (0, 1, arms):
        allowed = f"be one rate, or one for each of {arms} arms"
        raise InvalidArgument("rates", list(rates), allowed)
    # A choice by a smaller difference takes quadratically more rounds, in a simulation as well.
    runs = _RUNS if smallest_difference >= _COARSE else _FEW_RUNS
    forecasts = tuple(
        (
            assumed,
            forecast_choice(
                several,
                smallest_difference=smallest_difference,
                alpha=1 - confidence,
                break_ties=break_ties,
                max_rounds=max_rounds,
                runs=runs,
            ),
        )
        for assumed, several in _list_situations(arms, smallest_difference, rates)
    )
    return ChoicePlan(
        arms=arms,
        smallest_difference=smallest_difference,
        confidence=confidence,
        break_ties=break_ties,
        max_rounds=max_rounds,
        forecasts=forecasts,
    )


def _list_situations(
    arms: int, difference: float, rates: Sequence[float]
) -> Iterator[tuple[str, tuple[float, ...]]]:
    if len(rates) == arms:
        yield "the rates you expect", tuple(rates)
        return
    best = rates[0] if rates else EXPECTED
    # Twice the smallest difference shows how much faster a plain winner is found.
    for times in (1, 2):
        gap = times * difference
        if best - gap > 0:
            yield f"one arm {as_points(gap)} better", (best, *[best - gap] * (arms - 1))
    yield "all equal", (best,) * arms
