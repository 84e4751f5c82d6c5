"""Planning formulas against mpmath, exact sizing against full scans in scipy and rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, norm

from trialwise.errors import InvalidArgument
from trialwise.stats.regression_cutoffs import design_false_alarm, design_power, regression_cutoff
from trialwise.stats.result_types import RULES, Rule
from trialwise.stats.toolbox import rate_sizing as power_module
from trialwise.stats.toolbox.detectable_drops import (
    minimum_detectable_degradation,
    minimum_detectable_effect,
    normal_power,
)
from trialwise.stats.toolbox.rate_sizing import (
    compliance_powers,
    compliance_sizing,
    normal_sizing,
    precision_trials,
)

rates = st.integers(1, 999).map(lambda i: i / 1000)
levels = st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.2])
targets = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


# The normal approximation


def planned_size(p0: str, effect: str, alpha: str, power: str) -> Any:
    """((z_α √(p0 q0) + z_β √(p1 q1)) / δ)² in thirty digits, before it is rounded up."""
    with mpmath.workdps(30):
        reference, drop = mpmath.mpf(p0), mpmath.mpf(effect)
        lower = reference - drop
        z_alpha = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(alpha))
        z_beta = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(power) - 1)
        spread = z_alpha * mpmath.sqrt(reference * (1 - reference))
        return ((spread + z_beta * mpmath.sqrt(lower * (1 - lower))) / drop) ** 2


@pytest.mark.parametrize(
    ("effect", "power", "expected"),
    [
        *(("0.05", power, n) for power, n in (("0.8", 150), ("0.9", 221), ("0.95", 291))),
        *(("0.10", power, n) for power, n in (("0.8", 44), ("0.9", 67), ("0.95", 90))),
        *(("0.03", power, n) for power, n in (("0.8", 383), ("0.9", 555), ("0.95", 720))),
    ],
)
def test_the_companion_table_of_drops_from_95_percent(
    effect: str, power: str, expected: int
) -> None:
    """Companion §5.4 by the errata: the printed figures used rounded quantiles."""
    assert math.ceil(planned_size("0.95", effect, "0.05", power)) == expected
    assert normal_sizing(0.95, float(effect), power=float(power)).required_trials == expected


@pytest.mark.parametrize(
    ("threshold", "effect", "expected"),
    [
        ("0.95", "0.05", 150),
        ("0.95", "0.02", 822),
        ("0.99", "0.02", 236),
        ("0.99", "0.01", 793),
        ("0.995", "0.01", 477),
        ("0.995", "0.005", 1597),
        ("0.999", "0.005", 548),
        ("0.999", "0.001", 8027),
    ],
)
def test_the_companion_tables_of_service_levels(threshold: str, effect: str, expected: int) -> None:
    """Companion §3.6, §5.5 and §6.2 at 95 % confidence and 80 % power, by the errata."""
    sizing = normal_sizing(float(threshold), float(effect))

    assert math.ceil(planned_size(threshold, effect, "0.05", "0.8")) == expected
    assert sizing.required_trials == expected
    assert sizing.achieved_power >= 0.80


def test_the_highest_service_level_is_just_above_8026() -> None:
    """The errata give 8,026.30 before rounding up."""
    assert float(planned_size("0.999", "0.001", "0.05", "0.8")) == pytest.approx(8026.30, abs=0.005)


@pytest.mark.parametrize(
    ("margin", "expected"), [(0.05, 73), (0.03, 203), (0.02, 457), (0.01, 1825)]
)
def test_the_companion_table_of_precision(margin: float, expected: int) -> None:
    """Companion §2.4 at a rate of 0.95, by the errata (456.17 is 457 trials)."""
    assert precision_trials(0.95, margin) == expected
    assert math.ceil(norm.ppf(0.975) ** 2 * 0.95 * 0.05 / margin**2) == expected


def test_the_power_of_a_hundred_trials_is_68_percent() -> None:
    """Companion §5.3: a drop from 0.95 to 0.90 at 5 %."""
    gap = 0.05 - norm.ppf(0.95) * math.sqrt(0.95 * 0.05 / 100)

    assert normal_power(0.95, 0.90, 100) == pytest.approx(norm.cdf(gap / 0.03), abs=1e-14)
    assert round(normal_power(0.95, 0.90, 100), 3) == 0.681


@given(p0=rates, drop=rates, n=st.integers(1, 100_000), alpha=levels)
def test_normal_power_is_its_formula(p0: float, drop: float, n: int, alpha: float) -> None:
    """Against scipy's normal distribution, over the whole domain."""
    p1 = p0 - drop
    assume(p1 > 0)
    gap = p0 - p1 - norm.isf(alpha) * math.sqrt(p0 * (1 - p0) / n)
    expected = norm.cdf(gap / math.sqrt(p1 * (1 - p1) / n))

    assert normal_power(p0, p1, n, alpha=alpha) == pytest.approx(expected, abs=1e-12)


