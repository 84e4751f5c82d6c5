"""What an agent did in one trial, call by call, each with a bar where it stood in the session.

The words of a call hold everything that its bar shows. Where a trace tells no times the calls
stand in their order, without bars. Whatever was called, a timeline takes a bounded part of a page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trialwise.documents.numbers import as_count, as_duration
from trialwise.model.trace import ToolCall
from trialwise.model.trial import Trial
from trialwise.reporters.html.parts import details, glyph
from trialwise.reporters.html.plots import Axis
from trialwise.reporters.page.markup import Markup, element, joined, shortened, verbatim

__all__ = ["FULL", "SHORT", "Extent", "failed_calls", "timeline"]

#: Characters of arguments, of a result and of an error that are seen at once, and of a name.
_GLANCE, _NAME = 160, 80
#: Characters of one text that can be unfolded.
_UNFOLDED = 2000
#: Sessions that have an axis, in seconds: from a nanosecond to some thousand years.
_SHORTEST_S, _LONGEST_S = 1e-9, 1e11
#: The keys of a call that a tool call is read from; what is under others is told as it is.
_KNOWN = {*ToolCall.__dataclass_fields__, "arguments", "latency_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much of a page one timeline may take."""

    first: int
    """Calls from the beginning that are shown."""
    last: int
    """Calls from the end."""
    unfolded: int
    """Characters of long texts that can be unfolded, over all calls together."""


SHORT = Extent(first=14, last=6, unfolded=4000)
"""Of a trial among many."""
FULL = Extent(first=40, last=20, unfolded=12_000)
"""Of the one that is worth reading whole."""


def failed_calls(calls: Iterable[Mapping[str, Any]]) -> int:
    """How many calls are known to have ended in an error.

    By that key alone: of all trials of a run, reading whole calls would take long.

    >>> failed_calls([{"name": "a", "error": "no index"}, {"name": "a", "error": False}, {}])
    1
    """
    return sum(call.get("error") not in (None, False) for call in calls)


def timeline(trial: Trial, extent: Extent = SHORT) -> Markup:
    """The tool calls of a trial in order, or nothing for a trial that tells of none.

    Args:
        trial: Whose calls they are.
        extent: How much of them is shown.
    """
    shape = trial.shape
    if not trial.tool_calls:
        if shape is None:
            return Markup("")
        kept = as_count(shape.total_calls, "tool call")
        said = f"{kept}, none of which the record holds" if shape.total_calls else "No tool call"
        return element("div", element("p", f"{said}.", class_="label"), class_="quoted")
    calls = [_read(call) for call in trial.tool_calls]
    end_s = _end_s(calls, trial.latency_s)
    shown = _Shown(extent, end_s, tells_ends=any(call.failed is not None for call in calls))
    rows = [_axis(end_s), *shown.rows(calls, trial.tool_calls)]
    return element(
        "div",
        element("p", f"{'; '.join(_heading(calls, trial))}.", class_="label"),
        element("ol", *rows, class_="calls"),
        class_="quoted",
    )


def _read(told: Mapping[str, Any]) -> ToolCall:
    call = ToolCall.from_dict(told)
    if max(call.started_s or 0.0, call.duration_s or 0.0) <= _LONGEST_S:
        return call
    return replace(call, started_s=None, duration_s=None)


# --- The whole ----------------------------------------------------------------------------------


def _heading(calls: Sequence[ToolCall], trial: Trial) -> Iterator[str]:
    """How many calls there were, how many failed, and what of the session they took."""
    failed = sum(call.failed is True for call in calls)
    yield as_count(len(calls), "tool call") + (f", {failed:,} failed" if failed else "")
    if all(call.failed is None for call in calls):
        yield "how any of them ended is not told" if len(calls) > 1 else "how it ended is not told"
    took, whole = [call.duration_s for call in calls if call.duration_s is not None], ""
    if len(took) == len(calls):
        busy_s = _busy_s(calls)
        if trial.latency_s and busy_s <= trial.latency_s:
            whole = f" of the session's {as_duration(trial.latency_s)}"
        yield f"under way for {as_duration(busy_s)}{whole}"
    elif not took:
        yield "times are not told"
    if trial.setup_s:
        yield f"setup took {as_duration(trial.setup_s)} before, and is part of no bar"


def _busy_s(calls: Sequence[ToolCall]) -> float:
    """Seconds in which a call was under way; calls side by side count once where starts tell."""
    if any(call.started_s is None for call in calls):
        return sum(call.duration_s or 0.0 for call in calls)
    busy_s = reached_s = 0.0
    for start_s, took_s in sorted(
        (call.started_s or 0.0, call.duration_s or 0.0) for call in calls
    ):
        busy_s += max(0.0, start_s + took_s - max(start_s, reached_s))
        reached_s = max(reached_s, start_s + took_s)
    return busy_s


def _end_s(calls: Sequence[ToolCall], latency_s: float | None) -> float | None:
    """Where the time axis ends; None where no call says when it began, or nothing can be seen."""
    ends_s = [one.started_s + (one.duration_s or 0.0) for one in calls if one.started_s is not None]
    end_s = max([*ends_s, latency_s or 0.0]) if ends_s else 0.0
    return end_s if _SHORTEST_S <= end_s <= _LONGEST_S else None


