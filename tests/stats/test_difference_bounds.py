"""Bounds on the difference from a baseline, by enumeration of every baseline and every path."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from trialwise.stats import regression_cutoff
from trialwise.stats.difference_bounds import bound_difference
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.result_types import Interval
from trialwise.stats.staged_regression import apply_scheme, find_scheme, staged_regression

BASELINE, TRIALS, MARGIN = 10, 12, 0.5
RATES = [0.02, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.98]


#: How the boundaries come about: by looks that share alpha, or by the scheme for this size.
RULES = ("looks", "scheme")


@cache
def staged(k: int, alpha: float, rule: str) -> RegressionCutoff:
    """The rule for a baseline of 10 with k passes; its own module says how it is made."""
    lower = max(0.0, k / BASELINE - MARGIN)
    if rule == "looks":
        return staged_regression(k, BASELINE, TRIALS, lower, alpha=alpha)
    scheme = find_scheme(BASELINE, MARGIN, alpha=alpha)
    assert scheme is not None
    return apply_scheme(scheme, k, lower)


@cache
def list_ends(k: int, alpha: float, rule: str) -> tuple[tuple[int, int, int, bool], ...]:
    """(trials, failures, paths, FAIL) wherever the rule for k passes ends."""
    design = staged(k, alpha, rule)
    states, ends = {0: 1}, []
    for m in range(1, design.trials + 1):
        following: dict[int, int] = {}
        for failures, paths in states.items():
            for f in (failures, failures + 1):
                following[f] = following.get(f, 0) + paths
        states = {}
        for f, paths in following.items():
            if f >= design.reject[m] or f <= design.accept[m]:
                ends.append((m, f, paths, f >= design.reject[m]))
            else:
                states[f] = paths
    assert not states
    return tuple(ends)


@cache
def bound(design: RegressionCutoff, trials: int, failures: int, fails: bool) -> Interval:
    """The bounds at one end."""
    return bound_difference(design, trials - failures, trials, fails=fails, curtailed=True)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_bounds_agree_with_the_verdict_at_every_end(alpha: float, rule: str) -> None:
    """The upper end is below 0 exactly after a FAIL; what was observed is never excluded."""
    verdicts = set()
    for k in range(1, BASELINE + 1):
        for m, f, _, fails in list_ends(k, alpha, rule):
            found = bound(staged(k, alpha, rule), m, f, fails)
            verdicts.add(fails)

            assert (found.high < 0) is fails
            assert (found.low == -1) if fails else (found.high == 1)
            assert fails or found.low <= (m - f) / m - k / BASELINE + 1e-9
            assert found.confidence == pytest.approx(1 - alpha)
    assert verdicts == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_each_bound_is_wrong_with_at_most_its_error_at_every_pair_of_rates(
    alpha: float, rule: str
) -> None:
    """64 pairs of rates: P(upper bound below the difference), P(lower bound above it)."""
    worst = [0.0, 0.0]
    for before in RATES:
        for now in RATES:
            wrong = [0.0, 0.0]
            for k in range(1, BASELINE + 1):
                for m, f, paths, fails in list_ends(k, alpha, rule):
                    low, high = bound(staged(k, alpha, rule), m, f, fails)
                    chance = float(binom.pmf(k, BASELINE, before))
                    chance *= paths * now ** (m - f) * (1 - now) ** f
                    wrong[0] += chance * (high < now - before)
                    wrong[1] += chance * (low > now - before)
            worst = [max(pair) for pair in zip(worst, wrong, strict=True)]

    assert max(worst) <= alpha
    assert min(worst) > alpha / 20  # and not for being empty


@pytest.mark.parametrize(("passed", "fails"), [(80, True), (85, True), (88, False), (97, False)])
def test_a_fixed_bound_is_the_extreme_of_all_pairs_that_the_product_keeps(
    passed: int, fails: bool
) -> None:
    """95 of 100, then 100 trials: a grid of pairs of rates in numpy, to a twentieth of a point."""
    design = regression_cutoff(95, 100, 100)
    found = bound_difference(design, passed, 100, fails=fails, curtailed=False)
    rates = np.linspace(0, 1, 1501)[1:-1]
    if fails:
        before, now = binom.sf(94, 100, rates), binom.cdf(passed, 100, rates)
    else:
        before, now = binom.cdf(95, 100, rates), binom.sf(passed - 1, 100, rates)
    # P(U V <= c) = c - c log c for two independent uniform variables.
    kept = before[:, None] * now[None, :]
    kept = kept * (1 - np.log(np.maximum(kept, 1e-300))) > 0.05
    differences = np.where(kept, rates[None, :] - rates[:, None], np.nan)
    extreme = np.nanmax(differences) if fails else np.nanmin(differences)
    got = found.high if fails else found.low

    assert math.copysign(1, got - extreme) == (1 if fails else -1)
    assert got == pytest.approx(extreme, abs=2e-3)


def test_a_fail_by_a_sharper_test_than_the_product_is_bounded_just_below_zero() -> None:
    """95 of 100, then 87 of 100: Boschloo signals, and the product alone would not."""
    found = bound_difference(regression_cutoff(95, 100, 100), 87, 100, fails=True, curtailed=False)

    assert found.high < 0
    assert 0 not in found
    assert found.high > -1e-9


def test_a_curtailed_end_is_ordered_by_its_stage() -> None:
    """The tenth failure of 12 trials says more than the tenth of 40, where ten are too many."""
    design = regression_cutoff(47, 50, 50)
    assert design.cutoff is not None
    most = 50 - design.cutoff + 1
    early, late = (
        bound_difference(design, n - most, n, fails=True, curtailed=True).high
        for n in (most + 1, 50)
    )

    assert early < late < 0
