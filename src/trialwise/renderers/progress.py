"""Progress while a run goes on: a display that redraws itself, or a log that only grows.

A listener must not raise and must not hold a run up: once its stream is gone, it is silent.

Drawn by hand: a display library costs more at import than all of this, and its threads and
escape sequences would have to be kept away from logs and from the output of the service.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Protocol, TextIO

from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_money,
    as_observed,
    as_percent,
    list_amounts,
)
from trialwise.documents.phrases import STOPS
from trialwise.engine.ports import (
    Clock,
    CriterionDecided,
    Event,
    Listener,
    RunEnded,
    RunStarted,
    SystemClock,
    VerdictReached,
)
from trialwise.model.intent import Intent
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.procedures.registry import procedure_of
from trialwise.renderers.capabilities import Capabilities, read_capabilities
from trialwise.renderers.live_display import LiveDisplay, LogLines
from trialwise.renderers.progress_status import Snapshot, headline, status_block, status_line


class Progress(Listener, Protocol):
    """A listener that leaves its stream tidy."""

    def close(self) -> None:
        """Take away what would be in the way; closing twice is harmless."""
        ...


def open_progress(
    stream: TextIO,
    *,
    quiet: bool = False,
    capabilities: Capabilities | None = None,
    clock: Clock | None = None,
) -> Progress | None:
    """Return the progress that suits a stream, or None where nobody wants any.

    Args:
        stream: Where it goes; standard error, so that standard output stays clean.
        quiet: Whether to show nothing.
        capabilities: What the stream can do; found out where not given.
        clock: Time; the machine's own where none is given.
    """
    if quiet:
        return None
    able = capabilities or read_capabilities(stream)
    time = clock or SystemClock()
    return TerminalProgress(stream, able, time) if able.live else LineProgress(stream, able, time)


class TerminalProgress(LiveDisplay):
    """Shows the standing of one run."""

    _snapshot: Snapshot | None = None

    def on_event(self, event: Event) -> None:
        """Take note of one event, and draw if it is time or something was decided."""
        with self._lock:
            if isinstance(event, RunStarted):
                self._end()
                self._snapshot = Snapshot.at_start(event)
                self._begin()
                self._draw(now=True)
            elif isinstance(event, RunEnded | VerdictReached):
                self._end()
            elif self._snapshot is not None:
                self._snapshot = self._snapshot.after(event, elapsed_s=self._count_elapsed())
                self._draw(now=isinstance(event, CriterionDecided))

    def close(self) -> None:
        """Clear the display; closing twice is harmless."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._snapshot = None
        self._clear()

    def _pass_time(self) -> None:
        if self._snapshot is not None:
            self._snapshot = replace(self._snapshot, elapsed_s=self._count_elapsed())

    def _list_lines(self) -> list[tuple[str, str]]:
        return [] if self._snapshot is None else status_block(self._snapshot, self._able)


