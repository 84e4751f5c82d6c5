"""Sequential plans: every number of the tables by a second route, path by path."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.procedures.sizing import sequential_sizing
from trialwise.procedures.sizing.sequential_sizing import (
    LONGEST_CALIBRATED,
    Expectation,
    MethodPlan,
    SequentialPlan,
    SequentialQuestion,
    information_bound,
    plan_sequential,
    resolved_max_trials,
)
from trialwise.procedures.sizing.sizing_base import Spread, largest_of, spread
from trialwise.stats.sequential import SequentialDesign
from trialwise.stats.sequential.bound import expected_trials_bound
from trialwise.stats.sequential.concurrency import trials_to_start
from trialwise.stats.sequential.design import Method
from trialwise.stats.toolbox.concurrent_rounds import round_characteristic

CAP = 10
SMALL = SequentialQuestion(rate=0.8, alternative=0.5, max_trials=CAP)


@cache
def planned(**changes: Any) -> SequentialPlan:
    usual: dict[str, Any] = {"rate": 0.8, "alternative": 0.5, "max_trials": CAP}
    return plan_sequential(SequentialQuestion(**(usual | changes)))


def paths(design: SequentialDesign, rate: float) -> Iterator[tuple[str, int, Fraction]]:
    """(verdict, trials, probability) of every sequence of `cap` outcomes, in rationals."""
    p = Fraction(str(rate))
    for outcomes in product((True, False), repeat=design.cap):
        weight = math.prod((p if passed else 1 - p for passed in outcomes), start=Fraction(1))
        failures = 0
        verdict, trials = "INCONCLUSIVE", design.cap
        for n, passed in enumerate(outcomes, start=1):
            failures += not passed
            if failures <= design.accept[n]:
                verdict, trials = "PASS", n
                break
            if failures >= design.reject[n]:
                verdict, trials = "FAIL", n
                break
        yield verdict, trials, weight


def counted(values: Iterator[tuple[int, Fraction]]) -> Spread:
    """The mean and the 95th percentile of weighted counts, by the definition."""
    chances: dict[int, Fraction] = {}
    for value, weight in values:
        chances[value] = chances.get(value, Fraction(0)) + weight
    p95 = min(
        n for n in chances if sum(w for m, w in chances.items() if m <= n) >= Fraction(95, 100)
    )
    return Spread(mean=float(sum(n * w for n, w in chances.items())), p95=p95)


def same(expected: Spread, actual: Spread) -> None:
    assert expected.mean == pytest.approx(actual.mean, abs=1e-11)
    assert expected.p95 == actual.p95


@pytest.mark.slow("wald-1", "wald-4", "calibrated-1", "calibrated-4")
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("method", [one for one in Method if one is not Method.STRICT])
def test_probabilities_and_trials_are_those_of_counted_paths(method: Method, batch: int) -> None:
    """P(PASS), P(FAIL), P(INCONCLUSIVE), mean and 95th percentile at all four rates."""
    plan = planned(batch=batch).of(method)

    for at in plan.expectations:
        found = list(paths(plan.design, at.rate))
        for verdict, value in (
            ("PASS", at.passes),
            ("FAIL", at.fails),
            ("INCONCLUSIVE", at.inconclusive),
        ):
            total = float(sum(weight for name, _, weight in found if name == verdict))
            assert total == pytest.approx(value, abs=1e-12)
        same(counted((n, weight) for _, n, weight in found), at.trials)


@pytest.mark.slow("wald", "calibrated")
@pytest.mark.parametrize("method", [one for one in Method if one is not Method.STRICT])
def test_the_errors_of_a_method_are_those_of_counted_paths(method: Method) -> None:
    """P(FAIL) at the required rate and P(PASS) at the alternative, with their open ends."""
    plan = planned().of(method)

    good = list(paths(plan.design, 0.8))
    bad = list(paths(plan.design, 0.5))
    assert float(sum(w for v, _, w in good if v == "FAIL")) == pytest.approx(plan.false_fail)
    assert float(sum(w for v, _, w in bad if v == "PASS")) == pytest.approx(plan.false_pass)
    left = [float(sum(w for v, _, w in run if v == "INCONCLUSIVE")) for run in (good, bad)]
    assert left == pytest.approx([plan.inconclusive_required, plan.inconclusive_alternative])


@pytest.mark.slow
def test_criteria_cost_the_slowest_of_them_not_the_sum() -> None:
    """The trials of two independent criteria are the larger of two counts, pair by pair."""
    plan = planned(criteria=2).recommendation

    for at in plan.expectations:
        one = [(n, weight) for _, n, weight in paths(plan.design, at.rate)]
        ends: dict[int, Fraction] = {}
        for n, weight in one:
            ends[n] = ends.get(n, Fraction(0)) + weight
        pairs = product(ends.items(), repeat=2)
        same(counted((max(n, m), v * w) for (n, v), (m, w) in pairs), at.run_trials)
        assert at.trials.mean <= at.run_trials.mean <= at.run_mean_at_most
        assert at.run_mean_at_most <= min(2 * at.trials.mean, CAP) + 1e-12


@pytest.mark.slow
def test_whole_rounds_are_counted_for_several_criteria() -> None:
    """Rounds of three start three trials, or what the cap leaves, until the slowest has ended."""
    plan = planned(criteria=2, concurrency=3).recommendation

    for at in plan.expectations:
        ends = [Fraction(0)] * (CAP + 1)
        for _, n, weight in paths(plan.design, at.rate):
            ends[n] += weight
        larger = [(max(n, m), ends[n] * ends[m]) for n in range(CAP + 1) for m in range(CAP + 1)]
        same(counted((math.ceil(n / 3), w) for n, w in larger), at.rounds)
        same(counted((min(CAP, 3 * math.ceil(n / 3)), w) for n, w in larger), at.started)


@pytest.mark.slow
def test_sparing_rounds_follow_the_policy_path_by_path() -> None:
    """Every sequence of outcomes is run through the policy: rounds and trials started."""
    plan = planned(concurrency=4).recommendation
    design = plan.design

    for at in plan.expectations:
        p = Fraction(str(at.rate))
        rounds: list[tuple[int, Fraction]] = []
        started: list[tuple[int, Fraction]] = []
        for outcomes in product((True, False), repeat=CAP):
            weight = math.prod((p if passed else 1 - p for passed in outcomes), start=Fraction(1))
            number, issued = played(design, outcomes, concurrency=4)
            rounds.append((number, weight))
            started.append((issued, weight))
        same(counted(iter(rounds)), at.rounds)
        same(counted(iter(started)), at.started)


def played(
    design: SequentialDesign, outcomes: tuple[bool, ...], *, concurrency: int
) -> tuple[int, int]:
    """Rounds and trials started when one sequence of outcomes comes true."""
    start = failures = rounds = 0
    while True:
        size = trials_to_start(design, start, failures, 0, concurrency=concurrency)
        rounds += 1
        for n in range(start + 1, start + size + 1):
            failures += not outcomes[n - 1]
            if not design.accept[n] < failures < design.reject[n] or n == design.cap:
                return rounds, start + size
        start += size


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [2, 8])
def test_mean_rounds_agree_with_the_round_characteristic(concurrency: int) -> None:
    """The distribution worked out here has the mean that the statistics give."""
    plan = plan_sequential(
        SequentialQuestion(rate=0.9, alternative=0.8, max_trials=50, concurrency=concurrency)
    )

    for method in plan.methods:
        for at in method.expectations:
            known = round_characteristic(method.design, at.rate, concurrency=concurrency)
            assert known.mean_rounds == pytest.approx(at.rounds.mean, abs=1e-9)
            assert known.mean_started == pytest.approx(at.started.mean, abs=1e-9)
            assert known.mean_needed == pytest.approx(at.trials.mean, abs=1e-9)


# --- The figures of the project's own account of the field ------------------------------------


@cache
def fifty() -> SequentialPlan:
    return plan_sequential(SequentialQuestion(rate=0.9, alternative=0.8, max_trials=50))


@pytest.mark.slow
def test_wald_cut_at_fifty_is_marked_as_breaking_its_promise() -> None:
    """P(FAIL) at 0.80 is 0.496 where 0.80 is promised, and 22.9 % of good runs end open."""
    wald = fifty().of(Method.WALD)

    broken = {(promise.outcome, promise.rate): promise for promise in wald.broken}
    assert {("PASS", 0.9), ("FAIL", 0.8)} == set(broken)
    assert broken["FAIL", 0.8].promised == pytest.approx(0.8)
    assert broken["FAIL", 0.8].actual == pytest.approx(0.496, abs=6e-4)
    assert wald.inconclusive_required == pytest.approx(0.229, abs=5e-4)
    assert wald.inconclusive_alternative == pytest.approx(0.356, abs=5e-4)
    assert [31.0, 35.9] == pytest.approx(
        [wald.expectations[2].trials.mean, wald.expectations[0].trials.mean], abs=0.06
    )


@pytest.mark.slow
def test_the_optimal_design_is_recommended_and_as_good_as_promised() -> None:
    """At 0.90 against 0.80 with 50 trials: at most 13 % open and 28.5 trials at 0.90."""
    plan = fifty()

    best = plan.recommendation
    assert plan.recommended is Method.OPTIMAL
    assert not best.broken
    assert best.inconclusive_required <= 0.13
    assert best.expectations[2].trials.mean <= 28.5


def test_what_fifty_trials_cannot_do_is_said() -> None:
    """No rule leaves fewer than 6.7 % and 14.0 % open; 78 trials decide every run."""
    short = fifty().shortfall

    assert short is not None
    assert [0.067, 0.140] == pytest.approx([short.inconclusive_p0, short.inconclusive_p1], abs=5e-4)
    assert short.smallest_cap == 78


def test_the_lower_bound_is_the_exact_one() -> None:
    """36.6, 50.4 and 43.2 trials at 0.90, 0.85 and 0.80."""
    bounds = {bound.rate: bound for bound in fifty().bounds}

    assert {"exact"} == {bound.kind for bound in bounds.values()}
    assert [36.6, 50.4, 43.2] == pytest.approx(
        [bounds[rate].trials for rate in (0.9, 0.85, 0.8)], abs=0.05
    )


@pytest.mark.slow
def test_without_a_budget_twice_the_fixed_sample_decides_every_run() -> None:
    """0.90 against 0.80 takes 78 fixed trials, so 156; in whole batches, 160."""
    question = SequentialQuestion(rate=0.9, alternative=0.8)
    batched = SequentialQuestion(rate=0.9, alternative=0.8, batch=10)

    assert resolved_max_trials(question) == 156
    assert resolved_max_trials(batched) == 160
    plan = plan_sequential(question)
    assert plan.shortfall is None
    assert [0.0, 0.0, 0.0] == [
        plan.of(method).inconclusive_required
        for method in (Method.OPTIMAL, Method.CALIBRATED, Method.FIXED)
    ]


# --- Levels, bounds, prices -------------------------------------------------------------------


def test_levels_are_read_in_decimals() -> None:
    """95 % leaves exactly 0.05, and three criteria by Bonferroni a third of it each."""
    corrected = SequentialQuestion(rate=0.9, alternative=0.8, criteria=3, correction="bonferroni")

    assert (0.05, 0.2) == (SMALL.alpha, SMALL.beta)
    assert corrected.alpha == pytest.approx(0.05 / 3)
    assert corrected.family_alpha == 0.05


@pytest.mark.slow
def test_a_corrected_plan_keeps_the_family_level() -> None:
    """P(any of three good criteria FAILs) is at most three times the level of each."""
    plan = planned(criteria=3, correction="bonferroni")

    assert 3 * plan.recommendation.false_fail <= 0.05 + 1e-12


@pytest.mark.parametrize("pair", [(0.9, 0.8), (0.95, 0.85), (0.8, 0.7)])
def test_the_information_bound_is_walds_at_the_two_rates(pair: tuple[float, float]) -> None:
    """kl(1 − alpha, beta)/KL(p0, p1) at p0 and kl(1 − beta, alpha)/KL(p1, p0) at p1."""
    p0, p1 = pair
    question = SequentialQuestion(rate=p0, alternative=p1)

    def kl(a: float, b: float) -> float:
        return a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))

    assert information_bound(question, p0) == pytest.approx(kl(0.95, 0.2) / kl(p0, p1))
    assert information_bound(question, p1) == pytest.approx(kl(0.8, 0.05) / kl(p1, p0))


@pytest.mark.slow("0.8", "0.88")
@pytest.mark.parametrize("rate", [0.0, 0.6, 0.8, 0.83, 0.85, 0.88, 0.9, 0.95, 1.0])
def test_the_information_bound_is_a_bound(rate: float) -> None:
    """It never exceeds the exact bound on any test."""
    question = SequentialQuestion(rate=0.9, alternative=0.8)

    assert 0 < information_bound(question, rate) <= expected_trials_bound(0.9, 0.8, rate) + 1e-9


@pytest.mark.slow
def test_a_long_plan_leaves_out_what_takes_too_long_and_says_so() -> None:
    """Above a thousand trials `calibrated` is left out by name, and the bound is another."""
    plan = plan_sequential(SequentialQuestion(rate=0.95, alternative=0.93))

    assert plan.max_trials > LONGEST_CALIBRATED
    assert [Method.CALIBRATED] == [left.method for left in plan.omissions]
    assert {"information"} == {bound.kind for bound in plan.bounds}
    least = {bound.rate: bound.trials for bound in plan.bounds}
    for at in plan.recommendation.expectations:
        assert least[at.rate] <= at.trials.mean


@pytest.mark.slow
def test_money_and_time_are_trials_at_their_price() -> None:
    """One at a time every trial costs its price and its seconds; side by side, its round."""
    prices: dict[str, Any] = {"trial_usd": 0.02, "trial_s": 3}
    alone = planned(**prices).recommendation.expectations
    together = planned(**prices, concurrency=4).recommendation.expectations

    for at in alone:
        assert at.cost_usd == at.trials.times(0.02)
        assert at.duration_s == at.trials.times(3)
    for at in together:
        assert at.cost_usd == at.started.times(0.02)
        assert at.duration_s == at.rounds.times(3)
        assert at.rounds.mean < at.trials.mean <= at.started.mean


def test_without_prices_there_is_no_money_and_no_time() -> None:
    """What is not known is not 0."""
    assert {(None, None)} == {
        (at.cost_usd, at.duration_s) for at in planned().recommendation.expectations
    }


def test_the_curve_spans_both_rates_and_meets_the_table() -> None:
    """61 points from well below the alternative to 1, exact at the rates of the claim."""
    plan = fifty().recommendation

    rates = [point.rate for point in plan.curve]
    assert len(rates) == 61
    assert (0.6, 1.0) == (rates[0], rates[-1])
    points = {point.rate: point for point in plan.curve}
    assert points[0.9].fails == plan.false_fail
    assert points[0.8].passes == plan.false_pass


# --- Laws -------------------------------------------------------------------------------------


@st.composite
def questions(draw: st.DrawFn) -> SequentialQuestion:
    required = draw(st.integers(30, 97)) / 100
    margin = draw(st.integers(15, 25)) / 100
    return SequentialQuestion(
        rate=required,
        alternative=round(required - margin, 2),
        confidence=draw(st.sampled_from([0.9, 0.95, 0.99])),
        power=draw(st.sampled_from([0.7, 0.8, 0.9])),
        max_trials=draw(st.integers(5, 40)),
        batch=draw(st.sampled_from([1, 1, 5])),
        criteria=draw(st.integers(1, 3)),
        concurrency=draw(st.integers(1, 4)),
    )


@pytest.mark.slow
@settings(max_examples=4)
@given(questions())
def test_any_plan_is_coherent(question: SequentialQuestion) -> None:
    """Probabilities add up, errors are kept, the cap holds, and the advice keeps its promise."""
    with pytest.MonkeyPatch.context() as patch:
        # The other ways to ask take three designs more to search for; the slow test has them.
        patch.setattr(sequential_sizing, "list_choices", lambda *_, **__: ())
        coherent_plan(plan_sequential(question))


@pytest.mark.slow
@settings(max_examples=4)
@given(questions())
def test_any_plan_is_coherent_with_the_other_ways_to_ask(question: SequentialQuestion) -> None:
    """Their probabilities add up too."""
    plan = plan_sequential(question)

    coherent_plan(plan)
    assert 2 <= len(plan.choices) <= 4
    for choice in plan.choices:
        if choice.passes is not None:
            assert choice.mean_trials is not None
            assert choice.passes + (choice.fails or 0) + (choice.inconclusive or 0) == (
                pytest.approx(1)
            )
            assert 1 <= choice.mean_trials <= choice.max_trials


def coherent_plan(plan: SequentialPlan) -> None:
    question = plan.question
    assert not plan.recommendation.broken
    for method in plan.methods:
        if method.method is not Method.WALD:
            assert method.broken == ()
        errors = (method.false_fail, method.false_pass)
        if not method.broken:
            assert errors[0] <= question.alpha + 1e-12
            assert errors[1] <= question.beta + 1e-12
        for at in method.expectations:
            coherent(at, method, question)
    if plan.shortfall is not None:
        best = plan.recommendation
        assert best.inconclusive_required >= plan.shortfall.inconclusive_p0 - 1e-9
        assert best.inconclusive_alternative >= plan.shortfall.inconclusive_p1 - 1e-9


def coherent(at: Expectation, method: MethodPlan, question: SequentialQuestion) -> None:
    assert at.passes + at.fails + at.inconclusive == pytest.approx(1)
    assert 1 - 1e-9 <= at.trials.mean <= method.design.cap + 1e-9
    assert at.trials.p95 <= method.design.cap
    assert at.trials.mean <= at.run_trials.mean + 1e-9
    assert at.run_trials.mean <= at.run_mean_at_most + 1e-9
    assert at.run_trials.mean <= at.started.mean + 1e-9
    assert at.started.mean <= question.concurrency * at.rounds.mean + 1e-9


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(1, 5))
def test_the_largest_of_several_draws(weights: list[int], count: int) -> None:
    """The distribution of a maximum adds up to 1, and one draw is itself."""
    total = sum(weights)
    distribution = [weight / total for weight in weights]

    largest = largest_of(distribution, count)
    assert sum(largest) == pytest.approx(1)
    assert largest_of(distribution, 1) == pytest.approx(tuple(distribution))
    assert spread(enumerate(largest)).mean >= spread(enumerate(distribution)).mean - 1e-9


# --- Keeping, and refusing --------------------------------------------------------------------


@pytest.mark.slow
def test_a_plan_is_json_and_its_designs_come_back() -> None:
    """What is written reads back equal, and each design is the one that was planned."""
    plan = planned(trial_usd=0.02)

    data = plan.to_dict()
    back = json.loads(json.dumps(data))
    assert data == back
    assert ("trialwise.plan/1", "rate") == (back["schema"], back["form"])
    designs = [SequentialDesign.from_dict(entry["design"]) for entry in back["methods"]]
    assert [method.design for method in plan.methods] == designs


class Memory:
    """A cache of designs in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Mapping[str, Any]] = {}
        self.hits = 0

    def load(self, key: str) -> Mapping[str, Any] | None:
        self.hits += key in self.kept
        return self.kept.get(key)

    def save(self, key: str, values: Mapping[str, Any]) -> None:
        self.kept[key] = values


