"""Wald's lines with exact errors."""

from __future__ import annotations

import math

import pytest

from trialwise.stats.sequential import SequentialDesign

CASES = [
    (0.9, 0.8, 0.05, 0.2, 50, 1),
    (0.9, 0.8, 0.05, 0.2, 78, 1),
    (0.9, 0.8, 0.05, 0.2, 79, 1),
    (0.9, 0.8, 0.05, 0.2, None, 1),
    (0.9, 0.8, 0.05, 0.2, 120, 10),
    (0.95, 0.85, 0.01, 0.1, None, 1),
    (0.5, 0.3, 0.1, 0.1, 30, 1),
    (0.99, 0.97, 0.05, 0.2, 100, 5),
    (1.0, 0.9, 0.05, 0.2, None, 1),
]


@pytest.mark.slow("case3", "case5")
@pytest.mark.parametrize("case", CASES)
def test_the_exact_errors_are_kept(
    case: tuple[float, float, float, float, int | None, int],
) -> None:
    """P(FAIL) at p0 and P(PASS) at p1 are at most nominal, whatever the cap and the looks."""
    p0, p1, alpha, beta, cap, batch = case
    design = SequentialDesign.calibrated(p0, p1, alpha=alpha, beta=beta, cap=cap, batch=batch)

    assert design.operating_characteristic(p0).fails <= alpha + 1e-12
    assert design.operating_characteristic(p1).passes <= beta + 1e-12
    assert design.always_decides == (design.shortfall is None)


@pytest.mark.slow
def test_far_from_the_cap_it_is_the_calibrated_test_of_the_table() -> None:
    """Exact expected trials of calibrated lines without a cap: 13.7 … 53.9 … 14.0."""
    design = SequentialDesign.calibrated(0.9, 0.8, cap=500)
    rates = (0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
    trials = [design.operating_characteristic(p).mean_trials for p in rates]

    assert trials == pytest.approx([13.7, 21.9, 43.5, 53.9, 36.7, 20.0, 14.0], abs=0.06)


@pytest.mark.slow
def test_it_spends_what_wald_wastes() -> None:
    """Fewer trials than Wald's lines at both ends, and no open end."""
    ours, wald = SequentialDesign.calibrated(0.9, 0.8), SequentialDesign.wald(0.9, 0.8)
    for p in (0.8, 0.85, 0.9):
        left, right = ours.operating_characteristic(p), wald.operating_characteristic(p)
        assert left.mean_trials < right.mean_trials
        assert left.inconclusive == 0 < right.inconclusive


def test_below_the_end_the_boundaries_are_straight_lines() -> None:
    """Every PASS has a higher log likelihood ratio than every state that goes on, and so below."""
    design = SequentialDesign.calibrated(0.9, 0.8, cap=50)
    success, failure = math.log(0.9 / 0.8), math.log(0.1 / 0.2)

    def ratio(n: int, f: int) -> float:
        return (n - f) * success + f * failure

    passing = [ratio(n, design.accept[n]) for n in range(1, 51) if design.accept[n] >= 0]
    failing = [ratio(n, design.reject[n]) for n in range(1, 51) if design.reject[n] <= n]
    going_on = [
        ratio(n, f) for n in range(1, 51) for f in range(design.accept[n] + 1, design.reject[n])
    ]
    assert min(passing) > max(going_on)
    assert max(failing) < min(going_on)
