"""The function that a contract has called before each trial, such as one that resets a database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from inspect import Parameter, iscoroutinefunction, signature
from time import perf_counter
from typing import Any, TypeAlias

from trialwise.engine.attempt import own_failure
from trialwise.engine.excerpts import error_text
from trialwise.engine.ports import HOOK_FAILED, ServiceError, TrialContext
from trialwise.model.reply import Setup
from trialwise.model.trial import ErrorClass

#: Called before each attempt at a trial; returns what it took.
BeforeEach: TypeAlias = Callable[[TrialContext], Awaitable[Setup]]
#: What the function may take, by these names.
_KNOWN = ("input", "index", "seed")


def make_hook(function: Callable[..., Any] | None, *, in_thread: bool) -> BeforeEach | None:
    """Make the hook of a function; None where there is none.

    Args:
        function: Takes any of `input`, `index` and `seed`, or nothing; may be async.
        in_thread: Whether a plain function must not hold up the event loop.
    """
    if function is None:
        return None
    taken = signature(function).parameters.values()
    names = [one.name for one in taken if one.name in _KNOWN]
    if any(one.kind is Parameter.VAR_KEYWORD for one in taken):
        names = list(_KNOWN)

    async def call(context: TrialContext) -> Setup:
        began_s = perf_counter()
        found: object = None
        bound = partial(function, **{name: getattr(context, name) for name in names})
        try:
            if in_thread and not iscoroutinefunction(function):
                from anyio import to_thread

                found = await to_thread.run_sync(bound)
            else:
                found = bound()
                if isinstance(found, Awaitable):
                    found = await found
        except BaseException as caught:
            error = own_failure(caught)
            # Nothing was asked, so nothing can be said about the service.
            message = f"{HOOK_FAILED}: {error_text(error)}"
            raise ServiceError(message, ErrorClass.INFRASTRUCTURE) from error
        told = found if isinstance(found, Setup) else Setup()
        return told if told.seconds else replace(told, seconds=perf_counter() - began_s)

    return call
