"""A document as text for a terminal or a log, in as many columns as the stream has.

What a reader opens on demand stays out, and so do pictures that characters cannot draw.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise, zip_longest

from trialwise.documents import blocks
from trialwise.documents.charts import Axis, Chart, Ink, Place, Strip, Strips, find_share
from trialwise.documents.printable import count_cells, pad, wrap_text
from trialwise.renderers.capabilities import Capabilities, Style, pick_style

INDENT, GAP = "  ", "  "


#: The column of terms. A longer term is shortened, so that values stay aligned.
_TERM = 26


#: A terminal narrower than this wraps by itself.
NARROWEST = 40


def render_document_text(document: blocks.Document, able: Capabilities | None = None) -> str:
    """Render a document as text.

    Args:
        document: What to show.
        able: What the stream can do; plain ASCII of 80 columns where not given.
    """
    writer = TextWriter(able or Capabilities())
    return "\n".join(line.rstrip() for line in writer.write_document(document)).rstrip() + "\n"


class TextWriter:
    """Writes texts and blocks as lines for one stream."""

    def __init__(self, able: Capabilities) -> None:
        self.able = able
        self.width = max(NARROWEST, able.width)

    def write_document(self, document: blocks.Document) -> Iterator[str]:
        """Write the answer, the facts and the blocks."""
        answer = [*self.fill(document.lead, badge=document.badge), ""]
        # A verdict is what a reader looks for; a lead without one introduces the blocks.
        if document.badge is not None:
            yield from answer
        if document.title:
            yield from self.fill(document.title, style=Style.STRONG)
            yield ""
        if document.facts:
            yield from self._align_terms(document.facts)
            yield ""
        if document.lead and document.badge is None:
            yield from answer
        for block in (*document.opening, *document.blocks):
            lines = [*self._write_block(block)]
            if lines:
                yield from lines
                yield ""

    def _write_block(self, block: blocks.Block) -> Iterator[str]:
        match block:
            case blocks.Section():
                yield from self._write_section(block)
            case blocks.Document():
                yield from self.write_document(block)
            case blocks.Columns():
                for one in block.blocks:
                    yield from self._write_block(one)
            case blocks.Details() if block.is_printed or block.is_open:
                yield from self._put_heading(block.summary)
                for one in block.blocks:
                    yield from self._write_block(one)
            case _:
                yield from self._write_leaf(block)

    def _write_leaf(self, block: blocks.Block) -> Iterator[str]:
        """Write a block that holds no other."""
        lines: Iterable[str]
        match block:
            case blocks.Facts():
                lines = self._write_facts(block)
            case blocks.Prose():
                lines = (x for one in block.paragraphs for x in self.fill(one, INDENT))
            case blocks.Items():
                lines = (x for one in block.items for x in self.fill(one, f"{INDENT}- "))
            case blocks.Verbatim():
                lines = (f"{INDENT}{self.able.show(line)}" for line in block.text.split("\n"))
            case blocks.Table():
                lines = self._write_table(block)
            case Strips():
                lines = render_strip_characters(block, self.able, self.width)
            case _:
                yield from self._write_other(block)
                return
        yield from self._put_heading(block.heading if getattr(block, "is_headed", True) else "")
        yield from lines

    def _write_other(self, block: blocks.Block) -> Iterator[str]:
        """Write a block whose heading is not like that of others."""
        match block:
            case blocks.Compared():
                for title, pieces in zip(block.headings, (block.left, block.right), strict=True):
                    whole = "".join(one.text for one in pieces)
                    yield from self._write_leaf(blocks.Verbatim(heading=title, text=whole))
            case Chart():
                heading, *rest = render_chart_characters(block, unicode=self.able.unicode)
                yield from map(self.able.show, (heading.upper(), *rest))
            case blocks.Cards():
                for card in block.cards:
                    words = [card.label, card.name, *(one.word for one in card.badges)]
                    start = f"{self.able.dot.join(words)}:"
                    yield from self.fill((start, card.text), f"{INDENT}- ")
            case _:
                # Other details are for those who ask; timelines are for a browser.
                return

    def _write_section(self, section: blocks.Section) -> Iterator[str]:
        # Headings of the analysis hold names, whose letters must stay as they are.
        is_verbatim = section.depth == "analysis"
        heading = section.heading if is_verbatim else section.heading.upper()
        beside = [*(badge.word for badge in section.badges), *filter(None, [section.aside])]
        yield from self.fill(self.able.dot.join([heading, *beside]), style=Style.STRONG)
        for block in section.blocks:
            yield from self._write_block(block)
        if section.note:
            yield from self.fill(section.note, INDENT)

    def _put_heading(self, heading: str) -> Iterator[str]:
        if heading:
            yield from self.fill(heading.upper(), style=Style.STRONG)

    # --- Terms and values ---------------------------------------------------------------------

    def _align_terms(self, pairs: Iterable[tuple[str, blocks.Cell | None]]) -> Iterator[str]:
        """Terms in a column as wide as the longest of them."""
        given = [(self.able.show(term), value) for term, value in pairs if value is not None]
        longest = max(count_cells(term) for term, _ in given)
        width = longest + len(GAP) if longest else 0
        for term, value in given:
            yield from self.fill(value, f"{INDENT}{pad(term, width)}")

    def _write_facts(self, facts: blocks.Facts) -> Iterator[str]:
        """Terms with a colon, in one column through the whole document."""
        for term, value in facts.pairs:
            if value is not None:
                shown = f"{self.able.show(term, _TERM - 1)}:" if term else ""
                yield from self.fill(value, f"{INDENT}{pad(shown, _TERM)} ")

    def _write_table(self, table: blocks.Table) -> Iterator[str]:
        yield from write_table(table, self.able, self.width)
        for note in table.notes:
            yield from self.fill(note, INDENT if any(table.columns) else "")

    # --- Text ---------------------------------------------------------------------------------

    def fill(
        self,
        cell: blocks.Cell,
        lead: str = "",
        *,
        badge: blocks.Badge | None = None,
        style: Style | None = None,
    ) -> Iterator[str]:
        """Fill a text into lines; the first one begins with the lead or the badge."""
        word = "" if badge is None else flatten_cell(badge, self.able)
        mark = "" if badge is None else self.able.paint(word, pick_style(badge.tone)) + GAP
        column = count_cells(lead) + (count_cells(word) + len(GAP) if word else 0)
        first, *rest = wrap_text(flatten_cell(cell, self.able), self.width - column)
        yield f"{lead}{mark}{self.able.paint(first, style)}"
        for line in rest:
            yield " " * column + self.able.paint(line, style)


#: A last column of words is not wrapped to less than this.
_NARROWEST_COLUMN = 30


#: Tones of rows that a terminal shows by colour; the others are for a browser.
_COLOURED: tuple[blocks.Tone, ...] = ("pass", "fail", "open", "quiet")


def flatten_cell(cell: blocks.Cell, able: Capabilities, *, lines: bool = False) -> str:
    """Return a cell as the stream can show it, on one line unless its line breaks count."""
    match cell:
        case str():
            parts = cell.split("\n") if lines else [cell]
            return "\n".join(map(able.show, parts))
        case tuple():
            return " ".join(flatten_cell(one, able) for one in cell)
        case blocks.Badge():
            text = cell.word
        case blocks.Value():
            text = f"{cell.text} {cell.note}".strip() + (" !" if cell.mark else "")
        case blocks.Name():
            text = cell.text
        case blocks.Verbatim():
            text = f"{cell.heading}: {cell.text}"
        case _:  # a strip is a picture, and its numbers stand beside it
            text = ""
    return able.show(text)


def write_table(table: blocks.Table, able: Capabilities, width: int) -> Iterator[str]:
    """Write the rows under their column headings; a table without any begins at the left edge.

    A last column of words is wrapped where it is too wide. Otherwise the table comes in as many
    strips as the width asks for, each with the names of the rows.
    """
    titles = [flatten_cell(column, able, lines=True) for column in table.columns]
    indent = INDENT if any(titles) else ""
    rows = [[flatten_cell(cell, able, lines=True) for cell in row.cells] for row in table.rows]
    for cells in rows:
        # A name may be as long as somebody likes; the numbers beside it need room too.
        if count_cells(cells[0]) > width // 2:
            cells[0] = able.show(cells[0], width // 2)
    # A column of pictures has nothing to say in a terminal.
    kept = [i for i in range(len(titles)) if i == 0 or any(row[i] for row in rows)]
    words = [place for place, i in enumerate(kept) if i == 0 or i in table.words]
    # Column headings stand on the rows: those of few lines begin lower.
    split = [titles[i].split("\n") for i in kept]
    depth = max(map(len, split))
    heads = [[[""] * (depth - len(one)) + one for one in split]] if any(titles) else []
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
                yield indent + GAP.join(cells)


def _pick_style(cell: blocks.Cell, tone: blocks.Tone) -> Style | None:
    if isinstance(cell, blocks.Badge):
        return pick_style(cell.tone)
    return pick_style(tone) if tone in _COLOURED else None


def _wrap_last(grid: list[list[list[str]]], width: int) -> list[list[list[str]]]:
    """Wrap the grid with its last column in lines that fit beside the others."""
    others = _measure([row[:-1] for row in grid])
    room = max(_NARROWEST_COLUMN, width - sum(others) - len(GAP) * len(others))
    for row in grid:
        # A line that fits stays as it is, with its indentation.
        broken = ([one] if count_cells(one) <= room else wrap_text(one, room) for one in row[-1])
        row[-1] = [*chain.from_iterable(broken)]
    return grid


def _measure(grid: list[list[list[str]]]) -> list[int]:
    """Measure the widest line of each column."""
    columns = zip(*grid, strict=True)
    return [max(count_cells(line) for cell in column for line in cell) for column in columns]


def _cut_strips(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Cut the first column with as many of the others as fit beside it, again and again."""
    room = width - widths[0]
    cuts, used = [1], 0
    for place in range(1, len(widths)):
        used += widths[place] + len(GAP)
        if used > room and place > cuts[-1]:
            cuts.append(place)
            used = widths[place] + len(GAP)
    for start, end in pairwise([*cuts, len(widths)]):
        yield [0, *range(start, end)]


