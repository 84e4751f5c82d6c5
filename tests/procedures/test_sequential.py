"""What a sequential design concludes, every number recomputed by counting paths."""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln
from tests.procedures.decided_counts import decide_sequential

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Intent
from trialwise.model.evidence import Tally
from trialwise.model.verdict import Caution, Decision, Finding, ObservedRate
from trialwise.procedures.composite import compose
from trialwise.stats.sequential.design import SequentialDesign

SHORT = SequentialDesign.optimal(0.90, 0.80, cap=50)
LONG = SequentialDesign.optimal(0.90, 0.80)


def decided(
    trials: int,
    failures: int,
    *,
    design: SequentialDesign = SHORT,
    claimed: Decision | None = None,
    intent: Intent = Intent.VERIFICATION,
) -> Finding:
    tally = Tally(trials=trials, passed=trials - failures)
    return decide_sequential("answers", tally, design, claimed=claimed, intent=intent)


@cache
def stops(design: SequentialDesign) -> dict[tuple[int, int], tuple[str, int]]:
    """Every (trials, failures) where the design stops: its verdict and the number of ways there."""
    ways, ends = Counter({0: 1}), {}
    for n in range(1, design.cap + 1):
        after: Counter[int] = Counter()
        for f, count in ways.items():
            after[f] += count
            after[f + 1] += count
        ways = Counter()
        for f, count in after.items():
            if f <= design.accept[n]:
                ends[n, f] = "PASS", count
            elif f >= design.reject[n]:
                ends[n, f] = "FAIL", count
            elif n == design.cap:
                ends[n, f] = "INCONCLUSIVE", count
            else:
                ways[f] = count
    return ends


def chance(design: SequentialDesign, verdict: str, rate: str) -> float:
    """P(verdict) at a true rate, in rationals."""
    p = Fraction(rate)
    return float(
        sum(
            count * p ** (n - f) * (1 - p) ** f
            for (n, f), (given, count) in stops(design).items()
            if given == verdict
        )
    )


# The decision


@pytest.mark.parametrize(
    ("trials", "failures", "decision"),
    [(13, 0, Decision.PASS), (4, 4, Decision.FAIL), (50, 7, Decision.INCONCLUSIVE)],
)
def test_the_boundaries_decide(trials: int, failures: int, decision: Decision) -> None:
    """PASS and FAIL where a boundary is reached, INCONCLUSIVE between them at the cap."""
    finding = decided(trials, failures)

    assert decision is finding.decision
    assert "SEQUENTIAL" == finding.procedure
    assert (None, "sequential/optimal") == (finding.rule, finding.decision_rule)
    assert (0.05, 0.20, 50) == (finding.alpha, finding.beta, finding.planned_trials)
    assert SHORT is finding.design


@pytest.mark.parametrize("method", ["wald", "calibrated", "fixed", "optimal"])
def test_the_rule_names_how_the_design_was_made(method: str) -> None:
    """A verdict of Wald's test is not one of the optimal test."""
    design = getattr(SequentialDesign, method)(0.90, 0.80, cap=50)
    trials, failures = min(stops(design))

    rule = decided(trials, failures, design=design).decision_rule

    assert f"sequential/{method}" == rule


def test_every_stop_has_the_verdict_of_its_boundary() -> None:
    """All stops of a design, with a caution and an estimate that fit the verdict."""
    cautions = {"PASS": Caution.ADEQUATE_POWER, "FAIL": Caution.FAIL_CLEAR, "INCONCLUSIVE": None}
    for (n, f), (verdict, _) in stops(SHORT).items():
        finding = decided(n, f)
        assert verdict == finding.decision
        assert cautions[verdict] is finding.caution
        assert finding.interval is not None
        assert finding.estimate is not None
        assert finding.estimate in finding.interval


def test_a_run_that_ended_first_is_inconclusive() -> None:
    """Undecided counts are no verdict, whoever ended the run."""
    finding = decided(20, 3)

    assert Decision.INCONCLUSIVE is finding.decision
    assert finding.estimate is None
    assert finding.caution is None
    assert "ended after 20 of at most 50 trials" in finding.statement
    assert "17 of 20 passed" in finding.statement


