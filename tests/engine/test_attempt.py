"""Attempts: time limits, retries, and the class of what goes wrong."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import anyio
import pytest

from trialwise.engine.attempt import LONGEST_WAIT_S, Caller, Response
from trialwise.engine.excerpts import Excerpts
from trialwise.engine.ports import ServiceError, SystemClock, Timer, TrialContext
from trialwise.model.reply import Reply
from trialwise.model.trial import ErrorClass
from trialwise.services import CallableService, CommandService, HttpFailure, RecordingError

pytestmark = pytest.mark.anyio


async def respond(
    service: Any,
    *,
    timeout_s: float | None = None,
    retries: int = 0,
    clock: Timer | None = None,
    given: Any = "x",
    seed: int = 5,
    redact: Callable[[str], str] | None = None,
) -> Response:
    caller = Caller(
        service if hasattr(service, "call") else CallableService(service),
        timeout_s=timeout_s,
        retries=retries,
        clock=clock or SystemClock(),
        excerpts=Excerpts(reply_limit=4000, redact=redact),
    )
    return await caller.respond(0, given, seed)


def raising(*errors: BaseException | None) -> Callable[[str], str]:
    """A function that fails as told, once for each, and then answers."""
    left = list(errors)

    def answer(question: str) -> str:
        error = left.pop(0) if left else None
        if error is not None:
            raise error
        return question

    return answer


def infrastructure(message: str, retry_after_s: float | None = None) -> HttpFailure:
    return HttpFailure(message, retry_after_s=retry_after_s)


async def test_a_reply_takes_one_attempt() -> None:
    """And has no error."""
    response = await respond(lambda question: question.upper())

    assert response.reply is not None
    assert "X" == response.reply.value
    assert (1, (), "", ErrorClass.NONE) == (
        response.attempts,
        response.attempt_errors,
        response.error,
        response.error_class,
    )


async def test_infrastructure_errors_are_tried_again_and_disclosed(virtual_clock: Any) -> None:
    """Every failed attempt keeps what it said."""
    function = raising(infrastructure("first"), infrastructure("second"))

    response = await respond(function, retries=2, clock=virtual_clock)

    assert response.reply is not None
    assert (3, ("first", "second")) == (response.attempts, response.attempt_errors)


async def test_retries_end(virtual_clock: Any) -> None:
    """The last attempt's error is the trial's."""
    function = raising(*(infrastructure(str(number)) for number in range(9)))

    response = await respond(function, retries=2, clock=virtual_clock)

    assert Response(None, ErrorClass.INFRASTRUCTURE, "2", 3, ("0", "1")) == response


@pytest.mark.parametrize(
    "error",
    [
        ServiceError("late", ErrorClass.TIMEOUT),
        ServiceError("broken", ErrorClass.PRE_VALIDATION),
        ServiceError("idle", ErrorClass.EMPTY_RUN),
        ServiceError("own", ErrorClass.NONE),
        KeyError("answer"),
        TimeoutError("its own limit"),
    ],
)
async def test_nothing_but_infrastructure_is_tried_again(
    error: Exception, virtual_clock: Any
) -> None:
    """A failure of the service's own is a result; trying until it passes would be cheating."""
    response = await respond(raising(error), retries=5, clock=virtual_clock)

    assert response.reply is None
    assert 1 == response.attempts
    late = ErrorClass.TIMEOUT if isinstance(error, TimeoutError) else ErrorClass.NONE
    assert getattr(error, "error_class", late) is response.error_class
    assert [] == virtual_clock.waits


async def test_the_server_says_how_long_to_wait(virtual_clock: Any) -> None:
    """To the second."""
    function = raising(infrastructure("busy", 7.0), infrastructure("busy", 0.0))

    await respond(function, retries=2, clock=virtual_clock)

    assert [7.0, 0.0] == virtual_clock.waits


async def test_a_server_that_asks_for_too_long_is_not_waited_for(virtual_clock: Any) -> None:
    """One worker must not sleep for a day."""
    function = raising(infrastructure("closed", LONGEST_WAIT_S + 1))

    response = await respond(function, retries=2, clock=virtual_clock)

    assert (None, 1, []) == (response.reply, response.attempts, virtual_clock.waits)


async def test_waits_double_with_jitter_that_can_be_repeated(virtual_clock: Any) -> None:
    """Half of the wait is certain, the other half is the trial's own chance."""

    async def waits(seed: int) -> list[float]:
        virtual_clock.waits.clear()
        errors = [infrastructure("down")] * 9
        await respond(raising(*errors), retries=8, clock=virtual_clock, seed=seed)
        return list(virtual_clock.waits)

    one, other, again = await waits(1), await waits(2), await waits(1)

    assert one == again
    assert one != other
    longest = [min(30.0, 0.5 * 2**number) for number in range(8)]
    assert all(limit / 2 <= wait <= limit for wait, limit in zip(one, longest, strict=True))


async def never(question: str) -> NoReturn:
    await anyio.sleep_forever()
    raise AssertionError(question)


async def test_an_attempt_that_takes_too_long_is_a_timeout() -> None:
    """And is not tried again: the time is spent."""
    response = await respond(never, timeout_s=0.01, retries=3)

    assert Response(None, ErrorClass.TIMEOUT, "no reply within 0.01 s") == response


