"""The existence minimum and the decision after a run, against fractions and the companion."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.latency_baseline import order_statistic_bound
from trialwise.stats.latency_planning import Intent, existence_minimum, nondegeneracy_decision

RATES = st.integers(1, 99).map(lambda i: i / 100)


def first_power_below(p: Fraction, alpha: Fraction) -> int:
    """The definition: the smallest n with pⁿ ≤ alpha."""
    n, power = 1, p
    while power > alpha:
        n, power = n + 1, power * p
    return n


def test_the_existence_minimums_are_the_companions() -> None:
    """Companion 12.5.2.1 at 95 %, p99.9 included, and the published ones at 99 %."""
    levels = (0.5, 0.9, 0.95, 0.99)

    assert [existence_minimum(p) for p in levels] == [5, 29, 59, 299]
    assert existence_minimum(0.999) == 2995
    assert [existence_minimum(p, confidence=0.99) for p in levels] == [7, 44, 90, 459]


@pytest.mark.parametrize("confidence", ["0.5", "0.75", "0.9", "0.95", "0.99", "0.96875"])
def test_the_minimum_is_the_first_power_at_or_below_alpha(confidence: str) -> None:
    """Every percentile in hundredths agrees with fractions, equality included."""
    for hundredths in range(1, 100):
        expected = first_power_below(Fraction(hundredths, 100), 1 - Fraction(confidence))
        assert expected == existence_minimum(hundredths / 100, confidence=float(confidence))


def test_a_power_of_exactly_alpha_is_enough() -> None:
    """0.5^5 = 0.03125, 0.05^1 = 0.05 and 0.1^1 = 0.1 are at most themselves."""
    assert existence_minimum(0.5, confidence=0.96875) == 5
    assert existence_minimum(0.05, confidence=0.95) == 1
    assert existence_minimum(0.1, confidence=0.9) == 1


@given(RATES, RATES)
def test_a_bound_exists_from_the_minimum_on(p: float, confidence: float) -> None:
    """The order-statistic bound saturates below the minimum and nowhere else."""
    n = existence_minimum(p, confidence=confidence)

    assert order_statistic_bound(range(n), p, confidence=confidence).saturated is False
    if n > 1:
        assert order_statistic_bound(range(n - 1), p, confidence=confidence).saturated is True


@pytest.mark.parametrize(
    ("trials", "p", "intent", "source", "expected"),
    [
        (99, 0.99, "VERIFICATION", "baseline-derived", (True, True, "INCONCLUSIVE")),
        (40, 0.99, "SMOKE", "baseline-derived", (True, True, "INDICATIVE")),
        (100, 0.99, "VERIFICATION", "baseline-derived", (True, False, "DECIDED")),
        (100, 0.99, "SMOKE", "baseline-derived", (True, False, "DECIDED")),
        (4, 0.5, "VERIFICATION", "explicit", (False, True, "DECIDED")),
        (5, 0.5, "SMOKE", "explicit", (False, False, "DECIDED")),
        (0, 0.9, "VERIFICATION", "baseline-derived", (True, True, "INCONCLUSIVE")),
    ],
)
def test_what_the_realised_count_allows(
    trials: int, p: float, intent: str, source: str, expected: tuple[bool, bool, str]
) -> None:
    """Only a baseline-derived assertion is gated; its intent says how (§12.5.4)."""
    found = nondegeneracy_decision(
        trials,
        p,
        intent=intent,  # type: ignore[arg-type]
        threshold_source=source,  # type: ignore[arg-type]
    )

    assert expected == (found.applies, found.degenerate, found.outcome)


@pytest.mark.parametrize(("p", "minimum"), [(0.5, 5), (0.9, 10), (0.95, 20), (0.99, 100)])
@pytest.mark.parametrize("intent", get_args(Intent))
def test_the_gate_opens_exactly_at_the_minimum(p: float, minimum: int, intent: Intent) -> None:
    """One latency short is not decided, under either intent."""
    assert nondegeneracy_decision(minimum - 1, p, intent=intent).outcome != "DECIDED"
    assert nondegeneracy_decision(minimum, p, intent=intent).outcome == "DECIDED"


def test_bad_arguments_are_named() -> None:
    """Each message starts with the argument that was wrong."""
    for bad in (0, 1, 95, math.nan):
        with pytest.raises(InvalidArgument, match=r"^percentile must"):
            existence_minimum(bad)
        with pytest.raises(InvalidArgument, match=r"^confidence must"):
            existence_minimum(0.5, confidence=bad)
    with pytest.raises(InvalidArgument, match=r"^percentile must be one of"):
        nondegeneracy_decision(10, 0.999)
    with pytest.raises(InvalidArgument, match=r"^percentile must"):
        nondegeneracy_decision(10, "p95")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"^test_trials must"):
        nondegeneracy_decision(-1, 0.5)
    with pytest.raises(InvalidArgument, match=r"^intent must"):
        nondegeneracy_decision(10, 0.5, intent="verify")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"^threshold_source must"):
        nondegeneracy_decision(10, 0.5, threshold_source="file")  # type: ignore[arg-type]
