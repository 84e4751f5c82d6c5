"""The blocks of a document. Pages and procedures build them; renderers show them.

A block says what it shows, never how: a renderer decides on colours, widths and markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from trialwise.documents.charts import Chart, Strip, Strips


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
    note: str = ""
    """What is said beside the word where there is room, such as "smoke run"."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name that somebody else chose; a renderer keeps its writing direction to itself."""

    text: str
    target: str = ""
    """The named section of the same document that it leads to, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number or a few words, with what a reader may want beside them."""

    text: str
    note: str = ""
    """Said below, in smaller letters."""
    hint: str = ""
    """Said where it is pointed at."""
    shade: float | None = None
    """How bad it is, from 0 to 1; a renderer may colour the cell."""
    share: float | None = None
    """What part of a bar it fills, from 0 to 1."""
    tone: Tone = "plain"
    mark: str = ""
    """What the tone means, for those who do not see it."""
    strong: bool = False


Cell: TypeAlias = "str | Badge | Name | Value | Strip | Verbatim | tuple[Cell, ...]"
"""What a table cell, a fact, an item or a paragraph may hold."""


Pairs: TypeAlias = "tuple[tuple[str, Cell | None], ...]"
"""Terms with their values; renderers leave out pairs without a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Terms with their values. Pairs without a value are left out by the renderers."""

    pairs: Pairs
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """Paragraphs."""

    paragraphs: tuple[Cell, ...]
    heading: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list of short texts."""

    items: tuple[Cell, ...]
    heading: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbatim:
    """Text that is shown character by character, such as a reply or a command."""

    text: str
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text that is held against another one."""

    text: str
    differs: bool = False
    """Whether the other text does not have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two texts beside each other, with what differs marked."""

    headings: tuple[str, str]
    left: tuple[Piece, ...]
    right: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table. The first cell names it."""

    cells: tuple[Cell, ...]
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under column headings, with the notes a reader needs."""

    heading: str
    columns: tuple[Cell, ...]
    """A line break divides a column heading in two."""
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    words: tuple[int, ...] = (0,)
    """Columns that hold words; the others hold numbers and are set flush right."""
    is_headed: bool = True
    """Whether its heading is seen; otherwise something above the table says the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Blocks that a reader opens on demand; a terminal leaves them out."""

    summary: str
    blocks: tuple[Block, ...]
    is_open: bool = False
    is_printed: bool = False
    """Whether paper shows the blocks, where nobody can open them."""


def fold_notes(summary: str, notes: tuple[str, ...]) -> tuple[Details, ...]:
    """Return a list of notes that a reader opens on demand; nothing where there are none."""
    return (Details(summary=summary, blocks=(Items(items=notes),), is_printed=True),) * bool(notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Blocks beside each other where there is room."""

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
    badges: tuple[Badge, ...] = ()
    """What stands out beside the heading."""
    aside: str = ""
    """A few words beside the heading."""
    tone: Tone = "plain"


Block: TypeAlias = (
    "Facts | Prose | Items | Verbatim | Table | Details | Columns | Section | Document "
    "| Chart | Strips | Cards | Timeline | Compared"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A page: what it is about, its verdict where it has one, and its blocks.

    A document inside another is one of several of its kind, such as the run of one contract.
    """

    kind: str
    """What sort of page it is, such as "Run report"."""
    title: str
    blocks: tuple[Block, ...]
    badge: Badge | None = None
    badge_label: str = "Verdict"
    """What the badge is, for those who do not see it."""
    lead: str = ""
    """The sentence that a reader must not miss."""
    facts: Pairs = ()
    opening: tuple[Block, ...] = ()
    """What belongs to the verdict and stands before all sections."""
    dateline: tuple[str, ...] = ()
    """When and by what it was made."""
    name: str = ""
    """The target of links, for a document inside another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One of many things of a kind: a line that unfolds."""

    label: str
    name: str
    badges: tuple[Badge, ...] = ()
    text: str = ""
    blocks: tuple[Block, ...] = ()
    is_open: bool = False
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What it is found by: the values of each choice that it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to narrow down cards."""

    name: str
    """The key of the tags it looks at."""
    label: str
    everything: str
    """What the choice is called under which no card is hidden."""
    options: tuple[tuple[str, str], ...]
    """The values of a tag, with what each is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """Cards below each other, with choices for a reader who looks for some of them."""

    cards: tuple[Card, ...]
    choices: tuple[Choice, ...] = ()
    noun: str = "trial"
    is_searched: bool = False
    """Whether a reader can look for words in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A text at a glance, with the rest of it on demand."""

    text: str
    label: str = ""
    tone: Tone = "plain"
    rest: Details | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a session."""

    place: str
    name: str
    about: str
    """Where it was made and whether it was made before."""
    when: str
    texts: tuple[Excerpt, ...] = ()
    start: float | None = None
    """Where its bar begins, as a share of the session; None where no bar is drawn."""
    width: float = 0.0
    is_endless: bool = False
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a session."""

    speaker: str
    text: Excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The messages and calls of a session in order; each call has a bar that shows its time."""

    heading: str
    steps: tuple[Call | Message | str, ...]
    """A text stands for steps that are left out."""
    ticks: tuple[tuple[float, str], ...] = ()
    """Shares of the session, with the time there."""


def list_rows(
    rows: Iterable[tuple[Cell, ...]],
    columns: tuple[Cell, ...] = ("", ""),
    *,
    heading: str = "",
    words: tuple[int, ...] | None = None,
    notes: tuple[str, ...] = (),
    is_headed: bool = True,
) -> Table:
    """List rows of cells as a table, without headings where none are given.

    Args:
        rows: The cells of each row.
        columns: The headings above them.
        heading: The heading of the table.
        words: Columns that hold words rather than numbers; all of them where not given.
        notes: What a reader needs below it.
        is_headed: Whether the heading is seen.
    """
    # Lists are words more often than numbers, which only a table of figures sets flush right.
    made, every = tuple(Row(cells=cells) for cells in rows), tuple(range(len(columns)))
    table = Table(heading=heading, columns=columns, rows=made, notes=notes, is_headed=is_headed)
    return replace(table, words=every if words is None else words)


Subject = TypeVar("Subject")


Column: TypeAlias = tuple[Cell, Callable[[Subject], Cell]]
"""A heading, and the cell below it for one subject."""


def build_table(
    heading: str,
    subjects: Iterable[Subject],
    *columns: Column[Subject],
    words: tuple[int, ...] = (0,),
    notes: tuple[str, ...] = (),
    is_headed: bool = True,
    tone: Callable[[Subject], Tone] = lambda _: "plain",
) -> Table:
    """Build a table with a row for each subject.

    >>> build_table("Squares", [2, 3], ("n", str), ("square", lambda n: f"{n * n}")).rows[1].cells
    ('3', '9')

    Args:
        heading: The heading of the table.
        subjects: What the rows are about.
        columns: Each with its heading; the first one names the row.
        words: Columns that hold words rather than numbers.
        notes: What a reader needs below it.
        is_headed: Whether the heading is seen.
        tone: How the row of a subject stands out.
    """
    # Columns are functions of a subject, so that a heading and its cells cannot come apart.
    rows = [Row(cells=tuple(write(x) for _, write in columns), tone=tone(x)) for x in subjects]
    titles = tuple(title for title, _ in columns)
    table = Table(heading=heading, columns=titles, rows=tuple(rows), words=words, notes=notes)
    return replace(table, is_headed=is_headed)
