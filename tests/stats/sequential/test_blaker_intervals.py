"""Blaker's intervals after stopping, against enumeration of every end in numpy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import binom

from trialwise.stats.sequential import SequentialDesign, blaker_interval

DESIGNS = [
    SequentialDesign.wald(0.90, 0.80, cap=40),
    SequentialDesign.optimal(0.8, 0.5, cap=20),
    SequentialDesign.strict(0.8, cap=40),
]
RATES = np.linspace(0.005, 0.995, 199)


def ends(design: SequentialDesign, p: float) -> Iterator[tuple[int, int, float]]:
    """Every end with its chance, by walking the paths trial by trial."""
    alive = {0: 1.0}
    for n in range(1, design.cap + 1):
        after: dict[int, float] = {}
        for failures, chance in alive.items():
            for more, q in ((0, p), (1, 1 - p)):
                after[failures + more] = after.get(failures + more, 0.0) + chance * q
        alive = {}
        for failures, chance in after.items():
            if design.decide(n, failures) is None:
                alive[failures] = chance
            else:
                yield n, failures, chance


@pytest.mark.slow("strict")
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: str(design.method))
def test_it_covers_every_rate_and_is_shorter_than_the_central_one(design: SequentialDesign) -> None:
    intervals = {
        (n, f): blaker_interval(design, n, f, confidence=0.9) for n, f, _ in ends(design, 0.5)
    }
    for rate in RATES:
        covered = sum(chance for n, f, chance in ends(design, rate) if rate in intervals[n, f])
        assert covered >= 0.9 - 1e-9, rate
    central = {end: design.interval(*end, confidence=0.9) for end in intervals}
    assert all(central[end].low <= one.low for end, one in intervals.items())
    assert all(one.high <= central[end].high for end, one in intervals.items())
    widths = [intervals[end].width / central[end].width for end in intervals]
    assert np.mean(widths) < 0.99


@pytest.mark.slow
def test_with_one_look_it_is_blakers_interval_of_a_binomial_count() -> None:
    """The rates whose acceptability exceeds the error, on a fine grid in scipy."""
    design = SequentialDesign.fixed(0.90, 0.80, batch=78)
    found = blaker_interval(design, 78, 8, confidence=0.95)

    def accepted(p: float) -> bool:
        # 70 successes of 78.
        lower, upper = binom.cdf(70, 78, p), binom.sf(69, 78, p)
        counts = np.arange(79)
        others = binom.sf(counts - 1, 78, p) if lower < upper else binom.cdf(counts, 78, p)
        own = min(lower, upper)
        return bool(own + max(others[others <= own], default=0.0) > 0.05)

    grid = [p for p in np.linspace(0.6, 0.999, 4000) if accepted(p)]
    assert found.low == pytest.approx(grid[0], abs=2e-4)
    assert found.high == pytest.approx(grid[-1], abs=2e-4)
