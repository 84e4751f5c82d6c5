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


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10)])
def test_one_stratum_has_clopper_and_pearsons_interval(k: int, n: int) -> None:
    """Against scipy's beta quantiles, whatever the weight."""
    result = stratum_weighted([stratum(3, k, n)], confidence=0.9)
    low = 0.0 if k == 0 else stats.beta.ppf(0.05, k, n - k + 1)
    high = 1.0 if k == n else stats.beta.ppf(0.95, k + 1, n - k)

    assert tuple(result.interval) == pytest.approx((low, high), abs=1e-12)
    assert result.effective_trials == n


def test_no_trial_counts_for_more_than_the_heaviest_is_worth() -> None:
    """Weights 3 and 1, two trials each: a trial of the first weighs 3/8, so m = 8/3."""
    result = stratum_weighted([stratum(3, 2, 2, "a"), stratum(1, 1, 2, "b")])
    assert result.effective_trials == pytest.approx(8 / 3)
    assert result.rate == pytest.approx(7 / 8)


@pytest.mark.parametrize("each", [1, 2, 3, 5, 10])
@pytest.mark.parametrize(
    ("heavy", "light", "ratio"), [(50, 50, 3), (10, 90, 9), (5, 20, 5), (1, 50, 50), (20, 20, 1.3)]
)
@pytest.mark.parametrize("required", [0.5, 0.9])
def test_thin_strata_pass_a_rate_that_is_only_just_missed_in_at_most_five_percent_of_runs(
    heavy: int, light: int, ratio: float, each: int, required: float
) -> None:
    """By enumeration, over rates of both kinds of strata whose weighted mean is the required one.

    The score interval passes in 11 to 18 % of runs where strata have 1 to 3 trials.
    """
    total = heavy * ratio + light
    w, v = ratio / total, 1 / total
    counts = heavy * each, light * each
    # The bound grows with the estimate alone, so the cutoff is one number.
    worth = each / w
    cutoff = (
        brentq(
            lambda x: stats.beta.ppf(0.05, x * worth, worth - x * worth + 1) - required,
            required,
            1 - 1e-12,
        )
        if 0.05 ** (1 / worth) >= required
        else 2.0
    )
    a, b = np.arange(counts[0] + 1), np.arange(counts[1] + 1)
    passes = (w * a[:, None] + v * b[None, :]) / each >= cutoff - 1e-12
    wrong = []
    for p in np.linspace(0, 1, 81):
        q = (required - heavy * w * p) / (light * v)
        if 0 <= q <= 1:
            chance = np.outer(stats.binom.pmf(a, counts[0], p), stats.binom.pmf(b, counts[1], q))
            wrong.append(float(chance[passes].sum()))
    assert max(wrong) <= 0.05
    # And the cutoff is ours: one success more or less on either side of it.
    reachable = np.unique(((w * a[:, None] + v * b[None, :]) / each)[passes])
    if len(reachable):
        i, j = np.argwhere(
            passes & (np.abs((w * a[:, None] + v * b[None, :]) / each - reachable[0]) < 1e-12)
        )[0]
        spread = [
            *_spread(int(i), heavy, each, ratio, "h"),
            *_spread(int(j), light, each, 1.0, "l"),
        ]
        assert stratum_weighted(spread, confidence=0.9).interval.low >= required - 1e-9


def _spread(successes: int, strata: int, each: int, weight: float, name: str) -> list[Stratum]:
    full, rest = divmod(successes, each)
    ks = [each] * full + ([rest] if full < strata else []) + [0] * (strata - full - 1)
    return [stratum(weight, k, each, f"{name}{i}") for i, k in enumerate(ks)]


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (99_990, 100_000)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_one_stratum_is_wilsons_interval(k: int, n: int, confidence: float) -> None:
    """Whatever the weight."""
    result = stratum_weighted([stratum(3, k, n)], confidence=confidence, method="score")

    assert tuple(result.interval) == pytest.approx(
        tuple(wilson_interval(k, n, confidence=confidence)), abs=1e-12
    )
    assert (k / n, (1.0,)) == (result.rate, result.weights)


def test_equal_rates_in_proportional_allocation_are_wilsons_pooled_interval() -> None:
    """Then stratifying neither helps nor hurts."""
    result = stratum_weighted([stratum(0.25, 8, 10), stratum(0.75, 24, 30)], method="score")

    assert tuple(result.interval) == pytest.approx(tuple(wilson_interval(32, 40)))


def test_after_unanimous_strata_the_largest_weight_per_trial_decides() -> None:
    """0 of 10 beside 0 of 1000 at equal weights leaves half of what 0 of 10 leaves."""
    result = stratum_weighted([stratum(1, 0, 10), stratum(1, 0, 1000)], method="score")

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

    both = [stratum(v, y[0], n[0], "a"), stratum(w, y[1], n[1], "b")]
    result = stratum_weighted(both, method="score")

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
            [stratum(weight, a, first, "a"), stratum(1 - weight, b, second, "b")], method="score"
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


@pytest.mark.slow
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
