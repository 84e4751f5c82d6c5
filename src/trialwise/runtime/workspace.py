"""Where runs are kept and who hears of them: what `run` and `measure` share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.engine.ports import Service, SystemClock
from trialwise.errors import InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.runtime.looping import run_to_end

if TYPE_CHECKING:
    from trialwise.engine.ports import Interrupt
    from trialwise.engine.run_events import Event, Listener
    from trialwise.engine.run_state import RunOutcome
    from trialwise.runtime.earlier_runs import EarlierRuns
    from trialwise.runtime.preparing import PreparedRun
    from trialwise.stores.runs import StoredRun


class Execution(NamedTuple):
    """A plan that was run."""

    outcome: RunOutcome
    started_at: datetime
    stored: StoredRun | None

    @property
    def path(self) -> Path | None:
        """The folder it is kept in, if it is."""
        return None if self.stored is None else self.stored.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Folders, listeners and the clock of a session."""

    store: Path | None
    baselines: Path
    resume: bool | str = False
    listeners: tuple[Listener, ...] = ()
    redact: Callable[[str], str] | None = None
    clock: SystemClock = field(default_factory=SystemClock)

    @classmethod
    def open(
        cls,
        store: str | Path | None,
        baselines: str | Path = "baselines",
        *,
        resume: bool | str = False,
        progress: bool | None = None,
        listener: Listener | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> Workspace:
        """The workspace that a caller describes."""
        if resume and store is None:
            raise InvalidArgument("resume", resume, "go with a store: nothing is kept without one")
        listeners = [] if listener is None else [listener]
        if progress is None:
            progress = sys.stderr is not None and sys.stderr.isatty()
        if progress:
            from trialwise.renderers.progress import open_progress

            shown = open_progress(sys.stderr)
            listeners += [] if shown is None else [shown]
        return cls(
            store=None if store is None else Path(store),
            baselines=Path(baselines),
            resume=resume,
            listeners=tuple(listeners),
            redact=redact,
        )

    def earlier_runs(self) -> EarlierRuns | None:
        """The runs that may be resumed; None where nothing is to be."""
        if not self.resume or self.store is None:
            return None
        from trialwise.runtime.earlier_runs import EarlierRuns

        return EarlierRuns(self.store, self.resume if isinstance(self.resume, str) else None)

    @contextmanager
    def execute(self, prepared: PreparedRun) -> Iterator[Execution]:
        """Run what was prepared; while the context is open its record may be written."""
        contract, plan, kept, _ = prepared
        try:
            if self.store is None:
                yield self._run(contract, plan, None)
                return
            from trialwise.stores.runs import RunStore

            runs = RunStore(self.store)
            now = self.clock.now()
            with (
                runs.create(plan, now) if kept is None else runs.resume(kept.run_id, plan)
            ) as stored:
                yield self._run(contract, plan, stored)
        finally:
            self.close_listeners()

    def _run(self, contract: Contract, plan: Plan, stored: StoredRun | None) -> Execution:
        started_at = self.clock.now() if stored is None else stored.started_at
        # Here, outside of the loop: a function's own context must not hold the loop's.
        service = open_service(contract, plan.options)
        done = () if stored is None else stored.trials()

        async def whole(interrupted: Interrupt) -> RunOutcome:
            from trialwise.engine.drivers.async_driver import run_plan

            return await run_plan(
                plan,
                contract,
                service,
                done=done,
                interrupted=interrupted,
                **self.driver_arguments(stored),
            )

        return Execution(run_to_end(whole), started_at, stored)

    def driver_arguments(self, stored: StoredRun | None) -> dict[str, Any]:
        """What the engine's driver is given of this workspace.

        Args:
            stored: What the run is kept in, if it is.
        """
        kept = {} if stored is None else {"text_log": stored.text_log, "known": stored.texts()}
        return {
            **kept,
            "log": None if stored is None else stored.journal,
            "listener": self if self.listeners else None,
            "clock": self.clock,
            "run_id": "" if stored is None else stored.run_id,
            "redact": self.redact,
        }

    def close_listeners(self) -> None:
        """Let a display clean up after itself, whatever ended the run."""
        for one in self.listeners:
            close = getattr(one, "close", None)
            if callable(close):
                close()

    def on_event(self, event: Event) -> None:
        """Tell everybody."""
        for one in self.listeners:
            one.on_event(event)


def open_service(contract: Contract, options: RunOptions) -> Service:
    """The contract's service; a function becomes one.

    A sync function is called in place where nothing else has to happen meanwhile, since a thread
    would take three times as long as the engine does. It runs in threads where several trials run
    side by side, or where a time limit may have to give one up. A `CallableService` that says where
    it runs is left as it is.

    Args:
        contract: Whose service it is, given in Python or in a suite.
        options: How the run is made.
    """
    given = contract.service
    in_thread = (
        options.concurrency > 1
        or options.timeout_s is not None
        or options.budget.seconds is not None
    )
    if callable(getattr(given, "call", None)) and callable(getattr(given, "aclose", None)):
        place = getattr(given, "placed", None)
        service: Service = place(in_thread=in_thread) if callable(place) else given
        return service
    from trialwise.services import CallableService

    return CallableService(given, in_thread=in_thread)
