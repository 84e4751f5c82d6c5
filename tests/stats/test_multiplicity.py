"""Families of tests: step rules against textbook rationals, error rates by enumeration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from trialwise.errors import InvalidArgument
from trialwise.stats.e_values import e_bh
from trialwise.stats.multiplicity import CORRECTIONS, Correction, adjust

families = st.lists(st.floats(0, 1), min_size=1, max_size=12)
#: p-values and levels on a coarse decimal grid, so that ties with alpha · k/m are frequent.
grid_families = st.lists(st.integers(0, 40).map(lambda k: k / 400), min_size=1, max_size=8)
grid_levels = st.sampled_from([0.01, 0.05, 0.06, 0.1, 0.11, 0.25])
corrections = st.sampled_from(CORRECTIONS)


bonferroni = partial(adjust, method="bonferroni")
holm = partial(adjust, method="holm")
benjamini_hochberg = partial(adjust, method="bh")
benjamini_yekutieli = partial(adjust, method="by")


def decimal(value: float) -> Fraction:
    return Fraction(repr(value))


def step_rule(method: Correction, p_values: Sequence[float], alpha: float) -> list[bool]:
    """The rejections as the papers state them, in rationals."""
    m, level = len(p_values), decimal(alpha)
    ranked = sorted(decimal(p) for p in p_values)
    harmonic = sum(Fraction(1, i) for i in range(1, m + 1))
    cut = Fraction(-1)
    if method == "none":
        cut = level
    elif method == "bonferroni":
        cut = level / m
    elif method == "holm":
        for k, p in enumerate(ranked):
            if p > level / (m - k):
                break
            cut = p
    else:
        penalty = harmonic if method == "by" else 1
        cut = max(
            (p for k, p in enumerate(ranked, 1) if p <= level * k / (m * penalty)), default=cut
        )
    return [decimal(p) <= cut for p in p_values]


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        ([0.005, 0.015, 0.025, 0.5, 0.8], [True, True, True, False, False]),
        ([0.01, 0.02, 0.03, 0.04, 0.05], [True] * 5),
        ([0.04, 0.03, 0.02, 0.01], [True] * 4),
    ],
)
def test_bh_reproduces_the_documented_vectors(p_values: list[float], rejected: list[bool]) -> None:
    """The three families of the reference implementation, boundary ties included."""
    assert rejected == list(benjamini_hochberg(p_values).rejected)


def test_bonferroni_at_five_tests_uses_a_fifth_of_alpha() -> None:
    """bonferroni(0.05, 5) is 0.01 for each: p = 0.01 is rejected and the next float is not."""
    assert bonferroni([0.01, 1, 1, 1, 1]).rejected[0]
    assert not bonferroni([math.nextafter(0.01, 1), 1, 1, 1, 1]).rejected[0]


def test_by_divides_alpha_by_the_harmonic_number() -> None:
    """With ten tests the penalty is 1 + 1/2 + … + 1/10 = 7381/2520, about 2.929."""
    family = [0.001] + [1.0] * 9

    expected = Fraction(1, 1000) * 10 * Fraction(7381, 2520)
    assert float(expected) == pytest.approx(benjamini_yekutieli(family).adjusted[0], rel=1e-14)


@pytest.mark.slow
@given(grid_families, grid_levels, corrections)
@settings(max_examples=400, deadline=None)
def test_rejections_follow_the_step_rule_in_rationals(
    p_values: list[float], alpha: float, method: Correction
) -> None:
    """Every tie with a decimal boundary falls on the rejecting side."""
    assert step_rule(method, p_values, alpha) == list(
        adjust(p_values, method=method, alpha=alpha).rejected
    )


@given(st.integers(1, 40), st.integers(1, 20))
def test_bh_rejects_a_family_lying_exactly_on_its_line(m: int, thousandths: int) -> None:
    """p_(k) = alpha · k/m rejects all m; a hair above, none."""
    alpha = m * thousandths / 1000
    if alpha >= 1:
        return
    family = [k * thousandths / 1000 for k in range(1, m + 1)]

    assert m == benjamini_hochberg(family, alpha=alpha).number_rejected
    assert benjamini_hochberg([p + 1e-12 for p in family], alpha=alpha).number_rejected == 0


@pytest.mark.parametrize(("family", "alpha"), [([0.02, 0.5], 0.06), ([0.02, 0.5, 0.6], 0.11)])
def test_by_ties_are_decided_in_rationals(family: list[float], alpha: float) -> None:
    """alpha/(m H_m) is exactly 0.02 at (2, 0.06) and (3, 0.11)."""
    above = [math.nextafter(family[0], 1), *family[1:]]

    assert benjamini_yekutieli(family, alpha=alpha).rejected[0]
    assert not benjamini_yekutieli(above, alpha=alpha).rejected[0]


@pytest.mark.slow
@given(families, st.sampled_from([0.01, 0.05, 0.2]))
@settings(max_examples=6)  # every Holm there collects all garbage of the process
def test_adjustments_agree_with_statsmodels(p_values: list[float], alpha: float) -> None:
    """Adjusted p-values and, away from the boundary, rejections."""
    names: dict[Correction, str] = {
        "bonferroni": "bonferroni",
        "holm": "holm",
        "bh": "fdr_bh",
        "by": "fdr_by",
    }
    for method, name in names.items():
        rejected, adjusted, _, _ = multipletests(p_values, alpha=alpha, method=name)
        ours = adjust(p_values, method=method, alpha=alpha)
        assert adjusted.tolist() == pytest.approx(ours.adjusted, rel=1e-9, abs=1e-300)
        for theirs, value, decision in zip(rejected, ours.adjusted, ours.rejected, strict=True):
            assert bool(theirs) == decision or math.isclose(value, alpha, rel_tol=1e-8)


@given(families | grid_families, grid_levels, corrections)
def test_rejected_means_adjusted_at_most_alpha(
    p_values: list[float], alpha: float, method: Correction
) -> None:
    """The decision can be read off the reported number, and the count off the decisions."""
    result = adjust(p_values, method=method, alpha=alpha)

    assert tuple(value <= alpha for value in result.adjusted) == result.rejected
    assert sum(result.rejected) == result.number_rejected
    assert all(0 <= value <= 1 for value in result.adjusted)
    assert tuple(p_values) == result.p_values


@given(families, corrections)
def test_an_adjusted_value_is_the_smallest_alpha_that_rejects(
    p_values: list[float], method: Correction
) -> None:
    """A hair above it the member is rejected, a hair below it is not."""
    for i, value in enumerate(adjust(p_values, method=method).adjusted):
        if 1e-6 < value < 0.999:
            above, below = value * (1 + 1e-8), value * (1 - 1e-8)
            assert adjust(p_values, method=method, alpha=above).rejected[i]
            assert not adjust(p_values, method=method, alpha=below).rejected[i]


@given(families | grid_families, corrections, st.randoms(use_true_random=False))
def test_adjusting_commutes_with_reordering(
    p_values: list[float], method: Correction, random: Any
) -> None:
    """Values keep the order of the input, whatever that is; equal p-values fare equally."""
    order = list(range(len(p_values)))
    random.shuffle(order)
    straight = adjust(p_values, method=method).adjusted
    shuffled = adjust([p_values[i] for i in order], method=method).adjusted

    assert [straight[i] for i in order] == list(shuffled)


@given(families | grid_families)
def test_methods_are_ordered_by_severity(p_values: list[float]) -> None:
    """p ≤ BH ≤ Holm ≤ Bonferroni and BH ≤ BY, member by member."""
    plain, bonf, step, bh, by = (
        adjust(p_values, method=method).adjusted
        for method in ("none", "bonferroni", "holm", "bh", "by")
    )
    for p, f, h, b, y in zip(plain, bonf, step, bh, by, strict=True):
        slack = 1 + 1e-12
        assert p <= b * slack
        assert b <= h * slack
        assert h <= f * slack
        assert b <= y * slack


@given(families, corrections, st.data())
def test_adjustment_is_monotone(
    p_values: list[float], method: Correction, data: st.DataObject
) -> None:
    """Adjusted values keep the order of the p-values, and raising one p-value lowers nothing."""
    before = adjust(p_values, method=method).adjusted
    ranked = [value for _, value in sorted(zip(p_values, before, strict=True))]
    i = data.draw(st.integers(0, len(p_values) - 1))
    raised = list(p_values)
    raised[i] = data.draw(st.floats(p_values[i], 1))
    after = adjust(raised, method=method).adjusted

    assert sorted(ranked) == ranked
    assert all(new >= old * (1 - 1e-12) for old, new in zip(before, after, strict=True))


@given(families, corrections)
def test_the_cap_is_a_fixed_point(p_values: list[float], method: Correction) -> None:
    """Members Bonferroni has adjusted to 1 stay there; a single test is never changed."""
    capped = bonferroni(p_values).adjusted
    again = bonferroni(capped).adjusted

    assert all(new == 1 for old, new in zip(capped, again, strict=True) if old == 1)
    assert adjust([1.0] * len(p_values), method=method).adjusted == (1.0,) * len(p_values)
    assert adjust(p_values[:1], method=method).adjusted == pytest.approx(p_values[:1], rel=1e-15)


def test_each_method_says_what_it_controls() -> None:
    """The table of companion §7.3: the error, the dependence, and the unadjusted label."""
    claims = {method: adjust([0.5], method=method) for method in CORRECTIONS}

    assert claims["none"].label == "unadjusted per-test"
    assert {method: claim.controls for method, claim in claims.items()} == {
        "none": "per-test",
        "bonferroni": "FWER",
        "holm": "FWER",
        "bh": "FDR",
        "by": "FDR",
    }
    assert "PRDS" in claims["bh"].dependence
    assert all("arbitrary" in claims[method].dependence for method in ("bonferroni", "holm", "by"))
    assert "arbitrary" in e_bh([1.0]).dependence


def test_an_empty_family_rejects_nothing() -> None:
    """No hypotheses, no rejections: the reference implementation's empty-in, empty-out."""
    assert all(adjust([], method=method).rejected == () for method in CORRECTIONS)
    assert e_bh([]).number_rejected == 0


