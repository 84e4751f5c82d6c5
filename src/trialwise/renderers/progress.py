"""Progress while a run goes on: a display that redraws itself, or a log that only grows.

A listener must not raise and must not hold a run up: once its stream is gone, it is silent.

Drawn by hand: a display library costs more at import than all of this, and its threads and
escape sequences would have to be kept away from logs and from the output of the service.
"""

from __future__ import annotations

import threading
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
from trialwise.documents.printable import count_cells
from trialwise.engine.ports import Clock, SystemClock
from trialwise.engine.run_events import (
    CriterionDecided,
    Event,
    Listener,
    RunEnded,
    RunStarted,
    TrialDone,
    VerdictReached,
)
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Intent
from trialwise.procedures.registry import procedure_of
from trialwise.renderers.capabilities import Capabilities, read_capabilities, read_size
from trialwise.renderers.progress_status import Snapshot, headline, status_block

#: Between two frames: faster is not seen, only paid for.
FRAME_S = 0.1
#: A frame without news, so that the clock on it does not seem to have stopped.
TICK_S = 1.0
#: A log hears at least so often of a run that goes on.
QUIET_S = 30.0
#: Lines about progress in a log, whatever the number of trials.
STEPS = 10

# Hidden only while a frame is drawn: a run that is killed leaves the cursor as it was.
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_CLEAR_LINE, _CLEAR_BELOW = "\x1b[K", "\x1b[J"


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
    """The progress that suits a stream, or None where nobody wants any.

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


class _Pen:
    """Writes until the stream is gone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream

    def write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a broken pipe, a closed file, a sign it cannot encode
            self._stream = None

    def size(self) -> tuple[int, int] | None:
        return None if self._stream is None else read_size(self._stream)


