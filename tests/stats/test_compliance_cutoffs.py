"""Compliance cutoffs against their definitions, ties and all."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from functools import cache
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from trialwise.stats.compliance_cutoffs import compliance_cutoff, minimum_trials
from trialwise.stats.rate_intervals import clopper_pearson, wilson_lower
from trialwise.stats.result_types import RULES, Refusal, Rule

RATES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.6, 0.75, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
LEVELS = (0.001, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4)


@cache
def tails(n: int, rate: str) -> list[Fraction]:
    """P(K ≥ 0), …, P(K ≥ n) at a rate written as a decimal."""
    p = Fraction(rate)
    weights = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    sums = [Fraction(0)]
    for weight in reversed(weights):
        sums.append(sums[-1] + weight)
    return sums[:0:-1]


def exact_by_definition(n: int, rate: str, alpha: Fraction) -> int | None:
    return next((k for k, tail in enumerate(tails(n, rate)) if tail <= alpha), None)


def decimal(value: Fraction) -> float:
    """A rational with a short decimal expansion, as the float a user would write for it."""
    written = float(value)
    assert Fraction(repr(written)) == value, "the decimal is too long for a float"
    return written


# The Wilson rule


@cache
def wilson_bounds(n: int, alpha: float) -> list[mpmath.mpf]:
    """The textbook lower bounds of 0 … n successes, in 30 digits."""
    with mpmath.workdps(30):
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(repr(alpha)))
        rates = [mpmath.mpf(k) / n for k in range(n + 1)]
        return [
            (p + z * z / (2 * n) - z * mpmath.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
            / (1 + z * z / n)
            for p in rates
        ]


@pytest.mark.slow("0.025", "0.05", "0.4")
@pytest.mark.parametrize("alpha", LEVELS)
def test_the_wilson_cutoff_is_the_first_bound_to_clear_the_requirement(alpha: float) -> None:
    """min{k : WilsonLower(k, n) ≥ p}, found by looking at every k."""
    with mpmath.workdps(30):
        for n in (*range(1, 41), 100, 268):
            for rate in RATES:
                required = mpmath.mpf(repr(rate))
                expected = next(
                    (k for k, low in enumerate(wilson_bounds(n, alpha)) if low >= required), None
                )
                assert compliance_cutoff(rate, n, alpha=alpha, rule="wilson").cutoff == expected, (
                    n,
                    rate,
                )


@pytest.mark.parametrize("n", [1, 3, 52, 53, 300, 1000])
def test_the_wilson_cutoff_and_the_reported_bound_never_disagree(n: int) -> None:
    """A verdict by the count is the verdict a reader would reach from the printed bound."""
    for rate in RATES:
        cutoff = compliance_cutoff(rate, n, rule="wilson").cutoff
        last_failing = n if cutoff is None else cutoff - 1
        assert last_failing < 0 or wilson_lower(last_failing, n) < rate
        assert cutoff is None or wilson_lower(cutoff, n) >= rate


@pytest.mark.slow
def test_the_wilson_cutoff_at_one_half_is_the_rate_itself() -> None:
    """At alpha = ½ the bound is the observed rate: ⌈np⌉, with np read as decimals."""
    for hundredths in range(1, 100):
        for n in range(1, 201):
            design = compliance_cutoff(hundredths / 100, n, alpha=0.5, rule="wilson")
            assert design.cutoff == -(-hundredths * n // 100)


@pytest.mark.parametrize(
    ("rate", "n"),
    [(0.5, 56_796), (0.5, 61_829), (0.5, 77_193), (0.5, 99_559), (0.5, 144_842), (1e-300, 20)],
)
def test_the_wilson_cutoff_just_past_a_whole_number(rate: float, n: int) -> None:
    """Where np + z√(np(1−p)) lies a hair above c, the cutoff is c + 1 and not c + 2."""
    cutoff = compliance_cutoff(rate, n, rule="wilson").cutoff

    assert cutoff is not None
    assert wilson_lower(cutoff, n) >= rate
    assert wilson_lower(cutoff - 1, n) < rate


@pytest.mark.slow
def test_the_wilson_cutoff_of_every_large_run() -> None:
    """⌈np + z√(np(1−p))⌉ for every n to 200,000."""
    with mpmath.workdps(30):
        z = float(mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf("0.9")))
    for rate in (0.5, 0.8, 0.9, 0.99):
        for n in range(1000, 200_000):
            edge = n * rate + z * math.sqrt(n * rate * (1 - rate))
            if min(edge % 1, -edge % 1) > 1e-9:
                assert compliance_cutoff(rate, n, rule="wilson").cutoff == math.ceil(edge), (
                    rate,
                    n,
                )


def test_no_success_never_shows_a_rate() -> None:
    """The Wilson bound of 0 successes is anchored at 0: at no level does it clear a requirement."""
    for alpha in (0.6, 0.75, 0.9, 0.99):
        for rate in (0.01, 0.1, 0.5):
            cutoff = compliance_cutoff(rate, 10, alpha=alpha, rule="wilson").cutoff
            assert cutoff is not None
            assert cutoff >= 1


# The exact rule


@pytest.mark.slow("0.3", "0.95")
@pytest.mark.parametrize("rate", ["0.05", "0.3", "0.5", "0.6", "0.75", "0.9", "0.95", "0.99"])
def test_the_exact_cutoff_is_the_first_tail_within_alpha(rate: str) -> None:
    """min{k : P(K ≥ k) ≤ alpha} in rationals, for every n to 40."""
    for n in range(1, 41):
        for alpha in LEVELS:
            expected = exact_by_definition(n, rate, Fraction(repr(alpha)))
            design = compliance_cutoff(float(rate), n, alpha=alpha, rule="exact")
            assert design.cutoff == expected, (n, alpha)
            assert design.refusal is (Refusal.COMPLIANCE_INFEASIBLE if expected is None else None)


@pytest.mark.parametrize("rate", [f"0.{tenth}" for tenth in range(1, 10)])
def test_every_tie_is_on_the_passing_side(rate: str) -> None:
    """With alpha equal to P(K ≥ k) the cutoff is k; with alpha a hair less it is k + 1.

    At rates in tenths every tail of up to 12 trials is a decimal of at most 12 digits, which a
    float carries exactly as written. Doubles alone get hundreds of these wrong.
    """
    for n in range(1, 13):
        for k in range(1, n + 1):
            tie = tails(n, rate)[k]
            at = compliance_cutoff(float(rate), n, alpha=decimal(tie), rule="exact")
            below = compliance_cutoff(
                float(rate), n, alpha=decimal(tie - Fraction(1, 10**13)), rule="exact"
            )
            assert at.cutoff == k
            assert below.cutoff == (k + 1 if k < n else None)


def test_doubles_alone_would_miss_ties() -> None:
    """The ties above are a real trap: scipy's tail lands on the failing side of some."""
    misses = sum(
        bool(binom.sf(k - 1, n, float(rate)) > decimal(tails(n, rate)[k]))
        for rate in ("0.1", "0.3", "0.6", "0.9")
        for n in range(1, 13)
        for k in range(1, n + 1)
    )

    assert misses > 0


