"""A gate's numbers beside what is asked of them: their intervals, and limits they can meet."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from trialwise.errors import InvalidArgument
from trialwise.model.claim import PopulationClaim
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import StopReason
from trialwise.model.gate import (
    Expectation,
    Metrics,
    Reliability,
    Stability,
    find_target,
    targets_of,
)
from trialwise.model.matcher import AllOf, AnyOf, Exact, Matcher, Not, NumberSchema, may_hold
from trialwise.model.metrics import GateFinding
from trialwise.model.options import RunOptions
from trialwise.model.trial import Analysis, CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.model.trial_table import TrialTable
from trialwise.model.verdict import Decision
from trialwise.procedures.gate_measures import (
    measure_reliability,
    measure_scores,
    measure_stability,
)
from trialwise.procedures.gates import PROCEDURE as GATES
from trialwise.procedures.metrics import Intervals, Measured
from trialwise.procedures.run_plan import plan_run
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.trace_stability import TraceShape

PASSED, FAILED = CheckResult.ok(), CheckResult.fail("no")


def trials(*records: str, shape: TraceShape | None = None) -> dict[str, list[Trial]]:
    """The runs of each input, by letters."""
    return {
        str(name): [
            Trial(
                experiment="inputs",
                index=index,
                input_id=str(name),
                seed=0,
                outcomes=(Outcome(criterion="c", result=PASSED if one == "P" else FAILED),),
                latency_s=0.1,
                shape=shape,
            )
            for index, one in enumerate(record)
        ]
        for name, record in enumerate(records)
    }


def scored(
    *records: str, reach: PopulationClaim = PopulationClaim.FIXED_INPUTS, **asked: Any
) -> dict[str, Measured]:
    runs = trials(*records)
    _, found = measure_scores(Metrics(**asked), runs, dict.fromkeys(runs, ("c",)), reach)
    return dict(found)


def relied(
    *records: str, reach: PopulationClaim = PopulationClaim.FIXED_INPUTS
) -> dict[str, Measured]:
    runs = trials(*records)
    _, found = measure_reliability(Reliability(), runs, dict.fromkeys(runs, ("c",)), reach)
    return dict(found)


def interval(measured: Measured) -> Interval:
    assert isinstance(measured.interval, Interval)
    return measured.interval


# --- Every number -----------------------------------------------------------------------------


def test_every_target_that_needs_no_k_has_a_number() -> None:
    """Whatever is asked; of a session that is seen, the three of stability too."""
    seen = TraceShape(
        total_calls=1, distinct_calls=1, distinct_tools=1, assistant_lengths=(9, 9), tokens=0.0
    )
    _, steady = measure_stability(
        Stability(), trials("PP", shape=seen), {}, PopulationClaim.FIXED_INPUTS
    )
    found = scored("PP") | relied("PP") | dict(steady)
    named = {one for gate in ("reliability", "stability", "metrics") for one in targets_of(gate)}

    assert {one for one in named if find_target(one)} == set(found)
    assert all(not isinstance(one.value, Undefined) for one in found.values())


def test_without_a_run_every_number_is_undefined() -> None:
    """And so is every interval."""
    for found in (scored(""), relied("")):
        assert all(isinstance(part, Undefined) for one in found.values() for part in one)


# --- Flakiness --------------------------------------------------------------------------------


@pytest.mark.slow("rates3", "rates4")
@pytest.mark.parametrize("rates", [(0.5,), (0.9,), (0.02,), (0.3, 0.95), (0.5, 1.0)])
def test_the_interval_of_flakiness_covers(rates: tuple[float, ...]) -> None:
    """100·min(p, 1 − p), a mean over inputs, by every pair of counts of six runs."""
    truth = 100 * sum(min(p, 1 - p) for p in rates) / len(rates)
    covered = 0.0
    for counts in product(range(7), repeat=len(rates)):
        chance = math.prod(float(binom.pmf(c, 6, p)) for c, p in zip(counts, rates, strict=True))
        low, high = interval(
            scored(*("P" * c + "F" * (6 - c) for c in counts))["metrics.flakiness"]
        )
        assert 0 <= low <= high <= 50
        covered += chance * (low - 1e-9 <= truth <= high + 1e-9)

    assert covered >= 0.95


def test_a_biased_figure_has_no_interval_over_a_population() -> None:
    """Six runs that agree are no sign that the population's inputs do."""
    records = ("PPPPPP", "PPPPPF", "FFFFFF")
    for found, target in (
        (scored(*records, reach=PopulationClaim.SUPERPOPULATION), "metrics.flakiness"),
        (
            relied(*records, reach=PopulationClaim.SUPERPOPULATION),
            "reliability.variance_amplification",
        ),
    ):
        reason = found[target].interval
        assert isinstance(reason, Undefined)
        assert "biased" in reason.reason


