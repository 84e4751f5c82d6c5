from __future__ import annotations

from fractions import Fraction
from math import ceil, comb, floor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from trialwise.errors import InvalidArgument
from trialwise.stats.finite import exact_corpus_rate, finite_corpus_cutoff, finite_corpus_interval
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.hypergeometric_law import (
    finite_corpus_minimum_trials,
    hypergeometric_cdf,
    hypergeometric_tail,
)


def pmf(j: int, n: int, M: int, N: int) -> Fraction:
    """The definition, by counting samples."""
    return Fraction(comb(M, j) * comb(N - M, n - j), comb(N, n)) if 0 <= j <= n else Fraction(0)


def upper(k: int, n: int, M: int, N: int) -> Fraction:
    return sum((pmf(j, n, M, N) for j in range(max(k, 0), n + 1)), Fraction(0))


@st.composite
def partial_corpora(draw: st.DrawFn, largest: int = 400) -> tuple[int, int, int]:
    """(successes, trials, corpus size)."""
    N = draw(st.integers(1, largest))
    n = draw(st.integers(1, N))
    return draw(st.integers(0, n)), n, N


def test_both_tails_equal_the_count_of_samples() -> None:
    """On every corpus of up to nine inputs the tails are the counted ones, up to rounding."""
    for N in range(1, 10):
        for n in range(N + 1):
            for M in range(N + 1):
                for k in range(-1, n + 2):
                    law: dict[str, Any] = {"trials": n, "corpus_successes": M, "corpus_size": N}
                    exact = upper(k, n, M, N)

                    assert hypergeometric_tail(k, **law) == pytest.approx(float(exact), rel=1e-14)
                    assert hypergeometric_cdf(k - 1, **law) == pytest.approx(
                        float(1 - exact), rel=1e-14
                    )


@pytest.mark.slow(
    "-30-2000-9000-10000",
    "-6-2000-9000-10000",
    "-1-2000-9000-10000",
    "0-2000-9000-10000",
    "2-2000-9000-10000",
    "8-2000-9000-10000",
)
@pytest.mark.parametrize(("n", "M", "N"), [(300, 900, 1000), (500, 20, 4000), (2000, 9000, 10000)])
@pytest.mark.parametrize("deviations", [-30, -6, -1, 0, 2, 8, 30])
def test_small_tails_keep_their_digits(n: int, M: int, N: int, deviations: int) -> None:
    """Far into the tail the relative error stays at rounding, against integers."""
    spread = (n * M * (N - M) * (N - n) / N**3) ** 0.5
    k = min(max(round(n * M / N + deviations * spread), 0), n)
    exact = float(upper(k, n, M, N))

    assert hypergeometric_tail(k, trials=n, corpus_successes=M, corpus_size=N) == pytest.approx(
        exact, rel=1e-12, abs=1e-300
    )


@pytest.mark.parametrize(
    ("k", "n", "M", "N"),
    [(960, 1000, 950_000, 1_000_000), (10_839, 17_239, 6_145_172, 10_000_000), (3, 50, 10, 1000)],
)
def test_a_large_corpus_agrees_with_scipy(k: int, n: int, M: int, N: int) -> None:
    """SciPy sums log-gammas, which cost it digits as the corpus grows: hence the tolerance."""
    law: dict[str, Any] = {"trials": n, "corpus_successes": M, "corpus_size": N}

    assert hypergeometric_tail(k, **law) == pytest.approx(hypergeom.sf(k - 1, N, M, n), rel=1e-7)
    assert hypergeometric_cdf(k, **law) == pytest.approx(hypergeom.cdf(k, N, M, n), rel=1e-7)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("side", ["two-sided", "lower", "upper"])
