"""Gates: the numbers of the three documents, the grammar, what they take and what they decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from math import comb, log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm

from trialwise.errors import DesignRefused, InvalidArgument
from trialwise.model.claim import Claim, Input, PopulationClaim, Sampling
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.fingerprint import plan_differences, plan_hash
from trialwise.model.gate import (
    Basis,
    Expectation,
    Gate,
    Metrics,
    Reliability,
    Stability,
    find_target,
    targets_of,
)
from trialwise.model.matcher import AllOf, AnyOf, Exact, Matcher, Not, NumberSchema
from trialwise.model.metrics import (
    GateCheck,
    GateFinding,
    MetricsEvidence,
    ReliabilityEvidence,
    StabilityEvidence,
)
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.model.verdict import Decision, Verdict
from trialwise.procedures.composite import compose
from trialwise.procedures.metrics import Intervals
from trialwise.procedures.run_plan import plan_run
from trialwise.procedures.run_verdict import decide_run
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.trace_stability import TraceShape

OK, BAD = CheckResult.ok(), CheckResult.fail("no")
GONE = CheckResult.fail("no reply", reason=FailReason.NO_VALUE)
#: Two turns of one length, one call: three sub-scores are 1, and tokens make the fourth.
STEADY = TraceShape(
    total_calls=1, distinct_calls=1, distinct_tools=1, assistant_lengths=(9, 9), tokens=0.0
)


def holds(reply: object) -> bool:
    return bool(reply)


def costing(score: float) -> TraceShape:
    """A session whose weakest score is this one: 2000 tokens over what it took."""
    return replace(STEADY, tokens=2000 / score)


def expect(**asked: Matcher | float) -> tuple[Expectation, ...]:
    """`reliability_runs=3` for a target and its exact value, or a matcher."""
    return tuple(
        Expectation(
            target=name.replace("__", "."),
            matcher=Exact(value=one) if isinstance(one, int | float) else one,
        )
        for name, one in asked.items()
    )


def contract(
    *gates: Gate,
    inputs: int = 1,
    criteria: Sequence[str] = ("c",),
    claim: Claim | None = None,
    **question: Any,
) -> Contract:
    asked = question or {"never_fails": True}
    return Contract(
        "agent",
        holds,
        [Criterion(name, holds, **asked) for name in criteria],
        sampling=[f"question {number}" for number in range(inputs)],
        claim=claim or Claim(),
        **{gate.name: gate for gate in gates},  # type: ignore[arg-type]
    )


def plan(made: Contract, trials: int | None = None, **options: Any) -> Plan:
    return plan_run(
        made,
        RunOptions(trials=trials, **options),
        seed=1,
        structure={one.name: "s" for one in made.criteria},
        fingerprints={"inputs": "f"},
    )


def trial(index: int, input_id: str, *results: CheckResult, **given: Any) -> Trial:
    names = given.pop("names", ("c", "d"))
    error = given.get("error_class", ErrorClass.NONE)
    return Trial(
        experiment="inputs",
        index=index,
        input_id=input_id,
        seed=index,
        outcomes=tuple(
            Outcome(criterion=name, result=result, error_class=error)
            for name, result in zip(names, results, strict=False)
        ),
        **{"latency_s": 0.1, "shape": STEADY, **given},
    )


def judged(made: Plan, trials: Sequence[Trial], stop: StopReason = StopReason.COMPLETE) -> Verdict:
    return decide_run(
        made, trials, stops={"inputs": stop}, stop=stop, spending=Spending(trials=len(trials))
    )


def found(
    gate: Gate, outcomes: Mapping[str, Sequence[bool]] | Sequence[bool], **more: Any
) -> GateFinding:
    """What a gate finds of the outcomes of one input, or of several by name from "1"."""
    by_input = outcomes if isinstance(outcomes, Mapping) else {"1": outcomes}
    made = contract(gate, inputs=len(by_input), **more)
    trials = [
        trial(index, name, OK if one else BAD)
        for index, (name, one) in enumerate(
            (name, one) for name, each in by_input.items() for one in each
        )
    ]
    design = plan(made, trials=max(2 * len(by_input), len(trials)))
    (finding,) = judged(design, trials).gates
    return finding


def values(finding: GateFinding) -> dict[str, float | Undefined]:
    return {one.target: one.value for one in finding.checks}


def only(finding: GateFinding) -> GateCheck:
    (check,) = finding.checks
    return check


P, F = True, False
RELIABILITY = {name: NumberSchema(minimum=0) for name in targets_of("reliability")}
ALL = Reliability(
    expect=tuple(Expectation(target=name, matcher=one) for name, one in RELIABILITY.items())
)


# --- Reliability ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([P, P, P, F], (4, 100, 0, 87, 60)),
        ([F, P, P, P], (4, 100, 0, 87, 90)),
        ([P, F, P, F], (4, 100, 0, 100, 40)),
        ([P, P, P, P], (4, 100, 100, 0, 100)),
        ([F, F, F, F], (4, 0, 0, 0, 0)),
        ([P, P, F], (3, 100, 0, 94, 50)),
        ([P, F], (2, 100, 0, 100, 33)),
        # A half is rounded away from zero: 2.5 is 3.
        ([F, F, P, *[F] * 12], (15, 100, 0, 50, 3)),
    ],
)
def test_the_worked_numbers_of_the_reliability_report(
    outcomes: list[bool], expected: tuple[int, ...]
) -> None:
    """runs, pass_at_k, passhat_k, variance_amplification and graceful_degradation."""
    assert expected == tuple(values(found(ALL, outcomes)).values())


@pytest.mark.parametrize(
    ("outcomes", "curve"),
    [
        ([P, P, P, F], (100, 100, 100, 31)),
        ([F, P, P, P], (0, 25, 29, 31)),
        ([P, F, P, P], (100, 25, 29, 31)),
    ],
)
def test_the_decay_curve_need_not_fall(outcomes: list[bool], curve: tuple[int, ...]) -> None:
    """⌊100 (c/k)^k⌋ of the first k runs: it may rise, and depends on the order."""
    evidence = found(ALL, outcomes).evidence
    assert isinstance(evidence, ReliabilityEvidence)

    assert curve == evidence.inputs[0].summary.decay_curve == evidence.decay_curve


@pytest.mark.parametrize(
    ("half_width", "confidence", "wald", "wilson"),
    [
        (0.05, 0.95, 385, 381),
        (0.05, 0.90, 271, None),
        (0.05, 0.99, 664, None),
        (0.10, 0.95, 97, None),
        (0.02, 0.95, 2401, None),
        (0.01, 0.99, 16590, None),
    ],
)
def test_the_recommended_number_of_runs(
    half_width: float, confidence: float, wald: int, wilson: int | None
) -> None:
    """The published one, and the one of an interval that covers what it says."""
    gate = Reliability(half_width=half_width, confidence=confidence)
    evidence = found(gate, [P, F]).evidence
    assert isinstance(evidence, ReliabilityEvidence)
    advice = evidence.recommendation
    assert advice is not None

    assert wald == advice.wald
    assert wilson is None or wilson == advice.wilson


@pytest.mark.parametrize(("runs", "confidence"), [(2, 0.95), (9, 0.8), (40, 0.99)])
def test_what_the_runs_reach_is_the_widest_interval_of_wilson(runs: int, confidence: float) -> None:
    """At p̂ = ½, by the textbook's half-width."""
    evidence = found(Reliability(confidence=confidence), [P] * runs).evidence
    assert isinstance(evidence, ReliabilityEvidence)
    assert evidence.recommendation is not None
    z = float(norm.isf((1 - confidence) / 2))
    half = z / (1 + z * z / runs) * (0.25 / runs + z * z / (4 * runs**2)) ** 0.5

    assert half == pytest.approx(evidence.recommendation.reached)


