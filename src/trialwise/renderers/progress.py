"""Progress while a run goes on: a display that redraws itself, or a log that only grows.

A listener must not raise and must not hold a run up: once its stream is gone, it is silent.

Drawn by hand: a display library costs more at import than all of this, and its threads and
escape sequences would have to be kept away from logs and from the output of the service.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import TextIO

from trialwise.documents import numbers
from trialwise.documents.numbers import STOPS
from trialwise.documents.printable import count_cells
from trialwise.engine import ports
from trialwise.model.claim import Intent
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.procedures.registry import procedure_of
from trialwise.renderers import progress_status
from trialwise.renderers.capabilities import Capabilities, read_capabilities, read_size

# --- Displays: frames, a clock that ticks, and a clean end ---------------------------------------

#: Between two frames: faster is not seen, only paid for.
FRAME_S = 0.1
#: A frame without news, so that the clock on it does not seem to have stopped.
TICK_S = 1.0

# Hidden only while a frame is drawn: a run that is killed leaves the cursor as it was.
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_CLEAR_LINE, _CLEAR_BELOW = "\x1b[K", "\x1b[J"


class _Display:
    """Writes to a stream until it is closed.

    Args:
        stream: Where text goes.
        able: What it can show; ASCII where not given.
        clock: Time; the machine's own where none is given.
    """

    def __init__(
        self, stream: TextIO, able: Capabilities | None = None, clock: ports.Clock | None = None
    ) -> None:
        self._stream: TextIO | None = stream
        self._able = able or Capabilities()
        self._clock = clock or ports.SystemClock()
        self._began = 0.0

    @property
    def elapsed_s(self) -> float:
        """The seconds since the begin."""
        return self._clock.monotonic() - self._began

    def _write(self, text: str) -> None:
        """Write a text, if that is still possible."""
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a broken pipe, a closed file, a sign it cannot encode
            self._stream = None


#: A log hears at least so often of what goes on.
QUIET_S = 30.0
#: Lines about progress in a log, whatever the number of trials.
STEPS = 10
_NAME = 40


class TerminalProgress(_Display):
    """Shows how runs stand: one in a few lines, or each of several in a line.

    It draws over its last lines, at most ten times a second, and clears them at the end.

    Args:
        stream: A terminal that obeys escape sequences.
        capabilities: What it can do; its size is asked again for every frame.
        clock: Time.
        tick_s: Redraw this often without news; None for never.
        is_shared: Whether several runs share the terminal.
    """

    def __init__(
        self,
        stream: TextIO,
        capabilities: Capabilities,
        clock: ports.Clock,
        *,
        tick_s: float | None = TICK_S,
        is_shared: bool = False,
    ) -> None:
        super().__init__(stream, capabilities, clock)
        self._tick_s, self._is_shared = tick_s, is_shared
        self._running: dict[
            object, tuple[float, progress_status.Snapshot | progress_status.ArmsStanding]
        ] = {}
        """When each run, or the arms together, began, and how it stands."""
        self._drawn_at = 0.0
        self._frame: list[int] = []
        """The widths of the lines on the screen."""
        # Events come from the run's thread and ticks from another, and half a frame is garbage.
        self._lock = threading.Lock()
        self._over = threading.Event()

    def tick(self) -> None:
        """Draw the same standing a moment later."""
        with self._lock:
            now = self._clock.monotonic()
            for run, (began, snapshot) in self._running.items():
                self._running[run] = began, replace(snapshot, elapsed_s=now - began)
            self._draw()

    def _begin(self) -> None:
        """Start the clock; until it is cleared the display ticks."""
        self._began = self._clock.monotonic()
        self._over = over = threading.Event()

        def keep_ticking() -> None:
            while not over.wait(self._tick_s):
                self.tick()

        if self._tick_s is not None:
            # A daemon: a process that ends must not wait for a clock on a screen.
            threading.Thread(target=keep_ticking, daemon=True).start()

    def _clear(self) -> None:
        self._over.set()
        if self._frame:
            self._measure()
            self._write(f"{self._home()}{_CLEAR_BELOW}{_SHOW}")
            self._frame = []

    def _draw(self, *, now: bool = False) -> None:
        if not (now or self.wants_arms()):
            return
        self._measure()
        lines = self._list_lines()
        if not lines:
            return
        self._drawn_at = self._clock.monotonic()
        text = f"{_CLEAR_LINE}\r\n".join(written for _, written in lines)
        home = self._home()
        self._frame = [count_cells(plain) for plain, _ in lines]
        self._write(f"{_HIDE}{home}{text}{_CLEAR_BELOW}{_SHOW}")

    def _measure(self) -> None:
        # Asked for every frame, since people resize terminals while they wait.
        size = None if self._stream is None else read_size(self._stream)
        if size is not None:
            self._able = replace(self._able, width=size[0], height=size[1])

    def _home(self) -> str:
        """Back to the first line, as many rows up as the frame takes at the width of now.

        A terminal made narrower breaks the lines that are on it already.
        """
        rows = sum(max(1, -(-taken // self._able.width)) for taken in self._frame)
        return f"\r\x1b[{rows - 1}A" if rows > 1 else "\r"

    def on_event(self, event: ports.Event) -> None:
        """Take note of one event of the only run."""
        self.hear(event, None)

    def close(self) -> None:
        """Clear the display; closing twice is harmless."""
        self.forget(None)

    def hear(self, event: ports.Event, run: object) -> None:
        """Take note of one event, and draw if it is time or something was decided."""
        # A run that begins again begins on an empty screen.
        if isinstance(event, ports.RunStarted | ports.RunEnded | ports.VerdictReached):
            self.forget(run)
        with self._lock:
            now = self._clock.monotonic()
            if isinstance(event, ports.RunStarted):
                if not self._running:
                    self._begin()
                self._running[run] = now, progress_status.Snapshot.at_start(event)
                self._draw(now=True)
            elif run in self._running:
                began, snapshot = self._running[run]
                assert isinstance(snapshot, progress_status.Snapshot)
                self._running[run] = began, snapshot.after(event, elapsed_s=now - began)
                # A decision is what somebody waits for; everything else may wait for the next
                # frame.
                self._draw(now=isinstance(event, ports.CriterionDecided))

    def show(self, standing: progress_status.ArmsStanding) -> None:
        """Take note of how several arms stand, and draw if it is time."""
        with self._lock:
            # The first frame at once: a service may take minutes for its first reply.
            is_first, now = not self._running, self._clock.monotonic()
            if is_first:
                self._begin()
            began = now if is_first else self._running[None][0]
            self._running[None] = began, replace(standing, elapsed_s=now - began)
            self._draw(now=is_first)

    def wants_arms(self) -> bool:
        """Return whether a standing would be drawn now: making one takes a while."""
        return self._clock.monotonic() - self._drawn_at >= FRAME_S

    def forget(self, run: object) -> None:
        """Take the lines of a run away; the last one ends the display."""
        with self._lock:
            known = self._running.pop(run, None)
            if not self._running:
                self._clear()
            elif known is not None:
                self._draw(now=True)

    def _list_lines(self) -> list[tuple[str, str]]:
        shown = [snapshot for _, snapshot in self._running.values()]
        if self._is_shared:
            room = max(1, self._able.height - 1)
            runs = [one for one in shown if isinstance(one, progress_status.Snapshot)]
            return [
                progress_status.draw_line(progress_status.head_line(one, self._able), self._able)
                for one in runs[:room]
            ]
        return [line for one in shown for line in progress_status.status_block(one, self._able)]


class _OneOfSeveral:
    """Hears of one run for a display of several."""

    def __init__(self, display: TerminalProgress) -> None:
        self._display = display

    def on_event(self, event: ports.Event) -> None:
        """Pass an event on."""
        self._display.hear(event, self)

    def close(self) -> None:
        """Take the run's line away; closing twice is harmless."""
        self._display.forget(self)


