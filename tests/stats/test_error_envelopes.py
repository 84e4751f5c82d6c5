"""Disclosed error envelopes: the companion's tables, closed forms and rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.error_envelopes import (
    Envelope,
    Envelopes,
    envelope,
    horizon_false_alarm,
    type_one_envelopes,
)
from trialwise.stats.toolbox.family_errors import (
    across_suite_envelope,
    family_wise_independent,
    per_run_alpha_for_horizon,
)

levels = st.floats(1e-9, 0.999)


def bound(alphas: list[float]) -> Envelope:
    result = envelope(alphas)
    assert isinstance(result, Envelope)
    return result


def independent(alphas: list[float]) -> float:
    result = family_wise_independent(alphas)
    assert isinstance(result, float)
    return result


@pytest.mark.parametrize(
    ("tests", "alpha", "independent_percent", "envelope_percent"),
    [
        (5, 0.05, 22.6, 25.0),
        (10, 0.05, 40.1, 50.0),
        (20, 0.05, 64.2, 100.0),
        (5, 0.01, 4.9, 5.0),
        (10, 0.01, 9.6, 10.0),
        (20, 0.01, 18.2, 20.0),
    ],
)
def test_the_companion_table_of_families(
    tests: int, alpha: float, independent_percent: float, envelope_percent: float
) -> None:
    """Companion §7.3, both columns at both levels."""
    family = [alpha] * tests

    assert round(100 * independent(family), 1) == independent_percent
    assert round(100 * bound(family).capped, 1) == envelope_percent


def test_an_envelope_is_capped_for_display_and_kept_raw() -> None:
    """Thirty tests at 0.05 add up to 1.5, which bounds nothing."""
    family = bound([0.05] * 30)

    assert family.raw == pytest.approx(1.5, abs=1e-12)
    assert family.capped == 1
    assert family.alphas == (0.05,) * 30


def test_levels_add_up_as_decimals() -> None:
    """0.05 + 0.05 + 0.01 is 0.11, in any order."""
    for family in ([0.05, 0.05, 0.01], [0.01, 0.05, 0.05]):
        assert bound(family).raw == pytest.approx(0.11, abs=1e-12)
        assert f"{bound(family).raw:.12g}" == "0.11"


def test_an_empty_family_has_no_envelope() -> None:
    """Nothing can go wrong is not the same as a bound of 0: it is undefined, with the reason."""
    assert isinstance(envelope([]), Undefined)
    assert isinstance(family_wise_independent([]), Undefined)


@given(st.lists(levels, min_size=1, max_size=20))
def test_the_union_bound_covers_the_independent_case_and_every_member(alphas: list[float]) -> None:
    """max α ≤ 1 − Π(1 − α) ≤ min(Σα, 1)."""
    slack = 1e-12

    assert max(alphas) <= independent(alphas) + slack
    assert independent(alphas) <= bound(alphas).capped + slack


@given(st.lists(levels, min_size=1, max_size=12))
def test_sums_and_products_agree_with_rationals(alphas: list[float]) -> None:
    """Σα and 1 − Π(1 − α) in exact arithmetic."""
    exact = [Fraction(alpha) for alpha in alphas]

    assert bound(alphas).raw == pytest.approx(float(sum(exact)), rel=1e-15)
    assert independent(alphas) == pytest.approx(
        float(1 - math.prod((1 - alpha for alpha in exact), start=Fraction(1))), rel=1e-13
    )


def test_a_tiny_level_is_not_rounded_away() -> None:
    """A thousand tests at 1e-18: 1 − (1 − α)ⁿ by mpmath, where 1 − α is 1 in doubles."""
    with mpmath.workdps(50):
        expected = float(1 - (1 - mpmath.mpf("1e-18")) ** 1000)

    assert independent([1e-18] * 1000) == pytest.approx(expected, rel=1e-13)


def test_the_union_bound_is_attained_by_disjoint_errors() -> None:
    """Tests that err on different ones of 100 equally likely outcomes: one errs on Σα of them."""
    regions = [range(10), range(10, 30), range(30, 35), range(85, 100)]
    alphas = [len(region) / 100 for region in regions]
    outcomes = [any(outcome in region for region in regions) for outcome in range(100)]

    assert bound(alphas).raw == pytest.approx(sum(outcomes) / 100, abs=1e-12)


# --- by direction ------------------------------------------------------------------------------


def test_directions_are_kept_apart() -> None:
    """A mixed contract reports two envelopes and no unlabelled aggregate (companion §1.4.6)."""
    result = type_one_envelopes(
        [
            ("compliance", 0.05),
            ("regression", 0.05),
            ("compliance", 0.05),
            ("observational", None),
            ("compliance", 0.01),
            ("regression", 0.001),
        ]
    )

    assert result.false_compliance == pytest.approx(0.11, abs=1e-12)
    assert result.false_degradation_signal == pytest.approx(0.051, abs=1e-12)
    assert result.compliance_alphas == (0.05, 0.05, 0.01)
    assert result.regression_alphas == (0.05, 0.001)
    assert result.observational == 1


def test_a_contract_of_one_kind_reports_one_envelope() -> None:
    """The other is None, not 0; observational criteria contribute to neither."""
    compliance = type_one_envelopes([("compliance", 0.05), ("observational", None)])
    watching = type_one_envelopes([("observational", None)])

    assert compliance.false_degradation_signal is None
    assert compliance.false_compliance == 0.05
    assert watching == Envelopes(
        false_compliance=None, false_degradation_signal=None, observational=1
    )


def test_an_envelope_by_direction_is_a_probability() -> None:
    """A sum above 1 is capped; the alphas stay."""
    result = type_one_envelopes([("regression", 0.3)] * 4)

    assert result.false_degradation_signal == 1
    assert result.regression_alphas == (0.3,) * 4


@given(st.lists(st.tuples(st.sampled_from(["compliance", "regression"]), levels), max_size=8))
def test_a_suite_adds_up_its_contracts(criteria: list[tuple[Any, float]]) -> None:
    """Splitting criteria over contracts changes no across-suite envelope (companion §7.3)."""
    contracts = [type_one_envelopes(criteria[i::3]) for i in range(3)]
    whole = type_one_envelopes(criteria)
    suite = across_suite_envelope(contracts)

    assert suite.false_compliance == whole.false_compliance
    assert suite.false_degradation_signal == whole.false_degradation_signal
    assert sorted(suite.compliance_alphas) == sorted(whole.compliance_alphas)


def test_a_suite_without_contracts_has_no_envelope() -> None:
    """No contract, no direction, no bound."""
    assert across_suite_envelope([]) == type_one_envelopes([])


# --- horizons ----------------------------------------------------------------------------------


def test_fifty_runs_at_five_percent() -> None:
    """Companion §8.5: a bound of 2.5, as many expected alarms, and about 92 % if independent."""
    monitor = horizon_false_alarm(0.05, 50)

    assert monitor.horizon == 50
    assert monitor.per_run_alpha == 0.05
    assert monitor.bonferroni_bound == 2.5
    assert monitor.bonferroni_bound_capped == 1
    assert monitor.expected_false_alarms == 2.5
    assert monitor.independent_probability == pytest.approx(1 - 0.95**50, rel=1e-14)
    assert round(100 * monitor.independent_probability) == 92


@given(levels, st.integers(1, 10_000))
def test_a_horizon_agrees_with_its_runs_as_a_family(alpha: float, horizon: int) -> None:
    """H runs are H tests at one level: the same bounds, which grow with the horizon."""
    monitor = horizon_false_alarm(alpha, horizon)
    longer = horizon_false_alarm(alpha, horizon + 1)

    assert alpha <= monitor.independent_probability * (1 + 1e-12)
    assert monitor.independent_probability <= monitor.bonferroni_bound_capped + 1e-12
    assert monitor.independent_probability <= longer.independent_probability
    assert monitor.bonferroni_bound < longer.bonferroni_bound
    if horizon <= 50:
        assert monitor.independent_probability == pytest.approx(
            independent([alpha] * horizon), rel=1e-12
        )


@given(levels, st.integers(1, 10_000))
def test_a_per_run_alpha_gives_back_its_horizon(alpha: float, horizon: int) -> None:
    """Bonferroni and Šidák are the inverses of the two horizon formulas; Šidák's is larger."""
    arbitrary = per_run_alpha_for_horizon(alpha, horizon)
    sidak = per_run_alpha_for_horizon(alpha, horizon, dependence="independent")

    assert horizon_false_alarm(arbitrary, horizon).bonferroni_bound == pytest.approx(
        alpha, rel=1e-12
    )
    assert horizon_false_alarm(sidak, horizon).independent_probability == pytest.approx(
        alpha, rel=1e-12
    )
    assert arbitrary <= sidak * (1 + 1e-12)


