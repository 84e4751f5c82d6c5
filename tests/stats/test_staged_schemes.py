"""Schemes of comparisons that stop early, against an own enumeration of every baseline and path."""

from __future__ import annotations

from dataclasses import asdict, replace
from fractions import Fraction
from functools import cache
from math import comb
from typing import TypeAlias

import numpy as np
import pytest
from scipy.stats import binom
from tools.designs import SCHEMES

from trialwise.stats import design_power
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.staged_regression import (
    apply_scheme,
    average_chances,
    find_level,
    find_scheme,
    search_scheme,
    staged_regression,
    start_scheme,
)
from trialwise.stats.staged_schemes import StagedScheme

ALPHA = 0.05
Floats: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def scheme_for(trials: int, margin: float, most: int | None = None) -> StagedScheme:
    found = find_scheme(trials, margin, most_trials=most)
    assert found is not None
    return found


def follow(
    accept: tuple[int, ...], reject: tuple[int, ...], rate: Fraction
) -> tuple[Fraction, Fraction]:
    """P(FAIL) and mean trials, path by path in rationals."""
    states, fails, mean = {0: Fraction(1)}, Fraction(0), Fraction(0)
    for m in range(1, len(accept)):
        mean += sum(states.values())
        following: dict[int, Fraction] = {}
        for f, weight in states.items():
            for failures, chance in ((f, rate), (f + 1, 1 - rate)):
                following[failures] = following.get(failures, Fraction(0)) + weight * chance
        fails += sum(w for f, w in following.items() if f >= reject[m])
        states = {f: w for f, w in following.items() if accept[m] < f < reject[m]}
    assert not states
    return fails, mean


def list_chances(scheme: StagedScheme, rate: float, counts: range) -> tuple[Floats, Floats]:
    """P(FAIL) and mean trials for some baseline counts, all at once in numpy."""
    rules = [scheme.boundaries(k) for k in counts]
    most = max(len(accept) for accept, _ in rules)
    # A rule that has ended keeps its last boundaries, where everything is decided.
    accept, reject = (
        np.array([one[i] + (one[i][-1],) * (most - len(one[i])) for one in rules]) for i in (0, 1)
    )
    failures = np.arange(reject.max() + 1)
    states = np.zeros((len(rules), len(failures)))
    states[:, 0] = 1
    fails, mean = np.zeros(len(rules)), np.zeros(len(rules))
    for m in range(1, most):
        mean += states.sum(1)
        states[:, 1:] = states[:, 1:] * rate + states[:, :-1] * (1 - rate)
        states[:, 0] *= rate
        over = failures >= reject[:, m, None]
        fails += (states * over).sum(1)
        states[over | (failures <= accept[:, m, None])] = 0
    return fails, mean


def average(scheme: StagedScheme, before: float, now: float) -> tuple[float, float]:
    """P(FAIL) and mean trials over all baselines but the most improbable ones."""
    size = scheme.baseline_trials
    counts = range(*(int(binom.ppf(q, size, before)) + i for q, i in ((1e-10, 0), (1 - 1e-10, 1))))
    weights = binom.pmf(np.array(counts), size, before)
    fails, mean = list_chances(scheme, now, counts)
    return float(weights @ fails), float(weights @ mean)


def bound_level(scheme: StagedScheme, limit: float) -> float:
    """Bound P(FAIL) at every common rate by intervals of rates, halved while above the limit.

    A lower rate of the test FAILs more often. P(FAIL) of a baseline at most k, at its largest,
    rises with k, and so is largest at the highest rate of the baseline.
    """
    size = scheme.baseline_trials
    cells, worst = [(i / 20, (i + 1) / 20) for i in range(20)], 0.0
    while cells:
        low, high = cells.pop()
        fails = np.maximum.accumulate(list_chances(scheme, low, range(size + 1))[0])
        found = float(binom.pmf(np.arange(size + 1), size, high) @ fails)
        if found <= limit:
            worst = max(worst, found)
            continue
        assert high - low > 1e-6, f"P(FAIL) = {found} near {low}"
        cells += [(low, (low + high) / 2), ((low + high) / 2, high)]
    return worst


def test_the_chances_of_a_scheme_are_those_of_its_paths() -> None:
    """12 trials of a baseline, a loss of 40 points: rationals over all baselines and paths."""
    size, before, now = 12, Fraction(9, 10), Fraction(6, 10)
    scheme = scheme_for(size, 0.4)
    design = apply_scheme(scheme, 11, 0.52)
    fails = mean = Fraction(0)
    for k in range(size + 1):
        weight = comb(size, k) * before**k * (1 - before) ** (size - k)
        one = follow(*scheme.boundaries(k), now)
        fails, mean = fails + weight * one[0], mean + weight * one[1]
    found = average_chances(design, float(before), float(now))

    assert found.fails == pytest.approx(float(fails), rel=1e-6)
    assert found.mean_trials == pytest.approx(float(mean), rel=1e-6)
    assert average(scheme, 0.9, 0.6) == pytest.approx((float(fails), float(mean)))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "margin", "most"), [(12, 0.4, None), (20, 0.3, 15)])
def test_no_common_rate_fails_more_often_than_alpha(
    size: int, margin: float, most: int | None
) -> None:
    """Intervals that cover every rate, each bounded by its two ends; and the level is attained."""
    scheme = scheme_for(size, margin, most)
    assert scheme.level is not None
    rates = np.linspace(0, 1, 401)
    largest = max(average(scheme, float(p), float(p))[0] for p in rates)

    assert bound_level(scheme, scheme.level + 1e-3) <= scheme.level + 1e-3
    assert largest <= scheme.level <= ALPHA
    assert scheme.level == pytest.approx(largest, abs=1e-4)
    assert most is None or max(len(scheme.boundaries(k)[0]) for k in range(size + 1)) == most + 1


