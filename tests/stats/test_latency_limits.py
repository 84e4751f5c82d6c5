"""Explicit latency limits against binomial sums in fractions, scipy and the companion."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from trialwise.errors import InvalidArgument
from trialwise.stats.latency_planning import evaluate_latency_limit, latency_limit_cutoff
from trialwise.stats.result_types import Refusal

LATENCIES = st.lists(st.integers(0, 50), min_size=1, max_size=80)
LEVELS = (0.5, 0.9, 0.95, 0.99)


def upper_tail(y: int, n: int, p: Fraction) -> Fraction:
    """P(Y ≥ y) for Y ~ Binomial(n, p), term by term."""
    terms = (comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(y, n + 1))
    return sum(terms, Fraction(0))


def first_admitted(n: int, p: Fraction, alpha: Fraction) -> int | None:
    return next((y for y in range(n + 1) if upper_tail(y, n, p) <= alpha), None)


def run(within: int, beyond: int) -> list[float]:
    """Latencies of which `within` are at most 500."""
    return [400.0] * within + [600.0] * beyond


@pytest.mark.parametrize("p", ["0.5", "0.9", "0.95", "0.07"])
@pytest.mark.parametrize("alpha", ["0.01", "0.05", "0.1"])
def test_the_cutoff_is_the_first_count_with_a_tail_of_at_most_alpha(p: str, alpha: str) -> None:
    """Every number of trials up to 40 agrees with the definition in fractions."""
    for n in range(1, 41):
        expected = first_admitted(n, Fraction(p), Fraction(alpha))
        assert expected == latency_limit_cutoff(float(p), n, alpha=float(alpha)).cutoff


@pytest.mark.parametrize(("p", "n", "y"), [("0.5", 5, 5), ("0.9", 4, 4), ("0.6", 10, 9)])
def test_a_tail_of_exactly_alpha_is_admitted(p: str, n: int, y: int) -> None:
    """With alpha the decimal value of P(Y ≥ y), y passes; a hair less and it does not."""
    tail = upper_tail(y, n, Fraction(p))
    alpha = float(tail)
    assert Fraction(repr(alpha)) == tail

    assert y == latency_limit_cutoff(float(p), n, alpha=alpha).cutoff
    below = latency_limit_cutoff(float(p), n, alpha=alpha * (1 - 1e-12)).cutoff
    assert below == (y + 1 if y < n else None)


def test_what_a_raw_pass_leaves_unproved_fails() -> None:
    """95 of 100 within the limit puts the p95 within it and is not evidence that it is."""
    result = evaluate_latency_limit(run(95, 5), 0.95, 500)

    assert (result.trials, result.within, result.y_min) == (100, 95, 99)
    assert result.decision == "FAIL"
    assert result.observed_percentile == 400
    assert result.raw_percentile_pass is True


def test_reported_probabilities_are_scipys() -> None:
    """The size of the rule and the Clopper–Pearson bound come out as scipy has them."""
    for p, n, within in ((0.95, 100, 99), (0.99, 500, 498), (0.9, 200, 189), (0.5, 12, 0)):
        result = evaluate_latency_limit(run(within, n - within), p, 500, alpha=0.05)
        assert result.y_min is not None
        assert math.isclose(
            binom.sf(result.y_min - 1, n, p), result.false_compliance or 0, rel_tol=1e-11
        )
        lower = beta.ppf(0.05, within, n - within + 1) if within else 0.0
        assert math.isclose(lower, result.clopper_pearson_lower or 0, rel_tol=1e-10)


@pytest.mark.parametrize(("p", "n"), [("0.5", 9), ("0.9", 40), ("0.95", 70)])
def test_false_compliance_is_exact_over_every_outcome(p: str, n: int) -> None:
    """Deciding every possible run at F(limit) = p adds up to the stated size, at most alpha."""
    share = Fraction(p)
    results = [evaluate_latency_limit(run(y, n - y), float(p), 500) for y in range(n + 1)]
    passed = sum(
        comb(n, y) * share**y * (1 - share) ** (n - y)
        for y, result in enumerate(results)
        if result.decision == "PASS"
    )

    assert 0 < passed <= Fraction("0.05")
    assert math.isclose(passed, results[0].false_compliance or 0, rel_tol=1e-12)


def test_the_raw_comparison_controls_no_error() -> None:
    """At a true p95 exactly on the limit the comparison of §12.3.1 passes more often than not."""
    share = Fraction("0.95")
    passed = sum(
        comb(100, y) * share**y * (1 - share) ** (100 - y)
        for y in range(101)
        if evaluate_latency_limit(run(y, 100 - y), 0.95, 500).raw_percentile_pass
    )

    assert passed > Fraction("0.6")


def test_a_latency_equal_to_the_limit_is_within() -> None:
    """Ties count for the limit, in the count and in the raw comparison."""
    result = evaluate_latency_limit([500.0] * 99 + [900.0], 0.95, 500)

    assert result.within == 99
    assert result.decision == "PASS"
    assert result.raw_percentile_pass is True


def test_too_few_latencies_decide_nothing() -> None:
    """0.95^58 > 0.05: 58 of 58 cannot pass, but what they show is still reported."""
    result = evaluate_latency_limit(run(58, 0), 0.95, 500, planned_trials=60)

    assert result.refusal is None
    assert (result.y_min, result.pass_possible, result.decision) == (None, False, "INCONCLUSIVE")
    assert result.false_compliance is None
    assert math.isclose(0.05 ** (1 / 58), result.clopper_pearson_lower or 0, rel_tol=1e-14)


def test_a_run_without_successes_decides_nothing() -> None:
    """No latency at all is INCONCLUSIVE, with no percentile to show."""
    result = evaluate_latency_limit([], 0.95, 500, planned_trials=60)

    assert (result.trials, result.within, result.decision) == (0, 0, "INCONCLUSIVE")
    assert result.observed_percentile is None
    assert result.raw_percentile_pass is None
    assert result.clopper_pearson_lower == 0


def test_an_undersized_verification_is_refused_before_it_runs() -> None:
    """The plan is judged against ⌈log alpha / log p⌉; every finding is then absent."""
    assert 0.95**59 <= 0.05 < 0.95**58

    refused = evaluate_latency_limit([], 0.95, 500, planned_trials=58)
    admitted = evaluate_latency_limit(run(59, 0), 0.95, 500, planned_trials=59)

    assert refused.refusal is Refusal.COMPLIANCE_INFEASIBLE
    absent = (refused.trials, refused.within, refused.y_min, refused.pass_possible)
    assert absent == (None, None, None, None)
    assert refused.decision is None
    assert refused.raw_percentile_pass is None
    assert admitted.refusal is None
    assert (admitted.y_min, admitted.decision) == (59, "PASS")


def test_smoke_runs_what_verification_refuses() -> None:
    """Under smoke the same plan runs and is INCONCLUSIVE."""
    result = evaluate_latency_limit(run(58, 0), 0.95, 500, intent="SMOKE", planned_trials=58)

    assert result.refusal is None
    assert result.decision == "INCONCLUSIVE"


def test_the_emission_minimum_does_not_gate_a_limit() -> None:
    """Four latencies can show a p50 at 10 %: 0.5^4 = 0.0625."""
    result = evaluate_latency_limit([150, 200, 249, 299], 0.5, 300, alpha=0.1, planned_trials=4)

    assert (result.y_min, result.decision) == (4, "PASS")
    assert math.isclose(0.0625, result.false_compliance or 0, rel_tol=1e-14)


@given(LATENCIES, st.sampled_from(LEVELS), st.randoms(use_true_random=False))
def test_order_and_unit_do_not_matter(latencies: list[int], p: float, random: Random) -> None:
    """Shuffled, or in other units with the limit, the same decision."""
    shuffled = [value * 4.0 for value in latencies]
    random.shuffle(shuffled)

    one = evaluate_latency_limit(latencies, p, 25)
    other = evaluate_latency_limit(shuffled, p, 100)

    assert (one.within, one.decision) == (other.within, other.decision)
    assert one.raw_percentile_pass == other.raw_percentile_pass


@given(LATENCIES, st.sampled_from(LEVELS), st.integers(1, 50), st.integers(1, 50))
def test_a_looser_limit_never_fails_what_a_tighter_one_passed(
    latencies: list[int], p: float, first: int, second: int
) -> None:
    """PASS is monotone in the limit, and PASS implies the raw comparison."""
    tight = evaluate_latency_limit(latencies, p, min(first, second))
    loose = evaluate_latency_limit(latencies, p, max(first, second))

    assert (tight.within or 0) <= (loose.within or 0)
    if tight.decision == "PASS":
        assert loose.decision == "PASS"


@given(LATENCIES, st.sampled_from(LEVELS), st.integers(1, 50))
def test_a_pass_at_five_per_cent_also_passes_the_raw_comparison(
    latencies: list[int], p: float, limit: int
) -> None:
    """Evidence is stricter than the raw figure, and its bound lies above the percentile."""
    result = evaluate_latency_limit(latencies, p, limit)

    if result.decision == "PASS":
        assert result.raw_percentile_pass is True
        assert (result.clopper_pearson_lower or 0) >= p


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("latencies", [1.0, -2.0]),
        ("latencies", [math.nan]),
        ("latencies", 5),
        ("percentile", 0),
        ("percentile", 1),
        ("percentile", 95),
        ("limit", 0),
        ("limit", -5),
        ("limit", math.inf),
        ("alpha", 0),
        ("alpha", 1),
        ("intent", "verify"),
        ("planned_trials", 0),
        ("planned_trials", 5.5),
    ],
)
def test_a_bad_argument_is_named(argument: str, value: object) -> None:
    """Each message starts with the argument that was wrong."""
    arguments: dict[str, object] = {"latencies": [1.0], "percentile": 0.5, "limit": 3}
    arguments[argument] = value

    with pytest.raises(InvalidArgument, match=f"^{argument}.* must"):
        evaluate_latency_limit(**arguments)  # type: ignore[arg-type]


def test_a_cutoff_needs_a_fraction_and_a_trial() -> None:
    """The error speaks of the percentile, not of a required rate."""
    with pytest.raises(InvalidArgument, match=r"^percentile must"):
        latency_limit_cutoff(95, 10)
    with pytest.raises(InvalidArgument, match=r"^trials must"):
        latency_limit_cutoff(0.95, 0)