def test_a_level_that_was_not_published_has_no_published_recommendation() -> None:
    """The other one is defined at every level."""
    evidence = found(Reliability(confidence=0.8), [P, F]).evidence
    assert isinstance(evidence, ReliabilityEvidence)
    assert evidence.recommendation is not None

    assert isinstance(evidence.recommendation.wald, Undefined)
    assert evidence.recommendation.wilson > 0


def test_several_inputs_have_means_and_are_never_pooled() -> None:
    """One that always passes and one that never does: half of them are reliable."""
    both = {"1": [P] * 5, "2": [F] * 5}

    assert (5, 50, 50, 0, 50) == tuple(values(found(ALL, both)).values())


def test_one_criterion_may_count_alone() -> None:
    """A run passes if all do, unless one is named."""
    for name, expected in ((None, 0), ("c", 100), ("d", 0)):
        gate = Reliability(expect=expect(reliability__passhat_k=expected), criterion=name)
        made = contract(gate, criteria=("c", "d"))
        trials = [trial(index, "1", OK, OK if index else BAD) for index in range(3)]
        (finding,) = judged(plan(made, trials=3), trials).gates
        assert Decision.PASS is finding.decision


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(st.booleans(), min_size=2, max_size=9), st.randoms())
def test_where_order_is_not_meant_it_does_not_matter(outcomes: list[bool], chance: Any) -> None:
    """But for the score that weighs late runs more."""
    metrics = Metrics(
        expect=expect(
            metrics__pass_rate=NumberSchema(minimum=0),
            metrics__pass_hat__2=NumberSchema(minimum=0),
            metrics__score=NumberSchema(minimum=0),
            metrics__flakiness=NumberSchema(minimum=0),
        )
    )
    shuffled = chance.sample(outcomes, len(outcomes))
    one, other = (values(found(ALL, each)) for each in (outcomes, shuffled))
    del one["reliability.graceful_degradation"], other["reliability.graceful_degradation"]

    assert one == other
    assert values(found(metrics, outcomes)) == values(found(metrics, shuffled))


# --- Stability --------------------------------------------------------------------------------


def sessions(gate: Stability, *shapes: TraceShape | None, inputs: int = 1) -> GateFinding:
    made = contract(gate, inputs=inputs)
    trials = [
        trial(index, str(1 + index % inputs), OK, shape=shape) for index, shape in enumerate(shapes)
    ]
    (finding,) = judged(plan(made, trials=len(trials)), trials).gates
    return finding


def test_the_worked_numbers_of_the_stability_report() -> None:
    """Weakest scores of .9 to .5: a mean of .7, a minimum of .5, a population variance of .02."""
    asked = expect(stability__score=0.7, stability__weakest_score=0.5, stability__variance=0.02)
    finding = sessions(Stability(expect=asked), *map(costing, (0.9, 0.8, 0.7, 0.6, 0.5)))

    assert Decision.PASS is finding.decision
    assert [True] * 3 == [one.holds for one in finding.checks]


