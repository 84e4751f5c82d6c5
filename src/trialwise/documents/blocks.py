"""The blocks of a document. Pages and procedures build them; renderers show them.

A block says what it shows, never how: a renderer decides on colours, widths and markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "Badge",
    "Block",
    "Cell",
    "Depth",
    "Details",
    "Document",
    "Facts",
    "Items",
    "Link",
    "Prose",
    "Row",
    "Section",
    "Table",
    "Tone",
    "Verbatim",
]

Tone: TypeAlias = Literal["plain", "pass", "fail", "open", "quiet", "chosen", "broken", "limit"]
"""How a part stands out; a renderer gives each tone a colour and a shape."""

Depth: TypeAlias = Literal["summary", "report", "analysis"]
"""Who reads a section: everyone, readers of the report, or readers of the full analysis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A word that stands out, such as PASS."""

    word: str
    tone: Tone
    soft: bool = False
    """Whether the word says less than it seems to, such as the PASS of a smoke run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Text that leads to a named section of the same document."""

    text: str
    target: str


Cell: TypeAlias = "str | Badge | Link | tuple[Cell, ...]"
"""What a table cell or a fact may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Terms with their values. Pairs without a value are left out by the renderers."""

    pairs: tuple[tuple[str, Cell | None], ...]
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """Paragraphs."""

    paragraphs: tuple[str, ...]
    heading: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list of short texts."""

    items: tuple[Cell, ...]
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbatim:
    """Text that is shown character by character, such as a reply or a command."""

    text: str
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table. The first cell names it."""

    cells: tuple[Cell, ...]
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under column headings, with the notes a reader needs."""

    heading: str
    columns: tuple[str, ...]
    """A line break divides a column heading in two."""
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    words: tuple[int, ...] = (0,)
    """Columns that hold words; the others hold numbers and are set flush right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Blocks that a reader opens on demand; a terminal leaves them out."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks under one heading."""

    heading: str
    blocks: tuple[Block, ...]
    note: str = ""
    """How to read the section, in a sentence."""
    name: str = ""
    """The target of links; renderers derive one from the heading where it is empty."""
    depth: Depth = "report"


Block: TypeAlias = "Facts | Prose | Items | Verbatim | Table | Details | Section"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A page: what it is about, its verdict where it has one, and its blocks."""

    kind: str
    """What sort of page it is, such as "Run report"."""
    title: str
    blocks: tuple[Block, ...]
    badge: Badge | None = None
    lead: str = ""
    """The sentence that a reader must not miss."""
    facts: tuple[tuple[str, Cell | None], ...] = ()
