"""Runs several calls at once, and finds out which call was cancelled or ended the program."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from trialwise.engine.ports import TrialContext

T = TypeVar("T")


async def gather(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return what each call returns, in order.

    A task group raises what its tasks raise in a group of exceptions, which no caller expects. Here
    the first error lets the other calls go and is raised itself.

    >>> import anyio
    >>> async def answer() -> str:
    ...     return "555"
    >>> anyio.run(gather, [answer, answer])
    ['555', '555']
    """
    if len(calls) == 1:
        return [await calls[0]()]
    from anyio import create_task_group, get_cancelled_exc_class

    found: dict[int, T] = {}
    errors: list[BaseException] = []

    async def one(place: int, call: Callable[[], Awaitable[T]]) -> None:
        try:
            found[place] = await call()
        except get_cancelled_exc_class():
            raise
        except BaseException as error:
            errors.append(error)
            group.cancel_scope.cancel()

    async with create_task_group() as group:
        for place, call in enumerate(calls):
            group.start_soon(one, place, call)
    if errors:
        raise errors[0]
    return [found[place] for place in range(len(calls))]


def is_unasked(error: BaseException) -> bool:
    """Return whether an error is a cancellation of the current task that nobody outside asked for.

    A cancelled trial and a service that cancelled itself raise the same exception. The first must
    be let through; the second would silently end the run although nobody asked for that.
    """
    from anyio import current_effective_deadline, get_cancelled_exc_class

    if not isinstance(error, get_cancelled_exc_class()):
        return False
    if current_effective_deadline() == -math.inf:
        return False
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:  # not asyncio: anyio's scopes are all there is
        return True
    return task is not None and task.cancelling() == 0


#: The last attempt that this task has made, which tasks that a service starts inherit.
ATTEMPT: ContextVar[TrialContext | None] = ContextVar("trialwise_attempt", default=None)


def charge_exit(left: SystemExit) -> bool:
    """Charge an exit that ended the event loop to the call whose task or callback it was.

    Returns:
        Whether that call is still under way.
    """
    import asyncio

    trace = left.__traceback__
    while trace is not None:
        handle = trace.tb_frame.f_locals.get("self")
        if isinstance(handle, asyncio.Handle):
            attempt = handle._context.get(ATTEMPT)  # type: ignore[attr-defined]
            if attempt is None or attempt.ended is True:
                return False
            attempt.ended = attempt.ended or left
            return True
        trace = trace.tb_next
    return False
