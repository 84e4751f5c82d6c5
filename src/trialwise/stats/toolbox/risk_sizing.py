"""Risk-driven sizing: how many trials a regression test needs against its baseline (§5.4, §6.2).

Three questions in two rule sets. Fisher: plan baseline and test together (design), or size a test
against a baseline that exists (resolved); power counts every baseline that could be drawn. Wilson:
the companion's acceptance floor, which moves with the test's own size, under the normal
approximation. A design outside the domain is refused with its reason, never given a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsIndex

from trialwise.decimals import complement
from trialwise.stats.binomial import find_first, raw_cdf, upper_z
from trialwise.stats.rate_intervals import wilson_low
from trialwise.stats.regression_cutoffs import regression_cutoff
from trialwise.stats.result_types import Refusal
from trialwise.stats.toolbox.rate_sizing import chance_below, reaches_target
from trialwise.stats.unconditional import smallest_count
from trialwise.validation import require_open_rate, require_rate, require_successes

#: Trials together up to which every size is tried with Boschloo's test, in less than a second.
LARGEST_SCAN = 1_000
#: Where the doubling search for the moving floor gives up: counts beyond are not exact doubles.
_DOUBLING_LIMIT = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """An answer to a sizing question, or the reason there is none; the rest is then None."""

    question: str
    refusal: Refusal | None = None
    trials: int | None = None
    """The trials asked about, or the trials required."""
    power: float | None = None
    """P(FAIL) at those trials when the rate to detect is true."""
    detectable_rate: float | None = None
    first_crossing: int | None = None
    """The fewest trials that reach the power at all; power may fall below it again."""
    cutoff: int | None = None
    floor: float | None = None
    """Wilson: the real-valued acceptance floor at those trials."""

    @property
    def admitted(self) -> bool:
        """Whether the design lies in the domain of the question."""
        return self.refusal is None


def resolved_required_trials(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    alternative_rate: float,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
) -> Sizing:
    """The fewest test trials from which power holds against a baseline that exists. Rule `fisher`.

    Examples
    --------
    >>> sizing = resolved_required_trials(951, 1000, 0.925)
    >>> sizing.trials, sizing.first_crossing
    (966, 868)
    """
    k, nb, p1 = check_baseline(baseline_successes, baseline_trials, alternative_rate)
    level, target = require_open_rate("alpha", alpha), require_open_rate("power", power)
    question = "required trials"
    if refusal := refuse_alternative(k / nb, p1):
        return Sizing(question=question, refusal=refusal)

    def power_at(n: int) -> float:
        return raw_cdf(smallest_count(k, nb, n, level) - 1, n, p1)

    held = find_held_trials(question, nb, target, power_at)
    if not held.admitted:
        return held
    first = next(n for n in range(1, nb + 1) if reaches_target(power_at(n), target))
    return Sizing(question=question, trials=held.trials, power=held.power, first_crossing=first)


def exact_required_trials(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    alternative_rate: float,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
) -> Sizing:
    """Trials from which power holds against a baseline that exists. Rule `exact`.

    They are the fewest, up to `LARGEST_SCAN` trials of baseline and test together. Above, they are
    Fisher's, which are enough: Boschloo's test finds whatever Fisher's finds.

    Examples
    --------
    >>> [size(180, 200, 0.8).trials for size in (resolved_required_trials, exact_required_trials)]
    [132, 122]
    """
    given = baseline_successes, baseline_trials, alternative_rate
    fisher = resolved_required_trials(*given, alpha=alpha, power=power)
    if fisher.refusal not in (None, Refusal.BASELINE_TOO_SMALL):
        return fisher
    k, nb, p1 = check_baseline(*given)

    def power_at(n: int) -> float:
        return regression_cutoff(k, nb, n, alpha=alpha).power(p1) or 0.0

    largest = fisher.trials or nb
    if nb + largest <= LARGEST_SCAN:
        return find_held_trials(fisher.question, largest, power, power_at)
    found = power_at(largest)
    if not reaches_target(found, power):
        return fisher
    return Sizing(question=fisher.question, trials=largest, power=found)


def floor_required_trials(
    baseline_rate: float,
    minimum_acceptable_rate: float,
    *,
    confidence: float = 0.95,
    power: float = 0.80,
) -> Sizing:
    """The fewest trials whose moving Wilson floor detects the lowest acceptable rate (§5.4.1).

    Power(n) = Φ((floor(n) − p_min) / √(p_min(1−p_min)/n)), floor(n) = WilsonLower(p0, n).

    Examples
    --------
    >>> floor_required_trials(0.87, 0.84).trials
    891
    """
    p0, p1 = (
        require_rate("baseline_rate", baseline_rate),
        require_rate("minimum_acceptable_rate", minimum_acceptable_rate),
    )
    z = critical_value(confidence)
    target = require_open_rate("power", power)
    question = "required trials"
    if refusal := refuse_tolerance(p0, p1):
        return Sizing(question=question, refusal=refusal)

    def suffices(n: int) -> bool:
        return approximate_floor_power(p0, p1, n, z) >= target

    high = 1
    while not suffices(high) and high < _DOUBLING_LIMIT:
        high *= 2
    if not suffices(high):
        return Sizing(question=question)
    return size_floor(question, p0, p1, find_first(high // 2, high, suffices), z)


def check_baseline(
    baseline_successes: SupportsIndex, baseline_trials: SupportsIndex, alternative_rate: float
) -> tuple[int, int, float]:
    """Return the counts of the baseline and the alternative rate, checked."""
    k, nb = require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    return k, nb, require_rate("alternative_rate", alternative_rate)


def critical_value(confidence: float) -> float:
    """Return the one-sided normal quantile of a confidence."""
    return upper_z(complement(require_open_rate("confidence", confidence)))


def refuse_alternative(p0: float, p1: float) -> Refusal | None:
    """Say why no drop from p0 to p1 can be sized, if so."""
    if p0 == 0:
        return Refusal.ZERO_BASELINE
    return Refusal.ALTERNATIVE_NOT_BELOW_BASELINE if p1 >= p0 else None


def refuse_tolerance(p0: float, p1: float) -> Refusal | None:
    """Say why no tolerated rate p1 below p0 can be sized, if so."""
    if p0 == 0:
        return Refusal.ZERO_BASELINE
    return Refusal.EMPTY_TOLERANCE_INTERVAL if p1 >= p0 else None


def find_held_trials(
    question: str, nb: int, target: float, power_at: Callable[[int], float]
) -> Sizing:
    """One more than the largest test that falls short: from there the sawtooth stays above."""
    held: tuple[int, float] | None = None
    for n in range(nb, 0, -1):
        value = power_at(n)
        if not reaches_target(value, target):
            break
        held = n, value
    if held is None:
        return Sizing(question=question, refusal=Refusal.BASELINE_TOO_SMALL)
    return Sizing(question=question, trials=held[0], power=held[1])


def approximate_floor_power(p0: float, p1: float, n: int, z: float) -> float:
    """Return the power at p1 of Wilson's bound below p0, by the normal approximation."""
    return chance_below(wilson_low(p0 * n, n, z), p1, n)


def size_floor(question: str, p0: float, p1: float, n: int, z: float) -> Sizing:
    """Answer a sizing question with n trials and Wilson's bound below p0."""
    floor = wilson_low(p0 * n, n, z)
    return Sizing(
        question=question, trials=n, floor=floor, power=approximate_floor_power(p0, p1, n, z)
    )
