"""What a call took that came to nothing: kept, counted against the budget, and journalled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from trialwise.checks import contains
from trialwise.engine.attempt import Caller, Response
from trialwise.engine.drivers.run_drivers import run_plan
from trialwise.engine.excerpts import Excerpts
from trialwise.engine.ports import Service, ServiceError, SystemClock, TrialContext
from trialwise.engine.reply_checking import ReplyChecker
from trialwise.engine.run_state import TrialStart
from trialwise.engine.spending_meter import Meter
from trialwise.model.claim import Input
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import StopReason
from trialwise.model.options import Budget
from trialwise.model.plan import Plan
from trialwise.model.reply import Reply, Setup, Usage
from trialwise.model.trial import ErrorClass, FailReason, Trial
from trialwise.model.trial_lines import read_trial, write_trial
from trialwise.services import CallableService, HttpFailure
from trialwise.stores.journal import Journal, read_journal

pytestmark = pytest.mark.anyio

PlanOf = Callable[..., Plan]
CALLS = [{"name": "search", "args": {"q": "hunter2"}}, {"name": "book"}]
PARTIAL = Reply(
    value="on the way",
    latency_s=9.0,
    usage=Usage(input_tokens=30, output_tokens=3),
    cost_usd=0.25,
    details={"tool_calls": CALLS},
    setup=Setup(seconds=1.5, usage=Usage(input_tokens=7), cost_usd=0.125),
)


async def respond(
    function: Callable[..., Any],
    *,
    timeout_s: float | None = None,
    retries: int = 0,
    clock: Any = None,
) -> Response:
    caller = Caller(
        CallableService(function),
        timeout_s=timeout_s,
        retries=retries,
        clock=clock or SystemClock(),
        excerpts=Excerpts(reply_limit=4000, redact=None),
    )
    return await caller.respond(0, "x", 5)


def score(response: Response, activity: Callable[[Reply], bool] | None = None) -> Trial:
    scorer = ReplyChecker(
        "inputs",
        [Criterion("c", contains("yes"), at_least=0.9)],
        activity=activity,
        excerpts=Excerpts(reply_limit=4000, redact=lambda text: text.replace("hunter2", "***")),
    )
    return scorer.trial(TrialStart(0, 0, 0, 5), Input(id="1", value="x"), response, 0.0)


# --- from the service to the response ------------------------------------------------------------


async def test_an_error_does_not_lose_what_was_done() -> None:
    """Whatever kind of error it is."""

    async def failing(trial: TrialContext) -> str:
        trial.keep(lambda: PARTIAL)
        raise RuntimeError("crash")

    response = await respond(failing)

    assert (None, PARTIAL, "RuntimeError: crash") == (
        response.reply,
        response.partial,
        response.error,
    )


async def test_a_timeout_does_not_lose_what_was_done() -> None:
    """A call that was cancelled can say nothing any more; what was done is asked for at the end."""
    steps: list[int] = []

    async def working(trial: TrialContext) -> str:
        trial.keep(lambda: Reply(value="", usage=Usage(output_tokens=len(steps))))
        while True:
            steps.append(1)
            await anyio.sleep(0.005)

    response = await respond(working, timeout_s=0.05)

    assert ErrorClass.TIMEOUT is response.error_class
    assert response.partial is not None
    assert Usage(output_tokens=len(steps)) == response.partial.usage
    assert len(steps) > 1


async def test_a_reply_that_came_too_late_was_paid_for() -> None:
    """It is no reply, and what it took is known."""

    class Stubborn:
        async def call(self, trial: TrialContext) -> Reply:  # noqa: ARG002
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
            return Reply(value="yes", latency_s=0.05, cost_usd=0.5)

        async def aclose(self) -> None: ...

    caller = Caller(
        Stubborn(),
        timeout_s=0.01,
        retries=0,
        clock=SystemClock(),
        excerpts=Excerpts(reply_limit=0, redact=None),
    )
    trial = score(await caller.respond(0, "x", 5))

    assert (ErrorClass.TIMEOUT, 0.5, False) == (trial.error_class, trial.cost_usd, trial.passed)


async def test_attempts_before_the_last_are_paid_for_as_well(virtual_clock: Any) -> None:
    """Two that failed and one that did not make one trial, and one sum."""
    tried: list[int] = []

    async def flaky(trial: TrialContext) -> Reply:
        tried.append(1)
        if len(tried) == 1:
            trial.keep(lambda: PARTIAL)
        if len(tried) < 3:
            raise HttpFailure("busy")
        return Reply(value="yes", usage=Usage(input_tokens=100), cost_usd=1.0)

    response = await respond(flaky, retries=2, clock=virtual_clock)
    trial = score(response)

    assert (PARTIAL,) == response.lost
    assert (3, True) == (trial.attempts, trial.passed)
    assert (Usage(input_tokens=130, output_tokens=3), 1.25) == (trial.usage, trial.cost_usd)
    assert (1.5, Usage(input_tokens=7), 0.125) == (
        trial.setup_s,
        trial.setup_usage,
        trial.setup_cost_usd,
    )


@pytest.mark.parametrize("so_far", [lambda: 1 / 0, lambda: "nonsense", lambda: None])
async def test_a_service_that_tells_nonsense_tells_nothing(so_far: Callable[[], Any]) -> None:
    """The error is the one of the service."""

    async def failing(trial: TrialContext) -> str:
        trial.keep(so_far)
        raise ServiceError("gone", ErrorClass.INFRASTRUCTURE)

    response = await respond(failing)

    assert (None, "gone") == (response.partial, response.error)


# --- from the response to the trial --------------------------------------------------------------


@pytest.mark.parametrize(
    "error_class", [ErrorClass.NONE, ErrorClass.TIMEOUT, ErrorClass.INFRASTRUCTURE]
)
def test_a_trial_without_a_reply_keeps_what_it_took(error_class: ErrorClass) -> None:
    """Its outcomes fail for want of a value, and there is neither a reply nor a latency."""
    trial = score(Response(None, error_class, "no", partial=PARTIAL))

    assert (error_class, "no", None, None) == (
        trial.error_class,
        trial.error,
        trial.reply,
        trial.latency_s,
    )
    outcome = trial.outcomes[0]
    assert (FailReason.NO_VALUE, error_class) == (outcome.result.reason, outcome.error_class)
    assert (PARTIAL.usage, 0.25) == (trial.usage, trial.cost_usd)
    assert (1.5, Usage(input_tokens=7), 0.125) == (
        trial.setup_s,
        trial.setup_usage,
        trial.setup_cost_usd,
    )
    assert ({"name": "search", "args": {"q": "***"}}, {"name": "book"}) == trial.tool_calls
    again = read_trial(write_trial(trial), experiment="inputs", criteria=("c",))
    assert trial == again


def test_only_a_session_that_had_a_fair_chance_tells_how_steady_it_was() -> None:
    """One that infrastructure cut short would look steadier than it is."""
    late = score(Response(None, ErrorClass.TIMEOUT, "late", partial=PARTIAL))
    lost = score(Response(None, ErrorClass.INFRASTRUCTURE, "lost", partial=PARTIAL))

    assert late.shape is not None
    assert 2 == late.shape.total_calls
    assert lost.shape is None


def test_a_timeout_without_any_tool_call_is_an_empty_run() -> None:
    """One in the middle of the work is the service's own failure, like one that tells nothing."""
    idle = Reply(value="", cost_usd=0.01, details={"tool_calls": []})
    said = {"tool_calls": [], "conversation": {"turns": [{"role": "user", "content": "x"}]}}
    found = [
        score(Response(None, ErrorClass.TIMEOUT, "no reply within 5 s", partial=one))
        for one in (idle, Reply(value="", details={"trace": said}), PARTIAL, Reply(value=""), None)
    ]

    assert [ErrorClass.EMPTY_RUN] * 2 + [ErrorClass.TIMEOUT] * 3 == [
        one.error_class for one in found
    ]
    assert "no reply within 5 s, and nothing was done until then" == found[0].error
    assert [True, True, False, False, False] == [one.is_excused for one in found]
    assert 0.01 == found[0].cost_usd


