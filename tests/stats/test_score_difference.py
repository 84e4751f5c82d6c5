"""Non-inferiority: Newcombe's published intervals, 50-digit likelihoods, and size by enumeration.

statsmodels is the oracle at a difference of 0 and for Newcombe's interval only: its restricted
likelihood at other differences solves a cubic with a wrong coefficient (its issue 10269).
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm
from statsmodels.stats.proportion import confint_proportions_2indep, score_test_proportions_2indep

from trialwise.errors import InvalidArgument
from trialwise.stats.margin_tests import (
    INTERVAL_METHODS,
    METHODS,
    IntervalMethod,
    Method,
    difference_interval,
    noninferiority,
    noninferiority_size,
)

methods = st.sampled_from(METHODS)
interval_methods = st.sampled_from(INTERVAL_METHODS)
score_methods = st.sampled_from(METHODS)
margins = st.one_of(st.just(0.0), st.floats(1e-9, 0.999))


@st.composite
def two_runs(draw: st.DrawFn, most: int = 60) -> tuple[int, int, int, int]:
    nb, nt = draw(st.integers(1, most)), draw(st.integers(1, most))
    return draw(st.integers(0, nb)), nb, draw(st.integers(0, nt)), nt


def restricted_by_mpmath(k: int, nb: int, x: int, nt: int, margin: float) -> tuple[Any, Any]:
    """The likeliest (p_t, p_b) with p_t = p_b − margin: bisection on the score in 50 digits."""
    with mpmath.workdps(50):
        delta = mpmath.mpf(margin)
        low, high = mpmath.mpf(0), 1 - delta

        def score(r: Any) -> Any:
            s = r + delta
            terms = ((x, r), (-(nt - x), 1 - r), (k, s), (-(nb - k), 1 - s))
            return sum(count / rate for count, rate in terms if count)

        for _ in range(130):
            middle = (low + high) / 2
            low, high = (middle, high) if score(middle) > 0 else (low, middle)
        return low, low + delta


def z_by_mpmath(k: int, nb: int, x: int, nt: int, *, margin: float, method: Method) -> float:
    p_t, p_b = restricted_by_mpmath(k, nb, x, nt, margin)
    with mpmath.workdps(50):
        variance = p_t * (1 - p_t) / nt + p_b * (1 - p_b) / nb
        if method == "miettinen-nurminen":
            variance *= mpmath.mpf(nb + nt) / (nb + nt - 1)
        gap = mpmath.mpf(x) / nt - mpmath.mpf(k) / nb + mpmath.mpf(margin)
        return float(gap / mpmath.sqrt(variance))


# --- the intervals -----------------------------------------------------------------------------

#: Newcombe (1998), "Interval estimation for the difference between independent proportions",
#: table II, methods 5 (Mee, the inversion of Farrington & Manning's test), 6 and 10.
NEWCOMBE = [
    ((56, 70, 48, 80), (0.0533, 0.3377), (0.0528, 0.3382), (0.0524, 0.3339)),
    ((9, 10, 3, 10), (0.1821, 0.8370), (0.1700, 0.8406), (0.1705, 0.8090)),
    ((6, 7, 2, 7), (0.0544, 0.8478), (0.0342, 0.8534), (0.0582, 0.8062)),
    ((5, 56, 0, 29), (-0.0313, 0.1926), (-0.0326, 0.1933), (-0.0381, 0.1926)),
    ((0, 10, 0, 20), (-0.1611, 0.2775), (-0.1658, 0.2844), (-0.1611, 0.2775)),
    ((0, 10, 0, 10), (-0.2775, 0.2775), (-0.2879, 0.2879), (-0.2775, 0.2775)),
    ((10, 10, 0, 20), (0.7225, 1.0), (0.7156, 1.0), (0.6791, 1.0)),
    ((10, 10, 0, 10), (0.6777, 1.0), (0.6636, 1.0), (0.6075, 1.0)),
]


@pytest.mark.parametrize(("counts", "mee", "nurminen", "hybrid"), NEWCOMBE)
def test_newcombes_table_is_reproduced(
    counts: tuple[int, int, int, int],
    mee: tuple[float, float],
    nurminen: tuple[float, float],
    hybrid: tuple[float, float],
) -> None:
    """All three constructions give the published limits, to the four decimals printed."""
    x, nt, k, nb = counts
    for method, expected in zip(
        ("farrington-manning", "miettinen-nurminen", "newcombe"),
        (mee, nurminen, hybrid),
        strict=True,
    ):
        found = difference_interval(k, nb, x, nt, method=method)  # type: ignore[arg-type]

        assert tuple(round(end, 4) for end in found) == expected
        assert found.method == method


@given(two_runs(), st.sampled_from([0.8, 0.95, 0.99]))
def test_statsmodels_agrees_on_newcombes_interval(
    table: tuple[int, int, int, int], confidence: float
) -> None:
    """The hybrid score interval is statsmodels' "newcomb"."""
    k, nb, x, nt = table
    low, high = confint_proportions_2indep(
        x, nt, k, nb, method="newcomb", compare="diff", alpha=1 - confidence
    )
    found = difference_interval(*table, confidence=confidence, method="newcombe")

    assert tuple(found) == pytest.approx((float(low), float(high)), abs=1e-12)


