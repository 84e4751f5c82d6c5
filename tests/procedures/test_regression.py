"""Deciding regression: at the cutoff and one below it, refusals, and what is never claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, hypergeom

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Intent
from trialwise.model.evidence import Tally
from trialwise.model.verdict import Caution, Decision, Finding, ObservedRate
from trialwise.procedures.regression import DECISION_RULES, decide_regression
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.result_types import Refusal, Rule

#: Rule sets whose cutoffs have a definition in one line; Boschloo's is tested on its own.
CLOSED_FORMS: tuple[Rule, ...] = ("wilson", "fisher")


def tally(passed: int, trials: int) -> Tally:
    return Tally(trials=trials, passed=passed)


def design_of(finding: Finding) -> RegressionCutoff:
    assert isinstance(finding.design, RegressionCutoff)
    return finding.design


def fisher_p_value(k: int, nb: int, x: int, n: int) -> Fraction:
    """P(X ≤ x) given k + x successes among nb + n trials, in integers."""
    total = k + x
    ways = sum(
        math.comb(total, j) * math.comb(nb + n - total, n - j)
        for j in range(max(0, total - nb), x + 1)
    )
    return Fraction(ways, math.comb(nb + n, n))


def wilson_threshold(k: int, nb: int, n: int, alpha: str) -> Any:
    """WilsonLower(p̂_b, n) in 40 digits, in two steps for a perfect baseline, 0 for an empty one."""
    with mpmath.workdps(40):
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(alpha))

        def lower(p: Any, size: int) -> Any:
            root = mpmath.sqrt(p * (1 - p) / size + z * z / (4 * size * size))
            return (p + z * z / (2 * size) - z * root) / (1 + z * z / size)

        if k == 0:
            return mpmath.mpf(0)
        return lower(lower(mpmath.mpf(1), nb) if k == nb else mpmath.mpf(k) / nb, n)


def needed(k: int, nb: int, n: int, alpha: str, rule: Rule) -> int:
    if rule == "wilson":
        return int(mpmath.ceil(n * wilson_threshold(k, nb, n, alpha)))
    return next(x for x in range(n + 1) if fisher_p_value(k, nb, x, n) > Fraction(alpha))


# The decision


@pytest.mark.parametrize("rule", CLOSED_FORMS)
@pytest.mark.parametrize(
    ("k", "nb", "n", "alpha"),
    [
        (951, 1000, 100, "0.05"),
        (99, 100, 100, "0.05"),
        (100, 100, 100, "0.05"),
        (27, 30, 25, "0.01"),
        (9, 10, 10, "0.05"),
        (50, 50, 50, "0.05"),
        (150, 300, 60, "0.2"),
    ],
)
def test_the_cutoff_passes_and_one_below_signals(
    k: int, nb: int, n: int, alpha: str, rule: Rule
) -> None:
    """The cutoff is computed here, by the definition of either rule."""
    cutoff = needed(k, nb, n, alpha, rule)
    assert cutoff > 0
    at = decide_regression("c", tally(cutoff, n), tally(k, nb), alpha=float(alpha), rule=rule)
    below = decide_regression(
        "c", tally(cutoff - 1, n), tally(k, nb), alpha=float(alpha), rule=rule
    )

    assert (at.decision, at.cutoff, at.observed_rate) == (
        Decision.PASS,
        cutoff,
        ObservedRate.AT_THRESHOLD,
    )
    assert (below.decision, below.observed_rate) == (Decision.FAIL, ObservedRate.BELOW_THRESHOLD)
    assert (at.caution, below.caution) == (Caution.ADEQUATE_POWER, Caution.FAIL_CLEAR)
    assert at.rule == below.rule == rule
    assert at.decision_rule == DECISION_RULES[rule]
    assert at.procedure == "REGRESSION"
    if cutoff < n:
        above = decide_regression(
            "c", tally(cutoff + 1, n), tally(k, nb), alpha=float(alpha), rule=rule
        )
        assert (above.decision, above.observed_rate) == (
            Decision.PASS,
            ObservedRate.ABOVE_THRESHOLD,
        )


@pytest.mark.parametrize(
    ("k", "nb", "n", "wilson", "exact"),
    [
        (99, 100, 100, 96, 94),
        (100, 100, 100, 94, 96),
        (951, 1000, 1000, 939, 933),
        (9, 10, 10, 7, 5),
    ],
)
def test_the_two_rule_sets_disagree_where_the_reference_says(
    k: int, nb: int, n: int, wilson: int, exact: int
) -> None:
    """Same counts, different cutoffs; which one decided stands on the finding."""
    findings = [
        decide_regression("c", tally(n, n), tally(k, nb), rule=rule) for rule in CLOSED_FORMS
    ]

    assert [finding.cutoff for finding in findings] == [wilson, exact]
    assert [finding.rule for finding in findings] == ["wilson", "fisher"]


@pytest.mark.parametrize(("k", "nb", "x", "n"), [(12, 12, 2, 4), (19, 23, 0, 2)])
def test_a_fisher_p_value_equal_to_alpha_signals(k: int, nb: int, x: int, n: int) -> None:
    """The exact-boundary convention: p = 1/20 is not above 1/20."""
    assert fisher_p_value(k, nb, x, n) == Fraction(1, 20)

    finding = decide_regression("c", tally(x, n), tally(k, nb), rule="fisher")
    assert (finding.decision, finding.cutoff) == (Decision.FAIL, x + 1)


@pytest.mark.parametrize("rule", CLOSED_FORMS)
def test_nothing_degrades_from_nothing(rule: Rule) -> None:
    """A baseline without successes has the cutoff 0: a run without any still passes."""
    finding = decide_regression("c", tally(0, 50), tally(0, 50), rule=rule)

    assert (finding.decision, finding.cutoff) == (Decision.PASS, 0)
    assert finding.observed_rate is ObservedRate.AT_THRESHOLD


# What stands beside the decision


@settings(max_examples=60)
@given(
    data=st.data(), nb=st.integers(1, 40), alpha=st.sampled_from(["0.001", "0.01", "0.05", "0.2"])
)
def test_the_fisher_p_value_agrees_with_the_decision(
    data: st.DataObject, nb: int, alpha: str
) -> None:
    """PASS exactly where the p-value, in integers, is above alpha."""
    n = data.draw(st.integers(1, nb))
    k, x = data.draw(st.integers(0, nb)), data.draw(st.integers(0, n))
    finding = decide_regression("c", tally(x, n), tally(k, nb), alpha=float(alpha), rule="fisher")
    p_value = fisher_p_value(k, nb, x, n)

    assert (finding.decision is Decision.PASS) == (p_value > Fraction(alpha))
    assert finding.p_value is not None
    assert finding.p_value.value == pytest.approx(float(p_value), rel=1e-10)
    assert finding.p_value.value == pytest.approx(hypergeom.cdf(x, nb + n, k + x, n), rel=1e-9)
    assert finding.p_value.method == "fisher-exact-lower-tail"


def test_the_fisher_p_value_does_not_contradict_the_decision_at_a_tie() -> None:
    """The p-value is alpha exactly, and FAIL; a reader who compares the two must agree."""
    finding = decide_regression("c", tally(2, 4), tally(12, 12), rule="fisher")
    assert finding.p_value is not None
    assert finding.alpha is not None

    assert finding.decision is Decision.FAIL
    assert finding.p_value.value <= finding.alpha


@given(nb=st.integers(1, 200), where=st.floats(0, 1), n=st.integers(1, 150), share=st.floats(0, 1))
def test_a_wilson_finding_gives_the_tail_of_what_was_observed(
    nb: int, where: float, n: int, share: float
) -> None:
    """P(K ≤ observed) at the reference rate, by scipy, and the size of the cutoff beside it."""
    k, x = round(nb * where), round(n * share)
    finding = decide_regression("c", tally(x, n), tally(k, nb), rule="wilson")
    design = design_of(finding)
    assert finding.p_value is not None
    assert design.cutoff is not None

    assert finding.p_value.value == pytest.approx(
        binom.cdf(x, n, design.reference_rate), rel=1e-9, abs=1e-300
    )
    assert design.achieved_size == pytest.approx(
        binom.cdf(design.cutoff - 1, n, design.reference_rate), abs=1e-12
    )
    # A signal has a tail within the size of the cutoff; a pass has a larger one.
    within = finding.p_value.value <= (design.achieved_size or 0.0) * (1 + 1e-9)
    assert (finding.decision is Decision.FAIL) == (within and x < design.cutoff)


@pytest.mark.parametrize("x", [0, 87, 100])
def test_the_lower_bound_is_of_the_test_by_the_rules_own_method(x: int) -> None:
    """Wilson's or Clopper and Pearson's, at the criterion's alpha."""
    baseline = tally(951, 1000)
    wilson = decide_regression("c", tally(x, 100), baseline, rule="wilson").lower_bound
    exact = decide_regression("c", tally(x, 100), baseline, rule="fisher").lower_bound

    expected = 0.0 if x == 0 else float(wilson_bound_of_counts(x, 100))
    assert wilson == pytest.approx(expected, abs=1e-12)
    assert exact == pytest.approx(beta.ppf(0.05, x, 101 - x) if x else 0.0, abs=1e-12)


