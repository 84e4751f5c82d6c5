"""Models of repeated inputs, held against statsmodels, scipy and simulation-free coverage."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import beta, norm, t

from trialwise.stats.beta_binomial import BetaBinomialFit, beta_binomial_fit
from trialwise.stats.cluster_estimators import prompt_weighted
from trialwise.stats.cluster_models import (
    MODEL_METHODS,
    GeeFit,
    ModelMethod,
    fit_gee,
    modelled_rate,
)
from trialwise.stats.result_types import Interval, Undefined

Groups = list[tuple[int, int]]
EVEN: Groups = [(9, 10), (4, 10), (10, 10), (7, 10), (2, 10), (8, 10), (10, 10), (5, 10)]
UNEVEN: Groups = [(9, 10), (1, 4), (12, 12), (7, 9), (2, 5), (3, 3), (0, 2), (20, 25)]


def fit_statsmodels(groups: Groups) -> tuple[float, float, float]:
    """The rate, its robust variance without a small-sample factor, and the correlation."""
    outcomes = np.concatenate([[1] * y + [0] * (m - y) for y, m in groups])
    inputs = np.concatenate([[place] * m for place, (_, m) in enumerate(groups)])
    working = sm.cov_struct.Exchangeable()
    found = sm.GEE(
        outcomes,
        np.ones((len(outcomes), 1)),
        groups=inputs,
        family=sm.families.Binomial(),
        cov_struct=working,
    ).fit(maxiter=500, ctol=1e-12)
    rate = 1 / (1 + math.exp(-float(found.params[0])))
    variance = float(found.cov_params()[0, 0]) * (rate * (1 - rate)) ** 2
    return rate, variance, float(working.dep_params)


@pytest.mark.parametrize("groups", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_estimating_equations_agree_with_statsmodels(groups: Groups) -> None:
    """Rate, working correlation and sandwich variance, the last times J/(J − 1)."""
    found = fit_gee(groups)
    assert isinstance(found, GeeFit)
    rate, variance, correlation = fit_statsmodels(groups)

    assert found.rate == pytest.approx(rate, rel=1e-6)
    assert found.correlation == pytest.approx(correlation, rel=1e-5)
    assert found.variance == pytest.approx(variance * len(groups) / (len(groups) - 1), rel=1e-5)


def test_the_interval_of_the_equations_is_students_on_the_logit() -> None:
    found = modelled_rate(EVEN, confidence=0.9, method="gee").interval
    fit = fit_gee(EVEN)
    assert isinstance(found, Interval)
    assert isinstance(fit, GeeFit)

    half = t.ppf(0.95, len(EVEN) - 1) * math.sqrt(fit.variance) / (fit.rate * (1 - fit.rate))
    middle = math.log(fit.rate / (1 - fit.rate))
    assert found.low == pytest.approx(1 / (1 + math.exp(-(middle - half))))
    assert found.high == pytest.approx(1 / (1 + math.exp(-(middle + half))))


def test_the_beta_binomial_interval_is_exact_on_the_trials_that_are_left() -> None:
    """n·m/(1 + (m − 1)ρ) trials at the fitted mean; Wilson's interval for earlier plans."""
    found = modelled_rate(UNEVEN, confidence=0.9, method="beta-binomial")
    earlier = modelled_rate(UNEVEN, confidence=0.9, method="beta-binomial", bounds="score")
    fit = beta_binomial_fit(UNEVEN)
    assert isinstance(fit, BetaBinomialFit)
    assert isinstance(found.interval, Interval)
    assert isinstance(earlier.interval, Interval)

    n, p, z = sum(m / (1 + (m - 1) * fit.rho) for _, m in UNEVEN), fit.mean, norm.ppf(0.95)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert earlier.interval.low == pytest.approx(middle - half)
    assert found.interval.low == pytest.approx(beta.ppf(0.05, n * p, n * (1 - p) + 1))
    assert found.interval.high == pytest.approx(beta.ppf(0.95, n * p + 1, n * (1 - p)))
    assert found.effective_trials == pytest.approx(n)


@pytest.mark.parametrize("method", MODEL_METHODS)
@pytest.mark.parametrize("groups", [[(5, 5)] * 30, [(0, 5)] * 30, [(3, 5)] * 30])
def test_inputs_that_do_not_differ_give_the_interval_over_inputs(
    groups: Groups, method: ModelMethod
) -> None:
    """30 inputs that pass five times each show no more than 30 inputs do."""
    found, safe = modelled_rate(groups, method=method), prompt_weighted(groups)

    assert found.interval == safe.interval
    assert found.method == method


@pytest.mark.parametrize("method", MODEL_METHODS)
def test_one_input_has_no_interval(method: ModelMethod) -> None:
    assert isinstance(modelled_rate([(3, 5)], method=method).interval, Undefined)
    assert isinstance(fit_gee([(3, 5)]), Undefined)


@pytest.mark.parametrize("method", ["gee", "beta-binomial"])
def test_the_lower_bound_of_answers_that_never_vary_misses_about_as_often_as_stated(
    method: ModelMethod,
) -> None:
    """J = 40 inputs that always or never pass: the number that pass is binomial, so every case
    can be enumerated. A bound at 5 % that took 120 trials for 120 draws would miss in 17 %."""
    inputs, repeats, rate, missed = 40, 3, 0.8, 0.0
    for passing in range(inputs + 1):
        groups = [(repeats, repeats)] * passing + [(0, repeats)] * (inputs - passing)
        found = modelled_rate(groups, confidence=0.9, method=method).interval
        assert isinstance(found, Interval)
        chance = math.comb(inputs, passing) * rate**passing * (1 - rate) ** (inputs - passing)
        missed += chance * (found.low > rate)

    assert missed < 0.08


def test_the_bootstrap_is_the_same_every_time() -> None:
    first, second = (modelled_rate(EVEN, method="cluster-bootstrap") for _ in range(2))

    assert first == second
    assert isinstance(first.interval, Interval)
    # All rates that resampling eight inputs can give, at the extremes.
    rates = sorted(sum(chosen) / 8 for chosen in product((0.2, 1.0), repeat=8))
    assert rates[0] <= first.interval.low < first.rate < first.interval.high <= rates[-1]
