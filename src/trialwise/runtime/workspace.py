"""Where runs are kept, who hears of them, and how each is decided and kept."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise import __version__
from trialwise.engine.ports import Event, Interrupt, Listener, Service, SystemClock
from trialwise.errors import BrokenCheck, InvalidArgument
from trialwise.model import Contract, Plan, RunOptions, RunRecord
from trialwise.model.baseline import Covariate, resolve_covariates
from trialwise.model.evidence import NOT_PUBLISHED, REFERENCE_RELEASES, Reproducibility, StopReason
from trialwise.model.fingerprint import plan_hash
from trialwise.model.run_settings import RunSettings
from trialwise.model.trial import NOT_MEASURED
from trialwise.procedures.run_verdict import decide_run
from trialwise.stats.result_types import Decision
from trialwise.stores.run_files import RecordNotKept
from trialwise.stores.run_journals import is_set_aside, read_set_aside, set_trials_aside
from trialwise.stores.runs import RunStore, StoredRun, StoreUnusable

if TYPE_CHECKING:
    from trialwise.engine.run_parts import DriverSettings
    from trialwise.engine.run_state import RunOutcome
    from trialwise.runtime.earlier_runs import EarlierRuns
    from trialwise.runtime.preparing import PreparedRun


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
        store: str | Path | None = ".trialwise",
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
        names = ("store", "baselines", "resume", "progress", "listener", "redact")
        return cls.open(**{name: given.pop(name) for name in names if name in given})

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

            runs = RunStore(self.store)
            opened = (
                runs.create(plan, now, comparison=comparison, scored=self.scored)
                if kept is None
                else runs.resume(kept.run_id, plan, is_arm=bool(comparison))
            )
            with opened as stored, reuse_replies(service, stored) as reusing:
                yield OpenRun(self, contract, plan, reusing, stored, stored.started_at)
        finally:
            # A display cleans up after itself, whatever ended the run.
            for one in self.listeners:
                getattr(one, "close", lambda: None)()

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
            from trialwise.runtime.looping import run_in_thread

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


# --- From the outcome of a run to its record: decided once, and kept where runs are kept ----------
#
# Every way to run a contract ends here: `run`, `compare`, `score` and the pytest plugin.


def find_changed_covariates(plan: Plan, covariates: Sequence[Covariate]) -> dict[str, str]:
    """Find the conditions that have another value now than when the run was planned (§8.4.1).

    Args:
        plan: With the values of the start.
        covariates: As the contract declares them.
    """
    if not covariates:
        return {}

    now, found = SystemClock().now(), {}
    for one in covariates:
        try:
            value = resolve_covariates([one], now, os.environ)[one.name]
        except InvalidArgument:
            value = "not set"
        # Trials before and after the change were made under two conditions (§8.4.1).
        if value != plan.covariates.get(one.name, value):
            found[one.name] = value
    return found


def read_run(stored: StoredRun) -> RunRecord:
    """Read a stored run; one without a verdict is INCONCLUSIVE, and says why.

    Where a broken check ended it nothing is decided, and its trials are there to be looked at.

    Args:
        stored: The run.
    """
    if (stored.path / "record.json").exists():
        return stored.record()

    from trialwise.engine.run_state import RunState

    plan = stored.plan
    resume = f"`trialwise run --resume {stored.run_id}`"
    message = f"The run is still going on, or it was stopped; {resume} continues it"
    state = RunState(plan, stored.trials(), clock=SystemClock())
    if is_set_aside(stored.path):
        message = f"A check is broken, so nothing is decided; repair it, and {resume} goes on"
    state.stop(StopReason.SERVICE, message)
    outcome = state.outcome()
    verdict = decide_run(
        plan,
        outcome.trials,
        stops=outcome.stops,
        stop=StopReason.SERVICE,
        spending=outcome.spending,
        run_id=stored.run_id,
        started_at=stored.started_at,
        message=f"{message}.",
    )
    # What its design has decided becomes a verdict when the run ends.
    verdict = replace(verdict, decision=Decision.INCONCLUSIVE)
    return RunRecord(
        run_id=stored.run_id,
        plan=plan,
        trials=stored.shown_trials(),
        verdict=verdict,
        texts=stored.texts(),
    )


def decide_and_keep(
    plan: Plan,
    outcome: RunOutcome,
    stored: StoredRun | None = None,
    *,
    started_at: datetime | None = None,
    covariates: Sequence[Covariate] = (),
) -> RunRecord:
    """Decide a run and write its record.

    Args:
        plan: What was run.
        outcome: What came of it.
        stored: Where its trials are kept, open; None keeps no record.
        started_at: When the run began, where it is not stored.
        covariates: Conditions that are looked at again, as the contract declares them.

    Raises:
        RecordNotKept: It was decided, and its record cannot be written.
    """
    run_id = "" if stored is None else stored.run_id
    released = REFERENCE_RELEASES.get(plan.rule)
    verdict = decide_run(
        plan,
        outcome.trials,
        stops=outcome.stops,
        stop=outcome.stop,
        spending=outcome.spending,
        run_id=run_id,
        started_at=started_at if stored is None else stored.started_at,
        message=outcome.message,
        covariates_at_end=find_changed_covariates(plan, covariates),
        reproducibility=Reproducibility(
            reference_data_version=("none consumed" if released is None else released.version),
            formula_value_fixtures=NOT_PUBLISHED if released is None else released.status,
            tool_version=__version__,
            python_version=platform.python_version(),
            seed=plan.seed,
            plan_hash=plan_hash(plan) if stored is None else stored.plan_hash,
        ),
    )
    record = RunRecord(
        run_id=run_id, plan=plan, trials=outcome.trials, verdict=verdict, texts=outcome.texts
    )
    if stored is not None:
        try:
            stored.write_record(verdict)
        except StoreUnusable as error:
            raise RecordNotKept(error.path, error.doing, error.reason, record) from error
    return record