@pytest.mark.parametrize(
    ("rate", "n", "alpha", "cutoff"),
    [
        (0.5, 5, 0.03125, 5),
        (0.6, 10, 0.0463574016, 9),
        (0.9, 100, 0.05, 96),
        (0.95, 58, 0.05, None),
    ],
)
def test_published_boundaries(rate: float, n: int, alpha: float, cutoff: int | None) -> None:
    """The two exact ties and the two neighbours of the feasibility limit."""
    assert compliance_cutoff(rate, n, alpha=alpha, rule="exact").cutoff == cutoff


@pytest.mark.slow
@given(
    n=st.integers(1, 3000),
    thousandths=st.integers(1, 999),
    alpha=st.sampled_from((0.001, 0.01, 0.05, 0.1, 0.3, 0.7)),
)
def test_the_exact_cutoff_agrees_with_scipy(n: int, thousandths: int, alpha: float) -> None:
    """One below the cutoff the tail is above alpha; at the cutoff it is not."""
    p = thousandths / 1000
    cutoff = compliance_cutoff(p, n, alpha=alpha, rule="exact").cutoff

    assert binom.sf((n if cutoff is None else cutoff - 1) - 1, n, p) > alpha * (1 - 1e-9)
    assert cutoff is None or binom.sf(cutoff - 1, n, p) <= alpha * (1 + 1e-9)


