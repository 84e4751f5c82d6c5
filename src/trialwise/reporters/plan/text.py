"""A plan for a terminal: at most 80 columns, and ASCII where the stream cannot show more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from textwrap import wrap
from typing import Any

from trialwise.documents.charts import Chart
from trialwise.renderers.character_charts import render_chart_characters
from trialwise.reporters.plan.page import Page, Prose, Table

__all__ = ["render_plan_text"]

WIDTH = 80
_INDENT, _GAP = "  ", "  "
_ASCII = str.maketrans(
    {"≤": "<=", "≥": ">=", "−": "-", "–": "-", "…": "...", "×": "x", "±": "+/-", "√": "sqrt"}
)


def render_plan_text(page: Page, *, unicode: bool = True) -> str:
    """The page as text of at most 80 columns.

    Args:
        page: What to show.
        unicode: Whether to use ≤, █ and their like; otherwise their ASCII fallbacks.
    """
    page = page if unicode else _plain(page)
    lines = [*_filled(page.title, indent=""), ""]
    width = max(len(label) for label, _ in page.facts) + 2
    for label, value in page.facts:
        first, *rest = _lines(value, WIDTH - len(_INDENT) - width)
        lines.append(f"{_INDENT}{label:{width}}{first}")
        lines += [f"{_INDENT}{'':{width}}{line}" for line in rest]
    lines += ["", *_filled(page.recommendation, indent="")]
    for block in page.blocks:
        lines.append("")
        if isinstance(block, Table):
            lines += _table(block)
        elif isinstance(block, Prose):
            lines += _prose(block)
        else:
            lines += _chart(block, unicode)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _plain(value: Any) -> Any:
    """The same page in ASCII; before it is laid out, as a symbol's fallback is wider."""
    if isinstance(value, str):
        return value.translate(_ASCII)
    if isinstance(value, tuple):
        return tuple(_plain(entry) for entry in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **changed)
    return value


def _filled(text: str, *, indent: str = _INDENT) -> list[str]:
    return [indent + line for line in _lines(text, WIDTH - len(indent))]


def _lines(text: str, width: int) -> list[str]:
    # A number and its unit stay together; the break is put back as a plain space.
    lines = wrap(text.replace(" %", "\u00a0%"), width, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _prose(block: Prose) -> Iterator[str]:
    yield from _filled(block.heading.upper(), indent="")
    for paragraph in block.paragraphs:
        yield from _filled(paragraph)


def _chart(chart: Chart, unicode: bool) -> Iterator[str]:
    heading, *rest = render_chart_characters(chart, unicode=unicode)
    yield heading.upper()
    yield from rest


def _table(table: Table) -> Iterator[str]:
    yield from _filled(table.heading.upper(), indent="")
    yield from _grid(table)
    for note in table.notes:
        yield from _filled(note)


def _grid(table: Table) -> Iterator[str]:
    """The table, in as many strips of columns as the width asks for."""
    headings = [column.split("\n") for column in table.columns]
    depth = max(map(len, headings))
    lines = [[[""] * (depth - len(heading)) + heading for heading in headings]]
    top = [tuple(heading[i] for heading in lines[0]) for i in range(depth)]
    cells = [*top, *(row.cells for row in table.rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(table.columns))]
    for strip in _strips(widths):
        for row in cells:
            parts = [f"{row[0]:{widths[0]}}", *(f"{row[i]:>{widths[i]}}" for i in strip)]
            yield _INDENT + _GAP.join(parts)


def _strips(widths: list[int]) -> Iterator[range]:
    """Runs of columns that fit beside the first one."""
    room = WIDTH - len(_INDENT) - widths[0]
    cuts, used = [1], 0
    for i in range(1, len(widths)):
        used += widths[i] + len(_GAP)
        if used > room and i > cuts[-1]:
            cuts.append(i)
            used = widths[i] + len(_GAP)
    for start, end in pairwise([*cuts, len(widths)]):
        yield range(start, end)
