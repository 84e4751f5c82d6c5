from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlog1py, xlogy

from trialwise.errors import InvalidArgument
from trialwise.stats.cluster_estimators import Stratum, stratum_weighted
from trialwise.stats.rate_intervals import wilson_interval

Groups = list[tuple[int, int]]


@st.composite
def groups(draw: st.DrawFn) -> Groups:
    sizes = draw(st.lists(st.integers(1, 12), min_size=2, max_size=10))
    return [(draw(st.integers(0, m)), m) for m in sizes]


def stratum(weight: float, successes: int, trials: int, name: str = "") -> Stratum:
    return Stratum(
        name=name or f"{weight} {successes}/{trials}",
        weight=weight,
        successes=successes,
        trials=trials,
    )


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (99_990, 100_000)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_one_stratum_is_wilsons_interval(k: int, n: int, confidence: float) -> None:
    """Whatever the weight."""
    result = stratum_weighted([stratum(3, k, n)], confidence=confidence)

    assert tuple(result.interval) == pytest.approx(
        tuple(wilson_interval(k, n, confidence=confidence)), abs=1e-12
    )
    assert (k / n, (1.0,)) == (result.rate, result.weights)


def test_equal_rates_in_proportional_allocation_are_wilsons_pooled_interval() -> None:
    """Then stratifying neither helps nor hurts."""
    result = stratum_weighted([stratum(0.25, 8, 10), stratum(0.75, 24, 30)])

    assert tuple(result.interval) == pytest.approx(tuple(wilson_interval(32, 40)))


def test_after_unanimous_strata_the_largest_weight_per_trial_decides() -> None:
    """0 of 10 beside 0 of 1000 at equal weights leaves half of what 0 of 10 leaves."""
    result = stratum_weighted([stratum(1, 0, 10), stratum(1, 0, 1000)])

    assert result.interval.low == 0.0
    assert result.interval.high == pytest.approx(wilson_interval(0, 10).high / 2)
    assert result.variance == 0.0


@pytest.mark.parametrize(
    ("weights", "y", "n"),
    [
        ((0.3, 0.7), (3, 17), (10, 20)),
        ((0.8, 0.2), (50, 30), (50, 50)),
        ((0.5, 0.5), (0, 5), (7, 9)),
        ((0.5, 0.5), (10, 0), (10, 8)),
    ],
)
def test_the_ends_are_where_the_score_test_rejects(
    weights: tuple[float, float], y: tuple[int, int], n: tuple[int, int]
) -> None:
    """Against scipy: constrained likelihood by direct search, the ends by root finding."""
    v, w = weights
    estimate = v * y[0] / n[0] + w * y[1] / n[1]

    def excess(P: float) -> float:
        def loss(p: float) -> float:
            q = min(max((P - v * p) / w, 0.0), 1.0)
            return -float(
                xlogy(y[0], p)
                + xlog1py(n[0] - y[0], -p)
                + xlogy(y[1], q)
                + xlog1py(n[1] - y[1], -q)
            )

        low, high = max(0.0, (P - w) / v), min(1.0, P / v)
        inner = minimize_scalar(
            loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
        )
        p = min((low, high, inner.x), key=loss)
        q = min(max((P - v * p) / w, 0.0), 1.0)
        variance = v**2 * p * (1 - p) / n[0] + w**2 * q * (1 - q) / n[1]
        return float((estimate - P) ** 2 - stats.norm.ppf(0.975) ** 2 * variance)

    result = stratum_weighted([stratum(v, y[0], n[0], "a"), stratum(w, y[1], n[1], "b")])

    assert result.rate == pytest.approx(estimate)
    # Next to the estimate the difference is negative, next to 0 and 1 positive.
    assert result.interval.low == pytest.approx(brentq(excess, 1e-6, estimate - 1e-4), abs=1e-6)
    assert result.interval.high == pytest.approx(
        brentq(excess, estimate + 1e-4, 1 - 1e-6), abs=1e-6
    )


@pytest.mark.parametrize(("sizes", "weight"), [((10, 10), 0.5), ((5, 30), 0.5), ((10, 20), 0.8)])
def test_coverage_of_the_stratified_interval(sizes: tuple[int, int], weight: float) -> None:
    """By enumeration over a grid of rates: 95 % on average and never below Wilson's dips."""
    first, second = sizes
    outcomes = list(product(range(first + 1), range(second + 1)))
    intervals = [
        stratum_weighted(
            [stratum(weight, a, first, "a"), stratum(1 - weight, b, second, "b")]
        ).interval
        for a, b in outcomes
    ]
    low, high = (np.array(column) for column in zip(*map(tuple, intervals), strict=True))
    covered = []
    for p, q in product((0.1, 0.3, 0.5, 0.8, 0.9, 0.97), repeat=2):
        chance = np.outer(
            stats.binom.pmf(range(first + 1), first, p),
            stats.binom.pmf(range(second + 1), second, q),
        ).ravel()
        rate = weight * p + (1 - weight) * q
        covered.append(float(chance[(low <= rate) & (rate <= high)].sum()))

    assert np.mean(covered) >= 0.945
    assert min(covered) >= 0.90


@given(groups(), st.data())
def test_only_the_proportions_of_the_weights_matter(counts: Groups, data: st.DataObject) -> None:
    """Scaled weights and shuffled strata give the same rate, variance and interval."""
    weights = data.draw(st.lists(st.floats(0.01, 10), min_size=len(counts), max_size=len(counts)))
    strata = [
        stratum(w, y, m, str(j)) for j, (w, (y, m)) in enumerate(zip(weights, counts, strict=True))
    ]
    result = stratum_weighted(strata)
    scaled = stratum_weighted(
        [
            stratum(7 * w, y, m, str(j))
            for j, (w, (y, m)) in reversed(list(enumerate(zip(weights, counts, strict=True))))
        ]
    )
    shares = np.array(weights) / sum(weights)
    rates = np.array([y / m for y, m in counts])
    variance = (shares**2 * rates * (1 - rates) / np.array([m for _, m in counts])).sum()

    assert sum(result.weights) == pytest.approx(1)
    assert (result.rate, result.variance) == pytest.approx((shares @ rates, variance), abs=1e-12)
    assert tuple(scaled.interval) == pytest.approx(tuple(result.interval), abs=1e-9)
    assert 0 <= result.interval.low <= result.rate + 1e-12
    assert result.rate - 1e-12 <= result.interval.high <= 1


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: stratum_weighted([]), "strata"),
        (lambda: stratum_weighted([(1, 2)]), "strata"),  # type: ignore[list-item]
        (lambda: stratum_weighted([stratum(1, 1, 2, "a"), stratum(1, 1, 2, "a")]), "strata"),
        (lambda: stratum_weighted([stratum(0, 1, 2, "a")]), "weight of stratum 'a'"),
        (lambda: stratum_weighted([stratum(float("nan"), 1, 2, "a")]), "weight of stratum 'a'"),
        (lambda: stratum_weighted([stratum(1, 3, 2, "a")]), "successes of stratum 'a'"),
        (lambda: stratum_weighted([stratum(1, 0, 0, "a")]), "trials of stratum 'a'"),
        (lambda: stratum_weighted([stratum(1, 1, 2, "a")], confidence=0.0), "confidence"),
    ],
)
def test_bad_input_is_refused_by_name(call: Any, argument: str) -> None:
    """Every refusal names the argument."""
    with pytest.raises(InvalidArgument) as refusal:
        call()

    assert argument == refusal.value.argument