@given(n=st.integers(1, 400), successes=st.integers(0, 400), thousandths=st.integers(1, 999))
def test_the_exact_cutoff_is_the_exact_bound_read_backwards(
    n: int, successes: int, thousandths: int
) -> None:
    """K reaches the cutoff just where its Clopper–Pearson lower bound reaches the requirement."""
    k, p = min(successes, n), thousandths / 1000
    cutoff = compliance_cutoff(p, n, rule="exact").cutoff
    low = clopper_pearson(k, n, side="lower").low

    if abs(low - p) > 1e-9:
        assert (cutoff is not None and k >= cutoff) == (low > p)


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_a_hundred_thousand_trials(rate: float, alpha: float) -> None:
    """Both rules at a large size: against scipy, and against the printed bound."""
    n = 100_000
    exact = compliance_cutoff(rate, n, alpha=alpha, rule="exact")
    assert exact.cutoff is not None
    assert binom.sf(exact.cutoff - 1, n, rate) <= alpha < binom.sf(exact.cutoff - 2, n, rate)

    wilson = compliance_cutoff(rate, n, alpha=alpha, rule="wilson")
    assert wilson.cutoff is not None
    bounds = [wilson_lower(wilson.cutoff - j, n, confidence=1 - alpha) for j in (0, 1)]
    assert bounds[0] >= rate > bounds[1]


# What the design says about itself


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("rate", [0.3, 0.8, 0.95])
def test_the_achieved_size_is_the_chance_to_pass_at_the_requirement(
    rule: Rule, rate: float
) -> None:
    """P(K ≥ cutoff) by scipy, at most alpha under the exact rule, 0 where nothing can pass."""
    for n in (1, 7, 40, 52, 59, 333):
        design = compliance_cutoff(rate, n, rule=rule)
        if design.cutoff is None:
            assert design.achieved_size == 0
            assert design.power(1.0) == 0
            assert design.displayed_rate is None
            continue
        assert design.achieved_size == pytest.approx(
            binom.sf(design.cutoff - 1, n, rate), rel=1e-10
        )
        assert design.displayed_rate == round(design.cutoff / n, 6)
        for true_rate in (0.0, 0.5, rate, 0.99, 1.0):
            chance = binom.sf(design.cutoff - 1, n, true_rate)
            assert design.power(true_rate) == pytest.approx(chance, rel=1e-10)
        if rule != "wilson":
            assert design.achieved_size <= 0.05


def test_the_wilson_rule_may_exceed_its_level() -> None:
    """25 of 25 at 0.9 passes a 5 % Wilson rule with 7.2 % probability: the size says so."""
    design = compliance_cutoff(0.9, 25, rule="wilson")

    assert design.cutoff == 25
    assert design.achieved_size == pytest.approx(0.9**25, rel=1e-12)
    assert design.achieved_size > 0.05


@given(rate=st.floats(0.01, 0.99), n=st.integers(1, 500), low=st.floats(0, 1), high=st.floats(0, 1))
def test_power_rises_with_the_true_rate(rate: float, n: int, low: float, high: float) -> None:
    """A better system passes more often."""
    design = compliance_cutoff(rate, n, rule="wilson")
    low, high = sorted((low, high))

    assert design.power(low) <= design.power(high) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_the_cutoff_rises_with_trials_and_requirement_and_falls_with_alpha(rule: Rule) -> None:
    """More trials, a higher requirement or a stricter level never lower the bar."""

    def bar(rate: float, n: int, alpha: float) -> float:
        cutoff = compliance_cutoff(rate, n, alpha=alpha, rule=rule).cutoff
        return math.inf if cutoff is None else cutoff

    for rate in RATES:
        for alpha in LEVELS:
            feasible = [bar(rate, n, alpha) for n in range(1, 200)]
            finite = [value for value in feasible if value < math.inf]
            assert all(low <= high for low, high in pairwise(finite))
            assert feasible[len(feasible) - len(finite) :] == finite, "feasible stays feasible"
    for n in (10, 60, 300):
        for alpha in LEVELS:
            bars = [bar(rate, n, alpha) for rate in RATES]
            assert all(low <= high for low, high in pairwise(bars))
        for rate in RATES:
            bars = [bar(rate, n, alpha) for alpha in LEVELS]
            assert all(low >= high for low, high in pairwise(bars))