@given(p0=rates, drop=rates, alpha=levels, power=targets)
def test_a_planned_size_is_the_smallest_that_has_its_power(
    p0: float, drop: float, alpha: float, power: float
) -> None:
    """The formula inverts the power: enough at n, too little at n − 1."""
    assume(drop < p0)
    sizing = normal_sizing(p0, drop, alpha=alpha, power=power)
    n, lower = sizing.required_trials, p0 - drop
    assume(lower > 1e-6)

    assert sizing.achieved_power >= power - 1e-12
    assert normal_power(p0, lower, n, alpha=alpha) == pytest.approx(sizing.achieved_power, abs=1e-9)
    if n > 1:
        assert normal_power(p0, lower, n - 1, alpha=alpha) < power + 1e-9


@given(p0=rates, n=st.integers(1, 20_000), alpha=levels, power=targets)
def test_the_detectable_effect_inverts_the_power(
    p0: float, n: int, alpha: float, power: float
) -> None:
    """At the smallest detectable drop the power is the target; without one, no drop has it."""
    drop = minimum_detectable_effect(p0, n, alpha=alpha, power=power)
    if drop is None:
        # Not even a rate of 0 lies below the approximate acceptance limit.
        assert p0 <= norm.isf(alpha) * math.sqrt(p0 * (1 - p0) / n) + 1e-12
    elif p0 - drop > 1e-9:
        at = normal_power(p0, p0 - drop, n, alpha=alpha)
        assert at == pytest.approx(power, abs=1e-6)


