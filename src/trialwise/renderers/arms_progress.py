"""Progress while several arms take turns: pairs or rounds, and how every test or arm stands.

One display for all arms, since they advance together, and the same one whatever is asked of them.
As for a run, a terminal is redrawn and a log only grows, and neither raises nor holds the arms up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TextIO

from trialwise.documents.numbers import as_count, as_duration, as_money
from trialwise.documents.printable import clip, count_cells, pad
from trialwise.documents.results import Status
from trialwise.engine.ports import Clock, SystemClock
from trialwise.renderers.capabilities import Capabilities, pick_style, read_capabilities
from trialwise.renderers.progress import LiveDisplay, LogLines
from trialwise.stats.result_types import Decision

_INDENT, _GAP = "  ", "  "
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsRow:
    """One test of a comparison, or one arm of a choice, so far."""

    name: str
    counts: str
    """What was counted, in words."""
    outcome: str | None = None
    """What it shows, once that is decided."""
    after: int = 0
    """How many pairs or rounds it took."""
    decision: Decision | None = None
    """What the outcome means for the candidate, which gives it its colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsStanding:
    """What is known of several arms so far."""

    title: str
    """The labels of the arms."""
    unit: str
    """What is counted: a pair, or a round."""
    done: int
    most: int
    rows: Sequence[ArmsRow] = ()
    trials: int = 0
    """Of all arms."""
    usd: float | None = None

    def list_facts(self, elapsed_s: float) -> Iterator[str]:
        """Yield facts about all arms together, most wanted first."""
        yield f"{self.done:,}/{self.most:,} {self.unit}s"
        yield as_count(self.trials, "trial")
        yield as_duration(elapsed_s) if elapsed_s >= 1 else "0 s"
        if self.usd is not None:
            yield as_money(self.usd)
        decided = sum(one.outcome is not None for one in self.rows)
        if decided:
            yield f"{decided} of {len(self.rows)} decided"


class ArmsProgress(Protocol):
    """Shows how several arms stand."""

    def show(self, standing: ArmsStanding) -> None:
        """Take note of how they stand, and draw if it is time."""
        ...

    def wants_more(self) -> bool:
        """Return whether a standing would be drawn now: making one takes a while."""
        ...

    def close(self) -> None:
        """Take away what would be in the way; closing twice is harmless."""
        ...


def open_arms_progress(
    stream: TextIO, *, capabilities: Capabilities | None = None, clock: Clock | None = None
) -> ArmsProgress:
    """Return the progress that suits a stream.

    Args:
        stream: Where it goes; standard error, so that standard output stays clean.
        capabilities: What the stream can do; found out where not given.
        clock: Time; the machine's own where none is given.
    """
    able, time = capabilities or read_capabilities(stream), clock or SystemClock()
    return (_TerminalArms if able.live else _LoggedArms)(stream, able, time)


class _TerminalArms(LiveDisplay):
    """Draws the tests or arms over their last standing."""

    _standing: ArmsStanding | None = None

    def show(self, standing: ArmsStanding) -> None:
        """Take note of how the arms stand, and draw if it is time."""
        with self._lock:
            # The first frame at once: a service may take minutes for its first reply.
            is_first = self._standing is None
            self._standing = standing
            if is_first:
                self._begin()
            self._draw(now=is_first)

    def wants_more(self) -> bool:
        """Return whether the next frame is due."""
        return self._is_due()

    def close(self) -> None:
        """Clear the display; closing twice is harmless."""
        with self._lock:
            self._standing = None
            self._clear()

    def _list_lines(self) -> list[tuple[str, str]]:
        standing, able = self._standing, self._able
        if standing is None:
            return []
        width = max(1, able.width - 1)
        facts = standing.list_facts(self._count_elapsed())
        head = clip(able.show(f"{standing.title}{_GAP}{able.dot.join(facts)}"), width)
        lines = [(head, head)]
        name = min(max((count_cells(one.name) for one in standing.rows), default=0), _LONGEST_NAME)
        # More rows than the terminal has would scroll, and could not be drawn over.
        for one in standing.rows[: max(0, able.height - 2)]:
            shown = pad(clip(one.name, _LONGEST_NAME), name)
            text = clip(able.show(f"{_INDENT}{shown}{_GAP}{one.counts}{_GAP}"), width)
            state = clip(one.outcome or "open", max(0, width - count_cells(text)))
            # An outcome may be good or bad news, by the question that was asked.
            tone = "quiet" if one.decision is None else Status(one.decision).tone
            lines.append((f"{text}{state}", f"{text}{able.paint(state, pick_style(tone))}"))
        return lines


class _LoggedArms(LogLines):
    """Writes a line for every tenth of the pairs and for every test or arm that is decided."""

    _decided: frozenset[str] = frozenset()
    _standing: ArmsStanding | None = None

    def show(self, standing: ArmsStanding) -> None:
        """Write a line about what is new, if it is worth one."""
        is_first, self._standing = self._standing is None, standing
        if is_first:
            self.begin(standing.title, standing.most, standing.done)
            again = f", {as_count(standing.trials, 'trial')} already run" if standing.trials else ""
            self.say(f"at most {as_count(standing.most, standing.unit)}{again}")
        for one in standing.rows:
            # A log says each outcome once, when it comes.
            if one.outcome is not None and one.name not in self._decided:
                self._decided |= {one.name}
                after = as_count(one.after, standing.unit)
                self.say(f"{one.name}: {one.outcome} after {after} ({one.counts})")
        if not is_first and self.is_due(standing.done):
            self.say(", ".join(standing.list_facts(self.elapsed_s)))

    def wants_more(self) -> bool:
        """Return True: which pairs are worth a line is only known of a standing."""
        return True
