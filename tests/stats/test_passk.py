"""pass@k and pass^k against subset enumeration, mpmath, scipy and the published vectors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, combinations_with_replacement

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.run_reliability import (
    pass_at_k,
    pass_at_k_interval,
    pass_at_k_naive,
    pass_hat_k,
    pass_hat_k_interval,
    pass_hat_k_plugin,
)
from trialwise.stats.toolbox.task_means import TaskMean, mean_pass_at_k, mean_pass_hat_k

COUNTS = st.integers(1, 60).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))
)


def clopper_pearson_by_scipy(c: int, n: int, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    low = 0.0 if c == 0 else float(beta.ppf(tail, c, n - c + 1))
    high = 1.0 if c == n else float(beta.isf(tail, c + 1, n - c))
    return low, high


def defined(interval: Interval | Undefined) -> Interval:
    assert isinstance(interval, Interval)
    return interval


# Point estimates


def test_unbiased_estimates_match_the_published_vectors() -> None:
    """The golden vectors of the readings, n = 5, c = 3 and n = 10, c = 8."""
    assert [pass_at_k(5, 3, k) for k in range(1, 6)] == [0.6, 0.9, 1.0, 1.0, 1.0]
    assert [pass_hat_k(5, 3, k) for k in range(1, 6)] == [0.6, 0.3, 0.1, 0.0, 0.0]
    assert [round(pass_at_k(10, 8, k), 3) for k in (1, 2, 3, 5)] == [0.8, 0.978, 1.0, 1.0]


def test_plug_in_estimates_match_the_published_vectors() -> None:
    """The golden plug-in vector and the examples of the scoring document."""
    plug_in = [pass_hat_k_plugin(0.6, k) for k in range(1, 6)]

    assert plug_in == pytest.approx([0.6, 0.36, 0.216, 0.1296, 0.07776], rel=1e-14)
    assert pytest.approx(0.32768, rel=1e-14) == pass_hat_k_plugin(0.8, 5)
    assert pytest.approx(0.99968, rel=1e-14) == pass_at_k_naive(0.8, 5)
    assert pytest.approx(0.83193, rel=1e-14) == pass_at_k_naive(0.3, 5)


def test_the_concept_page_table_is_the_naive_formula() -> None:
    """The published lookup table for 90, 50, 30 and 10 % at k = 3 and 5."""
    rates = (0.9, 0.5, 0.3, 0.1)

    assert [round(pass_at_k_naive(p, 3), 3) for p in rates] == [0.999, 0.875, 0.657, 0.271]
    assert [round(pass_at_k_naive(p, 5), 3) for p in rates] == [1.0, 0.969, 0.832, 0.410]


@pytest.mark.parametrize("n", range(1, 9))
def test_estimates_are_shares_of_all_subsets(n: int) -> None:
    """Counting every k-subset of the trials gives the same numbers to the last bit."""
    for c in range(n + 1):
        outcomes = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            subsets = list(combinations(outcomes, k))
            some = Fraction(sum(map(any, subsets)), len(subsets))
            every = Fraction(sum(map(all, subsets)), len(subsets))

            assert float(some) == pass_at_k(n, c, k)
            assert float(every) == pass_hat_k(n, c, k)


@pytest.mark.parametrize(
    ("n", "c", "k"),
    [
        (100_000, 1, 1),
        (100_000, 1, 99_999),
        (100_000, 37, 90_000),
        (100_000, 300, 400),
        (100_000, 1_800, 1_800),
        (100_000, 1_900, 1_900),
        (100_000, 1_900, 2_000),
        (100_000, 50_000, 50_000),
        (100_000, 99_999, 50_000),
        (100_000, 99_000, 60_000),
        (99_991, 98_000, 30_000),
    ],
)
def test_large_counts_are_as_exact_as_small_ones(n: int, c: int, k: int) -> None:
    """At 100,000 trials both estimates agree with 60-digit arithmetic to the last bit."""
    with mpmath.workdps(60):
        without = mpmath.binomial(n - c, k) / mpmath.binomial(n, k)
        within = mpmath.binomial(c, k) / mpmath.binomial(n, k)
        expected = float(1 - without), float(within)

    assert expected == pytest.approx((pass_at_k(n, c, k), pass_hat_k(n, c, k)), rel=1e-15, abs=0)


def test_a_vanishing_estimate_is_not_lost_before_it_must_be() -> None:
    """pass^k keeps its value down to the smallest doubles and only then becomes 0."""
    inside, subsets = math.comb(1000, 500), math.comb(1900, 500)

    assert 0 < inside / subsets == pass_hat_k(1900, 1000, 500) < 1e-150
    assert pass_hat_k(100_000, 1_000, 900) == 0.0


@given(counts=COUNTS)
def test_at_least_one_and_none_are_complements(counts: tuple[int, int, int]) -> None:
    """pass@k of c successes is 1 − pass^k of c failures."""
    n, c, k = counts

    assert pass_at_k(n, c, k) == pytest.approx(1 - pass_hat_k(n, n - c, k), abs=2e-16)


@pytest.mark.slow
@given(counts=COUNTS)
def test_one_more_success_or_attempt_never_hurts_pass_at_k(counts: tuple[int, int, int]) -> None:
    """pass@k rises in k and c; pass^k falls in k and rises in c; k = 1 is the rate."""
    n, c, k = counts

    assert pass_at_k(n, c, 1) == c / n == pass_hat_k(n, c, 1)
    assert pass_hat_k(n, c, k) <= c / n <= pass_at_k(n, c, k)
    if k < n:
        assert pass_at_k(n, c, k) <= pass_at_k(n, c, k + 1)
        assert pass_hat_k(n, c, k) >= pass_hat_k(n, c, k + 1)
    if c < n:
        assert pass_at_k(n, c, k) <= pass_at_k(n, c + 1, k)
        assert pass_hat_k(n, c, k) <= pass_hat_k(n, c + 1, k)


@pytest.mark.parametrize("p", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_the_estimators_from_counts_are_unbiased(p: Fraction) -> None:
    """Averaged over the binomial distribution they give 1 − (1−p)^k and p^k; plug-in does not."""
    n = 9
    weights = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    for k in range(1, n + 1):
        at = math.fsum(float(w) * pass_at_k(n, c, k) for c, w in enumerate(weights))
        hat = math.fsum(float(w) * pass_hat_k(n, c, k) for c, w in enumerate(weights))
        plug_in = math.fsum(float(w) * pass_hat_k_plugin(c / n, k) for c, w in enumerate(weights))

        assert float(1 - (1 - p) ** k) == pytest.approx(at, rel=1e-13)
        assert float(p**k) == pytest.approx(hat, rel=1e-13)
        assert k == 1 or plug_in > float(p**k)


def test_resampling_trials_would_centre_on_the_plug_in_value() -> None:
    """The bootstrap centre of pass^5 at 8 of 10 is 0.328 though the estimate is 0.222."""
    centre = math.fsum(float(binom.pmf(c, 10, 0.8)) * pass_hat_k(10, c, 5) for c in range(11))

    assert pytest.approx(0.32768, rel=1e-9) == centre
    assert round(pass_hat_k(10, 8, 5), 3) == 0.222


def test_tiny_rates_and_huge_k_keep_their_meaning() -> None:
    """Neither 1 − rate nor float(k) may swallow the answer."""
    assert pytest.approx(3e-20, rel=1e-14) == pass_at_k_naive(1e-20, 3)
    assert pass_at_k_naive(1e-20, 10**140) == 1.0
    assert pass_at_k_naive(0.0, 10**140) == 0.0
    assert pass_hat_k_plugin(0.999, 10**140) == 0.0
    assert pass_hat_k_plugin(1.0, 10**140) == 1.0


@pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize(
    ("n", "c", "k", "argument"),
    [
        (0, 0, 1, "trials"),
        (5, 6, 1, "successes"),
        (5, -1, 1, "successes"),
        (5, 3, 0, "k"),
        (5, 3, 6, "k"),
        (5, 3, -1, "k"),
        (5.0, 3, 1, "trials"),
        (5, True, 1, "successes"),
        (5, 3, "2", "k"),
        (5, 3, math.nan, "k"),
    ],
)
def test_counts_outside_the_definition_are_refused(
    estimate: Callable[..., float], n: object, c: object, k: object, argument: str
) -> None:
    """The message names the argument at fault."""
    with pytest.raises(InvalidArgument) as refusal:
        estimate(n, c, k)

    assert argument == refusal.value.argument


@pytest.mark.parametrize("estimate", [pass_at_k_naive, pass_hat_k_plugin])
@pytest.mark.parametrize(
    ("rate", "k"), [(-0.1, 1), (1.1, 1), (math.nan, 1), (True, 1), (0.5, 0), (0.5, 1.5)]
)
def test_rates_outside_the_definition_are_refused(
    estimate: Callable[..., float], rate: object, k: object
) -> None:
    """A rate lies in [0, 1] and k is a whole number of at least 1."""
    with pytest.raises(InvalidArgument):
        estimate(rate, k)


# Intervals for one task


@given(counts=COUNTS, confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_is_the_mapped_clopper_pearson_one(
    counts: tuple[int, int, int], confidence: float
) -> None:
    """Both ends are the images of scipy's beta quantiles."""
    n, c, k = counts
    low, high = clopper_pearson_by_scipy(c, n, confidence)

    at = pass_at_k_interval(n, c, k, confidence=confidence)
    hat = pass_hat_k_interval(n, c, k, confidence=confidence)

    assert (1 - (1 - low) ** k, 1 - (1 - high) ** k) == pytest.approx(tuple(at), abs=1e-9)
    assert (low**k, high**k) == pytest.approx(tuple(hat), abs=1e-9)
    assert pass_at_k_naive(c / n, k) in at
    assert pass_hat_k_plugin(c / n, k) in hat


