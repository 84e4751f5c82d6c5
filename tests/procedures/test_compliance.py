"""Deciding compliance: at the cutoff and one below it, refusals, and what is never claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, norm

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Intent
from trialwise.model.evidence import Tally
from trialwise.model.verdict import Caution, Decision, Finding, ObservedRate
from trialwise.procedures.compliance import DECISION_RULES, decide_compliance
from trialwise.stats.result_types import RULES, Refusal, Rule


def tally(passed: int, trials: int) -> Tally:
    return Tally(trials=trials, passed=passed)


def upper_tail(k: int, n: int, rate: str) -> Fraction:
    p = Fraction(rate)
    return sum(
        (math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), start=Fraction(0)
    )


def wilson_bound(k: int, n: int, alpha: str) -> Any:
    """The textbook one-sided lower bound in 40 digits."""
    with mpmath.workdps(40):
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(alpha))
        p = mpmath.mpf(k) / n
        root = mpmath.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return (p + z * z / (2 * n) - z * root) / (1 + z * z / n)


def clears(k: int, n: int, rate: str, alpha: str, rule: Rule) -> bool:
    """Whether a count shows the rate, by the rule's definition."""
    if rule != "wilson":
        return upper_tail(k, n, rate) <= Fraction(alpha)
    return bool(wilson_bound(k, n, alpha) >= mpmath.mpf(rate))


def needed(n: int, rate: str, alpha: str, rule: Rule) -> int | None:
    return next((k for k in range(n + 1) if clears(k, n, rate, alpha, rule)), None)


# The decision


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("n", "rate", "alpha"),
    [
        (100, "0.9", "0.05"),
        (150, "0.95", "0.05"),
        (60, "0.5", "0.01"),
        (25, "0.1", "0.2"),
        (80, "0.8", "0.001"),
    ],
)
def test_the_cutoff_passes_and_one_below_fails(n: int, rate: str, alpha: str, rule: Rule) -> None:
    """The cutoff is searched for here, by the definition of either rule."""
    cutoff = needed(n, rate, alpha, rule)
    assert cutoff is not None
    at = decide_compliance("c", tally(cutoff, n), float(rate), alpha=float(alpha), rule=rule)
    below = decide_compliance("c", tally(cutoff - 1, n), float(rate), alpha=float(alpha), rule=rule)

    assert (at.decision, at.cutoff, at.caution) == (Decision.PASS, cutoff, Caution.ADEQUATE_POWER)
    assert (below.decision, below.cutoff) == (Decision.FAIL, cutoff)
    assert at.rule == below.rule == rule
    assert at.decision_rule == DECISION_RULES[rule]
    assert at.procedure == "COMPLIANCE"
    assert at.alpha == float(alpha)


@pytest.mark.parametrize(
    ("passed", "n", "rate", "alpha"),
    [(9, 10, "0.6", "0.0463574016"), (5, 5, "0.5", "0.03125"), (2, 2, "0.2", "0.04")],
)
def test_a_tail_equal_to_alpha_passes(passed: int, n: int, rate: str, alpha: str) -> None:
    """The exact-boundary convention: 0.5⁵ is 0.03125, and that is enough."""
    assert upper_tail(passed, n, rate) == Fraction(alpha)

    finding = decide_compliance(
        "c", tally(passed, n), float(rate), alpha=float(alpha), rule="exact"
    )
    assert (finding.decision, finding.cutoff) == (Decision.PASS, passed)


def test_ninety_two_of_a_hundred_do_not_show_ninety_percent() -> None:
    """The reference: the exact cutoff is 96."""
    finding = decide_compliance("c", tally(92, 100), 0.9, rule="exact")

    assert (finding.decision, finding.cutoff) == (Decision.FAIL, 96)
    assert finding.caution is Caution.STRANDS_DISAGREE