def test_the_block_that_the_document_shows() -> None:
    """At least .7 on average, no run below .5, hardly any swing."""
    asked = expect(
        stability__score=NumberSchema(minimum=0.7),
        stability__weakest_score=NumberSchema(minimum=0.5),
        stability__variance=NumberSchema(maximum=0.05),
    )
    steady = sessions(Stability(expect=asked), *map(costing, (0.9, 0.8, 0.7, 0.6, 0.5)))
    swinging = sessions(Stability(expect=asked), *map(costing, (1.0, 1.0, 1.0, 0.3, 0.3)))

    assert Decision.PASS is steady.decision
    assert Decision.FAIL is swinging.decision
    assert [True, False, False] == [one.holds for one in swinging.checks]


@pytest.mark.parametrize(("weakest", "decision"), [(0.5, "PASS"), (0.49, "FAIL"), (1.0, "PASS")])
def test_the_default_gate_is_half(weakest: float, decision: str) -> None:
    """The worst run's weakest sub-score, at least 0.5."""
    finding = sessions(Stability(), costing(1.0), costing(weakest))

    assert (decision, "stability.weakest_score") == (finding.decision, only(finding).target)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        # Five calls of three tools; four equal calls; lengths 100 and 300; 3000 tokens, one call.
        (replace(STEADY, total_calls=5, distinct_calls=5, distinct_tools=3), 0.5),
        (replace(STEADY, total_calls=4), 0.25),
        (replace(STEADY, assistant_lengths=(100, 300)), 0.5),
        (replace(STEADY, tokens=3000.0), 2 / 3),
        (replace(STEADY, total_calls=2, distinct_calls=2, tokens=10_000.0), 0.4),
        # Two calls of two tools are harsh by definition.
        (replace(STEADY, total_calls=2, distinct_calls=2, distinct_tools=2), 0.0),
        # At most one turn and one call: nothing to measure, whatever it cost.
        (replace(STEADY, assistant_lengths=(9,), tokens=3000.0), 1.0),
        (replace(STEADY, total_calls=0, distinct_calls=0, distinct_tools=0, tokens=9.0), 0.0),
    ],
)
def test_the_weakest_sub_score_counts(shape: TraceShape, expected: float) -> None:
    """Each of the four by the document's formulas."""
    gate = Stability(expect=expect(stability__weakest_score=expected))

    assert expected == pytest.approx(only(sessions(gate, shape, shape)).value)


def test_a_sub_score_can_be_left_out_and_the_cost_moved() -> None:
    """Two calls of two tools at 3000 tokens each: harsh twice, and not at all."""
    harsh = replace(STEADY, total_calls=2, distinct_calls=2, distinct_tools=2, tokens=6000.0)
    spared = Stability(exclude=("tool_usage_stability",), tokens_per_call=3000)

    assert Decision.FAIL is sessions(Stability(), harsh, harsh).decision
    assert 1.0 == only(sessions(spared, harsh, harsh)).value


def test_drift_is_flagged_below_the_floors_and_decides_nothing() -> None:
    """Strictly below: a score at its floor has not drifted."""
    from trialwise.stats.trace_stability import StabilityFloors

    shape = replace(STEADY, total_calls=2, tokens=3000.0)
    gate = Stability(floors=StabilityFloors(redundancy=0.5, cost_per_progress=0.7))
    evidence = sessions(gate, shape, STEADY).evidence
    assert isinstance(evidence, StabilityEvidence)

    assert [("cost_per_progress",), ()] == [run.drift for run in evidence.runs]
    assert evidence.runs[0].weakest_score < evidence.runs[1].weakest_score


def test_inputs_that_differ_are_no_swing() -> None:
    """The variance is between runs of one input: two prompts of .5 and 1 have none."""
    asked = expect(stability__variance=0.0, stability__score=0.75)
    shapes = [costing(0.5), costing(1.0)] * 3

    assert Decision.PASS is sessions(Stability(expect=asked), *shapes, inputs=2).decision


def test_a_session_that_nobody_saw_leaves_no_pass() -> None:
    """It may have been the worst; but what is bad among the others is bad."""
    unseen = sessions(Stability(), STEADY, None, STEADY)
    failing = sessions(Stability(), costing(0.1), None, STEADY)

    assert Decision.INCONCLUSIVE is unseen.decision
    assert "1 run without a session" in unseen.caveats[0]
    assert Decision.FAIL is failing.decision
    assert Decision.INCONCLUSIVE is sessions(Stability(), None, None).decision


def test_sessions_too_short_to_measure_are_said_to_be() -> None:
    """They pass by definition, and the report says that nothing was measured, where all are."""
    short = replace(STEADY, assistant_lengths=(5,))
    finding = sessions(Stability(), short, short)
    others = [sessions(Stability(), *shapes) for shapes in ((short, STEADY), (None, None))]

    assert Decision.PASS is finding.decision
    assert "nothing was measured" in finding.caveats[0]
    assert not any("nothing was measured" in one for each in others for one in each.caveats)


# --- pass@k, scores ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trials", "passed", "expected"),
    [
        (5, 3, {1: (0.6, 0.6, 0.6), 2: (0.9, 0.3, 0.36), 3: (1, 0.1, 0.216)}),
        (5, 3, {4: (1, 0, 0.1296), 5: (1, 0, 0.07776)}),
        (10, 8, {1: (0.8, 0.8, 0.8), 2: (0.978, 0.622, 0.64), 3: (1, 0.467, 0.512)}),
    ],
)
def test_the_golden_vectors_of_pass_at_k(
    trials: int, passed: int, expected: dict[int, tuple[float, float, float]]
) -> None:
    """Unbiased pass@k and pass^k, and the plug-in under a name of its own."""
    outcomes = [P] * passed + [F] * (trials - passed)
    for k, (at, hat, plugin) in expected.items():
        gate = Metrics(
            expect=tuple(
                Expectation(target=f"metrics.{name}.{k}", matcher=NumberSchema(minimum=0))
                for name in ("pass_at", "pass_hat", "pass_hat_plugin")
            )
        )
        got = values(found(gate, outcomes)).values()
        assert (at, hat, plugin) == pytest.approx(tuple(got), abs=5e-4)