def test_who_says_what_activity_is_says_it_of_timeouts_too() -> None:
    """Of those without a tool call, and without a trace; a signal that raises excuses nothing."""

    def is_active(reply: Reply) -> bool:
        return bool(reply.usage and reply.usage.output_tokens > 1 and reply.details["input"])

    silent = Reply(value="", usage=Usage(input_tokens=9), details={"tool_calls": []})
    talking = Reply(value="", usage=Usage(output_tokens=9), details={"tool_calls": []})
    broken: Callable[[Reply], bool] = lambda reply: reply.details["none"]  # noqa: E731

    def classed(partial: Reply, activity: Callable[[Reply], bool]) -> ErrorClass:
        response = Response(None, ErrorClass.TIMEOUT, "late", partial=partial)
        return score(response, activity).error_class

    assert ErrorClass.EMPTY_RUN is classed(silent, is_active)
    assert ErrorClass.EMPTY_RUN is classed(Reply(value=""), is_active)
    assert ErrorClass.TIMEOUT is classed(talking, is_active)
    # What a reply says cannot be a sign of work where there is none.
    assert ErrorClass.TIMEOUT is classed(PARTIAL, lambda reply: reply.text == "done")
    assert ErrorClass.TIMEOUT is classed(silent, broken)
    failed = Response(None, ErrorClass.INFRASTRUCTURE, "gone", partial=silent)
    assert ErrorClass.INFRASTRUCTURE is score(failed, is_active).error_class