@pytest.mark.parametrize("target", ["metrics.flakiness", "reliability.variance_amplification"])
def test_a_claim_of_nothing_has_no_interval(target: str) -> None:
    """The trials are known."""
    nothing = PopulationClaim.NO_GENERALISATION
    found = (scored("PPF", reach=nothing) | relied("PPF", reach=nothing))[target].interval

    assert isinstance(found, Undefined)
    assert "no further than these trials" in found.reason


# --- Degradation and variance -----------------------------------------------------------------


@pytest.mark.parametrize(
    "records",
    [("PF",), ("PPF",), ("FPPFP",), ("FFP" + 12 * "F",), (30 * "PPF", 10 * "FP")],
    ids=lambda records: "-".join(map(str, map(len, records))),
)
def test_the_interval_is_around_what_was_not_yet_rounded(records: tuple[str, ...]) -> None:
    """Σ i·pass/Σ i ± √(ln(2/α) Σw²/2), where the score itself is a whole percent.

    Every input counts alike, however many runs it has.
    """
    share, squares = Fraction(0), Fraction(0)
    for record in records:
        total = sum(range(1, len(record) + 1))
        for place, one in enumerate(record, start=1):
            weight = Fraction(place, total) / len(records)
            share += weight * (one == "P")
            squares += weight**2
    half = math.sqrt(math.log(2 / 0.05) * squares / 2)
    low, high = interval(relied(*records)["reliability.graceful_degradation"])

    assert (100 * max(0, share - half), 100 * min(1, share + half)) == pytest.approx((low, high))


@pytest.mark.parametrize("rates", [(0.5,), (0.1, 0.9), (0.5, 1.0)])
def test_a_variance_over_a_population_is_covered(rates: tuple[float, ...]) -> None:
    """Three inputs drawn from these, two runs each that score 1 or 0, by every outcome."""
    truth = sum(q * (1 - q) for q in rates) / len(rates)
    # What one input shows: the number of ones among its two runs.
    chance = [sum(float(binom.pmf(c, 2, q)) for q in rates) / len(rates) for c in range(3)]
    covered = 0.0
    for counts in combinations_with_replacement(range(3), 3):
        ways = math.factorial(3)
        for repeats in Counter(counts).values():
            ways //= math.factorial(repeats)
        scores = [[1.0] * c + [0.0] * (2 - c) for c in counts]
        found = Intervals(PopulationClaim.SUPERPOPULATION, 0.9).of_variance(scores)
        assert isinstance(found, Interval)
        assert 0 <= found.low <= found.high <= 0.25
        covered += ways * math.prod(chance[c] for c in counts) * (truth in found)

    assert covered >= 0.9


