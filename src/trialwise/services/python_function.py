"""A Python function under test, and the threads that sync functions run in.

The threads are not those of `anyio.to_thread`: its threads are not daemons, so one function that
hangs for ever would keep the interpreter from ending long after the verdict is out. These are
reused like anyio's, and carry the caller's context variables.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from copy import copy
from dataclasses import replace
from functools import partial
from operator import attrgetter
from queue import SimpleQueue
from typing import Annotated, Any, ClassVar, TypeVar

from trialwise.declarations.resources import PythonFunction
from trialwise.declarations.signatures import Arg
from trialwise.engine.ports import ServiceError, TrialContext, is_unasked
from trialwise.errors import InvalidArgument
from trialwise.model import ErrorClass, Reply, Trace
from trialwise.model.reply import make_reply
from trialwise.traces.trace_building import read_session

__all__ = ["CallableService"]


_FIELDS = ("input", "index", "seed")
#: What of a trial a parameter is given.
_PARTS: dict[str, Callable[[TrialContext], Any]] = {
    "trial": lambda trial: trial,
    **{field: attrgetter(field) for field in _FIELDS},
}
#: Values that nobody awaits and that are nothing but a value.
_PLAIN = frozenset({str, dict, list, bool, int, float, type(None)})
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
T = TypeVar("T")


class CallableService:
    """A sync or async function that is called with the arguments in its signature.

    A parameter named `input`, `index` or `seed` is given that part of the trial; one named `trial`
    or annotated `TrialContext` is given all of it; the first other required parameter is given the
    input. Parameters with a default are left alone otherwise. What the function returns is the
    reply's value, or the reply itself if it is a `Reply` or a `Trace`. A list of messages and the
    result of an agent framework (LangChain, LangGraph, Pydantic AI, the OpenAI Agents SDK) are a
    session: the value is its answer. What the function raises is its own failure.

    A sync function runs in a thread with the caller's context variables. A thread cannot be
    stopped from outside: with `abandon_on_cancel` (the default) a cancelled call returns at once
    and the function runs on unobserved to its end, without keeping the interpreter from ending;
    otherwise one that hangs would hang the whole run. Give that up only for functions that always
    return and must not overlap; make a function async, or a command, where cancelling has to end
    it.

    >>> import anyio
    >>> service = CallableService(lambda question, seed: f"{question}? {seed}")
    >>> trial = TrialContext(index=0, input="why", seed=7)
    >>> anyio.run(service.call, trial).value
    'why? 7'

    Args:
        function: The function that is under test.
        abandon_on_cancel: Whether cancelling a sync function returns immediately.
        in_thread: Whether a sync function runs in a thread. Without a thread, nothing else runs
            meanwhile and nothing can cancel it, but it may start its own event loop. By default it
            runs in a thread if trials are concurrent or have a time limit.
        clock: Seconds from any origin, for the latency.
    """

    spelling: ClassVar[str] = "python"

    def __init__(
        self,
        function: Annotated[Callable[..., Any], Arg(kind=PythonFunction())],
        *,
        abandon_on_cancel: bool = True,
        in_thread: bool | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not callable(function):
            raise InvalidArgument("function", function, "be callable")
        own_call = getattr(function, "__call__", None)  # noqa: B004 - its kind is looked at
        for candidate in (function, own_call):
            if inspect.isgeneratorfunction(candidate) or inspect.isasyncgenfunction(candidate):
                raise InvalidArgument("function", function, "return its reply, not yield it")
        self._function = function
        self._is_async = any(map(inspect.iscoroutinefunction, (function, own_call)))
        # Looked up once: it runs for every trial.
        parameters = [(name, _PARTS[part]) for name, part in _arguments(function)]
        self._positional = [part for name, part in parameters if not name]
        self._named = [one for one in parameters if one[0]]
        self.takes_nothing = not parameters
        """Whether the function is called without the input, so that all inputs are alike to it."""
        self._abandon_on_cancel = abandon_on_cancel
        self._in_thread = in_thread
        self._threads = DaemonThreads()
        self._clock = clock
        # Taken here, outside of any loop, since a loop's own variables would show.
        self._context = copy_context()

    def __getstate__(self) -> dict[str, Any]:
        # Threads and context variables stay in their process.
        return {**vars(self), "_threads": None, "_context": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _threads=DaemonThreads(), _context=copy_context())

    async def call(self, trial: TrialContext) -> Reply:
        """Return the function's reply to one trial; waiting for a thread is not latency."""
        try:
            if self._is_async:
                # Calling it only makes a coroutine, so that there is nothing to guard yet.
                started = ended = self._clock()
                value = self._call(trial)
            elif self._in_thread is False:
                value, started, ended = self._timed_in_place(trial)
            else:
                value, started, ended = await self._threads.run(
                    partial(self._call_timed, trial), abandon_on_cancel=self._abandon_on_cancel
                )
            # The plain cases first: looking closer takes longer than many a function.
            kind = type(value)
            if kind not in _PLAIN and inspect.isawaitable(value):
                with _ending_copies():
                    value = await value
                ended = self._clock()
        except SystemExit as stop:
            # Leaving the interpreter is a failure of the service, not the end of the run.
            raise RuntimeError(f"the service called sys.exit({stop.code!r})") from stop
        except BaseException as error:
            # A cancellation that nobody asked for would end the run without a verdict.
            if is_unasked(error):
                raise RuntimeError("the service cancelled itself") from error
            if _is_of_other_loop(error):
                message = (
                    f"the service uses a client of another event loop ({type(error).__name__}: "
                    f"{error}). Inside a running loop write `await tw.arun(...)`; otherwise open "
                    "the client in the service"
                )
                raise ServiceError(message, ErrorClass.INFRASTRUCTURE, stops_run=True) from error
            raise
        # To the nanosecond, since the clock tells no more.
        # A clock that somebody passes in may go back, and no call takes less than no time.
        return _reply(value, max(0.0, round(ended - started, 9)))

    def placed(self, *, in_thread: bool) -> CallableService:
        """Return the service as a run wants it; one that says where it runs is returned as it is.

        Args:
            in_thread: Whether a sync function gets a thread.
        """
        if self._in_thread is not None:
            return self
        placed = copy(self)
        placed._in_thread = in_thread
        return placed

    async def aclose(self) -> None:
        """End the threads that wait for work; a later call starts new ones."""
        self._threads.close()

    def _call_timed(self, trial: TrialContext) -> tuple[Any, float, float]:
        started = self._clock()
        with _ending_copies():
            value = self._call(trial)
        return value, started, self._clock()

    def _call(self, trial: TrialContext) -> Any:
        named = {name: part(trial) for name, part in self._named}
        return self._function(*[part(trial) for part in self._positional], **named)

    def _timed_in_place(self, trial: TrialContext) -> tuple[Any, float, float]:
        """Call a sync function as if no event loop were running: many clients start their own."""
        import asyncio

        loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            # A copy each: what one trial sets must not be there for the next.
            return self._context.copy().run(self._call_timed, trial)
        finally:
            asyncio._set_running_loop(loop)

    def __repr__(self) -> str:
        name = getattr(self._function, "__qualname__", None) or repr(self._function)
        return f"CallableService({name})"


