"""Which trial comes next, what it decides, and when there is no need for another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialwise.engine.experiment_state import ExperimentState
from trialwise.errors import InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import StopReason
from trialwise.model.plan import LatencyPlan, Plan
from trialwise.model.trial import Analysis, CheckResult, ErrorClass, Outcome, Trial
from trialwise.model.verdict import Decision
from trialwise.procedures.criterion_rows import Stream
from trialwise.stats.sequential import SequentialDesign
from trialwise.stats.sequential.concurrency import LIKELY_NEEDED

WALD = SequentialDesign.wald(0.9, 0.8, cap=30)
PASSED, FAILED = CheckResult.ok(), CheckResult.fail("no")
#: What a criterion says of a trial: name and index to a result.
Says = Callable[[str, int], bool]


def contract(*names: str, inputs: int = 3) -> Contract:
    criteria = [Criterion(name, lambda text: True, at_least=0.9) for name in names]  # noqa: ARG005
    return Contract("c", lambda question: question, criteria, sampling=list(range(inputs)))


def trial(
    scheduler: ExperimentState, index: int, says: Says, error_class: ErrorClass = ErrorClass.NONE
) -> Trial:
    return Trial(
        experiment=scheduler.experiment.name,
        index=index,
        input_id=scheduler.experiment.input_ids[scheduler.order[index]],
        seed=scheduler.seed_of(index),
        error_class=error_class,
        outcomes=tuple(
            Outcome(
                criterion=one.plan.criterion,
                result=PASSED if says(one.plan.criterion, index) else FAILED,
                error_class=error_class,
            )
            for one in scheduler.progress
        ),
    )


def decisions(scheduler: ExperimentState) -> list[list[tuple[Decision | None, int, int]]]:
    """Every stream's decision and the counts it rests on."""
    return [
        [(stream.decision, stream.trials, stream.failures) for stream in one.streams]
        for one in scheduler.progress
    ]


def run(scheduler: ExperimentState, says: Says, choose: Callable[[int], int]) -> ExperimentState:
    """Start what may start and let `choose` say which of those in flight comes back next."""
    flying: list[int] = []
    while not scheduler.is_settled:
        while len(flying) < scheduler.concurrency and (index := scheduler.peek()) is not None:
            scheduler.take(index)
            flying.append(index)
        if not flying:
            break
        index = flying.pop(choose(len(flying)))
        scheduler.add(trial(scheduler, index, says))
    return scheduler


def chance_by_enumeration(design: SequentialDesign, stream: Stream, place: int) -> float:
    """The chance that a place is needed: every filling of the gaps before it, by its own weight.

    Each gap is drawn with the predictive chance of a uniform prior, given all results that are in
    and those drawn before it.
    """
    gaps = [one for one in range(stream.next_place, place) if one not in stream.waiting]
    results = list(stream.waiting.values())
    passed = stream.passed + results.count(True)
    failed = stream.failures + results.count(False)
    total = Fraction(0)
    for filling in product([True, False], repeat=len(gaps)):
        filled = dict(zip(gaps, filling, strict=True))
        weight, good, bad = Fraction(1), passed + 1, failed + 1
        for drawn in filling:
            weight *= Fraction(good if drawn else bad, good + bad)
            good, bad = good + drawn, bad + (not drawn)
        trials, failures, is_open = stream.trials, stream.failures, True
        for one in range(stream.next_place, place):
            result = filled[one] if one in filled else stream.waiting[one]
            trials, failures = trials + 1, failures + (not result)
            is_decided = failures <= design.accept[trials] or failures >= design.reject[trials]
            is_open = is_open and not is_decided and trials < design.cap
        total += weight * is_open
    return float(total)


def first(_: int) -> int:
    return 0


#: Three kinds of criteria sharing their trials.
MIXED: dict[str, dict[str, Any]] = {
    "quick": {"trials": WALD.cap, "design": WALD},
    "fixed": {"trials": 20, "cutoff": 17},
    "each": {"trials": 6, "cutoff": 5, "each_input": True},
    "rider": {"trials": 30, "cutoff": 30, "rides_along": True},
}