@given(two_runs(), interval_methods, st.floats(0.01, 0.9999))
def test_the_interval_contains_the_observed_difference_and_stays_within_one(
    table: tuple[int, int, int, int], method: IntervalMethod, confidence: float
) -> None:
    """−1 ≤ low ≤ observed ≤ high ≤ 1 in every table, and the ends are anchored where data are."""
    k, nb, x, nt = table
    low, high = difference_interval(*table, confidence=confidence, method=method)
    observed = x / nt - k / nb

    assert -1 <= low <= observed + 1e-12
    assert observed - 1e-12 <= high <= 1
    if (k, x) == (0, nt):
        assert high == 1
    if (k, x) == (nb, 0):
        assert low == -1


@pytest.mark.slow
@given(two_runs(), interval_methods)
def test_swapping_the_runs_negates_the_interval(
    table: tuple[int, int, int, int], method: IntervalMethod
) -> None:
    """So does counting failures: the construction prefers neither run nor outcome."""
    k, nb, x, nt = table
    low, high = difference_interval(*table, method=method)

    assert tuple(difference_interval(x, nt, k, nb, method=method)) == (-high, -low)
    assert tuple(difference_interval(nb - k, nb, nt - x, nt, method=method)) == pytest.approx(
        (-high, -low), abs=1e-9
    )


@given(two_runs(), interval_methods)
def test_more_confidence_is_a_wider_interval(
    table: tuple[int, int, int, int], method: IntervalMethod
) -> None:
    """Intervals are nested."""
    narrow = difference_interval(*table, confidence=0.8, method=method)
    wide = difference_interval(*table, confidence=0.99, method=method)

    assert wide.low <= narrow.low <= narrow.high <= wide.high


@given(two_runs(), st.floats(0.001, 0.999), st.floats(0.005, 0.4), score_methods)
def test_the_test_and_the_interval_are_one_inference(
    table: tuple[int, int, int, int], margin: float, alpha: float, method: Method
) -> None:
    """Non-inferior at alpha exactly where the 1 − 2 alpha interval lies above −margin."""
    low = difference_interval(*table, confidence=1 - 2 * alpha, method=method).low
    assume(abs(low + margin) > 1e-9)
    result = noninferiority(*table, margin=margin, alpha=alpha, method=method)

    assert result.noninferior == (low > -margin)


