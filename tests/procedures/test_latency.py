"""Deciding latency: explicit limits and baselines, by both rule sets, from first principles."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.procedures.decided_counts import decide_latency_baseline, decide_latency_limit

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Intent
from trialwise.model.verdict import Decision
from trialwise.procedures.latency import BASELINE_RULES, LIMIT_RULES
from trialwise.stats.result_types import RULES, Refusal, Rule


def split(within: int, beyond: int) -> list[float]:
    """So many latencies at the limit of 500 and this many above it."""
    return [500.0] * within + [501.0] * beyond


def least_within(n: int, percentile: str, alpha: str) -> int | None:
    """min{y : P(Y ≥ y) ≤ alpha} with Y ~ Binomial(n, percentile), in rationals."""
    p, tail = Fraction(percentile), Fraction(0)
    answer = None
    for y in range(n, -1, -1):
        tail += math.comb(n, y) * p**y * (1 - p) ** (n - y)
        if tail > Fraction(alpha):
            break
        answer = y
    return answer


def breach(k: int, nb: int, r: int, n: int) -> Fraction:
    """P(fewer than r test values lie below the k-th baseline value), by counting interleavings."""
    ways = sum(math.comb(k + j - 1, j) * math.comb(nb - k + n - j, n - j) for j in range(r))
    return Fraction(ways, math.comb(nb + n, n))


def precedence_rank(nb: int, n: int, percentile: str, alpha: str) -> int | None:
    r = math.ceil(Fraction(percentile) * n)
    return next((k for k in range(1, nb + 1) if breach(k, nb, r, n) <= Fraction(alpha)), None)


# Explicit limits


@pytest.mark.parametrize(
    ("n", "percentile", "alpha"),
    [
        (100, "0.95", "0.05"),
        (59, "0.95", "0.05"),
        (200, "0.9", "0.01"),
        (40, "0.5", "0.05"),
        (5, "0.5", "0.03125"),
    ],
)
def test_enough_latencies_within_the_limit_pass(n: int, percentile: str, alpha: str) -> None:
    """At the least number that shows the percentile, and one below; equality is within."""
    least = least_within(n, percentile, alpha)
    assert least is not None
    at, below = (
        decide_latency_limit(
            "p", split(y, n - y), float(percentile), 500.0, alpha=float(alpha), rule="exact"
        )
        for y in (least, least - 1)
    )

    assert (at.decision, below.decision) == (Decision.PASS, Decision.FAIL)
    assert at.decision_rule == LIMIT_RULES["exact"]
    assert f"{least} of {n}" in at.statement
    assert f"{least} needed" in below.statement
    assert (at.threshold, at.trials, at.refusals) == (500.0, n, ())


@pytest.mark.parametrize(("beyond", "decision"), [(5, Decision.PASS), (6, Decision.FAIL)])
def test_the_companions_rule_compares_the_observed_percentile(
    beyond: int, decision: Decision
) -> None:
    """§12.3.1: the 95th of 100 is at the limit, or above it; the statement says it is raw."""
    finding = decide_latency_limit("p", split(100 - beyond, beyond), 0.95, 500.0, rule="wilson")

    assert finding.decision is decision
    assert finding.decision_rule == LIMIT_RULES["wilson"]
    assert finding.observed == (500.0 if decision is Decision.PASS else 501.0)
    assert "as they are" in finding.statement


def test_the_exact_rule_asks_for_evidence_where_the_raw_one_does_not() -> None:
    """95 of 100 within: the observed percentile is at the limit, and nothing is shown."""
    latencies = split(95, 5)

    assert (
        decide_latency_limit("p", latencies, 0.95, 500.0, rule="wilson").decision is Decision.PASS
    )
    assert decide_latency_limit("p", latencies, 0.95, 500.0, rule="exact").decision is Decision.FAIL


def test_a_plan_too_small_for_its_limit_is_refused() -> None:
    """58 planned cannot show a p95; 59 can. Smoke runs either."""
    latencies = split(58, 0)
    refused = decide_latency_limit("p", [], 0.95, 500.0, rule="exact", planned_trials=58)

    assert refused.decision is None
    assert refused.refusals == (Refusal.COMPLIANCE_INFEASIBLE,)
    short = decide_latency_limit("p", latencies, 0.95, 500.0, rule="exact", planned_trials=60)
    assert (short.decision, short.refusals) == (Decision.INCONCLUSIVE, ())
    smoke = decide_latency_limit(
        "p", latencies, 0.95, 500.0, rule="exact", planned_trials=58, intent=Intent.SMOKE
    )
    assert (smoke.decision, smoke.refusals) == (Decision.INCONCLUSIVE, ())


def test_the_companions_rule_refuses_no_plan() -> None:
    """§12.3.1 has no existence minimum: an observed percentile always compares."""
    finding = decide_latency_limit("p", [400.0], 0.95, 500.0, planned_trials=1, rule="wilson")

    assert (finding.decision, finding.refusals) == (Decision.PASS, ())


@pytest.mark.parametrize("rule", RULES)
def test_no_latencies_are_inconclusive(rule: Rule) -> None:
    """Nothing succeeded, so nothing is known of how long success takes."""
    finding = decide_latency_limit("p", [], 0.95, 500.0, rule=rule)

    assert finding.decision is Decision.INCONCLUSIVE
    assert (finding.observed, finding.trials) == (None, 0)


# Against a baseline


@pytest.mark.parametrize(
    ("nb", "n", "percentile", "alpha"),
    [
        (60, 40, "0.5", "0.05"),
        (190, 10, "0.95", "0.05"),
        (120, 60, "0.9", "0.01"),
        (50, 25, "0.9", "0.2"),
    ],
)
def test_the_exact_threshold_is_the_precedence_rank(
    nb: int, n: int, percentile: str, alpha: str
) -> None:
    """The baseline is 1 … n_b, so the threshold is its own rank; 190/10 is an exact tie."""
    rank = precedence_rank(nb, n, percentile, alpha)
    assert rank is not None
    baseline = [float(i) for i in range(1, nb + 1)]
    smoke = Intent.SMOKE  # the gate on the test's own size is another rule
    same, above = (
        decide_latency_baseline(
            "p",
            [value] * n,
            baseline,
            float(percentile),
            alpha=float(alpha),
            rule="exact",
            intent=smoke,
        )
        for value in (float(rank), rank + 0.5)
    )

    assert same.threshold == rank
    assert (same.decision, above.decision) == (Decision.PASS, Decision.FAIL)
    assert same.decision_rule == BASELINE_RULES["exact"]
    assert f"{rank:g}" in same.statement


@pytest.mark.parametrize(
    ("nb", "percentile", "rank"), [(935, 0.95, 900), (200, 0.95, 196), (935, 0.99, 931)]
)
def test_the_companions_threshold_is_an_order_statistic(
    nb: int, percentile: float, rank: int
) -> None:
    """The ranks of §12.4 by the errata, and scipy's quantile of the binomial."""
    assert int(binom.ppf(0.95, nb, percentile)) + 1 == rank
    baseline = [float(i) for i in range(1, nb + 1)]
    same, above = (
        decide_latency_baseline("p", [value] * 100, baseline, percentile, rule="wilson")
        for value in (float(rank), rank + 0.5)
    )

    assert same.threshold == rank
    assert (same.decision, above.decision) == (Decision.PASS, Decision.FAIL)
    assert same.decision_rule == BASELINE_RULES["wilson"]
    assert same.statement == f"p was {rank} s; at most {rank} s is allowed."
    assert above.statement == f"p was {rank + 0.5} s; at most {rank} s is allowed."


