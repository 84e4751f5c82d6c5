"""Exact tests of a judged rate: their chances, their level for every judge, and their power.

The chances are summed here again over every table of labels and every count of trials, by numpy
and without any of the package's shortcuts. The level is the sum over all outcomes that the shipped
decisions call "above", at rates where that is wrong.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, multinomial

from trialwise.stats import Confusion
from trialwise.stats.judged_tests import Correction, JudgedTest

Floats = npt.NDArray[np.float64]

CORRECTIONS: tuple[Correction, ...] = ("rectifier", "rogan-gladen", "pooled")
ALPHA = 0.05
#: The judge of the finding: 208 right, 3 let through, 26 caught and 3 missed of 240.
LABELS = Confusion(true_pass=208, false_pass=3, true_fail=26, false_fail=3)


@cache
def tables(m: int) -> tuple[tuple[int, int, int, int], ...]:
    """Every table of m labels: right, let through, caught, missed."""
    cells = product(range(m + 1), repeat=3)
    return tuple((a, b, c, m - a - b - c) for a, b, c in cells if a + b + c <= m)


def confusion(table: tuple[int, int, int, int]) -> Confusion:
    right, through, caught, missed = table
    return Confusion(true_pass=right, false_pass=through, true_fail=caught, false_fail=missed)


def shares(rate: float, sensitivity: float, specificity: float) -> list[float]:
    return [
        rate * sensitivity,
        (1 - rate) * (1 - specificity),
        (1 - rate) * specificity,
        rate * (1 - sensitivity),
    ]


def statistic(
    table: tuple[int, int, int, int], k: int, n: int, rate: float, correction: str
) -> float:
    """The distance of the estimate from the rate in standard errors.

    A label is worth its share in the estimate: 1 where people pass it, less its judged share.
    """
    right, through, _, missed = table
    m = sum(table)
    weight = 1.0 if correction == "rectifier" else n / (n + m)
    people, judged = (right + missed) / m, (right + through) / m
    estimate = weight * k / n + people - weight * judged
    b, c = (missed + 0.5) / (m + 1), (through + 0.5) / (m + 1)
    values = np.array([1 - weight, 1.0, -weight, 0.0])
    chances = np.array([max(rate - b, 0.0), b, c, 0.0])
    spread = max(0.0, chances @ values**2 - (chances @ values) ** 2)
    q = min(1.0, max(0.0, rate - b + c))
    return float((estimate - rate) / np.sqrt(weight**2 * q * (1 - q) / n + spread / m))


@pytest.mark.parametrize("correction", ["rectifier", "pooled"])
@pytest.mark.parametrize("observed", [(4, 1, 2, 0), (3, 0, 3, 1)])
def test_the_chance_is_the_sum_over_every_outcome(
    correction: Correction, observed: tuple[int, int, int, int]
) -> None:
    """Of all tables of 7 labels and all counts of 6 trials, for judges of every kind."""
    m, n, k = 7, 6, 4
    test = JudgedTest(k, n, confusion(observed), correction)
    for rate, sensitivity, specificity in product((0.3, 0.8), (0.6, 0.9, 1.0), (0.5, 0.95)):
        seen = statistic(observed, k, n, rate, correction)
        parts = shares(rate, sensitivity, specificity)
        counts = binom.pmf(range(n + 1), n, parts[0] + parts[1])
        expected = sum(
            multinomial.pmf(table, m, parts) * counts[j]
            for table in tables(m)
            for j in range(n + 1)
            if statistic(table, j, n, rate, correction) >= seen - 1e-12
        )

        assert test.chance(rate, (parts[3], parts[1])) == pytest.approx(expected, abs=1e-6)


def test_the_chance_by_class_is_the_sum_over_every_outcome() -> None:
    """The numbers of good and bad labels stay as they are."""
    good, bad, n, k, rate = 5, 4, 6, 5, 0.6
    observed = Confusion(true_pass=5, false_pass=1, true_fail=3, false_fail=0)
    test = JudgedTest(k, n, observed, "rogan-gladen")

    def value(right: int, caught: int, count: int) -> float:
        s, t = (right + 0.5) / (good + 1), (caught + 0.5) / (bad + 1)
        q = rate * s + (1 - rate) * (1 - t)
        variance = q * (1 - q) / n
        variance += rate**2 * s * (1 - s) / good + (1 - rate) ** 2 * t * (1 - t) / bad
        distance = count / n - rate * right / good - (1 - rate) * (1 - caught / bad)
        return float(distance / np.sqrt(variance))

    seen = value(5, 3, k)
    for sensitivity, specificity in product((0.7, 0.95), (0.6, 1.0)):
        judged = rate * sensitivity + (1 - rate) * (1 - specificity)
        expected = sum(
            binom.pmf(right, good, sensitivity)
            * binom.pmf(caught, bad, specificity)
            * binom.pmf(count, n, judged)
            for right, caught, count in product(range(good + 1), range(bad + 1), range(n + 1))
            if value(right, caught, count) >= seen - 1e-12
        )

        assert test.chance(rate, (sensitivity, specificity)) == pytest.approx(expected, abs=1e-6)


def least_passing(table: tuple[int, int, int, int], n: int, rate: float, one: Correction) -> int:
    """The least judged count that shows a rate above `rate`; n + 1 where none does."""
    labels = confusion(table)
    low, high = -1, n + 1
    while high - low > 1:
        k = (low + high) // 2
        shown = JudgedTest(k, n, labels, one).shows_above(rate, ALPHA)
        low, high = (low, k) if shown else (k, high)
    return high


def false_passes(m: int, n: int, rate: float, one: Correction) -> Floats:
    """P(shown above) for every judge of a grid, at the rate and below it."""
    cutoffs = np.array([least_passing(table, n, rate, one) for table in tables(m)])
    levels = []
    accuracies = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
    for true, sensitivity, specificity in product(
        (rate, 0.97 * rate, 0.8 * rate), accuracies, accuracies
    ):
        parts = shares(true, sensitivity, specificity)
        chances = multinomial.pmf(np.array(tables(m)), m, parts)
        above = binom.sf(cutoffs - 1, n, parts[0] + parts[1])
        levels.append(float(chances @ above))
    return np.array(levels)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize(
    ("m", "n", "rate"),
    [
        (7, 12, 0.6),
        pytest.param(12, 20, 0.8, marks=pytest.mark.slow),
        pytest.param(14, 60, 0.5, marks=pytest.mark.slow),
        pytest.param(14, 9, 0.9, marks=pytest.mark.slow),
    ],
)
def test_no_judge_breaks_the_level(m: int, n: int, rate: float, correction: Correction) -> None:
    """Whatever its errors, and however far below the rate the truth is."""
    assert false_passes(m, n, rate, correction).max() <= ALPHA


# --- Power -------------------------------------------------------------------------------------


def power_of_errors(test: Correction, rate: float, true: float, m: int, n: int) -> float:
    """P(shown above) by the rectifier or by pooling, with the judge of `LABELS`.

    The decision depends on what was missed, on what was let through and on one total: the judged
    passes of the trials, and for pooling the people's passes of the labels as well.
    """
    sensitivity, specificity = LABELS.true_pass / LABELS.good, LABELS.true_fail / LABELS.bad
    right, through, caught, missed = shares(true, sensitivity, specificity)
    total = 0.0
    counts = binom.pmf(range(n + 1), n, right + through)
    for b in range(m + 1):
        for c in range(m + 1 - b):
            chance = binom.pmf(b, m, missed) * binom.pmf(c, m - b, through / (1 - missed))
            if chance < 1e-5:
                continue
            agreed = binom.pmf(range(m - b - c + 1), m - b - c, right / (right + caught))
            totals = np.convolve(counts, agreed) if test == "pooled" else counts
            low, high = -1, len(totals)
            while high - low > 1:
                y = (low + high) // 2
                # The total is split so that both parts are possible counts.
                k = min(y, n) if test == "pooled" else y
                good = y - k if test == "pooled" else round((m - b - c) * 0.88)
                labels = confusion((good, c, m - b - c - good, b))
                shown = JudgedTest(k, n, labels, test).shows_above(rate, ALPHA)
                low, high = (low, y) if shown else (y, high)
            total += chance * float(totals[high:].sum())
    return total


def power_of_labels(rate: float, true: float, m: int) -> float:
    """P(shown above) by the exact binomial test of the labels alone."""
    needed = next(k for k in range(m + 2) if binom.sf(k - 1, m, rate) <= ALPHA)
    return float(binom.sf(needed - 1, m, true))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "true"), [(60, 0.84), (60, 0.90), (80, 0.80), (80, 0.84), (100, 0.80)]
)
def test_pooling_is_more_powerful_than_the_labels_alone(labels: int, true: float) -> None:
    """With as many trials, against 75 %; and no more often wrong at 75 % itself.

    With 60 labels and a true rate of 80 % the labels alone are ahead: 21 % of runs to 18 %.
    """
    pooled = power_of_errors("pooled", 0.75, true, labels, labels)
    assert pooled > power_of_labels(0.75, true, labels)
    assert power_of_errors("pooled", 0.75, 0.75, labels, labels) <= ALPHA


# --- Invariants --------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=12)
@given(
    st.tuples(st.integers(10, 40), st.integers(0, 4), st.integers(8, 30), st.integers(0, 4)),
    st.integers(1, 39),
    st.sampled_from(CORRECTIONS),
)
def test_another_pass_never_lowers_a_bound(
    table: tuple[int, int, int, int], k: int, one: Correction
) -> None:
    """Nor does a swap of what is called a pass: the upper bound is the lower one of the fails."""
    labels = confusion(table)
    fewer, more = (JudgedTest(count, 40, labels, one) for count in (k, k + 1))

    assert more.lower_bound(ALPHA) >= fewer.lower_bound(ALPHA) - 1e-3
    right, through, caught, missed = table
    swapped = JudgedTest(40 - k, 40, confusion((caught, missed, right, through)), one)
    assert swapped.lower_bound(ALPHA) == pytest.approx(1 - fewer.upper_bound(ALPHA), abs=1e-9)
    assert fewer.lower_bound(ALPHA) <= min(1, max(0, fewer.estimate)) <= fewer.upper_bound(ALPHA)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_a_bound_is_where_the_test_begins_to_reject(correction: Correction) -> None:
    """A little below the bound the rate is shown to be higher, a little above it is not."""
    test = JudgedTest(212, 250, LABELS, correction)
    low = test.lower_bound(ALPHA)

    assert test.shows_above(low - 0.002, ALPHA)
    assert not test.shows_above(low + 0.002, ALPHA)


def test_a_judge_that_may_be_worse_than_chance_shows_nothing_by_its_accuracies() -> None:
    """Its direction is unknown, so no count of passes is evidence of a high rate."""
    labels = Confusion(true_pass=3, false_pass=2, true_fail=2, false_fail=1)

    assert not JudgedTest(40, 40, labels, "rogan-gladen").shows_above(0.1, ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_many_labels_and_trials_take_no_more_work_and_cost_little_width(
    correction: Correction,
) -> None:
    """Counts of labels are summed in groups; the interval is near the normal approximation."""
    labels = Confusion(true_pass=4160, false_pass=60, true_fail=520, false_fail=60)
    test = JudgedTest(84_000, 100_000, labels, correction)
    low, high = test.lower_bound(ALPHA), test.upper_bound(ALPHA)
    # By the rectifier: sqrt(0.0252/4,800 + 0.84 · 0.16/100,000), twice 1.645 of it.
    wide = 2 * 1.645 * np.sqrt(0.0252 / 4800 + 0.84 * 0.16 / 100_000)

    assert high - low < 2 * wide