# --- the whole run -------------------------------------------------------------------------------


async def test_money_that_was_spent_on_nothing_is_spent(
    plan_of: PlanOf, journal: Journal, tmp_path: Path
) -> None:
    """It counts toward the budget, it is in the journal, and a resumed run counts it once."""

    async def failing(trial: TrialContext) -> str:
        trial.keep(lambda: PARTIAL)
        raise RuntimeError("crash")

    criterion = Criterion("c", contains("yes"), at_least=0.9)
    contract = Contract("agent", failing, [criterion], sampling=["a", "b"])
    # Each takes 0.25 and 0.125 of setup: the third would make 1.125.
    plan = plan_of(contract, trials=20, budget=Budget(usd=1.0))

    outcome = await run_plan(plan, contract, CallableService(failing), log=journal)

    assert (StopReason.MONEY_BUDGET, 2) == (outcome.stop, len(outcome.trials))
    spent = outcome.spending
    assert (0.5, 0.25, 2 * 33, 2 * 7) == (
        spent.usd,
        spent.setup_usd,
        spent.tokens,
        spent.setup_tokens,
    )
    kept = tuple(
        read_trial(line, experiment="inputs", criteria=("c",))
        for line in read_journal(tmp_path / "journal.jsonl")
    )
    assert outcome.trials == kept
    wider = plan_of(contract, trials=20, budget=Budget(usd=2.0))
    again = await run_plan(wider, contract, CallableService(failing), log=None, done=kept)
    # Six would make 2.25, and the first two are not paid again.
    assert (5, 1.25) == (len(again.trials), again.spending.usd)


# --- trials that nobody waits for ----------------------------------------------------------------