def test_coverage_is_at_least_nominal_at_every_corpus(confidence: float, side: Any) -> None:
    """In rationals, for every number of corpus successes of corpora up to twelve inputs."""
    nominal = Fraction(str(confidence))
    for N in range(1, 13):
        for n in range(1, N + 1):
            intervals = [
                finite_corpus_interval(k, n, N, confidence=confidence, side=side)
                for k in range(n + 1)
            ]
            for M in range(N + 1):
                covered = sum(
                    pmf(i.successes, n, M, N) for i in intervals if i.low_count <= M <= i.high_count
                )

                assert covered >= nominal


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_is_exactly_what_the_two_tests_keep(confidence: float) -> None:
    """No count inside is rejected and every possible count outside is, by integer arithmetic."""
    level = (1 - Fraction(str(confidence))) / 2
    for N, n in [(20, 7), (23, 22), (30, 10)]:
        for k in range(n + 1):
            kept = [
                M
                for M in range(k, N - (n - k) + 1)
                if upper(k, n, M, N) > level and 1 - upper(k + 1, n, M, N) > level
            ]
            result = finite_corpus_interval(k, n, N, confidence=confidence)

            assert (kept[0], kept[-1]) == (result.low_count, result.high_count)
            assert (kept[0] / N, kept[-1] / N) == tuple(result.interval)


@pytest.mark.parametrize(("confidence", "N"), [(0.9, 20), (0.95, 40), (0.8, 10), (0.98, 100)])
def test_a_tail_equal_to_the_level_rejects(confidence: float, N: int) -> None:
    """One success in one trial has tail M/N: at M = 1 it is α/2 exactly, and 1 is left out."""
    assert finite_corpus_interval(1, 1, N, confidence=confidence).low_count == 2