@settings(max_examples=40)
@given(two_runs(), score_methods)
def test_the_ends_solve_the_score_equation(
    table: tuple[int, int, int, int], method: Method
) -> None:
    """At the lower end of a 95 % interval z is 1.96, by 50-digit likelihoods."""
    low = difference_interval(*table, method=method).low
    assume(-0.999 < low < 0)

    assert z_by_mpmath(*table, margin=-low, method=method) == pytest.approx(
        float(norm.ppf(0.975)), abs=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize(("nb", "nt"), [(20, 30), (40, 15)])
def test_coverage_by_enumeration(nb: int, nt: int) -> None:
    """Over a grid of rates Miettinen–Nurminen covers 95 % on average and never below 92 %."""
    rates = np.linspace(0.05, 0.95, 10)
    ends = np.array(
        [[tuple(difference_interval(k, nb, x, nt)) for x in range(nt + 1)] for k in range(nb + 1)]
    )
    coverage = []
    for pb in rates:
        for pt in rates:
            inside = (ends[..., 0] <= pt - pb + 1e-12) & (pt - pb - 1e-12 <= ends[..., 1])
            weights = binom.pmf(np.arange(nb + 1), nb, pb), binom.pmf(np.arange(nt + 1), nt, pt)
            coverage.append(weights[0] @ inside @ weights[1])

    assert min(coverage) > 0.92
    assert 0.945 < float(np.mean(coverage)) < 0.965


# --- the test ----------------------------------------------------------------------------------


@given(two_runs(), methods)
def test_statsmodels_agrees_at_margin_0(table: tuple[int, int, int, int], method: Method) -> None:
    """Without a margin it is the pooled two-sample z-test, in both directions."""
    k, nb, x, nt = table
    assume(0 < k + x < nb + nt)
    result = noninferiority(*table, margin=0, method=method)
    expected = {
        side: score_test_proportions_2indep(
            x,
            nt,
            k,
            nb,
            value=0,
            compare="diff",
            alternative=side,
            correction=method == "miettinen-nurminen",
        )
        for side in ("larger", "smaller")
    }

    assert result.z == pytest.approx(expected["larger"].statistic, rel=1e-11, abs=1e-12)
    assert result.p_value == pytest.approx(expected["larger"].pvalue, rel=1e-10)
    assert result.degradation_p_value == pytest.approx(expected["smaller"].pvalue, rel=1e-10)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(two_runs(), st.floats(1e-6, 0.999), methods)
def test_fifty_digit_likelihoods_agree(
    table: tuple[int, int, int, int], margin: float, method: Method
) -> None:
    """The restricted rates and z match a bisection of the score in 50 digits, edges included."""
    result = noninferiority(*table, margin=margin, method=method)
    p_t, p_b = restricted_by_mpmath(*table, margin)
    expected = z_by_mpmath(*table, margin=margin, method=method)

    assert result.restricted_rate == pytest.approx(float(p_t), abs=1e-11)
    assert result.restricted_baseline_rate == pytest.approx(float(p_b), abs=1e-11)
    assert result.z == pytest.approx(expected, rel=1e-8, abs=1e-9)
    assert result.p_value == pytest.approx(float(norm.sf(expected)), rel=1e-6)


@given(two_runs(), margins, methods)
def test_the_restricted_rates_are_a_margin_apart_and_the_likeliest(
    table: tuple[int, int, int, int], margin: float, method: Method
) -> None:
    """They lie in [0, 1], differ by the margin, and no pair nearby is likelier."""
    k, nb, x, nt = table
    result = noninferiority(*table, margin=margin, method=method)
    p_t, p_b = result.restricted_rate, result.restricted_baseline_rate

    def log_likelihood(r: float) -> float:
        s = r + margin
        terms = ((x, r), (nt - x, 1 - r), (k, s), (nb - k, 1 - s))
        return sum(n * math.log(p) if p > 0 else -math.inf for n, p in terms if n)

    assert 0 <= p_t <= p_b <= 1
    assert p_b - p_t == pytest.approx(margin, abs=1e-15)
    for step in (-1e-4, 1e-4):
        if 0 <= p_t + step <= 1 - margin:
            assert log_likelihood(p_t + step) <= log_likelihood(p_t) + 1e-9


@pytest.mark.parametrize("margin", [0, 1e-15, 1e-9, 1e-3, 0.05, 0.5, 0.95, 1 - 1e-9, 1 - 2**-53])
def test_every_small_table_has_a_finite_answer(margin: float) -> None:
    """No table and no margin gives an infinity or a NaN, and z rises with the test's successes."""
    for nb in range(1, 7):
        for nt in range(1, 7):
            z = np.array(
                [
                    [noninferiority(k, nb, x, nt, margin=margin).z for x in range(nt + 1)]
                    for k in range(nb + 1)
                ]
            )

            assert np.isfinite(z).all()
            if margin < 1 - 1e-12:  # beyond, a double has no digits left for the rates
                assert (np.diff(z, axis=1) >= -1e-9 * np.abs(z).max()).all()
                assert (np.diff(z, axis=0) <= 1e-9 * np.abs(z).max()).all()


@given(two_runs(), margins, methods)
def test_more_successes_and_wider_margins_are_more_convincing(
    table: tuple[int, int, int, int], margin: float, method: Method
) -> None:
    """The p-value falls with the test's successes and the margin, and rises with the baseline."""
    k, nb, x, nt = table

    def p(k: int, x: int, margin: float) -> float:
        return noninferiority(k, nb, x, nt, margin=margin, method=method).p_value

    here = p(k, x, margin)
    assert x == nt or p(k, x + 1, margin) <= here + 1e-12
    assert k == nb or p(k + 1, x, margin) >= here - 1e-12
    assert p(k, x, (margin + 0.9995) / 2) <= here + 1e-12


@given(two_runs(), margins, methods)
def test_counting_failures_with_the_runs_swapped_asks_the_same(
    table: tuple[int, int, int, int], margin: float, method: Method
) -> None:
    """p_t − p_b is also the baseline's failure rate minus the test's."""
    k, nb, x, nt = table
    mirrored = noninferiority(nt - x, nt, nb - k, nb, margin=margin, method=method)

    assert mirrored.z == pytest.approx(
        noninferiority(*table, margin=margin, method=method).z, rel=1e-6, abs=1e-7
    )


@given(two_runs(), margins)
def test_miettinen_and_nurminen_are_the_more_careful(
    table: tuple[int, int, int, int], margin: float
) -> None:
    """Their z is √((N−1)/N) of Farrington & Manning's; the two orientations sum to 1."""
    one = noninferiority(*table, margin=margin)
    other = noninferiority(*table, margin=margin, method="miettinen-nurminen")
    size = table[1] + table[3]

    assert other.z == pytest.approx(one.z * math.sqrt((size - 1) / size), rel=1e-12)
    assert one.p_value + one.degradation_p_value == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("table", [(0, 4, 0, 7), (4, 4, 7, 7)])
def test_where_neither_run_varies_a_margin_of_0_shows_nothing(
    table: tuple[int, int, int, int],
) -> None:
    """0/0 is not evidence: z is 0 and the p-value one half."""
    result = noninferiority(*table, margin=0)

    assert (result.z, result.p_value, result.noninferior) == (0.0, 0.5, False)


def test_the_decision_says_what_it_claims() -> None:
    """Superiority and non-inferiority are told apart, and a failure to show is not a finding."""
    shown = noninferiority(900, 1000, 905, 1000, margin=0.05)
    missed = noninferiority(90, 100, 85, 100, margin=0.05)
    superior = noninferiority(800, 1000, 905, 1000, margin=0)
    level = noninferiority(90, 100, 91, 100, margin=0)

    assert shown.noninferior
    assert shown.decision == (
        "non-inferior: the rate is less than 0.05 below the baseline's, at alpha = 0.05"
    )
    assert not missed.noninferior
    assert missed.decision.startswith("non-inferiority not shown at alpha = 0.05")
    assert missed.decision.endswith("which is not evidence that it is")
    assert superior.decision == "superior: the rate is above the baseline's, at alpha = 0.05"
    assert level.decision.startswith("superiority not shown")


# --- the size ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("nb", "nt", "margin", "rate"),
    [(12, 9, 0.1, 0.8), (30, 20, 0.05, 0.95), (8, 25, 0.3, 0.3), (15, 15, 0, 0.5), (6, 40, 0.2, 1)],
)
def test_the_size_agrees_with_every_pair_of_counts(
    nb: int, nt: int, margin: float, rate: float, method: Method
) -> None:
    """Both claims: the sum over all tables of their probability where the claim is made."""
    results = [
        [noninferiority(k, nb, x, nt, margin=margin, method=method) for x in range(nt + 1)]
        for k in range(nb + 1)
    ]
    weights = np.outer(
        binom.pmf(np.arange(nb + 1), nb, rate), binom.pmf(np.arange(nt + 1), nt, rate - margin)
    )
    shown = np.array([[r.noninferior for r in row] for row in results])
    degraded = np.array([[r.degradation_p_value <= 0.05 for r in row] for row in results])

    assert noninferiority_size(
        nb, nt, margin=margin, baseline_rate=rate, method=method
    ) == pytest.approx(float((weights * shown).sum()), abs=1e-12)
    assert noninferiority_size(
        nb, nt, margin=margin, baseline_rate=rate, method=method, claim="degradation"
    ) == pytest.approx(float((weights * degraded).sum()), abs=1e-12)