class SharedProgress:
    """Progress of several runs at a time on one stream: a line for each, or a log of all.

    Args:
        stream: Where it goes.
        capabilities: What the stream can do; found out where not given.
        clock: Time; the machine's own where none is given.
    """

    def __init__(
        self,
        stream: TextIO,
        capabilities: Capabilities | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._stream = stream
        self._able = capabilities or read_capabilities(stream)
        self._clock = clock or SystemClock()
        self._display = _LineOfEach(stream, self._able, self._clock) if self._able.live else None

    def follow(self) -> Progress:
        """Return a listener for one of the runs."""
        if self._display is not None:
            return _OneOfSeveral(self._display)
        return LineProgress(self._stream, self._able, self._clock)


class _LineOfEach(LiveDisplay):
    """Draws one line for each unfinished run."""

    def __init__(self, stream: TextIO, capabilities: Capabilities, clock: Clock) -> None:
        super().__init__(stream, capabilities, clock)
        self._running: dict[_OneOfSeveral, tuple[float, Snapshot]] = {}

    def hear(self, one: _OneOfSeveral, event: Event) -> None:
        """Take note of one event of one run."""
        with self._lock:
            now = self._clock.monotonic()
            if isinstance(event, RunStarted):
                is_first = not self._running
                self._running[one] = now, Snapshot.at_start(event)
                self._draw(now=True)
                if is_first:
                    self._begin()
            elif one in self._running and not isinstance(event, RunEnded | VerdictReached):
                started, snapshot = self._running[one]
                self._running[one] = started, snapshot.after(event, elapsed_s=now - started)
                self._draw(now=isinstance(event, CriterionDecided))

    def forget(self, one: _OneOfSeveral) -> None:
        """Take the line of a run away; the last one ends the display."""
        with self._lock:
            self._running.pop(one, None)
            if self._running:
                self._draw(now=True)
            else:
                self._clear()

    def _pass_time(self) -> None:
        now = self._clock.monotonic()
        self._running = {
            one: (started, replace(snapshot, elapsed_s=now - started))
            for one, (started, snapshot) in self._running.items()
        }

    def _list_lines(self) -> list[tuple[str, str]]:
        shown = [snapshot for _, snapshot in self._running.values()]
        return [status_line(one, self._able) for one in shown[: max(1, self._able.height - 1)]]


class _OneOfSeveral:
    """Hears of one run for a display of several."""

    def __init__(self, display: _LineOfEach) -> None:
        self._display = display

    def on_event(self, event: Event) -> None:
        """Pass an event on."""
        self._display.hear(self, event)
        if isinstance(event, RunEnded):
            self.close()

    def close(self) -> None:
        """Take the run's line away; closing twice is harmless."""
        self._display.forget(self)


class LineProgress(LogLines):
    """A line for every event of a run that matters."""

    _snapshot: Snapshot | None = None

    def on_event(self, event: Event) -> None:
        """Write a line about one event, if it is worth one."""
        if isinstance(event, RunStarted):
            self._snapshot = Snapshot.at_start(event)
            snapshot = self._snapshot
            self.begin(snapshot.plan.contract, snapshot.most_trials, snapshot.trials)
            for line in _opening(event):
                self.say(line)
        elif isinstance(event, VerdictReached):
            kept = f", record: {event.record}" if event.record else ""
            self.say(f"verdict {event.verdict.decision or 'none: refused'}{kept}")
        elif self._snapshot is not None:
            self._snapshot = snapshot = self._snapshot.after(event, elapsed_s=self.elapsed_s)
            if isinstance(event, CriterionDecided):
                self.say(_word_decision(event))
            elif isinstance(event, RunEnded):
                self.say(_closing(event, snapshot))
            elif self.is_due(snapshot.trials):
                self.say(", ".join([*headline(snapshot), *_standings(snapshot)]))

    def wants_trial(self, trials: int) -> bool:
        """Return whether a line is due: what happens between two lines is not shown."""
        return self.would_be_due(trials)


#: Open criteria named in a line about progress.
_NAMED = 3


def _opening(event: RunStarted) -> Iterator[str]:
    plan = event.plan
    inputs = sum(len(one.input_ids) for one in plan.experiments)
    smoke = ", smoke" if plan.intent is Intent.SMOKE else ""
    limits = list_amounts(**asdict(plan.options.budget))
    budget = "".join(f", budget {limit}" for limit in limits)
    again = f", {as_count(event.resumed, 'trial')} already run" if event.resumed else ""
    named = f"run {event.run_id}: " if event.run_id else ""
    yield (
        f"{named}at most {as_count(plan.max_trials, 'trial')} of "
        f"{as_count(inputs, 'input')}, seed {plan.seed}{smoke}{budget}{again}"
    )
    for criterion in plan.criteria:
        yield f"{criterion.criterion}: {_rule(criterion, plan)}"


def _rule(criterion: CriterionPlan, plan: Plan) -> str:
    """Return what is asked and by which rule, in a line."""
    if plan.purpose == "measure":
        return "measured"
    if criterion.standing.reported_at is not None:
        return "reported only"
    each = ", each input on its own" if criterion.counting.each_input else ""
    if not procedure_of(criterion).claims_rate:
        return f"never fails, observed{each}"
    required, baseline = criterion.threshold.required_rate, criterion.threshold.baseline
    asked = "" if required is None else f"at least {as_percent(required)}"
    if procedure_of(criterion).decides_mean:
        asked = f"mean score at least {getattr(criterion.design, 'required_mean', 0):g}"
    if procedure_of(criterion).compares_baseline:
        named = f" {baseline.identifier}" if baseline is not None else ""
        asked = f"no worse than baseline{named}"
    most = "at most " if procedure_of(criterion).may_stop_early else ""
    needed = f", {criterion.cutoff:,} must pass" if criterion.cutoff is not None else ""
    size = f"{most}{as_count(criterion.trials, 'trial')}{needed}{each}"
    return f"{asked}, {criterion.decision_rule}, {size}"


def _word_decision(event: CriterionDecided) -> str:
    one = event.standing
    if not one.has_rate:
        return f"{one.criterion}: all {as_count(one.trials, 'score')} are in"
    rate = f", {as_observed(one.passed / one.trials)}" if one.trials else ""
    verdict = "not decided" if one.decision is None else one.decision.value
    return (
        f"{one.criterion}: {verdict} after {as_count(one.trials, 'trial')} "
        f"({one.passed:,} passed{rate}), {STOPS[event.stop].label}"
    )


def _standings(snapshot: Snapshot) -> Iterator[str]:
    """Yield the rates of what is open, and how much is not."""
    still_open = [one for one in snapshot.standings if one.decision is None]
    for one in still_open[:_NAMED]:
        state = as_observed(one.passed / one.trials) if one.trials else "waiting"
        if one.trials and not one.has_rate:
            state = as_count(one.trials, "score")
        yield f"{one.criterion} {state}"
    if len(still_open) > _NAMED:
        yield f"{len(still_open) - _NAMED} more open"
    done = len(snapshot.standings) - len(still_open)
    if done:
        yield f"{done} of {len(snapshot.standings)} decided"


def _closing(event: RunEnded, snapshot: Snapshot) -> str:
    spent = event.spending
    cost = f", {as_money(spent.usd)}" if spent.usd is not None else ""
    why = f": {event.message}" if event.message else ""
    took = as_duration(spent.seconds or snapshot.elapsed_s)
    return f"ended, {STOPS[event.stop].label}, {as_count(spent.trials, 'trial')}, {took}{cost}{why}"