def test_no_trial_is_no_evidence() -> None:
    """Zero trials give neither an interval nor an estimate."""
    finding = decided(0, 0)

    assert (Decision.INCONCLUSIVE, Caution.ZERO_EVALUABLE) == (finding.decision, finding.caution)
    assert (None, None) == (finding.interval, finding.estimate)
    assert ObservedRate.NOT_APPLICABLE is finding.observed_rate


def test_a_design_that_has_not_decided_has_not_stopped() -> None:
    """The boundaries decide, whatever is claimed of the counts."""
    finding = decided(20, 3, claimed=Decision.PASS)

    assert Decision.INCONCLUSIVE is finding.decision
    assert finding.estimate is None


def test_counts_beyond_a_stop_are_refused() -> None:
    """After 13 successes the design has passed: a fourteenth trial does not belong to it."""
    with pytest.raises(InvalidArgument, match="can reach in 14 trials"):
        decided(14, 0)


def test_a_boundary_decides_even_where_something_else_ended_the_run() -> None:
    """The last trial of a budget may be the one that decides."""
    assert Decision.PASS is decided(13, 0).decision


# The numbers


@pytest.mark.parametrize("design", [SHORT, LONG, SequentialDesign.wald(0.95, 0.85, cap=50)])
def test_the_error_rates_said_are_those_the_design_has(design: SequentialDesign) -> None:
    """Both come from all paths and are rounded up, so that "at most" is true."""
    trials, failures = min(stops(design))
    finding = decided(trials, failures, design=design)
    fails, passes = map(float, re.findall(r"≤ (0\.\d{4}) at every", finding.confidence_statement))
    good, bad = f"{design.p0}", f"{design.p1}"

    for said, true in (
        (fails, chance(design, "FAIL", good)),
        (passes, chance(design, "PASS", bad)),
    ):
        assert true - 1e-11 <= said < true + 1e-4
    assert finding.power == pytest.approx(1 - chance(design, "PASS", bad), abs=1e-12)
    assert fails <= design.alpha + 1e-4
    assert passes <= design.beta + 1e-4


def test_the_error_rates_hold_beyond_the_two_rates() -> None:
    """P(FAIL) falls above p0 and P(PASS) below p1, as "every true rate" says."""
    assert chance(SHORT, "FAIL", "0.90") >= chance(SHORT, "FAIL", "0.93")
    assert chance(SHORT, "PASS", "0.80") >= chance(SHORT, "PASS", "0.77")


def test_a_cap_that_is_too_small_says_how_often_it_leaves_a_run_open() -> None:
    """P(INCONCLUSIVE) at both rates, and the cap that would do (78: by Neyman and Pearson)."""
    (caveat,) = decided(13, 0).caveats
    good, bad = (float(part) for part in re.findall(r"(\d+\.\d) %", caveat))

    assert good == pytest.approx(100 * chance(SHORT, "INCONCLUSIVE", "0.90"), abs=0.05)
    assert bad == pytest.approx(100 * chance(SHORT, "INCONCLUSIVE", "0.80"), abs=0.05)
    assert "78 trials can decide all" in caveat


def test_a_design_that_always_decides_has_no_such_caveat() -> None:
    """Twice the fixed sample leaves nothing open."""
    assert 0 == chance(LONG, "INCONCLUSIVE", "0.90")
    trials, failures = min(stops(LONG))

    assert () == decided(trials, failures, design=LONG).caveats


def test_walds_cut_test_stays_open_where_others_would_decide() -> None:
    """At a cap that suffices there is no other cap to advise, only the open ends to tell."""
    design = SequentialDesign.wald(0.90, 0.80, cap=156)
    (caveat,) = decided(*min(stops(design)), design=design).caveats

    assert "end INCONCLUSIVE." in caveat


@pytest.mark.parametrize(("trials", "failures"), sorted(stops(SHORT))[::4])
def test_the_interval_inverts_the_design(trials: int, failures: int) -> None:
    """At each end an outcome as good, or as bad, has probability 0.025 (Armitage 1958)."""
    ends = stops(SHORT)
    verdict = ends[trials, failures][0]
    order = {"PASS": 0, "INCONCLUSIVE": 1, "FAIL": 2}

    def place(n: int, f: int, given: str) -> tuple[int, int, int]:
        return order[given], -n if given == "FAIL" else n, f

    own = place(trials, failures, verdict)

    def tail(p: float, *, good: bool) -> float:
        return math.fsum(
            count * p ** (n - f) * (1 - p) ** f
            for (n, f), (given, count) in ends.items()
            if (place(n, f, given) <= own if good else place(n, f, given) >= own)
        )

    interval = decided(trials, failures).interval
    assert interval is not None
    assert (0.95, "exact after stopping, stage-wise") == (interval.confidence, interval.method)
    if interval.low > 0:
        assert tail(interval.low, good=True) == pytest.approx(0.025, rel=1e-6)
    if interval.high < 1:
        assert tail(interval.high, good=False) == pytest.approx(0.025, rel=1e-6)