def mixed(plan_of: Callable[..., Plan], concurrency: int) -> Plan:
    return plan_of(contract(*MIXED), criteria=MIXED, concurrency=concurrency)


def saying(bits: Sequence[bool]) -> Says:
    names = list(MIXED)
    return lambda name, index: bits[(index * len(names) + names.index(name)) % len(bits)]


@pytest.mark.slow
@settings(max_examples=150)
@given(
    bits=st.lists(st.sampled_from([True, True, True, False]), min_size=7, max_size=60),
    concurrency=st.integers(2, 9),
    choices=st.lists(st.integers(0, 10**6), min_size=5, max_size=40),
)
def test_no_order_of_arrival_changes_a_decision(
    plan_of: Callable[..., Plan], bits: list[bool], concurrency: int, choices: list[int]
) -> None:
    """Whichever trial comes back first, every stream decides as it does one trial at a time."""
    from_plan = mixed(plan_of, concurrency)
    turns = iter(choices * 100)
    serial = mixed(plan_of, 1)

    side_by_side = run(
        ExperimentState(from_plan, from_plan.experiments[0]),
        saying(bits),
        lambda n: next(turns) % n,
    )
    alone = run(ExperimentState(serial, serial.experiments[0]), saying(bits), first)

    assert decisions(alone)[:3] == decisions(side_by_side)[:3]
    assert alone.is_finished
    assert side_by_side.is_finished


@settings(max_examples=100)
@given(
    bits=st.lists(st.sampled_from([True, True, True, False]), min_size=7, max_size=60),
    kept=st.lists(st.booleans(), min_size=3, max_size=60),
)
def test_a_run_goes_on_from_any_part_of_its_trials(
    plan_of: Callable[..., Plan], bits: list[bool], kept: list[bool]
) -> None:
    """Whatever subset survived, counting it first and running the rest decides the same."""
    plan = mixed(plan_of, 1)
    whole = run(ExperimentState(plan, plan.experiments[0]), saying(bits), first)
    done = [one for place, one in enumerate(whole.trials) if kept[place % len(kept)]]

    resumed = ExperimentState(plan, plan.experiments[0], done)
    before = len(resumed.trials)
    run(resumed, saying(bits), first)

    assert before == len(done)
    assert decisions(whole)[:3] == decisions(resumed)[:3]
    indices = [one.index for one in resumed.trials]
    assert len(set(indices)) == len(indices)


@pytest.mark.parametrize("cut", range(21))
def test_a_run_goes_on_from_every_prefix(plan_of: Callable[..., Plan], cut: int) -> None:
    """The same trials with the same seeds, none of them twice."""
    plan = plan_of(contract("c"), trials=20)

    def says(_: str, index: int) -> bool:
        return index % 7 != 3

    whole = run(ExperimentState(plan, plan.experiments[0]), says, first)

    resumed = run(ExperimentState(plan, plan.experiments[0], whole.trials[:cut]), says, first)

    assert whole.trials == resumed.trials


def test_inputs_whose_streams_are_settled_are_passed_over(plan_of: Callable[..., Plan]) -> None:
    """One input fails at once, the others go on to their last trial without it."""
    plan = plan_of(
        contract("each"), criteria={"each": {"trials": 10, "cutoff": 9, "each_input": True}}
    )
    scheduler = ExperimentState(plan, plan.experiments[0])
    bad = scheduler.order[0]

    run(scheduler, lambda _, index: scheduler.order[index] != bad, first)

    counts = [sum(one.input_id == name for one in scheduler.trials) for name in "123"]
    # Two failures of ten make nine successes impossible; nine successes are enough.
    assert [2 if position == bad else 9 for position in range(3)] == counts
    assert StopReason.CURTAILED is scheduler.stop


