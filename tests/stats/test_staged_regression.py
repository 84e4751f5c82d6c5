"""Comparisons with a baseline that stop early, against an own recursion over every path."""

from __future__ import annotations

import math
from functools import cache

import pytest
from scipy.stats import binom

from trialwise.stats import design_power
from trialwise.stats.staged_regression import average_chances, staged_regression
from trialwise.stats.unconditional import boschloo

ALPHA, FINAL, EARLY = 0.05, 0.05 * 0.88, 0.05 * 0.12


@cache
def signals(k: int, nb: int, x: int, n: int, level: float) -> bool:
    """Boschloo's test, by the p-value of its own module."""
    return boschloo(k, nb, x, n).p_value <= level


def probability_of_fail(k: int, nb: int, n: int, lower: float, rate: float) -> tuple[float, float]:
    """P(FAIL) and mean trials, by the definition of the rule in terms of p-values and tails."""
    looks = sorted({math.ceil(n * share) for share in (1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4)})
    looks = [m for m in looks if 2 <= m < n]
    cutoff = next(x for x in range(n + 1) if not signals(k, nb, x, n, FINAL))
    states, fails, mean = {0: 1.0}, 0.0, 0.0
    for m in range(1, n + 1):
        mean += sum(states.values())
        following: dict[int, float] = {}
        for x, weight in states.items():
            for y, chance in ((x + 1, rate), (x, 1 - rate)):
                following[y] = following.get(y, 0.0) + weight * chance
        states = {}
        for x, weight in following.items():
            left = binom.cdf(cutoff - 1 - x, n - m, lower) if x < cutoff else 0.0
            can_pass = x + n - m >= cutoff
            if can_pass and left <= 0.10:
                continue
            early = m in looks and signals(k, nb, x, m, EARLY / len(looks))
            if early or not can_pass:
                fails += weight
            else:
                states[x] = weight
    assert not states
    return fails, mean


@pytest.mark.parametrize(("k", "nb", "n"), [(18, 20, 24), (12, 20, 20), (20, 20, 30)])
@pytest.mark.parametrize("rate", [0.95, 0.8, 0.5])
def test_the_chances_of_a_staged_comparison_are_those_of_its_definition(
    k: int, nb: int, n: int, rate: float
) -> None:
    """For one baseline: boundaries from p-values and tails, paths by recursion."""
    design = staged_regression(k, nb, n, k / nb - 0.3, alpha=ALPHA)
    fails, mean = probability_of_fail(k, nb, n, k / nb - 0.3, rate)
    found = design.operating_characteristic(rate)

    assert found.fails == pytest.approx(fails)
    assert found.mean_trials == pytest.approx(mean)


@pytest.mark.slow
def test_a_staged_comparison_keeps_alpha_at_every_common_rate() -> None:
    """20 and 24 trials, every baseline with its own boundaries, at 60 rates."""
    nb, n = 20, 24
    design = staged_regression(18, nb, n, 0.6, alpha=ALPHA)
    alarms = [average_chances(design, i / 60, i / 60).fails for i in range(1, 60)]
    own = math.fsum(
        float(binom.pmf(k, nb, 0.9)) * probability_of_fail(k, nb, n, max(0.0, k / nb - 0.3), 0.9)[0]
        for k in range(nb + 1)
    )

    assert max(alarms) <= ALPHA
    assert average_chances(design, 0.9, 0.9).fails == pytest.approx(own, rel=1e-6)
    assert design.design_false_alarm == pytest.approx(own, rel=1e-6)


def test_stages_save_trials_and_cost_little_power() -> None:
    """95 of 100, then 100 trials at most: 60 if nothing changed, 16 for a broken service."""
    design = staged_regression(95, 100, 100, 0.85, alpha=ALPHA)
    same, lower, broken = (average_chances(design, 0.95, rate) for rate in (0.95, 0.85, 0.5))

    assert same.mean_trials < 65
    assert broken.mean_trials < 17
    assert lower.fails > design_power(0.95, 0.85, 100, 100) - 0.02


def test_a_staged_comparison_with_a_perfect_baseline_can_fail() -> None:
    """100 of 100: 90 % is found nearly always, and a perfect service never."""
    design = staged_regression(100, 100, 100, 0.9, alpha=ALPHA)

    assert design.operating_characteristic(0.9).fails > 0.9
    assert design.operating_characteristic(1.0).fails == 0