def test_the_worked_example_of_the_scoring_reference() -> None:
    """Four of five: .8, pass@5 of 1 and not .99, pass^5 of 0, and .328 by the plug-in."""
    gate = Metrics(
        k=(5,),
        expect=expect(
            metrics__pass_rate=0.8,
            metrics__pass_at__5=1.0,
            metrics__pass_at_naive__5=0.99968,
            metrics__pass_hat__5=0.0,
            metrics__pass_hat_plugin__5=0.32768,
            metrics__flaky=1,
            metrics__flakiness=20.0,
        ),
    )
    finding = found(gate, [P, P, F, P, P])

    assert [True] * 7 == [one.holds for one in finding.checks]
    assert isinstance(finding.evidence, MetricsEvidence)
    assert [5] == [row.k for row in finding.evidence.pass_k]


def test_the_mean_over_inputs_is_no_pooled_rate() -> None:
    """Five of five and none of five: pass^5 is .5 by either estimator, pooled it would be .031."""
    gate = Metrics(expect=expect(metrics__pass_hat__5=0.5, metrics__pass_hat_plugin__5=0.5))

    assert Decision.PASS is found(gate, {"1": [P] * 5, "2": [F] * 5}).decision


@given(
    st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=4),
    st.integers(1, 4),
)
@settings(max_examples=40)
def test_pass_k_is_the_share_of_the_subsets(outcomes: list[list[bool]], k: int) -> None:
    """Counted in fractions: 1 − C(n−c, k)/C(n, k) and C(c, k)/C(n, k), then the mean."""
    row = Intervals(PopulationClaim.FIXED_INPUTS, 0.95).pass_k(
        [(4, sum(each)) for each in outcomes], k
    )
    counts = [sum(each) for each in outcomes]
    at = sum((1 - Fraction(comb(4 - c, k), comb(4, k)) for c in counts), Fraction(0))
    hat = sum((Fraction(comb(c, k), comb(4, k)) for c in counts), Fraction(0))

    assert float(at / len(counts)) == pytest.approx(row.pass_at_k)
    assert float(hat / len(counts)) == pytest.approx(row.pass_hat_k)


def graded(gate: Metrics, marks: Sequence[tuple[bool, bool]]) -> GateFinding:
    made = contract(gate, criteria=("c", "d"))
    trials = [
        trial(index, "1", OK if one else BAD, OK if other else BAD)
        for index, (one, other) in enumerate(marks)
    ]
    (finding,) = judged(plan(made, trials=len(trials)), trials).gates
    return finding


def test_weights_and_a_threshold() -> None:
    """(1·1 + .5·0)/1.5 is .667, below .7: the run fails, and the skill with it."""
    gate = Metrics(
        weights={"c": 1.0, "d": 0.5},
        threshold=0.7,
        expect=expect(metrics__score=2 / 3, metrics__pass_rate=0.0),
    )
    finding = graded(gate, [(P, F), (P, F)])
    assert isinstance(finding.evidence, MetricsEvidence)

    assert Decision.PASS is finding.decision
    assert finding.evidence.passed is False
    assert 2 / 3 == pytest.approx(finding.evidence.inputs[0].score)


def test_a_score_that_reaches_its_threshold_passes() -> None:
    """Weights of 7 and 3 and a mark of the first: .7 reaches .7, compared as written."""
    gate = Metrics(
        weights={"c": 0.7, "d": 0.3}, threshold=0.7, expect=expect(metrics__pass_rate=1.0)
    )
    finding = graded(gate, [(P, F), (P, F)])
    assert isinstance(finding.evidence, MetricsEvidence)

    assert (Decision.PASS, True) == (finding.decision, finding.evidence.passed)


def test_every_criterion_has_a_table_of_its_own() -> None:
    """And the runs that pass as a whole have one."""
    finding = graded(Metrics(k=(1, 2)), [(P, F), (P, P), (P, F)])
    assert isinstance(finding.evidence, MetricsEvidence)
    tables = {one.criterion: one.pass_k[1].pass_hat_k for one in finding.evidence.criteria}

    assert {"c": 1.0, "d": 0.0} == tables
    assert finding.evidence.pass_k[1].pass_at_k == pytest.approx(2 / 3)
    assert (None, "Reported; nothing was asked of it.") == (finding.decision, finding.statement)


def test_what_was_not_tried_is_unscored_and_enters_no_mean() -> None:
    """An input without a run is kept and named; as 0 it would punish what nobody measured."""
    made = contract(Metrics(), inputs=2)
    (finding,) = judged(plan(made, trials=2), [trial(0, "1", OK)], StopReason.INTERRUPTED).gates
    assert isinstance(finding.evidence, MetricsEvidence)

    assert (("2",), 1.0) == (finding.evidence.unscored, finding.evidence.score)


# --- Intervals --------------------------------------------------------------------------------