def test_a_bound_that_clears_the_rate_passes_however_many_trials() -> None:
    """7766 of 8577: the Wilson bound is 0.90012, above 0.9, and at 7765 it is below."""
    assert wilson_bound(7766, 8577, "0.05") > mpmath.mpf("0.9") > wilson_bound(7765, 8577, "0.05")

    assert decide_compliance("c", tally(7766, 8577), 0.9, rule="wilson").decision is Decision.PASS


# What stands beside the decision


@given(
    n=st.integers(1, 60),
    share=st.floats(0, 1),
    percent=st.integers(1, 99),
    alpha=st.sampled_from(["0.001", "0.01", "0.05", "0.2"]),
)
def test_the_exact_p_value_agrees_with_the_decision(
    n: int, share: float, percent: int, alpha: str
) -> None:
    """PASS exactly where P(K ≥ k) at the requirement, in rationals, is at most alpha."""
    k, rate = round(n * share), f"{percent / 100:g}"
    finding = decide_compliance(
        "c", tally(k, n), float(rate), alpha=float(alpha), rule="exact", intent=Intent.SMOKE
    )
    tail = upper_tail(k, n, rate)

    assert (finding.decision is Decision.PASS) == (tail <= Fraction(alpha))
    if finding.cutoff is None:
        assert finding.p_value is None
    else:
        assert finding.p_value is not None
        assert finding.p_value.value == pytest.approx(float(tail), rel=1e-10)
        assert finding.p_value.method == "exact-binomial-upper-tail"


def test_the_p_value_does_not_contradict_the_decision_at_a_tie() -> None:
    """P(K ≥ 9) is alpha exactly, and PASS; a reader who compares the two must agree."""
    finding = decide_compliance("c", tally(9, 10), 0.6, alpha=0.0463574016, rule="exact")
    assert finding.p_value is not None
    assert finding.alpha is not None

    assert finding.decision is Decision.PASS
    assert finding.p_value.value <= finding.alpha


@given(
    n=st.integers(1, 300),
    share=st.floats(0, 1),
    percent=st.integers(1, 99),
    alpha=st.sampled_from([0.001, 0.01, 0.05, 0.2]),
)
def test_the_score_p_value_agrees_with_the_wilson_decision(
    n: int, share: float, percent: int, alpha: float
) -> None:
    """One and the same test: p ≤ alpha exactly where the lower bound clears the requirement."""
    k, rate = round(n * share), percent / 100
    finding = decide_compliance(
        "c", tally(k, n), rate, alpha=alpha, intent=Intent.SMOKE, rule="wilson"
    )
    if finding.cutoff is None:
        assert finding.p_value is None
        return
    assert finding.p_value is not None
    assert finding.lower_bound is not None

    p_value = norm.sf((k / n - rate) / math.sqrt(rate * (1 - rate) / n))
    passed = finding.decision is Decision.PASS
    assert finding.p_value.value == pytest.approx(p_value, rel=1e-9, abs=1e-300)
    if abs(p_value - alpha) > 1e-9:
        assert passed == (finding.p_value.value <= alpha)
        assert passed == (finding.lower_bound >= rate)


@pytest.mark.parametrize(
    ("k", "n", "rate", "expected"),
    [
        (49, 50, 0.98, ObservedRate.AT_THRESHOLD),
        (29, 100, 0.29, ObservedRate.AT_THRESHOLD),
        (57, 100, 0.57, ObservedRate.AT_THRESHOLD),
        (30, 100, 0.29, ObservedRate.ABOVE_THRESHOLD),
        (28, 100, 0.29, ObservedRate.BELOW_THRESHOLD),
    ],
)
def test_the_observed_rate_is_compared_in_rationals(
    k: int, n: int, rate: float, expected: ObservedRate
) -> None:
    """Doubles put 0.29 · 100 beside 29."""
    finding = decide_compliance("c", tally(k, n), rate, intent=Intent.SMOKE, rule="wilson")
    if finding.cutoff is not None:
        assert finding.observed_rate is expected


