from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import comb
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import betabinom, f_oneway

from trialwise.errors import InvalidArgument
from trialwise.stats.beta_binomial import BetaBinomialFit, beta_binomial_fit
from trialwise.stats.cluster_correlation import (
    design_effect,
    effective_trials,
    intraclass_correlation,
    is_materially_clustered,
    kish_cluster_size,
    summarise_clusters,
)
from trialwise.stats.result_types import Undefined

Groups = list[tuple[int, int]]

UNEQUAL: Groups = [(9, 10), (4, 12), (7, 7), (1, 3), (0, 1), (15, 20)]
EQUAL: Groups = [(9, 10), (4, 10), (10, 10), (7, 10), (2, 10)]


@st.composite
def groups(draw: st.DrawFn) -> Groups:
    """Counts per input for which a correlation is defined."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=2, max_size=8).filter(lambda s: max(s) > 1))
    counts = [(draw(st.integers(0, m)), m) for m in sizes]
    successes = sum(y for y, _ in counts)
    if successes == 0:
        counts[0] = (1, counts[0][1])
    elif successes == sum(sizes):
        counts[0] = (counts[0][1] - 1, counts[0][1])
    return counts


def defined(value: float | Undefined) -> float:
    assert not isinstance(value, Undefined)
    return value


def fitted(counts: Groups) -> BetaBinomialFit:
    fit = beta_binomial_fit(counts)
    assert isinstance(fit, BetaBinomialFit)
    return fit


# Intraclass correlation


@pytest.mark.parametrize("counts", [UNEQUAL, EQUAL])
def test_the_anova_estimate_follows_from_scipys_f(counts: Groups) -> None:
    """ρ̂ = (F − 1)/(F + n₀ − 1), with F computed on the single outcomes."""
    F = f_oneway(*[[1] * y + [0] * (m - y) for y, m in counts]).statistic
    N, J = sum(m for _, m in counts), len(counts)
    size = (N - sum(m * m for _, m in counts) / N) / (J - 1)

    assert intraclass_correlation(counts) == pytest.approx((F - 1) / (F + size - 1), rel=1e-12)


@pytest.mark.parametrize("counts", [UNEQUAL, EQUAL])
def test_the_fleiss_cuzick_estimate_is_its_definition(counts: Groups) -> None:
    """In rationals: one minus the mean disagreement within inputs over that of the pool."""
    N, J = sum(m for _, m in counts), len(counts)
    P = Fraction(sum(y for y, _ in counts), N)
    within = sum(Fraction(y * (m - y), m) for y, m in counts)
    exact = 1 - within / ((N - J) * P * (1 - P))

    assert intraclass_correlation(counts, method="fleiss-cuzick") == pytest.approx(float(exact))


@pytest.mark.parametrize("method", ["anova", "fleiss-cuzick"])
def test_unanimous_inputs_are_perfectly_correlated(method: Any) -> None:
    """Inputs that always or never succeed give 1."""
    assert intraclass_correlation([(5, 5), (0, 3), (4, 4)], method=method) == 1.0


@pytest.mark.parametrize("m", [2, 3, 10])
def test_identical_inputs_reach_the_lower_limit(m: int) -> None:
    """Equal counts in inputs of m trials give −1/(m − 1), the smallest value ANOVA can take."""
    assert intraclass_correlation([(1, m)] * 4) == pytest.approx(-1 / (m - 1))


@given(groups(), st.sampled_from(["anova", "fleiss-cuzick"]), st.randoms())
def test_relabelling_inputs_changes_no_correlation(counts: Groups, method: Any, rng: Any) -> None:
    """The order of the inputs is irrelevant, and calling success failure is too."""
    icc = defined(intraclass_correlation(counts, method=method))
    shuffled = rng.sample(counts, len(counts))

    assert icc == intraclass_correlation(shuffled, method=method)
    assert defined(
        intraclass_correlation([(m - y, m) for y, m in counts], method=method)
    ) == pytest.approx(icc, abs=1e-12)
    assert icc <= 1


@pytest.mark.parametrize(
    "counts", [[(2, 4)], [(1, 1), (0, 1), (1, 1)], [(4, 4), (2, 2)], [(0, 4), (0, 2)]]
)
def test_a_correlation_that_the_data_do_not_define_is_undefined(counts: Groups) -> None:
    """One input, inputs of one trial, and outcomes that never differ."""
    assert isinstance(intraclass_correlation(counts), Undefined)
    assert isinstance(beta_binomial_fit(counts), Undefined)
    assert isinstance(summarise_clusters(counts).effective_trials, Undefined)


# Design effect


@pytest.mark.parametrize("sizes", [(3, 3), (1, 2, 4), (5, 1)])
def test_kishs_size_gives_the_exact_variance_of_the_pooled_rate(sizes: tuple[int, ...]) -> None:
    """Enumerated in rationals for inputs that succeed at rate 1/5 or 9/10 with equal chance."""
    thetas = (Fraction(1, 5), Fraction(9, 10))
    mean = sum(thetas) / 2
    between = sum((theta - mean) ** 2 for theta in thetas) / 2
    icc = between / (mean * (1 - mean))
    N = sum(sizes)
    second = Fraction(0)
    for counts in product(*(range(m + 1) for m in sizes)):
        chance = Fraction(1)
        for y, m in zip(counts, sizes, strict=True):
            chance *= sum(
                (Fraction(comb(m, y) * t**y * (1 - t) ** (m - y)) for t in thetas), Fraction(0)
            )
            chance /= 2
        second += chance * sum(counts) ** 2
    variance = second / N**2 - mean**2
    effect = design_effect(float(icc), kish_cluster_size(sizes))

    assert float(variance / (mean * (1 - mean) / N)) == pytest.approx(effect)
    assert effective_trials(N, float(icc), mean_size=kish_cluster_size(sizes)) == pytest.approx(
        float(mean * (1 - mean) / variance)
    )


@pytest.mark.parametrize(
    ("n", "rho"), [(100, "0"), (100, "1"), (1000, "0.01"), (50, "0.25"), (1, "0.7")]
)
def test_equicorrelated_trials_follow_the_companion(n: int, rho: str) -> None:
    """n / (1 + (n − 1) ρ), section 8.2."""
    exact = n / (1 + (n - 1) * Fraction(rho))

    assert effective_trials(n, float(rho)) == pytest.approx(float(exact))


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_correlation_never_adds_evidence(n: int, icc: float, share: float) -> None:
    """Effective trials lie between one trial and all of them, and fall as ρ or m grows."""
    size = 1 + share * (n - 1)
    effective = effective_trials(n, icc, mean_size=size)

    assert 1 - 1e-9 <= effective <= n
    assert effective_trials(n, icc) <= effective * (1 + 1e-12)
    assert effective_trials(n, min(1.0, icc * 1.1), mean_size=size) <= effective * (1 + 1e-12)


@pytest.mark.parametrize(
    ("trials", "inputs", "expected"),
    [(2, 1, False), (3, 1, True), (10**18, 5 * 10**17, False), (10**18 + 1, 5 * 10**17, True)],
)
def test_material_clustering_is_decided_in_integers(
    trials: int, inputs: int, expected: bool
) -> None:
    """More than two trials to an input; exactly two are not."""
    assert expected is is_materially_clustered(trials, inputs)


@pytest.mark.slow
@given(groups())
def test_a_summary_repeats_its_parts(counts: Groups) -> None:
    """It is the correlation, Kish's size and what follows from them, with ρ < 0 taken as 0."""
    summary = summarise_clusters(counts)
    trials = sum(m for _, m in counts)
    icc = defined(intraclass_correlation(counts))
    size = kish_cluster_size([m for _, m in counts])

    assert (icc, size) == (summary.icc, summary.kish_size)
    assert design_effect(max(icc, 0.0), size) == summary.design_effect
    assert defined(summary.effective_trials) <= trials
    assert is_materially_clustered(trials, len(counts)) is summary.materially_clustered
    assert (trials, sum(y for y, _ in counts)) == (summary.trials, summary.successes)


