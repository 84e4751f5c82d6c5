"""Progress while arms are compared: pairs, discordant pairs and the state of every test.

One display for all arms, since they advance together. As for a run, a terminal is redrawn and a log
only grows, and neither raises nor holds the arms up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TextIO

from trialwise.documents.numbers import as_count, as_duration, as_money
from trialwise.documents.printable import clip, count_cells, pad
from trialwise.engine.ports import Clock, SystemClock
from trialwise.renderers.capabilities import Capabilities, Style, read_capabilities
from trialwise.renderers.live_display import LiveDisplay, Pen
from trialwise.renderers.progress import QUIET_S, STEPS
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_questions import PairedOutcome, PairedQuestion, decide_outcome
from trialwise.stats.result_types import Decision

_INDENT, _GAP = "  ", "  "
_LONGEST_NAME = 40
_STYLES = {
    Decision.PASS: Style.GOOD,
    Decision.FAIL: Style.BAD,
    Decision.INCONCLUSIVE: Style.OPEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TestStanding:
    """One criterion of one arm against another, so far."""

    __test__ = False  # no test of pytest

    name: str
    """The criterion and the arm."""
    question: PairedQuestion
    counts: PairCounts
    """The pairs in order that count."""
    outcome: PairedOutcome | None = None
    """What they show, once that is decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonStanding:
    """What is known of a comparison so far."""

    title: str
    """The labels of the arms."""
    most_pairs: int
    tests: Sequence[TestStanding]
    trials: int = 0
    """Of all arms."""
    usd: float | None = None

    @property
    def pairs(self) -> int:
        """How many pairs the test has that went on for longest."""
        return max((one.counts.pairs for one in self.tests), default=0)


class ComparisonProgress(Protocol):
    """Shows how a comparison stands."""

    def show(self, standing: ComparisonStanding) -> None:
        """Take note of how it stands, and draw if it is time."""
        ...

    def wants_more(self) -> bool:
        """Return whether a standing would be drawn now: making one takes a while."""
        ...

    def close(self) -> None:
        """Take away what would be in the way; closing twice is harmless."""
        ...


def open_comparison_progress(
    stream: TextIO, *, capabilities: Capabilities | None = None, clock: Clock | None = None
) -> ComparisonProgress:
    """Return the progress that suits a stream.

    Args:
        stream: Where it goes; standard error, so that standard output stays clean.
        capabilities: What the stream can do; found out where not given.
        clock: Time; the machine's own where none is given.
    """
    able, time = capabilities or read_capabilities(stream), clock or SystemClock()
    kind = TerminalComparison if able.live else LineComparison
    return kind(stream, able, time)


class TerminalComparison(LiveDisplay):
    """Draws the tests of a comparison over their last standing."""

    def __init__(self, stream: TextIO, capabilities: Capabilities, clock: Clock) -> None:
        super().__init__(stream, capabilities, clock)
        self._standing: ComparisonStanding | None = None
        self._began = clock.monotonic()

    def show(self, standing: ComparisonStanding) -> None:
        """Take note of how the comparison stands, and draw if it is time."""
        with self._lock:
            is_first = self._standing is None
            self._standing = standing
            self._draw(now=is_first)
        if is_first:
            self._start_ticking()

    def wants_more(self) -> bool:
        """Return whether the next frame is due."""
        return self._is_due()

    def close(self) -> None:
        """Clear the display; closing twice is harmless."""
        with self._lock:
            self._standing = None
            self._clear()

    def _pass_time(self) -> None:
        """Time is read when a frame is drawn."""

    def _list_lines(self) -> list[tuple[str, str]]:
        standing, able = self._standing, self._able
        if standing is None:
            return []
        width = max(1, able.width - 1)
        elapsed = self._clock.monotonic() - self._began
        head = f"{standing.title}{_GAP}{able.dot.join(_list_facts(standing, elapsed))}"
        lines = [_fit(able, width, able.show(head))]
        name = max((count_cells(one.name) for one in standing.tests), default=0)
        for one in standing.tests[: max(0, able.height - 2)]:
            shown = pad(clip(one.name, _LONGEST_NAME), min(name, _LONGEST_NAME))
            text = able.show(f"{_INDENT}{shown}{_GAP}{_count(one)}{_GAP}")
            lines.append(_fit(able, width, text, one))
        return lines


def _fit(
    able: Capabilities, width: int, text: str, test: TestStanding | None = None
) -> tuple[str, str]:
    """Return a line as it is measured and as it is written, with the state of a test."""
    text = clip(text, width)
    if test is None:
        return text, text
    state = clip(test.outcome or "open", max(0, width - count_cells(text)))
    style = Style.FAINT
    if test.outcome is not None:
        style = _STYLES[decide_outcome(test.question, test.outcome)]
    return f"{text}{state}", f"{text}{able.paint(state, style)}"


class LineComparison:
    """Writes a line for every tenth of the pairs and for every test that is decided.

    Args:
        stream: Where lines go.
        capabilities: What it can show.
        clock: Time.
    """

    def __init__(self, stream: TextIO, capabilities: Capabilities, clock: Clock) -> None:
        self._pen = Pen(stream)
        self._able = capabilities
        self._clock = clock
        self._began = self._told_at = clock.monotonic()
        self._step = -1
        self._decided: set[str] = set()

    def show(self, standing: ComparisonStanding) -> None:
        """Write a line about what is new, if it is worth one."""
        if self._step < 0:
            most = as_count(standing.most_pairs, "pair")
            again = f", {as_count(standing.trials, 'trial')} already run" if standing.trials else ""
            self._say(standing, f"at most {most}{again}")
        for one in standing.tests:
            if one.outcome is not None and one.name not in self._decided:
                self._decided.add(one.name)
                pairs = as_count(one.counts.pairs, "pair")
                self._say(standing, f"{one.name}: {one.outcome} after {pairs} ({_count(one)})")
        now = self._clock.monotonic()
        step = STEPS * standing.pairs // max(1, standing.most_pairs)
        if self._step >= 0 and step == self._step and now - self._told_at < QUIET_S:
            return
        if self._step >= 0:
            self._told_at = now
            self._say(standing, ", ".join(_list_facts(standing, now - self._began)))
        self._step = step

    def wants_more(self) -> bool:
        """Return True: which pairs are worth a line is only known of a standing."""
        return True

    def close(self) -> None:
        """Nothing is left to tidy in a log."""

    def _say(self, standing: ComparisonStanding, text: str) -> None:
        title = self._able.show(standing.title, _LONGEST_NAME)
        self._pen.write(f"{title}: {self._able.show(text)}\n")


def _list_facts(standing: ComparisonStanding, elapsed_s: float) -> Iterator[str]:
    """Yield facts about the whole comparison, most wanted first."""
    yield f"{standing.pairs:,}/{standing.most_pairs:,} pairs"
    yield as_count(standing.trials, "trial")
    yield as_duration(elapsed_s) if elapsed_s >= 1 else "0 s"
    if standing.usd is not None:
        yield as_money(standing.usd)
    still_open = sum(one.outcome is None for one in standing.tests)
    if still_open < len(standing.tests):
        yield f"{len(standing.tests) - still_open} of {len(standing.tests)} decided"


def _count(one: TestStanding) -> str:
    counts = one.counts
    return f"{counts.discordant:,} discordant: {counts.only_b:,} won, {counts.only_a:,} lost"