def wilson_bound_of_counts(k: int, n: int) -> Any:
    with mpmath.workdps(30):
        z = mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf("0.9"))
        p = mpmath.mpf(k) / n
        root = mpmath.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return (p + z * z / (2 * n) - z * root) / (1 + z * z / n)


# The worked examples of companion §3.4, §7.1 and §10.3


def test_eighty_seven_of_a_hundred_signal_a_degradation() -> None:
    """Companion §3.4 and §7.1 by the errata: cutoff 91, bound 0.804806, size 0.024986."""
    finding = decide_regression("c", tally(87, 100), tally(951, 1000), rule="wilson")

    assert (finding.decision, finding.cutoff) == (Decision.FAIL, 91)
    assert finding.lower_bound == pytest.approx(0.804806, abs=5e-7)
    assert design_of(finding).threshold == pytest.approx(0.902124, abs=5e-7)
    assert design_of(finding).achieved_size == pytest.approx(0.024986, abs=5e-7)


def test_well_formed_by_the_wilson_rule() -> None:
    """Companion §10.3, criterion 1: 953 of 1000 against 0.951, by the errata."""
    finding = decide_regression("well-formed", tally(953, 1000), tally(1902, 2000), rule="wilson")
    design = design_of(finding)

    assert (finding.decision, finding.cutoff) == (Decision.PASS, 939)
    assert finding.observed_rate is ObservedRate.ABOVE_THRESHOLD
    assert design.threshold == pytest.approx(0.9385, abs=5e-5)
    assert design.achieved_size == pytest.approx(0.0371, abs=5e-5)
    assert finding.lower_bound == pytest.approx(0.9407165, abs=5e-8)
    assert finding.p_value is not None
    assert finding.p_value.value == pytest.approx(0.636, abs=5e-4)
    assert design.power(0.925) == pytest.approx(0.951, abs=5e-4)
    assert design.power(0.9317) == pytest.approx(0.80, abs=2e-3)


