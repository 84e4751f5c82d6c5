"""What a run knows of itself: which trial comes next, what is in flight, and when it is over.

Nothing here waits, calls a service or writes a file. A driver asks for the next trial, runs it in
its own way (see `trialwise.engine.drivers`) and hands the completed trial back. Order, seeds, early
stopping, budgets, pace and the abort rule are decided here and nowhere else, so that every driver
obeys the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from trialwise import model
from trialwise.engine.check_watch import BrokenBy, CheckWatch, find_mistake
from trialwise.engine.criterion_progress import Progress, combine_stops
from trialwise.engine.error_classes import Reach
from trialwise.engine.experiment_state import ExperimentState
from trialwise.engine.ports import Clock
from trialwise.engine.spending_meter import Meter
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Spending
from trialwise.model.run import RunTexts, Trials

StartLimit: TypeAlias = Callable[[], tuple[model.StopReason, str] | None]
"""Asked before every start; a reason and a message forbid it and end the run."""

#: A budget forbids new trials. Those in flight are paid for, so their results are waited for, by a
#: time limit only until it is over.
BUDGETS = frozenset(
    {
        model.StopReason.TRIALS_BUDGET,
        model.StopReason.TIME_BUDGET,
        model.StopReason.TOKEN_BUDGET,
        model.StopReason.MONEY_BUDGET,
    }
)


# Not frozen: one is made for every trial, and freezing would triple what that takes.
@dataclass(slots=True)
class TrialStart:
    """A trial that the driver must start now."""

    experiment: int
    """The place of its experiment in the plan."""
    index: int
    """Its place in the order of inputs."""
    position: int
    """The place of its input in the list of inputs."""
    seed: int
    arm: int = 0
    """The place of its arm, where several take turns."""


class Pause(NamedTuple):
    """The rate limit allows no start yet: ask again after this many seconds."""

    seconds: float


class RunOutcome(NamedTuple):
    """What a run leaves to be decided."""

    trials: Trials
    """Experiment by experiment, in the order of inputs, with the trials from before a restart."""
    stops: Mapping[str, model.StopReason]
    """Why each experiment ended."""
    stop: model.StopReason
    """Why the run ended."""
    spending: Spending
    message: str = ""
    """Why the run ended before its plan, or what went wrong when the service was closed."""
    texts: RunTexts = RunTexts()
    """The inputs and tracebacks that the trials name."""


def ask_limits(
    meter: Meter,
    pacer: Pacer | None,
    start_limit: StartLimit | None,
    in_flight: int,
    *,
    stop: Callable[[model.StopReason, str], None],
    together: int = 1,
) -> tuple[bool, Pause | None]:
    """Return whether trials may start now, and when to ask again where only the pace forbids it.

    Args:
        meter: What was taken so far, and its budget.
        pacer: What limits the rate.
        start_limit: A further limit.
        in_flight: How many trials are under way.
        stop: Told which limit is used up.
        together: How many trials have to start, since one without the others is worth nothing.
    """
    # The budget before the pace: a run whose money is gone ends now, not after a pause.
    spent = meter.find_limit(in_flight, together) if meter.is_limited else None
    if spent is None and meter.is_limited and meter.must_wait(in_flight, together):
        return False, None
    if spent is None and pacer is not None and not pacer.admit():
        pause = Pause(pacer.seconds_left())
        if pause.seconds <= meter.seconds_left:
            return False, pause
        spent = meter.describe_time_limit("ends before the rate allows another trial")
    # Last, because asking it may already charge the trial to a budget that others share.
    if spent is None and start_limit is not None:
        spent = start_limit()
    if spent is not None:
        stop(*spent)
    return spent is None, None


class RunState:
    """The experiments of a plan, one after the other.

    The protocol for a driver: while `next()` gives a `TrialStart`, start that trial. When it gives
    None and trials are in flight, wait for one of them and hand it to `completed` (or cancel them
    all where `lets_go`). When it gives None and nothing is in flight, the run is over.

    Args:
        plan: What to run.
        done: Trials from before a restart. They are counted first and never run again. Where they
            are those of a journal, the trials of this run are read back from there as well.
        clock: Times the budget and the pace.
        start_limit: A further limit, such as the budget of a whole pytest session.
        unreached: How the abort rule describes a trial that says nothing about the service.
        whole_meter: The meter of a comparison, whose arms share one budget.

    Raises:
        InvalidArgument: `done` does not belong to the plan.
    """

    def __init__(
        self,
        plan: model.Plan,
        done: Sequence[model.Trial] = (),
        *,
        clock: Clock,
        start_limit: StartLimit | None = None,
        unreached: str = "never reached the service",
        whole_meter: Meter | None = None,
    ) -> None:
        options = plan.options
        names = {one.name for one in plan.experiments}
        earlier = Trials.of(done)
        for table in earlier.tables:
            if table.experiment not in names:
                raise InvalidArgument("done", table.experiment, "be trials of the plan's samplings")
        self.experiments = tuple(
            ExperimentState(plan, one, earlier.of_experiment(one.name)) for one in plan.experiments
        )
        self.progress = [one for each in self.experiments for one in each.progress]
        self.meter = Meter(options.budget, clock, options.cost_per_trial_usd, whole=whole_meter)
        # Trials from before a restart were paid for, so the budget of the whole run holds them.
        for table in earlier.tables:
            self.meter.add_table(table)
        self.stop_reason: model.StopReason | None = None
        """What ended the run before its plan, once something has."""
        self.message = ""
        self.broken: BrokenBy | None = None
        """The check that is broken, so that nothing is decided, once one is found."""
        self._place, self._count = 0, len(self.experiments)
        self._current = self.experiments[0]
        self.pacer = None if options.rate_per_s is None else Pacer(options.rate_per_s, clock)
        self._start_limit = start_limit
        # Known from the beginning, and asked before every trial: most runs have no limit.
        self._is_limited = self.meter.is_limited or bool(self.pacer or start_limit)
        self._abort = options.abort
        self.reach = Reach()
        """What this process has seen of the service so far."""
        # A gate looks at all runs; it is decided once they are in.
        self._settles = not (options.keep_going or plan.gates or plan.purpose == "measure")
        # Plans from before `family` do not say whose FAIL holds, and ran to their end.
        has_family = any(one.others.family for one in plan.criteria)
        self._corrects = plan.correction != "none" and not has_family
        # Whether the criteria of the current experiment were looked at: those that were decided
        # before a restart settle nothing any more.
        self._has_looked = False
        self._unreached = unreached

    def watch_checks(self, names: Sequence[Sequence[Sequence[str]]]) -> None:
        """Look out for broken checks from here on, and in the trials from before a restart.

        Args:
            names: For each experiment, the names of every criterion's checks.
        """
        for one, mine in zip(self.experiments, names, strict=True):
            one.watch = CheckWatch(mine, one.trials)
            self._blame(one.watch.broken)
            if one.watch.is_over:
                one.watch = None

    def _blame(self, broken: BrokenBy | None) -> None:
        """End the run where a check is broken."""
        if broken is not None and self.broken is None:
            self.broken = broken
            self.stop(model.StopReason.SERVICE, f"the check {broken.check!r} is broken")

    @property
    def concurrency(self) -> int:
        """The largest number of trials that any experiment has in flight at once."""
        return max(one.concurrency for one in self.experiments)

    def widen(self, trials: int) -> None:
        """Allow more trials in flight than the plan's concurrency, for drivers that send batches.

        Args:
            trials: How many may be in flight at once, waiting in a batch included.
        """
        for one in self.experiments:
            one.concurrency = max(trials, one.planned_concurrency)

    @property
    def in_flight(self) -> int:
        """How many trials were started and have not come back."""
        return self._current.in_flight

    @property
    def is_over(self) -> bool:
        """Whether no further trial will be started."""
        return self.stop_reason is not None or self._place >= self._count

    @property
    def lets_go(self) -> bool:
        """Whether no result of what is in flight is needed, so that a driver may cancel it."""
        if self._current.is_settled:
            return True
        return self.stop_reason is not None and self.stop_reason not in BUDGETS

    def next(self) -> TrialStart | Pause | None:
        """Return the trial to start now; None where none may start before another completes."""
        # `is_over` spelled out: this runs before every trial.
        while self.stop_reason is None and self._place < self._count:
            experiment = self._current
            # A full house is no reason to look for the next trial: what completes first may
            # settle the experiment, and then the next one is not needed.
            if experiment.in_flight >= experiment.concurrency:
                return None
            index = experiment.peek()
            if index is not None:
                if self._is_limited:
                    limits = self.meter, self.pacer, self._start_limit, experiment.in_flight
                    may_start, pause = ask_limits(*limits, stop=self.stop)
                    if not may_start:
                        return pause
                position, seed = experiment.take(index)
                return TrialStart(self._place, index, position, seed)
            # The last trials of an experiment may still settle a criterion, and a budget counts
            # them: the next experiment begins when they are in.
            if experiment.in_flight:
                return None
            self._advance()
        return None

    def _advance(self) -> None:
        self._place += 1
        self._has_looked = False
        if self._place < self._count:
            self._current = self.experiments[self._place]

    def enter(self, experiment: str) -> ExperimentState | None:
        """Turn to an experiment, for a driver that chooses the trials itself.

        Args:
            experiment: Its name.

        Returns:
            The experiment; None where the plan has none of that name.
        """
        for place, one in enumerate(self.experiments):
            if one.experiment.name == experiment:
                self._place, self._current, self._has_looked = place, one, False
                return one
        return None

    def start(self, index: int) -> TrialStart:
        """Start a trial of the present experiment that the driver chose.

        Args:
            index: Its place in the order of inputs, which is in no log yet.
        """
        position, seed = self._current.start(index)
        return TrialStart(self._place, index, position, seed)

    def completed(self, trial: model.Trial, at: int | None = None) -> Sequence[Progress]:
        """Count a completed trial, which must be durable by now.

        Args:
            trial: It has ended.
            at: Where the log holds it; None where it is not read back.

        Returns:
            The criteria that it settled.
        """
        experiment = self._current
        was_doubtful = experiment.is_doubtful
        settled = experiment.add(trial, at)
        self.meter.add(trial)
        if not trial.is_plain:
            self._blame(find_mistake(trial))
            self._blame(None if experiment.watch is None else experiment.watch.broken)
        # A settled experiment has its answer, whatever the trials cost that led to it.
        if experiment.has_trouble and not experiment.is_settled:
            found = experiment.find_abort(self.reach, self._abort, self._unreached)
            if found is not None:
                self.stop(*found)
        # Last: what is wrong with the calls says more than the failures that they led to.
        if settled or not self._has_looked or was_doubtful:
            self._has_looked = True
            if self._settles and not self.is_over:
                self._settle(experiment)
        return settled

    def _settle(self, experiment: ExperimentState) -> None:
        """End the run early if a FAIL has already decided the verdict."""
        is_last = self._place == self._count - 1
        if experiment.is_doubtful or (experiment.is_settled and is_last):
            return
        if experiment.is_refused:  # that ends the run in its own words, after a few more
            return
        for one in experiment.progress:
            plan = one.plan
            # The errors of a judge, and a correction, may still turn a FAIL.
            may_turn = plan.standing.advisory or plan.judging.errors or self._corrects
            family = plan.others.family
            if one.has_failed and not (may_turn or (family and not family.keeps_boundaries)):
                why = (
                    f"{plan.criterion} failed, so the run can no longer pass and ended; "
                    "`keep_going: true` runs the other criteria to their end"
                )
                self.stop(model.StopReason.SETTLED, why)
                return

    def abandon(self, index: int, replies: Iterable[model.Reply] = ()) -> None:
        """Note that a trial in flight will never be counted.

        Args:
            index: Its place in the order of inputs.
            replies: What it took as far as is known; it is paid for all the same.
        """
        self._current.lose((index,))
        self.meter.abandoned += 1
        self.meter.abandon(replies)

    def let_go(self) -> None:
        """Note that nothing in flight will be counted; a settled experiment ends here."""
        experiment = self._current
        self.meter.abandoned += experiment.let_go()
        if experiment.is_settled and self._place < self._count:
            self._advance()

    def stop(self, reason: model.StopReason, message: str) -> None:
        """End the run before its plan; the first reason stays."""
        # A run that ends often ends twice, such as by a budget and then by an impatient Ctrl-C.
        # What came first is what happened; the rest are its consequences.
        if self.stop_reason is None:
            self.stop_reason, self.message = reason, message

    def outcome(self, trouble: str = "") -> RunOutcome:
        """Return what there is to decide on.

        Args:
            trouble: What went wrong when the service was closed.
        """
        halted = self.stop_reason
        # A run that went through all its experiments has lost no trial that it needed.
        if halted is None and self._place >= self._count:
            for one in self.experiments:
                one.check_gaps()
        stops = {
            one.experiment.name: one.stop if one.is_finished or halted is None else halted
            for one in self.experiments
        }
        # A reason that came when every experiment was finished has cut nothing short.
        is_cut = any(reason.is_premature for reason in stops.values())
        return RunOutcome(
            trials=Trials(one.trials for one in self.experiments).seal(),
            stops=stops,
            stop=combine_stops(stops.values()),
            spending=self.meter.spending(),
            message="; ".join(filter(None, (self.message if is_cut else "", trouble))),
        )


class Pacer:
    """Starts at equal distances, so that no second sees more of them than the rate.

    Args:
        rate_per_s: How many trials may start in a second.
        clock: By which they are timed.
    """

    def __init__(self, rate_per_s: float, clock: Clock) -> None:
        self._distance_s = 1 / rate_per_s
        self._clock = clock
        self._next_s = clock.monotonic()

    def admit(self) -> bool:
        """Return whether a trial may start now; if so, it is taken to start."""
        now = self._clock.monotonic()
        if now < self._next_s:
            return False
        self._next_s = now + self._distance_s
        return True

    def seconds_left(self) -> float:
        """Return how long it takes until the next start is due."""
        return max(0.0, self._next_s - self._clock.monotonic())
