from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import comb, factorial, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from trialwise.errors import InvalidArgument
from trialwise.stats.cluster_estimators import ClusterEstimate, call_weighted, prompt_weighted
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.result_types import Interval, Undefined

Groups = list[tuple[int, int]]

UNEQUAL: Groups = [(9, 10), (4, 12), (7, 7), (1, 3), (0, 1), (15, 20)]


@st.composite
def groups(draw: st.DrawFn) -> Groups:
    sizes = draw(st.lists(st.integers(1, 12), min_size=2, max_size=10))
    return [(draw(st.integers(0, m)), m) for m in sizes]


def ends(interval: Interval | Undefined) -> tuple[float, float]:
    assert isinstance(interval, Interval)
    return interval.low, interval.high


# Coverage by enumeration


@cache
def compositions(prompts: int, kinds: int) -> tuple[tuple[int, ...], ...]:
    """How many of the prompts show 0, 1, … successes, in every way."""

    def fill(left: int, slots: int) -> Iterator[tuple[int, ...]]:
        if slots == 1:
            yield (left,)
            return
        for first in range(left + 1):
            for rest in fill(left - first, slots - 1):
                yield (first, *rest)

    return tuple(fill(prompts, kinds))


@cache
def interval_of(counts: tuple[int, ...], method: Any) -> tuple[float, float]:
    calls = len(counts) - 1
    rows = [(y, calls) for y, times in enumerate(counts) for _ in range(times)]
    if method == "t":
        rates = np.array([y / m for y, m in rows])
        half = stats.t.ppf(0.975, len(rows) - 1) * rates.std(ddof=1) / np.sqrt(len(rows))
        return float(rates.mean() - half), float(rates.mean() + half)
    return ends(prompt_weighted(rows, method=method).interval)


def errors(prompts: int, law: Any, rate: float, method: str) -> tuple[float, float]:
    """The exact probabilities that the lower end is too high and the upper end too low."""
    below = above = 0.0
    for counts in compositions(prompts, len(law)):
        chance = factorial(prompts) * prod(
            float(p) ** times / factorial(times) for p, times in zip(law, counts, strict=True)
        )
        low, high = interval_of(counts, method)
        below += chance * (rate < low - 1e-12)
        above += chance * (rate > high + 1e-12)
    return below, above


def beta_law(calls: int, mean: float, rho: float) -> Any:
    """Successes of one prompt when rates have a beta distribution over prompts."""
    if rho == 1:
        return np.array([1 - mean, *[0.0] * (calls - 1), mean])
    precision = (1 - rho) / rho
    return stats.betabinom.pmf(range(calls + 1), calls, mean * precision, (1 - mean) * precision)


def bad_prompts_law(calls: int, good: float, bad: float, share: float) -> Any:
    """Successes of one prompt when a share of the prompts is bad."""
    return (1 - share) * stats.binom.pmf(range(calls + 1), calls, good) + share * stats.binom.pmf(
        range(calls + 1), calls, bad
    )


DESIGNS = [(5, 4), (10, 5), (20, 2)]
MEANS = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98]


@pytest.mark.slow("10-5")
@pytest.mark.parametrize(("prompts", "calls"), DESIGNS)
def test_the_default_keeps_its_level_over_beta_shapes(prompts: int, calls: int) -> None:
    """Nominal 2.5 % a side: below 3.5 % at any correlation, and 95 % coverage on average."""
    covered = []
    for rho in (0.05, 0.3, 0.7, 1):
        for mean in MEANS:
            below, above = errors(prompts, beta_law(calls, mean, rho), mean, "prompts")
            assert below <= 0.035
            covered.append(1 - below - above)

    assert np.mean(covered) >= 0.95
    assert min(covered) >= 0.90


@pytest.mark.slow("10-5")
@pytest.mark.parametrize(("prompts", "calls"), DESIGNS)
def test_the_default_keeps_its_lower_end_when_bad_prompts_are_rare(
    prompts: int, calls: int
) -> None:
    """A run that met no bad prompt must not claim that there is none."""
    for good, bad, share in product((1.0, 0.95, 0.9), (0.0, 0.3), (0.05, 0.1, 0.15, 0.25, 0.4)):
        rate = (1 - share) * good + share * bad
        law = bad_prompts_law(calls, good, bad, share)

        assert errors(prompts, law, rate, "prompts")[0] <= 0.035


@pytest.mark.slow
def test_why_effective_trials_are_not_the_default() -> None:
    """Korn–Graubard holds on a beta shape and errs in 12 % of runs when 15 % of prompts are bad."""
    mean = 0.9
    smooth, _ = errors(10, beta_law(5, mean, 0.1), mean, "korn-graubard")
    skewed, _ = errors(10, bad_prompts_law(5, 0.95, 0.0, 0.15), 0.85 * 0.95, "korn-graubard")

    assert smooth <= 0.025
    assert skewed == pytest.approx(0.12, abs=0.001)


def test_why_there_is_no_t_interval() -> None:
    """Five unanimous prompts at rate 0.99 show no spread in 95 % of runs, and it is a point."""
    below, above = errors(5, beta_law(4, 0.99, 1), 0.99, "t")

    assert below + above >= 0.94


# Call-weighted and prompt-weighted


def test_the_two_estimands_differ() -> None:
    """A prompt called ninety times counts for ninety calls and for one prompt."""
    counts = [(90, 90), (0, 10)]
    calls, prompts = call_weighted(counts), prompt_weighted(counts)

    assert (calls.rate, calls.estimand) == (0.9, "call-weighted")
    assert (prompts.rate, prompts.estimand) == (0.5, "prompt-weighted")
    assert calls.population != prompts.population


