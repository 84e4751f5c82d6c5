"""Adaptive batches: exact errors, few rounds, few trials."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from trialwise.errors import InvalidArgument
from trialwise.stats.sequential import SequentialDesign
from trialwise.stats.toolbox.adaptive_sampling import AdaptiveDesign, adaptive_design

RATES = (0.70, 0.80, 0.85, 0.90, 0.95, 0.99)
SMALL = adaptive_design(0.9, 0.4, alpha=0.1, beta=0.2, concurrency=3)


def in_rationals(design: AdaptiveDesign, p: Fraction) -> dict[str, Fraction]:
    """P(verdict), mean trials and mean rounds by recursion over the states, in rationals."""
    result = dict.fromkeys(("PASS", "FAIL", "INCONCLUSIVE", "trials", "rounds"), Fraction(0))
    states = {(0, 0): Fraction(1)}
    while states:
        (n, f), weight = min(states.items())
        del states[n, f]
        verdict = design.decide(n, f)
        if verdict is not None:
            result[verdict] += weight
            continue
        size = design.next_batch(n, f)
        result["trials"] += weight * size
        result["rounds"] += weight
        for j in range(size + 1):
            chance = comb(size, j) * (1 - p) ** j * p ** (size - j)
            state = n + size, f + j
            states[state] = states.get(state, Fraction(0)) + weight * chance
    return result


@pytest.mark.parametrize("p", [Fraction(9, 10), Fraction(2, 5), Fraction(7, 10)])
def test_the_characteristic_agrees_with_rationals(p: Fraction) -> None:
    """The forward recursion gives what exact arithmetic gives."""
    expected = in_rationals(SMALL, p)
    curve = SMALL.characteristic(float(p))

    assert float(expected["PASS"]) == pytest.approx(curve.passes, abs=1e-13)
    assert float(expected["FAIL"]) == pytest.approx(curve.fails, abs=1e-13)
    assert float(expected["trials"]) == pytest.approx(curve.mean_trials, abs=1e-11)
    assert float(expected["rounds"]) == pytest.approx(curve.mean_rounds, abs=1e-12)


@pytest.mark.slow("0.9-0.8-8", "0.95-0.85-4", "0.8-0.6-16")
@pytest.mark.parametrize(
    ("p0", "p1", "concurrency"), [(0.9, 0.8, 8), (0.95, 0.85, 4), (0.8, 0.6, 16), (0.9, 0.7, 1)]
)
def test_the_errors_are_kept(p0: float, p1: float, concurrency: int) -> None:
    """Exact P(FAIL) at p0 and P(PASS) at p1 stay at or below the nominal ones."""
    design = adaptive_design(p0, p1, concurrency=concurrency)

    assert design.characteristic(p0).fails <= 0.05 + 1e-12
    assert design.characteristic(p1).passes <= 0.20 + 1e-12
    assert 0 == pytest.approx(design.characteristic(p0).inconclusive, abs=1e-12)


@pytest.mark.slow
def test_eight_side_by_side_cost_two_percent_more_trials_and_a_seventh_of_the_rounds() -> None:
    """The goal at .90/.80: at most 1.03 × the sequential trials with at least 7 × fewer rounds."""
    sequential = SequentialDesign.optimal(0.90, 0.80, cap=116)
    alone = sum(sequential.operating_characteristic(p).mean_trials for p in RATES) / len(RATES)
    design = adaptive_design(0.90, 0.80, cap=116, concurrency=8)
    curves = [design.characteristic(p) for p in RATES]

    assert sum(curve.mean_trials for curve in curves) / len(RATES) <= 1.03 * alone
    assert sum(curve.mean_rounds for curve in curves) / len(RATES) <= alone / 7


def test_a_small_cap_leaves_some_runs_open() -> None:
    """Below the fixed sample the errors still hold and the rest is INCONCLUSIVE."""
    design = adaptive_design(0.90, 0.80, cap=50, concurrency=10)

    assert design.characteristic(0.90).fails <= 0.05 + 1e-12
    assert design.characteristic(0.80).passes <= 0.20 + 1e-12
    assert 0.05 < design.characteristic(0.90).inconclusive < 0.25


def test_batches_stay_within_concurrency_and_cap() -> None:
    """No state starts more than allowed or beyond the cap."""
    for n, row in enumerate(SMALL.actions):
        for action in row:
            assert -3 <= action <= min(SMALL.concurrency, SMALL.cap - n)
            assert action != 0


def test_bad_states_and_settings_are_refused() -> None:
    """Counts beyond the cap, more failures than trials, and a free round are mistakes."""
    with pytest.raises(InvalidArgument, match="trials"):
        SMALL.decide(SMALL.cap + 1, 0)
    with pytest.raises(InvalidArgument, match="failures"):
        SMALL.next_batch(1, 2)
    with pytest.raises(InvalidArgument, match="round_price"):
        adaptive_design(0.9, 0.8, round_price=0)