@pytest.mark.parametrize("n", [1, 2, 5, 12, 25])
@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_coverage_is_exactly_that_of_clopper_pearson(n: int, k: int) -> None:
    """Summed over every count, the mapped interval covers as often as scipy's, and enough."""
    confidence = 0.9
    reference = [clopper_pearson_by_scipy(c, n, confidence) for c in range(n + 1)]
    at = [pass_at_k_interval(n, c, k, confidence=confidence) for c in range(n + 1)]
    hat = [pass_hat_k_interval(n, c, k, confidence=confidence) for c in range(n + 1)]
    for p in np.linspace(0.0, 0.9, 91) + 0.0513:
        weights = binom.pmf(range(n + 1), n, p)
        exact, covered_at, covered_hat = (
            math.fsum(w for w, inside in zip(weights, hits, strict=True) if inside)
            for hits in (
                [low <= p <= high for low, high in reference],
                [-math.expm1(k * math.log1p(-p)) in interval for interval in at],
                [p**k in interval for interval in hat],
            )
        )

        assert exact == covered_at == covered_hat
        assert exact >= confidence


def test_the_interval_is_defined_beyond_the_trials() -> None:
    """Only the unbiased estimate needs k ≤ n; 5 of 5 bounds 100 further trials from below."""
    low, high = pass_hat_k_interval(5, 5, 100)

    assert pytest.approx(0.025**20) == low
    assert high == 1.0