COLUMNS, ROWS = 61, 11


_MARGIN = 9


#: Bands from the bottom up, and the marks of lines, first in Unicode and then in ASCII.
_MARKS: dict[Ink, str] = {
    "pass": "█#",
    "open": "▒?",
    "fail": "·.",
    "one": "●o",
    "two": "×x",
    "three": "○+",
    "four": "△*",
    "quiet": "◌~",
    "bound": "▽v",
}


def render_chart_characters(chart: Chart, *, unicode: bool = True) -> list[str]:
    """Render the chart as lines of at most 80 columns, heading and key included."""
    # A terminal has no pixels: a chart is a grid of characters, and its values stand in the page.
    grid = [[" "] * COLUMNS for _ in range(ROWS)]
    _draw_areas(chart, grid, unicode)
    _draw_lines(chart, grid, unicode)
    low, high = chart.y.low, chart.y.high
    lines = [chart.heading, *_write_key(chart, unicode), ""]
    for row, cells in enumerate(grid):
        value = high - (high - low) * row / (ROWS - 1)
        labelled = row in (0, (ROWS - 1) // 2, ROWS - 1)
        label = _write_tick(value, chart.y) if labelled else ""
        bar = "┤" if label else "│"
        lines.append(f"{label:>{_MARGIN - 1}} {bar if unicode else '|'}{''.join(cells)}".rstrip())
    return [*lines, *_write_axis(chart, unicode)]


def _draw_areas(chart: Chart, grid: list[list[str]], unicode: bool) -> None:
    """Fill each cell whose middle lies inside an area."""
    x, y = chart.x, chart.y
    for area in chart.areas:
        for column in range(COLUMNS):
            at = x.low + (x.high - x.low) * column / (COLUMNS - 1)
            low, high = _interpolate(area.lower, at), _interpolate(area.upper, at)
            for row in range(ROWS):
                middle = y.low + (y.high - y.low) * (ROWS - row - 0.5) / ROWS
                if low <= middle < high:
                    grid[row][column] = _pick_area_mark(area.ink, unicode)


def _interpolate(points: Sequence[Place], at: float) -> float:
    """Return the height of a line of points at a place."""
    after = bisect_left(points, at, key=lambda point: point[0])
    if after in (0, len(points)):
        return points[min(after, len(points) - 1)][1]
    (left, low), (right, high) = points[after - 1], points[after]
    return low + (high - low) * find_share(at, left, right)


def _draw_lines(chart: Chart, grid: list[list[str]], unicode: bool) -> None:
    # Where points meet, single ones are to be seen before lines, and the first line before others.
    drawn = [(point, line.ink) for line in reversed(chart.lines) for point in line.points]
    drawn += [((mark.x, mark.y), mark.ink) for mark in chart.marks]
    for (x, y), ink in drawn:
        column = round((COLUMNS - 1) * chart.x.place(x))
        row = round((ROWS - 1) * (1 - chart.y.place(y)))
        grid[row][column] = _pick_mark(ink, unicode)


def _write_key(chart: Chart, unicode: bool) -> list[str]:
    """Write what each mark means, in as many lines as it takes."""
    parts = [(_pick_area_mark(area.ink, unicode), area.name) for area in chart.areas]
    parts += [(_pick_mark(line.ink, unicode), line.name) for line in chart.lines]
    parts += [(_pick_mark(mark.ink, unicode), mark.name) for mark in chart.marks]
    lines: list[str] = []
    for sign, name in dict.fromkeys(part for part in parts if part[1]):
        entry = f"{sign} {name}"
        if lines and len(lines[-1]) + 3 + len(entry) <= 79:
            lines[-1] += f"   {entry}"
        else:
            lines.append(f"  {entry}")
    return lines


def _pick_mark(ink: Ink, unicode: bool) -> str:
    return _MARKS[ink][0 if unicode else 1]


def _pick_area_mark(ink: Ink, unicode: bool) -> str:
    """Return the mark of an area: bands of decisions have their own, other bands are shaded."""
    return _pick_mark(ink, unicode) if ink in ("pass", "open", "fail") else "░:"[not unicode]


def _write_tick(value: float, axis: Axis) -> str:
    """Write a value at a fixed place of an axis, which need not be round."""
    is_round = axis.unit != "count" or value == round(value)
    return axis.format_tick(value) if is_round else axis.format_value(value)


def _write_axis(chart: Chart, unicode: bool) -> Iterator[str]:
    ticks = [(value, _write_tick(value, chart.x)) for value in (chart.x.low, chart.x.high)]
    ticks += [(guide.value, guide.label) for guide in chart.guides if guide.axis == "x"]
    rule = ["─" if unicode else "-"] * COLUMNS
    # The guides first: where labels would run into each other, the ends give way.
    placed = [(round((COLUMNS - 1) * chart.x.place(value)), label) for value, label in ticks[::-1]]
    for column, _ in placed:
        rule[column] = "┬" if unicode else "+"
    yield " " * _MARGIN + ("└" if unicode else "+") + "".join(rule)
    yield f"{' ' * (_MARGIN + 1)}{_place_labels(placed, COLUMNS + 8)}".rstrip()
    yield " " * (_MARGIN + 1) + chart.x.label


def _place_labels(labels: Iterable[tuple[int, str]], across: int) -> str:
    """Write each label under its column; one that has no room is left out."""
    cells = [" "] * across
    for column, label in labels:
        # A label near an end of the scale is moved inward: cut in half it would be another number.
        start = max(0, min(column - len(label) // 2, across - len(label)))
        if not "".join(cells[max(0, start - 1) : start + len(label) + 1]).strip():
            cells[start : start + len(label)] = label
    return "".join(cells)


# --- Intervals on one scale, drawn with characters: a forest plot for a terminal or a log ---------

#: Columns that a picture takes at most, beside a long name, and at least.
_WIDEST, _USUAL, _SMALLEST = 41, 31, 15
#: Estimate, line, ends, what is required, what it must be distinguished from, an end off the scale.
_UNICODE, _ASCII = "●─├┤│┊◄►", "o-[]|:<>"
_STYLES = {"pass": Style.GOOD, "fail": Style.BAD, "open": Style.OPEN}


def render_strip_characters(strips: Strips, able: Capabilities, width: int) -> Iterator[str]:
    """Render a line for each interval, then the scale and what lies toward its ends.

    Args:
        strips: What to draw.
        able: What the stream can show.
        width: How many columns there are.
    """
    values = [able.show(row.value) for row in strips.rows]
    longest = max(map(count_cells, (*values, able.show(strips.axis.label))))
    room = width - len(INDENT) - 2 * len(GAP) - longest
    names = [able.show(INDENT * row.depth + row.name) for row in strips.rows]
    column = min(max(map(count_cells, names), default=0), max(8, room - _USUAL))
    across = max(_SMALLEST, min(_WIDEST, room - column))
    for row, name, value in zip(strips.rows, names, values, strict=True):
        drawn = able.paint(_draw(row.strip, across, able), _STYLES.get(row.strip.ink))
        label = pad(able.show(name, column), column)
        yield f"{INDENT}{label}{GAP}{drawn}{GAP}{pad(value, longest, right=True)}"
    before = " " * (len(INDENT) + column + len(GAP))
    yield before + _write_scale(strips, across, able)
    if any(strips.ends):
        yield before + _write_ends(strips.ends, across, able)


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
        covered = cells[low : high + 1]
        cells[low : high + 1] = [line if one in (" ", other) else one for one in covered]
        cells[low] = left if strip.low >= strip.span[0] else below
        cells[high] = right if strip.high <= strip.span[1] else above
    cells[place(strip.value)] = dot
    return "".join(cells)


def _write_scale(strips: Strips, across: int, able: Capabilities) -> str:
    """Write the ticks of the scale, each under its place."""
    axis = strips.axis
    ticks = axis.list_ticks(most=6)
    placed = [(round((across - 1) * axis.place(value)), able.show(text)) for value, text in ticks]
    return f"{_place_labels(placed, across)}{GAP}{able.show(axis.label)}".rstrip()


def _write_ends(ends: Sequence[str], across: int, able: Capabilities) -> str:
    arrows = ("◄ ", " ►") if able.unicode else ("< ", " >")
    half = across // 2 - 1
    left, right = able.show(ends[0], half - 2), able.show(ends[1], half - 2)
    return f"{pad(arrows[0] + left, across - half)}{pad(right + arrows[1], half, right=True)}"