# --- error rates, exactly ----------------------------------------------------------------------


def lower_tail_family(rate: Fraction) -> list[tuple[Fraction, float]]:
    """(probability, p-value) of each count in 8 trials, for the null that the rate is 0.8."""

    def pmf(k: int, p: Fraction) -> Fraction:
        return math.comb(8, k) * p**k * (1 - p) ** (8 - k)

    null = Fraction(4, 5)
    return [(pmf(k, rate), float(sum(pmf(j, null) for j in range(k + 1)))) for k in range(9)]


def error_rates(method: Correction, nulls: int, tests: int, alpha: float) -> tuple[float, float]:
    """The exact FWER and FDR over independent tests, the first `nulls` of them true."""
    true, false = lower_tail_family(Fraction(4, 5)), lower_tail_family(Fraction(1, 2))
    fwer = fdr = Fraction(0)
    for outcome in product(*[true] * nulls, *[false] * (tests - nulls)):
        rejected = adjust([p for _, p in outcome], method=method, alpha=alpha).rejected
        wrong = sum(rejected[:nulls])
        if wrong:
            weight = math.prod((w for w, _ in outcome), start=Fraction(1))
            fwer += weight
            fdr += weight * Fraction(wrong, sum(rejected))
    return float(fwer), float(fdr)