def test_the_diagnostic_z_of_the_worked_examples() -> None:
    """The errata's z, −1.081 in §7.1 and 1.909 in §10.3, at the displayed thresholds."""
    for passed, n, baseline, digits, expected in (
        (87, 100, tally(951, 1000), 6, -1.081),
        (953, 1000, tally(1902, 2000), 4, 1.909),
    ):
        threshold = design_of(
            decide_regression("c", tally(passed, n), baseline, rule="wilson")
        ).threshold
        assert threshold is not None
        shown = round(threshold, digits)
        z = (passed / n - shown) / math.sqrt(shown * (1 - shown) / n)
        assert z == pytest.approx(expected, abs=5e-4)


def test_a_wilson_finding_discloses_its_real_false_alarms() -> None:
    """5 % is nominal: for 500 trials against 90 of 100 it is 25 %, by scipy's double sum."""
    design = design_of(decide_regression("c", tally(450, 500), tally(90, 100), rule="wilson"))
    cutoffs = [needed(k, 100, 500, "0.05", "wilson") for k in range(101)]
    expected = math.fsum(
        float(binom.pmf(k, 100, 0.9)) * float(binom.cdf(c - 1, 500, 0.9))
        for k, c in enumerate(cutoffs)
    )

    assert design.design_false_alarm == pytest.approx(expected, abs=1e-12)
    assert round(expected, 2) == 0.25


# Designs that are refused, and runs without trials


def test_a_test_larger_than_its_baseline_is_refused_by_the_exact_rule() -> None:
    """No decision, the reason and both sizes; one as large is admitted, Wilson has no such rule."""
    refused = decide_regression("c", tally(100, 101), tally(95, 100), rule="fisher")

    assert refused.decision is None
    assert refused.refusals == (Refusal.TEST_LARGER_THAN_BASELINE,)
    assert refused.caution is Caution.CONFIGURATION_ERROR
    assert refused.observed_rate is ObservedRate.NOT_APPLICABLE
    assert (refused.cutoff, refused.p_value, refused.lower_bound) == (None, None, None)
    assert "101 trials" in refused.statement
    assert "100" in refused.statement.replace("101", "")
    assert decide_regression("c", tally(95, 100), tally(95, 100), rule="fisher").decision
    assert decide_regression("c", tally(100, 101), tally(95, 100), rule="wilson").refusals == ()


@pytest.mark.parametrize("intent", list(Intent))
def test_the_plan_is_what_is_refused(intent: Intent) -> None:
    """A plan of 200 against 100 is refused although only 50 trials came of it."""
    finding = decide_regression(
        "c", tally(45, 50), tally(95, 100), rule="fisher", planned_trials=200, intent=intent
    )

    assert finding.refusals == (Refusal.TEST_LARGER_THAN_BASELINE,)
    assert "200" in finding.statement


