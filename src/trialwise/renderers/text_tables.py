"""Tables as text: columns aligned by their widest cell, within the width of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

from trialwise.documents.blocks import Badge, Cell, Link, Name, Table, Tone, Value
from trialwise.documents.printable import count_cells, pad, wrap_text
from trialwise.renderers.capabilities import Capabilities, Style, pick_style

__all__ = ["INDENT", "flatten_cell", "write_table"]

INDENT, _GAP = "  ", "  "
#: A last column of words is not wrapped to less than this.
_NARROWEST = 30
#: Tones of rows that a terminal shows by colour; the others are for a browser.
_COLOURED: tuple[Tone, ...] = ("pass", "fail", "open", "quiet")


def flatten_cell(cell: Cell, able: Capabilities, *, lines: bool = False) -> str:
    """A cell as the stream can show it, on one line unless its line breaks count."""
    match cell:
        case str():
            parts = cell.split("\n") if lines else [cell]
            return "\n".join(map(able.show, parts))
        case Badge():
            return able.show(cell.word)
        case Link() | Name() | Value():
            return able.show(cell.text)
        case tuple():
            return " ".join(flatten_cell(one, able) for one in cell)
        case _:  # a strip is a picture, and its numbers stand beside it
            return ""


def write_table(table: Table, able: Capabilities, width: int) -> Iterator[str]:
    """The rows under their column headings; a table without any begins at the left edge.

    A last column of words is wrapped where it is too wide. Otherwise the table comes in as many
    strips as the width asks for, each with the names of the rows.
    """
    titles = [flatten_cell(column, able, lines=True) for column in table.columns]
    indent = INDENT if any(titles) else ""
    rows = [[flatten_cell(cell, able, lines=True) for cell in row.cells] for row in table.rows]
    # A column of pictures has nothing to say in a terminal.
    kept = [i for i in range(len(titles)) if i == 0 or any(row[i] for row in rows)]
    words = [place for place, i in enumerate(kept) if i == 0 or i in table.words]
    heads = [_sink([titles[i] for i in kept])] if any(titles) else []
    styles: list[list[Style | None]] = [[None] * len(kept) for _ in heads]
    styles += [[_pick_style(row.cells[i], row.tone) for i in kept] for row in table.rows]
    grid = [*heads, *([row[i].split("\n") for i in kept] for row in rows)]
    if len(kept) - 1 in words:
        grid = _wrap_last(grid, width - len(indent))
    widths = _measure(grid)
    for strip in _cut_strips(widths, width - len(indent)):
        for row, style in zip(grid, styles, strict=True):
            for line in zip_longest(*(row[i] for i in strip), fillvalue=""):
                cells = [
                    able.paint(pad(text, widths[i], right=i not in words), style[i])
                    for i, text in zip(strip, line, strict=True)
                ]
                yield indent + _GAP.join(cells)


def _sink(titles: Sequence[str]) -> list[list[str]]:
    """Column headings as lines, the short ones at the bottom."""
    lines = [title.split("\n") for title in titles]
    depth = max(map(len, lines))
    return [[""] * (depth - len(one)) + one for one in lines]


def _pick_style(cell: Cell, tone: Tone) -> Style | None:
    if isinstance(cell, Badge):
        return pick_style(cell.tone)
    return pick_style(tone) if tone in _COLOURED else None


def _wrap_last(grid: list[list[list[str]]], width: int) -> list[list[list[str]]]:
    """The grid with its last column in lines that fit beside the others."""
    others = _measure([row[:-1] for row in grid])
    room = max(_NARROWEST, width - sum(others) - len(_GAP) * len(others))
    return [
        [*row[:-1], [short for line in row[-1] for short in _break(line, room)]] for row in grid
    ]


def _measure(grid: list[list[list[str]]]) -> list[int]:
    """The widest line of each column."""
    columns = zip(*grid, strict=True)
    return [max(count_cells(line) for cell in column for line in cell) for column in columns]


def _break(line: str, room: int) -> list[str]:
    """A line that fits stays as it is, with its indentation."""
    return [line] if count_cells(line) <= room else wrap_text(line, room)


def _cut_strips(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """The first column with as many of the others as fit beside it, again and again."""
    room = width - widths[0]
    cuts, used = [1], 0
    for place in range(1, len(widths)):
        used += widths[place] + len(_GAP)
        if used > room and place > cuts[-1]:
            cuts.append(place)
            used = widths[place] + len(_GAP)
    for start, end in pairwise([*cuts, len(widths)]):
        yield [0, *range(start, end)]
