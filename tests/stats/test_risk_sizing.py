"""Risk-driven sizing against brute force: every size, every baseline, in integers and scipy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from trialwise.errors import InvalidArgument
from trialwise.stats.regression_cutoffs import regression_cutoff
from trialwise.stats.result_types import Refusal
from trialwise.stats.toolbox.planned_designs import (
    design_detectable_rate,
    design_power_at,
    design_required_trials,
    floor_detectable_rate,
    floor_power_at,
    resolved_power_at,
)
from trialwise.stats.toolbox.risk_sizing import (
    Sizing,
    exact_required_trials,
    find_held_trials,
    floor_required_trials,
    resolved_required_trials,
)
from trialwise.stats.unconditional import boschloo


@cache
def fisher_cutoff(k: int, nb: int, n: int, alpha: Fraction) -> int:
    """The smallest x whose one-sided Fisher p-value exceeds alpha, in integers."""
    for x in range(n + 1):
        total = k + x
        ways = sum(
            math.comb(total, j) * math.comb(nb + n - total, n - j)
            for j in range(max(0, total - nb), x + 1)
        )
        if Fraction(ways, math.comb(nb + n, n)) > alpha:
            return x
    raise AssertionError("P(X ≤ n) is 1")


def design_power(p0: float, nb: int, p1: float, n: int, *, alpha: float) -> float:
    level = Fraction(repr(alpha))
    cutoffs = np.array([fisher_cutoff(k, nb, n, level) for k in range(nb + 1)])
    return float(np.sum(binom.pmf(np.arange(nb + 1), nb, p0) * binom.cdf(cutoffs - 1, n, p1)))


def resolved_power(k: int, nb: int, p1: float, n: int, *, alpha: float) -> float:
    return float(binom.cdf(fisher_cutoff(k, nb, n, Fraction(repr(alpha))) - 1, n, p1))


def held(powers: list[float], target: float) -> int | None:
    """One more than the last size that falls short, or None where the last one does."""
    short = [n for n, power in enumerate(powers, start=1) if power < target]
    first = short[-1] + 1 if short else 1
    return first if first <= len(powers) else None


# Exact: the design, before either run


@pytest.mark.parametrize(
    ("p0", "nb", "p1", "alpha"),
    [(0.9, 40, 0.6, 0.05), (0.95, 30, 0.5, 0.01), (0.5, 36, 0.2, 0.1), (1.0, 25, 0.7, 0.05)],
)
def test_the_required_trials_of_a_design_by_brute_force(
    p0: float, nb: int, p1: float, alpha: float
) -> None:
    """The power of every size up to the baseline's, then the definition."""
    powers = [design_power(p0, nb, p1, n, alpha=alpha) for n in range(1, nb + 1)]
    for target in (0.3, 0.5, 0.8, 0.9, 0.999999):
        sizing = design_required_trials(p0, nb, p1, alpha=alpha, power=target)
        expected = held(powers, target)

        assert sizing.trials == expected
        if expected is None:
            assert sizing.refusal is Refusal.BASELINE_TOO_SMALL
            assert sizing.power is None
        else:
            assert sizing.admitted
            assert sizing.power == pytest.approx(powers[expected - 1], abs=1e-12)


@pytest.mark.parametrize(
    ("p0", "nb", "p1", "n", "alpha"),
    [
        (0.96, 60, 0.93, 50, 0.05),
        (0.5, 20, 0.0, 20, 0.05),
        (1.0, 12, 0.5, 4, 0.05),
        (0.3, 45, 0.1, 45, 0.2),
    ],
)
def test_the_power_of_a_design_is_the_double_sum(
    p0: float, nb: int, p1: float, n: int, alpha: float
) -> None:
    """A test as large as its baseline is allowed; 12 of 12 against 4 hits alpha exactly."""
    sizing = design_power_at(p0, nb, p1, n, alpha=alpha)

    assert sizing.power == pytest.approx(design_power(p0, nb, p1, n, alpha=alpha), abs=1e-12)
    assert sizing.trials == n


