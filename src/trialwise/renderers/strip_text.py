"""Intervals on one scale, drawn with characters: a forest plot for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.documents.blocks import Tone
from trialwise.documents.charts import Strip, StripRow, Strips, find_share
from trialwise.documents.printable import count_cells, pad
from trialwise.renderers.capabilities import Capabilities, pick_style

#: Columns that a picture takes at most, beside a long name, and at least.
_WIDEST, _USUAL, _NARROWEST = 41, 31, 15
_INDENT, _GAP = "  ", "  "
#: Estimate, line, ends, what is required, what it must be distinguished from, an end off the scale.
_UNICODE, _ASCII = "●─├┤│┊◄►", "o-[]|:<>"
_TONES: dict[str, Tone] = {"pass": "pass", "fail": "fail", "open": "open"}


def render_strip_characters(strips: Strips, able: Capabilities, width: int) -> Iterator[str]:
    """Render a line for each interval, then the scale and what lies toward its ends.

    Args:
        strips: What to draw.
        able: What the stream can show.
        width: How many columns there are.
    """
    values = [able.show(row.value) for row in strips.rows]
    longest = max(map(count_cells, (*values, able.show(strips.axis.label))))
    room = width - len(_INDENT) - 2 * len(_GAP) - longest
    names = [able.show(_INDENT * row.depth + row.name) for row in strips.rows]
    column = min(max(map(count_cells, names), default=0), max(8, room - _USUAL))
    across = max(_NARROWEST, min(_WIDEST, room - column))
    for row, name, value in zip(strips.rows, names, values, strict=True):
        drawn = able.paint(_draw(row.strip, across, able), pick_style(_pick_tone(row)))
        label = pad(able.show(name, column), column)
        yield f"{_INDENT}{label}{_GAP}{drawn}{_GAP}{pad(value, longest, right=True)}"
    before = " " * (len(_INDENT) + column + len(_GAP))
    yield before + _write_scale(strips, across, able)
    if any(strips.ends):
        yield before + _write_ends(strips.ends, across, able)


def _pick_tone(row: StripRow) -> Tone:
    return _TONES.get(row.strip.ink, "plain")


def _draw(strip: Strip, across: int, able: Capabilities) -> str:
    dot, line, left, right, need, other, below, above = tuple(_UNICODE if able.unicode else _ASCII)
    cells = [" "] * across

    def place(value: float) -> int:
        return round((across - 1) * find_share(value, *strip.span))

    for one in strip.others:
        cells[place(one)] = other
    if strip.need is not None:
        cells[place(strip.need)] = need
    if strip.high > strip.low:
        low, high = place(strip.low), place(strip.high)
        cells[low : high + 1] = [
            line if one in (" ", other) else one for one in cells[low : high + 1]
        ]
        cells[low] = left if strip.low >= strip.span[0] else below
        cells[high] = right if strip.high <= strip.span[1] else above
    cells[place(strip.value)] = dot
    return "".join(cells)


def _write_scale(strips: Strips, across: int, able: Capabilities) -> str:
    """Write the ticks of the scale, each under its place; one that has no room is left out."""
    cells = [" "] * across
    for value, text in strips.axis.list_ticks(most=6):
        shown = able.show(text)
        middle = round((across - 1) * strips.axis.place(value))
        start = max(0, min(middle - len(shown) // 2, across - len(shown)))
        if not "".join(cells[max(0, start - 1) : start + len(shown) + 1]).strip():
            cells[start : start + len(shown)] = shown
    label = able.show(strips.axis.label)
    return f"{''.join(cells)}{_GAP}{label}".rstrip()


def _write_ends(ends: Sequence[str], across: int, able: Capabilities) -> str:
    arrows = ("◄ ", " ►") if able.unicode else ("< ", " >")
    half = across // 2 - 1
    left, right = able.show(ends[0], half - 2), able.show(ends[1], half - 2)
    return f"{pad(arrows[0] + left, across - half)}{pad(right + arrows[1], half, right=True)}"