def test_settled_inputs_are_run_while_a_pooled_criterion_needs_them(
    plan_of: Callable[..., Plan],
) -> None:
    """A pooled stream takes every input in its turn."""
    plan = plan_of(
        contract("each", "pooled"),
        criteria={
            "each": {"trials": 2, "cutoff": 2, "each_input": True},
            "pooled": {"trials": 12, "curtailed": False},
        },
    )

    scheduler = run(ExperimentState(plan, plan.experiments[0]), lambda *_: False, first)

    assert list(range(12)) == [one.index for one in scheduler.trials]
    assert StopReason.COMPLETE is scheduler.stop


def test_a_criterion_that_rides_along_asks_for_no_trial(plan_of: Callable[..., Plan]) -> None:
    """The run ends with the criteria that decide."""
    plan = plan_of(
        contract("decides", "rider"),
        criteria={
            "decides": {"trials": 20, "cutoff": 5},
            "rider": {"trials": 20, "cutoff": 20, "rides_along": True},
        },
    )

    scheduler = run(ExperimentState(plan, plan.experiments[0]), lambda *_: True, first)

    assert 5 == len(scheduler.trials)
    assert [5, 5] == [one.standing().trials for one in scheduler.progress]
    assert StopReason.CURTAILED is scheduler.stop


@pytest.mark.parametrize("why", ["measure", "latency"])
def test_a_baseline_and_a_latency_need_every_planned_trial(
    plan_of: Callable[..., Plan], why: str
) -> None:
    """However early the criteria are settled."""
    limit = LatencyPlan(percentile="p95", level=0.95, experiment="inputs", alpha=0.05, limit_s=1.0)
    plan = plan_of(
        contract("c"),
        trials=20,
        cutoff=5,
        concurrency=4,
        purpose="measure" if why == "measure" else "test",
        latency=(limit,) if why == "latency" else (),
    )

    scheduler = run(ExperimentState(plan, plan.experiments[0]), lambda *_: True, first)

    assert 20 == len(scheduler.trials)
    assert StopReason.COMPLETE is scheduler.stop
    assert Decision.PASS is scheduler.progress[0].decision


@pytest.mark.parametrize(
    ("limits", "passes", "stop", "trials"),
    [
        ({"trials": 30, "design": WALD}, True, StopReason.DECIDED, None),
        ({"trials": 20, "cutoff": 15}, True, StopReason.CURTAILED, 15),
        ({"trials": 20, "cutoff": 15}, False, StopReason.CURTAILED, 6),
        ({"trials": 20, "cutoff": 20}, True, StopReason.COMPLETE, 20),
        ({"trials": 20, "cutoff": 15, "curtailed": False}, False, StopReason.COMPLETE, 20),
        ({"trials": 20}, True, StopReason.COMPLETE, 20),
    ],
)
def test_an_experiment_says_why_it_needs_no_further_trial(
    plan_of: Callable[..., Plan],
    limits: dict[str, Any],
    passes: bool,
    stop: StopReason,
    trials: int | None,
) -> None:
    """A boundary was reached, the verdict was certain, or all planned trials were run."""
    plan = plan_of(contract("c"), criteria={"c": limits})

    scheduler = run(ExperimentState(plan, plan.experiments[0]), lambda *_: passes, first)

    assert stop is scheduler.stop
    if trials is not None:
        assert trials == len(scheduler.trials)


def test_the_per_protocol_analysis_leaves_excused_trials_out(plan_of: Callable[..., Plan]) -> None:
    """They take their place in the order and no place in the count."""
    plan = plan_of(contract("c"), trials=6, cutoff=4, analysis=Analysis.PER_PROTOCOL)
    scheduler = ExperimentState(plan, plan.experiments[0])
    for index in range(6):
        assert scheduler.peek() == index
        scheduler.take(index)
        excused = index < 2
        scheduler.add(
            trial(
                scheduler,
                index,
                lambda _, i: i >= 2,
                ErrorClass.INFRASTRUCTURE if excused else ErrorClass.NONE,
            )
        )

    stream = scheduler.progress[0].streams[0]
    assert (4, 0, Decision.PASS) == (stream.trials, stream.failures, stream.decision)