@contextmanager
def _ending_copies() -> Iterator[None]:
    """End a copy of the process that the function makes with `fork` and returns from.

    The copy would go on with the run as if it were the run.
    """
    process, code = os.getpid(), 0
    try:
        yield
    except BaseException as error:
        said = error.code if isinstance(error, SystemExit) else 1
        code = said if isinstance(said, int) else int(said is not None)
        raise
    finally:
        if os.getpid() != process:
            os._exit(code)


def _reply(value: Any, latency_s: float) -> Reply:
    # The plain cases first: looking closer takes longer than many a function.
    if type(value) in _PLAIN and not _may_be_session(value):
        return make_reply(value, latency_s)
    if not isinstance(value, Reply):
        value = _read_session(value)
    if not isinstance(value, Reply):
        return Reply(value=value, latency_s=latency_s)
    # A reply that says how long it took knows better: it may come from a remote measurement.
    return value if value.latency_s else replace(value, latency_s=latency_s)


def _may_be_session(value: Any) -> bool:
    """Return whether a plain value may be messages, or a state that holds some."""
    if type(value) is list and value:
        first = value[0]
        return type(first) not in _PLAIN or (type(first) is dict and "role" in first)
    return type(value) is dict and "messages" in value


def _read_session(value: Any) -> Any:
    """Return the reply of a trace, of messages or of a framework's result; else the value."""
    if isinstance(value, Trace):
        return value.to_reply()
    try:
        found = read_session(value)
    except Exception:  # methods of a foreign object may raise anything
        return value
    return value if found is None else replace(found.trace.to_reply(), value=found.value)


