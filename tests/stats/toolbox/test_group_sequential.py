"""Planned looks: spending functions by scipy, boundaries by counting paths in rationals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trialwise.errors import InvalidArgument
from trialwise.stats.rate_intervals import Side, wilson_interval, wilson_lower, wilson_upper
from trialwise.stats.toolbox.group_sequential import (
    SPENDINGS,
    GroupSequentialDesign,
    Spending,
    group_sequential_boundaries,
    peeking_error,
    spend,
)

kinds = st.sampled_from(SPENDINGS)
plans = st.lists(st.integers(1, 15), min_size=1, max_size=5).map(
    lambda steps: tuple(sum(steps[: i + 1]) for i in range(len(steps)))
)


def stopped_by(
    looks: Sequence[int], reject: Sequence[int], p: Fraction
) -> tuple[list[Fraction], Fraction]:
    """P(FAIL by each look) and the expected trials, one trial at a time in rationals."""
    boundary = dict(zip(looks, reject, strict=True))
    alive = {0: Fraction(1)}
    by: list[Fraction] = []
    total = mean = Fraction(0)
    for n in range(1, looks[-1] + 1):
        step: dict[int, Fraction] = {}
        for f, weight in alive.items():
            step[f] = step.get(f, Fraction(0)) + weight * p
            step[f + 1] = step.get(f + 1, Fraction(0)) + weight * (1 - p)
        alive = step
        if n in boundary:
            gone = sum((w for f, w in alive.items() if f >= boundary[n]), Fraction(0))
            total += gone
            mean += n * gone
            by.append(total)
            alive = {f: w for f, w in alive.items() if f < boundary[n]}
    return by, mean + looks[-1] * sum(alive.values(), Fraction(0))


@pytest.mark.parametrize("t", [0.01, 0.2, 0.5, 0.77, 0.999])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_spending_functions_are_those_of_lan_and_demets(t: float, alpha: float) -> None:
    """2(1 − Φ(z/√t)), alpha log(1 + (e − 1)t) and alpha t, with scipy's normal."""
    z = stats.norm.isf(alpha / 2)

    assert spend(t, alpha=alpha, kind="obrien-fleming") == pytest.approx(
        2 * stats.norm.sf(z / math.sqrt(t)), rel=1e-9
    )
    assert spend(t, alpha=alpha, kind="pocock") == pytest.approx(
        alpha * math.log(1 + (math.e - 1) * t), rel=1e-12
    )
    assert spend(t, alpha=alpha, kind="linear") == pytest.approx(alpha * t, rel=1e-12)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 0.5), kinds)
def test_spending_rises_from_nothing_to_alpha(
    s: float, t: float, alpha: float, kind: Spending
) -> None:
    """It is monotone, 0 at the start and alpha at the end."""
    early, late = sorted((s, t))

    assert spend(early, alpha=alpha, kind=kind) <= spend(late, alpha=alpha, kind=kind) + 1e-15
    assert spend(0, alpha=alpha, kind=kind) == 0
    assert alpha == spend(1, alpha=alpha, kind=kind)


@pytest.mark.slow
@given(plans, st.integers(1, 19), st.sampled_from([0.01, 0.05, 0.1, 0.25]), kinds)
@settings(max_examples=80, deadline=None)
def test_boundaries_spend_at_most_the_budget_and_no_lower_one_would(
    looks: tuple[int, ...], twentieths: int, alpha: float, kind: Spending
) -> None:
    """Against path counting in rationals: exact, within the budget, and as low as it allows."""
    p0 = Fraction(twentieths, 20)
    design = group_sequential_boundaries(float(p0), looks, alpha=alpha, spending=kind)
    by, _ = stopped_by(looks, design.reject, p0)

    assert [float(x) for x in by] == pytest.approx(list(design.false_alarm), abs=1e-12)
    for k, (n, r) in enumerate(zip(looks, design.reject, strict=True)):
        budget = spend(n / looks[-1], alpha=alpha, kind=kind)
        assert budget == pytest.approx(design.spent[k], rel=1e-12)
        assert float(by[k]) <= budget * (1 + 1e-12)
        lower = (*design.reject[:k], min(r, n + 1) - 1)
        # Lower than n + 1 may still be out of reach after the boundaries before; then nothing is
        # spent by it, and only a reachable count can tell.
        dearer, _ = stopped_by(looks[: k + 1], lower, p0)
        if dearer[k] > by[k]:
            assert float(dearer[k]) > budget * (1 - 1e-12)