# Feasibility


@pytest.mark.parametrize("alpha", ["0.001", "0.01", "0.05", "0.1", "0.2", "0.5", "0.9"])
def test_exact_minimum_trials_is_the_first_power_within_alpha(alpha: str) -> None:
    """The smallest n with p^n ≤ alpha in rationals, for every p in hundredths."""
    level = Fraction(alpha)
    for hundredths in range(1, 100):
        p, n = Fraction(hundredths, 100), 1
        power = p
        while power > level:
            power, n = power * p, n + 1
        assert minimum_trials(hundredths / 100, alpha=float(alpha), rule="exact") == n


@pytest.mark.parametrize("tenths", range(1, 10))
def test_exact_minimum_trials_at_a_tie(tenths: int) -> None:
    """Where p^n equals alpha exactly, n trials are enough; 0.5⁵ = 0.03125 is one of many."""
    for n in range(1, 15):
        tie = Fraction(tenths, 10) ** n
        assert minimum_trials(tenths / 10, alpha=decimal(tie), rule="exact") == n


@pytest.mark.parametrize("alpha", LEVELS)
def test_wilson_minimum_trials_is_the_first_perfect_run_to_clear(alpha: float) -> None:
    """The smallest n with n/(n + z²) ≥ p, in 30 digits."""
    with mpmath.workdps(30):
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(repr(alpha)))
        for rate in RATES:
            required, n = mpmath.mpf(repr(rate)), minimum_trials(rate, alpha=alpha, rule="wilson")
            assert n / (n + z * z) >= required
            assert n == 1 or (n - 1) / (n - 1 + z * z) < required


@pytest.mark.parametrize(
    ("rate", "alpha", "wilson", "exact"),
    [(0.95, 0.05, 52, 59), (0.995, 0.05, 539, 598), (0.9, 0.01, 49, 44)],
)
def test_published_minimum_trials(rate: float, alpha: float, wilson: int, exact: int) -> None:
    """The same requirement under both rules; the exact one is sometimes the smaller."""
    assert minimum_trials(rate, alpha=alpha, rule="wilson") == wilson
    assert minimum_trials(rate, alpha=alpha, rule="exact") == exact


@given(rate=st.floats(0.001, 0.999), alpha=st.floats(1e-6, 0.999), rule=st.sampled_from(RULES))
def test_a_design_is_refused_just_below_its_minimum(rate: float, alpha: float, rule: Rule) -> None:
    """At the minimum a perfect run passes; with one trial fewer nothing does."""
    n = minimum_trials(rate, alpha=alpha, rule=rule)
    design = compliance_cutoff(rate, n, alpha=alpha, rule=rule)

    assert design.minimum_trials == n
    assert design.cutoff is not None
    assert design.cutoff <= n
    if n > 1:
        below = compliance_cutoff(rate, n - 1, alpha=alpha, rule=rule)
        assert below.cutoff is None
        assert below.refusal is Refusal.COMPLIANCE_INFEASIBLE


@pytest.mark.slow
def test_ten_nines_do_not_take_forever() -> None:
    """log alpha / log p decides at once where one trial moves p^n by less than the band."""
    code = (
        "from trialwise.stats.compliance_cutoffs import minimum_trials;"
        "print(minimum_trials(0.9999999999, rule='exact'))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=5, check=True
    )
    with mpmath.workdps(40):
        quotient = mpmath.log(mpmath.mpf("0.05")) / mpmath.log(mpmath.mpf("0.9999999999"))

    assert int(answer.stdout) == math.ceil(quotient)