def test_before_a_stop_the_interval_holds_whatever_ended_the_run() -> None:
    """The uniform mixture against p reaches 20 at both ends (Robbins 1970)."""
    interval = decided(20, 3).interval
    assert interval is not None
    assert "any stopping time" in interval.method

    for p in interval:
        log_value = betaln(18, 4) - 17 * math.log(p) - 3 * math.log1p(-p)
        assert log_value == pytest.approx(math.log(20), rel=1e-9)


@given(st.sampled_from(sorted(stops(SHORT))))
def test_the_observed_rate_is_compared_in_rationals(end: tuple[int, int]) -> None:
    """Where the rate stands against p0 = 9/10."""
    n, f = end
    gap = Fraction(n - f, n) - Fraction(9, 10)
    expected = (
        ObservedRate.AT_THRESHOLD
        if gap == 0
        else ObservedRate.ABOVE_THRESHOLD
        if gap > 0
        else ObservedRate.BELOW_THRESHOLD
    )

    assert expected is decided(n, f).observed_rate


# The words


def test_a_statement_has_its_counts() -> None:
    """What was needed stands beside what there was."""
    assert "13 of 13 passed, which shows a rate above 80 %." == decided(13, 0).statement
    assert "Only 0 of 4 passed; at least 90 % is required." == decided(4, 4).statement
    assert (
        "43 of 50 passed: too close to 90 % to tell within 50 trials." == decided(50, 7).statement
    )


@pytest.mark.slow
def test_an_open_end_says_what_would_decide_it() -> None:
    """How many trials would, how often and at which rate; no margin is chosen after the data."""
    design = SequentialDesign.strict(0.9, cap=60)
    finding = decided(60, 5, design=design)

    assert Decision.INCONCLUSIVE is finding.decision
    assert "too close to 90 % to tell" in finding.statement
    rate = f"{100 * design.estimate(60, 5):.1f} %"
    assert f"trials would decide it in 80 % of runs, if the rate is {rate}" in finding.advice
    assert "margin" not in finding.advice


def test_a_smoke_run_claims_less() -> None:
    """Consistent or inconsistent with the target, and no evidence."""
    passed, failed = (decided(n, f, intent=Intent.SMOKE).statement for n, f in ((13, 0), (4, 4)))

    assert passed.startswith("The observed rate is consistent with the target of 90 % ")
    assert "Only 0 of 4 passed; at least 90 % is required." == failed


def test_the_hypotheses_are_the_two_rates() -> None:
    """H0 is the good rate, since a FAIL is what must be rare there."""
    finding = decided(13, 0)

    assert finding.words.null.startswith("p ≥ 0.9,")
    assert finding.words.alternative.startswith("p ≤ 0.8,")
    assert "not the probability that this verdict is wrong" in finding.confidence_statement


def test_its_errors_enter_the_verdicts_envelopes() -> None:
    """Two wrong FAILs add up; a bad criterion passes as often as it would alone."""
    verdict = compose([decided(13, 0), decided(13, 0)])

    design = verdict.findings[0].plan.design
    assert isinstance(design, SequentialDesign)
    fails = design.operating_characteristic(design.p0).fails
    assert Decision.PASS is verdict.decision
    assert verdict.envelopes.false_rejection_envelope == pytest.approx(2 * fails)
    passes = design.operating_characteristic(design.p1).passes
    assert verdict.envelopes.false_acceptance_envelope == pytest.approx(passes)


def test_a_pass_below_the_required_rate_is_qualified() -> None:
    """At every stop: exactly where fewer than nine in ten of the trials passed."""
    seen = set()
    for (n, failures), (verdict, _) in stops(SHORT).items():
        caveats = decided(n, failures).caveats
        below = verdict == "PASS" and Fraction(n - failures, n) < Fraction(9, 10)
        assert below is any("not every rate below 0.9" in caveat for caveat in caveats)
        seen.add(below)
    assert {True, False} == seen