@pytest.mark.slow
def test_a_design_is_found_once() -> None:
    """A plan asks the cache before it searches, and keeps what it found."""
    memory = Memory()

    first = plan_sequential(SMALL, cache=memory)
    kept = dict(memory.kept)
    second = plan_sequential(SMALL, cache=memory)
    assert first == second
    assert kept == memory.kept
    assert 0 < len(kept) == memory.hits


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("required_rate", {"rate": 1.0}),
    ("required_rate", {"rate": math.nan}),
    ("alternative", {"alternative": 0.8}),
    ("alternative", {"alternative": 0.9}),
    ("alternative", {"alternative": 0.0}),
    ("confidence", {"confidence": 1.0}),
    ("power", {"power": 0.0}),
    ("power", {"power": 0.04}),
    ("max_trials", {"max_trials": 0}),
    ("max_trials", {"max_trials": 20_001}),
    ("batch", {"batch": 0}),
    ("criteria", {"criteria": 0}),
    ("concurrency", {"concurrency": -1}),
    ("correction", {"correction": "holm"}),
    ("trial_usd", {"trial_usd": 0}),
    ("trial_s", {"trial_s": -1}),
]


@pytest.mark.parametrize(("argument", "changes"), REFUSED)
def test_a_question_cannot_be_asked_wrongly(argument: str, changes: dict[str, Any]) -> None:
    """Each part names itself, its value and what is allowed."""
    usual: dict[str, Any] = {"rate": 0.8, "alternative": 0.5}

    with pytest.raises(InvalidArgument) as refused:
        SequentialQuestion(**(usual | changes))
    assert refused.value.argument == argument


@pytest.mark.slow("0.899")
@pytest.mark.parametrize("alternative", [0.899, 0.8999999999])
def test_rates_too_close_to_tell_apart_are_refused(alternative: float) -> None:
    """A plan that would take more than 20,000 trials says so instead of searching."""
    question = SequentialQuestion(rate=0.9, alternative=alternative)

    with pytest.raises(InvalidArgument, match="further below the required rate"):
        resolved_max_trials(question)