@given(partial_corpora(), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_the_interval_surrounds_the_estimate(
    counts: tuple[int, int, int], confidence: float
) -> None:
    """A corpus count next to N k/n is never excluded, and the limits respect what was seen."""
    k, n, N = counts
    result = finite_corpus_interval(k, n, N, confidence=confidence)

    assert k <= result.low_count <= ceil(Fraction(k * N, n))
    assert floor(Fraction(k * N, n)) <= result.high_count <= N - (n - k)
    assert result.low_count <= result.high_count
    assert (k / n, n / N) == (result.rate, result.sample_fraction)


@given(partial_corpora())
def test_a_one_sided_bound_leaves_the_other_end_at_what_was_seen(
    counts: tuple[int, int, int],
) -> None:
    """Failures seen are failures of the corpus, and successes seen are its successes."""
    k, n, N = counts
    lower = finite_corpus_interval(k, n, N, side="lower")
    upper = finite_corpus_interval(k, n, N, side="upper")

    assert N - (n - k) == lower.high_count
    assert k == upper.low_count


@given(partial_corpora())
def test_failures_mirror_successes(counts: tuple[int, int, int]) -> None:
    """Counting failures instead of successes reflects the interval."""
    k, n, N = counts
    result, mirrored = finite_corpus_interval(k, n, N), finite_corpus_interval(n - k, n, N)

    assert (N - mirrored.high_count, N - mirrored.low_count) == (
        result.low_count,
        result.high_count,
    )


@given(st.integers(1, 300), st.data())
def test_an_exhausted_corpus_leaves_a_point(N: int, data: st.DataObject) -> None:
    """With every input evaluated the only possible count is the observed one."""
    k = data.draw(st.integers(0, N))
    result = finite_corpus_interval(k, N, N)

    assert (k, k, 1.0) == (result.low_count, result.high_count, result.sample_fraction)


@settings(deadline=None)
@given(st.integers(1, 60), st.data(), st.sampled_from(["two-sided", "lower", "upper"]))
def test_a_growing_corpus_tends_to_clopper_pearson(n: int, data: st.DataObject, side: Any) -> None:
    """At a corpus of a thousand million inputs the difference is of the order of n/N."""
    k = data.draw(st.integers(0, n))
    N = 10**9
    finite = finite_corpus_interval(k, n, N, side=side).interval
    binomial = clopper_pearson(k, n, side=side)

    assert finite.low == pytest.approx(binomial.low, abs=2e-7)
    assert finite.high == pytest.approx(binomial.high, abs=2e-7)


@pytest.mark.slow("0.95-0.01", "1.0-0.01")
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("required_rate", [0.3, 0.5, 0.9, 0.95, 1.0])
def test_the_cutoff_is_the_smallest_admissible_one(required_rate: float, alpha: float) -> None:
    """By counting: one success fewer would err too often, and None means that all are too few."""
    for N in range(1, 21):
        worst = max(M for M in range(N) if Fraction(M, N) < Fraction(str(required_rate)))
        for n in range(1, N + 1):
            admissible = [k for k in range(n + 1) if upper(k, n, worst, N) <= Fraction(str(alpha))]
            plan = finite_corpus_cutoff(required_rate, n, N, alpha=alpha)

            assert (admissible[0] if admissible else None) == plan.cutoff
            assert worst + 1 == plan.required_successes
            assert (plan.cutoff is None) == (n < plan.minimum_trials)
            assert plan.minimum_trials == finite_corpus_minimum_trials(
                required_rate, N, alpha=alpha
            )
            if admissible:
                assert plan.size == pytest.approx(float(upper(admissible[0], n, worst, N)))
            else:
                assert isinstance(plan.size, Undefined)


@pytest.mark.parametrize("twentieths", range(1, 20))
def test_a_tail_equal_to_alpha_admits(twentieths: int) -> None:
    """All of n inputs succeed in a corpus with one failure with probability (20 − n)/20."""
    alpha = float(f"{twentieths * 5 / 100:.2f}")
    n = 20 - twentieths

    assert n == finite_corpus_minimum_trials(1.0, 20, alpha=alpha)
    assert n == finite_corpus_cutoff(1.0, n, 20, alpha=alpha).cutoff
    if n > 1:
        assert finite_corpus_cutoff(1.0, n - 1, 20, alpha=alpha).cutoff is None


@pytest.mark.parametrize(("rate", "needed"), [(0.07, 7), (0.29, 29), (0.57, 57), (0.5701, 58)])
def test_a_required_rate_is_read_as_written(rate: float, needed: int) -> None:
    """0.07 of a hundred is seven, although the double 0.07 × 100 exceeds seven."""
    assert needed == finite_corpus_cutoff(rate, 90, 100).required_successes


def test_an_exhausted_corpus_is_decided_without_error() -> None:
    """With all inputs evaluated the cutoff is the requirement itself."""
    plan = finite_corpus_cutoff(0.9, 50, 50)

    assert (plan.cutoff, plan.required_successes, plan.size) == (45, 45, 0.0)


def test_a_whole_corpus_has_a_rate_and_no_interval() -> None:
    """The companion's worked example as an exhausted corpus: known exactly, nothing to bound."""
    result = exact_corpus_rate(99_990, 100_000)

    assert result.rate == 0.9999
    assert isinstance(result.interval, Undefined)
    assert "known" in result.interval.reason


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: hypergeometric_tail(1.5, trials=1, corpus_successes=1, corpus_size=2), "k"),  # type: ignore[arg-type]
        (lambda: hypergeometric_tail(True, trials=1, corpus_successes=1, corpus_size=2), "k"),
        (lambda: hypergeometric_tail(1, trials=3, corpus_successes=1, corpus_size=2), "trials"),
        (
            lambda: hypergeometric_cdf(1, trials=1, corpus_successes=3, corpus_size=2),
            "corpus_successes",
        ),
        (lambda: hypergeometric_cdf(1, trials=0, corpus_successes=0, corpus_size=0), "corpus_size"),
        (lambda: finite_corpus_interval(2, 1, 10), "successes"),
        (lambda: finite_corpus_interval(0, 0, 10), "trials"),
        (lambda: finite_corpus_interval(1, 11, 10), "trials"),
        (lambda: finite_corpus_interval(1, 2, 10, confidence=1.0), "confidence"),
        (lambda: finite_corpus_interval(1, 2, 10, confidence=float("nan")), "confidence"),
        (lambda: finite_corpus_interval(1, 2, 10, side="both"), "side"),  # type: ignore[arg-type]
        (lambda: finite_corpus_cutoff(0.0, 5, 10), "required_rate"),
        (lambda: finite_corpus_cutoff(1.1, 5, 10), "required_rate"),
        (lambda: finite_corpus_cutoff(0.9, 11, 10), "trials"),
        (lambda: finite_corpus_cutoff(0.9, 5, 10, alpha=0.0), "alpha"),
        (lambda: finite_corpus_minimum_trials(0.9, 0), "corpus_size"),
        (lambda: finite_corpus_minimum_trials(0.9, 10, alpha=1.0), "alpha"),
        (lambda: exact_corpus_rate(3, 2), "successes"),
        (lambda: exact_corpus_rate(0, 0), "corpus_size"),
    ],
)
def test_bad_input_is_refused_by_name(call: Any, argument: str) -> None:
    """Every refusal names the argument."""
    with pytest.raises(InvalidArgument) as refusal:
        call()

    assert argument == refusal.value.argument