@pytest.mark.parametrize(
    ("k", "caution"),
    [
        (99, Caution.ADEQUATE_POWER),
        (92, Caution.STRANDS_DISAGREE),
        (90, Caution.STRANDS_DISAGREE),
        (89, Caution.FAIL_CLEAR),
    ],
)
@pytest.mark.parametrize("rule", RULES)
def test_a_fail_above_the_requirement_says_that_the_strands_disagree(
    k: int, caution: Caution, rule: Rule
) -> None:
    """Not shown is not the same as not met."""
    assert decide_compliance("c", tally(k, 100), 0.9, rule=rule).caution is caution


@pytest.mark.parametrize("k", [0, 1, 50, 99, 100])
def test_the_lower_bound_is_the_rules_own(k: int) -> None:
    """Wilson's for the Wilson rule, Clopper and Pearson's for the exact one."""
    wilson = decide_compliance("c", tally(k, 100), 0.9, rule="wilson").lower_bound
    exact = decide_compliance("c", tally(k, 100), 0.9, rule="exact").lower_bound

    assert wilson == pytest.approx(float(wilson_bound(k, 100, "0.05")), abs=1e-12)
    assert exact == pytest.approx(beta.ppf(0.05, k, 101 - k) if k else 0.0, abs=1e-12)


# Designs that cannot pass


@pytest.mark.parametrize(("rule", "minimum"), [("wilson", 52), ("exact", 59)])
def test_a_verification_that_could_never_pass_is_refused(rule: Rule, minimum: int) -> None:
    """No decision, the reason, both numbers, and the way out; one trial more is admitted."""
    refused = decide_compliance("c", tally(minimum - 1, minimum - 1), 0.95, rule=rule)

    assert refused.decision is None
    assert refused.refusals == (Refusal.COMPLIANCE_INFEASIBLE,)
    assert refused.caution is Caution.CONFIGURATION_ERROR
    assert refused.p_value is None
    assert str(minimum - 1) in refused.statement
    assert str(minimum) in refused.statement
    assert "smoke" in refused.statement
    admitted = decide_compliance("c", tally(minimum, minimum), 0.95, rule=rule)
    assert (admitted.decision, admitted.refusals) == (Decision.PASS, ())


@pytest.mark.parametrize(("rule", "minimum"), [("wilson", 52), ("exact", 59)])
def test_a_smoke_run_is_decided_whatever_its_size(rule: Rule, minimum: int) -> None:
    """What it cannot show it FAILs, a perfect run too."""
    n = minimum - 1
    finding = decide_compliance("c", tally(n, n), 0.95, rule=rule, intent=Intent.SMOKE)

    assert finding.decision is Decision.FAIL
    assert finding.refusals == ()
    assert finding.caution is Caution.FEASIBILITY_REFUSED
    assert finding.cutoff is None


@pytest.mark.parametrize(("rule", "minimum"), [("wilson", 52), ("exact", 59)])
def test_a_run_that_yielded_too_few_trials_is_inconclusive(rule: Rule, minimum: int) -> None:
    """The plan was sound, so it is not refused; the evidence is not there, so nothing FAILs."""
    n = minimum - 1
    finding = decide_compliance("c", tally(n, n), 0.95, rule=rule, planned_trials=minimum)

    assert finding.decision is Decision.INCONCLUSIVE
    assert finding.refusals == ()
    assert finding.caution is Caution.FEASIBILITY_REFUSED
    assert finding.observed_rate is ObservedRate.NOT_APPLICABLE
    assert finding.p_value is None
    assert finding.lower_bound is not None


def test_a_bad_plan_is_refused_even_if_the_run_grew() -> None:
    """What is refused is the plan, before the first trial."""
    finding = decide_compliance("c", tally(100, 100), 0.95, planned_trials=10, rule="wilson")

    assert (finding.decision, finding.refusals) == (None, (Refusal.COMPLIANCE_INFEASIBLE,))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("intent", list(Intent))
