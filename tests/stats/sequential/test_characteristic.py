"""The forward recursion against path counts, enumeration of every sequence, and plain laws."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.sequential import SequentialDesign
from trialwise.stats.sequential.walks import Rule, characteristic, stopping_probabilities

Exactly = Callable[..., Any]


@st.composite
def rules(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Boundaries in order, of any other shape, for a cap of up to 14."""
    cap = draw(st.integers(1, 14))
    accept, reject = [-1], [1]
    for n in range(1, cap + 1):
        accept.append(draw(st.integers(accept[-1], max(accept[-1], min(n, accept[-1] + 2)))))
        least = max(reject[-1], accept[-1] + 1)
        reject.append(draw(st.integers(min(least, n + 1), n + 1)))
        accept[-1] = min(accept[-1], reject[-1] - 1)
    return accept, reject


@given(rule=rules(), p=st.fractions(0, 1, max_denominator=1000))
def test_the_recursion_agrees_with_path_counts(
    rule: tuple[list[int], list[int]], p: Fraction, exactly: Exactly
) -> None:
    """Every probability and the mean agree with integers and rationals to the last digits."""
    curve = characteristic(Rule(*rule), float(p))
    exact = exactly(*rule, p)

    assert pytest.approx(float(exact.passes), abs=1e-13) == curve.passes
    assert pytest.approx(float(exact.fails), abs=1e-13) == curve.fails
    assert pytest.approx(float(exact.inconclusive), abs=1e-13) == curve.inconclusive
    assert pytest.approx(float(exact.mean_trials), abs=1e-11) == curve.mean_trials
    for n, probability in enumerate(curve.distribution):
        assert pytest.approx(float(exact.distribution.get(n, 0)), abs=1e-13) == probability


@pytest.mark.parametrize("p", [Fraction(9, 10), Fraction(1, 2)])
def test_path_counts_agree_with_every_single_sequence(p: Fraction, exactly: Exactly) -> None:
    """All 2¹² sequences of a cap of 12, one by one, give what the path counts give."""
    design = SequentialDesign.optimal(0.9, 0.6, cap=12)
    passes = fails = trials = Fraction(0)
    for sequence in product((0, 1), repeat=12):
        weight = Fraction(1)
        for outcome in sequence:
            weight *= p if outcome else 1 - p
        failures = 0
        for n, outcome in enumerate(sequence, 1):
            failures += not outcome
            if failures <= design.accept[n]:
                passes += weight
                break
            if failures >= design.reject[n]:
                fails += weight
                break
        trials += n * weight

    exact = exactly(design.accept, design.reject, p)
    assert (passes, fails, trials) == (exact.passes, exact.fails, exact.mean_trials)


@given(rule=rules(), p=st.floats(0, 1), q=st.floats(0, 1))
def test_a_better_service_passes_more_and_fails_less(
    rule: tuple[list[int], list[int]], p: float, q: float
) -> None:
    """P(PASS) rises with the true rate, P(FAIL) falls, and with P(INCONCLUSIVE) they make 1."""
    low, high = (characteristic(Rule(*rule), one) for one in (min(p, q), max(p, q)))

    assert low.passes <= high.passes + 1e-12
    assert low.fails >= high.fails - 1e-12
    assert pytest.approx(1, abs=1e-12) == low.passes + low.fails + low.inconclusive
    assert pytest.approx(1, abs=1e-12) == sum(high.distribution)


def test_quantiles_are_the_smallest_counts_that_suffice() -> None:
    """A quantile is read off the distribution: enough at n, not enough at n − 1."""
    curve = SequentialDesign.wald(0.9, 0.8, cap=50).operating_characteristic(0.9)

    for q in (0.01, 0.5, 0.75, 0.95):
        n = curve.quantile(q)
        assert sum(curve.distribution[:n]) < q <= sum(curve.distribution[: n + 1])
    assert curve.quantile(0.5) == curve.median_trials
    assert (curve.quantile(0), curve.quantile(1)) == (0, 50)


def test_at_certain_rates_there_is_one_path() -> None:
    """At rates 1 and 0 the run is all successes or all failures."""
    design = SequentialDesign.wald(0.9, 0.8, cap=50)

    assert [stop for stop in stopping_probabilities(design, 1.0).passes if stop[2]] == [
        (14, 0, 1.0)
    ]
    assert [stop for stop in stopping_probabilities(design, 0.0).fails if stop[2]] == [(4, 4, 1.0)]


def test_ten_thousand_trials_stay_within_doubles() -> None:
    """A long design neither underflows nor loses its total."""
    design = SequentialDesign.wald(0.9, 0.8, cap=10_000)

    for p in (0.8, 0.85, 0.9):
        curve = design.operating_characteristic(p)
        assert pytest.approx(1, abs=1e-11) == curve.passes + curve.fails + curve.inconclusive


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), "0.5x", True])
def test_a_rate_outside_0_to_1_is_refused(p: Any) -> None:
    """The message names the argument."""
    design = SequentialDesign.fixed(0.9, 0.8)
    with pytest.raises(InvalidArgument, match=r"^p must"):
        design.operating_characteristic(p)
    with pytest.raises(InvalidArgument, match=r"^q must"):
        design.operating_characteristic(0.5).quantile(2)


@pytest.mark.slow
def test_equal_designs_are_worked_out_once() -> None:
    """A contract may have hundreds of criteria that ask the same."""
    first, second = (SequentialDesign.strict(0.9, cap=60) for _ in range(2))

    assert first is not second
    assert first.operating_characteristic(0.93) is second.operating_characteristic(0.93)
