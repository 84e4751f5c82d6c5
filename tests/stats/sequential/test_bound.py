"""What no test can beat, against scipy's binomial and an exact linear programme."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from trialwise.errors import InvalidArgument
from trialwise.stats.sequential import (
    FixedSize,
    SequentialDesign,
    expected_trials_bound,
    fixed_size,
    shortfall,
)


def serves(n: int, p0: float, p1: float, alpha: float, beta: float) -> list[int]:
    """The cutoffs of a fixed sample with both errors kept, tried one by one."""
    cutoffs = np.arange(n)
    fails = binom.sf(cutoffs, n, 1 - p0)
    passes = binom.cdf(cutoffs, n, 1 - p1)
    return [int(c) for c in cutoffs[(fails <= alpha) & (passes <= beta)]]


@pytest.mark.parametrize(
    ("p0", "p1", "n"), [(0.9, 0.8, 78), (0.95, 0.85, 52), (0.99, 0.97, 301), (0.8, 0.7, 116)]
)
def test_the_fixed_sample_is_the_smallest_that_serves(p0: float, p1: float, n: int) -> None:
    """No smaller sample has a cutoff that keeps both errors."""
    size = fixed_size(p0, p1)

    assert size.trials == n
    assert size.most_failures in serves(n, p0, p1, 0.05, 0.2)
    assert not any(serves(m, p0, p1, 0.05, 0.2) for m in range(1, n))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    p0=st.floats(0.3, 0.99),
    margin=st.floats(0.1, 0.25),
    alpha=st.sampled_from([0.01, 0.05, 0.2]),
    beta=st.sampled_from([0.05, 0.1, 0.3]),
)
def test_the_search_for_the_fixed_sample_skips_none(
    p0: float, margin: float, alpha: float, beta: float
) -> None:
    """The first size that serves, by trying every size from 1 on."""
    p1 = p0 - margin
    n = 1
    while not serves(n, p0, p1, alpha, beta):
        n += 1

    assert fixed_size(p0, p1, alpha=alpha, beta=beta).trials == n


def test_a_perfect_rate_needs_enough_successes_only() -> None:
    """Against p0 = 1 the sample is the first n with p1ⁿ ≤ beta, and one failure fails."""
    assert fixed_size(1.0, 0.9) == FixedSize(trials=16, most_failures=0)


def power(n: int, level: float, null: float, other: float) -> float:
    """The power of the most powerful test that many successes speak against `null`."""
    counts = range(n, -1, -1)
    spent = gained = 0.0
    for k in counts:
        step = float(binom.pmf(k, n, null))
        share = min(1.0, (level - spent) / step)
        gained += share * float(binom.pmf(k, n, other))
        spent += share * step
        if share < 1:
            break
    return gained


@pytest.mark.parametrize("cap", [5, 20, 50, 77])
def test_the_undecided_share_is_the_neyman_pearson_limit(cap: int) -> None:
    """1 − alpha − power at p0 and 1 − beta − power at p1, coin tosses included."""
    found = shortfall(0.9, 0.8, cap=cap)

    assert found is not None
    passing = power(cap, 0.2, 0.8, 0.9)
    failing = power(cap, 0.05, 0.1, 0.2)
    assert found.inconclusive_p0 == pytest.approx(max(0, 0.95 - passing), abs=1e-9)
    assert found.inconclusive_p1 == pytest.approx(max(0, 0.8 - failing), abs=1e-9)
    assert found.smallest_cap == 78


@pytest.mark.slow
def test_fifty_trials_leave_at_least_7_and_14_percent() -> None:
    """The published limits at 0.90 and 0.80, told in one sentence."""
    short = SequentialDesign.optimal(0.9, 0.8, cap=50).shortfall

    assert short is not None
    assert round(short.inconclusive_p0, 3) == 0.067
    assert round(short.inconclusive_p1, 3) == 0.140
    for part in ("50 trials", "6.7 %", "14.0 %", "78 trials"):
        assert part in str(short)
    assert SequentialDesign.optimal(0.9, 0.8, cap=78).shortfall is None
    nearly = shortfall(0.95, 0.85, cap=50)
    assert "without tossing a coin" in str(nearly)
    assert "52 trials" in str(nearly)


def test_a_cap_that_no_look_can_use_falls_short() -> None:
    """Looks at 30 and 58 for 0.95 against 0.85: 52 trials would do, but neither look does."""
    assert serves(52, 0.95, 0.85, 0.05, 0.2)
    assert not serves(58, 0.95, 0.85, 0.05, 0.2)
    found = shortfall(0.95, 0.85, cap=58, batch=30)

    assert found is not None
    assert found.smallest_cap == next(n for n in range(58, 99) if serves(n, 0.95, 0.85, 0.05, 0.2))
    assert shortfall(0.95, 0.85, cap=58) is None
    assert not SequentialDesign.optimal(0.95, 0.85, cap=58, batch=30).always_decides


@pytest.mark.slow("0.9-0.8-least0", "0.95-0.85-least1", "0.8-0.7-least2")
@pytest.mark.parametrize(
    ("p0", "p1", "least"),
    [
        (0.90, 0.80, (36.6, 50.4, 43.2)),
        (0.95, 0.85, (26.5, 33.8, 27.6)),
        (0.80, 0.70, (52.2, 75.7, 67.9)),
        pytest.param(0.99, 0.97, (145.7, 183.0, 146.9), marks=pytest.mark.slow),
    ],
)
def test_the_least_expected_trials_of_any_test(
    p0: float, p1: float, least: tuple[float, float, float]
) -> None:
    """The published minima at p0, half-way and p1; at the ends no less than Wald's information."""
    found = [expected_trials_bound(p0, p1, p) for p in (p0, (p0 + p1) / 2, p1)]

    assert found == pytest.approx(list(least), abs=0.051)
    upper, lower = math.log(0.95 / 0.2), math.log(0.05 / 0.8)
    good = p0 * math.log(p0 / p1) + (1 - p0) * math.log((1 - p0) / (1 - p1))
    bad = p1 * math.log(p0 / p1) + (1 - p1) * math.log((1 - p0) / (1 - p1))
    assert found[0] >= (0.95 * upper + 0.05 * lower) / good * (1 - 1e-4)
    assert found[2] >= (0.20 * upper + 0.80 * lower) / bad * (1 - 1e-4)