def test_the_interval_remembers_its_making() -> None:
    """Method and confidence are kept beside the ends."""
    interval = pass_at_k_interval(10, 3, 2, confidence=0.9)

    assert interval.confidence == 0.9
    assert interval.method == "pass@k of clopper-pearson"


@pytest.mark.parametrize("interval", [pass_at_k_interval, pass_hat_k_interval])
@pytest.mark.parametrize(
    ("counts", "confidence", "argument"),
    [
        ((5, 6, 1), 0.95, "successes"),
        ((0, 0, 1), 0.95, "trials"),
        ((5, 3, 0), 0.95, "k"),
        ((5, 3, 1), 1.0, "confidence"),
        ((5, 3, 1), 0.0, "confidence"),
        ((5, 3, 1), math.nan, "confidence"),
    ],
)
def test_an_interval_without_definition_is_refused(
    interval: Callable[..., Interval],
    counts: tuple[int, int, int],
    confidence: float,
    argument: str,
) -> None:
    """The message names the argument at fault."""
    with pytest.raises(InvalidArgument) as refusal:
        interval(*counts, confidence=confidence)

    assert argument == refusal.value.argument


# Means over tasks


def test_the_mean_is_over_tasks_and_never_over_pooled_trials() -> None:
    """Always and never have a mean pass^10 of one half; their pooled trials would say 0.001."""
    result = mean_pass_hat_k([(10, 10), (10, 0)], 10)

    assert result.estimate == 0.5
    assert result.per_task == (1.0, 0.0)
    assert result.tasks == ((10, 10), (10, 0))
    assert round(pass_hat_k_plugin(0.5, 10), 3) == 0.001


def test_tasks_may_have_different_numbers_of_trials() -> None:
    """Each task counts once, whatever its trials."""
    tasks = [(4, 2), (10, 9), (3, 0)]
    expected = (Fraction(5, 6) + 1 + 0) / 3

    assert float(expected) == pytest.approx(mean_pass_at_k(tasks, 2).estimate, rel=1e-15)