@pytest.mark.parametrize(("bounds", "method"), [("exact", "beta"), ("score", "wilson")])
def test_the_default_interval_is_over_prompts(bounds: Any, method: str) -> None:
    """As many trials as prompts, or (Σm)²/Σm² of them when calls are uneven (statsmodels)."""
    prompts, calls = (
        estimator(UNEQUAL, bounds=bounds) for estimator in (prompt_weighted, call_weighted)
    )
    units = sum(m for _, m in UNEQUAL) ** 2 / sum(m * m for _, m in UNEQUAL)
    rates = np.mean([y / m for y, m in UNEQUAL])

    assert ends(prompts.interval) == pytest.approx(proportion_confint(rates * 6, 6, method=method))
    assert ends(calls.interval) == pytest.approx(
        proportion_confint(36 / 53 * units, units, method=method)
    )
    assert prompts.effective_trials == 6.0
    assert calls.effective_trials == pytest.approx(units)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_korn_graubard_follows_from_the_estimated_variance(confidence: float) -> None:
    """n* = p̂(1−p̂)/v times (z/t)², with numpy's variances and scipy's quantiles."""
    y, m = np.array(UNEQUAL, dtype=float).T
    J, N = len(y), m.sum()
    z = stats.norm.ppf((1 + confidence) / 2)
    t = stats.t.ppf((1 + confidence) / 2, J - 1)
    p, q = y.sum() / N, (y / m).mean()
    linearised = J * np.var((y - p * m) / N, ddof=1)
    of_mean = np.var(y / m, ddof=1) / J
    for estimator, rate, variance in (
        (call_weighted, p, linearised),
        (prompt_weighted, q, of_mean),
    ):
        n = rate * (1 - rate) / variance * (z / t) ** 2
        result = estimator(UNEQUAL, confidence=confidence, method="korn-graubard")

        assert result.effective_trials == pytest.approx(n)
        assert ends(result.interval) == pytest.approx(
            proportion_confint(rate * n, n, alpha=1 - confidence, method="beta")
        )


def test_equal_rates_claim_no_more_than_the_trials() -> None:
    """Without spread Korn–Graubard takes all trials, less the price of a variance estimated."""
    result = prompt_weighted([(5, 10)] * 4, method="korn-graubard")
    shrink = (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 3)) ** 2

    assert result.effective_trials == pytest.approx(40 * shrink)


@pytest.mark.parametrize("estimator", [call_weighted, prompt_weighted])
@pytest.mark.parametrize("method", ["prompts", "korn-graubard"])
def test_a_clean_record_counts_prompts(estimator: Any, method: Any) -> None:
    """Unanimous prompts have no variance to estimate: ten of them are ten trials."""
    perfect, empty = (estimator([(y, 5)] * 10, method=method).interval for y in (5, 0))

    assert ends(perfect) == pytest.approx(tuple(clopper_pearson(10, 10)))
    assert ends(empty) == pytest.approx(tuple(clopper_pearson(0, 10)))
    assert (perfect.high, empty.low) == (1.0, 0.0)


@given(
    groups(),
    st.sampled_from([call_weighted, prompt_weighted]),
    st.sampled_from(["prompts", "korn-graubard"]),
    st.randoms(),
)
def test_relabelling_prompts_changes_nothing(
    counts: Groups, estimator: Any, method: Any, rng: Any
) -> None:
    """The order of prompts is irrelevant, failures mirror successes, and the rate is inside."""
    result: ClusterEstimate = estimator(counts, method=method)
    low, high = ends(result.interval)
    mirrored = ends(estimator([(m - y, m) for y, m in counts], method=method).interval)

    assert result == estimator(rng.sample(counts, len(counts)), method=method)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)
    assert 0 <= low <= result.rate + 1e-12
    assert result.rate - 1e-12 <= high <= 1


@given(groups(), st.sampled_from([call_weighted, prompt_weighted]), st.data())
def test_one_more_success_never_lowers_the_default(
    counts: Groups, estimator: Any, data: st.DataObject
) -> None:
    """The default interval moves up with the record."""
    j = data.draw(st.integers(0, len(counts) - 1))
    y, m = counts[j]
    better = [*counts[:j], (min(y + 1, m), m), *counts[j + 1 :]]
    before, after = ends(estimator(counts).interval), ends(estimator(better).interval)

    assert after[0] >= before[0] - 1e-12
    assert after[1] >= before[1] - 1e-12


@pytest.mark.parametrize("estimator", [call_weighted, prompt_weighted])
def test_one_prompt_has_a_rate_and_no_interval(estimator: Any) -> None:
    """What one prompt does says nothing about how prompts differ."""
    result = estimator([(9, 10)])

    assert result.rate == 0.9
    assert isinstance(result.interval, Undefined)
    assert isinstance(result.effective_trials, Undefined)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: call_weighted([]), "groups"),
        (lambda: prompt_weighted([(2, 1)]), "groups' successes"),
        (lambda: prompt_weighted(UNEQUAL, confidence=1.0), "confidence"),
        (lambda: call_weighted(UNEQUAL, method="t"), "method"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused_by_name(call: Any, argument: str) -> None:
    """Every refusal names the argument."""
    with pytest.raises(InvalidArgument) as refusal:
        call()

    assert argument == refusal.value.argument


def test_the_law_used_for_coverage_is_a_law() -> None:
    """The enumeration behind the coverage tests is complete."""
    law = bad_prompts_law(2, 0.9, 0.2, 0.1)
    total = sum(
        factorial(5) * prod(p**t / factorial(t) for p, t in zip(law, counts, strict=True))
        for counts in compositions(5, 3)
    )

    assert comb(7, 2) == len(compositions(5, 3))
    assert total == pytest.approx(1)