def test_a_boundary_that_spends_alpha_to_the_last_digit_is_taken() -> None:
    """P(5 of 5 fail) = 0.03125 at p0 = 0.5, and half of alpha by half of the trials."""
    assert group_sequential_boundaries(0.5, (5,), alpha=0.03125).reject == (5,)
    above = math.nextafter(0.03125, 0)
    assert group_sequential_boundaries(0.5, (5,), alpha=above).reject == (6,)
    # 4 failures of 4 have 1/16 = 0.125 · 4/8.
    halves = group_sequential_boundaries(0.5, (4, 8), alpha=0.125, spending="linear")
    assert halves.reject[0] == 4


@pytest.mark.parametrize("kind", SPENDINGS)
@pytest.mark.parametrize(
    "p", [Fraction(1), Fraction(19, 20), Fraction(9, 10), Fraction(3, 4), Fraction(0)]
)
def test_power_and_expected_trials_are_exact(kind: Spending, p: Fraction) -> None:
    """The characteristic against path counting in rationals, certain rates included."""
    design = group_sequential_boundaries(0.9, (20, 40, 60), spending=kind)
    by, mean = stopped_by(design.looks, design.reject, p)
    curve = design.operating_characteristic(float(p))

    assert [float(x) for x in by] == pytest.approx(list(curve.fails_by), abs=1e-12)
    assert float(by[-1]) == pytest.approx(curve.fails, abs=1e-12)
    assert float(mean) == pytest.approx(curve.mean_trials, rel=1e-12)


@given(plans, st.floats(0.05, 0.95), kinds)
@settings(max_examples=50, deadline=None)
def test_p0_is_the_worst_rate_of_the_null(
    looks: tuple[int, ...], p0: float, kind: Spending
) -> None:
    """The higher the rate, the less often any look fails."""
    design = group_sequential_boundaries(p0, looks, spending=kind)
    chances = [design.operating_characteristic(i / 20).fails for i in range(21)]

    assert all(a >= b - 1e-12 for a, b in pairwise(chances))
    assert design.operating_characteristic(p0).fails == pytest.approx(
        design.false_alarm[-1], abs=1e-12
    )


def test_one_look_is_the_fixed_exact_test() -> None:
    """With a single look every kind gives the binomial cutoff of scipy."""
    for n, p0 in ((50, 0.9), (100, 0.951), (200, 0.8)):
        cutoff = int(stats.binom.isf(0.05, n, 1 - p0)) + 1
        for kind in SPENDINGS:
            assert (cutoff,) == group_sequential_boundaries(p0, (n,), spending=kind).reject


def test_obrien_fleming_saves_its_alpha_and_pocock_spends_it() -> None:
    """At 0.9 with five looks: the former is stricter at first and more powerful in the end."""
    late, early = (
        group_sequential_boundaries(0.9, (20, 40, 60, 80, 100), spending=kind)
        for kind in ("obrien-fleming", "pocock")
    )

    assert late.reject[0] > early.reject[0]
    assert late.reject[-1] <= early.reject[-1]
    assert late.operating_characteristic(0.8).fails > early.operating_characteristic(0.8).fails
    assert (
        late.operating_characteristic(0.8).mean_trials
        > early.operating_characteristic(0.8).mean_trials
    )


def test_looks_too_small_to_fail_are_said_to_be() -> None:
    """At p0 = 0.5 four trials cannot spend 5 %: 0.5^4 = 0.0625."""
    design = group_sequential_boundaries(0.5, (2, 4))

    assert not design.can_fail
    assert design.reject == (3, 5)
    assert group_sequential_boundaries(0.5, (2, 5)).can_fail


def test_a_design_is_a_hashable_value() -> None:
    """Equal plans are equal designs."""
    a, b = (group_sequential_boundaries(0.9, looks) for looks in ([10, 20], (10, 20)))

    assert a == b
    assert len({a, b}) == 1
    assert isinstance(a, GroupSequentialDesign)