@given(
    tasks=st.lists(
        st.integers(2, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
        min_size=2,
        max_size=30,
    ),
    confidence=st.sampled_from([0.8, 0.95, 0.999]),
)
def test_the_bounded_interval_solves_the_divergence_equation(
    tasks: list[tuple[int, int]], confidence: float
) -> None:
    """Both ends are where scipy finds kl(estimate, m) = ln(2/α)/tasks; order does not matter."""
    result = mean_pass_at_k(tasks, 2, confidence=confidence)
    interval = defined(result.interval)
    m, budget = result.estimate, math.log(2 / (1 - confidence)) / len(tasks)

    def excess(x: float) -> float:
        heads = m * math.log(m / x) if m > 0 else 0.0
        tails = (1 - m) * math.log((1 - m) / (1 - x)) if m < 1 else 0.0
        return heads + tails - budget

    edge = 1e-15
    # Where even the last double before an end is inside, scipy has nothing to solve.
    low = brentq(excess, edge, m, xtol=1e-14) if m > edge and excess(edge) > 0 else 0.0
    high = brentq(excess, m, 1 - edge, xtol=1e-14) if m < 1 and excess(1 - edge) > 0 else 1.0
    assert (low, high) == pytest.approx(tuple(interval), abs=1e-9)
    assert m in interval
    assert interval == mean_pass_at_k(tasks[::-1], 2, confidence=confidence).interval


#: Populations of tasks as (weight, success probability).
POPULATIONS = [
    [(0.5, 0.2), (0.5, 0.9)],
    [(0.95, 0.99), (0.05, 0.0)],
    [(1.0, 0.7)],
    [(0.5, 0.0), (0.5, 1.0)],
]


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("count", [2, 5, 9])
@pytest.mark.parametrize("mean", [mean_pass_at_k, mean_pass_hat_k])
def test_the_bounded_interval_covers_the_population_of_tasks(
    population: list[tuple[float, float]], count: int, mean: Callable[..., TaskMean]
) -> None:
    """Summed over every possible set of tasks, with 3 trials each and k = 2, it covers enough."""
    n, k, confidence = 3, 2, 0.9
    chance = [math.fsum(w * float(binom.pmf(c, n, p)) for w, p in population) for c in range(n + 1)]
    truth = math.fsum(
        w * (p**k if mean is mean_pass_hat_k else 1 - (1 - p) ** k) for w, p in population
    )
    covered = 0.0
    for successes in combinations_with_replacement(range(n + 1), count):
        ways = math.factorial(count)
        for repeats in Counter(successes).values():
            ways //= math.factorial(repeats)
        result = mean([(n, c) for c in successes], k, confidence=confidence)
        if defined(result.interval).low <= truth <= defined(result.interval).high:
            covered += ways * math.prod(chance[c] for c in successes)

    assert covered >= confidence


def test_the_normal_interval_is_the_textbook_one_cut_at_the_ends() -> None:
    """Estimate ± z s/√tasks with the sample standard deviation."""
    tasks = [(10, 9), (10, 7), (10, 10), (10, 4), (10, 8), (10, 9)]
    values = np.array([c * (c - 1) / 90 for _, c in tasks])
    half = float(norm.isf(0.025) * values.std(ddof=1) / math.sqrt(len(values)))
    centre = float(values.mean())

    result = mean_pass_hat_k(tasks, 2, method="normal")

    assert (centre - half, centre + half) == pytest.approx(tuple(defined(result.interval)))
    cut = defined(mean_pass_hat_k([(2, 2), (2, 0)], 1, method="normal").interval)
    assert tuple(cut) == (0.0, 1.0)


def test_perfect_tasks_do_not_make_a_certain_mean() -> None:
    """Twenty flawless tasks bound the mean by 40^(−1/20); a spread of zero says nothing."""
    flawless = [(5, 5)] * 20
    interval = defined(mean_pass_hat_k(flawless, 3).interval)

    assert tuple(interval) == pytest.approx((40 ** (-1 / 20), 1.0))
    assert isinstance(mean_pass_hat_k(flawless, 3, method="normal").interval, Undefined)


@pytest.mark.parametrize("method", ["bounded", "normal"])
def test_one_task_has_an_estimate_but_no_interval(method: str) -> None:
    """One task says nothing of the population of tasks."""
    result = mean_pass_at_k([(5, 3)], 2, method=method)  # type: ignore[arg-type]

    assert result.estimate == 0.9
    assert isinstance(result.interval, Undefined)


@pytest.mark.parametrize("mean", [mean_pass_at_k, mean_pass_hat_k])
@pytest.mark.parametrize(
    ("tasks", "k", "options", "argument"),
    [
        ([], 1, {}, "tasks"),
        (3, 1, {}, "tasks"),
        ([(5, 3, 1)], 1, {}, "tasks"),
        ([5, 3], 1, {}, "tasks"),
        ([(5, 3), (2, 1)], 3, {}, "k"),
        ([(5, 3), (2, 3)], 1, {}, "tasks[1] successes"),
        ([(5, 3), (0, 0)], 1, {}, "tasks[1] trials"),
        ([(5, 3)], 0, {}, "k"),
        ([(5, 3)], 1, {"confidence": 1.0}, "confidence"),
        ([(5, 3)], 1, {"method": "bootstrap"}, "method"),
    ],
)
def test_a_mean_without_definition_is_refused(
    mean: Callable[..., TaskMean], tasks: object, k: int, options: dict[str, object], argument: str
) -> None:
    """The message names the argument, and the task, at fault."""
    with pytest.raises(InvalidArgument) as refusal:
        mean(tasks, k, **options)

    assert argument == refusal.value.argument