@given(rate=rates, margin=st.floats(0.001, 0.4), confidence=st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_precision_is_reached_and_not_before(rate: float, margin: float, confidence: float) -> None:
    """The half-width z √(p(1−p)/n) is at most the margin at n and more at n − 1."""
    n = precision_trials(rate, margin, confidence=confidence)
    z = norm.ppf((1 + confidence) / 2)

    assert z * math.sqrt(rate * (1 - rate) / n) <= margin * (1 + 1e-12)
    if n > 1:
        assert z * math.sqrt(rate * (1 - rate) / (n - 1)) > margin * (1 - 1e-12)


def test_a_certain_rate_needs_a_single_trial() -> None:
    """Nothing varies at 0 and 1, and no run has zero trials."""
    assert precision_trials(0.0, 0.01) == precision_trials(1.0, 0.01) == 1


# Exact compliance sizing


def binomial_tail_exactly(k: int, n: int, rate: float) -> Fraction:
    p = Fraction(repr(rate))
    return sum(
        (math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), start=Fraction(0)
    )


def exact_cutoffs(sizes: Any, rate: float, alpha: float) -> Any:
    """min{k : P(K ≥ k) ≤ alpha} by scipy, with rationals where doubles are too close to say."""
    cutoffs = binom.isf(alpha, sizes, rate).astype(int) + 1
    for i, n in enumerate(map(int, sizes)):
        k = int(cutoffs[i])
        nearby = binom.sf(np.arange(k - 3, k + 2), n, rate)
        if np.any(np.abs(nearby - alpha) <= 1e-9 * alpha):
            level = Fraction(repr(alpha))
            k = next(
                j for j in range(k - 2, n + 2) if binomial_tail_exactly(max(j, 0), n, rate) <= level
            )
        cutoffs[i] = k
    return cutoffs


def wilson_cutoffs(sizes: Any, rate: float, alpha: float) -> Any:
    """The smallest count whose textbook Wilson lower bound clears the rate; n + 1 without one."""
    z = norm.isf(alpha)
    cutoffs = []
    for n in map(int, sizes):
        observed = np.arange(n + 1) / n
        root = np.sqrt(observed * (1 - observed) / n + z * z / (4 * n * n))
        bound = (observed + z * z / (2 * n) - z * root) / (1 + z * z / n)
        clears = np.flatnonzero(bound >= rate)
        cutoffs.append(int(clears[0]) if clears.size else n + 1)
    return np.array(cutoffs)


def powers_by_scan(required: float, better: float, alpha: float, rule: Rule, limit: int) -> Any:
    sizes = np.arange(1, limit + 1)
    cutoffs = (wilson_cutoffs if rule == "wilson" else exact_cutoffs)(sizes, required, alpha)
    return binom.sf(cutoffs - 1, sizes, better)


TIED = [
    # P(K ≥ 5) = 0.5⁵, P(K ≥ 9 of 10) at 0.6 and 0.9⁷: alpha is met exactly, so the count is enough.
    (0.5, 0.75, 0.03125, 200),
    (0.6, 0.8, 0.0463574016, 200),
    (0.9, 0.97, 0.4782969, 200),
    (0.2, 0.5, 0.04, 200),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("required", "better", "alpha", "limit"),
    [
        (0.95, 0.97, 0.05, 2000),
        (0.99, 0.995, 0.01, 2000),
        (0.5, 0.6, 0.1, 500),
        (0.1, 0.2, 0.05, 500),
        (0.8, 1.0, 0.001, 300),
        (0.001, 0.01, 1e-6, 300),
        (0.3, 0.31, 0.49, 300),
        *TIED,
    ],
)
def test_the_powers_of_every_size_are_those_of_a_full_scan(
    required: float, better: float, alpha: float, limit: int, rule: Rule
) -> None:
    """Element by element, infeasible sizes and exact ties included."""
    got = compliance_powers(required, better, alpha, rule, limit)
    expected = powers_by_scan(required, better, alpha, rule, limit)

    assert len(got) == limit
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-13)


def test_the_powers_with_ties_are_those_of_rationals() -> None:
    """A second route without scipy: cutoffs and tails in fractions."""
    level, required, better = Fraction(1, 32), 0.5, 0.75
    got = compliance_powers(required, better, 0.03125, "exact", 40)
    for n, power in enumerate(got, start=1):
        cutoff = next(k for k in range(n + 2) if binomial_tail_exactly(k, n, required) <= level)
        assert power == pytest.approx(float(binomial_tail_exactly(cutoff, n, better)), abs=1e-14)