# Beta-binomial likelihood


def exact_log_likelihood(counts: Groups, mean: Any, rho: Any) -> Any:
    """Σ log of the beta-binomial probability, by gamma functions at 60 digits."""
    if rho == 0:
        return sum(
            mpmath.log(comb(m, y)) + y * mpmath.log(mean) + (m - y) * mpmath.log(1 - mean)
            for y, m in counts
        )
    precision = (1 - rho) / rho
    a, b = mean * precision, (1 - mean) * precision
    return sum(
        mpmath.log(comb(m, y))
        + mpmath.log(mpmath.beta(y + a, m - y + b))
        - mpmath.log(mpmath.beta(a, b))
        for y, m in counts
    )


@pytest.mark.slow
@pytest.mark.parametrize("counts", [UNEQUAL, EQUAL, [(20, 20), (19, 20), (3, 20), (20, 20)]])
def test_the_fit_is_the_maximum_that_mpmath_finds(counts: Groups) -> None:
    """At 60 digits the gradient vanishes at the fit, and the likelihoods agree."""
    fit = fitted(counts)
    with mpmath.workdps(60):
        mean, rho = mpmath.findroot(
            lambda mu, r: [
                mpmath.diff(lambda x: exact_log_likelihood(counts, x, r), mu),
                mpmath.diff(lambda x: exact_log_likelihood(counts, mu, x), r),
            ],
            (mpmath.mpf(fit.mean), mpmath.mpf(fit.rho)),
            tol=1e-25,
        )
        best = exact_log_likelihood(counts, mean, rho)
        pooled = mpmath.mpf(sum(y for y, _ in counts)) / sum(m for _, m in counts)
        binomial = exact_log_likelihood(counts, pooled, 0)

    assert fit.location == "interior"
    assert fit.converged
    assert fit.mean == pytest.approx(float(mean), rel=1e-9)
    assert fit.rho == pytest.approx(float(rho), rel=1e-9)
    assert fit.log_likelihood == pytest.approx(float(best), rel=1e-12)
    assert fit.binomial_log_likelihood == pytest.approx(float(binomial), rel=1e-12)
    assert fit.likelihood_ratio == pytest.approx(2 * float(best - binomial), rel=1e-9)