def test_one_input_has_the_exact_interval() -> None:
    """Clopper and Pearson's by the beta distribution, to the k-th power.

    Of ten runs two failed, so each three of them hold a pass: the estimate of pass@3 is 1.
    """
    row = Intervals(PopulationClaim.FIXED_INPUTS, 0.9).pass_k([(10, 8)], 3)
    low, high = beta.ppf(0.05, 8, 3), beta.ppf(0.95, 9, 2)
    assert isinstance(row.pass_hat_k_interval, Interval)
    assert isinstance(row.pass_at_k_interval, Interval)

    assert (low**3, high**3) == pytest.approx(tuple(row.pass_hat_k_interval))
    assert (1 - (1 - low) ** 3, 1) == pytest.approx(tuple(row.pass_at_k_interval))
    assert 1 - (1 - high) ** 3 < 1


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_mean_over_these_inputs_is_covered(k: int) -> None:
    """Two inputs of unlike rates, 7 and 6 trials: every pair of counts, at the nominal level.

    What two intervals have in common is shorter than either would be alone.
    """
    rows = {
        (a, b): Intervals(PopulationClaim.FIXED_INPUTS, 0.9).pass_k([(7, a), (6, b)], k)
        for a, b in product(range(8), range(7))
    }
    for p, q in [(0.5, 0.5), (0.9, 0.1), (0.99, 0.95), (0.3, 0.8), (1.0, 0.0)]:
        at, hat = 1 - ((1 - p) ** k + (1 - q) ** k) / 2, (p**k + q**k) / 2
        covered = [0.0, 0.0]
        for (a, b), row in rows.items():
            chance = binom.pmf(a, 7, p) * binom.pmf(b, 6, q)
            for place, (truth, interval) in enumerate(
                ((at, row.pass_at_k_interval), (hat, row.pass_hat_k_interval))
            ):
                assert isinstance(interval, Interval)
                covered[place] += chance * (interval.low <= truth <= interval.high)
        assert min(covered) >= 0.9 - 1e-12


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), min_size=1, max_size=5),
    st.sampled_from([0.8, 0.95]),
)
@settings(max_examples=30)
def test_the_ends_move_with_k_as_the_figure_does(
    counts: list[tuple[int, int]], confidence: float
) -> None:
    """pass@k cannot fall with k and pass^k cannot rise; each estimate is inside its interval."""
    tasks = [(trials, min(passed, trials)) for trials, passed in counts]
    rows = [
        Intervals(PopulationClaim.FIXED_INPUTS, confidence).pass_k(tasks, k)
        for k in range(1, min(trials for trials, _ in tasks) + 1)
    ]
    for row in rows:
        assert isinstance(row.pass_at_k_interval, Interval)
        assert isinstance(row.pass_hat_k_interval, Interval)
        assert isinstance(row.pass_at_k, float)
        assert isinstance(row.pass_hat_k, float)
        assert row.pass_at_k in row.pass_at_k_interval
        assert row.pass_hat_k in row.pass_hat_k_interval
    for row, later in pairwise(rows):
        for one, other in zip(row.pass_at_k_interval, later.pass_at_k_interval, strict=True):  # type: ignore[arg-type]
            assert one <= other + 1e-12
        for one, other in zip(row.pass_hat_k_interval, later.pass_hat_k_interval, strict=True):  # type: ignore[arg-type]
            assert one >= other - 1e-12


def test_the_ends_of_the_report_move_with_k() -> None:
    """Four inputs with 5 trials each: the lower end of pass@2 is not below that of pass@1."""
    tasks = [(5, 5), (5, 2), (5, 2), (5, 1)]
    lows = [
        Intervals(PopulationClaim.FIXED_INPUTS, 0.95).pass_k(tasks, k).pass_at_k_interval
        for k in (1, 2, 5)
    ]
    ends = [one.low for one in lows if isinstance(one, Interval)]

    assert 3 == len(ends)
    assert ends == sorted(ends)


def test_no_pass_in_every_run_has_its_own_estimate_inside() -> None:
    """A single input PFPFP: it was not passed in all five runs, and 0 is in the interval."""
    checks = {one.target: one for one in found(ALL, {"1": [P, F, P, F, P]}).checks}
    every = checks["reliability.passhat_k"]

    assert 0 == every.value
    assert isinstance(every.interval, Interval)
    assert 0 in every.interval


@pytest.mark.slow("rates2")
@pytest.mark.parametrize("rates", [(0.5,), (0.9,), (0.2, 0.95)])
def test_the_spread_and_the_late_runs_are_covered(rates: tuple[float, ...]) -> None:
    """2√(p(1−p)) and the rate, by every outcome of 4 runs of each input."""
    spread = 100 * sum(2 * (p * (1 - p)) ** 0.5 for p in rates) / len(rates)
    rate = 100 * sum(rates) / len(rates)
    covered = [0.0, 0.0]
    for outcome in product(product((F, P), repeat=4), repeat=len(rates)):
        chance = 1.0
        for p, each in zip(rates, outcome, strict=True):
            for one in each:
                chance *= p if one else 1 - p
        checks = found(ALL, {str(k): each for k, each in enumerate(outcome, start=1)}).checks
        for place, (truth, check) in enumerate(((spread, checks[3]), (rate, checks[4]))):
            assert isinstance(check.interval, Interval)
            covered[place] += chance * (truth in check.interval)

    assert min(covered) >= 0.95