@pytest.mark.parametrize("nulls", [1, 2, 3])
def test_error_rates_hold_for_independent_discrete_tests(nulls: int) -> None:
    """Three binomial tests at alpha 0.06: FWER ≤ alpha for Bonferroni and Holm, FDR ≤ alpha m₀/m
    for BH and BY, by enumeration of all 729 outcomes."""
    alpha = 0.06

    assert error_rates("bonferroni", nulls, 3, alpha)[0] <= alpha * nulls / 3
    assert error_rates("holm", nulls, 3, alpha)[0] <= alpha
    assert error_rates("bh", nulls, 3, alpha)[1] <= alpha * nulls / 3
    assert error_rates("by", nulls, 3, alpha)[1] <= alpha * nulls / 3


def test_unadjusted_tests_do_not_control_the_family() -> None:
    """Three unadjusted tests of size s falsely reject with probability exactly 1 − (1 − s)³."""
    size = max(p for _, p in lower_tail_family(Fraction(4, 5)) if p <= 0.06)

    fwer, _ = error_rates("none", 3, 3, 0.06)

    assert 1 - (1 - size) ** 3 == pytest.approx(fwer, rel=1e-12)
    assert fwer > 0.06


def adversary(m: int, level: Fraction) -> list[tuple[Fraction, list[float]]]:
    """All nulls true, each p-value valid, and the dependence that hurts step-up rules most.

    With probability level/j, exactly j p-values (each subset alike; which one does not matter)
    equal level · j/m and the rest are 1. Every p-value then has P(p ≤ level · j/m) = level · j/m.
    """
    worlds = [(level / j, [float(level * j / m)] * j + [1.0] * (m - j)) for j in range(1, m + 1)]
    mass = Fraction(0)
    for j, (weight, _) in enumerate(worlds, 1):
        mass += weight * Fraction(j, m)
        assert level * j / m == mass
    return worlds