class LineProgress(_Display):
    """Lines about a run, or about several arms: a log is read afterwards, from top to bottom."""

    _name = "run"
    _told_at = 0.0
    _step, _most = 0, 1
    _snapshot: progress_status.Snapshot | None = None
    _decided: frozenset[str] = frozenset()
    """The tests or arms that had their line."""
    _is_new = True

    def begin(self, name: str, most: int, done: int) -> None:
        """Note what the lines are about.

        Args:
            name: How they begin.
            most: The most trials or pairs.
            done: How many of them an earlier start has left.
        """
        self._name, self._most = name, max(1, most)
        self._began = self._told_at = self._clock.monotonic()
        self._step = STEPS * done // self._most

    def say(self, text: str) -> None:
        """Write a line."""
        self._write(f"{self._able.show(self._name, _NAME)}: {self._able.show(text)}\n")

    def wants_trial(self, trials: int) -> bool:
        """Return whether a line about this many trials is due: after a tenth or a while."""
        # CI servers end jobs that print nothing for some minutes.
        is_quiet = self._clock.monotonic() - self._told_at >= QUIET_S
        return is_quiet or STEPS * trials // self._most != self._step

    def is_due(self, done: int) -> bool:
        """Return whether a line is due, which the caller then writes."""
        if not self.wants_trial(done):
            return False
        self._step, self._told_at = STEPS * done // self._most, self._clock.monotonic()
        return True

    def close(self) -> None:
        """Nothing is left to tidy in a log."""

    def on_event(self, event: ports.Event) -> None:
        """Write a line about one event, if it is worth one."""
        if isinstance(event, ports.RunStarted):
            self._snapshot = progress_status.Snapshot.at_start(event)
            snapshot = self._snapshot
            self.begin(snapshot.plan.contract, snapshot.most_trials, snapshot.trials)
            for line in _opening(event):
                self.say(line)
        elif isinstance(event, ports.VerdictReached):
            kept = f", record: {event.record}" if event.record else ""
            self.say(f"verdict {event.verdict.decision or 'none: refused'}{kept}")
        elif self._snapshot is not None:
            self._snapshot = snapshot = self._snapshot.after(event, elapsed_s=self.elapsed_s)
            if isinstance(event, ports.CriterionDecided):
                self.say(_word_decision(event))
            elif isinstance(event, ports.RunEnded):
                self.say(_closing(event, snapshot))
            elif self.is_due(snapshot.trials):
                self.say(", ".join([*progress_status.headline(snapshot), *_standings(snapshot)]))

    def show(self, standing: progress_status.ArmsStanding) -> None:
        """Write a line about what is new of several arms, if it is worth one."""
        is_first, self._is_new, unit = self._is_new, False, standing.unit
        if is_first:
            self.begin(standing.title, standing.most, standing.done)
            again = f", {numbers.as_count(standing.trials, 'trial')} already run"
            most = numbers.as_count(standing.most, unit)
            self.say(f"at most {most}{again * (standing.trials > 0)}")
        for one in standing.rows:
            # A log says each outcome once, when it comes.
            if one.outcome is not None and one.name not in self._decided:
                self._decided |= {one.name}
                after = numbers.as_count(one.after, unit)
                self.say(f"{one.name}: {one.outcome} after {after} ({one.counts})")
        if not is_first and self.is_due(standing.done):
            self.say(", ".join(replace(standing, elapsed_s=self.elapsed_s).list_facts()))

    def wants_arms(self) -> bool:
        """Return True: which pairs are worth a line is only known of a standing."""
        return True


