"""Boschloo's rule for a planned test, against enumeration of its definition."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from trialwise.stats import boschloo_region, design_power, regression_cutoff
from trialwise.stats.unconditional import boschloo


@cache
def fisher_tails(nb: int, nt: int) -> dict[tuple[int, int], float]:
    """Fisher's p-value of every outcome, by the hypergeometric distribution."""
    return {
        (k, x): 1.0 if k == 0 or x == nt else float(hypergeom.cdf(x, nb + nt, k + x, nt))
        for k in range(nb + 1)
        for x in range(nt + 1)
    }


def largest_false_alarm(cutoffs: tuple[int, ...], nb: int, nt: int, rates: int) -> float:
    """The largest Σ_k P(K_b = k) P(K_t < c(k)) over rates: nothing changed, both runs random."""
    rate = np.linspace(0, 1, rates + 1)[:, np.newaxis]
    tails = binom.cdf(np.array(cutoffs) - 1, nt, rate)
    return float((binom.pmf(np.arange(nb + 1), nb, rate) * tails).sum(axis=1).max())


@pytest.mark.parametrize(
    ("nb", "nt", "alpha"),
    [(1, 1, 0.3), (4, 4, 0.05), (10, 10, 0.05), (12, 30, 0.05), (30, 12, 0.01), (25, 25, 0.2)],
)
def test_the_region_is_the_largest_of_its_kind_that_holds_alpha(
    nb: int, nt: int, alpha: float
) -> None:
    """Outcomes are added by Fisher's p-value until a rate of a fine grid is rejected too often."""
    tails = fisher_tails(nb, nt)
    cutoffs = boschloo_region(nb, nt, alpha).cutoffs
    rejected = [tails[k, x] for k, c in enumerate(cutoffs) for x in range(c)]
    accepted = [tails[k, x] for k, c in enumerate(cutoffs) for x in range(c, nt + 1)]

    assert max(rejected, default=0.0) < min(accepted)
    assert largest_false_alarm(cutoffs, nb, nt, 2000) <= alpha * (1 + 1e-9)
    # One level more is too much: all outcomes that share the next p-value.
    level = min(accepted) * (1 + 1e-9)
    more = tuple(sum(tails[k, x] <= level for x in range(nt + 1)) for k in range(nb + 1))
    assert level > 1 or largest_false_alarm(more, nb, nt, 2000) > alpha


@pytest.mark.parametrize(("nb", "nt"), [(100, 100), (100, 50), (100, 300), (60, 200)])
def test_boschloos_size_is_at_most_alpha_at_every_rate(nb: int, nt: int) -> None:
    """Also for a test that is larger than its baseline, which Fisher's rule refuses."""
    region = boschloo_region(nb, nt, 0.05)
    worst = largest_false_alarm(region.cutoffs, nb, nt, 500)

    assert worst <= 0.05
    assert region.size == pytest.approx(worst, rel=0.02)
    assert regression_cutoff(90 * nb // 100, nb, nt).refusal is None


@pytest.mark.parametrize(
    ("nt", "fisher", "exact"), [(50, 0.410, 0.477), (100, 0.567, 0.602), (300, None, 0.772)]
)
def test_boschloo_sees_more_than_fisher(nt: int, fisher: float | None, exact: float) -> None:
    """The powers of a drop from 90 % to 80 % after a baseline of 100, measured elsewhere."""
    assert design_power(0.9, 0.8, 100, nt) == pytest.approx(exact, abs=6e-4)
    if fisher is not None:
        old = design_power(0.9, 0.8, 100, nt, rule="fisher")
        assert old == pytest.approx(fisher, abs=6e-4)


@pytest.mark.slow
def test_the_cutoff_agrees_with_the_p_value_of_every_count() -> None:
    """PASS exactly where Boschloo's p-value exceeds alpha, for six baselines of 40."""
    for k in range(0, 41, 8):
        cutoff = regression_cutoff(k, 40, 30).cutoff
        passing = [x for x in range(31) if boschloo(k, 40, x, 30).p_value > 0.05]
        assert cutoff == min(passing)


def test_boschloo_is_never_stricter_than_needed_nor_laxer_than_fisher() -> None:
    """Its cutoffs are at least Fisher's and grow with the baseline's successes."""
    cutoffs = boschloo_region(300, 200, 0.05).cutoffs
    fisher = [regression_cutoff(k, 300, 200, rule="fisher").cutoff or 0 for k in range(301)]

    assert list(cutoffs) == sorted(cutoffs)
    assert all(mine >= theirs for mine, theirs in zip(cutoffs, fisher, strict=True))