def _arguments(function: Callable[..., Any]) -> list[tuple[str, str]]:
    """Return which part of a trial goes to which parameter: by position, and by name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Some builtins have no signature; those take what they are for.
        return [("", "input")]
    # What a partial has bound is bound.
    bound = function.keywords if isinstance(function, partial) else {}
    plain = [p for p in parameters if p.kind not in _VARIADIC and p.name not in bound]
    wanted = {p.name: part for p in plain if (part := _known(p)) is not None}
    if "input" not in wanted.values():
        others = [p for p in plain if p.name not in wanted]
        required = [p for p in others if p.default is p.empty]
        # With nothing asked for by name, even an optional parameter is there for the input.
        taker = (required or ([] if wanted else others))[:1]
        wanted.update({p.name: "input" for p in taker})
    for parameter in plain:
        if parameter.default is parameter.empty and parameter.name not in wanted:
            allowed = f"not require the parameter {parameter.name!r}: only the input, index, seed"
            raise InvalidArgument("function", function, f"{allowed} and trial are there to give")
    if not plain and any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return [("", "input")]
    by_position = {p.name for p in plain if p.kind is p.POSITIONAL_ONLY}
    return [
        ("" if p.name in by_position else p.name, wanted[p.name]) for p in plain if p.name in wanted
    ]


def _known(parameter: inspect.Parameter) -> str | None:
    annotation = parameter.annotation
    is_context = annotation is TrialContext or (
        isinstance(annotation, str) and annotation.rpartition(".")[2] == "TrialContext"
    )
    if is_context or parameter.name == "trial":
        return "trial"
    return parameter.name if parameter.name in _FIELDS else None


def _is_of_other_loop(error: BaseException | None) -> bool:
    """Return whether asyncio refused something of another loop, whoever wrapped its error since."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        text = str(error) if type(error) is RuntimeError else ""
        if "different event loop" in text or "attached to a different loop" in text:
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


class DaemonThreads:
    """As many threads as there are calls at once: the engine is the one that limits those."""

    def __init__(self) -> None:
        # A thread each, by the queue that it takes its work from.
        self._idle: list[SimpleQueue[Callable[[], None] | None]] = []

    async def run(self, function: Callable[[], T], *, abandon_on_cancel: bool) -> T:
        """Return what a function returns or raises in another thread.

        Args:
            function: What to call.
            abandon_on_cancel: Whether a cancelled call leaves the thread to itself; else it waits.
        """
        # A suite is checked without an event loop: what calls nothing need not load one.
        from anyio import CancelScope, Event, from_thread, lowlevel

        await lowlevel.checkpoint_if_cancelled()
        idle, context, result = self._idle, copy_context(), Future[T]()
        done, token = Event(), lowlevel.current_token()
        work = idle.pop() if idle else _start_thread()

        def finish() -> None:
            # Free before the caller wakes, so that the next call finds the thread.
            if idle is self._idle:
                idle.append(work)
            else:
                work.put(None)
            done.set()

        def call() -> None:
            try:
                result.set_result(context.run(function))
            except BaseException as error:
                result.set_exception(error)
            try:
                from_thread.run_sync(finish, token=token)
            except RuntimeError:
                work.put(None)  # nobody waits for an abandoned call whose run is over

        work.put(call)
        with CancelScope(shield=not abandon_on_cancel):
            await done.wait()
        return result.result()

    def close(self) -> None:
        """End the threads that wait for work."""
        idle, self._idle = self._idle, []
        for work in idle:
            work.put(None)


def _start_thread() -> SimpleQueue[Callable[[], None] | None]:
    """Start a thread, and return the queue that it takes its work from; None ends it."""
    work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run() -> None:
        while (call := work.get()) is not None:
            call()
            del call  # what a call holds is not kept until the next one

    try:
        threading.Thread(target=run, name="trialwise service", daemon=True).start()
    except RuntimeError as error:
        # What hangs in the others may be the reason.
        message = (
            f"no further thread can be started ({error}). Functions that did not return within "
            "their time limit may still occupy them: make the function async, use a command, or "
            "lower the concurrency"
        )
        raise ServiceError(message, ErrorClass.INFRASTRUCTURE, stops_run=True) from error
    return work
