"""The posterior predictive rule: rationals, mpmath, scipy, and what it really does at a rate."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.predictive import (
    JEFFREYS,
    posterior_predictive,
    predictive_cutoff,
    predictive_false_alarm,
)
from trialwise.stats.unconditional import fisher_one_sided

shapes = st.floats(0.05, 20)


@st.composite
def designs(draw: st.DrawFn, most: int = 60) -> tuple[int, int, int]:
    nb = draw(st.integers(1, most))
    return draw(st.integers(0, nb)), nb, draw(st.integers(1, most))


def exact_pmf(k: int, nb: int, n: int, a: Fraction, b: Fraction) -> list[Fraction]:
    """C(n, j) (A)_j (B)_{n−j} / (A+B)_n with rising factorials, in rationals."""

    def rising(start: Fraction, count: int) -> Fraction:
        return math.prod((start + i for i in range(count)), start=Fraction(1))

    first, second = a + k, b + nb - k
    total = rising(first + second, n)
    return [
        math.comb(n, j) * rising(first, j) * rising(second, n - j) / total for j in range(n + 1)
    ]


def exact_cutoff(pmf: list[Fraction], alpha: Fraction) -> int:
    """The largest c with P(K < c) ≤ alpha."""
    return max(c for c in range(len(pmf)) if sum(pmf[:c]) <= alpha)


# --- the distribution --------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [(0.5, 0.5), (1.0, 1.0), (0.25, 3.0), (2.5, 0.125), (0.1, 0.1)])
def test_small_distributions_agree_with_rationals(prior: tuple[float, float]) -> None:
    """Every probability is right to 13 digits, whatever the prior and however lopsided."""
    for k, nb, n in [(0, 1, 1), (1, 1, 9), (0, 8, 20), (8, 8, 20), (13, 20, 12), (1, 1, 40)]:
        expected = exact_pmf(k, nb, n, Fraction(repr(prior[0])), Fraction(repr(prior[1])))
        found = posterior_predictive(k, nb, n, prior=prior).pmf

        assert found == pytest.approx([float(p) for p in expected], rel=1e-13)


@given(designs(), shapes, shapes)
def test_scipy_agrees(design: tuple[int, int, int], a: float, b: float) -> None:
    """scipy's beta-binomial is the same distribution, to the digits it keeps."""
    k, nb, n = design
    found = posterior_predictive(k, nb, n, prior=(a, b))
    expected = betabinom(n, a + k, b + nb - k)

    assert found.pmf == pytest.approx(expected.pmf(np.arange(n + 1)).tolist(), rel=1e-9)
    assert found.mean == pytest.approx(expected.mean(), rel=1e-12)
    assert found.variance == pytest.approx(expected.var(), rel=1e-9)


@pytest.mark.parametrize(
    ("k", "nb"), [(95_000, 100_000), (50, 100), (99_999, 100_000), (1, 1), (970, 1000)]
)
def test_a_hundred_thousand_trials_keep_twelve_digits(k: int, nb: int) -> None:
    """At n = 100,000 the probabilities agree with 40-digit gamma functions to 1e-12."""
    n = 100_000
    predictive = posterior_predictive(k, nb, n)
    a, b = predictive.shape
    mean, sd = predictive.mean, math.sqrt(predictive.variance)
    with mpmath.workdps(40):
        for j in {min(max(round(mean + t * sd), 0), n) for t in (-4, -2, -1, 0, 0.5, 1, 3)}:
            expected = (
                mpmath.binomial(n, j)
                * mpmath.beta(mpmath.mpf(a) + j, mpmath.mpf(b) + n - j)
                / mpmath.beta(a, b)
            )

            assert predictive.pmf[j] == pytest.approx(float(expected), rel=1e-12, abs=1e-300)
    assert math.fsum(predictive.pmf) == pytest.approx(1.0, abs=1e-13)


@given(designs(), shapes, shapes)
def test_counting_failures_instead_mirrors_it(
    design: tuple[int, int, int], a: float, b: float
) -> None:
    """With successes and failures swapped, prior included, the distribution is reversed."""
    k, nb, n = design
    mirrored = posterior_predictive(nb - k, nb, n, prior=(b, a)).pmf[::-1]

    assert posterior_predictive(k, nb, n, prior=(a, b)).pmf == pytest.approx(mirrored, rel=1e-11)


@given(designs(), st.integers(-3, 70))
def test_a_uniform_prior_is_fishers_test_with_one_trial_more(
    design: tuple[int, int, int], x: int
) -> None:
    """Under Beta(1, 1) the distribution function is a Fisher p-value of k+1 in n_b+1."""
    k, nb, n = design
    cdf = posterior_predictive(k, nb, n, prior=(1, 1)).cdf(x)
    expected = 0.0 if x < 0 else fisher_one_sided(k + 1, nb + 1, min(x, n), n)

    assert cdf == pytest.approx(expected, rel=1e-11)


