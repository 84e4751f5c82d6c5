"""Several arms in turn: who is asked when, who is dropped, and what a restart leaves undone."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import anyio
import pytest

import trialwise as tw
from trialwise.engine.arms_state import RoundSchedule
from trialwise.engine.drivers.run_drivers import DrivenArm, run_arms
from trialwise.engine.ports import TrialContext
from trialwise.engine.run_state import RunOutcome
from trialwise.model.trial import Trial
from trialwise.runtime.looping import run_to_end
from trialwise.runtime.preparing import prepare
from trialwise.runtime.workspace import open_service

QUESTIONS = ["one", "two", "three"]
CRITERIA = [tw.Criterion("right", tw.equals("yes"), at_least=0.9)]


class Calls(list[tuple[int, str, int]]):
    """Services that write down who was asked what, in order."""

    def service(self, arm: int) -> Any:
        def answer(trial: TrialContext) -> str:
            self.append((arm, trial.input, trial.seed))
            return "yes"

        return answer

    def rounds(self, arms: int) -> list[list[tuple[int, str, int]]]:
        return [self[k : k + arms] for k in range(0, len(self), arms)]


def arm(service: Any, *, done: Any = (), inputs: Any = None, **options: Any) -> DrivenArm:
    contract = tw.Contract("agent", service, CRITERIA, sampling=inputs or QUESTIONS)
    chosen = tw.RunOptions(**{"seed": 7, "trials": 30, **options})
    plan = prepare(contract, chosen, Path("baselines"), measuring=True)
    opened = open_service(contract, chosen)
    return DrivenArm(plan, contract, opened, {"log": None, "done": done})


def drive_in_turn(arms: list[DrivenArm], schedule: RoundSchedule | None = None) -> list[RunOutcome]:
    return run_to_end(lambda interrupted: run_arms(arms, schedule, interrupted=interrupted))


class Schedule:
    """Drops arms after rounds of their own, and decides after a number of rounds."""

    is_fixed = False

    def __init__(self, drop: dict[int, int] | None = None, decide_after: int | None = None) -> None:
        self._drop = drop or {}
        self._decide_after = decide_after
        self.seen: Counter[int] = Counter()

    def add(self, arm: int, trial: Trial) -> None:  # noqa: ARG002
        self.seen[trial.index] += 1

    def takes_part(self, arm: int, experiment: str, index: int) -> bool:  # noqa: ARG002
        return index < self._drop.get(arm, index + 1)

    def is_decided(self, experiment: str) -> bool:  # noqa: ARG002
        return self._decide_after is not None and all(
            self.seen[index] >= 2 for index in range(self._decide_after)
        )


def sizes(outcomes: list[RunOutcome]) -> list[int]:
    return [len(one.trials) for one in outcomes]


def test_the_arms_of_a_round_get_one_input_and_seed_in_an_order_by_chance() -> None:
    """Every one of the six orders of three arms comes up, each about equally often."""
    calls = Calls()
    drive_in_turn([arm(calls.service(k), trials=600) for k in range(3)])
    rounds = calls.rounds(3)
    orders = Counter(tuple(one[0] for one in each) for each in rounds)

    assert all(1 == len({one[1:] for one in each}) for each in rounds)
    assert set(permutations(range(3))) == set(orders)
    # 600 draws of 1/6 each: a standard deviation is 9.1, and five of them are a miracle.
    assert all(abs(count - 100) < 46 for count in orders.values())


def test_the_order_of_the_arms_follows_from_the_seed() -> None:
    first, second, other = Calls(), Calls(), Calls()
    drive_in_turn([arm(first.service(k)) for k in range(3)])
    drive_in_turn([arm(second.service(k)) for k in range(3)])
    drive_in_turn([arm(other.service(k), seed=8) for k in range(3)])

    assert list(first) == list(second)
    assert [one[0] for one in first] != [one[0] for one in other]


def test_an_arm_that_is_dropped_is_not_asked_again_and_the_others_go_on() -> None:
    calls = Calls()
    found = drive_in_turn([arm(calls.service(k)) for k in range(3)], Schedule({1: 10}))

    assert [30, 10, 30] == sizes(found)
    assert ["complete", "decided", "complete"] == [one.stop.value for one in found]
    assert all(not one.message for one in found)


def test_everything_ends_when_the_schedule_has_decided() -> None:
    calls = Calls()
    found = drive_in_turn([arm(calls.service(k)) for k in range(2)], Schedule(decide_after=12))

    assert [12, 12] == sizes(found)
    assert {tw.model.StopReason.DECIDED} == {one.stop for one in found}
    assert {tw.model.StopReason.DECIDED} == {stop for one in found for stop in one.stops.values()}


def test_what_is_in_flight_is_let_go_when_everything_is_decided() -> None:
    """A slow trial of a later round is cancelled, and no later round is begun."""
    begun: list[int] = []

    async def answer(trial: TrialContext) -> str:
        begun.append(trial.index)
        await anyio.sleep(0.001 if trial.index < 4 else 30)
        return "yes"

    found = drive_in_turn([arm(answer, concurrency=4) for _ in range(2)], Schedule(decide_after=4))

    assert [4, 4] == sizes(found)
    assert max(begun) <= 6


@pytest.mark.parametrize("concurrency", [1, 2, 3, 8])
def test_each_experiment_is_decided_by_itself(concurrency: int) -> None:
    """Two samplings of one contract: the first one's decision ends only its own rounds."""

    async def answer(trial: TrialContext) -> str:
        for _ in range(trial.seed % 3):
            await anyio.sleep(0)
        return "yes"

    class OfNear(Schedule):
        def add(self, arm: int, trial: Trial) -> None:
            if trial.experiment == "near":
                super().add(arm, trial)

        def is_decided(self, experiment: str) -> bool:
            return experiment == "near" and super().is_decided(experiment)

    criteria = [
        tw.Criterion(name, tw.equals("yes"), at_least=0.9, sampling=name)
        for name in ("near", "far")
    ]
    contract = tw.Contract("agent", answer, criteria, sampling={"near": ["a", "b"], "far": ["c"]})
    options = tw.RunOptions(seed=7, trials=20, concurrency=concurrency)
    plan = prepare(contract, options, Path("baselines"), measuring=True)
    arms = [
        DrivenArm(
            plan=plan,
            contract=contract,
            service=open_service(contract, options),
            settings={"log": None},
        )
        for _ in range(2)
    ]
    found = drive_in_turn(arms, OfNear(decide_after=5))

    assert [{"near": "decided", "far": "complete"}] * 2 == [
        {name: stop.value for name, stop in one.stops.items()} for one in found
    ]
    for one in found:
        indexes = {
            name: [each.index for each in one.trials.of_experiment(name)]
            for name in ("near", "far")
        }
        assert list(range(20)) == indexes["far"]
        assert list(range(5)) == indexes["near"][:5]
        assert len(indexes["near"]) <= 5 + concurrency // 2