@pytest.mark.parametrize(("rule", "nb"), [("wilson", 200), ("exact", 554)])
def test_a_baseline_too_small_for_a_threshold_is_inconclusive(rule: Rule, nb: int) -> None:
    """(200, 0.99) has no bound (§12.4.5) and 554 no rank for 161 test latencies; never clamped."""
    finding = decide_latency_baseline("p", [1e9] * 161, [1.0] * nb, 0.99, rule=rule)

    assert (finding.decision, finding.threshold) == (Decision.INCONCLUSIVE, None)
    assert "too few" in finding.statement


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("percentile", "minimum"), [(0.5, 5), (0.9, 10), (0.95, 20), (0.99, 100)])
def test_a_test_too_small_for_its_percentile_is_inconclusive(
    percentile: float, minimum: int, rule: Rule
) -> None:
    """Below the emission minimum of §12.5.2 the percentile is an extreme; smoke only indicates."""
    baseline = [float(i) for i in range(1, 10_001)]
    few = [1.0] * (minimum - 1)
    verification = decide_latency_baseline("p", few, baseline, percentile, rule=rule)
    smoke = decide_latency_baseline("p", few, baseline, percentile, rule=rule, intent=Intent.SMOKE)
    enough = decide_latency_baseline("p", [*few, 1.0], baseline, percentile, rule=rule)

    assert verification.decision is Decision.INCONCLUSIVE
    assert str(minimum) in verification.statement
    assert smoke.decision is Decision.PASS
    assert "indicative" in smoke.statement
    assert enough.decision is Decision.PASS
    assert "indicative" not in enough.statement


