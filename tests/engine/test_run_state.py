"""The state of a run: which trial comes next, and when there is none, without any I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import anyio
import pytest

from trialwise.engine.criterion_progress import combine_stops, issue_places, trial_seeds
from trialwise.engine.drivers.run_drivers import drive, run_plan
from trialwise.engine.excerpts import Excerpts, TextKeeper
from trialwise.engine.run_parts import Ledger
from trialwise.engine.run_state import Pause, RunState, TrialStart
from trialwise.errors import InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import StopReason
from trialwise.model.options import AbortRule, Budget
from trialwise.model.plan import Plan
from trialwise.model.reply import Reply, Usage
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.services import CallableService

PlanOf = Callable[..., Plan]


def contract(inputs: Any = ("a", "b", "c"), function: Any = str, **more: Any) -> Contract:
    criterion = Criterion("yes", lambda text: text == "yes", at_least=0.9)
    return Contract("c", function, more.pop("criteria", (criterion,)), sampling=inputs, **more)


def trial_of(
    plan: Plan, start: TrialStart, *, passed: bool = True, error: ErrorClass = ErrorClass.NONE
) -> Trial:
    """The trial that a service with this answer would make."""
    experiment = plan.experiments[start.experiment]
    result = CheckResult.ok() if passed else CheckResult.fail("no", reason=FailReason.CONDITION)
    names = [one.criterion for one in plan.criteria_of(experiment.name)]
    return Trial(
        experiment=experiment.name,
        index=start.index,
        input_id=experiment.input_ids[start.position],
        seed=start.seed,
        outcomes=tuple(Outcome(criterion=name, result=result, error_class=error) for name in names),
        error_class=error,
    )


def keeper() -> TextKeeper:
    return TextKeeper(Excerpts(reply_limit=0, redact=None))


def take(state: RunState) -> TrialStart:
    """The next trial, which must be there."""
    step = state.next()
    assert isinstance(step, TrialStart)
    return step


def test_trials_come_in_the_order_of_inputs_with_their_own_seeds(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """As the plan alone says; then the run is complete."""
    plan = plan_of(contract(), trials=8)
    state = RunState(plan, clock=virtual_clock)
    order = issue_places(plan.experiments[0], seed=plan.seed, each_input=False)
    seed_of = trial_seeds(plan.seed, "inputs")

    starts = []
    while (step := state.next()) is not None:
        assert isinstance(step, TrialStart)
        starts.append((step.index, step.position, step.seed))
        state.completed(trial_of(plan, step))

    assert [(i, order[i], seed_of(i)) for i in range(8)] == starts
    assert state.is_over
    outcome = state.outcome()
    assert (StopReason.COMPLETE, {"inputs": StopReason.COMPLETE}, "") == (
        outcome.stop,
        outcome.stops,
        outcome.message,
    )
    assert 8 == outcome.spending.trials


def test_no_trial_starts_while_as_many_as_allowed_are_in_flight(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """One that completes makes room for one."""
    plan = plan_of(contract(), trials=8, concurrency=3)
    state = RunState(plan, clock=virtual_clock)
    first = [take(state) for _ in range(3)]

    assert state.next() is None
    assert (3, False) == (state.in_flight, state.is_over)
    state.completed(trial_of(plan, first[2]))

    assert 3 == take(state).index
    assert state.next() is None


def test_the_next_experiment_waits_for_the_last_trials_of_the_one_before(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """What is in flight may still decide, and budgets count it."""
    criteria = (
        Criterion("one", str.isalpha, at_least=0.9, sampling="first"),
        Criterion("two", str.isalpha, at_least=0.9, sampling="second"),
    )
    promised = contract({"first": ["a"], "second": ["b"]}, criteria=criteria)
    plan = plan_of(promised, trials=2, concurrency=2)
    state = RunState(plan, clock=virtual_clock)
    first = [take(state), take(state)]

    assert state.next() is None
    state.completed(trial_of(plan, first[1]))
    assert state.next() is None
    state.completed(trial_of(plan, first[0]))

    assert 1 == take(state).experiment


def test_a_decision_lets_go_of_what_is_in_flight(plan_of: PlanOf, virtual_clock: Any) -> None:
    """What was started and is not needed is abandoned, and the run ends as decided."""
    plan = plan_of(contract(), trials=10, cutoff=9, concurrency=4)
    state = RunState(plan, clock=virtual_clock)
    starts = [take(state) for _ in range(4)]

    before = state.lets_go
    state.completed(trial_of(plan, starts[0], passed=False))
    settled = state.completed(trial_of(plan, starts[1], passed=False))

    assert ["yes"] == [one.plan.criterion for one in settled]
    assert (False, True) == (before, state.lets_go)
    assert state.next() is None
    state.let_go()
    assert (0, True) == (state.in_flight, state.is_over)
    outcome = state.outcome()
    assert (StopReason.CURTAILED, 2, 2) == (
        outcome.stop,
        outcome.spending.trials,
        outcome.spending.abandoned,
    )


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(trials=3), StopReason.TRIALS_BUDGET),
        (Budget(seconds=5), StopReason.TIME_BUDGET),
        (Budget(tokens=20), StopReason.TOKEN_BUDGET),
        (Budget(usd=0.2), StopReason.MONEY_BUDGET),
    ],
)
def test_a_budget_forbids_a_start_and_waits_for_what_is_paid(
    plan_of: PlanOf, virtual_clock: Any, budget: Budget, reason: StopReason
) -> None:
    """Trials in flight are paid for: their results count."""
    from dataclasses import replace

    plan = plan_of(contract(), trials=10, concurrency=3, budget=budget)
    state = RunState(plan, clock=virtual_clock)

    def complete(start: TrialStart, tokens: int) -> None:
        usage = Usage(input_tokens=tokens, output_tokens=0)
        state.completed(replace(trial_of(plan, start), usage=usage, cost_usd=tokens / 100))

    # The first one is cheap, so that two fit beside each other; the next one is not.
    complete(take(state), 1)
    starts = [take(state), take(state)]
    complete(starts[0], 20)
    virtual_clock.time += 5

    assert state.next() is None
    assert (reason, True, False) == (state.stop_reason, state.is_over, state.lets_go)
    state.completed(trial_of(plan, starts[1]))

    assert (reason, 3) == (state.outcome().stop, state.outcome().spending.trials)


@pytest.mark.parametrize("budget", [Budget(tokens=20), Budget(usd=0.2)])
def test_trials_wait_for_the_first_where_nobody_knows_what_one_takes(
    plan_of: PlanOf, virtual_clock: Any, budget: Budget
) -> None:
    """Three workers: one trial runs, then as many as the limit has room for."""
    from dataclasses import replace

    plan = plan_of(contract(), trials=10, concurrency=3, budget=budget)
    state = RunState(plan, clock=virtual_clock)
    first = take(state)
    assert state.next() is None
    assert state.stop_reason is None

    usage = Usage(input_tokens=7, output_tokens=0)
    state.completed(replace(trial_of(plan, first), usage=usage, cost_usd=0.07))

    # 7 are spent and 7 reserved: another 7 would make 21.
    take(state)
    assert state.next() is None
    assert state.stop_reason is None


def test_a_limit_from_outside_is_asked_once_for_every_start(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """It may charge what it allows, so nothing else may forbid the start afterwards."""
    asked: list[int] = []

    def limit() -> tuple[StopReason, str] | None:
        asked.append(1)
        return (StopReason.MONEY_BUDGET, "nothing is left") if len(asked) > 2 else None

    plan = plan_of(contract(), trials=10, rate_per_s=1.0)
    state = RunState(plan, clock=virtual_clock, start_limit=limit)
    started = 0
    while (step := state.next()) is not None:
        if isinstance(step, Pause):
            virtual_clock.time += step.seconds
        else:
            started += 1
            state.completed(trial_of(plan, step))

    assert (2, 3) == (started, len(asked))
    assert (StopReason.MONEY_BUDGET, "nothing is left") == (state.stop_reason, state.message)
    assert 2.0 == virtual_clock.time


def test_too_many_trials_without_an_answer_end_the_run(plan_of: PlanOf, virtual_clock: Any) -> None:
    """By the abort rule, with the caller's words for them."""
    plan = plan_of(contract(), trials=10, abort=AbortRule(max_error_rate=0.5, after=2))
    state = RunState(plan, clock=virtual_clock, unreached="were skipped")

    state.completed(trial_of(plan, take(state), passed=False, error=ErrorClass.INFRASTRUCTURE))
    assert not state.is_over
    state.completed(trial_of(plan, take(state), passed=False, error=ErrorClass.INFRASTRUCTURE))

    said = "2 of 2 trials of 'inputs' were skipped, more than the 50 % allowed"
    assert (StopReason.ERROR_RATE, said) == (state.stop_reason, state.message)
    assert state.lets_go