# --- the cutoff --------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [(0.5, 0.5), (1.0, 1.0), (0.3, 2.0)])
@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.2, 0.5, 0.001])
def test_the_cutoff_agrees_with_rationals(prior: tuple[float, float], alpha: float) -> None:
    """The largest c with P(K < c) ≤ alpha, and that probability, at every baseline count."""
    a, b = Fraction(repr(prior[0])), Fraction(repr(prior[1]))
    for nb, n in [(12, 9), (5, 25), (20, 3)]:
        for k in range(nb + 1):
            pmf = exact_pmf(k, nb, n, a, b)
            expected = exact_cutoff(pmf, Fraction(repr(alpha)))
            design = predictive_cutoff(k, nb, n, alpha=alpha, prior=prior)

            assert design.cutoff == expected
            assert design.predictive_tail == pytest.approx(float(sum(pmf[:expected])), rel=1e-12)
            assert design.displayed_rate == round(expected / n, 6)
            assert design.mean == pytest.approx(float(n * (a + k) / (a + b + nb)), rel=1e-13)


@pytest.mark.parametrize(("k", "nb", "n", "alpha"), [(951, 1000, 100, 0.05), (90, 100, 500, 0.05)])
def test_scipys_quantiles_give_the_same_cutoff(k: int, nb: int, n: int, alpha: float) -> None:
    """The cutoff is the smallest count whose distribution function exceeds alpha."""
    above = betabinom(n, k + 0.5, nb - k + 0.5).cdf(np.arange(n + 1)) > alpha

    assert predictive_cutoff(k, nb, n, alpha=alpha).cutoff == int(above.argmax())


def test_a_tail_that_equals_alpha_is_spent() -> None:
    """On the boundary the cutoff takes the inclusive side, however the doubles round."""
    seen = 0
    for nb in range(1, 13):
        for n in range(1, 9):
            for k in range(nb + 1):
                pmf = exact_pmf(k, nb, n, Fraction(1), Fraction(1))
                for c in range(1, n + 1):
                    tail = sum(pmf[:c], start=Fraction(0))
                    if tail < 1 and 10**9 % tail.denominator == 0:
                        seen += 1
                        design = predictive_cutoff(k, nb, n, alpha=float(tail), prior=(1, 1))
                        assert design.cutoff == c
    assert seen > 100


def test_a_tie_in_a_large_test_is_still_a_tie() -> None:
    """A symmetric posterior puts exactly half below the middle of an odd number of trials."""
    design = predictive_cutoff(50, 100, 4_001, alpha=0.5)

    assert design.cutoff == 2_001


@given(designs(), st.floats(0.001, 0.9))
def test_the_cutoff_rises_with_the_baseline_and_with_alpha(
    design: tuple[int, int, int], alpha: float
) -> None:
    """A better baseline demands more; so does a greater willingness to fail."""
    k, nb, n = design
    cutoff = predictive_cutoff(k, nb, n, alpha=alpha).cutoff

    assert 0 <= cutoff <= n
    assert k == nb or predictive_cutoff(k + 1, nb, n, alpha=alpha).cutoff >= cutoff
    assert predictive_cutoff(k, nb, n, alpha=min(2 * alpha, 0.95)).cutoff >= cutoff


def test_a_larger_baseline_of_the_same_rate_narrows_the_prediction() -> None:
    """951 of 1,000 and 95 of 100 say nearly the same rate and deserve different cutoffs (§4)."""
    small, large = predictive_cutoff(95, 100, 200), predictive_cutoff(950, 1000, 200)

    assert small.cutoff < large.cutoff


def test_the_prior_is_named() -> None:
    """A cutoff says which prior it stands on; Jeffreys' is the default."""
    assert predictive_cutoff(9, 10, 5).prior_name == "Jeffreys"
    assert predictive_cutoff(9, 10, 5).prior == JEFFREYS == (0.5, 0.5)
    assert predictive_cutoff(9, 10, 5, prior=(1, 1)).prior_name == "uniform"
    assert predictive_cutoff(9, 10, 5, prior=(2, 0.5)).prior_name == "Beta(2, 0.5)"


# --- what it really does -----------------------------------------------------------------------