@pytest.mark.parametrize("schedule", [None, Schedule()], ids=["fixed", "scheduled"])
def test_trials_from_before_a_restart_are_not_run_again(schedule: Schedule | None) -> None:
    """Two arms were killed at different places, one of them with a gap: each gets what it lacks."""
    whole = drive_in_turn([arm(Calls().service(k)) for k in range(2)])
    first = [one for one in whole[0].trials if one.index < 10]
    second = [one for one in whole[1].trials if one.index < 8 or one.index == 11]
    calls = Calls()
    found = drive_in_turn(
        [arm(calls.service(0), done=first), arm(calls.service(1), done=second)], schedule
    )

    assert [30, 30] == sizes(found)
    assert {0: 20, 1: 21} == Counter(one[0] for one in calls)
    for one, before in zip(found, whole, strict=True):
        assert [(t.index, t.seed) for t in one.trials] == [(t.index, t.seed) for t in before.trials]
    if schedule is not None:
        assert {2} == set(schedule.seen.values())


def test_a_rate_holds_for_each_service() -> None:
    """Two services take their starts in step; one service under two arms is asked half as often."""
    import time

    def answer(_: str) -> str:
        return "yes"

    began = time.monotonic()
    drive_in_turn([arm(answer, trials=5, rate_per_s=50.0) for _ in range(2)])
    apart = time.monotonic() - began

    class Shared:
        async def call(self, _trial: TrialContext) -> tw.Reply:
            return tw.Reply(value="yes")

        async def aclose(self) -> None:
            pass

    shared = Shared()
    began = time.monotonic()
    drive_in_turn([arm(shared, trials=5, rate_per_s=50.0) for _ in range(2)])
    together = time.monotonic() - began

    assert 0.08 <= apart
    assert 0.18 <= together
