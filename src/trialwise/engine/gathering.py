"""Several calls at once, with an error that comes out as it went in.

A task group raises what its tasks raise in a group of exceptions, which no caller expects. Here the
first error lets the other calls go and is raised itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

__all__ = ["gather"]

T = TypeVar("T")


async def gather(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """What each call returns, in order.

    >>> import anyio
    >>> async def answer() -> str:
    ...     return "555"
    >>> anyio.run(gather, [answer, answer])
    ['555', '555']
    """
    if len(calls) == 1:
        return [await calls[0]()]
    from anyio import create_task_group

    found: dict[int, T] = {}
    errors: list[Exception] = []

    async def one(place: int, call: Callable[[], Awaitable[T]]) -> None:
        try:
            found[place] = await call()
        except Exception as error:
            errors.append(error)
            group.cancel_scope.cancel()

    async with create_task_group() as group:
        for place, call in enumerate(calls):
            group.start_soon(one, place, call)
    if errors:
        raise errors[0]
    return [found[place] for place in range(len(calls))]