def test_the_fit_agrees_with_scipys_optimiser() -> None:
    """Nelder–Mead on scipy's probabilities in the log odds of mean and ρ."""
    fit = fitted(EQUAL)

    def loss(x: Any) -> float:
        mean, rho = 1 / (1 + np.exp(-x))
        precision = (1 - rho) / rho
        a, b = mean * precision, (1 - mean) * precision
        return -float(sum(betabinom.logpmf(y, m, a, b) for y, m in EQUAL))

    best = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    mean, rho = 1 / (1 + np.exp(-best.x))

    assert (fit.mean, fit.rho) == pytest.approx((mean, rho), abs=1e-7)
    assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-10)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(groups())
def test_no_other_parameters_are_more_likely(counts: Groups) -> None:
    """Neither the binomial model nor any point of a grid over mean and ρ beats the fit."""
    fit = fitted(counts)
    longest = max(m for _, m in counts)
    i = np.arange(longest)[:, None, None]
    means = np.linspace(0.02, 0.98, 25)[None, :, None]
    rhos = np.concatenate([[1e-4, 1e-3, 0.01], np.linspace(0.03, 0.97, 20), [0.999]])[None, None, :]
    up = np.log(means * (1 - rhos) + i * rhos).cumsum(axis=0)
    down = np.log((1 - means) * (1 - rhos) + i * rhos).cumsum(axis=0)
    both = np.log(1 - rhos + i * rhos).cumsum(axis=0)
    grid: Any = 0
    for y, m in counts:
        grid = grid + np.log(float(comb(m, y))) - both[m - 1]
        grid = grid + (up[y - 1] if y else 0) + (down[m - y - 1] if y < m else 0)

    assert fit.converged
    assert fit.log_likelihood >= fit.binomial_log_likelihood
    assert fit.log_likelihood >= grid.max() - 1e-9


@pytest.mark.slow
@settings(deadline=None)
@given(groups(), st.randoms())
def test_relabelling_changes_no_fit(counts: Groups, rng: Any) -> None:
    """Order is irrelevant, and calling success failure mirrors the mean."""
    fit = fitted(counts)
    mirrored = fitted([(m - y, m) for y, m in counts])

    assert fit == fitted(rng.sample(counts, len(counts)))
    assert mirrored.mean == pytest.approx(1 - fit.mean, abs=1e-6)
    assert mirrored.rho == pytest.approx(fit.rho, abs=1e-6)
    assert mirrored.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-9)