@pytest.mark.parametrize("size", [100, 500])
def test_false_alarms_are_as_frequent_as_alpha_allows(size: int) -> None:
    """At rates from 60 % to 98 %: no less than three quarters of alpha, and never more."""
    scheme = scheme_for(size, 0.1)
    alarms = [average(scheme, rate, rate)[0] for rate in (0.6, 0.7, 0.8, 0.9, 0.95, 0.97)]

    assert max(alarms) <= ALPHA
    assert min(alarms) > 0.74 * ALPHA


@cache
def replace_rule(k: int, size: int, trials: int) -> RegressionCutoff:
    """The rule before: Boschloo's test at the end, and five looks on the way."""
    return staged_regression(k, size, trials, k / size - 0.1, alpha=ALPHA)


@pytest.mark.slow("180-200-146", "190-200-100", "475-500-74")
@pytest.mark.parametrize(
    ("k", "size", "trials"), [(95, 100, 171), (180, 200, 146), (190, 200, 100), (475, 500, 74)]
)
def test_a_scheme_needs_fewer_trials_than_the_rule_before_and_finds_as_much(
    k: int, size: int, trials: int
) -> None:
    """Unchanged, 5, 10, 20 and 40 points worse; the old rule at the size that it had."""
    scheme, rate = scheme_for(size, 0.1), k / size
    for drop in (0.0, 0.05, 0.1, 0.2, 0.4):
        before = average_chances(replace_rule(k, size, trials), rate, rate - drop)
        fails, mean = average(scheme, rate, rate - drop)

        assert mean < 0.9 * before.mean_trials
        if drop == 0.1:
            assert fails >= max(0.8, before.fails - 0.001)
    assert (
        average(scheme, rate, rate)[1]
        < 0.76 * average_chances(replace_rule(k, size, trials), rate, rate).mean_trials
    )


@pytest.mark.slow
def test_a_scheme_takes_half_the_trials_of_a_fixed_test_with_the_same_power() -> None:
    """475 of 500: Boschloo's test of the fewest trials that find 85 % as often."""
    scheme = scheme_for(500, 0.1)
    power, worse = average(scheme, 0.95, 0.85)
    fixed = next(n for n in range(40, 200) if design_power(0.95, 0.85, 500, n) >= power)

    assert average(scheme, 0.95, 0.95)[1] < 0.6 * fixed
    assert worse < 0.6 * fixed
    assert average(scheme, 0.95, 0.5)[1] < 0.12 * fixed


@pytest.mark.slow
def test_boundaries_are_in_order_and_end_in_a_decision() -> None:
    """They never fall, a failure at a time, and what cannot FAIL any more has passed."""
    for size, margin in ((30, 0.2), (100, 0.1), (300, 0.1)):
        scheme = scheme_for(size, margin)
        for k in range(1, size + 1):
            accept, reject = scheme.boundaries(k)
            n = len(accept) - 1
            assert accept[n] + 1 == reject[n]
            for m in range(n):
                assert 0 <= accept[m + 1] - accept[m] <= max(1, accept[m + 1] + 1)
                assert reject[m] <= reject[m + 1] <= reject[m] + 1
                assert accept[m] < reject[m]
                assert accept[m] >= accept[n] - (n - m)


@pytest.mark.slow
def test_a_baseline_too_small_for_its_margin_still_finds_a_broken_service() -> None:
    """80 of 100 and no loss, or a tenth of a point: half the rate is found nearly always."""
    for margin in (0.0, 0.001):
        assert average(scheme_for(100, margin), 0.8, 0.4)[0] > 0.99


@pytest.mark.slow("3", "7")
@pytest.mark.parametrize("place", [0, 1, 3, 7])
def test_shipped_schemes_keep_their_level(place: int) -> None:
    """Those of the usual sizes; higher limits would not."""
    scheme = assert_level(*SCHEMES[place])
    higher = replace(scheme, heights=tuple(height + 0.3 for height in scheme.heights))

    assert find_level(higher) > ALPHA


@pytest.mark.slow
def test_every_shipped_scheme_keeps_its_level() -> None:
    """The level is proven again for each."""
    for size, margin in SCHEMES:
        assert_level(size, margin)


def assert_level(size: int, margin: float) -> StagedScheme:
    scheme = scheme_for(size, margin)

    assert scheme.level == find_level(scheme)
    assert 0.95 * ALPHA < find_level(scheme) <= ALPHA
    return scheme


@pytest.mark.slow
def test_a_search_finds_what_ships() -> None:
    """50 and 100 trials, a loss of 10 points."""
    for size in (50, 100):
        found = search_scheme(start_scheme(size, 0.1))
        assert found is not None
        assert asdict(found) == asdict(scheme_for(size, 0.1))


def test_sizes_without_a_scheme_have_none() -> None:
    """Baselines of a few trials, and those for which a search would take long."""
    assert find_scheme(9, 0.1) is None
    assert find_scheme(100, 0.1, most_trials=1) is None
    assert find_scheme(100, 0.1, alpha=1e-9) is None
    assert find_scheme(4001, 0.02) is None


def test_a_limit_that_limits_nothing_changes_nothing() -> None:
    """At most 1,000 trials are those of the shipped scheme."""
    assert find_scheme(100, 0.1, most_trials=1000) == find_scheme(100, 0.1)
