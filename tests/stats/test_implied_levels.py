"""The three operational approaches: what is fixed gives what follows, and back again."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import norm

from trialwise.errors import InvalidArgument
from trialwise.stats.compliance_cutoffs import (
    SOUND_ALPHA,
    ImpliedLevel,
    compliance_cutoff,
    implied_alpha_of_cutoff,
    implied_confidence_of_observation,
    implied_confidence_of_threshold,
)
from trialwise.stats.rate_intervals import wilson_lower
from trialwise.stats.regression_cutoffs import regression_cutoff
from trialwise.stats.toolbox.rate_sizing import normal_sizing

levels = st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.2, 0.4])


@st.composite
def baselines(draw: st.DrawFn) -> tuple[int, int]:
    trials = draw(st.integers(1, 2000))
    return draw(st.integers(1, trials)), trials


def fisher_p_value(k: int, nb: int, n: int, x: int) -> Fraction:
    total = k + x
    ways = sum(
        math.comb(total, j) * math.comb(nb + n - total, n - j)
        for j in range(max(0, total - nb), x + 1)
    )
    return Fraction(ways, math.comb(nb + n, n))


# Sample size first (§6.1)


def test_a_budget_fixes_the_threshold_of_a_regression() -> None:
    """951 of 1000 and a hundred trials at 5 %: the cutoff of companion §3.4 follows."""
    design = regression_cutoff(951, 1000, 100, rule="wilson")

    assert design.cutoff == 91
    assert design.threshold == pytest.approx(0.902124, abs=5e-7)


def test_a_budget_fixes_the_confidence_of_a_compliance_observation() -> None:
    """Companion §6.1 and §10.3: 788 of 800 against 0.98 has z = 1.01 and p = 0.156."""
    confidence = implied_confidence_of_observation(788, 800, 0.98)
    z = (0.985 - 0.98) / math.sqrt(0.98 * 0.02 / 800)

    assert round(z, 2) == 1.01
    assert confidence == pytest.approx(1 - norm.cdf(-z), abs=1e-14)
    assert round(1 - confidence, 3) == 0.156


@given(
    n=st.integers(1, 3000), share=st.floats(0, 1), rate=st.integers(1, 999).map(lambda i: i / 1000)
)
def test_at_the_implied_confidence_the_wilson_bound_is_the_requirement(
    n: int, share: float, rate: float
) -> None:
    """The score test and the Wilson bound are one and the same."""
    k = round(n * share)
    confidence = implied_confidence_of_observation(k, n, rate)
    z = (k / n - rate) / math.sqrt(rate * (1 - rate) / n)

    assert confidence == pytest.approx(norm.cdf(z), abs=1e-14)
    if 1e-6 < confidence < 1 - 1e-6 and k > 0:
        assert wilson_lower(k, n, confidence=confidence) == pytest.approx(rate, abs=1e-8)


@given(n=st.integers(60, 2000), alpha=levels)
def test_the_implied_confidence_agrees_with_the_wilson_decision(n: int, alpha: float) -> None:
    """At the cutoff the observation has at least the configured confidence; one below, less."""
    cutoff = compliance_cutoff(0.8, n, alpha=alpha, rule="wilson").cutoff
    assert cutoff is not None

    assert implied_confidence_of_observation(cutoff, n, 0.8) >= 1 - alpha - 1e-12
    assert implied_confidence_of_observation(cutoff - 1, n, 0.8) < 1 - alpha


# Confidence first (§6.2)


def test_a_risk_fixes_the_budget() -> None:
    """Companion §6.2: 99.5 % with drops of 1 % at 95 % and 80 % takes 477 trials."""
    assert normal_sizing(0.995, 0.01).required_trials == 477


# Threshold first (§6.3)


def test_the_baselines_own_rate_as_a_threshold_is_a_coin_flip() -> None:
    """Companion §6.3: 0.951 against 951 of 1000 implies a 50 % false-alarm rate."""
    implied = implied_confidence_of_threshold(951, 1000, 100, 0.951)

    assert implied.alpha == 0.5
    assert implied.confidence == 0.5
    assert not implied.is_sound
    assert implied.rule == "wilson"


@given(baseline=baselines(), n=st.integers(1, 2000), alpha=levels)
def test_the_implied_confidence_of_a_derived_threshold_is_the_level_it_came_from(
    baseline: tuple[int, int], n: int, alpha: float
) -> None:
    """Level to threshold to level, a perfect baseline's two steps included."""
    k, nb = baseline
    threshold = regression_cutoff(k, nb, n, alpha=alpha, rule="wilson").threshold
    assert threshold is not None
    implied = implied_confidence_of_threshold(k, nb, n, threshold)

    assert implied.alpha == pytest.approx(alpha, rel=1e-7)
    assert implied.is_sound == (alpha <= SOUND_ALPHA) or alpha == SOUND_ALPHA


