"""Where runs are kept and who hears of them: what `run` and `measure` share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.engine.ports import Service, SystemClock
from trialwise.errors import BrokenCheck, InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.model.run_settings import RunSettings
from trialwise.model.trial import NOT_MEASURED
from trialwise.runtime.deciding import decide_and_keep
from trialwise.runtime.looping import run_in_thread

if TYPE_CHECKING:
    from trialwise.engine.ports import Event, Interrupt, Listener
    from trialwise.engine.run_parts import DriverSettings
    from trialwise.engine.run_state import RunOutcome
    from trialwise.model.run import RunRecord
    from trialwise.runtime.earlier_runs import EarlierRuns
    from trialwise.runtime.preparing import PreparedRun
    from trialwise.stores.runs import StoredRun


class WorkArguments(RunSettings, total=False):
    """The keyword arguments of all that runs: every field of `RunOptions`, and these."""

    inputs: Any
    """What to try the contract on, where it does not say."""
    options: RunOptions | None
    """How the run is made; single settings given beside it prevail."""
    store: str | Path | None
    """The folder runs are kept in, `.trialwise` unless given; None keeps nothing."""
    resume: bool | str
    """True for what was left unfinished last, or its identifier."""
    progress: bool | None
    """Whether to show progress on standard error; None: where it is a terminal."""
    listener: Listener | None
    """Hears of every step, beside the progress."""
    redact: Callable[[str], str] | None
    """Takes secrets out of every text that is kept."""


class RunArguments(WorkArguments, total=False):
    """The keyword arguments of `run`."""

    baselines: str | Path
    """The folder baselines are kept in, `baselines` unless given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Folders, listeners and the clock of a session."""

    store: Path | None
    baselines: Path
    resume: bool | str = False
    listeners: tuple[Listener, ...] = ()
    redact: Callable[[str], str] | None = None
    scored: str = ""
    """The run whose replies are checked again, where no service is called."""
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
        """Return the workspace that a caller describes."""
        if resume and store is None:
            raise InvalidArgument("resume", resume, "go with a store: nothing is kept without one")
        listeners = [] if listener is None else [listener]
        if progress is None:
            progress = sys.stderr is not None and sys.stderr.isatty()
        if progress:
            from trialwise.renderers.progress import open_progress

            listeners.append(open_progress(sys.stderr))
        return cls(
            store=None if store is None else Path(store),
            baselines=Path(baselines),
            resume=resume,
            listeners=tuple(listeners),
            redact=redact,
        )

    @classmethod
    def take(cls, given: dict[str, Any]) -> Workspace:
        """Take the arguments that describe a workspace out of those of a call."""
        names = ("resume", "progress", "listener", "redact")
        return cls.open(
            given.pop("store", ".trialwise"),
            given.pop("baselines", "baselines"),
            **{name: given.pop(name) for name in names if name in given},
        )

    def listen(self, listener: Listener) -> Workspace:
        """Return the same folders with one more listener."""
        return replace(self, listeners=(*self.listeners, listener))

    def earlier_runs(self) -> EarlierRuns | None:
        """Return the runs that may be resumed; None where nothing is to be."""
        if not self.resume or self.store is None:
            return None
        from trialwise.runtime.earlier_runs import EarlierRuns

        return EarlierRuns(self.store, self.resume if isinstance(self.resume, str) else None)

    @contextmanager
    def open_run(
        self,
        prepared: PreparedRun,
        *,
        in_thread: bool = False,
        service: Service | None = None,
        comparison: str = "",
        now: datetime | None = None,
    ) -> Iterator[OpenRun]:
        """Open the journal and the service of a run; a caller drives it.

        Args:
            prepared: What to run.
            in_thread: Whether a plain function must not hold up the event loop.
            service: The run's, where it is open already.
            comparison: The name of the comparison whose arm it is.
            now: When the comparison started: all its arms have one start.
        """
        contract, plan, kept, _ = prepared
        if service is None:
            # Here, outside of the run's loop: a function's own context must not hold the loop's.
            service = open_service(contract, plan.options, in_thread=in_thread)
        try:
            now = now or self.clock.now()
            if self.store is None:
                yield OpenRun(self, contract, plan, service, None, now)
                return
            from trialwise.stores.runs import RunStore

            runs = RunStore(self.store)
            opened = (
                runs.create(plan, now, comparison=comparison, scored=self.scored)
                if kept is None
                else runs.resume(kept.run_id, plan, is_arm=bool(comparison))
            )
            with (
                opened as stored,
                reuse_replies(service, stored) as reusing,
            ):
                yield OpenRun(self, contract, plan, reusing, stored, stored.started_at)
        finally:
            self.close_listeners()

    def close_listeners(self) -> None:
        """Let a display clean up after itself, whatever ended the run."""
        for one in self.listeners:
            close = getattr(one, "close", None)
            if callable(close):
                close()

    def wants_trial(self, trials: int) -> bool:
        """Return whether any listener must hear of a trial."""
        return any(
            not hasattr(one, "wants_trial") or one.wants_trial(trials) for one in self.listeners
        )

    def on_event(self, event: Event) -> None:
        """Tell everybody."""
        for one in self.listeners:
            one.on_event(event)


@contextmanager
def reuse_replies(service: Service, stored: StoredRun) -> Iterator[Service]:
    """Give the service the replies that are kept of a run which a broken check has ended.

    Where a check is broken again, no trial counts, and all replies stay.

    Args:
        service: What is under test.
        stored: The run, open.
    """
    from trialwise.stores.run_journals import read_set_aside, set_trials_aside

    if trials := read_set_aside(stored.path, stored.plan):
        from trialwise.services.replay import KeptReplies, read_answer

        # What never reached the service has no answer, and is asked.
        kept = {
            (one.index, one.seed): answer
            for one in trials
            if one.error_class not in NOT_MEASURED and (answer := read_answer(one)) is not None
        }
        service = KeptReplies(service, kept)
    try:
        yield service
    except BrokenCheck:
        set_trials_aside(stored.path)
        raise


class OpenRun(NamedTuple):
    """A run whose journal is open."""

    space: Workspace
    contract: Contract
    plan: Plan
    service: Service
    stored: StoredRun | None
    started_at: datetime

    @property
    def settings(self) -> DriverSettings:
        """What the engine's driver is given of this run."""
        space, stored = self.space, self.stored
        settings: DriverSettings = {
            "log": None if stored is None else stored.journal,
            "done": () if stored is None else stored.trials(),
            "listener": space if space.listeners else None,
            "clock": space.clock,
            "run_id": "" if stored is None else stored.run_id,
            "redact": space.redact,
        }
        if stored is not None:
            settings |= {"text_log": stored.text_log, "known": stored.texts()}
        return settings

    async def go(self, interrupted: Interrupt | None) -> RunOutcome:
        """Run the plan on the running event loop."""
        run = (self.plan, self.contract, self.service)
        if self.plan.options.executor != "local":
            from trialwise.executors.pool_driver import run_in_pool

            # The driver waits for workers in a thread, so that this loop hears of an interrupt.
            return await run_in_thread(
                lambda must_end: run_in_pool(*run, is_interrupted=must_end, **self.settings),
                interrupted,
            )
        from trialwise.engine.drivers.run_drivers import run_plan

        return await run_plan(*run, interrupted=interrupted, **self.settings)

    @property
    def path(self) -> Path | None:
        """The folder it is kept in, if it is."""
        return None if self.stored is None else self.stored.path

    def decide(self, outcome: RunOutcome) -> RunRecord:
        """Decide the run and keep its record."""
        return decide_and_keep(
            self.plan,
            outcome,
            self.stored,
            started_at=self.started_at,
            covariates=self.contract.covariates,
        )


def open_service(contract: Contract, options: RunOptions, *, in_thread: bool = False) -> Service:
    """Return the contract's service; a function becomes one.

    A sync function is called in place where nothing else has to happen meanwhile, since a thread
    would take three times as long as the engine does. It runs in threads where several trials run
    side by side, or where a time limit may have to give one up. A `CallableService` that says where
    it runs is left as it is.

    Args:
        contract: Whose service it is, given in Python or in a suite.
        options: How the run is made.
        in_thread: Whether a sync function gets a thread in any case.
    """
    given = contract.service
    in_thread = (
        in_thread
        or options.concurrency > 1
        or options.timeout_s is not None
        or options.budget.seconds is not None
    )
    if callable(getattr(given, "call", None)) and callable(getattr(given, "aclose", None)):
        place = getattr(given, "placed", None)
        service: Service = place(in_thread=in_thread) if callable(place) else given
        return service
    from trialwise.services import CallableService

    return CallableService(given, in_thread=in_thread)
