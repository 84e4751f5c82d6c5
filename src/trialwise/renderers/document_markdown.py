"""A document as Markdown for a comment on a change: short, bounded, and inert.

The answer comes first. Sections that everyone reads stay open, the others are folded. What does
not fit into a comment is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape as escape_html

from trialwise.documents import blocks
from trialwise.documents.charts import Chart, Strips
from trialwise.documents.numbers import as_count
from trialwise.documents.printable import make_visible, shorten

# --- Text that Markdown shows as it is: escaped, shortened, folded, and bounded in size -----------
#
# Names and replies are shown in it, so everything that was not written here is escaped: it can
# neither format, link, mention a person, refer to an issue nor break out of its table cell.

#: GitHub refuses a comment of more than 65,536 characters, and a summary of more than 1 MiB.
MOST_BYTES = 60_000
#: Bytes that one table, one list or one block of details may take of them.
_PART = 12_000
LONGEST_NAME, LONGEST_SENTENCE = 60, 400
_ZERO_WIDTH = "&#8203;"
SIGNS = {"PASS": "✅", "FAIL": "❌", "INCONCLUSIVE": "⚠️", "REFUSED": "🚫"}

#: What Markdown would act on, and how it is written to be shown.
_ACTIVE = re.compile(
    r"(?P<mark>[\\`*_\[\]~$])|(?P<entity>[&<>|])|(?P<ping>[@#])"
    r"|(?<=:)(?P<link>//)|(?<=www)(?P<dot>\.)|(?<=gh)(?P<issue>-)(?=\d)",
    re.IGNORECASE,
)
_PING = re.compile(r"[@#]|(?<=gh)-(?=\d)", re.IGNORECASE)
_BACKTICKS = re.compile("`+")


def marker(name: str = "trialwise") -> str:
    """Return the hidden comment that a report of a suite begins with.

    >>> marker("Nightly suite")
    '<!-- trialwise-report: nightly-suite -->'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "trialwise"
    return f"<!-- trialwise-report: {slug[:LONGEST_NAME].strip('-')} -->"


def escape(text: str) -> str:
    r"""Text on one line that Markdown shows as it is, in a table and outside of one.

    >>> print(escape("a|b *c* @user #1"))
    a&#124;b \*c\* @&#8203;user #&#8203;1
    """
    return _ACTIVE.sub(_disarm, make_visible(text))


def _disarm(found: re.Match[str]) -> str:
    one = found.group()
    match found.lastgroup:
        case "entity":
            return "&#124;" if one == "|" else escape_html(one)
        case "ping" | "issue":
            # Mentions are looked for in what is shown, where no escape is left.
            return f"{one}{_ZERO_WIDTH}"
        case "link":
            return "\\//"
        case _:
            return f"\\{one}"


def write_inline(text: str, width: int = LONGEST_NAME) -> str:
    """Write a text on one line, shortened in its middle and escaped."""
    return escape(shorten(make_visible(text), width))


def write_code(text: str) -> str:
    """Text as a code span, in which nothing is acted on."""
    shown = shorten(make_visible(text), LONGEST_SENTENCE)
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    return f"{fence} {shown} {fence}"


def fold_lines(summary: str, lines: Iterable[str]) -> str:
    """Return a block that a reader opens; its summary is HTML and not Markdown."""
    shown = escape_html(shorten(make_visible(summary), 2 * LONGEST_NAME), quote=False)
    quiet = _PING.sub(lambda ping: ping.group() + _ZERO_WIDTH, shown)
    return "\n".join([f"<details><summary>{quiet}</summary>", "", *lines, "", "</details>"])


def limit_lines(lines: Iterable[str], rest: str) -> Iterator[str]:
    """Lines as long as they fit, then how many do not."""
    used = left = 0
    for line in lines:
        used += len(line.encode()) + 1
        if used <= _PART:
            yield line
        else:
            left += 1
    if left:
        yield rest.format(left)


_TONE_SIGNS: dict[blocks.Tone, str] = {"pass": "✅", "fail": "❌", "open": "⚠️"}


def render_document_markdown(document: blocks.Document) -> str:
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


def _fit(head: str, parts: Sequence[blocks.Block]) -> str:
    # 200 bytes stay for the line that says what was left out.
    room, kept, left = MOST_BYTES - len(head.encode()) - 200, [head], 0
    for block in parts:
        text = "\n".join(_list_lines(block)).strip("\n")
        size = len(text.encode()) + 2
        if text and size <= room:
            room -= size
            kept.append(text)
        elif text:
            left += 1
    notice = [f"_{as_count(left, 'part')} left out to keep this short._"] if left else []
    return "\n\n".join([*kept, *notice]) + "\n"