def test_a_trial_starts_only_if_it_will_probably_be_needed(plan_of: Callable[..., Plan]) -> None:
    """After every result the start of the next is held against its exact predictive chance."""
    plan = plan_of(contract("c"), design=WALD, concurrency=8)
    scheduler = ExperimentState(plan, plan.experiments[0])
    stream = scheduler.progress[0].streams[0]
    flying: list[int] = []
    held_back = 0
    while not scheduler.is_settled:
        while len(flying) < 8:
            index = scheduler.peek()
            place = len(scheduler.trials) + len(flying)
            chance = chance_by_enumeration(WALD, stream, place)
            assert (index is not None) == (chance >= LIKELY_NEEDED or not flying)
            if index is None:
                held_back += 1
                break
            scheduler.take(index)
            flying.append(index)
        # The oldest comes back last of three: results arrive out of order.
        index = flying.pop(min(2, len(flying) - 1))
        scheduler.add(trial(scheduler, index, lambda _, i: i % 9 != 0))

    assert held_back > 0


def test_one_slow_trial_does_not_hold_up_all_the_others(plan_of: Callable[..., Plan]) -> None:
    """With the first trial missing, the rest goes on as far as it will probably be needed."""
    design = SequentialDesign.wald(0.9, 0.88, cap=500)
    plan = plan_of(contract("c"), design=design, concurrency=4)
    scheduler = ExperimentState(plan, plan.experiments[0])
    while (index := scheduler.peek()) is not None:
        scheduler.take(index)
        if index:
            scheduler.add(trial(scheduler, index, lambda *_: True))

    started = len(scheduler.trials) + 1
    stream = scheduler.progress[0].streams[0]
    assert chance_by_enumeration(design, stream, started - 1) >= LIKELY_NEEDED
    assert chance_by_enumeration(design, stream, started) < LIKELY_NEEDED
    assert started > 4 * 4


def test_what_waits_for_a_slow_trial_tells_when_to_wait(plan_of: Callable[..., Plan]) -> None:
    """All others passed: with the slow one they decide, so that no trial is started beyond that."""
    plan = plan_of(contract("c"), design=WALD, concurrency=8)
    scheduler = ExperimentState(plan, plan.experiments[0])
    while (index := scheduler.peek()) is not None:
        scheduler.take(index)
        if index:
            scheduler.add(trial(scheduler, index, lambda *_: True))

    needed = next(n for n in range(WALD.cap) if WALD.accept[n] >= 0)
    assert needed == len(scheduler.trials) + 1


def test_large_designs_start_everything_they_can(plan_of: Callable[..., Plan]) -> None:
    """The recursion would cost more than it saves."""
    design = SequentialDesign.wald(0.9, 0.8, cap=2_500)
    plan = plan_of(contract("c"), design=design, concurrency=300)
    scheduler = ExperimentState(plan, plan.experiments[0])
    for _ in range(300):
        index = scheduler.peek()
        assert index is not None
        scheduler.take(index)


def other_input(found: Trial) -> Trial:
    return replace(found, input_id="1" if found.input_id != "1" else "2")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda found: [replace(found, index=99)],
        lambda found: [replace(found, seed=found.seed + 1)],
        lambda found: [replace(found, outcomes=())],
        lambda found: [other_input(found)],
        lambda found: [found, found],
    ],
)
def test_trials_of_another_plan_are_refused(
    plan_of: Callable[..., Plan], wrong: Callable[[Trial], list[Trial]]
) -> None:
    """Another order, another seed, other criteria, or the same trial twice."""
    plan = plan_of(contract("c"))
    found = trial(ExperimentState(plan, plan.experiments[0]), 0, lambda *_: True)

    with pytest.raises(InvalidArgument, match="done"):
        ExperimentState(plan, plan.experiments[0], wrong(found))
