"""Driving a run from the thread of the caller, with an executor that runs the trials.

pytest owns the main thread, its signals and its event loops, so its trials cannot run on an event
loop of the engine. The same holds for a pool of processes or a cluster, which is asked for results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from trialwise.engine.run_state import RunState, TrialStart
from trialwise.model.evidence import StopReason

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Executor(Protocol[T_co]):
    """Runs trials, one by one or side by side; it tears down every trial that it starts."""

    @property
    def in_flight(self) -> int:
        """How many trials were started and not handed back."""
        ...

    def start(self, start: TrialStart) -> None:
        """Begin a trial; it may also run to its end here."""
        ...

    def wait(self) -> Sequence[T_co]:
        """Hand back the trials that have ended since, at least one."""
        ...

    def let_go(self) -> None:
        """End what can be ended: no result of what is in flight is needed."""
        ...

    def close(self) -> None:
        """Tear down whatever is still open."""
        ...


def drive(
    state: RunState,
    executor: Executor[T],
    count: Callable[[T], None],
    *,
    stops_run: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
    asked_to_stop: Callable[[], str | bool] = lambda: False,
) -> BaseException | None:
    """Run trials until the state needs no more, and close the executor.

    Args:
        state: Of the run.
        executor: Runs the trials.
        count: Takes a trial that was handed back and passes it to a `Ledger`, or abandons it.
        stops_run: Exceptions by which a person ends the run.
        asked_to_stop: Says between trials whether the run must end, and why.

    Returns:
        The exception that ended the run, if one of `stops_run` did: the caller first decides on
        what is complete and then raises it.
    """
    stopped: BaseException | None = None
    try:
        _loop(state, executor, count, asked_to_stop)
    except stops_run as error:
        stopped = error
        state.stop(StopReason.INTERRUPTED, "the run was interrupted")
        # What is complete still counts. A second Ctrl-C gets out of here at once.
        executor.let_go()
        while executor.in_flight:
            for item in executor.wait():
                count(item)
    finally:
        # In this order: what the executor still tears down was started and will never count.
        executor.close()
        state.let_go()
    return stopped


def _loop(
    state: RunState,
    executor: Executor[T],
    count: Callable[[T], None],
    asked_to_stop: Callable[[], str | bool],
) -> None:
    while True:
        _start_trials(state, executor)
        if not executor.in_flight:
            return
        if state.lets_go:
            # Still waited for below: an executor hands back also what it ended, to be torn down.
            executor.let_go()
        for item in executor.wait():
            count(item)
        if reason := asked_to_stop():
            state.stop(StopReason.INTERRUPTED, f"the session ends: {reason}")


def _start_trials(state: RunState, executor: Executor[T]) -> None:
    while (step := state.next()) is not None:
        if isinstance(step, TrialStart):
            executor.start(step)
        elif executor.in_flight:
            # Waiting for a result is better than sleeping through it.
            return
        else:
            time.sleep(step.seconds)