def false_rejection(method: Correction, worlds: list[tuple[Fraction, list[float]]]) -> Fraction:
    """P(any rejection) at 0.05, which with all nulls true is both the FWER and the FDR."""
    return sum(
        (w for w, family in worlds if adjust(family, method=method).number_rejected), Fraction(0)
    )


def test_bh_can_exceed_alpha_under_dependence_where_the_others_hold() -> None:
    """With four adversarial tests BH's FDR is 25/12 alpha; Bonferroni, Holm and BY stay at most
    alpha."""
    alpha = Fraction(1, 20)
    worlds = adversary(4, alpha)

    assert alpha * Fraction(25, 12) == false_rejection("bh", worlds)
    assert alpha == false_rejection("bonferroni", worlds)
    assert alpha == false_rejection("holm", worlds)
    assert alpha >= false_rejection("by", worlds)


@pytest.mark.parametrize("m", [2, 3, 4, 6])
def test_by_attains_alpha_in_its_own_worst_case(m: int) -> None:
    """Against the adversary tuned to its thresholds BY's FDR is exactly alpha, never above."""
    harmonic = sum(Fraction(1, j) for j in range(1, m + 1))
    level = Fraction(1, 20) / harmonic
    # The float of level · j/m may round either way; a relative 1e-12 below it is still valid.
    worlds = [
        (weight, [p * (1 - 1e-12) if p < 1 else p for p in family])
        for weight, family in adversary(m, level)
    ]

    assert Fraction(1, 20) == false_rejection("by", worlds)


@pytest.mark.parametrize("shares", [(1, 0, 0), (0, 0, 1), (1, 1, 1), (3, 2, 5)])
def test_e_bh_holds_under_any_dependence(shares: tuple[int, int, int]) -> None:
    """E-values of mean exactly 1, placed to be rejected as often as possible: FDR is alpha."""
    m, alpha = 4, Fraction(1, 20)
    sizes = (1, 2, 4)
    weights = [alpha * Fraction(share, sum(shares)) for share in shares]
    mean = sum(
        (w * Fraction(j, m) * m / (j * alpha) for w, j in zip(weights, sizes, strict=True)),
        Fraction(0),
    )
    fdr = Fraction(0)
    for weight, j in zip(weights, sizes, strict=True):
        family = [float(m / (j * alpha))] * j + [0.0] * (m - j)
        fdr += weight if e_bh(family).number_rejected else 0

    assert mean == 1
    assert alpha == fdr