@settings(max_examples=30)
@given(
    p0=st.integers(5, 100).map(lambda i: i / 100),
    nb=st.integers(2, 60),
    share=st.floats(0.01, 1),
    power=st.sampled_from([0.5, 0.8, 0.95]),
)
def test_the_detectable_rate_inverts_the_power_of_the_design(
    p0: float, nb: int, share: float, power: float
) -> None:
    """At the rate the power is the target, above it less; None where a rate of 0 has less too."""
    n = max(1, int(nb * share))
    sizing = design_detectable_rate(p0, nb, n, power=power)
    assert sizing.admitted
    rate = sizing.detectable_rate
    if rate is None:
        assert (design_power_at(p0, nb, 0.0, n).power or 0.0) < power
        return

    at = design_power_at(p0, nb, rate, n).power
    assert at is not None
    assert at >= power - 1e-9
    if rate + 1e-6 < p0:
        above = design_power_at(p0, nb, rate + 1e-6, n).power
        assert above is not None
        assert above < power


def test_the_detectable_rate_by_enumeration() -> None:
    """The root of the enumerated power, not of our own."""
    rate = design_detectable_rate(0.9, 40, 30).detectable_rate
    assert rate is not None

    assert design_power(0.9, 40, rate, 30, alpha=0.05) == pytest.approx(0.8, abs=1e-9)


def test_no_rate_is_detectable_with_one_trial() -> None:
    """One failed trial against a baseline of ten at 0.5 has a p-value far above 0.001."""
    sizing = design_detectable_rate(0.5, 10, 1, alpha=0.001)

    assert sizing.admitted
    assert sizing.detectable_rate is None


def test_a_size_whose_power_is_the_target_itself_is_enough() -> None:
    """Falling short is strictly below: 0.7, 0.8, 0.85, 0.8, 0.9 holds 0.8 from the second on."""
    powers = {1: 0.7, 2: 0.8, 3: 0.85, 4: 0.8, 5: 0.9}

    assert find_held_trials("required trials", 5, 0.8, powers.__getitem__).trials == 2


# Exact: resolved against a baseline that exists


@pytest.mark.parametrize(
    ("k", "nb", "p1", "alpha"),
    [
        (38, 40, 0.7, 0.05),
        (60, 60, 0.8, 0.05),
        (27, 50, 0.2, 0.01),
        (12, 12, 0.2, 0.05),
        (45, 90, 0.3, 0.2),
    ],
)
def test_the_required_trials_against_a_baseline_by_brute_force(
    k: int, nb: int, p1: float, alpha: float
) -> None:
    """A sawtooth: it must hold up to the baseline's size; the first crossing comes earlier."""
    powers = [resolved_power(k, nb, p1, n, alpha=alpha) for n in range(1, nb + 1)]
    for target in (0.2, 0.5, 0.8, 0.9, 0.999):
        sizing = resolved_required_trials(k, nb, p1, alpha=alpha, power=target)
        expected = held(powers, target)

        assert sizing.trials == expected
        if expected is None:
            assert sizing.refusal is Refusal.BASELINE_TOO_SMALL
            assert (sizing.power, sizing.first_crossing) == (None, None)
        else:
            assert sizing.power == pytest.approx(powers[expected - 1], abs=1e-12)
            # A power may equal its target exactly (1 − 0.8 is 0.2), which doubles may miss.
            enough = target * (1 - 1e-12)
            reached = next(n for n, power in enumerate(powers, start=1) if power >= enough)
            assert sizing.first_crossing == reached