def test_good_inputs_have_short_intervals_on_both_sides() -> None:
    """Ten of ten and nine of ten: the means are 1 for any of ten runs and .85 for all of three."""
    tasks = [(10, 10), (10, 9)]
    some = Intervals(PopulationClaim.FIXED_INPUTS, 0.95).pass_k(tasks, 10).pass_at_k_interval
    every = Intervals(PopulationClaim.FIXED_INPUTS, 0.95).pass_k(tasks, 3).pass_hat_k_interval
    assert isinstance(some, Interval)
    assert isinstance(every, Interval)
    # The exact one of each input at 1 − α/4, and the bound of six values at 1 − α/2.
    low = [beta.ppf(0.00625, passed, 11 - passed) for passed in (10, 9)]

    assert sum(1 - (1 - p) ** 10 for p in low) / 2 == pytest.approx(some.low)

    def divergence(m: float) -> float:
        return 0.85 * log(0.85 / m) + 0.15 * log(0.15 / (1 - m)) - log(4 / 0.05) / 6

    assert brentq(divergence, 1e-9, 0.85) == pytest.approx(every.low)


def test_a_score_of_several_inputs_is_bounded_over_all_their_runs() -> None:
    """kl(.75, m) ≤ ln(40)/(2·3), solved in the statistics' own tests."""
    from trialwise.stats.bounded_means import bounded_mean_interval

    asked = Stability(expect=expect(stability__score=NumberSchema(minimum=0)))
    shapes = [costing(0.5), costing(1.0)] * 3

    assert tuple(bounded_mean_interval(0.75, 6)) == pytest.approx(
        tuple(only(sessions(asked, *shapes, inputs=2)).interval)  # type: ignore[arg-type]
    )


def test_what_estimates_nothing_has_no_interval() -> None:
    """Counts, and the worst of these runs; each says why."""
    asked = expect(metrics__flaky=0, metrics__unscored=0)
    for check in found(Metrics(expect=asked), [P, P]).checks:
        assert isinstance(check.interval, Undefined)
    weakest = only(sessions(Stability(), STEADY, STEADY))
    assert isinstance(weakest.interval, Undefined)
    assert "further runs may be worse" in weakest.interval.reason


def test_an_interval_is_about_what_the_run_claims() -> None:
    """These inputs, their population, or nothing beyond the trials."""
    gate = Metrics(expect=expect(metrics__pass_rate=NumberSchema(minimum=0)))
    outcomes = {"1": [P] * 4, "2": [P, F, P, F]}
    population = Claim(
        population=PopulationClaim.SUPERPOPULATION, population_name="p", representativeness="r"
    )
    nothing = Claim(population=PopulationClaim.NO_GENERALISATION)
    here, there, nowhere = (
        only(found(gate, outcomes, claim=claim)).interval for claim in (None, population, nothing)
    )

    assert isinstance(here, Interval)
    assert isinstance(there, Interval)
    assert ("these inputs" in here.method, "population" in there.method) == (True, True)
    assert here.width < there.width
    assert isinstance(nowhere, Undefined)


def test_a_pass_with_a_wide_interval_says_so() -> None:
    """It passes all the same: the gate has no error rate to keep."""
    gate = Metrics(expect=expect(metrics__pass_rate=NumberSchema(minimum=0.9)))
    finding = found(gate, [P, P, P])

    assert Decision.PASS is finding.decision
    assert ("The interval reaches beyond the limit, for metrics.pass_rate.",) == finding.caveats


# --- The grammar ------------------------------------------------------------------------------

NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 0.25, -0.5])
KEYWORDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
}


@given(st.dictionaries(st.sampled_from(sorted(KEYWORDS)), NUMBERS, min_size=1), NUMBERS)
def test_limits_mean_what_json_schema_says(limits: dict[str, float], number: float) -> None:
    """By a validator of draft 2020-12."""
    try:
        matcher = NumberSchema(**limits)
    except InvalidArgument:
        assert limits.keys() & {"minimum", "exclusive_minimum"}
        assert limits.keys() & {"maximum", "exclusive_maximum"}
        return
    schema = {KEYWORDS[name]: limit for name, limit in limits.items()}

    assert Draft202012Validator(schema).is_valid(number) is matcher.holds(number)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_combinations_are_those_of_logic(low: float, exact: float, number: float) -> None:
    """not, all_of and any_of."""
    one, other = NumberSchema(minimum=low), Exact(value=exact)

    assert (number >= low) is not Not(matcher=one).holds(number)
    assert (number >= low and number == exact) is AllOf(matchers=(one, other)).holds(number)
    assert (number >= low or number == exact) is AnyOf(matchers=(one, other)).holds(number)


def test_a_number_that_rounding_moved_is_at_its_limit() -> None:
    """0.1 + 0.2 is .3, and not more than it."""
    near = 0.1 + 0.2

    assert Exact(value=0.3).holds(near)
    assert NumberSchema(maximum=0.3).holds(near)
    assert not NumberSchema(exclusive_minimum=0.3).holds(near)
    assert not Exact(value=0.3).holds(0.3000001)


def test_a_number_is_never_shown_on_the_other_side_of_its_limit() -> None:
    """.69999 misses .7, and is not printed as .7."""
    gate = Stability(expect=expect(stability__score=NumberSchema(minimum=0.7)))
    finding = sessions(gate, costing(0.69999), costing(0.69999))

    assert "stability.score 0.69999 misses at least 0.7." == finding.statement


def test_matchers_read_as_sentences() -> None:
    """With brackets where they would be read otherwise."""
    between = NumberSchema(minimum=0.2, exclusive_maximum=0.8)
    either = AnyOf(matchers=(Exact(value=1), between))

    assert "at least 0.2 and below 0.8" == str(between)
    assert "not (exactly 1 or (at least 0.2 and below 0.8))" == str(Not(matcher=either))
    assert "above 1 and not at most 3" == str(
        AllOf(matchers=(NumberSchema(exclusive_minimum=1), Not(matcher=NumberSchema(maximum=3))))
    )