@pytest.mark.slow("0.6-500-80-0.01-prior5", "0.4-120-100-1e-12-prior6")
@pytest.mark.parametrize(
    ("rate", "nb", "n", "alpha", "prior"),
    [
        (0.9, 40, 30, 0.05, (0.5, 0.5)),
        (0.5, 25, 60, 0.1, (1.0, 1.0)),
        pytest.param(0.97, 100, 500, 0.05, (0.5, 0.5), marks=pytest.mark.slow),
        (0.02, 30, 20, 0.2, (0.3, 2.0)),
        (0.85, 3, 400, 0.05, (0.5, 0.5)),
        (0.6, 500, 80, 0.01, (0.5, 0.5)),
        (0.4, 120, 100, 1e-12, (0.5, 0.5)),
    ],
)
def test_false_alarms_agree_with_enumeration(
    rate: float, nb: int, n: int, alpha: float, prior: tuple[float, float]
) -> None:
    """P(FAIL) is the sum over baseline counts of scipy's binomials below each count's cutoff."""
    counts = np.arange(n + 1)
    cutoffs = np.array(
        [
            int((betabinom(n, prior[0] + k, prior[1] + nb - k).cdf(counts) > alpha).argmax())
            for k in range(nb + 1)
        ]
    )
    expected = binom.pmf(np.arange(nb + 1), nb, rate) @ binom.cdf(cutoffs - 1, n, rate)

    found = predictive_false_alarm(rate, nb, n, alpha=alpha, prior=prior)
    assert found == pytest.approx(float(expected), rel=1e-10)


def test_the_walk_over_baseline_counts_finds_each_counts_own_cutoff() -> None:
    """The design's false alarm uses the cutoffs that `predictive_cutoff` gives one by one."""
    nb, n, rate = 400, 150, 0.9
    cutoffs = np.array([predictive_cutoff(k, nb, n).cutoff for k in range(nb + 1)])
    expected = binom.pmf(np.arange(nb + 1), nb, rate) @ binom.cdf(cutoffs - 1, n, rate)

    design = predictive_cutoff(360, nb, n)
    assert design.design_false_alarm == pytest.approx(float(expected), rel=1e-10)


def test_jeffreys_false_alarm_peaks_at_six_per_cent_for_100_against_500() -> None:
    """A predictive 5 % is not a frequentist 5 %: with 100 and 500 trials it reaches 0.060."""
    peak = max(predictive_false_alarm(i / 1000, 100, 500) for i in range(900, 1000))

    assert round(peak, 3) == 0.060


@given(st.integers(1, 30), st.integers(1, 30))
def test_where_nothing_varies_the_false_alarm_is_undefined(nb: int, n: int) -> None:
    """An all-or-nothing baseline has no false-alarm probability at its own rate."""
    assert isinstance(predictive_cutoff(nb, nb, n).design_false_alarm, Undefined)
    assert isinstance(predictive_cutoff(0, nb, n).design_false_alarm, Undefined)
    assert predictive_false_alarm(1.0, nb, n) == 0.0


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("design", "argument"),
    [
        ((5, 4, 3), "baseline_successes"),
        ((0, 0, 3), "baseline_trials"),
        ((1, 4, 0), "trials"),
        ((1, 4, 2.0), "trials"),
        ((-1, 4, 2), "baseline_successes"),
    ],
)
def test_impossible_runs_are_named(design: tuple[Any, ...], argument: str) -> None:
    """The argument at fault is named."""
    for function in (posterior_predictive, predictive_cutoff):
        with pytest.raises(InvalidArgument) as error:
            function(*design)

        assert error.value.argument == argument


@pytest.mark.parametrize(
    "prior", [(0, 1), (1, -1), (math.nan, 1), (1,), (1, 2, 3), 0.5, None, ("a", 1)]
)
def test_a_prior_is_a_pair_of_positive_numbers(prior: Any) -> None:
    """Improper priors are refused, whichever function is asked."""
    for call in (
        lambda: posterior_predictive(1, 2, 3, prior=prior),
        lambda: predictive_cutoff(1, 2, 3, prior=prior),
        lambda: predictive_false_alarm(0.5, 2, 3, prior=prior),
    ):
        with pytest.raises(InvalidArgument, match="prior"):
            call()


@pytest.mark.parametrize("alpha", [0, 1, math.nan, "x"])
def test_a_level_is_strictly_between_0_and_1(alpha: Any) -> None:
    """No rule has a level of 0 or 1."""
    with pytest.raises(InvalidArgument, match="alpha must"):
        predictive_cutoff(1, 2, 3, alpha=alpha)
    with pytest.raises(InvalidArgument, match="alpha must"):
        predictive_false_alarm(0.5, 2, 3, alpha=alpha)


def test_a_rate_is_a_probability() -> None:
    """The common rate lies in [0, 1]."""
    with pytest.raises(InvalidArgument, match="rate must"):
        predictive_false_alarm(1.1, 2, 3)