@pytest.mark.slow("0.8-38-40-0.7", "0.8-30-30-0.7")
@pytest.mark.parametrize(("k", "nb", "p1"), [(38, 40, 0.7), (30, 30, 0.7), (12, 20, 0.2)])
@pytest.mark.parametrize("target", [0.5, 0.8])
def test_the_required_trials_of_the_exact_rule_are_those_of_boschloos_test(
    k: int, nb: int, p1: float, target: float
) -> None:
    """Cutoffs by p-values, powers by scipy: from there on up to Fisher's size, and not before."""

    def power_at(n: int) -> float:
        cutoff = next(x for x in range(n + 1) if boschloo(k, nb, x, n).p_value > 0.05)
        return float(binom.cdf(cutoff - 1, n, p1))

    sizing = exact_required_trials(k, nb, p1, power=target)
    fisher = resolved_required_trials(k, nb, p1, power=target)
    powers = {n: power_at(n) for n in range(2, (fisher.trials or nb) + 1)}

    assert sizing.trials == max(n for n, power in powers.items() if power < target) + 1
    assert sizing.power == pytest.approx(powers[sizing.trials])


def test_a_large_exact_plan_takes_fishers_size_with_its_own_power() -> None:
    """951 of 1000 and a drop of 3 points: 664 trials, which Boschloo's test turns into 84.2 %."""
    sizing = exact_required_trials(951, 1000, 0.921)
    cutoff = regression_cutoff(951, 1000, 664).cutoff
    assert cutoff is not None

    assert sizing.trials == resolved_required_trials(951, 1000, 0.921).trials == 664
    assert sizing.power == pytest.approx(binom.cdf(cutoff - 1, 664, 0.921))


@pytest.mark.parametrize(
    ("k", "nb", "p1", "n"), [(38, 40, 0.7, 40), (12, 12, 0.5, 4), (19, 23, 0.1, 2)]
)
def test_the_power_against_a_baseline_is_a_binomial_tail(
    k: int, nb: int, p1: float, n: int
) -> None:
    """The cutoff is Fisher's, its exact ties included."""
    sizing = resolved_power_at(k, nb, p1, n)

    assert sizing.cutoff == fisher_cutoff(k, nb, n, Fraction(1, 20))
    assert sizing.power == pytest.approx(resolved_power(k, nb, p1, n, alpha=0.05), abs=1e-12)


def test_a_design_is_refused_where_its_resolved_test_is_admitted() -> None:
    """951 of 1000 against 0.925: a baseline still to be drawn costs more than one in hand."""
    assert design_required_trials(0.951, 1000, 0.925).refusal is Refusal.BASELINE_TOO_SMALL
    resolved = resolved_required_trials(951, 1000, 0.925)
    assert (resolved.trials, resolved.first_crossing) == (966, 868)

    # The two sizes again, by scipy: the last that falls short, and the first that does not.
    powers = {}
    for n in (867, 868, 965, 966):
        grid = np.arange(n + 1)
        p_values = np.array([float(_fisher_by_scipy(951, 1000, n, int(x))) for x in grid[-90:]])
        cutoff = int(grid[-90:][np.flatnonzero(p_values > 0.05)[0]])
        powers[n] = float(binom.cdf(cutoff - 1, n, 0.925))
    assert powers[867] < 0.8 <= powers[868]
    assert powers[965] < 0.8 <= powers[966]


def _fisher_by_scipy(k: int, nb: int, n: int, x: int) -> Any:
    from scipy.stats import hypergeom

    return hypergeom.cdf(x, nb + n, k + x, n)


# Wilson: the moving floor


def floor_and_power(p0: float, p1: float, n: int, confidence: float) -> tuple[float, float]:
    """The textbook Wilson bound at the baseline's rate, and Φ of its distance, in 30 digits."""
    with mpmath.workdps(30):
        rate, lower = mpmath.mpf(repr(p0)), mpmath.mpf(repr(p1))
        z = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(repr(confidence)) - 1)
        root = mpmath.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
        floor = (rate + z * z / (2 * n) - z * root) / (1 + z * z / n)
        power = mpmath.ncdf((floor - lower) / mpmath.sqrt(lower * (1 - lower) / n))
        return float(floor), float(power)


