"""A document as text for a terminal or a log, in as many columns as the stream has.

What a reader opens on demand stays out, and so do pictures that characters cannot draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trialwise.documents.blocks import (
    Badge,
    Block,
    Cell,
    Columns,
    Details,
    Document,
    Facts,
    Items,
    Prose,
    Section,
    Table,
    Verbatim,
)
from trialwise.documents.charts import Chart
from trialwise.documents.printable import count_cells, pad, wrap_text
from trialwise.renderers.capabilities import Capabilities, Style, pick_style
from trialwise.renderers.text_tables import INDENT, flatten_cell, write_table

__all__ = ["render_document_text"]

_GAP = "  "
#: The column of terms; a longer term is shortened, so that values stay aligned.
_TERM = 26
#: A terminal narrower than this wraps by itself.
_NARROWEST = 40


def render_document_text(document: Document, able: Capabilities | None = None) -> str:
    """A document as text.

    Args:
        document: What to show.
        able: What the stream can do; plain ASCII of 80 columns where not given.
    """
    writer = _Writer(able or Capabilities())
    return "\n".join(line.rstrip() for line in writer.write_document(document)).rstrip() + "\n"


class _Writer:
    """Writes blocks as lines for one stream."""

    def __init__(self, able: Capabilities) -> None:
        self.able = able
        self.width = max(_NARROWEST, able.width)

    def write_document(self, document: Document) -> Iterator[str]:
        if document.title:
            yield from self.fill(document.title, style=self.heading_style)
            yield ""
        if document.facts:
            yield from self.align_terms(document.facts)
            yield ""
        if document.lead or document.badge is not None:
            yield from self.fill(document.lead, badge=document.badge)
            yield ""
        for block in (*document.opening, *document.blocks):
            lines = [*self.write_block(block)]
            if lines:
                yield from lines
                yield ""

    @property
    def heading_style(self) -> Style | None:
        return Style.STRONG if self.able.colour else None

    def write_block(self, block: Block) -> Iterator[str]:
        match block:
            case Section():
                yield from self.write_section(block)
            case Document():
                yield from self.write_document(block)
            case Columns():
                for one in block.blocks:
                    yield from self.write_block(one)
            case Details(is_printed=True):
                yield from self.put_heading(block.summary, ())
                for one in block.blocks:
                    yield from self.write_block(one)
            case _:
                yield from self.write_leaf(block)

    def write_leaf(self, block: Block) -> Iterator[str]:
        """A block that holds no other."""
        match block:
            case Facts():
                yield from self.put_heading(block.heading, self.write_facts(block))
            case Prose():
                lines = (x for one in block.paragraphs for x in self.fill(one, indent=INDENT))
                yield from self.put_heading(block.heading, lines)
            case Items():
                lines = (x for one in block.items for x in self.fill(one, lead=f"{INDENT}- "))
                yield from self.put_heading(block.heading, lines)
            case Verbatim():
                lines = (self.able.show(line) for line in block.text.split("\n"))
                yield from self.put_heading(block.heading, (f"{INDENT}{line}" for line in lines))
            case Table():
                heading = block.heading if block.is_headed else ""
                yield from self.put_heading(heading, self.write_table(block))
            case Chart():
                yield from self.write_chart(block)
            case _:
                # Other details are for those who ask; strips, bars and cards are for a browser.
                return

    def write_section(self, section: Section) -> Iterator[str]:
        # Headings of the analysis hold names, whose letters must stay as they are.
        is_verbatim = section.depth == "analysis"
        heading = section.heading if is_verbatim else section.heading.upper()
        yield from self.fill(heading, style=self.heading_style)
        for block in section.blocks:
            yield from self.write_block(block)
        if section.note:
            yield from self.fill(section.note, indent=INDENT)

    def put_heading(self, heading: str, lines: Iterable[str]) -> Iterator[str]:
        if heading:
            yield from self.fill(heading.upper(), style=self.heading_style)
        yield from lines

    def write_chart(self, chart: Chart) -> Iterator[str]:
        # Few pages have charts.
        from trialwise.renderers.character_charts import render_chart_characters

        heading, *rest = render_chart_characters(chart, unicode=self.able.unicode)
        yield self.able.show(heading.upper())
        yield from map(self.able.show, rest)

    # --- Terms and values ---------------------------------------------------------------------

    def align_terms(self, pairs: Iterable[tuple[str, Cell | None]]) -> Iterator[str]:
        """Terms in a column as wide as the longest of them."""
        given = [(self.able.show(term), value) for term, value in pairs if value is not None]
        longest = max(count_cells(term) for term, _ in given)
        width = longest + len(_GAP) if longest else 0
        for term, value in given:
            yield from self.fill(value, lead=f"{INDENT}{pad(term, width)}")

    def write_facts(self, facts: Facts) -> Iterator[str]:
        """Terms with a colon, in one column through the whole document."""
        for term, value in facts.pairs:
            if value is not None:
                shown = f"{self.able.show(term, _TERM - 1)}:" if term else ""
                yield from self.fill(value, lead=f"{INDENT}{pad(shown, _TERM)} ")

    def write_table(self, table: Table) -> Iterator[str]:
        yield from write_table(table, self.able, self.width)
        for note in table.notes:
            yield from self.fill(note, indent=INDENT if any(table.columns) else "")

    # --- Text ---------------------------------------------------------------------------------

    def fill(
        self,
        cell: Cell,
        *,
        indent: str = "",
        lead: str = "",
        badge: Badge | None = None,
        style: Style | None = None,
    ) -> Iterator[str]:
        """A text in lines; the first begins with the lead or badge, the others below its end."""
        word = "" if badge is None else flatten_cell(badge, self.able)
        mark = "" if badge is None else self.able.paint(word, pick_style(badge.tone)) + _GAP
        column = count_cells(indent + lead) + (count_cells(word) + len(_GAP) if word else 0)
        first, *rest = wrap_text(flatten_cell(cell, self.able), self.width - column)
        yield f"{indent}{lead}{mark}{self.able.paint(first, style)}"
        for line in rest:
            yield " " * column + self.able.paint(line, style)
