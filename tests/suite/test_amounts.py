"""Rates, times, paces and money are read exactly, and nothing else is."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.declarations.amounts import duration, money, number, pace, rate

SECONDS = {unit: Fraction(size) for unit, size in (("s", 1), ("m", 60), ("min", 60), ("h", 3600))}
SECONDS["ms"] = Fraction(1, 1000)
decimals = st.decimals(min_value=0, max_value=10**6, places=4, allow_nan=False)


def exact(value: float, expected: Fraction) -> bool:
    """Whether a double is the one nearest to a rational: Python rounds its division correctly."""
    return value == expected.numerator / expected.denominator


@given(st.decimals(min_value=0, max_value=100, places=6))
def test_a_percentage_is_the_double_nearest_to_its_hundredths(percent: Decimal) -> None:
    """90% is 9/10 and not nine tenths of a rounded double."""
    read = rate(f"{percent:f}%")

    assert read is not None
    assert exact(read, Fraction(percent) / 100)


@given(decimals, st.sampled_from(sorted(SECONDS)), st.sampled_from(["", " "]))
def test_a_time_is_the_double_nearest_to_its_seconds(
    amount: Decimal, unit: str, space: str
) -> None:
    """The unit is applied before anything is rounded."""
    read = duration(f"{amount:f}{space}{unit}")

    if amount == 0:
        assert read is None
    else:
        assert read is not None
        assert exact(read, Fraction(amount) * SECONDS[unit])


@given(decimals)
def test_money_is_read_with_and_without_its_sign(amount: Decimal) -> None:
    """Both are the same dollars."""
    assert float(amount) == money(f"${amount:f}") == money(f"{amount:f}")


@pytest.mark.parametrize(
    "text", ["", "90", "1.01", "101%", "-1%", "%", "9 0%", "0.9%%", "nan", "1_0%", "٩%", "0x1%"]
)
def test_what_is_no_rate_is_none(text: str) -> None:
    """Neither a number above one nor another notation is guessed at."""
    assert rate(text) is None


@pytest.mark.parametrize(
    "text", ["", "30", "0s", "-1s", "1d", "1 hour", "s", "1ms2", "1e999s", "٣s", "1m30s"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    """A number alone could be anything."""
    assert duration(text) is None


def test_a_bare_number_counts_as_seconds_only_where_asked() -> None:
    """The command line takes it, a suite does not."""
    assert (3.0, None) == (duration("3", bare=True), duration("3"))


@pytest.mark.parametrize(
    ("text", "per_s"), [("5/s", 5.0), ("300/min", 5.0), ("1 / h", 1 / 3600), ("0.5/s", 0.5)]
)
def test_a_pace_is_how_often_in_a_second(text: str, per_s: float) -> None:
    """Whatever its unit of time."""
    assert per_s == pace(text)


@pytest.mark.parametrize("text", ["5", "5/d", "0/s", "/s", "-1/s", "5/ms", ""])
def test_what_is_no_pace_is_none(text: str) -> None:
    """A number alone could be anything."""
    assert pace(text) is None


@given(st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    """What is none of them is None, whatever it holds."""
    for read in (rate, duration, pace, money, number):
        value = read(text)
        assert value is None or 0 <= value < float("inf")


def test_a_number_of_absurd_length_is_none() -> None:
    """Python would spend long on reading it."""
    assert number("9" * 5000) is None
    assert number("1e400") is None
