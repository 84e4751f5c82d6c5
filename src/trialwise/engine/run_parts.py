"""What every driver of a run works with: its log, its listeners, and all of its other parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Required, TypedDict, Unpack

from trialwise import model
from trialwise.engine import ports
from trialwise.engine.attempt import Caller
from trialwise.engine.criterion_progress import Progress
from trialwise.engine.excerpts import Excerpts, TextKeeper
from trialwise.engine.run_state import RunOutcome, RunState, StartLimit, TrialStart
from trialwise.engine.spending_meter import Meter
from trialwise.engine.trial_runner import TrialRunner
from trialwise.model.run import RunTexts
from trialwise.model.trial_lines import spell_trial

#: How many characters of a reply are kept, where nobody says otherwise.
_REPLY_LIMIT = 4000


class DriverSettings(TypedDict, total=False):
    """The arguments that all drivers have in common."""

    log: Required[ports.TrialLog | None]
    """Where trials are made durable before they count; None keeps none."""
    text_log: ports.RecordLog | None
    """Where the inputs and tracebacks are made durable that trials name."""
    done: Sequence[model.Trial]
    """Trials from before a restart. They are counted first and never run again."""
    known: RunTexts | None
    """The texts that those trials name."""
    listener: ports.Listener | None
    """Hears of every step."""
    clock: ports.Timer | None
    """The machine's clock by default."""
    run_id: str
    """How events name the run."""
    redact: Callable[[str], str] | None
    """Takes secrets out of every text that is kept."""
    reply_limit: int
    """How many characters of a reply are kept at most; 0 keeps none."""
    start_limit: StartLimit | None
    """A further limit, such as the budget of a whole pytest session."""
    unreached: str
    """How the abort rule describes a trial that says nothing about the service."""
    whole_meter: Meter | None
    """The meter of a comparison, whose arms share one budget."""


def make_excerpts(
    plan: model.Plan, redact: Callable[[str], str] | None, reply_limit: int | None = None
) -> Excerpts:
    """Return how the texts of a run are kept, in this process and in its workers.

    Args:
        plan: The plan of the run.
        redact: Takes secrets out of every text.
        reply_limit: How many characters of a reply are kept at most; None for the usual number.
    """
    return Excerpts(
        reply_limit=_REPLY_LIMIT if reply_limit is None else reply_limit,
        redact=redact,
        keeps_inputs=plan.options.keep_inputs,
    )


class RunParts:
    """The parts of one run.

    Args:
        plan: What to run.
        contract: Holds the criteria's checks and the inputs' values.
        service: What is under test.
        settings: See `DriverSettings`.

    Raises:
        InvalidArgument: `done` or the contract does not belong to the plan.
    """

    def __init__(
        self,
        plan: model.Plan,
        contract: model.Contract,
        service: ports.Service,
        **settings: Unpack[DriverSettings],
    ) -> None:
        self.plan, self.service = plan, service
        done = settings.get("done", ())
        self._started = ports.RunStarted(
            run_id=settings.get("run_id", ""), plan=plan, resumed=len(done)
        )
        self._listener = settings.get("listener")
        self._wants_trial = getattr(self._listener, "wants_trial", lambda _trials: True)
        self.clock: ports.Timer = settings.get("clock") or ports.SystemClock()
        self.excerpts = make_excerpts(plan, settings.get("redact"), settings.get("reply_limit"))
        self.keeper = TextKeeper(
            self.excerpts, log=settings.get("text_log"), known=settings.get("known")
        )
        self.state = state = RunState(
            plan,
            done,
            clock=self.clock,
            start_limit=settings.get("start_limit"),
            unreached=settings.get("unreached", "never reached the service"),
            whole_meter=settings.get("whole_meter"),
        )
        self.ledger = Ledger(state, settings["log"], self.clock, self.keeper)
        caller = Caller(
            service,
            timeout_s=plan.options.timeout_s,
            retries=plan.options.retries,
            clock=self.clock,
            excerpts=self.excerpts,
            abandon=state.meter.abandon,
            seconds_left=lambda: state.meter.seconds_left,
            reach=state.reach,
            note_raised=self.keeper.note_raised,
        )
        self.runner = TrialRunner(plan, contract, caller)
        state.watch_checks(self.runner.check_names)

    def tell_start(self) -> None:
        """Tell that the run starts, and what trials from before a restart have decided."""
        self._emit(self._started)
        self._tell_decided([one for one in self.state.progress if one.is_settled])

    def count(self, start: TrialStart, trial: model.Trial) -> bool:
        """Count a trial once it is durable, and tell what it settled.

        Args:
            start: What was asked.
            trial: What became of it.

        Returns:
            Whether it counts; one that could not be written does not.
        """
        settled = self.ledger.count(trial, self.runner.input_of(start))
        if settled is None:
            return False
        state = self.state
        # An event for every trial takes as long as the trial of a quick function.
        if self._listener is not None and (settled or self._wants_trial(state.meter.trials)):
            standings = tuple([one.standing() for one in state.progress])
            spending, in_flight = state.meter.spending(), state.in_flight
            self._emit(
                ports.TrialDone(
                    trial=trial, standings=standings, spending=spending, in_flight=in_flight
                )
            )
            self._tell_decided(settled)
        return True

    def _tell_decided(self, settled: Sequence[Progress]) -> None:
        for one in settled:
            self._emit(ports.CriterionDecided(standing=one.standing(), stop=one.stop))

    def _emit(self, event: ports.Event) -> None:
        if self._listener is not None:
            self._listener.on_event(event)

    def finish(self, trouble: str = "") -> RunOutcome:
        """Return what there is to decide on, and tell listeners that the run has ended.

        Args:
            trouble: What went wrong when the service was closed.

        Raises:
            BrokenCheck: A check could not say whether replies are good, so nothing is decided.
        """
        if self.state.broken is not None:
            raise self.state.broken.to_error(self.keeper.texts)
        outcome = self.state.outcome(trouble)
        message = self.excerpts.text(outcome.message)
        outcome = outcome._replace(message=message, texts=self.keeper.texts)
        stop, spending = outcome.stop, outcome.spending
        self._emit(ports.RunEnded(stop=stop, spending=spending, message=message))
        return outcome