# --- e-BH --------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 400).map(float) | st.just(math.inf), min_size=1, max_size=8),
    grid_levels,
)
def test_e_bh_follows_its_rule_in_rationals(e_values: list[float], alpha: float) -> None:
    """The k largest, k the largest with e_(k) ≥ m/(k alpha)."""
    m = len(e_values)
    ranked = sorted(e_values, reverse=True)
    passing = [
        k for k, e in enumerate(ranked, 1) if e == math.inf or Fraction(e) * k * decimal(alpha) >= m
    ]
    cut = ranked[max(passing) - 1] if passing else math.inf
    expected = [bool(passing) and e >= cut for e in e_values]

    result = e_bh(e_values, alpha=alpha)

    assert expected == list(result.rejected)
    assert result.rejected == tuple(value <= alpha for value in result.adjusted)


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=10))
def test_e_bh_is_bh_on_reciprocals(e_values: list[float]) -> None:
    """Its adjusted values are those of BH at p = 1/e."""
    assert benjamini_hochberg([1 / e for e in e_values]).adjusted == pytest.approx(
        e_bh(e_values).adjusted, rel=1e-9
    )


def test_e_bh_on_the_documented_evidence() -> None:
    """P F F P F F F at 0.9 against 0.8 gives E = 2⁵(8/9)² = 25.3: enough alone, not beside
    14 straight passes (E = 0.192), whose family needs 40."""
    failing, passing = 2**5 * (8 / 9) ** 2, (8 / 9) ** 14

    assert failing == pytest.approx(25.3, abs=0.05)
    assert passing == pytest.approx(0.192, abs=0.0005)
    assert e_bh([failing]).rejected == (True,)
    assert e_bh([failing, passing]).rejected == (False, False)
    assert e_bh([40.0, passing]).rejected == (True, False)


def test_e_bh_accepts_zero_and_infinity() -> None:
    """Infinite evidence is always rejected, none never."""
    result = e_bh([math.inf, 0.0, 5e-324])

    assert result.rejected == (True, False, False)
    assert result.adjusted == (0.0, 1.0, 1.0)


def test_e_bh_commutes_with_reordering() -> None:
    """The decisions follow their e-values, ties together."""
    family = (60.0, 30.0, 30.0, 0.5)
    for order in permutations(range(4)):
        shuffled = e_bh([family[i] for i in order])
        assert [e_bh(family).adjusted[i] for i in order] == list(shuffled.adjusted)


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, "x", None, True])
def test_a_bad_p_value_is_named_with_its_place(bad: Any) -> None:
    """The message names the member, its value and the allowed range."""
    with pytest.raises(InvalidArgument, match=r"p_values\[1\] must lie between 0 and 1"):
        adjust([0.5, bad], method="bh")


@pytest.mark.parametrize("bad", [-0.1, math.nan, -math.inf, "x", None, True])
def test_a_bad_e_value_is_named_with_its_place(bad: Any) -> None:
    """Negative and undefined evidence is refused; infinity is not."""
    with pytest.raises(InvalidArgument, match=r"e_values\[0\] must be a number of at least 0"):
        e_bh([bad])


@pytest.mark.parametrize("bad", [0, 1, -1, 2, math.nan, None])
def test_alpha_must_be_a_level(bad: Any) -> None:
    """An alpha of 0 or 1 is no test."""
    for refuse in (bonferroni, holm, benjamini_hochberg, benjamini_yekutieli, e_bh):
        with pytest.raises(InvalidArgument, match="alpha must lie strictly between 0 and 1"):
            refuse([0.5], alpha=bad)


def test_the_method_is_one_of_a_closed_set() -> None:
    """A misspelt method is refused with the list of methods."""
    unknown: Any = "fdr"
    with pytest.raises(InvalidArgument, match="'bonferroni', 'holm', 'bh', 'by'"):
        adjust([0.5], method=unknown)


@pytest.mark.parametrize("bad", [0.05, "0.05", None])
def test_a_family_is_a_sequence(bad: Any) -> None:
    """A lone number or a string is not a family."""
    with pytest.raises(InvalidArgument, match="p_values must be a sequence"):
        adjust(bad, method="bh")
    with pytest.raises(InvalidArgument, match="e_values must be a sequence"):
        e_bh(bad)