rates = st.integers(1, 999).map(lambda i: i / 1000)
confidences = st.sampled_from([0.8, 0.9, 0.95, 0.99, 0.999])


@given(p0=rates, p1=rates, n=st.integers(1, 100_000), confidence=confidences)
def test_the_floor_and_its_power_are_their_formulas(
    p0: float, p1: float, n: int, confidence: float
) -> None:
    """Companion §5.4.1 (methodology 1.4), in mpmath."""
    assume(p1 < p0)
    sizing = floor_power_at(p0, p1, n, confidence=confidence)
    floor, power = floor_and_power(p0, p1, n, confidence)

    assert sizing.floor == pytest.approx(floor, abs=1e-12)
    assert sizing.power == pytest.approx(power, abs=1e-10)


@pytest.mark.parametrize(
    ("p0", "p1", "confidence", "power"),
    [
        (0.87, 0.84, 0.95, 0.8),
        (0.9, 0.8, 0.95, 0.8),
        (0.96, 0.93, 0.99, 0.8),
        (0.5, 0.3, 0.9, 0.95),
        (0.99, 0.5, 0.95, 0.5),
    ],
)
def test_the_floor_needs_no_fewer_trials(
    p0: float, p1: float, confidence: float, power: float
) -> None:
    """A scan from one trial on finds the same number."""
    sizing = floor_required_trials(p0, p1, confidence=confidence, power=power)
    z = norm.ppf(confidence)
    sizes = np.arange(1, 2000)
    root = np.sqrt(p0 * (1 - p0) / sizes + z * z / (4.0 * sizes**2))
    floors = (p0 + z * z / (2 * sizes) - z * root) / (1 + z * z / sizes)
    powers = norm.cdf((floors - p1) / np.sqrt(p1 * (1 - p1) / sizes))
    first = int(np.flatnonzero(powers >= power)[0])

    assert sizing.trials == first + 1
    assert sizing.floor == pytest.approx(floors[first], abs=1e-12)
    assert sizing.power == pytest.approx(powers[first], abs=1e-12)


@given(
    p0=rates,
    n=st.integers(1, 20_000),
    confidence=confidences,
    power=st.sampled_from([0.5, 0.8, 0.95]),
)
def test_the_floors_detectable_rate_inverts_its_power(
    p0: float, n: int, confidence: float, power: float
) -> None:
    """Round trip through mpmath; the rate lies below the floor."""
    sizing = floor_detectable_rate(p0, n, confidence=confidence, power=power)
    rate = sizing.detectable_rate
    assert rate is not None
    assert sizing.floor is not None
    assert rate <= sizing.floor + 1e-12
    assume(rate > 1e-6)

    assert floor_and_power(p0, rate, n, confidence)[1] == pytest.approx(power, abs=1e-5)


def test_a_size_that_does_not_reach_the_power_is_not_called_required() -> None:
    """A gap of 1e-7 takes some 1e14 trials: the answer must have its power, or be none."""
    sizing = floor_required_trials(0.9, 0.8999999)

    assert sizing.trials is None or (sizing.power or 0.0) >= 0.80


def test_a_gap_that_no_count_closes_has_no_size() -> None:
    """A gap of 1e-12 takes more trials than a double counts: no number, rather than a short one."""
    sizing = floor_required_trials(0.9, 0.9 - 1e-12)

    assert (sizing.trials, sizing.power, sizing.floor) == (None, None, None)