def _axis(end_s: float | None) -> Markup:
    """The scale above the bars; the rows say their times themselves."""
    if end_s is None:
        return Markup("")
    axis = Axis(low=0, high=end_s, label="", unit="seconds")
    # Labels stand centred under their places, but where that would take them off the page.
    ticks = [
        element(
            "span",
            text,
            class_="start" if not value else "end" if value > 0.9 * end_s else None,
            style=f"left:{100 * axis.place(value):.2f}%",
        )
        for value, text in axis.ticks()
    ]
    return element("li", element("div", *ticks, class_="xticks"), class_="axis", aria_hidden="true")


# --- One call -----------------------------------------------------------------------------------


class _Shown:
    """The rows of a timeline, as long as there is room for what they can unfold."""

    def __init__(self, extent: Extent, end_s: float | None, *, tells_ends: bool) -> None:
        self._extent = extent
        self._tells_ends = tells_ends
        self._left = extent.unfolded
        self._end_s = end_s

    def rows(
        self, calls: Sequence[ToolCall], told: Sequence[Mapping[str, Any]]
    ) -> Iterator[Markup]:
        """The first calls and the last, and how many are left out in between."""
        first, last = self._extent.first, self._extent.last
        repeats = _repeats(calls)
        left_out = len(calls) - first - last
        for place, (call, said) in enumerate(zip(calls, told, strict=True)):
            if left_out > 0 and place == first:
                gap = f"{as_count(left_out, 'call')} left out; the run's journal holds them all."
                yield element("li", element("p", gap, class_="note"), class_="gap")
            if left_out <= 0 or place < first or place >= first + left_out:
                yield self._row(place, call, said, repeats[place])

    def _row(self, place: int, call: ToolCall, told: Mapping[str, Any], repeated: int) -> Markup:
        more = {key: value for key, value in told.items() if key not in _KNOWN}
        again = "" if repeated == place else f" · the same as {repeated + 1}"
        return element(
            "li",
            element("span", f"{place + 1}.", class_="place"),
            element("span", *_who(call), again, class_="who"),
            element("span", _when(call), class_="when"),
            self._bar(call),
            element(
                "div",
                self._text("", _plain(call.args)) if call.args not in (None, {}, []) else None,
                *self._end(call),
                self._text("also told", _plain(more)) if more else None,
                class_="said",
            ),
            class_="failing" if call.failed else None,
        )

    def _bar(self, call: ToolCall) -> Markup:
        """Where the call stood in the session: decoration, the words beside it say the same."""
        if self._end_s is None or call.started_s is None:
            return Markup("")
        start = call.started_s / self._end_s
        # Of a call without an end nobody knows how far it went: its bar has none either.
        width = 1 - start if call.duration_s is None else call.duration_s / self._end_s
        place = f"left:{100 * start:.2f}%;width:{100 * width:.2f}%"
        bar = element("span", style=place, class_="endless" if call.duration_s is None else None)
        return element("span", bar, class_="lane", aria_hidden="true")

    def _end(self, call: ToolCall) -> Iterator[Markup]:
        if call.error is not None:
            yield self._text("failed", call.error, mark=glyph("fail"))
        if call.result is not None:
            yield self._text("returned", call.result)
        if call.failed is None and self._tells_ends:
            yield element("p", "how it ended is not told", class_="label")

    def _text(self, label: str, text: str, *, mark: Markup | None = None) -> Markup:
        """A text at a glance, and the rest of it on demand as far as there is room."""
        glance = " ".join(text.split())
        parts: list[object] = [
            joined([mark, element("span", label, class_="label"), " "]) if label else None,
            element("code", verbatim(shortened(glance, _GLANCE)), dir="auto"),
        ]
        room = min(_UNFOLDED, self._left)
        if len(glance) > _GLANCE and room > _GLANCE:
            whole = shortened(text, room)
            self._left -= len(whole)
            pre = element("pre", verbatim(whole), dir="auto")
            parts.append(details(as_count(len(text), "character"), pre))
        return element("div", *parts)


def _repeats(calls: Sequence[ToolCall]) -> list[int]:
    """For each call the place of the first one with the same tool and arguments.

    A call without a name may be any, and is the same as none.
    """
    seen: dict[tuple[str | None, str, str], int] = {}
    return [
        place
        if call.name is None
        else seen.setdefault((call.server, call.name, _plain(call.args)), place)
        for place, call in enumerate(calls)
    ]


def _who(call: ToolCall) -> Iterator[object]:
    """The tool, its server, and the turn it was called in where the trace tells one."""
    name = "a call without a name" if call.name is None else shortened(call.name, _NAME)
    yield element("b", element("bdi", name))
    if call.server is not None:
        yield joined([" on ", element("bdi", shortened(call.server, _NAME))])
    if call.turn is not None:
        yield f" · turn {call.turn}"


def _when(call: ToolCall) -> str:
    """When it began and how long it took, as far as the trace tells."""
    took = "" if call.duration_s is None else as_duration(call.duration_s)
    if call.started_s is None:
        return took
    return f"at {as_duration(call.started_s)}" + (f" for {took}" if took else ", no end told")


def _plain(value: object) -> str:
    """A value as JSON where it is, else as Python shows it."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