def test_a_variance_over_a_population_is_a_share_of_the_greatest() -> None:
    """Three inputs of three runs: variances of ⅓, ⅓ and 0 are 16/27 of 3/8, a mean of three.

    The population's is at most a quarter, whatever the bound says. Of forty inputs that never
    varied it is at most a share of 1 − (α/2)^(1/40).
    """
    scores = [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    share = 2 / 9 / (3 / 8)

    def spent(m: float) -> float:
        return (
            share * math.log(share / m)
            + (1 - share) * math.log((1 - share) / (1 - m))
            - math.log(2 / 0.2) / 3
        )

    found = Intervals(PopulationClaim.SUPERPOPULATION, 0.8).of_variance(scores)
    assert isinstance(found, Interval)

    assert 3 / 8 * brentq(spent, 1e-12, share) == pytest.approx(found.low)
    assert 3 / 8 * brentq(spent, share, 1 - 1e-12) > found.high == 0.25
    still = Intervals(PopulationClaim.SUPERPOPULATION, 0.8).of_variance([[0.7] * 3] * 40)
    assert isinstance(still, Interval)
    assert (0.0, 3 / 8 * (1 - 0.1 ** (1 / 40))) == pytest.approx(tuple(still))


def test_one_input_is_no_population() -> None:
    """Of itself it tells: a score of 1 in all of n runs is at least (α/2)^(1/n)."""
    here = interval(scored("PPPP")["metrics.score"])
    beyond = scored("PPPP", reach=PopulationClaim.SUPERPOPULATION)["metrics.score"].interval

    assert (0.025**0.25, 1.0) == pytest.approx(tuple(here))
    assert isinstance(beyond, Undefined)
    assert "at least two inputs" in beyond.reason


# --- Judges -----------------------------------------------------------------------------------

SILENT = CheckResult.fail("no verdict", reason=FailReason.NO_VALUE)
EVERY = NumberSchema(minimum=100)
RELIED = Reliability(expect=(Expectation(target="reliability.passhat_k", matcher=EVERY),))
SCORED = Metrics(expect=(Expectation(target="metrics.pass_rate", matcher=NumberSchema(minimum=1)),))


def holds(_reply: object) -> bool:
    return True


def judged(
    gate: Reliability | Metrics, *runs: str, advising: str = "", **options: Any
) -> GateFinding:
    """What a gate finds of runs of two criteria: P passes, F fails, a dot is a silent judge."""
    contract = Contract(
        "agent",
        holds,
        [Criterion(name, holds, never_fails=True) for name in ("c", "j")],
        sampling=["question"],
        **{gate.name: gate},  # type: ignore[arg-type]
    )
    plan = plan_run(
        contract,
        RunOptions(trials=len(runs), **options),
        seed=1,
        structure={"c": "s", "j": "s"},
        fingerprints={"inputs": "f"},
    )
    criteria = tuple(
        one.change(advisory=("no gold set",) if one.criterion in advising else ())
        for one in plan.criteria
    )
    results = {"P": PASSED, "F": FAILED, ".": SILENT}
    done = [
        Trial(
            experiment="inputs",
            index=index,
            input_id="1",
            seed=0,
            outcomes=tuple(
                Outcome(
                    criterion=name,
                    result=results[mark],
                    error_class=ErrorClass.INFRASTRUCTURE if mark == "." else ErrorClass.NONE,
                )
                for name, mark in zip("cj", run, strict=True)
            ),
            latency_s=0.1,
        )
        for index, run in enumerate(runs)
    ]
    trials, stops = {"inputs": TrialTable.of(done)}, {"inputs": StopReason.COMPLETE}
    (found,) = GATES.decide(replace(plan, criteria=criteria), trials, stops)
    return found


@pytest.mark.parametrize("gate", [RELIED, SCORED])
def test_a_silent_judge_neither_passes_nor_fails_a_run(gate: Reliability | Metrics) -> None:
    """The run is left out, and the gate stays open: it might have been either."""
    found = judged(gate, "PP", "P.", "PP")

    assert (Decision.INCONCLUSIVE, 2) == (found.decision, found.runs)
    assert ("1 run is left out, since a judge gave no verdict.",) == found.caveats[:1]
    assert Decision.PASS is judged(gate, "PP", "PP", "PP").decision
    assert Decision.FAIL is judged(gate, "PP", "PF", "PP").decision


@pytest.mark.parametrize("gate", [RELIED, SCORED])
def test_per_protocol_decides_without_the_silent(gate: Reliability | Metrics) -> None:
    """As it does without whatever else had no fair chance."""
    for runs, decision in ((("PP", "P.", "PP"), "PASS"), (("PP", "P.", "FP"), "FAIL")):
        assert decision == judged(gate, *runs, analysis=Analysis.PER_PROTOCOL).decision


@pytest.mark.parametrize("gate", [RELIED, SCORED])
def test_what_only_advises_fails_no_run(gate: Reliability | Metrics) -> None:
    """A judge that nobody has measured decides no verdict, and no gate either."""
    found = judged(gate, "PF", "P.", "PF", advising="j")

    assert (Decision.PASS, 3) == (found.decision, found.runs)
    assert ("j only advises, and a run passes without.",) == found.caveats[:1]
    assert Decision.FAIL is judged(gate, "FP", "PP", advising="j").decision


@pytest.mark.parametrize(
    ("gate", "advising"),
    [
        (replace(RELIED, criterion="j"), "j"),
        (replace(SCORED, criterion="j"), "j"),
        (replace(SCORED, weights={"c": 1, "j": 2}), "j"),
        (RELIED, "cj"),
    ],
)
def test_a_gate_on_what_only_advises_decides_nothing(
    gate: Reliability | Metrics, advising: str
) -> None:
    """It is reported, with its numbers, and says why."""
    found = judged(gate, "PP", "PF", advising=advising)

    assert (None, False) == (found.decision, found.checks[0].holds)
    assert found.caveats[0].startswith("It decides nothing: ")


# --- Limits that can be met -------------------------------------------------------------------

LIMITS = st.integers(-2, 6).map(lambda number: number / 4)
SIMPLE: st.SearchStrategy[Matcher] = st.one_of(
    LIMITS.map(lambda number: Exact(value=number)),
    LIMITS.map(lambda number: NumberSchema(minimum=number)),
    LIMITS.map(lambda number: NumberSchema(exclusive_maximum=number)),
    LIMITS.map(lambda number: NumberSchema(minimum=number, maximum=number + 0.5)),
)
MATCHERS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        inner.map(lambda one: Not(matcher=one)),
        st.lists(inner, min_size=1, max_size=3).map(lambda many: AllOf(matchers=tuple(many))),
        st.lists(inner, min_size=1, max_size=3).map(lambda many: AnyOf(matchers=tuple(many))),
    ),
    max_leaves=5,
)