async def test_a_command_that_takes_too_long_is_ended() -> None:
    """The whole process tree is gone before the trial is over."""
    command = CommandService(["sleep", "{input}"], grace_s=0.1)

    response = await respond(command, timeout_s=0.05, given="60")

    assert ErrorClass.TIMEOUT is response.error_class


async def test_a_command_that_cannot_start_is_not_tried_again(virtual_clock: Any) -> None:
    """A program that is not there will not be there a second later."""
    command = CommandService(["/nonexistent/agent", "{input}"])

    response = await respond(command, retries=1, clock=virtual_clock)

    assert (ErrorClass.PRE_VALIDATION, 1) == (response.error_class, response.attempts)
    assert "cannot be started" in response.error


async def test_a_command_replies_with_its_exit_code() -> None:
    """Which may be the property under test."""
    code = "import sys; print(sys.argv[1]); sys.exit(4)"

    response = await respond(CommandService([sys.executable, "-c", code, "{input}"]), timeout_s=60)

    assert response.reply is not None
    assert ("x", 4) == (response.reply.value, response.reply.exit_code)


async def test_a_service_that_will_not_be_cancelled_is_late_all_the_same() -> None:
    """Its reply came after the limit, by its own measure."""

    class Stubborn:
        async def call(self, trial: TrialContext) -> Reply:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
            return Reply(value=trial.input, latency_s=0.05)

        async def aclose(self) -> None: ...

    response = await respond(Stubborn(), timeout_s=0.01)

    assert ErrorClass.TIMEOUT is response.error_class


async def test_a_busy_event_loop_does_not_make_a_reply_late() -> None:
    """A service that replied in time by its own measure did."""

    class Held:
        async def call(self, trial: TrialContext) -> Reply:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
            return Reply(value=trial.input, latency_s=0.001)

        async def aclose(self) -> None: ...

    response = await respond(Held(), timeout_s=0.01)

    assert response.reply is not None


def leave(question: str) -> NoReturn:
    sys.exit(question)


async def cancel_itself(question: str) -> NoReturn:
    raise asyncio.CancelledError(question)


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError


def grouped(question: str) -> NoReturn:
    raise ExceptionGroup("tasks", [infrastructure(f"down for {question}")])


@pytest.mark.parametrize(
    ("function", "error_class", "said"),
    [
        (raising(ValueError("bad")), ErrorClass.NONE, "ValueError: bad"),
        (raising(KeyError()), ErrorClass.NONE, "KeyError"),
        (raising(Speechless()), ErrorClass.NONE, "Speechless"),
        (leave, ErrorClass.NONE, "sys.exit('x')"),
        (cancel_itself, ErrorClass.NONE, "cancelled itself"),
        (grouped, ErrorClass.INFRASTRUCTURE, "down for x"),
        (raising(infrastructure("down")), ErrorClass.INFRASTRUCTURE, "down"),
    ],
)
async def test_whatever_a_service_raises_is_a_response(
    function: Callable[[str], Any], error_class: ErrorClass, said: str
) -> None:
    """With its class and what it said."""
    response = await respond(function)

    assert response.reply is None
    assert error_class is response.error_class
    assert said in response.error


async def test_a_service_of_ones_own_may_leave_cancel_itself_or_return_nonsense() -> None:
    """The engine does not rely on an adapter's manners."""

    class Rude:
        def __init__(self, error: BaseException | None) -> None:
            self.error = error

        async def call(self, trial: TrialContext) -> Any:
            if self.error is not None:
                raise self.error
            return trial.input

        async def aclose(self) -> None: ...

    rude = (SystemExit(3), asyncio.CancelledError(), None)
    responses = [await respond(Rude(error)) for error in rude]

    assert [None] * 3 == [one.reply for one in responses]
    assert [ErrorClass.NONE] * 3 == [one.error_class for one in responses]
    assert [
        "SystemExit: 3",
        "RuntimeError: the service cancelled itself",
        "TypeError: the service returned str, expected a Reply",
    ] == [one.error for one in responses]


async def test_an_error_that_stops_the_run_is_no_response() -> None:
    """However many retries are left."""
    error = RecordingError("disk full", ErrorClass.INFRASTRUCTURE)

    with pytest.raises(RecordingError):
        await respond(raising(error), retries=3)


async def test_cancelling_goes_through() -> None:
    """Whoever waits for the response may stop waiting."""
    with anyio.move_on_after(0.01) as scope:
        await respond(never)

    assert scope.cancelled_caught


async def test_a_trial_cannot_change_the_input_of_the_next() -> None:
    """Agents append to the conversation they are given."""
    conversation = [{"role": "user", "content": ["hello"]}]

    def talkative(messages: list[dict[str, Any]]) -> str:
        messages[0]["content"].append("more")
        messages.append({"role": "assistant"})
        return "bye"

    await respond(talkative, given=conversation)

    assert [{"role": "user", "content": ["hello"]}] == conversation


async def test_messages_are_redacted(virtual_clock: Any) -> None:
    """Those of earlier attempts too."""
    function = raising(infrastructure("hunter2 refused"), ValueError("hunter2"))

    response = await respond(
        function, retries=1, clock=virtual_clock, redact=lambda text: text.replace("hunter2", "***")
    )

    assert (("*** refused",), "ValueError: ***") == (response.attempt_errors, response.error)
