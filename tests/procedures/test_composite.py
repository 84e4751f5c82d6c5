"""The composite verdict: FAIL beats INCONCLUSIVE beats PASS, and no part is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom
from tests.procedures.decided_counts import decide_latency_limit
from tests.revising import criterion_plan

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Intent
from trialwise.model.evidence import Tally
from trialwise.model.verdict import Decision, Dimension, Finding, LatencyFinding, Trigger
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.composite import combine, compose
from trialwise.procedures.observational import decide_observational
from trialwise.procedures.regression import decide_regression
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.result_types import Refusal

decisions = st.sampled_from(list(Decision))
alphas = st.sampled_from([0.001, 0.01, 0.05, 0.3])

PROCEDURES = ["COMPLIANCE", "REGRESSION", "SEQUENTIAL", "OBSERVATIONAL"]


def finding(
    name: str,
    decision: Decision | None,
    procedure: str = "REGRESSION",
    *,
    alpha: float | None = 0.05,
    refusals: tuple[Refusal, ...] = (),
) -> Finding:
    level = None if procedure == "OBSERVATIONAL" else alpha
    return Finding(
        plan=criterion_plan(name, procedure=procedure, rule="exact", alpha=level),
        decision=decision,
        tally=Tally(trials=100, passed=90),
        refusals=refusals,
    )


def timing(
    name: str, decision: Decision | None, *, refusals: tuple[Refusal, ...] = ()
) -> LatencyFinding:
    return LatencyFinding(
        constraint=name,
        decision_rule="latency/precedence",
        decision=decision,
        percentile=0.95,
        alpha=0.05,
        trials=100,
        refusals=refusals,
    )


@st.composite
def functional(draw: st.DrawFn) -> list[Finding]:
    parts = draw(st.lists(st.tuples(decisions, st.sampled_from(PROCEDURES), alphas), max_size=6))
    return [
        finding(f"c{i}", decision, procedure, alpha=alpha)
        for i, (decision, procedure, alpha) in enumerate(parts)
    ]


@st.composite
def timings(draw: st.DrawFn) -> list[LatencyFinding]:
    return [
        timing(f"t{i}", decision)
        for i, decision in enumerate(draw(st.lists(decisions, max_size=4)))
    ]


advisories = st.frozensets(st.sampled_from(list(Dimension)))


def worst(parts: Sequence[Decision | None]) -> Decision | None:
    """The structural composite by its definition (companion §1.4.6), not by an order."""
    if not parts:
        return None
    if any(part is Decision.FAIL for part in parts):
        return Decision.FAIL
    if all(part is Decision.PASS for part in parts):
        return Decision.PASS
    return Decision.INCONCLUSIVE


@pytest.mark.slow
@given(st.lists(decisions, max_size=8))
def test_fail_beats_inconclusive_beats_pass(parts: list[Decision]) -> None:
    """In any order and number; nothing gives nothing."""
    assert combine(parts) is worst(parts)
    assert combine(reversed(parts)) is combine(parts)
    assert combine([*parts, *parts]) is combine(parts)


@given(findings=functional(), latency=timings(), advisory=advisories)
def test_a_verdict_is_the_worst_enforced_part_and_keeps_every_part(
    findings: list[Finding], latency: list[LatencyFinding], advisory: frozenset[Dimension]
) -> None:
    """Whatever is advisory is decided and reported, and left out of the decision only."""
    assume(findings or latency)
    verdict = compose(findings, latency, advisory=advisory)
    rates = [] if Dimension.FUNCTIONAL in advisory else findings
    times = [] if Dimension.LATENCY in advisory else latency
    enforced = [*(part.decision for part in rates), *(part.decision for part in times)]

    assert verdict.decision is (worst(enforced) or Decision.PASS)
    assert verdict.findings == tuple(findings)
    assert verdict.latency == tuple(latency)
    assert verdict.advisory == advisory
    assert verdict.functional_decision is worst([part.decision for part in findings])
    assert verdict.latency_decision is worst([part.decision for part in latency])
    assert verdict.refusals == ()


@given(findings=functional(), latency=timings(), advisory=advisories)
def test_the_triggers_are_exactly_the_enforced_parts_that_decided(
    findings: list[Finding], latency: list[LatencyFinding], advisory: frozenset[Dimension]
) -> None:
    """All of them, in order, and none for a PASS."""
    assume(findings or latency)
    verdict = compose(findings, latency, advisory=advisory)
    expected = []
    if verdict.decision is not Decision.PASS:
        if Dimension.FUNCTIONAL not in advisory:
            expected += [
                Trigger(kind="criterion", name=part.criterion)
                for part in findings
                if part.decision is verdict.decision
            ]
        if Dimension.LATENCY not in advisory:
            expected += [
                Trigger(kind="latency", name=part.constraint)
                for part in latency
                if part.decision is verdict.decision
            ]

    assert list(verdict.triggers) == expected
    assert bool(expected) == (verdict.decision is not Decision.PASS)


@given(findings=functional(), latency=timings())
def test_a_wrong_pass_is_as_likely_as_the_largest_and_a_wrong_fail_as_all_together(
    findings: list[Finding], latency: list[LatencyFinding]
) -> None:
    """Levels stand in where no design is known; a sum of 1 or more bounds nothing."""
    assume(findings or latency)
    verdict = compose(findings, latency)
    for procedure, envelope in (
        ("COMPLIANCE", verdict.envelopes.false_compliance_envelope),
        ("REGRESSION", verdict.envelopes.false_degradation_envelope),
    ):
        levels = [part.alpha for part in findings if part.procedure is procedure and part.alpha]
        passes = procedure == "COMPLIANCE"
        expected = (max(levels, default=1.0) if passes else math.fsum(levels)) if levels else 1.0
        if expected < 1:
            assert envelope == pytest.approx(expected, abs=1e-12)
        else:
            assert envelope is None


@given(findings=functional(), latency=timings(), data=st.data())
def test_one_refused_part_refuses_the_whole(
    findings: list[Finding], latency: list[LatencyFinding], data: st.DataObject
) -> None:
    """No decision, no envelope, no trigger; every part is still there, every reason once."""
    refused = [
        finding("r1", None, refusals=(Refusal.COMPLIANCE_INFEASIBLE,)),
        finding("r2", None, refusals=(Refusal.TEST_LARGER_THAN_BASELINE,)),
        finding("r3", None, refusals=(Refusal.COMPLIANCE_INFEASIBLE,)),
    ]
    chosen = data.draw(st.lists(st.sampled_from(refused), min_size=1, unique=True))
    parts = data.draw(st.permutations([*findings, *chosen]))
    verdict = compose(parts, latency)

    assert verdict.decision is None
    assert verdict.findings == tuple(parts)
    assert verdict.latency == tuple(latency)
    assert verdict.triggers == ()
    assert verdict.envelopes.false_compliance_envelope is None
    assert verdict.envelopes.false_degradation_envelope is None
    reasons = {reason for part in chosen for reason in part.refusals}
    assert verdict.refusals == tuple(
        reason
        for reason in (Refusal.TEST_LARGER_THAN_BASELINE, Refusal.COMPLIANCE_INFEASIBLE)
        if reason in reasons
    )


def test_a_refused_latency_constraint_refuses_the_whole_too() -> None:
    """An enforced constraint that could never be decided stops the run."""
    verdict = compose(
        [finding("c", Decision.PASS)],
        [timing("p95", None, refusals=(Refusal.COMPLIANCE_INFEASIBLE,))],
    )

    assert (verdict.decision, verdict.refusals) == (None, (Refusal.COMPLIANCE_INFEASIBLE,))


def test_an_advisory_constraint_cannot_refuse_the_run() -> None:
    """The feasibility gate is for enforced latency (§12.5.3, §12.6); advisory is reported only."""
    verdict = compose(
        [finding("c", Decision.PASS)],
        [timing("p95", None, refusals=(Refusal.COMPLIANCE_INFEASIBLE,))],
        advisory=[Dimension.LATENCY],
    )

    assert verdict.decision is Decision.PASS


def test_with_nothing_enforced_the_run_cannot_fail() -> None:
    """Both advisory and both FAIL: PASS, and both failures reported."""
    verdict = compose(
        [finding("c", Decision.FAIL)], [timing("p", Decision.FAIL)], advisory=list(Dimension)
    )

    assert (verdict.decision, verdict.triggers) == (Decision.PASS, ())
    assert verdict.functional_decision is verdict.latency_decision is Decision.FAIL


def test_an_undecided_part_is_not_passed_over() -> None:
    """A criterion is never dropped: neither decided nor refused cannot become a PASS."""
    assert compose([finding("c", None)]).decision is not Decision.PASS


def test_findings_may_come_from_an_iterator() -> None:
    """Or be rejected; but a FAIL must not turn into a PASS."""
    parts = (part for part in [finding("c", Decision.FAIL)])

    assert compose(parts).decision is Decision.FAIL


def test_two_rule_sets_do_not_meet_in_one_verdict() -> None:
    """The rule set is chosen per contract: Wilson and exact findings cannot be mixed."""
    run = Tally(trials=100, passed=99)
    parts = [
        decide_compliance("a", run, 0.9, rule="wilson"),
        decide_compliance("b", run, 0.9, rule="exact"),
    ]

    with pytest.raises(ValueError, match="rule"):
        compose(parts)


def test_rates_and_latencies_are_decided_by_one_rule_set() -> None:
    """A Wilson rate beside an exact latency limit is a mixture too."""
    rates = [decide_compliance("c", Tally(trials=100, passed=99), 0.9, rule="wilson")]
    times = [decide_latency_limit("p95", [1.0] * 100, 0.95, 500.0, rule="exact")]

    with pytest.raises(ValueError, match="rule"):
        compose(rates, times)


# The consult-advice contract of companion §1.4.8 and §10.3, end to end


def consult_advice(rule: str) -> list[Finding]:
    assert rule in {"wilson", "exact"}
    chosen = "wilson" if rule == "wilson" else "exact"
    return [
        decide_regression(
            "well-formed",
            Tally(trials=1000, passed=953),
            Tally(trials=2000, passed=1902),
            rule=chosen,  # type: ignore[arg-type]
        ),
        decide_observational("no-self-harm", Tally(trials=200, passed=200)),
        decide_compliance(
            "layperson-readable",
            Tally(trials=800, passed=788),
            0.98,
            alpha=0.001,
            rule=chosen,  # type: ignore[arg-type]
        ),
    ]


@pytest.mark.parametrize("rule", ["wilson", "exact"])
def test_the_consult_advice_contract(rule: str) -> None:
    """PASS, PASS, FAIL: the contract FAILs by its third criterion, and shows all three."""
    verdict = compose(consult_advice(rule))

    assert verdict.decision is Decision.FAIL
    assert [part.decision for part in verdict.findings] == [
        Decision.PASS,
        Decision.PASS,
        Decision.FAIL,
    ]
    assert verdict.triggers == (Trigger(kind="criterion", name="layperson-readable"),)
    compared = verdict.findings[0]
    assert isinstance(compared.design, RegressionCutoff)
    # Nobody knows the baseline's true rate; at any the exact rules keep to alpha.
    alarm = compared.design.design_false_alarm
    assert alarm is not None
    assert verdict.envelopes.false_degradation_envelope == max(compared.design.alpha, alarm)
    cutoff = verdict.findings[2].cutoff
    assert cutoff is not None
    assert verdict.envelopes.false_compliance_envelope == pytest.approx(
        binom.sf(cutoff - 1, 800, 0.98)
    )
    assert (verdict.latency, verdict.latency_decision) == ((), None)


def test_the_numbers_of_the_consult_advice_contract() -> None:
    """By the errata: cutoff 939, bounds 0.9407165 and 0.9648907, and 200 probes without failure."""
    well_formed, self_harm, readable = consult_advice("wilson")

    assert well_formed.cutoff == 939
    assert well_formed.lower_bound == pytest.approx(0.9407165, abs=5e-8)
    assert readable.lower_bound == pytest.approx(0.9648907, abs=5e-8)
    assert "200 trials" in self_harm.statement
    assert "no population-level claim" in self_harm.statement
    assert "equivalence is not claimed" in well_formed.statement
    assert "were needed to show" in readable.statement


def test_real_findings_with_real_latencies_compose() -> None:
    """A FAIL in one dimension decides unless that dimension is advisory."""
    rates = [decide_compliance("c", Tally(trials=100, passed=99), 0.9, rule="wilson")]
    slow = [decide_latency_limit("p95", [900.0] * 100, 0.95, 500.0, rule="wilson")]

    assert compose(rates, slow).decision is Decision.FAIL
    assert compose(rates, slow).triggers == (Trigger(kind="latency", name="p95"),)
    assert compose(rates, slow, advisory=[Dimension.LATENCY]).decision is Decision.PASS


def test_a_refused_criterion_is_refused_in_company() -> None:
    """A verification of ten trials is refused; the same under smoke is decided."""
    run = Tally(trials=10, passed=10)
    other = decide_observational("o", run)

    assert compose([other, decide_compliance("c", run, 0.95, rule="wilson")]).decision is None
    smoke = decide_compliance("c", run, 0.95, intent=Intent.SMOKE, rule="wilson")
    assert compose([other, smoke]).decision is Decision.FAIL


def test_nothing_at_all_is_not_a_verdict() -> None:
    """What was not run is never PASS."""
    with pytest.raises(InvalidArgument, match="findings"):
        compose([])