def test_the_first_reason_to_stop_stays(plan_of: PlanOf, virtual_clock: Any) -> None:
    """A second Ctrl-C does not hide that the service broke."""
    state = RunState(plan_of(contract(), trials=3), clock=virtual_clock)
    state.stop(StopReason.SERVICE, "broken")
    state.stop(StopReason.INTERRUPTED, "the run was interrupted")

    assert state.next() is None
    outcome = state.outcome("not closed")
    assert (StopReason.SERVICE, "broken; not closed") == (outcome.stop, outcome.message)


def test_an_end_after_the_last_trial_cuts_nothing_short(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """A run that had everything is complete, whoever pressed Ctrl-C afterwards."""
    plan = plan_of(contract(), trials=1)
    state = RunState(plan, clock=virtual_clock)
    state.completed(trial_of(plan, take(state)))
    state.stop(StopReason.INTERRUPTED, "the run was interrupted")

    assert (StopReason.COMPLETE, "") == (state.outcome().stop, state.outcome().message)


def test_what_was_done_before_is_counted_and_not_run_again(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """In whatever order it had come back."""
    plan = plan_of(contract(), trials=4)
    whole = RunState(plan, clock=virtual_clock)
    trials = []
    while (step := whole.next()) is not None:
        assert isinstance(step, TrialStart)
        trials.append(trial_of(plan, step))
        whole.completed(trials[-1])

    state = RunState(plan, [trials[2], trials[0]], clock=virtual_clock)
    rest = [take(state).index]
    state.completed(trials[1])
    rest.append(take(state).index)
    state.completed(trials[3])

    assert [1, 3] == rest
    assert whole.outcome().trials == state.outcome().trials
    with pytest.raises(InvalidArgument, match="samplings"):
        RunState(plan_of(contract({"other": ["a"]}), trials=4), trials, clock=virtual_clock)


def test_the_end_of_a_run_is_what_cut_it_short_or_its_earliest_kind_of_end() -> None:
    """One experiment that was cut is enough."""
    complete, decided = StopReason.COMPLETE, StopReason.DECIDED

    assert StopReason.MONEY_BUDGET == combine_stops([complete, StopReason.MONEY_BUDGET])
    assert decided == combine_stops([complete, decided])
    assert complete == combine_stops([complete])


# --- An executor is one more driver -----------------------------------------------------------


class Threads:
    """An executor on a pool of threads, as short as one can be."""

    def __init__(self, call: Callable[[TrialStart], Trial], size: int) -> None:
        self._call = call
        self._pool = ThreadPoolExecutor(size)
        self._futures: set[Future[Trial]] = set()
        self.let_go_of = 0

    @property
    def in_flight(self) -> int:
        return len(self._futures)

    def start(self, start: TrialStart) -> None:
        self._futures.add(self._pool.submit(self._call, start))

    def wait(self) -> Sequence[Trial]:
        done, self._futures = wait(self._futures, return_when=FIRST_COMPLETED)
        return [one.result() for one in done]

    def let_go(self) -> None:
        self.let_go_of += 1

    def close(self) -> None:
        self._pool.shutdown()


def _answer(_: str, seed: int) -> str:
    return "yes" if seed % 5 else "no"


@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_executor_decides_what_the_event_loop_decides(
    plan_of: PlanOf, virtual_clock: Any, concurrency: int
) -> None:
    """Same seeds, same outcomes, same end: who runs the trials has no say in it."""
    promised = contract(function=_answer)
    plan = plan_of(promised, trials=60, cutoff=57, concurrency=concurrency)
    inputs = promised.samplings["inputs"].inputs

    def call(start: TrialStart) -> Trial:
        said = _answer(inputs[start.position].value, start.seed)
        return trial_of(plan, start, passed=said == "yes")

    state = RunState(plan, clock=virtual_clock)
    ledger = Ledger(state, None, virtual_clock, keeper())
    executor = Threads(call, concurrency)
    assert drive(state, executor, lambda trial: _must_count(ledger, trial)) is None

    async def on_a_loop() -> Any:
        return await run_plan(plan, promised, CallableService(_answer), log=None)

    other = anyio.run(on_a_loop)
    mine = state.outcome()
    assert (StopReason.CURTAILED, StopReason.CURTAILED) == (mine.stop, other.stop)
    # A trial in flight at the end may or may not be counted. Those counted in both runs are equal.
    counted, elsewhere = (
        {t.index: (t.input_id, t.seed, t.passed) for t in run.trials} for run in (mine, other)
    )
    both = counted.keys() & elsewhere.keys()
    assert len(both) >= len(counted) - 2 * concurrency
    assert {i: counted[i] for i in both} == {i: elsewhere[i] for i in both}


def _must_count(ledger: Ledger, trial: Trial) -> None:
    assert ledger.count(trial) is not None


def test_an_interrupt_keeps_what_is_complete_and_is_handed_back(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """The caller decides on it first and raises it then."""
    plan = plan_of(contract(), trials=10)

    def call(start: TrialStart) -> Trial:
        if start.index == 3:
            raise KeyboardInterrupt
        return trial_of(plan, start)

    class InPlace(Threads):
        def start(self, start: TrialStart) -> None:
            future: Future[Trial] = Future()
            future.set_result(call(start))
            self._futures.add(future)

    state = RunState(plan, clock=virtual_clock)
    ledger = Ledger(state, None, virtual_clock, keeper())

    stopped = drive(state, InPlace(call, 1), lambda trial: _must_count(ledger, trial))

    assert isinstance(stopped, KeyboardInterrupt)
    outcome = state.outcome()
    assert (StopReason.INTERRUPTED, 3, 1) == (
        outcome.stop,
        len(outcome.trials),
        outcome.spending.abandoned,
    )


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_trial_that_will_not_come_back_is_asked_again(
    plan_of: PlanOf, virtual_clock: Any, concurrency: int
) -> None:
    """With its own input and seed, before any later trial, so that the order has no gap."""
    plan = plan_of(contract(), trials=6, concurrency=concurrency)
    state = RunState(plan, clock=virtual_clock)
    first = take(state)
    others = [take(state) for _ in range(concurrency - 1)]
    for one in others:
        state.completed(trial_of(plan, one))
    state.abandon(first.index)

    assert first == take(state)
    state.let_go()
    assert (0, 2) == (state.in_flight, state.outcome().spending.abandoned)
    again = take(state)
    assert first == again
    state.completed(trial_of(plan, again))
    while isinstance(step := state.next(), TrialStart):
        state.completed(trial_of(plan, step))

    outcome = state.outcome()
    assert list(range(6)) == [one.index for one in outcome.trials]
    assert StopReason.COMPLETE is outcome.stop


def test_a_lost_trial_is_not_asked_again_once_all_is_settled(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """Two failures decide, so that what was lost is needed no more."""
    plan = plan_of(contract(), trials=10, cutoff=9, concurrency=3)
    state = RunState(plan, clock=virtual_clock)
    starts = [take(state) for _ in range(3)]
    state.abandon(starts[2].index)
    for one in starts[:2]:
        state.completed(trial_of(plan, one, passed=False))

    assert state.next() is None
    assert (True, StopReason.CURTAILED) == (state.is_over, state.outcome().stop)


def test_nothing_is_decided_without_a_trial_that_is_missing(
    plan_of: PlanOf, virtual_clock: Any
) -> None:
    """A run that has gone through its plan with a gap in the order ends with an error."""
    plan = plan_of(contract(), trials=6)
    state = RunState(plan, clock=virtual_clock)
    (experiment,) = state.experiments
    whole = []
    while isinstance(step := state.next(), TrialStart):
        whole.append(trial_of(plan, step))
        state.completed(whole[-1])
    experiment.check_gaps()

    gapped = RunState(plan, [one for one in whole if one.index != 2], clock=virtual_clock)
    with pytest.raises(AssertionError, match="trial 2 of 'inputs' is missing"):
        gapped.experiments[0].check_gaps()
    # It is asked, and then nothing is missing.
    assert 2 == take(gapped).index
    gapped.completed(whole[2])
    gapped.experiments[0].check_gaps()


def test_a_trial_that_cannot_be_written_does_not_count(plan_of: PlanOf, virtual_clock: Any) -> None:
    """A resumed run would decide without it."""

    class Full:
        def append_text(self, text: str) -> None:
            assert text
            raise OSError("no space left")

        def sync(self) -> None: ...

    plan = plan_of(contract(), trials=3)
    state = RunState(plan, clock=virtual_clock)
    trial = trial_of(plan, take(state))

    assert Ledger(state, Full(), virtual_clock, keeper()).count(trial) is None
    state.abandon(trial.index, [Reply(value="", cost_usd=0.5)])

    outcome = state.outcome()
    assert (0, StopReason.SERVICE, 1, 0.5) == (
        len(outcome.trials),
        outcome.stop,
        outcome.spending.abandoned,
        outcome.spending.abandoned_usd,
    )
    assert "the trial log cannot be written: no space left" == outcome.message