@given(MATCHERS)
def test_a_limit_can_be_met_exactly_if_some_number_meets_it(matcher: Matcher) -> None:
    """Eighths of the range tell, since every limit is a quarter."""
    some = any(matcher.holds(eighth / 8) for eighth in range(9))

    assert some is may_hold(matcher, least=0, most=1)


@given(MATCHERS)
def test_a_count_has_no_greatest(matcher: Matcher) -> None:
    """What any number from 0 on meets can be met."""
    some = any(matcher.holds(eighth / 8) for eighth in range(60))

    assert some is may_hold(matcher, least=0, most=math.inf)


#: The greatest number of each target.
MOST: Sequence[tuple[str, float]] = [
    ("reliability.pass_at_k", 100),
    ("reliability.passhat_k", 100),
    ("reliability.variance_amplification", 100),
    ("reliability.graceful_degradation", 100),
    ("stability.score", 1),
    ("stability.weakest_score", 1),
    ("stability.variance", 0.25),
    ("metrics.pass_rate", 1),
    ("metrics.pass_at.3", 1),
    ("metrics.pass_at_naive.3", 1),
    ("metrics.pass_hat.3", 1),
    ("metrics.pass_hat_plugin.3", 1),
    ("metrics.score", 1),
    ("metrics.flakiness", 50),
]


@pytest.mark.parametrize(("target", "most"), MOST)
def test_a_target_is_asked_for_what_it_can_be(target: str, most: float) -> None:
    """Its greatest number is; more, or less than 0, is a gate that nothing passes."""
    Expectation(target=target, matcher=NumberSchema(minimum=most))
    Expectation(target=target, matcher=Exact(value=0))
    for matcher in (
        NumberSchema(minimum=most + 0.01),
        NumberSchema(exclusive_minimum=most),
        NumberSchema(maximum=-0.01),
        Not(matcher=NumberSchema(maximum=most)),
    ):
        with pytest.raises(InvalidArgument, match="matcher must hold for some"):
            Expectation(target=target, matcher=matcher)


@pytest.mark.parametrize("target", ["reliability.runs", "metrics.flaky", "metrics.unscored"])
def test_a_count_may_be_any(target: str) -> None:
    """But not below 0."""
    Expectation(target=target, matcher=NumberSchema(minimum=1e6))
    with pytest.raises(InvalidArgument, match="a number of at least 0"):
        Expectation(target=target, matcher=Exact(value=-1))


@pytest.mark.parametrize("matcher", [NumberSchema(minimum=0.7), Exact(value=0.7)])
def test_a_share_of_what_is_in_percent_is_refused(matcher: Matcher) -> None:
    """It would hold for next to everything; an upper limit below 1 only fails what it should."""
    with pytest.raises(InvalidArgument, match=r"be in percent, as .*: write 70 for 0\.7"):
        Expectation(target="reliability.graceful_degradation", matcher=matcher)
    Expectation(target="reliability.variance_amplification", matcher=NumberSchema(maximum=0.5))
    Expectation(target="reliability.passhat_k", matcher=NumberSchema(minimum=1))
