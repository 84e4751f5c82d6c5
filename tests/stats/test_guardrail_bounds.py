from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, norm
from statsmodels.stats.proportion import proportion_confint

from trialwise.errors import InvalidArgument
from trialwise.stats.guardrail_bounds import (
    ChallengeStratum,
    guardrail_sensitivity,
    guardrail_specificity,
    residual_harm_bound,
    stratified_containment,
)
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.boundary_stacks import combine_boundaries


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    presented = draw(st.integers(1, 10**6))
    return draw(st.integers(0, presented)), presented


def stratum(name: str, blocked: int, presented: int) -> ChallengeStratum:
    return ChallengeStratum(name=name, blocked=blocked, presented=presented)


# One guardrail


@pytest.mark.parametrize(
    ("blocked", "lower", "miss"), [(99_990, 0.999833, 1.67e-4), (100_000, 0.999973, 2.71e-5)]
)
def test_the_companions_worked_example(blocked: int, lower: float, miss: float) -> None:
    """Section 1.4.5b, confirmed in its errata: 100,000 harmful candidates at 95 %."""
    bound = guardrail_sensitivity(blocked, 100_000, rule="wilson")

    assert lower == round(bound.lower, 6)
    assert miss == float(f"{bound.error_upper:.3g}")


@pytest.mark.parametrize("guardrail", [guardrail_sensitivity, guardrail_specificity])
@pytest.mark.parametrize(("correct", "n"), [(0, 5), (45, 50), (50, 50), (99_990, 100_000)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_the_bounds_are_the_one_sided_intervals(
    guardrail: Any, correct: int, n: int, confidence: float
) -> None:
    """Wilson by statsmodels at twice the error, Clopper–Pearson by scipy's beta quantile."""
    wilson = guardrail(correct, n, confidence=confidence, rule="wilson")
    exact = guardrail(correct, n, confidence=confidence, rule="exact")
    expected, _ = proportion_confint(correct, n, alpha=2 * (1 - confidence), method="wilson")
    quantile = beta.ppf(1 - confidence, correct, n - correct + 1) if correct else 0.0

    assert wilson.lower == pytest.approx(float(expected), abs=1e-12)
    assert exact.lower == pytest.approx(float(quantile), abs=1e-12)


def test_a_clean_run_leaves_a_miss_probability() -> None:
    """z²/(n + z²) by Wilson and 1 − α^(1/n) exactly, never 0."""
    z = norm.ppf(0.95)

    assert guardrail_sensitivity(1000, 1000, rule="wilson").error_upper == pytest.approx(
        z**2 / (1000 + z**2)
    )
    assert guardrail_sensitivity(1000, 1000, rule="exact").error_upper == pytest.approx(
        -math.expm1(math.log(0.05) / 1000)
    )
    assert (
        "not evidence of perfection" in guardrail_sensitivity(1000, 1000, rule="wilson").statement
    )


@pytest.mark.parametrize("n", [1, 7, 30])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_exact_rule_keeps_its_level(n: int, confidence: float) -> None:
    """By enumeration: whatever the sensitivity, the bound exceeds it in at most 1 − confidence."""
    bounds = [
        guardrail_sensitivity(k, n, confidence=confidence, rule="exact").lower for k in range(n + 1)
    ]
    for sensitivity in (0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99, *(b for b in bounds if b > 0)):
        error = sum(
            binom.pmf(k, n, sensitivity)
            for k, bound in enumerate(bounds)
            if bound > sensitivity + 1e-12
        )

        assert error <= 1 - confidence + 1e-12


@given(counts(), st.sampled_from(["wilson", "exact"]), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_two_bounds_are_complements(
    seen: tuple[int, int], rule: Any, confidence: float
) -> None:
    """Lower and error_upper add up to 1 and surround the observed rates."""
    bound = guardrail_sensitivity(*seen, confidence=confidence, rule=rule)

    assert bound.lower + bound.error_upper == pytest.approx(1)
    assert bound.lower <= bound.observed + 1e-12
    assert bound.errors / bound.presented <= bound.error_upper + 1e-12
    assert 0 <= bound.lower <= 1


def test_statements_are_conditional() -> None:
    """Sensitivity speaks given harm and not of prevalence, specificity of harmless content."""
    missed = guardrail_sensitivity(99_990, 100_000, rule="wilson").statement
    blocked = guardrail_specificity(980, 1000, rule="wilson").statement

    assert missed.startswith("Given a harmful candidate")
    assert "at most 0.000167 at one-sided 0.95 confidence" in missed
    assert "not a statement about how often harmful content arises" in missed
    assert "perfection" not in missed
    assert blocked.startswith("Given a harmless candidate")


# Strata


def test_a_pooled_bound_can_hide_a_weak_stratum() -> None:
    """The pool is above 0.99 while one stratum is bounded only by 0.81; both are reported."""
    result = stratified_containment(
        [stratum("jailbreak", 9_990, 10_000), stratum("self-harm", 45, 50)], rule="wilson"
    )
    by_name = dict(result.strata)

    assert result.weakest == "self-harm"
    assert result.pooled == guardrail_sensitivity(10_035, 10_050, rule="wilson")
    assert by_name["self-harm"] == guardrail_sensitivity(45, 50, rule="wilson")
    assert result.pooled.lower > 0.99
    assert by_name["self-harm"].lower < 0.81
    assert "not a guarantee for each stratum" in result.statement
    assert "'self-harm'" in result.statement


def test_the_weakest_stratum_is_the_least_evidenced_one() -> None:
    """A clean stratum with three candidates is weaker than one with a miss in a thousand."""
    result = stratified_containment(
        [stratum("large", 999, 1000), stratum("small", 3, 3)], rule="wilson"
    )

    assert result.weakest == "small"


@pytest.mark.parametrize("strata", [1, 2, 7])
def test_simultaneous_bounds_share_the_error(strata: int) -> None:
    """Bonferroni: each of H strata at 1 − 0.05/H, the pool unchanged."""
    parts = [stratum(str(h), 95 + h % 3, 100) for h in range(strata)]
    result = stratified_containment(parts, simultaneous=True, rule="wilson")
    each = float(1 - Fraction(1, 20) / strata)

    assert each == result.stratum_confidence
    assert result.pooled.confidence == 0.95
    for part, (name, bound) in zip(parts, result.strata, strict=True):
        assert name == part.name
        assert bound == guardrail_sensitivity(part.blocked, 100, confidence=each, rule="wilson")


@pytest.mark.slow
def test_simultaneous_exact_bounds_hold_together() -> None:
    """By enumeration over two strata: both bounds are right with probability at least 90 %."""
    n, m = 6, 9
    for first, second in product((0.5, 0.8, 0.9, 0.97), repeat=2):
        together = 0.0
        for a, b in product(range(n + 1), range(m + 1)):
            result = stratified_containment(
                [stratum("a", a, n), stratum("b", b, m)],
                confidence=0.9,
                rule="exact",
                simultaneous=True,
            )
            (_, left), (_, right) = result.strata
            if left.lower <= first and right.lower <= second:
                together += binom.pmf(a, n, first) * binom.pmf(b, m, second)

        assert together >= 0.9


# Residual harm


def test_the_companions_residual_bound() -> None:
    """A prevalence of 0.001 before the guardrail gives 1.67 in ten million."""
    miss = guardrail_sensitivity(99_990, 100_000, rule="wilson")
    result = residual_harm_bound(
        miss.error_upper, 0.001, prevalence_source="pre-guardrail", miss_confidence=0.95
    )

    assert not isinstance(result.bound, Undefined)
    assert float(f"{result.bound:.3g}") == 1.67e-7
    assert result.confidence == 0.95
    assert "taken as known" in result.statement
    assert "bypasses" in result.statement


def test_two_bounds_share_their_errors() -> None:
    """0.95 and 0.99 hold together at 0.94, and the prevalence is not taken as known."""
    result = residual_harm_bound(
        0.01,
        0.02,
        prevalence_source="pre-guardrail",
        miss_confidence=0.95,
        prevalence_confidence=0.99,
    )

    assert result.bound == pytest.approx(0.0002)
    assert result.confidence == 0.94
    assert "taken as known" not in result.statement


def test_without_a_prevalence_only_the_conditional_statement_remains() -> None:
    """No end-to-end number, however good the guardrail."""
    result = residual_harm_bound(1e-6, miss_confidence=0.95)

    assert isinstance(result.bound, Undefined)
    assert isinstance(result.confidence, Undefined)
    assert "not bounded" in result.statement


def test_a_prevalence_from_behind_the_guardrail_is_refused_with_the_reason() -> None:
    """It is the residual rate already."""
    with pytest.raises(InvalidArgument, match="sees only what reached the user"):
        residual_harm_bound(0.01, 0.001, prevalence_source="post-guardrail")  # type: ignore[arg-type]


def test_confidences_that_are_missing_or_exhausted_give_none() -> None:
    """Neither invented nor negative."""
    bare = residual_harm_bound(0.1, 0.1, prevalence_source="pre-guardrail")
    spent = residual_harm_bound(
        0.1, 0.1, prevalence_source="pre-guardrail", miss_confidence=0.5, prevalence_confidence=0.5
    )

    assert isinstance(bare.confidence, Undefined)
    assert isinstance(spent.confidence, Undefined)


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_residual_never_exceeds_either_factor(miss: float, prevalence: float) -> None:
    """A product of probabilities."""
    result = residual_harm_bound(miss, prevalence, prevalence_source="pre-guardrail")

    assert not isinstance(result.bound, Undefined)
    assert 0 <= result.bound <= min(miss, prevalence)


# Several boundaries


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_marginal_misses_are_never_multiplied(misses: list[float]) -> None:
    """Only the smallest of them bounds the stack, and the statement says why."""
    result = combine_boundaries(misses, given="harm")

    assert (min(misses), "frechet") == (result.upper, result.method)
    assert "independently" in result.statement


def test_the_frechet_bound_is_attained() -> None:
    """Nested misses: what defeats the better boundary defeats the other, so no bound is smaller."""
    population = range(100)
    first = {i for i in population if i < 2}
    second = {i for i in population if i < 5}
    joint = len(first & second) / 100

    assert joint == combine_boundaries([0.02, 0.05], given="harm").upper
    assert joint > 0.02 * 0.05


def test_the_chain_rule_multiplies_what_was_measured_behind_earlier_boundaries() -> None:
    """On any joint law of misses, P(M₁) P(M₂ | M₁) P(M₃ | M₁ M₂) is P(all miss)."""
    shown, past_first, past_second, past_third = 1000, 50, 20, 8
    conditional = [past_first / shown, past_second / past_first, past_third / past_second]
    result = combine_boundaries(conditional, given="harm-and-earlier-misses")

    assert result.upper == pytest.approx(past_third / shown)
    assert result.method == "chain rule"


@pytest.mark.parametrize("given_", ["harm", "harm-and-earlier-misses"])
def test_bounds_of_several_boundaries_share_their_errors(given_: Any) -> None:
    """Three at 0.99 hold together at 0.97; without a confidence there is none."""
    assert combine_boundaries([0.1] * 3, given=given_, confidence=0.99).confidence == 0.97
    assert isinstance(combine_boundaries([0.1] * 3, given=given_).confidence, Undefined)
    assert isinstance(
        combine_boundaries([0.1] * 3, given=given_, confidence=0.5).confidence, Undefined
    )


# Values and refusals


def test_results_cannot_be_changed() -> None:
    """A bound stays what it was computed as."""
    bound = guardrail_sensitivity(9, 10, rule="wilson")

    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.lower = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: guardrail_sensitivity(11, 10, rule="wilson"), "blocked"),
        (lambda: guardrail_sensitivity(0, 0, rule="wilson"), "presented"),
        (lambda: guardrail_sensitivity(9, 10, confidence=1.0, rule="wilson"), "confidence"),
        (lambda: guardrail_sensitivity(9, 10, rule="wald"), "rule"),  # type: ignore[arg-type]
        (lambda: guardrail_specificity(-1, 10, rule="wilson"), "allowed"),
        (lambda: guardrail_specificity(1.5, 10, rule="wilson"), "allowed"),  # type: ignore[arg-type]
        (lambda: stratified_containment([]), "strata"),
        (lambda: stratified_containment([("a", 1, 2)]), "strata"),  # type: ignore[list-item]
        (lambda: stratified_containment([stratum("a", 1, 2), stratum("a", 2, 2)]), "strata"),
        (lambda: stratified_containment([stratum("a", 3, 2)]), "blocked of stratum 'a'"),
        (lambda: stratified_containment([stratum("a", 1, 2)], confidence=0.0), "confidence"),
        (lambda: stratified_containment([stratum("a", 1, 2)], rule="x"), "rule"),  # type: ignore[arg-type]
        (lambda: residual_harm_bound(1.1), "miss_upper"),
        (lambda: residual_harm_bound(float("nan")), "miss_upper"),
        (lambda: residual_harm_bound(0.1, 0.1), "prevalence_source"),
        (lambda: residual_harm_bound(0.1, -0.1, prevalence_source="pre-guardrail"), "prevalence"),
        (lambda: residual_harm_bound(0.1, miss_confidence=1.0), "miss_confidence"),
        (lambda: residual_harm_bound(0.1, prevalence_source="pre-guardrail"), "prevalence_source"),
        (lambda: residual_harm_bound(0.1, prevalence_confidence=0.9), "prevalence_confidence"),
        (
            lambda: residual_harm_bound(
                0.1, 0.1, prevalence_source="pre-guardrail", prevalence_confidence=0.0
            ),
            "prevalence_confidence",
        ),
        (lambda: combine_boundaries([], given="harm"), "misses"),
        (lambda: combine_boundaries([0.1, 2.0], given="harm"), "misses"),
        (lambda: combine_boundaries([0.1], given="independence"), "given"),  # type: ignore[arg-type]
        (lambda: combine_boundaries([0.1], given="harm", confidence=1.0), "confidence"),
    ],
)
def test_bad_input_is_refused_by_name(call: Any, argument: str) -> None:
    """Every refusal names the argument."""
    with pytest.raises(InvalidArgument) as refusal:
        call()

    assert argument == refusal.value.argument