def test_a_run_beyond_its_plan_is_refused_too() -> None:
    """150 trials against 100 have no exact decision, whatever was planned."""
    finding = decide_regression(
        "c", tally(145, 150), tally(95, 100), rule="fisher", planned_trials=80
    )

    assert finding.refusals == (Refusal.TEST_LARGER_THAN_BASELINE,)


def test_the_cutoff_is_that_of_the_trials_there_are() -> None:
    """Planned 100, got 60: decided on 60."""
    finding = decide_regression(
        "c", tally(60, 60), tally(95, 100), rule="fisher", planned_trials=100
    )

    assert finding.cutoff == needed(95, 100, 60, "0.05", "fisher")


@pytest.mark.parametrize("rule", CLOSED_FORMS)
def test_no_test_trials_are_inconclusive(rule: Rule) -> None:
    """Neither a signal nor its absence."""
    finding = decide_regression("c", tally(0, 0), tally(95, 100), rule=rule)

    assert finding.decision is Decision.INCONCLUSIVE
    assert finding.caution is Caution.ZERO_EVALUABLE
    assert (finding.cutoff, finding.p_value, finding.lower_bound) == (None, None, None)


def test_no_trials_of_a_refused_plan_are_refused() -> None:
    """The plan comes first, as it does for compliance."""
    finding = decide_regression("c", tally(0, 0), tally(95, 100), rule="fisher", planned_trials=200)

    assert finding.refusals == (Refusal.TEST_LARGER_THAN_BASELINE,)


# What is said


@pytest.mark.parametrize("rule", CLOSED_FORMS)
@pytest.mark.parametrize("x", [100, 91, 80])
def test_a_statement_carries_its_counts_and_claims_no_equivalence(x: int, rule: Rule) -> None:
    """A PASS says that nothing was signalled and that equivalence is not claimed (§5.1)."""
    finding = decide_regression("c", tally(x, 100), tally(951, 1000), rule=rule)

    assert f"{x} of 100" in finding.statement
    assert f"{finding.cutoff} needed" in finding.statement
    assert "compliance" not in finding.statement
    if finding.decision is Decision.PASS:
        assert "No degradation signal" in finding.statement
        assert "equivalence is not claimed" in finding.statement
    else:
        assert "degradation" in finding.statement
        assert "equivalen" not in finding.statement


def test_smoke_intent_softens_the_wording() -> None:
    """As the function's own description says."""
    said = {
        decide_regression(
            "c", tally(95, 100), tally(951, 1000), intent=intent, rule="wilson"
        ).statement
        for intent in Intent
    }

    assert len(said) == 2


@pytest.mark.parametrize("rule", CLOSED_FORMS)
def test_a_smoke_pass_claims_no_equivalence_either(rule: Rule) -> None:
    """Softer must not mean a larger claim: "consistent with the baseline" alone reads as one."""
    finding = decide_regression(
        "c", tally(95, 100), tally(951, 1000), rule=rule, intent=Intent.SMOKE
    )
    assert finding.decision is Decision.PASS

    assert "equivalence is not claimed" in finding.statement


# What is not accepted


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (
            lambda: decide_regression("c", tally(5, 10), tally(0, 0), rule="wilson"),
            "baseline_trials",
        ),
        (
            lambda: decide_regression("c", tally(5, 10), tally(9, 10), alpha=0.0, rule="wilson"),
            "alpha",
        ),
        (
            lambda: decide_regression(
                "c", tally(5, 10), tally(9, 10), alpha=math.nan, rule="wilson"
            ),
            "alpha",
        ),
        (
            lambda: decide_regression(
                "c",
                tally(5, 10),
                tally(9, 10),
                rule="bayes",  # type: ignore[arg-type]
            ),
            "rule",
        ),
    ],
)
def test_a_bad_regression_input_is_named(call: Callable[[], object], argument: str) -> None:
    """One error type, naming what was wrong."""
    with pytest.raises(InvalidArgument) as caught:
        call()

    assert caught.value.argument == argument


@settings(max_examples=30)
@given(nb=st.integers(1, 60), where=st.floats(0, 1), rule=st.sampled_from(CLOSED_FORMS))
def test_more_successes_never_turn_a_pass_into_a_signal(nb: int, where: float, rule: Rule) -> None:
    """Monotone in the count, whatever the baseline."""
    baseline = tally(round(nb * where), nb)
    passes = [
        decide_regression("c", tally(x, nb), baseline, rule=rule).decision is Decision.PASS
        for x in range(nb + 1)
    ]

    assert passes == sorted(passes)
    assert passes[-1]