def _basis(path: str) -> Basis:
    found = find_target(path)
    assert found is not None
    return found.basis


@pytest.mark.parametrize(
    "target",
    ["stability.weakest", "reliability.decay_curve", "metrics.pass_at", "metrics.pass_at.0",
     "metrics.pass_at.K", "metrics.pass_at.x", "score", ""],
)  # fmt: skip
def test_an_unknown_target_is_an_error(target: str) -> None:
    """Not a null that passes."""
    with pytest.raises(InvalidArgument, match="target"):
        Expectation(target=target, matcher=Exact(value=1))


def test_every_target_says_what_kind_of_number_it_is() -> None:
    """Counts, estimates with and without bias, and heuristics."""
    assert Basis.COUNT is _basis("reliability.runs")
    assert Basis.UNBIASED is _basis("metrics.pass_hat.12")
    assert Basis.PLUG_IN is _basis("metrics.pass_at_naive.2")
    assert Basis.COUNT is _basis("stability.drifted")
    heuristics = set(targets_of("stability")) - {"stability.drifted"}
    assert {Basis.HEURISTIC} == {_basis(one) for one in heuristics}


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (NumberSchema, "schema"),
        (lambda: NumberSchema(minimum=2, maximum=1), "schema"),
        (lambda: Exact(value=float("nan")), "exact"),
        (lambda: AllOf(matchers=()), "all_of"),
        (lambda: AnyOf(matchers=()), "any_of"),
        (lambda: Reliability(expect=expect(stability__score=1)), "target"),
        (lambda: Reliability(half_width=0.5), "half_width"),
        (lambda: Stability(exclude=("cost",)), "exclude"),
        (lambda: Metrics(k=(0,)), "k"),
        (lambda: Metrics(weights={"c": 0}), r"weights\['c'\]"),
        (lambda: Metrics(criterion="c", threshold=0.5), "criterion"),
        (lambda: Metrics(confidence=1), "confidence"),
        (lambda: contract(Metrics(weights={"c": 1, "e": 1}), criteria=("c", "d")), "weights"),
        (lambda: contract(Reliability(criterion="e")), "criterion"),
        (lambda: contract(Stability(sampling="elsewhere")), "sampling"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Any, argument: str) -> None:
    """By the name of what is wrong."""
    with pytest.raises(InvalidArgument, match=argument):
        make()


def test_all_four_sub_scores_cannot_be_left_out() -> None:
    """One must remain."""
    from trialwise.stats.trace_stability import SUB_SCORES

    with pytest.raises(InvalidArgument, match="at least one"):
        Stability(exclude=SUB_SCORES)


# --- What they take ---------------------------------------------------------------------------

FEW = [
    (Reliability(), {"inputs": 3}, {"trials": 5}, "at least 6 trials"),
    (Stability(), {}, {"trials": 1}, "some would get one"),
    (Stability(), {"at_least": 0.9}, {}, "c may stop early"),
    (Stability(), {"at_least": 0.9}, {"max_trials": 40}, "c may stop early"),
    (Stability(), {"inputs": 2}, {"trials": 50, "draw": "independent"}, "draw balanced"),
    (Stability(), {"inputs": 2}, {}, "give `trials`, at least 4"),
    (Metrics(expect=expect(metrics__pass_hat__5=1)), {}, {"trials": 4}, "at least 5 runs"),
]


@pytest.mark.slow("gate3-made3-options3-c may stop early")
@pytest.mark.parametrize(("gate", "made", "options", "reason"), FEW)
def test_a_design_without_the_runs_is_refused(
    gate: Gate, made: dict[str, Any], options: dict[str, Any], reason: str
) -> None:
    """Before the first trial."""
    whole = contract(gate, **made)
    with pytest.raises(DesignRefused, match=reason):
        plan(whole, **options)


@pytest.mark.parametrize(
    ("gate", "made", "options"),
    [
        (Reliability(), {"inputs": 3}, {"trials": 6}),
        (Stability(), {"at_least": 0.9, "trials": 40, "inputs": 20}, {}),
        (Stability(), {"each_input": True, "trials": 2, "never_fails": True, "inputs": 7}, {}),
        (Reliability(), {}, {}),  # a hundred probes
        (Stability(), {"at_least": 0.9}, {"trials": 40, "draw": "independent"}),  # of one input
        (Metrics(), {"at_least": 0.9}, {}),  # shown of whatever there is
    ],
)
def test_a_design_with_the_runs_is_admitted(
    gate: Gate, made: dict[str, Any], options: dict[str, Any]
) -> None:
    whole = contract(gate, **made)

    assert "inputs" == plan(whole, **options).gates[0].sampling


@pytest.mark.parametrize(("trials", "is_enough"), [(5, False), (6, True), (11, True)])
def test_runs_of_inputs_that_are_repeated_unlike(trials: int, is_enough: bool) -> None:
    """Twice and four times in six draws: every input has its two runs once all six are made."""
    inputs = (Input(id="a", value=1, repetitions=2), Input(id="b", value=2, repetitions=4))
    whole = Contract(
        "agent",
        holds,
        [Criterion("c", holds, never_fails=True)],
        sampling=Sampling(inputs=inputs),
        reliability=Reliability(),
    )

    if is_enough:
        assert "inputs" == plan(whole, trials=trials).gates[0].sampling
    else:
        with pytest.raises(DesignRefused, match="at least 2 runs of each input"):
            plan(whole, trials=trials)


