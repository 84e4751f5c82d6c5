"""The exact-boundary convention: who decides, and how a decimal is read."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.decimals import RELATIVE_BAND, as_written, at_most, ceil_product, floor_product


def never() -> NoReturn:
    raise AssertionError("the rational value was asked for although the double is clear")


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.05, Fraction(1, 20)),
        (0.1, Fraction(1, 10)),
        (0.999, Fraction(999, 1000)),
        (1e-07, Fraction(1, 10**7)),
        (0.0463574016, Fraction(463574016, 10**10)),
        (1.0, Fraction(1)),
        (0.0, Fraction(0)),
        (2.5e22, Fraction(25 * 10**21)),
    ],
)
def test_a_float_is_read_as_the_decimal_written(value: float, meant: Fraction) -> None:
    """0.05 is 1/20, not the double nearest to it."""
    assert as_written(value) == meant


@given(st.decimals(min_value=0, max_value=1, places=15))
def test_fifteen_decimals_survive_the_trip_through_a_float(decimal: Decimal) -> None:
    """Whatever a user writes with up to 15 digits is what is compared."""
    assert as_written(float(decimal)) == Fraction(decimal)


@given(
    alpha=st.floats(1e-300, 1, exclude_max=True),
    factor=st.floats(0, 5).filter(lambda f: abs(f - 1) > 1.01 * RELATIVE_BAND),
)
def test_a_clear_double_decides_alone(alpha: float, factor: float) -> None:
    """Outside the band the rational value is never computed."""
    assert at_most(alpha * factor, alpha, never) is (factor < 1)


@given(
    alpha=st.floats(1e-12, 0.999), shift=st.floats(-0.9, 0.9), excess=st.sampled_from((-1, 0, 1))
)
def test_a_close_double_is_overruled_by_the_rational(
    alpha: float, shift: float, excess: int
) -> None:
    """Inside the band the rational decides, a tie counting as at most."""
    value = alpha * (1 + shift * RELATIVE_BAND)
    exact = as_written(alpha) + Fraction(excess, 10**40)

    assert at_most(value, alpha, lambda: exact) is (excess <= 0)


def test_a_tie_is_inclusive_where_doubles_are_not() -> None:
    """0.1 + 0.2 exceeds 0.3 in doubles; the rational sum does not."""
    assert 0.1 + 0.2 > 0.3
    assert at_most(0.1 + 0.2, 0.3, lambda: Fraction(1, 10) + Fraction(2, 10))


@pytest.mark.slow
def test_products_are_those_of_the_decimals_written() -> None:
    """⌈rate · n⌉ and ⌊rate · n⌋ for every thousandth, against whole-number arithmetic."""
    naive_errors = 0
    for thousandths in range(1001):
        rate = thousandths / 1000
        for n in (*range(120), 1000, 99_999):
            up, down = -(-thousandths * n // 1000), thousandths * n // 1000

            assert ceil_product(rate, n) == up
            assert floor_product(rate, n) == down
            naive_errors += math.ceil(rate * n) != up or math.floor(rate * n) != down
    assert naive_errors > 10, "the sweep would not have caught the naive product"


@given(rate=st.floats(0, 1), n=st.integers(0, 10**9))
def test_products_bracket_the_product(rate: float, n: int) -> None:
    """The ceiling is the floor, or one more, and both are builtin integers."""
    up, down = ceil_product(rate, n), floor_product(rate, n)

    assert type(up) is int
    assert type(down) is int
    assert down <= as_written(rate) * n <= up <= down + 1