def test_no_trials_are_inconclusive(rule: Rule, intent: Intent) -> None:
    """Neither a pass nor a failure, under either intent."""
    finding = decide_compliance("c", tally(0, 0), 0.95, rule=rule, intent=intent)

    assert finding.decision is Decision.INCONCLUSIVE
    assert finding.caution is Caution.ZERO_EVALUABLE
    assert (finding.cutoff, finding.p_value, finding.lower_bound) == (None, None, None)
    assert finding.observed_rate is ObservedRate.NOT_APPLICABLE
    assert finding.decision_rule == DECISION_RULES[rule]


def test_no_trials_of_a_bad_plan_are_refused() -> None:
    """The plan comes first."""
    finding = decide_compliance("c", tally(0, 0), 0.95, rule="exact", planned_trials=58)

    assert (finding.decision, finding.refusals) == (None, (Refusal.COMPLIANCE_INFEASIBLE,))


# What is said


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("intent", list(Intent))
@pytest.mark.parametrize("k", [99, 90, 50])
def test_a_statement_carries_its_counts(k: int, intent: Intent, rule: Rule) -> None:
    """Successes, trials, the cutoff and the requirement: enough to redo it."""
    finding = decide_compliance("c", tally(k, 100), 0.9, rule=rule, intent=intent)

    assert f"{k} of 100" in finding.statement
    if intent is Intent.SMOKE:
        assert f"{finding.cutoff} needed" in finding.statement
        assert "0.9" in finding.statement
    else:
        assert "90 %" in finding.statement
        assert (k == 90) == (f"{finding.cutoff} were needed" in finding.statement)


def test_a_verdict_claims_no_more_than_it_has() -> None:
    """Evidence, not proof; not shown, rather than below; and smoke is softened (§5.7.3)."""
    passed = decide_compliance("c", tally(99, 100), 0.9, rule="wilson").statement
    failed = decide_compliance("c", tally(92, 100), 0.9, rule="wilson").statement
    smoke = decide_compliance(
        "c", tally(99, 100), 0.9, intent=Intent.SMOKE, rule="wilson"
    ).statement

    assert "99 of 100 passed, which shows a rate above 90 %." == passed
    assert "92 of 100 passed; 95 were needed to show 90 %." == failed
    assert "consistent with the target" in smoke
    for statement in (passed, failed, smoke):
        assert "meets" not in statement
        assert "proves" not in statement
        assert "degradation" not in statement


def test_a_smoke_run_above_its_target_is_not_called_inconsistent_with_it() -> None:
    """92 of 100 against 0.9: not shown, but the observed rate is above the target."""
    finding = decide_compliance("c", tally(92, 100), 0.9, rule="exact", intent=Intent.SMOKE)
    assert finding.observed_rate is ObservedRate.ABOVE_THRESHOLD

    assert "inconsistent" not in finding.statement


def test_a_smoke_run_is_not_advised_to_become_one() -> None:
    """10 of 10 under smoke: the advice to use smoke intent is for verifications."""
    finding = decide_compliance("c", tally(10, 10), 0.9, intent=Intent.SMOKE, rule="wilson")

    assert "intent: smoke" not in finding.statement


# The worked example of companion §10.3, criterion 3


def test_layperson_readable_by_the_wilson_rule() -> None:
    """788 of 800 against 0.98 at 0.001: FAIL although the observed rate is above."""
    finding = decide_compliance(
        "layperson-readable", tally(788, 800), 0.98, alpha=0.001, rule="wilson"
    )

    assert finding.decision is Decision.FAIL
    assert finding.lower_bound == pytest.approx(0.9648907, abs=5e-8)
    assert finding.observed_rate is ObservedRate.ABOVE_THRESHOLD
    assert finding.caution is Caution.STRANDS_DISAGREE
    assert finding.p_value is not None
    assert round(finding.p_value.value, 3) == 0.156


@pytest.mark.parametrize(("n", "decision"), [(7400, Decision.FAIL), (7600, Decision.PASS)])
def test_about_7490_trials_would_show_it(n: int, decision: Decision) -> None:
    """At the observed 0.985 the bound clears 0.98 from z² p(1−p)/δ² ≈ 7,490 trials on."""
    assert math.isclose(norm.isf(0.001) ** 2 * 0.98 * 0.02 / 0.005**2, 7487, abs_tol=1)

    assert (
        decide_compliance(
            "c", tally(round(0.985 * n), n), 0.98, alpha=0.001, rule="wilson"
        ).decision
        is decision
    )


