"""The precedence lattice against counted arrangements, rationals and scipy."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, hypergeom

from trialwise.stats.toolbox.precedence_law import precedence_cdf, precedence_rank
from trialwise.stats.unconditional import exact_lower_tail

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.25, 0.5)

#: (baseline, test, rank, count) with 1 ≤ rank ≤ baseline and 0 ≤ count ≤ test.
CELLS = st.tuples(st.integers(1, 150), st.integers(1, 150)).flatmap(
    lambda sizes: st.tuples(
        st.just(sizes[0]), st.just(sizes[1]), st.integers(1, sizes[0]), st.integers(0, sizes[1])
    )
)


@cache
def by_definition(k: int, x: int, nb: int, nt: int) -> Fraction:
    """P(X ≤ x) from binomial coefficients alone."""
    ways = sum(math.comb(k + j - 1, j) * math.comb(nb - k + nt - j, nt - j) for j in range(x + 1))
    return Fraction(ways, math.comb(nb + nt, nt))


def rank_by_definition(x: int, nb: int, nt: int, alpha: float) -> int | None:
    level = Fraction(repr(alpha))
    return next((k for k in range(1, nb + 1) if by_definition(k, x, nb, nt) <= level), None)


def rank_by_scipy(x: int, nb: int, nt: int, alpha: float) -> int:
    low, high = 0, nb
    while high - low > 1:
        middle = (low + high) // 2
        if betabinom.cdf(x, nt, middle, nb - middle + 1) <= alpha:
            high = middle
        else:
            low = middle
    return high


@pytest.mark.parametrize(
    ("nb", "nt"), [(1, 1), (1, 4), (4, 1), (2, 3), (3, 3), (5, 2), (4, 5), (6, 4)]
)
def test_the_probability_counts_arrangements(nb: int, nt: int) -> None:
    """Of all orders in which baseline and test can fall, the share with at most x below rank k."""
    orders = list(combinations(range(nb + nt), nb))
    for k in range(1, nb + 1):
        # The k-th baseline value at position i has i − (k−1) test values before it.
        below = [places[k - 1] - (k - 1) for places in orders]
        for x in range(nt + 1):
            share = Fraction(sum(value <= x for value in below), len(orders))
            assert exact_lower_tail(k, x, nb, nt) == share
            assert precedence_cdf(k, x, baseline=nb, test=nt) == pytest.approx(
                float(share), rel=1e-13
            )


@pytest.mark.parametrize(("nb", "nt"), [(1, 30), (30, 1), (12, 12), (25, 40), (40, 25)])
def test_the_rational_probability_is_the_sum_of_its_terms(nb: int, nt: int) -> None:
    """Every cell of the lattice, in rationals and in doubles."""
    for k in range(1, nb + 1):
        for x in range(nt + 1):
            exact = by_definition(k, x, nb, nt)
            assert exact_lower_tail(k, x, nb, nt) == exact
            assert precedence_cdf(k, x, baseline=nb, test=nt) == pytest.approx(
                float(exact), rel=1e-12
            )


@given(cell=CELLS)
def test_it_is_a_beta_binomial_and_a_fisher_p_value(cell: tuple[int, int, int, int]) -> None:
    """BetaBinomial(n_t; k, n_b−k+1), and hypergeometric with k + x successes in all."""
    nb, nt, k, x = cell
    value = precedence_cdf(k, x, baseline=nb, test=nt)

    assert value == pytest.approx(betabinom.cdf(x, nt, k, nb - k + 1), rel=1e-7, abs=1e-12)
    assert value == pytest.approx(hypergeom.cdf(x, nb + nt, k + x, nt), rel=1e-7, abs=1e-12)


@given(cell=CELLS)
def test_the_lattice_can_be_read_from_either_side(cell: tuple[int, int, int, int]) -> None:
    """Exchanging baseline and test, or turning the order round, gives the complement."""
    nb, nt, k, x = cell
    value = precedence_cdf(k, x, baseline=nb, test=nt)

    if x < nt:
        exchanged = precedence_cdf(x + 1, k - 1, baseline=nt, test=nb)
        turned = precedence_cdf(nb - k + 1, nt - x - 1, baseline=nb, test=nt)
        assert value + exchanged == pytest.approx(1, abs=1e-11)
        assert value + turned == pytest.approx(1, abs=1e-11)
    else:
        assert value == 1


@given(cell=CELLS)
def test_the_probability_falls_with_the_rank_and_rises_with_the_count(
    cell: tuple[int, int, int, int],
) -> None:
    """A later baseline value has more test values below it."""
    nb, nt, k, x = cell
    value = precedence_cdf(k, x, baseline=nb, test=nt)

    assert 0 <= value <= 1
    if k < nb:
        assert precedence_cdf(k + 1, x, baseline=nb, test=nt) <= value + 1e-12
    if x < nt:
        assert value <= precedence_cdf(k, x + 1, baseline=nb, test=nt) + 1e-12


@given(cell=CELLS)
def test_doubles_and_rationals_agree_far_into_the_tail(cell: tuple[int, int, int, int]) -> None:
    """12 relative digits, however small the probability."""
    nb, nt, k, x = cell

    assert precedence_cdf(k, x, baseline=nb, test=nt) == pytest.approx(
        float(exact_lower_tail(k, x, nb, nt)), rel=1e-11, abs=0
    )


@pytest.mark.parametrize("alpha", LEVELS)
def test_the_rank_is_the_first_within_alpha(alpha: float) -> None:
    """min{k : F(k, x) ≤ alpha} in rationals, or None, for every small size and count."""
    for nb in range(1, 13):
        for nt in range(1, 13):
            for x in range(nt + 1):
                expected = rank_by_definition(x, nb, nt, alpha)
                assert precedence_rank(x, baseline=nb, test=nt, alpha=alpha) == expected


@pytest.mark.parametrize(("nb", "nt"), [(19, 1), (190, 10), (475, 25), (950, 50), (38, 2)])
def test_a_rank_that_only_just_exists(nb: int, nt: int) -> None:
    """F(n_b, n_t − 1) = n_t/(n_b + n_t) is exactly 1/20 here: the last rank, never none."""
    assert exact_lower_tail(nb, nt - 1, nb, nt) == Fraction(1, 20)
    assert precedence_rank(nt - 1, baseline=nb, test=nt) == nb
    assert precedence_rank(nt - 1, baseline=nb - 1, test=nt) is None


def test_the_last_count_has_no_rank() -> None:
    """F(k, n_t) = 1 whatever the rank."""
    assert precedence_rank(5, baseline=100, test=5, alpha=0.999) is None
    assert precedence_cdf(100, 5, baseline=100, test=5) == 1


@pytest.mark.parametrize(
    ("test", "rank", "size"), [(100, 913, 0.045), (200, 909, 0.047), (500, 905, 0.045)]
)
def test_published_ranks_of_the_95th_percentile(test: int, rank: int, size: float) -> None:
    """A baseline of 935 values against the 95th percentile of the test."""
    count = math.ceil(95 * test / 100) - 1

    assert precedence_rank(count, baseline=935, test=test) == rank
    assert precedence_cdf(rank, count, baseline=935, test=test) == pytest.approx(size, abs=6e-4)


@pytest.mark.parametrize(("nb", "nt"), [(100, 100), (554, 160), (1000, 192), (300, 1000)])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.95])
def test_ranks_of_larger_sizes_agree_with_scipy(nb: int, nt: int, share: float) -> None:
    """Beyond what rationals can sweep."""
    x = math.ceil(share * nt) - 1

    assert precedence_rank(x, baseline=nb, test=nt) == rank_by_scipy(x, nb, nt, 0.05)


def test_the_rank_falls_with_alpha_and_rises_with_the_count() -> None:
    """A stricter level or a higher percentile asks for a later baseline value."""

    def rank(x: int, alpha: float) -> float:
        found = precedence_rank(x, baseline=200, test=80, alpha=alpha)
        return math.inf if found is None else found

    for x in range(0, 80, 7):
        assert all(high >= low for high, low in pairwise(rank(x, alpha) for alpha in LEVELS))
    for alpha in LEVELS:
        assert all(low <= high for low, high in pairwise(rank(x, alpha) for x in range(81)))


@pytest.mark.parametrize(
    ("rank", "count", "nb", "nt"),
    [(10, 1999, 2000, 2000), (582, 2827, 2215, 2948), (1, 4999, 5000, 5000)],
)
def test_a_near_certainty_is_not_lost(rank: int, count: int, nb: int, nt: int) -> None:
    """Far above the mean F is 1 to the last digit, although its last term is below any double."""
    assert precedence_cdf(rank, count, baseline=nb, test=nt) == pytest.approx(
        betabinom.cdf(count, nt, rank, nb - rank + 1), abs=1e-9
    )


@pytest.mark.parametrize(
    ("nb", "nt", "share"), [(10_000, 5000, 0.95), (5000, 5000, 0.99), (50_000, 2000, 0.999)]
)
def test_ranks_of_thousands_agree_with_scipy(nb: int, nt: int, share: float) -> None:
    """The search passes through low ranks on its way."""
    x = math.ceil(share * nt) - 1

    assert precedence_rank(x, baseline=nb, test=nt) == rank_by_scipy(x, nb, nt, 0.05)