# Refusals


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda: design_required_trials(0.0, 100, 0.0), Refusal.ZERO_BASELINE),
        (lambda: design_required_trials(0.9, 100, 0.9), Refusal.ALTERNATIVE_NOT_BELOW_BASELINE),
        (lambda: design_required_trials(0.9, 100, 1.0), Refusal.ALTERNATIVE_NOT_BELOW_BASELINE),
        (lambda: design_required_trials(0.9, 10, 0.89), Refusal.BASELINE_TOO_SMALL),
        (lambda: design_power_at(0.0, 100, 0.5, 200), Refusal.ZERO_BASELINE),
        (lambda: design_power_at(0.9, 100, 0.95, 200), Refusal.ALTERNATIVE_NOT_BELOW_BASELINE),
        (lambda: design_power_at(0.9, 100, 0.8, 101), Refusal.TEST_LARGER_THAN_BASELINE),
        (lambda: design_detectable_rate(0.0, 100, 50), Refusal.ZERO_BASELINE),
        (lambda: design_detectable_rate(0.9, 100, 101), Refusal.TEST_LARGER_THAN_BASELINE),
        (lambda: resolved_required_trials(0, 100, 0.5), Refusal.ZERO_BASELINE),
        (lambda: resolved_required_trials(90, 100, 0.9), Refusal.ALTERNATIVE_NOT_BELOW_BASELINE),
        (lambda: resolved_required_trials(288, 300, 0.93), Refusal.BASELINE_TOO_SMALL),
        (lambda: resolved_power_at(0, 100, 0.5, 50), Refusal.ZERO_BASELINE),
        (lambda: resolved_power_at(57, 100, 0.57, 50), Refusal.ALTERNATIVE_NOT_BELOW_BASELINE),
        (lambda: resolved_power_at(95, 100, 0.85, 200), Refusal.TEST_LARGER_THAN_BASELINE),
        (lambda: floor_required_trials(0.0, 0.5), Refusal.ZERO_BASELINE),
        (lambda: floor_required_trials(0.9, 0.9), Refusal.EMPTY_TOLERANCE_INTERVAL),
        (lambda: floor_power_at(0.9, 0.95, 10), Refusal.EMPTY_TOLERANCE_INTERVAL),
        (lambda: floor_power_at(0.0, 0.0, 10), Refusal.ZERO_BASELINE),
        (lambda: floor_detectable_rate(0.0, 10), Refusal.ZERO_BASELINE),
    ],
)
def test_a_refusal_has_a_reason_and_no_number(
    answer: Callable[[], Sizing], reason: Refusal
) -> None:
    """A design outside the domain is never given a number."""
    sizing = answer()

    assert sizing.refusal is reason
    assert not sizing.admitted
    numbers = (sizing.trials, sizing.power, sizing.detectable_rate, sizing.first_crossing)
    assert (*numbers, sizing.cutoff, sizing.floor) == (None,) * 6


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: design_required_trials(1.1, 100, 0.8), "baseline_rate"),
        (lambda: design_required_trials(0.9, 0, 0.8), "baseline_trials"),
        (lambda: design_required_trials(0.9, 10, -0.1), "alternative_rate"),
        (lambda: design_required_trials(0.9, 10, 0.8, power=1.0), "power"),
        (lambda: design_power_at(0.9, 10, 0.8, 0), "trials"),
        (lambda: design_power_at(0.9, 10, 0.8, 5, alpha=1.0), "alpha"),
        (lambda: design_detectable_rate(0.9, 10, True), "trials"),
        (lambda: resolved_required_trials(11, 10, 0.5), "baseline_successes"),
        (lambda: resolved_power_at(5, 10, math.nan, 5), "alternative_rate"),
        (lambda: floor_required_trials(0.9, 1.5), "minimum_acceptable_rate"),
        (lambda: floor_required_trials(0.9, 0.5, confidence=0.0), "confidence"),
        (lambda: floor_power_at(0.9, 0.5, -1), "trials"),
        (lambda: floor_detectable_rate(-0.1, 10), "baseline_rate"),
        (lambda: floor_detectable_rate(0.9, 10, power=0.0), "power"),
    ],
)
def test_a_bad_sizing_argument_is_named(call: Callable[[], object], argument: str) -> None:
    """One error type, naming what was wrong."""
    with pytest.raises(InvalidArgument) as caught:
        call()

    assert caught.value.argument == argument