def _list_lines(block: blocks.Block) -> Iterator[str]:
    """List the lines of a block, and of those that it holds."""
    match block:
        case blocks.Section(depth="summary"):
            signs = "".join(f"{_pick_sign(one)} " for one in block.badges)
            words = "".join(f": {escape(one.word)}" for one in block.badges)
            yield f"### {signs}{write_inline(block.heading)}{words}"
            yield ""
            yield from _list_inside(block.blocks, block.heading)
        case blocks.Section():
            yield fold_lines(block.heading, _list_inside(block.blocks, block.heading))
        case blocks.Details():
            yield fold_lines(block.summary, _list_inside(block.blocks, block.summary))
        case blocks.Columns():
            yield from _list_inside(block.blocks)
        case blocks.Table() | Strips() | Chart():
            yield from _list_table(block)
        case _:
            yield from _list_leaf(block)


def _list_leaf(block: blocks.Block) -> Iterator[str]:
    """List the lines of a block of words; pictures are left out, since numbers say the same."""
    match block:
        case blocks.Items():
            items = (f"- {_write_cell(one)}" for one in block.items)
            yield from limit_lines(items, "- **{} more**")
        case blocks.Prose():
            for one in block.paragraphs:
                yield _write_cell(one)
                yield ""
        case blocks.Facts():
            yield from (f"- {_write_fact(term, value)}" for term, value in block.pairs if value)
        case blocks.Verbatim():
            yield f"- {write_inline(block.heading)} {write_code(block.text)}"
        case blocks.Compared():
            for title, pieces in zip(block.headings, (block.left, block.right), strict=True):
                text = "".join(one.text for one in pieces)
                yield f"- {write_inline(title)} {write_code(text)}"
        case blocks.Cards():
            texts = (write_inline(one.text, LONGEST_SENTENCE) for one in block.cards)
            names = (f"**{write_inline(x.label)}** {write_inline(x.name)}" for x in block.cards)
            cards = (f"- {name}: {text}" for name, text in zip(names, texts, strict=True))
            yield from limit_lines(cards, "- **{} more**")
        case _:
            return


#: Blocks whose headings are shown above them.
_HEADED = (blocks.Table, Strips, Chart, blocks.Items, blocks.Facts, blocks.Prose)


def _list_inside(parts: Iterable[blocks.Block], heading: str = "") -> Iterator[str]:
    """List the lines of blocks below a heading, which the first need not repeat."""
    for number, block in enumerate(parts):
        if number:
            yield ""
        # A table below a section of the same name would say it twice.
        own = getattr(block, "heading", "") if getattr(block, "is_headed", True) else ""
        if isinstance(block, _HEADED) and own not in ("", heading):
            yield f"**{write_inline(own)}**"
            yield ""
        yield from _list_lines(block)


def _list_table(table: blocks.Table | Strips | Chart) -> Iterator[str]:
    """List the rows of a table; of a picture, its numbers."""
    if isinstance(table, Strips):
        strips = ((blocks.Name(one.name), one.value, one.interval) for one in table.rows)
        table = blocks.list_rows(strips, ("", table.axis.label, "interval"), words=(0,))
    elif isinstance(table, Chart):
        table = blocks.list_rows(table.rows, table.columns, words=(0,))
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


def _write_fact(term: str, value: blocks.Cell | None) -> str:
    text = _write_cell(value or "")
    return f"{write_inline(term)}: {text}" if term else text


def _pick_sign(badge: blocks.Badge) -> str:
    """Pick the sign of a word, or of a word that stands for another, such as a softer PASS."""
    return SIGNS.get(badge.word, _TONE_SIGNS.get(badge.tone, ""))


def _write_cell(cell: blocks.Cell) -> str:
    match cell:
        case str():
            return write_inline(cell.replace("\n", " "), LONGEST_SENTENCE)
        case blocks.Badge():
            return f"{_pick_sign(cell)} {write_inline(cell.word)}".strip()
        case blocks.Value():
            text = write_inline(f"{cell.text} {cell.note}".rstrip(), LONGEST_SENTENCE)
            return f"**{text}**" if cell.strong else text
        case blocks.Verbatim():
            return f"<br>{write_inline(cell.heading)} {write_code(cell.text)}"
        case tuple():
            return " ".join(_write_cell(one) for one in cell)
        case _:  # a strip is a picture, and its numbers stand beside it
            return write_inline(cell.text) if isinstance(cell, blocks.Name) else ""
