"""The fixed sample, stopped once its verdict is certain."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from trialwise.stats.sequential import SequentialDesign


def test_the_errors_are_those_of_the_whole_sample() -> None:
    """Curtailing changes when a verdict is known, not which one it is."""
    design = SequentialDesign.fixed(0.9, 0.8)

    assert design.operating_characteristic(0.9).fails == pytest.approx(binom.sf(12, 78, 0.1))
    assert design.operating_characteristic(0.8).passes == pytest.approx(binom.cdf(12, 78, 0.2))
    assert design.always_decides


def test_curtailing_saves_trials() -> None:
    """Known exact expected trials of the curtailed sample of 78."""
    design = SequentialDesign.fixed(0.9, 0.8)
    rates = (0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
    trials = [design.operating_characteristic(p).mean_trials for p in rates]

    assert trials == pytest.approx([32.5, 43.3, 62.5, 71.5, 72.9, 69.5, 66.7], abs=0.051)


def test_a_verdict_is_given_exactly_when_it_is_certain() -> None:
    """PASS when even failures to the end would pass, FAIL when the cutoff is passed."""
    design = SequentialDesign.fixed(0.9, 0.8)
    for n in range(1, 78):
        assert design.accept[n] == max(-1, 12 - (78 - n))
        assert design.reject[n] == min(13, n + 1)


def test_too_small_a_cap_leaves_counts_in_between_open() -> None:
    """At 50 trials: the most failures with P(PASS) ≤ beta, the fewest with P(FAIL) ≤ alpha."""
    design = SequentialDesign.fixed(0.9, 0.8, cap=50)

    assert binom.cdf(design.accept[50], 50, 0.2) <= 0.2 < binom.cdf(design.accept[50] + 1, 50, 0.2)
    assert (
        binom.sf(design.reject[50] - 1, 50, 0.1) <= 0.05 < binom.sf(design.reject[50] - 2, 50, 0.1)
    )
    assert not design.always_decides


def test_a_generous_cap_is_not_used_up() -> None:
    """The smallest sample that serves is all that is needed."""
    assert SequentialDesign.fixed(0.9, 0.8, cap=500).cap == 78
    assert SequentialDesign.fixed(0.9, 0.8, batch=20).cap == 78


def test_one_look_at_the_end() -> None:
    """A batch as large as the sample decides once."""
    design = SequentialDesign.fixed(0.9, 0.8, batch=78)

    assert set(design.accept[:78]) == {-1}
    assert design.operating_characteristic(0.3).mean_trials == pytest.approx(78)


def test_a_perfect_rate_fails_at_the_first_failure() -> None:
    """p0 = 1 is allowed: one failure is proof."""
    design = SequentialDesign.fixed(1.0, 0.9)

    assert (design.cap, design.decide(1, 1), design.decide(16, 0)) == (16, "FAIL", "PASS")