# What is not accepted


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: decide_compliance("c", tally(5, 10), 1.0, rule="wilson"), "required_rate"),
        (lambda: decide_compliance("c", tally(5, 10), 0.0, rule="wilson"), "required_rate"),
        (lambda: decide_compliance("c", tally(5, 10), math.nan, rule="wilson"), "required_rate"),
        (lambda: decide_compliance("c", tally(5, 10), 0.5, alpha=0.0, rule="wilson"), "alpha"),
        (lambda: decide_compliance("c", tally(5, 10), 0.5, alpha=1.0, rule="wilson"), "alpha"),
        (
            lambda: decide_compliance("c", tally(5, 10), 0.5, rule="bayes"),  # type: ignore[arg-type]
            "rule",
        ),
        (lambda: tally(11, 10), "passed"),
        (lambda: tally(-1, 10), "passed"),
        (lambda: tally(0, -1), "trials"),
        (lambda: Tally(trials=10, passed=5, evaluable=4), "evaluable"),
        (lambda: Tally(trials=10, passed=5, evaluable=11), "evaluable"),
    ],
)
def test_a_bad_input_is_named(call: Callable[[], object], argument: str) -> None:
    """One error type, naming what was wrong."""
    with pytest.raises(InvalidArgument) as caught:
        call()

    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "arguments", [{"required_rate": 1.0}, {"required_rate": 0.9, "alpha": 7.0}]
)
def test_a_bad_design_is_not_hidden_by_an_empty_run(arguments: dict[str, float]) -> None:
    """A threshold of 1.0 is wrong with and without trials."""
    with pytest.raises(InvalidArgument):
        decide_compliance("c", tally(0, 0), **arguments)  # type: ignore[arg-type]


def test_a_negative_plan_is_not_accepted() -> None:
    """No run is planned with −5 trials."""
    with pytest.raises(InvalidArgument):
        decide_compliance("c", tally(99, 100), 0.9, planned_trials=-5, rule="wilson")


@pytest.mark.parametrize("rule", RULES)
def test_a_tiny_alpha_is_decided(rule: Rule) -> None:
    """alpha = 1e-17 is a level; 1 − alpha is 1 in doubles and is not one."""
    finding = decide_compliance("c", tally(1000, 1000), 0.5, alpha=1e-17, rule=rule)

    assert finding.decision is Decision.PASS


@pytest.mark.parametrize(("trials", "passed"), [(10, 9.5), (True, True), (10.0, 9.0)])
def test_a_tally_holds_whole_numbers(trials: Any, passed: Any) -> None:
    """Half a success is not a count."""
    with pytest.raises(InvalidArgument):
        Tally(trials=trials, passed=passed)


def test_a_tally_knows_its_rate_and_failures() -> None:
    """Every trial that did not pass failed, whatever the reason; no trials, no rate."""
    counts = Tally(trials=10, passed=6, evaluable=8)

    assert (counts.failed, counts.rate) == (4, 0.6)
    assert Tally(trials=0, passed=0).rate is None


@pytest.mark.slow
@given(n=st.integers(1, 80), rule=st.sampled_from(RULES), intent=st.sampled_from(list(Intent)))
def test_more_successes_never_turn_a_pass_into_a_fail(n: int, rule: Rule, intent: Intent) -> None:
    """Monotone in the count."""
    order = {None: 0, Decision.INCONCLUSIVE: 0, Decision.FAIL: 0, Decision.PASS: 1}
    findings: list[Finding] = [
        decide_compliance("c", tally(k, n), 0.8, rule=rule, intent=intent) for k in range(n + 1)
    ]
    ranks = [order[finding.decision] for finding in findings]

    assert ranks == sorted(ranks)