@given(
    baseline=baselines(),
    n=st.integers(1, 500),
    threshold=st.integers(1, 999).map(lambda i: i / 1000),
)
def test_the_threshold_is_reproduced_at_the_implied_confidence(
    baseline: tuple[int, int], n: int, threshold: float
) -> None:
    """Threshold to level to threshold: `regression_cutoff` derives what was declared."""
    k, nb = baseline
    implied = implied_confidence_of_threshold(k, nb, n, threshold)
    assert implied.alpha is not None
    # Nearer to 1 a double no longer holds the level to the digits that the threshold needs.
    assume(1e-12 < implied.alpha < 0.999)

    derived = regression_cutoff(k, nb, n, alpha=implied.alpha, rule="wilson").threshold
    assert derived == pytest.approx(threshold, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.6, 0.7, 0.99])
def test_a_level_above_one_half_has_a_cutoff_too(alpha: float) -> None:
    """The bound at z < 0 lies above the baseline's rate, and the rule is still defined."""
    z, rate, n = norm.isf(alpha), 0.951, 100
    root = math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    bound = (rate + z * z / (2 * n) - z * root) / (1 + z * z / n)

    assert regression_cutoff(951, 1000, n, alpha=alpha, rule="wilson").cutoff == math.ceil(
        n * bound
    )


def test_no_level_yields_a_threshold_above_a_zero_baseline() -> None:
    """A baseline without successes has the threshold 0 at every level, never 0.1."""
    assert implied_confidence_of_threshold(0, 100, 50, 0.1).alpha is None


@given(nb=st.integers(1, 60), n=st.integers(1, 40), where=st.floats(0, 1), cut=st.floats(0, 1))
def test_the_implied_alpha_is_the_p_value_one_count_below(
    nb: int, n: int, where: float, cut: float
) -> None:
    """In integers; from that alpha on the rule yields the cutoff, a hair below it does not."""
    assume(n <= nb)
    k, c = max(1, round(where * nb)), max(1, round(cut * n))
    implied = implied_alpha_of_cutoff(k, nb, n, c)
    assert implied.alpha is not None
    exactly = fisher_p_value(k, nb, n, c - 1)

    assert implied.rule == "fisher"
    assert implied.alpha == pytest.approx(float(exactly), rel=1e-11)
    above, below = float(exactly) * (1 + 1e-6), float(exactly) * (1 - 1e-6)
    if above < fisher_p_value(k, nb, n, c):
        assert regression_cutoff(k, nb, n, alpha=above, rule="fisher").cutoff == c
    lower = regression_cutoff(k, nb, n, alpha=below, rule="fisher").cutoff
    assert lower is not None
    assert lower < c


def test_a_fisher_cutoff_at_an_extreme_level() -> None:
    """97 of 100 against 100 at alpha = 1e-25: the p-values in integers give 31."""
    cutoff = next(x for x in range(101) if fisher_p_value(97, 100, 100, x) > Fraction("1e-25"))

    assert regression_cutoff(97, 100, 100, alpha=1e-25, rule="fisher").cutoff == cutoff


def test_a_cutoff_of_zero_never_alarms_and_a_zero_baseline_has_no_other() -> None:
    """0 for a cutoff of 0; None where no alpha yields the cutoff."""
    assert implied_alpha_of_cutoff(95, 100, 100, 0) == ImpliedLevel(rule="fisher", alpha=0.0)
    nothing = implied_alpha_of_cutoff(0, 100, 100, 1)

    assert nothing.alpha is None
    assert nothing.confidence is None
    assert not nothing.is_sound


@pytest.mark.parametrize(("cutoff", "sound"), [(91, True), (94, False)])
def test_a_declared_cutoff_is_sound_up_to_20_percent(cutoff: int, sound: bool) -> None:
    """951 of 1000 against 100: the p-values one below, in integers."""
    implied = implied_alpha_of_cutoff(951, 1000, 100, cutoff)

    assert implied.is_sound is sound
    assert implied.alpha == pytest.approx(
        float(fisher_p_value(951, 1000, 100, cutoff - 1)), rel=1e-12
    )


@pytest.mark.parametrize(("alpha", "sound"), [(0.2, True), (0.2000001, False), (0.0, True)])
def test_exactly_20_percent_is_sound(alpha: float, sound: bool) -> None:
    """The limit belongs to the sound side."""
    assert ImpliedLevel(rule="fisher", alpha=alpha).is_sound is sound


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: implied_confidence_of_threshold(11, 10, 5, 0.5), "baseline_successes"),
        (lambda: implied_confidence_of_threshold(5, 10, 0, 0.5), "trials"),
        (lambda: implied_confidence_of_threshold(5, 10, 5, 1.0), "threshold"),
        (lambda: implied_confidence_of_threshold(5, 10, 5, 0.0), "threshold"),
        (lambda: implied_alpha_of_cutoff(5, 10, 5, 6), "cutoff"),
        (lambda: implied_alpha_of_cutoff(5, 10, 5, -1), "cutoff"),
        (lambda: implied_alpha_of_cutoff(5, 0, 5, 1), "baseline_trials"),
        (lambda: implied_confidence_of_observation(5, 4, 0.5), "successes"),
        (lambda: implied_confidence_of_observation(4, 4, 1.0), "required_rate"),
        (lambda: implied_confidence_of_observation(4, 4, math.nan), "required_rate"),
    ],
)
def test_a_bad_approach_argument_is_named(call: Callable[[], object], argument: str) -> None:
    """One error type, naming what was wrong."""
    with pytest.raises(InvalidArgument) as caught:
        call()

    assert caught.value.argument == argument
