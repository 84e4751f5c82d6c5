"""A display that redraws itself in a terminal: frames, a clock that ticks, and a clean end."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TextIO

from trialwise.documents.printable import count_cells
from trialwise.engine.ports import Clock, SystemClock
from trialwise.renderers.capabilities import Capabilities, read_size

#: Between two frames: faster is not seen, only paid for.
FRAME_S = 0.1
#: A frame without news, so that the clock on it does not seem to have stopped.
TICK_S = 1.0

# Hidden only while a frame is drawn: a run that is killed leaves the cursor as it was.
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_CLEAR_LINE, _CLEAR_BELOW = "\x1b[K", "\x1b[J"


class Pen:
    """Writes to a stream until it is closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream

    def write(self, text: str) -> None:
        """Write a text, if that is still possible."""
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a broken pipe, a closed file, a sign it cannot encode
            self._stream = None

    def size(self) -> tuple[int, int] | None:
        """Return the width and the height of the stream, if it has any."""
        return None if self._stream is None else read_size(self._stream)


#: A log hears at least so often of what goes on.
QUIET_S = 30.0
#: Lines about progress in a log, whatever the number of trials.
STEPS = 10
_NAME = 40


class LogLines:
    """Lines about a run, or about several arms: a log is read afterwards, from top to bottom.

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
        self._pen = Pen(stream)
        self._able = capabilities or Capabilities()
        self._clock = clock or SystemClock()
        self._name = "run"
        self._began = self._told_at = 0.0
        self._step, self._most = 0, 1

    @property
    def elapsed_s(self) -> float:
        """The seconds since the begin."""
        return self._clock.monotonic() - self._began

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
        self._pen.write(f"{self._able.show(self._name, _NAME)}: {self._able.show(text)}\n")

    def would_be_due(self, done: int) -> bool:
        """Return whether a line about so many trials is due: after a tenth of them, or a while."""
        is_quiet = self._clock.monotonic() - self._told_at >= QUIET_S
        return is_quiet or STEPS * done // self._most != self._step

    def is_due(self, done: int) -> bool:
        """Return whether a line is due, which the caller then writes."""
        if not self.would_be_due(done):
            return False
        self._step, self._told_at = STEPS * done // self._most, self._clock.monotonic()
        return True

    def close(self) -> None:
        """Nothing is left to tidy in a log."""


class LiveDisplay:
    """Draws lines over the last ones, at most ten times a second, and clears them at the end.

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
        self._pen = Pen(stream)
        self._able = capabilities
        self._clock = clock
        self._tick_s = tick_s
        self._drawn_at = self._began = 0.0
        self._frame: list[int] = []
        """The widths of the lines on the screen."""
        self._lock = threading.Lock()
        self._over = threading.Event()

    def _list_lines(self) -> list[tuple[str, str]]:
        """The lines of now, each as it is measured and as it is written; none draws nothing."""
        raise NotImplementedError

    def _pass_time(self) -> None:
        """Take note that some time has passed without news."""

    def _count_elapsed(self) -> float:
        return self._clock.monotonic() - self._began

    def tick(self) -> None:
        """Draw the same standing a moment later."""
        with self._lock:
            self._pass_time()
            self._draw()

    def _begin(self) -> None:
        """Start the clock; until it is cleared the display ticks."""
        self._began = self._clock.monotonic()
        if self._tick_s is not None:
            self._over = threading.Event()
            threading.Thread(
                target=self._tick_until, args=(self._over, self._tick_s), daemon=True
            ).start()

    def _tick_until(self, over: threading.Event, tick_s: float) -> None:
        while not over.wait(tick_s):
            self.tick()

    def _clear(self) -> None:
        self._over.set()
        if self._frame:
            self._measure()
            self._pen.write(f"{self._home()}{_CLEAR_BELOW}{_SHOW}")
            self._frame = []

    def _is_due(self) -> bool:
        return self._clock.monotonic() - self._drawn_at >= FRAME_S

    def _draw(self, *, now: bool = False) -> None:
        if not (now or self._is_due()):
            return
        moment = self._clock.monotonic()
        self._measure()
        lines = self._list_lines()
        if not lines:
            return
        self._drawn_at = moment
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