# The log of a run: every trial is in it before it counts, and safe from a power cut soon after.

#: At most so much of a run is lost to a power cut; waiting for the disk after every trial would
#: cost more than most trials do.
# A disk syncs in 1 to 10 ms, so that at most half of the time goes to syncs.
_SYNC_EVERY_S = 0.02


class Ledger:
    """Counts trials for every driver: first the log, then the run's state.

    A log that cannot be written ends the run. Trials that are not durable must not count, since a
    resumed run would decide without them.

    Args:
        state: The run's.
        log: Where trials are kept; None keeps nothing.
        clock: Times the syncs.
        keeper: Keeps the texts that trials name.
    """

    def __init__(
        self, state: RunState, log: ports.TrialLog | None, clock: ports.Clock, keeper: TextKeeper
    ) -> None:
        self._state = state
        self._log = log
        self._keeper = keeper
        self._clock = clock
        self._synced_s = clock.monotonic()
        self._is_behind = False
        self.due_s = math.inf
        """When the next sync is due, by the clock."""

    def count(
        self, trial: model.Trial, given: model.Input | None = None
    ) -> Sequence[Progress] | None:
        """Make a trial survive the death of this process, then count it.

        Args:
            trial: It has ended.
            given: Its input; None where there is none to show.

        Returns:
            The criteria that it settled; None where it could not be written and does not count.
        """
        at: int | None = None
        log = self._log
        try:
            self._keeper.keep(trial, given)
            if log is not None:
                # Before it counts: after a kill the journal holds at least what was decided on.
                at = log.append_text(spell_trial(trial))
        except OSError as error:
            self._fail(error)
            return None
        if not self._is_behind and log is not None:
            # Written is enough to survive a kill; only a power cut can take it until the sync.
            self._is_behind = True
            self.due_s = self._synced_s + _SYNC_EVERY_S
        return self._state.completed(trial, at)

    def take_turn(self, now: float) -> bool:
        """Return whether the caller must sync, because the last sync is too long ago."""
        if now < self.due_s:
            return False
        # Taken before the sync itself: other workers that come by meanwhile need not queue for it.
        self._synced_s = now
        self.due_s = now + _SYNC_EVERY_S
        return True

    def sync(self) -> None:
        """Make everything that was appended survive a power cut."""
        if self._log is None or not self._is_behind:
            return
        # Set first: what is appended while this waits for the disk is for the next sync. In this
        # order, since another thread may count a trial in between.
        self.due_s = math.inf
        self._is_behind = False
        try:
            self._keeper.sync()
            self._log.sync()
        except OSError as error:
            self._fail(error)
        self._synced_s = self._clock.monotonic()

    def _fail(self, error: OSError) -> None:
        self._state.stop(model.StopReason.SERVICE, f"the trial log cannot be written: {error}")