def test_the_powers_at_a_level_above_one_half() -> None:
    """alpha = 0.9 asks for one success at least: the bound of none is 0 and clears nothing."""
    assert compliance_powers(0.5, 0.75, 0.9, "wilson", 1) == pytest.approx([0.75])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("required", "effect", "alpha", "power"),
    [
        (0.9, 0.05, 0.05, 0.8),
        (0.5, 0.1, 0.1, 0.9),
        (0.95, 0.03, 0.05, 0.8),
        (0.8, 0.15, 0.01, 0.95),
    ],
)
def test_a_size_holds_from_there_on_and_not_one_before(
    *,
    required: float,
    effect: float,
    alpha: float,
    power: float,
    rule: Rule,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Required is one more than the last size that falls short; the first crossing may be less."""
    monkeypatch.setattr(power_module, "LIMIT", 1500)
    sizing = compliance_sizing(required, effect, alpha=alpha, power=power, rule=rule)
    powers = powers_by_scan(required, required + effect, alpha, rule, 1500)
    short = np.flatnonzero(powers < power) + 1

    assert sizing.required_trials == short[-1] + 1
    assert sizing.first_crossing == np.flatnonzero(powers >= power)[0] + 1
    assert sizing.achieved_power == pytest.approx(powers[short[-1]], abs=1e-12)
    assert sizing.rule == rule
    assert sizing.alternative_kind == "MARGIN"


@pytest.mark.parametrize(
    ("required", "better", "alpha", "power"),
    [
        pytest.param(0.95, 0.97, 0.05, 0.8, marks=pytest.mark.slow),
        pytest.param(0.99, 0.995, 0.05, 0.8, marks=pytest.mark.slow),
        pytest.param(0.95, 0.98, 0.05, 0.8, marks=pytest.mark.slow),
    ],
)
def test_a_size_at_the_full_limit(
    required: float, better: float, alpha: float, power: float
) -> None:
    """All 20,000 sizes in scipy, and in ours."""
    powers = powers_by_scan(required, better, alpha, "exact", power_module.LIMIT)
    sizing = compliance_sizing(required, alternative_rate=better, alpha=alpha, power=power)

    assert sizing.required_trials == int(np.flatnonzero(powers < power)[-1]) + 2
    assert sizing.first_crossing == int(np.flatnonzero(powers >= power)[0]) + 1
    assert sizing.achieved_power == pytest.approx(powers[sizing.required_trials - 1], abs=1e-11)


def test_a_size_beyond_the_limit_is_not_invented(monkeypatch: pytest.MonkeyPatch) -> None:
    """694 trials are needed; where only 693 are looked at there is no answer, only a crossing."""
    monkeypatch.setattr(power_module, "LIMIT", 693)
    sizing = compliance_sizing(0.95, 0.02)

    assert powers_by_scan(0.95, 0.97, 0.05, "exact", 693)[-1] < 0.80
    assert sizing.required_trials is None
    assert sizing.achieved_power is None
    assert sizing.first_crossing == 601


def test_nothing_crosses_where_nothing_is_feasible(monkeypatch: pytest.MonkeyPatch) -> None:
    """59 trials are the fewest that show 0.95: below, no power at all."""
    monkeypatch.setattr(power_module, "LIMIT", 58)
    sizing = compliance_sizing(0.95, 0.02)

    assert (sizing.required_trials, sizing.first_crossing) == (None, None)


def test_a_power_equal_to_the_target_is_enough() -> None:
    """Two successes of two are needed, and 0.9² is 0.81 exactly."""
    assert compliance_sizing(0.2, alternative_rate=0.9, power=0.81).first_crossing == 2


@pytest.mark.parametrize(
    ("required", "effect", "kind", "alternative"),
    [
        (0.95, 0.02, "MARGIN", 0.97),
        (0.7, 0.2, "MARGIN", 0.9),
        (0.9, 0.1, "MIDWAY", 0.95),
        (0.7, 0.3, "MIDWAY", 0.85),
        (0.99, 0.02, "MIDWAY", 0.995),
    ],
)
def test_the_alternative_is_chosen_in_decimals(
    required: float, effect: float, kind: str, alternative: float
) -> None:
    """0.7 + 0.3 reaches 1 although doubles say 0.9999999999999999 or less."""
    sizing = compliance_sizing(required, effect)

    assert (sizing.alternative_kind, sizing.alternative_rate) == (kind, alternative)


def test_a_declared_alternative_is_taken_as_it_is() -> None:
    """Whatever the effect says."""
    sizing = compliance_sizing(0.95, 0.02, alternative_rate=0.98)

    assert (sizing.alternative_kind, sizing.alternative_rate) == ("DECLARED", 0.98)
    assert compliance_sizing(0.95, alternative_rate=1.0).required_trials == 59


# Exact regression power


def fisher_cutoff(k: int, nb: int, n: int, alpha: Fraction) -> int:
    """The smallest x with a one-sided Fisher p-value above alpha, by counting in integers."""
    for x in range(n + 1):
        total = k + x
        ways = sum(
            math.comb(total, j) * math.comb(nb + n - total, n - j)
            for j in range(max(0, total - nb), x + 1)
        )
        if Fraction(ways, math.comb(nb + n, n)) > alpha:
            return x
    raise AssertionError("P(X ≤ n) is 1")


def wilson_regression_cutoff(k: int, nb: int, n: int, alpha: float) -> int:
    with mpmath.workdps(40):
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(repr(alpha)))

        def lower(rate: Any, size: int) -> Any:
            spread = mpmath.sqrt(rate * (1 - rate) / size + z * z / (4 * size * size))
            return (rate + z * z / (2 * size) - z * spread) / (1 + z * z / size)

        if k == 0:
            return 0
        rate = lower(mpmath.mpf(1), nb) if k == nb else mpmath.mpf(k) / nb
        return int(mpmath.ceil(n * lower(rate, n)))


def design_power_by_enumeration(
    p0: float, p1: float, nb: int, n: int, *, alpha: float, rule: Rule
) -> float:
    level = Fraction(repr(alpha))
    cutoffs = [
        fisher_cutoff(k, nb, n, level)
        if rule == "fisher"
        else wilson_regression_cutoff(k, nb, n, alpha)
        for k in range(nb + 1)
    ]
    weights = binom.pmf(np.arange(nb + 1), nb, p0)
    return float(np.sum(weights * binom.cdf(np.array(cutoffs) - 1, n, p1)))


# The cutoffs of Boschloo's test have an independent route in tests/calibration.
@pytest.mark.parametrize("rule", ["fisher", "wilson"])
@pytest.mark.parametrize(
    ("p0", "p1", "nb", "n", "alpha"),
    [
        (0.9, 0.8, 30, 25, 0.05),
        (0.9, 0.9, 40, 40, 0.05),
        (0.5, 0.1, 12, 7, 0.01),
        (0.99, 0.6, 60, 12, 0.1),
        (0.05, 0.01, 25, 25, 0.2),
        (1.0, 0.9, 12, 4, 0.05),
        (0.0, 0.0, 10, 10, 0.05),
        (0.7, 0.0, 20, 5, 0.05),
        (0.7, 1.0, 20, 5, 0.05),
        (0.8, 0.7, 15, 30, 0.05),
    ],
)
def test_design_power_is_the_double_sum(
    p0: float, p1: float, nb: int, n: int, *, alpha: float, rule: Rule
) -> None:
    """Every baseline with its own cutoff, by integers and mpmath; ties and certain rates too."""
    expected = design_power_by_enumeration(p0, p1, nb, n, alpha=alpha, rule=rule)

    assert design_power(p0, p1, nb, n, alpha=alpha, rule=rule) == pytest.approx(expected, abs=1e-12)


def test_design_false_alarm_is_the_power_without_a_change() -> None:
    """And for the Wilson rule it is far above its nominal level when the baseline is small."""
    expected = design_power_by_enumeration(0.9, 0.9, 50, 120, alpha=0.05, rule="wilson")

    assert design_false_alarm(0.9, 50, 120, rule="wilson") == pytest.approx(expected, abs=1e-12)
    assert expected > 0.15


@settings(max_examples=25)
@given(
    p0=st.integers(5, 99).map(lambda i: i / 100),
    nb=st.integers(2, 60),
    n=st.integers(1, 60),
    alpha=levels,
    power=targets,
    rule=st.sampled_from(RULES),
)
def test_the_detectable_degradation_inverts_the_design_power(
    *, p0: float, nb: int, n: int, alpha: float, power: float, rule: Rule
) -> None:
    """Power at the drop is the target, a hair less of a drop has less, and None means never."""
    drop = minimum_detectable_degradation(p0, nb, n, alpha=alpha, power=power, rule=rule)
    if drop is None:
        assert design_power(p0, 0.0, nb, n, alpha=alpha, rule=rule) < power
        return

    at = design_power(p0, max(0.0, p0 - drop), nb, n, alpha=alpha, rule=rule)
    before = design_power(p0, p0 - drop * (1 - 1e-6), nb, n, alpha=alpha, rule=rule)
    assert at >= power - 1e-9
    assert before < power or drop < 1e-9


def test_the_detectable_degradation_of_a_small_design_by_enumeration() -> None:
    """The root of the enumerated power, not of our own."""
    drop = minimum_detectable_degradation(0.9, 30, 25, rule="fisher")
    assert drop is not None

    at = design_power_by_enumeration(0.9, 0.9 - drop, 30, 25, alpha=0.05, rule="fisher")
    assert at == pytest.approx(0.80, abs=1e-9)


def test_no_degradation_is_detectable_with_one_trial() -> None:
    """One trial at alpha = 0.001 against a baseline of ten never rejects."""
    assert minimum_detectable_degradation(0.5, 10, 1, alpha=0.001, rule="fisher") is None


# What is refused


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: normal_power(0.9, 0.9, 100), "alternative_rate"),
        (lambda: normal_power(1.0, 0.9, 100), "reference_rate"),
        (lambda: normal_power(0.9, 0.8, 0), "trials"),
        (lambda: normal_power(0.9, 0.8, 10, alpha=0.0), "alpha"),
        (lambda: normal_power(0.9, math.nan, 10), "alternative_rate"),
        (lambda: normal_sizing(0.9, 0.9), "effect"),
        (lambda: normal_sizing(0.9, 0.95), "effect"),
        (lambda: normal_sizing(0.9, 0.0), "effect"),
        (lambda: normal_sizing(0.9, 0.1, power=1.0), "power"),
        (lambda: minimum_detectable_effect(0.0, 10), "reference_rate"),
        (lambda: minimum_detectable_effect(0.5, 10, power=math.inf), "power"),
        (lambda: precision_trials(1.1, 0.1), "rate"),
        (lambda: precision_trials(0.5, 0.0), "margin"),
        (lambda: precision_trials(0.5, 0.1, confidence=1.0), "confidence"),
        (lambda: compliance_sizing(1.0, 0.1), "required_rate"),
        (lambda: compliance_sizing(0.9), "effect"),
        (lambda: compliance_sizing(0.9, -0.1), "effect"),
        (lambda: compliance_sizing(0.9, alternative_rate=0.9), "alternative_rate"),
        (lambda: compliance_sizing(0.9, alternative_rate=1.1), "alternative_rate"),
        (lambda: compliance_sizing(0.9, 0.05, rule="bayes"), "rule"),  # type: ignore[arg-type]
        (lambda: minimum_detectable_degradation(0.9, 0, 10, rule="fisher"), "baseline_trials"),
        (lambda: minimum_detectable_degradation(0.9, 10, 2.5, rule="fisher"), "trials"),  # type: ignore[arg-type]
        (lambda: minimum_detectable_degradation(1.5, 10, 10, rule="fisher"), "baseline_rate"),
    ],
)
def test_a_bad_argument_is_named(call: Any, argument: str) -> None:
    """One error type, naming what was wrong."""
    with pytest.raises(InvalidArgument) as caught:
        call()

    assert caught.value.argument == argument


def test_the_detectable_degradation_of_a_perfect_baseline() -> None:
    """100 of 100 is the only baseline; the first rate whose binomial tail reaches 80 %."""
    for rule in ("fisher", "exact"):
        cutoff = regression_cutoff(100, 100, 100, rule=rule).cutoff
        assert cutoff is not None
        rate = brentq(lambda p, c=cutoff: binom.cdf(c - 1, 100, p) - 0.8, 0.5, 0.999, xtol=1e-14)
        drop = minimum_detectable_degradation(1.0, 100, 100, rule=rule)
        assert drop == pytest.approx(1 - rate, abs=1e-11)
    assert minimum_detectable_degradation(1.0, 100, 100, rule="fisher") == pytest.approx(
        0.0662967041353113, abs=1e-12
    )