def least_by_programme(p0: float, p1: float, p: float, cap: int) -> float:
    """The least expected trials with two verdicts by the cap, over all randomised tests.

    A linear programme over flows: y(n, f) paths reach a state, of which some pass, some fail and
    the rest go on; probabilities are flows times the likelihood of one path.
    """
    states = [(n, f) for n in range(cap + 1) for f in range(n + 1)]
    index = {key: k for k, key in enumerate(product(states, ("go", "pass", "fail")))}
    cost, first, second = (np.zeros(len(index)) for _ in range(3))
    balance = np.zeros((len(states), len(index)))
    supply = np.zeros(len(states))
    supply[0] = 1
    for row, (n, f) in enumerate(states):
        for action in ("go", "pass", "fail"):
            balance[row, index[(n, f), action]] = 1
        for parent in ((n - 1, f), (n - 1, f - 1)):
            if (parent, "go") in index:
                balance[row, index[parent, "go"]] -= 1
        cost[index[(n, f), "pass"]] = cost[index[(n, f), "fail"]] = n * p ** (n - f) * (1 - p) ** f
        first[index[(n, f), "fail"]] = p0 ** (n - f) * (1 - p0) ** f
        second[index[(n, f), "pass"]] = p1 ** (n - f) * (1 - p1) ** f
    bounds = [(0, 0 if key[1] == "go" and key[0][0] == cap else None) for key in index]
    solved = linprog(
        cost,
        A_ub=np.array([first, second]),
        b_ub=[0.05, 0.2],
        A_eq=balance,
        b_eq=supply,
        bounds=bounds,
    )
    return float(solved.fun)


@pytest.mark.parametrize("p", [0.95, 0.8, 0.55])
def test_the_bound_is_the_optimum_of_a_linear_programme(p: float) -> None:
    """All tests of up to 24 trials, coins allowed: the cap hardly binds here, so they agree."""
    bound = expected_trials_bound(0.95, 0.55, p)
    best = least_by_programme(0.95, 0.55, p, 24)

    assert bound <= best + 1e-6
    assert bound == pytest.approx(best, rel=2e-3)


@pytest.mark.slow
def test_no_design_beats_the_bound() -> None:
    """Designs that always decide need at least that many trials, at every rate."""
    designs = [
        SequentialDesign.optimal(0.9, 0.8),
        SequentialDesign.calibrated(0.9, 0.8),
        SequentialDesign.fixed(0.9, 0.8),
    ]
    for p in (0.6, 0.8, 0.85, 0.9, 0.97):
        bound = expected_trials_bound(0.9, 0.8, p)
        for design in designs:
            assert design.operating_characteristic(p).mean_trials >= bound


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0.8, 0.9), "p1"), ((1.2, 0.9), "p0"), ((0.9, 0.0), "p1"), ((0.9, float("nan")), "p1")],
)
def test_impossible_claims_are_refused(arguments: tuple[float, float], name: str) -> None:
    """The bad rate lies below the good one, both are rates."""
    with pytest.raises(InvalidArgument, match=f"^{name} must"):
        fixed_size(*arguments)
    with pytest.raises(InvalidArgument, match=f"^{name} must"):
        shortfall(*arguments, cap=10)
    with pytest.raises(InvalidArgument, match=f"^{name} must"):
        expected_trials_bound(*arguments, 0.5)


def test_levels_that_leave_nothing_to_test_are_refused() -> None:
    """alpha and beta are proper errors that add up to less than 1."""
    with pytest.raises(InvalidArgument, match="alpha"):
        fixed_size(0.9, 0.8, alpha=0)
    with pytest.raises(InvalidArgument, match="less than 1"):
        fixed_size(0.9, 0.8, alpha=0.5, beta=0.5)
    with pytest.raises(InvalidArgument, match="lie further below"):
        fixed_size(0.9, 0.9 - 1e-7)
    with pytest.raises(InvalidArgument, match="cap"):
        shortfall(0.9, 0.8, cap=0)