def open_progress(
    stream: TextIO, *, capabilities: Capabilities | None = None, clock: ports.Clock | None = None
) -> TerminalProgress | LineProgress:
    """Return the progress of a run, or of several arms, that suits a stream.

    Args:
        stream: Where it goes; standard error, so that standard output stays clean.
        capabilities: What the stream can do; found out where not given.
        clock: Time; the machine's own where none is given.
    """
    able, time = capabilities or read_capabilities(stream), clock or ports.SystemClock()
    return (TerminalProgress if able.live else LineProgress)(stream, able, time)


def share_progress(
    stream: TextIO, *, capabilities: Capabilities | None = None, clock: ports.Clock | None = None
) -> Callable[[], LineProgress | _OneOfSeveral]:
    """Return what makes the progress of each of several runs that go on at a time.

    A terminal shows a line for each; a log has the lines of all.
    """
    able, time = capabilities or read_capabilities(stream), clock or ports.SystemClock()
    if not able.live:
        return lambda: LineProgress(stream, able, time)
    display = TerminalProgress(stream, able, time, is_shared=True)
    return lambda: _OneOfSeveral(display)


#: Open criteria named in a line about progress.
_NAMED = 3


def _opening(event: ports.RunStarted) -> Iterator[str]:
    plan = event.plan
    inputs = sum(len(one.input_ids) for one in plan.experiments)
    smoke = ", smoke" if plan.intent is Intent.SMOKE else ""
    # Seed and budget stand in the first line: of a run that is killed the log may be all there is.
    limits = numbers.list_amounts(**asdict(plan.options.budget))
    budget = "".join(f", budget {limit}" for limit in limits)
    again = f", {numbers.as_count(event.resumed, 'trial')} already run" if event.resumed else ""
    named = f"run {event.run_id}: " if event.run_id else ""
    yield (
        f"{named}at most {numbers.as_count(plan.max_trials, 'trial')} of "
        f"{numbers.as_count(inputs, 'input')}, seed {plan.seed}{smoke}{budget}{again}"
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
    asked = "" if required is None else f"at least {numbers.as_percent(required)}"
    if procedure_of(criterion).decides_mean:
        asked = f"mean score at least {getattr(criterion.design, 'required_mean', 0):g}"
    if procedure_of(criterion).compares_baseline:
        named = f" {baseline.identifier}" if baseline is not None else ""
        asked = f"no worse than baseline{named}"
    most = "at most " if procedure_of(criterion).may_stop_early else ""
    needed = f", {criterion.cutoff:,} must pass" if criterion.cutoff is not None else ""
    size = f"{most}{numbers.as_count(criterion.trials, 'trial')}{needed}{each}"
    return f"{asked}, {criterion.decision_rule}, {size}"


def _word_decision(event: ports.CriterionDecided) -> str:
    one = event.standing
    if not one.has_rate:
        return f"{one.criterion}: all {numbers.as_count(one.trials, 'score')} are in"
    rate = f", {numbers.as_observed(one.passed / one.trials)}" if one.trials else ""
    verdict = "not decided" if one.decision is None else one.decision.value
    return (
        f"{one.criterion}: {verdict} after {numbers.as_count(one.trials, 'trial')} "
        f"({one.passed:,} passed{rate}), {STOPS[event.stop].label}"
    )


def _standings(snapshot: progress_status.Snapshot) -> Iterator[str]:
    """Yield the rates of what is open, and how much is not."""
    # What is decided had a line of its own when that happened.
    still_open = [one for one in snapshot.standings if one.decision is None]
    for one in still_open[:_NAMED]:
        state = numbers.as_observed(one.passed / one.trials) if one.trials else "waiting"
        if one.trials and not one.has_rate:
            state = numbers.as_count(one.trials, "score")
        yield f"{one.criterion} {state}"
    if len(still_open) > _NAMED:
        yield f"{len(still_open) - _NAMED} more open"
    done = len(snapshot.standings) - len(still_open)
    if done:
        yield f"{done} of {len(snapshot.standings)} decided"


def _closing(event: ports.RunEnded, snapshot: progress_status.Snapshot) -> str:
    spent = event.spending
    cost = f", {numbers.as_money(spent.usd)}" if spent.usd is not None else ""
    why = f": {event.message}" if event.message else ""
    trials = numbers.as_count(spent.trials, "trial")
    took = numbers.as_duration(spent.seconds or snapshot.elapsed_s)
    return f"ended, {STOPS[event.stop].label}, {trials}, {took}{cost}{why}"