# --- the mistake --------------------------------------------------------------------------------


def wilson_excludes(s: int, n: int, p0: float, side: Side) -> bool:
    if side == "two-sided":
        return p0 not in wilson_interval(s, n)
    return wilson_lower(s, n) > p0 if side == "lower" else wilson_upper(s, n) < p0


def test_peeking_at_a_wilson_interval_has_the_documented_error() -> None:
    """At 0.8, each trial from 30: .036 → .120 (50) → .194 (100) → .259 (200) → .396 (1000)."""
    result = peeking_error(0.8, range(30, 1001))

    found = [round(result.excluded_by[n - 30], 3) for n in (30, 50, 100, 200, 1000)]
    assert found == [0.036, 0.120, 0.194, 0.259, 0.396]
    assert result.total == result.excluded_by[-1]


@pytest.mark.parametrize("side", ["two-sided", "lower", "upper"])
@pytest.mark.parametrize(
    ("p0", "looks"), [(0.8, (1, 2, 3, 30, 40)), (0.95, (10, 20, 60)), (0.5, (7,))]
)
def test_peeking_agrees_with_the_interval_itself(
    p0: float, looks: tuple[int, ...], side: Side
) -> None:
    """Counting paths, and asking each interval whether it holds p0."""
    alive, total, before = {0: 1.0}, 0.0, 0
    expected = []
    for n in looks:
        for _ in range(before, n):
            step: dict[int, float] = {}
            for s, weight in alive.items():
                step[s + 1] = step.get(s + 1, 0.0) + weight * p0
                step[s] = step.get(s, 0.0) + weight * (1 - p0)
            alive = step
        before = n
        total += sum(w for s, w in alive.items() if wilson_excludes(s, n, p0, side))
        alive = {s: w for s, w in alive.items() if not wilson_excludes(s, n, p0, side)}
        expected.append(total)

    assert expected == pytest.approx(peeking_error(p0, looks, side=side).excluded_by, abs=1e-12)


@given(plans, st.floats(0.05, 0.95))
@settings(max_examples=50, deadline=None)
def test_more_peeks_never_err_less(looks: tuple[int, ...], p0: float) -> None:
    """The chance of a wrong exclusion only grows with the looks."""
    errors = peeking_error(p0, looks).excluded_by

    assert list(errors) == sorted(errors)
    assert 0 <= errors[0] <= errors[-1] <= 1 + 1e-12


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"p0": 0.0}, "p0"),
        ({"p0": math.nan}, "p0"),
        ({"looks": ()}, "looks"),
        ({"looks": 5}, "looks"),
        ({"looks": (10, 10)}, "looks"),
        ({"looks": (0, 10)}, "looks[0]"),
        ({"looks": (5, 7.5)}, "looks[1]"),
    ],
)
def test_bad_plans_are_named(arguments: dict[str, Any], named: str) -> None:
    """Rates outside (0, 1), and looks that do not rise."""
    good: dict[str, Any] = {"p0": 0.9, "looks": (10, 20)}
    for function in (group_sequential_boundaries, peeking_error):
        with pytest.raises(InvalidArgument) as caught:
            function(**{**good, **arguments})
        assert named == caught.value.argument


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: spend(1.5), "fraction"),
        (lambda: spend(0.5, alpha=1.0), "alpha"),
        (lambda: spend(0.5, kind="haybittle"), "kind"),  # type: ignore[arg-type]
        (lambda: group_sequential_boundaries(0.9, (5,), spending="haybittle"), "spending"),  # type: ignore[arg-type]
        (lambda: group_sequential_boundaries(0.9, (5,), alpha=0.0), "alpha"),
        (lambda: group_sequential_boundaries(0.9, (5,)).operating_characteristic(1.1), "p"),
        (lambda: peeking_error(0.9, (5,), confidence=1.0), "confidence"),
        (lambda: peeking_error(0.9, (5,), side="left"), "side"),  # type: ignore[arg-type]
    ],
)
def test_bad_options_are_named(call: Any, named: str) -> None:
    """Each refusal names the argument."""
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert named == caught.value.argument