async def test_a_cancelled_trial_tells_what_it_took() -> None:
    """The attempt that was cut off and those before it; a request under way is unknown."""
    abandoned: list[Reply] = []
    before = Reply(value="", cost_usd=0.5)

    class Flaky:
        calls = 0

        async def call(self, trial: TrialContext) -> Reply:
            self.calls += 1
            if self.calls == 1:
                trial.keep(lambda: before)
                raise HttpFailure("overloaded", status=503, retry_after_s=0.0)
            trial.keep(lambda: PARTIAL)
            await anyio.sleep_forever()
            raise AssertionError

        async def aclose(self) -> None:
            """Nothing to close."""

    with anyio.move_on_after(0.2):
        await _caller(Flaky(), abandoned, retries=1).respond(0, "x", 5)

    assert [before, PARTIAL] == abandoned


async def test_a_trial_that_is_cancelled_between_attempts_tells_what_it_took() -> None:
    """Once, and not again for the attempt that never came."""
    abandoned: list[Reply] = []

    async def failing(trial: TrialContext) -> str:
        trial.keep(lambda: PARTIAL)
        raise HttpFailure("overloaded", status=503, retry_after_s=20.0)

    with anyio.move_on_after(0.1):
        await _caller(CallableService(failing), abandoned, retries=1).respond(0, "x", 5)

    assert [PARTIAL] == abandoned


async def test_a_trial_that_ends_the_run_tells_what_it_took() -> None:
    """It has no response that could tell it."""
    abandoned: list[Reply] = []

    class Final(ServiceError):
        stops_run = True

    async def failing(trial: TrialContext) -> str:
        trial.keep(lambda: PARTIAL)
        raise Final("never again", ErrorClass.INFRASTRUCTURE)

    with pytest.raises(Final):
        await _caller(CallableService(failing), abandoned).respond(0, "x", 5)

    assert [PARTIAL] == abandoned


def _caller(service: Service, abandoned: list[Reply], *, retries: int = 0) -> Caller:
    return Caller(
        service,
        timeout_s=None,
        retries=retries,
        clock=SystemClock(),
        excerpts=Excerpts(reply_limit=4000, redact=None),
        abandon=abandoned.extend,
    )


def test_what_nobody_waited_for_counts_toward_the_budget() -> None:
    """Setup included; what is not told is not taken for nothing."""
    meter = Meter(Budget(usd=1.0, tokens=1000), SystemClock())
    meter.abandon([Reply(value="")])
    spending = meter.spending()
    assert (0, None) == (spending.abandoned_tokens, spending.abandoned_usd)

    meter.abandon([PARTIAL, PARTIAL])
    spending = meter.spending()
    assert 2 * (33 + 7) == spending.abandoned_tokens
    assert 2 * (0.25 + 0.125) == spending.abandoned_usd
    assert meter.find_limit(0) is None

    meter.abandon([PARTIAL])
    spent = meter.find_limit(0)
    assert spent is not None
    assert StopReason.MONEY_BUDGET is spent[0]


async def test_a_later_sampling_cannot_spend_what_abandoned_trials_took(plan_of: PlanOf) -> None:
    """The first decides early, its trials in flight have used up the money, the second waits."""

    async def agent(trial: TrialContext) -> Reply:
        trial.keep(lambda: Reply(value="", cost_usd=10.0))
        if trial.index >= 5:
            await anyio.sleep_forever()
        await anyio.sleep(0.002)
        return Reply(value="yes", cost_usd=0.1)

    promised = Contract(
        "agent",
        agent,
        [
            Criterion("first", contains("yes"), at_least=0.5, sampling="one"),
            Criterion("second", contains("yes"), at_least=0.5, sampling="two"),
        ],
        sampling={"one": ["a"], "two": ["b"]},
    )
    plan = plan_of(promised, trials=20, cutoff=5, concurrency=4, budget=Budget(usd=20.0))

    outcome = await run_plan(plan, promised, CallableService(agent), log=None)

    assert StopReason.MONEY_BUDGET is outcome.stop
    assert {"one"} == {trial.experiment for trial in outcome.trials}
    spent = outcome.spending
    # What abandoned trials took is told apart: the trials' own sum is theirs alone.
    assert (0.5, 10.0 * spent.abandoned) == (spent.usd, spent.abandoned_usd)