def test_margin_0_as_a_degradation_rule_more_than_doubles_its_alpha() -> None:
    """With 300 and 100 trials a nominal 5 % is 12.3 % at its worst: one failure after 300 of 300.

    Enumerated here from the pooled z-test's formula.
    """
    nb, nt = 300, 100
    k, x = np.meshgrid(np.arange(nb + 1), np.arange(nt + 1), indexing="ij")
    pooled = (k + x) / (nb + nt)
    variance = pooled * (1 - pooled) * (1 / nb + 1 / nt)
    gap = x / nt - k / nb
    rejected = (variance > 0) & (gap <= norm.ppf(0.05) * np.sqrt(variance))
    rates = np.arange(0.990, 0.9995, 0.0001)
    expected = [
        float(binom.pmf(np.arange(nb + 1), nb, p) @ rejected @ binom.pmf(np.arange(nt + 1), nt, p))
        for p in rates
    ]
    found = [
        noninferiority_size(nb, nt, margin=0, baseline_rate=float(p), claim="degradation")
        for p in rates
    ]

    assert found == pytest.approx(expected, abs=1e-12)
    assert round(max(found), 3) == 0.123


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.01, 0.99), methods)
def test_at_margin_0_degradation_is_superiority_of_failures(
    nb: int, nt: int, rate: float, method: Method
) -> None:
    """Falsely degraded at p is falsely superior at 1 − p."""
    degraded = noninferiority_size(
        nb, nt, margin=0, baseline_rate=rate, method=method, claim="degradation"
    )
    superior = noninferiority_size(nb, nt, margin=0, baseline_rate=1 - rate, method=method)

    assert degraded == pytest.approx(superior, abs=1e-10)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "argument"),
    [
        ((5, 4, 0, 1), "baseline_successes"),
        ((0, 0, 0, 1), "baseline_trials"),
        ((1, 4, 2, 1), "successes"),
        ((1, 4, 0, 0), "trials"),
        ((1, 4, "0", 1), "successes"),
    ],
)
def test_impossible_runs_are_named(table: tuple[Any, ...], argument: str) -> None:
    """The argument at fault is named."""
    with pytest.raises(InvalidArgument) as error:
        noninferiority(*table, margin=0.1)
    assert error.value.argument == argument

    with pytest.raises(InvalidArgument) as error:
        difference_interval(*table)
    assert error.value.argument == argument