def test_a_corpus_tried_once_has_no_repeated_runs() -> None:
    """Every input at most once, whatever the number of trials."""
    corpus = Claim(population=PopulationClaim.FINITE_CORPUS)
    with pytest.raises(DesignRefused, match="at least 2 runs of each input"):
        plan(contract(Reliability(), inputs=40, claim=corpus, at_least=0.5))


def test_gated_trials_are_all_run() -> None:
    """A criterion that is certain early must not take the gate's runs away."""
    made = contract(Stability(), at_least=0.5, trials=20)

    assert [False] == [one.counting.curtailed for one in plan(made).criteria]
    assert [True] == [
        one.counting.curtailed for one in plan(contract(at_least=0.5, trials=20)).criteria
    ]


def test_a_baseline_is_measured_without_gates() -> None:
    """Nothing is decided then."""
    made = contract(Stability(), no_worse_than="baseline")
    whole = plan_run(
        made,
        RunOptions(),
        seed=1,
        structure={"c": "s"},
        fingerprints={"inputs": "f"},
        measuring=True,
    )

    assert () == whole.gates


def test_a_plan_is_known_by_its_gates() -> None:
    """Trials of a run with another gate are not gone on with; without any, nothing has changed."""
    plain, gated = (plan(contract(*gates), trials=4) for gates in ((), (Stability(),)))
    other = plan(contract(Stability(tokens_per_call=100)), trials=4)

    assert 3 == len({plan_hash(plain), plan_hash(gated), plan_hash(other)})
    assert any("gates" in one for one in plan_differences(gated, other))
    assert any("gates" in one for one in plan_differences(plain, gated))


# --- What they decide -------------------------------------------------------------------------


def test_a_failed_gate_fails_the_run_and_enters_no_envelope() -> None:
    """Whatever the criteria say."""
    made = contract(Stability(), at_least=0.5, trials=20)
    trials = [trial(index, "1", OK, shape=costing(0.1)) for index in range(20)]
    verdict = judged(plan(made), trials)
    plain = judged(plan(contract(at_least=0.5, trials=20)), trials)

    assert (Decision.FAIL, Decision.PASS) == (verdict.decision, verdict.functional_decision)
    assert [("gate", "stability")] == [(one.kind, one.name) for one in verdict.triggers]
    assert plain.envelopes.false_compliance_envelope == verdict.envelopes.false_compliance_envelope


def test_a_gate_that_asks_nothing_decides_nothing() -> None:
    """It is reported."""
    made = contract(Reliability(), Metrics(), never_fails=True)
    verdict = judged(plan(made, trials=2), [trial(0, "1", OK), trial(1, "1", OK)])

    assert Decision.PASS is verdict.decision
    assert [None, None] == [gate.decision for gate in verdict.gates]


@pytest.mark.parametrize("stop", [one for one in StopReason if one.is_premature])
def test_a_run_cut_short_decides_no_gate(stop: StopReason) -> None:
    """Three of five runs, all of them bad, are not the five that were asked for."""
    made = contract(Stability(), never_fails=True)
    trials = [trial(index, "1", OK, shape=costing(0.1)) for index in range(3)]
    verdict = judged(plan(made, trials=5), trials, stop)
    (gate,) = verdict.gates

    assert Decision.INCONCLUSIVE is gate.decision
    assert "3 of 5 planned trials" in gate.statement
    assert verdict.decision is not Decision.PASS


def test_nothing_run_is_nothing_decided() -> None:
    """And no number is made up."""
    made = contract(Stability(), ALL, Metrics(expect=expect(metrics__score=1)))
    verdict = judged(plan(made, trials=4), [], StopReason.INTERRUPTED)

    assert {Decision.INCONCLUSIVE} == {gate.decision for gate in verdict.gates}
    assert all(isinstance(one.value, Undefined) for gate in verdict.gates for one in gate.checks)


def test_excused_runs_are_left_out_per_protocol_only() -> None:
    """Every run counts, unless the verdict names another analysis."""
    asked = Reliability(expect=expect(reliability__passhat_k=100))
    trials = [
        trial(0, "1", OK),
        trial(1, "1", GONE, error_class=ErrorClass.INFRASTRUCTURE, shape=None, latency_s=None),
        trial(2, "1", OK),
    ]
    every, fair = (
        judged(plan(contract(asked), trials=3, analysis=analysis), trials).gates[0]
        for analysis in ("intent-to-treat", "per-protocol")
    )

    assert (Decision.FAIL, 3) == (every.decision, every.runs)
    assert (Decision.PASS, 2) == (fair.decision, fair.runs)


def test_the_heuristics_are_named() -> None:
    """Of five targets of the reliability report, two are."""
    finding = found(ALL, [P, F])

    assert (
        "reliability.variance_amplification",
        "reliability.graceful_degradation",
    ) == finding.heuristics


def test_gates_compose_like_criteria() -> None:
    """FAIL beats INCONCLUSIVE beats PASS."""
    failing, open_, passing = (
        replace(found(ALL, [P, F]), decision=one)
        for one in (Decision.FAIL, Decision.INCONCLUSIVE, Decision.PASS)
    )
    criterion = judged(plan(contract(), trials=1), [trial(0, "1", OK)]).findings

    assert Decision.FAIL is compose(criterion, gates=[open_, failing]).decision
    assert Decision.INCONCLUSIVE is compose(criterion, gates=[open_, passing]).decision
    assert () == compose(criterion, gates=[passing]).triggers
