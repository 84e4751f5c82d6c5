"""Whole runs: what ends them, what they keep, what they tell."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from trialwise.engine.criterion_progress import issue_places, trial_seeds
from trialwise.engine.drivers.run_drivers import run_plan
from trialwise.engine.ports import (
    CriterionDecided,
    RunEnded,
    RunStarted,
    Service,
    ServiceError,
    TrialContext,
    TrialDone,
)
from trialwise.engine.run_state import RunOutcome
from trialwise.errors import InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import StopReason
from trialwise.model.options import AbortRule, Budget
from trialwise.model.plan import Plan
from trialwise.model.reply import Reply, Setup, Usage
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.model.trial_lines import write_trial
from trialwise.model.verdict import Decision
from trialwise.procedures.criterion_rows import Stream
from trialwise.services import CallableService, CommandService, RecordingError
from trialwise.stats.sequential import SequentialDesign
from trialwise.stores.journal import Journal, read_journal

pytestmark = pytest.mark.anyio

PlanOf = Callable[..., Plan]
WALD = SequentialDesign.wald(0.9, 0.8, cap=60)


def contract(
    function: Any, *criteria: Criterion, inputs: Any = ("a", "b", "c"), **more: Any
) -> Contract:
    usual = (Criterion("yes", lambda text: text == "yes", at_least=0.9),)
    sampling = inputs if isinstance(inputs, dict) else list(inputs)
    return Contract("c", function, criteria or usual, sampling=sampling, **more)


async def run(
    plan: Plan, promised: Contract, *, service: Service | None = None, **more: Any
) -> RunOutcome:
    return await run_plan(
        plan, promised, service or CallableService(promised.service), **{"log": None, **more}
    )


async def yes(question: str) -> str:  # noqa: ARG001 - whatever is asked
    return "yes"


async def test_every_trial_gets_its_input_and_seed_in_issue_order(
    plan_of: PlanOf, journal: Journal, tmp_path: Path
) -> None:
    """As the plan alone says, and all of it is in the journal."""
    given: list[tuple[int, str, int]] = []

    async def note(trial: TrialContext) -> str:
        given.append((trial.index, trial.input, trial.seed))
        return "yes"

    promised = contract(note)
    plan = plan_of(promised, trials=20)

    outcome = await run(plan, promised, log=journal)

    order = issue_places(plan.experiments[0], seed=plan.seed, each_input=False)
    seeds = trial_seeds(plan.seed, "inputs")
    assert [(i, "abc"[position], seeds(i)) for i, position in enumerate(order)] == given
    assert list(range(20)) == [trial.index for trial in outcome.trials]
    assert (StopReason.COMPLETE, {"inputs": StopReason.COMPLETE}, "") == (
        outcome.stop,
        outcome.stops,
        outcome.message,
    )
    assert (20, 20) == (outcome.spending.trials, outcome.spending.attempts)
    kept = list(read_journal(tmp_path / "journal.jsonl"))
    assert [write_trial(trial) | {"x": "inputs"} for trial in outcome.trials] == kept


@pytest.mark.parametrize("concurrency", [1, 2, 7])
async def test_no_more_trials_run_at_once_than_allowed(plan_of: PlanOf, concurrency: int) -> None:
    """And as many as allowed do."""
    running = most = 0

    async def count(question: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.001 * (ord(question) - 96))
        running -= 1
        return "yes"

    promised = contract(count)

    outcome = await run(plan_of(promised, trials=40, concurrency=concurrency), promised)

    assert concurrency == most
    assert list(range(40)) == [trial.index for trial in outcome.trials]


async def test_one_trial_at_a_time_needs_no_task_of_its_own(plan_of: PlanOf) -> None:
    """Tasks cost more than most of what the engine does."""
    tasks: set[int] = set()

    async def count(question: str) -> str:  # noqa: ARG001
        tasks.add(len(asyncio.all_tasks()))
        return "yes"

    before = len(asyncio.all_tasks())
    promised = contract(count)

    await run(plan_of(promised, trials=5), promised)

    assert {before} == tasks


@pytest.mark.parametrize("seed", range(5))
async def test_fast_failures_do_not_vote_before_slow_passes(plan_of: PlanOf, seed: int) -> None:
    """With failures at once and passes late, side by side decides as one at a time."""

    async def uneven(trial: TrialContext) -> str:
        passes = random.Random(trial.seed).random() < 0.87
        await anyio.sleep(0.003 if passes else 0)
        return "yes" if passes else "no"

    promised = contract(uneven)

    async def decided(concurrency: int) -> tuple[Decision | None, int, int]:
        plan = plan_of(promised, design=WALD, concurrency=concurrency, seed=seed)
        outcome = await run(plan, promised)
        stream = Stream(plan.criteria[0].limits)
        for trial in outcome.trials:
            stream.add(trial.index, passed=trial.passed)
        return stream.decision, stream.trials, stream.failures

    assert await decided(1) == await decided(8)


async def test_what_is_in_flight_is_let_go_once_all_is_certain(plan_of: PlanOf) -> None:
    """Nobody waits for a trial that cannot change the verdict; it is counted as abandoned."""
    cancelled: list[int] = []

    async def hang(index: int) -> str:
        if index >= 5:
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.append(index)
        await anyio.sleep(0.002)
        return "yes"

    promised = contract(hang)

    outcome = await run(plan_of(promised, trials=20, cutoff=5, concurrency=4), promised)

    assert StopReason.CURTAILED is outcome.stop
    assert 5 == len(outcome.trials)
    assert len(cancelled) == outcome.spending.abandoned == 3


async def test_few_trials_are_abandoned_by_a_sequential_decision(plan_of: PlanOf) -> None:
    """Starting as many as possible would leave fifteen behind."""

    waiting: list[anyio.Event] = []

    async def steady(question: str) -> str:  # noqa: ARG001
        waiting.append(anyio.Event())
        await waiting[-1].wait()
        return "yes"

    async def answer_all_at_once() -> None:
        # Whatever is under way ends together and in order, however busy the machine is.
        while True:
            await anyio.sleep(0.1)
            for one in waiting:
                one.set()
            waiting.clear()

    promised = contract(steady)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer_all_at_once)
        outcome = await run(plan_of(promised, design=WALD, concurrency=16), promised)
        tasks.cancel_scope.cancel()

    assert StopReason.DECIDED is outcome.stop
    needed = next(n for n in range(1, 61) if WALD.accept[n] >= 0)
    assert needed <= outcome.spending.trials + outcome.spending.abandoned <= needed + 2


@pytest.mark.parametrize(
    ("budget", "stop", "trials"),
    [
        (Budget(trials=7), StopReason.TRIALS_BUDGET, 7),
        # A seventh trial of 15 tokens would exceed it.
        (Budget(tokens=100), StopReason.TOKEN_BUDGET, 6),
        (Budget(usd=1.0), StopReason.MONEY_BUDGET, 5),
        (Budget(seconds=12.0), StopReason.TIME_BUDGET, 6),
        (Budget(trials=20, tokens=10**6, usd=99, seconds=999), StopReason.COMPLETE, 20),
    ],
)
async def test_a_budget_ends_a_run_and_keeps_all_of_it(
    plan_of: PlanOf, virtual_clock: Any, budget: Budget, stop: StopReason, trials: int
) -> None:
    """Checked before each start; setup is paid as well."""

    async def dear(question: str) -> Reply:  # noqa: ARG001
        virtual_clock.time += 2.0
        return Reply(
            value="yes",
            latency_s=2.0,
            usage=Usage(input_tokens=5, output_tokens=5),
            cost_usd=0.1,
            setup=Setup(seconds=0.5, usage=Usage(input_tokens=5), cost_usd=0.1),
        )

    promised = contract(dear)

    outcome = await run(plan_of(promised, trials=20, budget=budget), promised, clock=virtual_clock)

    assert (stop, trials) == (outcome.stop, len(outcome.trials))
    spent = outcome.spending
    assert (10 * trials, 5 * trials) == (spent.tokens, spent.setup_tokens)
    assert spent.usd == spent.setup_usd == pytest.approx(0.1 * trials, abs=1e-12)
    assert (2.0 * trials, 0.5 * trials) == (spent.seconds, spent.setup_s)
    assert ("budget" in outcome.message) == stop.is_premature


async def test_a_budget_waits_for_what_is_in_flight(plan_of: PlanOf) -> None:
    """It is paid already."""

    async def slow(question: str) -> str:  # noqa: ARG001
        await anyio.sleep(0.005)
        return "yes"

    promised = contract(slow)

    outcome = await run(
        plan_of(promised, trials=50, concurrency=4, budget=Budget(trials=10)), promised
    )

    assert list(range(10)) == [trial.index for trial in outcome.trials]
    assert 0 == outcome.spending.abandoned


async def test_trials_from_before_a_restart_count_toward_the_budget(plan_of: PlanOf) -> None:
    """Their seconds do not: nobody knows what the clock did meanwhile."""
    promised = contract(yes)
    first = await run(plan_of(promised, trials=20, budget=Budget(trials=8)), promised)

    again = await run(
        plan_of(promised, trials=20, budget=Budget(trials=12)), promised, done=first.trials
    )

    assert (8, 12) == (len(first.trials), len(again.trials))
    assert 12 == again.spending.trials


def down(limit: int) -> Callable[[int], Any]:
    """A service that cannot be reached from some trial on."""

    async def answer(index: int) -> str:
        if index >= limit:
            raise ServiceError("gone", ErrorClass.INFRASTRUCTURE)
        return "yes"

    return answer


async def test_too_many_errors_end_a_run(plan_of: PlanOf) -> None:
    """Strictly more than allowed, and not before there are enough trials to say so."""
    promised = contract(down(10))
    rule = AbortRule(max_error_rate=0.5, after=10)

    outcome = await run(plan_of(promised, trials=100, abort=rule, retries=0), promised)

    # 11 of 21 is the first share above a half.
    assert (StopReason.ERROR_RATE, 21) == (outcome.stop, len(outcome.trials))
    assert "11 of 21 trials" in outcome.message
    # Where nothing was ever heard of the service, five trials are enough.
    silent = contract(down(0))
    early = await run(plan_of(silent, trials=100, abort=rule, retries=0), silent)
    assert (StopReason.ERROR_RATE, 5) == (early.stop, len(early.trials))
    assert early.message.startswith("Gone. Is it running")


async def test_errors_of_the_services_own_end_no_run(plan_of: PlanOf) -> None:
    """They are what is measured."""

    def broken(question: str) -> str:
        raise ValueError(question)

    promised = contract(broken)

    outcome = await run(plan_of(promised, trials=30), promised)

    assert (StopReason.COMPLETE, 30) == (outcome.stop, len(outcome.trials))


async def test_a_mended_service_can_be_gone_on_with(plan_of: PlanOf) -> None:
    """Errors from before a restart do not end the run again."""
    plan = plan_of(contract(yes), trials=40, abort=AbortRule(after=5), retries=0)
    first = await run(plan, contract(down(0)))

    again = await run(plan, contract(yes), done=first.trials)

    assert (5, 40) == (len(first.trials), len(again.trials))
    assert StopReason.COMPLETE is again.stop


async def test_a_certain_verdict_comes_before_the_error_rate(plan_of: PlanOf) -> None:
    """Every trial counts: enough errors are a FAIL like any other."""
    promised = contract(down(0))

    outcome = await run(
        plan_of(promised, trials=20, cutoff=18, abort=AbortRule(after=3), retries=0), promised
    )

    assert (StopReason.CURTAILED, 3) == (outcome.stop, len(outcome.trials))


@pytest.mark.slow
async def test_an_abort_lets_go_of_what_is_in_flight(plan_of: PlanOf) -> None:
    """A call that hangs must not keep it from ending."""

    async def gone(index: int) -> str:
        if index == 0:
            await anyio.sleep_forever()
        raise ServiceError("gone", ErrorClass.INFRASTRUCTURE)

    promised = contract(gone)

    outcome = await run(
        plan_of(promised, trials=20, concurrency=3, abort=AbortRule(after=5)), promised
    )

    assert (StopReason.ERROR_RATE, 5) == (outcome.stop, len(outcome.trials))
    assert 1 <= outcome.spending.abandoned <= 2


async def test_error_classes_and_retries_are_on_the_trial(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """A timeout, an empty run, a retry and a crash, each as what it is."""
    tried: set[int] = set()

    async def varied(index: int) -> Reply:
        if index == 0:
            await anyio.sleep_forever()
        if index == 1 and index not in tried:
            tried.add(index)
            raise ServiceError("busy", ErrorClass.INFRASTRUCTURE)
        if index == 2:
            raise RuntimeError("crash")
        return Reply(value="yes", details={"tool_calls": [{"name": "f"}] * (index != 3)})

    promised = contract(varied, activity=lambda reply: bool(reply.details["tool_calls"]))

    outcome = await run(
        plan_of(promised, trials=5, timeout_s=0.02, retries=1), promised, clock=virtual_clock
    )

    assert [
        (ErrorClass.TIMEOUT, 1, FailReason.NO_VALUE),
        (ErrorClass.NONE, 2, None),
        (ErrorClass.NONE, 1, FailReason.NO_VALUE),
        (ErrorClass.EMPTY_RUN, 1, FailReason.NO_VALUE),
        (ErrorClass.NONE, 1, None),
    ] == [(one.error_class, one.attempts, one.outcomes[0].result.reason) for one in outcome.trials]
    assert ("busy",) == outcome.trials[1].attempt_errors
    assert 6 == outcome.spending.attempts


async def test_commands_run_side_by_side(plan_of: PlanOf, journal: Journal) -> None:
    """Real processes, four at a time, each with its own index."""
    service = CommandService(["sh", "-c", 'echo "$TRIALWISE_INDEX $1"', "sh", "{input}"])
    promised = contract(service, Criterion("any", lambda text: len(text) >= 3, at_least=0.9))

    outcome = await run(
        plan_of(promised, trials=12, concurrency=4), promised, service=service, log=journal
    )

    order = issue_places(plan_of(promised, trials=12).experiments[0], seed=7, each_input=False)
    assert [f"{i} {'abc'[p]}" for i, p in enumerate(order)] == [t.reply for t in outcome.trials]
    assert all(trial.exit_code == 0 for trial in outcome.trials)


@pytest.mark.parametrize("concurrency", [1, 5])
async def test_starts_keep_their_distance(
    plan_of: PlanOf, virtual_clock: Any, concurrency: int
) -> None:
    """At ten a second, one every tenth of a second and no faster."""
    starts: list[float] = []

    async def note(question: str) -> str:  # noqa: ARG001
        starts.append(virtual_clock.time)
        await anyio.sleep(0)
        return "yes"

    promised = contract(note)

    await run(
        plan_of(promised, trials=30, rate_per_s=10.0, concurrency=concurrency),
        promised,
        clock=virtual_clock,
    )

    gaps = [b - a for a, b in pairwise(starts)]
    assert min(gaps) >= 0.1 - 1e-9
    if concurrency == 1:
        assert starts[-1] == pytest.approx(2.9)


async def test_an_event_interrupts_a_run(plan_of: PlanOf, journal: Journal) -> None:
    """What is complete is kept, what is in flight is let go."""
    interrupted = anyio.Event()

    async def third(index: int) -> str:
        if index == 3:
            interrupted.set()
            await anyio.sleep_forever()
        return "yes"

    promised = contract(third)

    outcome = await run(
        plan_of(promised, trials=20), promised, interrupted=interrupted, log=journal
    )

    assert (StopReason.INTERRUPTED, 3, 1) == (
        outcome.stop,
        len(outcome.trials),
        outcome.spending.abandoned,
    )
    assert 3 == len(journal)
    assert "interrupted" in outcome.message


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_cancelling_from_outside_returns_what_is_complete(
    plan_of: PlanOf, concurrency: int
) -> None:
    """A paid trial is never lost to an impatient caller."""

    scope = anyio.CancelScope()

    async def slow(index: int) -> str:
        if index == 5 + concurrency:
            scope.cancel()
        if index >= 6:
            await anyio.sleep_forever()
        return "yes"

    promised = contract(slow)
    outcome = None
    with scope:
        outcome = await run(plan_of(promised, trials=20, concurrency=concurrency), promised)

    assert outcome is not None
    assert (StopReason.INTERRUPTED, 6) == (outcome.stop, len(outcome.trials))
    assert concurrency == outcome.spending.abandoned


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("watched", [False, True])
async def test_a_keyboard_interrupt_inside_a_trial_is_an_interrupt(
    plan_of: PlanOf, concurrency: int, watched: bool
) -> None:
    """Wherever Python happens to raise it."""

    async def struck(index: int) -> str:
        await anyio.sleep(0)
        if index == 4:
            raise KeyboardInterrupt
        return "yes"

    promised = contract(struck)

    outcome = await run(
        plan_of(promised, trials=20, concurrency=concurrency),
        promised,
        interrupted=anyio.Event() if watched else None,
    )

    assert StopReason.INTERRUPTED is outcome.stop
    assert set(range(4)) <= {trial.index for trial in outcome.trials}


async def test_a_service_that_never_waits_can_be_interrupted(plan_of: PlanOf) -> None:
    """The event loop gets its turn in between."""
    interrupted = anyio.Event()
    promised = contract(yes)

    async with anyio.create_task_group() as group:

        async def strike() -> None:
            await anyio.sleep(0.05)
            interrupted.set()

        group.start_soon(strike)
        outcome = await run(plan_of(promised, trials=10**6), promised, interrupted=interrupted)

    assert StopReason.INTERRUPTED is outcome.stop
    assert 0 < len(outcome.trials) < 10**6


async def test_several_experiments_run_one_after_another(plan_of: PlanOf) -> None:
    """Each with its own order, criteria and reason to end."""
    asked: list[str] = []

    async def note(question: str) -> str:
        asked.append(question)
        return "yes"

    promised = contract(
        note,
        Criterion("plain", lambda text: text == "yes", at_least=0.9, sampling="usual"),
        Criterion("hard", lambda text: text == "yes", at_least=0.9, sampling="attack"),
        inputs={"usual": ["a", "b"], "attack": ["x", "y", "z"]},
    )
    plan = plan_of(promised, criteria={"plain": {"trials": 10, "cutoff": 6}, "hard": {"trials": 9}})

    outcome = await run(plan, promised)

    assert {"usual": StopReason.CURTAILED, "attack": StopReason.COMPLETE} == outcome.stops
    assert StopReason.CURTAILED is outcome.stop
    assert set("ab") == set(asked[:6])
    assert sorted("xyz" * 3) == sorted(asked[6:])
    assert ["usual"] * 6 + ["attack"] * 9 == [trial.experiment for trial in outcome.trials]


async def test_a_run_that_ends_early_leaves_later_experiments_with_its_reason(
    plan_of: PlanOf,
) -> None:
    """Those that were already settled before keep theirs."""
    promised = contract(
        yes,
        Criterion("one", lambda text: text == "yes", at_least=0.9, sampling="one"),
        Criterion("two", lambda text: text == "yes", at_least=0.9, sampling="two"),
        Criterion("three", lambda text: text == "yes", at_least=0.9, sampling="three"),
        inputs={"one": ["a"], "two": ["b"], "three": ["c"]},
    )
    whole = await run(plan_of(promised, trials=5), promised)
    third = [trial for trial in whole.trials if trial.experiment == "three"]

    outcome = await run(plan_of(promised, trials=5, budget=Budget(trials=8)), promised, done=third)

    assert {
        "one": StopReason.TRIALS_BUDGET,
        "two": StopReason.TRIALS_BUDGET,
        "three": StopReason.COMPLETE,
    } == outcome.stops
    assert StopReason.TRIALS_BUDGET is outcome.stop


async def test_a_listener_hears_everything_in_order(plan_of: PlanOf, notes: Any) -> None:
    """The plan, each trial with all standings, each decision once, and the end."""
    promised = contract(
        yes,
        Criterion("yes", lambda text: text == "yes", at_least=0.9),
        Criterion("no", lambda text: text == "no", at_least=0.9),
    )
    plan = plan_of(promised, trials=10, cutoff=8, keep_going=True)

    await run(plan, promised, listener=notes, run_id="r1")

    assert isinstance(notes.events[0], RunStarted)
    assert ("r1", plan, 0) == (
        notes.events[0].run_id,
        notes.events[0].plan,
        notes.events[0].resumed,
    )
    done = notes.of(TrialDone)
    assert [(n, n) for n in range(1, 9)] == [
        (event.standings[0].trials, event.standings[0].passed) for event in done
    ]
    assert [(1, 0), (2, 0), (3, 0), (3, 0)] == [
        (event.standings[1].trials, event.standings[1].passed) for event in done[:4]
    ]
    assert [8] == [notes.events[-1].spending.trials]
    decided = [
        (e.standing.criterion, e.standing.decision, e.stop) for e in notes.of(CriterionDecided)
    ]
    assert [
        ("no", Decision.FAIL, StopReason.CURTAILED),
        ("yes", Decision.PASS, StopReason.CURTAILED),
    ] == decided
    assert isinstance(notes.events[-1], RunEnded)


async def test_a_listener_hears_only_of_the_trials_it_wants_and_of_those_that_settle(
    plan_of: PlanOf, notes: Any
) -> None:
    """What it hears is what it would have heard at that trial anyway."""
    promised = contract(yes)
    plan = plan_of(promised, trials=10, cutoff=8)
    asked: list[int] = []

    def wants_trial(trials: int) -> bool:
        asked.append(trials)
        return trials % 3 == 0

    notes.wants_trial = wants_trial
    await run(plan, promised, listener=notes)

    done = notes.of(TrialDone)
    assert list(range(1, 8)) == asked
    assert [3, 6, 8] == [event.spending.trials for event in done]
    assert [3, 6, 8] == [event.standings[0].trials for event in done]
    assert [Decision.PASS] == [event.standing.decision for event in notes.of(CriterionDecided)]


async def test_a_resumed_listener_hears_what_is_already_decided(
    plan_of: PlanOf, notes: Any
) -> None:
    """A settled run is not run again."""
    promised = contract(yes)
    plan = plan_of(promised, trials=10, cutoff=4)
    first = await run(plan, promised)

    again = await run(plan, promised, done=first.trials, listener=notes)

    assert first.trials == again.trials
    assert [RunStarted, CriterionDecided, RunEnded] == [type(event) for event in notes.events]
    assert 4 == notes.events[0].resumed


async def test_inputs_judged_on_their_own_are_counted_together(plan_of: PlanOf, notes: Any) -> None:
    """One standing for all inputs, decided once, by the worst of them."""

    async def picky(question: str) -> str:
        return "no" if question == "b" else "yes"

    promised = contract(picky)
    plan = plan_of(promised, criteria={"yes": {"trials": 4, "cutoff": 4, "each_input": True}})

    outcome = await run(plan, promised, listener=notes)

    counts = {name: sum(one.input_id == name for one in outcome.trials) for name in "123"}
    assert {"1": 4, "2": 1, "3": 4} == counts
    (decided,) = notes.of(CriterionDecided)
    assert (Decision.FAIL, 9, 8, 12) == (
        decided.standing.decision,
        decided.standing.trials,
        decided.standing.passed,
        decided.standing.planned,
    )


class Closing(CallableService):
    """Counts how often it is closed."""

    closed = 0
    error: Exception | None = None

    async def aclose(self) -> None:
        await anyio.sleep(0)
        self.closed += 1
        if self.error is not None:
            raise self.error


class Deaf:
    def on_event(self, event: object) -> None:
        if isinstance(event, TrialDone):
            raise LookupError("a listener's defect")


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("watched", [False, True])
async def test_a_defect_is_raised_as_it_is_and_the_service_closed(
    plan_of: PlanOf, concurrency: int, watched: bool
) -> None:
    """Not in a group, whatever tasks it went through."""
    promised = contract(yes)
    service = Closing(yes)

    with pytest.raises(LookupError, match="defect"):
        await run(
            plan_of(promised, concurrency=concurrency),
            promised,
            service=service,
            listener=Deaf(),
            interrupted=anyio.Event() if watched else None,
        )

    assert 1 == service.closed


async def test_the_service_is_closed_once_even_when_cancelled(plan_of: PlanOf) -> None:
    """Closing may wait: the cancellation does."""
    promised = contract(yes)
    normal, cancelled = Closing(yes), Closing(anyio.sleep_forever)

    await run(plan_of(promised), promised, service=normal)
    with anyio.move_on_after(0.01):
        await run(plan_of(promised), promised, service=cancelled)

    assert (1, 1) == (normal.closed, cancelled.closed)


async def test_a_service_that_cannot_be_closed_loses_no_trial(plan_of: PlanOf) -> None:
    """The outcome says what went wrong."""
    promised = contract(yes)
    service = Closing(yes)
    service.error = OSError("stuck")

    outcome = await run(plan_of(promised, trials=4), promised, service=service)

    assert (4, StopReason.COMPLETE) == (len(outcome.trials), outcome.stop)
    assert "OSError: stuck" in outcome.message


async def test_a_contract_that_was_not_planned_is_refused(plan_of: PlanOf) -> None:
    """Other inputs, other criteria, or trials of another experiment; the service is closed."""
    promised = contract(yes)
    plan = plan_of(promised)
    done = (await run(plan, promised)).trials
    others = [
        contract(yes, inputs=("a", "b")),
        contract(yes, Criterion("other", lambda text: text == "yes", at_least=0.9)),
        contract(yes, inputs={"elsewhere": ["a", "b", "c"]}),
    ]

    for other in others:
        service = Closing(yes)
        with pytest.raises(InvalidArgument, match="contract"):
            await run(plan, other, service=service)
        assert 1 == service.closed
    with pytest.raises(InvalidArgument, match="done"):
        await run(plan_of(others[2]), others[2], done=done)


async def test_sync_functions_run_side_by_side_in_threads(plan_of: PlanOf) -> None:
    """Three wait for one another, which takes three threads."""
    meeting = threading.Barrier(3)

    def wait(question: str) -> str:  # noqa: ARG001
        meeting.wait(10)
        return "yes"

    promised = contract(wait)

    outcome = await run(plan_of(promised, trials=9, concurrency=3), promised)

    assert all(trial.passed for trial in outcome.trials)


def texts(outcome: RunOutcome) -> Sequence[str | None]:
    return [trial.reply for trial in outcome.trials]


async def test_why_a_run_ended_is_redacted_too(plan_of: PlanOf) -> None:
    """A recording's trouble may quote the input."""

    async def lost(question: str) -> str:
        raise RecordingError(f"no reply to {question}", ErrorClass.PRE_VALIDATION)

    promised = contract(lost, inputs=["hunter2"])

    outcome = await run(
        plan_of(promised), promised, redact=lambda text: text.replace("hunter2", "***")
    )

    assert (StopReason.SERVICE, "no reply to ***") == (outcome.stop, outcome.message)


async def test_replies_are_kept_shortened_and_redacted(plan_of: PlanOf) -> None:
    """As the caller says."""

    async def leak(question: str) -> str:
        return f"hunter2 {question} and more"

    promised = contract(leak, inputs=["a"])

    outcome = await run(
        plan_of(promised, trials=2),
        promised,
        reply_limit=7,
        redact=lambda text: text.replace("hunter2", "***"),
    )

    assert ["*** a …"] * 2 == texts(outcome)