def test_a_test_planned_larger_than_its_baseline_run_is_refused() -> None:
    """The runs are compared, never the latencies: 300 against 200 latencies are fine."""
    baseline = [float(i) for i in range(1, 201)]
    refused = decide_latency_baseline(
        "p", [1.0] * 300, baseline, 0.5, rule="fisher", run_sizes=(250, 300)
    )
    allowed = decide_latency_baseline(
        "p", [1.0] * 300, baseline, 0.5, rule="exact", run_sizes=(250, 300)
    )
    fine = decide_latency_baseline(
        "p", [1.0] * 300, baseline, 0.5, rule="exact", run_sizes=(400, 400)
    )

    assert (refused.decision, refused.refusals) == (None, (Refusal.TEST_LARGER_THAN_BASELINE,))
    assert refused.threshold is None
    assert (allowed.decision, allowed.refusals) == (Decision.PASS, ())
    assert (fine.decision, fine.refusals) == (Decision.PASS, ())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("intent", list(Intent))
def test_no_test_latencies_are_inconclusive(rule: Rule, intent: Intent) -> None:
    """Under either rule and intent."""
    finding = decide_latency_baseline("p", [], [1.0] * 1000, 0.95, rule=rule, intent=intent)

    assert (finding.decision, finding.observed) == (Decision.INCONCLUSIVE, None)


@pytest.mark.parametrize("rule", RULES)
def test_a_baseline_without_latencies_is_inconclusive(rule: Rule) -> None:
    """Too few for any threshold to exist: a baseline whose every trial failed is one of those."""
    finding = decide_latency_baseline("p", [1.0] * 100, [], 0.95, rule=rule)

    assert finding.decision is Decision.INCONCLUSIVE


@settings(max_examples=50)
@given(
    baseline=st.lists(st.integers(0, 20).map(float), min_size=1, max_size=60),
    latencies=st.lists(st.integers(0, 20).map(float), min_size=1, max_size=60),
    shift=st.integers(0, 5),
    percentile=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
    rule=st.sampled_from(RULES),
)
def test_a_slower_test_is_never_better(
    *, baseline: list[float], latencies: list[float], shift: int, percentile: float, rule: Rule
) -> None:
    """Adding to every latency never turns a FAIL into a PASS, and order does not matter."""
    before = decide_latency_baseline("p", latencies, baseline, percentile, rule=rule)
    slower = decide_latency_baseline(
        "p", [value + shift for value in reversed(latencies)], baseline, percentile, rule=rule
    )

    assert not (before.decision is Decision.FAIL and slower.decision is Decision.PASS)
    assert (before.decision is Decision.INCONCLUSIVE) == (slower.decision is Decision.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: decide_latency_limit("p", [1.0], 95, 500.0, rule="wilson"), "percentile"),
        (lambda: decide_latency_limit("p", [1.0], 0.95, 0.0, rule="wilson"), "limit"),
        (lambda: decide_latency_limit("p", [-1.0], 0.95, 5.0, rule="wilson"), "latencies[0]"),
        (lambda: decide_latency_limit("p", [math.nan], 0.95, 5.0, rule="wilson"), "latencies[0]"),
        (lambda: decide_latency_limit("p", [1.0], 0.95, 5.0, alpha=1.0, rule="wilson"), "alpha"),
        (lambda: decide_latency_baseline("p", [1.0], [1.0], 0.42, rule="wilson"), "percentile"),
        (
            lambda: decide_latency_baseline("p", [1.0], [math.inf], 0.5, rule="exact"),
            "baseline_latencies[0]",
        ),
    ],
)
def test_a_bad_latency_input_is_named(call: Callable[[], object], argument: str) -> None:
    """One error type, naming what was wrong."""
    with pytest.raises(InvalidArgument) as caught:
        call()

    assert caught.value.argument == argument