def test_sidak_in_high_precision() -> None:
    """1 − 0.95^(1/50) by mpmath."""
    with mpmath.workdps(40):
        expected = float(1 - mpmath.mpf("0.95") ** (mpmath.mpf(1) / 50))

    assert per_run_alpha_for_horizon(0.05, 50, dependence="independent") == pytest.approx(
        expected, rel=1e-14
    )


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, math.nan, math.inf, None, True])
def test_a_level_lies_strictly_between_0_and_1(bad: Any) -> None:
    """Every function names the level it refuses."""
    with pytest.raises(InvalidArgument, match=r"alphas\[1\] must lie strictly between 0 and 1"):
        envelope([0.05, bad])
    with pytest.raises(InvalidArgument, match=r"alphas\[0\]"):
        family_wise_independent([bad])
    with pytest.raises(InvalidArgument, match="alpha must lie strictly"):
        horizon_false_alarm(bad, 5)
    with pytest.raises(InvalidArgument, match="horizon_alpha must lie strictly"):
        per_run_alpha_for_horizon(bad, 5)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, None, 10**400])
def test_a_horizon_is_a_number_of_runs(bad: Any) -> None:
    """At least one run, whole, and few enough to count."""
    with pytest.raises(InvalidArgument, match="horizon must be"):
        horizon_false_alarm(0.05, bad)
    with pytest.raises(InvalidArgument, match="horizon must be"):
        per_run_alpha_for_horizon(0.05, bad)


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (("compliance", None), r"criteria\[0\] alpha must be given for compliance"),
        (("regression", 0), r"criteria\[0\] alpha must lie strictly"),
        (("observational", 0.05), r"criteria\[0\] alpha must be None when observational"),
        (("latency", 0.05), r"criteria\[0\] direction must be one of 'compliance'"),
    ],
)
def test_a_criterion_has_the_alpha_its_direction_needs(criterion: Any, message: str) -> None:
    """An inferential criterion carries a level and an observational one none."""
    with pytest.raises(InvalidArgument, match=message):
        type_one_envelopes([criterion])


def test_other_misuse_is_refused() -> None:
    """A suite is made of contracts' envelopes; a dependence is one of two; a family is a list."""
    bad: Any = "positive"
    with pytest.raises(InvalidArgument, match="dependence must be one of"):
        per_run_alpha_for_horizon(0.05, 5, dependence=bad)
    with pytest.raises(InvalidArgument, match=r"contracts\[0\] must be the Envelopes"):
        across_suite_envelope([bad])
    with pytest.raises(InvalidArgument, match="alphas must be a sequence"):
        envelope(bad)
    with pytest.raises(InvalidArgument, match="criteria must be a sequence"):
        type_one_envelopes(bad)
    with pytest.raises(InvalidArgument, match=r"criteria\[0\] must be a pair"):
        type_one_envelopes([bad])