@pytest.mark.parametrize("margin", [-0.01, 1, 1.5, math.nan, None, "0.1", True])
def test_a_margin_is_a_loss_below_one(margin: Any) -> None:
    """A negative margin would ask another question; a margin of 1 none at all."""
    with pytest.raises(InvalidArgument, match="margin must be at least 0 and below 1"):
        noninferiority(1, 2, 1, 2, margin=margin)
    with pytest.raises(InvalidArgument, match="margin must be at least 0 and below 1"):
        noninferiority_size(2, 2, margin=margin, baseline_rate=0.5)


@pytest.mark.parametrize("level", [0, 1, math.nan])
def test_levels_are_strictly_between_0_and_1(level: Any) -> None:
    """No test has a level, and no interval a confidence, of 0 or 1."""
    with pytest.raises(InvalidArgument, match="alpha must"):
        noninferiority(1, 2, 1, 2, margin=0.1, alpha=level)
    with pytest.raises(InvalidArgument, match="alpha must"):
        noninferiority_size(2, 2, margin=0.1, baseline_rate=0.5, alpha=level)
    with pytest.raises(InvalidArgument, match="confidence must"):
        difference_interval(1, 2, 1, 2, confidence=level)


def test_unknown_methods_and_claims_are_named() -> None:
    """A closed set says what it contains."""
    wald: Any = "wald"
    with pytest.raises(InvalidArgument, match="method must be one of 'farrington-manning'"):
        noninferiority(1, 2, 1, 2, margin=0.1, method=wald)
    with pytest.raises(InvalidArgument, match="method must be one of"):
        difference_interval(1, 2, 1, 2, method=wald)
    with pytest.raises(InvalidArgument, match="method must be one of"):
        noninferiority_size(2, 2, margin=0.1, baseline_rate=0.5, method=wald)
    with pytest.raises(InvalidArgument, match="claim must be one of"):
        noninferiority_size(2, 2, margin=0.1, baseline_rate=0.5, claim=wald)


def test_a_rate_below_the_margin_has_no_boundary() -> None:
    """The test's rate would be negative."""
    with pytest.raises(InvalidArgument, match="baseline_rate must be at least the margin"):
        noninferiority_size(5, 5, margin=0.3, baseline_rate=0.2)
