"""A comparison with a baseline that stops as soon as its counts decide, with exact errors.

A scheme (`staged_schemes`) has boundaries for every baseline of a size, and needs the fewest
trials. What follows is the rule for sizes without one, and of earlier plans.

After n trials Boschloo's test decides at most of alpha; a few looks on the way spend the rest, each
by Boschloo's test of the trials so far. Whatever the common rate, a false alarm is at most the sum
of these levels, which is alpha. A run that is not going to be signalled PASSes early: as soon as a
service at the rate that is to be found would still FAIL with a small probability only. Passing
early can only take away false alarms, and raises the chance to miss such a service from b to at
most b/(1 − that probability) (Lan, Simon and Halperin 1982).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from trialwise.stats.binomial import likely_counts, raw_cdf
from trialwise.stats.boschloo_regions import boschloo_region
from trialwise.stats.regression_cutoffs import RegressionCutoff, regression_cutoff
from trialwise.stats.sequential.walks import Rule, characteristic
from trialwise.stats.staged_schemes import Boundaries, StagedScheme

#: The share of alpha that the looks before the last trial spend together.
EARLY_SHARE = 0.12
#: When they are, as shares of all trials. A broken service is found at the first.
_LOOKS = (1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4)
#: PASS once a service at the rate to be found would still FAIL with at most this probability.
_FUTILITY = 0.10
#: Baseline counts rarer than this, relative to the likeliest, are left out of averages.
_NEGLIGIBLE = 1e-9


class _Chances(NamedTuple):
    """How a staged comparison ends where both rates are known."""

    fails: float
    mean_trials: float

    @property
    def passes(self) -> float:
        """P(PASS): every comparison is decided."""
        return 1 - self.fails


@lru_cache(maxsize=64)
def staged_regression(
    baseline_successes: int, baseline_trials: int, trials: int, alternative: float, *, alpha: float
) -> RegressionCutoff:
    """The staged rule for a measured baseline; Boschloo's test with boundaries on the way.

    Examples
    --------
    >>> design = staged_regression(95, 100, 100, 0.85, alpha=0.05)
    >>> design.cutoff, design.accept[45], design.reject[13]
    (88, 0, 5)
    """
    k, nb, n = baseline_successes, baseline_trials, trials
    final = regression_cutoff(k, nb, n, alpha=final_level(alpha))
    assert final.cutoff is not None
    accept, reject = _set_boundaries(k, nb, n, alternative, alpha)
    staged = replace(final, alpha=alpha, alternative_rate=alternative, accept=accept, reject=reject)
    rate = k / nb
    alarm = None if k in (0, nb) else average_chances(staged, rate, rate).fails
    return replace(staged, achieved_size=alarm, design_false_alarm=alarm)


@lru_cache(maxsize=64)
def apply_scheme(
    scheme: StagedScheme, baseline_successes: int, alternative: float
) -> RegressionCutoff:
    """The rule that a scheme has for a measured baseline.

    Examples
    --------
    >>> from trialwise.stats.scheme_levels import find_scheme
    >>> design = apply_scheme(find_scheme(100, 0.1), 95, 0.85)
    >>> design.trials, design.cutoff, design.accept[24], design.reject[4]
    (216, 192, 0, 4)
    """
    k, nb = baseline_successes, scheme.baseline_trials
    accept, reject = scheme.boundaries(k)
    n = len(accept) - 1
    cutoff = n - accept[n]
    staged = RegressionCutoff(
        rule="exact",
        baseline_successes=k,
        baseline_trials=nb,
        trials=n,
        alpha=scheme.alpha,
        cutoff=cutoff,
        threshold=cutoff / n,
        reference_rate=k / nb,
        achieved_size=None,
        design_false_alarm=None,
        alternative_rate=alternative,
        accept=() if scheme.waits else accept,
        reject=() if scheme.waits else reject,
        scheme=scheme,
    )
    alarm = None if k in (0, nb) else average_chances(staged, k / nb, k / nb).fails
    return replace(staged, achieved_size=alarm, design_false_alarm=alarm)


def final_level(alpha: float) -> float:
    """The part of alpha that the test of all trials spends."""
    return alpha * (1 - EARLY_SHARE)


@lru_cache(maxsize=256)
def average_chances(design: RegressionCutoff, baseline_rate: float, rate: float) -> _Chances:
    """P(FAIL) and the mean trials before either run, each baseline with its own boundaries.

    Args:
        design: A staged one.
        baseline_rate: The true rate when the baseline was measured.
        rate: The true rate now.
    """
    first, weights = likely_counts(design.baseline_trials, baseline_rate, negligible=_NEGLIGIBLE)
    total = math.fsum(weights)
    fails, trials = 0.0, 0.0
    for k, weight in enumerate(weights, first):
        accept, reject = _find_boundaries(design, k)
        found = characteristic(Rule([*accept], [*reject]), rate)
        fails += weight * found.fails / total
        trials += weight * found.mean_trials / total
    return _Chances(min(1.0, fails), trials)


def _find_boundaries(design: RegressionCutoff, k: int) -> Boundaries:
    """The boundaries that another baseline of the same size would have had."""
    if design.scheme is not None:
        return design.scheme.boundaries(k)
    nb = design.baseline_trials
    assert design.alternative_rate is not None
    # It would have been compared with a rate as far below its own.
    gap = design.baseline_successes / nb - design.alternative_rate
    return _set_boundaries(k, nb, design.trials, max(0.0, k / nb - gap), design.alpha)


@lru_cache(maxsize=1024)
def _set_boundaries(k: int, nb: int, n: int, alternative: float, alpha: float) -> Boundaries:
    """The most failures that PASS and the fewest that FAIL, after 0, 1, … n trials."""
    cutoff = boschloo_region(nb, n, final_level(alpha)).cutoffs[k]
    allowed = n - cutoff
    accept, most = [], -1
    for m in range(n + 1):
        # A failure more passes if the rest would hardly bring the count below the cutoff.
        while most < m and _is_futile(m, most + 1, n, cutoff, alternative):
            most += 1
        accept.append(min(max(most, m - cutoff), allowed))
    reject = [allowed + 1] * (n + 1)
    for m, level in _list_looks(n, alpha):
        fewest = boschloo_region(nb, m, level).cutoffs[k]
        reject[m] = min(reject[m], max(m - fewest + 1, accept[m] + 1))
    return tuple(accept), tuple(reject)


def _is_futile(m: int, failures: int, n: int, cutoff: int, alternative: float) -> bool:
    """Whether the alternative would FAIL at the end with a small probability only."""
    short = cutoff - 1 - (m - failures)
    if failures > n - cutoff:
        return False
    return short < 0 or raw_cdf(min(short, n - m), n - m, alternative) <= _FUTILITY


def _list_looks(n: int, alpha: float) -> Iterator[tuple[int, float]]:
    """(trials, level) of the looks before the last trial."""
    looks = sorted({m for m in (math.ceil(n * share) for share in _LOOKS) if 2 <= m < n})
    for m in looks:
        yield m, alpha * EARLY_SHARE / len(looks)
