"""A document as Markdown for a comment on a change: short, bounded, and inert.

The answer comes first. Sections that everyone reads stay open, the others are folded. What does
not fit into a comment is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trialwise.documents.blocks import (
    Badge,
    Block,
    Cards,
    Cell,
    Columns,
    Compared,
    Details,
    Document,
    Facts,
    Items,
    Link,
    Name,
    Prose,
    Row,
    Section,
    Table,
    Tone,
    Value,
    Verbatim,
)
from trialwise.documents.charts import Chart, Strips
from trialwise.documents.numbers import as_count
from trialwise.renderers.markdown_text import (
    LONGEST_SENTENCE,
    MOST_BYTES,
    SIGNS,
    escape,
    fold_lines,
    limit_lines,
    marker,
    write_code,
    write_inline,
)

_TONE_SIGNS: dict[Tone, str] = {"pass": "✅", "fail": "❌", "open": "⚠️"}


def render_document_markdown(document: Document) -> str:
    """Render a document as GitHub-flavoured Markdown of at most 60 kB.

    The first line is a hidden marker by which a comment can be found and replaced.

    Args:
        document: What to show.
    """
    badge, title = document.badge, write_inline(document.title, LONGEST_SENTENCE)
    sign = "" if badge is None else f"{_pick_sign(badge)} "
    head = [marker(f"{document.kind} {document.title}")]
    if document.lead:
        word = "" if badge is None else f"**{escape(badge.word)}** · "
        head += [f"## {sign}{write_inline(document.lead, LONGEST_SENTENCE)}", "", f"{word}{title}"]
    else:
        word = "" if badge is None else f"{escape(badge.word)}: "
        head.append(f"## {sign}{word}{title}")
    facts = [_write_fact(term, value) for term, value in document.facts if value]
    head += ["", " · ".join(facts)] if facts else []
    return _fit("\n".join(head).rstrip(), [*document.opening, *document.blocks])


def _fit(head: str, blocks: Sequence[Block]) -> str:
    room, kept, left = MOST_BYTES - len(head.encode()) - 200, [head], 0
    for block in blocks:
        text = "\n".join(_list_lines(block)).strip("\n")
        size = len(text.encode()) + 2
        if text and size <= room:
            room -= size
            kept.append(text)
        elif text:
            left += 1
    notice = [f"_{as_count(left, 'part')} left out to keep this short._"] if left else []
    return "\n\n".join([*kept, *notice]) + "\n"


def _list_lines(block: Block) -> Iterator[str]:
    """List the lines of a block, and of those that it holds."""
    match block:
        case Section(depth="summary"):
            signs = "".join(f"{_pick_sign(one)} " for one in block.badges)
            words = "".join(f": {escape(one.word)}" for one in block.badges)
            yield f"### {signs}{write_inline(block.heading)}{words}"
            yield ""
            yield from _list_inside(block.blocks, block.heading)
        case Section():
            yield fold_lines(block.heading, _list_inside(block.blocks, block.heading))
        case Details():
            yield fold_lines(block.summary, _list_inside(block.blocks, block.summary))
        case Columns():
            yield from _list_inside(block.blocks)
        case Table() | Strips() | Chart():
            yield from _list_table(block)
        case _:
            yield from _list_leaf(block)


def _list_leaf(block: Block) -> Iterator[str]:
    """List the lines of a block of words; pictures are left out, since numbers say the same."""
    match block:
        case Items():
            items = (f"- {_write_cell(one)}" for one in block.items)
            yield from limit_lines(items, "- **{} more**")
        case Prose():
            for one in block.paragraphs:
                yield _write_cell(one)
                yield ""
        case Facts():
            yield from (f"- {_write_fact(term, value)}" for term, value in block.pairs if value)
        case Verbatim():
            yield f"- {write_inline(block.heading)} {write_code(block.text)}"
        case Compared():
            for title, pieces in zip(block.headings, (block.left, block.right), strict=True):
                text = "".join(one.text for one in pieces)
                yield f"- {write_inline(title)} {write_code(text)}"
        case Cards():
            cards = (
                f"- **{write_inline(one.label)}** {write_inline(one.name)}: "
                f"{write_inline(one.text, LONGEST_SENTENCE)}"
                for one in block.cards
            )
            yield from limit_lines(cards, "- **{} more**")
        case _:
            return


def _list_inside(blocks: Iterable[Block], heading: str = "") -> Iterator[str]:
    """List the lines of blocks below a heading, which the first need not repeat."""
    for number, block in enumerate(blocks):
        if number:
            yield ""
        own = getattr(block, "heading", "") if getattr(block, "is_headed", True) else ""
        shown = isinstance(block, Table | Strips | Chart | Items | Facts | Prose)
        if shown and own not in ("", heading):
            yield f"**{write_inline(own)}**"
            yield ""
        yield from _list_lines(block)


def _read_table(block: Table | Strips | Chart) -> Table:
    """Return the numbers of a picture as a table."""
    match block:
        case Strips():
            rows = tuple(Row(cells=(Name(one.name), one.value, one.interval)) for one in block.rows)
            columns = ("", block.axis.label, "interval")
            return Table(heading=block.heading, columns=columns, rows=rows)
        case Chart():
            rows = tuple(Row(cells=row) for row in block.rows)
            return Table(heading=block.heading, columns=block.columns, rows=rows)
        case _:
            return block


def _list_table(block: Table | Strips | Chart) -> Iterator[str]:
    table = _read_table(block)
    # A column of pictures has nothing to say here.
    rows = [[_write_cell(cell) for cell in row.cells] for row in table.rows]
    kept = [i for i in range(len(table.columns)) if i == 0 or any(row[i] for row in rows)]
    titles = [_write_cell(table.columns[i]) for i in kept]
    yield f"| {' | '.join(titles)} |"
    yield "|" + "".join(":--|" if i in table.words else "--:|" for i in kept)
    lines = (f"| {' | '.join(row[i] for i in kept)} |" for row in rows)
    yield from limit_lines(lines, "| … and {} more |" + " |" * (len(kept) - 1))
    for note in table.notes:
        yield ""
        yield write_inline(note, LONGEST_SENTENCE)


def _write_fact(term: str, value: Cell | None) -> str:
    text = _write_cell(value or "")
    return f"{write_inline(term)}: {text}" if term else text


def _pick_sign(badge: Badge) -> str:
    """Pick the sign of a word, or of a word that stands for another, such as a softer PASS."""
    return SIGNS.get(badge.word, _TONE_SIGNS.get(badge.tone, ""))


def _write_cell(cell: Cell) -> str:
    match cell:
        case str():
            return write_inline(cell.replace("\n", " "), LONGEST_SENTENCE)
        case Badge():
            return f"{_pick_sign(cell)} {write_inline(cell.word)}".strip()
        case Value():
            text = write_inline(f"{cell.text} {cell.note}".rstrip(), LONGEST_SENTENCE)
            return f"**{text}**" if cell.strong else text
        case Verbatim():
            return f"<br>{write_inline(cell.heading)} {write_code(cell.text)}"
        case tuple():
            return " ".join(_write_cell(one) for one in cell)
        case _:  # a strip is a picture, and its numbers stand beside it
            return write_inline(cell.text) if isinstance(cell, Link | Name) else ""