def test_inputs_more_alike_than_chance_fall_back_to_the_binomial() -> None:
    """Without an interior maximum ρ is 0 and the mean is the pooled rate."""
    fit = fitted([(5, 10), (5, 10), (6, 12)])

    assert (fit.mean, fit.rho, fit.location, fit.converged) == (0.5, 0.0, "rho=0", True)
    assert fit.log_likelihood == fit.binomial_log_likelihood
    assert isinstance(fit.shape, Undefined)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "location"),
    [
        ([(0, 1), (10, 20), (3, 3), (1, 1), (2, 2)], "interior"),
        ([(0, 2), (12, 20), (0, 1), (3, 3)], "rho=0"),
    ],
)
def test_of_two_local_maxima_the_larger_one_is_taken(counts: Groups, location: str) -> None:
    """Both profiles fall from ρ = 0 and rise again: once above the binomial, once not."""
    fit = fitted(counts)
    pooled = sum(y for y, _ in counts) / sum(m for _, m in counts)
    with mpmath.workdps(40):
        profile = [
            max(
                exact_log_likelihood(counts, mpmath.mpf(mu) / 40, mpmath.mpf(r) / 50)
                for mu in range(1, 40)
            )
            for r in range(1, 40)
        ]
        binomial = exact_log_likelihood(counts, mpmath.mpf(pooled), 0)

    assert profile[0] < binomial
    assert any(after > before for before, after in pairwise(profile))
    assert (max(profile) > binomial) is (location == "interior")
    assert location == fit.location
    assert fit.log_likelihood >= float(max(*profile, binomial)) - 1e-12


def test_unanimous_inputs_are_all_or_nothing() -> None:
    """The likelihood is largest at ρ = 1, where each input is one Bernoulli trial."""
    fit = fitted([(5, 5), (0, 3), (4, 4), (1, 1)])

    assert (fit.mean, fit.rho, fit.location) == (0.75, 1.0, "rho=1")
    assert fit.log_likelihood == pytest.approx(float(np.log(0.75**3 * 0.25)))
    assert isinstance(fit.shape, Undefined)


def test_the_shape_has_the_mean_and_the_correlation() -> None:
    """α/(α + β) is the mean and 1/(α + β + 1) is ρ."""
    fit = fitted(UNEQUAL)
    assert not isinstance(fit.shape, Undefined)
    a, b = fit.shape

    assert (fit.mean, fit.rho) == pytest.approx((a / (a + b), 1 / (a + b + 1)))


# Refusals


@pytest.mark.parametrize("counts", [[], [(3, 2)], [(0, 0)], [(1, 2, 3)], [(-1, 2)], "ab", None, 3])
def test_groups_that_are_not_counts_are_refused(counts: Any) -> None:
    """Every function of groups refuses them by name."""
    for function in (intraclass_correlation, beta_binomial_fit, summarise_clusters):
        with pytest.raises(InvalidArgument, match="groups"):
            function(counts)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: intraclass_correlation(EQUAL, method="other"), "method"),  # type: ignore[arg-type]
        (lambda: kish_cluster_size([]), "sizes"),
        (lambda: kish_cluster_size([1, 0]), "sizes"),
        (lambda: design_effect(-0.1, 2), "icc"),
        (lambda: design_effect(float("nan"), 2), "icc"),
        (lambda: design_effect(0.1, 0.9), "mean_size"),
        (lambda: design_effect(0.1, float("inf")), "mean_size"),
        (lambda: effective_trials(0, 0.1), "trials"),
        (lambda: effective_trials(10, 1.1), "icc"),
        (lambda: effective_trials(10, 0.1, mean_size=11), "mean_size"),
        (lambda: is_materially_clustered(0, 1), "trials"),
        (lambda: is_materially_clustered(10, 0), "distinct_inputs"),
        (lambda: is_materially_clustered(10, 11), "distinct_inputs"),
        (lambda: is_materially_clustered(10.5, 1), "trials"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused_by_name(call: Any, argument: str) -> None:
    """Every refusal names the argument."""
    with pytest.raises(InvalidArgument) as refusal:
        call()

    assert argument == refusal.value.argument