class TerminalProgress:
    """Draws a run's standing over itself, at most ten times a second, and clears it at the end.

    Args:
        stream: A terminal that obeys escape sequences.
        capabilities: What it can do; its size is asked again for every frame.
        clock: Time.
        tick_s: Redraw this often without news; None for never.
    """

    def __init__(
        self,
        stream: TextIO,
        capabilities: Capabilities,
        clock: Clock,
        *,
        tick_s: float | None = TICK_S,
    ) -> None:
        self._pen = _Pen(stream)
        self._able = capabilities
        self._clock = clock
        self._tick_s = tick_s
        self._snapshot: Snapshot | None = None
        self._started = 0.0
        self._drawn_at = 0.0
        self._frame: list[int] = []
        """The widths of the lines on the screen."""
        self._lock = threading.Lock()
        self._over = threading.Event()

    def on_event(self, event: Event) -> None:
        """Take note of one event, and draw if it is time or something was decided."""
        with self._lock:
            if isinstance(event, RunStarted):
                self._begin(event)
            elif isinstance(event, RunEnded | VerdictReached):
                self._end()
            elif self._snapshot is not None:
                self._snapshot = self._snapshot.after(event, elapsed_s=self._count_elapsed())
                self._draw(now=isinstance(event, CriterionDecided))

    def tick(self) -> None:
        """Draw the same standing a moment later."""
        with self._lock:
            if self._snapshot is not None:
                self._snapshot = replace(self._snapshot, elapsed_s=self._count_elapsed())
                self._draw()

    def close(self) -> None:
        """Clear the display; closing twice is harmless."""
        with self._lock:
            self._end()

    def _begin(self, event: RunStarted) -> None:
        self._end()
        self._started = self._clock.monotonic()
        self._snapshot = Snapshot.at_start(event)
        self._draw(now=True)
        if self._tick_s is not None:
            self._over = threading.Event()
            threading.Thread(
                target=self._tick_until, args=(self._over, self._tick_s), daemon=True
            ).start()

    def _tick_until(self, over: threading.Event, tick_s: float) -> None:
        while not over.wait(tick_s):
            self.tick()

    def _end(self) -> None:
        self._over.set()
        self._snapshot = None
        if self._frame:
            self._measure()
            self._pen.write(f"{self._home()}{_CLEAR_BELOW}{_SHOW}")
            self._frame = []

    def _count_elapsed(self) -> float:
        return self._clock.monotonic() - self._started

    def _draw(self, *, now: bool = False) -> None:
        moment = self._clock.monotonic()
        if self._snapshot is None or not (now or moment - self._drawn_at >= FRAME_S):
            return
        self._drawn_at = moment
        self._measure()
        lines = status_block(self._snapshot, self._able)
        text = f"{_CLEAR_LINE}\r\n".join(written for _, written in lines)
        home = self._home()
        self._frame = [count_cells(plain) for plain, _ in lines]
        self._pen.write(f"{_HIDE}{home}{text}{_CLEAR_BELOW}{_SHOW}")

    def _measure(self) -> None:
        size = self._pen.size()
        if size is not None:
            self._able = replace(self._able, width=size[0], height=size[1])

    def _home(self) -> str:
        """Back to the first line, as many rows up as the frame takes at the width of now.

        A terminal made narrower breaks the lines that are on it already.
        """
        rows = sum(max(1, -(-taken // self._able.width)) for taken in self._frame)
        return f"\r\x1b[{rows - 1}A" if rows > 1 else "\r"


class LineProgress:
    """A line for every event that matters: a log is read afterwards, from top to bottom.

    Args:
        stream: Where lines go.
        capabilities: What it can show; ASCII where not given.
        clock: Time; the machine's own where none is given.
    """

    def __init__(
        self,
        stream: TextIO,
        capabilities: Capabilities | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._pen = _Pen(stream)
        self._able = capabilities or Capabilities()
        self._clock = clock or SystemClock()
        self._snapshot: Snapshot | None = None
        self._started = self._told_at = 0.0
        self._step = 0

    def on_event(self, event: Event) -> None:
        """Write a line about one event, if it is worth one."""
        if isinstance(event, RunStarted):
            self._snapshot = Snapshot.at_start(event)
            self._started = self._told_at = self._clock.monotonic()
            self._step = self._steps()
            for line in _opening(event):
                self._say(line)
            return
        if isinstance(event, VerdictReached):
            kept = f", record: {event.record}" if event.record else ""
            self._say(f"verdict {event.verdict.decision or 'none: refused'}{kept}")
            return
        if self._snapshot is None:
            return
        now = self._clock.monotonic()
        self._snapshot = self._snapshot.after(event, elapsed_s=now - self._started)
        if isinstance(event, CriterionDecided):
            self._say(_word_decision(event))
        elif isinstance(event, RunEnded):
            self._say(_closing(event, self._snapshot))
        elif isinstance(event, TrialDone):
            self._advance(now)

    def close(self) -> None:
        """Nothing is left to tidy in a log."""

    def _advance(self, now: float) -> None:
        assert self._snapshot is not None
        step = self._steps()
        if step == self._step and now - self._told_at < QUIET_S:
            return
        self._step, self._told_at = step, now
        facts = [*headline(self._snapshot), *_standings(self._snapshot)]
        self._say(", ".join(facts))

    def _steps(self) -> int:
        assert self._snapshot is not None
        return STEPS * self._snapshot.trials // max(1, self._snapshot.most_trials)

    def _say(self, text: str) -> None:
        name = self._snapshot.plan.contract if self._snapshot is not None else "run"
        self._pen.write(f"{self._able.show(name, _NAME)}: {self._able.show(text)}\n")


#: A name in a log line; the rest of the line is what is new.
_NAME = 30
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
    """What is asked and by which rule, in a line."""
    if plan.purpose == "measure":
        return "measured"
    each = ", each input on its own" if criterion.each_input else ""
    if not procedure_of(criterion).claims_rate:
        return f"never fails, observed{each}"
    required, baseline = criterion.threshold.required_rate, criterion.threshold.baseline
    asked = "" if required is None else f"at least {as_percent(required)}"
    if procedure_of(criterion).compares_baseline:
        named = f" {baseline.identifier}" if baseline is not None else ""
        asked = f"no worse than baseline{named}"
    most = "at most " if procedure_of(criterion).may_stop_early else ""
    needed = f", {criterion.cutoff:,} must pass" if criterion.cutoff is not None else ""
    size = f"{most}{as_count(criterion.trials, 'trial')}{needed}{each}"
    return f"{asked}, {criterion.decision_rule}, {size}"


def _word_decision(event: CriterionDecided) -> str:
    one = event.standing
    rate = f", {as_observed(one.passed / one.trials)}" if one.trials else ""
    verdict = "not decided" if one.decision is None else one.decision.value
    return (
        f"{one.criterion}: {verdict} after {as_count(one.trials, 'trial')} "
        f"({one.passed:,} passed{rate}), {STOPS[event.stop].label}"
    )


def _standings(snapshot: Snapshot) -> Iterator[str]:
    """The rates of what is open, and how much is not."""
    still_open = [one for one in snapshot.standings if one.decision is None]
    for one in still_open[:_NAMED]:
        rate = as_observed(one.passed / one.trials) if one.trials else "waiting"
        yield f"{one.criterion} {rate}"
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
